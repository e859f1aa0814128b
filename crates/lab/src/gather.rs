//! One mistake does not hide others: what is wrong is taken out of the tree, and the rest is read and checked again.
//!
//! A value of a wrong type leaves no typed lab that could be checked, and a stage of the check does not start after
//! mistakes of the one before. So each round takes out what was complained about (a key, or the entry that cannot do
//! without it) and looks at what is left. A complaint that depends on something taken out (see [`Rest`]) is not told,
//! because it may follow from the mistake that has been told.

use crate::diag::{Diagnostic, Diagnostics, Rest, Severity, Span};
use crate::resolve::{lane, outside, sockets};
use crate::tree::{Tree, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Limit of rounds. A round takes out a value, the next one the section that lacks it, the next one the entries that
/// name this section, and so on.
const ROUNDS: usize = 12;

/// Adds the mistakes that those in `d` hide. `check` reads and checks a tree; it is false where there is no use in
/// going on.
pub(crate) fn further(
    mut root: Tree,
    d: &mut Diagnostics,
    check: impl Fn(&Tree, &mut Diagnostics) -> bool,
) {
    let mut gone = Gone::default();
    let mut wrong = places(d);
    for _ in 0..ROUNDS {
        gone.found.borrow_mut().clear();
        if gone.take_out(&mut root, &mut Vec::new(), &wrong) == Taken::Nothing {
            return;
        }
        let mut again = d.empty();
        if !check(&root, &mut again) {
            return;
        }
        wrong = places(&again);
        gone.places = sections(&again);
        gone.note_places(&root, &mut Vec::new());
        let told: BTreeSet<_> = d.iter().map(identity).collect();
        let new: Vec<_> = errors(&again)
            .filter(|error| !gone.explains(error) && !told.contains(&identity(error)))
            .cloned()
            .collect();
        for error in new {
            d.adopt(error);
        }
    }
}

/// Identity of a mistake, which two findings of it have in common.
fn identity(found: &Diagnostic) -> (Span, &str) {
    (found.at, &found.message)
}

fn errors(d: &Diagnostics) -> impl Iterator<Item = &Diagnostic> {
    d.iter().filter(|found| found.severity == Severity::Error)
}

/// The places of mistakes, each with a value that can stand there instead.
fn places(d: &Diagnostics) -> BTreeMap<Span, Option<String>> {
    errors(d)
        .map(|error| (error.at, error.sample.clone()))
        .collect()
}

/// The sections that mistakes depend on, by their places. Their paths are not known yet.
fn sections(d: &Diagnostics) -> BTreeMap<Span, Vec<Path>> {
    let rests = errors(d).flat_map(|error| &error.rests);
    let sections = rests.filter_map(|rest| match rest {
        Rest::Path(Some(section), _) => Some((*section, Vec::new())),
        _ => None,
    });
    sections.collect()
}

/// Keys and numbers from the top of the file; see [`number`].
type Path = Vec<String>;

/// The last part of the path of an item: its place, which stays the same when others are taken out. Items of a list in
/// a list have their index, because they go together.
fn number(list: &Path, index: usize, item: &Tree) -> String {
    if in_list(list) {
        index.to_string()
    } else {
        format!("@{}.{}", item.at.source, item.at.start)
    }
}

/// Tables whose keys are names that other parts of a file use.
const TABLES: [&str; 7] = [
    "switches",
    "routers",
    "hosts",
    "hosts/*/bridge",
    "lane/elans",
    "clip",
    "lines",
];

/// How much of a part of the tree has been taken out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Nothing,
    /// Something in it.
    Inside,
    /// The part has to go as a whole.
    Whole,
}

