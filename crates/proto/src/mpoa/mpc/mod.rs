//! The MPOA client (MPC): sends IP flows over shortcuts, and receives flows over shortcuts.
//!
//! **Purpose.** A host on an emulated LAN sends everything for other subnets to a router's MAC address. The client sits
//! between the host's IP stack and its LECs. It counts frames to each destination behind a router that is an MPS; a
//! flow makes it ask the MPS where the destination leaves the ATM network, open a connection to the MPC there, and send
//! the flow's packets on it. In the other direction an MPS imposes the header for the packets that another MPC will
//! send; the client puts the header before the packets and passes them to the stack as if they had come from the ELAN.
//!
//! **Objects and owners.** [`Mpc`] owns two halves that talk only by the messages of
//! [`messages`](crate::mpoa::messages). The data plane (`data`, with the `ingress` and `egress` caches) forwards,
//! counts and ages, and never reads a control packet. The daemon (`daemon`, `control`) owns every connection, the
//! request ids and tags, and the keep-alive check of each MPS. It lives in [`Mpc`], or in a process of its own as an
//! [`Mpcd`] ([`split`](crate::mpoa::split)); then `away` keeps its seat. The daemon can die ([`Input::KillDaemon`]):
//! its connections close and frames go on over LANE. What the caches hold waits for the next daemon, 60 s at most
//! (MPC-c2, as long as an MPS is trusted without a sign of life). The next one takes it over: it watches the MPSs,
//! keeps the tags, finishes purges, and opens shortcuts again when their flows go on.
//!
//! **States.** [`IngressState`] and [`EgressState`].
//!
//! **Timers.** MPC-p2 windows; retries by MPC-p4, c1, p5; hold-down MPC-p6; refresh at two thirds of a holding time;
//! holding times; keep-alive lifetimes; 20 s until a shortcut without entries that the other side opened is closed; 2 s
//! for replies to the purges of an ending client.
//!
//! **QoS.** [`Input::SetQos`] names packets by addresses, protocol and ports (`flows`). The packets that fit an entry
//! are a flow of their own for each destination. The flow is counted, resolved and held down separately, and gets a
//! connection that no other flow uses and that is released with the flow. The Resolution Request says which category is
//! wanted. If the connection cannot be had, or the reply says that the egress takes UBR only, the flow uses best
//! effort, and the client reports this; after MPC-p6 the client tries again. Packets in the reverse direction may use a
//! connection that the other end opened for a flow. They must fit an entry with the same traffic; or they fit no entry,
//! and their destination is the source of the packets that arrive on the connection. Source: Tampere thesis §6.1.
//!
//! **Standards.** MPOA 1.0/1.1 (af-mpoa-0087, af-mpoa-0114) §4 client side, appendix I.2 and I.5; RFC 2332 packet
//! formats; RFC 2684 routed encapsulation.
//!
//! **Not implemented.** Protocols other than IP; token ring headers; several data addresses; bridging between an ELAN
//! and other ports (egress state *flooding*). QoS entries ask for any traffic by `SetQos`, but their text is CBR only.
//!
//! **Deviations.** IPv6 takes shortcuts as IPv4 does, under protocol type 0x86DD in control packets and LLC/SNAP 86DD
//! or a tag before data: our own addition, since the standard defines IPv4 (and leaves room for others), and a peer
//! without it refuses with code 0x84. QoS entries are for IPv4 alone. Packets with hop-by-hop, routing, fragment or
//! destination options headers go by LANE, as do link-local addresses. The window of MPC-p2 starts with an entry's
//! first frame, not at a common tick. A Resolution Reply that comes after the last retry has failed is ignored. The
//! ageing of LE_ARP does not end the shortcuts of an MPS, since a host whose traffic all takes shortcuts has no reason
//! to send LE_ARP: ageing only stops new flows until LE_ARP finds the MPS again. An imposition by an unknown MPS is not
//! answered, but LE_ARP looks up the owner of its MAC address: the standard has no other way for a host that only
//! receives to find its MPS after a restart. A daemon that takes over does not know the sequence number of the last
//! Keep-Alive: the daemon notices the restart of an MPS in the meantime by its silence, after MPC-c2.

mod api;
mod away;
mod control;
mod daemon;
mod data;
mod egress;
mod entries;
mod flows;
mod ingress;
mod packet;
mod process;
mod shortcuts;
mod snapshot;
#[cfg(test)]
mod tests;
mod why;

pub use api::{ByCode, Input, MpcConfig, MpcCounters, MpcLimits, Output, StaticMps};
pub use egress::EgressState;
pub use ingress::IngressState;
pub use process::{Mpcd, MpcdInput, MpcdOutput};
pub use snapshot::{EgressRow, IngressRow, MpcSnapshot, MpsRow, ShortcutRow};
pub use why::{Why, WhyReason};

