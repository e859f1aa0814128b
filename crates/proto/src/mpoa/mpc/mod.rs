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
//! counts and ages, and reads only one kind of control packet, a purge on a shortcut (`purge`): it must not wait for a
//! daemon that hangs. The daemon (`daemon`, `control`) owns every connection, the
//! request ids and tags, and the keep-alive check of each MPS. As an [`Mpcd`] it has a [`Seat`] in
//! [`Mpc`] (`seat`), and lives there or in a process of its own ([`split`](crate::mpoa::split)). The daemon can die
//! ([`ProcessEvent::Gone`]): its connections close and frames go by LANE. The caches are kept for the next daemon, 60 s
//! at most (MPC-c2, as long as an MPS is trusted without a Keep-Alive). The next daemon takes the entries over: it
//! watches the MPSs, keeps the tags, finishes purges, and opens shortcuts again when their flows continue.
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
mod control;
mod daemon;
mod data;
mod egress;
mod entries;
mod flows;
mod ingress;
mod lives;
mod packet;
mod process;
mod purge;
mod returns;
mod seat;
mod shortcuts;
mod snapshot;
#[cfg(test)]
mod tests;
mod why;

pub use api::{ByCode, Input, MpcConfig, MpcCounters, MpcLimits, Outbound, Output, StaticMps};
pub use egress::EgressState;
pub use ingress::IngressState;
pub use process::Mpcd;
pub use snapshot::{EgressRow, IngressRow, MpcSnapshot, MpsRow, ShortcutRow};
pub use why::{Why, WhyReason};

use crate::discard::Discard;
use crate::mpoa::params::MpcParams;
use crate::mpoa::split::ToMpcd;
use crate::split::{ProcessEvent, Seat};
use crate::{ConnId, Instant, Machine, Refused, Several, SharedHeader, Trace};
use aerostat_wire::lane::Tlv;
use api::Bus;
use daemon::Elan;
use data::DataPlane;
use seat::DaemonSeat;
use std::collections::BTreeMap;

/// An MPOA client.
#[derive(Debug)]
pub struct Mpc {
    config: MpcConfig,
    params: MpcParams,
    elans: BTreeMap<usize, Elan>,
    data: DataPlane,
    daemon: DaemonSeat,
    bus: Bus,
    started: bool,
}

impl Mpc {
    /// A client that only passes frames on until [`Input::Start`].
    #[must_use]
    pub fn new(config: MpcConfig) -> Self {
        Self::with(config, Seat::here())
    }
    /// The same with its daemon in a process of its own, which has not started yet.
    #[must_use]
    pub fn split(config: MpcConfig) -> Self {
        Self::with(config, Seat::elsewhere())
    }
    fn with(config: MpcConfig, seat: Seat<Mpcd, seat::Conn>) -> Self {
        let params = config.params.clone().in_range();
        Self {
            data: DataPlane::new(params.clone(), &config),
            params,
            elans: BTreeMap::new(),
            daemon: DaemonSeat::new(seat),
            bus: Bus::default(),
            started: false,
            config,
        }
    }
    /// The network prefix of both addresses, as learned by ILMI; to be changed only before [`Input::Start`].
    pub fn set_prefix(&mut self, prefix: [u8; 13]) {
        for address in [&mut self.config.control, &mut self.config.data] {
            *address = address.with_prefix(prefix);
        }
        self.data.data = self.config.data;
    }
    /// True while the daemon runs and is not ending.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.daemon.is_running()
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

    /// An Ethernet frame without FCS from the IP stack, for LANE interface `itf`: over its shortcut if it has one, else
    /// over the ELAN. The caller sends it on this path at once, and then takes the outputs of the client.
    pub fn outbound(&mut self, itf: usize, frame: Vec<u8>, now: Instant) -> Outbound {
        let path = self.data.outbound(itf, frame, now, &mut self.bus);
        self.pump(now);
        path
    }

    /// Several Ethernet frames from the IP stack with equal headers, as segments of one super frame; `frame` has these
    /// headers, with the lengths of the whole. `None` if they go over the ELAN. The caller sends them at once, and then
    /// takes the outputs of the client.
    pub fn outbound_several(
        &mut self,
        itf: usize,
        frame: &mut [u8],
        several: Several,
        now: Instant,
    ) -> Option<SharedHeader> {
        let bus = &mut self.bus;
        let path = self.data.outbound_several(itf, frame, several, now, bus);
        self.pump(now);
        path
    }

