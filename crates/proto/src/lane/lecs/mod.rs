//! LAN emulation configuration server: which ELAN a client belongs to.
//!
//! **Objects and owners.** [`Lecs`] owns the table of ELANs and its callers' connections.
//!
//! **Policy.** A client that names an ELAN gets it, if its ATM address is allowed there. One that names none gets the
//! first ELAN (in the order of the table) that lists its address, else the default ELAN. Otherwise the answer is status
//! 20 (no such ELAN), 7 (not allowed) or 22 (no name, and nothing fits).
//!
//! **Timers**: S4 per connection: idle callers are released.
//!
//! **Standards**: LUNI 2.0 clause 5.3; facts book "LANE" §3, §16.
//!
//! **Not implemented**: policies by MAC address, route descriptor, or frame size; configuration fragments.
//!
//! **Deviations**: none known.

use super::ServerParams;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine, Refused, Trace};
use aerostat_wire::lane::{
    CONTROL_SDU, Control, ControlFrame, ElanName, LanType, MaxFrameSize, OpCode, Status, Tlv,
};
use aerostat_wire::{AtmAddress, Sap};
use std::collections::{BTreeMap, VecDeque};

/// A set of ATM addresses: those that agree with `value` in the bits set in `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    /// Value.
    pub value: AtmAddress,
    /// Bits that count.
    pub mask: [u8; 20],
}

impl AddressPattern {
    /// Addresses that begin with the first `octets` octets of `value`.
    #[must_use]
    pub fn prefix(value: AtmAddress, octets: usize) -> Self {
        let mut mask = [0; 20];
        mask.iter_mut().take(octets).for_each(|m| *m = 0xff);
        Self { value, mask }
    }
    /// True if `address` is in the set.
    #[must_use]
    pub fn matches(&self, address: AtmAddress) -> bool {
        let pairs = self.value.0.iter().zip(address.0).zip(self.mask);
        pairs.into_iter().all(|((v, a), m)| v & m == a & m)
    }
}

/// One ELAN.
#[derive(Clone, Debug)]
pub struct Elan {
    /// Name.
    pub name: ElanName,
    /// Its LES.
    pub les: AtmAddress,
    /// LAN type.
    pub lan_type: LanType,
    /// Frame size.
    pub max_frame: MaxFrameSize,
    /// TLVs for its clients: LEC variables, MPC parameters, ELAN-ID.
    pub tlvs: Vec<Tlv>,
    /// Who may join by name, and who belongs here without a name; empty: all may, none does.
    pub members: Vec<AddressPattern>,
}

impl Elan {
    /// An Ethernet ELAN with 1516-octet frames, open to all.
    #[must_use]
    pub fn new(name: ElanName, les: AtmAddress) -> Self {
        Self {
            name,
            les,
            lan_type: LanType::ETHERNET,
            max_frame: MaxFrameSize::S1516,
            tlvs: Vec::new(),
            members: Vec::new(),
        }
    }
}

/// What a LECS is told before it starts.
#[derive(Clone, Debug, Default)]
pub struct LecsConfig {
    /// Own ATM address.
    pub address: AtmAddress,
    /// Listen on the two well-known addresses too.
    pub well_known: bool,
    /// The ELANs, in order.
    pub elans: Vec<Elan>,
    /// ELAN of clients that name none and are listed nowhere.
    pub default: Option<ElanName>,
    /// Variables and bounds.
    pub params: ServerParams,
}

/// What goes into a LECS.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Serve.
    Start,
    /// Release everything and stop.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<'a>),
}

/// What comes out of a LECS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// An observation.
    Trace(Trace),
}

/// Counters of a LECS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LecsCounters {
    /// Requests granted.
    pub granted: u64,
    /// Requests refused.
    pub refused: u64,
    /// Frames that are no LE_CONFIGURE_REQUEST.
    pub bad: u64,
    /// Calls refused: a bound was met.
    pub calls_refused: u64,
    /// Idle connections released.
    pub idle: u64,
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
            self.request(AtmRequest::Listen {
                address,
                sap: Sap::LANE_CONTROL,
                max_sdu: CONTROL_SDU,
            });
        }
    }

    fn stop(&mut self) {
        if !core::mem::replace(&mut self.running, false) {
            return;
        }
        for conn in core::mem::take(&mut self.callers).into_keys() {
            let cause = Cause::NORMAL;
            self.request(AtmRequest::Release { conn, cause });
        }
        for address in self.addresses() {
            let sap = Sap::LANE_CONTROL;
            self.request(AtmRequest::Unlisten { address, sap });
        }
    }

    fn atm(&mut self, event: AtmEvent<'_>, now: Instant) {
        match event {
            AtmEvent::Incoming { conn, calling, .. } => {
                if !self.running || self.callers.len() >= self.config.params.clients {
                    self.counters.calls_refused += 1;
                    let cause = Cause::RESOURCES;
                    return self.request(AtmRequest::Release { conn, cause });
                }
                let caller = Caller {
                    address: calling,
                    until: now + self.config.params.control_timeout,
                };
                self.callers.insert(conn, caller);
                self.request(AtmRequest::Accept { conn });
            }
            AtmEvent::Released { conn, .. } => {
                self.callers.remove(&conn);
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
                let response = self.answer(&frame, address);
                let sdu = response.encode();
                self.request(AtmRequest::Send { conn, sdu });
            }
            Ok(_) | Err(_) => self.counters.bad += 1,
        }
    }

    fn answer(&mut self, frame: &ControlFrame, caller: Option<AtmAddress>) -> ControlFrame {
        let verdict = self.choose(frame, caller);
        let (trace, response) = match verdict {
            Ok(elan) => {
                let mut response = frame.response(Status::SUCCESS);
                response.target_atm = elan.les;
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

    fn choose(&self, frame: &ControlFrame, caller: Option<AtmAddress>) -> Result<&Elan, Status> {
        if frame.version != 1 {
            return Err(Status::VERSION);
        }
        if caller.is_some_and(|caller| !caller.same_end_system(&frame.source_atm)) {
            return Err(Status::ATM_ADDRESS);
        }
        let elans = &self.config.elans;
        let lists = |elan: &&Elan| {
            let mut members = elan.members.iter();
            members.any(|pattern| pattern.matches(frame.source_atm))
        };
        let named = |name: &ElanName| elans.iter().find(|elan| elan.name.same(name));
        let elan = if frame.elan.is_empty() {
            let listed = elans.iter().find(lists);
            let fallback = || self.config.default.as_ref().and_then(named);
            listed.or_else(fallback).ok_or(Status::INFORMATION)?
        } else {
            let elan = named(&frame.elan).ok_or(Status::NO_CONFIGURATION)?;
            if !elan.members.is_empty() && !lists(&elan) {
                return Err(Status::DENIED);
            }
            elan
        };
        let kind = [LanType::UNSPECIFIED, elan.lan_type].contains(&frame.lan_type);
        if kind {
            Ok(elan)
        } else {
            Err(Status::PARAMETERS)
        }
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }
}

impl Machine for Lecs {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
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
