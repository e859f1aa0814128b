//! The control parts of LANE clients (lecd) in processes of their own.

use super::*;

const ONE_ELAN: &str = "labs/one-elan.atm.yml";

impl Runtime {
    /// The row of the LANE daemon of a node.
    fn lecd(&self, node: &str) -> Value {
        let rows = self.inspect(&[node, "processes"]);
        let lecd = rows.iter().find(|row| row["process"] == "lecd");
        lecd.unwrap().clone()
    }
    /// Waits until a daemon other than `before` runs. Returns its process id.
    fn lecd_runs(&self, node: &str, before: &str) -> String {
        let mut pid = String::new();
        wait_for("the LANE daemon to run", || {
            let row = self.lecd(node);
            pid = row["pid"].to_string();
            row["state"] == "running" && pid != before
        });
        pid
    }
    /// Ends the daemon with this signal, once it has lived long enough for its successor to take over.
    fn end_lecd(&self, node: &str, how: &str) -> String {
        wait_for("the LANE daemon to have lived", || {
            self.lecd(node)["up_s"].as_u64().is_some_and(|up| up >= 6)
        });
        let pid = self.lecd_runs(node, "");
        signal(&pid, how);
        pid
    }
    fn lec_state(&self, node: &str) -> Value {
        self.inspect(&[node, "lec"])[0]["state"].clone()
    }
    fn data_directs(&self, node: &str) -> usize {
        let rows = self.inspect(&[node, "lec"]);
        let direct = rows.iter().filter(|row| row["role"] == "data direct");
        direct.count()
    }
    /// The rows of `inspect vc` without counters.
    fn switched(&self) -> Vec<String> {
        let rows = self.inspect(&["vc"]);
        let rows = rows.iter().map(|row| {
            ["node", "in_port", "in_vc", "out", "traffic"]
                .map(|column| row[column].to_string())
                .join(" ")
        });
        rows.collect()
    }
}

/// Seconds between the replies that are furthest apart, from `ping -D`.
fn longest_gap(out: &str) -> f64 {
    let times = out
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once(']'));
    let times: Vec<f64> = times.filter_map(|(time, _)| time.parse().ok()).collect();
    let gaps = times.iter().zip(times.iter().skip(1));
    gaps.map(|(a, b)| b - a).fold(0.0, f64::max)
}

#[test]
fn a_lane_daemon_that_is_killed_stops_no_frame_and_the_next_goes_on() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("lecd-kill");
    lab.ok(&["up", "-d", "-q", "--split", ONE_ELAN]);
    let exec = ["exec", "urku", "--"];
    // Both ends call; the losing call is released when it has been idle for four seconds.
    wait_for("one data direct connection", || {
        lab.ok(&[&exec[..], &["ping", "-q", "-c", "1", "10.1.0.20"]].concat());
        lab.data_directs("urku") == 1 && lab.data_directs("sello") == 1
    });
    let before = lab.switched();

    let ping = ["ping", "-D", "-i", "0.01", "-c", "300", "10.1.0.20"];
    wait_for("a daemon that has lived", || {
        lab.lecd("urku")["up_s"].as_u64().is_some_and(|up| up >= 6)
    });
    let pinging = lab.start(&[&exec[..], &ping].concat());
    std::thread::sleep(Duration::from_secs(1));
    let first = lab.end_lecd("urku", "KILL");
    let second = lab.lecd_runs("urku", &first);
    let out = pinging.wait_with_output().unwrap().stdout;
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(" 300 received"), "{out}");
    let gap = longest_gap(&out);
    println!("longest gap between replies: {gap:.3} s");
    assert!(gap < 1.0, "{gap} s without a reply");

    if has("iperf3") {
        let mut server = lab.start(&["exec", "sello", "--", "iperf3", "-s", "-1"]);
        let listens = ["exec", "sello", "--", "ss", "-Hltn", "sport = :5201"];
        wait_for("iperf3 to listen", || !lab.run(&listens).out.is_empty());
        wait_for("a daemon that has lived", || {
            lab.lecd("urku")["up_s"].as_u64().is_some_and(|up| up >= 6)
        });
        let run = ["iperf3", "-c", "10.1.0.20", "-t", "4", "-i", "0.1", "-J"];
        let client = lab.start(&[&exec[..], &run].concat());
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(lab.end_lecd("urku", "KILL"), second);
        lab.lecd_runs("urku", &second);
        let out = client.wait_with_output().unwrap().stdout;
        let report: Value = serde_json::from_slice(&out).unwrap();
        let intervals = report["intervals"].as_array().unwrap();
        let bytes = intervals.iter().map(|i| i["sum"]["bytes"].as_u64());
        let silent = |run: &mut usize, bytes: Option<u64>| {
            *run = if bytes == Some(0) { *run + 1 } else { 0 };
            Some(*run)
        };
        let longest = bytes.scan(0, silent).max().unwrap();
        println!("longest silence of iperf3: {longest} tenths of a second");
        assert!(longest < 10, "{longest} tenths of a second");
        assert_eq!(wait_for_end(&mut server), 0);
        assert_eq!(lab.lecd("urku")["restarts"], 2);
        assert_eq!(lab.told("urku", "lane.adopted"), 2);
    }
    assert_eq!(lab.lecd("urku")["last_end"], "died (signal 9)");
    assert_eq!(lab.switched(), before, "the same connections as before");
    // No other node has noticed, and the client was a member all the time.
    assert_eq!(lab.told("urku", "lane.joined"), 1);
    assert_eq!(lab.told("urku", "lane.lost"), 0);
    let leaves = lab.ok(&["events"]);
    assert!(!leaves.contains("les.leave"), "{leaves}");

    signal(&lab.process(), "KILL");
    lab.nothing_is_left();
}

