//! Bindings that this station gave or received, until their holding time is over, with the stations that got them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aerostat_wire::AtmAddress;
use aerostat_wire::nhrp::code;
use aerostat_wire::prefix::{masked, width, within};

use crate::Instant;

aerostat_wire::named! {
    /// Why a binding is in the cache.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reason {
        /// This router is the exit: packets for the destination come to the router's own ATM address.
        Router = "router",
        /// An egress client accepted the binding, and this server answered with it.
        Imposed = "imposed",
        /// A reply brought the binding for a client of this server.
        Learned = "learned",
        /// The station itself registered the binding.
        Registered = "registered",
        /// An authoritative reply to another requester, which passed through here.
        Transit = "transit",
    }
}

impl Reason {
    /// True if an answer from such a binding is authoritative (flag A). Source: RFC 2332 §5.2.2.
    #[must_use]
    pub const fn authoritative(self) -> bool {
        !matches!(self, Self::Learned | Self::Transit)
    }
}

/// Key of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Destination protocol address.
    pub destination: IpAddr,
    /// Its prefix length, at most that of the whole address.
    pub prefix_len: u8,
    /// The only station that may use the binding (an imposed one is for one ingress); `None` if any may use it.
    pub scope: Option<AtmAddress>,
    /// Why the binding is here.
    pub reason: Reason,
}

impl Key {
    /// The first key about an address.
    const fn least(destination: IpAddr) -> Self {
        Self {
            destination,
            prefix_len: 0,
            scope: None,
            reason: Reason::Router,
        }
    }
    /// True if one of the two prefixes contains the other.
    #[must_use]
    pub fn overlaps(&self, address: IpAddr, prefix_len: u8) -> bool {
        within(address, self.destination, self.prefix_len.min(prefix_len))
    }
}

/// The first of all addresses: those of IPv4 stand before those of IPv6.
const MIN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The place of a key among the networks.
fn place_of(key: Key) -> (u8, IpAddr, Key) {
    (key.prefix_len, masked(key.destination, key.prefix_len), key)
}

/// The last address of a network.
fn last(address: IpAddr, prefix_len: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => {
            let rest = u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() | rest).into()
        }
        IpAddr::V6(ip) => {
            let rest = u128::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() | rest).into()
        }
    }
}

/// The network mask of an IPv4 prefix length (above 32: as 32).
#[must_use]
pub fn mask(prefix_len: u8) -> u32 {
    u32::MAX
        .checked_shl(32 - u32::from(prefix_len.min(32)))
        .unwrap_or(0)
}

/// The network of an address.
#[must_use]
pub fn network(address: IpAddr, prefix_len: u8) -> IpAddr {
    masked(address, prefix_len)
}

/// The shortest prefix around `address`, of at least 8 bits (16 for IPv6), in which all addresses take the same route:
/// no longer prefix of the `table` is inside it. Without a route it is the whole address.
///
/// Shorter prefixes are never told: they would include groups, or a large part of all addresses.
#[must_use]
pub fn covers(address: IpAddr, table: &[(IpAddr, u8)]) -> u8 {
    let whole = width(address);
    let fits = |entry: &&(IpAddr, u8)| within(address, entry.0, entry.1);
    let Some((_, best)) = table.iter().filter(fits).max_by_key(|(_, len)| *len) else {
        return whole;
    };
    let clean = |by: &u8| {
        let mut other = table.iter().filter(|(_, len)| len > best);
        !other.any(|(net, len)| len >= by && within(address, *net, *by))
    };
    ((*best).max(if whole == 32 { 8 } else { 16 })..whole)
        .find(clean)
        .unwrap_or(whole)
}

/// Where a destination can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// ATM address of the shortcut's far end.
    pub nbma: AtmAddress,
    /// Protocol address of the next hop, if known.
    pub next_hop: Option<IpAddr>,
    /// Largest packet, octets; 0 means the default.
    pub mtu: u16,
    /// End of the holding time.
    pub until: Instant,
    /// True if the binding is the only one for the destination.
    pub unique: bool,
    /// Stations that got the binding, by protocol and ATM address, and until when they may use it.
    pub requesters: BTreeMap<(IpAddr, AtmAddress), Instant>,
}

