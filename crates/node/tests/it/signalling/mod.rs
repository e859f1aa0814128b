//! The rules of signalling on a host; calls through a network are tested with the switch.

mod daemon;

use aerostat_proto::machine::settle;
use aerostat_proto::uni::Version;
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine, PartyId};
use aerostat_wire::{AtmAddress, Bhli, Blli, Qos, Sap};

use aerostat_node::signalling::{Config, Heard, Input, Limits, Output, Signalling, UserId};
use aerostat_testing::switch::{Net, USER};

fn connect(conn: u32) -> AtmRequest {
    AtmRequest::Connect {
        conn: ConnId(conn),
        calling: AtmAddress::ZERO,
        called: AtmAddress::LECS,
        sap: Sap::LLC,
        qos: Qos::ubr(1536),
        multipoint: false,
    }
}

fn manager(limits: Limits) -> Signalling {
    let mut manager = Signalling::new(Config {
        limits,
        ..Config::new(Version::Uni31)
    });
    for user in [1, 2] {
        manager
            .handle_input(Input::AddUser(UserId(user)), Instant::ZERO)
            .unwrap();
    }
    manager
}

#[test]
fn calls_wait_for_the_link() {
    let mut net = Net::unstarted(3, &[0, 2]);
    net.start_host(1);
    net.listen(1);
    net.tell(0, Input::AddUser(USER)).unwrap();
    net.call(0, 1, 1);
    net.run_s(5);
    assert!(!net.hosts[0].connected(ConnId(1)));
    net.tell(0, Input::Start).unwrap();
    net.run_s(2);
    assert!(net.hosts[0].connected(ConnId(1)));
    assert_eq!(net.hosts[0].events.first(), Some(&AtmEvent::Up));
    net.release(0, ConnId(1));
    net.run_s(1);
    net.assert_clean();
}

#[test]
fn waiting_has_an_end() {
    let mut manager = manager(Limits::default());
    let at = Instant::from_secs(1);
    for conn in [1, 2] {
        manager
            .handle_input(Input::request(UserId(1), connect(conn)), at)
            .unwrap();
    }
    let release = AtmRequest::Release {
        conn: ConnId(2),
        cause: Cause::NORMAL,
    };
    manager
        .handle_input(Input::request(UserId(1), release), at)
        .unwrap();
    assert_eq!(settle(&mut manager, at), []);
    let end = Instant::from_secs(9);
    assert_eq!(manager.poll_timeout(), Some(end));
    let released = AtmEvent::Released {
        conn: ConnId(1),
        cause: Cause::NETWORK_OUT_OF_ORDER,
    };
    assert_eq!(
        settle(&mut manager, end),
        [Output::Event(UserId(1), released, Heard::default())]
    );
    assert_eq!(manager.calls().count(), 0);
    assert_eq!(manager.counters().no_link, 1);
}

#[test]
fn refusals_are_counted() {
    let limits = Limits {
        users: 2,
        calls_per_user: 1,
        listeners_per_user: 1,
        ..Limits::default()
    };
    let mut manager = manager(limits);
    let now = Instant::ZERO;
    let listen =
        |selector| AtmRequest::listen(AtmAddress::LECS.with_selector(selector), Sap::LLC, 1536);
    let (one, two) = (UserId(1), UserId(2));
    let party = PartyId(1);
    let conn = ConnId(1);
    let called = AtmAddress::LECS;
    let steps = [
        (Input::AddUser(UserId(3)), false),
        (Input::request(UserId(3), connect(1)), false),
        (Input::request(one, listen(0)), true),
        (Input::request(one, listen(1)), false),
        (Input::request(two, listen(0)), false),
        (Input::request(one, connect(1)), true),
        (Input::request(one, connect(2)), false),
        (Input::request(two, connect(ConnId::INCOMING)), false),
        (
            Input::request(two, AtmRequest::Accept { conn, terms: None }),
            false,
        ),
        (
            Input::request(one, AtmRequest::Send { conn, sdu: vec![1] }),
            false,
        ),
        (
            Input::request(
                one,
                AtmRequest::AddParty {
                    conn,
                    party,
                    called,
                },
            ),
            false,
        ),
        (
            Input::request(one, AtmRequest::DropParty { conn, party }),
            false,
        ),
        (Input::DropUser(UserId(3)), false),
        (Input::DropUser(one), true),
        (Input::request(two, listen(0)), true),
    ];
    let mut refused = 0;
    for (i, (input, allowed)) in steps.into_iter().enumerate() {
        let done = manager.handle_input(input, now);
        assert_eq!(done.is_ok(), allowed, "step {i}: {done:?}");
        if i == 6 {
            // The user must not wait for this call for ever.
            let (conn, cause) = (ConnId(2), Cause::RESOURCES);
            let released = Output::Event(one, AtmEvent::Released { conn, cause }, Heard::default());
            assert!(settle(&mut manager, now).contains(&released));
        }
        refused += u64::from(!allowed);
    }
    assert_eq!(manager.counters().refused, refused);
    assert_eq!(manager.calls().count(), 0, "dropped with their user");
}

