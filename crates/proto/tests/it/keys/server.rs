//! The server under test: it has asked, imposed and purged, so that every message can answer something.

use super::{
    BROTHER, MPC, Message, NEXT, NHC, NOW, Party, Place, SERVER, STRANGER, Subject, Tested, atm,
    ip, keys, mac,
};
use aerostat_proto::Machine;
use aerostat_proto::mpoa::mps::{
    FromRouter, Input, Interface, Mps, MpsConfig, Output, RouteResult, ToRouter,
};
use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa::{self, DeviceType, EgressPurge, Imposition, op as mop};
use aerostat_wire::nhrp::{Cie, Common, Packet, flag, op};
use std::net::IpAddr;

const CALLERS: &[Party] = &[STRANGER, BROTHER];

pub(super) const AT: Place<Mps> = Place {
    name: "server",
    prepare,
    called: SERVER.address,
    messages: for_it,
    in_transit: false,
    callers: CALLERS,
};
pub(super) const IN_TRANSIT: Place<Mps> = Place {
    name: "server in transit",
    prepare,
    called: SERVER.address,
    messages: for_others,
    in_transit: true,
    callers: CALLERS,
};

impl Tested for Mps {
    fn state(&self) -> String {
        let (mps, nhrp) = (self.snapshot(), self.nhrp_snapshot());
        let nhrp = (nhrp.cache, nhrp.pending, nhrp.collecting, nhrp.lookups);
        format!("{:?}", (mps.ingress, mps.egress, mps.clients, nhrp))
    }
    /// Routes, ARP and LE_ARP.
    fn answered(&mut self, output: &Output) -> bool {
        let input = match output {
            Output::Router(ToRouter::LookupRoute { query, dst }) => {
                let IpAddr::V4(to) = dst else { return false };
                let result = match to.octets() {
                    [10, 1, ..] => RouteResult::Connected { itf: 1 },
                    _ => RouteResult::Via {
                        itf: 9,
                        next_hop: NEXT.ip.into(),
                    },
                };
                Input::Router(FromRouter::Route {
                    query: *query,
                    result: Some(result),
                    covers: 24,
                })
            }
            Output::Router(ToRouter::ResolveL2 { query, ip, .. }) => {
                let device = match *ip == IpAddr::from(NEXT.ip) {
                    true => DeviceType::Mps {
                        control: NEXT.address,
                        macs: vec![],
                    },
                    false => DeviceType::Mpc {
                        control: MPC.address,
                    },
                };
                let answer = Ok((mac(0x99), atm(0x99, 0), vec![device.to_tlv()]));
                Input::Router(FromRouter::L2 {
                    query: *query,
                    answer,
                })
            }
            _ => return false,
        };
        self.handle_input(input, NOW).expect("answers are taken");
        true
    }
}

fn positive(nbma: AtmAddress) -> Cie {
    Cie {
        nbma: nbma.into(),
        ..Cie::brief(32, 600)
    }
}

/// A Resolution Request of NHRP.
fn request(id: u32, from: Party, target: IpAddr) -> Packet {
    let mut packet = mpoa::resolution_request(id, from.data(), from.ip.into(), target);
    packet.op = op::RESOLUTION_REQUEST;
    packet.extensions = None;
    packet
}

fn registration(to: IpAddr) -> Packet {
    let cie = Cie {
        protocol: NHC.ip.into(),
        ..positive(NHC.data())
    };
    let common = Common {
        request_id: 5,
        source_nbma: NHC.data().into(),
        source: NHC.ip.into(),
        destination: to.into(),
        cies: vec![cie],
        ..Common::default()
    };
    Packet::new(op::REGISTRATION_REQUEST, common)
}

fn purge(id: u32, (source, to): (IpAddr, IpAddr), target: IpAddr) -> Packet {
    mpoa::purge_request(id, NEXT.address, source, to, target, 32)
}

