//! The lab file `NAME.atm.yml`: parse, check, resolve; and what a lab leaves when it has run.
//!
//! ```text
//! text --tree--> tree with places --overrides--> tree --file--> sections --resolve--> model::Lab
//! ```
//!
//! | part | modules |
//! |---|---|
//! | a lab as plain data, and as it is drawn | [`model`], [`plan`], [`settings`], [`units`], [`picture`]; [`hops`] |
//! | mistakes and warnings, with their place in the text | [`diag`] |
//! | from a lab to machines, and the machines as a network, for both drivers | [`build`], [`routing`], [`starts`], [`plant`] |
//! | the story, message by message and step by step | [`event`], [`ladder`] |
//! | results | [`report`], [`results`], [`circuits`], [`dialogues`], [`books`], [`fairness`], [`occupancy`] |
//! | what a lab should do, and whether it does | [`checks`] |
//! | how files are written | [`files`] |
//! | labs that every program has | [`shipped`] |
//!
//! [`read`] (or [`parse`] for text in memory) gives a [`Checked`] lab or the [`Diagnostics`] that say what is
//! wrong and where. The drivers, `aerostat-sim` and `aerostat-live`, build their nodes from [`model::Lab`] alone.
//! [`schema`] is the JSON Schema of the file, made from the same definitions as its reader.
//!
//! # Example
//!
//! ```
//! let text = "
//! switches: { s1: {} }
//! lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
//! hosts:
//!   anna: { on: s1, elan: a, ip: 10.1.0.10 }
//!   bert: { on: s1, elan: a, ip: 10.1.0.20 }
//! ";
//! let lab = aerostat_lab::parse("garden.atm.yml", text, &[])?.lab;
//! assert_eq!((lab.name.as_str(), lab.hosts().count(), lab.links.len()), ("garden", 2, 3));
//!
//! let mistake = text.replace("on: s1, elan: a, ip: 10.1.0.20", "on: s2, elan: a, ip: 10.1.0.20");
//! let said = aerostat_lab::parse("garden.atm.yml", &mistake, &[]).unwrap_err().to_string();
//! assert!(said.starts_with("garden.atm.yml:6:"), "{said}");
//! # Ok::<(), aerostat_lab::Diagnostics>(())
//! ```
//!
//! Read [`model`] first: everything else makes a [`model::Lab`] or uses one.

pub mod books;
pub mod build;
pub mod checks;
pub mod circuits;
pub mod converge;
pub mod diag;
pub mod dialogues;
pub mod event;
pub mod fairness;
mod field;
mod file;
#[cfg_attr(not(unix), path = "files/none.rs")]
pub mod files;
mod gather;
pub mod growth;
pub mod hops;
pub mod ipv6;
pub mod kinds;
pub mod ladder;
mod lines;
pub mod members;
pub mod model;
pub mod numbers;
pub mod occupancy;
mod overrides;
mod parameter;
pub mod picture;
pub mod plan;
pub mod plant;
pub mod printable;
pub mod report;
mod resolve;
pub mod results;
pub mod routing;
pub mod settings;
pub mod shipped;
pub mod starts;
pub mod stream;
mod trace;
#[doc(hidden)]
pub mod tree;
pub mod units;
pub mod way;
mod yaml_11;

pub use diag::Diagnostics;
pub use event::Event;
pub use model::{ElanId, Lab, LinkId, NodeId};
pub use overrides::Override;
pub use resolve::label;

use crate::diag::Severity;
use crate::field::FromTree as _;
use crate::numbers::Numbers;
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest lab file, octets. Endless input, such as `/dev/zero`, is not read for ever.
pub const MAX_FILE: u64 = 4 << 20;

