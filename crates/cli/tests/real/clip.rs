//! Classical IP of a running lab: preconfigured data, as `inspect` and the tools show them.

use crate::live::{Runtime, wait_for};
use crate::{lab_file, run};
use serde_json::Value;

const LAB: &str = "
name: known
switches: { sw: {} }
lane: { on: sw, elans: { unused: { subnet: 10.1.0.0/24 } } }
clip:
  wan:
    subnet: 10.5.0.0/24
    mux: true
    next_hops:
      10.5.0.2: { address: two, qos: 'cbr:max_pcr=3000' }
      10.5.0.1: { address: one }
hosts:
  one: { on: sw, elan: wan, ip: 10.5.0.1 }
  two: { on: sw, elan: wan, ip: 10.5.0.2 }
traffic: [{ from: one, to: two, kind: ping, rate: 20pps }]
";

#[test]
fn a_contract_of_the_lab_file_shows_on_the_switch() {
    let lab = Runtime::embedded("known", LAB);
    let rows = |args: &[&str]| lab.rows(args);
    // Both directions of the connection carry cells.
    wait_for("pings under a contract", || {
        let rows = rows(&["inspect", "sw", "vc"]);
        let fast = rows
            .iter()
            .filter(|row| row["traffic"] == "cbr:max_pcr=3000,sdu=9180");
        fast.filter(|row| row["cells_in"].as_u64() > Some(10))
            .count()
            == 2
    });
    let conns = rows(&["inspect", "one", "clip"]);
    let conns: Vec<&Value> = conns
        .iter()
        .filter(|row| row["table"] == "connections")
        .collect();
    assert_eq!(conns.len(), 1);
    assert_eq!(conns[0]["encapsulation"], "vc-mux");
    let two = lab.ok(&["atmaddr", "-n", "two"]);
    let two = two.trim_end();
    let table = lab.ok(&["atmarp", "-a", "one"]);
    let entry = format!(
        "IP 10.5.0.2, state VALID, addr {two}, flags 0x4<PERM>
  QOS: cbr,aal5:max_pcr=3000,max_sdu=9188
  {two} (active)
    QOS: cbr,aal5:max_pcr=3000,max_sdu=9180
    Send buffer: 393216
"
    );
    assert!(table.contains(&entry), "{table}");
    lab.ends();
}

#[test]
fn mistakes_about_next_hops_are_located() {
    let bad = LAB.replace("address: two,", "address: tow,");
    let ran = run(&["validate", &lab_file("known-bad.atm.yml", &bad)]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    ran.says(":10:28: error: ");
    ran.says("did you mean 'two'?");
}
