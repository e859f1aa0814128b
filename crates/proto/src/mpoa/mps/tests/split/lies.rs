//! Daemons that send false messages, or too many.

use super::*;

#[test]
fn a_daemon_may_not_do_what_is_not_its_servers() {
    let mut alone = Alone::new(config());
    let (conn, cause, sdu) = (ConnId(5), Cause::NORMAL, vec![1]);
    let (control, data) = (atm(0x21, 0x52), atm(0x21, 0x53));
    let connect = |conn, calling, multipoint| AtmRequest::Connect {
        conn,
        calling,
        called: atm(0x22, 0x52),
        sap: Sap::LLC,
        qos: Qos::ubr(MAX_SDU),
        multipoint,
    };
    let listen = |address, sap| AtmRequest::listen(address, sap, MAX_SDU);
    for request in [
        listen(atm(0x22, 0x52), Sap::LLC),
        listen(control, Sap::LANE_CONTROL),
        connect(conn, atm(0x22, 0x52), false),
        // A server calls only from its control address.
        connect(conn, data, false),
        connect(conn, control, true),
        connect(ConnId(ConnId::INCOMING), control, false),
        AtmRequest::OpenPermanent {
            conn,
            vc: Vc::new(0, 33),
            qos: Qos::ubr(MAX_SDU),
        },
        AtmRequest::Accept { conn, terms: None },
        AtmRequest::Release { conn, cause },
        AtmRequest::Send { conn, sdu },
        AtmRequest::DropParty {
            conn,
            party: PartyId(1),
        },
    ] {
        alone.lie(FromDaemon::Atm(request));
    }
    let tlvs = config().announces(&config().interfaces[0]);
    let itf = config().interfaces[0].itf;
    for message in [
        FromMpsd::Router(ToRouter::ResolveL2 {
            query: 1,
            itf: 77,
            ip: TARGET,
        }),
        FromMpsd::Router(ToRouter::SetTlvs {
            itf: 77,
            tlvs: tlvs.clone(),
        }),
        FromMpsd::Router(ToRouter::SetTlvs { itf, tlvs: vec![] }),
        FromMpsd::Shown(Part::End),
    ] {
        alone.lie(FromDaemon::Message(message));
    }
    let proper = FromDaemon::Message(FromMpsd::Router(ToRouter::SetTlvs { itf, tlvs }));
    assert_eq!(alone.said(proper).len(), 1);
    let call = FromDaemon::Atm(connect(conn, control, false));
    assert_eq!(alone.said(call.clone()).len(), 1);
    alone.lie(call);
}

#[test]
fn questions_and_connections_of_a_daemon_have_bounds_and_old_questions_make_room() {
    let limits = Limits {
        queries: 3,
        connections: 2,
        ..Limits::default()
    };
    let mut alone = Alone::new(MpsConfig { limits, ..config() });
    let question = |query| {
        FromDaemon::Message(FromMpsd::Router(ToRouter::LookupRoute {
            query,
            dst: TARGET,
        }))
    };
    for query in 0..3 {
        assert_eq!(alone.said(question(query)).len(), 1);
    }
    alone.lie(question(3));
    let later = NOW + SECOND * 10;
    let said = Input::Process(ProcessEvent::Said(question(4)));
    alone.0.handle_input(said, later).unwrap();
    assert!(
        alone.0.poll_output().is_some(),
        "the daemon no longer waits"
    );
    // The daemon has its own bound; that of the seat has room for calls that the daemon has not answered.
    let refused = (0..100).filter(|n| {
        let out = alone.offer(*n, atm(0x21, 0x52));
        matches!(
            out[..],
            [Output::Atm(AtmRequest::Release {
                cause: Cause::RESOURCES,
                ..
            })]
        )
    });
    assert_eq!(refused.count(), 100 - (2 + 64));
}

#[test]
fn a_report_of_more_rows_than_a_server_may_have_is_refused() {
    let limits = Limits {
        ingress: 3,
        ..Limits::default()
    };
    let config = MpsConfig { limits, ..config() };
    let mut state = State::idle(&config);
    state.mps.ingress = many(&mut Random::new(1));
    let mut reports = Reports::default();
    let taken = parts(state, NOW)
        .into_iter()
        .filter(|part| reports.take(part.clone(), &config, NOW));
    assert_eq!(taken.count(), 2, "the beginning and the end");
    assert!(reports.last.unwrap().mps.ingress.is_empty());
}
