//! The first difference of two files.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

/// Most octets of a line that are shown.
const SHOWN: usize = 40;
/// Octets of the line before the difference that are shown.
const BEFORE: usize = 12;

/// The first difference in words, such as `line 3: '1.50' in place of '1.25'`: what the first file has, and what the
/// second one. `None` if both have the same octets, or with `any_order` the same lines.
pub(super) fn first_difference(
    here: &Path,
    there: &Path,
    any_order: bool,
) -> io::Result<Option<String>> {
    if any_order {
        return unordered(here, there);
    }
    let (mut here, mut there) = (
        BufReader::new(File::open(here)?),
        BufReader::new(File::open(there)?),
    );
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (mut line, mut offset) = (1_u64, 0_u64);
    loop {
        one.clear();
        two.clear();
        here.read_until(b'\n', &mut one)?;
        there.read_until(b'\n', &mut two)?;
        if one != two {
            return Ok(Some(words(&one, &two, line, offset)));
        }
        if one.is_empty() {
            return Ok(None);
        }
        offset += one.len() as u64;
        line += 1;
    }
}

fn unordered(here: &Path, there: &Path) -> io::Result<Option<String>> {
    let lines = |path: &Path| {
        let octets = fs::read(path)?;
        let mut lines: Vec<Vec<u8>> = octets
            .split_inclusive(|octet| *octet == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        lines.sort();
        io::Result::Ok(lines)
    };
    let (one, two) = (lines(here)?, lines(there)?);
    let missing = one.iter().find(|line| two.binary_search(line).is_err());
    if let Some(line) = missing {
        return Ok(Some(format!("a line of no new run: '{}'", shown(line, 0))));
    }
    let missing = two.iter().find(|line| one.binary_search(line).is_err());
    Ok(match missing {
        Some(line) => Some(format!("the line '{}' is missing", shown(line, 0))),
        None if one.len() != two.len() => Some("a line is there more than once".to_owned()),
        None => None,
    })
}

fn words(one: &[u8], two: &[u8], line: u64, offset: u64) -> String {
    let same = one
        .iter()
        .zip(two)
        .take_while(|(one, two)| one == two)
        .count();
    if std::str::from_utf8(one).is_err() || std::str::from_utf8(two).is_err() {
        let octet = |line: &[u8]| {
            line.get(same)
                .map_or("the end".to_owned(), |octet| format!("{octet:#04x}"))
        };
        let at = offset + same as u64;
        return format!("octet {at}: {} in place of {}", octet(one), octet(two));
    }
    let text = |text: &[u8]| match text {
        [] => "the end".to_owned(),
        text => format!("'{}'", shown(text, same)),
    };
    format!("line {line}: {} in place of {}", text(one), text(two))
}

/// Part of a line round this octet.
fn shown(line: &[u8], at: usize) -> String {
    let start = at.saturating_sub(BEFORE).min(line.len());
    let end = line.len().min(start + SHOWN);
    let text = String::from_utf8_lossy(&line[start..end]);
    aerostat_lab::printable::line(text.trim_end_matches('\n')).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(name: &str, one: &[u8], two: &[u8], any_order: bool) -> Option<String> {
        let file = |side: &str| {
            let name = format!("aerostat-compare-{}-{name}-{side}", std::process::id());
            std::env::temp_dir().join(name)
        };
        let (here, there) = (file("here"), file("there"));
        fs::write(&here, one).expect("written");
        fs::write(&there, two).expect("written");
        let found = first_difference(&here, &there, any_order).expect("readable");
        for file in [here, there] {
            fs::remove_file(file).expect("removed");
        }
        found
    }

    #[test]
    fn the_first_difference_has_its_line_or_its_octet() {
        let text = |one: &str, two: &str| difference("text", one.as_bytes(), two.as_bytes(), false);
        assert_eq!(text("a\nb\n", "a\nb\n"), None);
        let found = text("a\n1.50\n", "a\n1.25\n");
        assert_eq!(found.as_deref(), Some("line 2: '1.50' in place of '1.25'"));
        let found = text("a\n", "a\nb\n");
        assert_eq!(found.as_deref(), Some("line 2: the end in place of 'b'"));
        let found = difference("octets", &[b'\n', 1, 255], &[b'\n', 2, 255], false);
        assert_eq!(found.as_deref(), Some("octet 1: 0x01 in place of 0x02"));
        let long = ["x".repeat(5000), "y".repeat(5000)];
        let found = text(&long[0], &long[1]).expect("a difference");
        assert!(found.len() < 120, "{found}");
    }

    #[test]
    fn lines_in_any_order_are_the_same_only_if_each_is_there_as_often() {
        let lines = |one: &[u8], two: &[u8]| difference("lines", one, two, true);
        assert_eq!(lines(b"a\nb\n", b"b\na\n"), None);
        assert!(lines(b"a\nb\n", b"a\nc\n").is_some_and(|found| found.contains("'b'")));
        assert!(lines(b"a\n", b"a\nc\n").is_some_and(|found| found.contains("'c' is missing")));
        assert!(lines(b"a\na\n", b"a\n").is_some());
    }
}
