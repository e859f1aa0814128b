//! Changes of a running lab to that of another file.
//!
//! **Course.** A thread of its own reads the file and compares ([`prepare`]), because that takes time with many nodes,
//! and traffic must not wait for it. The loop then ends with what the thread has found, the network becomes the new
//! one in a single step ([`Carried::converge`]), and the loop begins again with the new lab.
//!
//! **Refusals.** Nothing is done if the lab must be started again for a change, or if a node must be that the command
//! does not name. A permanent connection for which a switch has no room is left out: the lab is without it, and the
//! next comparison finds it missing.
//!
//! **Rights.** The process has no more of them than before. Files that a lab file names are not read again. Interfaces
//! of kernel hosts are made by the client ([`crate::kernel::brought`]).

use crate::control::{Answer, Converge, Converged, Reply};
use crate::kernel::KernelNode;
use crate::kernel::brought::{Brought, Wanted, taken};
use crate::notice::{File, Notice};
use crate::site::{Carried, Site};
use crate::supervisor::LabProcesses;
use crate::threads::spawn_named;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::converge::{self, Interfaces, Means, Plan};
use aerostat_lab::event::Names;
use aerostat_lab::model::{Lab, LineParams, LinkId, NodeId};
use aerostat_lab::plant::Refused;
use aerostat_proto::Instant;
use mio::Waker;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender};

/// Findings of a thread, for the loop.
pub(crate) struct Prepared {
    /// The new lab, with the indices of the running one.
    pub(crate) file: File,
    pub(crate) converged: Converged,
    pub(crate) again: BTreeSet<NodeId>,
    /// Kernel nodes whose interfaces go.
    gone: BTreeSet<NodeId>,
    /// Kernel nodes that the client has made.
    made: Vec<(NodeId, KernelNode)>,
    reply: SyncSender<Reply>,
    /// Number of changes of the lab when it was compared.
    generation: u64,
}

/// Compares a file with the running lab on a thread of its own. What is to be done goes to the loop; everything else is
/// answered at once.
pub(crate) fn begin(
    site: &Site<'_>,
    (request, descriptors): (Converge, Vec<OwnedFd>),
    reply: SyncSender<Reply>,
) {
    let user_ns = site.inside.processes.as_ref().map(LabProcesses::user_ns);
    let user_ns = user_ns.map(|fd| fd.try_clone_to_owned());
    let means = Means {
        flavour: site.builder.flavour(),
        split: site.sources.daemons.is_some(),
        makes: request.makes && user_ns.is_some(),
    };
    if site.machine {
        let text = "this machine itself is the lab's host: its interfaces are made at its start";
        let hint = "stop 'aerostat host', and start it again with the new file";
        return answer(&reply, Answer::error(text, hint));
    }
    let running = Arc::clone(site.world.lab());
    let (to_loop, waker) = (site.prepared.clone(), Arc::clone(&site.waker));
    let for_error = reply.clone();
    let mut comparison = Comparison {
        running,
        means,
        user_ns,
        generation: site.generation,
    };
    let started = spawn_named("converge", move || {
        match comparison.prepare(request, descriptors, &reply) {
            Ok(prepared) => to_the_loop(&to_loop, &waker, prepared),
            // The client may have closed the connection.
            Err(said) => drop(reply.try_send(*said)),
        }
    });
    if let Err(error) = started {
        answer(&for_error, Answer::error(error.to_string(), ""));
    }
}

fn to_the_loop(to_loop: &Sender<Prepared>, waker: &Waker, prepared: Prepared) {
    // The lab may have ended.
    let _ = to_loop.send(prepared);
    let _ = waker.wake();
}

fn answer(reply: &SyncSender<Reply>, answer: Answer) {
    // The client may have closed the connection.
    let _ = reply.try_send(Reply::Answer(answer));
}

/// The running lab, and what may be done with it.
struct Comparison {
    running: Arc<Lab>,
    means: Means,
    /// The user namespace of the lab, in which a client may make interfaces.
    user_ns: Option<io::Result<OwnedFd>>,
    generation: u64,
}

