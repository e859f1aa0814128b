//! The clients under test: an NHRP client and an MPOA client with entries, open questions and shortcuts.

use super::{
    BROTHER, MESSAGES, MPC, Message, NHC, NOW, Party, Place, SERVER, STRANGER, Subject, Tested,
    atm, ip, keys, mac,
};
use aerostat_proto::Machine;
use aerostat_proto::mpoa::mpc::{self, Mpc, MpcConfig};
use aerostat_proto::nhrp::client::{self, Nhc};
use aerostat_wire::mpoa::{self, DeviceType, DllHeader, Imposition, op as mop};
use aerostat_wire::nhrp::{Cie, Packet, op};
use std::net::{IpAddr, Ipv4Addr};

/// A client at the other end of a shortcut.
const FAR: Party = Party::new(0x77, 0x50, [10, 2, 0, 30]);
const CALLERS: &[Party] = &[STRANGER, BROTHER];

pub(super) const AT_NHC: Place<Nhc> = Place {
    name: "NHRP client",
    prepare: nhc,
    called: NHC.address,
    messages: for_nhc,
    in_transit: false,
    callers: CALLERS,
};
/// The same client before its registration is answered.
pub(super) const AT_FRESH_NHC: Place<Nhc> = Place {
    prepare: fresh,
    messages: for_fresh,
    ..AT_NHC
};
pub(super) const AT_MPC: Place<Mpc> = Place {
    name: "MPOA client",
    prepare: mpc,
    called: MPC.address,
    messages: for_mpc,
    in_transit: false,
    callers: CALLERS,
};

impl Tested for Nhc {
    fn state(&self) -> String {
        let all = self.snapshot();
        format!("{:?}", (all.registered, all.entries))
    }
}

impl Tested for Mpc {
    fn state(&self) -> String {
        let all = self.snapshot(NOW);
        format!("{:?}", (all.mps, all.ingress, all.egress, all.shortcuts))
    }
}

fn positive(far: Party) -> Cie {
    Cie {
        nbma: far.data().into(),
        ..Cie::brief(32, 600)
    }
}

fn message(from: Party, packet: Packet) -> Message {
    Message {
        packet,
        from,
        on_shortcut: false,
    }
}

fn on_shortcut(target: IpAddr) -> Message {
    Message {
        packet: mpoa::data_plane_purge(FAR.data(), Some(FAR.ip.into()), target, 32),
        from: FAR,
        on_shortcut: true,
    }
}

fn ask(nhc: &mut Subject<Nhc>, host: u8) -> Packet {
    let destination = Ipv4Addr::new(10, 2, 0, host);
    let packet = vec![0x45; 40];
    let send = client::Input::Send {
        destination,
        packet,
    };
    let Ok(()) = nhc.machine.handle_input(send, NOW);
    nhc.settle();
    nhc.last(SERVER.address, op::RESOLUTION_REQUEST)
}

/// A client whose registration is not answered yet.
fn fresh() -> Subject<Nhc> {
    let server = (SERVER.ip, SERVER.address);
    let mut config = client::Config::new(NHC.address, NHC.data(), NHC.ip, server);
    config.keys = keys(NHC, &[SERVER]);
    let mut nhc = Subject::new(Nhc::new(config));
    let Ok(()) = nhc.machine.handle_input(client::Input::Start, NOW);
    nhc.settle();
    nhc
}

fn registered(nhc: &Subject<Nhc>) -> Packet {
    let asked = nhc.last(SERVER.address, op::REGISTRATION_REQUEST);
    let cies = asked.common().expect("entries").cies.clone();
    asked.reply(cies).expect("a request")
}

/// A client that is registered, has a way to 10.2.0.30 and waits for an answer about 10.2.0.20.
fn nhc() -> Subject<Nhc> {
    let mut nhc = fresh();
    let reply = registered(&nhc);
    nhc.from(SERVER, NHC.address, &reply);
    let reply = ask(&mut nhc, 30).reply(vec![positive(FAR)]);
    nhc.from(SERVER, NHC.address, &reply.expect("a request"));
    ask(&mut nhc, 30);
    assert!(nhc.peers.values().any(|peer| *peer == FAR.data()));
    ask(&mut nhc, 20);
    nhc
}

/// A message of the server for each type that `covered` does not have: these clients have no use for it.
fn rest(covered: &[Message], destination: IpAddr) -> Vec<Message> {
    let has = |op: &u8| covered.iter().any(|message| message.packet.op == *op);
    let left = MESSAGES.into_iter().filter(|op| !has(op));
    let packet = mpoa::resolution_request(8, SERVER.data(), SERVER.ip.into(), destination);
    left.map(|op| {
        message(
            SERVER,
            Packet {
                op,
                ..packet.clone()
            },
        )
    })
    .collect()
}

