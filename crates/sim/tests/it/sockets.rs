//! Programs with ATM sockets: what they send arrives whole, and what is refused has its cause at both ends.

use crate::bench::{Bench, repository_lab};
use std::collections::BTreeMap;

/// The calls of a host: name of the program, then the columns of its calls in order.
pub(crate) fn calls(
    bench: &Bench,
    host: &str,
) -> BTreeMap<String, Vec<BTreeMap<&'static str, String>>> {
    let id = bench.lab.find(host).expect("a host of the lab");
    let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
    let tables = node.inspect("sockets", bench.now()).expect("sockets");
    let table = tables.iter().find(|table| table.title == "calls");
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in &table.expect("a table of calls").rows {
        let row: BTreeMap<_, _> = tables[1]
            .columns
            .iter()
            .zip(row)
            .map(|(column, value)| (*column, value.to_string()))
            .collect();
        all.entry(row["name"].clone()).or_default().push(row);
    }
    all
}

#[test]
fn calls_of_the_lab() {
    let lab = repository_lab("sockets", &[]);
    let end = lab.end();
    let mut bench = Bench::new(lab, 1);
    bench.run(end);
    let (urku, sello) = (calls(&bench, "urku"), calls(&bench, "sello"));
    // 200 PDUs of 4096 octets: one way, and the same sum at the other end.
    let (bulk, sink) = (&urku["bulk"][0], &sello["sink"][0]);
    assert_eq!(
        (&*bulk["sent_pdus"], &*bulk["sent_octets"]),
        ("200", "819200")
    );
    assert_eq!(bulk["sent_crc32"], "430ffa9a");
    for (sent, received) in [
        ("sent_pdus", "received_pdus"),
        ("sent_octets", "received_octets"),
        ("sent_crc32", "received_crc32"),
    ] {
        assert_eq!(bulk[sent], sink[received]);
    }
    assert_eq!(sello["sink"].len(), 1, "the stranger does not come to it");
    // The echo, both ways.
    let (talk, echo) = (&urku["talk"][0], &sello["echo"]);
    assert_eq!(
        (&*talk["received_pdus"], &*talk["received_crc32"]),
        ("10", "d98906b2")
    );
    assert_eq!(
        (&*echo[1]["sent_pdus"], &*echo[1]["received_crc32"]),
        ("10", "d98906b2")
    );
    let setup: u64 = talk["setup_us"].parse().expect("a number");
    assert!((10..10_000).contains(&setup), "{setup} us");
    // Released by the caller, with one cause at both ends.
    for (here, there) in [(bulk, sink), (talk, &echo[1])] {
        assert_eq!((&*here["cause"], &*there["cause"]), ("16", "16"));
        assert_eq!(
            (&*here["released_by"], &*there["released_by"]),
            ("us", "peer")
        );
    }
    // Refused, each for its reason.
    for (name, cause) in [
        ("second", "17"),
        ("stranger", "88"),
        ("nobody", "88"),
        ("nowhere", "3"),
    ] {
        let call = &urku[name][0];
        assert_eq!((&*call["cause"], &*call["vc"]), (cause, "-"), "{name}");
    }
    assert_eq!((&*echo[0]["cause"], &*echo[0]["released_by"]), ("17", "us"));
    for host in ["urku", "sello"] {
        let id = bench.lab.find(host).expect("a host of the lab");
        let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
        let left = node.as_station().expect("a host").host();
        let left: Vec<_> = left
            .signalling()
            .calls()
            .filter(|call| call.called.selector() >= 0xe0)
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
