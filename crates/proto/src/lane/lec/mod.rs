//! LAN emulation client: an Ethernet interface on top of ATM connections.
//!
//! **Objects and owners.** [`Lec`] owns two halves that exchange typed messages (`messages.rs`): the data plane
//! (`forward.rs`: which connection carries a frame, the quota of unknown frames) and the control part (`control.rs`:
//! the connections and requests; `state.rs`: the states with their data; `join.rs`: the way into the ELAN; `arp.rs`:
//! the LE_ARP cache; `direct.rs`: data direct connections, READY and flush). The data plane never reads a control
//! frame: it goes on forwarding on the paths it has whatever the control part does.
//!
//! The control part is a daemon ([`LecDaemon`]) with a seat beside the data plane (`seat.rs`): in the same process, or
//! in one of its own ([`Lec::split`], [`split`]).
//!
//! **States** (names of the LEC MIB): initial, lecsConnect, configure, join, initialRegistration, busConnect,
//! operational; plus stopped. Loss of a control connection, or any failure, leads to initial, and after a random time
//! between C37 and C38 the client starts over.
//!
//! **Timers**: repetition of the pending request (C7i, C7x) and its total time (C7), restart, missing multicast forward
//! (C33), topology change, announcement; per cache entry LE_ARP (C20, C13), flush (C21, C22), ageing (C17, C18) and
//! retry of a call; per data direct connection READY (C28) and idle time (C12).
//!
//! **LLC multiplexing** (C34, off unless configured). The client announces the address for such calls with a TLV of its
//! MAC address, and calls peers that announce such an address with the B-LLI of LLC; every frame then begins with
//! LLC/SNAP and the ELAN-ID. READY is not used on these connections. After a refusal, the client calls the peer without
//! LLC multiplexing.
//!
//! **Groups** (`groups.rs`). A v2 client asks with LE_ARP where frames of a group go, and sends them to the BUS
//! meanwhile. The answer names the BUS, or a selective multicast server, which the client then calls. With C32 the
//! client registers the groups that it wants (C15) when it joins and when they change, and receives frames of no other
//! groups. If a LES refuses a group, the client joins this LES again without C32.
//!
//! **Standards**: LUNI 2.0 (af-lane-0084) clauses 5 to 8, for Ethernet.
//!
//! **Not implemented**: see [`crate::lane`]; route descriptors; LLC-multiplexed connections that several users share.
//!
//! **Deviations**: an LLC-multiplexed connection has the client as its only user and so the connection ends after C12,
//! too; control frames on such a connection have the LLC/SNAP header of LNNI (PID 000F). A group's frames change from
//! the BUS to a selective multicast server without a flush. Of two crossing data direct connections, the one set up by
//! the numerically higher address is released by its caller when it has been idle for C21, not C12. The cache entry of
//! an MPOA server is verified when it ages even if unused, because an MPC relies on it. New TLVs of a server are
//! announced again after 1, 2, 4 and 8 more seconds, those of a client once after 1: a targetless LE_ARP is not
//! answered. When it joins, only a server announces itself, unless the LES keeps no TLVs (`devices.rs`): other members
//! ask for the TLVs that they need. A proxy that gets a new station, and does not know which client had it, also
//! announces the station with a targetless LE_ARP. A proxy that hears another client claim its station no longer
//! represents the station.

mod adopt;
mod arp;
mod conns;
pub mod contracts;
mod control;
mod daemon;
mod devices;
mod direct;
mod forward;
mod groups;
mod join;
mod messages;
mod mirror;
mod proc_text;
mod rows;
mod seat;
mod snapshot;
pub mod split;
mod state;
pub use control::ControlCounters;
pub use daemon::LecDaemon;
pub use forward::DataCounters;
pub use seat::GRACE;
pub use snapshot::{ArpStatus, LecArpRow, LecConnRow, LecSnapshot, LecState};

