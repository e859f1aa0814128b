//! A switch: the control plane of all its ports, and the fabric that it controls.
//!
//! **Purpose.** Joins half-calls. A SETUP that comes in at one port goes out at the port that the route names. When the
//! called side accepts, the connection is opened in the fabric. When either side releases, both halves and all their
//! resources are freed.
//!
//! **Objects and owners.** A [`Switch`] owns its [`Fabric`], its routes, one
//! [`Interface`](aerostat_proto::interface::Interface) per port, the *calls* and their *legs*. A leg is one
//! half-call at one port. It holds a label and a reservation until
//! the interface reports the end of the half-call. A call has a root leg (where the SETUP came in) and one branch leg,
//! or several if it is point-to-multipoint. A branch to another switch carries any number of parties (ADD PARTY). A
//! branch to a host carries one party, because many hosts do not support ADD PARTY. The fabric makes one copy per
//! branch.
//!
//! **States** of a leg: the state of its half-call is in the interface. Here it is only known whether the leg belongs
//! to a call and, for a branch, whether it is connected. A leg without a call waits for the end of its release.
//!
//! **Timers.** [`PortConfig::patience`] limits how long calls wait for a port. All other timers are those of the
//! interfaces, which clear calls that peers forget.
//!
//! **Start and restart.** Each interface is restarted when its link comes up without calls, so that peers forget calls
//! from before a restart of the switch.
//!
//! **Calls that wait** (`held.rs`). Before a call can be offered, the signalling link has to be established (Q.2931
//! §5.1); a host's manager waits for its own link in the same way. So a call to a port that has a line, but no
//! signalling yet, is answered with CALL PROCEEDING and waits. The caller's T310 and the port's patience limit that
//! time. A call to a port whose signalling was up and is lost is refused at once: with cause 27 (destination out of
//! order) towards a host, with cause 38 (network out of order) towards another switch.
//!
//! **Failures.** A dead line ends all calls of its port at once. They are released towards their other sides with cause
//! 27, as after T309 (see [`aerostat_proto::interface`]). Each port towards another switch reports whether it can be
//! used ([`Output::Usable`]). The routes that follow from that are computed outside the switch, so that no alternative
//! route makes a loop.
//!
//! **Management** (`management.rs`). A port may have an ILMI channel, whose control half is a daemon, in this process
//! or in a process of its own for all ports. Addresses that its host registers become routes to the port, and the
//! version that both ends agree on becomes the version of its signalling. Both stay while there is no daemon.
//!
//! **Admission.** Each leg reserves at its port, for both directions, what its traffic contract guarantees (`port.rs`);
//! the cause is 37 if that exceeds [`PortConfig::admit`]. Both ends of a link do so. A caller may give an alternative
//! or a minimum (`admission.rs`): the offer for which there is room is forwarded, and the traffic of the final answer
//! is what all legs reserve, police and shape.
//!
//! **Time** (`manager.rs`). Messages cost no time, unless the switch has a manager that takes some.
//!
//! **Standards.** Q.2931 and Q.2971 at the ports (see `aerostat_proto::uni`). Between switches the same protocols are
//! used with static routes, as in IISP (ATM Forum af-pnni-0026): one end has the user side.
//!
//! **Relaying** (`relay.rs`). The elements of a call's messages are forwarded on its other legs, as far as the versions
//! of these support them. So are NOTIFY, and undefined elements whose pass-along indicator is set. If such an element
//! cannot be forwarded, its sender's explicit action is taken: the call is refused, a STATUS is sent, or nothing
//! happens.
//!
//! **Bounds.** A port has a limit of calls, and of unanswered calls from it ([`PortConfig::max_pending`]); further
//! calls are refused with cause 47. So a host that keeps calling fills neither its own port nor the port of the called
//! host.
//!
//! **Permanent connections** (`permanent.rs`), of channels or of whole paths, are set up by management. They share
//! labels and bandwidth with calls. The owner of the switch sets them up again after a restart.
//!
//! **Crankback** (`crankback.rs`). A call that is refused further on for lack of room takes another of the shortest
//! ways.
//!
//! **Not implemented.** Longer ways for calls, virtual paths by signalling.
//!
//! **Calling numbers** are forwarded with the result of the port's check: *user provided, verified and passed*, or
//! *network provided* if the caller gave no number. The number of a call from a trunk was screened by the caller's
//! switch.
//!
//! **Deviations.** A call with a calling address that is not registered at its port is refused (cause 21) instead of
//! being relabelled: no host can call with the address of another host.