fn purge(to: Party) -> Packet {
    mpoa::purge_request(
        7,
        SERVER.address,
        SERVER.ip.into(),
        to.ip.into(),
        ip(2, 30),
        32,
    )
}

fn for_fresh(nhc: &Subject<Nhc>) -> Vec<Message> {
    vec![message(SERVER, registered(nhc))]
}

fn for_nhc(nhc: &Subject<Nhc>) -> Vec<Message> {
    let asked = nhc.last(SERVER.address, op::RESOLUTION_REQUEST);
    let error = Packet::error_about(&asked.encode(), 6, 0, SERVER.address, SERVER.ip.into());
    let mut all = vec![
        message(SERVER, asked.reply(vec![positive(FAR)]).expect("a request")),
        message(SERVER, purge(NHC)),
        message(SERVER, error.expect("a request")),
        on_shortcut(ip(2, 30)),
    ];
    let registration = op::REGISTRATION_REPLY;
    let more = rest(&all, NHC.ip.into()).into_iter();
    all.extend(more.filter(|message| message.packet.op != registration));
    all
}

/// An imposition of the server for a host behind the client.
fn imposition(host: u8) -> Packet {
    let wish = Imposition {
        id: host.into(),
        ingress_data: FAR.data(),
        mps: SERVER.ip.into(),
        target: ip(1, host),
        prefix: 32,
        holding_s: 600,
        dll: DllHeader {
            cache_id: host.into(),
            elan_id: 1,
            header: DllHeader::ethernet_ipv4(mac(host), mac(0x21)),
        },
        want_tag: true,
    };
    wish.packet()
}

/// A client with a shortcut to 10.2.0.30, an open question about 10.2.0.20, and a purge that waits for its reply.
fn mpc() -> Subject<Mpc> {
    let mut config = MpcConfig::new(MPC.address, MPC.data());
    config.keys = keys(MPC, &[SERVER]);
    let mut mpc = Subject::new(Mpc::new(config));
    let device = DeviceType::Mps {
        control: SERVER.address,
        macs: vec![mac(0x21)],
    };
    let inputs = [
        mpc::Input::Start,
        mpc::Input::LecUp {
            itf: 0,
            elan_id: 1,
            mtu: 1500,
        },
        mpc::Input::Associate {
            itf: 0,
            mac: mac(0x21),
            atm: atm(0x21, 0),
            tlvs: vec![device.to_tlv()],
        },
    ];
    for input in inputs {
        mpc.machine.handle_input(input, NOW).expect("accepted");
        mpc.settle();
    }
    for host in [30, 20] {
        let trigger = mpoa::trigger(SERVER.address, SERVER.ip.into(), ip(2, host));
        mpc.from(SERVER, MPC.address, &trigger);
        let asked = mpc.last(SERVER.address, mop::RESOLUTION_REQUEST);
        if host == 30 {
            let reply = asked.reply(vec![positive(FAR)]).expect("a request");
            mpc.from(SERVER, MPC.address, &reply);
        }
    }
    assert!(mpc.peers.values().any(|peer| *peer == FAR.data()));
    mpc.from(SERVER, MPC.address, &imposition(12));
    mpc.last(SERVER.address, mop::IMPOSITION_REPLY);
    let left = mpc::Input::StationLeft {
        itf: 0,
        mac: mac(12),
    };
    mpc.machine.handle_input(left, NOW).expect("accepted");
    mpc.settle();
    mpc.last(SERVER.address, mop::EGRESS_PURGE_REQUEST);
    mpc
}

fn for_mpc(mpc: &Subject<Mpc>) -> Vec<Message> {
    let asked = mpc.last(SERVER.address, mop::RESOLUTION_REQUEST);
    let purged = mpc.last(SERVER.address, mop::EGRESS_PURGE_REQUEST);
    let purged = purged.reply(purged.common().expect("entries").cies.clone());
    let error = Packet::error_about(&asked.encode(), 6, 0, SERVER.address, SERVER.ip.into());
    let trigger = mpoa::trigger(SERVER.address, SERVER.ip.into(), ip(2, 40));
    let mut all = vec![
        message(SERVER, purge(MPC)),
        message(SERVER, error.expect("a request")),
        message(SERVER, imposition(13)),
        message(SERVER, purged.expect("a request")),
        message(SERVER, mpoa::keep_alive(9, SERVER.address, 77)),
        message(SERVER, trigger),
        message(SERVER, asked.reply(vec![positive(FAR)]).expect("a request")),
        on_shortcut(ip(2, 30)),
    ];
    all.extend(rest(&all, MPC.ip.into()));
    all
}
