//! Ladders of messages, and of ways.

mod ways;

use super::*;
use aerostat_wire::SscopPdu;

const LAB: &str = include_str!("../../../../labs/two-hosts.atm.yml");

#[test]
fn what_is_wanted_and_no_more() {
    let lab = aerostat_lab::parse("two-hosts.atm.yml", LAB, &[])
        .unwrap()
        .lab;
    let wanted = Wanted::Messages(Messages {
        links: vec![LinkId(0)],
        data: false,
        story: false,
    });
    let (mut ladder, lines) = Ladder::new(&lab, wanted);
    let pdu = SscopPdu::EndAck.encode();
    let now = Instant::from_millis(5);
    let mut tell = |link, direction, vc, dropped| {
        let end = End {
            link: LinkId(link),
            side: 0,
        };
        ladder.sdu(end, direction, (vc, &pdu), dropped, now)
    };
    assert!(tell(0, Direction::Sent, Vc::SIGNALLING, None));
    assert!(tell(0, Direction::Received, Vc::SIGNALLING, None));
    assert!(tell(1, Direction::Sent, Vc::SIGNALLING, None));
    assert!(tell(0, Direction::Sent, Vc::new(0, 40), None));
    let lost = Some(DropReason::LinkDown);
    assert!(tell(0, Direction::Received, Vc::SIGNALLING, lost));
    let told: Vec<Message> = lines
        .try_iter()
        .map(|line| serde_json::from_slice(&line).unwrap())
        .collect();
    assert_eq!(told.len(), 2);
    assert_eq!((told[0].text.as_str(), told[0].time), ("ENDAK", 0.005));
    assert_eq!((&told[0].from, &told[0].to), (&told[1].to, &told[1].from));
    assert_eq!(told[1].dropped.as_deref(), Some("link down"));
    drop(lines);
    assert!(!tell(0, Direction::Sent, Vc::SIGNALLING, None));
}
