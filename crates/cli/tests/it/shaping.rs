//! Shaping at hosts: what leaves an adapter conforms to its contract, and what TCP gets with and without it.

use super::root;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that sends bursts of PDUs of 192 cells to `b` over the connections, whose contracts the test gives.
const LAB: &str = "
name: shaped
switches: { s: {} }
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts:
  a: { on: s, elan: w, ip: 10.0.0.1, sockets: [SENDERS] }
  b: { on: s, elan: w, ip: 10.0.0.2, sockets: [SINKS] }
pvcs: [PVCS]
capture: [a-s]
until: 1500ms
";

/// Runs a lab with one connection for each contract, from VCI 100, and records the cells. The file of the recording.
fn recorded(name: &str, contracts: &[&str]) -> PathBuf {
    let each = |entry: &dyn Fn(usize, &str) -> String| -> String {
        let entries = (100..).zip(contracts);
        let entries: Vec<_> = entries.map(|(vci, qos)| entry(vci, qos)).collect();
        entries.join(", ")
    };
    let senders =
        |vci, _: &str| format!("{{ vc: 0.{vci}, size: 9180, pdus: 20, rate: 500pps, start: 1s }}");
    let sinks = |vci, _: &str| format!("{{ vc: 0.{vci}, listen: sink }}");
    let pvcs = |vci, qos: &str| format!("{{ from: a, vc: 0.{vci}, to: b, qos: '{qos}' }}");
    let text = LAB
        .replace("SENDERS", &each(&senders))
        .replace("SINKS", &each(&sinks))
        .replace("PVCS", &each(&pvcs));
    recording(name, &text)
}

/// Runs a lab and records the cells of its captured links. The file of the recording.
fn recording(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("shaped.atm.yml");
    std::fs::write(&file, text).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_aerostat"))
        .args(["run", "--quiet", "--cells", "--pcap"])
        .args([&folder, &file])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(!errors.contains("error"), "{errors}");
    folder.join("shaped.pcapng")
}

/// Verdict of the independent judge: true if all cells conform, and its line. `None` where Python is missing.
fn judged(file: &Path, arguments: &str) -> Option<(bool, String)> {
    let done = Command::new("python3")
        .arg(root().join("interop/gcra"))
        .arg(file)
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output();
    let Ok(done) = done else {
        println!("skipped: python3 is not installed");
        return None;
    };
    let line = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    match done.status.code() {
        Some(code @ (0 | 1)) => Some((code == 0, line)),
        code => panic!("{code:?}: {line}"),
    }
}

#[test]
fn cells_of_an_adapter_conform_exactly_and_a_stricter_contract_shows_it() {
    // (contract, judge of the same contract, judge of one that is a little stricter)
    let alone = [
        ("cbr,aal5:pcr=66145", "--pcr 66145", "--pcr 66144"),
        (
            "nrt-vbr,aal5:pcr=100000,scr=30000,mbs=400",
            "--pcr 100000 --scr 30000 --mbs 400",
            "--pcr 100000 --scr 30000 --mbs 399",
        ),
        (
            "rt-vbr,aal5:pcr=300000,scr=60000,mbs=800",
            "--pcr 300000 --scr 60000 --mbs 800",
            "--pcr 300000 --scr 59000 --mbs 800",
        ),
    ];
    for (contract, same, stricter) in alone {
        let file = recorded("shaped-alone", &[contract]);
        let Some((conforms, line)) = judged(&file, &format!("--vc 0.100 {same}")) else {
            return;
        };
        assert!(
            conforms && line.starts_with("cells 3840 "),
            "{contract}: {line}"
        );
        let (conforms, line) = judged(&file, &format!("--vc 0.100 {stricter}")).unwrap();
        assert!(!conforms, "{contract}, {stricter}: {line}");
    }
}

#[test]
fn cells_that_wait_for_others_need_a_tolerance_of_one_cell_time_for_each_class_before_theirs() {
    let contracts = [
        "cbr,aal5:pcr=66145",
        "nrt-vbr,aal5:pcr=100000,scr=30000,mbs=400",
        "ubr",
    ];
    let file = recorded("shaped-beside", &contracts);
    // A cell of an OC-3 takes 2831.2 ns. A CBR cell waits for one that has begun, a VBR cell also for a CBR cell.
    let of_cbr = "--vc 0.100 --pcr 66145 --cdvt";
    let of_vbr = "--vc 0.101 --pcr 100000 --scr 30000 --mbs 400 --cdvt";
    let cases = [
        (of_cbr, "0", false),
        (of_cbr, "2832", true),
        (of_vbr, "2832", false),
        (of_vbr, "5664", true),
        // Each bucket has its tolerance: that of the peak rate does not help the other one, nor the reverse.
        (of_vbr, "5664 --scr-cdvt 5664", true),
        (of_vbr, "2832 --scr-cdvt 5664", false),
    ];
    for (which, tolerance, expected) in cases {
        let Some((conforms, line)) = judged(&file, &format!("{which} {tolerance}")) else {
            return;
        };
        assert_eq!(conforms, expected, "{which} {tolerance}: {line}");
    }
}