/// The new file, with the indices of the running lab.
fn read(running: &Lab, request: &Converge) -> Result<File, Box<Reply>> {
    let set = request.overrides();
    let name = format!("{}.atm.yml", running.name);
    let checked = aerostat_lab::parse_for(&name, &request.text, &set, &running.numbers);
    let mut checked = checked.map_err(|wrong| {
        error(
            &wrong,
            "files that a lab file names are read at the start of the lab only: 'aerostat down', then 'aerostat up'",
        )
    })?;
    if checked.lab.name != running.name {
        let text = format!(
            "this lab is {}, and the file has {}",
            running.name, checked.lab.name
        );
        return Err(error(&text, "the name of a lab cannot change"));
    }
    let next = converge::beside(running, &checked.lab);
    checked.lab = next.map_err(|obstacle| error(&obstacle, DOWN_AND_UP))?;
    let name = request.name.clone().unwrap_or(name);
    Ok(File { name, checked, set })
}

fn error(text: &dyn std::fmt::Display, hint: &str) -> Box<Reply> {
    Box::new(Reply::Answer(Answer::error(text.to_string(), hint)))
}

impl Comparison {
    /// The new lab, or the answer if nothing is to be done.
    fn prepare(
        &mut self,
        request: Converge,
        descriptors: Vec<OwnedFd>,
        reply: &SyncSender<Reply>,
    ) -> Result<Prepared, Box<Reply>> {
        let (running, means) = (&*self.running, self.means);
        let file = read(running, &request)?;
        let next = &file.checked.lab;
        let plan = converge::plan(running, next, means);
        let known = |name: &&String| next.find(name).is_none();
        if let Some(unknown) = request.restart.iter().find(known) {
            let text = format!("there is no node '{unknown}'");
            return Err(error(&text, "--restart takes a node of the file"));
        }
        let mut wanted: BTreeSet<String> = request.restart.iter().cloned().collect();
        if request.restart_needed {
            wanted.extend(plan.restarts().into_iter().map(str::to_owned));
        }
        // What is new starts anyway.
        let again = wanted.iter().filter_map(|name| next.find(name));
        let again = again.filter(|id| id.0 < running.nodes.len() && running.has_node(*id));
        let again: BTreeSet<NodeId> = again.collect();
        let names = again.iter().map(|id| next.node(*id).name.clone());
        let mut converged = Converged {
            restarted: names.collect(),
            kernel: means.flavour == Flavour::Kernel,
            split: means.split,
            plan,
            ..Converged::default()
        };
        let missing = missing(&converged.plan, &wanted);
        let nothing = converged.plan.is_empty() && again.is_empty();
        if request.dry_run || nothing || missing {
            if request.dry_run || missing {
                converged.restarted.clear();
            }
            converged.done = nothing;
            return Err(Box::new(Reply::Answer(said(&converged))));
        }
        let Interfaces { made, gone } = Interfaces::between(running, next, means.flavour);
        let brought = (request.brought, descriptors);
        let made = match made.is_empty() {
            true => Vec::new(),
            false => self.made((next, &made), brought, &mut converged)?,
        };
        Ok(Prepared {
            file,
            converged,
            again,
            gone,
            made,
            reply: reply.clone(),
            generation: self.generation,
        })
    }

    /// The kernel nodes of the new lab that the client has made, or the answer that asks for them.
    fn made(
        &mut self,
        (next, made): (&Lab, &BTreeSet<NodeId>),
        (brought, descriptors): (Option<Brought>, Vec<OwnedFd>),
        converged: &mut Converged,
    ) -> Result<Vec<(NodeId, KernelNode)>, Box<Reply>> {
        let generation = self.generation;
        if let Some(brought) = brought {
            if brought.generation != generation {
                return Err(error(&OTHER, COMPARE_AGAIN));
            }
            let missing = || error(&MISSING, FULL);
            return taken(next, made, brought, descriptors).ok_or_else(missing);
        }
        let nodes = made.iter().map(|id| next.node(*id).name.clone());
        converged.wanted = Some(Wanted {
            nodes: nodes.collect(),
            numbers: self.running.numbers.clone(),
            generation,
        });
        match self.user_ns.take() {
            Some(Ok(user_ns)) => Err(Box::new(Reply::Descriptors(said(converged), vec![user_ns]))),
            Some(Err(wrong)) => Err(error(&format!("nothing was done: {wrong}"), FULL)),
            // The plan has needed a new start.
            None => Ok(Vec::new()),
        }
    }
}

/// Refusal of a change that was compared with another state of the lab.
const OTHER: &str = "nothing was done, because another command has just changed the lab";
const COMPARE_AGAIN: &str = "run 'aerostat up' again";
/// Refusal of a change for which the client has not brought what it should, or the lab has no room for it.
const MISSING: &str = "nothing was done, because descriptors of new kernel hosts are missing";
const FULL: &str =
    "the lab's process may have no file descriptor left: start it with a larger 'ulimit -n'";