use super::{LecLimits, LecParams};
use crate::discard::Discard;
use crate::split::{FromDaemon, ProcessEvent, Seat, SeatCounters, ToDaemon};
use crate::{
    AtmEvent, AtmRequest, ConnId, Instant, Machine, Refused, Several, SharedHeader, Trace,
};
use aerostat_wire::lane::{ElanName, LanType, MaxFrameSize, Tlv};
use aerostat_wire::{AtmAddress, MacAddr, TrafficParams};
use control::Control;
use forward::Forwarder;
use seat::ControlSeat;
use snapshot::View;
use split::{FromLecd, ToLecd};
use std::collections::VecDeque;

crate::split_record! {
    /// Configuration of a client before its start.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LecConfig {
        /// C5: the ELAN to join; empty lets the LECS choose.
        pub elan: ElanName,
        /// C1: own ATM address; its selector distinguishes the clients of a host.
        pub address: AtmAddress,
        /// C6: own MAC address.
        pub mac: MacAddr,
        /// C6: further local MAC addresses, registered before the client is a member.
        pub more_macs: Vec<MacAddr>,
        /// C2: LAN type wanted; unspecified or Ethernet.
        pub lan_type: LanType,
        /// C3: frame size wanted.
        pub max_frame: MaxFrameSize,
        /// C29: speak LANE v2 if the LES does.
        pub v2: bool,
        /// C34: LLC-multiplexed data direct connections with clients that can, on an ELAN that has a number.
        pub llc_mux: bool,
        /// Traffic that it asks for in both directions when it calls another client, whatever its SDU says; `None`:
        /// best effort.
        pub data_traffic: Option<TrafficParams>,
        /// C32: register the group addresses of `groups`, and receive no frames of other groups except broadcast. Not
        /// for a proxy.
        pub selective: bool,
        /// C15: the wanted group addresses; see [`Input::SetGroups`]. Without `selective` they have no effect.
        pub groups: Vec<MacAddr>,
        /// C4: represent other MAC addresses (see [`Input::SetRemote`]) and deliver all frames.
        pub proxy: bool,
        /// Address of the LECS, configured or from ILMI; tried before the well-known addresses.
        pub lecs: Option<AtmAddress>,
        /// Address of the LES (C9). Without `lecs`, no LECS is asked; with `lecs`, this address is used if no LECS
        /// answers.
        pub les: Option<AtmAddress>,
        /// TLVs that describe this client (MPOA device type); v2 only.
        pub tlvs: Vec<Tlv>,
        /// Variables.
        pub params: LecParams,
        /// Bounds.
        pub limits: LecLimits,
        /// Seed of the random delays.
        pub seed: u64,
    }
}

impl LecConfig {
    /// A v2 Ethernet client of ELAN `elan` with defaults for the rest.
    #[must_use]
    pub fn new(elan: ElanName, address: AtmAddress, mac: MacAddr) -> Self {
        Self {
            elan,
            address,
            mac,
            more_macs: Vec::new(),
            lan_type: LanType::UNSPECIFIED,
            max_frame: MaxFrameSize::UNSPECIFIED,
            v2: true,
            llc_mux: false,
            data_traffic: None,
            selective: false,
            groups: Vec::new(),
            proxy: false,
            lecs: None,
            les: None,
            tlvs: Vec::new(),
            params: LecParams::default(),
            limits: LecLimits::default(),
            seed: 0,
        }
    }
}

impl LecConfig {
    /// All local MAC addresses.
    fn macs(&self) -> impl Iterator<Item = MacAddr> + '_ {
        core::iter::once(self.mac).chain(self.more_macs.iter().copied())
    }
}

/// Inputs of a client.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Join the ELAN.
    Start,
    /// Leave the ELAN, and release everything.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// An Ethernet frame without FCS to send.
    Transmit(Vec<u8>),
    /// New TLVs of this client: it registers again and announces them with a targetless LE_ARP.
    SetTlvs(Vec<Tlv>),
    /// C27: the MAC addresses that a proxy represents now.
    SetRemote(Vec<MacAddr>),
    /// C15: the group addresses wanted from now on; addresses beyond [`LecLimits::groups`] are left out.
    SetGroups(Vec<MacAddr>),
    /// A bridge reports that the spanning tree is changing (true), or has settled (false).
    TopologyChange(bool),
    /// Question for the owner of a MAC address.
    Resolve {
        /// The MAC address.
        mac: MacAddr,
    },
    /// From or about the control part in a process of its own ([`Lec::split`] only).
    Lecd(ProcessEvent<FromDaemon<FromLecd>>),
}

