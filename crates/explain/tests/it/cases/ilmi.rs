//! ILMI: polls of one end, and an address that it registers.

use super::{Case, Clean, later, sdu};
use crate::captures::{Sdu, file};
use aerostat_explain::Rule;
use aerostat_wire::Vc;
use aerostat_wire::ilmi::{
    Binding, ErrorStatus, Kind, MAX_MESSAGE, Message, Pdu, Request, Value, mib,
};

const POLL: &str = "A>B";
const BACK: &str = "B>A";

fn message(time: f64, way: &str, request: Request) -> Sdu {
    sdu(time, way, Vc::ILMI, Message(Pdu::Request(request)).encode())
}

fn get(time: f64, id: i32) -> Sdu {
    let binding = Binding::new(mib::my_system_identifier(), Value::Null);
    message(time, POLL, Request::new(Kind::Get, id, vec![binding]))
}

fn response(time: f64, id: i32, text: usize) -> Sdu {
    let binding = Binding::new(mib::my_system_identifier(), Value::Octets(vec![7; text]));
    message(time, BACK, Request::new(Kind::Response, id, vec![binding]))
}

/// A registration with its answer.
fn set(status: ErrorStatus) -> [Sdu; 2] {
    let name = mib::of_address(
        &mib::address_status(),
        aerostat_wire::AtmAddress([0x47; 20]),
    );
    let binding = Binding::new(name, Value::Integer(1));
    let request = Request::new(Kind::Set, 70, vec![binding]);
    let answer = Request {
        kind: Kind::Response,
        status,
        ..request.clone()
    };
    [message(2.0, POLL, request), message(2.1, BACK, answer)]
}

fn with(more: &[Sdu]) -> Vec<Sdu> {
    let mut sdus = vec![get(0.0, 1), response(0.1, 1, 8)];
    sdus.extend_from_slice(more);
    sdus.push(later());
    sdus
}

/// Octets of a message beside a text of the answer.
fn beside_text() -> usize {
    // Lengths of more than 255 octets have two octets each.
    response(0.0, 5, 300).octets.len() - 300
}

pub(super) fn cases() -> Vec<Case> {
    let polls = |count: i32| -> Vec<Sdu> {
        let polls = (0..count).map(|n| get(10.0 + 5.0 * f64::from(n), 10 + n));
        with(&polls.collect::<Vec<_>>())
    };
    let longest = MAX_MESSAGE - beside_text();
    let of_length = |text| with(&[get(3.0, 5), response(3.1, 5, text)]);
    vec![
        Case::change(Rule::IlmiFormat, &with(&[]), |sdus| {
            sdus[1].octets[0] = 0x31
        }),
        Case::sdus(
            Rule::IlmiLength,
            &of_length(longest),
            &of_length(longest + 1),
        ),
        Case::sdus(Rule::IlmiSilent, &polls(4), &polls(5)),
        Case::sdus(
            Rule::IlmiId,
            &with(&[get(3.0, 5), response(3.1, 5, 8)]),
            &with(&[get(3.0, 5), response(3.1, 6, 8)]),
        ),
        Case::sdus(
            Rule::IlmiRefused,
            &with(&set(ErrorStatus::NO_ERROR)),
            &with(&set(ErrorStatus::BAD_VALUE)),
        ),
    ]
}

pub(super) fn clean() -> Vec<Clean> {
    // The request of the first answer is in front of the file.
    let between = [
        get(0.0, 8),
        response(0.1, 7, 8),
        response(0.2, 8, 8),
        later(),
    ];
    let none = with(&[message(
        3.0,
        BACK,
        Request {
            status: ErrorStatus::NO_SUCH_NAME,
            ..Request::new(Kind::Response, 1, vec![])
        },
    )]);
    vec![
        (
            "a file that begins between request and answer",
            file(&between),
        ),
        ("a variable that does not exist", file(&none)),
    ]
}
