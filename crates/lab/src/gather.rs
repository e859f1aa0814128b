//! One mistake does not hide others: what is wrong is taken out of the tree, and the rest is read and checked again.
//!
//! A value of a wrong type leaves no typed lab that could be checked, and a stage of the check does not start after
//! mistakes of the one before. So each round takes out what was complained about (a key, or the entry that cannot do
//! without it) and looks at what is left. A complaint that may follow from something taken out is not told: the
//! mistake itself has been.

use crate::diag::{Diagnostic, Diagnostics, Severity, Span};
use crate::resolve::{lane, outside, sockets};
use crate::tree::{Tree, Value};
use std::collections::BTreeSet;

/// Limit of rounds. A round takes out a value, the next one the section that lacks it, the next one the entries that
/// name this section, and so on.
const ROUNDS: usize = 8;

/// Adds the mistakes that those in `d` hide. `check` reads and checks a tree; it is false where there is no use in
/// going on.
pub(crate) fn further(
    mut root: Tree,
    d: &mut Diagnostics,
    check: impl Fn(&Tree, &mut Diagnostics) -> bool,
) {
    let mut gone = Gone::default();
    let mut wrong: BTreeSet<Span> = errors(d).map(|error| error.at).collect();
    for _ in 0..ROUNDS {
        if !gone.take_out(&mut root, &wrong) {
            return;
        }
        let mut again = d.empty();
        if !check(&root, &mut again) {
            return;
        }
        wrong = errors(&again).map(|error| error.at).collect();
        let new: Vec<_> = errors(&again)
            .filter(|error| !gone.explains(error, d) && !told(d, error))
            .cloned()
            .collect();
        for error in new {
            d.adopt(error);
        }
    }
}

/// True if `d` has the same message, perhaps about another place. Of two values that contradict each other, the check
/// names one. When this one has been taken out, the check may give the other one the same message.
fn told(d: &Diagnostics, error: &Diagnostic) -> bool {
    d.iter().any(|known| known.message == error.message)
}

fn errors(d: &Diagnostics) -> impl Iterator<Item = &Diagnostic> {
    d.iter().filter(|found| found.severity == Severity::Error)
}

/// What has been taken out.
#[derive(Default)]
struct Gone {
    /// Sections that lack something now.
    places: BTreeSet<Span>,
    /// Names and values that are no longer there.
    words: BTreeSet<String>,
    /// Entries of lists: the numbers of those behind them have changed.
    entries: bool,
}

impl Gone {
    /// Takes out what stands at these places; what is inside goes first. True if there was something.
    fn take_out(&mut self, tree: &mut Tree, wrong: &BTreeSet<Span>) -> bool {
        let mut any = false;
        match &mut tree.value {
            Value::Map(entries) => {
                let before = entries.len();
                entries.retain_mut(|(key, value)| {
                    if self.take_out(value, wrong) {
                        any = true;
                        self.places.insert(key.at);
                    } else if wrong.contains(&key.at) || wrong.contains(&value.at) {
                        any = true;
                        self.note(&key.text);
                        self.note_all(value);
                        return false;
                    }
                    true
                });
                // What is said of whole entries of the sections beside it, as of ELANs without servers, may follow
                // from it.
                if entries.len() < before {
                    let sections = entries.iter().filter_map(|(_, value)| match &value.value {
                        Value::Map(entries) => Some(entries),
                        _ => None,
                    });
                    self.places
                        .extend(sections.flatten().map(|(key, _)| key.at));
                }
            }
            Value::List(items) => items.retain_mut(|item| {
                if self.take_out(item, wrong) {
                    any = true;
                } else if wrong.contains(&item.at) {
                    (any, self.entries) = (true, true);
                    self.note_all(item);
                    return false;
                }
                true
            }),
            Value::Null | Value::Bool(_) | Value::Text(_) => {}
        }
        if any {
            self.places.insert(tree.at);
        }
        any
    }

    fn note(&mut self, text: &str) {
        self.words.extend(words(text).map(str::to_owned));
    }

