//! Rules of a message by itself: its length, its type and its elements.

use crate::book::{At, Book};
use crate::rules::Rule;
use aerostat_wire::q2931::table::definition;
use aerostat_wire::q2931::{Decoded, Verdict};

/// Name of an element, with its identifier.
fn name(id: u8) -> String {
    match definition(id) {
        Some(definition) => format!("{} ({id:02x})", definition.name),
        None => format!("element {id:02x}"),
    }
}

/// Names the mistakes of a message.
pub(super) fn check(at: &At, decoded: &Decoded, book: &mut Book) {
    let message = decoded.message.kind.name();
    if decoded.length_error || !decoded.tail.is_empty() {
        let text = format!("the length of {message} does not fit its elements");
        book.name(Rule::CallLength, at, text);
    }
    let Some(definition) = decoded.message.kind.definition() else {
        let text = format!("message type {:02x}", decoded.message.kind.0);
        return book.name(Rule::CallMessage, at, text);
    };
    for id in decoded.missing() {
        let text = format!("{message} has no {}", name(id));
        book.name(Rule::CallMandatory, at, text);
    }
    for (element, verdict) in decoded.message.elements.iter().zip(&decoded.verdicts) {
        let name = name(element.id);
        let (rule, what) = match verdict {
            Verdict::Good => continue,
            Verdict::Unknown if element.instruction.pass_along() => continue,
            Verdict::Unknown => (Rule::CallUnknown, "is unknown"),
            Verdict::BadContent => (Rule::CallContent, "has contents that are not valid"),
            Verdict::TooLong => (Rule::CallContent, "is longer than its standard allows"),
            Verdict::Truncated { .. } => (Rule::CallContent, "is longer than the message"),
            // The table has no elements of COBI SETUP.
            Verdict::Unexpected
                if definition.optional.is_empty() && definition.mandatory.is_empty() =>
            {
                continue;
            }
            Verdict::Unexpected => (Rule::CallUnexpected, "does not belong there"),
            Verdict::Duplicate => (Rule::CallRepeated, "occurs too often"),
        };
        book.name(rule, at, format!("{name} in {message} {what}"));
    }
}
