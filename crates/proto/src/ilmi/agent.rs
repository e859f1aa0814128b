//! Objects that the other side may read or set.

use super::manager::number_of;
use super::{Event, Ime, Output, Prefix, Side};
use crate::Instant;
use aerostat_wire::ilmi::{
    Binding, ErrorStatus, Kind, MAX_MESSAGE, Message, Oid, Pdu, Request, Value, mib,
};
use aerostat_wire::{AtmAddress, Vc};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Messages that wait for the decision about a registration.
const WAITING: usize = 16;

/// The scope of an address for which the host has set none: global. Source: ILMI 4.0, organizational scopes.
const GLOBAL: i32 = 15;

/// A SetRequest that registers addresses, while the owner decides.
#[derive(Debug)]
pub(super) struct Claiming {
    /// The number of the claim.
    claim: u32,
    request: Request,
    changes: Vec<Change>,
    /// The addresses of the claim, each with the index of its variable.
    addresses: Vec<(usize, AtmAddress)>,
}

/// A row that a SetRequest changes.
#[derive(Debug)]
enum Change {
    /// An address, at the network side.
    Address(AtmAddress, bool),
    /// A prefix, at the user side.
    Prefix(Prefix, bool),
    /// The scope of an address, which is kept and not used.
    Scope(AtmAddress, i32),
}

impl Ime {
    /// Answers a request of the other side, unless the owner has to decide first.
    pub(super) fn answer(&mut self, mut request: Request, now: Instant) {
        let asked = request.bindings.clone();
        let done = match request.kind {
            Kind::Get => self.get(&mut request.bindings, now),
            Kind::GetNext => self.get_next(&mut request.bindings, now),
            Kind::Set => match self.judge_all(&request.bindings, now) {
                Ok(changes) => return self.claim(request, changes, now),
                Err(error) => Err(error),
            },
            Kind::Response => return,
        };
        self.respond(request, asked, done, now);
    }

    /// Sends the response to a request with the variables `asked`.
    fn respond(
        &mut self,
        mut request: Request,
        asked: Vec<Binding>,
        done: Result<(), (usize, ErrorStatus)>,
        now: Instant,
    ) {
        request.kind = Kind::Response;
        (request.status, request.index) = (ErrorStatus::NO_ERROR, 0);
        if let Err((index, status)) = done {
            (request.status, request.index) = (status, index as i32 + 1);
            request.bindings.clone_from(&asked);
        }
        let mut response = Message(Pdu::Request(request));
        if response.encode().len() > MAX_MESSAGE
            && let Message(Pdu::Request(request)) = &mut response
        {
            (request.status, request.index) = (ErrorStatus::TOO_BIG, 0);
            request.bindings = asked;
        }
        if let Message(Pdu::Request(request)) = &response {
            self.counters.errors_sent += u64::from(request.status != ErrorStatus::NO_ERROR);
        }
        self.send(&response);
        self.go_on(now);
    }

    fn get(&self, bindings: &mut [Binding], now: Instant) -> Result<(), (usize, ErrorStatus)> {
        let objects = self.objects(now);
        for (index, binding) in bindings.iter_mut().enumerate() {
            let value = objects.get(&binding.name);
            let value = value.or_else(|| self.pvc_rows.get(&binding.name));
            binding.value = value.cloned().ok_or((index, ErrorStatus::NO_SUCH_NAME))?;
        }
        Ok(())
    }

    fn get_next(&self, bindings: &mut [Binding], now: Instant) -> Result<(), (usize, ErrorStatus)> {
        let objects = self.objects(now);
        for (index, binding) in bindings.iter_mut().enumerate() {
            let after = (Bound::Excluded(&binding.name), Bound::Unbounded);
            let next = objects.range::<Oid, _>(after).next();
            let pvc = self.pvc_rows.range::<Oid, _>(after).next();
            let next = next.into_iter().chain(pvc).min_by_key(|(name, _)| *name);
            let (name, value) = next.ok_or((index, ErrorStatus::NO_SUCH_NAME))?;
            *binding = Binding::new(name.clone(), value.clone());
        }
        Ok(())
    }

    /// The changes of a request: all variables or none, because a request with one wrong variable changes nothing.
    fn judge_all(
        &mut self,
        bindings: &[Binding],
        now: Instant,
    ) -> Result<Vec<Change>, (usize, ErrorStatus)> {
        let mut changes = Vec::new();
        for (index, binding) in bindings.iter().enumerate() {
            let change = self.judge(binding, &changes, now);
            changes.push(change.map_err(|status| (index, status))?);
        }
        // The scope of an address that is not there could not be kept.
        let there = |address: &AtmAddress| {
            let given = changes.iter().rev().find_map(|change| match change {
                Change::Address(other, valid) if other == address => Some(*valid),
                _ => None,
            });
            given.unwrap_or(self.addresses.contains_key(address))
        };
        let lost = |change: &Change| matches!(change, Change::Scope(address, _) if !there(address));
        match changes.iter().position(lost) {
            Some(index) => Err((index, ErrorStatus::NO_SUCH_NAME)),
            None => Ok(changes),
        }
    }

