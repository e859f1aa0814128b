//! State and CPU time of a daemon, as the kernel tells them.

use super::messages::Reply;
use rustix::param::clock_ticks_per_second;
use std::fs;

/// The state of a process that has not been reaped.
pub(super) fn of(pid: u32) -> Reply {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Where other users' processes are hidden (`hidepid`), there is no such file.
    let (state, ticks) = parse(&text).unwrap_or((0, 0));
    let cpu_ms = ticks.saturating_mul(1000) / clock_ticks_per_second().max(1);
    Reply::Runs { state, cpu_ms }
}

/// The state of a process, a letter, and its CPU time, clock ticks. Source: proc_pid_stat(5), fields 3, 14 and 15.
fn parse(text: &str) -> Option<(u8, u64)> {
    // The name of the program may contain anything, also parentheses and spaces.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let user: u64 = fields.nth(10)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((state, user.saturating_add(system)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_cpu_time_whatever_the_program_is_called() {
        let rest = "1 1 1 0 -1 4194304 101 0 0 0 70 8 5 6 20 0 1 0 40 313 39";
        for name in ["aerostat", "a b", ") R 9 (", ""] {
            let text = format!("17 ({name}) T {rest}\n");
            assert_eq!(parse(&text), Some((b'T', 78)), "{name}");
        }
        for broken in [
            "",
            "17 (a",
            "17 (a) ",
            "17 (a) S 1 2",
            "17 (a) S 1 1 1 0 -1 4 101 0 0 0 x 8",
        ] {
            assert_eq!(parse(broken), None, "{broken}");
        }
        let Reply::Runs { state, .. } = of(std::process::id()) else {
            panic!("no state")
        };
        assert!(b"RS".contains(&state), "{state}");
        let gone = of(u32::MAX);
        assert_eq!(
            gone,
            Reply::Runs {
                state: 0,
                cpu_ms: 0
            }
        );
    }
}
