//! `aerostat graph`: the network of a lab file, or of a running lab, as a drawing.
//!
//! ```text
//! lab file ------> Picture --> text.rs     what is plugged in where, for people
//! running lab --/          --> dot.rs      for Graphviz
//!                          --> mermaid.rs  for Markdown
//!                          --> svg.rs      a drawing (layout.rs places, colours.rs paints)
//! ```

mod colours;
mod dot;
mod layout;
mod mermaid;
mod positions;
mod svg;
mod text;

pub(crate) use positions::positions;

use crate::args::{Drawing, GraphArgs, LabArgs, RunningLab};
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::labs::{self, find};
use aerostat_lab::picture::Picture;
use aerostat_live::charset;
use aerostat_live::control::Request;
use aerostat_live::runtime_dir;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Draws it.
pub(crate) fn run(args: &GraphArgs) -> Outcome {
    let (picture, exit) = picture(args)?;
    let drawing = match args.output {
        Drawing::Text => {
            charset::stdout().write_all(text::draw(&picture).as_bytes())?;
            return Ok(exit);
        }
        Drawing::Dot => dot::draw(&picture),
        Drawing::Mermaid => mermaid::draw(&picture),
        Drawing::Svg => svg::draw(&picture)?,
    };
    std::io::stdout().lock().write_all(drawing.as_bytes())?;
    Ok(exit)
}

/// The drawing of a network as an element of an HTML page; `None` if the network is too large for a drawing.
pub(crate) fn inline(picture: &Picture) -> Option<String> {
    svg::inline(picture)
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
                return Ok((Picture::of(&checked.lab), labs::done(&checked)));
            }
            None => which.lab = Some(word.to_string_lossy().into_owned()),
        }
    }
    if !args.set.is_empty() {
        return Err(Failure::usage("--set is for a lab file")
            .hint("'aerostat fault', 'pvc' and 'qos' change a running lab"));
    }
    let mut client = client::connect(&which)?;
    let answer = client::ask(&mut client, &Request::Graph)?;
    Ok((super::inspect::understood(answer)?, Exit::Ok))
}

/// The lab to read that `word` names; `None` if it is the name of a running lab, which comes before a lab of the program
/// with the same name.
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