/// A valid lab, and the warnings about it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The lab.
    pub lab: Lab,
    /// Warnings; no errors.
    pub warnings: Diagnostics,
    /// Warnings that apply only to a run in virtual time.
    virtual_time: Vec<(diag::Span, String)>,
    /// Why its node cannot be the machine itself; empty if it can.
    obstacles: Vec<resolve::Obstacle>,
    /// Where it names a group of the system.
    group: Option<diag::Span>,
    /// Where it asks for a recording of links.
    capture: Option<diag::Span>,
    /// Digest of the input: see [`digest`].
    pub digest: String,
    /// Text of the file, without overrides.
    pub text: String,
    /// Checks of the file, or those in their place.
    pub checks: Vec<checks::Check>,
    /// Answers of the file by name.
    pub answers: BTreeMap<String, String>,
}

impl Checked {
    /// The same lab, with warnings about features that a run in virtual time leaves out.
    #[must_use]
    pub fn in_virtual_time(mut self) -> Self {
        for (at, text) in self.virtual_time.drain(..) {
            self.warnings
                .warning(at, text)
                .hint("'aerostat up' runs it as it is");
        }
        self
    }

    /// The same lab for a place where no file can be written, as a browser's tab. Files that a lab reads are looked for
    /// when it is checked.
    ///
    /// # Errors
    /// The place where it asks for a recording, with the warnings about the lab.
    pub fn without_files(mut self) -> Result<Self, Diagnostics> {
        match self.capture {
            None => Ok(self),
            Some(at) => {
                let text = "a recording is a file, and there are no files here";
                let hint = "leave out 'capture:', or set it to an empty list: capture=[]";
                self.warnings.error(at, text).hint(hint);
                Err(self.warnings)
            }
        }
    }

    /// The same lab, with a warning if the machine does not have the group that `sockets:` names: the lab would not
    /// start there. `has` tells whether the machine has a group of this name.
    #[must_use]
    pub fn on_machine(mut self, has: impl Fn(&str) -> bool) -> Self {
        if let (Some(at), Some(name)) = (self.group, &self.lab.sockets_group)
            && !has(name)
        {
            let text =
                format!("this machine has no group '{name}', so the lab would not start here");
            self.warnings
                .warning(at, text)
                .hint("'getent group' lists the groups of this system; 'groupadd' adds one");
        }
        self
    }

    /// The same lab with its one end system as a Linux kernel, if that may be the machine itself: the lab has only this
    /// node and its link out of the lab.
    ///
    /// # Errors
    /// What is too much and what is missing, each with its place and what to do, with the warnings about the lab.
    #[allow(
        clippy::wrong_self_convention,
        reason = "the lab itself becomes the machine's"
    )]
    pub fn as_machine(mut self) -> Result<Self, Diagnostics> {
        for (at, text, hint) in self.obstacles.drain(..) {
            self.warnings.error(at, text).hint(hint);
        }
        if self.warnings.has_errors() {
            return Err(self.warnings);
        }
        for node in &mut self.lab.nodes {
            match &mut node.kind {
                model::NodeKind::Host(host) => host.kernel = Some(true),
                model::NodeKind::Router(router) => router.kernel = Some(true),
                _ => {}
            }
        }
        Ok(self)
    }
}

/// SHA-256 of a lab file's octets, in hexadecimal, as `sha256sum` prints it. For overrides, an octet 0 and the text of
/// each follow the file.
#[must_use]
pub fn digest(text: &str, overrides: &[Override]) -> String {
    let mut sum = sha2::Sha256::new();
    sum.update(text);
    for option in overrides {
        sum.update([0]);
        sum.update(option.change());
    }
    let octets = sum.finalize();
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Why there is no lab.
#[derive(Debug)]
pub enum ReadError {
    /// The file cannot be read.
    Io(std::io::Error),
    /// The file is wrong.
    Bad(Diagnostics),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Bad(diagnostics) => diagnostics.fmt(f),
        }
    }
}
impl std::error::Error for ReadError {}