#[test]
fn a_dropped_user_takes_its_calls_along() {
    let mut net = Net::chain(2, &[0, 1]);
    net.listen(0);
    net.listen(1);
    net.call(0, 1, 1);
    net.call(1, 0, 1);
    net.run_s(1);
    net.tell(0, Input::DropUser(USER)).unwrap();
    net.run_s(1);
    net.assert_clean();
    assert!(net.hosts[1].released(ConnId(1)).is_some());
    assert_eq!(net.hosts[0].signalling.listeners().count(), 0);
    net.call(1, 0, 2);
    net.run_s(1);
    assert_eq!(net.hosts[1].released(ConnId(2)), Some(Cause::INCOMPATIBLE));
}

#[test]
fn sdus_are_checked() {
    let mut net = Net::chain(1, &[0, 0]);
    net.listen(1);
    net.call(0, 1, 1);
    net.run_s(1);
    assert!(net.send(0, ConnId(1), &[0; 1536]).is_ok());
    assert!(net.send(0, ConnId(1), &[0; 1537]).is_err());
    assert!(net.send(0, ConnId(1), &[]).is_err());
    net.release(0, ConnId(1));
    net.run_s(1);
    net.assert_clean();
}

/// Calls of host 0 to host 1 with each of these descriptions; what host 1 was told, or the cause.
fn offered_as(listeners: &[Sap], calls: &[Sap]) -> Vec<Result<Sap, Cause>> {
    let mut net = Net::chain(1, &[0, 0]);
    for sap in listeners {
        net.listen_for(1, *sap);
    }
    let mut out = Vec::new();
    for (conn, sap) in (1..).map(ConnId).zip(calls) {
        let request = AtmRequest::Connect {
            conn,
            calling: net.address(0),
            called: net.address(1),
            sap: *sap,
            qos: Qos::ubr(1536),
            multipoint: false,
        };
        net.ask(0, request).unwrap();
        net.run_ms(100);
        out.push(match net.hosts[0].released(conn) {
            Some(cause) => Err(cause),
            None => {
                assert!(net.hosts[0].connected(conn));
                let offers = net.hosts[1].events.iter().rev();
                let told = offers.filter_map(|event| match event {
                    AtmEvent::Incoming { sap, .. } => Some(*sap),
                    _ => None,
                });
                let told = told.take(1).next().unwrap();
                net.release(0, conn);
                net.run_ms(100);
                Ok(told)
            }
        });
    }
    net.assert_clean();
    out
}

#[test]
fn the_listener_that_says_most_takes_the_call() {
    let ttcp = Bhli::new(Bhli::VENDOR, &[0, 0x60, 0xd7, 1, 0, 0, 3]).unwrap();
    let user = Bhli::new(Bhli::USER, b"FORE_ATM").unwrap();
    let with = |bhli| Sap {
        blli: Some(Blli::LLC),
        bhli: Some(bhli),
    };
    let refused = Err(Cause::INCOMPATIBLE);
    let calls = [
        Sap::LLC,
        with(ttcp),
        with(user),
        ttcp.into(),
        user.into(),
        Sap::ANY,
    ];
    assert_eq!(
        offered_as(&[Sap::LLC, with(ttcp), user.into()], &calls),
        [
            Ok(Sap::LLC),
            Ok(with(ttcp)),
            Ok(Sap::LLC),
            refused,
            Ok(user.into()),
            refused
        ]
    );
    assert_eq!(
        offered_as(&[Sap::ANY, ttcp.into()], &calls),
        [
            Ok(Sap::ANY),
            Ok(ttcp.into()),
            Ok(Sap::ANY),
            Ok(ttcp.into()),
            Ok(Sap::ANY),
            Ok(Sap::ANY)
        ]
    );
    assert_eq!(offered_as(&[with(user)], &calls[..2]), [refused, refused]);
}
