//! LAN emulation configuration server: which ELAN a client belongs to, and which LES serves the ELAN.
//!
//! **Objects and owners.** [`Lecs`] owns the table of ELANs ([`Elan`]), the connections of its callers, and its
//! knowledge of the LESs of ELANs that have several (`servers.rs`).
//!
//! **Policy** (`policy.rs`). [`LecsConfig::policies`] is a list of levels, tried in order. A level is a set of
//! [`Criterion`]s, all of which must point to the same ELAN; the first such ELAN in the order of the table is the
//! client's. If no level finds an ELAN, a client that names no ELAN gets the default ELAN; else the status is 20 (no
//! such ELAN) or 22 (no name, and no ELAN fits). A client that names an ELAN which lists others is refused with status
//! 7.
//!
//! **Several LESs.** An ELAN may have standby LESs. Each LES of such an ELAN keeps a connection to the LECS and asks,
//! with LE_CONFIGURE, which LES serves. The LES that clients are sent to stays the same as long as it reports. If that
//! LES is lost, the next reporting LES in the order of the table takes over, and a LES that learns that another LES
//! serves releases its clients.
//!
//! **Timers**: S4 per connection: idle callers are released; a LES must report within three [`REPORT`]s.
//!
//! **Standards**: LUNI 2.0 clause 5.3.
//!
//! **Not implemented**: policies by route descriptor; configuration fragments; LNNI, where several LESs serve one
//! ELAN at once.
//!
//! **Deviations**: the report of a LES is our own use of LE_CONFIGURE; LNNI has other messages for this purpose.

mod policy;
mod servers;
pub use policy::{AddressPattern, Criterion, Elan};

use super::ServerParams;
use crate::atm::within;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, Trace};
use aerostat_wire::counted;
use aerostat_wire::lane::{CONTROL_SDU, Control, ControlFrame, ElanName, OpCode, Status};
use aerostat_wire::{AtmAddress, Sap};
use core::convert::Infallible;
use servers::Servers;
use std::collections::{BTreeMap, VecDeque};

/// How often a LES of an ELAN that has several LESs reports.
pub const REPORT: Duration = Duration::from_secs(10);

/// Connections that one end system may have, so that no host takes all the room. Routers have a client in each ELAN;
/// hosts of LANE servers may have a LES for each.
const CALLS_PER_HOST: usize = 128;

crate::split_record! {
    /// Configuration of a LECS before its start.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LecsConfig {
        /// Own ATM address.
        pub address: AtmAddress,
        /// Listen on the two well-known addresses too.
        pub well_known: bool,
        /// The ELANs, in order.
        pub elans: Vec<Elan>,
        /// How clients are assigned, level by level.
        pub policies: Vec<Vec<Criterion>>,
        /// ELAN of clients that name no ELAN and are listed in no ELAN.
        pub default: Option<ElanName>,
        /// Variables and bounds.
        pub params: ServerParams,
    }
}

impl Default for LecsConfig {
    /// No ELANs; assignment by name, then by ATM address.
    fn default() -> Self {
        Self {
            address: AtmAddress::ZERO,
            well_known: false,
            elans: Vec::new(),
            policies: vec![vec![Criterion::Name], vec![Criterion::Address]],
            default: None,
            params: ServerParams::default(),
        }
    }
}

/// Inputs of a LECS.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Starts to serve.
    Start,
    /// Release everything and stop.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
}

/// Outputs of a LECS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// An observation.
    Trace(Trace),
}

crate::counters! {
    /// Counters of a LECS.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LecsCounters {
        /// Requests granted.
        pub granted: u64,
        /// Requests refused.
        pub refused: u64,
        /// Frames other than LE_CONFIGURE_REQUEST.
        pub bad: u64,
        /// Calls refused because a bound was reached.
        pub calls_refused: u64,
        /// Idle connections released.
        pub idle: u64,
        /// Reports of LESs.
        pub reports: u64,
        /// Times that another LES took over an ELAN.
        pub takeovers: u64,
    }
}

