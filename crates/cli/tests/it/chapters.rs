//! The book as its readers use it: every command of its pages, in an empty directory.
//!
//! A page has files and commands. A block of YAML behind a paragraph that ends with a file's name and a colon is that
//! file. A block `console` has commands behind `$`, which the shell runs one after the other, and what each prints.
//! A line `…` stands for any number of lines. Commands behind `#` need root, and are not run here.
//!
//! With `UPDATE_EXPECTED=1` pictures, and outputs without such a line, are written into the pages.

use crate::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{env, fs, thread};

/// Stands for lines that a page leaves out.
const GAP: &str = "…";

/// A command of a page, with the number of its line and the lines that it prints.
struct Shown {
    line: usize,
    command: String,
    prints: Vec<String>,
}

/// A part of a page that a test acts on.
enum Part {
    File { name: String, text: String },
    Console(Vec<Shown>),
}

/// Name of the file that a paragraph promises: "Save this as `NAME.yml`:".
fn promised(paragraph: &str) -> Option<&str> {
    let name = paragraph
        .trim_end()
        .strip_suffix("`:")?
        .rsplit('`')
        .next()?;
    name.ends_with(".yml").then_some(name)
}

impl Shown {
    /// The page's lines with what the command printed in place of what they show; none if the page leaves lines out.
    fn corrected(&self, lines: &[String], printed: &str) -> Option<Vec<String>> {
        if self.prints.iter().any(|line| line.trim() == GAP) {
            return None;
        }
        let begin = self.line - 1 + self.command.lines().count();
        let printed = printed.lines().map(|line| line.trim_end().to_owned());
        let mut corrected = lines.to_vec();
        corrected.splice(begin..begin + self.prints.len(), printed);
        Some(corrected)
    }
}

/// A command goes on in the next line behind a backslash or inside a text.
fn goes_on(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}

fn commands<'a>(block: impl Iterator<Item = (usize, &'a str)>) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for (line, text) in block {
        match (text.strip_prefix("$ "), all.last_mut()) {
            (None, Some(last)) if last.prints.is_empty() && goes_on(&last.command) => {
                last.command = format!("{}\n{text}", last.command);
            }
            (Some(command), _) => all.push(Shown {
                line,
                command: command.to_owned(),
                prints: Vec::new(),
            }),
            (None, Some(last)) => last.prints.push(text.trim_end().to_owned()),
            (None, None) => assert!(text.starts_with("# "), "{line}: no command: {text}"),
        }
    }
    all
}

/// Files and commands of a page in their order.
fn parts(page: &str) -> Vec<Part> {
    let mut all = Vec::new();
    let mut before = "";
    let mut lines = page.lines().enumerate().map(|(at, text)| (at + 1, text));
    while let Some((_, text)) = lines.next() {
        let block = |lines: &mut dyn Iterator<Item = _>| -> Vec<(usize, &str)> {
            lines.take_while(|(_, text)| *text != "```").collect()
        };
        match text {
            "```yaml" => {
                let text: Vec<&str> = block(&mut lines).into_iter().map(|line| line.1).collect();
                if let Some(name) = promised(before) {
                    all.push(Part::File {
                        name: name.to_owned(),
                        text: text.join("\n") + "\n",
                    });
                }
            }
            "```console" => all.push(Part::Console(commands(block(&mut lines).into_iter()))),
            _ if text.starts_with("```") => drop(block(&mut lines)),
            "" => {}
            _ => before = text,
        }
    }
    all
}

/// Agreement of `printed` with what a page shows, where a gap stands for any number of lines.
fn fits(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((gap, rest)) if gap.trim() == GAP => {
            (0..=printed.len()).any(|skipped| fits(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, behind)| line == first.trim_end() && fits(rest, behind)),
    }
}

