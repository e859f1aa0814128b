//! A running lab: parts that depend on its file, and those that it keeps when it becomes that of another file.

use super::{Inside, Sources, Word};
use crate::budget::Budget;
use crate::clock::Clock;
use crate::confine::Confinement;
use crate::control::Connections;
use crate::converge::Prepared;
use crate::detach::Ties;
use crate::notice::Notice;
use crate::pictures::Pictures;
use crate::programs::Commanded;
use crate::recorder::Recorder;
use crate::story::Story;
use crate::world::World;
use aerostat_lab::build::Builder;
use aerostat_lab::model::{Lab, NodeId};
use aerostat_lab::plant::faults::Faults;
use aerostat_proto::{Instant, Trace};
use mio::{Registry, Waker};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A running lab, and what of it goes on as another one: the fields of both, listed once.
macro_rules! site {
    ($($(#[$doc:meta])* $field:ident: $kind:ty,)+) => {
        /// A running lab.
        pub(crate) struct Site<'a> {
            /// The caller, who hears of everything.
            pub(crate) caller: &'a mut dyn FnMut(Notice<'_>),
            pub(crate) lab: &'a Lab,
            pub(crate) builder: &'a Builder<'a>,
            /// Clients that follow the state.
            pub(crate) pictures: Pictures<'a>,
            $($(#[$doc])* pub(crate) $field: $kind,)+
        }

        /// A running lab while it becomes another one: everything that does not depend on the file.
        pub(crate) struct Carried {
            $($(#[$doc])* pub(crate) $field: $kind,)+
        }

        impl Site<'_> {
            /// The parts that do not depend on the file. Clients that follow the state have to begin again.
            pub(crate) fn carry(self) -> Carried {
                let Self { $($field,)+ .. } = self;
                Carried { $($field),+ }
            }
        }

        impl Carried {
            /// The lab goes on with this file.
            pub(crate) fn site<'a>(
                self,
                caller: &'a mut dyn FnMut(Notice<'_>),
                (lab, builder): (&'a Lab, &'a Builder<'a>),
            ) -> Site<'a> {
                let Self { $($field),+ } = self;
                let pictures = Pictures::default();
                Site { caller, lab, builder, pictures, $($field),+ }
            }
        }
    };
}

site! {
    world: World,
    clock: Clock,
    epoch_ns: u64,
    registry: Registry,
    sources: Sources,
    /// How much the network does between two looks at TAPs and links.
    budget: Budget,
    inside: Inside,
    /// Programs that clients of the control socket started.
    commanded: Commanded,
    /// Rights that this process has given up.
    confinement: Confinement,
    /// The ties with the parent process, until the lab is ready.
    ties: Option<Ties>,
    /// The connections of the control socket.
    connections: Connections,
    /// Way for the results of other threads, and the waker of the loop.
    done: Sender<Word>,
    waker: Arc<Waker>,
    /// The recording that the lab file asks for.
    recorder: Option<Recorder>,
    story: Story,
    /// Events of the network that are not told yet.
    untold: VecDeque<(NodeId, Instant, Trace)>,
    /// The names of the nodes.
    names: Vec<Arc<str>>,
    faults: Faults,
    missing: Vec<String>,
    ready: bool,
    /// True if this machine itself is the lab's host.
    machine: bool,
    /// How often the lab has become another one.
    generation: u64,
    /// The lab file as its user names it.
    file: String,
    /// Way for new labs from threads to the loop.
    prepared: Sender<Prepared>,
}
