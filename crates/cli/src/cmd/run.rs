//! `aerostat run`: a lab in virtual time.

use crate::args::RunArgs;
use crate::exit::{Failure, Outcome};
use crate::labs;
use aerostat_lab::Lab;

/// Reads the lab and runs it.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    // The options are changes of the file like any other, so that they are checked and reported alike.
    let mut overrides = args.lab.set.clone();
    overrides.extend(args.seed.map(|seed| format!("seed={seed}")));
    overrides.extend(args.until.as_ref().map(|until| format!("until={until}")));
    let checked = labs::read_with(&args.lab.lab, &overrides)?;
    simulate(&checked.lab, args)
}

/// Runs the lab: the story to standard error unless `quiet`, the flows to standard output.
fn simulate(lab: &Lab, _args: &RunArgs) -> Outcome {
    Err(Failure::failed(format!(
        "lab '{}' is good, but the simulator is not in this build",
        lab.name
    )))
}
