//! `aerostat down`: stops running labs.

use crate::args::{DownArgs, RunningLab};
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use aerostat_live::control::Request;
use aerostat_live::runtime_dir;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long a lab may take to release its calls and clean up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stops the lab that is meant, or all.
pub(crate) fn run(args: &DownArgs) -> Outcome {
    aerostat_live::mount::sweep();
    if !args.all {
        return stop(client::choose(&args.which)?.name);
    }
    let labs = runtime_dir::running();
    if labs.is_empty() {
        return Err(Failure::new(Exit::NotRunning, "no lab is running"));
    }
    for lab in labs {
        stop(lab.name)?;
    }
    Ok(Exit::Ok)
}

fn stop(name: String) -> Outcome {
    let which = RunningLab {
        lab: Some(name.clone()),
    };
    let mut client = client::connect(&which)?;
    // A lab without calls to release may have ended before its answer is written: whether it ends is what counts.
    if let Err(error) = client.ask(&Request::Stop)
        && !matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        )
    {
        let text = format!("the lab does not answer: {error}");
        return Err(Failure::failed(text));
    }
    let until = Instant::now() + PATIENCE;
    while runtime_dir::running().iter().any(|lab| lab.name == name) {
        if Instant::now() > until {
            return Err(Failure::failed(format!("lab '{name}' does not end")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    say(format_args!("lab '{name}' stopped"));
    Ok(Exit::Ok)
}
