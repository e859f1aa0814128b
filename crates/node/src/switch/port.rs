//! One port of the switch: its signalling interface, its labels, its bandwidth.

use aerostat_wire::counted;
use std::collections::{BTreeMap, BTreeSet};

use aerostat_proto::ilmi::{self, Channel};
use aerostat_proto::uni::{CallId, SetupInfo, Side, location};
use aerostat_proto::{Cause, Duration, Instant, Machine};
use aerostat_wire::q2931::Screening;
use aerostat_wire::{AtmAddress, Qos, ServiceCategory, TrafficParams, Vc};

use super::queues::CallQueues;
use crate::atm::{CellRate, Discipline, Limits, PathConfig, Policing, PortLimits};
use aerostat_proto::interface::{self, Interface};

aerostat_wire::named! {
    /// The kind of system at the other end of a port.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PortKind {
        /// A host: calling addresses are checked, and every leaf gets a SETUP of its own.
        Host = "Host",
        /// Another switch: calls are not sent back to it, leaves are added with ADD PARTY.
        Trunk = "Trunk",
    }
}

impl PortKind {
    /// Location of causes of the port's own signalling.
    pub(super) const fn location(self) -> u8 {
        match self {
            Self::Host => location::LOCAL,
            Self::Trunk => location::TRANSIT,
        }
    }
}

/// Configuration of a port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Name for display.
    pub name: String,
    /// Name of its link, for display.
    pub link: String,
    /// The kind of system at the other end. If ILMI detects the kind, the result replaces this value.
    pub kind: PortKind,
    /// The management interface, network side. With `None` the host cannot register addresses, and the version is
    /// fixed. If ILMI is to detect the system at the other end ([`ilmi::Config::detect`]), signalling waits for the
    /// result.
    pub ilmi: Option<ilmi::Config>,
    /// True if the daemon of the management interface is a process of its own.
    pub split: bool,
    /// The signalling interface. Towards hosts the switch has the network side; on a trunk the end that is named first
    /// has it.
    pub interface: interface::Params,
    /// Limit of reservations by calls with guarantees towards the other end of the link, cells/s.
    pub admit: u32,
    /// The same in the direction from there.
    pub admit_in: u32,
    /// Limit of calls, in both directions together.
    pub max_calls: usize,
    /// Limit of calls that came in here and are not answered yet. At a host this is half of the calls, so that a host
    /// that calls in vain leaves room for others, here and at the called port.
    pub max_pending: usize,
    /// Largest VCI to assign; the smallest is [`Vc::FIRST_USER_VCI`].
    pub max_vci: u16,
    /// How long calls wait for the signalling of this port to come up, from the moment that the line is up.
    pub patience: Duration,
    /// Policing of the cells that come in here: of calls, and of permanent connections that do not have their own.
    pub police: Policing,
    /// Rate of the line towards the other end.
    pub rate: CellRate,
    /// Rate of the line from there.
    pub input: CellRate,
    /// Buffers of the transmitter.
    pub buffers: PortLimits,
    /// Its order of service.
    pub discipline: Discipline,
    /// Its shaped paths, whose peak rates are reserved in both directions.
    pub paths: Vec<PathConfig>,
    /// VPI of the labels of its calls, which the other end must use as well: 0, or that of a shaped path. Calls in a
    /// shaped path reserve what the path has, instead of what the link has.
    pub call_vpi: u16,
    /// Settings of the queues of calls that leave here.
    pub calls: CallQueues,
}

aerostat_proto::parameters! {
    /// Limits of a port that a lab may set.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PortParams, PortRanges {
        /// Calls, in both directions together.
        calls: usize = 2048, 1..=60_000;
        /// Cells of best effort (UBR, ABR, GFR) that wait at the port.
        buffer: u32 = PortLimits::SWITCH.best_effort.max, 16..=1_000_000;
        /// Cells of one best effort connection that wait at the port.
        vc_buffer: u32 = PortLimits::SWITCH.best_effort_vc.max, 16..=1_000_000;
        /// Cells of CBR and VBR that wait at the port.
        guaranteed_buffer: u32 = PortLimits::SWITCH.guaranteed.max, 16..=1_000_000;
        /// Cells of one CBR or VBR connection that wait at the port.
        guaranteed_vc_buffer: u32 = PortLimits::SWITCH.guaranteed_vc.max, 16..=1_000_000;
    }
}

