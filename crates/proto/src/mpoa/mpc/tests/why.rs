//! Every step on the way to a shortcut has its reason.

use super::*;
use crate::Cause;
use crate::mpoa::mpc::WhyReason;
use aerostat_wire::nhrp::code;

fn why(rig: &Rig, to: IpAddr) -> (WhyReason, Option<u64>, String) {
    let all = rig.mpc.why(to, rig.now);
    assert_eq!(all.len(), 1, "{all:?}");
    (all[0].reason, all[0].left_s, all[0].text.clone())
}

fn reason(rig: &Rig) -> WhyReason {
    why(rig, TARGET).0
}

#[test]
fn before_the_first_packet() {
    let mut rig = Rig::new(MpcConfig::new(CONTROL, DATA));
    assert_eq!(reason(&rig), WhyReason::Off);
    rig.input(Input::Start);
    assert_eq!(reason(&rig), WhyReason::NoInterface);
    rig.lec_up(0);
    assert_eq!(reason(&rig), WhyReason::NoServer);
    rig.associate(MPS_MAC, mps_tlv(MPS));
    assert_eq!(reason(&rig), WhyReason::Unseen);
    let group = IpAddr::V4(Ipv4Addr::new(224, 0, 0, 5));
    assert_eq!(why(&rig, group).0, WhyReason::NotUnicast);
    rig.input(Input::LecDown { itf: 0 });
    assert_eq!(reason(&rig), WhyReason::NoInterface);
}

#[test]
fn up_to_the_shortcut() {
    let mut rig = Rig::ready();
    for _ in 0..3 {
        rig.send(TARGET);
    }
    let (counting, left, text) = why(&rig, TARGET);
    assert_eq!((counting, left), (WhyReason::Counting, None));
    assert_eq!(text, "3 packets in this window of 1 s; 10 make a flow");
    rig.until(2);
    assert!(why(&rig, TARGET).2.starts_with("0 packets"));
    let (control, request) = rig.asked(TARGET);
    let (asking, left, text) = why(&rig, TARGET);
    assert_eq!((asking, left), (WhyReason::Asking, Some(5)));
    assert!(text.contains("asked 1 time and"), "{text}");
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG)));
    let (opening, _, text) = why(&rig, TARGET);
    assert_eq!(opening, WhyReason::Opening);
    assert!(text.contains("is being opened"), "{text}");
    rig.connected(connects(&out)[0].0, 60);
    rig.send(TARGET);
    let (shortcut, left, text) = why(&rig, TARGET);
    assert_eq!((shortcut, left), (WhyReason::Shortcut, Some(1200)));
    assert!(
        text.contains("up to 1500 octets") && text.contains(&PEER.to_string()),
        "{text}"
    );
}

#[test]
fn what_goes_wrong() {
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    rig.control(control, &refusal(&request, code::NO_BINDING));
    let (refused, left, text) = why(&rig, TARGET);
    assert_eq!((refused, left), (WhyReason::Refused, Some(160)));
    assert!(text.contains("code 12"), "{text}");

    let mut rig = Rig::ready();
    rig.asked(TARGET);
    rig.until(50);
    assert_eq!(reason(&rig), WhyReason::Unanswered);

    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    let out = rig.control(control, &answer(&request, PEER, 1200, None));
    let (conn, cause) = (connects(&out)[0].0, Cause::RATE_UNAVAILABLE);
    rig.atm(AtmEvent::Released { conn, cause });
    let (failed, left, text) = why(&rig, TARGET);
    assert_eq!((failed, left), (WhyReason::CallFailed, Some(160)));
    assert!(text.contains("cause 37"), "{text}");
}
