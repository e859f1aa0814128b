//! NHRP servers that share keys, in labs.

use crate::bench::{Bench, lab_of};
use crate::faults::{SMALL, all, far, shortcuts};
use aerostat_node::inspect::Value;
use aerostat_node::ip::meter::Path;
use aerostat_proto::Duration;

const SHARED: &str = "nhrp.key={ spi: 7, secret: between servers }";

fn world(set: &[&str]) -> Bench {
    Bench::new(lab_of("small", SMALL, set), 3)
}

/// A counter of the MPOA server of `node`; 0 if it was never counted.
fn counter(bench: &Bench, node: &str, name: &str) -> u64 {
    let station = bench.station(bench.node(node)).unwrap();
    let tables = station.inspect("mps", bench.now()).unwrap();
    let rows = tables.iter().flat_map(|table| &table.rows);
    let found = rows.filter(|row| row[0] == Value::Text(name.to_owned()));
    let counts = found.map(|row| match row[1] {
        Value::Number(count) => count,
        _ => 0,
    });
    counts.sum()
}

/// The texts of `inspect nhrp --why` at a node.
fn why(bench: &Bench, node: &str, target: [u8; 4]) -> Vec<String> {
    let station = bench.station(bench.node(node)).unwrap();
    let table = station.host().why(target.into(), bench.now());
    let rows = table.into_iter().flat_map(|table| table.rows);
    let texts = rows.map(|row| match &row[3] {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    });
    texts.collect()
}

#[test]
fn servers_with_one_key_make_shortcuts() {
    let mut bench = world(&[SHARED]);
    shortcuts(&mut bench, "between servers that share a key", 50.0);
    for router in ["r1", "r2"] {
        assert_eq!(counter(&bench, router, "errors_sent[11]"), 0);
        assert!(counter(&bench, router, "nhrp_requests_received") > 0);
    }
}

/// The wrong key: no shortcut, packets go on by the routers, and each side says why.
#[test]
fn with_a_wrong_key_the_routed_path_goes_on_and_the_reason_is_told() {
    let mut bench = world(&[SHARED, "routers.r2.nhrp.key={ spi: 7, secret: another }"]);
    let (far, all) = (far(&bench), all(&bench));
    bench.until("routed", 30.0, |bench| {
        bench.all_joined()?;
        bench.all_pass(&all)
    });
    bench.run(Duration::from_secs(20));
    for router in ["r1", "r2"] {
        for name in ["errors_sent[11]", "errors_received[11]"] {
            assert!(counter(&bench, router, name) > 0, "{router} {name}");
        }
    }
    bench.until("still routed", 5.0, |bench| {
        bench.all_pass(&all)?;
        bench.all_by(&far, Path::Lane)
    });
    // From h1 to h2, r1 asks and r2 refuses.
    for (node, says) in [
        (
            "r1",
            "was refused by the peer with error 11 (authentication failed)",
        ),
        (
            "r2",
            "was refused here with error 11 (authentication failed)",
        ),
    ] {
        let texts = why(&bench, node, [10, 2, 0, 10]);
        assert!(texts.iter().any(|text| text.contains(says)), "{texts:?}");
    }
    let client = why(&bench, "h1", [10, 2, 0, 10]);
    assert!(client.iter().any(|text| text.contains("12")), "{client:?}");
}