    fn note_all(&mut self, tree: &Tree) {
        match &tree.value {
            Value::Text(text) => self.note(text),
            Value::List(items) => items.iter().for_each(|item| self.note_all(item)),
            Value::Map(entries) => {
                for (key, value) in entries {
                    self.note(&key.text);
                    self.note_all(value);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// True if the complaint may be about something that is gone.
    fn explains(&self, error: &Diagnostic, d: &Diagnostics) -> bool {
        let numbered = |word: &str| {
            let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
            self.entries
                && name != word
                && [outside::UNNAMED, sockets::UNNAMED, lane::UNNAMED].contains(&name)
        };
        // Names stand in quotes; addresses and names with numbers may stand without.
        let quoted = error.message.split('\'').skip(1).step_by(2);
        let bare = error.message.split_whitespace();
        let bare = bare.filter(|word| word.contains(|c: char| c.is_ascii_digit()));
        let said = quoted.chain(bare).flat_map(words);
        let mut all = words(d.text(error.at)).chain(said);
        error.network
            || self.places.contains(&error.at)
            || all.any(|word| self.words.contains(word) || numbered(word))
    }
}

/// The words of a text: a name, an address, a number.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let within = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let words = text.split(move |c| !within(c));
    let words = words.map(|word| word.trim_end_matches(['.', ':']));
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::SMALL;

    /// The messages of a lab that is wrong, in the order of the file.
    fn told(text: &str) -> Vec<String> {
        let found = crate::parse("t.atm.yml", text, &[]).expect_err("a mistake");
        let errors = super::errors(&found);
        errors.map(|error| error.message.clone()).collect()
    }

    #[test]
    fn a_value_of_a_wrong_type_hides_no_mistake_of_another_kind() {
        let text = SMALL
            .replace("10.1.0.10", "10.0.0.300")
            .replace("10.2.0.10", "10.3.0.10")
            .replace("links: [[s1, s2]]", "links: [[s1, s2, { rate: 3parsecs }]]");
        let text = format!(
            "{text}  z: {{ on: s9, elan: a, ip: 10.1.0.12 }}\n  w: {{ on: s1, elan: b, ip: 10.2.0.12 }}\n\
             traffic: [{{ from: x, to: w, kind: ping }}, {{ from: w, to: nobody, kind: ping }}, {{ from: r, to: w, kind: fax }}]\n\
             faults: [{{ at: soon, crash: w }}, {{ at: 1s, link_down: s1-s7 }}]\nuntil: tomorrow\ntrafic: []\n"
        );
        let all = told(&text);
        for (says, times) in [
            ("10.0.0.300", 1),
            ("3parsecs", 1),
            ("10.3.0.10 is outside 10.2.0.0/24", 1),
            ("there is no switch 's9'", 1),
            ("there is no host 'nobody'", 1),
            ("'fax': expected tcp, udp", 1),
            ("'soon'", 1),
            ("there is no link 's1-s7'", 1),
            ("'tomorrow'", 1),
            ("unknown key 'trafic'", 1),
            // These would follow from the mistakes above.
            ("'x'", 0),
            ("missing", 0),
        ] {
            let count = all.iter().filter(|one| one.contains(says)).count();
            assert_eq!(count, times, "{says}: {all:#?}");
        }
        assert_eq!(all.len(), 10, "{all:#?}");
    }

    #[test]
    fn what_follows_from_a_mistake_is_not_told() {
        for (from, to, says) in [
            // Members, the router and the flows of the ELAN depend on its subnet.
            ("10.1.0.0/24", "10.1.0.0/240", "'10.1.0.0/240'"),
            // All of LANE.
            ("lane: { on: s1", "lane: { on: [s1]", "not a list"),
            // The way of every host through the router.
            ("r: { on: s2", "r: { on: s2, queue: many", "'many'"),
            ("b: 10.2.0.1 }", "b: 10.2.0.1.1 }", "'10.2.0.1.1'"),
            // Everything.
            (
                "switches: { s1: {}, s2: {} }",
                "switches: [s1, s2]",
                "expected a mapping",
            ),
            (
                "links: [[s1, s2]]",
                "links: [[s1, s2, s3, s4]]",
                "a link is",
            ),
        ] {
            assert!(SMALL.contains(from), "{from}");
            let text = format!(
                "{}traffic: [{{ from: x, to: y, kind: ping }}]\n",
                SMALL.replace(from, to)
            );
            let all = told(&text);
            assert!(all.len() == 1 && all[0].contains(says), "{to}: {all:#?}");
        }
    }

    #[test]
    fn an_unknown_tag_hides_no_other_mistake() {
        let all = told(
            &SMALL
                .replace("10.1.0.10", "!v4 10.1.0.10")
                .replace("10.2.0.10", "10.3.0.10"),
        );
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(
            all[0].contains("unknown tag '!v4'") && all[1].contains("10.3.0.10 is outside"),
            "{all:?}"
        );
    }

    #[test]
    fn a_number_is_a_text_where_a_text_is_asked_and_the_schema_says_so() {
        let text = format!("description: 1.50\n{}", SMALL.replace("s1", "1"));
        let lab = crate::parse("t.atm.yml", &text, &[]).expect("a lab").lab;
        assert_eq!(lab.description.as_deref(), Some("1.50"), "as it is written");
        assert_eq!(lab.nodes[0].name, "1");
        let schema = crate::schema();
        let kinds = serde_json::json!(["string", "number", "boolean", "null"]);
        assert_eq!(schema["properties"]["description"]["type"], kinds);
        let on = &schema["$defs"]["HostFile"]["properties"]["on"]["type"];
        assert_eq!(*on, serde_json::json!(["string", "number", "boolean"]));
    }
}
