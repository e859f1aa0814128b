//! Keys `tcp` of kernel hosts, with `ss` and `iperf3` as judges of what the kernels use.

use crate::lab_file;
use crate::live::{Runtime, can_run, has};

const LAB: &str = "labs/one-elan.atm.yml";

#[test]
fn connections_of_kernel_hosts_have_the_tcp_of_the_lab_file() {
    if !can_run() || !has("iperf3") || !has("ss") {
        return;
    }
    let runtime = Runtime::new("kernel-tcp");
    let keys = "{congestion: reno, mss: 1024, timestamps: false, sack: false, window_scaling: false, \
        receive_buffer: 16KiB, min_rto: 1s, ack_every: 1}";
    let set: Vec<String> = ["urku", "sello"]
        .iter()
        .flat_map(|host| [("kernel", "true"), ("tcp", keys)].map(|(key, value)| (host, key, value)))
        .map(|(host, key, value)| format!("hosts.{host}.{key}={value}"))
        .collect();
    let mut up = vec!["up", "-d"];
    up.extend(set.iter().flat_map(|set| ["--set", set]));
    up.push(LAB);
    let ran = runtime.run(&up);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = format!("{}{}", ran.out, ran.err);
    assert!(told.contains("TCP of the kernel of urku, sello:"), "{told}");
    let shown = runtime.ok(&["inspect", "urku", "tcp", "-o", "csv"]);
    for row in [
        "congestion,net.ipv4.tcp_congestion_control,reno",
        "receive_buffer,net.ipv4.tcp_rmem,4096 32768 32768",
        "sack,net.ipv4.tcp_sack,0",
        "min_rto,route rto_min,1000ms",
    ] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    runtime.ok(&["exec", "sello", "--", "iperf3", "-s", "-1", "-D"]);
    // The server may not listen yet, and the machine may be slow: the client starts again until it is connected.
    // A slow trickle, and established connections only: the window that a receiver offers then is that of its empty
    // buffer, however late the server reads.
    let script = r#"for n in $(seq 120); do
        kill -0 "$p" 2>/dev/null || { iperf3 -c 10.1.0.20 -t 60 -b 32K -l 512 >/dev/null 2>&1 & p=$!; }
        seen=$(ss -tinoH state established dst 10.1.0.20)
        case "$seen" in *snd_wnd*) break;; esac
        sleep 0.5
    done
    kill "$p"; echo "$seen""#;
    let seen = runtime.ok(&["exec", "urku", "--", "sh", "-c", script]);
    for part in [" reno ", " mss:1024 ", " advmss:1024 "] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    for part in [" ts ", " sack ", " wscale:"] {
        assert!(!seen.contains(part), "{part}: {seen}");
    }
    let word = |line: &str, key: &str| -> f64 {
        let value = line
            .split(key)
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next());
        value.and_then(|value| value.parse().ok()).unwrap_or(0.0)
    };
    for line in seen.lines().filter(|line| line.contains(" reno ")) {
        // Linux adds the least time to the round trip.
        assert!(word(line, " rto:") >= 1000.0, "{line}");
        // The window follows from the buffer by the kernel's estimate of its bookkeeping: about half of it.
        let window = word(line, " snd_wnd:");
        assert!((8192.0..=32_768.0).contains(&window), "{line}");
    }
    runtime.ok(&["down"]);
}

/// Kernels as judges of the marks: the receiver counts packets with CE, and nothing is lost at a queue whose marks come
/// long before its end.
#[test]
fn kernels_hear_of_marked_cells_before_a_queue_is_full() {
    if !can_run() || !has("iperf3") {
        return;
    }
    let lab = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 20Mbps, delay: 2ms, queues: { buffer: 4000, efci: 300 } }]]
lane: { on: s1, elans: { n: { subnet: 10.1.0.0/24 } } }
hosts:
  a: { on: s1, elan: n, ip: 10.1.0.1, kernel: true, tcp: { ecn: true, congestion: reno } }
  b: { on: s2, elan: n, ip: 10.1.0.2, kernel: true, tcp: { ecn: true } }
";
    let runtime = Runtime::new("marks");
    runtime.ok(&["up", "-d", "-q", &lab_file("marks.atm.yml", lab)]);
    runtime.ok(&["exec", "b", "--", "iperf3", "-s", "-1", "-D"]);
    let sends = "for n in $(seq 60); do iperf3 -c 10.1.0.2 -t 4 -J && exit; sleep 0.2; done";
    let report = runtime.ok(&["exec", "a", "--", "sh", "-c", sends]);
    let begin = report.rfind("{\n\t\"start\"").unwrap_or(0);
    let report: serde_json::Value = serde_json::from_str(&report[begin..]).unwrap();
    let sent = &report["end"]["sum_sent"];
    assert_eq!(sent["retransmits"], 0, "{sent}");
    assert!(sent["bits_per_second"].as_f64().unwrap() > 5e6, "{sent}");
    let counters = runtime.ok(&["exec", "b", "--", "cat", "/proc/net/netstat"]);
    let rows: Vec<_> = counters
        .lines()
        .filter(|line| line.starts_with("IpExt:"))
        .collect();
    let [names, values] = rows[..] else {
        panic!("{counters}");
    };
    let mut both = names.split(' ').zip(values.split(' '));
    let marked = both.find(|(name, _)| *name == "InCEPkts").unwrap().1;
    assert!(marked.parse::<u32>().unwrap() > 0, "{counters}");
    runtime.down_with_warnings();
}

#[test]
fn a_key_that_the_kernel_refuses_is_told_with_its_place_and_nothing_is_left() {
    if !can_run() {
        return;
    }
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.unwrap_or_default();
    let loadable = std::path::Path::new("/lib/modules").exists();
    if loadable || known.split_whitespace().any(|name| name == "bic") {
        println!("skipped: this kernel may have the algorithm");
        return;
    }
    let runtime = Runtime::new("refused-tcp");
    let set = [
        "--set",
        "hosts.urku.kernel=true",
        "--set",
        "hosts.urku.tcp={congestion: bic}",
    ];
    let ran = runtime.run(&[&["up", "-d", "-q"], &set[..], &[LAB]].concat());
    assert_eq!(ran.code, 1, "{}", ran.err);
    let said = "tcp.congestion: the kernel refuses the congestion control bic";
    assert!(
        ran.err.contains("--set") && ran.err.contains(said),
        "{}",
        ran.err
    );
    let left = runtime.run(&["ls"]);
    assert!(
        left.out.is_empty() || left.out.contains("no lab"),
        "{}",
        left.out
    );
}
