//! Loopback cells on connections of a running lab.

use crate::lab_file;
use crate::live::Runtime;

/// A customer behind a switch, and a host at the other end of its line.
const LAB: &str = "
switches: { dslam: {}, core: {} }
links: [[dslam, core, { name: trunk, delay: 2ms }]]
lines: { dsl: { subnet: 10.1.0.0/30, encapsulation: pppoa-vcmux } }
hosts:
  a: { on: dslam, elan: dsl, ip: 10.1.0.1 }
  b: { on: core, elan: dsl, ip: 10.1.0.2 }
pvcs: [{ from: a, vc: '8.35', to: b, to_vc: '1.35', line: dsl }]
";

/// A ping of three cells on the line of `a`, with more arguments.
fn ping<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let all = [
        "oam", "ping", "a", "8.35", "-c", "3", "-i", "0.1", "-o", "json",
    ];
    [&all[..], more].concat()
}

fn times(text: &str) -> Vec<Option<f64>> {
    let document: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(document["schema"], "aerostat.oam.v1");
    let rows = document["rows"].as_array().unwrap().iter();
    rows.map(|row| row["rtt_us"].as_f64()).collect()
}

/// End to end the cells cross the trunk twice; those of the segment come back from the first switch. A cut trunk loses
/// the first kind, and a switch that is asked, an open label and a node that is off are errors.
#[test]
fn loopback_cells_tell_where_a_connection_ends() {
    let lab = Runtime::embedded("oam", LAB);
    let whole = times(&lab.ok(&ping(&[])));
    let segment = times(&lab.ok(&ping(&["--segment"])));
    assert_eq!((whole.len(), segment.len()), (3, 3));
    let least = |times: &[Option<f64>]| {
        times
            .iter()
            .map(|time| time.expect("an answer"))
            .fold(f64::MAX, f64::min)
    };
    let (whole, segment) = (least(&whole), least(&segment));
    assert!(whole >= 4000.0, "{whole}");
    assert!(segment < whole - 3000.0, "{segment} {whole}");
    lab.ok(&["fault", "link-down", "trunk"]);
    let cut = lab.run(&ping(&["-W", "0.3"]));
    assert_eq!(cut.code, 1, "{}", cut.err);
    assert_eq!(times(&cut.out), [None; 3]);
    cut.says("no cell came back");
    lab.ok(&ping(&["--segment"]));
    for (words, said) in [
        (["dslam", "8.35"], "dslam is no end system"),
        (["a", "8.36"], "no connection is open with this label"),
        (["c", "8.35"], "there is no node 'c'"),
    ] {
        let refused = lab.run(&[&["oam", "ping"], &words[..]].concat());
        refused.ends(1, said);
    }
    lab.ok(&["fault", "link-down", "a-dslam"]);
    let dark = lab.run(&["oam", "ping", "a", "8.35"]);
    dark.says("the link is down");
    let label = lab.run(&["oam", "ping", "a", "8"]);
    label.ends(2, "expected VPI.VCI");
}

/// The called line of a lab releases its call before the lab ends, and the end does not wait for it.
#[test]
fn a_called_line_ends_with_its_lab() {
    let lab = Runtime::new("called");
    let called = LAB.replace("pppoa-vcmux }", "pppoa-vcmux, calls: a }");
    let called = called.split("pvcs:").next().unwrap();
    let file = lab_file("called.atm.yml", called);
    lab.ok(&["up", "-d", "-q", "--embedded", &file]);
    lab.ok(&["ping", "a", "b", "-c", "1"]);
    let down = lab.run(&["down"]);
    assert!(
        down.code == 0 && !down.err.contains("not released"),
        "{}",
        down.err
    );
}