/// Reads and checks a lab file; `overrides` are applied in order before the check.
///
/// # Errors
/// See [`ReadError`].
pub fn read(path: &Path, overrides: &[Override]) -> Result<Checked, ReadError> {
    let file = std::fs::File::open(path).map_err(ReadError::Io)?;
    read_from(&path.display().to_string(), file, overrides)
}

/// Like [`read`], from any reader, for example a pipe; at most 4 MiB are read. `name` is as for [`parse`].
///
/// # Errors
/// See [`ReadError`].
pub fn read_from(
    name: &str,
    source: impl std::io::Read,
    overrides: &[Override],
) -> Result<Checked, ReadError> {
    use std::io::Read as _;
    let mut octets = Vec::new();
    let taken = source.take(MAX_FILE + 1).read_to_end(&mut octets);
    if taken.map_err(ReadError::Io)? as u64 > MAX_FILE {
        let text = format!("more than {MAX_FILE} octets: too large for a lab file");
        return Err(ReadError::Io(std::io::Error::other(text)));
    }
    let text = String::from_utf8(octets).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let mut d = Diagnostics::new(name, &text);
        let (source, start, end) = (0, good, good + 1);
        let at = diag::Span { source, start, end };
        d.error(at, "this is no UTF-8 text");
        ReadError::Bad(d)
    })?;
    parse(name, &text, overrides).map_err(ReadError::Bad)
}

/// Checks a lab given as text. `name` is the path for messages; the lab is named after it unless the text gives a name.
///
/// # Errors
/// All mistakes that were found.
pub fn parse(name: &str, text: &str, overrides: &[Override]) -> Result<Checked, Diagnostics> {
    parse_for(name, text, overrides, &Numbers::default())
}

/// Like [`parse`], for a lab that runs: what is in `known` keeps its number in the address plan.
///
/// # Errors
/// All mistakes that were found.
pub fn parse_for(
    name: &str,
    text: &str,
    overrides: &[Override],
    known: &Numbers,
) -> Result<Checked, Diagnostics> {
    let mut d = Diagnostics::new(name, text);
    let found = check(name, (text, None), overrides, known, &mut d);
    finish(found, (text, overrides), d)
}

/// A file of checks, by its name for messages and its text.
#[derive(Clone, Copy, Debug)]
pub struct ChecksText<'a> {
    /// Name for messages.
    pub name: &'a str,
    /// Text.
    pub text: &'a str,
}

/// Like [`parse`], with checks of another file in place of those of the lab. Other sections of that file (`until`,
/// `traffic`, `faults` and so on) stand in place of those of the lab, too; `answers` alone are the lab's.
///
/// # Errors
/// All mistakes that were found in both.
pub fn parse_with_checks(
    name: &str,
    text: &str,
    overrides: &[Override],
    checks: ChecksText<'_>,
) -> Result<Checked, Diagnostics> {
    let mut d = Diagnostics::new(name, text);
    let found = check(
        name,
        (text, Some(checks)),
        overrides,
        &Numbers::default(),
        &mut d,
    );
    finish(found, (text, overrides), d)
}

/// The checks of a file of checks, without a lab. Its other sections are not read.
///
/// # Errors
/// All mistakes that were found.
pub fn parse_checks(name: &str, text: &str) -> Result<Vec<checks::Check>, Diagnostics> {
    let mut d = Diagnostics::new(name, text);
    let read = |d: &mut Diagnostics| {
        let file = tree::parse(text, 0, 0, d)?;
        let (at, value) = (file.at, tree::Value::Null);
        let mut lab = tree::Tree { at, value };
        checks::replace(&mut lab, file, d)?;
        if let tree::Value::Map(sections) = &mut lab.value {
            sections.retain(|(key, _)| key.text == "checks");
        }
        let file = file::LabFile::from_tree(&lab, d)?;
        Some(checks::read(&file, d))
    };
    let checks = read(&mut d).filter(|_| !d.has_errors());
    checks.ok_or(d)
}

