//! Parts that a running lab keeps when it becomes that of another file.

use super::{Inside, Site, Sources, Word};
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

/// A running lab while it becomes another one: everything that does not depend on the file.
pub(crate) struct Carried {
    pub(crate) world: World,
    pub(crate) clock: Clock,
    pub(crate) epoch_ns: u64,
    pub(crate) registry: Registry,
    pub(crate) sources: Sources,
    /// How much the network does between two looks at TAPs and links.
    pub(crate) budget: Budget,
    pub(crate) inside: Inside,
    /// Programs that clients of the control socket started.
    pub(crate) commanded: Commanded,
    /// Rights that this process has given up.
    pub(crate) confinement: Confinement,
    /// The ties with the parent process, until the lab is ready.
    pub(crate) ties: Option<Ties>,
    /// The connections of the control socket.
    pub(crate) connections: Connections,
    /// Way for the results of other threads, and the waker of the loop.
    pub(crate) done: Sender<Word>,
    pub(crate) waker: Arc<Waker>,
    /// The recording that the lab file asks for.
    pub(crate) recorder: Option<Recorder>,
    pub(crate) story: Story,
    /// Events of the network that are not told yet.
    pub(crate) untold: VecDeque<(NodeId, Instant, Trace)>,
    /// The names of the nodes.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) faults: Faults,
    pub(crate) missing: Vec<String>,
    pub(crate) ready: bool,
    /// True if this machine itself is the lab's host.
    pub(crate) machine: bool,
    /// How often the lab has become another one.
    pub(crate) generation: u64,
    /// Way for new labs from threads to the loop.
    pub(crate) prepared: Sender<Prepared>,
}

impl Site<'_> {
    /// The parts that do not depend on the file. Clients that follow the state have to begin again.
    pub(crate) fn carry(self) -> Carried {
        let Self {
            caller: _,
            lab: _,
            builder: _,
            pictures: _,
            world,
            clock,
            epoch_ns,
            registry,
            sources,
            budget,
            inside,
            commanded,
            confinement,
            ties,
            connections,
            done,
            waker,
            recorder,
            story,
            untold,
            names,
            faults,
            missing,
            ready,
            machine,
            generation,
            prepared,
        } = self;
        Carried {
            world,
            clock,
            epoch_ns,
            registry,
            sources,
            budget,
            inside,
            commanded,
            confinement,
            ties,
            connections,
            done,
            waker,
            recorder,
            story,
            untold,
            names,
            faults,
            missing,
            ready,
            machine,
            generation,
            prepared,
        }
    }
}

impl Carried {
    /// The lab goes on with this file.
    pub(crate) fn site<'a>(
        self,
        caller: &'a mut dyn FnMut(Notice<'_>),
        (lab, builder): (&'a Lab, &'a Builder<'a>),
    ) -> Site<'a> {
        let Self {
            world,
            clock,
            epoch_ns,
            registry,
            sources,
            budget,
            inside,
            commanded,
            confinement,
            ties,
            connections,
            done,
            waker,
            recorder,
            story,
            untold,
            names,
            faults,
            missing,
            ready,
            machine,
            generation,
            prepared,
        } = self;
        Site {
            caller,
            lab,
            builder,
            pictures: Pictures::default(),
            world,
            clock,
            epoch_ns,
            registry,
            sources,
            budget,
            inside,
            commanded,
            confinement,
            ties,
            connections,
            done,
            waker,
            recorder,
            story,
            untold,
            names,
            faults,
            missing,
            ready,
            machine,
            generation,
            prepared,
        }
    }
}