struct Caller {
    address: Option<AtmAddress>,
    until: Instant,
}

/// A LAN emulation configuration server.
pub struct Lecs {
    config: LecsConfig,
    running: bool,
    callers: BTreeMap<ConnId, Caller>,
    told_full: bool,
    servers: Servers,
    counters: LecsCounters,
    out: VecDeque<Output>,
}

impl Lecs {
    /// A LECS that does not serve yet.
    #[must_use]
    pub fn new(config: LecsConfig) -> Self {
        Self {
            config,
            running: false,
            callers: BTreeMap::new(),
            told_full: false,
            servers: Servers::default(),
            counters: LecsCounters::default(),
            out: VecDeque::new(),
        }
    }
    /// Counters.
    #[must_use]
    pub const fn counters(&self) -> LecsCounters {
        self.counters
    }

    fn addresses(&self) -> Vec<AtmAddress> {
        let mut addresses = vec![self.config.address];
        if self.config.well_known {
            addresses.extend([AtmAddress::LECS_ANYCAST, AtmAddress::LECS]);
        }
        addresses.retain(|address| !address.is_zero());
        addresses
    }

    fn start(&mut self) {
        if core::mem::replace(&mut self.running, true) {
            return;
        }
        for address in self.addresses() {
            self.request(AtmRequest::listen(address, Sap::LANE_CONTROL, u16::MAX));
        }
    }

    fn stop(&mut self) {
        if !core::mem::replace(&mut self.running, false) {
            return;
        }
        self.servers = Servers::default();
        for conn in core::mem::take(&mut self.callers).into_keys() {
            let cause = Cause::NORMAL;
            self.request(AtmRequest::Release { conn, cause });
        }
        for address in self.addresses() {
            let sap = Sap::LANE_CONTROL;
            self.request(AtmRequest::Unlisten { address, sap });
        }
    }

