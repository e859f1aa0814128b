//! Rows of `inspect nhrp --why`: why packets for an address take a shortcut or not.

use super::Name;
use super::words::Half;
use crate::host::Attempts;
use aerostat_proto::Instant;
use aerostat_proto::mpoa::{mpc, mps};
use aerostat_proto::nhrp::client::{EntryRow, EntryState, NhcSnapshot, Refusal};
use aerostat_proto::nhrp::{Key, Reason};
use aerostat_wire::AtmAddress;
use aerostat_wire::counted;
use aerostat_wire::mpoa::{code_name, op_name};
use aerostat_wire::nhrp::error;
use aerostat_wire::prefix::{self, width};
use std::net::{IpAddr, Ipv4Addr};

crate::rows! {
    /// The table.
    pub const TABLES;

    /// One row for each reason why packets for an address take a shortcut or not.
    pub struct Why: "why.why" {
        /// The address.
        pub destination: IpAddr,
        /// Half of the service that gives the reason.
        pub role: Half,
        /// The reason in one word.
        pub reason: Name,
        /// The reason in a sentence.
        pub text: String,
        /// Seconds until this changes by itself.
        pub left_s: Option<u64>,
        /// Control address of the station that the reason is about.
        pub peer: Option<AtmAddress>,
    }
}

fn seconds_left(until: Instant, now: Instant) -> u64 {
    until.since(now).as_secs()
}

/// Why an MPOA client sends packets for an address on a shortcut or not.
pub(crate) fn mpoa_client(
    mpc: &mpc::Mpc,
    target: IpAddr,
    now: Instant,
) -> impl Iterator<Item = Why> {
    use mpc::WhyReason::{Asking, Unanswered};
    // A refused request has no code: an Error Indication does not end the retries of an MPOA client.
    let errors = mpc.counters().errors.iter();
    let errors: String = errors
        .map(|(code, times)| {
            let (name, times) = (error_name(*code), counted(*times, "time", "times"));
            format!("; servers have sent error {code} ({name}) {times}")
        })
        .collect();
    let all = mpc.why(target, now).into_iter();
    all.map(move |why| Why {
        destination: target,
        role: Half::Client,
        reason: why.reason.name().into(),
        text: match why.reason {
            Asking | Unanswered => why.text + &errors,
            _ => why.text,
        },
        left_s: why.left_s,
        peer: why.mps,
    })
}

/// Actions of an MPOA server about an address, for its clients and for others.
pub(crate) fn mpoa_server(mps: &mps::Mps, target: IpAddr, now: Instant) -> Vec<Why> {
    let (snapshot, nhrp) = (mps.snapshot(), mps.nhrp_snapshot());
    let mut rows = Vec::new();
    let mut row =
        |reason: &'static str, text: String, left_s: Option<u64>, peer: Option<AtmAddress>| {
            rows.push(Why {
                destination: target,
                role: Half::Server,
                reason: reason.into(),
                text,
                left_s,
                peer,
            });
        };
    for entry in snapshot.ingress.iter().filter(|e| e.destination == target) {
        let left = entry.until.map(|until| seconds_left(until, now));
        let peer = Some(entry.mpc_control);
        match entry.resolved {
            Some(exit) => row("told", format!("the client was told {exit}"), left, peer),
            None => row(
                "asking",
                "asked over NHRP, no answer yet".into(),
                left,
                peer,
            ),
        }
    }
    for binding in &nhrp.cache {
        let key = Key {
            destination: binding.destination,
            prefix_len: binding.prefix_len,
            scope: binding.scope,
            reason: binding.reason,
        };
        if key.overlaps(target, width(target)) && binding.reason != Reason::Learned {
            let told = binding.requesters.len() + binding.more;
            let told = counted(told, "station was told", "stations were told");
            let what = format!("answered with {}; {told}", binding.nbma);
            let left = Some(seconds_left(binding.until, now));
            row(binding.reason.name(), what, left, binding.scope);
        }
    }
    for fault in nhrp.faults.iter().filter(|f| f.destination == Some(target)) {
        let with = match fault.with {
            mps::RefusedWith::Error(code) => format!("error {code} ({})", error_name(code)),
            mps::RefusedWith::Code(code) => format!("code {code} ({})", code_name(code)),
        };
        let (what, ago) = (op_name(fault.op), now.since(fault.at).as_secs());
        let (reason, who) = if fault.here {
            ("refused", format!("{what} of the peer was refused here"))
        } else {
            ("error", format!("{what} was refused by the peer"))
        };
        let told = format!(
            "{who} with {with}, {}, last {ago} s ago",
            counted(fault.times, "time", "times")
        );
        row(reason, told, None, fault.peer);
    }
    for entry in snapshot.egress.iter().filter(|e| e.destination == target) {
        if entry.state == mps::EgressState::Imposing {
            let what = "the destination's client was asked to accept the binding";
            row("imposing", what.into(), None, Some(entry.mpc_control));
        }
    }
    rows
}

/// Why an NHRP client sends packets for an address on a shortcut or not.
pub(crate) fn nhrp_client(
    nhc: &NhcSnapshot,
    attempts: &Attempts,
    target: Ipv4Addr,
    now: Instant,
) -> Why {
    let serving =
        |row: &&EntryRow| prefix::within(target.into(), row.destination.into(), row.prefix_len);
    let own = nhc.entries.iter().find(|row| row.destination == target);
    let around = || {
        let all = nhc.entries.iter().filter(serving);
        all.max_by_key(|row| row.prefix_len)
    };
    let entry = own.or_else(around);
    let (reason, text) = match entry.map(|entry| entry.state) {
        None if nhc.registered.is_none() => {
            let why = attempts.text().map(|why| format!(": {why}"));
            let text = format!("not registered{}", why.unwrap_or_default());
            ("unregistered", text)
        }
        None => ("unseen", "no packet for it lately".to_owned()),
        Some(EntryState::Asking) => ("asking", "the server was asked".to_owned()),
        Some(EntryState::Known) => ("opening", "the way is known, not open".to_owned()),
        Some(EntryState::Shortcut) => ("shortcut", "packets take the shortcut".to_owned()),
        Some(EntryState::Void) => ("void", "what was known is void".to_owned()),
        Some(EntryState::Refused(why)) => {
            let named = match why {
                Refusal::Error(code) => format!("{} ({})", why.text(), error_name(code)),
                _ => why.text(),
            };
            let reason = match why {
                Refusal::Code(_) | Refusal::Error(_) => "refused",
                Refusal::Unanswered => "unanswered",
                Refusal::Call(_) => "call-failed",
            };
            (reason, named)
        }
    };
    let left = entry.and_then(|entry| entry.until);
    Why {
        destination: target.into(),
        role: Half::Client,
        reason: reason.into(),
        text,
        left_s: left.map(|until| seconds_left(until, now)),
        peer: Some(nhc.server.1),
    }
}

/// An error code in words.
const fn error_name(code: u16) -> &'static str {
    match code {
        error::UNRECOGNIZED_EXTENSION => "unrecognized extension",
        error::LOOP => "loop",
        error::UNREACHABLE => "unreachable",
        error::PROTOCOL => "protocol error",
        error::SDU_SIZE => "too long",
        error::INVALID_EXTENSION => "invalid extension",
        error::UNSOLICITED_REPLY => "nobody waits for it",
        error::AUTHENTICATION => "authentication failed",
        error::HOP_COUNT => "too many hops",
        _ => "unknown",
    }
}