mod admission;
mod calls;
pub mod crankback;
mod held;
mod inspect;
mod legs;
mod management;
mod manager;
mod multipoint;
pub mod permanent;
pub mod port;
mod queue_tables;
mod queues;
mod rates;
mod relay;
pub mod route;
mod tables;

use core::cmp::Ordering;
use core::convert::Infallible;
use core::fmt;
use litemap::LiteMap;
use std::collections::{BTreeMap, VecDeque};

use aerostat_proto::split::{ProcessEvent, Role};
use aerostat_proto::uni::{CallId, SetupInfo};
use aerostat_proto::{Cause, Deadlines, Instant, Machine, PartyId, Refused, Trace, Value};
use aerostat_wire::{AtmAddress, ServiceCategory, TrafficParams, Vc};

use crate::atm::fabric::{Fabric, PortVc, Switched};
use crate::atm::{CellRate, CellRun, Pdu, RunReassembler};
use crate::daemon_message::DaemonMessage;
use aerostat_proto::interface;
pub use held::MAX_HELD;
pub use inspect::{CallInfo, LegInfo, PortInfo};
pub use permanent::{Permanent, PermanentError, PermanentInfo};
pub use port::{PortConfig, PortKind, PortParams, PortRanges, Reservation, guaranteed};
pub use queues::{CallQueues, ConnectionQueue, ConnectionRanges, QueueParams, QueueRanges};
pub use route::{Plan, RouteSelect, StaticRoutes, Way};

use crankback::Tries;
use port::Port;

/// Number of a port of one switch, from 0; the fabric uses the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNo(pub u16);

impl From<PortNo> for Value {
    fn from(port: PortNo) -> Self {
        port.0.into()
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Number of a call through one switch; a number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchCallId(pub u64);

/// One half-call: the port, and the call's id there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LegKey {
    port: PortNo,
    call: CallId,
}

impl LegKey {
    const fn number(self) -> u64 {
        (self.port.0 as u64) << 32 | self.call.0 as u64
    }
}

impl PartialOrd for LegKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LegKey {
    /// By port, then by call, in one comparison: each message looks for legs.
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

/// The resources of a half-call.
#[derive(Debug)]
struct Leg {
    /// The call of the leg; `None` while the leg is only being released.
    call: Option<SwitchCallId>,
    /// Its label, once known. The port marks the label as used.
    vc: Option<Vc>,
    reserved: Reservation,
}

/// A leg towards a called party, or towards several.
#[derive(Debug, Default)]
struct Branch {
    connected: bool,
    /// The ids of parties on this leg, each with the root's id.
    parties: BTreeMap<PartyId, PartyId>,
    /// Parties that wait until the leg is connected: their id on this leg and their offer.
    waiting: VecDeque<(PartyId, SetupInfo)>,
    next_party: u16,
}

/// State of a party towards the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartyLeg {
    branch: LegKey,
    /// Its id on the branch.
    party: PartyId,
    /// True if the root has been told that the party was added.
    active: bool,
}

#[derive(Debug)]
struct Call {
    root: LegKey,
    /// The forwarded offer; once a call without a choice is accepted, without its elements.
    info: SetupInfo,
    /// True if the caller left a choice and is told what was chosen.
    negotiable: bool,
    /// True if CONNECT was sent to the caller.
    accepted: bool,
    /// True if the fabric has a connection from the root.
    open: bool,
    branches: LiteMap<LegKey, Branch>,
    /// Parties by the root's id; empty if the call is not point-to-multipoint.
    parties: BTreeMap<PartyId, PartyLeg>,
    /// Its offer, until it is answered; afterwards only of a call that was moved.
    tries: Option<Box<Tries>>,
    /// Offers of leaves that are not answered, by the root's id.
    joining: BTreeMap<PartyId, Tries>,
}

/// Inputs of a [`Switch`].
#[derive(Clone, Debug)]
pub enum Input {
    /// Start all links.
    Start,
    /// Cells from the link of a port.
    Cells(PortNo, CellRun),
    /// The line of a port went down or came up.
    Link(PortNo, bool),
    /// The line of a port has other rates: towards the other end, and from there.
    Rates(PortNo, [CellRate; 2]),
    /// The switch is about to stop: release all calls, cause 38 (network out of order).
    Clear,
    /// The routes were changed through [`Switch::routes_mut`]: calls that wait are tried again.
    Rerouted,
    /// From or about the process of the daemons of this role.
    Daemon(Role, ProcessEvent<DaemonMessage>),
}

/// Outputs of a [`Switch`]. Cells are not outputs: they wait at [`Fabric::output_mut`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Cells were queued at this port, so its next departure may have changed.
    Touched(PortNo),
    /// Calls can go out at a port, or can no longer. On a change of a trunk the owner of the switches has to compute
    /// their routes again.
    Usable {
        /// The port.
        port: PortNo,
        /// True if there is a switch behind it.
        trunk: bool,
        /// True if calls can go out.
        usable: bool,
    },
    /// A frame for a daemon of this switch that is a process of its own: an encoded message of its role.
    Daemon(Role, Vec<u8>),
    /// A trace event.
    Trace(Trace),
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls received.
    pub offered: u64,
    /// Calls that were connected.
    pub connected: u64,
    /// Calls refused here, for any cause.
    pub refused: u64,
    /// Calls and leaves that took another way, once each time ([`crankback`]).
    pub moved: u64,
    /// Leaves refused here, for any cause.
    pub parties_refused: u64,
    /// NOTIFY messages forwarded; each leg that gets a message counts.
    pub notifications: u64,
    /// NOTIFY messages for legs that could not take them.
    pub notifications_dropped: u64,
    /// SDUs of the switch's own channels that failed reassembly.
    pub bad_sdus: u64,
    /// SDUs of the switch that a port had no buffer for.
    pub not_sent: u64,
}

