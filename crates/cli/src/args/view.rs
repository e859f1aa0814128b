//! Arguments of `view`.

use crate::names;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the address of a page with the network as it is now: calls, shortcuts,
messages, the story, counters. Links can be broken, mended and changed there,
and captures taken. The address has a token; who knows it can do the same. The
server is a process of its own on loopback, and ends with Ctrl-C. The lab may
end meanwhile: the page says so, and goes on when it is up again.

From another machine: ssh -L 8080:127.0.0.1:8080 THIS-MACHINE, with --listen.

With --site no lab needs to run: DIR becomes a static site with a page for each
lab, in which its text is changed and run in the browser's tab. DIR/index.html
can be opened from the disk, and DIR put on any static web server. Without LAB
it has all labs of the program that run in virtual time. A lab file with
mistakes is taken, too: its page shows them.

Examples:
  aerostat view
  aerostat view campus
  aerostat view campus --listen 127.0.0.1:8080
  aerostat view --site site
  aerostat view --site site campus mine.atm.yml")]
pub(crate) struct ViewArgs {
    /// Name of the lab, if several are running; with --site lab files and names of labs of the program
    #[arg(value_name = "LAB", conflicts_with = "lab", add = names::labs())]
    pub(crate) names: Vec<String>,
    /// The same
    #[arg(long, value_name = "NAME", hide = true, add = names::labs())]
    pub(crate) lab: Option<String>,
    /// Address and port, of loopback; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Write a site in which labs run in the browser's tab into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["lab", "listen"])]
    pub(crate) site: Option<PathBuf>,
    /// The simulator for --site, which crates/web/build compiles; if left out, it is looked for beside the program
    #[arg(long, value_name = "FILE", requires = "site")]
    pub(crate) module: Option<PathBuf>,
}