/// Outputs of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// An Ethernet frame without FCS for the user.
    Deliver(Vec<u8>),
    /// News of the client for its user.
    News(News),
    /// For the control part's process.
    Lecd(ToDaemon<ToLecd>),
    /// An observation.
    Trace(Trace),
}

/// News of a client for its user, in the same words from the control part to the client and on to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// LE_ARP found the owner of `mac`, and the owner's TLVs.
    Associate {
        /// The MAC address.
        mac: MacAddr,
        /// Its owner.
        atm: AtmAddress,
        /// The owner's TLVs; empty if it sent none.
        tlvs: Vec<Tlv>,
    },
    /// The association of `mac` is void.
    Dissociate {
        /// The MAC address.
        mac: MacAddr,
    },
    /// Another proxy claims that `mac`, of [`Input::SetRemote`], is behind it now. This client no longer represents the
    /// address.
    RemoteMoved {
        /// The MAC address.
        mac: MacAddr,
    },
    /// Answer to [`Input::Resolve`]; `None` if the owner is unknown.
    Resolved {
        /// The MAC address.
        mac: MacAddr,
        /// Its owner and the owner's TLVs.
        owner: Option<(AtmAddress, Vec<Tlv>)>,
    },
    /// The client is a member of its ELAN and can send frames.
    Joined {
        /// Identifier within the ELAN, 0001..=FEFF.
        lecid: u16,
        /// Name of the ELAN.
        elan: ElanName,
        /// Frame size of the ELAN.
        max_frame: MaxFrameSize,
        /// C31: number of the ELAN; 0 with a v1 LES.
        elan_id: u32,
        /// TLVs of the LECS, such as MPC parameters.
        tlvs: Vec<Tlv>,
    },
    /// The client is not a member any more.
    Left,
}

/// A LAN emulation client.
///
/// After a [`News::Left`] the client tries to come back by itself until [`Input::Stop`].
pub struct Lec {
    /// Configuration for the control part when it starts.
    config: LecConfig,
    control: ControlSeat,
    data: Forwarder,
    /// The LECS that the client was told of before it started.
    lecs_by_hand: Option<AtmAddress>,
    out: VecDeque<Output>,
}

