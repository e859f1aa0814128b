//! Rules for sentences, in documents, in comments of the sources, and in the descriptions of the published schemas:
//! words that make a reader stop, and beginnings of comments that leave out their noun.

use crate::documents::{WIDTH, lines, pages, report};
use crate::{files, root};

/// Phrases that leave out their noun or that no standard uses, each with its remedy. Words are compared without case
/// and punctuation; `.` at the end of a phrase means that punctuation or the end of the paragraph follows.
const BANNED: &[(&str, &str)] = &[
    ("is none", "write 'there is no ...' with the noun"),
    ("are none", "write 'there are no ...' with the noun"),
    ("was none", "write 'there was no ...' with the noun"),
    ("were none", "write 'there were no ...' with the noun"),
    ("is one.", "repeat the noun"),
    ("are one.", "repeat the noun"),
    ("was one.", "repeat the noun"),
    ("nobody", "name the station, user or program that does not"),
    ("anybody", "name the station, user or program"),
    ("whoever", "name the station, user or program that does"),
    ("whomever", "name the station, user or program"),
    ("whosoever", "name the station, user or program that does"),
    ("who has it", "name the owner"),
    ("by himself", "write 'automatically', or name the protocol"),
    ("of its own accord", "write 'by itself', or name the event"),
    ("the own", "write 'its own', or name the owner"),
    ("for what it", "name the thing"),
    ("that it is not", "say what it is"),
    ("at hand", "write 'available'"),
    ("all the same", "write 'nevertheless', or leave it out"),
    ("a no", "write 'a refusal'"),
    ("thereof", "write 'of it', or repeat the noun"),
    ("whereof", "write 'of which'"),
    ("therein", "write 'in it'"),
    ("wherein", "write 'in which'"),
    ("thence", "write 'from there'"),
    ("whence", "write 'from where'"),
    ("hitherto", "write 'until now'"),
    ("heretofore", "write 'until now'"),
    ("notwithstanding", "write 'despite'"),
    ("none known", "leave the heading out"),
];

/// First words of a comment that stand in the place of its noun.
const OPENINGS: &[&str] = &[
    "What",
    "Which",
    "Who",
    "Whom",
    "Whose",
    "Whether",
    "Those",
    "Of what",
    "Of which",
    "Of whom",
    "By what",
    "By whom",
    "From what",
    "To what",
    "To whom",
    "For what",
    "For whom",
    "In what",
    "With what",
    "On what",
];

/// Words after which "but" in the same clause means "except".
const ALL_OR_NOTHING: &[&str] = &[
    "all",
    "anything",
    "anywhere",
    "any",
    "each",
    "every",
    "everything",
    "everywhere",
    "never",
    "no",
    "none",
    "nothing",
    "nowhere",
    "other",
    "others",
];

// The descriptions in the published schemas, each with its place.
fn descriptions() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root().join("docs")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".schema.json") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let schema = serde_json::from_str(&text).unwrap();
            descriptions_in(&schema, &format!("docs/{name}"), &mut all);
        }
    }
    assert!(all.len() > 100, "{} descriptions were found", all.len());
    all
}

fn descriptions_in(schema: &serde_json::Value, place: &str, all: &mut Vec<(String, String)>) {
    if let Some(text) = schema.get("description").and_then(|text| text.as_str()) {
        all.push((place.to_owned(), text.to_owned()));
    }
    for (key, part) in schema.as_object().into_iter().flatten() {
        descriptions_in(part, &format!("{place}/{key}"), all);
    }
    for part in schema.as_array().into_iter().flatten() {
        descriptions_in(part, place, all);
    }
}

/// The comments of a source file, as a page with the same numbers of lines: other lines are empty.
fn comments(source: &str) -> String {
    let mut page = String::new();
    for line in source.lines() {
        let text = line.trim_start().strip_prefix("//").unwrap_or_default();
        let text = text.strip_prefix(['/', '!']).unwrap_or(text);
        page.push_str(text.strip_prefix(' ').unwrap_or(text));
        page.push('\n');
    }
    page
}

/// The first lines of paragraphs in documentation of items and modules, with their numbers from 1.
fn openings(source: &str) -> Vec<(usize, &str)> {
    let (mut found, mut before) = (Vec::new(), "");
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let text = ["///", "//!"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let text = text.map(str::trim_start).unwrap_or_default();
        if before.is_empty() && !text.is_empty() {
            found.push((index + 1, text));
        }
        before = text;
    }
    found
}

/// The beginning that leaves out its noun, if the text has one.
fn without_noun(text: &str) -> Option<&'static str> {
    let begins = |opening: &&str| {
        let rest = text.strip_prefix(*opening);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '\''))
    };
    OPENINGS.iter().copied().find(begins)
}

/// One word of a paragraph: its line, its letters in lower case, and whether punctuation follows.
struct Word {
    line: usize,
    letters: String,
    ends: bool,
}

