//! Scenarios in virtual time: one client against a scripted ATM network and MPS.

mod both_ways;
mod egress;
mod hostile;
mod hung;
mod ingress;
mod life;
mod linux;
mod many;
mod process;
mod qos;
mod six;
mod why;

use super::*;
use crate::machine::settle;
use crate::mpoa::split::FromMpcd;
use crate::split::codec::Message as _;
use crate::split::{FromDaemon, Numbered, Process, ProcessInput, ProcessOutput, Signal, ToDaemon};
use crate::{AtmEvent, AtmRequest, ConnId, Duration};
use aerostat_wire::lane::TlvType;
use aerostat_wire::mpoa::{self, DeviceType, DllHeader, Imposition};
use aerostat_wire::nhrp::{Cie, Packet, ProtocolAddress};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use core::cell::Cell;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::{Deref, DerefMut};
use std::collections::VecDeque;

const fn address(id: u8, selector: u8) -> AtmAddress {
    let mut octets = [0; 20];
    octets[0] = 0x47;
    octets[18] = id;
    octets[19] = selector;
    AtmAddress(octets)
}

const CONTROL: AtmAddress = address(0x11, 0x50);
const DATA: AtmAddress = address(0x11, 0x51);
const MPS: AtmAddress = address(0x21, 0x52);
const MPS_2: AtmAddress = address(0x22, 0x52);
const PEER: AtmAddress = address(0x12, 0x51);
const MPS_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x21]);
const OWN_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x11]);
const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 11));
const MPS_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));
const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20));
const TAG: u32 = 0x8000_0001;
const ELAN: u32 = 7;

/// An IPv4/UDP packet with a correct checksum.
fn packet(from: IpAddr, to: IpAddr, ttl: u8, payload: usize) -> Vec<u8> {
    let total = (20 + payload) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 1, 0, 0, ttl, 17, 0, 0]);
    for address in [from, to] {
        packet.extend(ProtocolAddress::from(address).octets());
    }
    let sum = aerostat_wire::nhrp::internet_checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.resize(usize::from(total), 0x5a);
    packet
}

fn ethernet(to: MacAddr, packet: &[u8]) -> Vec<u8> {
    [&DllHeader::ethernet_ipv4(to, OWN_MAC), packet].concat()
}

fn mps_tlv(control: AtmAddress) -> Vec<Tlv> {
    let device = DeviceType::Mps {
        control,
        macs: vec![],
    };
    vec![device.to_tlv()]
}

thread_local! {
    /// True if new clients have their daemon on the other side of a process boundary.
    static SPLIT: Cell<bool> = const { Cell::new(false) };
}

/// Runs tests again with the daemon on the other side of a process boundary.
fn across_a_boundary(tests: &[fn()]) {
    SPLIT.set(true);
    for test in tests {
        test();
    }
    SPLIT.set(false);
}

/// A client; if it is split, with the process of its daemon, and every message between them is encoded.
struct Client {
    mpc: Mpc,
    split: bool,
    mpcd: Option<Process<Mpcd>>,
    /// The process hangs: it reads nothing, sends nothing, and its timers do not run.
    hangs: bool,
    unread: Vec<Numbered<ToDaemon<ToMpcd>>>,
    out: VecDeque<Output>,
}

impl Client {
    fn new(config: MpcConfig) -> Self {
        let split = SPLIT.get();
        let new = if split { Mpc::split } else { Mpc::new };
        let mut client = Self {
            mpc: new(config),
            split,
            mpcd: None,
            hangs: false,
            unread: Vec::new(),
            out: VecDeque::new(),
        };
        if split {
            let ready = client.handle_input(Input::Mpcd(ProcessEvent::Came), Instant::ZERO);
            ready.expect("a process is welcome");
        }
        client
    }

    /// The daemon beside the data plane, while it runs.
    fn daemon(&self) -> Option<&daemon::Daemon> {
        self.mpc.daemon.seat.daemon()?.daemon.as_ref()
    }
    /// True if no daemon runs, not even one that ends.
    fn idle(&self) -> bool {
        self.daemon().is_none()
    }

