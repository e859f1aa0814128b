//! One port floods the switch with SETUPs at line rate: SETUPs that can be served, invalid ones, repeated ones, and
//! ones that are never answered. Tables stay within their bounds, every refusal has its cause, and other hosts can call
//! all the time.

use std::collections::BTreeMap;

use aerostat_proto::uni::{CallId, Version};
use aerostat_wire::Qos;
use aerostat_wire::q2931::{CallRef, Element, Fields, Ie, Message, MessageType, Number, id, ie};

use aerostat_node::inspect::{StateKind, Value};
use aerostat_testing::switch::bare::Bare;

const V: Version = Version::Uni31;
/// Attacker, caller, called host, and a host that never answers.
const MALLORY: usize = 0;
const ALICE: usize = 1;
const BOB: usize = 2;
const SILENT: usize = 3;
/// The port of host 0; the two trunks come first.
const PORT: usize = 2;

/// The elements of a SETUP from the attacker to the silent host.
fn good(net: &mut Bare) -> Vec<Element> {
    let info = net.info(MALLORY, SILENT, Qos::ubr(1536));
    net.set_up(MALLORY, 1, info);
    net.run_ms(20);
    let setup = net.hosts[SILENT].last(MessageType::SETUP).expect("SETUP");
    let mut elements = setup.elements.clone();
    elements.retain(|e| e.id != id::CONNECTION_ID);
    net.release(MALLORY, CallId(1));
    net.run_ms(20);
    net.forget();
    elements
}

fn setup(reference: u32, elements: &[Element]) -> Message {
    let call = CallRef {
        flag: false,
        value: reference,
    };
    Message::new(call, MessageType::SETUP).with_elements(elements.to_vec())
}
fn with(elements: &[Element], ie: &Ie) -> Vec<Element> {
    let new = ie.encode();
    let mut out = without(elements, new.id);
    out.push(new);
    out
}
fn without(elements: &[Element], id: u8) -> Vec<Element> {
    let kept = elements.iter().filter(|e| e.id != id);
    kept.cloned().collect()
}

/// Kinds of SETUPs that are refused, with the cause that each must get.
fn bad(net: &Bare, good: &[Element]) -> Vec<(u8, Vec<Element>)> {
    let telephone = Number {
        ton: 1,
        plan: 1,
        presentation: None,
        digits: b"358401234"[..].into(),
    };
    let mut nowhere = net.address(SILENT);
    nowhere.0[1] = 0xee;
    let no_backward = Fields::new().with(0x84, 100);
    let no_room = Fields::new().with(0x84, 9_000_000).with(0x85, 1);
    let bad_bearer = {
        let mut elements = good.to_vec();
        let bearer = elements.iter_mut().find(|e| e.id == id::BEARER_CAPABILITY);
        bearer.expect("a bearer").contents = vec![0].into();
        elements
    };
    vec![
        (96, without(good, id::TRAFFIC_DESCRIPTOR)),
        (100, bad_bearer),
        (28, with(good, &Ie::CalledNumber(telephone))),
        (73, with(good, &Ie::Traffic(no_backward))),
        (3, with(good, &Ie::CalledNumber(Number::called(nowhere)))),
        (37, with(good, &Ie::Traffic(no_room))),
        (
            21,
            with(good, &Ie::CallingNumber(Number::calling(net.address(BOB)))),
        ),
    ]
}

/// Causes of the refusals that a host got.
fn refusals(net: &Bare, host: usize) -> BTreeMap<u8, usize> {
    let mut causes = BTreeMap::new();
    let got = net.hosts[host].got.iter();
    for message in got.filter(|m| m.kind == MessageType::RELEASE_COMPLETE) {
        if let Some(Ok(Ie::Cause(cause))) = message.find(id::CAUSE).map(ie::decode) {
            *causes.entry(cause.value).or_default() += 1;
        }
    }
    causes
}