/// A switch. `R` selects routes.
#[derive(Debug)]
pub struct Switch<R = StaticRoutes> {
    fabric: Fabric,
    routes: R,
    ports: Vec<Port>,
    /// For each port, the receivers of the signalling channel and of the management channel.
    receivers: Vec<[RunReassembler; 2]>,
    /// A box for each call: a node of the table has room for eleven, and most nodes are half full.
    calls: BTreeMap<SwitchCallId, Box<Call>>,
    legs: BTreeMap<LegKey, Leg>,
    /// Calls and parties that wait for signalling towards their destination, oldest first.
    held: VecDeque<held::Held>,
    /// Searches for a rate that have found no way.
    searches: crankback::Searches,
    max_held: usize,
    permanent: Vec<Permanent>,
    /// True if permanent connections, or their lines, have changed and ILMI has not been told yet.
    unmanaged: bool,
    /// Ports whose interface may have output.
    busy: LiteMap<PortNo, ()>,
    /// When timers of the ports are due, and the ports for which that may have changed.
    deadlines: Deadlines<PortNo>,
    changed: LiteMap<PortNo, ()>,
    next_call: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
    /// `None` if messages cost no time.
    manager: Option<Box<manager::Manager>>,
}

/// The contract of a signalling channel inside the switch: served before best effort and after CBR.
const SIGNALLING: TrafficParams = TrafficParams {
    category: Some(ServiceCategory::NrtVbr),
    ..TrafficParams::ubr(SIGNALLING_SDU)
};
/// Largest SDU of a signalling channel: 4096 octets, pad and trailer of SSCOP.
const SIGNALLING_SDU: u16 = 4104;

