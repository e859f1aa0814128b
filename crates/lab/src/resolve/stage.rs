//! Stages of resolving: each may read the whole lab so far, and change only what its type names.
//!
//! A slice can be changed, and a list can grow as well.

use crate::model::{Elan, Expect, Fault, Flow, Lab, Link, LinkId, Node, NodeId, Occupancy, Pvc};
use std::collections::BTreeMap;
use std::ops::Deref;

macro_rules! stages {
    ($( $(#[$about:meta])+ $stage:ident { $($part:ident as $change:ident: $kind:ty,)+ } )+) => {$(
        $(#[$about])+
        pub(super) struct $stage<'a>(&'a mut Lab);

        impl<'a> $stage<'a> {
            /// The stage that changes this lab.
            pub(super) const fn of(lab: &'a mut Lab) -> Self {
                Self(lab)
            }
            $(
                /// The part with this name, to be changed.
                pub(super) fn $change(&mut self) -> &mut $kind {
                    &mut self.0.$part
                }
            )+
        }

        impl Deref for $stage<'_> {
            type Target = Lab;

            fn deref(&self) -> &Lab {
                self.0
            }
        }
    )+};
}

stages! {
    /// Builds machines, links and networks.
    Building {
        nodes as nodes_mut: Vec<Node>,
        links as links_mut: Vec<Link>,
        elans as elans_mut: Vec<Elan>,
    }
    /// Gives machines their memberships, routes and tables.
    Joining {
        nodes as nodes_mut: [Node],
        elans as elans_mut: [Elan],
    }
    /// Adds permanent connections, for which adapters get paths and queues.
    Connecting {
        nodes as nodes_mut: [Node],
        pvcs as pvcs_mut: Vec<Pvc>,
    }
    /// Gives hosts their programs.
    Programming {
        nodes as nodes_mut: [Node],
        sockets_expect as expect_mut: BTreeMap<(NodeId, usize), Expect>,
    }
    /// Adds what happens in a run, and what of it is recorded.
    Happening {
        traffic as traffic_mut: Vec<Flow>,
        faults as faults_mut: Vec<Fault>,
        capture as capture_mut: Vec<LinkId>,
        occupancy as occupancy_mut: Option<Occupancy>,
    }
}
