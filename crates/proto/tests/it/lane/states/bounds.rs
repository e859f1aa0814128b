//! A server at its bounds: it refuses, counts, and traces once.

use super::*;
use aerostat_proto::lane::ServerParams;

/// Names of the traces.
fn told(b: &Bench, name: &str) -> Vec<String> {
    let texts = b.notes.iter().filter_map(|note| match note {
        Note::Trace(trace) if trace.name == name && trace.milestone => Some(trace.text.to_string()),
        _ => None,
    });
    texts.collect()
}

fn two_clients() -> ServerParams {
    ServerParams {
        clients: 2,
        ..ServerParams::default()
    }
}

fn started(mut node: Node) -> Bench {
    match &mut node {
        Node::Les(les) => les.handle_input(les::Input::Start, Instant::ZERO),
        Node::Lecs(lecs) => lecs.handle_input(lecs::Input::Start, Instant::ZERO),
        _ => panic!("no LES and no LECS"),
    }
    .unwrap();
    let mut b = Bench::new(node);
    b.drain();
    b.requests.clear();
    b
}

#[test]
fn a_full_les_refuses_and_counts_each_call_and_tells_it_once() {
    let config = LesConfig {
        params: two_clients(),
        ..les_config()
    };
    let mut b = started(Node::Les(Box::new(Les::new(config))));
    let taken = (1..=5).map(|who| b.offer(address(who), Sap::LANE_CONTROL).1);
    assert_eq!(taken.collect::<Vec<_>>(), [true, true, false, false, false]);
    let Node::Les(les) = &b.node else {
        panic!("no LES");
    };
    assert_eq!(les.snapshot().counters.calls_refused, 3);
    let resources = |request: &&AtmRequest| matches!(request, AtmRequest::Release { cause, .. } if *cause == Cause::RESOURCES);
    assert_eq!(b.requests.iter().filter(resources).count(), 3);
    let told = told(&b, "les.full");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("takes 2 clients"), "{told:?}");
}

#[test]
fn a_full_lecs_refuses_and_counts_each_call_and_tells_it_once() {
    let config = LecsConfig {
        address: address(1),
        params: two_clients(),
        ..LecsConfig::default()
    };
    let mut b = started(Node::Lecs(Box::new(Lecs::new(config))));
    let taken = (1..=5).map(|who| b.offer(address(who), Sap::LANE_CONTROL).1);
    assert_eq!(taken.collect::<Vec<_>>(), [true, true, false, false, false]);
    let Node::Lecs(lecs) = &b.node else {
        panic!("no LECS");
    };
    assert_eq!(lecs.counters().calls_refused, 3);
    let told = told(&b, "lecs.full");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("takes 2 calls"), "{told:?}");
}
