//! Parts of messages that all daemons share survive their octets.

use super::codec::Message as _;
use super::codec::{DecodeError, Field, Reader};
use super::*;
use crate::{AtmEvent, AtmRequest, Trace, split_choice, split_messages};
use aerostat_testing::messages::{self, Random};
use proptest::prelude::*;

/// A random value.
pub(crate) fn sample<T: Field>(random: &mut Random) -> T {
    messages::message(random, take).unwrap()
}

/// The value of these octets, and nothing else.
fn take<T: Field>(octets: &[u8]) -> Result<T, DecodeError> {
    let mut from = Reader::new(octets);
    let value = T::take(&mut from, "value")?;
    from.finish("value")?;
    Ok(value)
}

/// A role's messages with all that this module has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Any {
    Request(AtmRequest),
    Event(AtmEvent<Vec<u8>>),
    Trace(Trace),
}
split_choice!(Any { 1 Request(request); 2 Event(event); 3 Trace(trace); });
split_messages!(Any);

aerostat_testing::message_properties!(Any, Greeting);

proptest! {
    #[test]
    fn events_are_the_same_borrowed_or_not(seed: u64) {
        let event: AtmEvent<Vec<u8>> = sample(&mut Random::new(seed));
        assert_eq!(event.borrow().into_owned(), event);
    }
}

/// Octet by octet.
#[test]
fn one_form_for_ever() {
    let hello = Greeting::Hello {
        version: 3,
        role: Role::Mpcd,
        node: "urku".into(),
    };
    assert_eq!(hello.encode(), b"\x41\x01\0\x03\0\x01\0\x04urku");
}

#[test]
fn names_of_roles() {
    for role in Role::ALL {
        assert_eq!(Role::by_name(role.name()), Some(role));
    }
    assert_eq!(Role::by_name("init"), None);
}

#[test]
fn names_that_nobody_knows_become_another() {
    let strange = Trace::detail("strange.name", "text")
        .with("strange", 1)
        .with("mps", 2);
    let Ok(Any::Trace(trace)) = Any::decode(&Any::Trace(strange).encode()) else {
        panic!("no trace")
    };
    assert_eq!(trace, Trace::detail(names::OTHER, "text").with("mps", 2));
}
