//! Completion in the shell: names of labs, their nodes and links, and words of the program.
//!
//! The user waits for completion and sees no errors: a lab that does not answer at once contributes no names.

use crate::args::Cli;
use crate::cmd::run::table_names;
use aerostat_lab::picture::{Kind, Picture};
use aerostat_live::control::{Answer, Client, Request};
use aerostat_live::runtime_dir;
use aerostat_node::inspect::StateKind;
use clap::CommandFactory as _;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

/// How long a lab may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

type Candidates = Vec<CompletionCandidate>;

/// Environment variable by which a completion script calls the program.
pub(crate) const VARIABLE: &str = "AEROSTAT_COMPLETE";

/// Lab files, and labs of the program.
pub(crate) fn files() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| files_like(current, shipped()))
}

/// Lab files, labs of the program, and running labs.
pub(crate) fn files_and_labs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let running = runtime_dir::running().into_iter();
        files_like(current, shipped().chain(running.map(|lab| lab.name)))
    })
}

/// Labs of the program.
pub(crate) fn shipped_labs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(shipped()))
}

fn shipped() -> impl Iterator<Item = String> {
    aerostat_lab::shipped::labs().map(|lab| lab.0.to_owned())
}

/// Lab files, and those of the names that begin with what is typed.
fn files_like(current: &OsStr, names: impl Iterator<Item = String>) -> Candidates {
    let ends = |path: &std::path::Path| {
        let name = path.to_string_lossy();
        name.ends_with(".yml") || name.ends_with(".yaml")
    };
    let files = PathCompleter::file().stdio().filter(ends).complete(current);
    let typed = current.to_string_lossy();
    let names = names.filter(|name| name.starts_with(&*typed));
    files.into_iter().chain(candidates(names)).collect()
}

/// Running labs.
pub(crate) fn labs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let running = runtime_dir::running().into_iter();
        candidates(running.map(|lab| lab.name))
    })
}

/// Nodes and stations.
pub(crate) fn nodes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(machines(|_| true)))
}

/// Hosts, routers and stations: nodes with an IP stack.
pub(crate) fn hosts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(machines(has_ip)))
}

/// Stations on Ethernet segments.
pub(crate) fn stations() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(machines(|kind| kind == Kind::Station)))
}

/// Switches.
pub(crate) fn switches() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(machines(|kind| kind == Kind::Switch)))
}

/// Links.
pub(crate) fn links() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let cables = pictures().into_iter().flat_map(|picture| picture.cables);
        candidates(cables.map(|cable| cable.name))
    })
}

/// Nodes, and their services that can fail alone.
pub(crate) fn victims() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let machines = pictures().into_iter().flat_map(|picture| picture.machines);
        let machines = machines.filter(|machine| machine.kind != Kind::Station);
        let names = machines.flat_map(|machine| {
            let services: &[&str] = match machine.kind {
                Kind::LaneServer => &["/lecs", "/les", "/bus"],
                Kind::Router => &["/mps"],
                Kind::Host => &["/mpc"],
                _ => &[],
            };
            let all = std::iter::once(&"").chain(services);
            let names = all.map(|service| format!("{}{service}", machine.name));
            names.collect::<Vec<_>>()
        });
        candidates(names)
    })
}

/// Nodes, and kinds of state.
pub(crate) fn nodes_and_kinds() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let kinds = StateKind::named().map(|kind| kind.to_string());
        let is_node = |kind| kind != Kind::Station;
        candidates(machines(is_node).into_iter().chain(kinds))
    })
}

/// Tables of the results.
pub(crate) fn tables() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(table_names()))
}

/// Subcommands with a manual page, and the lab file.
pub(crate) fn pages() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let root = Cli::command();
        let shown = root.get_subcommands().filter(|sub| !sub.is_hide_set());
        let names = shown.map(|sub| sub.get_name().to_owned());
        candidates(names.chain(["lab".to_owned()]))
    })
}

fn candidates(names: impl IntoIterator<Item = String>) -> Candidates {
    let names: BTreeSet<String> = names.into_iter().collect();
    names.into_iter().map(CompletionCandidate::new).collect()
}

const fn has_ip(kind: Kind) -> bool {
    matches!(kind, Kind::Host | Kind::Router | Kind::Station)
}

/// Names of the machines of some kinds.
fn machines(wanted: impl Fn(Kind) -> bool) -> Vec<String> {
    let machines = pictures().into_iter().flat_map(|picture| picture.machines);
    let machines = machines.filter(|machine| wanted(machine.kind));
    machines.map(|machine| machine.name).collect()
}

/// Pictures of all running labs, because the selected lab is not known here.
fn pictures() -> Vec<Picture> {
    let all = running_pictures().into_iter();
    all.map(|(_, picture)| picture).collect()
}

/// The running labs of this user that answer at once, each with its network.
pub(crate) fn running_pictures() -> Vec<(String, Picture)> {
    let ask = |lab: runtime_dir::LabState| {
        let socket = runtime_dir::socket_of(&lab.name);
        let mut client = Client::connect_within(&socket, PATIENCE).ok()?;
        match client.ask(&Request::Graph).ok()? {
            (Answer::Ok(picture), _) => Some((lab.name, serde_json::from_value(picture).ok()?)),
            (Answer::Error { .. }, _) => None,
        }
    };
    runtime_dir::running().into_iter().filter_map(ask).collect()
}