fn finish(
    found: Option<Found>,
    (text, overrides): (&str, &[Override]),
    d: Diagnostics,
) -> Result<Checked, Diagnostics> {
    match found {
        Some(found) if !d.has_errors() => Ok(Checked {
            lab: found.lab,
            warnings: d,
            virtual_time: found.virtual_time,
            obstacles: found.obstacles,
            group: found.group,
            capture: found.capture,
            digest: digest(text, overrides),
            text: text.to_owned(),
            checks: found.checks,
            answers: found.answers,
        }),
        _ => Err(d),
    }
}

/// A lab, and what applies only to a run in virtual time, or to the machine itself.
struct Found {
    lab: Lab,
    virtual_time: Vec<(diag::Span, String)>,
    obstacles: Vec<resolve::Obstacle>,
    group: Option<diag::Span>,
    capture: Option<diag::Span>,
    checks: Vec<checks::Check>,
    answers: BTreeMap<String, String>,
}

/// Reads and checks a lab; looks for further mistakes behind those that it finds first.
fn check(
    name: &str,
    (text, checks): (&str, Option<ChecksText<'_>>),
    overrides: &[Override],
    known: &Numbers,
    d: &mut Diagnostics,
) -> Option<Found> {
    let mut root = tree::parse(text, 0, 0, d)?;
    if let Some(file) = checks {
        let source = d.add_file(file.name.to_owned(), file.text);
        let checks = tree::parse(file.text, source, 0, d)?;
        checks::replace(&mut root, checks, d)?;
    }
    for option in overrides {
        overrides::apply(&mut root, option, d);
    }
    let checked = of_tree(&root, (name, known), d);
    if checked.is_ok() && d.has_errors() {
        let again =
            |rest: &tree::Tree, d: &mut Diagnostics| of_tree(rest, (name, known), d).is_ok();
        gather::further(root, d, again);
    }
    checked.ok().flatten()
}

/// Checks the tree of a lab file. An error if the lab is too large to look for further mistakes.
fn of_tree(
    root: &tree::Tree,
    (name, known): (&str, &Numbers),
    d: &mut Diagnostics,
) -> Result<Option<Found>, TooLarge> {
    let wrong = d.count(Severity::Error);
    let Some(file) = file::LabFile::from_tree(root, d) else {
        return Ok(None);
    };
    if !resolve::fits(&file, d) {
        return Err(TooLarge);
    }
    // An unknown key may be a wrong name of one that the checks look for.
    if d.count(Severity::Error) > wrong {
        return Ok(None);
    }
    let lab = resolve::resolve(&file, lab_name(name), known, d);
    let checks = checks::read(&file, d);
    Ok(lab.map(|lab| Found {
        checks,
        answers: checks::answers(&file),
        virtual_time: resolve::in_virtual_time(&file, &lab),
        lab,
        obstacles: resolve::obstacles(&file),
        group: file
            .sockets
            .as_ref()
            .and_then(|sockets| Some(sockets.group.as_ref()?.at)),
        capture: file.capture.iter().flatten().map(|link| link.at).next(),
    }))
}

/// A lab beyond the limits; the diagnostics say which.
struct TooLarge;

/// `labs/campus.atm.yml` is `campus`.
fn lab_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file
        .strip_suffix(".atm.yml")
        .or_else(|| file.strip_suffix(".yml"))
        .or_else(|| file.strip_suffix(".yaml"))
        .unwrap_or(file);
    // Standard input has no name.
    if stem.is_empty() || stem == "-" {
        "lab"
    } else {
        stem
    }
}

/// Name and version of the format of lab files. The version increases when a formerly valid file would become invalid.
pub const SCHEMA: &str = "aerostat.lab.v1";