impl PortParams {
    /// The sizes of the buffers; `queues` is their number.
    const fn buffers(&self, queues: usize) -> PortLimits {
        PortLimits {
            guaranteed: Limits::plain(self.guaranteed_buffer),
            best_effort: Limits::of(self.buffer),
            guaranteed_vc: Limits::plain(self.guaranteed_vc_buffer),
            best_effort_vc: Limits::of(self.vc_buffer),
            queues,
        }
    }
}

impl PortConfig {
    /// The wait for a peer that does not support RESTART is 3 s; T310 of the caller is 10 s.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Default limit of reservations on a line of this rate, cells/s.
    #[must_use]
    pub fn admits(rate: CellRate) -> u32 {
        (u64::from(rate.cells_per_second()) * 95 / 100) as u32
    }
    /// A port with the buffers of a switch, on which calls with guarantees may reserve 95 % of the rate.
    #[must_use]
    pub fn new(name: &str, kind: PortKind, interface: interface::Params, rate: CellRate) -> Self {
        Self {
            name: name.to_owned(),
            link: name.to_owned(),
            kind,
            ilmi: None,
            split: false,
            interface,
            admit: Self::admits(rate),
            admit_in: Self::admits(rate),
            max_calls: PortParams::DEFAULT.calls,
            max_pending: Self::pending(kind, PortParams::DEFAULT.calls),
            max_vci: 4095,
            patience: Self::PATIENCE,
            police: Policing::Off,
            rate,
            input: rate,
            buffers: PortLimits::SWITCH,
            discipline: Discipline::RoundRobin,
            paths: Vec::new(),
            call_vpi: 0,
            calls: CallQueues::default(),
        }
    }
    /// Sets the rate of the line from the other end, which differs from that towards it, for example on a DSL line.
    pub fn set_input(&mut self, rate: CellRate) {
        self.input = rate;
        self.admit_in = Self::admits(rate);
    }
    /// Limit of unanswered calls among this number of calls.
    const fn pending(kind: PortKind, calls: usize) -> usize {
        match kind {
            PortKind::Host => calls.div_ceil(2),
            PortKind::Trunk => calls,
        }
    }
    /// The port with these limits, and with labels for its calls.
    #[must_use]
    pub fn with(mut self, params: &PortParams) -> Self {
        self.max_calls = params.calls;
        self.max_pending = Self::pending(self.kind, params.calls);
        self.interface.hold_calls(params.calls);
        let last = params.calls + usize::from(Vc::FIRST_USER_VCI);
        let last = u16::try_from(last).unwrap_or(u16::MAX);
        self.max_vci = self.max_vci.max(last);
        let queues = self.buffers.queues.max(params.calls);
        self.buffers = params.buffers(queues);
        self
    }
}

/// Bandwidth of one call on one port, cells/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Towards the other end of the link.
    pub tx: u64,
    /// From the other end of the link.
    pub rx: u64,
}

impl Reservation {
    /// The reservation that `qos` needs, as seen from the switch at this port (`tx` leaves the switch).
    pub(super) fn of(qos: Qos) -> Self {
        Self {
            tx: guaranteed(qos.tx),
            rx: guaranteed(qos.rx),
        }
    }
    /// True if `wanted` can be reserved out of this. A request of zero is always possible, even on an overbooked port.
    pub(super) const fn covers(self, wanted: Self) -> bool {
        wanted.tx <= self.tx && wanted.rx <= self.rx
    }
    /// The sum of both.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            tx: self.tx.saturating_add(other.tx),
            rx: self.rx.saturating_add(other.rx),
        }
    }
}

