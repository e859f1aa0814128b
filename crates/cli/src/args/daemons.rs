//! Arguments of the daemons of `up --split`, which users seldom start by hand.

use super::RunningLab;
use crate::names;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
The lab starts one for each node that has signalling and starts it again when it
dies: all switched connections of the node end with it, permanent ones go on.
SIGTERM and Ctrl-C release the calls first; SIGHUP makes it begin anew.

Examples:
  aerostat sigd urku
  aerostat sigd --lab campus urku")]
pub(crate) struct SigdArgs {
    #[command(flatten)]
    pub(crate) of: DaemonOf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The lab starts one for each switch and each node that speak ILMI, and starts it
again when it dies: addresses stay, and the next one confirms them. SIGTERM and
Ctrl-C withdraw addresses and prefixes first; SIGHUP makes it begin anew.

Examples:
  aerostat ilmid s1
  aerostat ilmid --lab campus urku")]
pub(crate) struct IlmidArgs {
    #[command(flatten)]
    pub(crate) of: DaemonOf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The lab starts one for each router with an MPOA server and starts it again when
it dies: the shortcuts that the server gave end with its Keep-Alives, those that
end at the router end at once, and LANE carries their packets. SIGTERM and
Ctrl-C release the connections first; SIGHUP makes it begin anew, without state.

Examples:
  aerostat mpsd r1
  aerostat mpsd --lab campus r1")]
pub(crate) struct MpsdArgs {
    #[command(flatten)]
    pub(crate) of: DaemonOf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The lab starts such a daemon for each host and starts it again when it dies. One
that has ended in good order stays away: this starts another. SIGTERM and Ctrl-C
clear the egress cache at the MPOA servers first (mpcd) or leave the ELANs
(lecd); SIGHUP starts the clients again.

Examples:
  aerostat mpcd urku
  aerostat lecd urku
  aerostat mpcd --lab campus urku")]
pub(crate) struct DaemonArgs {
    #[command(flatten)]
    pub(crate) of: DaemonOf,
}

/// Place of a daemon that is started by hand.
#[derive(Debug, Args)]
pub(crate) struct DaemonOf {
    /// The host
    #[arg(add = names::nodes())]
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The lab starts such a process for each host of LANE servers and starts it again
when it dies. One that has ended in good order stays away: this starts another.
SIGTERM and Ctrl-C release its connections first; SIGHUP starts its servers
again. 'aerostat inspect processes' shows them all.

Examples:
  aerostat les lane
  aerostat bus --lab campus lane")]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    pub(crate) of: DaemonOf,
}
