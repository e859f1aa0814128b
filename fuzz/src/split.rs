//! The boundary between a client and its daemon in another process: frames, and both machines behind them.
//!
//! Bit 0 of the first octet chooses: all that is left is one frame (1), or a script (0) in which a client of which the
//! daemon is elsewhere, and a daemon, get frames that are damaged, forged or in a wrong order. Bit 6 chooses the two
//! halves of ILMI ([`crate::ilmi`]) for the script, instead of an MPOA client. Neither side trusts the
//! other: no panic, bounded tables, and when the daemon's process has gone and the client has stopped, nothing is left.

use crate::feed::Feed;
use crate::ilmi;
use aerostat_proto::mpoa::mpc::{self, MpcLimits, Mpcd};
use aerostat_proto::mpoa::split::{FromMpcd, ToMpcd};
use aerostat_proto::mpoa::{Mpc, MpcConfig};
use aerostat_proto::split::codec::Message;
use aerostat_proto::split::{
    FRAME_MAX, FromDaemon, Greeting, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput,
    Signal, ToDaemon,
};
use aerostat_proto::{AtmEvent, AtmRequest, ConnId, Duration, Instant, Machine};
use aerostat_wire::mpoa::DeviceType;
use aerostat_wire::nhrp::internet_checksum;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};

const LIMITS: MpcLimits = MpcLimits {
    ingress: 6,
    egress: 6,
    shortcuts: 4,
    control: 4,
    mps: 3,
    queue: 4,
    qos: 4,
};
type To = Numbered<ToDaemon<ToMpcd>>;
type From = Numbered<FromDaemon<FromMpcd>>;

const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x21]);

const fn address(id: u8, selector: u8) -> AtmAddress {
    let mut octets = [0; 20];
    octets[0] = 0x47;
    (octets[13], octets[18], octets[19]) = (2, id, selector);
    AtmAddress(octets)
}

/// Octets that decode have one form only.
pub(crate) fn canonical<T: Message + PartialEq + core::fmt::Debug>(octets: &[u8]) {
    if let Ok(message) = T::decode(octets) {
        assert_eq!(message.encode(), octets);
        assert_eq!(T::decode(&message.encode()).as_ref(), Ok(&message));
    }
}

/// A client, the process of its daemon, and frames between them.
struct Pair {
    mpc: Mpc,
    /// `None` while there is no process.
    mpcd: Option<Process<Mpcd>>,
    now: Instant,
    /// Frames that were seen, to be sent again, and damaged.
    seen: Vec<Vec<u8>>,
    back: Vec<Vec<u8>>,
    /// Connections that the client asked for, or accepted, and did not release: as signalling would know them.
    asked: Vec<ConnId>,
}

