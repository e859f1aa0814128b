//! Recordings of Debian's Linux ATM name nothing except what the recordings say themselves.

use crate::captures::{explained, file, recorded, rules, said};
use aerostat_explain::Rule;

#[test]
fn recordings_of_linux_break_only_what_their_page_says() {
    // The README of the recordings tells each of these stories.
    let table: [(&str, &[Rule]); 9] = [
        // An SD is lost and recovered; the last call finds no listener.
        ("c-svc", &[Rule::SscopMissing, Rule::CallRefused]),
        ("c-svc-uni30", &[Rule::CallRefused]),
        ("c-svc-uni40", &[Rule::CallRefused]),
        ("d-clip-svc", &[]),
        ("e-ilmi-net", &[]),
        // The first calls come before the LECS listens.
        ("f-lane", &[Rule::CallRefused]),
        ("g-mpoa", &[]),
        // ADD PARTY and DROP PARTY are unknown to a leaf.
        ("p-p2mp", &[Rule::CallStatus]),
        ("p-p2mp-uni30", &[Rule::CallStatus]),
    ];
    for (name, wanted) in table {
        let report = explained(&file(&recorded(name)));
        assert!(report.packets > 10, "{name}");
        let rules: Vec<_> = rules(&report).into_iter().collect();
        assert_eq!(rules, wanted, "{name}:\n{}", said(&report));
    }
}
