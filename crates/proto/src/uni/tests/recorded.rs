//! Replacing one end of a recorded link. The messages of the other end, a Linux host or linux-atm's switch, go into
//! [`Uni`]; the decisions of the recorded end become requests. [`Uni`] must then send the messages of the recorded end,
//! call by call. Recordings: `crates/wire/tests/vectors/linux-atm` (see the README there).

use super::super::build;
use super::*;
use aerostat_wire::SscopPdu;
use aerostat_wire::q2931::Decoded;
use std::collections::BTreeMap;

/// A signalling message of a recording.
struct Said {
    at: Instant,
    dir: String,
    octets: Vec<u8>,
}

/// The messages of a recording in order, retransmissions left out.
fn recording(name: &str) -> Vec<Said> {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/../wire/tests/vectors/linux-atm/{name}.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut next = BTreeMap::new();
    let mut said = Vec::new();
    for line in text.lines().filter(|l| l.contains("\"vci\": 5,")) {
        let member = |key: &str| {
            let (_, rest) = line.split_once(&format!("\"{key}\": "))?;
            rest.trim_start_matches('"').split(['"', ',', '}']).next()
        };
        let (Some(hex), Some(dir), Some(t)) = (member("hex"), member("dir"), member("t")) else {
            continue;
        };
        let sdu: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex"))
            .collect();
        if let Ok(SscopPdu::Data { s, info }) = SscopPdu::decode(&sdu) {
            let expected = next.entry(dir.to_owned()).or_insert(0);
            if s.get() == *expected {
                *expected += 1;
                let seconds: f64 = t.parse().expect("time");
                said.push(Said {
                    at: Instant::from_millis((seconds * 1000.0) as u64 + 1),
                    dir: dir.to_owned(),
                    octets: info,
                });
            }
        }
    }
    assert!(!said.is_empty(), "{name}");
    said
}

struct StandIn {
    uni: Uni,
    /// The call for each offered reference (as the recorded end wrote it).
    offered: BTreeMap<CallRef, CallId>,
    sent: Vec<Message>,
    heard: Vec<Indication>,
}

impl StandIn {
    fn collect(&mut self, now: Instant) {
        for output in settle(&mut self.uni, now) {
            match output {
                Output::SaalData(octets) => {
                    self.sent
                        .push(Message::decode(&octets).expect("own message").message);
                }
                Output::Indication(indication) => self.heard.push(indication),
                Output::SaalEstablish | Output::Trace(_) => {}
            }
        }
    }
    fn hear(&mut self, octets: &[u8], now: Instant) {
        self.uni.handle_input(Input::SaalData(octets), now).unwrap();
        let before = self.heard.len();
        self.collect(now);
        let reference = Message::decode(octets).unwrap().message.call.answer();
        for indication in &self.heard[before..] {
            if let Indication::Setup { call, .. } = indication {
                self.offered.insert(reference, *call);
            }
        }
    }
    fn knows(&self, reference: CallRef) -> bool {
        let (ours, value) = (!reference.flag, reference.value);
        self.uni
            .calls()
            .any(|c| c.ours == ours && c.reference == value)
    }
    /// Makes the decisions of the recorded end. Answers that [`Uni`] gives by itself need no request.
    fn decide(&mut self, octets: &[u8], now: Instant) {
        let decoded = Message::decode(octets).unwrap();
        let reference = decoded.message.call;
        let call = match reference.flag {
            false => CallId(reference.value),
            true => self
                .offered
                .get(&reference)
                .copied()
                .expect("an offered call"),
        };
        if decoded.message.kind == MessageType::SETUP {
            // Linux numbers its calls over all interfaces together.
            self.uni.last_reference = reference.value - 1;
        }
        if let Some(request) = self.request(&decoded, call) {
            let input = Input::Request(request);
            self.uni
                .handle_input(input, now)
                .unwrap_or_else(|e| panic!("{decoded:?}: {e}"));
        }
        self.collect(now);
    }
    fn request(&self, decoded: &Decoded, call: CallId) -> Option<Request> {
        let vc = build::label(decoded);
        let party = build::party(decoded).map(PartyId);
        let offer = || {
            let called = build::called(decoded).expect("AESA");
            build::setup_info(decoded, called, &[])
        };
        let cause = self.uni.received_cause(decoded).unwrap_or(Reason::NORMAL);
        let state = self.uni.calls().find(|c| c.call == call).map(|c| c.state);
        match decoded.message.kind {
            MessageType::SETUP => Some(Request::Setup {
                call,
                info: offer(),
                vc,
                party,
            }),
            MessageType::CALL_PROCEEDING => Some(Request::Proceeding { call, vc }),
            MessageType::CONNECT => {
                let info = build::connect_info(decoded);
                Some(Request::Accept { call, info, vc })
            }
            MessageType::ADD_PARTY => {
                let (party, info) = (party.expect("party"), offer());
                Some(Request::AddParty { call, party, info })
            }
            MessageType::RELEASE => Some(Request::Release { call, cause }),
            MessageType::RELEASE_COMPLETE if state == Some(CallState::SetupReceived) => {
                Some(Request::Release { call, cause })
            }
            _ => None,
        }
    }
}

