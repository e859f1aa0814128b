//! `aerostat up`: a lab in real time.

use crate::args::UpArgs;
use crate::exit::{Failure, Outcome};
use crate::labs;
use aerostat_lab::Lab;

/// Reads the lab and starts it.
pub(crate) fn run(args: &UpArgs) -> Outcome {
    let checked = labs::read(&args.lab)?;
    start(&checked.lab, args)
}

/// Starts the lab and stays with it, or detaches when it is ready.
fn start(lab: &Lab, _args: &UpArgs) -> Outcome {
    Err(Failure::failed(format!(
        "lab '{}' is good, but live labs are not in this build",
        lab.name
    )))
}
