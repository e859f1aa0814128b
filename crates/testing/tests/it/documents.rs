//! Rules for the documents that no compiler checks: the width of a line, lists, links, and names of files, tests,
//! crates and decisions. `english.rs` has the rules for sentences.
//!
//! Prose means everything except code blocks, tables and parts that a program generates.

use crate::{files, metadata, root};
use std::path::{Path, PathBuf};

/// The longest line of prose or of a comment, in characters. The target of a link does not count, as it cannot be
/// broken.
pub(crate) const WIDTH: usize = 120;

/// Every Markdown file of the repository, by its path from the root.
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    let pages = files("md");
    assert!(pages.len() > 20, "only {} pages were found", pages.len());
    pages
}

/// The lines with their numbers from 1. A line of a code block is empty, so that it ends a paragraph.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (index + 1, if fence || code { "" } else { line })
    })
}

/// The lines of prose with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut generated = false;
    lines(text).filter(move |(_, line)| {
        generated |= *line == "<!-- tables -->";
        generated &= *line != "<!-- end -->";
        !(generated || line.starts_with('|'))
    })
}

/// The line without the targets of its links.
fn without_targets(line: &str) -> String {
    let mut rest = line;
    let mut shown = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    shown + rest
}

/// The anchor that a heading has on the usual hosts: lower case, hyphens for spaces, no other punctuation.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[track_caller]
pub(crate) fn report(mistakes: &[String]) {
    let count = mistakes.len();
    assert!(
        mistakes.is_empty(),
        "{count} places:\n{}",
        mistakes.join("\n")
    );
}

#[test]
fn lines_of_prose_fit_an_editor() {
    let mut long = Vec::new();
    for (page, text) in pages() {
        for (line, text) in prose(&text) {
            let width = without_targets(text).chars().count();
            if width > WIDTH {
                let page = page.display();
                long.push(format!(
                    "{page}:{line}: {width} characters, at most {WIDTH}"
                ));
            }
        }
    }
    report(&long);
}

/// Reason why a line of prose breaks a list, if it does. `before` is the line in front of it.
fn broken_list(before: &str, line: &str) -> Option<&'static str> {
    let number = |word: &str| {
        let digits = word.strip_suffix(['.', ')']).unwrap_or_default();
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    let mark = |word: &str| ["-", "*", "+"].contains(&word);
    // Code between backticks has its own marks.
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
    let words: Vec<&str> = prose.split_whitespace().collect();
    let inside = words.windows(3).any(|words| {
        let ends = words[0].ends_with([':', '.', ';']) && !number(words[0]);
        ends && (mark(words[1]) || number(words[1])) && !words[2].is_empty()
    });
    if inside {
        return Some("items of a list stand inside a paragraph");
    }
    let begins = words.first().is_some_and(|word| number(word));
    let goes_on = before.trim().split(' ').next().is_some_and(|word| {
        !word.is_empty() && !number(word) && !before.starts_with([' ', '#', '|'])
    });
    let listed = before.trim_end().ends_with([':', '.']);
    (begins && goes_on && !listed)
        .then_some("a number at the beginning of this line makes it an item of a list")
}

#[test]
fn items_of_lists_stand_on_lines_of_their_own() {
    let mut broken = Vec::new();
    for (page, text) in pages() {
        let mut before = "";
        for (number, line) in lines(&text) {
            let table = line.starts_with('|');
            if let Some(why) = broken_list(before, line).filter(|_| !table) {
                broken.push(format!("{}:{number}: {why}", page.display()));
            }
            before = line;
        }
    }
    report(&broken);
    for (before, line) in [
        (
            "Most would be",
            "misses: - `a/1`: no network. 5.2 is fine. - `b`",
        ),
        ("", "Three steps: 1. Go. 2. Come."),
        ("refuses with cause", "78. The leaves carry AAL5."),
    ] {
        assert!(broken_list(before, line).is_some(), "{line}");
    }
    for (before, line) in [
        ("Three steps:", "1. Go there."),
        ("1. Go there.", "2. Come back - if you can."),
        ("", "A range - from 1 to 2 - is fine: `a: - b`."),
        ("", "- an item: one. Two"),
    ] {
        assert_eq!(broken_list(before, line), None, "{line}");
    }
}

#[test]
fn links_of_documents_lead_to_files_and_headings_that_exist() {
    let mut broken = Vec::new();
    for (page, text) in pages() {
        for (line, shown) in lines(&text) {
            for (at, opening) in shown.match_indices("](") {
                let target = &shown[at + opening.len()..];
                let target = target.split_once(')').map_or(target, |(target, _)| target);
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let folder = page.parent().unwrap_or(Path::new(""));
                let file = match file {
                    "" => root().join(&page),
                    file => root().join(folder).join(file),
                };
                let there = match std::fs::read_to_string(&file) {
                    Ok(text) => {
                        let mut headings = text.lines().filter(|line| line.starts_with('#'));
                        heading.is_empty() || headings.any(|line| anchor(line) == heading)
                    }
                    Err(_) => file.is_dir() && heading.is_empty(),
                };
                if !there {
                    broken.push(format!("{}:{line}: no '{target}'", page.display()));
                }
            }
        }
    }
    report(&broken);
}

