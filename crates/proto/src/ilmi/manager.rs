//! Requests of this side to the other: one at a time.

use super::{Event, Ime, Link, Output, Prefix, Side, State};
use crate::{Instant, Trace};
use aerostat_wire::ilmi::{Binding, ErrorStatus, Kind, Message, Oid, Pdu, Request, Value, mib};
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};

/// A request to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Read the attachment point. This comes first, and is also the poll.
    Attachment,
    /// Read the peer's versions.
    Configuration,
    /// Set a prefix, or withdraw it.
    Prefix(Prefix, bool),
    /// Check that the host still has a prefix.
    Check(Prefix),
    /// Register an address, or withdraw it.
    Address(AtmAddress, bool),
    /// Read the service that follows this name.
    Service(Oid),
}

/// The outstanding request.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    job: Job,
    id: i32,
    kind: Kind,
    names: Vec<Binding>,
    tries: u32,
    /// When it is repeated.
    pub(super) at: Instant,
}

/// The number of a version in `atmfAtmLayerUniVersion`.
pub(super) const fn number_of(version: Version) -> i32 {
    match version {
        Version::Uni30 => 2,
        Version::Uni31 => 3,
        Version::Uni40 => 4,
    }
}
/// The version for a number. UNI 2.0 has no signalling.
const fn version_of(number: i32) -> Option<Version> {
    match number {
        2 => Some(Version::Uni30),
        3 => Some(Version::Uni31),
        4.. => Some(Version::Uni40),
        _ => None,
    }
}

impl Ime {
    pub(super) fn establish(&mut self, now: Instant) {
        self.state = State::Establishing;
        self.jobs.push_back(Job::Attachment);
        self.next_job(now);
    }

    /// Makes the next request, unless a request is outstanding.
    fn next_job(&mut self, now: Instant) {
        if self.pending.is_some() || self.state == State::Stopped {
            return;
        }
        let Some(job) = self.jobs.pop_front() else {
            if self.state == State::Registering {
                self.state = State::Verifying;
            }
            if self.state == State::Verifying && self.poll_at.is_none() {
                self.poll_at = Some(now + self.config.params.poll);
            }
            return;
        };
        let get = |names: &[Oid]| {
            let binding = |name: &Oid| Binding::new(name.clone(), Value::Null);
            names.iter().map(binding).collect::<Vec<_>>()
        };
        let status = |valid| Value::Integer(if valid { mib::VALID } else { mib::INVALID });
        let (kind, names) = match &job {
            Job::Attachment => (Kind::Get, get(&attachment())),
            Job::Configuration => (Kind::Get, get(&configuration())),
            Job::Check(prefix) => (Kind::Get, get(&[mib::of_prefix(*prefix)])),
            Job::Service(after) => (Kind::GetNext, get(core::slice::from_ref(after))),
            Job::Prefix(prefix, valid) => {
                let binding = Binding::new(mib::of_prefix(*prefix), status(*valid));
                (Kind::Set, vec![binding])
            }
            Job::Address(address, valid) => {
                let name = mib::of_address(&mib::address_status(), *address);
                (Kind::Set, vec![Binding::new(name, status(*valid))])
            }
        };
        self.ask(job, kind, names, now);
    }

    fn ask(&mut self, job: Job, kind: Kind, names: Vec<Binding>, now: Instant) {
        self.next_id = self.next_id.wrapping_add(1) & 0x7fff_ffff;
        let pending = Pending {
            job,
            id: self.next_id,
            kind,
            names,
            tries: 1,
            at: now + self.config.params.response,
        };
        self.transmit(&pending);
        self.pending = Some(pending);
    }

    fn transmit(&mut self, pending: &Pending) {
        let request = Request::new(pending.kind, pending.id, pending.names.clone());
        self.send(&Message(Pdu::Request(request)));
    }

    pub(super) fn expire(&mut self, now: Instant) {
        if self.poll_at.is_some_and(|at| at <= now) {
            self.poll_at = None;
            self.jobs.push_back(Job::Attachment);
            self.next_job(now);
        }
        let Some(mut pending) = self.pending.take_if(|pending| pending.at <= now) else {
            return;
        };
        self.counters.timeouts += 1;
        if self.state != State::Establishing && pending.tries >= self.config.params.tries {
            return self.lost("does not answer", true, now);
        }
        pending.tries = pending.tries.saturating_add(1);
        pending.at = now + self.config.params.response;
        self.transmit(&pending);
        self.pending = Some(pending);
    }

