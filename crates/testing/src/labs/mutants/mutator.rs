//! Labs similar to those of the repository: mutations of the trees of their files.
//!
//! A mutation keeps the shape of a lab file as far as possible, so that many mutants pass the check: it replaces a
//! value by another one of the same kind or by an extreme of its unit, a section by that of another lab, a name by
//! another name.

use aerostat_lab::tree::{Key, Tree, Value};
use std::collections::BTreeMap;

/// A source of choices.
pub trait Dice {
    /// A number below `n`, which is at least 1.
    fn below(&mut self, n: usize) -> usize;
}

/// A generator of the project, so that a seed always means the same mutant (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Seed(pub u64);

impl Dice for Seed {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// Sections whose keys are names that the file chooses.
const TABLES: [&str; 9] = [
    "switches",
    "elans",
    "clip",
    "routers",
    "hosts",
    "next_hops",
    "routes",
    "bridge",
    "keys",
];

/// Numbers at the limits of counters and types.
const EDGES: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "31",
    "32",
    "63",
    "64",
    "65",
    "255",
    "256",
    "576",
    "9180",
    "65535",
    "65536",
    "1000000",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "0.5",
    "1e-9",
    "1e9",
    "1e18",
];

const UNITS: [&str; 16] = [
    "ns", "us", "ms", "s", "min", "h", "pps", "bps", "kbps", "Mbps", "Gbps", "cells/s", "KiB",
    "MiB", "%", "",
];

/// Networks at the limits of prefixes.
const NETWORKS: [&str; 10] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.1.0.0/30",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "172.16.0.0/12",
    "192.168.1.0/29",
];

/// The original labs, and their contents.
pub struct Corpus {
    labs: Vec<Tree>,
    /// For each place in a file (without the names of tables): the values that occur there.
    pool: BTreeMap<String, Vec<Tree>>,
    /// For each place: the keys that occur there.
    keys: BTreeMap<String, Vec<String>>,
}

/// Steps from the root to a node.
type Path = Vec<usize>;

impl Corpus {
    /// A corpus of these lab files.
    ///
    /// # Panics
    /// If a file is not valid YAML, or if there are no files.
    #[must_use]
    pub fn new(texts: &[String]) -> Self {
        let labs = texts.iter().map(|text| Tree::of(text).expect("YAML"));
        let labs: Vec<Tree> = labs.collect();
        assert!(!labs.is_empty(), "no labs");
        let (mut pool, mut keys) = (BTreeMap::new(), BTreeMap::new());
        for lab in &labs {
            gather(lab, "", &mut pool, &mut keys);
        }
        Self { labs, pool, keys }
    }

    /// A mutant, as the text of a lab file. Each mutation makes a refusal more likely, so most mutants drop those
    /// mutations after which the lab is not `good` any more.
    pub fn mutant(&self, dice: &mut dyn Dice, good: &dyn Fn(&str) -> bool) -> String {
        let mut lab = self.labs[dice.below(self.labs.len())].clone();
        let count = [1, 1, 2, 2, 3, 5, 8, 13][dice.below(8)];
        let careful = dice.below(4) > 0;
        for _ in 0..count {
            let before = careful.then(|| lab.clone());
            self.mutate(&mut lab, dice);
            if let Some(before) = before.filter(|_| !good(&lab.to_string())) {
                lab = before;
            }
        }
        lab.to_string()
    }

    fn mutate(&self, lab: &mut Tree, dice: &mut dyn Dice) {
        let mut nodes = Vec::new();
        walk(lab, "", &mut Vec::new(), &mut nodes);
        let (path, place) = nodes[dice.below(nodes.len())].clone();
        match dice.below(14) {
            // Values.
            0..=3 => {
                let scalars: Vec<&(Path, String)> = nodes
                    .iter()
                    .filter(|(path, _)| matches!(at(lab, path).value, Value::Text(_)))
                    .collect();
                if !scalars.is_empty() {
                    let (path, _) = scalars[dice.below(scalars.len())].clone();
                    if let Value::Text(text) = &mut at_mut(lab, &path).value {
                        *text = changed(text, dice);
                    }
                }
            }
            4 | 5 => {
                if let Some(other) = self.pool.get(&place) {
                    *at_mut(lab, &path) = other[dice.below(other.len())].clone();
                }
            }
            // Names.
            6 => {
                let names = names(lab);
                let name = names[dice.below(names.len())].clone();
                let node = at_mut(lab, &path);
                match &mut node.value {
                    Value::Text(text) => *text = name,
                    Value::Map(entries) if !entries.is_empty() => {
                        let one = dice.below(entries.len());
                        entries[one].0.text = name;
                    }
                    _ => {}
                }
            }
            // Exchange of two places of the same kind.
            7 => {
                let alike: Vec<Path> = nodes
                    .iter()
                    .filter(|(other, kind)| *kind == place && *other != path)
                    .map(|(other, _)| other.clone())
                    .collect();
                if !alike.is_empty() {
                    let other = &alike[dice.below(alike.len())];
                    let (a, b) = (at(lab, &path).clone(), at(lab, other).clone());
                    *at_mut(lab, &path) = b;
                    // The first exchange may have removed the second place.
                    if let Some(node) = find_mut(lab, other) {
                        *node = a;
                    }
                }
            }
            8 => remove(lab, &path, dice),
            9 => duplicate(lab, &path, dice),
            10 => reorder(lab, &path, dice),
            // A key that sections of this kind have elsewhere.
            11 | 12 => self.add_key(lab, &nodes, dice),
            // A section of another lab replaces this one.
            _ => {
                let other = &self.labs[dice.below(self.labs.len())];
                if let (Value::Map(own), Value::Map(others)) = (&mut lab.value, &other.value) {
                    let (key, section) = &others[dice.below(others.len())];
                    match own.iter_mut().find(|(known, _)| known.text == key.text) {
                        Some((_, value)) => *value = section.clone(),
                        None => own.push((key.clone(), section.clone())),
                    }
                }
            }
        }
    }

