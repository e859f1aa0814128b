//! An ATM end system: protocol machines wired together behind one port.
//!
//! **Purpose.** Hosts, LANE servers and routers are the same type with different services. A host owns its machines by
//! value, moves every output of one machine to the input of the next in the same call, and shows the driver (`sim` or
//! `live`) only AAL5 SDUs, kernel frames, samples and the next deadline.
//!
//! ```text
//!  driver:  Frame (TAP)        App                                   Sdu
//!              │                │                                     │
//!            ┌─┴────────────────┴──┐ frame   ┌─────┐ default path ┌───┴────────┐
//!            │ Ip: stack, router,  ├────────►│ Mpc ├─────────────►│ Lec (N of) │
//!            │ kernel              │◄────────┤     │              └───┬────────┘
//!            └──────────┬──────────┘ deliver └──┬──┘                  │ AtmRequest / AtmEvent
//!                       │ routes, ARP           │ shortcuts     ┌─────┴──────┐
//!                    ┌──┴──┐                    └──────────────►│ Signalling │──► Send, OpenVc, CloseVc
//!                    │ Mps │───────────────────────────────────►│            │
//!                    └─────┘          Les, Bus, Lecs ──────────►└────────────┘
//! ```
//!
//! **Objects and owners.** A service is one user of the ATM service; its slot is its user id. A part of the host that
//! tells a service something has its slot with the type of its machine ([`Typed`]). An interface (`lecN`, `atmN`,
//! `nasN`) has the slot of its client. A machine that gets work while another one is served is marked, and served later
//! in the same call. There is no recursion.
//!
//! **Addresses.** A host knows its addresses from the configuration. Alternatively it knows only its ESI and the switch
//! supplies the rest by ILMI (`management.rs`); then services wait for that.
//!
//! **Failure.** A service can crash and restart alone ([`HostCommand::Crash`], [`HostCommand::Restart`]). Its calls are
//! cleared; all other services continue. A `Factory` makes each service, so that a restart begins only with
//! the configuration.

mod assembly;
mod command;
mod daemons;
mod elans;
mod encapsulation;
mod events;
mod growth;
mod interfaces;
mod management;
mod outputs;
mod report;
mod service;
pub mod sockets;
mod station;
#[cfg(test)]
mod tests;

pub use crate::daemon_message::DaemonMessage;
pub use crate::encapsulation::Encapsulation;
pub use command::HostCommand;
pub use events::HostEvent;
pub use interfaces::ip::Ip;
pub use interfaces::segment::{
    Cable, EthernetPort, LinePort, PortVlans, Segment, SegmentHost, WAITING,
};
pub use interfaces::super_frames::KernelTrain;
pub use report::attempts::{Attempts, Waits};
pub use report::present::{HostChanges, Membership, PresentCall};
pub use report::tables::VcUser;
pub use service::{Serves, Service, ServiceKind, Typed};
pub use sockets::FromAdapter;
pub use station::Station;
pub use station::cpu::{CallCosts, Costs, CpuConfig};
pub use station::intake::{IntakeConfig, IntakeRate};
pub use station::interruptions::Interruptions;
pub use station::steps::Step;

use crate::atm::{DataUnit, Mark, Sdus, Shaping};
use crate::ip::meter::{Meter, Path, Sample};
use crate::ip::router::RouterInput;
use crate::ip::stack::{Call, ConnectionId};
use crate::offload::SuperFrame;
use crate::signalling::{self, Errand, Signalling};
use aerostat_proto::clip::{Clip, Input as ClipInput};
use aerostat_proto::lane::Lec;
use aerostat_proto::line::Line;
use aerostat_proto::mpoa::{Mpc, Mps, mpc};
use aerostat_proto::nhrp::client::Nhc;
use aerostat_proto::split::{ProcessEvent, Role};
use aerostat_proto::{Instant, Machine, Refused, Sdu, Trace};
use aerostat_wire::lane::Tlv;
use aerostat_wire::{AalType, AtmAddress, MacAddr, TrafficParams, Vc};
use elans::Elan;
use service::Factory;
use sockets::SocketLayer;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Inputs of a host.
#[derive(Debug)]
pub enum HostInput<'a> {
    /// Power on: signalling starts, then the services.
    Start,
    /// An AAL5 SDU arrived on the link.
    Sdu {
        /// Its label.
        vc: Vc,
        /// The SDU.
        sdu: DataUnit<'a>,
    },
    /// A complete Ethernet frame from the kernel's interface `lecN` (kernel hosts and routers only).
    Frame {
        /// N.
        itf: usize,
        /// The frame, without padding and check sequence.
        frame: Vec<u8>,
    },
    /// Many frames as one super frame from the kernel's interface `lecN`.
    SuperFrame {
        /// N.
        itf: usize,
        /// The frames, which begin with Ethernet headers.
        frame: SuperFrame,
    },
    /// A command of the experimenter.
    Command(HostCommand),
    /// From a program of the machine.
    Program(sockets::Input<'a>),
    /// The manager has done what [`HostOutput::Manage`] asked for.
    Managed(Errand),
    /// The CPU is through with what [`HostOutput::Call`] asked for.
    Called(ConnectionId),
    /// From or about the process of the daemons of this role.
    Daemon(Role, ProcessEvent<DaemonMessage>),
}

