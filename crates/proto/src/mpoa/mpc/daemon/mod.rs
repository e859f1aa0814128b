//! The daemon of a client (mpcd): signalling, request ids, tags, Keep-Alives; it alone reads the packets of peers.
//!
//! The daemon owns every connection. Control connections carry packets to and from MPSs. The daemon opens or accepts
//! shortcuts, then attaches them to the data plane.

mod alive;
mod conns;

use super::api::{Bus, MpcConfig, Numbers, STOP_WAIT};
use super::purge::Own;
use crate::mpoa::messages::{EgressInfo, FlowName, IngressInfo, ToDaemon, ToKernel};
use crate::mpoa::params::{ENCAPSULATION, MpcParams};
use crate::mpoa::split::ElanInfo;
use crate::requests::Repeats;
use crate::vcc::{Vcc, VccTable};
use crate::{AtmRequest, Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::mpoa::{self, EgressPurge, category, service_category_extension};
use aerostat_wire::nhrp::Packet;
use aerostat_wire::{AtmAddress, Qos, Sap, ServiceCategory};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};

/// How long a request id is remembered.
const ID_LIFETIME: Duration = Duration::from_secs(600);

/// Use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::mpoa::mpc) enum Carries {
    /// Control packets to and from an MPS.
    Control,
    /// Data to and from an MPC.
    Shortcut,
}

/// Data that the daemon stores with a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::mpoa::mpc) struct Link {
    /// The traffic of a shortcut if more than best effort.
    qos: Option<Qos>,
    /// The only flow that may use the shortcut.
    flow: Option<FlowName>,
}

/// A connection of the daemon.
type Conn = Vcc<Carries, Link>;

/// The Keep-Alive check of one MPS. Source: MPOA 1.1 annex F (MPS-p1, MPS-p2, MPC-c2).
#[derive(Clone, Copy, Debug)]
pub(in crate::mpoa::mpc) struct KeepAlive {
    pub(in crate::mpoa::mpc) deadline: Instant,
    pub(in crate::mpoa::mpc) sequence: Option<u32>,
}

/// A known MPS.
#[derive(Debug, Default)]
pub(in crate::mpoa::mpc) struct Mps {
    pub(in crate::mpoa::mpc) itfs: BTreeSet<usize>,
    pub(in crate::mpoa::mpc) keep_alive: Option<KeepAlive>,
}

/// An outstanding resolution.
#[derive(Clone, Debug)]
pub(in crate::mpoa::mpc) struct Pending {
    pub(in crate::mpoa::mpc) id: u32,
    pub(in crate::mpoa::mpc) since: Instant,
    pub(in crate::mpoa::mpc) packet: Packet,
}

/// The imposed data that the daemon needs for the answer to the next imposition.
#[derive(Clone, Debug)]
pub(in crate::mpoa::mpc) struct Imposed {
    pub(in crate::mpoa::mpc) tag: Option<u32>,
    pub(in crate::mpoa::mpc) ingress: AtmAddress,
    pub(in crate::mpoa::mpc) destination: IpAddr,
    pub(in crate::mpoa::mpc) prefix: u8,
    pub(in crate::mpoa::mpc) header: Vec<u8>,
}

/// An outstanding Egress Cache Purge Request.
#[derive(Clone, Debug)]
pub(in crate::mpoa::mpc) struct Purge {
    pub(in crate::mpoa::mpc) id: u32,
    packet: Packet,
    retry: Repeats,
}

/// An ELAN as the daemon knows it.
#[derive(Clone, Copy, Debug)]
pub(in crate::mpoa::mpc) struct Elan {
    pub(in crate::mpoa::mpc) elan_id: u32,
    pub(in crate::mpoa::mpc) mtu: u16,
}

impl Elan {
    pub(in crate::mpoa::mpc) const fn info(self, itf: usize) -> ElanInfo {
        let Self { elan_id, mtu } = self;
        ElanInfo { itf, elan_id, mtu }
    }
}

/// Name of an egress entry: MPS, cache id.
pub(in crate::mpoa::mpc) type EgressKey = (AtmAddress, u32);

/// Progress of the daemon's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpoa::mpc) enum Ending {
    No,
    /// Waits for replies to purges, then ends; with `reload` the client is started again.
    Wait {
        until: Instant,
        reload: bool,
    },
    Done {
        reload: bool,
    },
}

/// The daemon.
#[derive(Debug)]
pub(in crate::mpoa::mpc) struct Daemon {
    pub(in crate::mpoa::mpc) config: MpcConfig,
    params: MpcParams,
    pub(in crate::mpoa::mpc) elans: BTreeMap<usize, Elan>,
    pub(in crate::mpoa::mpc) mps: BTreeMap<AtmAddress, Mps>,
    pub(in crate::mpoa::mpc) conns: VccTable<Carries, Link>,
    pub(in crate::mpoa::mpc) pending: BTreeMap<FlowName, Pending>,
    pub(in crate::mpoa::mpc) imposed: BTreeMap<EgressKey, Imposed>,
    pub(in crate::mpoa::mpc) tags: BTreeSet<u32>,
    pub(in crate::mpoa::mpc) purges: BTreeMap<EgressKey, Purge>,
    pub(in crate::mpoa::mpc) ending: Ending,
    /// The data plane has said all that an end needs.
    cleaned: bool,
    own: Own,
}