impl Lec {
    /// A stopped client.
    #[must_use]
    pub fn new(config: LecConfig) -> Self {
        Self::with(config, Seat::here())
    }
    /// A stopped client whose control part is in a process of its own, which is not there yet; see [`split`].
    #[must_use]
    pub fn split(config: LecConfig) -> Self {
        Self::with(config, Seat::elsewhere())
    }
    fn with(mut config: LecConfig, seat: Seat<LecDaemon, seat::Call>) -> Self {
        let data = Forwarder::new(&config);
        let groups = core::mem::take(&mut config.groups);
        config.want_groups(&groups);
        Self {
            lecs_by_hand: config.lecs,
            data,
            control: ControlSeat::new(seat),
            config,
            out: VecDeque::new(),
        }
    }
    /// Where the client is in the network, as ILMI told: the prefix of its address, and the LECS to ask first.
    /// The prefix may change only before [`Input::Start`]; the LECS counts from the next join. Servers given by hand
    /// stay: those that ILMI names are for clients that know none.
    pub fn set_network(&mut self, prefix: [u8; 13], lecs: Option<AtmAddress>) {
        let config = &mut self.config;
        config.address = config.address.with_prefix(prefix);
        config.lecs = match (self.lecs_by_hand, config.les) {
            (Some(by_hand), _) => Some(by_hand),
            (None, Some(_)) => None,
            (None, None) => lecs,
        };
    }
    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> LecState {
        match self.control.seat.daemon() {
            Some(daemon) => daemon.state().unwrap_or(LecState::Stopped),
            None => self.control.mirror.state(),
        }
    }
    /// The number that the LES has given to the client; 0 before it has joined.
    #[must_use]
    pub fn lecid(&self) -> u16 {
        match self.control.seat.daemon() {
            Some(daemon) => daemon.lecid(),
            None => self.control.mirror.lecid(),
        }
    }
    /// Own MAC address.
    #[must_use]
    pub fn mac(&self) -> MacAddr {
        self.config.mac
    }
    /// Frames that wait for their destination.
    pub fn held(&self) -> impl Iterator<Item = &[u8]> {
        self.data.held()
    }
    /// The next packet that was given up.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.data.discards.take()
    }
    /// Counters of the seat of the control part.
    #[must_use]
    pub const fn seat_counters(&self) -> SeatCounters {
        self.control.seat.counters()
    }
    /// Everything that there is to see, for `inspect`.
    #[must_use]
    pub fn snapshot(&self) -> LecSnapshot {
        let mirror = &self.control.mirror;
        let here = self.control.seat.daemon().and_then(LecDaemon::view);
        let mut view = here.unwrap_or_else(|| View {
            standing: match &mirror.standing {
                Some(standing) => (**standing).clone(),
                None => Control::new(self.config.clone()).standing(),
            },
            conns: mirror.conns.values().copied().collect(),
            entries: mirror.entries(Instant::ZERO).collect(),
            counters: ControlCounters::default(),
        });
        view.counters.add(&mirror.counters);
        snapshot::take(&self.config, view, self.seat_counters(), &self.data)
    }

    /// Several frames of the user for one destination, as segments of one super frame; `frame` is the first of them, or
    /// its headers. The caller sends them at once. With `None` nothing has happened, and the frames are to be sent one
    /// by one ([`Input::Transmit`]).
    pub fn transmit_several(
        &mut self,
        frame: &[u8],
        several: Several,
        now: Instant,
    ) -> Option<SharedHeader> {
        self.data.transmit_several(frame, several, now)
    }

    /// Several SDUs with equal headers on one connection; `sdu` is the first of them, or its headers. Gives the octets
    /// in front of each frame if the user gets all frames. With `None` nothing has been counted, and the SDUs are to be
    /// received one by one.
    pub fn receive_several(
        &mut self,
        conn: ConnId,
        sdu: &[u8],
        several: Several,
        now: Instant,
    ) -> Option<usize> {
        let front = self.data.receive_several(conn, sdu, several, now);
        self.pump(now);
        front
    }

    /// Exchanges messages between the halves until both are silent.
    fn pump(&mut self, now: Instant) {
        loop {
            self.out.append(&mut self.data.out);
            if let Some(message) = self.control.seat.poll() {
                self.hear(message, now);
            } else if let Some(message) = self.data.to_control.pop_front() {
                self.data_said(message, now);
            } else {
                break;
            }
        }
        while let Some(message) = self.control.seat.poll_message() {
            self.out.push_back(Output::Lecd(message));
        }
    }
}

impl Machine for Lec {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        match input {
            Input::Transmit(frame) => self.data.transmit(frame, now),
            Input::Atm(AtmEvent::Received { conn, sdu }) if self.data.owns(conn) => {
                self.data.receive(conn, sdu, now);
            }
            Input::SetGroups(groups) => {
                self.data.want(&groups);
                self.control_input(Input::SetGroups(groups), now)?;
            }
            other => self.control_input(other, now)?,
        }
        self.pump(now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.data.timeout(now);
        self.pump(now);
        self.control.seat.handle_timeout(now);
        self.absence_timeout(now);
        self.pump(now);
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let control = self.control.next();
        self.data.next().into_iter().chain(control).min()
    }
}

crate::atm_user!(Lec {
    fn held(&self, see: &mut dyn FnMut(&[u8])) {
        self.held().for_each(see);
    }
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
