//! Every timer, and the loss of the link.

use super::*;
use aerostat_wire::q2931::RestartClass;

const S: fn(u64) -> Duration = Duration::from_secs;

fn second_setup() -> Request {
    Request::Setup {
        call: C2,
        info: info(2),
        vc: Some(VC2),
        party: None,
    }
}

const fn restart(what: Restart) -> Request {
    Request::Restart { what }
}

#[test]
fn t303_resends_setup_once_then_gives_up() {
    let mut p = Pair::new(Version::Uni31);
    p.lossy = vec![MessageType::SETUP];
    p.ask(USER, setup(info(1), None));
    p.run(S(4));
    assert_eq!(p.ends[USER].kinds(), [MessageType::SETUP; 2]);
    p.run(S(4));
    assert_eq!(p.take()[USER], [released(C1, Cause::NO_RESPONSE)]);
    assert_eq!(p.ends[USER].kinds(), [MessageType::RELEASE_COMPLETE]);
    p.clean();
}

/// A host that is slow to answer (its first SETUP counts) still gets its call.
#[test]
fn a_late_connect_is_in_time() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(NET, setup(info(1), Some(VC1)));
    p.run(S(7));
    p.ask(USER, accept(IN1, None));
    assert_eq!(p.ends[NET].state(C1), Some(CallState::Active));
    p.run(S(600));
    assert_eq!(p.ends[USER].state(IN1), Some(CallState::Active));
}

#[test]
fn t310_clears_a_call_that_goes_nowhere() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(USER, setup(info(1), None));
    p.ask(NET, proceeding(IN1, Some(VC1)));
    p.forget();
    p.run(S(10));
    let [user, net] = p.take();
    let (call, cause) = (C1, Cause::NO_RESPONSE);
    assert_eq!(
        user,
        [
            Indication::Clearing {
                call,
                cause: cause.into()
            },
            released(call, cause)
        ]
    );
    assert_eq!(net, [released(IN1, cause)]);
    p.clean();
}

#[test]
fn t301_limits_alerting() {
    let mut p = Pair::new(Version::Uni40);
    p.ask(USER, setup(info(1), None));
    p.ask(
        NET,
        Request::Alerting {
            call: IN1,
            vc: Some(VC1),
            elements: Vec::new(),
        },
    );
    p.run(S(179));
    assert_eq!(p.ends[USER].state(C1), Some(CallState::AlertingReceived));
    p.run(S(1));
    assert_eq!(p.take()[NET].last(), Some(&released(IN1, Cause(19))));
    p.clean();
}

#[test]
fn t308_resends_release_once_then_frees() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.lossy = vec![MessageType::RELEASE];
    p.ask(USER, release(C1));
    assert_eq!(p.take()[USER], [], "the label is not free yet");
    p.run(S(30));
    assert_eq!(causes(p.ends[USER].last()), [16, 102]);
    p.run(S(30));
    assert_eq!(p.take()[USER], [released(C1, Cause::NORMAL)]);
    assert_eq!(p.ends[USER].kinds(), [MessageType::RELEASE; 2]);
    assert!(p.ends[USER].is_clean());
    // The other end still has the call; an enquiry shows that the call has ended here.
    p.lossy.clear();
    p.ask(NET, Request::StatusEnquiry { call: IN1 });
    assert_eq!(p.take()[NET], [released(IN1, Cause(101))]);
    p.clean();
}

#[test]
fn t313_wants_the_acknowledgement() {
    let mut p = Pair::new(Version::Uni31);
    p.lossy = vec![MessageType::CONNECT_ACK];
    p.ask(NET, setup(info(1), Some(VC1)));
    p.ask(USER, accept(IN1, None));
    assert_eq!(p.ends[USER].state(IN1), Some(CallState::ConnectSent));
    p.forget();
    p.run(S(4));
    let [user, net] = p.take();
    let cause = Cause::TIMER;
    assert_eq!(
        user,
        [
            Indication::Clearing {
                call: IN1,
                cause: cause.into()
            },
            released(IN1, cause)
        ]
    );
    assert_eq!(net, [released(C1, cause)]);
    p.clean();
}

#[test]
fn t322_asks_twice_then_clears() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.lossy = vec![MessageType::STATUS_ENQUIRY];
    p.ask(USER, Request::StatusEnquiry { call: C1 });
    p.run(S(4));
    assert_eq!(p.ends[USER].kinds(), [MessageType::STATUS_ENQUIRY; 2]);
    p.run(S(4));
    assert_eq!(p.take()[NET], [released(IN1, Cause::TIMER)]);
    p.clean();
}

