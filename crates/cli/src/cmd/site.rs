//! `aerostat view --site`: a site in which labs run in the browser's tab.

use crate::args::ViewArgs;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::labs::find::{self, find};
use crate::output;
use crate::site::{self, MODULE, Page};
use aerostat_lab::files::{Named, text, write_whole};
use aerostat_lab::shipped;
use aerostat_lab::{Lab, MAX_FILE};
use aerostat_wire::{counted, some_of};
use std::io::Write as _;
use std::path::Path;

/// Largest module, octets. One has about 3 MB.
const MOST: u64 = 64 << 20;
/// Places of the module, from the directory of the program: beside it, installed, and in a checkout.
const PLACES: [&str; 3] = [
    "module.js",
    "../share/aerostat/module.js",
    "../web/module.js",
];

/// Writes the site.
pub(crate) fn run(directory: &Path, args: &ViewArgs) -> Outcome {
    output::check_directory(directory)?;
    let module = module(args.module.as_deref())?;
    let pages = match args.names.is_empty() {
        true => shipped_labs(),
        false => given(&args.names)?,
    };
    let unwritten = |path: &Path, error: &std::io::Error| {
        Failure::failed(format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| unwritten(directory, &error))?;
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        let written = write_whole(&path, Named::ByProgram, |out| {
            out.write_all(text.as_bytes())
        });
        written.map_err(|error| unwritten(&path, &error))
    };
    write("module.js", &module)?;
    write("site.js", &site::script())?;
    write("site.css", &site::style())?;
    for page in &pages {
        write(&format!("{}.html", page.name), &page.html())?;
    }
    write("index.html", &site::index(&pages))?;
    say(format_args!(
        "{}: {} and a list of them in index.html",
        directory.display(),
        counted(pages.len(), "lab", "labs")
    ));
    Ok(Exit::Ok)
}

/// The text of the module, from this file or from one of its usual places.
fn module(given: Option<&Path>) -> Result<String, Failure> {
    const BUILD: &str = "'crates/web/build' in the sources of this program compiles it";
    let path = match given {
        Some(path) => path.to_owned(),
        None => {
            let program = std::env::current_exe()?;
            let beside = program.parent().unwrap_or(Path::new("."));
            let mut places = PLACES.iter().map(|place| beside.join(place));
            places.find(|place| place.is_file()).ok_or_else(|| {
                let text = "there is no compiled simulator for browsers beside the program";
                Failure::failed(text).hint(format!("{BUILD}; --module FILE names it"))
            })?
        }
    };
    let wrong = |why: String| Failure::failed(format!("{}: {why}", path.display())).hint(BUILD);
    let module = text(&path, MOST, "a module").map_err(wrong)?;
    let first = module.lines().next().unwrap_or_default();
    match first.strip_prefix("// ") {
        Some(MODULE) => Ok(module),
        Some(other) if other.starts_with("aerostat-web ") => {
            let why = format!("this is {other}, and the program needs {MODULE}");
            Err(wrong(why))
        }
        _ => Err(wrong(
            "this is no module as crates/web/build makes it".to_owned(),
        )),
    }
}

/// The labs of the program that run in virtual time. One of a paper that stands alone, too, is taken once.
fn shipped_labs() -> Vec<Page> {
    let (mut pages, mut left_out) = (Vec::new(), Vec::new());
    for (name, text) in shipped::alone() {
        let file = format!(
            "{}{}",
            name.rsplit('/').next().unwrap_or(name),
            find::ENDING
        );
        let checked = aerostat_lab::parse(&file, text, &[]).and_then(|lab| lab.without_files());
        match checked.map(|checked| checked.lab) {
            Ok(lab) if lab.outside_of_time().is_none() => pages.push(Page {
                name: name.replace('/', "-"),
                description: lab.description,
                text: text.to_owned(),
                file,
            }),
            _ => left_out.push(name.to_owned()),
        }
    }
    if !left_out.is_empty() {
        say(format_args!(
            "note: {} left out, because a tab has no files and no machines outside: {}",
            counted(left_out.len(), "lab is", "labs are"),
            some_of(&left_out)
        ));
    }
    pages
}

/// The labs that were named. One with mistakes has a page, too.
fn given(labs: &[String]) -> Result<Vec<Page>, Failure> {
    let mut pages: Vec<Page> = Vec::new();
    for lab in labs.iter().map(Path::new) {
        if lab == Path::new("-") {
            return Err(Failure::usage("a site has no lab from standard input")
                .hint("a lab file is called NAME.atm.yml"));
        }
        let path = find(lab)?;
        let text = match find::shipped(&path) {
            Some((_, text)) => text.to_owned(),
            None => text(&path, MAX_FILE, "a lab file")
                .map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?,
        };
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = file.strip_suffix(find::ENDING).unwrap_or(&file).to_owned();
        let file = format!("{name}{}", find::ENDING);
        if name == "index" || pages.iter().any(|page| page.name == name) {
            let text = format!("{}: the site has a page {name}.html already", lab.display());
            return Err(Failure::usage(text).hint("give the lab file another name"));
        }
        let found = aerostat_lab::parse(&file, &text, &[]).and_then(|lab| lab.without_files());
        let found: Option<Lab> = found.ok().map(|checked| checked.lab);
        let runs = found.as_ref().map(Lab::outside_of_time);
        match &runs {
            None => say(format_args!(
                "note: {name} has mistakes, which its page shows"
            )),
            Some(Some(why)) => say(format_args!("note: {name} does not run in a tab: {why}")),
            Some(None) => {}
        }
        pages.push(Page {
            description: found.and_then(|lab| lab.description),
            name,
            file,
            text,
        });
    }
    Ok(pages)
}
