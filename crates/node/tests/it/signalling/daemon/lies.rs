//! Daemons that send false messages, or too many.

use super::*;

fn now_connected(call: CallId, vc: Vc, qos: Qos) -> FromSigd {
    FromSigd::Connected {
        call,
        vc,
        qos,
        data: UserData::default(),
    }
}

fn now_released(call: CallId, cause: Cause) -> FromSigd {
    FromSigd::Released {
        call,
        cause,
        data: UserData::default(),
    }
}

fn party_added(call: CallId, party: PartyId) -> FromSigd {
    FromSigd::PartyAdded {
        call,
        party,
        data: UserData::default(),
    }
}

#[test]
fn lies_are_refused_and_hurt_nobody_else() {
    let mut net = two();
    open_permanent(&mut net, 0, 100);
    net.call(0, 1, 1);
    net.run_s(1);
    let before: Vec<_> = net.hosts[0].signalling.calls().collect();
    let open = net.hosts[0].open.clone();
    let events = net.hosts[0].events.len();
    let refused = counted(&net, 0).refused;
    let cause = Cause::NORMAL;
    let (vc, qos) = (Vc { vpi: 0, vci: 999 }, Qos::ubr(1536));
    let (permanent, call) = (CallId(0), CallId(1));
    let lies = [
        now_released(permanent, cause),
        FromSigd::Clearing {
            call: permanent,
            cause,
            data: UserData::default(),
        },
        now_connected(permanent, vc, qos),
        now_connected(call, vc, qos),
        FromSigd::Offered(offer(1)),
    ];
    for lie in lies {
        net.lie(0, lie);
    }
    for (conn, sdu) in [
        (SIGNALLING, Vec::new()),
        (SIGNALLING, vec![0; SDU_MAX + 1]),
        (ConnId(1), b"data".to_vec()),
    ] {
        net.daemon_says(0, FromDaemon::Atm(AtmRequest::Send { conn, sdu }));
    }
    let party = PartyId(3);
    for lie in [
        party_added(permanent, party),
        FromSigd::PartyGone {
            call: permanent,
            party,
            cause,
            data: UserData::default(),
        },
    ] {
        net.lie(0, lie);
    }
    assert_eq!(counted(&net, 0).refused, refused + 10);
    // About an unknown call or an unknown leaf, and to an address without a listener.
    let stale = counted(&net, 0).stale;
    for call in [call, CallId(77)] {
        net.lie(0, party_added(call, party));
        net.lie(
            0,
            FromSigd::PartyGone {
                call,
                party,
                cause,
                data: UserData::default(),
            },
        );
    }
    let call = CallId(77);
    net.lie(0, now_released(call, cause));
    net.lie(0, now_connected(call, vc, qos));
    assert_eq!(counted(&net, 0).stale, stale + 6);
    net.lie(0, FromSigd::Offered(offer(CallId::INCOMING + 900)));
    assert_eq!(net.hosts[0].signalling.calls().collect::<Vec<_>>(), before);
    assert_eq!(net.hosts[0].open, open);
    assert_eq!(net.hosts[0].events.len(), events);
    // A label in use is not assigned twice: the second call fails, the first one keeps the label.
    let mut connected = |conn: u32, vc, qos| {
        net.call(0, 1, conn);
        let call = CallId(conn);
        net.lie(0, now_connected(call, vc, qos));
        assert_eq!(
            net.hosts[0].released(ConnId(conn)),
            Some(Cause::VC_UNAVAILABLE)
        );
        assert_eq!(net.hosts[0].open, open);
    };
    connected(2, PVC, qos);
    // Not more traffic than was requested.
    connected(3, vc, Qos::cbr(100_000, 1536));
    // A leaf is not added twice.
    let refused = counted(&net, 0).refused;
    net.call_with(0, 1, 4, Qos::ubr_multipoint(1536), true);
    net.run_s(1);
    let (call, party) = (CallId(4), PartyId(0));
    let events = net.hosts[0].events.len();
    net.lie(0, party_added(call, party));
    assert_eq!(counted(&net, 0).refused, refused + 1);
    assert_eq!(net.hosts[0].events.len(), events);
    // `inspect call` shows this, and the call to an address without a listener.
    let shown = net.hosts[0].signalling.counter_table();
    for (name, value) in [
        ("incompatible", 1),
        ("daemon_refused", refused + 1),
        ("daemon_stale", counted(&net, 0).stale),
    ] {
        let row = vec![Value::Text(name.to_owned()), Value::Number(value)];
        assert!(shown.rows.contains(&row), "{name}: {:?}", shown.rows);
    }
}

#[test]
fn a_flood_of_offers_ends_at_the_limit() {
    let limits = Limits {
        calls_per_user: 5,
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::new(Version::Uni31)
    };
    let mut manager = Signalling::split(config);
    let now = Instant::ZERO;
    let listen = AtmRequest::listen(AtmAddress::LECS, Sap::LLC, 1536);
    let message = |message| Input::Daemon(ProcessEvent::Said(FromDaemon::Message(message)));
    for input in [
        Input::AddUser(USER),
        Input::request(USER, listen),
        Input::Daemon(ProcessEvent::Came),
        message(FromSigd::Begun { life: 1 }),
    ] {
        manager.handle_input(input, now).unwrap();
    }
    settle(&mut manager, now);
    for n in 0..1000 {
        let offered = message(FromSigd::Offered(offer(CallId::INCOMING + n)));
        manager.handle_input(offered, now).unwrap();
        let said = settle(&mut manager, now);
        let offered = matches!(
            said[..],
            [Output::Event(UserId(1), AtmEvent::Incoming { .. }, _)]
        );
        assert_eq!(offered, n < 5, "{said:?}");
    }
    assert_eq!(manager.calls().count(), 5);
    let waits = |call: aerostat_node::signalling::CallInfo| call.phase == Phase::Offered;
    assert!(manager.calls().all(waits));
    let gone = Input::Daemon(ProcessEvent::Gone);
    manager.handle_input(gone, now).unwrap();
    settle(&mut manager, now);
    assert_eq!(manager.calls().count(), 0);
}