    fn add_key(&self, lab: &mut Tree, nodes: &[(Path, String)], dice: &mut dyn Dice) {
        let maps: Vec<&(Path, String)> = nodes
            .iter()
            .filter(|(path, place)| {
                matches!(at(lab, path).value, Value::Map(_)) && self.keys.contains_key(place)
            })
            .collect();
        let Some((path, place)) = (!maps.is_empty()).then(|| maps[dice.below(maps.len())]) else {
            return;
        };
        let keys = &self.keys[place];
        let key = &keys[dice.below(keys.len())];
        let Some(values) = self.pool.get(&step(place, key)) else {
            return;
        };
        let value = values[dice.below(values.len())].clone();
        if let Value::Map(entries) = &mut at_mut(lab, path).value {
            match entries.iter_mut().find(|(known, _)| known.text == *key) {
                Some((_, old)) => *old = value,
                None => {
                    let at = value.at;
                    let text = key.clone();
                    entries.push((Key { at, text }, value));
                }
            }
        }
    }
}

/// The place of the entry `key` in a mapping at `place`.
fn step(place: &str, key: &str) -> String {
    let last = place.rsplit('.').next().unwrap_or_default();
    if TABLES.contains(&last) {
        return format!("{place}.*");
    }
    format!("{place}.{key}")
}

fn gather(
    tree: &Tree,
    place: &str,
    pool: &mut BTreeMap<String, Vec<Tree>>,
    keys: &mut BTreeMap<String, Vec<String>>,
) {
    pool.entry(place.to_owned()).or_default().push(tree.clone());
    match &tree.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                let known = keys.entry(place.to_owned()).or_default();
                if !known.contains(&key.text) {
                    known.push(key.text.clone());
                }
                gather(value, &step(place, &key.text), pool, keys);
            }
        }
        Value::List(items) => {
            for item in items {
                gather(item, &format!("{place}.[]"), pool, keys);
            }
        }
        _ => {}
    }
}

fn walk(tree: &Tree, place: &str, path: &mut Path, nodes: &mut Vec<(Path, String)>) {
    nodes.push((path.clone(), place.to_owned()));
    let mut child = |n: usize, child: &Tree, place: &str| {
        path.push(n);
        walk(child, place, path, nodes);
        path.pop();
    };
    match &tree.value {
        Value::Map(entries) => {
            for (n, (key, value)) in entries.iter().enumerate() {
                child(n, value, &step(place, &key.text));
            }
        }
        Value::List(items) => {
            for (n, item) in items.iter().enumerate() {
                child(n, item, &format!("{place}.[]"));
            }
        }
        _ => {}
    }
}

fn find_mut<'a>(tree: &'a mut Tree, path: &[usize]) -> Option<&'a mut Tree> {
    let Some((first, rest)) = path.split_first() else {
        return Some(tree);
    };
    match &mut tree.value {
        Value::Map(entries) => find_mut(&mut entries.get_mut(*first)?.1, rest),
        Value::List(items) => find_mut(items.get_mut(*first)?, rest),
        _ => None,
    }
}

fn at_mut<'a>(tree: &'a mut Tree, path: &[usize]) -> &'a mut Tree {
    find_mut(tree, path).expect("a path of this tree")
}

fn at<'a>(tree: &'a Tree, path: &[usize]) -> &'a Tree {
    path.iter().fold(tree, |tree, n| match &tree.value {
        Value::Map(entries) => &entries[*n].1,
        Value::List(items) => &items[*n],
        _ => tree,
    })
}

/// Names of nodes, ELANs and links that a file contains.
fn names(lab: &Tree) -> Vec<String> {
    let mut names = vec!["s1-s2".to_owned(), "lane".to_owned(), String::new()];
    let mut nodes = Vec::new();
    walk(lab, "", &mut Vec::new(), &mut nodes);
    for (path, place) in nodes {
        let last = place.rsplit('.').next().unwrap_or_default();
        match &at(lab, &path).value {
            Value::Map(entries) if TABLES.contains(&last) => {
                names.extend(entries.iter().map(|(key, _)| key.text.clone()));
            }
            Value::Text(text) if last == "name" => names.push(text.clone()),
            _ => {}
        }
    }
    names
}