use crate::discard::Discard;
use crate::mpoa::params::MpcParams;
use crate::mpoa::split::ToMpcd;
use crate::{AtmEvent, AtmRequest, Cause, Instant, Machine, Refused, Trace};
use aerostat_wire::lane::Tlv;
use api::{Bus, Numbers, RELOAD_PAUSE};
use away::Away;
use daemon::{Daemon, Elan, Ending};
use data::DataPlane;
use std::collections::BTreeMap;

/// An MPOA client.
#[derive(Debug)]
pub struct Mpc {
    config: MpcConfig,
    params: MpcParams,
    elans: BTreeMap<usize, Elan>,
    data: DataPlane,
    daemon: Option<Daemon>,
    /// The seat of a daemon in a process of its own.
    away: Option<Away>,
    numbers: Numbers,
    bus: Bus,
    started: bool,
    restart_at: Option<Instant>,
}

impl Mpc {
    /// A client that does nothing but pass frames on until [`Input::Start`].
    #[must_use]
    pub fn new(config: MpcConfig) -> Self {
        let params = config.params.clone().clamped();
        Self {
            data: DataPlane::new(params.clone(), &config),
            params,
            elans: BTreeMap::new(),
            daemon: None,
            away: config.split.then(Away::default),
            numbers: Numbers::new(config.seed),
            bus: Bus::default(),
            started: false,
            restart_at: None,
            config,
        }
    }
    /// The network prefix of both addresses, as learned by ILMI; to be changed only before [`Input::Start`].
    pub fn set_prefix(&mut self, prefix: [u8; 13]) {
        for address in [&mut self.config.control, &mut self.config.data] {
            *address = address.with_prefix(prefix);
        }
    }
    /// True while the daemon runs and is not ending.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let here = self.daemon.as_ref();
        here.is_some_and(|daemon| daemon.ending == Ending::No)
            || self.away.as_ref().is_some_and(Away::is_running)
    }
    /// Parameters in force: as configured, and as the LECS changed them.
    #[must_use]
    pub const fn params(&self) -> &MpcParams {
        &self.params
    }
    /// The next packet that was discarded.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.bus.discards.take()
    }
    /// Counts since the start.
    #[must_use]
    pub const fn counters(&self) -> &MpcCounters {
        &self.bus.counters
    }

    fn start_daemon(&mut self) {
        self.restart_at = None;
        if self.away.is_some() {
            return self.start_away();
        }
        if self.daemon.is_none() && self.started && self.config.enabled {
            self.bus
                .trace(Trace::detail("mpc.up", "the MPOA client runs"));
            let elans = self.elans.clone();
            let daemon = Daemon::start(&self.config, &self.params, elans, &mut self.bus);
            self.daemon = Some(daemon);
        }
    }

    /// SIGTERM or SIGHUP.
    fn end_daemon(&mut self, reload: bool, now: Instant) {
        self.restart_at = None;
        if let Some(away) = &mut self.away
            && away.is_told()
        {
            return self.bus.mpcd(ToMpcd::Stop { reload });
        }
        match &mut self.daemon {
            Some(daemon) => daemon.end(reload, now, &mut self.bus),
            // Nobody will take over from one that died.
            None if !reload => self.data.reset(&mut self.bus),
            None => {}
        }
    }

    /// The daemon has ended in good order: what it owned goes with it.
    fn daemon_ended(&mut self) {
        let Some(daemon) = self.daemon.take() else {
            return;
        };
        daemon.close_all(&mut self.bus);
        self.data.reset(&mut self.bus);
        self.nobody_listens("the MPOA client has ended");
    }

    /// The daemon died: its connections close, the caches wait for the next one.
    fn daemon_died(&mut self, now: Instant) {
        let Some(daemon) = self.daemon.take() else {
            return;
        };
        daemon.close_all(&mut self.bus);
        match daemon.ending {
            Ending::No => self.data.orphan(now, &mut self.bus),
            // It was about to forget everything.
            Ending::Wait { .. } | Ending::Done { .. } => self.data.reset(&mut self.bus),
        }
        self.nobody_listens("the MPOA daemon died; LANE goes on");
    }

    /// Whoever spoke to the daemon speaks to nobody.
    fn nobody_listens(&mut self, text: &str) {
        self.bus.to_kernel.clear();
        self.bus.to_daemon.clear();
        self.bus.trace(Trace::milestone("mpc.down", text));
    }

    fn set_params(&mut self, tlvs: &[Tlv]) {
        let mut params = self.params.clone();
        let used = tlvs.iter().filter(|tlv| params.apply_tlv(tlv)).count();
        if used == 0 {
            return;
        }
        self.params = params;
        if let Some(away) = &mut self.away {
            if away.is_told() {
                self.bus.mpcd(ToMpcd::Params(self.params.clone()));
            }
            self.data.params = self.params.clone();
            return;
        }
        match &mut self.daemon {
            Some(daemon) => daemon.set_params(self.params.clone(), &mut self.bus),
            None => self.data.params = self.params.clone(),
        }
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        if self.away.is_some() {
            return self.atm_away(event, now);
        }
        let Some(daemon) = &mut self.daemon else {
            self.bus.counters.stray_events += 1;
            if let AtmEvent::Incoming { conn, .. } = event {
                self.bus.atm(AtmRequest::Release {
                    conn,
                    cause: Cause::INCOMPATIBLE,
                });
            }
            return;
        };
        if let AtmEvent::Received { conn, sdu } = event {
            if !self.data.shortcuts.contains_key(&conn) {
                daemon.attach_early(conn, &mut self.bus);
                self.pump(now);
            }
            if self.data.shortcuts.contains_key(&conn) {
                return self.data.received(conn, sdu, now, &mut self.bus);
            }
        }
        if let Some(daemon) = &mut self.daemon {
            daemon.atm(event, &mut self.numbers, now, &mut self.bus);
        }
    }

    fn lec_up(&mut self, itf: usize, elan: Elan) {
        self.elans.insert(itf, elan);
        self.data.lec_up(itf, &mut self.bus);
        if let Some(daemon) = &mut self.daemon {
            daemon.elans.insert(itf, elan);
        }
        if self.away.as_ref().is_some_and(Away::is_told) {
            self.bus.mpcd(ToMpcd::ElanUp(elan.info(itf)));
        }
    }

    fn lec_down(&mut self, itf: usize, now: Instant) {
        self.elans.remove(&itf);
        self.data.lec_down(itf, now, &mut self.bus);
        if let Some(daemon) = &mut self.daemon {
            daemon.elans.remove(&itf);
        }
        if self.away.as_ref().is_some_and(Away::is_told) {
            self.bus.mpcd(ToMpcd::ElanDown { itf });
        }
    }

    /// Carries messages between the halves until both are silent, then ends a daemon that is done.
    fn pump(&mut self, now: Instant) {
        loop {
            if let Some(message) = self.bus.to_kernel.pop_front() {
                self.data.handle(message, now, &mut self.bus);
            } else if let Some(message) = self.bus.to_daemon.pop_front() {
                // Without a daemon nobody listens.
                if let Some(daemon) = &mut self.daemon {
                    daemon.handle(message, &mut self.numbers, now, &mut self.bus);
                } else if self.away.as_ref().is_some_and(Away::is_told) {
                    self.bus.mpcd(ToMpcd::Message(message));
                }
            } else {
                break;
            }
        }
        let ending = self.daemon.as_ref().map(|daemon| daemon.ending);
        if let Some(Ending::Done { reload }) = ending {
            self.daemon_ended();
            let wanted = self.started && self.config.enabled;
            // It may have been stopped or turned off while it ended for a reload.
            if wanted && reload {
                self.restart_at = Some(now + RELOAD_PAUSE);
            } else if wanted {
                // It was turned on again while it was ending.
                self.start_daemon();
                self.pump(now);
            }
        }
    }
}