    /// Traced once: further refused calls are not traced.
    fn tell_full(&mut self) {
        let callers = self.config.params.clients;
        if !core::mem::replace(&mut self.told_full, true) {
            let most = counted(callers, "call", "calls");
            let text = format!("the LECS is full: it takes {most} at a time");
            let trace = Trace::milestone("lecs.full", text).with("calls", callers);
            self.out.push_back(Output::Trace(trace));
        }
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Incoming {
                conn, calling, qos, ..
            } => {
                let of_caller = |caller: &&Caller| same_host(caller.address, calling);
                let hog = self.callers.values().filter(of_caller).count() >= CALLS_PER_HOST;
                let full = self.callers.len() >= self.config.params.clients;
                if full {
                    self.tell_full();
                }
                if !self.running || hog || full {
                    self.counters.calls_refused += 1;
                    let cause = Cause::RESOURCES;
                    return self.request(AtmRequest::Release { conn, cause });
                }
                let caller = Caller {
                    address: calling,
                    until: now + self.config.params.control_timeout,
                };
                self.callers.insert(conn, caller);
                let terms = within(&qos, CONTROL_SDU);
                self.request(AtmRequest::Accept { conn, terms });
            }
            AtmEvent::Released { conn, .. } => {
                self.callers.remove(&conn);
                self.lost(conn);
            }
            AtmEvent::Received { conn, sdu } => self.sdu(conn, sdu, now),
            AtmEvent::Up
            | AtmEvent::Down
            | AtmEvent::Connected { .. }
            | AtmEvent::PartyAdded { .. }
            | AtmEvent::PartyGone { .. } => {}
        }
    }

    fn sdu(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        let Some(caller) = self.callers.get_mut(&conn) else {
            self.counters.bad += 1;
            return;
        };
        caller.until = now + self.config.params.control_timeout;
        let address = caller.address;
        match Control::decode(sdu) {
            Ok(Control::Frame(frame)) if frame.op == OpCode::CONFIGURE => {
                let response = match self.server_of(&frame, address) {
                    Some(elan) => self.report(conn, elan, &frame, now),
                    None => self.answer(&frame, address),
                };
                let sdu = response.encode();
                self.request(AtmRequest::Send { conn, sdu });
            }
            Ok(_) | Err(_) => self.counters.bad += 1,
        }
    }

    fn answer(&mut self, frame: &ControlFrame, caller: Option<AtmAddress>) -> ControlFrame {
        let verdict = policy::choose(&self.config, frame, caller);
        let (trace, response) = match verdict {
            Ok(number) => {
                let elan = &self.config.elans[number];
                let mut response = frame.response(Status::SUCCESS);
                response.target_atm = self.servers.assign(number, elan);
                response.lan_type = elan.lan_type;
                response.max_frame = elan.max_frame;
                response.elan = elan.name;
                response.tlvs = elan.tlvs.clone().into();
                let text = format!("{} belongs to ELAN {}", frame.source_atm, elan.name);
                self.counters.granted += 1;
                (Trace::detail("lecs.assigned", text), response)
            }
            Err(status) => {
                let text = format!("{} gets no ELAN: {status}", frame.source_atm);
                self.counters.refused += 1;
                (Trace::detail("lecs.refused", text), frame.response(status))
            }
        };
        self.out.push_back(Output::Trace(trace));
        response
    }

    /// The ELAN of which the caller is one of several LESs.
    fn server_of(&self, frame: &ControlFrame, caller: Option<AtmAddress>) -> Option<usize> {
        let caller = caller.filter(|caller| *caller == frame.source_atm)?;
        let mut elans = self.config.elans.iter();
        elans.position(|elan| {
            !elan.standby.is_empty()
                && elan.name.same(&frame.elan)
                && elan.servers().any(|les| les == caller)
        })
    }

    fn report(
        &mut self,
        conn: ConnId,
        number: usize,
        frame: &ControlFrame,
        now: Instant,
    ) -> ControlFrame {
        self.counters.reports += 1;
        if let Some(caller) = self.callers.get_mut(&conn) {
            caller.until = now + REPORT * 3;
        }
        let elan = &self.config.elans[number];
        self.servers.reported(number, frame.source_atm, conn);
        let mut response = frame.response(Status::SUCCESS);
        response.target_atm = self.servers.serving(number, elan);
        response
    }

    /// The connection of a caller is gone; the caller may have been a LES.
    fn lost(&mut self, conn: ConnId) {
        for (number, elan) in self.config.elans.iter().enumerate() {
            let Some(les) = self.servers.lost(number, elan, conn) else {
                continue;
            };
            self.counters.takeovers += 1;
            let text = format!("the LES of ELAN {} is lost: {les} takes over", elan.name);
            let trace = Trace::milestone("lecs.takeover", text);
            let trace = trace.with("elan", elan.name).with("les", les);
            self.out.push_back(Output::Trace(trace));
        }
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }
}

/// True if both addresses belong to one end system, or both are unknown.
fn same_host(one: Option<AtmAddress>, other: Option<AtmAddress>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.same_end_system(&other),
        (one, other) => one == other,
    }
}

impl Machine for Lecs {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        match input {
            Input::Start => self.start(),
            Input::Stop => self.stop(),
            Input::Atm(event) => self.atm(event, now),
        }
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        let late: Vec<ConnId> = (self.callers.iter())
            .filter(|(_, caller)| caller.until <= now)
            .map(|(conn, _)| *conn)
            .collect();
        for conn in late {
            self.callers.remove(&conn);
            self.lost(conn);
            self.counters.idle += 1;
            let cause = Cause::NORMAL;
            self.request(AtmRequest::Release { conn, cause });
        }
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.callers.values().map(|caller| caller.until).min()
    }
}

crate::atm_user!(Lecs {});
