//! The page: of a run as a file (`run --view FILE.html`), and of a running lab by a server (`aerostat view`).
//!
//! One text has all: skeleton, style sheet and script from the folder `page`, and what a reader without scripts sees.
//! The script reads the stream of events, and nothing else: in a file the stream is a part of the text, and no request
//! goes anywhere; the page of a running lab gets it from its server.
//!
//! **Names are text.** A lab file may come from any author. What is written here is escaped for HTML, and the stream
//! for a `<script>`: no character of it can end the element.

use crate::{Rows, escaped, signs};
use aerostat_lab::picture::Picture;
use aerostat_lab::printable;
use aerostat_lab::stream::Stream;
use serde_json::{Value, json};
use std::fmt::Write as _;

const SKELETON: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const BOOT: &str = include_str!("page/boot.js");

/// The files of the script, in the order in which they are joined.
macro_rules! scripts {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("page/", $name)))),+]
    };
}
const SCRIPTS: &[(&str, &str)] = scripts! {
    "text.js"
    "stream.js"
    "model.js"
    "geometry.js"
    "networks.js"
    "shapes.js"
    "painter.js"
    "threads.js"
    "view.js"
    "drawing.js"
    "marks.js"
    "clock.js"
    "timeline.js"
    "list.js"
    "ladder.js"
    "plots.js"
    "tables.js"
    "inspector.js"
    "keys.js"
    "export.js"
    "main.js"
};
/// Further files for a running lab. A recorded page makes no request.
const LIVE: &[(&str, &str)] = scripts! {
    "acts.js"
    "live.js"
};

/// Limit of steps of the story for readers without scripts.
const MOST_STEPS: usize = 1000;
/// Limit of messages for them.
const MOST_MESSAGES: usize = 200;

/// A marker of the skeleton and the text in its place.
pub type Filled<'a> = (&'a str, &'a str);

/// Contents of a page.
#[derive(Debug)]
pub struct Contents<'a> {
    /// Name of the lab.
    pub lab: &'a str,
    /// The drawing of the network as an element of HTML; `None` if the network is too large for one.
    pub drawing: Option<String>,
    /// The results for people.
    pub tables: &'a [Rows],
    /// The events.
    pub stream: &'a Stream,
}

impl Contents<'_> {
    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let (story, ladder) = self.told();
        let texts = [
            ("<!--TITLE-->", &*html(self.lab)),
            ("/*CONNECT*/", ""),
            ("<!--DRAWING-->", &drawing(self.drawing.clone())),
            ("<!--STORY-->", &story),
            ("<!--TABLES-->", &tables(self.tables)),
            ("<!--LADDER-->", &ladder),
            ("/*STREAM*/", &embedded(self.stream.lines())),
        ];
        with_scripts(&[], &texts)
    }

    /// The main steps of the story and the first messages.
    fn told(&self) -> (String, String) {
        let (mut story, mut ladder) = (String::new(), String::new());
        let (mut steps, mut messages) = (0, 0);
        for line in self.stream.lines() {
            // Most lines are of another kind.
            let is = |kind: &str| line.starts_with(&format!("{{\"is\":\"{kind}\""));
            if is("story") {
                let line: Value = serde_json::from_str(line).unwrap_or_default();
                if line["milestone"] == true {
                    steps += 1;
                    if steps <= MOST_STEPS {
                        step(&mut story, &line);
                    }
                }
            } else if is("message") {
                messages += 1;
                if messages <= MOST_MESSAGES {
                    let line = serde_json::from_str(line).unwrap_or_default();
                    rung(&mut ladder, &line);
                }
            }
        }
        let more = |all: usize, most: usize, what: &str| match all.saturating_sub(most) {
            0 => String::new(),
            more => format!("<p>and {more} more {what}</p>"),
        };
        let heads = ["time", "from", "to", "VC", "protocol", "message"];
        let heads = heads
            .map(|head| format!("<th scope=\"col\">{head}</th>"))
            .concat();
        let ladder = format!(
            "<table class=\"ladder\"><thead><tr>{heads}</tr></thead>\n<tbody>{ladder}</tbody></table>\n{}",
            more(messages, MOST_MESSAGES, "messages")
        );
        let story = format!(
            "<ol class=\"story\">{story}</ol>\n{}",
            more(steps, MOST_STEPS, "steps")
        );
        (story, ladder)
    }
}

/// The page of a running lab, whose script gets the stream from the server of the page.
#[must_use]
pub fn live(lab: &str, picture: &Picture) -> String {
    let note = "<p>It comes with scripts alone.</p>";
    let live = json!({ "is": "live", "lab": lab }).to_string();
    let texts = [
        ("<!--TITLE-->", &*html(lab)),
        ("/*CONNECT*/", "; connect-src 'self'"),
        ("<!--DRAWING-->", &drawing(crate::drawing::inline(picture))),
        ("<!--STORY-->", note),
        ("<!--TABLES-->", "<p>'aerostat down' shows the results.</p>"),
        ("<!--LADDER-->", note),
        ("/*STREAM*/", &embedded([&*live].into_iter())),
    ];
    with_scripts(LIVE, &texts)
}

