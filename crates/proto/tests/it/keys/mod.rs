//! Keys keep out: every message of NHRP and MPOA, at a server, a server in transit and both clients, without a valid
//! signature.
//!
//! Each case prepares a machine in which the message has an effect if its neighbour has signed it. Then a fresh machine
//! of the same kind gets the message without a signature, with the signature of another key, and as a record that
//! somebody else repeats. The results are a table in `docs/protocols/nhrp.md`;
//! `UPDATE_EXPECTED=1 cargo test -p aerostat-proto --test it keys` writes it.

mod clients;
mod server;

use aerostat_proto::nhrp::auth::{Key, Keys, Neighbour};
use aerostat_proto::{AtmEvent, AtmRequest, AtmUser, ConnId, Instant, UserOutput};
use aerostat_wire::mpoa::{self, op_name};
use aerostat_wire::nhrp::{Body, Packet, error, ext, op};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

const NOW: Instant = Instant::from_secs(100);

/// The next server, behind which 10.2.0.0/24 lies.
const NEXT: Party = Party::new(0x22, 0x52, [10, 9, 0, 2]);
/// An MPOA client.
const MPC: Party = Party::new(0x11, 0x50, [10, 1, 0, 11]);
/// An NHRP client.
const NHC: Party = Party::new(0x31, 0x54, [10, 1, 0, 31]);
/// A neighbour with the same key.
const BROTHER: Party = Party::new(0x41, 0x50, [10, 1, 0, 41]);
/// A program without a key.
const STRANGER: Party = Party::new(0x66, 9, [10, 1, 0, 66]);
/// The server under test, and the server of the clients under test.
const SERVER: Party = Party::new(0x21, 0x52, [10, 1, 0, 1]);

/// Somebody that may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Party {
    address: AtmAddress,
    ip: Ipv4Addr,
}

impl Party {
    const fn new(id: u8, selector: u8, [a, b, c, d]: [u8; 4]) -> Self {
        Self {
            address: atm(id, selector),
            ip: Ipv4Addr::new(a, b, c, d),
        }
    }
    const fn data(self) -> AtmAddress {
        self.address.with_selector(0x51)
    }
    fn sign(self, secret: &str, packet: &Packet) -> Packet {
        let mut packet = packet.clone();
        key(secret).sign(&mut packet, self.ip);
        packet
    }
}

const fn atm(id: u8, selector: u8) -> AtmAddress {
    let mut octets = [0; 20];
    octets[0] = 0x47;
    octets[18] = id;
    octets[19] = selector;
    AtmAddress(octets)
}

fn mac(id: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, id])
}

fn ip(net: u8, host: u8) -> IpAddr {
    [10, net, 0, host].into()
}

fn key(secret: &str) -> Key {
    let (spi, secret) = (7, secret.into());
    Key {
        spi,
        secret,
        clear_text: false,
    }
}

/// The keys of `own`, with one secret for all neighbours.
fn keys(own: Party, neighbours: &[Party]) -> Keys {
    let with = |other: &Party| {
        let (key, signs_as) = (key("shared"), other.ip);
        (other.address, Neighbour { key, signs_as })
    };
    Keys {
        signs_as: own.ip,
        neighbours: neighbours.iter().map(with).collect(),
        shortcuts: Some(key("shared")),
        unsigned: false,
    }
}

fn unsigned(packet: &Packet) -> Packet {
    let mut packet = packet.clone();
    if let Some(list) = &mut packet.extensions {
        list.retain(|extension| extension.kind() != ext::AUTHENTICATION);
    }
    packet
}

/// A machine under test.
trait Tested: AtmUser {
    /// Its state without counters and numbers of received SDUs.
    fn state(&self) -> String;
    /// Answers a question to the rest of its node; false if the output is no question.
    fn answered(&mut self, _output: &Self::Other) -> bool {
        false
    }
}

/// A machine with its connections.
struct Subject<M> {
    machine: M,
    peers: BTreeMap<ConnId, AtmAddress>,
    /// Packets of the machine.
    sent: Vec<(AtmAddress, Packet)>,
    /// Other outputs.
    done: Vec<String>,
}

impl<M: Tested<Other: std::fmt::Debug>> Subject<M> {
    fn new(machine: M) -> Self {
        let mut subject = Self {
            machine,
            peers: BTreeMap::new(),
            sent: Vec::new(),
            done: Vec::new(),
        };
        subject.settle();
        subject
    }

