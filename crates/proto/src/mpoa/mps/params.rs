//! Configuration of an MPOA server: addresses, interfaces, parameters, limits.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aerostat_wire::lane::Tlv;
use aerostat_wire::mpoa::DeviceType;
use aerostat_wire::prefix::within;
use aerostat_wire::{AtmAddress, MacAddr};

use super::conns::Again;
use crate::Duration;
use crate::mix::mix;
use crate::nhrp::{RetryRule, auth};
use crate::parameters;
use crate::time::s;

parameters! {
    /// MPS-p1 to MPS-p7, without p3: the only internetwork protocol is IPv4.
    ///
    /// The standard knows whole seconds only.
    ///
    /// Source: MPOA 1.1 annex F.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MpsParams, MpsRanges, split {
        /// Time between keep-alives (p1).
        ///
        /// A Keep-Alive goes to every client with state this often.
        keepalive_time: Duration = s(10), s(1)..=s(300);
        /// Lifetime that a keep-alive announces (p2; at least 3 times keepalive_time).
        keepalive_lifetime: Duration = s(35), s(3)..=s(1000);
        /// Wait before the first retry of a request (p4).
        ///
        /// The wait doubles with each retry.
        initial_retry: Duration = s(5), s(1)..=s(300);
        /// How long retries go on (p5).
        retry_max: Duration = s(40), s(10)..=s(300);
        /// Time after which a resolution without an answer is given up (p6).
        give_up: Duration = s(40), s(5)..=s(300);
        /// Holding time of bindings (p7).
        ///
        /// The standard counts it in minutes, 1..=120; other times, up to what a packet can say, are for experiments.
        holding: Duration = s(1200), s(1)..=s(65535);
    }
}

impl MpsParams {
    /// The same parameters without parts of seconds.
    #[must_use]
    pub fn in_whole_seconds(mut self) -> Self {
        let times = [
            &mut self.keepalive_time,
            &mut self.keepalive_lifetime,
            &mut self.initial_retry,
            &mut self.retry_max,
            &mut self.give_up,
            &mut self.holding,
        ];
        for time in times {
            *time = s(time.as_secs());
        }
        self
    }
    /// p1; never zero.
    pub(super) fn keepalive_time(&self) -> Duration {
        self.keepalive_time.max(Self::RANGES.keepalive_time.min)
    }
    /// p2 as a packet has it, s.
    pub(super) fn keepalive_lifetime_s(&self) -> u32 {
        in_packet(self.keepalive_lifetime).into()
    }
    /// p7 as a packet has it, s.
    pub(super) fn holding_s(&self) -> u16 {
        in_packet(self.holding)
    }
    /// Retries of a resolution: p4, p5, refused after p6.
    pub(super) fn resolution_rule(&self) -> RetryRule {
        RetryRule {
            initial: self.initial_retry,
            retry_limit: self.retry_max,
            give_up: self.give_up,
        }
    }
    /// Repetition of failed calls: at least as often as requests are sent again (p4), and for as long (p5).
    pub(super) fn call_again(&self) -> Again {
        Again {
            most: self.initial_retry,
            limit: self.retry_max,
        }
    }
    /// Retries of impositions and purges: p4, forgotten after p5.
    pub(super) fn retry_rule(&self) -> RetryRule {
        RetryRule {
            give_up: self.retry_max,
            ..self.resolution_rule()
        }
    }
}

/// Whole seconds, at most what 16 bits hold.
fn in_packet(time: Duration) -> u16 {
    time.as_secs().try_into().unwrap_or(u16::MAX)
}

crate::split_record! {
    /// One interface of the router: a LAN Emulation client on an ELAN.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Interface {
        /// The router's number for it.
        pub itf: u32,
        /// Router's address on it.
        pub ip: Ipv4Addr,
        /// Length of the network prefix, 0..=32.
        pub prefix_len: u8,
        /// Router's IPv6 address on it, and the length of its prefix, 0..=128.
        pub ip6: Option<(Ipv6Addr, u8)>,
        /// Router's MAC address on it.
        pub mac: MacAddr,
        /// ELAN-ID of its ELAN.
        pub elan_id: u32,
        /// True if a LANE client is on this interface; else the interface is a Classical IP subnet, whose stations
        /// register and whose servers are configured.
        pub lane: bool,
    }
}

impl Interface {
    /// The router's address on the interface for peers that talk about `address`; if the interface has no IPv6 address,
    /// the IPv4 address.
    #[must_use]
    pub fn own(&self, address: IpAddr) -> IpAddr {
        match (address, self.ip6) {
            (IpAddr::V6(_), Some((own, _))) => own.into(),
            _ => self.ip.into(),
        }
    }
    /// The router's addresses on the interface.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let six = self.ip6.map(|(own, _)| own.into());
        core::iter::once(self.ip.into()).chain(six)
    }
    /// Prefix length of the interface's network, if the network has addresses of this version; else that of a single
    /// address.
    pub(super) fn prefix_of(&self, address: IpAddr) -> u8 {
        match (address, self.ip6) {
            (IpAddr::V4(_), _) => self.prefix_len,
            (IpAddr::V6(_), own) => own.map_or(128, |(_, prefix)| prefix),
        }
    }
    /// True if the address lies in the interface's network.
    #[must_use]
    pub fn covers(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(_) => within(address, self.ip.into(), self.prefix_len),
            IpAddr::V6(_) => self
                .ip6
                .is_some_and(|(own, prefix)| within(address, own.into(), prefix)),
        }
    }
}

