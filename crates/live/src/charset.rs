//! Characters that the user's locale can show: UTF-8, or ASCII alone.
//!
//! Output for people passes [`stdout`], [`stderr`] or [`shown`]. In a locale without UTF-8, other characters become
//! their stand-ins ([`printable::ascii`]). JSON, CSV, captures, drawings and files are for programs: they are UTF-8 in
//! every locale, and do not pass here.

use aerostat_lab::printable;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;

/// True if the locale of this process has all characters.
///
/// The first of `LC_ALL`, `LC_CTYPE` and `LANG` that is not empty names the locale; without any, it is `C`. Its codeset
/// follows the dot. Source: POSIX.1-2017, Base Definitions, §8.2.
#[must_use]
pub fn is_utf8() -> bool {
    static UTF8: OnceLock<bool> = OnceLock::new();
    *UTF8.get_or_init(|| {
        let variables = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
        has_utf8(variables)
    })
}

/// The same for these values of the variables, the most important one first.
fn has_utf8(variables: [Option<OsString>; 3]) -> bool {
    let mut set = variables.into_iter().flatten();
    let locale = set.find(|value| !value.is_empty());
    let locale = locale.unwrap_or_default().to_string_lossy().into_owned();
    // `de_DE.UTF-8@euro`; glibc takes the name in any case, with and without its hyphen.
    let (_, codeset) = locale.split_once('.').unwrap_or_default();
    let codeset = codeset.split('@').next().unwrap_or_default();
    let letters = codeset.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().eq_ignore_ascii_case("utf8")
}

/// The text as the locale can show it.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    match is_utf8() {
        true => Cow::Borrowed(text),
        false => printable::ascii(text),
    }
}

/// Standard output for people.
#[must_use]
pub fn stdout() -> People<io::StdoutLock<'static>> {
    People::new(io::stdout().lock())
}

/// Standard error for people.
#[must_use]
pub fn stderr() -> People<io::StderrLock<'static>> {
    People::new(io::stderr().lock())
}

/// Prints a line on standard error. Control characters of untrusted text do not reach the terminal.
pub fn say(text: impl Display) {
    let text = text.to_string();
    // The reader may have gone; that is no reason to stop the work.
    let _ = writeln!(stderr(), "{}", printable::lines(&text));
}

/// A writer for people: what comes as UTF-8 leaves as the locale can show it.
#[derive(Debug)]
pub struct People<W: Write> {
    out: W,
    utf8: bool,
    /// The beginning of a character whose end has not come yet.
    begun: Vec<u8>,
}

impl<W: Write> People<W> {
    /// A writer for people with the locale of this process.
    pub fn new(out: W) -> Self {
        Self::with(out, is_utf8())
    }

    fn with(out: W, utf8: bool) -> Self {
        Self {
            out,
            utf8,
            begun: Vec::new(),
        }
    }
}

impl<W: Write> Write for People<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.utf8 {
            return self.out.write(octets);
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(octets);
        let mut parts = all.utf8_chunks().peekable();
        while let Some(part) = parts.next() {
            let valid = printable::ascii(part.valid());
            self.out.write_all(valid.as_bytes())?;
            let may_go_on = |begun: &[u8]| {
                std::str::from_utf8(begun).is_err_and(|error| error.error_len().is_none())
            };
            match part.invalid() {
                [] => {}
                // The end of these octets may be the beginning of a character.
                begun if parts.peek().is_none() && may_go_on(begun) => self.begun = begun.to_vec(),
                _ => self.out.write_all(b"?")?,
            }
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_names_the_locale() {
        let utf8 = |values: [&str; 3]| has_utf8(values.map(|value| Some(value.into())));
        for values in [
            ["C.UTF-8", "", ""],
            ["en_US.utf8", "C", "C"],
            ["", "de_DE.UTF-8@euro", "C"],
            ["", "", "ja_JP.UTF8"],
        ] {
            assert!(utf8(values), "{values:?}");
        }
        for values in [
            ["C", "C.UTF-8", "C.UTF-8"],
            ["", "POSIX", "C.UTF-8"],
            ["en_US", "", ""],
            ["de_DE.ISO-8859-1", "", ""],
            ["UTF-8", "", ""],
            ["", "", ""],
        ] {
            assert!(!utf8(values), "{values:?}");
        }
        assert!(!has_utf8([None, None, None]));
    }

    #[test]
    fn whatever_the_pieces_are_the_octets_are_ascii_and_nothing_is_lost() {
        let text = "1 µs ──► s1 … é 東";
        let octets = text.as_bytes();
        for size in 1..=octets.len() {
            let mut people = People::with(Vec::new(), false);
            for piece in octets.chunks(size) {
                people.write_all(piece).unwrap();
            }
            let said = String::from_utf8(people.out).unwrap();
            assert_eq!(said, printable::ascii(text), "pieces of {size}");
        }
        let mut people = People::with(Vec::new(), false);
        people.write_all(b"a\xffb\xc3").unwrap();
        people.write_all(b"\xa9\xc3x\xc3").unwrap();
        people.write_all(b"y").unwrap();
        assert_eq!(people.out, b"a?b\\u{e9}?x?y");
        let mut people = People::with(Vec::new(), true);
        people.write_all(octets).unwrap();
        assert_eq!(people.out, octets);
    }
}