/// Cells/s that must be there at all times. CBR and real-time VBR: peak rate; VBR: sustainable rate;
/// the others: minimum rate. Source: I.371, connection admission control.
#[must_use]
pub fn guaranteed(traffic: TrafficParams) -> u64 {
    // A guaranteed call without a peak rate needs the whole line.
    let peak = traffic.max_pcr.map_or(u64::MAX >> 8, u64::from);
    match traffic.category {
        Some(ServiceCategory::Cbr | ServiceCategory::RtVbr) => peak,
        Some(ServiceCategory::NrtVbr) if traffic.scr != 0 => u64::from(traffic.scr).min(peak),
        Some(ServiceCategory::NrtVbr) => peak,
        Some(ServiceCategory::Abr | ServiceCategory::Gfr | ServiceCategory::Ubr) => {
            u64::from(traffic.min_pcr)
        }
        None => 0,
    }
}

#[derive(Debug)]
pub(super) struct Port {
    pub(super) config: PortConfig,
    pub(super) interface: Interface,
    /// The management channel.
    pub(super) ilmi: Option<Channel>,
    /// True if its link was removed: it is not shown.
    pub(super) vacant: bool,
    /// Addresses registered by the host or for it, in order of registration.
    pub(super) addresses: Vec<AtmAddress>,
    pub(super) reserved: Reservation,
    /// Half-calls that hold resources here.
    pub(super) held: usize,
    /// Calls that came in here and are not answered yet.
    pub(super) pending: usize,
    /// The time until which signalling, which is down, may come up while calls wait for it.
    pub(super) awaited: Option<Instant>,
    /// Number of calls that ended here, by cause.
    pub(super) causes: BTreeMap<Cause, u64>,
    /// Labels of calls and of permanent channels.
    labels: BTreeSet<Vc>,
    /// VPIs of permanent paths.
    paths: BTreeSet<u16>,
    /// Shaped paths by VPI: peak rate, and what connections in them reserve.
    pub(super) tunnels: BTreeMap<u16, (u32, Reservation)>,
    next_vci: u16,
    next_call: u32,
    told_full: bool,
}

impl Port {
    /// Largest VPI: the header at a UNI has 8 bits for it.
    const MAX_VPI: u16 = 255;