impl Pair {
    fn new() -> Self {
        let mut config = MpcConfig::new(address(0x11, 0x50), address(0x11, 0x51));
        config.limits = LIMITS;
        Self {
            mpc: Mpc::split(config),
            mpcd: None,
            now: Instant::ZERO,
            seen: Vec::new(),
            back: Vec::new(),
            asked: Vec::new(),
        }
    }
    fn client(&mut self, input: mpc::Input<'_>) {
        // What makes no sense at this time is refused.
        let _ = self.mpc.handle_input(input, self.now);
        self.drain();
    }
    fn outbound(&mut self, frame: Vec<u8>) {
        if let mpc::Outbound::Shortcut { conn, sdu } = self.mpc.outbound(0, frame, self.now) {
            let sdu = sdu.into_vec();
            self.request(&AtmRequest::Send { conn, sdu });
        }
        self.drain();
    }
    fn daemon(&mut self, input: ProcessInput<ToMpcd>) {
        if let Some(mpcd) = &mut self.mpcd {
            let Ok(()) = mpcd.handle_input(input, self.now);
        }
        self.drain();
    }
    /// A frame from the daemon's process, or from one that claims to be it.
    fn from_daemon(&mut self, frame: &[u8]) {
        canonical::<From>(frame);
        match From::decode(frame) {
            // A host has one MPOA client; its daemon is number 0.
            Ok(frame) if frame.number == 0 => {
                self.client(mpc::Input::Mpcd(ProcessEvent::Said(frame.message)));
            }
            Ok(_) => {}
            // As the driver does: the connection ends, and with it the daemon.
            Err(_) => {
                self.mpcd = None;
                self.client(mpc::Input::Mpcd(ProcessEvent::Gone));
            }
        }
    }
    fn to_daemon(&mut self, frame: &[u8]) {
        canonical::<To>(frame);
        match To::decode(frame) {
            Ok(frame) => self.daemon(ProcessInput::Frame(frame)),
            Err(_) => self.mpcd = None,
        }
    }
    fn note(&mut self, frame: Vec<u8>) {
        assert!(frame.len() <= FRAME_MAX);
        if self.seen.len() < 64 {
            self.seen.push(frame);
        }
    }
    fn drain(&mut self) {
        for round in 0.. {
            assert!(round < 2000, "they never stop talking");
            if let Some(output) = self.mpc.poll_output() {
                match output {
                    mpc::Output::Mpcd(message) => {
                        let octets = Numbered { number: 0, message }.encode();
                        let frame = To::decode(&octets).expect("own frames decode");
                        self.note(octets);
                        if let Some(mpcd) = &mut self.mpcd {
                            let Ok(()) = mpcd.handle_input(ProcessInput::Frame(frame), self.now);
                        }
                    }
                    mpc::Output::Atm(request) => self.request(&request),
                    _ => {}
                }
                continue;
            }
            let Some(output) = self.mpcd.as_mut().and_then(Process::poll_output) else {
                return;
            };
            match output {
                ProcessOutput::Frame(frame) => {
                    let octets = frame.encode();
                    let frame = From::decode(&octets).expect("own frames decode");
                    self.back.push(octets.clone());
                    self.back.truncate(64);
                    self.note(octets);
                    if frame.number != 0 {
                        continue;
                    }
                    let said = ProcessEvent::Said(frame.message);
                    let _ = self.mpc.handle_input(mpc::Input::Mpcd(said), self.now);
                }
                ProcessOutput::Exit => {
                    self.mpcd = None;
                    let _ = self
                        .mpc
                        .handle_input(mpc::Input::Mpcd(ProcessEvent::Gone), self.now);
                }
            }
        }
    }
    fn request(&mut self, request: &AtmRequest) {
        use aerostat_proto::AtmRequest::{Accept, Connect, Release};
        match request {
            Connect { conn, .. } => {
                assert!(!self.asked.contains(conn), "{conn:?} is in use");
                self.asked.push(*conn);
            }
            Accept { conn, .. } => assert!(self.asked.contains(conn), "nobody offered {conn:?}"),
            Release { conn, .. } => {
                assert!(self.asked.contains(conn), "{conn:?} is not there");
                self.asked.retain(|known| known != conn);
            }
            _ => {}
        }
    }
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        for round in 0.. {
            assert!(round < 100_000, "timers without end");
            let daemon = self.mpcd.as_ref().and_then(Machine::poll_timeout);
            let next = [self.mpc.poll_timeout(), daemon];
            let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= end) else {
                break;
            };
            self.now = at.max(self.now);
            self.mpc.handle_timeout(self.now);
            if let Some(mpcd) = &mut self.mpcd {
                mpcd.handle_timeout(self.now);
            }
            self.drain();
        }
        self.now = end;
    }
}

fn flow(feed: &mut Feed<'_>, pair: &mut Pair) {
    let (host, count) = (feed.u8() % 8, feed.below(24));
    for _ in 0..count {
        let mut packet = vec![
            0x45, 0, 0, 40, 0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 0, 11, 10, 2, 0,
        ];
        packet.push(host);
        let sum = internet_checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.resize(40, 0x55);
        let header = [&ROUTER.0[..], &[2, 0, 0, 0, 0, 0x11, 8, 0]].concat();
        let frame = [header, packet].concat();
        pair.outbound(frame);
        pair.wait(Duration::from_millis(20));
    }
}

/// The ATM service: calls, connections, SDUs.
fn service(feed: &mut Feed<'_>, pair: &mut Pair) {
    let pick = |feed: &mut Feed<'_>, pair: &Pair| {
        let n = feed.below(8);
        pair.asked.get(n).copied().unwrap_or(ConnId(n as u32 + 1))
    };
    match feed.below(4) {
        0 => {
            let conn = ConnId(ConnId::INCOMING + u32::from(feed.u8()));
            if pair.asked.contains(&conn) {
                return;
            }
            pair.asked.push(conn);
            let calling = Some(address(feed.pick(&[0x21, 0x12, 0x33]), 0x52));
            let called = address(0x11, feed.pick(&[0x50, 0x51]));
            let (sap, qos, multipoint) = (Sap::LLC, Qos::ubr(1536), false);
            pair.client(mpc::Input::Atm(AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            }));
        }
        1 => {
            let conn = pick(feed, pair);
            let vc = Vc::new(0, 40 + u16::from(feed.u8()));
            pair.client(mpc::Input::Atm(AtmEvent::Connected {
                conn,
                vc,
                qos: Qos::ubr(0),
            }));
        }
        2 => {
            let conn = pick(feed, pair);
            pair.asked.retain(|known| *known != conn);
            let cause = aerostat_proto::Cause::NORMAL;
            pair.client(mpc::Input::Atm(AtmEvent::Released { conn, cause }));
        }
        _ => {
            let conn = pick(feed, pair);
            let sdu = crate::mpoa::sdu(feed);
            if !sdu.is_empty() {
                pair.client(mpc::Input::Atm(AtmEvent::Received {
                    conn,
                    sdu: &sdu[..],
                }));
            }
        }
    }
}

