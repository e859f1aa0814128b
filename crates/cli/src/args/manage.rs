//! Arguments of commands that inspect a running lab as linux-atm does, and of those that change it.

use super::{OutputArgs, RunningLab, TableArgs};
use crate::names;
use aerostat_live::control::PvcPolice;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
One switch at a time; hosts use such connections if the lab file says so
(pvcs:). What is set up here is gone when the switch restarts; those of the lab
file come back then.

Examples:
  aerostat pvc show
  aerostat pvc add sw1 urku.0.100 linux.0.120 --qos cbr:max_pcr=2000
  aerostat pvc del sw1 urku.0.100"
)]
pub(crate) struct PvcArgs {
    #[command(subcommand)]
    pub(crate) command: PvcCommand,
}

/// Actions on permanent connections.
#[derive(Debug, Subcommand)]
pub(crate) enum PvcCommand {
    /// Join two labels of a switch, both ways
    Add(PvcAddArgs),
    /// Take a permanent connection down
    Del(PvcDelArgs),
    /// List the permanent connections of a switch, or of all
    Show(PvcShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
An end is PORT.VPI.VCI, or PORT.VPI with --vp; a port is a number or the name of
what is behind it ('aerostat inspect port' shows both). It is refused if a label
is in use or the bandwidth is not there.

Examples:
  aerostat pvc add sw1 urku.0.100 linux.0.120
  aerostat pvc add sw1 0.0.100 2.3.40 --police \\
      --qos cbr:tx:max_pcr=2000,rx:max_pcr=100
  aerostat pvc add sw1 urku.0.101 linux.0.121 --qos ubr:max_pcr=500 --police=all
  aerostat pvc add sw1 east.5 west.6 --vp")]
pub(crate) struct PvcAddArgs {
    /// The switch
    #[arg(add = names::switches())]
    pub(crate) switch: String,
    /// One end
    #[arg(value_name = "END")]
    pub(crate) a: String,
    /// The other end
    #[arg(value_name = "OTHER_END")]
    pub(crate) b: String,
    /// Traffic in the words of qos(7), tx from the first end to the second
    #[arg(long, default_value = "ubr")]
    pub(crate) qos: String,
    /// Join whole paths: the VPI is translated, all VCIs pass
    #[arg(long)]
    pub(crate) vp: bool,
    /// Discard what exceeds the contract of CBR and VBR (true), also of best effort (all), or nothing (false); without
    /// this option, what the ports police
    #[arg(long, value_name = "SCOPE", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) police: Option<PoliceArg>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Scope of the policers of a permanent connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoliceArg {
    /// CBR and VBR, and no less than the port polices
    True,
    /// Best effort to its peak rate, too
    All,
    /// Nothing, also where the port polices
    False,
}

impl From<PoliceArg> for PvcPolice {
    fn from(arg: PoliceArg) -> Self {
        match arg {
            PoliceArg::True => Self::True,
            PoliceArg::All => Self::All,
            PoliceArg::False => Self::False,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat pvc del sw1 urku.0.100
  aerostat pvc del sw1 east.5")]
pub(crate) struct PvcDelArgs {
    /// The switch
    #[arg(add = names::switches())]
    pub(crate) switch: String,
    /// One of its ends: PORT.VPI.VCI, or PORT.VPI of a path
    pub(crate) end: String,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat pvc show
  aerostat pvc show sw1 -o json")]
pub(crate) struct PvcShowArgs {
    /// The switch; all if left out
    #[arg(add = names::switches())]
    pub(crate) switch: Option<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Form of what the tools of linux-atm print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolFormat {
    /// The text of linux-atm's tool
    #[default]
    Text,
    /// One JSON document with a "schema"
    Json,
    /// One JSON object per row and line
    Jsonl,
    /// Comma-separated values with a header line
    Csv,
}

/// Options of all tools of linux-atm.
#[derive(Debug, Args)]
pub(crate) struct ToolArgs {
    /// The host, router or server; all that have such state if left out, each under its name
    #[arg(add = names::nodes())]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ToolFormat,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
#[command(
    version,
    after_help = "\
The text of atmarp(8). Entries come from the lab file and from ATMARP. A server
that has not said its IP address has that of the subnet, as in Linux; the other
end of a permanent connection has 0.0.0.0. 'Send buffer' is what the adapter's
queue of the connection holds. Changing the table is not offered here: see
'aerostat pvc' and clip: in the lab file. A link to aerostat with the name
atmarp does the same.

Exit codes: 0 done, 1 no such node or it has no Classical IP, 2 wrong usage, 4
no such lab is running.

Examples:
  aerostat atmarp -a
  aerostat atmarp -a lab1
  aerostat atmarp -a hub -o json"
)]
pub(crate) struct AtmarpArgs {
    /// List the ATMARP table
    #[arg(short, required = true)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) tool: ToolArgs,
}

#[derive(Debug, Args)]
#[command(
    version,
    after_help = "\
The text of atmaddr(8). Each address stands for all its selectors: one of a LANE
client ends in .00 here, too. A host with 'ilmi: true' has none before the
switch has given it one. A link to aerostat with the name atmaddr does the same.

Exit codes: 0 done, 1 no such node or it is no end system, 2 wrong usage, 4 no
such lab is running.

Examples:
  aerostat atmaddr
  aerostat atmaddr -n urku
  aerostat atmaddr -n urku -o json"
)]
pub(crate) struct AtmaddrArgs {
    /// Numbers only; there are no names in a lab, so it changes nothing
    #[arg(short)]
    pub(crate) numeric: bool,
    #[command(flatten)]
    pub(crate) tool: ToolArgs,
}

#[derive(Debug, Args)]
#[command(
    version,
    after_help = "\
The text of atmdiag(8): PDUs since the node was switched on, signalling's among
them. TX_err counts PDUs for connections that were closed meanwhile, RX_err
those with a wrong CRC, length or CPI. What the adapter's queues drop are cells:
see 'aerostat inspect NODE port'. A link to aerostat with the name atmdiag does
the same.

Exit codes: 0 done, 1 no such node or it is no end system, 2 wrong usage, 4 no
such lab is running.

Examples:
  aerostat atmdiag
  aerostat atmdiag urku
  aerostat atmdiag urku -o json"
)]
pub(crate) struct AtmdiagArgs {
    #[command(flatten)]
    pub(crate) tool: ToolArgs,
}

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
An entry is [SOURCE[:PORT]] DESTINATION[:PORT] [PROTOCOL] tx=PCR,SDU rx=tx, as
in Linux' /proc/net/atm/mpc. Packets that fit it become a flow of their own,
with a CBR shortcut of PCR cells/s, or best effort if there is no bandwidth.
Behind tx= and rx= may also stand a contract of CBR or VBR, such as
nrt-vbr:max_pcr=500,scr=240,mbs=20,sdu=300. Address 0.0.0.0 and port 0 are any;
the most exact entry wins. What is set here is gone when the client restarts;
the entries of the lab file (mpoa: { qos: ... }) come back then.

Examples:
  aerostat qos show
  aerostat qos add urku 130.230.54.146 tx=80000,0,1600 rx=tx
  aerostat qos del urku 130.230.54.146"
)]
pub(crate) struct QosArgs {
    #[command(subcommand)]
    pub(crate) command: QosCommand,
}