    /// Makes the changes of a request, after the owner's decision if it registers addresses that are new here.
    fn claim(&mut self, request: Request, changes: Vec<Change>, now: Instant) {
        let fresh = |change: &Change| match change {
            Change::Address(address, true) if !self.addresses.contains_key(address) => {
                Some(*address)
            }
            _ => None,
        };
        let all = changes.iter().enumerate();
        let addresses = all.filter_map(|(index, change)| Some((index, fresh(change)?)));
        let addresses: Vec<(usize, AtmAddress)> = addresses.collect();
        if addresses.is_empty() {
            return self.change(request, changes, now);
        }
        self.next_claim = self.next_claim.wrapping_add(1);
        let claim = self.next_claim;
        let wanted = addresses.iter().map(|(_, address)| *address).collect();
        self.out.push_back(Output::Claim {
            claim,
            addresses: wanted,
        });
        self.claiming = Some(Claiming {
            claim,
            request,
            changes,
            addresses,
        });
    }

    /// The owner's decision: the request gets its response, and the messages that waited are handled.
    pub(super) fn claimed(&mut self, claim: u32, refused: Option<u16>, now: Instant) {
        let Some(claiming) = self.claiming.take_if(|claiming| claiming.claim == claim) else {
            return;
        };
        let Claiming {
            request,
            changes,
            addresses,
            ..
        } = claiming;
        match refused {
            None => self.change(request, changes, now),
            Some(index) => {
                let index = addresses
                    .get(usize::from(index))
                    .map_or(0, |(index, _)| *index);
                let asked = request.bindings.clone();
                self.respond(request, asked, Err((index, ErrorStatus::BAD_VALUE)), now);
            }
        }
        while self.claiming.is_none()
            && let Some(sdu) = self.waiting.pop_front()
        {
            self.message(&sdu, now);
        }
    }

    /// The registration that waits for a decision is over. If the claim was granted, the addresses are withdrawn.
    pub(super) fn give_up_claim(&mut self) {
        self.waiting.clear();
        let claiming = self.claiming.take();
        for (_, address) in claiming.into_iter().flat_map(|claiming| claiming.addresses) {
            let event = Event::Registered(address, false);
            self.out.push_back(Output::Event(event));
        }
    }