    fn set_next_tag(&mut self, tag: u32) {
        let mpcd = match &mut self.mpcd {
            Some(process) => process.daemon_mut(0),
            None => self.mpc.daemon.seat.daemon_mut(),
        };
        mpcd.expect("a daemon").numbers.set_next_tag(tag);
    }

    /// A process that hung continues.
    fn wake(&mut self, now: Instant) {
        self.hangs = false;
        for frame in core::mem::take(&mut self.unread) {
            let mpcd = self.mpcd.as_mut().expect("a process");
            let input = ProcessInput::Frame(frame);
            mpcd.handle_input(input, now).expect("messages are taken");
        }
        self.carry(now);
    }

    /// A signal for the daemon.
    fn signal(&mut self, signal: Signal, now: Instant) {
        let mpcd = self.mpcd.as_mut().expect("a process");
        let input = ProcessInput::Signal(signal);
        mpcd.handle_input(input, now).expect("signals are taken");
        self.carry(now);
    }

    fn carry(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.mpc.poll_output() {
                let Output::Mpcd(message) = output else {
                    self.out.push_back(output);
                    continue;
                };
                let frame = Numbered { number: 0, message }.encode();
                let frame = Numbered::decode(&frame).expect("a message");
                if self.hangs {
                    self.unread.push(frame);
                } else if let Some(mpcd) = &mut self.mpcd {
                    let input = ProcessInput::Frame(frame);
                    mpcd.handle_input(input, now).expect("messages are taken");
                }
            }
            let awake = self.mpcd.as_mut().filter(|_| !self.hangs);
            let Some(said) = awake.and_then(Machine::poll_output) else {
                break;
            };
            let event = match said {
                ProcessOutput::Frame(frame) => {
                    let frame: Numbered<FromDaemon<FromMpcd>> =
                        Numbered::decode(&frame.encode()).expect("a message");
                    ProcessEvent::Said(frame.message)
                }
                ProcessOutput::Exit => {
                    self.mpcd = None;
                    ProcessEvent::Gone
                }
            };
            let input = Input::Mpcd(event);
            self.mpc.handle_input(input, now).expect("accepted");
        }
    }
}

impl Machine for Client {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;
    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        if self.split {
            match input {
                Input::Mpcd(ProcessEvent::Gone) => self.mpcd = None,
                Input::Mpcd(ProcessEvent::Came) => self.mpcd = Some(Process::default()),
                _ => {}
            }
        }
        self.mpc.handle_input(input, now)?;
        self.carry(now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.mpc.handle_timeout(now);
        self.carry(now);
        if let Some(mpcd) = self.mpcd.as_mut().filter(|_| !self.hangs) {
            mpcd.handle_timeout(now);
        }
        self.carry(now);
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let awake = self.mpcd.as_ref().filter(|_| !self.hangs);
        let daemon = awake.and_then(Machine::poll_timeout);
        [self.mpc.poll_timeout(), daemon]
            .into_iter()
            .flatten()
            .min()
    }
}

impl Deref for Client {
    type Target = Mpc;
    fn deref(&self) -> &Mpc {
        &self.mpc
    }
}
impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Mpc {
        &mut self.mpc
    }
}

/// Fates of frames of the stack.
#[derive(Debug, Default)]
struct Sent {
    /// Frames that take the default path.
    lane: Vec<Vec<u8>>,
    /// The outputs of the client, with the SDUs of shortcuts.
    out: Vec<Output>,
}

impl Deref for Sent {
    type Target = [Output];
    fn deref(&self) -> &[Output] {
        &self.out
    }
}
impl FromIterator<Self> for Sent {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        let mut sum = Self::default();
        for sent in all {
            sum.lane.extend(sent.lane);
            sum.out.extend(sent.out);
        }
        sum
    }
}

/// A client and its clock.
struct Rig {
    mpc: Client,
    now: Instant,
}