/// Actions on QoS entries.
#[derive(Debug, Subcommand)]
pub(crate) enum QosCommand {
    /// Set an entry, or change its traffic
    Add(QosAddArgs),
    /// Take an entry away: its flows end, and go on as any other
    Del(QosDelArgs),
    /// List the entries of a host, or of all
    Show(QosShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat qos add urku 130.230.54.146 tx=80000,0,1600 rx=tx
  aerostat qos add urku 0.0.0.0:0 130.230.54.209:23 tcp tx=20000,1600 rx=tx
  aerostat qos add urku 10.2.0.10:5004 udp tx=240,300 rx=120,300")]
pub(crate) struct QosAddArgs {
    /// The host
    #[arg(add = names::hosts())]
    pub(crate) node: String,
    /// SOURCE:PORT DESTINATION:PORT PROTOCOL tx=PCR,SDU rx=tx; source, ports and protocol may be left out
    #[arg(required = true)]
    pub(crate) entry: Vec<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat qos del urku 130.230.54.146
  aerostat qos del urku 0.0.0.0:0 130.230.54.209:23 tcp")]
pub(crate) struct QosDelArgs {
    /// The host
    #[arg(add = names::hosts())]
    pub(crate) node: String,
    /// SOURCE:PORT DESTINATION:PORT PROTOCOL; all except the destination may be left out
    #[arg(required = true)]
    pub(crate) entry: Vec<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aerostat qos show
  aerostat qos show urku -o json")]
pub(crate) struct QosShowArgs {
    /// The host; all if left out
    #[arg(add = names::hosts())]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
As in faults: of a lab file, but now. A node or service that crashed has
forgotten everything; those of a kernel host are in its namespace still.
Services: mpc of a host, mps of a router, lecs, les and bus of a LANE server.

Exit codes: 0 done, 1 no such node, service or link, 2 wrong usage, 4 no such
lab is running.

Examples:
  aerostat fault crash asn9000/mps
  aerostat fault restart asn9000/mps
  aerostat fault link-down urku-asx200"
)]
pub(crate) struct FaultArgs {
    #[command(subcommand)]
    pub(crate) command: FaultCommand,
}

/// Faults to cause, or to mend.
#[derive(Debug, Subcommand)]
pub(crate) enum FaultCommand {
    /// Stop a node, or one service of it
    #[command(
        after_help = "Examples:\n  aerostat fault crash asn9000/mps\n  aerostat fault crash urku"
    )]
    Crash(FaultTarget),
    /// Start it again, empty
    #[command(after_help = "Examples:\n  aerostat fault restart asn9000/mps")]
    Restart(FaultTarget),
    /// Let a link lose everything
    #[command(after_help = "Examples:\n  aerostat fault link-down urku-asx200")]
    LinkDown(LinkTarget),
    /// Let it work again
    #[command(after_help = "Examples:\n  aerostat fault link-up urku-asx200")]
    LinkUp(LinkTarget),
}

#[derive(Debug, Args)]
pub(crate) struct FaultTarget {
    /// NODE or NODE/SERVICE
    #[arg(add = names::victims())]
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

#[derive(Debug, Args)]
pub(crate) struct LinkTarget {
    /// Name of the link (see 'aerostat graph')
    #[arg(add = names::links())]
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

/// Show the links of a running lab, and change them
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Values have the names and the notation of a link of a lab file: rate, delay,
loss, bit_errors, block_errors and block. Each is for both directions, or with
.up or .down for one: up is from a host to its switch; on other links it is to
the node that is named first. Faults of a lab file do the same at given times.

Exit codes: 0 done, 1 no such link or value, 2 wrong usage, 4 no such lab is
running.

Examples:
  aerostat link show
  aerostat link set s1-s2 loss=1% delay=5ms rate=10Mbps
  aerostat link retrain c1-dslam 3s rate.up=512kbps rate.down=4Mbps
  aerostat link reset c1-dslam"
)]
pub(crate) struct LinkArgs {
    #[command(subcommand)]
    pub(crate) command: LinkCommand,
}

/// Requests about links.
#[derive(Debug, Subcommand)]
pub(crate) enum LinkCommand {
    /// Show values and states: of some links, or of all
    #[command(after_help = "Examples:\n  aerostat link show\n  aerostat link show s1-s2 -o json")]
    Show(LinkShow),
    /// Give a link new values
    #[command(
        after_help = "Examples:\n  aerostat link set s1-s2 loss=1% delay=5ms\n  aerostat link set c1-dslam rate.up=512kbps"
    )]
    Set(LinkSet),
    /// Let a link train: it is down for some time, and then has new values
    #[command(after_help = "Examples:\n  aerostat link retrain c1-dslam 3s rate.down=4Mbps")]
    Retrain(LinkRetrain),
    /// Give a link the values of the lab file again, and end its training
    #[command(after_help = "Examples:\n  aerostat link reset s1-s2")]
    Reset(LinkReset),
}