    pub(super) fn new(mut config: PortConfig) -> Self {
        config.interface.uni.passes_along = true;
        config.interface.uni.location = config.kind.location();
        let tunnels = config.paths.iter();
        let tunnels = tunnels.map(|path| (path.vpi, (path.pcr, Reservation::default())));
        let rate = config.paths.iter().map(|path| u64::from(path.pcr)).sum();
        Self {
            tunnels: tunnels.collect(),
            interface: Interface::new(config.interface),
            ilmi: config.ilmi.clone().map(match config.split {
                true => Channel::split,
                false => Channel::new,
            }),
            config,
            vacant: false,
            addresses: Vec::new(),
            reserved: Reservation { tx: rate, rx: rate },
            held: 0,
            pending: 0,
            awaited: None,
            causes: BTreeMap::new(),
            labels: BTreeSet::new(),
            paths: BTreeSet::new(),
            next_vci: Vc::FIRST_USER_VCI,
            next_call: 0,
            told_full: false,
        }
    }
    /// True if signalling waits until the system at the other end is detected.
    pub(super) fn waits_for_ilmi(&self) -> bool {
        self.config.ilmi.as_ref().is_some_and(|ilmi| ilmi.detect)
    }
    /// When signalling or management has a timer due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let management = self.ilmi.as_ref().and_then(Machine::poll_timeout);
        [self.interface.poll_timeout(), management, self.awaited]
            .into_iter()
            .flatten()
            .min()
    }
    /// True if the port takes no more half-calls.
    pub(super) const fn is_full(&self) -> bool {
        self.held >= self.config.max_calls
    }
    /// The limit that `held` or `pending` calls have reached, in words. It is reported only once, because a caller that
    /// goes on calling would flood the trace.
    pub(super) fn limit_met(&mut self) -> Option<String> {
        let (config, name) = (&self.config, &self.config.name);
        let text = if self.is_full() {
            format!(
                "{name} has {}: a port takes no more",
                counted(config.max_calls, "call", "calls")
            )
        } else if self.pending >= config.max_pending {
            let most = counted(config.max_pending, "call", "calls");
            format!("{name} has {most} without an answer: a port takes no more")
        } else {
            return None;
        };
        (!core::mem::replace(&mut self.told_full, true)).then_some(text)
    }
    /// Counts the end of a call. There are at most 127 causes.
    pub(super) fn count(&mut self, cause: Cause) {
        *self.causes.entry(cause).or_default() += 1;
    }
    /// True if this end chooses the labels.
    pub(super) fn is_network(&self) -> bool {
        self.config.interface.uni.side == Side::Network
    }
    /// Number of labels in use, for any purpose.
    pub(super) fn labels(&self) -> usize {
        self.labels.len() + self.paths.len()
    }
    /// An id for a call that starts here. Ids repeat only after 2^31 calls.
    pub(super) fn new_call_id(&mut self) -> CallId {
        let id = CallId(self.next_call);
        self.next_call = (self.next_call + 1) % CallId::INCOMING;
        id
    }
    /// Assigns a free label. The search continues after the last label, so that a label rests before it is used again,
    /// and late cells of the old connection do not reach the new one.
    pub(super) fn allocate(&mut self) -> Result<Vc, Cause> {
        let (first, last) = (Vc::FIRST_USER_VCI, self.config.max_vci);
        let label = |vci| Vc::new(self.config.call_vpi, vci);
        let free = (self.next_vci..=last)
            .chain(first..self.next_vci)
            .map(label)
            .find(|vc| !self.labels.contains(vc))
            .ok_or(Cause(45))?;
        self.labels.insert(free);
        self.next_vci = if free.vci >= last {
            first
        } else {
            free.vci + 1
        };
        Ok(free)
    }
    /// Takes a label that the peer has chosen. A peer cannot put a call into another path.
    pub(super) fn take(&mut self, vc: Vc) -> Result<(), Cause> {
        if vc.vpi != self.config.call_vpi || vc.vci < Vc::FIRST_USER_VCI || !self.labels.insert(vc)
        {
            return Err(Cause::VC_UNAVAILABLE);
        }
        Ok(())
    }
    pub(super) fn give_back(&mut self, vc: Vc) {
        self.labels.remove(&vc);
    }
    /// Takes the label of a permanent channel, or the VPI of a permanent path; false if the label is not free. VPI 0
    /// has the channels of signalling, so it cannot be a path.
    pub(super) fn hold(&mut self, vc: Vc, path: bool) -> bool {
        if vc.vpi > Self::MAX_VPI || self.paths.contains(&vc.vpi) {
            return false;
        }
        if !path {
            return vc.vci >= Vc::FIRST_USER_VCI && self.labels.insert(vc);
        }
        let mut inside = self
            .labels
            .range(Vc::new(vc.vpi, 0)..=Vc::new(vc.vpi, u16::MAX));
        vc.vpi > 0 && inside.next().is_none() && self.paths.insert(vc.vpi)
    }
    pub(super) fn let_go(&mut self, vc: Vc, path: bool) {
        if path {
            self.paths.remove(&vc.vpi);
        } else {
            self.labels.remove(&vc);
        }
    }
    /// Checks the calling number, and marks it as screened: the caller's own number must be registered here; without
    /// one, the first registered address is used. Numbers from a trunk have been screened by another switch.
    pub(super) fn screen(&self, info: &mut SetupInfo) -> Result<(), Cause> {
        if self.config.kind == PortKind::Trunk {
            return Ok(());
        }
        match info.calling {
            None => {
                let own = self.addresses.first().ok_or(Cause::REJECTED)?;
                info.vouch(*own, Screening::Network);
            }
            Some(address) if self.addresses.iter().any(|a| a.same_end_system(&address)) => {
                info.vouch(address, Screening::Passed);
            }
            Some(_) => return Err(Cause::REJECTED),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_proto::uni::Version;
    use aerostat_wire::Sap;
    use aerostat_wire::q2931::{Ie, ie};

    fn port() -> Port {
        let interface = interface::Params::new(Side::Network, Version::Uni31);
        let mut config = PortConfig::new("p", PortKind::Host, interface, CellRate::of_cells(1000));
        (config.admit, config.admit_in) = (1000, 1000);
        config.max_vci = 34;
        Port::new(config)
    }

    #[test]
    fn labels_rest_before_reuse() {
        let mut port = port();
        assert_eq!(port.allocate(), Ok(Vc::new(0, 32)));
        port.give_back(Vc::new(0, 32));
        assert_eq!(port.allocate(), Ok(Vc::new(0, 33)));
        assert_eq!(port.take(Vc::new(0, 33)), Err(Cause::VC_UNAVAILABLE));
        assert_eq!(port.take(Vc::new(0, 5)), Err(Cause::VC_UNAVAILABLE));
        assert_eq!(port.take(Vc::new(0, 34)), Ok(()));
        assert_eq!(port.allocate(), Ok(Vc::new(0, 32)));
        assert_eq!(port.allocate(), Err(Cause(45)));
        assert_eq!(port.labels(), 3);
    }

    #[test]
    fn admission_counts_both_directions() {
        let mut port = port();
        let call = Reservation::of(Qos::cbr(600, 100));
        assert_eq!(port.reserve(0, call), Ok(()));
        assert_eq!(port.reserve(0, call), Err(Cause::RATE_UNAVAILABLE));
        let one_way = Reservation { tx: 350, rx: 0 };
        assert_eq!(port.reserve(0, one_way), Ok(()));
        assert_eq!(port.reserve(0, one_way), Err(Cause::RATE_UNAVAILABLE));
        assert_eq!(port.reserve(0, Reservation::of(Qos::ubr(100))), Ok(()));
        port.unreserve(0, call);
        port.unreserve(0, one_way);
        assert_eq!(port.reserved, Reservation::default());
        let vbr = TrafficParams {
            category: Some(ServiceCategory::NrtVbr),
            scr: 10,
            ..TrafficParams::cbr(900, 100)
        };
        assert_eq!(guaranteed(vbr), 10);
        let whole_line = TrafficParams {
            max_pcr: None,
            ..TrafficParams::cbr(0, 100)
        };
        let qos = Qos {
            tx: whole_line,
            rx: TrafficParams::none(),
        };
        assert_eq!(
            port.reserve(0, Reservation::of(qos)),
            Err(Cause::RATE_UNAVAILABLE)
        );
    }

    #[test]
    fn calling_numbers_are_screened() {
        let mut port = port();
        let own = AtmAddress::LECS;
        let screen = |port: &Port, calling| {
            let mut info = SetupInfo::new(AtmAddress::ZERO, calling, Sap::LLC, Qos::ubr(100));
            let done = port.screen(&mut info);
            let element = info.elements.first().cloned();
            let screening = element.and_then(|e| match ie::decode(&e) {
                Ok(Ie::CallingNumber(number)) => number.screening(),
                _ => None,
            });
            done.map(|()| (info.calling, screening))
        };
        assert_eq!(screen(&port, Some(own)), Err(Cause::REJECTED));
        assert_eq!(screen(&port, None), Err(Cause::REJECTED));
        port.addresses.push(own);
        let network = (Some(own), Some(Screening::Network));
        assert_eq!(screen(&port, None), Ok(network));
        let other_selector = Some(own.with_selector(9));
        let passed = (other_selector, Some(Screening::Passed));
        assert_eq!(screen(&port, other_selector), Ok(passed));
        let foreign = Some(AtmAddress::ZERO);
        assert_eq!(screen(&port, foreign), Err(Cause::REJECTED));
        port.config.kind = PortKind::Trunk;
        assert_eq!(screen(&port, foreign), Ok((foreign, None)));
    }
}
