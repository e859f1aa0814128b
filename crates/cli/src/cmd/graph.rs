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
mod svg;
mod text;

use crate::args::{Drawing, GraphArgs, LabArgs, RunningLab};
use crate::client;
use crate::exit::{Exit, Failure, Outcome};
use crate::labs;
use aerostat_lab::picture::Picture;
use aerostat_live::charset;
use aerostat_live::control::Request;
use aerostat_live::runtime_dir;
use std::io::Write as _;
use std::path::Path;

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

/// The picture of a file, or else of the running lab with this name.
fn picture(args: &GraphArgs) -> Result<(Picture, Exit), Failure> {
    let mut which = RunningLab {
        lab: args.which.lab.clone(),
    };
    if let Some(file) = &args.file {
        if is_file(file) {
            let args = LabArgs {
                lab: file.clone(),
                set: args.set.clone(),
            };
            let checked = labs::read(&args)?;
            return Ok((Picture::of(&checked.lab), labs::done(&checked)));
        }
        which.lab = Some(running(file)?);
    }
    if !args.set.is_empty() {
        return Err(Failure::usage("--set is for a lab file")
            .hint("'aerostat fault', 'pvc' and 'qos' change a running lab"));
    }
    let mut client = client::connect(&which)?;
    let answer = client::ask(&mut client, &Request::Graph)?;
    Ok((super::inspect::understood(answer)?, Exit::Ok))
}

/// True if the argument means a lab file: the file exists, or it was written as a path.
fn is_file(name: &Path) -> bool {
    name == Path::new("-") || (name.exists() && !name.is_dir())
}

/// The running lab with this name. An argument that is a path means a file.
fn running(name: &Path) -> Result<String, Failure> {
    let text = name.to_string_lossy();
    let is_path = text.contains('/') || text.ends_with(".yml") || text.ends_with(".yaml");
    let runs = |lab: &runtime_dir::LabState| lab.name == *text;
    if !is_path && runtime_dir::running().iter().any(runs) {
        return Ok(text.into_owned());
    }
    let failure = |text: String| {
        Failure::usage(text).hint("a lab file is called NAME.atm.yml; see the folder 'labs'")
    };
    Err(if is_path {
        failure(format!("{text}: there is no such file"))
    } else {
        failure(format!(
            "there is no file '{text}', and no lab '{text}' is running"
        ))
    })
}
