use crate::resolve::tests::{SMALL, lab};
use aerostat_node::atm::Policing;
use aerostat_wire::{TrafficParams, Vc};

fn with(pvcs: &str) -> String {
    let outside = "[s1, { atmtcp: { listen: 127.0.0.1:1 }, name: o1 }], \
        [s2, { atmtcp: { listen: 127.0.0.1:2 }, name: o2 }]";
    let links = SMALL.replace("[[s1, s2]]", &format!("[[s1, s2], {outside}]"));
    format!("{links}pvcs: [{pvcs}]\n")
}

fn error(pvcs: &str) -> String {
    let found = crate::parse("t.atm.yml", &with(pvcs), &[]);
    found.expect_err("an error").to_string()
}

#[test]
fn each_direction_has_its_contract() {
    let lab = lab(&with(
        "{ from: x, vc: 0.100, to: o2, to_vc: 3.40, qos: 'cbr:tx:max_pcr=2000,rx:max_pcr=100', police: true }",
    ));
    let pvc = &lab.pvcs[0];
    assert_eq!(pvc.qos.tx, TrafficParams::cbr(2000, u16::MAX));
    assert_eq!(pvc.qos.rx.max_pcr, Some(100));
    assert_eq!(
        (pvc.path, pvc.police, pvc.hops.len()),
        (false, Some(Policing::Guaranteed), 2)
    );
    assert_eq!(pvc.hops[1].to.1, Vc::new(3, 40));
    assert_eq!(pvc.hops[0].to.1, pvc.hops[1].from.1);
}

#[test]
fn paths_between_links_out_of_the_lab() {
    let lab = lab(&with("{ from: o1, vc: 5.0, to: o2, to_vc: 6.0, vp: true }"));
    let pvc = &lab.pvcs[0];
    assert!(pvc.path);
    assert_eq!(pvc.hops[0].to.1, Vc::new(1, 0));
    assert_eq!(pvc.hops[1].from.1, Vc::new(1, 0));
}

#[test]
fn frame_discard_is_as_the_entry_says() {
    for (key, want) in [
        ("", None),
        (", frame_discard: true", Some(true)),
        (", frame_discard: false", Some(false)),
        (", qos: 'ubr,aal5:frame_discard=false'", Some(false)),
    ] {
        let lab = lab(&with(&format!("{{ from: x, vc: 0.40, to: y{key} }}")));
        let qos = lab.pvcs[0].qos;
        assert_eq!([qos.tx, qos.rx].map(|d| d.frame_discard), [want; 2]);
    }
    let path = "{ from: o1, vc: 5.0, to: o2, to_vc: 6.0, vp: true, frame_discard: true }";
    let text = error(path);
    assert!(text.contains("a path has no frames"), "{text}");
}

#[test]
fn what_is_possible_but_hardly_meant_gives_a_warning() {
    for (pvcs, says) in [
        (
            "{ from: x, vc: 0.40, to: x, to_vc: 0.41 }",
            "both ends are at x",
        ),
        (
            "{ from: x, vc: 0.40, to: y, police: true }",
            "police has no effect",
        ),
        (
            "{ from: x, vc: 0.40, to: y, qos: 'ubr:pcr=9', police: true }",
            "police: all holds it",
        ),
        (
            "{ from: x, vc: 0.40, to: y, qos: 'ubr:pcr=9', police: all }",
            "",
        ),
        (
            "{ from: x, vc: 0.40, to: y, qos: 'abr:pcr=9', police: all }",
            "its rate follows the network",
        ),
        ("{ from: x, vc: 0.40, to: y, pcr: 9, police: true }", ""),
        ("{ from: o1, vc: 5.40, to: o1, to_vc: 5.41 }", ""),
    ] {
        let warnings = crate::parse("t.atm.yml", &with(pvcs), &[]);
        let warnings = warnings.unwrap_or_else(|d| panic!("{pvcs}: {d}")).warnings;
        let told = warnings.to_string();
        match says {
            "" => assert!(
                !told.contains("police") && !told.contains("both ends"),
                "{told}"
            ),
            says => assert!(told.contains(says), "{pvcs}: {told}"),
        }
    }
}

