//! NHRP over GRE: a spoke, its hub, and another spoke.

use super::{Case, Clean};
use crate::dmvpn::{
    HUB, HUB_TUNNEL, Packets, Story, entry, later, packet, pcap, refusal, spoke, summed,
};
use aerostat_explain::Rule;
use aerostat_wire::nhrp::{Body, Common, Extension, NbmaAddress, Packet, code, ext, flag, op};

fn file(packets: Packets) -> Vec<u8> {
    pcap(&later(packets))
}

fn common(packet: &mut Packet, change: impl Fn(&mut Common)) {
    match &mut packet.body {
        Body::Common(common) => change(common),
        Body::Error(_) => panic!("an error"),
    }
}

/// The story with a change, beside the clean one.
fn change(rule: Rule, change: impl Fn(&mut Story)) -> Case {
    let mut story = Story::new();
    change(&mut story);
    Case::files(rule, file(Story::new().packets()), file(story.packets()))
}

/// The octets of the last answer with a change. There is no answer then, and the request waits.
fn octets(rule: Rule, change: impl Fn(&mut Vec<u8>)) -> Case {
    let mut packets = Story::new().packets();
    change(&mut packets[3].3);
    let case = Case::files(rule, file(Story::new().packets()), file(packets));
    case.also(&[Rule::NhrpResolution])
}

/// Extensions of the resolution and its answer: fault and near miss.
fn extensions(rule: Rule, near: &[Extension], fault: &[Extension]) -> Case {
    let with = |list: &[Extension]| {
        let mut story = Story::new();
        for packet in [&mut story.ask, &mut story.answer] {
            packet.extensions = Some(list.to_vec());
        }
        file(story.packets())
    };
    Case::files(rule, with(near), with(fault))
}

fn formats() -> Vec<Case> {
    let private = Extension::new(ext::VENDOR, vec![0, 0, 1, 9]);
    let record = Extension::compulsory(ext::FORWARD_TRANSIT, vec![]);
    let odd = 0x0123;
    vec![
        octets(Rule::NhrpLength, |octets| octets.push(0)),
        octets(Rule::NhrpChecksum, |octets| octets[30] ^= 1),
        octets(Rule::NhrpVersion, |octets| {
            octets[16] = 2;
            summed(octets);
        }),
        // Bit 7 of the type of an address is reserved.
        octets(Rule::NhrpFormat, |octets| {
            octets[18] |= 0x80;
            summed(octets);
        }),
        octets(Rule::NhrpExtensions, |octets| {
            octets[14..16].copy_from_slice(&[0xff, 0xff]);
            summed(octets);
        }),
        change(Rule::NhrpType, |story| story.registered.op = 77).also(&[Rule::NhrpRegistration]),
        change(Rule::NhrpAddress, |story| {
            common(&mut story.answer, |reply| {
                reply.cies[0].nbma = NbmaAddress::new(&[1; 6], false).expect("6 octets");
            });
        }),
        extensions(
            Rule::NhrpCompulsory,
            &[Extension::new(odd, vec![])],
            &[Extension::compulsory(odd, vec![])],
        ),
        extensions(
            Rule::NhrpTwice,
            &[private.clone(), record.clone(), private],
            &[record.clone(), record],
        ),
    ]
}

