//! Every state of every entity, and the effect of every event in it: one machine on a bench, whose network is the test.
//!
//! The names of the tests say the state first and the event then; `docs/protocols/lane.md` has the tables.

mod bounds;
mod broadcast;
mod cache;
mod direct;
mod groups;
mod joining;
mod member;
mod quotas;
mod servers;

use super::*;
use aerostat_proto::lane::lec::{Input, LecState};
use aerostat_proto::{AtmRequest, Cause, ConnId, PartyId};
use aerostat_wire::lane::{
    Control, ControlFrame, Flags, LanDestination, LanType, MaxFrameSize, OpCode, Status, Tlv,
    TlvType, is_control,
};
use aerostat_wire::{Qos, Sap, Vc};

/// LECID that the bench assigns to a client.
const LECID: u16 = 5;
const LES_ADDRESS: u8 = 0xa1;
const BUS_ADDRESS: u8 = 0xa2;

/// One machine; its requests and notes that the test has not read yet; connections by purpose.
struct Bench {
    node: Node,
    now: Instant,
    requests: Vec<AtmRequest>,
    notes: Vec<Note>,
    offered: u32,
    config: ConnId,
    control: ConnId,
    distribute: ConnId,
    send: ConnId,
    forward: ConnId,
    direct: ConnId,
    /// The request of the client that waits for an answer.
    pending: ControlFrame,
}

impl Bench {
    fn new(node: Node) -> Self {
        let none = ConnId(u32::MAX);
        Self {
            node,
            now: Instant::ZERO,
            requests: Vec::new(),
            notes: Vec::new(),
            offered: ConnId::INCOMING,
            config: none,
            control: none,
            distribute: none,
            send: none,
            forward: none,
            direct: none,
            pending: ControlFrame::new(OpCode::ARP),
        }
    }

    // ---- in ----

