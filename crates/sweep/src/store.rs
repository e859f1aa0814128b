//! Runs that are done, in a file: those of `sweep` with `--out`, and values of rows of `reproduce` with `--keep`.
//!
//! Each run is a line of JSON: what identifies it, and its rows. A line is added when the run has ended. A process that
//! is killed leaves at most one line without an end, which the next one removes; a full disk leaves no such line.
//!
//! The last member of a line, `sum`, is the checksum of what stands before it. A line that was changed, by hand or by a
//! bad disk, is no run: the run is done again.

use crate::failure::Failure;
use aerostat_lab::files;
use aerostat_lab::results::Document;
use aerostat_node::inspect::TableInfo;
use aerostat_wire::aal5::crc32;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The command whose file it is.
#[derive(Clone, Copy, Debug)]
pub struct Keeper {
    /// The first line of the file, with its end.
    pub head: &'static str,
    /// Name of what the command does, as in "no file of a sweep".
    pub what: &'static str,
    /// The option that names the file.
    pub option: &'static str,
}

/// The file of `aerostat sweep`.
pub const SWEEP: Keeper = Keeper {
    head: "{\"schema\":\"aerostat.sweep.v1\"}\n",
    what: "sweep",
    option: "--out",
};

/// Identity of a run: with the same key a run would give the same rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// SHA-256 of the lab file with its changes and traces.
    pub lab: String,
    /// Version of the program.
    pub version: String,
    /// The table of the results.
    pub table: String,
    /// Keys of the sweep with their values, and the seed.
    pub run: Map<String, Value>,
}

/// Record of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its exit code: 0, or 3 for warnings.
    pub exit: u8,
    /// Its seed.
    pub seed: u64,
    /// Rows of the table.
    pub rows: Vec<Value>,
}

impl Record {
    /// The rows of this table in the results of a run that has ended with this exit code.
    #[must_use]
    pub fn of(document: &Document, info: &'static TableInfo, exit: u8) -> Self {
        let table = document.flat_table(info);
        Self {
            exit,
            seed: document
                .head()
                .get("seed")
                .and_then(Value::as_u64)
                .unwrap_or(0),
            rows: table.objects().map(Value::Object).collect(),
        }
    }
}

/// A line for writing.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    key: &'a Key,
    #[serde(flatten)]
    record: &'a Record,
}

/// A line when only its run is of interest.
#[derive(Deserialize)]
struct Head {
    lab: String,
    version: String,
    table: String,
    run: Map<String, Value>,
    /// The rest is checked, so that [`Store::read`] can read it.
    #[serde(rename = "exit")]
    _exit: u8,
    #[serde(rename = "seed")]
    _seed: u64,
    #[serde(rename = "rows")]
    _rows: Vec<IgnoredAny>,
}

/// Where a run is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    start: u64,
    len: usize,
}

/// Runs of a sweep that are done.
pub struct Found {
    /// Their places, by the number of the run.
    pub places: Vec<Option<Place>>,
    /// Runs with the same values and seed of another lab, with other options or of another version.
    pub stale: usize,
    /// Lines that are no runs: how many, and what is wrong with the first.
    pub bad: Option<(usize, String)>,
}

/// The file. One process at a time has it.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    keeper: Keeper,
    file: File,
    /// Octets of complete lines.
    len: u64,
}