    pub(super) fn response(&mut self, response: &Request, now: Instant) {
        let Some(pending) = self.pending.take_if(|pending| pending.id == response.id) else {
            self.counters.unasked += 1;
            return;
        };
        if response.status != ErrorStatus::NO_ERROR {
            self.counters.errors_received += 1;
            return self.error(pending, response, now);
        }
        match pending.job {
            Job::Attachment => self.attachment(response, now),
            Job::Configuration => self.configured(response),
            Job::Prefix(prefix, valid) => self.prefix_set(prefix, valid),
            Job::Check(prefix) => {
                let value = response.bindings.first().map(|binding| &binding.value);
                if value.and_then(Value::integer) != Some(mib::VALID) {
                    self.offer(prefix, true);
                }
            }
            Job::Address(address, valid) => self.address_set(address, valid),
            Job::Service(_) => self.service(response),
        }
        self.next_job(now);
    }

    /// The other side does not know a variable, or refuses a value.
    fn error(&mut self, mut pending: Pending, response: &Request, now: Instant) {
        let wrong = usize::try_from(response.index).ok();
        let wrong = wrong.and_then(|index| index.checked_sub(1));
        let wrong = wrong.filter(|index| *index < pending.names.len());
        match pending.job {
            // Repeat the request without the unknown variable.
            Job::Attachment | Job::Configuration => match wrong {
                Some(index) if pending.names.len() > 1 => {
                    pending.names.remove(index);
                    return self.ask(pending.job, pending.kind, pending.names, now);
                }
                _ => {
                    let nothing = Request::new(Kind::Response, response.id, Vec::new());
                    if pending.job == Job::Attachment {
                        self.attachment(&nothing, now);
                    } else {
                        self.configured(&nothing);
                    }
                }
            },
            Job::Address(address, true) => {
                self.addresses.remove(&address);
                let text = format!("ILMI: the network refuses {address}: {}", response.status);
                let trace = Trace::milestone("ilmi.refused", text);
                self.out.push_back(Output::Trace(trace));
            }
            Job::Prefix(prefix, true) => {
                self.prefixes.remove(&prefix);
                let text = format!("ILMI: the host refuses a prefix: {}", response.status);
                let trace = Trace::milestone("ilmi.refused", text);
                self.out.push_back(Output::Trace(trace));
            }
            Job::Check(prefix) => self.offer(prefix, true),
            Job::Prefix(prefix, false) => self.prefix_set(prefix, false),
            Job::Address(address, false) => self.address_set(address, false),
            // The end of the table.
            Job::Service(_) => self.services_read(),
        }
        self.next_job(now);
    }

    fn attachment(&mut self, response: &Request, now: Instant) {
        let before = self.peer.clone();
        for Binding { name, value } in &response.bindings {
            if *name == mib::port(mib::MY_IF_IDENTIFIER) {
                self.peer.number = value.integer();
            } else if *name == mib::port(mib::MY_IF_NAME) {
                self.peer.name = value.octets().map(short);
            } else if *name == mib::my_system_identifier() {
                self.peer.system = value.octets().map(short);
            } else if let (true, Value::TimeTicks(ticks)) =
                (*name == mib::system(mib::SYS_UP_TIME), value)
            {
                self.peer.up_time = Some(*ticks);
            }
        }
        if self.state == State::Establishing {
            self.state = State::Configuring;
            self.jobs.push_back(Job::Configuration);
            return;
        }
        let peer = &self.peer;
        let (was, is) = (before.up_time.unwrap_or(0), peer.up_time.unwrap_or(0));
        // The count wraps after 497 days.
        let restarted = is < was && was < u32::MAX - 0x1_0000;
        if before.number != peer.number || before.system != peer.system {
            self.lost("is another one", false, now);
        } else if restarted {
            self.lost("has restarted", false, now);
        } else {
            // A host that lost contact has forgotten its prefix.
            let offered = self
                .prefixes
                .iter()
                .filter(|_| self.config.side == Side::Network);
            self.jobs.extend(offered.map(|prefix| Job::Check(*prefix)));
        }
    }

