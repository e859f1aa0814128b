//! Findings about a lab file: the mistake, its place, and a hint.
//!
//! Checks continue after a mistake wherever possible, so that one run shows all mistakes.

use crate::printable;
use crate::yaml_11;
use aerostat_wire::counted;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// Limit of shown characters of a line, around the place of the finding.
const SHOWN: usize = 160;
/// Limit of shown findings. If there are more, their number is shown, and errors come before warnings. Findings beyond
/// it get no suggestion, because to look for a near word among all names of a file for each of them takes too long.
const MOST: usize = 100;

/// A stretch of one source: octets `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Index of the source: 0 is the file, the others are `--set` options in order.
    pub source: usize,
    /// First octet.
    pub start: usize,
    /// One past the last octet.
    pub end: usize,
}

/// A text that spans refer to.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// A path, or `--set` and its argument.
    pub(crate) name: String,
    /// The text.
    pub(crate) text: Arc<str>,
    /// Offsets of its lines.
    lines: Arc<[usize]>,
    /// True for a file, whose findings have line and column.
    is_file: bool,
}

impl Source {
    fn new(name: String, text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            name,
            lines: std::iter::once(0).chain(ends).collect(),
            text: text.into(),
            is_file: false,
        }
    }

    /// The number of the line of an octet, from 0, and where the line begins.
    fn line(&self, at: usize) -> (usize, usize) {
        let number = self.lines.partition_point(|begin| *begin <= at).max(1) - 1;
        (number, self.lines.get(number).copied().unwrap_or_default())
    }
}

/// Severity of a finding: errors keep the lab from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The lab is refused.
    Error,
    /// The lab works, but probably not as intended.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The place.
    pub at: Span,
    /// The mistake, in one sentence without a full stop.
    pub message: String,
    /// A hint for correction, if the finding has one.
    pub hint: Option<String>,
    /// Another relevant place, with the reason.
    pub see: Option<(Span, String)>,
    /// Parts of the file that the finding depends on.
    pub(crate) rests: Vec<Rest>,
    /// A valid value that can stand here while the rest of the file is checked, if such a value is known.
    pub(crate) sample: Option<String>,
    /// True for findings after the first [`MOST`] ones.
    late: bool,
}

/// A part of the file that a finding depends on. Without this part, the finding may follow from another mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The definition of a node, subnet or link with this name.
    Name(String),
    /// A link with this name, which may consist of the names of its ends.
    Link(String),
    /// A path of keys and indices, from the section at this place or from the top of the file. `*` stands for any key
    /// or index; `.` at the end for the whole entry.
    Path(Option<Span>, String),
}

/// All findings about one lab, in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    sources: Vec<Source>,
    /// By their places; of those at one place, the first one that was found comes first.
    list: BTreeMap<(Span, usize), Diagnostic>,
    errors: usize,
    /// Keys that a tool for YAML 1.1 has changed: the place of the warning about all of them, and their number.
    changed_keys: Option<(Span, usize)>,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Name of the text.
    pub source: &'a str,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

