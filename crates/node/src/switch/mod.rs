//! A switch: the control plane of all its ports, and the fabric that it programs.
//!
//! **Purpose.** Joins half-calls. A SETUP that comes in at one port goes out at the port that the route
//! names; when the called side accepts, the fabric gets the connection; when either side releases, both
//! halves and everything they hold are freed.
//!
//! **Objects and owners.** A [`Switch`] owns its [`Fabric`], its routes, one
//! [`Interface`](crate::interface::Interface) per port, the *calls* and their *legs*. A leg is one half-call at one port: it holds a label and a reservation until the
//! interface reports it gone. A call has a root leg (where the SETUP came from) and one branch leg, or several
//! if it is point-to-multipoint. A branch to another switch carries any number of parties (ADD PARTY), a
//! branch to a host carries one, as many hosts do not know ADD PARTY. The fabric copies once per branch.
//!
//! **States.** Of a leg: its half-call's, in the interface; here only whether it is joined to a call, and for
//! a branch whether it is connected. A leg without a call waits for the end of its release.
//!
//! **Timers.** [`PortConfig::patience`]: how long calls wait for a port. All others are those of the interfaces, which clear
//! what peers forget.
//!
//! **Start and restart.** Each interface is restarted as its link comes up without calls, so peers forget the
//! calls of an earlier life of the switch.
//!
//! **Calls that wait** (`held.rs`). Before a call can be offered, the signalling link has to be established (Q.2931 §5.1); a
//! host's manager waits for its own link in the same way. So a call whose port has a line, but no signalling yet, is answered with
//! CALL PROCEEDING and waits; the caller's T310 bounds that, and so does the port's patience. A call to a port whose
//! signalling was up and is lost is refused at once: cause 27 (destination out of order) towards a host, cause 38 (network
//! out of order) towards another switch.
//!
//! **Failures.** A dead line ends all calls of its port at once, and they are released towards their other sides with cause 27, which
//! is what the end of T309 means, too (see [`crate::interface`]). Each port towards another switch says whether it can be used
//! ([`Output::Usable`]); the routes that follow come from outside, so that no alternate makes a loop.
//!
//! **Management** (`management.rs`). A port may have an ILMI entity. Addresses that its host registers there are routes to
//! the port; the version that both ends speak becomes the version of its signalling.
//!
//! **Admission.** Each leg reserves at its port, for both directions, what its traffic contract guarantees
//! (`port.rs`); cause 37 if that is more than [`PortConfig::admit`] allows. Both ends of a link do so. A caller may name an
//! alternative or the least that it would take (`admission.rs`): what fits goes on, and what the answer names in the end
//! is what all legs reserve, police and shape.
//!
//! **Standards.** Q.2931 and Q.2971 at the ports (see `aerostat_proto::uni`); between switches the same with
//! static routes, as IISP (ATM Forum af-pnni-0026) does: one end plays the user side.
//!
//! **What passes** (`relay.rs`). The elements of a call's messages go out on its other legs, as far as their versions have
//! them; so do NOTIFY, and elements that nobody defined, if their pass-along indicator asks for it. Where such an
//! element cannot go on, its sender's explicit action is taken: the call refused, a STATUS, or nothing.
//!
//! **Bounds.** A port has a number of calls, and of calls from it that nobody has answered ([`PortConfig::max_pending`]); beyond
//! them cause 47. So a host that calls and calls fills neither its own port nor that of whom it calls.
//!
//! **Permanent connections** (`permanent.rs`), of channels or of whole paths, are set up by management beside the calls and
//! share their labels and bandwidth; whoever configures the switch sets them up again after its restart.
//!
//! **Not implemented.** Crankback, virtual paths by signalling.
//!
//! **Calling numbers** go on with the finding of the port: *user provided, verified and passed*, or *network provided* if the
//! caller gave none. What comes over a trunk was screened by the switch that the caller is at.
//!
//! **Deviations.** A caller that names an address which is not registered at its port is refused
//! (cause 21) instead of being relabelled: nobody can call in another's name.

mod admission;
#[cfg(test)]
mod admission_tests;
#[cfg(test)]
mod bare;
mod calls;
#[cfg(test)]
mod flood_tests;
mod held;
#[cfg(test)]
mod held_tests;
mod inspect;
mod legs;
mod management;
mod multipoint;
pub mod permanent;
pub mod port;
mod relay;
#[cfg(test)]
mod relay_tests;
pub mod route;
#[cfg(test)]
mod screening_tests;
#[cfg(test)]
mod sequences;
mod tables;
#[cfg(test)]
pub(crate) mod testnet;
#[cfg(test)]
mod tests;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aerostat_proto::uni::{CallId, SetupInfo};
use aerostat_proto::{Cause, Deadlines, Instant, Machine, PartyId, Refused, Trace};
use aerostat_wire::{AtmAddress, ServiceCategory, TrafficParams, Vc};

use crate::atm::fabric::{Fabric, PortVc, Switched};
use crate::atm::{CellRun, Pdu, RunReassembler};
use crate::interface;
pub use held::MAX_HELD;
pub use inspect::{CallInfo, LegInfo, PortInfo};
pub use permanent::{Permanent, PermanentError, PermanentInfo};
pub use port::{PortConfig, PortKind};
pub use route::{RouteSelect, StaticRoutes, Way};