impl<R: RouteSelect> Switch<R> {
    /// A switch without ports; `location` is its loopback location id.
    #[must_use]
    pub fn new(location: [u8; 16], routes: R) -> Self {
        Self {
            fabric: Fabric::new(location),
            routes,
            ports: Vec::new(),
            receivers: Vec::new(),
            calls: BTreeMap::new(),
            legs: BTreeMap::new(),
            held: VecDeque::new(),
            searches: Default::default(),
            max_held: MAX_HELD,
            permanent: Vec::new(),
            unmanaged: true,
            busy: LiteMap::new(),
            deadlines: Deadlines::default(),
            changed: LiteMap::new(),
            next_call: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            manager: None,
        }
    }
    /// Adds a port with its signalling channel.
    pub fn add_port(&mut self, config: PortConfig) -> PortNo {
        let port = self.fabric.add_port(config.rate, config.buffers);
        if let Some(output) = self.fabric.output_mut(port) {
            output.set_discipline(config.discipline);
            for path in &config.paths {
                output.shape_path(*path);
            }
        }
        self.fabric.set_input_rate(port, config.input);
        if config.kind == PortKind::Trunk {
            self.fabric.inside(port);
        }
        let channel = PortVc::new(port, Vc::SIGNALLING);
        let opened = self.fabric.open_local(channel, SIGNALLING);
        debug_assert!(opened.is_ok(), "a new port has no labels in use");
        if config.ilmi.is_some() {
            let channel = PortVc::new(port, Vc::ILMI);
            let opened = self.fabric.open_local(channel, management::CHANNEL);
            debug_assert!(opened.is_ok(), "a new port has no labels in use");
        }
        self.ports.push(Port::new(config));
        let sizes = [SIGNALLING_SDU, management::SDU];
        self.receivers.push(sizes.map(RunReassembler::new));
        PortNo(port)
    }
    /// Number of ports.
    #[must_use]
    pub const fn port_count(&self) -> usize {
        self.ports.len()
    }
    /// The link of a port is removed, or is there again. A port without a link has no addresses, and is not shown.
    pub fn set_vacant(&mut self, port: PortNo, vacant: bool) {
        let Some(own) = self.port_mut(port) else {
            return;
        };
        own.vacant = vacant;
        if vacant {
            for address in core::mem::take(&mut own.addresses) {
                self.routes.unregister(address, port);
            }
        }
    }
    /// True if the link of a port was removed.
    #[must_use]
    pub fn is_vacant(&self, port: PortNo) -> bool {
        self.port(port).is_some_and(|port| port.vacant)
    }
    /// The ports that have links, with their numbers.
    fn occupied(&self) -> impl Iterator<Item = (usize, &Port)> {
        let all = self.ports.iter().enumerate();
        all.filter(|(_, port)| !port.vacant)
    }
    /// Registers an address of the host at `port`: calls to the address go there, and calls from there may use the
    /// address.
    pub fn register(&mut self, port: PortNo, address: AtmAddress) {
        self.routes.register(address, port);
        if let Some(port) = self.port_mut(port)
            && !port.addresses.contains(&address)
        {
            port.addresses.push(address);
        }
    }
    /// Removes a registration. Existing calls stay.
    pub fn unregister(&mut self, port: PortNo, address: AtmAddress) {
        self.routes.unregister(address, port);
        if let Some(port) = self.port_mut(port) {
            port.addresses.retain(|known| *known != address);
        }
    }
    /// The routes.
    #[must_use]
    pub const fn routes(&self) -> &R {
        &self.routes
    }
    /// The routes, for changes. Existing calls stay.
    pub const fn routes_mut(&mut self) -> &mut R {
        &mut self.routes
    }
    /// The fabric, for display.
    #[must_use]
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }
    /// The fabric, for the driver's departures.
    pub const fn fabric_mut(&mut self) -> &mut Fabric {
        &mut self.fabric
    }
    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The signalling link of a port.
    #[must_use]
    pub fn interface(&self, port: PortNo) -> Option<&interface::Interface> {
        Some(&self.port(port)?.interface)
    }

    fn port_mut(&mut self, port: PortNo) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(port.0))
    }
    fn port(&self, port: PortNo) -> Option<&Port> {
        self.ports.get(usize::from(port.0))
    }
    fn trace(&mut self, trace: Trace) {
        self.outputs.push_back(Output::Trace(trace));
    }

    /// Passes an input to the interface of a port.
    fn feed(
        &mut self,
        port: PortNo,
        input: interface::Input<'_>,
        now: Instant,
    ) -> Result<(), Refused> {
        self.busy.insert(port, ());
        self.changed.insert(port, ());
        match self.port_mut(port) {
            Some(port) => port.interface.handle_input(input, now),
            None => Err(Refused("no such port")),
        }
    }

    /// Passes an input that is no request to the interface of a port.
    fn tell(&mut self, port: PortNo, input: interface::Input<'_>, now: Instant) {
        if let Err(refused) = self.feed(port, input, now) {
            let text = format!("signalling: {refused}");
            self.trace(Trace::detail("switch.refused", text).with("port", port));
        }
    }

    fn cells(&mut self, port: PortNo, run: CellRun, now: Instant) {
        let outputs = &mut self.outputs;
        let touched = |port| outputs.push_back(Output::Touched(PortNo(port)));
        let switched = self.fabric.receive(port.0, run, now, touched);
        if let Switched::Local(run) = switched {
            run.singles()
                .for_each(|run| self.receive_own(port, run, now));
        }
    }

    /// Cells of one PDU for the switch itself.
    fn receive_own(&mut self, port: PortNo, run: CellRun, now: Instant) {
        let Some([signalling, management]) = self.receivers.get_mut(usize::from(port.0)) else {
            return;
        };
        let vc = run.vc;
        let receiver = if vc == Vc::ILMI {
            management
        } else {
            signalling
        };
        match receiver.push(run) {
            None => {}
            Some(Err(_)) => self.counters.bad_sdus += 1,
            Some(Ok(received)) if vc == Vc::ILMI => self.manage(port, received.pdu.sdu(), now),
            Some(Ok(received)) => self.signalled(port, received.pdu.sdu(), now),
        }
    }

    fn link(&mut self, port: PortNo, up: bool, now: Instant) {
        self.fabric.set_link(port.0, up);
        for receiver in self
            .receivers
            .get_mut(usize::from(port.0))
            .into_iter()
            .flatten()
        {
            receiver.reset();
        }
        // Without permanent connections there is nothing to tell, and many links may change at once.
        self.unmanaged |= !self.permanent.is_empty();
        self.manage_link(port, up, now);
        if up {
            self.start_signalling(port, now);
        } else {
            self.forget_messages(port);
            self.stop_waiting(port);
            self.tell_usable(port, false);
            self.tell(port, interface::Input::LinkDown, now);
            self.try_held(now);
        }
    }

    /// Starts signalling at a port, unless ILMI is to find out first what is at the other end.
    fn start_signalling(&mut self, port: PortNo, now: Instant) {
        self.await_signalling(port, now);
        if !self.port(port).is_some_and(Port::waits_for_ilmi) {
            self.tell(port, interface::Input::Start, now);
        }
    }

    /// Sends an SDU of the switch itself on one of its channels.
    fn transmit(&mut self, port: PortNo, vc: Vc, sdu: Vec<u8>, now: Instant) {
        let channel = PortVc::new(port.0, vc);
        let admission = self.fabric.send_local(channel, Pdu::new(sdu), now);
        if admission.is_some_and(|admission| admission.dropped == 0) {
            self.outputs.push_back(Output::Touched(port));
        } else {
            self.counters.not_sent += 1;
        }
    }

    /// After each step: updates the due times of the ports that the step concerned.
    fn reckon(&mut self) {
        for number in self.changed.keys().copied() {
            let port = self.ports.get(usize::from(number.0));
            self.deadlines.set(number, port.and_then(Port::deadline));
        }
        self.changed.clear();
    }

    /// Handles outputs of the interfaces, and what the manager is through with, until there is nothing to do at `now`.
    fn drain(&mut self, now: Instant) {
        self.drain_interfaces(now);
        while self.finish_one(now) {
            self.drain_interfaces(now);
        }
    }

    fn drain_interfaces(&mut self, now: Instant) {
        while let Some((&port, ())) = self.busy.first() {
            let output = self
                .port_mut(port)
                .and_then(|port| port.interface.poll_output());
            match output {
                None => {
                    self.busy.remove(&port);
                    self.changed.insert(port, ());
                }
                Some(interface::Output::Lower(sdu)) => self.signal(port, sdu, now),
                Some(interface::Output::Indication(indication)) => {
                    self.indication(port, indication, now);
                }
                Some(interface::Output::Trace(trace)) => {
                    self.trace(trace.with_value("port", port));
                }
            }
        }
    }
}

