//! The book: what a report has, while it is being written.

use crate::limits::{Limit, Limits, Met};
use crate::rules::Rule;
use aerostat_wire::{AtmAddress, Vc};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Place of a message: the packet, and the way that it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// Number of the packet in the file.
    pub(crate) number: u64,
    /// Nanoseconds since the first packet.
    pub(crate) time_ns: i128,
    /// Link: interface, or pair of addresses.
    pub(crate) link: usize,
    /// Direction, if it is known: true for one way, false for the other.
    pub(crate) way: Option<bool>,
    /// Sender.
    pub(crate) from: Rc<str>,
    /// Receiver.
    pub(crate) to: Rc<str>,
    /// Connection, on ATM.
    pub(crate) vc: Option<Vc>,
}

/// A message of the ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the packet in the file, from 1.
    pub packet: u64,
    /// Nanoseconds since the first packet of the file.
    pub time_ns: i128,
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Connection, `vpi.vci`; `-` without one.
    pub vc: String,
    /// Protocol, as [`aerostat_wire::summary::Summary::protocol`].
    pub protocol: &'static str,
    /// Contents in brief.
    pub text: String,
    /// Reason of a drop.
    pub dropped: Option<String>,
}

/// A sentence of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Number of the packet in the file.
    pub packet: u64,
    /// Nanoseconds since the first packet.
    pub time_ns: i128,
    /// The sentence.
    pub text: String,
}

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Number of the packet in the file; for a missed answer, the number of the request.
    pub packet: u64,
    /// Nanoseconds since the first packet.
    pub time_ns: i128,
    /// Sender of the packet.
    pub from: String,
    /// Its receiver.
    pub to: String,
    /// The mistake, with the values.
    pub text: String,
}

/// Names of stations by their ATM addresses without the selector.
#[derive(Debug, Default)]
struct Names {
    of: BTreeMap<String, Rc<str>>,
    addresses: BTreeMap<Rc<str>, String>,
    /// Names that have called with two addresses: switches pass on calls of others.
    relays: BTreeSet<Rc<str>>,
}

/// Characters of the selector behind an address, with the dot.
const SELECTOR: usize = 3;
/// Limit of names; further addresses stay addresses.
const NAMES: usize = 1000;

impl Names {
    /// Takes the caller of a SETUP that a user has sent; false if there are too many names.
    fn learn(&mut self, address: AtmAddress, at: &At) -> bool {
        let named = !matches!(&*at.from, "-" | "DTE" | "DCE" | "far end");
        let text = address.to_string();
        let station = text
            .len()
            .checked_sub(SELECTOR)
            .and_then(|end| text.get(..end));
        let Some(station) = station.filter(|_| named && !self.relays.contains(&at.from)) else {
            return true;
        };
        if let Some(other) = self.addresses.get(&at.from) {
            if other != station {
                self.of.remove(other);
                self.addresses.remove(&at.from);
                self.relays.insert(at.from.clone());
            }
            return true;
        }
        if self.of.contains_key(station) {
            return true;
        }
        if self.of.len() + self.relays.len() >= NAMES {
            return false;
        }
        self.of.insert(station.to_owned(), at.from.clone());
        self.addresses.insert(at.from.clone(), station.to_owned());
        true
    }
    /// The text with names for the known addresses: `urku.00` with the selector behind the name.
    fn in_text(&self, text: &mut String) {
        if self.of.is_empty() {
            return;
        }
        let mut named = String::new();
        let mut rest = text.as_str();
        while let Some(start) = rest.find(is_of_address) {
            let (before, from) = rest.split_at(start);
            let (word, behind) =
                from.split_at(from.find(|c| !is_of_address(c)).unwrap_or(from.len()));
            named.push_str(before);
            let selector = word.len().saturating_sub(SELECTOR);
            let (address, after) = word.split_at_checked(selector).unwrap_or((word, ""));
            match (self.of.get(address), self.of.get(word)) {
                (Some(name), _) => named.extend([name, after]),
                (None, Some(name)) => named.push_str(name),
                (None, None) => named.push_str(word),
            }
            rest = behind;
        }
        named.push_str(rest);
        *text = named;
    }
}

const fn is_of_address(c: char) -> bool {
    c.is_ascii_hexdigit() || c == '.'
}

/// A report in the making.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) limits: Limits,
    pub(crate) met: Met,
    pub(crate) messages: Vec<Message>,
    pub(crate) story: Vec<Sentence>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) broken: BTreeMap<Rule, u64>,
    pub(crate) notes: BTreeMap<String, u64>,
    /// Links on which an answer was missed.
    pub(crate) unanswered: BTreeSet<usize>,
    names: Names,
}

