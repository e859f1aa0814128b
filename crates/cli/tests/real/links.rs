//! `aerostat link` with a running lab.

use crate::lab_file;
use crate::live::{Runtime, wait_for};
use serde_json::Value;
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::{Duration, Instant};

const LAB: &str = "
switches: { s: {} }
clip: { n: { subnet: 10.1.0.0/24, server: x } }
pvcs: [{ from: x, vc: '0.100', to: y, pcr: 5000 }]
hosts:
  x: { on: s, elan: n, ip: 10.1.0.10, link: { rate: { up: 4Mbps, down: 8Mbps } } }
  y: { on: s, elan: n, ip: 10.1.0.11 }
faults:
  - { at: 1s, change: y-s, delay: 3ms }
";

/// The rows of `aerostat link show -o json` of one link: up, then down.
fn rows(lab: &Runtime, link: &str) -> [Value; 2] {
    let all = lab.json(&["link", "show", link, "-o", "json"]);
    assert_eq!(all["schema"], "aerostat.link.v1");
    let rows = all["rows"].as_array().unwrap().clone();
    rows.try_into().unwrap_or_else(|rows| panic!("{rows:?}"))
}

/// The mean round trip of some pings, milliseconds, and how many were answered.
fn ping(lab: &Runtime) -> (f64, u64) {
    let ran = lab.run(&["ping", "x", "y", "-c", "5", "-i", "0.2", "-o", "json"]);
    let all: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err));
    let row = &all["rows"][0];
    let mean = row["rtt_mean_ms"].as_f64().unwrap_or_default();
    (mean, row["received"].as_u64().unwrap_or_default())
}

#[test]
fn a_link_changes_while_it_is_used_and_is_reset() {
    let lab = Runtime::new("links");
    let file = lab_file("links.atm.yml", LAB);
    lab.ok(&["up", "-d", "-q", "--embedded", &file]);
    let [up, down] = rows(&lab, "x-s");
    assert_eq!([&up["way"], &up["from"], &up["to"]], ["up", "x", "s"]);
    assert_eq!([&down["way"], &down["rate"]], ["down", "8Mbps"]);
    assert_eq!((&up["rate"], &up["state"]), (&"4Mbps".into(), &"up".into()));
    // A fault of the lab file changes the other link.
    wait_for("the change of the file", || {
        rows(&lab, "y-s")[0]["delay_us"] == 3000.0
    });
    assert_eq!(rows(&lab, "y-s")[1]["changed"], "yes");
    lab.ok(&["link", "reset", "y-s"]);
    assert_eq!(rows(&lab, "y-s")[0]["delay_us"], 5.0);
    let mut short = (0.0, 0);
    wait_for("answers", || {
        short = ping(&lab);
        short.1 == 5
    });

    lab.ok(&[
        "link",
        "set",
        "x-s",
        "delay.up=80ms",
        "delay.down=20ms",
        "loss=0",
    ]);
    let long = ping(&lab);
    assert_eq!(long.1, 5);
    let more = long.0 - short.0;
    assert!((99.0..140.0).contains(&more), "{more} ms more");
    let [up, down] = rows(&lab, "x-s");
    assert_eq!([&up["delay_us"], &down["delay_us"]], [80_000.0, 20_000.0]);
    lab.ok(&["link", "set", "s-x", "loss.down=100%"]);
    assert_eq!(ping(&lab).1, 0, "no answer comes back");
    lab.ok(&["link", "reset", "x-s"]);
    assert_eq!(
        rows(&lab, "x-s").map(|row| row["changed"].clone()),
        ["no", "no"]
    );
    let again = ping(&lab);
    assert!(again.1 == 5 && again.0 < long.0 - 90.0, "{again:?}");

    lab.ok(&["link", "retrain", "x-s", "1s", "rate.up=1Mbps"]);
    assert_eq!(rows(&lab, "x-s")[0]["state"], "retrains");
    let twice = lab.run(&["link", "retrain", "x-s", "1s"]);
    twice.ends(1, "trains already");
    wait_for("the line", || rows(&lab, "x-s")[0]["state"] == "up");
    assert_eq!(rows(&lab, "x-s")[0]["rate"], "1Mbps");
    a_reset_ends_a_training(&lab);
    wait_for("answers", || ping(&lab).1 == 5);
    let story = lab.ok(&["events"]);
    for says in [
        "fault.link-change",
        "fault.link-retrain",
        "fault.link-trained",
        "fault.link-reset",
        // 1 Mb/s are 2358 cells/s.
        "contracts from x (0.100) reserve 5000 cells/s, and link x-s can guarantee 2240",
    ] {
        assert!(story.contains(says), "{says}: {story}");
    }
    lab.down_with_warnings();
    lab.nothing_is_left();
}