impl Rig {
    fn new(config: MpcConfig) -> Self {
        Self {
            mpc: Client::new(config),
            now: Instant::ZERO,
        }
    }
    /// A started client whose LEC is up and knows the MPS.
    fn ready_with(config: MpcConfig) -> Self {
        let mut rig = Self::new(config);
        rig.input(Input::Start);
        rig.lec_up(0);
        rig.associate(MPS_MAC, mps_tlv(MPS));
        rig
    }
    fn ready() -> Self {
        Self::ready_with(MpcConfig::new(CONTROL, DATA))
    }
    fn input(&mut self, input: Input<'_>) -> Vec<Output> {
        self.mpc.handle_input(input, self.now).expect("accepted");
        settle(&mut self.mpc, self.now)
    }
    fn lec_up(&mut self, itf: usize) -> Vec<Output> {
        self.input(Input::LecUp {
            itf,
            elan_id: ELAN,
            mtu: 1500,
        })
    }
    fn atm(&mut self, event: AtmEvent<&[u8]>) -> Vec<Output> {
        self.input(Input::Atm(event))
    }
    fn associate(&mut self, mac: MacAddr, tlvs: Vec<Tlv>) -> Vec<Output> {
        self.input(Input::Associate {
            itf: 0,
            mac,
            atm: address(0x21, 0),
            tlvs,
        })
    }
    /// Runs until `seconds` after the start. Returns the outputs with the second of each.
    fn until(&mut self, seconds: u64) -> Vec<(u64, Output)> {
        let end = Instant::from_secs(seconds);
        let mut all = Vec::new();
        for _ in 0..100_000 {
            let Some(at) = self.mpc.poll_timeout().filter(|at| *at <= end) else {
                break;
            };
            assert!(at > self.now, "time goes forward");
            self.now = at;
            let second = at.as_nanos() / 1_000_000_000;
            all.extend(
                settle(&mut self.mpc, at)
                    .into_iter()
                    .map(|output| (second, output)),
            );
        }
        self.now = self.now.max(end);
        all
    }
    /// A frame of the stack, to interface `itf`.
    fn outbound(&mut self, itf: usize, frame: Vec<u8>) -> Sent {
        let now = self.now;
        let path = self.mpc.mpc.outbound(itf, frame, now);
        self.mpc.carry(now);
        let mut sent = Sent {
            lane: Vec::new(),
            out: settle(&mut self.mpc, now),
        };
        match path {
            Outbound::Lane(frame) => sent.lane.push(frame),
            Outbound::Shortcut { conn, sdu } => {
                let sdu = sdu.into_vec();
                let send = Output::Atm(AtmRequest::Send { conn, sdu });
                sent.out.insert(0, send);
            }
        }
        sent
    }
    /// One frame to `to` behind the MPS.
    fn send(&mut self, to: IpAddr) -> Sent {
        self.outbound(0, ethernet(MPS_MAC, &packet(OWN, to, 64, 100)))
    }
    fn flow(&mut self, to: IpAddr) -> Sent {
        (0..10).map(|_| self.send(to)).collect()
    }
    fn control(&mut self, conn: ConnId, packet: &Packet) -> Vec<Output> {
        let sdu = packet.to_sdu();
        self.atm(AtmEvent::Received { conn, sdu: &sdu })
    }
    fn connected(&mut self, conn: ConnId, vci: u16) -> Vec<Output> {
        self.atm(AtmEvent::Connected {
            conn,
            vc: Vc::new(0, vci),
            qos: Qos::ubr(0),
        })
    }
    /// An accepted call from `calling` to `called`.
    fn call_in(&mut self, id: u32, calling: AtmAddress, called: AtmAddress) -> ConnId {
        let conn = ConnId(ConnId::INCOMING + id);
        let out = self.offer(conn, Some(calling), called);
        assert_eq!(out, [Output::Atm(AtmRequest::Accept { conn, terms: None })]);
        self.connected(conn, 100 + id as u16);
        conn
    }
    fn offer(
        &mut self,
        conn: ConnId,
        calling: Option<AtmAddress>,
        called: AtmAddress,
    ) -> Vec<Output> {
        let (sap, qos) = (Sap::LLC, Qos::ubr(1536));
        self.atm(AtmEvent::Incoming {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: false,
        })
    }
    /// A flow has been detected and the control connection is up. Returns it and the request.
    fn asked(&mut self, to: IpAddr) -> (ConnId, Packet) {
        let out = self.flow(to);
        let (conn, called) = connects(&out)[0];
        assert_eq!(called, MPS);
        let sent = control_packets(&self.connected(conn, 50));
        assert_eq!(sent.len(), 1);
        (conn, sent[0].1.clone())
    }
    /// The destination is resolved and the shortcut is up. Returns the control connection and the shortcut.
    fn shortcut(&mut self) -> (ConnId, ConnId) {
        let (control, request) = self.asked(TARGET);
        let out = self.control(control, &answer(&request, PEER, 1200, Some(TAG)));
        let (data, called) = connects(&out)[0];
        assert_eq!(called, PEER);
        self.connected(data, 60);
        (control, data)
    }
    fn state(&self) -> IngressState {
        self.row(TARGET).expect("an entry").state
    }
    fn row(&self, to: IpAddr) -> Option<IngressRow> {
        let rows = self.mpc.snapshot(self.now).ingress;
        rows.into_iter().find(|row| row.destination == to)
    }
    fn counters(&self) -> &MpcCounters {
        self.mpc.counters()
    }
}