/// Settings of a connection count before those of its host, for permanent connections and for calls.
#[test]
fn a_connection_is_shaped_as_it_says_itself_whatever_its_host_does() {
    let pvc = |of_host: &str, of_pvc: &str| {
        LAB.replace("ip: 10.0.0.1,", &format!("ip: 10.0.0.1, {of_host}"))
            .replace(
                "SENDERS",
                "{ vc: 0.100, size: 9180, pdus: 20, rate: 500pps, start: 1s }",
            )
            .replace("SINKS", "{ vc: 0.100, listen: sink }")
            .replace(
                "PVCS",
                &format!("{{ from: a, vc: 0.100, to: b, pcr: 66145{of_pvc} }}"),
            )
    };
    // Classical IP to the ATMARP server on b takes the first label of a.
    let call = |of_host: &str, of_call: &str| {
        let sender = format!(
            "{{ call: b, qos: 'cbr,aal5:pcr=66145', size: 9180, pdus: 20, rate: 500pps, start: 1s{of_call} }}"
        );
        LAB.replace("ip: 10.0.0.1,", &format!("ip: 10.0.0.1, {of_host}"))
            .replace("SENDERS", &sender)
            .replace("SINKS", "{ listen: sink }")
            .replace("pvcs: [PVCS]", "")
    };
    let cases = [
        (pvc("", ""), "0.100", true),
        (pvc("", ", shape: false"), "0.100", false),
        (pvc("shape: false,", ""), "0.100", false),
        (pvc("shape: false,", ", shape: true"), "0.100", true),
        (call("", ""), "0.33", true),
        (call("", ", shape: false"), "0.33", false),
        (call("shape: false,", ", shape: true"), "0.33", true),
    ];
    for (lab, vc, conforms) in cases {
        let file = recording("shaped-connection", &lab);
        // A cell of signalling may hold up one of a call.
        let judge = |pcr| judged(&file, &format!("--vc {vc} --pcr {pcr} --cdvt 2832"));
        let Some((result, line)) = judge(66_145) else {
            return;
        };
        assert!(line.starts_with("cells 3840 "), "{lab}: {line}");
        assert_eq!(result, conforms, "{lab}: {line}");
        // A cell of an OC-3 takes 2831.2 ns, so cells that are not shaped are that near to each other.
        let (line_rate, line) = judge(353_208).unwrap();
        let (slower, _) = judge(340_000).unwrap();
        assert_eq!((line_rate, slower), (true, conforms), "{lab}: {line}");
    }
}

/// Three channels of one path: the path conforms with a tolerance of 0, and one that is shaped beside it does as well.
#[test]
fn a_path_of_an_adapter_never_exceeds_its_peak_rate_whatever_is_inside() {
    let labels = ["7.100", "7.101", "7.102"];
    let each = |entry: &dyn Fn(&str) -> String| labels.map(entry).join(", ");
    let adapter = "adapter: { paths: { 7: { pcr: 50000, cdvt: 0us } } },";
    let text = LAB
        .replace("ip: 10.0.0.1,", &format!("ip: 10.0.0.1, {adapter}"))
        .replace(
            "SENDERS",
            &each(&|vc| format!("{{ vc: {vc}, size: 9180, pdus: 20, rate: 500pps, start: 1s }}")),
        )
        .replace(
            "SINKS",
            &each(&|vc| format!("{{ vc: {vc}, listen: sink }}")),
        )
        .replace(
            "PVCS",
            &each(&|vc| format!("{{ from: a, vc: {vc}, to: b }}")),
        )
        .replace("1500ms", "3s");
    let file = recording("shaped-path", &text);
    let judge = |rest: &str| judged(&file, &format!("--vc 7.* {rest}"));
    let Some((conforms, line)) = judge("--pcr 50000 --cdvt 0") else {
        return;
    };
    assert!(conforms && line.starts_with("cells 11520 "), "{line}");
    // All three wait all the time, so the path is full: it would not conform to one cell per second less.
    let (conforms, line) = judge("--pcr 49999 --cdvt 0").unwrap();
    assert!(!conforms, "{line}");
}

