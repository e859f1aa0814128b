//! Why there is, or is not, a shortcut for an address: `inspect nhrp --why`.

use super::Mpc;
use super::ingress::{Entry, IngressState};
use crate::Instant;
use aerostat_wire::AtmAddress;
use aerostat_wire::counted;
use aerostat_wire::mpoa::code_name;
use aerostat_wire::prefix::is_ordinary;
use core::net::IpAddr;

aerostat_wire::named! {
    /// The stage that an address has reached on the way to a shortcut; the variants are in the order of the stages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum WhyReason {
        /// The client does not run.
        Off = "off",
        /// No LANE interface is up.
        NoInterface = "no-interface",
        /// The client detects no flows of IPv4 (MPC-p3).
        NoFlows = "no-flows",
        /// No MPOA server is known on the ELANs.
        NoServer = "no-server",
        /// No shortcut can lead to the address: it is a group or broadcast address.
        NotUnicast = "not-unicast",
        /// No packet for the address has gone to a server.
        Unseen = "unseen",
        /// Packets are counted; there are too few of them for a flow.
        Counting = "counting",
        /// The server has been asked and has not answered.
        Asking = "asking",
        /// The server refused; no request for the address is sent for some time.
        Refused = "refused",
        /// The server did not answer; no request for the address is sent for some time.
        Unanswered = "unanswered",
        /// The address is resolved, but the connection failed; packets go by LANE until the call is tried again.
        CallFailed = "call-failed",
        /// The address is resolved; the connection is being opened, or the next packet opens it.
        Opening = "opening",
        /// Packets take the shortcut.
        Shortcut = "shortcut",
    }
}

/// The answer of a client about one address: one flow to it, by one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The stage that the address has reached.
    pub reason: WhyReason,
    /// Control address of the server concerned.
    pub mps: Option<AtmAddress>,
    /// The same as a sentence, with numbers.
    pub text: String,
    /// Seconds until this state ends by itself, rounded up.
    pub left_s: Option<u64>,
}

impl Why {
    pub(super) fn of(reason: WhyReason, text: impl Into<String>) -> Self {
        Self {
            reason,
            mps: None,
            text: text.into(),
            left_s: None,
        }
    }
    /// The same, of a state that ends by itself.
    pub(super) fn until(self, end: Instant, now: Instant) -> Self {
        let left = end.since(now).as_nanos().div_ceil(1_000_000_000) as u64;
        let left_s = Some(left);
        Self { left_s, ..self }
    }
}

impl Mpc {
    /// Why packets for `target` take a shortcut at `now` or not: one answer for each flow that has an entry for it, or
    /// a single answer if there is no entry.
    #[must_use]
    pub fn why(&self, target: IpAddr, now: Instant) -> Vec<Why> {
        if !self.is_running() {
            return vec![Why::of(WhyReason::Off, "the MPOA client does not run")];
        }
        let entries = self.data.ingress.entries.iter();
        let mut all: Vec<Why> = entries
            .filter(|((_, destination, _), _)| *destination == target)
            .map(|((mps, _, filter), entry)| {
                let why = self.why_entry(entry, now);
                let text = match filter {
                    Some(filter) if filter.is_layer_4() => format!("{filter}: {}", why.text),
                    _ => why.text,
                };
                let mps = Some(*mps);
                Why { mps, text, ..why }
            })
            .collect();
        if all.is_empty() {
            all.push(self.why_not(target));
        }
        all
    }

    /// There is no entry: tells the condition that is missing before a packet could make one.
    fn why_not(&self, target: IpAddr) -> Why {
        let up = || self.data.lecs.values().filter(|lec| lec.up);
        let (reason, text) = if !is_ordinary(target) {
            let text = "groups, broadcasts and link-local addresses go by LANE only";
            (WhyReason::NotUnicast, text)
        } else if up().next().is_none() {
            let text = "no LANE interface has joined its ELAN";
            (WhyReason::NoInterface, text)
        } else if !self.data.params.detects(target) {
            let text = "flows of its protocol are not detected (MPC-p3)";
            (WhyReason::NoFlows, text)
        } else if !up().any(|lec| lec.macs.values().any(|known| !known.stale)) {
            let text = "no router on the ELANs is known as an MPOA server";
            (WhyReason::NoServer, text)
        } else {
            let text = "no packet for it has gone to an MPOA server; those with IP options or a time to live of 1, \
                        and those to hosts on the same ELAN, do not count";
            (WhyReason::Unseen, text)
        };
        Why::of(reason, text)
    }

    fn why_entry(&self, entry: &Entry, now: Instant) -> Why {
        let params = &self.data.params;
        if let Some(binding) = &entry.binding {
            return binding.why(entry, now);
        }
        match entry.state {
            IngressState::HoldDown if entry.last_code != 0 => {
                let (code, name) = (entry.last_code, code_name(entry.last_code));
                let text = format!("the server refused with code {code} ({name}); held down");
                Why::of(WhyReason::Refused, text).until(entry.hold_until, now)
            }
            IngressState::HoldDown => {
                let text = "the server did not answer; held down";
                Why::of(WhyReason::Unanswered, text).until(entry.hold_until, now)
            }
            IngressState::Query => {
                let sent = counted(entry.retry.map_or(0, |retry| retry.sent()), "time", "times");
                let text = format!("the server was asked {sent} and has not answered yet");
                let why = Why::of(WhyReason::Asking, text);
                match entry.retry {
                    Some(retry) => why.until(retry.at(), now),
                    None => why,
                }
            }
            IngressState::Cached | IngressState::Resolved | IngressState::Refresh => {
                let window = params.flow_time;
                let over = now.since(entry.window) >= window;
                let count = if over { 0 } else { entry.count };
                Why::of(
                    WhyReason::Counting,
                    format!(
                        "{} in this window of {} s; {} a flow",
                        counted(count, "packet", "packets"),
                        window.as_secs(),
                        counted(params.flow_frames, "makes", "make")
                    ),
                )
            }
        }
    }
}
