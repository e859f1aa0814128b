use crate::model::{L2tpEnds, Lab, OutsideWay, Scope};
use crate::resolve::tests::{SMALL, lab};
use aerostat_wire::Vc;
use aerostat_wire::l2tp::Sublayer;

const CABLE: &str = "interface: eth1, peer: '02:00:00:00:00:0b'";

/// The lab with these links and permanent connections.
fn with(links: &str, pvcs: &str) -> String {
    let text = SMALL.replace("[[s1, s2]]", &format!("[[s1, s2], {links}]"));
    format!("{text}pvcs: [{pvcs}]\n")
}

fn error(links: &str, pvcs: &str) -> String {
    let found = crate::parse("t.atm.yml", &with(links, pvcs), &[]);
    found.expect_err("an error").to_string()
}

fn way(lab: &Lab) -> &OutsideWay {
    &lab.outside().next().unwrap().2.way
}

#[test]
fn a_link_over_mpls_has_its_pseudowire_and_those_of_connections() {
    let lab = lab(&with(
        &format!(
            "[s2, {{ name: pe, mpls: {{ {CABLE}, outgoing: [16, 1000], incoming: 2000, sequence: true }} }}]"
        ),
        "{ from: x, vc: 0.100, to: pe, to_vc: 3.40, pseudowire: { outgoing: 1001, incoming: 2001 } }, \
         { from: pe, vc: 0.101, to: y, pseudowire: { outgoing: 1002, incoming: 2002, sequence: true } }",
    ));
    let OutsideWay::Mpls(mpls) = way(&lab) else {
        panic!("{:?}", way(&lab));
    };
    assert_eq!(mpls.interface, "eth1");
    let cells = mpls.cells.as_ref().unwrap();
    assert_eq!(
        (&cells.labels.outgoing[..], cells.labels.incoming),
        (&[16, 1000][..], 2000)
    );
    assert_eq!((cells.scope, cells.gathering.cells), (Scope::Port, 28));
    assert!(cells.word && cells.sequence);
    let wires: Vec<_> = mpls
        .sdus
        .iter()
        .map(|wire| (wire.vc, wire.labels.incoming, wire.sequence))
        .collect();
    assert_eq!(
        wires,
        [(Vc::new(3, 40), 2001, false), (Vc::new(0, 101), 2002, true)]
    );
}

