//! An entry of the ingress cache, and its binding.

use super::IDLE;
use crate::mpoa::mpc::why::{Why, WhyReason};
use crate::mpoa::params::{ENCAPSULATION, MpcParams};
use crate::requests::Repeats;
use crate::{Cause, ConnId, Instant};
use aerostat_wire::{AtmAddress, Qos};
use core::net::IpAddr;

aerostat_wire::named! {
    /// State of an ingress cache entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum IngressState {
        /// Frames are counted; no request was sent. Linux: invalid.
        Cached = "not asked",
        /// A Resolution Request is outstanding. Linux: resolving.
        Query = "resolving",
        /// The destination is resolved.
        Resolved = "resolved",
        /// Two thirds of the holding time are over; the next flow asks again. Linux: refreshing.
        Refresh = "refreshing",
        /// A request failed; the destination is left alone. Linux: resolving.
        HoldDown = "hold down",
    }
}

impl IngressState {
    /// The name that Linux displays.
    #[must_use]
    pub const fn linux_name(self) -> &'static str {
        match self {
            Self::Cached => "invalid",
            Self::Query | Self::HoldDown => "resolving",
            Self::Resolved => "resolved",
            Self::Refresh => "refreshing",
        }
    }
}

/// State of the request for a shortcut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::mpoa::mpc) enum Call {
    #[default]
    Idle,
    Asked,
    Wait(Instant),
}

impl Call {
    pub(super) const fn may(self, now: Instant) -> bool {
        match self {
            Self::Idle => true,
            Self::Asked => false,
            Self::Wait(until) => until.as_nanos() <= now.as_nanos(),
        }
    }
}

/// A best effort connection in place of the traffic that a flow wants and cannot have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::mpoa::mpc) struct Spare {
    pub(in crate::mpoa::mpc) conn: Option<ConnId>,
    pub(in crate::mpoa::mpc) call: Call,
}

/// The contents of a Resolution Reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mpoa::mpc) struct Binding {
    pub(in crate::mpoa::mpc) egress: AtmAddress,
    pub(in crate::mpoa::mpc) tag: Option<u32>,
    pub(in crate::mpoa::mpc) expires: Instant,
    /// The connection with the traffic that the flow wants.
    pub(in crate::mpoa::mpc) conn: Option<ConnId>,
    /// That traffic, if more than best effort.
    pub(in crate::mpoa::mpc) qos: Option<Qos>,
    pub(in crate::mpoa::mpc) call: Call,
    pub(in crate::mpoa::mpc) spare: Option<Spare>,
    /// When a packet last took a connection of its own, and not one that leads back.
    pub(in crate::mpoa::mpc) sent: Option<Instant>,
    /// The connection of the other end over which the last packet went back; `None` if that took one of its own.
    pub(in crate::mpoa::mpc) back: Option<ConnId>,
    pub(super) mtu: u16,
    pub(super) refresh: Instant,
}

impl Binding {
    /// The connection that the last packet took, or that the next one takes.
    pub(in crate::mpoa::mpc) fn shown(&self) -> Option<ConnId> {
        self.back.or(self.in_use())
    }
    /// The connection that packets take which answer nothing.
    pub(in crate::mpoa::mpc) fn in_use(&self) -> Option<ConnId> {
        self.conn.or(self.spare.and_then(|spare| spare.conn))
    }
    /// Largest packet that the connection takes.
    pub(super) fn room(&self) -> u16 {
        let sdu = self.qos.filter(|_| self.conn.is_some());
        let sdu = sdu.map(|qos| qos.tx.max_sdu).filter(|sdu| *sdu != 0);
        let own = sdu.map_or(u16::MAX, |sdu| sdu.saturating_sub(ENCAPSULATION));
        self.mtu.min(own)
    }
    /// Why packets take the shortcut or not: the answer holds until a time of its own.
    pub(in crate::mpoa::mpc) fn why(&self, entry: &Entry, now: Instant) -> Why {
        let egress = self.egress;
        let cause = entry
            .last_cause
            .map_or_else(String::new, |c| format!(": {c}"));
        match (self.in_use(), self.call) {
            _ if self.back.is_some() => {
                let text = format!(
                    "packets that answer those of {egress} go back over its connection; {} did",
                    entry.packets
                );
                Why::of(WhyReason::Shortcut, text).until(self.expires, now)
            }
            (Some(_), _) => {
                let kind = match self.qos {
                    Some(qos) if self.conn.is_some() => format!(" ({})", qos.tx),
                    Some(qos) => format!(" (best effort, as {} was not to be had{cause})", qos.tx),
                    None => String::new(),
                };
                let text = format!(
                    "packets up to {} octets take the shortcut to {egress}{kind}, longer ones LANE; {} did",
                    self.room(),
                    entry.packets
                );
                Why::of(WhyReason::Shortcut, text).until(self.expires, now)
            }
            (None, Call::Wait(until)) if until > now => {
                let text = format!("the call to {egress} failed{cause}; tried again later");
                Why::of(WhyReason::CallFailed, text).until(until, now)
            }
            (None, Call::Asked) => {
                let text = format!("the connection to {egress} is being opened");
                Why::of(WhyReason::Opening, text).until(self.expires, now)
            }
            (None, Call::Idle | Call::Wait(_)) => {
                let text = format!("the next packet opens the connection to {egress}");
                Why::of(WhyReason::Opening, text).until(self.expires, now)
            }
        }
    }
}

