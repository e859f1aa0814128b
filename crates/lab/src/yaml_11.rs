//! Changes that tools for YAML 1.1 make to a lab file that they read and write.
//!
//! In YAML 1.1, `on`, `yes`, `off` and `no` are true and false, `010` is 8, and `10:20` is 620 (base 60). Tools for any
//! version read `0.320` as the number 0.32. A tool that writes the file again writes what it has read, so that plain
//! texts of these forms change. Texts in quotes stay. Lab files are read as YAML 1.2, with the digits of numbers as
//! they stand.
//!
//! Source: YAML 1.1, type repository (`tag:yaml.org,2002:bool`, `int`, `float`, `timestamp`); YAML 1.2.2 §10.3.2.

/// The words that YAML 1.1 takes for true and false.
const BOOLEANS: [(&str, [&str; 2]); 2] = [("true", ["on", "yes"]), ("false", ["off", "no"])];

/// The words that may have stood where a tool has written true or false; none for other text.
pub(crate) fn written_as(text: &str) -> &'static [&'static str] {
    let found = BOOLEANS.iter().find(|(now, _)| text == *now);
    found.map_or(&[], |(_, before)| before)
}

/// True or false, where a word means that in YAML 1.1 alone.
pub(crate) fn boolean(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    let found = BOOLEANS.iter().find(|(_, words)| words.contains(&&*text));
    found.map(|(now, _)| *now)
}

/// Value that a tool makes of a plain text and then writes in another way: `true or false`, `nothing` or `a number`.
/// `None` if the text stays as it is, as `7` and `25.6` do.
pub(crate) fn taken_for(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    if matches!(&*lower, "true" | "false") || boolean(&lower).is_some() {
        return Some("true or false");
    }
    if matches!(&*lower, "null" | "~" | "") {
        return Some("nothing");
    }
    let digits = text.trim_start_matches(['-', '+']);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    changes(digits).then_some("a number")
}

/// True for a number that a tool writes with other digits.
fn changes(text: &str) -> bool {
    let decimal = |c: char| c.is_ascii_digit() || c == '_';
    let of_base = |prefix: &str, base: u32| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| is_all(rest, |c| c.is_digit(base) || c == '_'))
    };
    if of_base("0x", 16) || of_base("0b", 2) || of_base("0o", 8) {
        return true;
    }
    // Base 60 begins with a digit other than 0, unless it has a fraction.
    if text.contains(':') {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let mut parts = whole.split(':');
        let first = parts.next().is_some_and(|part| is_all(part, decimal));
        let sixty =
            |part: &str| is_all(part, |c| c.is_ascii_digit()) && part.len() <= 2 && part < "6";
        let rest = parts.all(|part| part.len() == 1 && is_all(part, decimal) || sixty(part));
        let begins = text.contains('.') || !text.starts_with('0');
        return first && rest && begins && is_all(fraction, decimal);
    }
    if is_all(text, decimal) {
        return text.contains('_') || (text.len() > 1 && text.starts_with('0'));
    }
    // A float has a point or an exponent.
    match text.replace('_', "").parse::<f64>() {
        Ok(value) => value.to_string() != text,
        Err(_) => false,
    }
}

fn is_all(text: &str, of: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table was checked against PyYAML 6.0.3 (YAML 1.1) and ruamel.yaml 0.19.1 (YAML 1.2): a text that one of them
    /// writes in another way after it has read it is in the table with what it was taken for. `true` and `null` stay,
    /// but as names they are what such a tool has made of others.
    #[test]
    fn texts_that_a_tool_changes_are_known_and_others_are_left_alone() {
        for (text, what) in [
            ("on", Some("true or false")),
            ("Off", Some("true or false")),
            ("yes", Some("true or false")),
            ("NO", Some("true or false")),
            ("true", Some("true or false")),
            ("null", Some("nothing")),
            ("0.320", Some("a number")),
            ("0.10", Some("a number")),
            ("010", Some("a number")),
            ("0x80", Some("a number")),
            ("0o17", Some("a number")),
            ("0b11", Some("a number")),
            ("1_000", Some("a number")),
            ("10:20", Some("a number")),
            ("10:20:30:40:50:51", Some("a number")),
            ("1e3", Some("a number")),
            ("12e45678", Some("a number")),
            ("1.0e+3", Some("a number")),
            ("1:30.5", Some("a number")),
            ("190:20:30", Some("a number")),
            ("2026-11-26", None),
            ("02:30", None),
            ("7", None),
            ("120", None),
            ("0", None),
            ("25.6", None),
            ("0.32", None),
            ("s1", None),
            ("onto", None),
            ("10.1.0.1", None),
            ("10.1.0.0/24", None),
            ("02:00:00:00:00:01", None),
            ("10:61", None),
            ("5us", None),
            ("2-1", None),
            ("1e3cells/s", None),
        ] {
            assert_eq!(taken_for(text), what, "{text}");
        }
        assert_eq!(
            (boolean("On"), boolean("no"), boolean("true")),
            (Some("true"), Some("false"), None)
        );
        assert_eq!(written_as("true"), ["on", "yes"]);
        assert!(written_as("s1").is_empty());
    }
}