    fn drain(&mut self) {
        self.node.handle_timeout(self.now);
        while let Some(polled) = self.node.poll_output() {
            match polled {
                UserOutput::Atm(request) => self.requests.push(request),
                UserOutput::Other(note) => self.notes.push(note),
            }
        }
        let deadline = self.node.poll_timeout();
        assert!(
            deadline.is_none_or(|at| at > self.now),
            "a deadline that is over"
        );
    }
    fn event(&mut self, event: AtmEvent<&[u8]>) {
        self.node.event(event, self.now);
        self.drain();
    }
    fn tell(&mut self, input: Input<'_>) {
        let Node::Lec(lec) = &mut self.node else {
            panic!("no LEC");
        };
        lec.handle_input(input, self.now).unwrap();
        self.drain();
    }
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.node.poll_timeout().filter(|at| *at <= until) {
            self.now = at;
            self.drain();
        }
        self.now = until;
    }
    fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }
    fn connected(&mut self, conn: ConnId) {
        let vc = Vc::new(0, 100);
        self.event(AtmEvent::Connected {
            conn,
            vc,
            qos: Qos::ubr(0),
        });
    }
    fn released(&mut self, conn: ConnId) {
        let cause = Cause::NETWORK_OUT_OF_ORDER;
        self.event(AtmEvent::Released { conn, cause });
    }
    fn receive(&mut self, conn: ConnId, frame: &ControlFrame) {
        let sdu = frame.encode();
        self.event(AtmEvent::Received { conn, sdu: &sdu });
    }
    fn receive_sdu(&mut self, conn: ConnId, sdu: &[u8]) {
        self.event(AtmEvent::Received { conn, sdu });
    }
    /// A peer calls; true if the machine accepted the call. The call is not connected yet.
    fn offer(&mut self, calling: AtmAddress, sap: Sap) -> (ConnId, bool) {
        self.offered += 1;
        let conn = ConnId(self.offered);
        self.event(AtmEvent::Incoming {
            conn,
            called: address(1),
            calling: (!calling.is_zero()).then_some(calling),
            sap,
            qos: Qos::ubr(1516),
            multipoint: false,
        });
        let accept = AtmRequest::Accept { conn, terms: None };
        let taken = self.requests.contains(&accept);
        self.requests.retain(|request| *request != accept);
        (conn, taken)
    }
    /// A peer calls and is connected.
    fn caller(&mut self, calling: AtmAddress, sap: Sap) -> ConnId {
        let (conn, taken) = self.offer(calling, sap);
        assert!(taken, "the call was refused");
        self.connected(conn);
        conn
    }
    /// An answer to the pending request, with this status.
    fn answer(&mut self, status: Status) -> ControlFrame {
        self.pending.response(status)
    }

    // ---- out ----

    /// Calls that the machine made since the last check: id and address.
    fn calls(&mut self, wanted: Sap) -> Vec<(ConnId, AtmAddress)> {
        let mut found = Vec::new();
        self.requests.retain(|request| match request {
            AtmRequest::Connect {
                conn, called, sap, ..
            } if *sap == wanted => {
                found.push((*conn, *called));
                false
            }
            _ => true,
        });
        found
    }
    /// The only call that the machine made.
    fn call(&mut self, sap: Sap) -> (ConnId, AtmAddress) {
        let calls = self.calls(sap);
        assert_eq!(calls.len(), 1, "one call for {sap:?}: {calls:?}");
        calls[0]
    }
    fn parties(&mut self) -> Vec<(ConnId, PartyId, AtmAddress)> {
        let mut found = Vec::new();
        self.requests.retain(|request| match request {
            AtmRequest::AddParty {
                conn,
                party,
                called,
            } => {
                found.push((*conn, *party, *called));
                false
            }
            _ => true,
        });
        found
    }
    /// Connections that the machine released.
    fn hung_up(&mut self) -> Vec<ConnId> {
        let mut found = Vec::new();
        self.requests.retain(|request| match request {
            AtmRequest::Release { conn, .. } => {
                found.push(*conn);
                false
            }
            _ => true,
        });
        found
    }
    /// SDUs that the machine sent; `control`: control frames, else data frames.
    fn sent(&mut self, control: bool) -> Vec<(ConnId, Vec<u8>)> {
        let mut found = Vec::new();
        self.requests.retain(|request| match request {
            AtmRequest::Send { conn, sdu } if is_control(sdu) == control => {
                found.push((*conn, sdu.clone()));
                false
            }
            _ => true,
        });
        found
    }
    /// Connections that carried data frames of the machine.
    fn data(&mut self) -> Vec<ConnId> {
        self.sent(false).into_iter().map(|(conn, _)| conn).collect()
    }
    /// Control frames that the machine sent.
    fn frames(&mut self) -> Vec<(ConnId, Control)> {
        let decode = |(conn, sdu): (ConnId, Vec<u8>)| (conn, Control::decode(&sdu).unwrap());
        self.sent(true).into_iter().map(decode).collect()
    }
    /// The only control frame that the machine sent.
    fn frame(&mut self) -> (ConnId, ControlFrame) {
        let mut frames = self.frames();
        assert_eq!(frames.len(), 1, "one frame: {frames:?}");
        match frames.remove(0) {
            (conn, Control::Frame(frame)) => (conn, *frame),
            other => panic!("{other:?}"),
        }
    }
    /// The only request that the machine sent, which then waits for an answer.
    fn asked(&mut self, op: OpCode) -> ConnId {
        let (conn, frame) = self.frame();
        assert_eq!(frame.op, op);
        self.pending = frame;
        conn
    }
    fn lec(&self) -> lec::LecSnapshot {
        match &self.node {
            Node::Lec(lec) => lec.snapshot(),
            _ => panic!("no LEC"),
        }
    }
    fn state(&self) -> LecState {
        self.lec().state
    }
    fn unasked(&self) -> u64 {
        self.lec().control.unasked
    }
    fn bad(&self) -> u64 {
        self.lec().control.bad
    }
    fn has_left(&self) -> bool {
        let left = |note: &Note| matches!(note, Note::Lec(lec::Output::News(lec::News::Left)));
        self.notes.iter().any(left)
    }
}

/// A client in `state`, at the point where its request, if any, has been sent.
fn at(state: LecState) -> Bench {
    let more_macs = match state {
        LecState::InitialRegistration => vec![mac(0x81), mac(0x82)],
        _ => Vec::new(),
    };
    at_with(
        LecConfig {
            more_macs,
            ..lec_config(0)
        },
        state,
    )
}