/// A training of an hour is ended by a reset, and one of a second is over without its new values.
fn a_reset_ends_a_training(lab: &Runtime) {
    lab.ok(&["link", "retrain", "x-s", "1h", "rate=2Mbps"]);
    let mended = lab.run(&["fault", "link-up", "x-s"]);
    assert_eq!(mended.code, 1, "{}", mended.err);
    for says in [
        "x-s is not cut: it trains",
        "'aerostat link reset x-s' ends this",
    ] {
        mended.says(says);
    }
    let end = |row: &Value| [&row["state"], &row["rate"], &row["changed"]].map(Value::clone);
    lab.ok(&["link", "reset", "x-s"]);
    assert_eq!(end(&rows(lab, "x-s")[0]), ["up", "4Mbps", "no"]);
    lab.ok(&["link", "retrain", "x-s", "1s", "rate=2Mbps"]);
    lab.ok(&["link", "reset", "x-s"]);
    let until = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < until {
        assert_eq!(end(&rows(lab, "x-s")[0]), ["up", "4Mbps", "no"]);
        sleep(Duration::from_millis(100));
    }
    lab.ok(&["link", "set", "x-s", "rate.up=1Mbps"]);
}

#[test]
fn what_is_no_link_or_no_value_is_refused_with_a_hint() {
    let lab = Runtime::new("links-wrong");
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let local = free.local_addr().unwrap();
    drop(free);
    let out =
        format!("links: [[s, {{ name: far, udp: {{ local: '{local}', peer: '127.0.0.1:9' }} }}]]");
    let file = lab_file("links-wrong.atm.yml", &format!("{LAB}{out}\n"));
    lab.ok(&["up", "-d", "-q", "--embedded", &file]);
    for (args, says, hint) in [
        (
            &["set", "x-z", "loss=1%"][..],
            "there is no link 'x-z'",
            "did you mean 'x-s'?",
        ),
        (
            &["show", "xs"],
            "there is no link 'xs'",
            "did you mean 'x-s'?",
        ),
        (&["reset", "q"], "there is no link 'q'", "known: "),
        (
            &["set", "x-s", "los=1%"],
            "'los=1%' is no new value of a link",
            "did you mean 'loss'?",
        ),
        (
            &["set", "x-s", "loss"],
            "'loss': expected NAME=VALUE, such as rate=10Mbps",
            "",
        ),
        (
            &["set", "x-s", "loss=1%", "loss=2%"],
            "loss stands here twice",
            "",
        ),
        (
            &["set", "x-s", "rate.sideways=1"],
            "neither 'up' nor 'down' stands here",
            "a link set has rate.up=1024kbps",
        ),
        (
            &["set", "x-s", "crash=x"],
            "'crash=x' is no new value of a link",
            "known: rate, ",
        ),
        (
            &["set", "x-s", "loss=2"],
            "'2': expected a probability of 0 to 1",
            "",
        ),
        (&["set", "x-s", "rate=1m"], "'1m': expected a rate", ""),
        (&["set", "x-s", "block=1us"], "block is 1ms to 1s", ""),
        (
            &["set", "x-s", "rate.upp=1Mbps"],
            "unknown key 'upp'",
            "did you mean 'up'?",
        ),
        (&["set", "far", "rate=1Mbps"], "leads out of the lab", ""),
        (&["retrain", "x-s", "0s"], "duration is 1ms to 1h", ""),
        (&["retrain", "x-s", "1000h"], "duration is 1ms to 1h", ""),
        (&["set", "x-s", "delay=1h"], "delay is 0s to 10s", ""),
        (&["retrain", "x-s", "soon"], "'soon': expected a time", ""),
    ] {
        let ran = lab.run(&[&["link"], args].concat());
        ran.refused(1, &[says, hint]);
    }
    let without = lab.run(&["link", "set", "x-s"]);
    assert_eq!(without.code, 2, "{}", without.err);
    assert_eq!(
        rows(&lab, "x-s").map(|row| row["changed"].clone()),
        ["no", "no"]
    );
    lab.down_with_warnings();
    lab.nothing_is_left();
}