impl Daemon {
    /// A daemon starts: it listens, and announces itself to the data plane. Its calls get the ids after `last`.
    pub(in crate::mpoa::mpc) fn start(
        config: &MpcConfig,
        params: &MpcParams,
        elans: BTreeMap<usize, Elan>,
        last: ConnId,
        bus: &mut Bus,
    ) -> Self {
        let daemon = Self {
            config: config.clone(),
            params: params.clone(),
            elans,
            mps: BTreeMap::new(),
            conns: VccTable::after(last),
            pending: BTreeMap::new(),
            imposed: BTreeMap::new(),
            tags: BTreeSet::new(),
            purges: BTreeMap::new(),
            ending: Ending::No,
            cleaned: false,
            own: Own::default(),
        };
        daemon.listen(bus);
        bus.kernel(ToKernel::SetMpcControlAddress(config.control));
        for known in &config.static_mps {
            let (itf, mac, mps) = (known.itf, known.mac, known.control);
            bus.kernel(ToKernel::SetMpsMacAddress { itf, mac, mps });
        }
        daemon
    }

    /// Closes all sockets, as the operating system does when the process ends.
    pub(in crate::mpoa::mpc) fn close_all(&mut self, bus: &mut Bus) {
        for release in self.conns.release_all() {
            bus.atm(release);
        }
        for address in [self.config.control, self.config.data] {
            bus.atm(AtmRequest::Unlisten {
                address,
                sap: Sap::LLC,
            });
        }
    }

    /// SIGTERM, or SIGHUP if `reload`.
    pub(in crate::mpoa::mpc) fn end(&mut self, reload: bool, now: Instant, bus: &mut Bus) {
        if self.ending == Ending::No {
            self.ending = Ending::Wait {
                until: now + STOP_WAIT,
                reload,
            };
            bus.kernel(if reload {
                ToKernel::Reload
            } else {
                ToKernel::CleanUpAndExit
            });
        }
    }

    pub(in crate::mpoa::mpc) fn set_params(&mut self, params: MpcParams, bus: &mut Bus) {
        self.params = params.clone();
        bus.kernel(ToKernel::SetParams(params));
    }

    /// Listens at both addresses.
    fn listen(&self, bus: &mut Bus) {
        for address in [self.config.control, self.config.data] {
            bus.atm(AtmRequest::listen(address, Sap::LLC, u16::MAX));
        }
    }

    /// SDU of a shortcut to an ELAN of this MTU (0: unknown). In both directions, no packet on the shortcut is larger
    /// than the smaller of the MTUs at its two ends.
    fn sdu_for(&self, mtu: u16) -> u16 {
        let own = self.elans.values().map(|elan| elan.mtu).max().unwrap_or(0);
        let sdu = own.min(mtu).saturating_add(ENCAPSULATION);
        self.config.max_sdu.max(sdu)
    }

    /// A message from the data plane.
    pub(in crate::mpoa::mpc) fn handle(
        &mut self,
        message: ToDaemon,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        match message {
            ToDaemon::SendResolutionRequest { info, qos } => {
                self.resolve(&info, qos, numbers, now, bus);
            }
            ToDaemon::SendResolutionRetry(info) => {
                if let Some(pending) = self.pending.get(&info.flow()) {
                    let packet = pending.packet.clone();
                    bus.counters.resolution_requests_sent += 1;
                    let text = format!("resolution request for {} repeated", info.destination);
                    bus.trace(Trace::detail("mpc.resolution.retry", text));
                    self.send(info.mps, &packet, now, bus);
                }
            }
            ToDaemon::SetMpsControlAddress { itf, mps } => {
                let full = self.mps.len() >= self.config.limits.mps;
                if full && !self.mps.contains_key(&mps) {
                    bus.counters.mps_limit += 1;
                    return;
                }
                self.mps.entry(mps).or_default().itfs.insert(itf);
            }
            ToDaemon::StopKeepAlive { mps } => {
                if let Some(mps) = self.mps.get_mut(&mps) {
                    mps.keep_alive = None;
                }
            }
            ToDaemon::EgressEntryRemoved { mps, cache_id } => {
                self.purges.remove(&(mps, cache_id));
                let gone = self.imposed.remove(&(mps, cache_id));
                if let Some(tag) = gone.and_then(|entry| entry.tag) {
                    self.tags.remove(&tag);
                }
                self.settle_end();
            }
            ToDaemon::SendEgressPurge(info) => self.purge_egress(&info, numbers, now, bus),
            ToDaemon::Die | ToDaemon::Reload => {
                self.cleaned = true;
                self.settle_end();
            }
            ToDaemon::IngressEntry(info) => {
                self.own.note(info.source);
                self.watch(info.mps, now);
            }
            ToDaemon::EgressEntry(info) => self.take_over(info, now),
            ToDaemon::OpenIngressSvc { info, qos } => self.open_shortcut(&info, qos, now, bus),
            ToDaemon::CloseShortcut { conn } => {
                self.conns.remove(conn);
                bus.atm(AtmRequest::Release {
                    conn,
                    cause: Cause::NORMAL,
                });
            }
        }
    }