/// The cache, with at most `limit` bindings of at most `requester_limit` requesters each.
#[derive(Clone, Debug)]
pub struct Cache {
    limit: usize,
    requester_limit: usize,
    bindings: BTreeMap<Key, Binding>,
    deadlines: BTreeSet<(Instant, Key)>,
    /// The keys by the length of their prefix and its network: a question costs a search for each length that occurs,
    /// and not a walk over all bindings.
    networks: BTreeSet<(u8, IpAddr, Key)>,
    /// Number of bindings of each kind.
    counts: BTreeMap<Reason, usize>,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub const fn new(limit: usize, requester_limit: usize) -> Self {
        Self {
            limit,
            requester_limit,
            bindings: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            networks: BTreeSet::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Stores a binding. Requesters of an older binding with the same key are kept while theirs is valid. False if
    /// there is no room.
    pub fn store(&mut self, key: Key, mut binding: Binding, now: Instant) -> bool {
        match self.remove(&key) {
            Some(old) => {
                let valid = old.requesters.into_iter().filter(|(_, until)| *until > now);
                for (who, until) in valid {
                    binding.requesters.entry(who).or_insert(until);
                }
            }
            None if self.bindings.len() >= self.limit => return false,
            None => {}
        }
        self.deadlines.insert((binding.until, key));
        self.networks.insert(place_of(key));
        *self.counts.entry(key.reason).or_default() += 1;
        self.bindings.insert(key, binding);
        true
    }

    /// Records that a station got the binding and may use it as long as it is valid now. False if the binding is
    /// unknown or has too many requesters.
    pub fn note_requester(&mut self, key: &Key, who: (IpAddr, AtmAddress)) -> bool {
        let Some(binding) = self.bindings.get_mut(key) else {
            return false;
        };
        if binding.requesters.len() >= self.requester_limit
            && !binding.requesters.contains_key(&who)
        {
            return false;
        }
        binding.requesters.insert(who, binding.until);
        true
    }

    /// The binding with exactly this key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Binding> {
        self.bindings.get(key)
    }

    /// The answer to a request for `destination` from bindings that any station may use: the binding with the longest
    /// prefix, or the code of the refusal. Without any binding this is `Err(12)`.
    ///
    /// With `authoritative` (flag A of the request) a learned binding never answers; with `unique` (flag U) only a
    /// unique one does. Source: RFC 2332 §5.2.1, §5.2.2.
    ///
    /// # Errors
    /// The CIE code of the negative reply: 12, or 13 if only bindings that are not unique exist.
    pub fn answer(
        &self,
        destination: IpAddr,
        authoritative: bool,
        unique: bool,
    ) -> Result<(&Key, &Binding), u8> {
        let usable = self.about(destination).filter(|(key, _)| {
            key.scope.is_none() && (key.reason.authoritative() || !authoritative)
        });
        let mut refusal = code::NO_BINDING;
        let mut best: Option<(&Key, &Binding)> = None;
        for (key, binding) in usable {
            if unique && !binding.unique {
                refusal = code::NOT_UNIQUE;
            } else if best.is_none_or(|(known, _)| known.prefix_len < key.prefix_len) {
                best = Some((key, binding));
            }
        }
        best.ok_or(refusal)
    }

    /// Removes a binding.
    pub fn remove(&mut self, key: &Key) -> Option<Binding> {
        let binding = self.bindings.remove(key)?;
        self.deadlines.remove(&(binding.until, *key));
        self.networks.remove(&place_of(*key));
        if let Some(count) = self.counts.get_mut(&key.reason) {
            *count -= 1;
        }
        Some(binding)
    }

    /// Number of bindings of a kind.
    #[must_use]
    pub fn count(&self, reason: Reason) -> usize {
        self.counts.get(&reason).copied().unwrap_or_default()
    }

    /// The bindings whose prefix contains this address, shortest prefix first.
    pub fn about(&self, address: IpAddr) -> impl Iterator<Item = (&Key, &Binding)> {
        self.overlapping(address, width(address))
    }

    /// The bindings of which one prefix contains the other, shortest prefix first.
    pub fn overlapping(
        &self,
        address: IpAddr,
        prefix_len: u8,
    ) -> impl Iterator<Item = (&Key, &Binding)> {
        let mut length = Some(0);
        let lengths = std::iter::from_fn(move || {
            // The next length that occurs.
            let first = (length?, MIN, Key::least(MIN));
            let found = self
                .networks
                .range(first..)
                .next()
                .map(|(length, ..)| *length);
            length = found.and_then(|found| found.checked_add(1));
            found
        });
        let keys = lengths.flat_map(move |length| {
            let covers = length.min(prefix_len);
            let (low, high) = (masked(address, covers), last(address, covers));
            let from = (length, masked(low, length), Key::least(MIN));
            let networks = self.networks.range(from..);
            let networks = networks.take_while(move |(l, net, _)| *l == length && *net <= high);
            networks.map(|(.., key)| key)
        });
        let keys = keys.filter(move |key| key.overlaps(address, prefix_len));
        keys.filter_map(|key| Some((key, self.bindings.get(key)?)))
    }

    /// Keys of the bindings that a purge of this prefix concerns; `nbma` restricts it to one far end.
    #[must_use]
    pub fn matching(&self, address: IpAddr, prefix_len: u8, nbma: Option<AtmAddress>) -> Vec<Key> {
        let all = self.overlapping(address, prefix_len);
        let hit = all.filter(|(_, binding)| nbma.is_none_or(|nbma| nbma == binding.nbma));
        let mut keys: Vec<Key> = hit.map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys
    }

    /// Removes one binding whose holding time is over, earliest first. Call until `None`.
    pub fn expire(&mut self, now: Instant) -> Option<(Key, Binding)> {
        let (_, key) = *self.deadlines.first().filter(|(at, _)| *at <= now)?;
        self.remove(&key).map(|binding| (key, binding))
    }

    /// The earliest end of a holding time.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// All bindings, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Binding)> {
        self.bindings.iter()
    }

