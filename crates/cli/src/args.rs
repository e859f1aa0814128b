//! The command line. The examples in the help texts are tests.

mod atptest;
mod check;
mod daemons;
mod events;
mod explain;
mod extcap;
mod follow;
mod groups;
mod manage;
mod measure;
mod metrics;
mod oam;
mod overhead;
mod reproduce;
mod results;
mod rfc2544;
mod run;
mod sweep;
mod up;
mod verify;
mod view;

pub(crate) use atptest::*;
pub(crate) use check::*;
pub(crate) use daemons::*;
pub(crate) use events::*;
pub(crate) use explain::*;
pub(crate) use extcap::*;
pub(crate) use follow::*;
pub(crate) use manage::*;
pub(crate) use measure::*;
pub(crate) use metrics::*;
pub(crate) use oam::*;
pub(crate) use overhead::*;
pub(crate) use reproduce::*;
pub(crate) use results::*;
pub(crate) use rfc2544::*;
pub(crate) use run::*;
pub(crate) use sweep::*;
pub(crate) use up::*;
pub(crate) use verify::*;
pub(crate) use view::*;

use crate::names;
use crate::output::{Form, Format};
use aerostat_lab::Override;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  wrong usage, or a lab file with errors
  3  done, with warnings (also of the lab file); 'run' was interrupted and shows
     what it has so far
  4  no such lab is running
  5  missing privilege: see 'aerostat doctor'
  6  no check fails, and one cannot be judged here ('check')

Data goes to standard output, talk to standard error; NO_COLOR is respected.
In a locale without UTF-8 (LC_ALL, LC_CTYPE, LANG), what people read is ASCII.

Examples:
  aerostat run campus
  aerostat validate campus
  aerostat doctor";

/// A complete ATM internetwork in user space: LANE, MPOA, signalling, switches, hosts.
#[derive(Debug, Parser)]
#[command(name = "aerostat", version, long_version = crate::version::LONG, after_help = EXIT_CODES, max_term_width = 80)]
#[command(help_template = groups::template())]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a lab in virtual time: no root, the same result every time
    Run(RunArgs),
    /// Run a lab with many values and seeds, and write one table
    Sweep(SweepArgs),
    /// Throughput, latency and losses by the size of frames (RFC 2544)
    Rfc2544(Rfc2544Args),
    /// The tests of ATP's report: throughput, latency, correctness
    Atptest(AtptestArgs),
    /// Tables and figures of five papers, beside what they print
    Reproduce(ReproduceArgs),
    /// Follow one packet of a lab: where it was at each nanosecond
    Follow(FollowArgs),
    /// Mistakes in a capture of ATM, NHRP or DMVPN, with clauses
    Explain(ExplainArgs),
    /// List the labs that are part of the program, or copy one
    Labs(LabsArgs),
    /// Start a lab in real time with Linux hosts, or change a running one
    Up(UpArgs),
    /// Make this machine itself a host of an ATM network
    Host(HostArgs),
    /// Stop a running lab
    Down(DownArgs),
    /// List running labs
    Ls(LsArgs),
    /// Be the MPOA daemon of a host in a lab that was started with up --split
    #[command(hide = true)]
    Mpcd(DaemonArgs),
    /// Be the LANE daemon of a host or router in a lab that was started with up --split
    #[command(hide = true)]
    Lecd(DaemonArgs),
    /// Be the LECS of a host of LANE servers in a lab that was started with up --split
    #[command(hide = true)]
    Lecs(ServerArgs),
    /// Be its LAN emulation servers
    #[command(hide = true)]
    Les(ServerArgs),
    /// Be its broadcast and unknown servers
    #[command(hide = true)]
    Bus(ServerArgs),
    /// Be the signalling daemon of a host, a router or the LANE host in a lab that was started with up --split
    #[command(hide = true)]
    Sigd(SigdArgs),
    /// Be the ILMI daemon of a switch, or of a host that registers by ILMI, in a lab that was started with up --split
    #[command(hide = true)]
    Ilmid(IlmidArgs),
    /// Be the MPOA and NHRP server of a router in a lab that was started with up --split
    #[command(hide = true)]
    Mpsd(MpsdArgs),
    /// Show the state of a running lab
    Inspect(InspectArgs),
    /// Set up, take down and list permanent connections of a running lab
    Pvc(PvcArgs),
    /// As in linux-atm: the ATMARP table of hosts
    Atmarp(AtmarpArgs),
    /// As in linux-atm: the ATM addresses of hosts
    Atmaddr(AtmaddrArgs),
    /// As in linux-atm: PDUs sent and received by hosts
    Atmdiag(AtmdiagArgs),
    /// Give flows of hosts MPOA shortcuts with guaranteed traffic
    Qos(QosArgs),
    /// Break a node, a service or a link of a running lab, or mend it
    Fault(FaultArgs),
    /// Show the links of a running lab, and change them
    Link(LinkArgs),
    /// Show a running lab as the files that Linux had under /proc/atm
    Mount(MountArgs),
    /// Plug a station into another bridging host of a running lab
    Move(MoveArgs),
    /// Record PDUs or cells on links of a running lab as pcapng
    Capture(CaptureArgs),
    /// Links of running labs as interfaces of Wireshark, which calls this
    Extcap(ExtcapArgs),
    /// Show the messages on links of a running lab as a ladder
    Trace(TraceArgs),
    /// The events of a running lab as JSON lines
    Events(EventsArgs),
    /// Show a running lab in a browser, or write a site in which labs run
    View(ViewArgs),
    /// Counters and states of running labs for Prometheus
    Metrics(MetricsArgs),
    /// Check a lab file without running it
    Validate(ValidateArgs),
    /// Run a lab and tell whether it does what its checks say
    Check(CheckArgs),
    /// Run kept results again and tell whether they are the same
    Verify(VerifyArgs),
    /// Run a command inside a host of a running lab
    Exec(ExecArgs),
    /// Open a shell inside a host of a running lab
    Shell(ShellArgs),
    /// Ping from one host of a running lab to another
    Ping(PingArgs),
    /// Ping from every host of a running lab to every other one
    Pingall(PingallArgs),
    /// Measure the TCP throughput between two hosts of a running lab
    Iperf(IperfArgs),
    /// Check what this system lacks for live labs
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print the manual page, or write all of them
    Man(ManArgs),
    /// Draw the network of a lab file, or of a running lab
    Graph(GraphArgs),
    /// Test a connection of a running lab with loopback cells
    Oam(OamArgs),
    /// Octets and cells of packets by the encapsulation of an ATM line
    Overhead(OverheadArgs),
}