/// Two connections and a call of different paths and labels share a rate queue; what the contract of one of them says
/// does not shape it by itself, and a fourth connection is not in the queue.
#[test]
fn connections_and_calls_in_a_rate_queue_leave_at_its_rate_together() {
    let adapter = "adapter: { rate_queues: { fast: { pcr: 50000, cdvt: 0us } } },";
    let traffic = "size: 9180, pdus: 20, rate: 500pps, start: 1s";
    let of_pvcs = ["0.100", "7.101", "0.103"].map(|vc| format!("{{ vc: {vc}, {traffic} }}"));
    let call = format!("{{ call: b, rate_queue: fast, {traffic} }}");
    let text = LAB
        .replace("ip: 10.0.0.1,", &format!("ip: 10.0.0.1, {adapter}"))
        .replace("SENDERS", &format!("{}, {call}", of_pvcs.join(", ")))
        .replace(
            "SINKS",
            "{ vc: 0.100, listen: sink }, { vc: 0.101, listen: sink }, { vc: 0.103, listen: sink }, { listen: sink }",
        )
        .replace(
            "PVCS",
            "{ from: a, vc: 0.100, to: b, rate_queue: fast }, \
             { from: a, vc: 7.101, to: b, to_vc: 0.101, qos: 'nrt-vbr,aal5:pcr=20000,scr=10000,mbs=9', rate_queue: fast }, \
             { from: a, vc: 0.103, to: b }",
        )
        .replace("1500ms", "3s");
    let file = recording("rate-queue", &text);
    // Classical IP to the ATMARP server on b has the first label of a, and the call the second.
    let inside = "--vc 0.100 --vc 7.101 --vc 0.33";
    let judge = |which: &str, rest: &str| judged(&file, &format!("{which} {rest}"));
    let Some((conforms, line)) = judge(inside, "--pcr 50000 --cdvt 2832") else {
        return;
    };
    assert!(conforms && line.starts_with("cells 11520 "), "{line}");
    // The queue is full all the time: the cells would not conform to a rate that is a little lower.
    let (conforms, line) = judge(inside, "--pcr 49990 --cdvt 2832").unwrap();
    assert!(!conforms, "{line}");
    let (conforms, line) = judge("--vc 0.103", "--pcr 50000 --cdvt 2832").unwrap();
    assert!(!conforms && line.starts_with("cells 3840 "), "{line}");
}

/// The lab of the page: each rate queue has its rate over 1 s, and the connections in it share it by cells.
#[test]
fn rate_queues_have_their_rates_and_share_them_by_cells() {
    let lab = root().join("labs/rate-queues.atm.yml");
    let done = Command::new(env!("CARGO_BIN_EXE_aerostat"))
        .args(["run", "--quiet", "-o", "json"])
        .arg(lab)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let results: Value = serde_json::from_slice(&done.stdout).unwrap();
    let rows = results["nodes"]["x"]["queue"]["rate_queues"]
        .as_array()
        .unwrap();
    let cells = |row: &Value| row["cells_out"].as_u64().unwrap();
    // At most one cell more than the rate has in 1 s, and one less for the cell that the line sends just then. The call
    // needs some ms to be set up.
    assert!((19_999..=20_001).contains(&cells(&rows[0])), "{rows:?}");
    assert!((4_900..=5_001).contains(&cells(&rows[1])), "{rows:?}");
    let programs = results["programs"].as_array().unwrap();
    let delivered = |name: &str| {
        let mut named = programs.iter().filter(|row| row["program"] == name);
        named.next().unwrap()["delivered"].as_u64().unwrap()
    };
    // 21 and 84 cells a PDU, and up to one PDU of each that is not complete.
    let (one, other) = (delivered("one") * 21, delivered("other") * 84);
    assert!(one.abs_diff(other) <= 84, "{one} {other}");
    assert!((19_999 - 84 - 21..=20_001).contains(&(one + other)));
}

/// Source: the Cray paper (SARA, 1995), Figures 1, 3 and 4; rates from cells are closed forms.
#[test]
fn a_policer_stops_tcp_that_is_too_fast_and_shaping_to_the_same_contract_does_not() {
    let until = |end: &str| -> Value {
        let done = Command::new(env!("CARGO_BIN_EXE_aerostat"))
            .args(["run", "--quiet", "-o", "json", "--until", end])
            .arg(root().join("labs/policed-tcp.atm.yml"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        serde_json::from_slice(&done.stdout).unwrap()
    };
    // From 2 s to 3 s, in Mb/s: in the first second an acknowledgement waits for a tick of its host.
    let [before, after] = ["2s", "3s"].map(until);
    let rate = |name: &str| {
        let [before, after] = [&before, &after].map(|results| {
            let flows = results["flows"].as_array().unwrap();
            let flow = flows.iter().find(|flow| flow["name"] == name).unwrap();
            flow["delivered_octets"].as_f64().unwrap()
        });
        (after - before) * 8.0 / 1e6
    };
    assert!((34.0..36.0).contains(&rate("free3")), "{}", rate("free3"));
    // A segment may be on either side of an end of the second.
    let segment = 2.0 * 9136.0 * 8.0 / 1e6;
    assert!((rate("held3") - rate("free3")).abs() < segment);
    assert!((rate("held4") - rate("free4")).abs() < segment);
    assert!((65.0..66.2).contains(&rate("free6")), "{}", rate("free6"));
    assert!(rate("held6") < 5.0, "{}", rate("held6"));
    for (name, cells) in [("shaped", 150_000.0), ("slow", 25.4e6 / 384.0)] {
        let bound = cells / 192.0 * 9136.0 * 8.0 / 1e6;
        let share = rate(name) / bound;
        assert!((0.99..=1.01).contains(&share), "{name}: {share}");
    }
}