fn remove(lab: &mut Tree, path: &[usize], dice: &mut dyn Dice) {
    match &mut at_mut(lab, path).value {
        Value::Map(entries) if !entries.is_empty() => {
            entries.remove(dice.below(entries.len()));
        }
        Value::List(items) if !items.is_empty() => {
            items.remove(dice.below(items.len()));
        }
        value => *value = Value::Null,
    }
}

fn duplicate(lab: &mut Tree, path: &[usize], dice: &mut dyn Dice) {
    let times = [1, 1, 1, 2, 7, 70][dice.below(6)];
    match &mut at_mut(lab, path).value {
        Value::Map(entries) if !entries.is_empty() => {
            let (key, value) = entries[dice.below(entries.len())].clone();
            for n in 0..times {
                let mut value = value.clone();
                // Another host needs another address to be valid.
                if let Value::Map(fields) = &mut value.value {
                    for (field, of) in fields.iter_mut() {
                        if let (Value::Text(text), "ip" | "subnet") = (&mut of.value, &*field.text)
                        {
                            *text = other_address(text, n + 2);
                        }
                    }
                }
                let text = format!("{}{n}", key.text);
                entries.push((Key { at: key.at, text }, value));
            }
        }
        Value::List(items) if !items.is_empty() => {
            let item = items[dice.below(items.len())].clone();
            for n in 0..times {
                let mut item = item.clone();
                if let Value::Map(fields) = &mut item.value {
                    let at = item.at;
                    fields.retain(|(key, _)| key.text != "name" || n % 3 == 2);
                    let key = Key {
                        at,
                        text: "name".into(),
                    };
                    let value = Value::Text(format!("copy{n}-{}", dice.below(1000)));
                    if !fields.iter().any(|(key, _)| key.text == "at") {
                        fields.push((key, Tree { at, value }));
                    }
                }
                items.push(item);
            }
        }
        _ => {}
    }
}

fn reorder(lab: &mut Tree, path: &[usize], dice: &mut dyn Dice) {
    match &mut at_mut(lab, path).value {
        Value::Map(entries) if entries.len() > 1 => {
            let entry = entries.remove(dice.below(entries.len()));
            entries.insert(dice.below(entries.len() + 1), entry);
        }
        Value::List(items) if items.len() > 1 => {
            let item = items.remove(dice.below(items.len()));
            items.insert(dice.below(items.len() + 1), item);
        }
        _ => {}
    }
}

/// An address (or network) of the same form with another third or last octet.
fn other_address(text: &str, add: usize) -> String {
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    let mut octets: Vec<String> = address.split('.').map(str::to_owned).collect();
    if octets.len() == 4 {
        let which = if length.is_empty() { 3 } else { 1 };
        let value = octets[which].parse::<usize>().unwrap_or(0) + 17 * add;
        octets[which] = (value % 250 + 1).to_string();
    }
    let slash = if length.is_empty() { "" } else { "/" };
    format!("{}{slash}{length}", octets.join("."))
}

/// Another text of about the same form.
fn changed(text: &str, dice: &mut dyn Dice) -> String {
    let octets = text.split(['.', '/']).count();
    if text.contains('/') && octets == 5 {
        return NETWORKS[dice.below(NETWORKS.len())].to_owned();
    }
    if octets == 4 && text.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
        let mut parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        parts[dice.below(4)] = ["0", "1", "10", "127", "224", "254", "255"][dice.below(7)].into();
        return parts.join(".");
    }
    let numbers = numbers(text);
    if let Some(&(from, to)) = (!numbers.is_empty()).then(|| &numbers[dice.below(numbers.len())]) {
        let (before, number, after) = (&text[..from], &text[from..to], &text[to..]);
        let value: f64 = number.parse().unwrap_or(1.0);
        let new = match dice.below(8) {
            0 => (value * 2.0).to_string(),
            1 => (value / 2.0).to_string(),
            2 => (value + 1.0).to_string(),
            3 => (value - 1.0).to_string(),
            4 => (value * 1000.0).to_string(),
            _ => EDGES[dice.below(EDGES.len())].to_owned(),
        };
        if before.is_empty() && dice.below(6) == 0 {
            return format!("{new}{}", UNITS[dice.below(UNITS.len())]);
        }
        return format!("{before}{new}{after}");
    }
    match dice.below(6) {
        0 => String::new(),
        1 => format!("{text}{text}"),
        2 => "x".repeat([1, 16, 32, 33, 108, 5000][dice.below(6)]),
        3 => "../..".to_owned(),
        4 => "a.b c/d\u{0}\u{e9}\"'\n".to_owned(),
        _ => EDGES[dice.below(EDGES.len())].to_owned(),
    }
}

/// Positions of numbers in a text.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut begin = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let digit = c.is_ascii_digit() || (c == '.' && begin.is_some());
        match (digit, begin) {
            (true, None) => begin = Some(at),
            (false, Some(from)) => {
                found.push((from, at));
                begin = None;
            }
            _ => {}
        }
    }
    found
}