/// The JSON Schema of lab files (draft 2020-12); its `$id` ends with [`SCHEMA`].
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(file::LabFile).to_value();
    schema["$id"] = format!("urn:aerostat:{SCHEMA}").into();
    let defs = schema["$defs"].as_object_mut().into_iter().flatten();
    defs.for_each(|(_, section)| plain_texts(section));
    plain_texts(&mut schema);
    schema
}

/// [`schema`] as a text with a line for each key, so that a new key is one line in a comparison.
#[must_use]
pub fn schema_text() -> String {
    let mut text = String::new();
    write_schema(&schema(), "", &mut text);
    text
}

fn write_schema(schema: &serde_json::Value, indent: &str, into: &mut String) {
    let parts = schema.as_object().filter(|parts| {
        let own = ["properties", "$defs"]
            .iter()
            .any(|key| parts.contains_key(*key));
        own || parts.values().all(serde_json::Value::is_object) && !parts.is_empty()
    });
    let Some(parts) = parts else {
        *into += &schema.to_string();
        return;
    };
    let deeper = format!("{indent}  ");
    for (number, (key, part)) in parts.iter().enumerate() {
        *into += if number == 0 { "{\n" } else { ",\n" };
        *into += &format!("{deeper}{}: ", serde_json::Value::from(key.as_str()));
        write_schema(part, &deeper, into);
    }
    *into += &format!("\n{indent}}}");
}

/// A table that is missing is an empty one.
fn optional_tables(section: &mut serde_json::Value) {
    let Some(properties) = section.get("properties").cloned() else {
        return;
    };
    let may_be_null = |key: &serde_json::Value| {
        let types = key
            .as_str()
            .and_then(|key| properties[key]["type"].as_array());
        types.is_some_and(|types| types.iter().any(|one| one == "null"))
    };
    if let Some(required) = section.get_mut("required") {
        let names = required.as_array_mut();
        if let Some(names) = names {
            names.retain(|key| !may_be_null(key));
        }
        if required.as_array().is_some_and(Vec::is_empty)
            && let Some(section) = section.as_object_mut()
        {
            section.remove("required");
        }
    }
}

/// Allows a number, true or false wherever a text is allowed: each is read as it is written.
fn plain_texts(section: &mut serde_json::Value) {
    optional_tables(section);
    // An index would add what is missing.
    let properties = section.get_mut("properties");
    let properties = properties.and_then(serde_json::Value::as_object_mut);
    for (_, property) in properties.into_iter().flatten() {
        let items = property.get("items").is_some();
        let property = if items {
            &mut property["items"]
        } else {
            property
        };
        if property.get("type").is_none() {
            continue;
        }
        if ["enum", "pattern", "format", "examples"]
            .iter()
            .any(|key| property.get(key).is_some())
        {
            continue;
        }
        let kind = match &property["type"] {
            kind if *kind == "string" => serde_json::json!(["string", "number", "boolean"]),
            kind if *kind == serde_json::json!(["string", "null"]) => {
                serde_json::json!(["string", "number", "boolean", "null"])
            }
            _ => continue,
        };
        property["type"] = kind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_is_read_from_a_source_without_end() {
        struct Endless(u64);
        impl std::io::Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                into.fill(b'#');
                self.0 += into.len() as u64;
                assert!(self.0 <= 2 * MAX_FILE, "it is read on and on");
                Ok(into.len())
            }
        }
        let said = read_from("x", Endless(0), &[]).unwrap_err().to_string();
        assert_eq!(said, "more than 4194304 octets: too large for a lab file");
        let text = format!("{}\n#{}", resolve::tests::SMALL, " ".repeat(4_193_000));
        assert!(read_from("x", text.as_bytes(), &[]).is_ok());
    }

    #[test]
    fn what_is_no_text_has_its_place() {
        let said = read_from("x", &b"switches: {}\nhosts: \xff\xfe\n"[..], &[]).unwrap_err();
        let said = said.to_string();
        assert!(
            said.starts_with("x:2:8: error: this is no UTF-8 text\n"),
            "{said}"
        );
    }
}