    fn event(&mut self, event: AtmEvent<&[u8]>) {
        self.machine.event(event, NOW);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match M::sort(output) {
                UserOutput::Atm(request) => self.request(request),
                UserOutput::Other(other) => {
                    let text = format!("{other:?}");
                    if !self.machine.answered(&other) && !text.starts_with("Trace(") {
                        self.done.push(text);
                    }
                }
            }
        }
    }

    fn request(&mut self, request: AtmRequest) {
        let conn = match request {
            AtmRequest::Connect { conn, called, .. } => {
                self.peers.insert(conn, called);
                conn
            }
            AtmRequest::Accept { conn, .. } => conn,
            AtmRequest::Send { conn, sdu } => {
                return match Packet::from_sdu(&sdu) {
                    Ok(packet) => self.sent.push((self.peers[&conn], packet)),
                    Err(_) => self.done.push("a packet of IP".to_owned()),
                };
            }
            AtmRequest::Release { conn, .. } => {
                self.peers.remove(&conn);
                return;
            }
            AtmRequest::Listen { .. } | AtmRequest::Unlisten { .. } => return,
            other => panic!("{other:?}"),
        };
        let (vc, qos) = (Vc { vpi: 0, vci: 32 }, Qos::ubr(1536));
        self.machine
            .event(AtmEvent::Connected { conn, vc, qos }, NOW);
    }

    /// The connection with `peer`. If no connection exists, the peer calls `called`.
    fn conn(&mut self, peer: AtmAddress, called: AtmAddress) -> Option<ConnId> {
        let known = |subject: &Self| {
            let mut all = subject.peers.iter();
            all.find(|(_, known)| **known == peer)
                .map(|(conn, _)| *conn)
        };
        if known(self).is_none() {
            let conn = ConnId(ConnId::INCOMING + self.peers.len() as u32);
            self.peers.insert(conn, peer);
            self.event(AtmEvent::Incoming {
                conn,
                calling: Some(peer),
                called,
                sap: Sap::LLC,
                qos: Qos::ubr(1536),
                multipoint: false,
            });
        }
        known(self)
    }

    /// A packet arrives on a connection.
    fn receive(&mut self, conn: ConnId, packet: &Packet) {
        let sdu = &packet.to_sdu()[..];
        self.event(AtmEvent::Received { conn, sdu });
    }

    /// A packet that a neighbour has signed arrives.
    fn from(&mut self, party: Party, called: AtmAddress, packet: &Packet) {
        let conn = self.conn(party.address, called).expect("a connection");
        self.receive(conn, &party.sign("shared", packet));
    }

    /// The last packet of a type to a peer, without its signature.
    fn last(&self, to: AtmAddress, op: u8) -> Packet {
        let mut all = self.sent.iter().rev();
        let found = all.find(|(peer, packet)| *peer == to && packet.op == op);
        unsigned(
            &found
                .unwrap_or_else(|| panic!("no {} to {to}", op_name(op)))
                .1,
        )
    }
}

/// Fate of a message.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It changed something, or something was sent.
    Effect,
    /// One Error Indication with code 11 on the same connection, and nothing else.
    Refused,
    /// Nothing at all.
    Nothing,
}

fn outcome<M: Tested<Other: std::fmt::Debug>>(
    subject: &mut Subject<M>,
    conn: ConnId,
    packet: &Packet,
) -> Outcome {
    let before = subject.machine.state();
    subject.sent.clear();
    subject.done.clear();
    let peer = subject.peers[&conn];
    subject.receive(conn, packet);
    let is_error = |(to, packet): &(AtmAddress, Packet)| match &packet.body {
        Body::Error(indication) => *to == peer && indication.code == error::AUTHENTICATION,
        Body::Common(_) => false,
    };
    let same = subject.machine.state() == before && subject.done.is_empty();
    match &subject.sent[..] {
        [] if same => Outcome::Nothing,
        [one] if same && is_error(one) => Outcome::Refused,
        _ => Outcome::Effect,
    }
}

/// A message in a case.
struct Message {
    packet: Packet,
    /// Its sender.
    from: Party,
    /// True if it comes on a shortcut.
    on_shortcut: bool,
}

/// A place at which messages arrive: a machine, and how it is prepared.
struct Place<M> {
    name: &'static str,
    /// A machine that has sent what the messages answer.
    prepare: fn() -> Subject<M>,
    /// Its control address.
    called: AtmAddress,
    /// The messages, made for this machine.
    messages: fn(&Subject<M>) -> Vec<Message>,
    /// True if the messages are for others.
    in_transit: bool,
    /// Other parties that may call here, with the key or without.
    callers: &'static [Party],
}

