//! Labs in real time: `up`, `host` and `down`.

use super::*;

#[derive(Debug, Args)]
#[command(after_help = "\
Stays in the foreground and says 'ready' when all clients have joined; Ctrl-C
stops the lab, shows the results as 'aerostat run' does and cleans up. With -o
json, jsonl or csv 'ready' goes to standard error. Links under 'capture:' in the
lab file are recorded in LAB.pcapng in the current directory.

A lab that runs already becomes that of the file, and everything else goes on.
The changes are shown, a line each. If one needs a restart of a node without
--restart, or of the whole lab, none is made, and the exit code is 1.

Examples:
  aerostat up two-subnets
  aerostat up --dry-run mine.atm.yml
  aerostat up mine.atm.yml --restart urku
  aerostat up -d two-subnets
  aerostat up --embedded campus --set mpoa=false
  aerostat up --split two-subnets")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) lab: LabArgs,
    /// Return as soon as the lab is ready; it goes on in the background
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Hosts and routers with their own IP stack: no namespaces, no root
    #[arg(long)]
    pub(crate) embedded: bool,
    /// Daemons in unprivileged processes of their own: mpcd and mpsd of MPOA; lecd of LANE clients; sigd, the
    /// signalling daemon of a node; lecs, les and bus of LANE servers; ilmid, the ILMI of a switch or of a node that
    /// registers
    #[arg(long)]
    pub(crate) split: bool,
    /// Of a lab that runs: show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Of a lab that runs: this node may start again, with empty state; 'all' is each node that has to
    #[arg(long, value_name = "NODE")]
    pub(crate) restart: Vec<String>,
    #[command(flatten)]
    pub(crate) results: ResultArgs,
    /// Tell no story
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// This is the process that goes on in the background
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The lab file has one host (or router) and its link out of the lab; docs/host.md
has examples. The interfaces lecN, atmN and nasN appear in the network namespace
of the command, with their addresses and routes, and programs find the sockets
of the host in LAB/atm/HOST.sock beside those of running labs. Ctrl-C, SIGTERM
and 'aerostat down' release the calls and remove everything. A service manager
that sets NOTIFY_SOCKET hears when the interfaces are there, and what the host
does.

Examples:
  aerostat host host/worker
  aerostat host /etc/aerostat/worker.atm.yml \\
      --set links.0.1.udp.peer=198.51.100.9:10001")]
pub(crate) struct HostArgs {
    #[command(flatten)]
    pub(crate) lab: LabArgs,
    /// Tell no story
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shows the results as 'aerostat run' does, in the same forms; with several labs
and --out each has a directory of its own. The exit code is 3 if the results
deserve a warning. A lab that does not answer gets SIGTERM and then SIGKILL; the
exit code is 3 then, too.

Examples:
  aerostat down
  aerostat down campus
  aerostat down -o csv campus
  aerostat down -o json campus
  aerostat down --all")]
pub(crate) struct DownArgs {
    /// Names of labs; can be left out if one is running
    #[arg(value_name = "NAME", conflicts_with = "lab", add = names::labs())]
    pub(crate) labs: Vec<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    /// Stop all running labs
    #[arg(long, conflicts_with_all = ["lab", "labs"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) results: ResultArgs,
    /// Say only warnings and errors; the results are shown nevertheless
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
