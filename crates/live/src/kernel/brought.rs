//! Kernel nodes that a client makes for a lab that runs.
//!
//! **Purpose.** The process of a running lab has no right to make interfaces, and gets none. The command that changes
//! the lab has the rights of its user: it enters the user namespace of the lab, makes the network namespaces and the
//! interfaces of new nodes there, and passes their descriptors to the lab ([`super::KernelNode`]).
//!
//! **Course.** A first request ([`Converge`]) is answered with the names of nodes to be made, and with the lab's user
//! namespace; nothing is done. The client makes them ([`bring`]) from the same file and the same numbers of addresses
//! ([`Wanted::numbers`]), and asks again, with the descriptors. If the lab has become another one in between, the
//! second request is refused, and what was made ends with its descriptors, as if the client had died.
//!
//! **Order of descriptors.** For each node: its namespace, its interfaces, the socket that reports its routes.

use super::{KernelNode, Place, lans, tcp};
use crate::control::Converge;
use crate::namespace::{NetNs, acquire_rights_of};
use crate::routes::KernelRoutes;
use crate::tap::Tap;
use aerostat_lab::model::{KEYS, Lab, NodeId};
use aerostat_lab::numbers::Numbers;
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;

/// Limit of descriptors that come with a request. A host has two, or one more for each further interface.
pub const MOST: usize = 2048;

/// Interfaces that a client has to make before the lab becomes that of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The nodes.
    pub nodes: Vec<String>,
    /// The numbers of the running lab, from which addresses follow.
    pub numbers: Numbers,
    /// How often the lab has become another one.
    pub generation: u64,
}

/// Interfaces that a client has made, beside their descriptors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brought {
    /// As in [`Wanted`].
    pub generation: u64,
    /// The nodes.
    pub nodes: Vec<BroughtNode>,
}

/// A node that a client has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroughtNode {
    /// Its name.
    name: String,
    /// The numbers of a router's interfaces in its kernel.
    lans: Option<Vec<u32>>,
    /// The keys `tcp` that its kernel follows: the key, its place there, and its value.
    tcp: Vec<[String; 3]>,
}

/// Makes nodes for a lab that runs, in its user namespace. The caller must have one thread.
///
/// # Errors
/// If the file has a mistake, or a right is missing, or the kernel refuses something; with the name of the node.
pub fn bring(
    request: &Converge,
    wanted: &Wanted,
    user_ns: &OwnedFd,
) -> io::Result<(Brought, Vec<OwnedFd>)> {
    let set = request.overrides();
    let checked = aerostat_lab::parse_for("", &request.text, &set, &wanted.numbers);
    let lab = checked
        .map_err(|wrong| io::Error::other(wrong.to_string()))?
        .lab;
    acquire_rights_of(user_ns)?;
    let (mut nodes, mut fds) = (Vec::new(), Vec::new());
    for name in &wanted.nodes {
        let none = || io::Error::other(format!("the file has no node '{name}'"));
        let id = lab.find(name).ok_or_else(none)?;
        let mut made = KernelNode::create(&lab, id, Place::Made)?;
        made.follow(&lab, id)?;
        nodes.push(made.into_parts(name, &mut fds));
        if fds.len() > MOST {
            let text = format!(
                "the interfaces of all {} new kernel hosts have more than {MOST} descriptors",
                wanted.nodes.len()
            );
            return Err(io::Error::other(text));
        }
    }
    let generation = wanted.generation;
    Ok((Brought { generation, nodes }, fds))
}

impl KernelNode {
    /// The parts that another process needs beside the descriptors, which are added to `fds`.
    fn into_parts(self, name: &str, fds: &mut Vec<OwnedFd>) -> BroughtNode {
        fds.push(self.namespace.into());
        fds.extend(self.taps.into_iter().map(OwnedFd::from));
        let lans = self.routes.map(|routes| {
            let (socket, numbers) = routes.into_parts();
            fds.push(socket);
            numbers
        });
        let tcp = self.tcp.into_iter();
        let tcp = tcp.map(|one| [one.key.to_owned(), one.by, one.value]);
        BroughtNode {
            name: name.to_owned(),
            lans,
            tcp: tcp.collect(),
        }
    }

    /// The node `id` of a lab, which another process has made; `None` if a descriptor is missing.
    fn of(
        (lab, id): (&Lab, NodeId),
        brought: BroughtNode,
        fds: &mut impl Iterator<Item = OwnedFd>,
    ) -> Option<Self> {
        let namespace = NetNs::from(fds.next()?);
        let count = lab.node(id).lecs().len();
        let taps: Vec<Tap> = fds.by_ref().take(count).map(Tap::from).collect();
        let routes = match brought.lans {
            Some(numbers) => Some(KernelRoutes::of(fds.next()?, lans(lab, id), numbers)),
            None => None,
        };
        let tcp = brought.tcp.into_iter().filter_map(|[name, by, value]| {
            let key = KEYS.iter().find(|follows| follows.key == name)?.key;
            Some(tcp::Followed { key, by, value })
        });
        (taps.len() == count).then(|| Self {
            namespace,
            taps,
            routes,
            tcp: tcp.collect(),
        })
    }
}

/// The nodes that a client has made for this lab; `None` if they are not those that the lab wants.
pub(crate) fn taken(
    lab: &Lab,
    wanted: &BTreeSet<NodeId>,
    brought: Brought,
    fds: Vec<OwnedFd>,
) -> Option<Vec<(NodeId, KernelNode)>> {
    let mut fds = fds.into_iter();
    let mut all = Vec::new();
    for node in brought.nodes {
        let id = lab.find(&node.name).filter(|id| wanted.contains(id))?;
        all.push((id, KernelNode::of((lab, id), node, &mut fds)?));
    }
    (all.len() == wanted.len() && fds.next().is_none()).then_some(all)
}
