//! Safe output of untrusted text on a terminal.
//!
//! A lab file may come from any source, and messages repeat names and values of it. Control characters would move the
//! cursor, or change colours or the window's title. Characters that change the writing direction, or that are
//! invisible, would hide the actual text. Both kinds are shown as escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True for a character that must not reach a terminal: control characters, and format characters of Unicode (category
/// Cf) that change the writing direction or have no width.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text in one line: characters that must not reach a terminal become escapes (`\n`, `\t`, `\u{1b}`).
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, &[])
}

/// Like [`line()`], but line ends and tabs stay.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, &['\n', '\t'])
}

fn escaped<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let bad = |c: char| is_hidden(c) && !kept.contains(&c);
    if !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            _ if !bad(c) => write!(out, "{c}"),
            '\n' | '\r' | '\t' => write!(out, "{}", c.escape_default()),
            _ => write!(out, "{}", c.escape_unicode()),
        };
    }
    Cow::Owned(out)
}

/// The text in ASCII, for readers whose locale has no other characters. Signs that the program itself writes become
/// their usual stand-ins, of the same width where there are such (`-->`, `us`). Any other character becomes an escape
/// (`\u{e9}`).
#[must_use]
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match stand_in(c) {
            Some(stand_in) => out.push_str(stand_in),
            None if c.is_ascii() => out.push(c),
            None => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// ASCII text for a sign; `None` for letters, and for ASCII.
const fn stand_in(c: char) -> Option<&'static str> {
    Some(match c {
        'µ' | 'μ' => "u",
        '─' | '━' | '‐' | '‑' | '–' | '—' | '−' => "-",
        '│' | '┃' => "|",
        '►' | '▶' => ">",
        '◄' | '◀' => "<",
        '→' => "->",
        '←' => "<-",
        '·' => ".",
        '•' => "*",
        '…' => "...",
        '×' => "x",
        '±' => "+/-",
        '≤' => "<=",
        '≥' => ">=",
        '≠' => "!=",
        '≈' => "~",
        '²' => "2",
        '³' => "3",
        '“' | '”' | '„' => "\"",
        '‘' | '’' => "'",
        '§' => "section ",
        '\u{a0}' | '\u{2009}' | '\u{202f}' => " ",
        '█' => "#",
        '░' => ".",
        _ => return None,
    })
}

/// The first `most` characters of a text, with a mark if it has more.
pub(crate) fn start(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((cut, _)) => Cow::Owned(format!("{}...", &text[..cut])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(line("a\x1b[31mb\x07"), "a\\u{1b}[31mb\\u{7}");
        assert_eq!(line("\u{202e}x\u{9b}2J\r\n"), "\\u{202e}x\\u{9b}2J\\r\\n");
        assert_eq!(lines("a\n\tb\x08"), "a\n\tb\\u{8}");
        // Letters of all scripts are harmless.
        for text in ["é", "ö 東京", "עברית", "1 µs"] {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(
            ascii("1 µs ──► s1, ≤ 5 × 3 … é"),
            "1 us --> s1, <= 5 x 3 ... \\u{e9}"
        );
        assert!(matches!(ascii("a\tb"), Cow::Borrowed(_)));
        assert_eq!(start("äbc", 2), "äb...");
        assert_eq!(start("äbc", 3), "äbc");
    }
}