/// Notes of different texts.
const NOTES: usize = 200;

impl Book {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            met: Met::default(),
            messages: Vec::new(),
            story: Vec::new(),
            findings: Vec::new(),
            broken: BTreeMap::new(),
            notes: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            names: Names::default(),
        }
    }
    /// Takes the caller of a SETUP that a user has sent, for its name.
    pub(crate) fn learn(&mut self, address: AtmAddress, at: &At) {
        if !self.names.learn(address, at) {
            self.met.note(Limit::Names);
        }
    }
    /// Counts places whose texts were not kept.
    pub(crate) fn name_more(&mut self, rule: Rule, more: u64) {
        if more > 0 {
            *self.broken.entry(rule).or_default() += more;
        }
    }
    /// Notes that a rule is broken at a place.
    pub(crate) fn name(&mut self, rule: Rule, at: &At, text: impl Into<String>) {
        let count = self.broken.entry(rule).or_default();
        *count += 1;
        if *count <= self.limits.places as u64 {
            self.findings.push(Finding {
                rule,
                packet: at.number,
                time_ns: at.time_ns,
                from: at.from.to_string(),
                to: at.to.to_string(),
                text: text.into(),
            });
        }
    }
    pub(crate) fn tell(&mut self, at: &At, text: impl Into<String>) {
        if self.story.len() >= self.limits.story {
            return self.met.note(Limit::Story);
        }
        self.story.push(Sentence {
            packet: at.number,
            time_ns: at.time_ns,
            text: text.into(),
        });
    }
    /// Puts names into all texts, in the order of packets.
    pub(crate) fn close(&mut self) {
        let messages = self.messages.iter_mut().map(|one| &mut one.text);
        let story = self.story.iter_mut().map(|one| &mut one.text);
        let findings = self.findings.iter_mut().map(|one| &mut one.text);
        for text in messages.chain(story).chain(findings) {
            self.names.in_text(text);
        }
        // Packets of an interface may wait until its kind is known.
        self.messages.sort_by_key(|message| message.packet);
        // A missed answer stands at its request.
        self.findings.sort_by_key(|finding| finding.packet);
        self.story.sort_by_key(|sentence| sentence.packet);
    }
    /// Notes something that breaks no rule, once, with a count.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.notes.len() < NOTES || self.notes.contains_key(&text) {
            *self.notes.entry(text).or_default() += 1;
        } else {
            self.met.note(Limit::Notes);
        }
    }
}

/// A table with a limit, whose entries wait for something.
#[derive(Debug)]
pub(crate) struct Open<K, V>(BTreeMap<K, V>);

impl<K: Ord, V> Default for Open<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V> Open<K, V> {
    /// Puts an entry into the table, unless the table is full.
    pub(crate) fn put(&mut self, key: K, value: V, book: &mut Book) {
        if self.0.len() >= book.limits.open && !self.0.contains_key(&key) {
            return book.met.note(Limit::Open);
        }
        self.0.insert(key, value);
    }
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }
    pub(crate) fn has(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }
    pub(crate) fn take(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter()
    }
    /// Takes all entries of a range.
    pub(crate) fn take_range(&mut self, range: std::ops::RangeInclusive<K>) -> Vec<V>
    where
        K: Clone,
    {
        let keys: Vec<K> = self.0.range(range).map(|(key, _)| key.clone()).collect();
        keys.iter().filter_map(|key| self.0.remove(key)).collect()
    }
}

/// A table of things that are over. A full table forgets its older half: no rule is named because of that.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    new: BTreeMap<K, V>,
    old: BTreeMap<K, V>,
}

impl<K: Ord, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self {
            new: BTreeMap::new(),
            old: BTreeMap::new(),
        }
    }
}

impl<K: Ord, V> Recent<K, V> {
    pub(crate) fn put(&mut self, key: K, value: V, book: &Book) {
        if self.new.len() >= book.limits.open.div_ceil(2) {
            self.old = std::mem::take(&mut self.new);
        }
        self.old.remove(&key);
        self.new.insert(key, value);
    }
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.new.get(key).or_else(|| self.old.get(key))
    }
    pub(crate) fn has(&self, key: &K) -> bool {
        self.get(key).is_some()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.old.iter().chain(&self.new)
    }
    pub(crate) fn take(&mut self, key: &K) -> Option<V> {
        self.new.remove(key).or_else(|| self.old.remove(key))
    }
}
