//! ILMI messages of Debian's `ilmid`: decoded, and encoded to the same octets.

use aerostat_testing::recording::on_vci;
use aerostat_wire::ilmi::{Message, Pdu, mib};

#[test]
fn recorded_messages_keep_their_octets() {
    // The peer in `e-ilmi-net` is a script of this project; it always writes TimeTicks in four octets.
    for (name, who, least) in [
        ("e-ilmi", ["A>B", "B>A"], 50),
        ("e-ilmi-net", ["A>peer"; 2], 8),
    ] {
        let records = on_vci(name, 16);
        let mut seen = 0;
        for record in records {
            let message =
                Message::decode(&record.sdu).unwrap_or_else(|e| panic!("{}: {e}", record.at));
            if who.contains(&record.dir.as_str()) {
                assert_eq!(message.encode(), record.sdu, "{}", record.at);
                seen += 1;
            }
        }
        assert!(seen >= least, "{name}: {seen}");
    }
}

#[test]
fn the_recorded_registration() {
    let mut told = Vec::new();
    for record in on_vci("e-ilmi-net", 16) {
        let Ok(Message(Pdu::Request(request))) = Message::decode(&record.sdu) else {
            continue;
        };
        for binding in request.bindings {
            if let Some(prefix) = mib::prefix_of(&binding.name) {
                told.push(format!(
                    "{} {:?} prefix {:02x}",
                    record.dir, request.kind, prefix[12]
                ));
            }
            let column = mib::address_status();
            if let Some(address) = mib::address_of(&column, &binding.name) {
                told.push(format!("{} {:?} {address}", record.dir, request.kind));
            }
        }
    }
    let address = "47.0005.80.ffe100.0000.f21a.26d8.0020ea0000a0.00";
    assert_eq!(
        told,
        [
            // The answer to GetNext of the address table, which is empty: what follows is the prefix table.
            "peer>A Response prefix d8".to_owned(),
            "peer>A Set prefix d8".to_owned(),
            "A>peer Response prefix d8".to_owned(),
            format!("A>peer Set {address}"),
            format!("peer>A Response {address}"),
        ]
    );
}
