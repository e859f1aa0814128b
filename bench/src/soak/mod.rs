//! Many calls a second for a long time, in real time: set up, one PDU each way, released.
//!
//! A caller and a called host, each with the signalling manager of a host on a thread of its own, at two ports of one
//! switch. The switch is either here, on a third thread, and the links are queues in memory; or it is in a lab that
//! runs elsewhere, and the links are ATM over TCP. Calls come at a fixed rate whether or not earlier ones are through,
//! and the time of a call counts from when it should have been made, so that a stall is not hidden.

mod host;
mod line;
mod single;
mod switch;

pub use single::one_by_one;

use aerostat_proto::Duration;
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Plan of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Calls a second.
    pub rate: u32,
    /// For how many seconds.
    pub seconds: u32,
}

/// Where the switch is.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// Here, behind links in memory.
    Memory,
    /// At the far ends of two connections of ATM over TCP: the caller's, the called host's.
    AtmTcp([SocketAddr; 2]),
}

/// Outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Calls asked for.
    pub asked: u64,
    /// Calls whose PDU came back, and that were then released.
    pub completed: u64,
    /// Calls that the called host saw end.
    pub ended: u64,
    /// PDUs that came back with other octets, or twice.
    pub wrong: u64,
    /// Calls that failed, by cause.
    pub failed: BTreeMap<u8, u64>,
    /// Calls that are left in the hosts and in a switch that is here, connections in its fabric included.
    pub left: usize,
    /// Set-up times, sorted, ns (4.3 s at most): from when the call was due to `Connected` at the caller.
    pub setup: Vec<u32>,
    /// From the first call to the last release.
    pub took: Duration,
    /// Resident memory of this process at a sixth of the time, when everything has been used once, and at the end, KiB.
    pub memory: (u64, u64),
}

impl Outcome {
    /// The set-up time that `part` of the calls (0 to 1) did not exceed.
    #[must_use]
    pub fn percentile(&self, part: f64) -> Duration {
        let index = (self.setup.len() as f64 * part) as usize;
        let last = self.setup.len().saturating_sub(1);
        let ns = self.setup.get(index.min(last)).copied();
        Duration::from_nanos(ns.unwrap_or_default().into())
    }
    /// True if each call was made, used and released, and nothing is left.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let all = [self.completed, self.ended];
        all.iter().all(|n| *n == self.asked) && self.wrong == 0 && self.left == 0
    }
}

/// Address of the caller (1) or of the called host (2), as `bench/labs/lines.atm.yml` has them.
#[must_use]
pub fn address(n: u8) -> AtmAddress {
    let prefix = [
        0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 0x26, 0xd8,
    ];
    AtmAddress::from_parts(prefix, MacAddr([0, 0x20, 0xea, 0, 0, n]), 0)
}

/// Makes the calls.
///
/// # Errors
/// What the operating system said about sockets.
///
/// # Panics
/// If a thread panics, or signalling does not come up within ten seconds.
pub fn run(plan: Plan, way: Way) -> io::Result<Outcome> {
    let clock = host::Clock::start();
    let over = Arc::new(AtomicBool::new(false));
    let mut inside = None;
    let (caller_line, called_line): (Box<dyn line::Line>, Box<dyn line::Line>) = match way {
        Way::Memory => {
            let (hosts, ports) = line::memory();
            let over = Arc::clone(&over);
            inside = Some(thread::spawn(move || switch::run(ports, clock, &over)));
            let [caller, called] = hosts;
            (Box::new(caller), Box::new(called))
        }
        Way::AtmTcp([caller, called]) => (
            Box::new(line::Tcp::connect(caller)?),
            Box::new(line::Tcp::connect(called)?),
        ),
    };
    let until = Arc::clone(&over);
    let called = thread::spawn(move || host::called(called_line, clock, &until));
    let mut outcome = host::caller(caller_line, clock, plan);
    over.store(true, Ordering::Relaxed);
    let (ended, left) = called.join().expect("the called host");
    outcome.ended = ended;
    outcome.left += left;
    if let Some(switch) = inside {
        outcome.left += switch.join().expect("the switch");
    }
    outcome.setup.sort_unstable();
    Ok(outcome)
}

/// Resident memory of this process, KiB; 0 if the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_memory_leave_nothing() {
        let plan = Plan {
            rate: 200,
            seconds: 1,
        };
        let outcome = run(plan, Way::Memory).unwrap();
        assert_eq!(outcome.asked, 200);
        assert!(outcome.is_clean(), "{outcome:?}");
        assert!(outcome.percentile(0.5) > Duration::ZERO);
    }
}