impl Diagnostics {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let mut diagnostics = Self::default();
        diagnostics.add_file(name.to_owned(), text);
        diagnostics
    }
    /// The path of a file that is named relative to the lab file.
    pub(crate) fn beside(&self, file: &str) -> std::path::PathBuf {
        let lab = self.sources.first().map(|source| source.name.as_str());
        let lab = std::path::Path::new(lab.unwrap_or_default());
        lab.parent()
            .map_or_else(|| file.into(), |directory| directory.join(file))
    }
    /// Adds a text for spans to refer to, and returns its index.
    pub(crate) fn add_file(&mut self, name: String, text: &str) -> usize {
        let number = self.add_source(name, text);
        self.sources[number].is_file = true;
        number
    }
    /// The name of the file that has all errors; `None` if there are several, or none.
    #[must_use]
    pub fn wrong_file(&self) -> Option<&str> {
        let mut errors = self
            .iter()
            .filter(|found| found.severity == Severity::Error);
        let first = errors.next()?.at.source;
        let source = &self.sources[first];
        let alone = source.is_file && errors.all(|found| found.at.source == first);
        alone.then_some(&source.name)
    }
    /// Adds a text that is no file, such as a command-line option.
    pub(crate) fn add_source(&mut self, name: String, text: &str) -> usize {
        self.sources.push(Source::new(name, text));
        self.sources.len() - 1
    }
    /// Adds an error; the result can be given a hint.
    pub(crate) fn error(&mut self, at: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.add(Severity::Error, at, message.into())
    }
    /// Adds a warning; the result can be given a hint.
    pub(crate) fn warning(&mut self, at: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.add(Severity::Warning, at, message.into())
    }
    fn add(&mut self, severity: Severity, at: Span, message: String) -> &mut Diagnostic {
        let late = self.list.len() >= MOST;
        let found = Diagnostic {
            severity,
            at,
            message,
            hint: None,
            see: None,
            rests: Vec::new(),
            sample: None,
            late,
        };
        self.insert(found)
    }
    fn insert(&mut self, found: Diagnostic) -> &mut Diagnostic {
        self.errors += usize::from(found.severity == Severity::Error);
        // Findings are never removed, so this number is new.
        let number = self.list.len();
        self.list.entry((found.at, number)).or_insert(found)
    }
    /// True if the text at this place begins with a quotation mark.
    pub(crate) fn is_quoted(&self, at: Span) -> bool {
        let source = self.sources.get(at.source);
        let rest = source.and_then(|source| source.text.get(at.start..));
        rest.is_some_and(|rest| rest.starts_with(['"', '\'']))
    }
    /// Warns of a key that a tool for YAML 1.1 has changed from `before` to `now`. One warning counts all of them.
    pub(crate) fn changed_key(&mut self, at: Span, now: &str, before: &str) {
        const WRITTEN: &str = ": a tool for YAML 1.1 has written it";
        let (place, count) = self.changed_keys.unwrap_or((at, 0));
        let count = count + 1;
        self.changed_keys = Some((place, count));
        let others = match count - 1 {
            0 => String::new(),
            more => format!(
                ", and {} like this",
                counted(more, "other key", "other keys")
            ),
        };
        let text = format!("'{now}' is read as '{before}'{others}{WRITTEN}");
        let mut here = self.list.range_mut((place, 0)..=(place, usize::MAX));
        let known = here.find_map(|(_, found)| found.message.ends_with(WRITTEN).then_some(found));
        match known {
            Some(found) => found.message = text,
            None => {
                self.warning(place, text).hint(format!(
                    "write \"{before}\" in quotes, and labels such as \"0.320\", too: such tools change plain texts"
                ));
            }
        }
    }
    /// No findings yet, about the same texts.
    pub(crate) fn empty(&self) -> Self {
        Self {
            sources: self.sources.clone(),
            ..Self::default()
        }
    }
    /// Adds a finding about the same texts.
    pub(crate) fn adopt(&mut self, found: Diagnostic) {
        self.insert(found);
    }
    /// True if the lab is refused.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }
    /// Number of findings of this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        match severity {
            Severity::Error => self.errors,
            Severity::Warning => self.list.len() - self.errors,
        }
    }
    /// The findings.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.values()
    }
    /// The start of a span.
    #[must_use]
    pub fn locate(&self, at: Span) -> Location<'_> {
        let source = &self.sources[at.source];
        let start = floor_boundary(&source.text, at.start);
        let (line, begin) = source.line(start);
        Location {
            source: &source.name,
            line: line + 1,
            column: source.text[begin..start].chars().count() + 1,
        }
    }
    fn quote(&self, f: &mut fmt::Formatter<'_>, at: Span) -> fmt::Result {
        let source = &self.sources[at.source];
        let text = &source.text;
        let start = floor_boundary(text, at.start);
        let (number, begin) = source.line(start);
        let line = number + 1;
        let marked = text[start..floor_boundary(text, at.end.max(start))]
            .lines()
            .next()
            .unwrap_or("")
            .trim_end();
        // Of a long line only the part around the place is shown.
        let content = text[begin..].lines().next().unwrap_or("");
        let long = content.chars().nth(SHOWN).is_some();
        let left = if long { SHOWN / 2 } else { SHOWN };
        let known = &text[begin..start];
        let cut = known.char_indices().rev().take(left).last();
        let before = cut.map_or("", |(at, _)| &known[at..]);
        let dots = if before.len() < known.len() {
            "..."
        } else {
            ""
        };
        let from_here = &content[(start - begin).min(content.len())..];
        let rest = printable::start(from_here, SHOWN - before.chars().count());
        let marked: String = (marked.chars()).take(rest.chars().count().max(1)).collect();
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        // Tabs stay tabs in the row of carets, so that the columns agree on any terminal.
        let tab = |c: char| if c == '\t' { '\t' } else { ' ' };
        let shown = |text: &str| match f.alternate() {
            true => printable::ascii(&printable::lines(text)).into_owned(),
            false => printable::lines(text).into_owned(),
        };
        let (before, rest) = (format!("{dots}{}", shown(before)), shown(&rest));
        let width = shown(&marked).chars().count().max(1);
        let lead: String = before.chars().map(tab).collect();
        writeln!(f, " {number} | {before}{rest}")?;
        writeln!(f, " {gutter} | {lead}{}", "^".repeat(width))
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

impl Diagnostic {
    /// Adds a hint.
    pub(crate) fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }
    /// Adds another relevant place.
    pub(crate) fn see(&mut self, at: Span, why: impl Into<String>) -> &mut Self {
        self.see = Some((at, why.into()));
        self
    }
    /// Names parts of the file, from its top, that the finding depends on; see [`Rest::Path`].
    pub(crate) fn rests_on<'a>(&mut self, paths: impl IntoIterator<Item = &'a str>) -> &mut Self {
        let paths = paths.into_iter().map(str::to_owned);
        self.rests.extend(paths.map(|path| Rest::Path(None, path)));
        self
    }
    /// Names keys of a section that the finding depends on.
    pub(crate) fn rests_in<'a>(
        &mut self,
        section: Span,
        keys: impl IntoIterator<Item = &'a str>,
    ) -> &mut Self {
        let keys = keys.into_iter().map(str::to_owned);
        let keys = keys.map(|key| Rest::Path(Some(section), key));
        self.rests.extend(keys);
        self
    }
    /// The finding depends on the definition of a node or subnet with this name.
    pub(crate) fn rests_on_name(&mut self, name: &str) -> &mut Self {
        self.rests.push(Rest::Name(name.to_owned()));
        self
    }
    /// The finding depends on the definition of a link with this name.
    pub(crate) fn rests_on_link(&mut self, name: &str) -> &mut Self {
        self.rests.push(Rest::Link(name.to_owned()));
        self
    }
    /// Adds "did you mean ...", or else the list of known words.
    pub(crate) fn suggest<'a>(
        &mut self,
        wrong: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> &mut Self {
        if self.late {
            return self;
        }
        let known: Vec<&str> = known.into_iter().collect();
        let before = yaml_11::written_as(wrong);
        if let Some(name) = before.iter().find(|name| known.contains(name)) {
            self.hint = Some(format!(
                "did you mean '{name}'? A tool for YAML 1.1 writes {wrong} for it, unless it is in quotes"
            ));
        } else if let Some(best) = nearest(wrong, &known) {
            self.hint = Some(format!("did you mean '{best}'?"));
        } else if !known.is_empty() && known.len() <= 24 {
            self.hint = Some(format!("known: {}", known.join(", ")));
        }
        self
    }
}