    /// Several SDUs with equal headers on a shortcut; `sdu` has these headers, with the lengths of the whole. Gives the
    /// interface and the Ethernet header of their frames. With `None` nothing has been counted, and the SDUs are to be
    /// received one by one.
    pub fn receive_several(
        &mut self,
        conn: ConnId,
        sdu: &[u8],
        several: Several,
        now: Instant,
    ) -> Option<(usize, Vec<u8>)> {
        let bus = &mut self.bus;
        let frames = self.data.received_several(conn, sdu, several, now, bus);
        self.pump(now);
        frames
    }

    /// Drops the messages for a daemon that is gone.
    fn nobody_listens(&mut self, text: &'static str) {
        self.bus.to_daemon.clear();
        self.bus.trace(Trace::milestone("mpc.down", text));
    }

    fn set_params(&mut self, tlvs: &[Tlv], now: Instant) {
        let mut params = self.params.clone();
        let used = tlvs.iter().filter(|tlv| params.apply_tlv(tlv)).count();
        if used == 0 {
            return;
        }
        self.params = params.clone();
        match self.daemon.seat.is_told() {
            true => self.daemon.seat.tell(ToMpcd::Params(params), now),
            false => self.data.params = params,
        }
    }

    fn lec_up(&mut self, itf: usize, elan: Elan, now: Instant) {
        self.elans.insert(itf, elan);
        self.data.lec_up(itf, &mut self.bus);
        self.daemon.seat.tell(ToMpcd::ElanUp(elan.info(itf)), now);
    }

    fn lec_down(&mut self, itf: usize, now: Instant) {
        self.elans.remove(&itf);
        self.data.lec_down(itf, now, &mut self.bus);
        self.daemon.seat.tell(ToMpcd::ElanDown { itf }, now);
    }

    /// Carries messages between the halves until there are no more.
    fn pump(&mut self, now: Instant) {
        loop {
            if let Some(message) = self.daemon.seat.poll() {
                self.said(message, now);
            } else if let Some(message) = self.bus.to_daemon.pop_front() {
                self.daemon.seat.tell(ToMpcd::Message(message), now);
            } else {
                break;
            }
        }
        while let Some(message) = self.daemon.seat.poll_message() {
            self.bus.out.push_back(Output::Mpcd(message));
        }
    }
}

impl Machine for Mpc {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        match input {
            Input::Start => {
                self.started = true;
                self.start_daemon(now);
            }
            Input::Stop => {
                self.started = false;
                self.end_daemon(false, now);
            }
            Input::Reload => self.end_daemon(true, now),
            Input::Mpcd(ProcessEvent::Gone) => self.daemon_gone(now),
            Input::Mpcd(ProcessEvent::Came) => self.daemon_came(now),
            Input::Mpcd(ProcessEvent::Said(_)) if self.daemon.seat.daemon().is_some() => {
                return Err(Refused("the daemon runs in this process"));
            }
            Input::Mpcd(ProcessEvent::Said(message)) => self.said(message, now),
            Input::Enable(enabled) => {
                self.config.enabled = enabled;
                match enabled {
                    true => self.start_daemon(now),
                    false => self.end_daemon(false, now),
                }
            }
            Input::Atm(event) => self.atm(event, now),
            Input::Associate { itf, mac, tlvs, .. } => {
                self.data.associate(itf, mac, &tlvs, now, &mut self.bus);
            }
            Input::Dissociate { itf, mac } => self.data.dissociate(itf, mac),
            Input::StationLeft { itf, mac } => self.data.station_left(itf, mac, &mut self.bus),
            Input::LecUp { itf, elan_id, mtu } => self.lec_up(itf, Elan { elan_id, mtu }, now),
            Input::LecDown { itf } => self.lec_down(itf, now),
            Input::SetQos { filter, qos } => {
                self.data.set_qos(filter, qos, now, &mut self.bus)?;
            }
            Input::ConfigTlvs(tlvs) => self.set_params(&tlvs, now),
        }
        self.pump(now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.data.handle_timeout(now, &mut self.bus);
        self.daemon.seat.handle_timeout(now);
        self.pump(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.bus.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let daemon = self.daemon.seat.poll_timeout();
        [self.data.next_timeout(), daemon]
            .into_iter()
            .flatten()
            .min()
    }
}

crate::atm_user!(Mpc {
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