/// Pages of `docs` that the contents of the book (`docs/SUMMARY.md`) name, each as often as they stand there.
fn contents(summary: &str) -> Vec<&str> {
    let targets = summary.split("](").skip(1);
    targets.filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn every_page_of_docs_stands_in_the_contents_of_the_book_once() {
    let mut listed = Vec::new();
    let mut expected = Vec::new();
    for (page, text) in pages() {
        let Ok(path) = page.strip_prefix("docs") else {
            continue;
        };
        if path == Path::new("SUMMARY.md") {
            listed.extend(contents(&text).into_iter().map(PathBuf::from));
        } else {
            expected.push(path.to_owned());
        }
    }
    listed.sort();
    expected.sort();
    assert!(expected.len() > 60, "only {} pages", expected.len());
    assert_eq!(listed, expected);
}

#[test]
fn the_checks_of_documents_find_what_they_are_for() {
    assert_eq!(without_targets("see [a](b.md#c), [d](e)."), "see [a, [d.");
    assert_eq!(
        anchor("## Entries of `pvcs:`, and more"),
        "entries-of-pvcs-and-more"
    );
    assert_eq!(
        contents("- [A](a.md)\n    - [B](b/c.md)\n# D"),
        ["a.md", "b/c.md"]
    );
}

/// The entries of docs/decisions.md in one line each, as date, title and text.
fn decisions() -> Vec<(String, String, String)> {
    let page = std::fs::read_to_string(root().join("docs/decisions.md")).unwrap();
    let mut entries: Vec<String> = Vec::new();
    for line in page.lines() {
        match (line.strip_prefix("- **"), entries.last_mut()) {
            (Some(begin), _) => entries.push(begin.to_owned()),
            (None, Some(entry)) => *entry = format!("{entry} {}", line.trim()),
            (None, None) => {}
        }
    }
    let split = |entry: String| {
        let (date, rest) = entry.split_once(" · ")?;
        let (title, text) = rest.split_once("**")?;
        Some((date.to_owned(), title.to_owned(), text.to_owned()))
    };
    entries.into_iter().filter_map(split).collect()
}

/// References of the form `DATE, "BEGINNING OF A TITLE"` in a text.
fn references(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, mark) in text.match_indices(", \"") {
        let date = text[..at].rsplit(' ').next().unwrap_or_default();
        let title = text[at + mark.len()..]
            .split('"')
            .next()
            .unwrap_or_default();
        if date.starts_with("20") {
            found.push((date, title));
        }
    }
    found
}

#[test]
fn decisions_that_were_replaced_name_the_entry_that_counts() {
    let entries = decisions();
    assert!(entries.len() > 150, "{} entries", entries.len());
    let (mut replaced, mut wrong) = (0, Vec::new());
    for (date, title, text) in &entries {
        let Some((_, by)) = text.split_once("**Replaced") else {
            continue;
        };
        replaced += 1;
        let names = references(by);
        if names.is_empty() {
            wrong.push(format!("{date} {title}: replaced by what?"));
        }
        for (day, name) in names {
            let mut counts = entries
                .iter()
                .filter(|(d, t, _)| d == day && t.starts_with(name));
            if counts.next().is_none() || day < date.as_str() {
                wrong.push(format!("{date} {title}: no later entry {day}, \"{name}\""));
            }
        }
    }
    assert!(replaced > 10, "{replaced} entries were replaced");
    report(&wrong);
}

/// Paths below `crates` that a text names: the first part is a crate, and braces list alternatives.
fn paths(span: &str) -> Vec<String> {
    let first = span.split('/').next().unwrap_or_default();
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-{},".contains(c);
    if !span.contains('/')
        || !span.chars().all(is_path)
        || !root().join("crates").join(first).is_dir()
    {
        return Vec::new();
    }
    match (span.split_once('{'), span.split_once('}')) {
        (Some((before, _)), Some((inside, behind))) => {
            let inside = &inside[before.len() + 1..];
            let one = |part| format!("{before}{part}{behind}");
            inside.split(',').map(one).collect()
        }
        _ => vec![span.to_owned()],
    }
}

/// The table "I want to change X" has a path in its second cell, and in its third one a path with the name of a test.
#[test]
fn files_and_tests_that_architecture_names_exist() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (mut named, mut named_tests, mut wrong) = (0, 0, Vec::new());
    for (number, line) in lines(&page) {
        let spans: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        for path in spans.iter().flat_map(|span| paths(span)) {
            named += 1;
            if !root().join("crates").join(&path).exists() {
                wrong.push(format!("ARCHITECTURE.md:{number}: no {path}"));
            }
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let &["", _, _, tests, ""] = &cells[..] else {
            continue;
        };
        // In the walks the third cell says what changes; only that of the map begins with a path.
        let mut spans = tests.split('`').skip(1).step_by(2).peekable();
        if !tests.starts_with('`') || spans.peek().is_none_or(|span| paths(span).is_empty()) {
            continue;
        }
        let mut text = String::new();
        for span in spans {
            if let [path] = &paths(span)[..] {
                let path = root().join("crates").join(path);
                text = std::fs::read_to_string(path).unwrap_or_default();
            } else if [format!("fn {span}("), format!("test(\"{span}\"")]
                .iter()
                .any(|name| text.contains(name))
            {
                named_tests += 1;
            } else {
                wrong.push(format!("ARCHITECTURE.md:{number}: no test {span}"));
            }
        }
    }
    assert!(
        named > 150 && named_tests >= 40,
        "{named} paths, {named_tests} tests"
    );
    report(&wrong);
}

#[test]
fn contributing_lists_every_crate() {
    let page = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 10, "{} packages", packages.len());
    let top = root().canonicalize().unwrap();
    for package in packages {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent();
        let folder = folder.unwrap().strip_prefix(&top).unwrap().display();
        assert!(page.contains(&format!("`{folder}`")), "no `{folder}`");
    }
}