#[test]
fn a_session_of_l2tp_is_over_ip_or_over_udp() {
    let l2tp = |more: &str| {
        let lab = lab(&with(
            &format!("[s1, {{ l2tp: {{ session: 1, peer_session: 0x7fffffff, {more} }} }}]")
                .replace("0x7fffffff", "4294967295"),
            "",
        ));
        match way(&lab) {
            OutsideWay::L2tp(l2tp) => *l2tp,
            other => panic!("{other:?}"),
        }
    };
    let ip = l2tp("local: 192.0.2.1, peer: 192.0.2.2, vp: 5");
    assert!(matches!(ip.ends, L2tpEnds::Ip(..)));
    let like_a_number = l2tp("local: 192.0.2.1, peer: 192.0.2.2, cookie: 12e45678");
    assert_eq!(like_a_number.cookie.octets(), [0x12, 0xe4, 0x56, 0x78]);
    assert_eq!(
        (ip.session, ip.peer_session, ip.sublayer),
        (1, u32::MAX, Sublayer::None)
    );
    assert_eq!((ip.scope, ip.gathering.cells), (Scope::Path(5), 27));
    let udp = l2tp(
        "local: '[::1]:1701', peer: '[::1]:1702', cookie: 0123456789abcdef, peer_cookie: 00000001, sublayer: atm, sequence: true, vc: 0.100",
    );
    assert!(matches!(udp.ends, L2tpEnds::Udp(..)));
    assert_eq!(
        udp.cookie.octets(),
        [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
    );
    assert_eq!(udp.peer_cookie.octets(), [0, 0, 0, 1]);
    assert_eq!(
        (udp.sublayer, udp.sequence, udp.scope),
        (Sublayer::Atm, true, Scope::Channel(Vc::new(0, 100)))
    );
}

#[test]
fn mistakes_with_pseudowires_over_mpls_are_told() {
    let labels = "outgoing: 1000, incoming: 2000";
    for (keys, says) in [
        ("outgoing: 1000", "both 'outgoing' and 'incoming'"),
        (
            "outgoing: 15, incoming: 2000",
            "expected a label of 16 to 1048575",
        ),
        (
            "outgoing: 1048576, incoming: 2000",
            "expected a label of 16 to 1048575",
        ),
        ("outgoing: [], incoming: 2000", "a packet has 1 to 8 labels"),
        (
            "outgoing: [20, 20, 20, 20, 20, 20, 20, 20, 20], incoming: 2000",
            "1 to 8 labels",
        ),
        ("word: false", "which needs labels"),
        ("", "has no pseudowire"),
    ] {
        let text = error(&format!("[s1, {{ mpls: {{ {CABLE}, {keys} }} }}]"), "");
        assert!(text.contains(says), "{keys}: {text}");
    }
    for (keys, says) in [
        ("word: false, sequence: true", "stand in the control word"),
        ("vc: 0.100, vp: 5", "one of 'vc' and 'vp'"),
        ("vp: 256", "vp is 0 to 255"),
        ("cells: 173", "cells is 1 to 172"),
        ("wait: 11ms", "wait is 0s to 10ms"),
    ] {
        let text = error(
            &format!("[s1, {{ mpls: {{ {CABLE}, {labels}, {keys} }} }}]"),
            "",
        );
        assert!(text.contains(says), "{keys}: {text}");
    }
    let link = |name: &str, labels: &str| {
        format!("[s1, {{ name: {name}, mpls: {{ {CABLE}, {labels} }} }}]")
    };
    let trunk = "trunk: network, routes: [47.0091.81.000000.02a7.10], mpls";
    let path = link("pe", "outgoing: 1000, incoming: 2000, vp: 5").replace("mpls", trunk);
    assert!(error(&path, "").contains("a trunk needs a pseudowire of cells"));
    // Labels that come in stand for one pseudowire each.
    let wire = |label: u32| {
        format!(
            "{{ from: x, vc: 0.{label}, to: pe, pseudowire: {{ outgoing: 1001, incoming: {label} }} }}"
        )
    };
    let twice = error(&link("pe", labels), &wire(2000));
    assert!(
        twice.contains("label 2000 comes in on eth1 for another"),
        "{twice}"
    );
    let twice = error(&[link("pe", labels), link("pf", labels)].join(", "), "");
    assert!(
        twice.contains("label 2000 comes in on eth1 for another"),
        "{twice}"
    );
    let out = link("pf", "outgoing: 1000, incoming: 2001");
    let twice = error(&[link("pe", labels), out].join(", "), "");
    assert!(twice.contains("the same outgoing labels"), "{twice}");
    // One end, and only one, is behind a link over MPLS.
    let both = "{ from: pe, vc: 0.50, to: pf, pseudowire: { outgoing: 1001, incoming: 50 } }";
    let other = link("pf", "outgoing: 1003, incoming: 2003");
    assert!(error(&[link("pe", labels), other].join(", "), both).contains("one end behind a link"));
    let neither = "{ from: x, vc: 0.50, to: y, pseudowire: { outgoing: 1001, incoming: 50 } }";
    assert!(error(&link("pe", labels), neither).contains("one end behind a link"));
    let udp = "[s2, { name: o2, udp: { local: 127.0.0.1:1, peer: 127.0.0.1:2 } }]";
    let vp =
        "{ from: o2, vc: 5.0, to: pe, vp: true, pseudowire: { outgoing: 1001, incoming: 50 } }";
    assert!(
        error(&[&link("pe", labels), udp].join(", ").to_string(), vp)
            .contains("one channel, not a path")
    );
}

#[test]
fn mistakes_with_sessions_of_l2tp_are_told() {
    let ids = "session: 1, peer_session: 2";
    let ends = "local: 192.0.2.1, peer: 192.0.2.2";
    for (keys, says) in [
        (
            format!("{ends}, session: 0, peer_session: 2"),
            "a session ID is 1 to",
        ),
        (
            format!("{ends}, session: 1, peer_session: 4294967296"),
            "a session ID is 1 to",
        ),
        (format!("{ends}, {ids}, cookie: 0123"), "8 or 16 hex digits"),
        (
            format!("{ends}, {ids}, cookie: 0123456g"),
            "8 or 16 hex digits",
        ),
        (
            format!("{ends}, {ids}, sequence: true"),
            "stand in a sublayer",
        ),
        (
            format!("{ends}, {ids}, sublayer: aal5"),
            "none, default or atm",
        ),
        (
            format!("{ids}, local: 192.0.2.1, peer: '192.0.2.2:1701'"),
            "both ends have a port",
        ),
        (
            format!("{ids}, local: 192.0.2.1, peer: 192.0.2.1"),
            "are the same",
        ),
        (
            format!("{ids}, local: 192.0.2.1, peer: '2001:db8::1'"),
            "one IP version",
        ),
        (
            format!("{ids}, local: 192.0.2.1, peer: 0.0.0.0"),
            "needs an address",
        ),
        (
            format!("{ids}, local: 192.0.2.1, peer: 224.0.0.5"),
            "needs an address",
        ),
        (
            format!("{ids}, local: '192.0.2.1:0', peer: '192.0.2.2:1701'"),
            "has to know the local address",
        ),
        (
            format!("{ends}, {ids}, cookie: 12e4567"),
            "8 or 16 hex digits",
        ),
        (
            format!("{ids}, local: 192.0.2.1, peer: router"),
            "expected ADDRESS or ADDRESS:PORT",
        ),
    ] {
        let text = error(&format!("[s1, {{ l2tp: {{ {keys} }} }}]"), "");
        assert!(text.contains(says), "{keys}: {text}");
    }
    let link = |name: &str| format!("[s1, {{ name: {name}, l2tp: {{ {ends}, {ids} }} }}]");
    let twice = error(&[link("a"), link("b")].join(", "), "");
    assert!(
        twice.contains("another link of this lab has this session"),
        "{twice}"
    );
}

#[test]
fn a_connection_with_a_label_that_its_link_does_not_carry_is_refused() {
    let link = |scope: &str| {
        format!(
            "[s2, {{ name: pe, mpls: {{ {CABLE}, outgoing: 1000, incoming: 2000, {scope} }} }}]"
        )
    };
    let pvc = |label: &str| format!("{{ from: x, vc: 0.100, to: pe, to_vc: {label} }}");
    for (scope, right, wrong, says) in [
        (
            "vc: 0.100",
            "0.100",
            "0.101",
            "the link to pe carries VC 0.100 alone",
        ),
        (
            "vp: 5",
            "5.40",
            "0.40",
            "the link to pe carries VPI 5 alone",
        ),
    ] {
        let text = error(&link(scope), &pvc(wrong));
        assert!(text.contains(says), "{text}");
        lab(&with(&link(scope), &pvc(right)));
    }
}