impl Command {
    /// The lab that the command reads, if it reads exactly one. `graph` may mean a running lab instead.
    pub(crate) const fn lab_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Run(RunArgs { schema: true, .. }) => None,
            Self::Run(args) => Some(&mut args.lab),
            Self::Check(CheckArgs { all: Some(_), .. }) => None,
            Self::Check(args) if args.which.lab.is_some() => None,
            Self::Check(args) => Some(&mut args.file),
            Self::Sweep(args) => Some(&mut args.lab),
            Self::Follow(args) => args.file.as_mut(),
            Self::Rfc2544(args) => Some(&mut args.lab.lab),
            Self::Up(args) => Some(&mut args.lab.lab),
            Self::Host(args) => Some(&mut args.lab.lab),
            _ => None,
        }
    }
}

/// A lab with changes.
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// Lab file (NAME.atm.yml), name of a lab of the program ('aerostat labs'), or - for standard input; if left out,
    /// the only lab file of the directory
    #[arg(default_value = ".", hide_default_value = true, add = names::files())]
    pub(crate) lab: PathBuf,
    /// Change a value of the file, for example mpoa=false; checked like the file
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Override>,
}

/// One of the running labs.
#[derive(Debug, Args)]
pub(crate) struct RunningLab {
    /// Name of the lab, if several are running; may stand before the verb too
    #[arg(long, value_name = "NAME", add = names::labs())]
    pub(crate) lab: Option<String>,
}

/// Forms of a ladder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LadderFormat {
    /// Columns for people, with the main steps of the story in between
    #[default]
    Table,
    /// One JSON object per message and line
    Jsonl,
}

/// Form of the output.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputArgs {
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Format,
    /// All columns of tables, not only those that fit 80 columns
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
All commands that take a lab find these labs by name, in any directory. A file
NAME or NAME.atm.yml in the current directory comes first. A copy can be
changed; --set changes single values without one.
With --exercises it is about exercises, three for each chapter of the book:
--copy writes a folder with the task and its checks. 'aerostat check --checks'
knows exercises by name.

Examples:
  aerostat labs
  aerostat labs -o json
  aerostat labs --copy campus
  aerostat labs --copy host/worker /etc/aerostat
  aerostat labs --copy two-subnets mine.atm.yml --force
  aerostat labs --exercises
  aerostat labs --exercises --copy neighbour
  aerostat labs --exercises --copy all class/tasks")]
