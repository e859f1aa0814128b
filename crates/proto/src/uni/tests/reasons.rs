//! Reasons for the end of calls: what one interface receives can be sent on another, in the numbers of its version.

use super::*;

fn reason(cause: u8, location: u8, diagnostics: &[u8]) -> Reason {
    Reason::from(Cause(cause))
        .located(location)
        .with(diagnostics)
}

/// The network side refuses an offered call with `said`; returns what the user is told.
fn refused(version: Version, said: Reason) -> Reason {
    let mut p = Pair::new(version);
    p.ask(USER, setup(info(1), None));
    let cause = said;
    p.ask(NET, Request::Release { call: IN1, cause });
    match core::mem::take(&mut p.ends[USER].heard).pop() {
        Some(Indication::Released { call: C1, cause }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn location_and_diagnostics_arrive_in_every_version() {
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        for said in [
            reason(16, 5, &[0x80]),
            reason(37, 3, &[0x84, 0x85]),
            reason(78, 0, &[]),
            reason(21, 0, &[0x80, 1, 2, 3]),
            // These numbers are not known here; they pass.
            reason(40, 2, &[9]),
            reason(127, 10, &[]),
        ] {
            assert_eq!(refused(version, said.clone()), said, "{version:?}");
        }
    }
}

#[test]
fn causes_of_the_forum_are_not_translated() {
    let said = Reason {
        forum: true,
        ..reason(53, 1, &[])
    };
    assert_eq!(refused(Version::Uni40, said.clone()), said);
    let said = Reason {
        cause: Cause(16),
        ..said
    };
    assert_eq!(refused(Version::Uni30, said.clone()), said);
}

#[test]
fn impossible_numbers_and_long_diagnostics_are_mended() {
    for impossible in [0, 128, 255] {
        let heard = refused(Version::Uni31, reason(impossible, 1, &[7]));
        assert_eq!(heard, reason(31, 1, &[7]));
    }
    let heard = refused(Version::Uni31, reason(21, 0, &[0x80; 60]));
    assert_eq!(heard, reason(21, 0, &[0x80; Reason::DIAGNOSTICS]));
}

#[test]
fn own_causes_have_the_location_of_their_side() {
    let heard = refused(Version::Uni31, Cause::BUSY.into());
    assert_eq!(heard, reason(17, 1, &[]));
    assert_eq!(heard.to_string(), "cause 17 (user busy) at location 1");
    let shown = reason(102, 0, b"308").to_string();
    assert!(
        shown.ends_with("at location 0, diagnostics 333038"),
        "{shown}"
    );
}

#[test]
fn an_acknowledgement_does_not_send_diagnostics_back() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(USER, setup(info(1), None));
    p.ask(
        NET,
        Request::Proceeding {
            call: IN1,
            vc: Some(VC1),
        },
    );
    let cause = reason(102, 5, b"301");
    p.ask(NET, Request::Release { call: IN1, cause });
    let heard = core::mem::take(&mut p.ends[USER].heard);
    let cause = reason(102, 5, b"301");
    assert_eq!(
        heard.last(),
        Some(&Indication::Released { call: C1, cause })
    );
    let element = p.ends[USER].last().find(id::CAUSE).expect("a cause");
    assert_eq!(element.contents[..], [0x80, 0x80 | 102]);
}
