use crate::diag::Severity;
use crate::resolve::tests::{SMALL, lab, told};
use aerostat_proto::Duration;

#[test]
fn samples_of_buffers_have_bounds() {
    let of = |keys: &str| format!("{SMALL}until: 10s\noccupancy: {{ {keys} }}\n");
    let found = lab(&of("every: 40us, links: [s1-s2]"));
    let occupancy = found.occupancy.as_ref().expect("samples");
    // Both switches have a port at the trunk.
    assert_eq!(occupancy.ports(&found).count(), 2);
    assert_eq!(occupancy.samples(Duration::from_secs(10)), 250_001);
    for (keys, says) in [
        ("every: 20us, links: [s1-s2], from: 20us", ""),
        (
            "every: 20us, links: [s1-s2]",
            "these are 1000002 samples, and 1000000 are the most",
        ),
        (
            "every: 1ns, links: [s1-s2]",
            "samples are at least 1us apart",
        ),
        (
            "every: 0s, links: [s1-s2]",
            "samples are at least 1us apart",
        ),
        (
            "every: 1s, links: []",
            "no switch has a port at these links",
        ),
        (
            "every: 1s, links: [s1-s2, s1-s2]",
            "this link stands here twice",
        ),
        ("every: 1s, links: [s1-s9]", "no link 's1-s9'"),
        (
            "every: 1s, links: [s1-s2], from: 11s",
            "there are no samples",
        ),
    ] {
        let said = told(&of(keys));
        match says {
            "" => assert_eq!(said, "", "{keys}"),
            says => assert!(said.contains(says), "{keys}: {said}"),
        }
    }
}

fn findings(text: &str) -> (usize, String) {
    match crate::parse("t", text, &[]) {
        Ok(checked) => {
            let warnings = checked.warnings.count(Severity::Warning);
            (warnings, checked.warnings.to_string())
        }
        Err(findings) => (0, findings.to_string()),
    }
}

