//! Files with next hops of Classical IP subnets, which are read again when they change.
//!
//! Each second the age, size and number of every file are compared with those of the last reading. A changed file is
//! read as a whole. If it has a mistake, the old next hops stay, and the mistake is told once. A member that has
//! started anew knows what the lab file said; it gets the latest next hops within a second.

use crate::source::{Said, Source, Turn};
use aerostat_lab::hops::{self, Users};
use aerostat_lab::model::{Lab, MapFile, NextHop, NodeId};
use aerostat_node::host::HostCommand;
use aerostat_proto::clip::NextHops;
use aerostat_proto::{Duration, Instant, Trace};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_secs(1);

/// Stamp that tells a file from its earlier state: time of the last change, size, device and inode.
type Stamp = (i64, i64, u64, u64, u64);

#[derive(Debug)]
struct Watched {
    users: Users,
    map: MapFile,
    seen: Option<Stamp>,
}

/// The files of a lab.
#[derive(Debug)]
pub(crate) struct NextHopFiles {
    files: Vec<Watched>,
    /// Lists that were read since the start.
    lists: BTreeMap<Users, Vec<NextHop>>,
    next: Option<Instant>,
}

impl NextHopFiles {
    /// The files that members of this lab use; they have just been read.
    pub(crate) fn of(lab: &Lab) -> Self {
        let files = hops::files(lab).map(|(users, map)| Watched {
            users,
            map: map.clone(),
            seen: stamp(&map.path),
        });
        let files: Vec<Watched> = files.collect();
        Self {
            next: (!files.is_empty()).then_some(Instant::ZERO),
            files,
            lists: BTreeMap::new(),
        }
    }

    /// The next hops of all members that use a file which was read since the start.
    fn members(&self, lab: &Lab) -> Vec<(NodeId, usize, NextHops)> {
        if self.lists.is_empty() {
            return Vec::new();
        }
        let mut all = Vec::new();
        for (id, node) in lab.nodes() {
            for (itf, lec) in node.lecs().iter().enumerate() {
                let of = |member| {
                    self.lists.get(&Users {
                        elan: lec.elan,
                        member,
                    })
                };
                let (own, shared) = (of(Some((id, itf))), of(None));
                if own.is_some() || shared.is_some() {
                    let hops = hops::with(lab, lec, own, shared);
                    all.push((id, itf, hops));
                }
            }
        }
        all
    }

    /// The members that use a file.
    fn users(lab: &Lab, Users { elan, member }: Users) -> Vec<(NodeId, usize)> {
        let nodes = lab.nodes();
        let all = nodes.flat_map(|(id, node)| {
            let lecs = node.lecs().iter().enumerate();
            lecs.filter(move |(itf, lec)| {
                lec.elan == elan && member.is_none_or(|one| one == (id, *itf))
            })
            .map(move |(itf, _)| (id, itf))
        });
        all.collect()
    }
}

impl Source for NextHopFiles {
    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Looks at the files, if it is time, and gives members of Classical IP subnets the next hops of those that have
    /// changed.
    fn turn(&mut self, turn: &mut Turn<'_>) -> bool {
        if self.next.is_none_or(|at| at > turn.now) {
            return false;
        }
        self.next = Some(turn.now + PAUSE);
        for file in &mut self.files {
            let stamp = stamp(&file.map.path);
            if stamp == file.seen {
                continue;
            }
            file.seen = stamp;
            let (name, read) = (
                &file.map.name,
                hops::read(&file.map.path, turn.lab, file.users.elan),
            );
            let trace = match &read {
                Ok(list) => {
                    let text = format!("{name}: {} next hops read again", list.len());
                    Trace::milestone("clip.map-read", text)
                }
                Err(why) => {
                    let text = format!("{name}: {why}; the next hops stay as they were");
                    Trace::milestone("clip.map-wrong", text)
                }
            };
            let users = Self::users(turn.lab, file.users);
            let first = users.first().map_or(NodeId(0), |(node, _)| *node);
            turn.said.push(Said::Trace(first, trace.with("file", name)));
            match read {
                Ok(list) => drop(self.lists.insert(file.users, list)),
                Err(_) => turn.said.extend(
                    users
                        .into_iter()
                        .map(|(node, itf)| Said::Command(node, HostCommand::NextHopsWrong(itf))),
                ),
            }
        }
        for (node, itf, hops) in self.members(turn.lab) {
            let station = turn.world.node(node).and_then(|node| node.as_station());
            let known = station.and_then(|station| station.host().known_hops(itf));
            if known.is_some_and(|known| *known != hops) {
                let command = HostCommand::NextHops(itf, hops);
                turn.said.push(Said::Command(node, command));
            }
        }
        false
    }
}

/// `None` if there is no such file.
fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(path).ok()?;
    let (time, nanos) = (about.mtime(), about.mtime_nsec());
    Some((time, nanos, about.size(), about.dev(), about.ino()))
}