impl Machine for Mpc {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        match input {
            Input::Start => {
                self.started = true;
                self.start_daemon();
            }
            Input::Stop => {
                self.started = false;
                self.end_daemon(false, now);
            }
            Input::Reload => self.end_daemon(true, now),
            Input::KillDaemon => {
                self.restart_at = None;
                match &self.away {
                    Some(_) => self.away_gone(now),
                    None => self.daemon_died(now),
                }
            }
            Input::StartDaemon if self.away.is_some() => self.away_came(),
            Input::Mpcd(message) => self.hear_mpcd(message, now)?,
            Input::StartDaemon if !(self.started && self.config.enabled) => {
                return Err(Refused("the client is not started or not enabled"));
            }
            Input::StartDaemon => self.start_daemon(),
            Input::Enable(enabled) => {
                self.config.enabled = enabled;
                match enabled {
                    true => self.start_daemon(),
                    false => self.end_daemon(false, now),
                }
            }
            Input::Atm(event) => self.atm(event, now),
            Input::Outbound { itf, frame } => self.data.outbound(itf, frame, now, &mut self.bus),
            Input::Associate { itf, mac, tlvs, .. } => {
                self.data.associate(itf, mac, &tlvs, now, &mut self.bus);
            }
            Input::Dissociate { itf, mac } => self.data.dissociate(itf, mac),
            Input::StationLeft { itf, mac } => self.data.station_left(itf, mac, &mut self.bus),
            Input::LecUp { itf, elan_id, mtu } => self.lec_up(itf, Elan { elan_id, mtu }),
            Input::LecDown { itf } => self.lec_down(itf, now),
            Input::SetQos { filter, qos } => {
                self.data.set_qos(filter, qos, now, &mut self.bus)?;
            }
            Input::ConfigTlvs(tlvs) => self.set_params(&tlvs),
        }
        self.pump(now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.restart_at.is_some_and(|at| at <= now) {
            self.start_daemon();
        }
        self.data.handle_timeout(now, &mut self.bus);
        if let Some(daemon) = &mut self.daemon {
            daemon.handle_timeout(&mut self.numbers, now, &mut self.bus);
        }
        self.pump(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.bus.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let daemon = self.daemon.as_ref().and_then(Daemon::next_timeout);
        [self.data.next_timeout(), daemon, self.restart_at]
            .into_iter()
            .flatten()
            .min()
    }
}