use port::{Port, Reservation};

/// Number of a port of one switch, from 0; the fabric's number too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNo(pub u16);

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Number of a call through one switch; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchCallId(pub u64);

/// One half-call: the port, and its id there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LegKey {
    port: PortNo,
    call: CallId,
}

/// What a half-call holds.
#[derive(Debug)]
struct Leg {
    /// The call that it is part of; `None` while it is only being released.
    call: Option<SwitchCallId>,
    /// Its label, once known; marked as used at the port.
    vc: Option<Vc>,
    reserved: Reservation,
}

/// A leg towards a called party, or towards several.
#[derive(Debug, Default)]
struct Branch {
    connected: bool,
    /// By the id of this leg: the root's id.
    parties: BTreeMap<PartyId, PartyId>,
    /// Parties that wait until the leg is connected: the id of this leg and their offer.
    waiting: VecDeque<(PartyId, SetupInfo)>,
    next_party: u16,
}

/// Where a party stands towards the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartyLeg {
    branch: LegKey,
    /// Its id on the branch.
    party: PartyId,
    /// The root has been told that it is there.
    active: bool,
}

#[derive(Debug)]
struct Call {
    root: LegKey,
    /// The offer as it went out.
    info: SetupInfo,
    /// The caller left a choice and is told what was taken.
    negotiable: bool,
    /// CONNECT was sent to the caller.
    accepted: bool,
    /// The fabric has a connection from the root.
    open: bool,
    branches: BTreeMap<LegKey, Branch>,
    /// By the root's id; empty if the call is not point-to-multipoint.
    parties: BTreeMap<PartyId, PartyLeg>,
}

/// What goes into [`Switch`].
#[derive(Clone, Debug)]
pub enum Input {
    /// Bring all links up.
    Start,
    /// Cells from the link of a port.
    Cells(PortNo, CellRun),
    /// The line of a port is dead, or alive again.
    Link(PortNo, bool),
    /// The switch is about to stop: release all calls, cause 38 (network out of order).
    Clear,
    /// The routes were changed through [`Switch::routes_mut`]: calls that wait are tried again.
    Rerouted,
}

/// What comes out of [`Switch`]. Cells do not: they wait at [`Fabric::output_mut`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Cells were queued at this port: look at its next departure again.
    Touched(PortNo),
    /// Calls can go out at this port towards another switch, or not any more. Whoever gives the switches their routes has to
    /// reckon them anew if that is news.
    Usable(PortNo, bool),
    /// For the story.
    Trace(Trace),
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that came in.
    pub offered: u64,
    /// Calls that were connected.
    pub connected: u64,
    /// Calls refused here, for whatever cause.
    pub refused: u64,
    /// Leaves refused here, for whatever cause.
    pub parties_refused: u64,
    /// NOTIFY messages handed on, one for each leg that got it.
    pub notifications: u64,
    /// NOTIFY messages for legs that could not take them.
    pub notifications_dropped: u64,
    /// SDUs of the switch's own channels that did not survive their way through cells.
    pub bad_sdus: u64,
    /// SDUs of its own for which a port had no buffer.
    pub not_sent: u64,
}

