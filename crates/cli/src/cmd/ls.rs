//! `aerostat ls`: the running labs of this user.

use crate::args::LsArgs;
use crate::exit::{Exit, Outcome, say};
use crate::output::{self, Format, Rows};
use aerostat_live::runtime_dir;
use std::time::{SystemTime, UNIX_EPOCH};

/// Lists them.
pub(crate) fn run(args: &LsArgs) -> Outcome {
    let labs = runtime_dir::running();
    if labs.is_empty() && args.output.output == Format::Table {
        say("no lab is running");
        return Ok(Exit::Ok);
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    let mut rows = Rows::new(&["lab", "pid", "file", "up_s"]);
    for lab in labs {
        let up = now.saturating_sub(lab.started);
        rows.push(vec![
            lab.name.into(),
            lab.pid.into(),
            lab.file.into(),
            up.into(),
        ]);
    }
    output::write(args.output.form(), "aerostat.labs.v1", &[rows])?;
    Ok(Exit::Ok)
}