/// Outputs of a host.
#[derive(Debug)]
pub enum HostOutput {
    /// Send an AAL5 SDU on the link.
    Send {
        /// Its label.
        vc: Vc,
        /// The SDU.
        sdu: Sdu,
    },
    /// Send the segments of a super frame as AAL5 SDUs.
    SendTrain {
        /// Their label.
        vc: Vc,
        /// The SDUs.
        frame: SuperFrame,
    },
    /// A program writes SDUs, and waits for [`Host::written`].
    Write {
        /// Their label.
        vc: Vc,
        /// The SDUs. A station with a CPU gets one at a time.
        sdus: Sdus,
        /// Their mark, for the accounts.
        mark: Option<Mark>,
    },
    /// A program waits for [`Host::room`]: until no cell of its VC waits in the adapter.
    Flush {
        /// Its label.
        vc: Vc,
    },
    /// A connection was opened, or an open one has another contract; `traffic` is what this host may send on it.
    OpenVc {
        /// Its label.
        vc: Vc,
        /// Traffic from this host.
        traffic: TrafficParams,
        /// Its AAL.
        aal: AalType,
        /// How the adapter sends it; `None`: as the adapter is configured.
        shaping: Option<Shaping>,
    },
    /// A connection was closed.
    CloseVc {
        /// Its label.
        vc: Vc,
    },
    /// Work of a manager that takes time ([`Host::set_paced`]).
    Manage(Errand),
    /// A program of the embedded host writes or reads: work of the CPU.
    Call(ConnectionId, Call),
    /// For the driver of the host.
    Event(HostEvent),
}

impl HostOutput {
    const fn sampled(sample: Sample) -> Self {
        Self::Event(HostEvent::Sample(sample))
    }
}

/// The client below an IP interface.
#[derive(Clone, Copy, Debug)]
enum Client {
    /// A LANE client: `lecN`.
    Lec(Typed<Lec>),
    /// A member of a Classical IP subnet: `atmN`.
    Clip(Typed<Clip>),
    /// One end of an ATM line: `nasN`.
    Line(Typed<Line>),
}

impl Client {
    const fn slot(self) -> usize {
        match self {
            Self::Lec(lec) => lec.slot(),
            Self::Clip(clip) => clip.slot(),
            Self::Line(line) => line.slot(),
        }
    }
    const fn lec(self) -> Option<Typed<Lec>> {
        match self {
            Self::Lec(lec) => Some(lec),
            Self::Clip(_) | Self::Line(_) => None,
        }
    }
    const fn clip(self) -> Option<Typed<Clip>> {
        match self {
            Self::Clip(clip) => Some(clip),
            Self::Lec(_) | Self::Line(_) => None,
        }
    }
    const fn line(self) -> Option<Typed<Line>> {
        match self {
            Self::Line(line) => Some(line),
            Self::Lec(_) | Self::Clip(_) => None,
        }
    }
}

/// An IP interface on a LANE client, on a member of a Classical IP subnet, or on an ATM line.
#[derive(Clone, Debug)]
pub struct Interface {
    client: Client,
    /// MAC address.
    mac: MacAddr,
    /// True while the client is a member of its ELAN.
    up: bool,
    /// The last reported state of `up`.
    told: bool,
    /// When the client last became a member.
    since: Option<Instant>,
    /// Number of the ELAN; 0 if unknown.
    elan_id: u32,
    /// Largest IP packet, octets.
    mtu: u16,
    /// TLVs that the LANE client announces for MPOA. They are kept here, because the client may restart alone.
    tlvs: Vec<Tlv>,
    /// TLVs of the LECS. They are kept here, because the MPOA client may restart alone.
    config: Vec<Tlv>,
    /// Frames sent and received, by path: over LANE and over shortcuts.
    counters: InterfaceCounters,
}