fn prepare() -> Subject<Mps> {
    let interface = |itf: u32, ip: [u8; 4]| Interface {
        itf,
        ip: ip.into(),
        prefix_len: 24,
        ip6: None,
        mac: mac(0x21),
        elan_id: itf,
        lane: true,
    };
    let interfaces = vec![interface(1, [10, 1, 0, 1]), interface(9, [10, 9, 0, 1])];
    let mut config = MpsConfig::new(SERVER.address, SERVER.data(), interfaces, 1);
    config.register = true;
    config.keys = keys(SERVER, &[NEXT, MPC, NHC, BROTHER]);
    let mut mps = Mps::new(config);
    mps.handle_input(Input::Start, NOW).expect("starts");
    let mut server = Subject::new(mps);
    // A question that waits for the next server, and two that it has answered.
    for (id, target) in [(1, ip(2, 30)), (2, ip(2, 40)), (3, ip(2, 20))] {
        let packet = mpoa::resolution_request(id, MPC.data(), MPC.ip.into(), target);
        server.from(MPC, SERVER.address, &packet);
        if id < 3 {
            let asked = server.last(NEXT.address, op::RESOLUTION_REQUEST);
            let reply = asked
                .reply(vec![positive(atm(0x77, 0x51))])
                .expect("a request");
            server.from(NEXT, SERVER.address, &reply);
            server.last(MPC.address, mop::RESOLUTION_REPLY);
        }
    }
    // A binding that is imposed, and one that waits for its client.
    for (id, target) in [(51, ip(1, 51)), (50, ip(1, 50))] {
        server.from(NEXT, SERVER.address, &request(id, NEXT, target));
        if id == 51 {
            let asked = server.last(MPC.address, mop::IMPOSITION_REQUEST);
            let reply = asked.reply(vec![positive(MPC.data())]).expect("a request");
            server.from(MPC, SERVER.address, &reply);
            server.last(NEXT.address, op::RESOLUTION_REPLY);
        }
    }
    // A station, and a purge that waits for its reply.
    server.from(NHC, SERVER.address, &registration(SERVER.ip.into()));
    let packet = purge(77, (NEXT.ip.into(), SERVER.ip.into()), ip(2, 40));
    server.from(NEXT, SERVER.address, &packet);
    server
}

fn message(from: Party, packet: Packet) -> Message {
    Message {
        packet,
        from,
        on_shortcut: false,
    }
}

fn for_it(server: &Subject<Mps>) -> Vec<Message> {
    let asked = server.last(NEXT.address, op::RESOLUTION_REQUEST);
    let answer = asked
        .reply(vec![positive(atm(0x77, 0x51))])
        .expect("a request");
    let error = Packet::error_about(&asked.encode(), 6, 0, NEXT.address, NEXT.ip.into());
    let purged = server.last(MPC.address, op::PURGE_REQUEST);
    let purged = purged.reply(purged.common().expect("entries").cies.clone());
    let imposed = server.last(MPC.address, mop::IMPOSITION_REQUEST);
    let imposition = Imposition::of(&imposed)
        .expect("extensions")
        .expect("complete");
    let egress_purge = EgressPurge {
        id: 9,
        mpc_control: MPC.address,
        mpc_data: MPC.data(),
        mpc: MPC.ip.into(),
        mps: SERVER.ip.into(),
        target: ip(1, 51),
        prefix: 32,
        // The entry before the one that waits for its client.
        cache_id: imposition.dll.cache_id - 1,
        elan_id: 1,
    };
    let own = registration(SERVER.ip.into());
    let question = mpoa::resolution_request(8, MPC.data(), MPC.ip.into(), ip(2, 60));
    let to_client = |op: u8| Packet {
        op,
        ..question.clone()
    };
    vec![
        message(NEXT, request(52, NEXT, ip(1, 52))),
        message(NEXT, answer),
        message(NHC, own.clone()),
        message(
            NHC,
            own.reply(vec![positive(NHC.data())]).expect("a request"),
        ),
        message(
            NEXT,
            purge(78, (NEXT.ip.into(), SERVER.ip.into()), ip(2, 30)),
        ),
        message(MPC, purged.expect("a request")),
        message(NEXT, error.expect("a request")),
        message(MPC, to_client(mop::IMPOSITION_REQUEST)),
        message(
            MPC,
            imposed
                .reply(vec![positive(MPC.data())])
                .expect("a request"),
        ),
        message(MPC, egress_purge.packet()),
        message(MPC, to_client(mop::EGRESS_PURGE_REPLY)),
        message(MPC, to_client(mop::KEEP_ALIVE)),
        message(MPC, to_client(mop::TRIGGER)),
        message(MPC, question.clone()),
        message(MPC, to_client(mop::RESOLUTION_REPLY)),
    ]
}

fn for_others(_: &Subject<Mps>) -> Vec<Message> {
    let asked = request(70, NHC, ip(2, 70));
    let answer = asked
        .reply(vec![positive(atm(0x77, 0x51))])
        .expect("a request");
    let error = Packet::error_about(&asked.encode(), 6, 0, NEXT.address, NEXT.ip.into());
    let elsewhere = registration(ip(2, 1));
    let registered = elsewhere
        .reply(vec![positive(NHC.data())])
        .expect("a request");
    let purged = purge(79, (ip(2, 1), NHC.ip.into()), ip(2, 70));
    let purge_reply = purged.reply(vec![Cie {
        protocol: ip(2, 70).into(),
        ..Cie::brief(32, 0)
    }]);
    assert_eq!(
        purged.common().map(|common| common.flags & flag::NO_REPLY),
        Some(0)
    );
    vec![
        message(NHC, asked),
        message(NEXT, answer),
        message(NHC, elsewhere),
        message(NEXT, registered),
        message(NEXT, purged),
        message(NHC, purge_reply.expect("a request")),
        message(NEXT, error.expect("a request")),
    ]
}