#[test]
fn lane_daemons_of_a_host_and_a_router_die_and_mpoa_hears_nothing() {
    let lab = Runtime::new("lecd-mpoa");
    lab.ok(&["up", "-d", "-q", "--split", "--embedded", LAB]);
    wait_for("the shortcut", || lab.resolved("urku", "10.2.0.10"));
    let first = ["urku", "r1"].map(|node| lab.end_lecd(node, "KILL"));
    for (node, first) in ["urku", "r1"].into_iter().zip(first) {
        lab.lecd_runs(node, &first);
        assert_eq!(lab.told(node, "lane.lost"), 0, "{node}");
        assert_eq!(lab.lec_state(node), "operational");
    }
    // One for each ELAN.
    wait_for("both to go on", || lab.told("r1", "lane.adopted") == 2);
    assert!(lab.resolved("urku", "10.2.0.10"));
    assert_eq!(lab.told("urku", "mpc.resolution.sent"), 1);

    // After SIGTERM it leaves the ELAN and is not started again.
    lab.end_lecd("urku", "TERM");
    wait_for("the daemon to end", || lab.lecd("urku")["state"] == "ended");
    assert_eq!(lab.lecd("urku")["last_end"], "asked");
    assert_eq!(lab.lec_state("urku"), "stopped");
    assert_eq!(lab.told("urku", "lane.lost"), 0);
    // A daemon that the user starts joins; a second one is refused.
    let mut hand = lab.start(&["lecd", "urku"]);
    let pid = lab.lecd_runs("urku", "");
    assert_eq!(pid, hand.id().to_string());
    wait_for("the client to join", || {
        lab.lec_state("urku") == "operational"
    });
    let refused = lab.run(&["lecd", "urku"]);
    assert_eq!(refused.code, 1);
    let why = format!("lecd of urku is process {pid}");
    refused.says(&why);
    // SIGHUP: it joins again, in the same process.
    let joins = lab.told("urku", "lane.joined");
    signal(&pid, "HUP");
    wait_for("the client to join again", || {
        lab.told("urku", "lane.joined") == joins + 1
    });
    assert_eq!(lab.lecd_runs("urku", ""), pid);
    // It ends with the lab.
    lab.down_with_warnings();
    assert_eq!(wait_for_end(&mut hand), 0);
    lab.nothing_is_left();
}