    /// Keeps a message until the decision about a registration.
    pub(super) fn wait(&mut self, sdu: &[u8]) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(sdu.to_vec());
        } else {
            self.counters.unread += 1;
        }
    }

    fn change(&mut self, request: Request, changes: Vec<Change>, now: Instant) {
        let (scopes, others): (Vec<_>, Vec<_>) =
            (changes.into_iter()).partition(|change| matches!(change, Change::Scope(..)));
        // A scope may stand before its address.
        for change in others.into_iter().chain(scopes) {
            match change {
                Change::Address(address, valid) => self.host_address(address, valid),
                Change::Prefix(prefix, true) => self.prefix_given(prefix),
                Change::Prefix(prefix, false) => self.prefix_taken(prefix),
                Change::Scope(address, scope) => {
                    self.scopes.insert(address, scope);
                }
            }
        }
        let asked = request.bindings.clone();
        self.respond(request, asked, Ok(()), now);
    }

    fn judge(
        &mut self,
        binding: &Binding,
        before: &[Change],
        now: Instant,
    ) -> Result<Change, ErrorStatus> {
        let Binding { name, value } = binding;
        let valid = match value.integer() {
            Some(mib::VALID) => Some(true),
            Some(mib::INVALID) => Some(false),
            _ => None,
        };
        let network = self.config.side == Side::Network;
        if let Some(address) = mib::address_of(&mib::address_status(), name).filter(|_| network) {
            let valid = valid.ok_or(ErrorStatus::BAD_VALUE)?;
            let address = address.with_selector(0);
            if valid {
                self.may_register(address, before)?;
            }
            return Ok(Change::Address(address, valid));
        }
        if let Some(address) = mib::address_of(&mib::address_scope(), name).filter(|_| network) {
            let scope = value.integer().filter(|scope| (1..=15).contains(scope));
            let change = scope.map(|scope| Change::Scope(address.with_selector(0), scope));
            return change.ok_or(ErrorStatus::BAD_VALUE);
        }
        if let Some(prefix) = mib::prefix_of(name).filter(|_| !network) {
            let valid = valid.ok_or(ErrorStatus::BAD_VALUE)?;
            let known = self.prefixes.contains(&prefix);
            let fresh = before.iter().filter(|change| match change {
                Change::Prefix(other, true) => !self.prefixes.contains(other),
                _ => false,
            });
            let all = self.prefixes.len() + fresh.count();
            if valid && !known && all >= self.config.limits.prefixes {
                self.counters.full += 1;
                return Err(ErrorStatus::GENERAL);
            }
            return Ok(Change::Prefix(prefix, valid));
        }
        let known = self.objects(now).contains_key(name) || self.pvc_rows.contains_key(name);
        Err(if known {
            ErrorStatus::READ_ONLY
        } else {
            ErrorStatus::NO_SUCH_NAME
        })
    }

    /// `Ok` if the host may register the address, beside those of the variables before it: the address must be under an
    /// assigned prefix. The owner decides if it is in use elsewhere.
    fn may_register(&mut self, address: AtmAddress, before: &[Change]) -> Result<(), ErrorStatus> {
        let esi = address.esi();
        let offered = self.prefixes.contains(&address.prefix());
        if !offered || esi.is_group() || esi.0 == [0; 6] {
            return Err(ErrorStatus::BAD_VALUE);
        }
        let known = self.addresses.contains_key(&address);
        let fresh = before.iter().filter(|change| match change {
            Change::Address(other, true) => !self.addresses.contains_key(other),
            _ => false,
        });
        let all = self.addresses.len() + fresh.count();
        if !known && all >= self.config.limits.addresses {
            self.counters.full += 1;
            return Err(ErrorStatus::GENERAL);
        }
        Ok(())
    }

    fn host_address(&mut self, address: AtmAddress, valid: bool) {
        if valid {
            if self.addresses.insert(address, true).is_none() {
                self.confirmed(address);
                self.tell_address(address, true);
            }
        } else if self.addresses.remove(&address).is_some() {
            self.scopes.remove(&address);
            self.tell_address(address, false);
        }
    }

    /// All readable objects except permanent connections, in order.
    fn objects(&self, now: Instant) -> BTreeMap<Oid, Value> {
        let config = &self.config;
        let network = config.side == Side::Network;
        let text = |text: &str| Value::Octets(text.as_bytes().to_vec());
        let number = Value::Integer;
        let configured = |path| {
            let count = config.pvcs.iter().filter(|pvc| pvc.path == path).count();
            number(i32::try_from(count).unwrap_or(i32::MAX))
        };
        let mut objects = BTreeMap::from([
            (
                mib::system(1),
                text(concat!("Aerostat ", env!("CARGO_PKG_VERSION"))),
            ),
            (mib::system(2), Value::Oid(mib::uni(&[]))),
            (
                mib::system(mib::SYS_UP_TIME),
                Value::TimeTicks(self.up_time(now)),
            ),
            (mib::system(4), text("")),
            (mib::system(5), text(&config.name)),
            (mib::system(6), text("")),
            // A switch works at layer 2, a host at layers 3 to 7. Source: RFC 1213, sysServices.
            (mib::system(7), number(if network { 2 } else { 72 })),
            (mib::port(mib::MY_IF_NAME), text(&config.name)),
            (mib::port(mib::MY_IF_IDENTIFIER), number(config.number)),
            (
                mib::my_system_identifier(),
                Value::Octets(config.system.0.to_vec()),
            ),
            (mib::atm_layer(mib::MAX_VPI_BITS), number(8)),
            (mib::atm_layer(mib::MAX_VCI_BITS), number(16)),
            (mib::atm_layer(mib::UNI_TYPE), number(2)),
            (
                mib::atm_layer(mib::UNI_VERSION),
                number(number_of(config.version)),
            ),
            (
                mib::atm_layer(mib::DEVICE_TYPE),
                number(if network { 2 } else { 1 }),
            ),
            (mib::atm_layer(mib::ILMI_VERSION), number(2)),
            (
                mib::atm_layer(mib::NNI_SIG_VERSION),
                number(config.nni.number()),
            ),
            // Every VPI except 0 can be a path; channels can have all VCIs from 32 on in one VPI.
            (mib::atm_layer(mib::MAX_VPCS), number(255)),
            (mib::atm_layer(mib::MAX_VCCS), number(65_504)),
            (mib::atm_layer(mib::CONFIGURED_VPCS), configured(true)),
            (mib::atm_layer(mib::CONFIGURED_VCCS), configured(false)),
            // Calls are channels of VPI 0.
            (mib::atm_layer(mib::MAX_SVPC_VPI), number(0)),
            (mib::atm_layer(mib::MAX_SVCC_VPI), number(0)),
            (
                mib::atm_layer(mib::MIN_SVCC_VCI),
                number(Vc::FIRST_USER_VCI.into()),
            ),
            (mib::address_admin_status(), number(1)),
        ]);
        if network {
            for address in self.addresses.keys() {
                let (status, scope) = (mib::address_status(), mib::address_scope());
                objects.insert(mib::of_address(&status, *address), number(mib::VALID));
                let given = self.scopes.get(address).copied().unwrap_or(GLOBAL);
                objects.insert(mib::of_address(&scope, *address), number(given));
            }
            for (index, lecs) in (1..).zip(&config.lecs) {
                objects.insert(mib::of_lecs(index), Value::Octets(lecs.0.to_vec()));
            }
        } else {
            for prefix in &self.prefixes {
                objects.insert(mib::of_prefix(*prefix), number(mib::VALID));
            }
        }
        objects
    }
}