    /// The client's own address for packets about `address`; unspecified if unknown.
    fn own_for(&self, address: IpAddr) -> IpAddr {
        self.own.of(address).unwrap_or(match address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    /// 201: a Resolution Request under a new id.
    fn resolve(
        &mut self,
        info: &IngressInfo,
        qos: Option<Qos>,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        if self.ending != Ending::No {
            return;
        }
        self.own.note(info.source);
        let id = numbers.request();
        let source = self.own_for(info.destination);
        let mut packet = mpoa::resolution_request(id, self.config.data, source, info.destination);
        if let Some(bits) = qos.and_then(|qos| category_bits(&qos)) {
            packet = packet.with(service_category_extension(bits));
        }
        self.pending.retain(|_, p| now.since(p.since) < ID_LIFETIME);
        let pending = Pending {
            id,
            since: now,
            packet: packet.clone(),
        };
        self.pending.insert(info.flow(), pending);
        bus.counters.resolution_requests_sent += 1;
        let text = format!(
            "resolution request for {} to {}",
            info.destination, info.mps
        );
        bus.trace(
            Trace::milestone("mpc.resolution.sent", text)
                .with("destination", info.destination)
                .with("mps", info.mps)
                .with("id", id),
        );
        self.send(info.mps, &packet, now, bus);
    }

    /// This daemon takes over an entry that its predecessor accepted: it answers for the entry, refreshes and purges
    /// it.
    fn take_over(&mut self, info: EgressInfo, now: Instant) {
        self.watch(info.mps, now);
        self.tags.extend(info.tag);
        self.imposed.insert(
            (info.mps, info.cache_id),
            Imposed {
                tag: info.tag,
                ingress: info.ingress,
                destination: info.destination,
                prefix: info.prefix,
                header: info.header,
            },
        );
    }

    /// 206: an Egress Cache Purge Request, repeated until it is answered.
    fn purge_egress(
        &mut self,
        info: &EgressInfo,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        let id = numbers.request();
        let purge = EgressPurge {
            id,
            mpc_control: self.config.control,
            mpc_data: self.config.data,
            mpc: self.own_for(info.destination),
            mps: info.mps_ip,
            target: info.destination,
            prefix: info.prefix,
            cache_id: info.cache_id,
            elan_id: info.elan_id,
        };
        let packet = purge.packet();
        let retry = self.params.repeats(now);
        self.purges.insert(
            (info.mps, info.cache_id),
            Purge {
                id,
                packet: packet.clone(),
                retry,
            },
        );
        bus.counters.egress_purges_sent += 1;
        let text = format!(
            "egress entry {} for {} purged",
            info.cache_id, info.destination
        );
        bus.trace(
            Trace::milestone("mpc.purge.sent", text)
                .with("destination", info.destination)
                .with("cache_id", info.cache_id),
        );
        self.send(info.mps, &packet, now, bus);
    }

    /// Ends once the data plane is clean and the purges are answered.
    fn settle_end(&mut self) {
        if let Ending::Wait { reload, .. } = self.ending
            && self.cleaned
            && self.purges.is_empty()
        {
            self.ending = Ending::Done { reload };
        }
    }
}

/// The traffic of a shortcut, seen from this end, unless it is best effort in both directions, for all flows. A
/// connection that carries nothing in one direction, or with a guarantee in one, is for some flows only.
pub(in crate::mpoa::mpc) fn beyond_best_effort(qos: &Qos) -> Option<Qos> {
    let plain = [qos.tx, qos.rx].iter().all(|way| {
        let category = way.category;
        category.is_some_and(|category| !category.is_guaranteed())
    });
    (!plain).then_some(*qos)
}

/// Bits of the ATM Service Category extension for the traffic of a flow; `None` for best effort.
pub(in crate::mpoa::mpc) fn category_bits(qos: &Qos) -> Option<u16> {
    match qos.tx.category? {
        ServiceCategory::Cbr => Some(category::CBR),
        ServiceCategory::RtVbr => Some(category::RT_VBR),
        ServiceCategory::NrtVbr => Some(category::NRT_VBR),
        ServiceCategory::Abr => Some(category::ABR),
        ServiceCategory::Gfr | ServiceCategory::Ubr => None,
    }
}