/// The page of a lab that is not there at the moment: it loads itself again.
#[must_use]
pub fn absent(lab: &str, why: &str) -> String {
    let (lab, why) = (html(lab), html(why));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"1\">\
         <link rel=\"icon\" href=\"data:,\"><title>{lab}</title></head>\n\
         <body><h1>{lab}</h1><p role=\"alert\">{why}. This page shows the lab as soon as it runs again.</p></body></html>\n"
    )
}

/// The skeleton with style sheet, scripts and `more` of them, and these texts.
fn with_scripts(more: &[Filled<'_>], texts: &[Filled<'_>]) -> String {
    let scripts: Vec<&str> = SCRIPTS.iter().chain(more).map(|(_, text)| *text).collect();
    let (rules, kinds, scripts) = (signs::rules(), signs::data(), scripts.join("\n"));
    let mut all = vec![
        ("/*SIGNS*/", &*rules),
        ("/*CSS*/", STYLE),
        ("/*BOOT*/", BOOT),
        ("/*KINDS*/", &*kinds),
        ("/*SCRIPT*/", &*scripts),
    ];
    all.extend(texts);
    fill(SKELETON, &all)
}

/// The drawing for readers without scripts.
fn drawing(drawing: Option<String>) -> String {
    let none = "<p>The network is too large for a drawing without scripts.</p>";
    drawing.unwrap_or_else(|| none.to_owned())
}

fn step(story: &mut String, line: &Value) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        story,
        "<li><time>{}</time> <b>{}</b> {}</li>",
        seconds(&line["t"]),
        field(line, "node"),
        field(line, "text")
    );
}

fn rung(ladder: &mut String, line: &Value) {
    let dropped = match line["dropped"].as_str() {
        Some(why) => format!(" dropped: {}", html(why)),
        None => String::new(),
    };
    let _ = writeln!(
        ladder,
        "<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}{dropped}</td></tr>",
        seconds(&line["t"]),
        field(line, "from"),
        field(line, "to"),
        field(line, "vc"),
        field(line, "protocol"),
        field(line, "text"),
    );
}

fn field(line: &Value, key: &str) -> String {
    html(line[key].as_str().unwrap_or_default())
}

/// Nanoseconds as seconds with microseconds, as in the story of a run.
fn seconds(t: &Value) -> String {
    let t = t.as_u64().unwrap_or_default();
    format!("{:.6}", t as f64 / 1e9)
}

/// Tables of results.
fn tables(tables: &[Rows]) -> String {
    let mut text = String::new();
    for table in tables.iter().filter(|table| !table.rows.is_empty()) {
        let heads = table.columns.iter();
        let heads = heads.map(|head| format!("<th scope=\"col\">{}</th>", html(head)));
        let heads: String = heads.collect();
        let title = html(&table.title);
        let _ = writeln!(
            text,
            "<h3>{title}</h3>\n<table><thead><tr>{heads}</tr></thead>\n<tbody>"
        );
        for row in &table.rows {
            let cells = row.iter().map(|cell| match cell {
                Value::Null => "<td></td>".to_owned(),
                Value::String(text) => format!("<td>{}</td>", html(text)),
                other => format!("<td class=\"n\">{}</td>", html(&other.to_string())),
            });
            let cells: String = cells.collect();
            let _ = writeln!(text, "<tr>{cells}</tr>");
        }
        text.push_str("</tbody></table>\n");
    }
    text
}

/// The text for HTML, also in an attribute. Characters that have no shape are shown as escapes, as on a terminal.
fn html(text: &str) -> String {
    escaped(&printable::line(text))
}

/// The stream for a `<script>`: its lines as they are, but without characters that HTML or JavaScript could take for
/// something else. They stand in strings of JSON alone, where an escape means the same.
fn embedded<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines {
        for c in line.chars() {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    let _ = write!(text, "\\u{:04x}", u32::from(c));
                }
                _ => text.push(c),
            }
        }
        text.push('\n');
    }
    text
}

/// A skeleton with texts in the places of its markers. Markers in the texts mean nothing.
#[must_use]
pub fn fill(skeleton: &str, texts: &[Filled<'_>]) -> String {
    let mut filled = String::new();
    let mut rest = skeleton;
    loop {
        let found = texts
            .iter()
            .filter_map(|(marker, text)| Some((rest.find(marker)?, marker, text)));
        let Some((at, marker, text)) = found.min_by_key(|(at, _, _)| *at) else {
            break;
        };
        filled.push_str(&rest[..at]);
        filled.push_str(text);
        rest = &rest[at + marker.len()..];
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_of_the_folder_is_in_the_page_once_and_ends_no_element() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page");
        let files = std::fs::read_dir(folder).expect("the folder");
        let names = files.map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        let mut there: Vec<String> = names
            .filter(|name| name.ends_with(".js") && name != "boot.js")
            .collect();
        let all = || SCRIPTS.iter().chain(LIVE);
        let mut joined: Vec<&str> = all().map(|(name, _)| *name).collect();
        there.sort_unstable();
        joined.sort_unstable();
        assert_eq!(there, joined);
        for (name, text) in all().chain(&[("boot.js", BOOT)]) {
            assert!(!text.contains("</script"), "{name}");
        }
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn a_marker_in_a_text_means_nothing() {
        let texts = [("<!--A-->", "<!--B-->"), ("<!--B-->", "b")];
        assert_eq!(
            fill("1<!--A-->2<!--B-->3<!--A-->", &texts),
            "1<!--B-->2b3<!--B-->"
        );
    }
}
