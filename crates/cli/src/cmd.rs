//! The subcommands, one file each.

mod atptest;
mod capture;
mod check;
mod completion;
mod daemon;
mod doctor;
mod down;
pub(crate) mod events;
mod exec;
mod explain;
mod extcap;
mod fault;
mod follow;
pub(crate) mod graph;
mod host;
mod inspect;
mod labs;
mod link;
mod linux_atm;
mod ls;
mod man;
mod measure;
mod metrics;
mod mount;
mod move_station;
mod oam;
mod overhead;
mod pool;
mod pvc;
mod qos;
pub(crate) mod reproduce;
mod rfc2544;
pub(crate) mod run;
mod site;
mod trace;
mod up;
mod validate;
mod verify;
mod view;

use crate::args::{Cli, Command};
use crate::exit::Outcome;
use crate::labs::find::find;
use aerostat_live::daemons::Role;

/// Runs the subcommand.
pub(crate) fn dispatch(mut cli: Cli) -> Outcome {
    if let Some(lab) = cli.command.lab_mut() {
        *lab = find(lab)?;
    }
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Sweep(args) => run::sweep::run(&args),
        Command::Rfc2544(args) => rfc2544::run(&args),
        Command::Atptest(args) => atptest::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Follow(args) => follow::run(&args),
        Command::Labs(args) => labs::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Host(args) => host::run(&args),
        Command::Down(args) => down::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Mpcd(args) => daemon::run(Role::Mpcd, &args.of),
        Command::Lecd(args) => daemon::run(Role::Lecd, &args.of),
        Command::Lecs(args) => daemon::run(Role::Lecs, &args.of),
        Command::Les(args) => daemon::run(Role::Les, &args.of),
        Command::Bus(args) => daemon::run(Role::Bus, &args.of),
        Command::Sigd(args) => daemon::run(Role::Sigd, &args.of),
        Command::Ilmid(args) => daemon::run(Role::Ilmid, &args.of),
        Command::Mpsd(args) => daemon::run(Role::Mpsd, &args.of),
        Command::Inspect(args) => inspect::run(&args),
        Command::Pvc(args) => pvc::run(&args),
        Command::Atmarp(args) => linux_atm::atmarp(&args),
        Command::Atmaddr(args) => linux_atm::atmaddr(&args),
        Command::Atmdiag(args) => linux_atm::atmdiag(&args),
        Command::Qos(args) => qos::run(&args),
        Command::Fault(args) => fault::run(&args),
        Command::Link(args) => link::run(&args),
        Command::Mount(args) => mount::run(&args),
        Command::Move(args) => move_station::run(&args),
        Command::Capture(args) => capture::run(args),
        Command::Extcap(args) => extcap::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Events(args) => events::run(&args),
        Command::View(args) => view::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Exec(args) => exec::run(&args),
        Command::Shell(args) => exec::shell(&args),
        Command::Ping(args) => measure::ping(&args),
        Command::Pingall(args) => measure::pingall(&args),
        Command::Iperf(args) => measure::iperf(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completion(args) => completion::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Oam(args) => oam::run(&args),
        Command::Overhead(args) => overhead::run(&args),
        Command::Explain(args) => explain::run(&args),
    }
}