    /// Number of bindings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bindings.len()
    }

    /// True if there are no bindings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }

    /// Removes all bindings.
    pub fn clear(&mut self) {
        self.bindings.clear();
        self.deadlines.clear();
        self.networks.clear();
        self.counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn key(destination: [u8; 4], prefix_len: u8, reason: Reason) -> Key {
        Key {
            destination: destination.into(),
            prefix_len,
            scope: None,
            reason,
        }
    }

    fn binding(until: u64, unique: bool) -> Binding {
        Binding {
            nbma: AtmAddress::ZERO,
            next_hop: None,
            mtu: 1500,
            until: Instant::from_secs(until),
            unique,
            requesters: BTreeMap::new(),
        }
    }

    #[test]
    fn authoritative_and_unique_rules() {
        let mut cache = Cache::new(8, 8);
        let target = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20));
        assert_eq!(cache.answer(target, false, false).unwrap_err(), 12);
        cache.store(
            key([10, 2, 0, 0], 16, Reason::Learned),
            binding(9, false),
            NOW,
        );
        assert!(cache.answer(target, false, false).is_ok());
        assert_eq!(cache.answer(target, true, false).unwrap_err(), 12);
        assert_eq!(cache.answer(target, false, true).unwrap_err(), 13);
        cache.store(
            key([10, 2, 0, 0], 24, Reason::Router),
            binding(9, true),
            NOW,
        );
        let (best, _) = cache.answer(target, true, true).unwrap();
        assert_eq!(best.prefix_len, 24);
        let scoped = Key {
            scope: Some(AtmAddress::LECS),
            ..key([10, 3, 0, 1], 32, Reason::Imposed)
        };
        cache.store(scoped, binding(9, true), NOW);
        let other = IpAddr::V4(Ipv4Addr::new(10, 3, 0, 1));
        assert_eq!(
            cache.answer(other, false, false).unwrap_err(),
            12,
            "a binding for one ingress answers nobody else"
        );
    }

    #[test]
    fn what_a_route_covers() {
        let ip = |a, b, c, d| IpAddr::from([a, b, c, d]);
        let table = [
            (ip(0, 0, 0, 0), 0),
            (ip(10, 9, 0, 0), 16),
            (ip(10, 9, 7, 0), 24),
            (ip(10, 9, 128, 1), 32),
        ];
        for (address, length) in [
            (ip(10, 9, 200, 1), 18),
            (ip(10, 9, 128, 2), 31),
            (ip(10, 9, 1, 1), 22),
            (ip(10, 9, 7, 9), 24),
            (ip(10, 9, 128, 1), 32),
            (ip(10, 8, 0, 1), 16),
            (ip(11, 0, 0, 1), 8),
        ] {
            assert_eq!(covers(address, &table), length, "{address}");
        }
        assert_eq!(covers(ip(11, 0, 0, 1), &table[1..]), 32, "no route");
        let six = |text: &str| text.parse::<IpAddr>().unwrap();
        let table = [
            (six("::"), 0),
            (six("2001:db8:1::"), 48),
            (ip(0, 0, 0, 0), 0),
        ];
        assert_eq!(covers(six("2001:db8:1::5"), &table), 48);
        assert_eq!(covers(six("2001:db8:2::5"), &table), 47);
        assert_eq!(covers(six("fd00::1"), &table), 16);
    }

    proptest::proptest! {
        /// The index against a walk over all bindings.
        #[test]
        fn what_overlaps_is_found_without_a_walk(
            steps in proptest::collection::vec((0_u32..64, 22_u8..=32, 0_u8..3, proptest::bool::ANY), 1..60),
            asked in 0_u32..64, length in 0_u8..=32
        ) {
            let mut cache = Cache::new(40, 1);
            let ip = |number: u32| IpAddr::from((0x0a00_0000_u32 + number * 3).to_be_bytes());
            for (number, prefix_len, kind, store) in steps {
                let reason = [Reason::Router, Reason::Registered, Reason::Transit][usize::from(kind)];
                let key = Key { destination: ip(number), prefix_len, scope: None, reason };
                if store {
                    cache.store(key, binding(9, false), NOW);
                } else {
                    cache.remove(&key);
                }
            }
            let six = Key { destination: "fd00::1".parse().unwrap(), prefix_len: 64, scope: None, reason: Reason::Router };
            cache.store(six, binding(9, false), NOW);
            let walk = cache.iter().filter(|(key, _)| key.overlaps(ip(asked), length));
            let walk: Vec<Key> = walk.map(|(key, _)| *key).collect();
            proptest::prop_assert_eq!(cache.matching(ip(asked), length, None), walk);
            let lengths: Vec<u8> = cache.about(ip(asked)).map(|(key, _)| key.prefix_len).collect();
            proptest::prop_assert!(lengths.is_sorted());
            for reason in [Reason::Router, Reason::Registered, Reason::Transit] {
                let count = cache.iter().filter(|(key, _)| key.reason == reason).count();
                proptest::prop_assert_eq!(cache.count(reason), count);
            }
        }

        /// All covered addresses have the same route. With one bit less an address would have another one, or the route
        /// is no wider.
        #[test]
        fn all_that_is_covered_goes_one_way(
            nets in proptest::collection::vec((0_u32..64, 24_u8..=32), 1..8), host in 0_u32..64
        ) {
            let base = 0x0a00_0000_u32;
            let ip = |number: u32| IpAddr::from(number.to_be_bytes());
            let table: Vec<_> = nets.iter().map(|(net, len)| (network(ip(base + net), *len), *len)).collect();
            let best = |address: u32| {
                let fits = table.iter().filter(|(net, len)| *net == network(ip(address), *len));
                fits.max_by_key(|(_, len)| *len)
            };
            let address = base + host;
            let covered = covers(ip(address), &table);
            let all = |len: u8| (0..256).map(|low| base + low).filter(move |other| {
                network(ip(*other), len) == network(ip(address), len)
            });
            let one = |len: u8| all(len).all(|other| best(other) == best(address));
            proptest::prop_assert!(one(covered));
            let route = best(address).map_or(32, |(_, len)| *len);
            proptest::prop_assert!(covered >= route);
            if covered > route {
                proptest::prop_assert!(!one(covered - 1));
            }
        }
    }

    #[test]
    fn expiry_limits_and_requesters() {
        let mut cache = Cache::new(2, 1);
        let (a, b) = (
            key([10, 0, 0, 1], 32, Reason::Router),
            key([10, 0, 0, 2], 32, Reason::Router),
        );
        assert!(cache.store(a, binding(5, false), NOW) && cache.store(b, binding(3, false), NOW));
        assert!(!cache.store(
            key([10, 0, 0, 3], 32, Reason::Router),
            binding(3, false),
            NOW
        ));
        let who = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)), AtmAddress::ZERO);
        assert!(cache.note_requester(&a, who) && cache.note_requester(&a, who));
        assert!(!cache.note_requester(
            &a,
            (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 8)), AtmAddress::ZERO)
        ));
        assert!(
            cache.store(a, binding(7, false), NOW),
            "a refresh needs no new room"
        );
        assert!(cache.get(&a).unwrap().requesters.contains_key(&who));
        assert!(cache.store(a, binding(7, false), Instant::from_secs(6)));
        assert!(
            cache.get(&a).unwrap().requesters.is_empty(),
            "it could use the binding until second 5 only"
        );
        assert_eq!(cache.deadline(), Some(Instant::from_secs(3)));
        assert_eq!(cache.expire(Instant::from_secs(5)).unwrap().0, b);
        assert_eq!(cache.expire(Instant::from_secs(5)), None);
        assert_eq!(cache.matching([10, 0, 0, 0].into(), 8, None), [a]);
        assert!(
            cache
                .matching([10, 0, 0, 0].into(), 8, Some(AtmAddress::LECS))
                .is_empty()
        );
        assert!(cache.matching([11, 0, 0, 0].into(), 8, None).is_empty());
    }
}