#[test]
fn an_answered_enquiry_changes_nothing() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.ask(USER, Request::StatusEnquiry { call: C1 });
    p.ask(NET, Request::StatusEnquiry { call: IN1 });
    p.run(S(100));
    assert_eq!(p.take(), [vec![], vec![]]);
    assert_eq!(
        p.ends[NET].kinds(),
        [MessageType::STATUS, MessageType::STATUS_ENQUIRY]
    );
}

#[test]
fn a_short_loss_of_the_link_keeps_active_calls() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.ask(NET, second_setup());
    p.forget();
    p.cut();
    let [user, net] = p.take();
    assert_eq!(
        user,
        [
            Indication::Down,
            released(CallId(CallId::INCOMING), Cause::OUT_OF_ORDER)
        ]
    );
    assert_eq!(net, [Indication::Down, released(C2, Cause::OUT_OF_ORDER)]);
    p.run(S(9));
    p.mend();
    p.run(S(60));
    assert_eq!(p.take(), [vec![], vec![]]);
    assert_eq!(p.ends[USER].state(C1), Some(CallState::Active));
    let kinds = p.ends[USER].kinds();
    assert_eq!(kinds, [MessageType::STATUS_ENQUIRY, MessageType::STATUS]);
    p.ask(USER, release(C1));
    p.clean();
}

#[test]
fn t309_gives_up_after_a_long_loss() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.cut();
    p.run(S(10));
    let [user, net] = p.take();
    assert_eq!(user, [Indication::Down, released(C1, Cause::OUT_OF_ORDER)]);
    assert_eq!(net, [Indication::Down, released(IN1, Cause::OUT_OF_ORDER)]);
    p.clean();
}

/// One end lost its calls when it lost power; the link is back before T309.
#[test]
fn a_peer_that_restarted_is_noticed() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.cut();
    p.ends[USER] = End::new(Side::User, Version::Uni31);
    p.run(S(2));
    p.mend();
    p.run(S(1));
    assert_eq!(p.take()[NET], [Indication::Down, released(IN1, Cause(101))]);
    p.clean();
}

#[test]
fn a_release_while_the_link_is_down_is_said_later() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.cut();
    p.ask(USER, release(C1));
    p.run(S(3));
    p.mend();
    let [user, net] = p.take();
    assert_eq!(user, [Indication::Down, released(C1, Cause::NORMAL)]);
    assert_eq!(net, [Indication::Down, released(IN1, Cause::NORMAL)]);
    p.clean();
}

#[test]
fn a_setup_waits_for_the_link() {
    let mut p = Pair::new(Version::Uni31);
    p.cut();
    p.ask(USER, setup(info(1), None));
    p.run(S(5));
    p.mend();
    let [_, net] = p.take();
    assert!(
        matches!(net[..], [Indication::Down, Indication::Setup { .. }]),
        "{net:?}"
    );
    p.cut();
    p.forget();
    p.ask(USER, setup(info(1), None));
    p.run(S(8));
    assert_eq!(
        p.take()[USER],
        [released(C1, Cause::OUT_OF_ORDER)],
        "not for ever"
    );
    p.clean();
}

#[test]
fn restart_clears_all_on_both_sides() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.ask(NET, second_setup());
    p.forget();
    p.ask(NET, restart(Restart::All));
    let [user, net] = p.take();
    let what = Restart::All;
    assert_eq!(
        user,
        [
            released(IN1, Cause::TEMPORARY),
            released(C1, Cause::TEMPORARY),
            Indication::Restarted { what },
        ]
    );
    assert_eq!(
        net,
        [
            released(IN1, Cause::TEMPORARY),
            released(C2, Cause::TEMPORARY),
            Indication::RestartDone {
                what,
                answered: true
            },
        ]
    );
    p.clean();
}

#[test]
fn restart_of_one_channel_and_of_a_path() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.ask(NET, second_setup());
    p.ask(USER, accept(CallId(CallId::INCOMING), None));
    p.forget();
    p.ask(USER, restart(Restart::Channel(VC2)));
    p.ask(USER, restart(Restart::Path { vpi: 7 }));
    assert_eq!(
        p.ends[USER].state(C1),
        Some(CallState::Active),
        "the other channel"
    );
    assert_eq!(p.ends[USER].uni.calls().count(), 1);
    assert_eq!(p.ends[NET].uni.calls().count(), 1);
    p.ask(USER, restart(Restart::Path { vpi: 0 }));
    p.clean();
}