/// The way back for a packet, over a connection that the other end opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpoa::mpc) enum Back {
    /// Over this connection, if the packet has at most so many octets; a longer one takes LANE, as those of a flow with
    /// a QoS entry do.
    Over(ConnId, u16),
    /// The other end has just opened a connection and may soon show for which flow.
    Expected,
    /// The packet answers nothing that arrives on such a connection.
    Elsewhere,
}

/// An ingress cache entry.
#[derive(Clone, Debug)]
pub(in crate::mpoa::mpc) struct Entry {
    pub(in crate::mpoa::mpc) state: IngressState,
    pub(in crate::mpoa::mpc) packets: u64,
    pub(in crate::mpoa::mpc) last_code: u8,
    pub(in crate::mpoa::mpc) last_cause: Option<Cause>,
    pub(in crate::mpoa::mpc) binding: Option<Binding>,
    pub(in crate::mpoa::mpc) retry: Option<Repeats>,
    pub(super) source: IpAddr,
    pub(in crate::mpoa::mpc) count: u32,
    pub(in crate::mpoa::mpc) window: Instant,
    pub(super) last_frame: Instant,
    pub(in crate::mpoa::mpc) hold_until: Instant,
}

impl Entry {
    pub(super) fn new(source: IpAddr, now: Instant) -> Self {
        Self {
            state: IngressState::Cached,
            packets: 0,
            last_code: 0,
            last_cause: None,
            binding: None,
            retry: None,
            source,
            count: 0,
            window: now,
            last_frame: now,
            hold_until: now,
        }
    }
    pub(in crate::mpoa::mpc) fn deadline(&self) -> Option<Instant> {
        let expires = self.binding.as_ref().map(|b| b.expires);
        match self.state {
            IngressState::Cached => Some(self.last_frame + IDLE),
            IngressState::Query => [self.retry.map(|r| r.at()), expires]
                .into_iter()
                .flatten()
                .min(),
            IngressState::Resolved => self.binding.as_ref().map(|b| b.refresh),
            IngressState::Refresh => expires,
            IngressState::HoldDown => Some(self.hold_until),
        }
    }
    /// When the entry's life ends, for display.
    pub(in crate::mpoa::mpc) fn ends(&self) -> Option<Instant> {
        match (&self.binding, self.state) {
            (Some(binding), _) => Some(binding.expires),
            (None, IngressState::Cached | IngressState::HoldDown) => self.deadline(),
            (None, _) => None,
        }
    }
    /// Counts frames; true if the frames make a flow.
    pub(super) fn count_frames(&mut self, count: u16, now: Instant, params: &MpcParams) -> bool {
        if now.since(self.window) >= params.flow_time {
            (self.window, self.count) = (now, 0);
        }
        self.last_frame = now;
        self.count = self.count.saturating_add(count.into());
        self.count >= params.flow_frames.into()
    }
    pub(super) fn hold_down(&mut self, now: Instant, params: &MpcParams) {
        self.state = IngressState::HoldDown;
        (self.binding, self.retry) = (None, None);
        self.hold_until = now + params.hold_down;
    }
}