parameters! {
    /// Bounds of all state that a peer can make grow.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits, LimitRanges, split {
        /// Ingress entries in all.
        ingress: usize = 32768, ANY;
        /// Ingress entries of one client.
        ingress_per_mpc: usize = 8192, ANY;
        /// Resolution Requests of one client for one destination that wait while an earlier one is answered.
        ///
        /// As many as a client may have shortcuts with one other client. A request beyond is refused with code 5.
        waiting: usize = 64, ANY;
        /// Egress entries.
        egress: usize = 32768, ANY;
        /// Bindings where the router itself is the exit.
        router_bindings: usize = 1024, ANY;
        /// Addresses that stations have registered.
        registrations: usize = 256, ANY;
        /// Bindings kept from replies that passed through (0: the server keeps no binding).
        ///
        /// The same number of requests whose reply may be kept.
        kept: usize = 512, 0..=*ANY.end();
        /// Stations to purge, for each binding.
        requesters: usize = 256, ANY;
        /// Requests that wait for a reply.
        requests: usize = 65536, ANY;
        /// Questions to the router that wait for an answer.
        queries: usize = 65536, ANY;
        /// Connections, of both directions.
        connections: usize = 16384, ANY;
        /// Connections with one peer.
        connections_per_peer: usize = 8, ANY;
        /// Packets that wait for one connection.
        ///
        /// As many packets as one client can have asked for: a packet that is dropped here is sent again only 5 s
        /// later.
        queue: usize = 8192, ANY;
        /// Devices learned from TLVs, flows remembered for triggers, and requesters for which another server spoke.
        devices: usize = 16384, ANY;
    }
}

/// A table without entries serves no client.
const ANY: core::ops::RangeInclusive<usize> = 1..=1_000_000;

crate::split_record! {
    /// Construction parameters of an MPOA server.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MpsConfig {
        /// Control ATM address: MPOA and NHRP packets.
        pub control: AtmAddress,
        /// Data ATM address: shortcuts that end at this router.
        pub data: AtmAddress,
        /// The router's interfaces; the first gives the address that names the server in NHRP records.
        pub interfaces: Vec<Interface>,
        /// MPS-p1 to p7.
        pub params: MpsParams,
        /// Bounds.
        pub limits: Limits,
        /// Answer with the router's own data address where no client can be the end of the shortcut.
        pub terminate: bool,
        /// Let stations register addresses on this router's networks (RFC 2332 §5.2.3); else the answer is code 4.
        pub register: bool,
        /// Keys shared with other servers, clients and stations. Messages to them are signed; a message without a valid
        /// signature gets error 11 and has no effect. Error Indications cannot be signed.
        pub keys: auth::Keys,
        /// Next hop servers on networks without LE_ARP (Classical IP), by the address that routes use.
        pub servers: BTreeMap<Ipv4Addr, AtmAddress>,
        /// Send Trigger when the router forwards a flow of a client.
        pub trigger: bool,
        /// MTU of shortcuts that end here, octets.
        pub mtu: u16,
        /// First request id.
        pub first_request_id: u32,
        /// First Cache ID; never 0.
        pub first_cache_id: u32,
        /// Sequence number of the first Keep-Alive after `Start`. A restart must begin below the number that
        /// was reached before, so that clients notice it.
        pub first_sequence: u32,
    }
}

impl MpsConfig {
    /// A configuration with default parameters. The seed gives the first request id and Cache ID, so that numbers from
    /// before a restart are not mistaken for new ones.
    #[must_use]
    pub fn new(
        control: AtmAddress,
        data: AtmAddress,
        interfaces: Vec<Interface>,
        seed: u64,
    ) -> Self {
        let (first_request_id, first_cache_id) = Self::first_numbers(mix(seed));
        let first = interfaces.first().map(|interface| interface.ip);
        Self {
            control,
            data,
            interfaces,
            params: MpsParams::default(),
            limits: Limits::default(),
            terminate: true,
            register: false,
            keys: auth::Keys {
                signs_as: first.unwrap_or(Ipv4Addr::UNSPECIFIED),
                ..auth::Keys::default()
            },
            servers: BTreeMap::new(),
            trigger: false,
            mtu: 1500,
            first_request_id,
            first_cache_id,
            first_sequence: 1,
        }
    }
    /// The first request id and the first Cache ID from a random number.
    pub(super) const fn first_numbers(random: u64) -> (u32, u32) {
        ((random >> 32) as u32, random as u32 | 1)
    }
    /// The router's address on the network of `neighbour`, or on its first interface if `neighbour` is on none.
    pub(super) fn facing(&self, neighbour: IpAddr) -> IpAddr {
        self.interfaces
            .iter()
            .find(|interface| interface.covers(neighbour))
            .or(self.interfaces.first())
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |interface| {
                interface.own(neighbour)
            })
    }
    /// The TLVs that the LANE client of an interface is to announce.
    pub(super) fn announces(&self, interface: &Interface) -> Vec<Tlv> {
        let device = DeviceType::Mps {
            control: self.control,
            macs: vec![interface.mac],
        };
        vec![device.to_tlv()]
    }
    pub(super) fn interface(&self, itf: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|known| known.itf == itf)
    }
}