/// The positive reply of an MPS.
fn answer(request: &Packet, egress: AtmAddress, holding_s: u16, tag: Option<u32>) -> Packet {
    let reply = request
        .reply(vec![mpoa::reply_entry(32, 1500, holding_s, egress)])
        .expect("request");
    match tag {
        Some(tag) => mpoa::with_tag(reply, tag),
        None => reply,
    }
}

fn refusal(request: &Packet, code: u8) -> Packet {
    request
        .reply(vec![mpoa::refusal_entry(32, code)])
        .expect("request")
}

fn imposition(cache_id: u32, holding_s: u16) -> Imposition {
    Imposition {
        id: 0x3001,
        ingress_data: PEER,
        mps: MPS_IP,
        target: OWN,
        prefix: 32,
        holding_s,
        dll: DllHeader {
            cache_id,
            elan_id: ELAN,
            header: DllHeader::ethernet_ipv4(OWN_MAC, MPS_MAC),
        },
        want_tag: true,
    }
}

fn connects(out: &[Output]) -> Vec<(ConnId, AtmAddress)> {
    out.iter()
        .filter_map(|output| match output {
            Output::Atm(AtmRequest::Connect { conn, called, .. }) => Some((*conn, *called)),
            _ => None,
        })
        .collect()
}

fn releases(out: &[Output]) -> Vec<ConnId> {
    out.iter()
        .filter_map(|output| match output {
            Output::Atm(AtmRequest::Release { conn, .. }) => Some(*conn),
            _ => None,
        })
        .collect()
}

fn sdus(out: &[Output]) -> Vec<(ConnId, Vec<u8>)> {
    out.iter()
        .filter_map(|output| match output {
            Output::Atm(AtmRequest::Send { conn, sdu }) => Some((*conn, sdu.clone())),
            _ => None,
        })
        .collect()
}

/// The control packets sent.
fn control_packets(out: &[Output]) -> Vec<(ConnId, Packet)> {
    let decode = |(conn, sdu): (ConnId, Vec<u8>)| Some((conn, Packet::from_sdu(&sdu).ok()?));
    sdus(out).into_iter().filter_map(decode).collect()
}

fn to_lane(sent: &Sent) -> usize {
    sent.lane.len()
}

fn delivered(out: &[Output]) -> Vec<(usize, Vec<u8>)> {
    out.iter()
        .filter_map(|output| match output {
            Output::Deliver { itf, frame } => Some((*itf, frame.clone())),
            _ => None,
        })
        .collect()
}

/// Names of the milestone traces.
fn story(out: &[Output]) -> Vec<&'static str> {
    out.iter()
        .filter_map(|output| match output {
            Output::Trace(trace) if trace.milestone => Some(trace.name),
            _ => None,
        })
        .collect()
}

/// The first code of a reply.
fn code_of(packet: &Packet) -> u8 {
    packet
        .common()
        .and_then(|c| c.cies.first())
        .map_or(255, |cie: &Cie| cie.code)
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}
