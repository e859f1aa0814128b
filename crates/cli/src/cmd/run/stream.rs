//! The stream of events of a run (`run --events`) and the page that shows it (`run --view`).

use crate::args::RunArgs;
use crate::cmd::follow;
use crate::exit::{self, Failure};
use crate::output::Rows;
use aerostat_lab::files::{self, Named};
use aerostat_lab::picture::Picture;
use aerostat_lab::stream::{About, Line, Options, SAMPLE, Stream};
use aerostat_lab::{Checked, Lab};
use aerostat_sim::run::Watcher;
use aerostat_view::drawing;
use aerostat_view::page::Contents;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Limit of packets that are followed.
const MOST_PACKETS: usize = 16;
/// Standard output as a file.
const STDOUT: &str = "-";

/// Refuses combinations of options that make no sense, before the run.
pub(super) fn check(args: &RunArgs, several: bool) -> Result<(), Failure> {
    let option = match (&args.events, &args.view) {
        (Some(_), _) => "--events",
        (None, Some(_)) => "--view",
        (None, None) if !args.follow.is_empty() => {
            let text = "--follow is for --events and --view";
            let hint = "'aerostat follow LAB FLOW:N' shows the way of a packet by itself";
            return Err(Failure::usage(text).hint(hint));
        }
        (None, None) if args.sample.is_some() => {
            let text = "--sample is for the samples of --events and --view";
            return Err(Failure::usage(text).hint("--view FILE.html shows them"));
        }
        (None, None) => return Ok(()),
    };
    if several {
        let text = format!("{option} is for one run, and these are several");
        return Err(Failure::usage(text).hint("--seed N in the place of --seeds and --sweep"));
    }
    if args.events.as_deref() == Some(Path::new(STDOUT)) && args.results.out.is_none() {
        let text = "the events and the results cannot both go to standard output";
        let hint = "--events FILE, or -o json --out DIR for the results";
        return Err(Failure::usage(text).hint(hint));
    }
    if let Some(path) = &args.view
        && path.extension().is_none_or(|extension| extension != "html")
    {
        let text = format!("{}: a page is a file .html", path.display());
        return Err(Failure::usage(text).hint("--view FILE.html"));
    }
    if args.follow.len() > MOST_PACKETS {
        let text = format!("--follow: at most {MOST_PACKETS} packets");
        let hint =
            "each of them takes two more runs; aerostat_sim::follow::packets takes one for all";
        return Err(Failure::usage(text).hint(hint));
    }
    if args.view.is_some() && args.view == args.events {
        return Err(Failure::usage("--events and --view name the same file"));
    }
    // A run may be long, and what it gives has to have a place at its end.
    for path in [&args.events, &args.view].into_iter().flatten() {
        if path != Path::new(STDOUT) {
            files::try_name(path).map_err(|error| unwritten(path, &error))?;
        }
    }
    Ok(())
}

/// The wishes for the stream; `None` without a stream.
pub(super) fn options(args: &RunArgs, checked: &Checked) -> Option<Options> {
    if args.events.is_none() && args.view.is_none() {
        return None;
    }
    Some(Options {
        sample: args.sample.unwrap_or(SAMPLE),
        about: About {
            text: Some(checked.text.clone()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            real_time: false,
        },
        drawn: args.view.is_some(),
        ..Options::default()
    })
}

/// Writes the stream and the page where they are wanted. `short` are the results for people.
pub(super) fn write(
    args: &RunArgs,
    lab: &Lab,
    stream: Option<Stream>,
    short: &[Rows],
    watcher: &mut dyn Watcher,
) -> Result<(), Failure> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let picture = Picture::of(lab);
    let whole = picture.machines.len();
    let picture = picture.drawn();
    let hidden = whole - picture.machines.len();
    if hidden > 0 && args.view.is_some() && !args.quiet {
        exit::say(format_args!(
            "note: the page shows {} of {whole} machines: switches first, hosts are counted; {}",
            picture.machines.len(),
            match args.events {
                Some(_) => "the events are those of the same machines",
                None => "--events without --view has all",
            }
        ));
    }
    stream.add_part(&Line::Layout(aerostat_view::positions(&picture)));
    for line in follow::lines(lab, &args.follow, watcher)? {
        stream.add_part(&line);
    }
    if let Some(path) = &args.events {
        events(path, &stream)?;
        said(args, "the events are", path);
    }
    if let Some(path) = &args.view {
        let page = Contents {
            lab: &lab.name,
            drawing: drawing::inline(&picture),
            tables: short,
            stream: &stream,
        }
        .page();
        let write = |out: &mut BufWriter<&File>| out.write_all(page.as_bytes());
        let written = files::write_whole(path, Named::ByUser, write);
        written.map_err(|error| unwritten(path, &error))?;
        said(args, "the page is", path);
    }
    Ok(())
}

fn said(args: &RunArgs, what: &str, path: &Path) {
    if !args.quiet && path != Path::new(STDOUT) {
        exit::say(format_args!("{what} in {}", path.display()));
    }
}

fn events(path: &Path, stream: &Stream) -> Result<(), Failure> {
    if path == Path::new(STDOUT) {
        let mut out = BufWriter::new(io::stdout().lock());
        return match put(&mut out, stream).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        };
    }
    let written = files::write_whole(path, Named::ByUser, |out| put(out, stream));
    written.map_err(|error| unwritten(path, &error))
}

fn put(out: &mut impl Write, stream: &Stream) -> io::Result<()> {
    stream.lines().try_for_each(|line| writeln!(out, "{line}"))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{} cannot be written: {error}", path.display()))
}
