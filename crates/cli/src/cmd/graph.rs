//! `aerostat graph`: the network of a lab file, of a run at an instant, or of a running lab, as a drawing.
//!
//! ```text
//! lab file ---------> Picture --> text.rs     what is plugged in where, for people
//! stream of a run --/         --> dot.rs      for Graphviz
//! running lab -----/          --> mermaid.rs  for Markdown
//!                             --> aerostat_view::drawing, a drawing
//! ```

mod dot;
mod mermaid;
mod text;

use crate::args::{Drawing, GraphArgs, LabArgs, RunningLab};
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::interrupt::Interrupt;
use crate::labs::{self, find};
use aerostat_lab::picture::Picture;
use aerostat_lab::stream::{About, Bounds, Options};
use aerostat_lab::{Event, Lab};
use aerostat_live::charset;
use aerostat_live::control::Request;
use aerostat_live::runtime_dir;
use aerostat_proto::{Duration, Instant};
use aerostat_sim::run::{LabRun, Watcher};
use aerostat_view::drawing;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Draws it.
pub(crate) fn run(args: &GraphArgs) -> Outcome {
    let (picture, exit) = picture(args)?;
    let picture = picture.present();
    let drawing = match args.output {
        Drawing::Text => {
            charset::stdout().write_all(text::draw(&picture).as_bytes())?;
            return Ok(exit);
        }
        Drawing::Dot => dot::draw(&picture),
        Drawing::Mermaid => mermaid::draw(&picture),
        Drawing::Svg => drawing::draw(&picture.drawn()).map_err(|error| {
            let hint = "-o dot and Graphviz' sfdp draw large networks";
            Failure::failed(error.to_string()).hint(hint)
        })?,
    };
    std::io::stdout().lock().write_all(drawing.as_bytes())?;
    Ok(exit)
}

/// The picture of a file, or else of the running lab with this name.
fn picture(args: &GraphArgs) -> Result<(Picture, Exit), Failure> {
    let mut which = RunningLab {
        lab: args.which.lab.clone(),
    };
    if let Some(word) = &args.file {
        match lab_file(word)? {
            Some(lab) => {
                let set = args.set.clone();
                let checked = labs::read(&LabArgs { lab, set })?;
                let picture = match args.at {
                    Some(at) => of_run(&checked.lab, at)?,
                    None => Picture::of(&checked.lab),
                };
                return Ok((picture, labs::done(&checked)));
            }
            None => which.lab = Some(word.to_string_lossy().into_owned()),
        }
    }
    if !args.set.is_empty() {
        return Err(Failure::usage("--set is for a lab file")
            .hint("'aerostat fault', 'pvc' and 'qos' change a running lab"));
    }
    if args.at.is_some() {
        return Err(
            Failure::usage("--at is for a lab file, which runs in virtual time")
                .hint("a running lab is drawn as it is now"),
        );
    }
    let mut client = client::connect(&which)?;
    let answer = client::ask(&mut client, &Request::Graph)?;
    Ok((super::inspect::understood(answer)?, Exit::Ok))
}

/// The run tells its events to no reader, and can be interrupted.
struct Quiet(Interrupt);

impl Watcher for Quiet {
    fn event(&mut self, _event: &Event) {}
    fn interrupted(&self) -> bool {
        self.0.has_come()
    }
}

/// The picture of a run in virtual time, after everything of an instant.
fn of_run(lab: &Lab, at: Duration) -> Result<Picture, Failure> {
    super::run::refuse_outside(lab)?;
    if at > lab.end() {
        let text = format!("--at: the run ends at {} s", lab.end().as_secs_f64());
        return Err(Failure::usage(text).hint("--set until=TIME ends it later"));
    }
    let mut watcher = Quiet(Interrupt::catch()?);
    let mut run = LabRun::new(lab, &mut watcher);
    run.record_events(Options {
        // A drawing of the network has no messages.
        bounds: Bounds {
            messages: 0,
            ..Bounds::default()
        },
        about: About::default(),
        ..Options::default()
    });
    run.start();
    run.run_until(Instant::ZERO + at);
    if run.world().now() < Instant::ZERO + at {
        return Err(Failure::new(
            Exit::Warnings,
            "interrupted before the instant",
        ));
    }
    let stream = run.finish()?.events;
    let lines = stream.iter().flat_map(|stream| stream.lines());
    // The stream consists of lines of JSON.
    let lines = lines.filter_map(|line| serde_json::from_str(line).ok());
    Ok(Picture::at(lab, &lines.collect::<Vec<_>>()))
}

/// The lab to read that `word` names; `None` if it is the name of a running lab, which comes before a lab of the
/// program with the same name.
fn lab_file(word: &Path) -> Result<Option<PathBuf>, Failure> {
    if let Some(file) = find::file(word) {
        return Ok(Some(file));
    }
    let text = word.to_string_lossy();
    if runtime_dir::running().iter().any(|lab| lab.name == *text) {
        if find::shipped(word).is_some() {
            say(format_args!(
                "note: '{text}' is the running lab, and not the lab of the program"
            ));
        }
        return Ok(None);
    }
    if find::shipped(word).is_none() && !word.is_dir() {
        let also = format!(", no lab '{text}' is running");
        return Err(find::unknown(word, &also));
    }
    find::find(word).map(Some)
}