impl Interface {
    /// True while the LANE client is a member of its ELAN.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }
}

/// Traffic of an interface by path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Frames sent over LANE.
    pub lane_out: u64,
    /// Frames sent over a shortcut.
    pub shortcut_out: u64,
    /// Frames received over LANE.
    pub lane_in: u64,
    /// Frames received over a shortcut.
    pub shortcut_in: u64,
    /// Frames dropped because the LANE client was not a member of its ELAN.
    pub down: u64,
}

struct Slot {
    /// `None` while crashed.
    service: Option<Service>,
    kind: ServiceKind,
    factory: Factory,
    starts: u32,
    /// True if signalling knows the service as a user.
    user: bool,
    deadline: Option<Instant>,
    /// True if it was removed from the running host: it never starts again.
    retired: bool,
}

/// A part of the host that may have work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Slot(usize),
    Signalling,
    Ip,
    Segment,
}

/// An ATM end system.
pub struct Host {
    name: String,
    signalling: Signalling,
    signalling_deadline: Option<Instant>,
    /// `None` if the addresses of the services are configured.
    management: Option<management::Management>,
    slots: Vec<Slot>,
    interfaces: Vec<Interface>,
    mpc: Option<Typed<Mpc>>,
    mps: Option<Typed<Mps>>,
    nhc: Option<Typed<Nhc>>,
    sockets: Option<Typed<SocketLayer>>,
    /// The LANE servers of this host, by ELAN.
    elans: Vec<Elan>,
    ip: Ip,
    ip_deadline: Option<Instant>,
    /// An Ethernet segment behind the first interface.
    segment: Option<Segment>,
    meter: Meter,
    mpoa: bool,
    /// When MPOA turns itself on; `None` if it does not.
    mpoa_start: Option<Instant>,
    touched: VecDeque<Part>,
    /// Queries of the MPS for the owner of a MAC address, by interface and address.
    owner_queries: BTreeMap<(usize, MacAddr), Vec<u32>>,
    /// Attempts of its parts to join or to register.
    attempts: BTreeMap<Waits, Attempts>,
    /// SDUs that arrived on a label that no connection has.
    unknown_vc: u64,
    /// True if losses in this host are to be reported.
    books: bool,
    out: VecDeque<HostOutput>,
}

