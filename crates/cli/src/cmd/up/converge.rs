//! `aerostat up` on a lab that runs: it becomes that of the file.

use crate::args::{RunningLab, UpArgs};
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::labs;
use crate::output::{self, Format, Rows};
use aerostat_lab::Checked;
use aerostat_lab::converge::{Act, Change, Detail, Needs};
use aerostat_live::charset;
use aerostat_live::control::{self, Client, Converge, Converged, Request};
use aerostat_live::run::made_embedded;
use aerostat_wire::counted;
use aerostat_wire::some_of;
use serde_json::{Value, json};
use std::io::{ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long the lab may take to get ready again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(50);

/// Shows the plan, and lets the lab carry it out.
pub(super) fn run(args: &UpArgs, checked: &Checked) -> Outcome {
    let which = RunningLab {
        lab: Some(checked.lab.name.clone()),
    };
    let all = args.restart.iter().any(|name| name == ALL);
    let mut client = client::connect(&which)?;
    let mut request = Converge {
        name: Some(args.lab.lab.display().to_string()),
        text: checked.text.clone(),
        set: args
            .lab
            .set
            .iter()
            .map(|set| set.change().to_owned())
            .collect(),
        restart: args
            .restart
            .iter()
            .filter(|name| *name != ALL)
            .cloned()
            .collect(),
        restart_needed: all,
        dry_run: args.dry_run,
        makes: true,
        brought: None,
    };
    // What does not fit the lab is refused before anything is done.
    if args.embedded || args.split {
        request.dry_run = true;
        fits(args, &ask(&mut client, &request, &[])?.0)?;
        request.dry_run = args.dry_run;
    }
    let done = carry_out(&mut client, request)?;
    show(args, &done)?;
    if !done.kernel
        && let Some(text) = made_embedded(&checked.lab, |_| false)
    {
        say(format_args!("note: {text}"));
    }
    judge(args, checked, &done)?;
    if args.dry_run || done.plan.is_empty() && done.restarted.is_empty() {
        return Ok(labs::done(checked));
    }
    await_ready(&mut client, args)?;
    let end = Exit::Ok.with_warnings(!done.left.is_empty());
    Ok(labs::exit(end, &checked.warnings))
}

/// Lets the lab become that of the file, with the interfaces that it asks for.
fn carry_out(client: &mut Client, mut request: Converge) -> Result<Converged, Failure> {
    let (done, descriptors) = ask(client, &request, &[])?;
    let (Some(wanted), [user_ns, ..]) = (&done.wanted, &descriptors[..]) else {
        return Ok(done);
    };
    let made = control::bring(&request, wanted, user_ns);
    let (brought, made) = made.map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => "the rights with which the lab was started are needed",
            _ => "",
        };
        let text = format!("nothing was done, because new kernel hosts cannot be made: {error}");
        Failure::failed(text).hint(hint)
    })?;
    request.brought = Some(brought);
    ask(client, &request, &made).map(|(done, _)| done)
}

/// Asks the lab to become that of a file; descriptors of interfaces go with the request, and that of the lab's user
/// namespace may come back.
fn ask(
    client: &mut Client,
    request: &Converge,
    made: &[OwnedFd],
) -> Result<(Converged, Vec<OwnedFd>), Failure> {
    let request = Request::Converge(request.clone());
    let (answer, descriptors) = client::ask_with_descriptors(client, &request, made)?;
    let done = serde_json::from_value(answer)
        .map_err(|error| Failure::failed(format!("the lab answers in another way: {error}")))?;
    Ok((done, descriptors))
}

/// The word for all nodes that have to start again.
const ALL: &str = "all";

/// Refuses options for a start that the running lab does not have.
fn fits(args: &UpArgs, done: &Converged) -> Result<(), Failure> {
    let other = match () {
        () if args.embedded && done.kernel => "--embedded: this lab runs with kernel hosts",
        () if args.split && !done.split => "--split: this lab runs in one process",
        () => return Ok(()),
    };
    Err(Failure::usage(other).hint("'aerostat down', then 'aerostat up'"))
}