/// A call from Alice, answered by Bob; returns the milliseconds until both are connected.
fn time_of_a_call(net: &mut Bare, call: u32, mut meanwhile: impl FnMut(&mut Bare)) -> u32 {
    net.hosts[BOB].heard.clear();
    net.set_up(ALICE, call, net.info(ALICE, BOB, Qos::cbr(100, 1536)));
    for ms in 1..1000 {
        meanwhile(net);
        net.run_ms(1);
        if net.hosts[BOB].offer().is_some() {
            net.accept(BOB);
            net.hosts[BOB].heard.clear();
        }
        let state = net.hosts[ALICE]
            .uni
            .calls()
            .find(|c| c.call == CallId(call));
        if state.is_some_and(|c| c.state == aerostat_proto::uni::CallState::Active) {
            return ms;
        }
    }
    panic!("the call does not get through");
}

fn check_bounds(net: &Bare) {
    for port in net.switches[0].port_infos() {
        assert!(port.calls <= 2048 && port.labels <= 2048, "{port:?}");
        assert!(port.pending <= 1024, "{port:?}");
    }
    let switch = &net.switches[0];
    let ports = switch.port_infos().map(|info| info.port);
    for interface in ports.filter_map(|port| switch.interface(port)) {
        assert!(interface.uni().calls().count() <= 4096);
        assert!(interface.saal().outstanding() <= 8192);
    }
    assert!(
        net.switches[0]
            .fabric()
            .output(PORT as u16)
            .unwrap()
            .queued_total()
            < 100_000
    );
}

/// Keeps the attacker's line busy: some 115 SETUPs of three cells in a millisecond.
fn top_up(net: &mut Bare, sent: &mut u64, next: &mut dyn FnMut(u64) -> Message) {
    while net.hosts[MALLORY].unsent() < 240 {
        let message = next(*sent);
        net.say(MALLORY, &message);
        *sent += 1;
    }
}

/// Calls of the others during a flood of SETUPs; returns the longest time of a set-up, in milliseconds.
fn calls_in_a_flood(
    net: &mut Bare,
    calls: core::ops::Range<u32>,
    sent: &mut u64,
    next: &mut dyn FnMut(u64) -> Message,
) -> u32 {
    let mut longest = 0;
    for call in calls {
        let flood = |net: &mut Bare| {
            top_up(net, sent, next);
            check_bounds(net);
        };
        longest = longest.max(time_of_a_call(net, call, flood));
        for _ in 0..10 {
            top_up(net, sent, next);
            net.run_ms(1);
        }
    }
    net.run_ms(500);
    longest
}

fn network() -> (Bare, Vec<Element>) {
    let mut net = Bare::new(1, V, &[(0, V), (0, V), (0, V), (0, V)]);
    let elements = good(&mut net);
    for host in [MALLORY, SILENT] {
        net.hosts[host].deaf = true;
    }
    time_of_a_call(&mut net, 1, |_| {});
    net.forget();
    (net, elements)
}

fn counter(net: &Bare, name: &str) -> u64 {
    let tables = net.switches[0]
        .inspect(StateKind::Call, aerostat_proto::Instant::ZERO)
        .unwrap();
    let table = tables
        .iter()
        .find(|table| table.title == "signalling")
        .unwrap();
    let port = Value::from(PORT);
    let row = table
        .rows
        .iter()
        .find(|row| row[0] == port && row[2] == Value::from(name));
    match row.map(|row| &row[3]) {
        Some(Value::Number(n)) => *n,
        other => panic!("{name}: {other:?}"),
    }
}