#[test]
fn mistakes() {
    for (pvcs, says) in [
        ("{ from: x, vc: 0.5, to: y }", "VCIs below 32"),
        (
            "{ from: x, vc: 256.50, to: y }",
            "a VPI is 0 to 255, not 256",
        ),
        (
            "{ from: x, vc: 0.70000, to: y }",
            "a VCI is 0 to 65535, not 70000",
        ),
        ("{ from: x, vc: 0, to: y }", "expected VPI.VCI"),
        (
            "{ from: x, vc: 0.40, to: y, pcr: 0 }",
            "a peak rate is at least 1 cell/s",
        ),
        ("{ from: x, vc: 0.40, to: y, qos: cbr }", "cbr needs a rate"),
        (
            "{ from: x, vc: 5.0, to: o1, vp: true }",
            "a path is between links",
        ),
        ("{ from: o1, vc: 0.0, to: o2, vp: true }", "a VPI from 1"),
        ("{ from: o1, vc: 5.40, to: o2, vp: true }", "VCI 0"),
        (
            "{ from: o1, vc: 5.0, to: o2, vp: true }, { from: x, vc: 0.40, to: o1, to_vc: 5.40 }",
            "o1 has 5.40 in use already",
        ),
        ("{ from: x, vc: 0.40, to: x }", "x has 0.40 in use already"),
        (
            "{ from: x, vc: 0.40, to: y, pcr: 5, qos: ubr }",
            "one of 'pcr' and 'qos'",
        ),
        ("{ from: x, vc: 0.40, to: y, qos: fast }", "fast"),
        (
            "{ from: x, vc: 0.40, to: y, police: maybe }",
            "expected true, false or all",
        ),
        (
            "{ from: x, vc: 0.40, to: y, qos: 'nrt-vbr:pcr=100,scr=200,mbs=9' }",
            "the sustainable rate, 200 cells/s, is above the peak rate, 100 (character 17)",
        ),
        (
            "{ from: x, vc: 0.40, to: y, qos: 'nrt-vbr:pcr=100,scr=20,mbs=0' }",
            "a burst size is at least 1",
        ),
        (
            "{ from: x, vc: 0.40, to: y, qos: 'rt-vbr:pcr=340000,scr=20,mbs=2' }",
            "cannot guarantee 340000 cells/s",
        ),
        (
            "{ from: x, vc: 0.40, to: y, qos: 'ubr:mdcr=200000' }, { from: x, vc: 0.41, to: y, pcr: 200000 }",
            "cannot guarantee 400000 cells/s",
        ),
        (
            "{ from: x, vc: 0.40, to: y, pcr: 340000 }",
            "cannot guarantee 340000 cells/s",
        ),
        (
            "{ from: x, vc: 0.40, to: y, pcr: 200000 }, { from: x, vc: 0.41, to: o1, pcr: 200000 }",
            "link x-s1 cannot guarantee 400000 cells/s",
        ),
    ] {
        let text = error(pvcs);
        assert!(text.contains(says), "{pvcs}: {text}");
    }
}

#[test]
fn a_connection_that_asks_for_too_much_is_told_alone() {
    let pvcs = "{ from: x, vc: 0.40, to: y, pcr: 300000 }, { from: x, vc: 0.41, to: y, pcr: 200000 }, \
        { from: x, vc: 0.42, to: y, pcr: 9 }, { from: x, vc: 0.43, to: y, pcr: 100000 }";
    let said = error(pvcs);
    for rate in [500_000, 400_009] {
        assert!(
            said.contains(&format!("cannot guarantee {rate} cells/s")),
            "{said}"
        );
    }
    assert_eq!(said.matches("error:").count(), 2, "{said}");
}

#[test]
fn the_mistake_of_a_link_out_of_the_lab_shows_also_where_a_connection_names_its_far_end() {
    let pvcs = "{ from: o1, vc: 0.100, to: o2, to_vc: 0.101 }, { from: x, vc: 0.5, to: o3 }";
    for (was, is, says) in [
        (
            "listen: 127.0.0.1:1 ",
            "",
            "atmtcp has one of 'listen' and 'connect'",
        ),
        ("[s1, { atmtcp", "[s9, { atmtcp", "there is no switch 's9'"),
        (
            "[s1, { atmtcp",
            "[lane, { atmtcp",
            "'lane' is the LANE server, not a switch",
        ),
        (
            "[s1, { atmtcp",
            "[x, { atmtcp",
            "x has a link already, to s1",
        ),
        (
            "atmtcp: { listen: 127.0.0.1:1 }",
            "udp: { local: '127.0.0.1:7', peer: '127.0.0.1:7' }",
            "'local' and 'peer' are the same",
        ),
    ] {
        let found = crate::parse("t.atm.yml", &with(pvcs).replacen(was, is, 1), &[]);
        let said = found.expect_err(says);
        let errors: Vec<&str> = said.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(errors.len(), 2, "{said}");
        assert!(errors[0].contains(says), "{said}");
        assert!(errors[1].contains("there is no end system 'o3'"), "{said}");
    }
}