    fn configured(&mut self, response: &Request) {
        for Binding { name, value } in &response.bindings {
            let number = value.integer();
            if *name == mib::atm_layer(mib::UNI_VERSION) {
                self.peer.version = number.and_then(version_of);
            } else if *name == mib::atm_layer(mib::DEVICE_TYPE) {
                self.peer.device = number;
            } else if *name == mib::atm_layer(mib::MAX_VPI_BITS) {
                self.peer.vpi_bits = number;
            } else if *name == mib::atm_layer(mib::MAX_VCI_BITS) {
                self.peer.vci_bits = number;
            } else if *name == mib::atm_layer(mib::NNI_SIG_VERSION) {
                self.peer.nni = number;
            } else if *name == mib::address_admin_status() {
                self.peer.registers = number.map(|number| number == 1);
            }
        }
        let own = self.config.version;
        let version = match self.peer.version {
            Some(peer) if number_of(peer) < number_of(own) => peer,
            _ => own,
        };
        self.version = Some(version);
        self.state = State::Registering;
        let link = Link::between(&self.config, &self.peer);
        self.link = Some(link);
        self.tell_link(link);
        self.out.push_back(Output::Event(Event::Up { version }));
        let hosts = matches!(link, Link::Uni(_)) || !self.config.detect;
        if self.peer.registers == Some(false) || !hosts {
            return;
        }
        match self.config.side {
            Side::Network => {
                let prefixes = self.config.prefixes.clone();
                for prefix in prefixes {
                    self.offer(prefix, true);
                }
            }
            Side::User => self.jobs.push_back(Job::Service(mib::service_address())),
        }
    }

    /// Reports the kind of link to the owner, if requested, and traces an unexpected one.
    fn tell_link(&mut self, link: Link) {
        let text = match link {
            Link::Uni(_) => None,
            Link::Iisp(Side::Network) => {
                Some("the other side is a switch; this one plays the network")
            }
            Link::Iisp(Side::User) => Some("the other side is a switch; this one plays the user"),
            Link::Pnni => Some("the other side is a switch that speaks PNNI"),
            Link::Hosts => Some("the other side is a host, too: there is no network"),
        };
        if let Some(text) = text {
            let trace = Trace::milestone("ilmi.link", format!("ILMI: {text}"));
            self.out.push_back(Output::Trace(trace));
        }
        if self.config.detect {
            self.out.push_back(Output::Event(Event::Link(link)));
        }
    }

    // ---- network side ----

    fn offer(&mut self, prefix: Prefix, valid: bool) {
        if valid {
            // From now on the host may register addresses under the prefix, even if the response is lost.
            self.prefixes.insert(prefix);
        }
        self.jobs.push_back(Job::Prefix(prefix, valid));
    }

    pub(super) fn set_prefixes(&mut self, prefixes: Vec<Prefix>, now: Instant) {
        let old = core::mem::replace(&mut self.config.prefixes, prefixes);
        if !matches!(self.state, State::Registering | State::Verifying) {
            return;
        }
        let new = self.config.prefixes.clone();
        for gone in old.iter().filter(|prefix| !new.contains(prefix)) {
            self.offer(*gone, false);
        }
        for fresh in new.iter().filter(|prefix| !old.contains(prefix)) {
            self.offer(*fresh, true);
        }
        self.next_job(now);
    }

    /// The host has accepted a prefix, or its withdrawal.
    fn prefix_set(&mut self, prefix: Prefix, valid: bool) {
        if valid {
            return;
        }
        self.prefixes.remove(&prefix);
        let under = |address: &AtmAddress| address.prefix() == prefix;
        let gone: Vec<AtmAddress> = self.addresses.keys().copied().filter(under).collect();
        for address in gone {
            self.addresses.remove(&address);
            self.scopes.remove(&address);
            self.tell_address(address, false);
        }
    }

    // ---- user side ----

    /// A prefix was assigned: the end systems get addresses.
    pub(super) fn prefix_given(&mut self, prefix: Prefix) {
        self.prefixes.insert(prefix);
        for esi in self.config.esis.clone() {
            self.register(mib::address(prefix, esi));
        }
    }