fn at_with(config: LecConfig, state: LecState) -> Bench {
    let mut b = Bench::new(Node::Lec(Box::new(Lec::new(config))));
    if state == LecState::Stopped {
        return b;
    }
    b.tell(Input::Start);
    b.config = b.call(Sap::LANE_CONTROL).0;
    if state == LecState::Initial {
        b.released(b.config);
        b.config = b.call(Sap::LANE_CONTROL).0;
        b.released(b.config);
    }
    if state <= LecState::LecsConnect {
        return settled(b, state);
    }
    b.connected(b.config);
    b.asked(OpCode::CONFIGURE);
    if state == LecState::Configure {
        return settled(b, state);
    }
    let answer = configuration(&b);
    b.receive(b.config, &answer);
    b.control = b.call(Sap::LANE_CONTROL).0;
    b.connected(b.control);
    b.asked(OpCode::JOIN);
    if state == LecState::Join {
        return settled(b, state);
    }
    b.distribute = b.caller(address(LES_ADDRESS), Sap::LANE_CONTROL);
    let answer = admission(&b);
    b.receive(b.control, &answer);
    if state == LecState::InitialRegistration {
        b.asked(OpCode::REGISTER);
        return settled(b, state);
    }
    while b.state() == LecState::InitialRegistration {
        b.asked(OpCode::REGISTER);
        let answer = b.answer(Status::SUCCESS);
        b.receive(b.control, &answer);
    }
    b.asked(OpCode::ARP);
    if state == LecState::BusConnect {
        return settled(b, state);
    }
    let answer = bus_address(&b);
    b.receive(b.control, &answer);
    b.send = b.call(Sap::LANE_MULTICAST_ETHERNET).0;
    b.connected(b.send);
    b.forward = b.caller(address(BUS_ADDRESS), Sap::LANE_MULTICAST_ETHERNET);
    settled(b, state)
}

/// Checks the state; the requests and notes up to here are dropped.
fn settled(mut b: Bench, state: LecState) -> Bench {
    assert_eq!(b.state(), state);
    b.requests.clear();
    b.notes.clear();
    b
}

/// The answer of a LECS, or of a LES, to the pending request.
fn configuration(b: &Bench) -> ControlFrame {
    let mut frame = b.pending.response(Status::SUCCESS);
    frame.target_atm = address(LES_ADDRESS);
    frame.lan_type = LanType::ETHERNET;
    frame.max_frame = MaxFrameSize::S1516;
    frame
}
fn admission(b: &Bench) -> ControlFrame {
    let mut frame = b.pending.response(Status::SUCCESS);
    frame.lecid = LECID;
    frame.lan_type = LanType::ETHERNET;
    frame.max_frame = MaxFrameSize::S1516;
    frame.flags = frame.flags.with(Flags::V2_REQUIRED);
    frame.tlvs = vec![Tlv::u32(TlvType::ELAN_ID, 7)].into();
    frame
}
fn bus_address(b: &Bench) -> ControlFrame {
    let mut frame = b.pending.response(Status::SUCCESS);
    frame.target_atm = address(BUS_ADDRESS);
    frame
}

/// `docs/protocols/lane.md` says which test covers which row.
#[test]
fn the_tables_name_these_tests() {
    let page = include_str!("../../../../../../docs/protocols/lane.md");
    let sources = [
        include_str!("broadcast.rs"),
        include_str!("cache.rs"),
        include_str!("direct.rs"),
        include_str!("groups.rs"),
        include_str!("joining.rs"),
        include_str!("member.rs"),
        include_str!("quotas.rs"),
        include_str!("servers.rs"),
    ];
    let mut tests = 0;
    for source in sources {
        for function in source.split("#[test]\nfn ").skip(1) {
            let name = function.split('(').next().unwrap_or_default();
            assert!(page.contains(&format!("| `{name}` |")), "no row has {name}");
            tests += 1;
        }
    }
    let section = page.split("## State by state").nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("its end");
    let rows = section.lines().filter(|line| line.ends_with("` |"));
    assert_eq!(rows.count(), tests, "a row has no test");
}