/// Parts that have been taken out.
#[derive(Default)]
struct Gone {
    /// Sections by their places, as they are now.
    places: BTreeMap<Span, Vec<Path>>,
    /// All parts that have been taken out or have another value now.
    parts: Parts,
    /// Paths from the top that have been found among these parts, because many complaints name the same ones.
    found: RefCell<BTreeMap<String, bool>>,
    /// Places of values that others stand for now.
    replaced: BTreeSet<Span>,
    /// Names that were defined in the parts taken out.
    names: BTreeSet<String>,
    /// True if the name of a link or of a host of servers is wrong: other parts may use the right one.
    nameless: bool,
    /// Texts in links that have been taken out: the names of their ends.
    ends: BTreeSet<String>,
    /// True if entries of lists are gone: the numbers of those behind them have changed.
    entries: bool,
}

impl Gone {
    fn note_places(&mut self, tree: &Tree, path: &mut Path) {
        self.note_place(tree.at, path);
        match &tree.value {
            Value::Map(entries) => {
                for (key, value) in entries {
                    path.push(key.text.clone());
                    // The mistakes of an entry of a table are reported at its name.
                    self.note_place(key.at, path);
                    self.note_places(value, path);
                    path.pop();
                }
            }
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(number(path, index, item));
                    self.note_places(item, path);
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Text(_) => {}
        }
    }

    fn note_place(&mut self, at: Span, path: &Path) {
        if let Some(paths) = self.places.get_mut(&at) {
            paths.push(path.clone());
        }
    }

    /// Takes out what stands at these places; what is inside goes first. A part of a list in a list does not go alone:
    /// the other parts would have another meaning.
    fn take_out(
        &mut self,
        tree: &mut Tree,
        path: &mut Path,
        wrong: &BTreeMap<Span, Option<String>>,
    ) -> Taken {
        let mut taken = Taken::Nothing;
        match &mut tree.value {
            Value::Map(entries) => entries.retain_mut(|(key, value)| {
                path.push(key.text.clone());
                let mut of_entry = self.take_out(value, path, wrong);
                of_entry = match wrong.get(&key.at) {
                    Some(Some(known)) if of_entry == Taken::Nothing => {
                        key.text.clone_from(known);
                        self.replaced.extend([key.at, value.at]);
                        Taken::Inside
                    }
                    Some(_) if of_entry == Taken::Nothing => Taken::Whole,
                    _ => of_entry,
                };
                if of_entry == Taken::Whole {
                    let top = path.first().map_or("", String::as_str);
                    self.nameless |= key.text == "name" && ["links", "lane"].contains(&top);
                    self.parts.insert(path);
                    self.define(&key.text, value, path);
                }
                path.pop();
                taken = taken.and(of_entry);
                of_entry != Taken::Whole
            }),
            Value::List(items) => {
                let mut index = 0;
                let mut torn = false;
                items.retain_mut(|item| {
                    path.push(number(path, index, item));
                    index += 1;
                    let of_item = self.take_out(item, path, wrong);
                    if of_item == Taken::Whole {
                        self.parts.insert(path);
                        self.define("", item, path);
                        (torn, self.entries) = (true, true);
                    }
                    path.pop();
                    taken = taken.and(of_item);
                    of_item != Taken::Whole
                });
                if torn && in_list(path) {
                    return Taken::Whole;
                }
            }
            Value::Null | Value::Bool(_) | Value::Text(_) => {}
        }
        match wrong.get(&tree.at) {
            Some(Some(sample)) if taken == Taken::Nothing && self.replaced.insert(tree.at) => {
                tree.value = Value::Text(sample.clone());
                self.parts.insert(path);
                Taken::Inside
            }
            Some(_) if taken == Taken::Nothing => Taken::Whole,
            _ => taken,
        }
    }