/// A switch. `R` finds routes.
#[derive(Debug)]
pub struct Switch<R = StaticRoutes> {
    fabric: Fabric,
    routes: R,
    ports: Vec<Port>,
    /// By port: of the signalling channel and of the management channel.
    receivers: Vec<[RunReassembler; 2]>,
    calls: BTreeMap<SwitchCallId, Call>,
    legs: BTreeMap<LegKey, Leg>,
    /// Calls and parties that wait until signalling towards them is up, oldest first.
    held: VecDeque<held::Held>,
    max_held: usize,
    permanent: Vec<Permanent>,
    /// Permanent connections, or the lines that they use, have changed, and ILMI does not know yet.
    unmanaged: bool,
    /// Ports whose interface may have output.
    busy: BTreeSet<PortNo>,
    /// When something is due at a port, and the ports where that may have changed.
    deadlines: Deadlines<PortNo>,
    changed: BTreeSet<PortNo>,
    next_call: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// The contract of a signalling channel inside the switch: before best effort, behind CBR.
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
            max_held: MAX_HELD,
            permanent: Vec::new(),
            unmanaged: true,
            busy: BTreeSet::new(),
            deadlines: Deadlines::default(),
            changed: BTreeSet::new(),
            next_call: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }
    /// Adds a port with its signalling channel.
    pub fn add_port(&mut self, config: PortConfig) -> PortNo {
        let port = self.fabric.add_port(config.rate, config.buffers);
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
    /// How many ports it has.
    #[must_use]
    pub const fn port_count(&self) -> usize {
        self.ports.len()
    }
    /// Registers an address of the host at `port`: calls to it go there, calls from it may come from there.
    pub fn register(&mut self, port: PortNo, address: AtmAddress) {
        self.routes.register(address, port);
        if let Some(port) = self.port_mut(port)
            && !port.addresses.contains(&address)
        {
            port.addresses.push(address);
        }
    }
    /// Takes a registration back. Calls that exist stay.
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
    /// The routes, to change them. Calls that exist stay.
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
    /// What has happened so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
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

    /// Feeds the interface of a port.
    fn feed(
        &mut self,
        port: PortNo,
        input: interface::Input<'_>,
        now: Instant,
    ) -> Result<(), Refused> {
        self.busy.insert(port);
        self.changed.insert(port);
        match self.port_mut(port) {
            Some(port) => port.interface.handle_input(input, now),
            None => Err(Refused("no such port")),
        }
    }

    fn cells(&mut self, port: PortNo, run: CellRun, now: Instant) {
        let outputs = &mut self.outputs;
        let touched = |port| outputs.push_back(Output::Touched(PortNo(port)));
        let switched = self.fabric.receive(port.0, run, now, touched);
        let Switched::Local(run) = switched else {
            return;
        };
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
            Some(Ok(received)) => {
                let sdu = received.pdu.sdu();
                let done = self.feed(port, interface::Input::Lower(sdu), now);
                debug_assert!(done.is_ok(), "only requests are refused");
            }
        }
    }

    fn link(&mut self, port: PortNo, up: bool, now: Instant) -> Result<(), Refused> {
        self.fabric.set_link(port.0, up);
        for receiver in self
            .receivers
            .get_mut(usize::from(port.0))
            .into_iter()
            .flatten()
        {
            receiver.reset();
        }
        self.unmanaged = true;
        self.manage_link(port, up, now);
        if up {
            self.start_signalling(port, now)
        } else {
            self.stop_waiting(port);
            self.tell_usable(port, false);
            let done = self.feed(port, interface::Input::LinkDown, now);
            self.try_held(now);
            done
        }
    }

    /// Starts signalling at a port, unless it is to be found out first what is at its other end.
    fn start_signalling(&mut self, port: PortNo, now: Instant) -> Result<(), Refused> {
        self.await_signalling(port, now);
        if self.port(port).is_some_and(Port::waits_for_ilmi) {
            return Ok(());
        }
        self.feed(port, interface::Input::Start, now)
    }

    /// Sends an SDU of the switch's own on one of its channels.
    fn transmit(&mut self, port: PortNo, vc: Vc, sdu: Vec<u8>, now: Instant) {
        let channel = PortVc::new(port.0, vc);
        let admission = self.fabric.send_local(channel, Pdu::new(sdu), now);
        if admission.is_some_and(|admission| admission.dropped == 0) {
            self.outputs.push_back(Output::Touched(port));
        } else {
            self.counters.not_sent += 1;
        }
    }

    /// After each step: when something is due at the ports that it concerned.
    fn reckon(&mut self) {
        for number in core::mem::take(&mut self.changed) {
            let at = self.port(number).and_then(Port::deadline);
            self.deadlines.set(number, at);
        }
    }

    /// Moves on what the interfaces put out, until all are quiet.
    fn drain(&mut self, now: Instant) {
        while let Some(&port) = self.busy.first() {
            let output = self
                .port_mut(port)
                .and_then(|port| port.interface.poll_output());
            match output {
                None => {
                    self.busy.remove(&port);
                    self.changed.insert(port);
                }
                Some(interface::Output::Lower(sdu)) => {
                    self.transmit(port, Vc::SIGNALLING, sdu, now);
                }
                Some(interface::Output::Indication(indication)) => {
                    self.indication(port, indication, now);
                }
                Some(interface::Output::Trace(trace)) => {
                    self.trace(trace.with("port", port));
                }
            }
        }
    }
}

impl<R: RouteSelect> Machine for Switch<R> {
    type Input<'a> = Input;
    type Output = Output;

    fn handle_input(&mut self, input: Input, now: Instant) -> Result<(), Refused> {
        let done = match input {
            Input::Start => (0..self.ports.len() as u16)
                .map(PortNo)
                .try_for_each(|port| {
                    self.manage_link(port, true, now);
                    self.start_signalling(port, now)
                }),
            Input::Cells(port, run) => {
                self.cells(port, run, now);
                Ok(())
            }
            Input::Link(port, up) => self.link(port, up, now),
            Input::Clear => {
                let calls: Vec<SwitchCallId> = self.calls.keys().copied().collect();
                for call in calls {
                    self.end_call(call, Cause::NETWORK_OUT_OF_ORDER.into(), None, now);
                }
                self.refuse_held(now);
                Ok(())
            }
            Input::Rerouted => {
                self.try_held(now);
                Ok(())
            }
        };
        self.drain(now);
        self.reckon();
        done
    }

    fn handle_timeout(&mut self, now: Instant) {
        let due = self.deadlines.due(now);
        for number in &due {
            let Some(port) = self.port_mut(*number) else {
                continue;
            };
            if port.interface.poll_timeout().is_some_and(|at| at <= now) {
                port.interface.handle_timeout(now);
                self.busy.insert(*number);
            }
        }
        self.changed.extend(&due);
        self.manage_timeouts(&due, now);
        self.waited(&due, now);
        self.drain(now);
        self.reckon();
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }
}