#[test]
fn t316_repeats_a_restart_once() {
    let mut p = Pair::new(Version::Uni31);
    p.lossy = vec![MessageType::RESTART];
    let what = Restart::All;
    p.ask(USER, Request::Restart { what });
    p.ask(USER, restart(Restart::Channel(VC1)));
    p.run(S(240));
    let done = Indication::RestartDone {
        what,
        answered: false,
    };
    assert_eq!(p.take()[USER], [done]);
    p.lossy.clear();
    p.run(S(120));
    let what = Restart::Channel(VC1);
    let done = Indication::RestartDone {
        what,
        answered: true,
    };
    assert_eq!(p.take()[USER], [done]);
    p.clean();
}

#[test]
fn a_restart_waits_for_the_link() {
    let mut p = Pair::new(Version::Uni31);
    p.cut();
    p.forget();
    p.ask(USER, restart(Restart::All));
    p.mend();
    let what = Restart::All;
    assert_eq!(
        p.take()[USER],
        [Indication::RestartDone {
            what,
            answered: true
        }]
    );
    p.clean();
}

fn restart_message(class: RestartClass) -> Message {
    let global = reference(false, CallRef::GLOBAL);
    Message::new(global, MessageType::RESTART).with(&Ie::Restart(class))
}

/// The owner does not free the resources of the peer's restart: no answer is sent, and after T317 none is expected.
#[test]
fn t317_limits_the_clearing_of_a_restart() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.stuck = true;
    let message = restart_message(RestartClass::All);
    p.inject_message(NET, &message);
    let what = Restart::All;
    let heard = [
        released(IN1, Cause::TEMPORARY),
        Indication::Restarted { what },
    ];
    assert_eq!(p.take()[NET], heard);
    p.inject_message(NET, &message);
    assert_eq!(p.take()[NET], [], "a duplicate");
    assert_eq!(p.ends[NET].sent, [], "the channels are not idle yet");
    // In REST2.
    let odd = Message::new(message.call, MessageType::CONNECT);
    p.inject_message(NET, &odd);
    let state = p.ends[NET].last().find(id::CALL_STATE).expect("a state");
    assert_eq!(state.contents[..], [0x3e]);
    p.run(S(89));
    assert_eq!(p.ends[NET].uni.counters().restarts_unfinished, 0);
    p.run(S(1));
    assert_eq!(p.ends[NET].uni.counters().restarts_unfinished, 1);
    let late = Request::RestartCleared { what };
    assert!(p.try_ask(NET, late.clone()).is_err());
    p.forget();
    // The peer repeats its request, and this time the owner finishes.
    p.inject_message(NET, &message);
    p.run(S(80));
    p.ask(NET, late);
    assert_eq!(p.ends[NET].kinds(), [MessageType::RESTART_ACK]);
    assert!(p.ends[NET].uni.clearing.is_empty());
    p.run(S(100));
    assert_eq!(p.ends[NET].uni.counters().restarts_unfinished, 1);
}

#[test]
fn a_lost_link_ends_the_clearing_of_a_restart() {
    let mut p = Pair::new(Version::Uni31);
    p.stuck = true;
    p.inject_message(NET, &restart_message(RestartClass::All));
    p.cut();
    p.mend();
    p.run(S(200));
    assert_eq!(p.ends[NET].uni.counters().restarts_unfinished, 0);
    assert!(p.ends[NET].uni.clearing.is_empty());
}

#[test]
fn restarts_of_the_peer_are_bounded() {
    let mut p = Pair::new(Version::Uni31);
    p.stuck = true;
    let most = p.ends[NET].uni.params().limits.restarts as u16;
    for vci in 40..40 + 2 * most {
        let label = aerostat_wire::q2931::ConnectionId::exact(Vc::new(0, vci));
        let message = restart_message(RestartClass::Channel).with(&Ie::ConnectionId(label));
        p.inject_message(NET, &message);
    }
    assert_eq!(p.ends[NET].uni.clearing.len(), usize::from(most));
    assert_eq!(p.ends[NET].uni.counters().ignored, u64::from(most));
}

/// The flag tells which side's restart a message is about: ours is in REST1.
#[test]
fn the_state_of_our_own_restart() {
    let mut p = Pair::new(Version::Uni31);
    p.lossy = vec![MessageType::RESTART];
    p.ask(NET, restart(Restart::All));
    p.forget();
    let label = aerostat_wire::q2931::ConnectionId::exact(VC1);
    let mut other = restart_message(RestartClass::Channel).with(&Ie::ConnectionId(label));
    other.kind = MessageType::RESTART_ACK;
    other.call.flag = true;
    p.inject_message(NET, &other);
    let status = p.ends[NET].last();
    assert_eq!(causes(status), [101]);
    let state = status.find(id::CALL_STATE).expect("a state");
    assert_eq!(state.contents[..], [0x3d]);
}
