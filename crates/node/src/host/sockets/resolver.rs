//! ATM addresses of IP addresses that programs call ([`crate::host::sockets`]).
//!
//! The member of the Classical IP subnet that has the address is asked: it knows its next-hop map, and asks the ATMARP
//! server. For addresses outside all subnets of the host its NHRP client is asked.

use crate::host::sockets::{Input, Unresolved};
use crate::host::{Host, ServiceKind, Typed};
use aerostat_proto::clip::{self, Clip, Config, Resolved};
use aerostat_proto::nhrp::client::{self, Nhc, Refusal};
use aerostat_proto::{Cause, Instant};
use aerostat_wire::{AtmAddress, prefix};
use std::net::Ipv4Addr;

/// Service that knows the ATM address of an IP address.
enum Resolver {
    Member(Typed<Clip>),
    Client(Typed<Nhc>),
}

impl Host {
    /// A program calls an IP address. Its token is the address itself, so an answer that comes late is still an answer
    /// to the right question.
    pub(in crate::host) fn resolve(&mut self, ip: Ipv4Addr, now: Instant) {
        let token = u32::from(ip).into();
        match self.resolver(ip) {
            Ok(Resolver::Member(clip)) => self.tell(clip, clip::Input::Resolve { token, ip }, now),
            Ok(Resolver::Client(nhc)) => {
                let destination = ip;
                self.tell(nhc, client::Input::Resolve { token, destination }, now);
            }
            Err(why) => self.tell_resolved(token, Err(why), now),
        }
    }

    fn resolver(&self, ip: Ipv4Addr) -> Result<Resolver, Unresolved> {
        let members = self.interfaces.iter().filter_map(|itf| itf.client.clip());
        let members: Vec<_> = members.collect();
        let running = members.iter().copied();
        let running = running.filter_map(|at| Some((at, self.machine(at)?.config())));
        let running: Vec<(Typed<Clip>, &Config)> = running.collect();
        let is_known = |config: &Config| {
            config.ip == ip || config.hops.fixed.iter().any(|(known, _)| *known == ip)
        };
        let is_within =
            |config: &Config| prefix::within(ip.into(), config.ip.into(), config.prefix_len);
        let known = running.iter().find(|(_, config)| is_known(config));
        let found = known.or_else(|| running.iter().find(|(_, config)| is_within(config)));
        if let Some((at, _)) = found {
            return Ok(Resolver::Member(*at));
        }
        let client = self.nhc.filter(|nhc| self.machine(*nhc).is_some());
        if let Some(nhc) = client {
            return Ok(Resolver::Client(nhc));
        }
        let name = &self.name;
        if running.len() < members.len() || self.nhc.is_some() {
            let text = format!("what resolves IP addresses at {name} has crashed");
            return Err(unresolved(Cause::TEMPORARY, text));
        }
        let subnets = running.iter().map(|(_, config)| subnet(config));
        let text = match subnets.collect::<Vec<_>>().as_slice() {
            [] => format!(
                "{name} has no Classical IP interface to resolve {ip}: call the ATM address or the name of the other host"
            ),
            subnets => format!(
                "{ip} is outside the Classical IP subnets of {name} ({}), and {name} has no NHRP client: call the ATM \
                 address or the name of the other host",
                subnets.join(", ")
            ),
        };
        Err(unresolved(Cause::NO_ROUTE, text))
    }

    fn tell_resolved(&mut self, token: u64, answer: Result<AtmAddress, Unresolved>, now: Instant) {
        let ip = ip_of(token);
        self.tell_sockets(Input::Resolved { ip, answer }, now);
    }

    /// A member of a Classical IP subnet, in this slot, answers a question.
    pub(in crate::host) fn member_resolved(
        &mut self,
        slot: usize,
        token: u64,
        answer: Resolved,
        now: Instant,
    ) {
        let config = self.running::<Clip>(slot).map(Clip::config);
        let subnet = config.map(subnet).unwrap_or_default();
        let entries = config.map_or(0, |config| config.limits.entries);
        let answer = match answer {
            Resolved::Known(address) => Ok(address),
            Resolved::Unknown(why) => Err(told_by_member(ip_of(token), why, &subnet)),
            Resolved::Full => Err(unresolved(
                Cause::RESOURCES,
                format!(
                    "{} addresses of {subnet} are being resolved, which is the limit",
                    entries / 2
                ),
            )),
            Resolved::NoRoom => Err(unresolved(
                Cause::RESOURCES,
                format!("all {entries} entries of the interface on {subnet} are in use"),
            )),
        };
        self.tell_resolved(token, answer, now);
    }