    fn register(&mut self, address: AtmAddress) {
        let known = self.addresses.contains_key(&address);
        if !known && self.addresses.len() < self.config.limits.addresses {
            self.addresses.insert(address, false);
        }
        let job = Job::Address(address, true);
        if !self.jobs.contains(&job) {
            self.jobs.push_back(job);
        }
    }

    fn unregister(&mut self, address: AtmAddress) {
        if let Some(accepted) = self.addresses.remove(&address) {
            self.jobs.push_back(Job::Address(address, false));
            if accepted {
                self.tell_address(address, false);
            }
        }
    }

    /// Other end system identifiers: addresses come and go under all prefixes.
    pub(super) fn set_esis(&mut self, esis: Vec<MacAddr>, now: Instant) {
        let old = core::mem::replace(&mut self.config.esis, esis);
        if !matches!(self.state, State::Registering | State::Verifying) {
            return;
        }
        let new = self.config.esis.clone();
        for prefix in self.prefixes.clone() {
            for gone in old.iter().filter(|esi| !new.contains(esi)) {
                self.unregister(mib::address(prefix, *gone));
            }
            for fresh in new.iter().filter(|esi| !old.contains(esi)) {
                self.register(mib::address(prefix, *fresh));
            }
        }
        self.next_job(now);
    }

    /// A prefix was withdrawn: its addresses end, too.
    pub(super) fn prefix_taken(&mut self, prefix: Prefix) {
        self.prefixes.remove(&prefix);
        for esi in self.config.esis.clone() {
            self.unregister(mib::address(prefix, esi));
        }
    }

    fn address_set(&mut self, address: AtmAddress, valid: bool) {
        if let Some(accepted) = self.addresses.get_mut(&address).filter(|_| valid)
            && !core::mem::replace(accepted, true)
        {
            self.confirmed(address);
            self.tell_address(address, true);
        }
    }

    /// Withdraws what this side has registered at the other, or has assigned to it. Nothing new is registered then.
    pub(super) fn withdraw(&mut self, now: Instant) {
        match self.config.side {
            Side::Network => self.set_prefixes(Vec::new(), now),
            Side::User => {
                for prefix in self.prefixes.clone() {
                    self.prefix_taken(prefix);
                }
                self.config.esis.clear();
                self.next_job(now);
            }
        }
    }

    /// True while a withdrawal has no answer yet.
    pub(super) fn withdraws(&self) -> bool {
        let pending = self.pending.iter().map(|pending| &pending.job);
        let mut all = pending.chain(&self.jobs);
        all.any(|job| matches!(job, Job::Address(_, false) | Job::Prefix(_, false)))
    }

    fn service(&mut self, response: &Request) {
        let found = response.bindings.first();
        let found = found.filter(|binding| mib::is_lecs(&binding.name));
        let Some(Binding { name, value }) = found else {
            return self.services_read();
        };
        if let Some(Ok(address)) = value.octets().map(<[u8; 20]>::try_from) {
            self.services.push(AtmAddress(address));
        }
        if self.services.len() < self.config.limits.services {
            self.jobs.push_back(Job::Service(name.clone()));
        } else {
            self.services_read();
        }
    }

    fn services_read(&mut self) {
        let services = self.services.clone();
        self.out.push_back(Output::Event(Event::Services(services)));
    }

    /// Handles jobs that a request of the other side has queued.
    pub(super) fn go_on(&mut self, now: Instant) {
        self.next_job(now);
    }
}

/// A name or identifier of a peer, cut to 64 octets.
fn short(octets: &[u8]) -> Vec<u8> {
    octets.iter().take(64).copied().collect()
}

fn attachment() -> [Oid; 4] {
    [
        mib::port(mib::MY_IF_IDENTIFIER),
        mib::port(mib::MY_IF_NAME),
        mib::my_system_identifier(),
        mib::system(mib::SYS_UP_TIME),
    ]
}
fn configuration() -> [Oid; 6] {
    [
        mib::atm_layer(mib::UNI_VERSION),
        mib::atm_layer(mib::MAX_VPI_BITS),
        mib::atm_layer(mib::MAX_VCI_BITS),
        mib::atm_layer(mib::DEVICE_TYPE),
        mib::atm_layer(mib::NNI_SIG_VERSION),
        mib::address_admin_status(),
    ]
}
