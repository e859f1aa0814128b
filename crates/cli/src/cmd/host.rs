//! `aerostat host`: this machine itself as a host of an ATM network.

use super::up;
use crate::args::HostArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::labs;
use crate::output::Format;
use aerostat_lab::event::Telling;
use aerostat_live::notify::Notifier;
use aerostat_live::run::{self, File, Notice, Options, Report, UpError};
use aerostat_wire::counted;

/// Reads the lab file and runs the host until it is stopped.
pub(crate) fn run(args: &HostArgs) -> Outcome {
    let checked = labs::read_for_machine(&args.lab)?;
    up::warn_of_until(&checked.lab);
    // The process may open no socket once it runs.
    let manager = Notifier::of_environment()?;
    let options = Options {
        split: false,
        embedded: false,
        program: std::env::current_exe()?,
        recording: format!("{}.pcapng", checked.lab.name).into(),
        patience: None,
        results: None,
        end_with_parent: false,
        machine: true,
    };
    let file = File {
        name: args.lab.lab.display().to_string(),
        checked: checked.clone(),
        set: args.lab.set.clone(),
    };
    let report = run::run(
        &file,
        &options,
        &mut |notice| {
            report_to(&manager, &notice);
            up::tell(&notice, Telling::unless(args.quiet), Format::Table);
        },
        |report: &Report| serde_json::to_value(up::results(report)).unwrap_or_default(),
    );
    let report = report.map_err(|error| failure(&error, &checked.lab.name))?;
    if let Some(text) = up::recorded(&report) {
        crate::exit::say(text);
    }
    let warnings = up::warnings_of_end(&report);
    for warning in &warnings {
        crate::exit::say(format_args!("warning: {warning}"));
    }
    Ok(labs::exit(
        Exit::Ok.with_warnings(!warnings.is_empty()),
        &checked.warnings,
    ))
}

/// Tells the service manager what it may know.
fn report_to(manager: &Notifier, notice: &Notice<'_>) {
    match notice {
        Notice::Started => manager.ready(),
        Notice::Waiting(missing) => {
            manager.status(&format!("waiting for {}", aerostat_wire::some_of(missing)));
        }
        Notice::Ready { .. } => manager.status("all interfaces have joined their networks"),
        Notice::Event(step, names) if step.is_told(Telling::Milestones) => {
            let event = step.event(names);
            manager.status(&format!("{}: {}", event.node, event.text));
        }
        Notice::Stopping(calls) => {
            manager.stopping();
            manager.status(&format!("releasing {}", counted(*calls, "call", "calls")));
        }
        Notice::Note(_) | Notice::Event(..) | Notice::Turn(_) | Notice::Served => {}
    }
}

fn failure(error: &UpError, lab: &str) -> Failure {
    match error {
        UpError::Unprivileged(error) => Failure::new(Exit::Privilege, error.to_string())
            .hint("run it as root, or as a service: docs/host.md has a unit for systemd"),
        other => up::failure(other, lab),
    }
}