impl Host {
    /// A host with signalling and an IP side, but without services.
    #[must_use]
    pub fn new(name: impl Into<String>, signalling: Signalling, ip: Ip) -> Self {
        Self {
            name: name.into(),
            signalling,
            signalling_deadline: None,
            management: None,
            slots: Vec::new(),
            interfaces: Vec::new(),
            mpc: None,
            mps: None,
            nhc: None,
            sockets: None,
            elans: Vec::new(),
            ip,
            ip_deadline: None,
            segment: None,
            meter: Meter::default(),
            mpoa: false,
            mpoa_start: None,
            touched: VecDeque::new(),
            owner_queries: BTreeMap::new(),
            attempts: BTreeMap::new(),
            unknown_vc: 0,
            books: false,
            out: VecDeque::new(),
        }
    }
    /// The machine in a slot; `None` while it has crashed.
    fn machine<M: Serves>(&self, at: Typed<M>) -> Option<&M> {
        self.running(at.slot())
    }
    /// The machine in the slot with this number, if an `M` runs there.
    fn running<M: Serves>(&self, slot: usize) -> Option<&M> {
        M::of(self.slots.get(slot)?.service.as_ref()?)
    }
    /// The slot with this number, if an `M` runs there.
    fn typed<M: Serves>(&self, slot: usize) -> Option<Typed<M>> {
        self.running::<M>(slot).map(|_| Typed::new(slot))
    }
    fn machine_mut<M: Serves>(&mut self, at: Typed<M>) -> Option<&mut M> {
        M::of_mut(self.slots.get_mut(at.slot())?.service.as_mut()?)
    }
    /// Makes MPOA turn itself on at this time.
    pub fn start_mpoa_at(&mut self, at: Instant) {
        self.mpoa_start = Some(at);
    }
    /// Declares which packets are measured at this host.
    pub fn measure(&mut self, meter: Meter) {
        self.meter = meter;
    }
    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The IP side.
    #[must_use]
    pub fn ip(&self) -> &Ip {
        &self.ip
    }
    /// The ATM sockets of its programs; `None` if it has none, or while they do not run.
    #[must_use]
    pub fn sockets(&self) -> Option<&SocketLayer> {
        self.machine(self.sockets?)
    }
    /// Its LANE interfaces, by N of `lecN`.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.iter()
    }
    /// How often the ATM sockets have started; `None` while they do not run.
    #[must_use]
    pub fn sockets_life(&self) -> Option<u32> {
        let at = self.sockets.filter(|at| self.machine(*at).is_some())?;
        Some(self.slots.get(at.slot())?.starts)
    }
    /// The ATM sockets, to ask whether a PDU may be written.
    pub fn sockets_mut(&mut self) -> Option<&mut SocketLayer> {
        self.machine_mut(self.sockets?)
    }
    /// The IP address of the Classical IP member on interface `itf`, and the ATM address that the ATMARP server has for
    /// it if it is another one.
    #[must_use]
    pub fn other_owner(&self, itf: usize) -> Option<(Ipv4Addr, AtmAddress)> {
        let clip = self.clip_of(itf)?;
        Some((clip.config().ip, clip.other_owner()?))
    }
    /// Signalling: calls, listeners, counters.
    #[must_use]
    pub const fn signalling(&self) -> &Signalling {
        &self.signalling
    }
    /// Traffic of each interface by path.
    pub fn interface_counters(&self) -> impl Iterator<Item = &InterfaceCounters> {
        self.interfaces.iter().map(|itf| &itf.counters)
    }

    /// Applies one input.
    pub fn handle_input(&mut self, input: HostInput<'_>, now: Instant) {
        match input {
            HostInput::Start => self.start(now),
            HostInput::Sdu { vc, sdu } => self.receive_sdu(vc, sdu, now),
            HostInput::Frame { itf, frame } => self.send_own(itf, frame, now),
            HostInput::SuperFrame { itf, frame } => self.send_super(itf, frame, now),
            HostInput::Command(command) => self.command(command, now),
            HostInput::Program(input) => {
                self.tell_sockets(input, now);
            }
            HostInput::Managed(errand) => {
                self.tell_signalling(signalling::Input::Managed(errand), now);
            }
            HostInput::Called(on) => {
                self.ip.called(on, now);
                self.touch(Part::Ip);
            }
            HostInput::Daemon(role, event) => self.tell_seats(role, event, now),
        }
        self.settle(now);
    }

    /// The link went down, or came up again: signalling need not wait for its timers.
    pub fn line(&mut self, up: bool, now: Instant) {
        let input = if up {
            signalling::Input::Start
        } else {
            signalling::Input::LinkDown
        };
        self.tell_signalling(input, now);
        self.manage_link(up, now);
        self.settle(now);
    }

    /// Handles all timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.mpoa_start) {
            self.mpoa_start = None;
            self.set_mpoa(true, now);
        }
        if due(self.signalling_deadline) {
            self.signalling.handle_timeout(now);
            self.touch(Part::Signalling);
        }
        if due(self.management_deadline()) {
            self.manage_timeout(now);
        }
        if due(self.ip_deadline) {
            self.ip.handle_timeout(now);
            self.touch(Part::Ip);
        }
        if due(self.segment_deadline()) {
            self.segment_timeout(now);
        }
        for slot in 0..self.slots.len() {
            if due(self.slots[slot].deadline) {
                if let Some(service) = &mut self.slots[slot].service {
                    service.handle_timeout(now);
                }
                self.touch(Part::Slot(slot));
            }
        }
        self.settle(now);
    }

    /// The next effect, in order.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<HostOutput> {
        self.out.pop_front()
    }

    /// When [`Self::handle_timeout`] must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = [
            self.signalling_deadline,
            self.management_deadline(),
            self.segment_deadline(),
            self.ip_deadline,
            self.mpoa_start,
        ];
        self.slots
            .iter()
            .map(|slot| slot.deadline)
            .chain(own)
            .flatten()
            .min()
    }

    fn touch(&mut self, part: Part) {
        if !self.touched.contains(&part) {
            self.touched.push_back(part);
        }
    }

    /// Serves marked machines until no machine is marked.
    fn settle(&mut self, now: Instant) {
        // The bound is for two machines that feed each other for ever. That is a bug, and a report is better than
        // silence.
        let mut rounds = 0_u32;
        while let Some(part) = self.touched.pop_front() {
            rounds += 1;
            assert!(
                rounds < 1_000_000,
                "{}: machines feed each other without end",
                self.name
            );
            match part {
                Part::Slot(slot) => self.drain_slot(slot, now),
                Part::Signalling => self.drain_signalling(now),
                Part::Ip => self.drain_ip(now),
                Part::Segment => self.drain_segment(now),
            }
        }
        self.tell_joined();
    }

    fn management_deadline(&self) -> Option<Instant> {
        self.management.as_ref()?.deadline
    }

    fn start(&mut self, now: Instant) {
        self.tell_signalling(signalling::Input::Start, now);
        self.manage_link(true, now);
        for slot in 0..self.slots.len() {
            if !matches!(self.slots[slot].kind, ServiceKind::Mpc | ServiceKind::Mps) {
                self.start_slot(slot, now);
            }
        }
        self.ip.handle_timeout(now);
        self.touch(Part::Ip);
        if self.mpoa_start.is_some_and(|at| at <= now) {
            self.mpoa_start = None;
            self.set_mpoa(true, now);
        }
    }

    fn command(&mut self, command: HostCommand, now: Instant) {
        match command {
            HostCommand::App(app) => {
                let refused = self.ip.app(app, now).err();
                if let Some(refused) = refused {
                    self.trace(Trace::milestone("host.app.refused", refused.to_string()));
                }
                self.touch(Part::Ip);
            }
            HostCommand::SegmentApp(host, app) => {
                let refused = self.segment_app(host, app, now).err();
                if let Some(refused) = refused {
                    self.trace(Trace::milestone("host.app.refused", refused.to_string()));
                }
            }
            HostCommand::Routes(routes) => {
                let refused = match self.ip.stack_mut() {
                    Some(stack) => stack.set_routes(&routes).err(),
                    None => self.tell_router(RouterInput::Routes(&routes), now),
                };
                if let Some(refused) = refused {
                    self.trace(Trace::milestone("host.routes.refused", refused.to_string()));
                }
            }
            HostCommand::NextHops(itf, hops) => self.tell_clip(itf, ClipInput::NextHops(hops), now),
            HostCommand::NextHopsWrong(itf) => self.tell_clip(itf, ClipInput::NextHopsWrong, now),
            HostCommand::Contract(vc, qos) => {
                self.tell_signalling(signalling::Input::Contract(vc, qos), now);
            }
            HostCommand::AskAgain => self.ask_again(now),
            HostCommand::Mpoa(on) => self.set_mpoa(on, now),
            HostCommand::ShortcutQos(filter, qos) => {
                self.tell_mpc(mpc::Input::SetQos { filter, qos }, now);
            }
            HostCommand::Crash(kind) => self.for_each_of(kind, now, Self::crash_slot),
            HostCommand::Restart(kind) => self.for_each_of(kind, now, |host, slot, now| {
                host.make_anew(slot, now);
                let wanted = !matches!(kind, ServiceKind::Mpc | ServiceKind::Mps) || host.mpoa;
                if wanted {
                    host.start_slot(slot, now);
                }
            }),
        }
    }

    fn for_each_of(
        &mut self,
        kind: ServiceKind,
        now: Instant,
        mut act: impl FnMut(&mut Self, usize, Instant),
    ) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].kind == kind && !self.slots[slot].retired {
                act(self, slot, now);
            }
        }
    }

    /// Replaces a service by a new one that has only its configuration. The new service does not run yet.
    fn make_anew(&mut self, slot: usize, now: Instant) {
        self.crash_slot(slot, now);
        let made = (self.slots[slot].factory)(self.slots[slot].starts);
        self.slots[slot].service = Some(made);
        self.slots[slot].starts += 1;
    }

    fn crash_slot(&mut self, slot: usize, now: Instant) {
        self.collect_discards(slot);
        self.lose_held(slot);
        self.lose_reached(slot);
        if self.slots[slot].service.take().is_none() {
            return;
        }
        self.slots[slot].deadline = None;
        if core::mem::take(&mut self.slots[slot].user) {
            self.tell_signalling(signalling::Input::DropUser(outputs::user_of(slot)), now);
        }
        self.forget_members(slot, now);
        if let Some(itf) = self.interface_of(slot) {
            self.interface_down(itf, now);
        }
        self.resolver_died(slot, now);
    }

    /// Reports that a part of the host has refused an input.
    fn refused(&mut self, part: impl core::fmt::Display, refused: Refused) {
        self.trace(Trace::detail("host.refused", format!("{part}: {refused}")));
    }

    /// Passes an event to the driver.
    fn report(&mut self, event: HostEvent) {
        self.out.push_back(HostOutput::Event(event));
    }

    fn trace(&mut self, trace: Trace) {
        self.report(HostEvent::Trace(trace));
    }

    /// The interface of the client in a slot.
    fn interface_of(&self, slot: usize) -> Option<usize> {
        let mut all = self.interfaces.iter();
        all.position(|itf| itf.client.slot() == slot)
    }
}