/// SETUPs that are refused at once.
#[test]
fn bad_setups_at_line_rate() {
    let (mut net, elements) = network();
    let kinds = bad(&net, &elements);
    let mut sent = 0;
    let mut next = |n: u64| {
        let (_, elements) = &kinds[n as usize % kinds.len()];
        setup(1 + (n as u32 % 0x7f_0000), elements)
    };
    let longest = calls_in_a_flood(&mut net, 2..6, &mut sent, &mut next);
    assert!(sent > 3000, "{sent}");
    assert!(longest <= 3, "{longest} ms");
    let causes = refusals(&net, MALLORY);
    assert_eq!(
        causes.values().sum::<usize>() as u64,
        sent,
        "each has its answer: {causes:?}"
    );
    for (cause, _) in &kinds {
        let share = sent as usize / kinds.len();
        let got = causes.get(cause).copied().unwrap_or(0);
        assert!(
            (share..=share + 1).contains(&got),
            "cause {cause}: {got} of {share}"
        );
    }
    // Four of the seven kinds never reach the owner of the interface; the others count as calls that ended.
    let by_call_control = counter(&net, "offers_refused");
    let causes_at_port = net.switches[0].port_infos().nth(PORT).unwrap().causes;
    let by_switch: u64 = [3, 21, 37]
        .map(|c| causes_at_port[&aerostat_proto::Cause(c)])
        .iter()
        .sum();
    assert_eq!(by_call_control + by_switch, sent);
    assert_eq!(counter(&net, "missing_elements"), causes[&96] as u64);
    assert_eq!(counter(&net, "bad_elements"), causes[&100] as u64);
    // The calls of the others continue.
    assert_eq!(net.switches[0].calls().count(), 5);
    assert_eq!(net.switches[0].port_infos().nth(PORT).unwrap().calls, 0);
    for call in 1..6 {
        net.release(ALICE, CallId(call));
    }
    net.run_ms(100);
    net.assert_clean();
}

/// Valid SETUPs to a host that never answers, each sent three times: some calls wait, for the others there is no room.
#[test]
fn setups_that_nobody_answers() {
    let (mut net, elements) = network();
    let mut sent = 0;
    let mut next = |n: u64| setup(1 + n as u32 / 3, &elements);
    let longest = calls_in_a_flood(&mut net, 2..8, &mut sent, &mut next);
    assert!(sent > 6000, "{sent}");
    assert!(longest <= 3, "{longest} ms");
    let port = net.switches[0].port_infos().nth(PORT).unwrap();
    assert_eq!((port.calls, port.pending), (1024, 1024));
    assert_eq!(net.hosts[SILENT].count(MessageType::SETUP), 1024);
    assert_eq!(net.hosts[MALLORY].count(MessageType::CALL_PROCEEDING), 1024);
    // A repeated SETUP is ignored if its call waits; if the call was refused, the repetition is handled like a new
    // SETUP.
    assert_eq!(counter(&net, "ignored"), 2 * 1024);
    let refused = sent - 3 * 1024;
    assert_eq!(refusals(&net, MALLORY), [(47, refused as usize)].into());
    // Alice can call even the host that the attacker floods with calls.
    net.hosts[SILENT].deaf = false;
    net.hosts[SILENT].heard.clear();
    net.set_up(ALICE, 20, net.info(ALICE, SILENT, Qos::ubr(1536)));
    net.run_ms(20);
    assert!(net.hosts[SILENT].offer().is_some());
    net.accept(SILENT);
    net.run_ms(20);
    net.hosts[SILENT].deaf = true;
    // Two T303 later the calls fail with cause 18. The attacker does not answer the RELEASE: two T308.
    net.run_ms(9000);
    let port = net.switches[0].port_infos().nth(PORT).unwrap();
    assert_eq!((port.calls, port.pending), (1024, 0));
    assert_eq!(net.hosts[MALLORY].count(MessageType::RELEASE), 1024);
    check_bounds(&net);
    net.run_ms(61_000);
    let port = net.switches[0].port_infos().nth(PORT).unwrap();
    assert_eq!((port.calls, port.labels), (0, 0));
    assert_eq!(port.causes[&aerostat_proto::Cause::NO_RESPONSE], 1024);
    assert_eq!(
        net.switches[0].calls().count(),
        8,
        "seven to Bob and one to the silent host"
    );
    net.hosts[SILENT].deaf = false;
    for call in (1..8).chain([20]) {
        net.release(ALICE, CallId(call));
    }
    net.run_ms(100);
    net.assert_clean();
}