pub(crate) struct LabsArgs {
    /// Exercises in place of labs
    #[arg(long)]
    pub(crate) exercises: bool,
    /// Write this lab into a file; with --exercises, write this exercise, those of this chapter, or 'all'
    #[arg(long, value_name = "NAME", add = names::shipped_labs())]
    pub(crate) copy: Option<String>,
    /// With --copy: the file, - for standard output, or a directory; by default the current one
    #[arg(value_name = "DIR|FILE", requires = "copy")]
    pub(crate) to: Option<PathBuf>,
    /// With --copy: replace a file that is there
    #[arg(long, requires = "copy")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl OutputArgs {
    pub(crate) const fn form(&self) -> Form {
        Form::new(self.output, self.wide)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat ls
  aerostat ls -o json")]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "aerostat inspect [OPTIONS] [NODE]... [WHAT]...",
    after_help = "\
Without WHAT it shows everything that the nodes have. WHAT is one of:
  vc         virtual connections
  call       signalling calls
  lec        LANE clients
  les        LANE servers
  bus        broadcast servers
  mpc        MPOA client: ingress and egress cache
  mps        MPOA server
  nhrp       next hop resolution cache
  clip       Classical IP: ATMARP table
  line       ATM lines: encapsulation, connection, counters
  ilmi       addresses that hosts register
  saal       signalling links, their errors by code
  port       ports of switches and hosts
  route      call routes of switches, IP routes
  pvc        permanent connections of switches
  queue      queues, buffers and shaped paths of switches
  qos        MPOA shortcuts with guaranteed traffic
  sockets    programs with ATM sockets
  tcp        TCP of hosts: what is in force, and why; connections
  arp        neighbours of embedded hosts, routers
  bridge     Ethernet segments behind hosts
  cpu        what packets cost hosts; receive paths of adapters
  processes  daemons in processes of their own (up --split)
  lab        the lab's own process: clients and what it had no room for

Examples:
  aerostat inspect lec
  aerostat inspect urku mpc
  aerostat inspect urku sello lec mpc
  aerostat inspect urku
  aerostat inspect ls1010 vc -o json
  aerostat inspect --watch urku mpc
  aerostat inspect mpc --table ingress -o csv
  aerostat inspect urku mpc --wide
  aerostat inspect urku mpc -o proc
  aerostat inspect urku lec -o proc
  aerostat inspect urku nhrp --why 10.2.0.20
  aerostat inspect processes"
)]
pub(crate) struct InspectArgs {
    /// Nodes and kinds of state; all if left out
    #[arg(value_name = "NODE or WHAT", add = names::nodes_and_kinds())]
    pub(crate) nodes_and_kinds: Vec<String>,
    /// With nhrp: why packets for this address take a shortcut or not
    #[arg(long, value_name = "ADDR")]
    pub(crate) why: Option<std::net::IpAddr>,
    /// Show it again every second
    #[arg(short, long, conflicts_with = "out")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: InspectFormat,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
    /// All columns of tables, not only those that fit 80 columns, and whole ATM addresses
    #[arg(long)]
    pub(crate) wide: bool,
}

/// Form of what `inspect` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InspectFormat {
    /// Columns for people
    #[default]
    Table,
    /// One JSON document with a "schema"
    Json,
    /// One JSON object per row and line
    Jsonl,
    /// Comma-separated values with a header line
    Csv,
    /// The text of Linux' /proc/net/atm/lec or mpc (only for these)
    Proc,
}