/// The paragraphs of a page, as words; headings, list items and cells of tables are paragraphs, too. Code between
/// backticks is one empty word.
fn paragraphs(text: &str) -> Vec<Vec<Word>> {
    let mut paragraphs = vec![Vec::new()];
    let mut quoted = false;
    for (number, line) in lines(text) {
        let start = line.trim_start();
        if start.is_empty() || start.starts_with(['#', '-', '*', '|']) {
            paragraphs.push(Vec::new());
            quoted = false;
        }
        for word in line.split_whitespace() {
            if word == "|" && !quoted {
                paragraphs.push(Vec::new());
                continue;
            }
            let opened = quoted;
            quoted ^= word.matches('`').count() % 2 == 1;
            let code = opened || quoted || word.contains('`');
            let letters = word.trim_matches(|c: char| !c.is_alphanumeric());
            let letters = if code { "" } else { letters };
            paragraphs.last_mut().unwrap().push(Word {
                line: number,
                letters: letters.to_lowercase(),
                ends: word.ends_with(['.', ',', ';', ':', ')', '?', '!']),
            });
        }
    }
    paragraphs
}

/// The line of each place where the phrase occurs within a sentence.
fn occurrences(paragraph: &[Word], phrase: &str) -> Vec<usize> {
    let (words, at_end) = match phrase.strip_suffix('.') {
        Some(words) => (words, true),
        None => (phrase, false),
    };
    let wanted: Vec<&str> = words.split(' ').collect();
    let last = paragraph.len();
    let mut found = Vec::new();
    for (start, window) in paragraph.windows(wanted.len()).enumerate() {
        let same = window.iter().zip(&wanted).all(|(w, p)| w.letters == *p);
        let inside = window.iter().rev().skip(1).all(|w| !w.ends);
        let ended = window.last().is_some_and(|w| w.ends) || start + wanted.len() == last;
        if same && inside && (ended || !at_end) {
            found.push(window[0].line);
        }
    }
    found
}

/// The lines with a "but" that means "except".
fn exceptions(paragraph: &[Word]) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, word) in paragraph.iter().enumerate() {
        let next = paragraph.get(at + 1).map(|next| &*next.letters);
        let clause = paragraph[..at]
            .iter()
            .rev()
            .take_while(|word| !word.ends)
            .take(7);
        let mut clause = clause.map(|word| &*word.letters);
        let excepts = next == Some("for") || clause.any(|word| ALL_OR_NOTHING.contains(&word));
        if word.letters == "but" && excepts {
            found.push(word.line);
        }
    }
    found
}

/// The places of bad phrases in a text, each with its remedy.
fn phrases(place: &str, text: &str) -> Vec<String> {
    let mut bad = Vec::new();
    for paragraph in paragraphs(text) {
        for (phrase, remedy) in BANNED {
            for line in occurrences(&paragraph, phrase) {
                let phrase = phrase.trim_end_matches('.');
                bad.push(format!("{place}:{line}: '{phrase}': {remedy}"));
            }
        }
        for line in exceptions(&paragraph) {
            bad.push(format!("{place}:{line}: 'but': write 'except'"));
        }
    }
    bad
}

#[test]
fn sentences_have_their_nouns_and_no_archaic_words() {
    let mut bad = Vec::new();
    let pages = pages().into_iter();
    let pages = pages.map(|(page, text)| (page.display().to_string(), text));
    for (place, text) in pages.chain(descriptions()) {
        bad.extend(phrases(&place, &text));
    }
    report(&bad);
}

#[test]
fn comments_begin_with_their_nouns_and_fit_an_editor() {
    let (mut read, mut bad) = (0, Vec::new());
    for (path, source) in files("rs") {
        let place = path.display().to_string();
        read += 1;
        bad.extend(phrases(&place, &comments(&source)));
        for (line, text) in openings(&source) {
            if let Some(opening) = without_noun(text) {
                bad.push(format!(
                    "{place}:{line}: '{opening}': begin with the noun, such as 'Limit of ...'"
                ));
            }
        }
        for (index, line) in source.lines().enumerate() {
            let comment = line.trim_start();
            let width = line.chars().count();
            // A row of a table cannot be broken.
            let table = comment.trim_start_matches(['/', '!']).starts_with(" |");
            if comment.starts_with("//") && !table && width > WIDTH {
                bad.push(format!(
                    "{place}:{}: {width} characters, at most {WIDTH}",
                    index + 1
                ));
            }
        }
    }
    assert!(read > 900, "{read} files");
    report(&bad);
}

#[test]
fn the_checks_of_sentences_find_what_they_are_for() {
    let text = "It is\nnone. `is none` is fine.\n\n```\nis none\n```\n| is none | is |\n| none | There is one |\n- There is one. One is\n- none";
    let found: Vec<usize> = paragraphs(text)
        .iter()
        .flat_map(|p| {
            let all = BANNED.iter().flat_map(|(phrase, _)| occurrences(p, phrase));
            all.collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(found, [1, 7, 8, 9]);
    let text = "All but one\ncame, and\nall came, but late. No\nstation but it. Slow but sure; as before, but for it.";
    let found: Vec<usize> = paragraphs(text)
        .iter()
        .flat_map(|p| exceptions(p))
        .collect();
    assert_eq!(found, [1, 4, 4]);
    for text in ["What it is.", "Who: a user.", "Of what it is made."] {
        assert!(without_noun(text).is_some(), "{text}");
    }
    for text in ["Whatever comes.", "Options.", "Whose's", "Offer."] {
        assert_eq!(without_noun(text), None, "{text}");
    }
    let source =
        "/// A thing.\n///\n/// What it is.\nfn f() {} // What\n    //! Begins\n    //! What\n";
    assert_eq!(
        openings(source),
        [(1, "A thing."), (3, "What it is."), (5, "Begins")]
    );
    assert_eq!(
        comments(source),
        "A thing.\n\nWhat it is.\n\nBegins\nWhat\n"
    );
}