/// The way to a change that the running lab cannot make.
const DOWN_AND_UP: &str = "'aerostat down', then 'aerostat up'";

/// True if the plan needs something for which the command has not asked.
fn missing(plan: &Plan, wanted: &BTreeSet<String>) -> bool {
    let mut restarts = plan.restarts().into_iter();
    plan.new_starts().next().is_some() || restarts.any(|node| !wanted.contains(node))
}

fn said(converged: &Converged) -> Answer {
    match serde_json::to_value(converged) {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::error(error.to_string(), ""),
    }
}

impl Prepared {
    /// True if the lab is still the one that was compared, and does not end; tells the client if it is not so.
    pub(crate) fn is_current(&self, generation: u64, ends: bool) -> bool {
        let refusal = match () {
            () if ends => Answer::error("the lab is ending", "'aerostat up' starts it again"),
            () if self.generation != generation => Answer::error(OTHER, COMPARE_AGAIN),
            () => return true,
        };
        answer(&self.reply, refusal);
        false
    }
}

impl Carried {
    /// Links with values that were set by hand, and what the file gives them.
    fn by_hand(&self) -> BTreeMap<LinkId, [LineParams; 2]> {
        let links = self.world.lab().links();
        let links = links.map(|(id, link)| (id, link.lines));
        let set = links.filter(|(id, of_file)| self.world.lines_of(*id) != *of_file);
        set.collect()
    }

    /// Takes permanent connections that found no room out of the lab.
    fn leave_out(&mut self, refused: &[Refused], lab: &mut Lab, told: &mut Vec<String>) {
        let mut left = BTreeSet::new();
        for (index, switch, error) in refused {
            let ends = lab.pvcs[*index].ends;
            let ends = ends.map(|(node, vc)| format!("{}:{vc}", lab.node(node).name));
            let name = &lab.node(*switch).name;
            told.push(format!("pvc {}: {name}: {error}", ends.join(" - ")));
            left.insert(*index);
        }
        if !left.is_empty() {
            let mut number = 0..;
            lab.pvcs
                .retain(|_| number.next().is_none_or(|index| !left.contains(&index)));
            self.world.adopt(lab);
        }
    }

    /// Makes the network that of the new file, and answers the client. Returns the lab as it is now.
    pub(crate) fn converge(
        &mut self,
        prepared: Prepared,
        (flavour, split): (Flavour, bool),
        (now, tell): (Instant, &mut dyn FnMut(Notice<'_>)),
    ) -> File {
        let Prepared {
            mut file,
            mut converged,
            again,
            gone,
            made,
            reply,
            ..
        } = prepared;
        let lab = &mut file.checked.lab;
        let builder = Builder::new(lab, lab.seed, flavour).split(split);
        let builder = builder.with_programs();
        let by_hand = self.by_hand();
        let refused = self.world.converge(&builder, &again, now);
        let replaced = by_hand.into_iter().filter(|(id, before)| {
            let of_file = lab.links[id.0].lines;
            of_file != *before && self.world.lines_of(*id) == of_file
        });
        converged.replaced = replaced.map(|(id, _)| lab.link(id).name.clone()).collect();
        self.leave_out(&refused, lab, &mut converged.left);
        let sources = (&mut self.sources.taps, &mut self.sources.routes);
        let refused = self.inside.exchange((gone, made), sources, &self.registry);
        let refused = refused.into_iter();
        converged
            .left
            .extend(refused.map(|(id, error)| format!("host {}: {error}", lab.node(id).name)));
        self.generation += 1;
        self.file.clone_from(&file.name);
        // A parent process that waited for the lab has gone.
        self.ties.take_if(|_| self.ready);
        self.ready = false;
        self.faults.adopt(lab, now);
        for node in &again {
            self.sources.routes.forget(*node, now);
        }
        self.names = lab
            .nodes
            .iter()
            .map(|node| node.name.as_str().into())
            .collect();
        self.story.rename(Names::new(lab));
        converged.done = true;
        tell_end(&converged, tell);
        answer(&reply, said(&converged));
        file
    }
}

/// Tells what has become of the lab.
fn tell_end(converged: &Converged, tell: &mut dyn FnMut(Notice<'_>)) {
    tell(Notice::Note(format!(
        "the lab has become that of its file: {}",
        aerostat_wire::counted(converged.plan.changes.len(), "change", "changes")
    )));
    for text in &converged.left {
        tell(Notice::Note(format!("not done: {text}")));
    }
    if !converged.replaced.is_empty() {
        tell(Notice::Note(converged.replacements()));
    }
}
