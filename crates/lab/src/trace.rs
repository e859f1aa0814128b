//! Files with the times and sizes of packets.
//!
//! A line has two fields, separated by blanks: the time in seconds from the start of the flow, in decimal digits with
//! at most nine behind the point, and the octets of the Ethernet frame with its check sequence. Empty lines and what
//! follows `#` do not count. Times never go back. This is our own format.
//!
//! **Bounds.** [`MAX_OCTETS`] octets and [`MAX_PACKETS`] packets of a file, and [`MAX_OF_LAB`] packets of all files of
//! a lab; each file is read once ([`Traces`]). A mistake is told with its line and field, and never with words of the
//! file: it may be another file than the one that was meant.

use crate::model::{Trace, least_frame, payload_of};
use aerostat_node::ip::apps::Departure;
use aerostat_proto::Duration;
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest file, octets.
pub(crate) const MAX_OCTETS: u64 = 32 << 20;
/// Most packets of a file.
pub(crate) const MAX_PACKETS: usize = 1_000_000;
/// Most packets of all files of a lab: some 100 MB.
pub(crate) const MAX_OF_LAB: usize = 4_000_000;
/// Largest IPv4 packet and the header and check sequence of its frame, octets.
const MAX_FRAME: usize = 65_535 + 18;

/// The traces of a lab: flows with one file share its packets.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// By name in the lab file; the error is a sentence.
    files: BTreeMap<String, Result<Trace, String>>,
    /// Packets of all of them.
    packets: usize,
}

impl Traces {
    /// The trace in this file, whose name in the lab file is `name`.
    pub(crate) fn of(&mut self, name: &str, path: &Path) -> Result<Trace, String> {
        if let Some(known) = self.files.get(name) {
            return known.clone();
        }
        let trace = self.load(name, path);
        self.files.insert(name.to_owned(), trace.clone());
        trace
    }

    fn load(&mut self, name: &str, path: &Path) -> Result<Trace, String> {
        let text = crate::files::text(path, MAX_OCTETS, "a trace")?;
        let list = parse(&text)?;
        let packets = self.packets + list.len();
        if packets > MAX_OF_LAB {
            return Err(format!(
                "with this trace the lab has {packets} packets in traces, and {MAX_OF_LAB} are the most"
            ));
        }
        self.packets = packets;
        Ok(Trace {
            file: name.to_owned(),
            digest: sha2::Sha256::digest(&text)
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect(),
            list: list.into(),
        })
    }
}

/// The packets of a file; the error names line and field.
fn parse(text: &str) -> Result<Vec<Departure>, String> {
    let mut list: Vec<Departure> = Vec::new();
    for (line, number) in text.lines().zip(1_usize..) {
        let line = line.split('#').next().unwrap_or_default();
        let mut fields = line.split_ascii_whitespace();
        let Some(time) = fields.next() else {
            continue;
        };
        let at = |field: &str, what: &str| format!("line {number}, {field}: {what}");
        let time_at = |what: &str| at("field 1 (time)", what);
        let size_at = |what: &str| at("field 2 (octets)", what);
        let nanos = nanos(time).ok_or_else(|| {
            time_at("expected seconds, at most 10000000000, with at most 9 digits behind the point")
        })?;
        let size = fields.next().ok_or_else(|| size_at("it is missing"))?;
        let frame = size
            .parse()
            .ok()
            .filter(|size| (least_frame()..=MAX_FRAME).contains(size));
        let frame = frame.ok_or_else(|| {
            size_at(&format!(
                "expected {} to {MAX_FRAME} octets of a frame",
                least_frame()
            ))
        })?;
        if fields.next().is_some() {
            return Err(at("field 3", "a line has a time and a size"));
        }
        let departure = Departure {
            at: Duration::from_nanos(nanos),
            size: payload_of(frame),
        };
        if list.last().is_some_and(|last| last.at > departure.at) {
            return Err(time_at("it is before the time of the packet before"));
        }
        if list.len() == MAX_PACKETS {
            return Err(at(
                "field 1",
                &format!("a trace has at most {MAX_PACKETS} packets"),
            ));
        }
        list.push(departure);
    }
    match list.is_empty() {
        true => Err("there is no packet in it".to_owned()),
        false => Ok(list),
    }
}

/// Decimal seconds as nanoseconds, exactly.
fn nanos(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    let sane = !whole.is_empty() && whole.len() <= 10 && fraction.len() <= 9;
    if !sane || !digits(whole) || !digits(fraction) {
        return None;
    }
    let seconds = whole.parse::<u64>().ok()?;
    let rest = format!("{fraction:0<9}").parse::<u64>().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        let list = parse("# a trace\n0 64\n 0.000000001\t1518 # late\n\n2.5 100\n").unwrap();
        let list: Vec<_> = list
            .iter()
            .map(|one| (one.at.as_nanos(), one.size))
            .collect();
        assert_eq!(list, [(0, 18), (1, 1472), (2_500_000_000, 54)]);
    }

    #[test]
    fn mistakes_name_line_and_field() {
        for (text, says) in [
            ("", "no packet"),
            ("# nothing\n", "no packet"),
            ("0 64\n-1 64", "line 2, field 1 (time)"),
            ("1e3 64", "line 1, field 1 (time)"),
            (". 64", "line 1, field 1 (time)"),
            ("0.0000000001 64", "at most 9 digits"),
            ("99999999999 64", "line 1, field 1 (time)"),
            ("1 64\n0.5 64", "line 2, field 1 (time): it is before"),
            ("0", "line 1, field 2 (octets): it is missing"),
            ("0 63", "line 1, field 2 (octets): expected 64 to 65553"),
            ("0 65554", "line 1, field 2 (octets)"),
            ("0 64 1", "line 1, field 3"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(says), "{text:?}: {said}");
        }
        let many = "0 64\n".repeat(MAX_PACKETS + 1);
        assert!(parse(&many).unwrap_err().starts_with("line 1000001, "));
    }

    /// A file of this test process.
    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("aerostat-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_fifo_is_no_trace_and_does_not_wait_for_a_writer() {
        let pipe = scratch("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|made| made.success()), "mkfifo");
        let said = crate::files::text(&pipe, MAX_OCTETS, "a trace").unwrap_err();
        std::fs::remove_file(&pipe).expect("removed");
        assert_eq!(said, "this is no regular file");
    }

    #[test]
    fn a_file_is_read_once_and_all_files_together_have_a_limit() {
        let path = scratch("trace");
        let mut traces = Traces::default();
        std::fs::write(&path, "0 64\n".repeat(MAX_PACKETS)).expect("written");
        let first = traces.of("a", &path).expect("a trace");
        // The same name is not read again.
        let again = traces.of("a", Path::new("/nowhere")).expect("known");
        assert!(std::sync::Arc::ptr_eq(&first.list, &again.list));
        for name in ["b", "c", "d"] {
            traces.of(name, &path).expect("within the limit");
        }
        let said = traces.of("e", &path).unwrap_err();
        assert!(
            said.contains("5000000 packets in traces, and 4000000 are"),
            "{said}"
        );
        std::fs::write(&path, "0 64\n").expect("written");
        let more = traces.of("f", &path);
        std::fs::remove_file(&path).expect("removed");
        assert!(more.is_err(), "one more than the limit");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_list_or_a_mistake(text in "[0-9.# \n\te-]{0,80}") {
            if let Ok(list) = parse(&text) {
                assert!(list.is_sorted_by_key(|one| one.at));
                assert!(list.iter().all(|one| one.size >= 18));
            }
        }
    }
}
