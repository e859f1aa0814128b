//! A running lab without its loop: the network, the sources of input, and what is told of them. Answers to clients work
//! on it.
//!
//! **Words.** What the lab tells its caller goes through [`Site::tell`], and its events through [`Site::event`]
//! (`site/telling.rs`).

mod carried;
mod faults;
mod sources;
mod telling;

pub(crate) use carried::{Carried, Site};
pub(crate) use sources::Sources;

use crate::kernel::tcp::Followed;
use crate::kernel::{KernelNode, Kernels};
use crate::namespace::NetNs;
use crate::recorder::Recorder;
use crate::routes::Routes;
use crate::stations::Stations;
use crate::supervisor::LabProcesses;
use crate::taps::Taps;
use aerostat_lab::model::NodeId;
use aerostat_proto::Trace;
use mio::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::Arc;

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
        for made in kernels.nodes {
            inside.add(made, (&mut taps, &mut routes), registry)?;
        }
        Ok((inside, taps, routes))
    }

    /// Takes over what a kernel node has.
    fn add(
        &mut self,
        (node, kernel): (NodeId, KernelNode),
        (taps, routes): (&mut Taps, &mut Routes),
        registry: &Registry,
    ) -> io::Result<()> {
        self.followed.insert(node.0, kernel.tcp);
        self.namespaces.insert(node.0, kernel.namespace);
        if let Some(watched) = kernel.routes {
            routes.add(node, watched, registry)?;
        }
        for (itf, tap) in kernel.taps.into_iter().enumerate() {
            taps.add((node, itf), tap, registry)?;
        }
        Ok(())
    }

    /// Lets go of kernel nodes, and takes over others. The interfaces of the former end with that, and a namespace with
    /// the last process in it. Returns nodes that cannot be taken over.
    pub(crate) fn exchange(
        &mut self,
        (gone, made): (BTreeSet<NodeId>, Vec<(NodeId, KernelNode)>),
        (taps, routes): (&mut Taps, &mut Routes),
        registry: &Registry,
    ) -> Vec<(NodeId, io::Error)> {
        for node in gone {
            taps.remove(node, registry);
            routes.remove(node, registry);
            self.namespaces.remove(&node.0);
            self.followed.remove(&node.0);
        }
        let mut refused = Vec::new();
        for made in made {
            let node = made.0;
            let added = self.add(made, (&mut *taps, &mut *routes), registry);
            refused.extend(added.err().map(|error| (node, error)));
        }
        refused
    }
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