#[test]
fn faults_that_change_nothing_warn() {
    for (faults, says) in [
        ("{ at: 5s, link_up: s1-s2 }", "link s1-s2 is up already"),
        (
            "{ at: 6s, link_down: s1-s2 }, { at: 5s, link_down: s2-s1 }",
            "link s1-s2 is down already",
        ),
        (
            "{ at: 5s, crash: x }, { at: 6s, crash: x }",
            "x has crashed already",
        ),
        (
            "{ at: 5s, crash: x }, { at: 6s, crash: x/mpc }",
            "x has crashed already",
        ),
        (
            "{ at: 5s, crash: x/mpc }, { at: 6s, crash: x/mpc }",
            "x/mpc has crashed already",
        ),
        (
            "{ at: 5s, crash: x }, { at: 6s, restart: x/mpc }",
            "x has crashed, and all services with it",
        ),
    ] {
        let text = format!("{SMALL}mpoa: true\nuntil: 9s\nfaults: [{faults}]\n");
        let (warnings, said) = findings(&text);
        assert_eq!(warnings, 1, "{faults}: {said}");
        assert!(said.contains(says), "{faults}: {said}");
    }
    let fine = "{ at: 1s, link_down: s1-s2 }, { at: 2s, link_up: s1-s2 }, { at: 3s, crash: x }, \
                { at: 4s, restart: x }, { at: 5s, crash: x }, { at: 6s, restart: y }, { at: 7s, crash: y/mpc }, \
                { at: 8s, restart: x }, { at: 8500ms, crash: x/mpc }";
    let text = format!("{SMALL}mpoa: true\nuntil: 9s\nfaults: [{fine}]\n");
    let (warnings, said) = findings(&text);
    assert_eq!(warnings, 0, "{said}");
    for (faults, says) in [
        (
            "crash: x/mpc",
            "x has no service 'mpc', because its MPOA is off",
        ),
        (
            "restart: r/mps",
            "r has no service 'mps', because its MPOA is off",
        ),
    ] {
        let text = format!("{SMALL}until: 9s\nfaults: [{{ at: 5s, {faults} }}]\n");
        let (warnings, said) = findings(&text);
        assert_eq!(warnings, 1, "{said}");
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn rates_and_sizes_beyond_the_limits_are_told_with_the_limit_and_the_place() {
    for (flow, says) in [
        (
            "kind: udp, rate: 1Gbps, size: 99999999999",
            "size of this traffic is 24 to 65507 octets",
        ),
        (
            "kind: udp, rate: 1000000Gbps, size: 24",
            "more than 1000000000 packets of 24 octets a second",
        ),
        (
            "kind: udp, rate: 1e308pps",
            "a packet rate is 0.000001pps to 1000000000pps",
        ),
        (
            "kind: ping, rate: 1kbps, size: 0",
            "packets without octets have no rate in bits",
        ),
    ] {
        let (_, said) = findings(&format!("{SMALL}traffic: [{{ from: x, to: y, {flow} }}]\n"));
        assert!(said.contains(says), "{flow}: {said}");
        assert!(said.contains("t:9:"), "{flow}: {said}");
    }
}

#[test]
fn a_training_is_one_fault_and_the_run_goes_on_behind_its_end() {
    let text = format!("{SMALL}faults: [{{ at: 5s, retrain: s1-s2, duration: 7s }}]\n");
    let found = lab(&text);
    assert_eq!(found.faults.len(), 1);
    assert_eq!(found.end(), Duration::from_secs(14));
}

#[test]
fn a_link_trains_once_at_a_time() {
    let of = |faults: &str| told(&format!("{SMALL}until: 9s\nfaults: [{faults}]\n"));
    let first = "{ at: 2s, retrain: s1-s2, duration: 3s }";
    for (second, refused) in [
        ("{ at: 4s, retrain: s2-s1, duration: 100ms }", true),
        ("{ at: 2s, retrain: s1-s2, duration: 1s }", true),
        ("{ at: 1s, retrain: s1-s2, duration: 1001ms }", true),
        ("{ at: 1s, retrain: s1-s2, duration: 1s }", false),
        ("{ at: 5s, retrain: s1-s2, duration: 1s }", false),
        ("{ at: 4s, retrain: x-s1, duration: 1s }", false),
    ] {
        let said = of(&format!("{first}, {second}"));
        assert_eq!(said.contains("already"), refused, "{second}: {said}");
        assert_eq!(said.is_empty(), !refused, "{second}: {said}");
    }
}

#[test]
fn new_values_of_a_running_link_are_checked_like_those_of_a_lab_file() {
    let found = lab(SMALL);
    for (values, retrain, says) in [
        (&["delay=10s"][..], None, ""),
        (&["delay=10001ms"], None, "delay is 0s to 10s"),
        (&["delay.down=1h"], Some("1s"), "delay is 0s to 10s"),
        (&[], Some("1h"), ""),
        (&[], Some("1000h"), "duration is 1ms to 1h"),
        (&[], Some("0s"), "duration is 1ms to 1h"),
        (
            &["rate"],
            None,
            "'rate': expected NAME=VALUE, such as rate=10Mbps",
        ),
        (
            &["loss.up"],
            None,
            "'loss.up': expected NAME=VALUE, such as rate=10Mbps",
        ),
        (&["los"], None, "'los' is no new value of a link"),
        (&["delay="], None, "'delay=': expected NAME=VALUE"),
        (
            &["loss=1%", "rate.up= "],
            None,
            "'rate.up= ': expected NAME=VALUE",
        ),
        (
            &["rate=1Mbps", "block"],
            None,
            "'block': expected NAME=VALUE",
        ),
    ] {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let said = match found.link_fault("s1-s2", &values, retrain) {
            Ok(_) => String::new(),
            Err(findings) => findings.to_string(),
        };
        assert_eq!(said.is_empty(), says.is_empty(), "{values:?}: {said}");
        assert!(said.contains(says), "{values:?}: {said}");
    }
}