/// A frame that was seen once, perhaps damaged, or octets of the input.
fn frame(feed: &mut Feed<'_>, seen: &[Vec<u8>]) -> Vec<u8> {
    let known = seen.get(feed.below(64)).cloned();
    let Some(mut frame) = known else {
        return feed.octets(120).to_vec();
    };
    feed.damage(&mut frame);
    frame
}

fn step(feed: &mut Feed<'_>, pair: &mut Pair) {
    match feed.below(16) {
        0 | 1 => flow(feed, pair),
        2..=4 => service(feed, pair),
        5 | 6 => {
            let frame = frame(feed, &pair.seen);
            pair.to_daemon(&frame);
        }
        7 | 8 => {
            let frame = frame(feed, &pair.back);
            pair.from_daemon(&frame);
        }
        9 => {
            pair.mpcd = None;
            pair.client(mpc::Input::Mpcd(ProcessEvent::Gone));
        }
        10 => {
            if pair.mpcd.is_none() {
                pair.mpcd = Some(Process::default());
                pair.client(mpc::Input::Mpcd(ProcessEvent::Came));
            }
        }
        11 => {
            let signal = feed.pick(&[Signal::Terminate, Signal::Reload]);
            pair.daemon(ProcessInput::Signal(signal));
        }
        12 => {
            let (itf, elan_id, mtu) = (feed.below(2), feed.u8().into(), 1500);
            pair.client(mpc::Input::LecUp { itf, elan_id, mtu });
        }
        13 => {
            let itf = feed.below(2);
            pair.client(mpc::Input::LecDown { itf });
        }
        14 => pair.wait(Duration::from_secs(feed.u8().into())),
        _ => pair.wait(Duration::from_millis(u64::from(feed.u8()) * 8)),
    }
    let snapshot = pair.mpc.snapshot(pair.now);
    assert!(snapshot.ingress.len() <= LIMITS.ingress && snapshot.egress.len() <= LIMITS.egress);
    assert!(snapshot.shortcuts.len() <= LIMITS.shortcuts);
}

/// A client that has joined, and a daemon that runs.
fn script(feed: &mut Feed<'_>) {
    let mut pair = Pair::new();
    pair.mpcd = Some(Process::default());
    pair.client(mpc::Input::Start);
    pair.client(mpc::Input::Mpcd(ProcessEvent::Came));
    pair.client(mpc::Input::LecUp {
        itf: 0,
        elan_id: 1,
        mtu: 1500,
    });
    let control = address(0x21, 0x52);
    let device = DeviceType::Mps {
        control,
        macs: vec![],
    };
    pair.client(mpc::Input::Associate {
        itf: 0,
        mac: ROUTER,
        atm: address(0x21, 0),
        tlvs: vec![device.to_tlv()],
    });
    for _ in 0..100 {
        if feed.is_empty() {
            break;
        }
        step(feed, &mut pair);
    }
    pair.mpcd = None;
    pair.client(mpc::Input::Mpcd(ProcessEvent::Gone));
    pair.client(mpc::Input::Stop);
    pair.wait(Duration::from_secs(120));
    assert_eq!(pair.mpc.poll_timeout(), None, "it stopped, but has a timer");
    let left = pair.mpc.snapshot(pair.now);
    let left = (left.ingress.len(), left.egress.len(), left.shortcuts.len());
    assert_eq!(left, (0, 0, 0));
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let choice = feed.u8();
    if choice & 1 == 1 {
        let frame = feed.rest();
        canonical::<Greeting>(frame);
        canonical::<To>(frame);
        canonical::<From>(frame);
        canonical::<ilmi::To>(frame);
        canonical::<ilmi::From>(frame);
        return;
    }
    if choice & 0x40 != 0 {
        return ilmi::script(&mut feed, choice & 0x80 != 0);
    }
    script(&mut feed);
}