fn by_call(messages: &[Message]) -> BTreeMap<CallRef, Vec<MessageType>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for message in messages {
        all.entry(message.call).or_default().push(message.kind);
    }
    all
}

/// Plays `from` (the sender of `FROM>TO`) against the recorded other end; returns the messages that it had to send.
fn stand_in(name: &str, from: &str, to: &str, side: Side, version: Version) -> usize {
    let mut end = StandIn {
        uni: Uni::new(Params::new(side, version)),
        offered: BTreeMap::new(),
        sent: Vec::new(),
        heard: Vec::new(),
    };
    end.uni.handle_input(Input::SaalUp, Instant::ZERO).unwrap();
    let mut recorded = Vec::new();
    for said in recording(name) {
        if said.dir == format!("{to}>{from}") {
            end.hear(&said.octets, said.at);
        } else if said.dir == format!("{from}>{to}") {
            let message = Message::decode(&said.octets).unwrap().message;
            // A party that is the last one ends with its call here.
            if message.kind == MessageType::DROP_PARTY {
                continue;
            }
            let mut message = message;
            if message.kind == MessageType::RELEASE && !end.knows(message.call) {
                // Both released at the same time. The recorder had seen the other RELEASE, the recorded end had not.
                message.kind = MessageType::RELEASE_COMPLETE;
            } else {
                end.decide(&said.octets, said.at);
            }
            recorded.push(message);
        }
    }
    let what = format!("{name} {from}>{to}");
    assert_eq!(by_call(&end.sent), by_call(&recorded), "{what}");
    let counters = end.uni.counters();
    assert_eq!(
        (
            counters.unexpected,
            counters.bad_elements,
            counters.timeouts
        ),
        (0, 0, 0),
        "{what}"
    );
    same_setups(&end.sent, &recorded, &what);
    recorded.len()
}

/// Our SETUPs have the recorded elements, whatever their order.
fn same_setups(ours: &[Message], recorded: &[Message], what: &str) {
    for theirs in recorded.iter().filter(|m| m.kind == MessageType::SETUP) {
        let same = |m: &&Message| m.kind == MessageType::SETUP && m.call == theirs.call;
        let ours = ours.iter().find(same).expect("SETUP");
        let sorted = |m: &Message| {
            let mut elements = m.elements.clone();
            elements.sort_by_key(|e| e.id);
            elements
        };
        assert_eq!(sorted(ours), sorted(theirs), "{what}");
    }
}

#[test]
fn linux_back_to_back() {
    for (name, version) in [
        ("c-svc", Version::Uni31),
        ("c-svc-uni30", Version::Uni30),
        ("c-svc-uni40", Version::Uni40),
        ("d-clip-svc", Version::Uni31),
    ] {
        // One end is Linux in user mode, the other one Linux in network mode: the first SETUP tells.
        let first = recording(name).into_iter().next().expect("a message");
        let setup = Message::decode(&first.octets).unwrap();
        let caller_is_user = setup.message.find(id::CONNECTION_ID).is_none();
        let (caller, called) = first.dir.split_once('>').expect("direction");
        let (user, net) = if caller_is_user {
            (caller, called)
        } else {
            (called, caller)
        };
        let mut count = stand_in(name, user, net, Side::User, version);
        count += stand_in(name, net, user, Side::Network, version);
        assert!(count >= 3, "{name}: {count}");
    }
}

#[test]
fn linux_hosts_and_their_switch() {
    for name in ["f-lane", "g-mpoa"] {
        for host in ["A", "A2", "B"] {
            let count = stand_in(name, host, "S", Side::User, Version::Uni31)
                + stand_in(name, "S", host, Side::Network, Version::Uni31);
            assert!(count >= 20, "{name} {host}: {count}");
        }
    }
}

#[test]
fn linux_as_a_leaf() {
    for (name, version) in [("p-p2mp", Version::Uni31), ("p-p2mp-uni30", Version::Uni30)] {
        assert!(stand_in(name, "peer", "B", Side::Network, version) >= 4);
    }
}
