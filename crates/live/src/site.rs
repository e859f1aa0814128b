//! A running lab without its loop: the network, the sources of input, and what is told of them. Answers to clients work
//! on it.
//!
//! **Words.** What the lab tells its caller goes through [`Site::tell`], and its events through [`Site::event`]
//! (`site/telling.rs`).

mod carried;
mod faults;
mod sources;
mod telling;

pub(crate) use carried::Carried;
pub(crate) use sources::Sources;

use crate::budget::Budget;
use crate::clock::Clock;
use crate::confine::Confinement;
use crate::control::Connections;
use crate::converge::Prepared;
use crate::detach::Ties;
use crate::kernel::Kernels;
use crate::kernel::tcp::Followed;
use crate::namespace::NetNs;
use crate::notice::Notice;
use crate::pictures::Pictures;
use crate::programs::Commanded;
use crate::recorder::Recorder;
use crate::routes::Routes;
use crate::stations::Stations;
use crate::story::Story;
use crate::supervisor::LabProcesses;
use crate::taps::Taps;
use crate::world::World;
use aerostat_lab::build::Builder;
use aerostat_lab::model::{Lab, NodeId};
use aerostat_lab::plant::faults::Faults;
use aerostat_proto::{Instant, Trace};
use mio::{Registry, Waker};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A trace event about a node.
pub(crate) type Word = (NodeId, Trace);

/// Kernel hosts: their namespaces, and the processes in them.
#[derive(Default)]
pub(crate) struct Inside {
    pub(crate) namespaces: BTreeMap<usize, NetNs>,
    /// The keys `tcp` that the kernels of hosts follow.
    pub(crate) followed: BTreeMap<usize, Vec<Followed>>,
    /// Kernel hosts behind bridging hosts.
    pub(crate) stations: Stations,
    pub(crate) processes: Option<LabProcesses>,
}

impl Inside {
    /// Takes over what kernel nodes have. Their TAPs and routes become sources, which are registered.
    pub(crate) fn open(kernels: Kernels, registry: &Registry) -> io::Result<(Self, Taps, Routes)> {
        let (mut taps, mut routes) = (Taps::default(), Routes::default());
        let mut inside = Self {
            stations: kernels.stations,
            processes: kernels.processes,
            ..Self::default()
        };
        for (node, kernel) in kernels.nodes {
            inside.followed.insert(node.0, kernel.tcp);
            inside.namespaces.insert(node.0, kernel.namespace);
            if let Some(watched) = kernel.routes {
                routes.add(node, watched, registry)?;
            }
            for (itf, tap) in kernel.taps.into_iter().enumerate() {
                taps.add((node, itf), tap, registry)?;
            }
        }
        Ok((inside, taps, routes))
    }
}

/// A running lab.
pub(crate) struct Site<'a> {
    /// The caller, who hears of everything.
    pub(crate) caller: &'a mut dyn FnMut(Notice<'_>),
    pub(crate) lab: &'a Lab,
    pub(crate) builder: &'a Builder<'a>,
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
    /// Clients that follow the state.
    pub(crate) pictures: Pictures<'a>,
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
    /// Records the links of `capture:` from now on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn record(&mut self, file: File) -> io::Result<()> {
        let captures = &mut self.world.captures;
        self.recorder = Some(Recorder::start(self.lab, file, captures, self.epoch_ns)?);
        Ok(())
    }

    /// True if packets may be in other processes, or outside the lab.
    pub(crate) fn elsewhere(&self) -> bool {
        self.sources.daemons.is_some() || !self.sources.links.all.is_empty()
    }

    /// A callback by which other threads report to the loop when they are done, with a trace event about a node.
    pub(crate) fn when_done(&self) -> impl FnOnce(NodeId, Trace) + Send + 'static {
        let (to_loop, waker) = (self.done.clone(), Arc::clone(&self.waker));
        move |node, trace| {
            // The lab may have ended.
            let _ = to_loop.send((node, trace));
            let _ = waker.wake();
        }
    }
}
