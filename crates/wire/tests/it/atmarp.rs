//! InATMARP of recorded Linux hosts: decoded, and encoded to the same octets.

use aerostat_testing::recording::sdus;
use aerostat_wire::atmarp::{AtmArp, Operation};
use aerostat_wire::llc::LlcSnap;

#[test]
fn recorded_packets_keep_their_octets() {
    let mut seen = Vec::new();
    for record in sdus("d-clip-svc") {
        if let Ok((LlcSnap::Arp, packet)) = LlcSnap::decode(&record.sdu) {
            let arp = AtmArp::decode(packet).unwrap_or_else(|e| panic!("{}: {e}", record.at));
            assert_eq!(arp.to_sdu(), record.sdu, "{}", record.at);
            seen.push(arp.operation);
        }
    }
    let (asks, answers) = (Operation::INVERSE_REQUEST, Operation::INVERSE_REPLY);
    assert_eq!(seen, [asks, asks, answers, answers]);
}