/// Everything that a command prints, with the program of this build in front of all others.
fn printed(command: &str, folder: &Path) -> String {
    let program = env::current_exe().unwrap();
    let program = program.ancestors().nth(2).unwrap().display().to_string();
    let path = env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", format!("{program}:{path}"))
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Pictures of a page that its commands draw.
fn pictures(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets.filter(|name| name.ends_with(".svg")).collect()
}

/// Runs a page in an empty directory; returns what differs, and the number of its commands.
fn differences(page: &Path) -> (Vec<String>, usize) {
    let text = fs::read_to_string(page).unwrap();
    let name = page.file_stem().unwrap().to_string_lossy();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("book-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let (mut wrong, mut run) = (Vec::new(), 0);
    let update = env::var_os("UPDATE_EXPECTED").is_some();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // The last part first: a change leaves the numbers of the lines before it as they are.
    let mut changes = Vec::new();
    for part in parts(&text) {
        let shown = match part {
            Part::File { name, text } => {
                fs::write(folder.join(name), text).unwrap();
                continue;
            }
            Part::Console(shown) => shown,
        };
        for shown in shown {
            if shown.command.starts_with("cargo ") {
                println!(
                    "{name}:{}: not run, as it installs: {}",
                    shown.line, shown.command
                );
                continue;
            }
            run += 1;
            let out = printed(&shown.command, &folder);
            let printed: Vec<&str> = out.lines().collect();
            if !fits(&shown.prints, &printed) {
                if update && shown.corrected(&lines, &out).is_some() {
                    changes.push((shown, out));
                    continue;
                }
                let place = format!("{name}:{}: {}", shown.line, shown.command);
                let page = shown.prints.join("\n");
                wrong.push(format!(
                    "{place}\n--- the page has\n{page}\n--- printed\n{out}"
                ));
            }
        }
    }
    for (shown, out) in changes.iter().rev() {
        lines = shown.corrected(&lines, out).unwrap();
    }
    if !changes.is_empty() {
        fs::write(page, lines.join("\n") + "\n").unwrap();
    }
    for picture in pictures(&text) {
        let kept = page.with_file_name(picture);
        match fs::read(folder.join(picture)) {
            Err(_) => wrong.push(format!("{name}: no command draws {picture}")),
            Ok(drawn) if update => {
                fs::write(kept, drawn).unwrap();
            }
            Ok(drawn) if fs::read(kept).is_ok_and(|kept| kept == drawn) => {}
            Ok(_) => wrong.push(format!(
                "{name}: {picture} differs; run with UPDATE_EXPECTED=1"
            )),
        }
    }
    (wrong, run)
}

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs/book")).unwrap().flatten();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    pages
}

#[test]
fn commands_of_the_book_print_what_its_pages_show() {
    let left = Mutex::new(pages());
    let found = Mutex::new((Vec::new(), 0));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(page) = left.lock().unwrap().pop() else {
                        return;
                    };
                    let (wrong, run) = differences(&page);
                    let mut found = found.lock().unwrap();
                    found.0.extend(wrong);
                    found.1 += run;
                }
            });
        }
    });
    let (wrong, run) = found.into_inner().unwrap();
    assert!(run > 100, "only {run} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_chapter_has_a_lab_a_picture_and_exercises() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let chapters = summary.lines().filter_map(|line| {
        let (title, target) = line.strip_prefix("- [")?.split_once("](")?;
        let number = title.split(' ').next()?.parse::<usize>().ok()?;
        Some((number, target.strip_suffix(')')?))
    });
    let mut numbers = BTreeSet::new();
    for (number, target) in chapters {
        numbers.insert(number);
        let page = fs::read_to_string(root().join("docs").join(target)).unwrap();
        assert!(page.starts_with(&format!("# {number} ")), "{target}");
        for heading in ["## The lab", "## What you saw", "## Exercises"] {
            assert!(
                page.contains(&format!("\n{heading}\n")),
                "{target}: {heading}"
            );
        }
        assert!(!pictures(&page).is_empty(), "{target}: no picture");
        let tasks = page.split_once("## Exercises").unwrap().1;
        let tasks = tasks.lines().filter(|line| {
            let dot = line.split_once(". ");
            dot.is_some_and(|(number, _)| number.parse::<u8>().is_ok())
        });
        assert_eq!(tasks.count(), 3, "{target}: exercises");
    }
    assert!(numbers.into_iter().eq(1..=12));
}

/// The exercises of `labs/exercises`: name and number of the chapter.
fn listed() -> BTreeSet<(usize, String)> {
    let list = fs::read_to_string(root().join("labs/exercises/README.md")).unwrap();
    let rows = list.lines().filter_map(|line| {
        let (chapter, rest) = line.strip_prefix("| ")?.split_once(" | [")?;
        let number = chapter.split(' ').next()?.parse().ok()?;
        Some((number, rest.split(']').next()?.to_owned()))
    });
    rows.collect()
}

/// Each page names the folders that its command writes; the test of commands compares what it prints.
#[test]
fn every_chapter_names_its_exercises_and_every_exercise_has_a_chapter() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut named = BTreeSet::new();
    for number in 1..=12 {
        let chapter = summary.split_once(&format!("- [{number} ")).unwrap().1;
        let target = chapter
            .split_once("](")
            .unwrap()
            .1
            .split(')')
            .next()
            .unwrap();
        let page = fs::read_to_string(root().join("docs").join(target)).unwrap();
        let command = format!("$ aerostat labs --exercises --copy {number}\n");
        let (before, after) = page.split_once(&command).expect(target);
        let written = after.split("```").next().unwrap().lines();
        for line in written {
            let (name, work) = line
                .strip_prefix("wrote ")
                .unwrap()
                .split_once(": ")
                .unwrap();
            let text = before.rsplit("\n\n").nth(1).unwrap().replace('\n', " ");
            assert!(
                text.contains(&format!("`{name}` ({work})")),
                "{target}: {name}"
            );
            named.insert((number, name.to_owned()));
        }
    }
    let folders = fs::read_dir(root().join("labs/exercises"))
        .unwrap()
        .flatten();
    let folders = folders.filter(|entry| entry.path().is_dir());
    let folders: BTreeSet<String> = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let names: BTreeSet<String> = named.iter().map(|(_, name)| name.clone()).collect();
    assert_eq!(names, folders);
    assert_eq!(named, listed());
}

#[test]
fn a_gap_stands_for_any_number_of_lines_and_nothing_else_differs() {
    let page = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    for (shown, printed, expected) in [
        ("a b", &["a", "b  "][..], true),
        ("a b", &["a"][..], false),
        ("a", &["a", "b"][..], false),
        ("… b", &["a", "a", "b"][..], true),
        ("a …", &["a"][..], true),
        ("a … c …", &["a", "c", "b", "c"][..], true),
        ("a … d", &["a", "b", "c"][..], false),
    ] {
        assert_eq!(
            fits(&page(shown), printed),
            expected,
            "{shown}: {printed:?}"
        );
    }
}