#[derive(Debug, Args)]
pub(crate) struct LinkShow {
    /// Names of links (see 'aerostat graph'); without one, all
    #[arg(value_name = "LINK", add = names::links())]
    pub(crate) links: Vec<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LinkSet {
    /// Name of the link (see 'aerostat graph')
    #[arg(add = names::links())]
    pub(crate) link: String,
    /// New values, such as loss=1% or rate.up=512kbps
    #[arg(value_name = "VALUE", required = true)]
    pub(crate) values: Vec<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LinkRetrain {
    /// Name of the link (see 'aerostat graph')
    #[arg(add = names::links())]
    pub(crate) link: String,
    /// How long it is down, such as 3s
    pub(crate) duration: String,
    /// Values that it has afterwards, such as rate.down=4Mbps
    #[arg(value_name = "VALUE")]
    pub(crate) values: Vec<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LinkReset {
    /// Name of the link (see 'aerostat graph')
    #[arg(add = names::links())]
    pub(crate) link: String,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Plug a station into another bridging host of a running lab
#[derive(Debug, Args)]
#[command(after_help = "\
A station is a host of `bridge:` behind a kernel host; it moves to another
bridging kernel host of the same ELAN. Its addresses and what runs in it stay.
It says by a gratuitous ARP where it is, and the proxies tell all by LE_NARP.

Exit codes: 0 done, 1 no such station or host, 2 wrong usage, 4 no such lab is
running.

Examples:
  aerostat move anna pc2")]
pub(crate) struct MoveArgs {
    /// The station
    #[arg(add = names::stations())]
    pub(crate) station: String,
    /// The host whose bridge it is plugged into
    #[arg(add = names::hosts())]
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

#[derive(Debug, Args)]
#[command(after_help = "\
DIR/HOST/atm/mpc and DIR/HOST/atm/lec (also under DIR/HOST/net/atm) have the
texts that Linux had under /proc, of the moment at which they are opened. What
is written to mpc changes QoS entries, as in Linux: 'add ENTRY' or 'del FILTER'.
It stays in the foreground; Ctrl-C unmounts, and so does the end of the lab.
Needs /dev/fuse, and root or fusermount3.

Exit codes: 0 unmounted, 1 it failed, 2 wrong usage, 4 no such lab is running, 5
no /dev/fuse or no permission.

Examples:
  aerostat mount /mnt/lab &
  cat /mnt/lab/urku/net/atm/mpc
  echo 'add 10.2.0.10 tx=80000,0,1600 rx=tx' > /mnt/lab/urku/atm/mpc")]
pub(crate) struct MountArgs {
    /// An empty directory
    pub(crate) directory: std::path::PathBuf,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}
