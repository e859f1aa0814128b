//! A policed contract that is kept loses nothing: in real time and in virtual time.

use crate::lab_file;
use crate::live::Runtime;
use std::time::{Duration, Instant};

/// CBR of 2 Mb/s in PDUs of 192 cells, beside best effort.
const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 25.6, delay: 1ms }]]
clip: { w: { subnet: 10.7.0.0/24, server: y } }
hosts:
  x:
    on: s1
    elan: w
    ip: 10.7.0.1
    sockets:
      - { name: steady, vc: 0.100, size: 9180, pdus: 50, rate: 24pps }
      - { name: noise, vc: 0.200, size: 60000, pdus: 100, rate: 45pps }
  y: { on: s2, elan: w, ip: 10.7.0.2, sockets: [{ name: sink, vc: 0.100, listen: sink }] }
pvcs:
  - { from: x, vc: 0.100, to: y, pcr: 4717, police: true }
  - { from: x, vc: 0.200, to: y }
until: 4s
";

#[test]
fn a_contract_that_is_kept_loses_nothing_in_real_time() {
    let lab = Runtime::new("policing");
    let file = lab_file("policing.atm.yml", LAB);
    lab.ok(&["up", "-d", "-q", "--embedded", &file]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let cells = 50 * 192;
    loop {
        let text = lab.ok(&["pvc", "show", "-o", "json"]);
        let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = shown["rows"].as_array().unwrap();
        let policed: Vec<_> = rows.iter().filter(|row| row["policed"] == "yes").collect();
        let [first, last] = policed[..] else {
            // Each switch polices what comes in from outside the network; both directions have one end here.
            panic!("{rows:#?}");
        };
        for row in [first, last] {
            assert_eq!(row["cells_dropped"], 0, "{rows:#?}");
        }
        if [first, last].iter().all(|row| row["cells_a"] == cells) {
            break;
        }
        assert!(Instant::now() < deadline, "{rows:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let sockets = lab.ok(&["inspect", "y", "sockets", "-o", "json"]);
    assert!(sockets.contains("459000"), "{sockets}");
    lab.run(&["down"]);
    lab.nothing_is_left();
}