/// The cells of one message: as it should be, no key, wrong key, replayed.
type Cells = [&'static str; 4];

impl<M: Tested<Other: std::fmt::Debug>> Place<M> {
    /// The results by message.
    fn rows(&self) -> BTreeMap<(u8, bool), Cells> {
        let first = (self.prepare)();
        let messages = (self.messages)(&first).into_iter();
        let rows = messages.map(|message| {
            let cells = self.cells(&message);
            ((message.packet.op, message.on_shortcut), cells)
        });
        rows.collect()
    }

    /// The outcome of a packet on a connection with `caller`, in a fresh machine. A caller that cannot connect has no
    /// effect.
    fn try_with(&self, caller: AtmAddress, packet: &Packet) -> Option<Outcome> {
        let mut subject = (self.prepare)();
        let conn = subject.conn(caller, self.called)?;
        Some(outcome(&mut subject, conn, packet))
    }

    fn cells(&self, message: &Message) -> Cells {
        let Message {
            packet,
            from,
            on_shortcut,
        } = message;
        let own = match on_shortcut {
            true => from.data(),
            false => from.address,
        };
        let signed = match packet.op {
            op::ERROR_INDICATION => packet.clone(),
            _ => from.sign("shared", packet),
        };
        let wrong = from.sign("guessed", packet);
        let what = format!("{} at the {}", op_name(packet.op), self.name);
        let good = match self.try_with(own, &signed) {
            Some(Outcome::Effect) => "obeyed",
            Some(Outcome::Nothing) => "ignored",
            refused => panic!("{what}: a valid signature is refused: {refused:?}"),
        };
        // An Error Indication has no signature; its caller decides.
        let is_error = packet.op == op::ERROR_INDICATION;
        let mut hostile: [Vec<(AtmAddress, Packet)>; 3] = Default::default();
        if !is_error {
            hostile[0].push((own, packet.clone()));
            hostile[1].push((own, wrong.clone()));
            // On the neighbour's connection: the record of a packet that another neighbour has signed.
            let other = BROTHER.sign("shared", &replayed(packet, *on_shortcut));
            hostile[2].push((own, other));
        }
        if !on_shortcut {
            // In transit, any neighbour with a key may pass on an Error Indication: the path back may be another one.
            let passes = |caller: &&Party| is_error && self.in_transit && **caller == BROTHER;
            for caller in self.callers.iter().filter(|caller| !passes(caller)) {
                hostile[0].push((caller.address, packet.clone()));
                hostile[1].push((
                    caller.address,
                    if is_error {
                        packet.clone()
                    } else {
                        wrong.clone()
                    },
                ));
                hostile[2].push((caller.address, signed.clone()));
            }
        }
        let told = hostile.map(|tries| {
            let outcomes = tries
                .iter()
                .map(|(caller, packet)| self.try_with(*caller, packet).unwrap_or(Outcome::Nothing));
            let all: Vec<Outcome> = outcomes.collect();
            assert!(!all.contains(&Outcome::Effect), "{what}: {all:?}");
            match all.contains(&Outcome::Refused) {
                true => "error 11",
                false => "dropped",
            }
        });
        [good, told[0], told[1], told[2]]
    }
}

/// The record of a message of another client. Of a purge on a shortcut, the source is the other client.
fn replayed(packet: &Packet, on_shortcut: bool) -> Packet {
    let mut packet = packet.clone();
    if let (true, Body::Common(common)) = (on_shortcut, &mut packet.body) {
        common.source_nbma = BROTHER.data().into();
    }
    packet
}

/// All messages, in the order of their types.
const MESSAGES: [u8; 15] = [
    op::RESOLUTION_REQUEST,
    op::RESOLUTION_REPLY,
    op::REGISTRATION_REQUEST,
    op::REGISTRATION_REPLY,
    op::PURGE_REQUEST,
    op::PURGE_REPLY,
    op::ERROR_INDICATION,
    mpoa::op::IMPOSITION_REQUEST,
    mpoa::op::IMPOSITION_REPLY,
    mpoa::op::EGRESS_PURGE_REQUEST,
    mpoa::op::EGRESS_PURGE_REPLY,
    mpoa::op::KEEP_ALIVE,
    mpoa::op::TRIGGER,
    mpoa::op::RESOLUTION_REQUEST,
    mpoa::op::RESOLUTION_REPLY,
];

#[test]
fn without_a_valid_signature_no_message_has_an_effect_anywhere() {
    let mut nhc = clients::AT_NHC.rows();
    nhc.extend(clients::AT_FRESH_NHC.rows());
    let places = [
        ("server", server::AT.rows()),
        ("server in transit", server::IN_TRANSIT.rows()),
        ("NHRP client", nhc),
        ("MPOA client", clients::AT_MPC.rows()),
    ];
    let mut table =
        "| message | at | signed | no key | wrong key | replayed |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for op in MESSAGES {
        for on_shortcut in [false, true] {
            let at = places
                .iter()
                .filter_map(|(place, rows)| Some((*place, rows.get(&(op, on_shortcut))?)));
            for (place, cells) in at {
                let name = op_name(op);
                let where_to = if on_shortcut { ", on a shortcut" } else { "" };
                let cells = cells.join(" | ");
                writeln!(table, "| {name}{where_to} | {place} | {cells} |").expect("text");
            }
        }
    }
    // Every message is obeyed somewhere if it is signed, or the test would show nothing.
    for op in MESSAGES {
        let obeyed = places.iter().filter_map(|(_, rows)| rows.get(&(op, false)));
        let any = obeyed.into_iter().any(|cells| cells[0] == "obeyed");
        assert!(any, "{}", op_name(op));
    }
    page(&table);
}

/// Compares the table with that of the page.
fn page(table: &str) {
    const BEGIN: &str = "<!-- table of keys: written by the tests with UPDATE_EXPECTED=1 -->\n\n";
    const END: &str = "\n<!-- end of the table -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/nhrp.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the table of keys");
    let (told, after) = rest.split_once(END).expect("the end of the table");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).expect("written");
        return;
    }
    assert!(told == table, "run the tests with UPDATE_EXPECTED=1");
}