impl InspectFormat {
    /// The form of tables; `None` for text.
    pub(crate) const fn of_tables(self) -> Option<Format> {
        match self {
            Self::Table => Some(Format::Table),
            Self::Json => Some(Format::Json),
            Self::Jsonl => Some(Format::Jsonl),
            Self::Csv => Some(Format::Csv),
            Self::Proc => None,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every packet is recorded once, when it has entered the link; what the port in
front of the link discards is not there. Its direction is seen from the link's
first node. With --both-ends each end is an interface of its own: a packet that
arrives is there twice, and what a switch or host discards on arrival can be
seen. With --cells, cells from outside the lab have the times that policers use:
those of a line of the link's rate.

Examples:
  aerostat capture -w campus.pcapng
  aerostat capture --cells urku-asx200 -w cells.pcapng
  aerostat capture urku-asx200 ls1010-asx200 -w urku.pcapng
  aerostat capture -w - | wireshark -k -i -")]
pub(crate) struct CaptureArgs {
    /// Names of links (see 'aerostat graph'); all if left out
    #[arg(add = names::links())]
    pub(crate) links: Vec<String>,
    /// File to write, - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: PathBuf,
    /// Record both ends of each link
    #[arg(long)]
    pub(crate) both_ends: bool,
    /// Record single cells, those of OAM too, instead of whole PDUs
    #[arg(long)]
    pub(crate) cells: bool,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat trace
  aerostat trace urku-asx200 --data
  aerostat trace -o jsonl
  aerostat trace --no-follow
  aerostat trace --no-follow --node urku -o jsonl
  aerostat trace --story --node urku --no-follow")]
pub(crate) struct TraceArgs {
    /// Names of links (see 'aerostat graph'); all if left out
    #[arg(conflicts_with = "story", add = names::links())]
    pub(crate) links: Vec<String>,
    /// Packets of users too, not only the messages of protocols
    #[arg(long, conflicts_with = "story")]
    pub(crate) data: bool,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: LadderFormat,
    /// No messages: the main steps of the nodes so far and from now on, as 'run' and 'up' tell them
    #[arg(long, conflicts_with = "output")]
    pub(crate) story: bool,
    /// With --story: every step, such as each call of signalling
    #[arg(long, requires = "story")]
    pub(crate) all: bool,
    /// Only the steps of this node, and the messages that it sends or receives
    #[arg(long, value_name = "NODE", add = names::nodes())]
    pub(crate) node: Option<String>,
    /// Show what has happened so far and return: the last 20000 messages of protocols (8 MiB; of SSCOP polls and ILMI
    /// the last 4096), not what users sent
    #[arg(long, conflicts_with = "data")]
    pub(crate) no_follow: bool,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every mistake is shown with its line; the exit code is 2 for errors and 3 for
warnings alone.

Examples:
  aerostat validate campus
  aerostat validate campus one-elan
  aerostat validate campus --set routers.c4700.forwarding=wire
  aerostat validate campus -o json
  aerostat validate --schema")]
pub(crate) struct ValidateArgs {
    /// Lab files (NAME.atm.yml), names of labs of the program, - for standard input
    #[arg(value_name = "LAB", required_unless_present = "schema", add = names::files())]
    pub(crate) labs: Vec<PathBuf>,
    /// Change a value of the file before the check
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Override>,
    /// Print the JSON Schema of lab files
    #[arg(long, conflicts_with_all = ["labs", "set"])]
    pub(crate) schema: bool,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The exit code is that of the command. Options of 'exec' itself stand before the
node; everything behind the node belongs to the command, with or without --.

Examples:
  aerostat exec urku ping -c 3 sello
  aerostat exec --lab two-subnets sello -- iperf3 -s")]
pub(crate) struct ExecArgs {
    /// Kernel host or router
    #[arg(add = names::hosts())]
    pub(crate) node: String,
    /// Command with its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "COMMAND"
    )]
    pub(crate) argv: Vec<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat shell urku")]
pub(crate) struct ShellArgs {
    /// Kernel host or router
    #[arg(add = names::hosts())]
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0: all there; 3: something optional is missing; 5: live labs cannot
run here.
'aerostat run' needs nothing of this.

Examples:
  aerostat doctor
  aerostat doctor -o json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The script asks this program while you type, so that it completes the names of
running labs, of their nodes and links, too. It fits this version of the program
alone: best make it anew whenever a shell starts.

Examples:
  aerostat completion bash > ~/.local/share/bash-completion/completions/aerostat
  aerostat completion fish")]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
'lab' is the page of the lab file, in section 5; all others are in section 1.

Examples:
  aerostat man | man -l -
  aerostat man inspect
  aerostat man pvc add
  aerostat man lab
  aerostat man --dir target/man")]
pub(crate) struct ManArgs {
    /// Page of this subcommand, or 'lab'
    #[arg(value_name = "COMMAND", add = names::pages())]
    pub(crate) command: Vec<String>,
    /// Write all pages into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
}

/// Forms of a drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// Text for people
    #[default]
    Text,
    /// A drawing for browsers
    Svg,
    /// A flowchart for Markdown
    Mermaid,
    /// Graphviz
    Dot,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Machines with their addresses, links by name, permanent connections, and the
networks in colours. Of a running lab it shows what is down and cut, too, and
which connections and shortcuts there are at the moment. --at shows the same at
an instant of a run in virtual time.

Examples:
  aerostat graph campus
  aerostat graph campus -o svg > campus.svg
  aerostat graph campus --at 6.5s -o svg > shortcuts.svg
  aerostat graph campus -o mermaid
  aerostat graph campus -o dot | dot -Tpdf -o campus.pdf
  aerostat graph campus -o svg > now.svg")]
pub(crate) struct GraphArgs {
    /// Lab file (NAME.atm.yml), - for standard input; or the name of a running lab, or of a lab of the program; can be
    /// left out if one is running
    #[arg(value_name = "LAB", conflicts_with = "lab", add = names::files_and_labs())]
    pub(crate) file: Option<PathBuf>,
    /// Change a value of the file, for example mpoa=false; checked like the file
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Override>,
    /// Run the lab in virtual time, and show its state at this instant (6.5s): calls, shortcuts, members, faults, rates
    #[arg(long, value_name = "TIME", value_parser = aerostat_lab::units::duration)]
    pub(crate) at: Option<Duration>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    /// Form of the drawing
    #[arg(
        short,
        long,
        visible_short_alias = 'f',
        visible_alias = "format",
        value_enum,
        default_value_t
    )]
    pub(crate) output: Drawing,
}

#[cfg(test)]
mod tests;