/// Shows the changes: for people a line each, for programs a table.
fn show(args: &UpArgs, done: &Converged) -> Result<(), Failure> {
    let changes = &done.plan.changes;
    let form = args.results.output.form();
    if args.results.output.output != Format::Table {
        let mut rows = Rows::new(&[
            "act", "kind", "name", "details", "needs", "restart", "reason",
        ]);
        rows.title = "changes".to_owned();
        changes.iter().map(row).for_each(|row| rows.push(row));
        return output::write(form, "aerostat.up.v1", &[rows]);
    }
    for change in changes {
        line(&change.to_string())?;
        match &change.needs {
            Needs::Nothing => {}
            Needs::Restart(nodes) => {
                let nodes: Vec<String> = nodes.iter().cloned().collect();
                line(&format!("    needs a restart of {}", some_of(&nodes)))?;
            }
            Needs::NewStart(why) => line(&format!("    needs a new start of the lab: {why}"))?,
        }
    }
    Ok(())
}

fn row(change: &Change) -> Vec<Value> {
    let word = match change.act {
        Act::Add => "add",
        Act::Remove => "remove",
        Act::Change => "change",
    };
    let detail = |Detail { key, from, to }: &Detail| json!({ "key": key, "from": from, "to": to });
    let details: Vec<Value> = change.details.iter().map(detail).collect();
    let (needs, restart, reason) = match &change.needs {
        Needs::Nothing => ("nothing", Vec::new(), Value::Null),
        Needs::Restart(nodes) => ("restart", nodes.iter().cloned().collect(), Value::Null),
        Needs::NewStart(why) => ("new_start", Vec::new(), why.as_str().into()),
    };
    vec![
        word.into(),
        change.kind.name().into(),
        change.name.as_str().into(),
        details.into(),
        needs.into(),
        restart.into(),
        reason,
    ]
}

/// Tells what was done; a failure if nothing was, because of what the plan needs.
fn judge(args: &UpArgs, checked: &Checked, done: &Converged) -> Result<(), Failure> {
    let name = &checked.lab.name;
    let plan = &done.plan;
    let changes = counted(plan.changes.len(), "change", "changes");
    if done.done {
        match plan.is_empty() {
            true if done.restarted.is_empty() => {
                say(format_args!("lab '{name}' is as its file says"))
            }
            true => {}
            false => say(format_args!("lab '{name}': {changes} made")),
        }
        if !done.restarted.is_empty() {
            say(format_args!("started again: {}", done.restarted.join(", ")));
        }
        for text in &done.left {
            say(format_args!("warning: not done: {text}"));
        }
        if !done.replaced.is_empty() {
            say(format_args!("note: {}", done.replacements()));
        }
        if !done.left.is_empty() {
            say("the next 'aerostat up' tries again what is not done");
        }
        return Ok(());
    }
    let new_starts = plan.new_starts().count();
    let needed: Vec<&str> = plan.restarts().into_iter().collect();
    let needed: Vec<&str> = needed
        .into_iter()
        .filter(|node| !args.restart.iter().any(|name| name == ALL || name == node))
        .collect();
    let what = match args.dry_run {
        true => format!("lab '{name}': {changes} to make"),
        false => format!("lab '{name}': {changes} to make, and none was made"),
    };
    if new_starts > 0 {
        let text = format!("{what}: the lab has to be started again");
        return Err(
            Failure::failed(text).hint(format!("'aerostat down --lab {name}', then 'aerostat up'"))
        );
    }
    if !needed.is_empty() {
        let restarts: Vec<String> = needed
            .iter()
            .map(|node| format!("--restart {node}"))
            .collect();
        let text = format!("{what}: {} to start again", nodes_have(&needed));
        return Err(Failure::failed(text).hint(format!(
            "allow it with {}, or --restart all",
            restarts.join(" ")
        )));
    }
    say(format_args!("{what}"));
    Ok(())
}

fn nodes_have(nodes: &[&str]) -> String {
    let names: Vec<String> = nodes.iter().map(|&name| name.to_owned()).collect();
    let have = if nodes.len() == 1 { "has" } else { "have" };
    format!("{} {have}", some_of(&names))
}

/// Waits until the lab is ready again.
fn await_ready(client: &mut Client, args: &UpArgs) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        let status = client::ask(client, &Request::Status)?;
        if status["ready"] == true {
            if args.results.output.output == Format::Table {
                line("ready")?;
            } else {
                say("ready");
            }
            return Ok(());
        }
        if Instant::now() > end {
            let missing: Vec<String> =
                serde_json::from_value(status["waits_for"].clone()).unwrap_or_default();
            let text = format!(
                "the lab does not get ready: still waiting for {}",
                some_of(&missing)
            );
            return Err(Failure::failed(text));
        }
        std::thread::sleep(LOOK);
    }
}

/// A line on standard output.
fn line(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", charset::shown(text))
}
