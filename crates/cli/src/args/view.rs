//! Arguments of `view`.

use crate::names;
use clap::Args;
use std::net::SocketAddr;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the address of a page with the network as it is now: calls, shortcuts,
messages, the story, counters. Links can be broken, mended and changed there,
and captures taken. The address has a token; who knows it can do the same. The
server is a process of its own on loopback, and ends with Ctrl-C. The lab may
end meanwhile: the page says so, and goes on when it is up again.

From another machine: ssh -L 8080:127.0.0.1:8080 THIS-MACHINE, with --listen.

Examples:
  aerostat view
  aerostat view campus
  aerostat view campus --listen 127.0.0.1:8080")]
pub(crate) struct ViewArgs {
    /// Name of the lab, if several are running
    #[arg(value_name = "LAB", conflicts_with = "lab", add = names::labs())]
    pub(crate) name: Option<String>,
    /// The same
    #[arg(long, value_name = "NAME", hide = true, add = names::labs())]
    pub(crate) lab: Option<String>,
    /// Address and port, of loopback; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
}
