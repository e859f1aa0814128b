//! Cost of a packet of a kernel host in the loop of a running lab, counted by the kernel and not timed.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

use crate::live::{Runtime, can_run};

/// Two hosts at a switch, with cables that have a delay, and with cables that have no delay.
fn lab(delay: &str) -> String {
    let link = format!("link: {{ rate: 40Gbps, delay: {delay} }}");
    format!(
        "
name: wakeups-{delay}
switches: {{ s1: {{}} }}
lane: {{ on: s1, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}
hosts:
  near: {{ on: s1, elan: a, ip: 10.1.0.1, {link} }}
  far: {{ on: s1, elan: a, ip: 10.1.0.2, {link} }}
"
    )
}

/// Work of the loop's thread so far.
#[derive(Debug)]
struct Work {
    reads: u64,
    writes: u64,
    /// How often it went to sleep.
    sleeps: u64,
}

impl Work {
    /// Of the first thread of a process, in which the loop runs; `None` if the kernel does not tell.
    fn of(process: &str) -> Option<Self> {
        let of = |file: &str, key: &str| -> Option<u64> {
            let path = format!("/proc/{process}/task/{process}/{file}");
            let text = std::fs::read_to_string(path).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            Some(line.unwrap().trim().parse().unwrap())
        };
        Some(Self {
            reads: of("io", "syscr:")?,
            writes: of("io", "syscw:")?,
            sleeps: of("status", "voluntary_ctxt_switches:")?,
        })
    }
}

/// A packet is read, an empty read says that no other waits, and the packet is written. The hops in between, over two
/// ports and two cables, need no sleep. The far kernel answers within the write, so its packet needs no sleep either.
#[test]
fn a_ping_over_a_switch_costs_the_loop_four_reads_two_writes_and_a_sleep() {
    const PINGS: u64 = 100;
    /// For timers, and for packets that the kernels send on their own.
    const OTHERS: u64 = PINGS / 4;
    if !can_run() {
        return;
    }
    for delay in ["5us", "0us"] {
        let runtime = Runtime::new(&format!("wakeups-{delay}"));
        let path = runtime.directory.join("wakeups.atm.yml");
        std::fs::write(&path, lab(delay)).unwrap();
        runtime.ok(&["up", "-d", "-q", path.to_str().unwrap()]);
        let ping = |count: u64| {
            let words = ["exec", "near", "--", "ping", "-i", "0.01", "-W", "10"];
            let out = runtime.ok(&[&words[..], &["-c", &count.to_string(), "10.1.0.2"]].concat());
            // After the last request ping waits for two round trips only, so on a busy machine it may miss that reply.
            for number in 1..count {
                assert!(out.contains(&format!(" icmp_seq={number} ttl")), "{out}");
            }
        };
        // Addresses and connections are known before anything is counted.
        ping(5);
        let process = runtime.process();
        let Some(before) = Work::of(&process) else {
            println!("skipped: the counters of another process are not readable");
            return;
        };
        ping(PINGS);
        let after = Work::of(&process).unwrap();
        let all = format!("delay {delay}, before {before:?}, after {after:?}");
        println!("{all}");
        for (least, done) in [
            (4 * PINGS, after.reads - before.reads),
            (2 * PINGS, after.writes - before.writes),
            (PINGS, after.sleeps - before.sleeps),
        ] {
            assert!(done >= least / 2, "{all}: what is done is not counted");
            assert!(done <= least + OTHERS, "{all}: {done} for {least}");
        }
        runtime.ends();
    }
}