impl Store {
    /// Opens the file, or makes it; with `again` as an empty one.
    pub fn open(path: &Path, again: bool, keeper: Keeper) -> Result<Self, Failure> {
        let failed = |error: io::Error| failure(path, &error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = files::resume(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = format!("{}: another {} writes there", path.display(), keeper.what);
                let hint = format!("wait for its end, or give another {}", keeper.option);
                return Err(Failure::failed(text).hint(hint));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut store = Self {
            path: path.to_owned(),
            keeper,
            file,
            len: 0,
        };
        store.begin()?;
        // Only now it is certain that the file is one of the command.
        if again {
            store.file.set_len(store.len).map_err(failed)?;
        }
        Ok(store)
    }

    /// Reads or writes the first line.
    fn begin(&mut self) -> Result<(), Failure> {
        let failed = |error: io::Error| failure(&self.path, &error);
        let Keeper {
            head: own,
            what,
            option,
        } = self.keeper;
        let mut head = vec![0; own.len()];
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let there = { &self.file }
            .take(own.len() as u64)
            .read(&mut head)
            .map_err(failed)?;
        if head[..there] == own.as_bytes()[..] {
            self.len = own.len() as u64;
            return Ok(());
        }
        // Nothing, or the beginning of the line: a process was killed as it wrote it.
        if !own.as_bytes().starts_with(&head[..there]) {
            let text = format!("{}: this is no file of a {what}", self.path.display());
            let hint = format!("give another {option}, or remove the file");
            return Err(Failure::usage(text).hint(hint));
        }
        self.append(own)
    }

    /// The places of runs in the file. What follows the last complete line is removed.
    pub fn find(&mut self, keys: impl Iterator<Item = Key>) -> Result<Found, Failure> {
        let mut runs: BTreeMap<String, (usize, Key)> = BTreeMap::new();
        for (number, key) in keys.enumerate() {
            runs.insert(name(&key.run), (number, key));
        }
        let mut found = Found {
            places: vec![None; runs.len()],
            stale: 0,
            bad: None,
        };
        let mut old = vec![false; runs.len()];
        let failed = |error: io::Error| failure(&self.path, &error);
        let head = self.keeper.head.len() as u64;
        self.file.seek(SeekFrom::Start(head)).map_err(failed)?;
        let mut reader = BufReader::new(&self.file);
        let (mut line, mut number, mut start) = (Vec::new(), 1, head);
        loop {
            line.clear();
            let len = reader.read_until(b'\n', &mut line).map_err(failed)?;
            number += 1;
            if line.last() != Some(&b'\n') {
                break;
            }
            let begin = start;
            start += len as u64;
            let read = intact(&line).and_then(|()| {
                serde_json::from_slice::<Head>(&line).map_err(|error| error.to_string())
            });
            let head = match read {
                Ok(head) => head,
                Err(why) => {
                    let first = || (0, format!("line {number}: {why}"));
                    found.bad.get_or_insert_with(first).0 += 1;
                    continue;
                }
            };
            if let Some((run, key)) = runs.get(&name(&head.run)) {
                let same =
                    [&head.lab, &head.version, &head.table] == [&key.lab, &key.version, &key.table];
                if same {
                    found.places[*run] = Some(Place { start: begin, len });
                } else if head.table == key.table {
                    old[*run] = true;
                }
            }
        }
        drop(reader);
        self.len = start;
        self.file.set_len(start).map_err(failed)?;
        let missing = old.iter().zip(&found.places);
        found.stale = missing
            .filter(|(old, place)| **old && place.is_none())
            .count();
        Ok(found)
    }

    /// Adds a run.
    pub fn add(&mut self, key: &Key, record: &Record) -> Result<Place, Failure> {
        let line = serde_json::to_string(&Line { key, record });
        let line = sealed(&line.map_err(|error| Failure::failed(error.to_string()))?);
        let start = self.len;
        self.append(&line)?;
        Ok(Place {
            start,
            len: line.len(),
        })
    }

    /// Writes a line behind the complete ones, or nothing.
    fn append(&mut self, line: &str) -> Result<(), Failure> {
        let at = SeekFrom::Start(self.len);
        let written = self
            .file
            .seek(at)
            .and_then(|_| self.file.write_all(line.as_bytes()));
        if let Err(error) = written {
            // What remains of a line is removed by the next process if this fails, too.
            let _ = self.file.set_len(self.len);
            return Err(failure(&self.path, &error));
        }
        self.len += line.len() as u64;
        Ok(())
    }

    /// A run.
    pub fn read(&mut self, place: Place) -> Result<Record, Failure> {
        let mut line = vec![0; place.len];
        let at = SeekFrom::Start(place.start);
        let read = self
            .file
            .seek(at)
            .and_then(|_| self.file.read_exact(&mut line));
        read.map_err(|error| failure(&self.path, &error))?;
        intact(&line)
            .and_then(|()| serde_json::from_slice(&line).map_err(|error| error.to_string()))
            .map_err(|why| Failure::failed(format!("{}: {why}", self.path.display())))
    }
}

/// Texts around the digits of the checksum of a line: between the rest of the line and the digits, and behind them.
const SEAL: (&str, &str) = (",\"sum\":\"", "\"}");
/// Digits of a checksum.
const DIGITS: usize = 8;

/// The line of a run with its checksum, the CRC-32 of AAL5, which finds every change of up to 32 adjacent bits.
fn sealed(object: &str) -> String {
    let body = object.strip_suffix('}').unwrap_or(object);
    format!("{body}{}\n", seal(body.as_bytes()))
}

/// The end of a line.
fn seal(body: &[u8]) -> String {
    let sum = crc32(body);
    format!("{}{sum:0DIGITS$x}{}", SEAL.0, SEAL.1)
}

/// Checks a line against its checksum; the error is a reason in words.
fn intact(line: &[u8]) -> Result<(), String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let length = SEAL.0.len() + DIGITS + SEAL.1.len();
    let parts = line.len().checked_sub(length).map(|at| line.split_at(at));
    let Some((body, end)) = parts.filter(|(_, end)| end.starts_with(SEAL.0.as_bytes())) else {
        return Err("it has no checksum".to_owned());
    };
    match end == seal(body).as_bytes() {
        true => Ok(()),
        false => Err("its checksum is that of another line: it was changed".to_owned()),
    }
}

/// Name of a run in its sweep.
fn name(run: &Map<String, Value>) -> String {
    serde_json::to_string(run).unwrap_or_default()
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEEPER: Keeper = Keeper {
        head: "{\"schema\":\"x.v1\"}\n",
        what: "sweep",
        option: "--out",
    };

    fn key(lab: &str, seed: u64) -> Key {
        let Value::Object(run) = json!({ "a.b": "5us", "seed": seed }) else {
            unreachable!()
        };
        Key {
            lab: lab.into(),
            version: "1".into(),
            table: "flows".into(),
            run,
        }
    }

    fn record(seed: u64) -> Record {
        Record {
            exit: 0,
            seed,
            rows: vec![json!({ "name": "x", "y": 0.1 })],
        }
    }

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("aerostat-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn runs_stay_and_a_line_without_an_end_does_not() {
        let path = path("store");
        let mut store = Store::open(&path, false, KEEPER).unwrap();
        store.add(&key("l", 1), &record(1)).unwrap();
        let second = store.add(&key("l", 2), &record(2)).unwrap();
        assert_eq!(store.read(second).unwrap(), record(2));
        // One process at a time.
        assert!(
            Store::open(&path, false, KEEPER)
                .unwrap_err()
                .message
                .contains("another sweep")
        );
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        // Whenever a process is killed, runs whose lines are complete are there, and others are not.
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut store = Store::open(&path, false, KEEPER).unwrap();
            let found = store.find((1..=3).map(|seed| key("l", seed))).unwrap();
            let lines = whole[..cut].iter().filter(|c| **c == b'\n').count();
            let known = found.places.iter().flatten().count();
            assert_eq!(known, lines.saturating_sub(1), "{cut}");
            let third = store.add(&key("l", 3), &record(3)).unwrap();
            assert_eq!(store.read(third).unwrap(), record(3), "{cut}");
            drop(store);
            let mut store = Store::open(&path, false, KEEPER).unwrap();
            let found = store.find((1..=3).map(|seed| key("l", seed))).unwrap();
            assert_eq!(found.places.iter().flatten().count(), known + 1, "{cut}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn runs_of_another_lab_do_not_count_and_other_files_are_left_alone() {
        let path = path("stale");
        let mut store = Store::open(&path, false, KEEPER).unwrap();
        store.add(&key("old", 1), &record(1)).unwrap();
        store.add(&key("new", 2), &record(2)).unwrap();
        let found = store.find((1..=2).map(|seed| key("new", seed))).unwrap();
        assert_eq!(
            (found.places[0], found.places[1].is_some(), found.stale),
            (None, true, 1)
        );
        drop(store);
        Store::open(&path, true, KEEPER).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), KEEPER.head);
        std::fs::write(&path, "name,value\n").unwrap();
        for again in [false, true] {
            let refused = Store::open(&path, again, KEEPER).unwrap_err();
            assert!(refused.message.contains("no file of a sweep"), "{again}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "name,value\n");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_line_that_is_no_run_costs_no_other_run() {
        let path = path("bad");
        let mut store = Store::open(&path, false, KEEPER).unwrap();
        store.add(&key("l", 1), &record(1)).unwrap();
        store.add(&key("l", 2), &record(2)).unwrap();
        drop(store);
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        // Half a line, no text, a run without its exit code, and rows that are no list: the checksums are right.
        let half = &lines[1][..lines[1].len() / 2];
        let (object, _) = lines[1].split_once(",\"sum\"").unwrap();
        let again = |text: String| sealed(&(text + "}")).trim_end().to_owned();
        let bare = again(object.replace("\"exit\":0,", ""));
        let flat = again(object.replace("\"rows\":[", "\"rows\":{\"x\":[") + "}");
        for bad in [half, "\u{0}\u{1}", &bare, &flat] {
            let text = [lines[0], bad, lines[2], "x", ""].join("\n");
            std::fs::write(&path, text).unwrap();
            let mut store = Store::open(&path, false, KEEPER).unwrap();
            let found = store.find((1..=2).map(|seed| key("l", seed))).unwrap();
            assert_eq!(found.places[0], None, "{bad}");
            assert_eq!(store.read(found.places[1].unwrap()).unwrap(), record(2));
            let (count, first) = found.bad.unwrap();
            assert!(count == 2 && first.starts_with("line 2: "), "{first}");
            // The run of the bad line is added again.
            let again = store.add(&key("l", 1), &record(1)).unwrap();
            assert_eq!(store.read(again).unwrap(), record(1));
        }
        std::fs::remove_file(&path).unwrap();
    }

    /// Wherever a digit of a line is changed, also one of its checksum, the line is no run any more.
    #[test]
    fn a_digit_that_was_changed_is_found_and_so_is_a_line_without_a_checksum() {
        let path = path("digits");
        let mut store = Store::open(&path, false, KEEPER).unwrap();
        let place = store.add(&key("l", 1), &record(1)).unwrap();
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        let begin = usize::try_from(place.start).unwrap();
        let mut changed = 0;
        for at in (begin..whole.len()).filter(|at| whole[*at].is_ascii_digit()) {
            let mut text = whole.clone();
            text[at] = if text[at] == b'9' { b'8' } else { text[at] + 1 };
            std::fs::write(&path, &text).unwrap();
            let mut store = Store::open(&path, false, KEEPER).unwrap();
            let found = store.find([key("l", 1)].into_iter()).unwrap();
            assert_eq!((found.places[0], found.bad.unwrap().0), (None, 1), "{at}");
            assert!(store.read(place).is_err(), "{at}");
            changed += 1;
        }
        assert!(changed >= 10, "{changed} digits");
        let (object, _) = std::str::from_utf8(&whole)
            .unwrap()
            .split_once(",\"sum\"")
            .unwrap();
        std::fs::write(&path, format!("{object}}}\n")).unwrap();
        let found = Store::open(&path, false, KEEPER)
            .unwrap()
            .find([key("l", 1)].into_iter())
            .unwrap();
        assert_eq!(
            found.bad,
            Some((1, "line 2: it has no checksum".to_owned()))
        );
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_complete_lines() {
        // Writing to this device always says that the disk is full.
        let mut store = Store {
            path: "/dev/full".into(),
            keeper: KEEPER,
            file: File::options()
                .read(true)
                .write(true)
                .open("/dev/full")
                .unwrap(),
            len: 0,
        };
        let full = store.add(&key("l", 1), &record(1)).unwrap_err();
        assert!(
            full.message.contains("No space left on device"),
            "{}",
            full.message
        );
        assert_eq!((full.kind, store.len), (crate::failure::Kind::Failed, 0));
    }
}