impl<R: RouteSelect> Machine for Switch<R> {
    type Input<'a> = Input;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input, now: Instant) -> Result<(), Infallible> {
        if self.next_through().is_some_and(|at| at <= now) {
            self.drain(now);
        }
        match input {
            Input::Start => {
                for port in (0..self.ports.len() as u16).map(PortNo) {
                    self.manage_link(port, true, now);
                    self.start_signalling(port, now);
                }
            }
            Input::Cells(port, run) => self.cells(port, run, now),
            Input::Link(port, up) => self.link(port, up, now),
            Input::Rates(port, rates) => self.set_rates(port, rates),
            Input::Clear => {
                let calls: Vec<SwitchCallId> = self.calls.keys().copied().collect();
                for call in calls {
                    self.end_call(call, Cause::NETWORK_OUT_OF_ORDER.into(), None, now);
                }
                self.refuse_held(now);
            }
            Input::Rerouted => self.try_held(now),
            Input::Daemon(role, event) => self.manage_daemon(role, event, now),
        }
        self.drain(now);
        self.reckon();
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        let due = self.deadlines.due(now);
        for number in &due {
            let Some(port) = self.port_mut(*number) else {
                continue;
            };
            if port.interface.poll_timeout().is_some_and(|at| at <= now) {
                port.interface.handle_timeout(now);
                self.busy.insert(*number, ());
            }
        }
        self.changed.extend(due.iter().map(|number| (*number, ())));
        self.manage_timeouts(&due, now);
        self.waited(&due, now);
        self.drain(now);
        self.reckon();
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let ports = self.deadlines.next();
        ports.into_iter().chain(self.next_through()).min()
    }
}