fn answers() -> Vec<Case> {
    let clean = file(Story::new().packets());
    let all = Story::new().packets();
    let without = |place: usize| {
        let mut packets = all.clone();
        packets.remove(place);
        file(packets)
    };
    let purge = |flags| {
        let mut purge = packet(op::PURGE_REQUEST, 8, 2, HUB_TUNNEL, vec![entry(None, 0, 0)]);
        common(&mut purge, |common| common.flags = flags);
        let mut packets = all.clone();
        packets.push((3, spoke(2).0, HUB, purge.encode()));
        file(packets)
    };
    let refused = |code, holding| {
        let mut story = Story::new();
        let entries = vec![entry(None, holding, code)];
        story.answer = story.ask.reply(entries).expect("a request");
        file(story.packets())
    };
    let indicated = {
        let mut packets = all.clone();
        packets.push((3, HUB, spoke(2).0, refusal(6, &all[2].3).encode()));
        file(packets)
    };
    // Two ends that tell each other of the other one's errors, as FRR 10.3 does with different passwords.
    let about_error = {
        let mut packets = all.clone();
        let error = refusal(11, &refusal(11, &all[0].3).encode());
        packets.push((3, HUB, spoke(2).0, error.encode()));
        file(packets)
    };
    let both = [Rule::NhrpRefused];
    vec![
        Case::files(Rule::NhrpRegistration, clean.clone(), without(1)),
        Case::files(Rule::NhrpResolution, clean.clone(), without(3)),
        Case::files(Rule::NhrpPurge, purge(flag::NO_REPLY), purge(0)),
        Case::files(
            Rule::NhrpRefused,
            clean.clone(),
            refused(code::NO_BINDING, 0),
        ),
        Case::files(
            Rule::NhrpNakHolding,
            clean.clone(),
            refused(code::NO_BINDING, 1),
        )
        .also(&both),
        Case::files(Rule::NhrpErrorAboutError, clean.clone(), about_error),
        Case::files(Rule::NhrpError, clean, indicated),
        change(Rule::NhrpHolding, |story| {
            common(&mut story.registered, |reply| reply.cies[0].holding_s = 0);
        }),
        change(Rule::NhrpId, |story| {
            common(&mut story.answer, |reply| reply.request_id = 99);
        })
        .also(&[Rule::NhrpResolution]),
        change(Rule::NhrpReply, |story| {
            common(&mut story.answer, |reply| {
                reply.destination = spoke(4).1.into()
            });
        }),
    ]
}

fn ways() -> Vec<Case> {
    // The hub passes a request on with one hop less: that is another way.
    let again = |hops, to| {
        let story = Story::new();
        let mut packets = story.packets();
        let mut second = story.ask;
        second.hop_count = hops;
        packets.insert(3, (2, spoke(2).0, to, second.encode()));
        file(packets)
    };
    let hops = |from| {
        let mut story = Story::new();
        story.ask.hop_count = 0;
        let mut packets = story.packets();
        packets[2].1 = from;
        file(packets)
    };
    let secured = |own, hub| file(Story::new().with_passwords(own, hub).packets());
    let plain = secured(None, None);
    let clear = [Rule::NhrpClear];
    vec![
        Case::files(Rule::NhrpLoop, again(255, HUB), again(252, HUB)),
        // Where a server has passed it on, a request may have no hop left.
        Case::files(Rule::NhrpHops, hops(HUB), hops(spoke(2).0)),
        Case::files(
            Rule::NhrpClear,
            digest(9, 9),
            secured(Some("geheim"), Some("geheim")),
        ),
        Case::files(Rule::NhrpUnsigned, plain, secured(None, Some("geheim"))).also(&clear),
        Case::files(Rule::NhrpPassword, digest(9, 9), digest(9, 8)),
        Case::files(
            Rule::NhrpPassword,
            digest(9, 9),
            secured(Some("anders"), Some("geheim")),
        )
        .also(&clear),
    ]
}

/// Both ends with a digest, by these SPIs.
fn digest(own: u8, hub: u8) -> Vec<u8> {
    let with = |packet: Packet, spi: u8| {
        let value = [&[0, 0, 0, spi, 10, 0, 0, 9][..], &[7; 16]].concat();
        packet.with(Extension::compulsory(ext::AUTHENTICATION, value))
    };
    let story = Story::new().with(|packet| with(packet, own), |packet| with(packet, hub));
    file(story.packets())
}

pub(super) fn cases() -> Vec<Case> {
    [formats(), answers(), ways()]
        .into_iter()
        .flatten()
        .collect()
}

pub(super) fn clean() -> Vec<Clean> {
    // At the hub: the request comes in and goes out, and the other spoke answers the first one itself.
    let Story { ask, .. } = Story::new();
    let mut passed_on = ask.clone();
    passed_on.hop_count -= 1;
    let phase_3 = vec![
        (2, spoke(2).0, HUB, ask.encode()),
        (2, HUB, spoke(3).0, passed_on.encode()),
    ];
    // The answer to a request in front of the file comes before that of the next one.
    let mut between = Story::new().packets();
    let mut earlier = Story::new();
    common(&mut earlier.answer, |reply| reply.request_id = 1);
    between.insert(3, (2, HUB, spoke(2).0, earlier.answer.encode()));
    // A spoke that does not know its server registers with itself as destination; the server puts itself there.
    let mut to_itself = Story::new();
    common(&mut to_itself.register, |request| {
        request.destination = spoke(2).1.into();
    });
    vec![
        ("a registration to itself", file(to_itself.packets())),
        (
            "an answer that goes directly to the one who asks",
            file(phase_3),
        ),
        (
            "the answer to a request in front of the file",
            file(between),
        ),
    ]
}
