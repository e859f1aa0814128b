//! Commands of an experimenter and of management to a host.

use super::service::ServiceKind;
use crate::ip::apps::AppCommand;
use crate::ip::router::StaticRoute;
use aerostat_proto::clip::NextHops;
use aerostat_wire::mpoa::FlowFilter;
use aerostat_wire::{Qos, Vc};

/// Commands of an experimenter to a host.
#[derive(Debug)]
pub enum HostCommand {
    /// A command for the embedded host's programs.
    App(AppCommand),
    /// A command for the programs of a host on the Ethernet segment behind this host, by number.
    SegmentApp(usize, AppCommand),
    /// Turns MPOA on or off: MPC and MPS start or shut down in order.
    Mpoa(bool),
    /// All services of a kind stop at once and lose their state. Signalling clears their calls.
    Crash(ServiceKind),
    /// The services of a kind start again with empty state.
    Restart(ServiceKind),
    /// Replaces what the member of a Classical IP subnet on interface N knows of next hops beforehand.
    NextHops(usize, NextHops),
    /// A file with next hops of interface N has changed and has a mistake: it is counted.
    NextHopsWrong(usize),
    /// Something can be reached now that could not before: services ask again at once what had no answer, and do not
    /// wait for their timers.
    AskAgain,
    /// Management has changed the contract of the permanent connection with this label, seen from this host.
    Contract(Vc, Qos),
    /// Replaces the static routes of the embedded host or router.
    Routes(Vec<StaticRoute>),
    /// Gives packets of the MPOA client that match the filter a shortcut of their own with this traffic; `None` removes
    /// the entry.
    ShortcutQos(FlowFilter, Option<Qos>),
}

impl HostCommand {
    /// A command for the programs of the host itself (`None`), or of a host on the segment behind it.
    #[must_use]
    pub fn app(behind: Option<usize>, command: AppCommand) -> Self {
        match behind {
            Some(host) => Self::SegmentApp(host, command),
            None => Self::App(command),
        }
    }
}
