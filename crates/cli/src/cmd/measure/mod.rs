//! `aerostat ping`, `pingall` and `iperf`: measurements between hosts of a running lab, embedded or kernel.

mod iperf;
mod kernel;
mod ping;

pub(crate) use iperf::iperf;
pub(crate) use kernel::Inside;
pub(crate) use ping::{Question, answers, ping, pingall};

use crate::client;
use crate::exit::{Exit, Failure, say};
use aerostat_live::control::{Client, Request};
use aerostat_wire::{counted, names_of};
use serde::Deserialize;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::time::Duration;

/// A host or router of the lab.
#[derive(Clone, Debug, Deserialize)]
struct Host {
    name: String,
    /// `host` or `router`.
    what: String,
    /// `kernel` or `embedded`.
    kind: String,
    address: Ipv4Addr,
}

impl Host {
    fn is_kernel(&self) -> bool {
        self.kind == "kernel"
    }
}

/// How long an interrupted program may take to report its results.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The exit code of a measurement that Ctrl-C has ended, with the results so far.
fn interrupted(not_begun: usize) -> Exit {
    let rest = match not_begun {
        0 => String::new(),
        pairs => format!("; {} not asked", counted(pairs, "pair was", "pairs were")),
    };
    say(format_args!(
        "warning: interrupted, these are the results so far{rest}"
    ));
    Exit::Warnings
}

/// Parses the lab's answer.
fn understood<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|error| Failure::failed(format!("the lab's answer makes no sense: {error}")))
}

/// The hosts and routers of the lab.
fn hosts(client: &mut Client) -> Result<Vec<Host>, Failure> {
    #[derive(Deserialize)]
    struct Answer {
        hosts: Vec<Host>,
    }
    let answer: Answer = understood(client::ask(client, &Request::Hosts)?)?;
    Ok(answer.hosts)
}

/// The host with this name.
fn find<'a>(hosts: &'a [Host], name: &str) -> Result<&'a Host, Failure> {
    hosts.iter().find(|host| host.name == name).ok_or_else(|| {
        let able = hosts.iter().filter(|host| runs_programs(host));
        let names: Vec<&str> = able.map(|host| host.name.as_str()).collect();
        Failure::failed(format!("there is no host '{name}'"))
            .hint(format!("hosts: {}", names_of(&names)))
    })
}

/// Embedded routers do not run programs.
fn runs_programs(host: &Host) -> bool {
    host.what != "router" || host.is_kernel()
}

/// The host with this name, which must be able to run programs.
fn runner<'a>(hosts: &'a [Host], name: &str) -> Result<&'a Host, Failure> {
    let host = find(hosts, name)?;
    if !runs_programs(host) {
        return Err(
            Failure::failed(format!("{name} is an embedded router: it runs no programs"))
                .hint("name a host, or start the lab with kernel hosts"),
        );
    }
    Ok(host)
}
