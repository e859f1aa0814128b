//! `aerostat ls`: the running labs of this user.

use crate::args::LsArgs;
use crate::client;
use crate::exit::{Exit, Outcome, say};
use crate::output::{self, Format, Rows};
use aerostat_live::control::{Answer, Client, Request};
use aerostat_live::runtime_dir;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a lab may take to tell its state.
const PATIENCE: Duration = Duration::from_secs(1);

/// Lists them.
pub(crate) fn run(args: &LsArgs) -> Outcome {
    let labs = runtime_dir::running();
    if labs.is_empty() && args.output.output == Format::Table {
        say(client::none_is_running());
        return Ok(Exit::Ok);
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    let mut rows = Rows::new(&["lab", "pid", "file", "up_s", "state", "version"]);
    for lab in labs {
        let (file, state) = told(&lab.name);
        let up = now.saturating_sub(lab.started);
        let version = client::version_of(&lab).to_owned();
        rows.push(vec![
            lab.name.into(),
            lab.pid.into(),
            file.unwrap_or(lab.file).into(),
            up.into(),
            state.into(),
            version.into(),
        ]);
    }
    output::write(args.output.form(), "aerostat.labs.v1", &[rows])?;
    Ok(Exit::Ok)
}

/// The file of a lab, which may be another one than at its start, and its state, as it tells.
fn told(name: &str) -> (Option<String>, String) {
    let client = Client::connect_within(&runtime_dir::socket_of(name), PATIENCE);
    let answer = client.and_then(|mut client| client.ask(&Request::Status));
    let Ok((Answer::Ok(status), _)) = answer else {
        return (None, "does not answer".to_owned());
    };
    let lacks = status["lacks"].as_array().into_iter().flatten();
    let lacks: Vec<&str> = lacks.filter_map(serde_json::Value::as_str).collect();
    let state = match (&lacks[..], &status["ready"]) {
        ([], serde_json::Value::Bool(true)) => "ready".to_owned(),
        ([], _) => "not ready yet".to_owned(),
        (lacks, _) => lacks.join("; "),
    };
    (status["file"].as_str().map(str::to_owned), state)
}
