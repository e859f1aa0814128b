//! Purges over shortcuts: the data plane handles them alone.
//!
//! **Why here.** A purge that came over a shortcut says that packets on it are lost from now on, and a packet that
//! finds no entry at its egress has to stop its ingress. Neither can wait for a daemon, which may hang or be away: the
//! flow would be lost until its holding time ends. A purge is the only control packet on a shortcut that is handled,
//! and the only one that the data plane reads: an NHRP Purge Request, decoded by `aerostat_wire::nhrp` with its bounds.
//! It can remove only entries whose shortcuts end at its sender.
//!
//! Source: MPOA 1.1 §4.4.6 and appendix I.3 (data plane purge); RFC 2332 §5.2.4.

use super::api::Bus;
use super::data::DataPlane;
use super::shortcuts::Shortcut;
use crate::{AtmRequest, ConnId, Duration, Instant, Trace};
use aerostat_wire::counted;
use aerostat_wire::mpoa;
use aerostat_wire::nhrp::{self, Body, Common, Packet};
use aerostat_wire::prefix::width;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Largest number of entries of one purge that are handled.
const ENTRIES_MAX: usize = 256;
/// Two data-plane purges on one shortcut are at least this far apart; two purges for one destination are a second
/// apart.
const GAP: Duration = Duration::from_millis(100);
const GAP_SAME: Duration = Duration::from_secs(1);

/// The client's own protocol addresses, learned from the flows for which it has sent requests. Each half of the client
/// learns them: the data plane must not ask a daemon that hangs, and a daemon may be a process of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    pub(super) v4: Option<Ipv4Addr>,
    v6: Option<Ipv6Addr>,
}

impl Own {
    /// A flow has this source.
    pub(super) fn note(&mut self, source: IpAddr) {
        match source {
            source if source.is_unspecified() => {}
            IpAddr::V4(own) => self.v4 = Some(own),
            IpAddr::V6(own) => self.v6 = Some(own),
        }
    }
    /// The address for packets about `address`, if it is known.
    pub(super) fn of(&self, address: IpAddr) -> Option<IpAddr> {
        match address {
            IpAddr::V4(_) => self.v4.map(IpAddr::V4),
            IpAddr::V6(_) => self.v6.map(IpAddr::V6),
        }
    }
}

/// The destinations of a purge, with the lengths of their prefixes.
pub(super) fn purged(common: &Common) -> impl Iterator<Item = (IpAddr, u8)> {
    common.cies.iter().take(ENTRIES_MAX).filter_map(|cie| {
        let destination = cie.protocol.ip()?;
        // 0 and 255 both stand for "no prefix": the address itself.
        let whole = width(destination);
        let given = (1..=whole).contains(&cie.prefix);
        Some((destination, if given { cie.prefix } else { whole }))
    })
}

/// The reply to a purge, unless its sender wants none.
pub(super) fn purge_reply(common: &Common, packet: &Packet) -> Option<Packet> {
    let wanted = common.flags & nhrp::flag::NO_REPLY == 0;
    wanted.then(|| packet.reply(common.cies.clone())).flatten()
}

/// A purge has removed this many entries.
pub(super) fn forgot(destination: IpAddr, prefix: u8, gone: usize, bus: &mut Bus) {
    let forgotten = counted(gone, "shortcut forgotten", "shortcuts forgotten");
    let text = format!("{destination}/{prefix} purged, {forgotten}");
    let trace = Trace {
        milestone: gone > 0,
        ..Trace::detail("mpc.purge.received", text)
    };
    bus.trace(
        trace
            .with("destination", destination)
            .with("prefix", prefix)
            .with("entries", gone),
    );
}

impl DataPlane {
    /// A control packet on a shortcut: only a purge makes sense there. Flows that it names go by LANE from now on.
    pub(super) fn control(&mut self, conn: ConnId, octets: &[u8], now: Instant, bus: &mut Bus) {
        let Some(peer) = self.shortcuts.get(&conn).map(|shortcut| shortcut.peer) else {
            return;
        };
        let Ok(mut packet) = Packet::decode(octets) else {
            bus.counters.malformed += 1;
            return;
        };
        if let Err(fault) = self.keys.admit_on_shortcut(peer, &mut packet) {
            let own = self
                .ingress
                .own
                .v4
                .map_or(nhrp::ProtocolAddress::NONE, Into::into);
            return bus.refuse(conn, octets, fault, (self.data, own));
        }
        let common = match &packet.body {
            Body::Common(common) if packet.op == nhrp::op::PURGE_REQUEST => common,
            Body::Common(_) | Body::Error(_) => {
                bus.counters.unknown_sender += 1;
                return;
            }
        };
        bus.counters.data_plane_purges += 1;
        let mut any = false;
        for (destination, prefix) in purged(common) {
            let gone = self.ingress.purge_egress(peer, destination, prefix);
            any |= gone > 0;
            forgot(destination, prefix, gone, bus);
        }
        if let Some(mut reply) = purge_reply(common, &packet) {
            bus.counters.purge_replies_sent += 1;
            self.keys.sign_on_shortcut(&mut reply);
            let sdu = reply.to_sdu();
            bus.atm(AtmRequest::Send { conn, sdu });
        }
        if any {
            self.collect(now, bus);
        }
    }

    /// Tells the client at the other end of a shortcut to stop, but not for every packet of a flow.
    pub(super) fn purge_back(
        &mut self,
        conn: ConnId,
        destination: IpAddr,
        now: Instant,
        bus: &mut Bus,
    ) {
        let last = self.shortcuts.get(&conn).and_then(|s| s.last_purge);
        let gap = match last {
            Some((_, last)) if last == destination => GAP_SAME,
            _ => GAP,
        };
        if last.is_none_or(|(at, _)| now.since(at) >= gap) {
            self.purge_over(conn, (destination, width(destination)), now, bus);
        }
    }

    /// A data-plane purge on a shortcut that is up.
    pub(super) fn purge_over(
        &mut self,
        conn: ConnId,
        (destination, prefix): (IpAddr, u8),
        now: Instant,
        bus: &mut Bus,
    ) {
        let own = self.ingress.own.of(destination);
        let up = |shortcut: &&mut Shortcut| shortcut.vc.is_some();
        let Some(shortcut) = self.shortcuts.get_mut(&conn).filter(up) else {
            return;
        };
        shortcut.last_purge = Some((now, destination));
        let mut packet = mpoa::data_plane_purge(self.data, own, destination, prefix);
        self.keys.sign_on_shortcut(&mut packet);
        bus.counters.data_plane_purges_sent += 1;
        let text = format!("data-plane purge of {destination}/{prefix}");
        bus.trace(Trace::milestone("mpc.purge.data_plane", text).with("destination", destination));
        let sdu = packet.to_sdu();
        bus.atm(AtmRequest::Send { conn, sdu });
    }
}