    /// Notes what a part of the tree defines that is taken out.
    fn define(&mut self, key: &str, tree: &Tree, path: &Path) {
        let of_table = |table: &str| {
            let pattern: Vec<&str> = table.split('/').chain(["*"]).collect();
            let mut both = pattern.iter().zip(path);
            path.len() == pattern.len() && both.all(|(part, name)| *part == "*" || part == name)
        };
        if TABLES.iter().any(|table| of_table(table)) {
            self.names.insert(key.to_owned());
        }
        match (path.first().map(String::as_str), &tree.value) {
            (Some("links"), Value::Text(text)) if key.is_empty() => {
                self.ends.insert(text.clone());
            }
            (Some("links" | "lane"), Value::Text(text)) if key == "name" => {
                self.names.insert(text.clone());
            }
            _ => {}
        }
        if matches!(&path[..], [lane] | [lane, _] if lane == "lane") {
            self.names.insert(lane::UNNAMED.to_owned());
        }
        let mut path = path.clone();
        let mut part = |key: &str, name: String, tree: &Tree| {
            path.push(name);
            self.define(key, tree, &path);
            path.pop();
        };
        match &tree.value {
            Value::Map(entries) => {
                let entries = entries.iter();
                entries.for_each(|(key, value)| part(&key.text, key.text.clone(), value));
            }
            Value::List(items) => {
                let items = items.iter();
                items.for_each(|item| part("", String::new(), item));
            }
            Value::Null | Value::Bool(_) | Value::Text(_) => {}
        }
    }

    /// True if the complaint may be about something that is gone.
    fn explains(&self, error: &Diagnostic) -> bool {
        self.replaced.contains(&error.at) || error.rests.iter().any(|rest| self.lacks(rest))
    }

    fn lacks(&self, rest: &Rest) -> bool {
        match rest {
            Rest::Name(name) => self.lacks_name(name),
            Rest::Link(name) => {
                let ends = name.match_indices('-');
                let mut ends = ends.flat_map(|(at, _)| [&name[..at], &name[at + 1..]]);
                let end = |end: &str| {
                    let on = |table| self.parts.has(&[table, end, "on"]);
                    self.ends.contains(end) || self.lacks_name(end) || on("hosts") || on("routers")
                };
                self.lacks_name(name) || self.ends.contains(name) || ends.any(end)
            }
            Rest::Path(None, path) => {
                let mut found = self.found.borrow_mut();
                let has = || self.parts.has(&path.split('/').collect::<Vec<_>>());
                *found.entry(path.clone()).or_insert_with(has)
            }
            Rest::Path(Some(section), key) => {
                let mut sections = self.places.get(section).into_iter().flatten();
                sections.any(|path| {
                    let path = path.iter().map(String::as_str);
                    self.parts
                        .has(&path.chain(key.split('/')).collect::<Vec<_>>())
                })
            }
        }
    }

    fn lacks_name(&self, name: &str) -> bool {
        let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let unnamed = [outside::UNNAMED, sockets::UNNAMED, lane::UNNAMED];
        let numbered = self.entries && word != name && unnamed.contains(&word);
        self.nameless || numbered || self.names.contains(name)
    }
}

impl Taken {
    /// Extent of the part that has been taken out, if `inner` has been taken out of a part of it.
    fn and(self, inner: Self) -> Self {
        match inner {
            Self::Nothing => self,
            Self::Inside | Self::Whole => Self::Inside,
        }
    }
}

/// Parts of the tree by their paths.
#[derive(Default)]
struct Parts {
    /// True if the part as a whole is gone.
    whole: bool,
    /// Parts of it that are gone, or of which parts are gone.
    inner: BTreeMap<String, Self>,
}

impl Parts {
    fn insert(&mut self, path: &[String]) {
        let mut at = self;
        for part in path {
            at = at.inner.entry(part.clone()).or_default();
        }
        at.whole = true;
    }
    /// True if the part at this path is gone, or a part of it, or a part to which it belongs; see [`Rest::Path`].
    fn has(&self, path: &[&str]) -> bool {
        let [first, rest @ ..] = path else {
            return self.whole || !self.inner.is_empty();
        };
        let mut inner = self.inner.values();
        self.whole
            || match *first {
                "*" => inner.any(|part| part.has(rest)),
                name => self.inner.get(name).is_some_and(|part| part.has(rest)),
            }
    }
}

/// True if the path leads to an item of a list.
fn in_list(path: &Path) -> bool {
    path.last().is_some_and(|last| last.starts_with('@'))
}

#[cfg(test)]
mod tests;