    /// The NHRP client answers a question.
    pub(in crate::host) fn client_resolved(
        &mut self,
        token: u64,
        answer: Result<AtmAddress, client::Unresolved>,
        now: Instant,
    ) {
        let entries = self.nhc.and_then(|nhc| self.machine(nhc));
        let entries = entries.map_or(0, |nhc| nhc.config().limits.entries);
        let answer = answer.map_err(|why| told_by_client(ip_of(token), why, entries));
        self.tell_resolved(token, answer, now);
    }

    /// The service in a slot has died: if it has resolved addresses, somebody else is to be asked.
    pub(in crate::host) fn resolver_died(&mut self, slot: usize, now: Instant) {
        let kind = self.slots[slot].kind;
        if matches!(kind, ServiceKind::Clip | ServiceKind::Nhc) {
            self.tell_sockets(Input::AskAgain, now);
        }
    }
}

/// The IP address of a question.
const fn ip_of(token: u64) -> Ipv4Addr {
    Ipv4Addr::from_bits(token as u32)
}

fn subnet(config: &Config) -> String {
    let mask = aerostat_proto::nhrp::cache::mask(config.prefix_len);
    let network = Ipv4Addr::from(u32::from(config.ip) & mask);
    format!("{network}/{}", config.prefix_len)
}

const fn unresolved(cause: Cause, text: String) -> Unresolved {
    Unresolved { cause, text }
}

fn told_by_member(ip: Ipv4Addr, why: clip::Unresolved, subnet: &str) -> Unresolved {
    use clip::Unresolved as Why;
    let (cause, text) = match why {
        Why::Nak => (
            Cause::UNALLOCATED,
            format!("the ATMARP server of {subnet} knows no {ip}"),
        ),
        Why::Unanswered => (
            Cause::TIMER,
            format!("no ATMARP server of {subnet} has answered about {ip}"),
        ),
        Why::NoServer => (
            Cause::NO_ROUTE,
            format!("{ip} is not among the next hops of {subnet}, which has no ATMARP server"),
        ),
        Why::CallFailed => (
            Cause::OUT_OF_ORDER,
            format!("{ip} could not be called a moment ago"),
        ),
        Why::Permanent => (
            Cause::NO_ROUTE,
            format!("{ip} has only a permanent connection: open it by its label"),
        ),
        Why::Stopped => (
            Cause::TEMPORARY,
            format!("the interface on {subnet} does not run yet"),
        ),
    };
    unresolved(cause, text)
}

/// `entries`: limit of destinations of the client.
fn told_by_client(ip: Ipv4Addr, why: client::Unresolved, entries: usize) -> Unresolved {
    use client::Unresolved as Why;
    let (cause, text) = match why {
        Why::Refused(Refusal::Unanswered) => (
            Cause::TIMER,
            format!("the NHRP server has not answered about {ip}"),
        ),
        Why::Refused(Refusal::Call(cause)) => {
            (cause, format!("{ip} could not be called a moment ago"))
        }
        Why::Refused(refusal @ (Refusal::Code(_) | Refusal::Error(_))) => (
            Cause::UNALLOCATED,
            format!("the NHRP server knows no {ip}: {}", refusal.text()),
        ),
        Why::NotRegistered => (
            Cause::TEMPORARY,
            format!("the NHRP client has no server yet to ask about {ip}"),
        ),
        Why::Full => (
            Cause::RESOURCES,
            format!(
                "{} addresses beside {ip} are being resolved by NHRP, which is the limit",
                entries / 2
            ),
        ),
        Why::NoRoom => (
            Cause::RESOURCES,
            format!("all {entries} entries of the NHRP client are in use, so {ip} has no room"),
        ),
        Why::Stopped => (
            Cause::TEMPORARY,
            format!("the NHRP client, which resolves {ip}, does not run yet"),
        ),
    };
    unresolved(cause, text)
}