impl fmt::Display for Diagnostics {
    /// Every finding with its place, the line and a caret, which `{:#}` shows in ASCII. If there are very many: the
    /// first ones, errors before warnings, and their number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.count(Severity::Error);
        let mut room = [MOST, MOST.saturating_sub(errors)];
        for finding in self.iter() {
            let room = match finding.severity {
                Severity::Error => &mut room[0],
                Severity::Warning => &mut room[1],
            };
            if *room > 0 {
                *room -= 1;
                self.show(f, finding)?;
            }
        }
        match self.list.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => writeln!(
                f,
                "... and {more} more; the first {MOST} are shown, errors first"
            ),
        }
    }
}

impl Diagnostics {
    fn show(&self, f: &mut fmt::Formatter<'_>, finding: &Diagnostic) -> fmt::Result {
        let Location {
            source,
            line,
            column,
        } = self.locate(finding.at);
        let what = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut place = printable::start(&printable::line(source), SHOWN).into_owned();
        // A command-line option has one line only, so its text shows the place.
        if self.sources[finding.at.source].is_file {
            place = printable::line(source).into_owned();
            write!(place, ":{line}:{column}")?;
        }
        writeln!(f, "{place}: {what}: {}", printable::line(&finding.message))?;
        self.quote(f, finding.at)?;
        if let Some((at, why)) = &finding.see {
            let place = self.locate(*at).to_string();
            let (place, why) = (printable::line(&place), printable::line(why));
            writeln!(f, " = see {place}: {why}")?;
        }
        if let Some(hint) = &finding.hint {
            writeln!(f, " = help: {}", printable::line(hint))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The known word nearest to `wrong`, if it is near enough to be a typing error. Edits are to insert, delete or replace
/// a character, and to swap neighbours; case does not count.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).max(1);
    let wrong = wrong.to_lowercase();
    known
        .iter()
        .map(|word| (strsim::osa_distance(&wrong, &word.to_lowercase()), *word))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words() {
        let known = ["asx200", "asx1000", "ls1010"];
        assert_eq!(nearest("asx20", &known), Some("asx200"));
        assert_eq!(nearest("sl1010", &known), Some("ls1010"));
        assert_eq!(nearest("catalyst", &known), None);
        assert_eq!(nearest("B", &["a", "b"]), Some("b"));
    }

    #[test]
    fn a_file_cannot_write_to_the_terminal_by_way_of_its_errors() {
        let text = "name: \x1b[31mx\u{202e}\x07y\n";
        let mut d = Diagnostics::new("e\x1b]0;t\x07\n.yml", text);
        let (source, start, end) = (0, 6, text.len() - 1);
        d.error(Span { source, start, end }, "'\x1b[31m\n': no")
            .hint("\x08");
        let said = d.to_string();
        assert!(
            !said.contains(|c| c != '\n' && printable::is_hidden(c)),
            "{said:?}"
        );
        assert_eq!(said.lines().count(), 4, "{said}");
        assert!(said.contains(r"'\u{1b}[31m\n': no"), "{said}");
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let text = format!("a: [{}!{}]", "x, ".repeat(700), "y, ".repeat(700));
        let start = text.find('!').unwrap();
        let mut d = Diagnostics::new("x", &text);
        let (source, end) = (0, start + 1);
        d.error(Span { source, start, end }, "no");
        let said = d.to_string();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.iter().all(|line| line.len() < 2 * SHOWN), "{said}");
        assert_eq!(lines[1].find('!'), lines[2].find('^'), "{said}");
    }

    #[test]
    fn of_thousands_of_findings_the_errors_come_first_and_the_rest_is_a_count() {
        let mut d = Diagnostics::new("x", &"a\n".repeat(2000));
        for n in 0..2000 {
            let (source, start, end) = (0, 2 * n, 2 * n + 1);
            let at = Span { source, start, end };
            if n < 1990 {
                d.warning(at, "hm");
            } else {
                d.error(at, "no");
            }
        }
        let said = d.to_string();
        assert_eq!(said.matches(": error: no").count(), 10);
        assert_eq!(said.matches(": warning: hm").count(), 90);
        assert!(
            said.ends_with("... and 1900 more; the first 100 are shown, errors first\n"),
            "{said}"
        );
    }

    /// Each kind of mistake 20 000 times, near names of as many others as a file may have: what is done for a mistake
    /// must not depend on the number of the others. Quadratic work took minutes here.
    #[test]
    fn twenty_thousand_mistakes_take_seconds_and_are_counted() {
        const MANY: usize = 20_000;
        let base = |hosts: usize| {
            let host = |n: usize| {
                let (a, b) = (n / 250, n % 250 + 1);
                format!("  host{n:05}: {{ on: s, elan: a, ip: 10.0.{a}.{b} }}\n")
            };
            let hosts: String = (0..hosts).map(host).collect();
            format!(
                "switches: {{ s: {{}} }}\nlane: {{ on: s, elans: {{ a: {{ subnet: 10.0.0.0/16 }} }} }}\nhosts:\n{hosts}"
            )
        };
        let list = |line: &dyn Fn(usize) -> String| -> String { (0..MANY).map(line).collect() };
        let near = |n: usize| format!("  - {{ at: 1s, crash: h0st{n:05} }}\n");
        let flow = |n: usize| {
            format!(
                "  - {{ name: f{n}, from: host00001, to: h0st{n:05}, kind: udp, rate: 1pps }}\n"
            )
        };
        for (text, least) in [
            (base(2) + &list(&|n| format!("key{n}: 1\n")), MANY),
            (
                base(2) + "capture: [" + &list(&|n| format!("x{n}, ")) + "]\n",
                MANY,
            ),
            (base(500) + "faults:\n" + &list(&near), MANY),
            (base(500) + "traffic:\n" + &list(&flow), 1),
            (base(2) + &list(&|_| "seed: 1\n".to_owned()), MANY - 2),
            (
                base(2) + "capture: [" + &list(&|_| "!x y, ".to_owned()) + "]\n",
                MANY,
            ),
        ] {
            let began = std::time::Instant::now();
            let found = crate::parse("many.atm.yml", &text, &[]).unwrap_err();
            let said = found.to_string();
            let took = began.elapsed();
            let count = found.count(Severity::Error);
            assert!(count >= least, "{count} of {}", &text[text.len() - 40..]);
            let shown = said.matches(": error: ").count();
            assert_eq!(shown, count.min(MOST));
            let more = format!("... and {} more; the first 100 are shown", count - shown);
            assert!(count <= MOST || said.contains(&more), "{said}");
            assert!(
                took.as_secs() < 30,
                "{took:?}: {}",
                &text[text.len() - 40..]
            );
        }
    }

    #[test]
    fn a_finding_shows_its_line() {
        let mut d = Diagnostics::new("x.atm.yml", "a: 1\nbé: [2, 3]\n");
        let at = Span {
            source: 0,
            start: 10,
            end: 11,
        };
        d.error(at, "no").hint("yes");
        assert_eq!(
            d.to_string(),
            "x.atm.yml:2:5: error: no\n 2 | bé: [2, 3]\n   |     ^\n = help: yes\n"
        );
        assert_eq!(
            format!("{d:#}"),
            "x.atm.yml:2:5: error: no\n 2 | b\\u{e9}: [2, 3]\n   |          ^\n = help: yes\n"
        );
    }
}
