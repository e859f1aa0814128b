//! A lab in real time: from its file to `ready`, and until it is stopped.
//!
//! **Shape.** One process (except with [`crate::daemons`]), one thread, one loop (`driver`) over the lab (`site`) and
//! its sources of input (`source`). Every event (a frame in a TAP, a client's request, a signal, the next deadline of
//! the network) wakes the same poller. Only the control socket has threads of its own, which wait for the loop and hold
//! nothing that it needs.
//!
//! **Order of setting up.** First the lab's name is claimed, so that two `up` of one lab never collide in the kernel.
//! Then privilege is acquired, which must happen before the first thread starts; then processes, namespaces and TAPs
//! are made, all held by descriptors of this process; then the helper that keeps some rights, and finally the control
//! socket. Then this process gives up its own rights ([`crate::confine`]), and starts its first thread.

use crate::confine::Needs;
use crate::converge::Prepared;
use crate::daemons::Daemons;
use crate::detach::Ties;
use crate::driver::{Driver, Halted, Parts, Run};
use crate::helper::{Helper, Owned};
use crate::kernel::{self, KernelNode, Kernels, Place};
use crate::namespace;
pub use crate::notice::{File, Notice, Report, ToAnswer, UpError};
use crate::runtime_dir::{Claim, ClaimError, LabState, VERSION};
use crate::signals::Signals;
use crate::stations::Stations;
use crate::supervisor::LabProcesses;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::files::{self, Named};
use aerostat_lab::model::{
    ByKernel, Flow, FlowKind, Forwarding, GivenKey, KEYS, Lab, NodeId, NodeKind, Proxy,
};
use aerostat_node::host::Cable;
use aerostat_proto::Duration;
use aerostat_wire::counted;
use aerostat_wire::some_of;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The program of the process that opens it. By this name the helper starts daemons of its own version, also after the
/// file was replaced or removed.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How to run a lab.
#[derive(Clone, Debug)]
pub struct Options {
    /// True to do without kernel hosts, which needs no privilege.
    pub embedded: bool,
    /// This command itself, which is started again as the lab's first process.
    pub program: PathBuf,
    /// Time after which the start fails if the lab is not ready; `None` means to wait for ever.
    pub patience: Option<Duration>,
    /// True to run daemons as processes of their own: see [`crate::daemons`].
    pub split: bool,
    /// Where the links of `capture:` of the lab file are recorded.
    pub recording: PathBuf,
    /// The directory to which the caller writes the results at the end.
    pub results: Option<PathBuf>,
    /// True to end with the parent process until the lab is ready.
    pub end_with_parent: bool,
    /// True if the kernel node of the lab is this machine itself: its interfaces are in the network namespace of this
    /// process. The lab is one for which [`aerostat_lab::Checked::as_machine`] has found no obstacle.
    pub machine: bool,
}

/// Runs the lab until it is stopped. Call it from the main thread, before any other thread is started. `results` turns
/// the report into the answer for `aerostat down`.
///
/// # Errors
/// See [`UpError`].
pub fn run(
    file: &File,
    options: &Options,
    tell: &mut dyn FnMut(Notice<'_>),
    results: ToAnswer,
) -> Result<Report, UpError> {
    let lab = &file.checked.lab;
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let state = LabState {
        name: lab.name.clone(),
        pid: std::process::id(),
        file: file.name.clone(),
        started: started.as_secs(),
        version: VERSION.to_owned(),
    };
    // Do this before anything is on disk that an early signal could leave behind.
    let signals = Signals::catch()?;
    let claim = Claim::new(&state).map_err(|error| match error {
        ClaimError::Running(state) => UpError::Running(state),
        ClaimError::Io(path, error) => UpError::Io(path.display().to_string(), error),
    })?;
    let flavour = if options.embedded {
        Flavour::Embedded
    } else {
        Flavour::Kernel
    };
    let builder = Builder::new(lab, lab.seed, flavour).split(options.split);
    let builder = builder.with_programs();
    let mut kernels = kernels(lab, &builder, options)?;
    if options.end_with_parent {
        crate::detach::end_with_parent();
    }
    for note in notes(&builder, kernels.as_ref(), options.machine) {
        tell(Notice::Note(note));
    }
    let daemons = options.split.then(|| Daemons::new(lab, claim.directory()));
    let mut daemons = daemons
        .transpose()
        .map_err(|error| UpError::Io("the socket for daemons".into(), error))?;
    let helper = helper(lab, options, kernels.as_mut(), daemons.as_mut())
        .map_err(|error| UpError::Io("the lab's privileged helper".into(), error))?;
    let ties = options
        .end_with_parent
        .then(|| Ties::new(claim.directory()));
    let ties = ties
        .transpose()
        .map_err(|error| UpError::Io("the lab's log".into(), error))?;
    let path = &options.recording;
    let failed = |error| UpError::Recording(path.clone(), error);
    let recording = (!lab.capture.is_empty()).then(|| files::begin(path, Named::ByProgram));
    let recording = recording.transpose().map_err(failed)?;
    if let Some(directory) = &options.results {
        let failed = |error| UpError::Results(directory.clone(), error);
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    // Nothing that may fail before the lab runs comes after this.
    if let Some(kernels) = kernels.as_ref().filter(|_| !options.machine) {
        kernel::plug_ports(lab, kernels)
            .map_err(|error| UpError::Io("setting up the lab".into(), error))?;
    }
    let needs = Needs::of(lab, claim.directory(), options.results.as_deref());
    // From here on this process has no privilege.
    let mut driver = Driver::new(Parts {
        file,
        builder: &builder,
        kernels: kernels.unwrap_or_default(),
        daemons,
        helper,
        ties,
        claim: &claim,
        needs: &needs,
        signals,
        epoch: started,
        caller: &mut *tell,
        machine: options.machine,
    })?;
    if let Some(recording) = recording {
        driver.site.record(recording).map_err(failed)?;
        let links = counted(lab.capture.len(), "link", "links");
        let path = options.recording.display();
        let text = format!("recording {links} into {path}");
        driver.site.tell(Notice::Note(text));
    }
    driver.site.tell(Notice::Started);
    driver.start();
    match driver.run(options.patience, results)? {
        Run::Ended(report) => Ok(*report),
        Run::Halted(halted) => go_on(*halted, (flavour, options.split), tell, results),
    }
}

/// Keys and traffic of the lab file without effect in this run.
fn notes(builder: &Builder<'_>, kernels: Option<&Kernels>, machine: bool) -> Vec<String> {
    let lab = builder.lab();
    let followed = kernels.into_iter().flat_map(|kernels| &kernels.nodes);
    let followed = followed.map(|(id, made)| (lab.node(*id).name.as_str(), &made.tcp[..]));
    let notes = [
        left_out(lab, builder),
        made_embedded(lab, |id| builder.is_kernel(id))
            .into_iter()
            .collect(),
        not_followed(lab, builder),
        nothing_behind(lab, builder, machine),
        kernel::tcp::notes(followed),
    ];
    notes.concat()
}

/// Goes on with the file of each change of the lab.
fn go_on(
    (mut halted, mut next): (Halted, Prepared),
    (flavour, split): (Flavour, bool),
    tell: &mut dyn FnMut(Notice<'_>),
    results: ToAnswer,
) -> Result<Report, UpError> {
    loop {
        let file = halted.converge(next, (flavour, split), tell);
        let lab = &file.checked.lab;
        let builder = Builder::new(lab, lab.seed, flavour).split(split);
        let builder = builder.with_programs();
        let driver = Driver::resume(halted, (&file, &builder), &mut *tell);
        match driver.run(None, results)? {
            Run::Ended(report) => return Ok(*report),
            Run::Halted(again) => (halted, next) = *again,
        }
    }
}

fn kernels(
    lab: &Lab,
    builder: &Builder<'_>,
    options: &Options,
) -> Result<Option<Kernels>, UpError> {
    let wanted: Vec<NodeId> = lab
        .nodes()
        .map(|(id, _)| id)
        .filter(|id| builder.is_kernel(*id))
        .collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    let io = |error| UpError::Io("setting up the lab".into(), error);
    let (place, processes) = if options.machine {
        namespace::may_make_interfaces().map_err(UpError::Unprivileged)?;
        (Place::Own, None)
    } else {
        namespace::acquire_privilege().map_err(|error| match error.error.kind() {
            io::ErrorKind::WouldBlock => io(error.error),
            _ => UpError::Unprivileged(error),
        })?;
        let processes = LabProcesses::start(&options.program).map_err(io)?;
        (Place::Made, Some(processes))
    };
    let (mut nodes, mut stations) = (Vec::new(), Stations::default());
    for id in wanted {
        let made = KernelNode::create(lab, id, place);
        let mut made = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => UpError::Taken(error),
            _ => io(error),
        })?;
        made.follow(lab, id).map_err(UpError::Key)?;
        stations.add(lab, id, &made.namespace).map_err(io)?;
        nodes.push((id, made));
    }
    Ok(Some(Kernels {
        processes,
        nodes,
        stations,
    }))
}

/// Starts the helper that moves stations and starts daemons, if the lab needs one.
fn helper(
    lab: &Lab,
    options: &Options,
    kernels: Option<&mut Kernels>,
    daemons: Option<&mut Daemons>,
) -> io::Result<Option<Arc<Helper>>> {
    let mut owned = match &kernels {
        Some(kernels) => kernels.stations.owned(lab, &kernels.nodes),
        None => Owned::default(),
    };
    if let Some(daemons) = &daemons {
        owned.daemons = Some((Path::new(OWN_PROGRAM), daemons.socket()));
        owned.seats = daemons.seats();
    }
    if owned.is_empty() {
        return Ok(None);
    }
    let helper = Arc::new(Helper::start(&options.program, &owned)?);
    if let Some(kernels) = kernels {
        kernels.stations.helped_by(&helper);
    }
    if let Some(daemons) = daemons {
        daemons.helped_by(&helper);
    }
    Ok(Some(helper))
}

/// Traffic of the lab that no program sends or receives, because programs run on embedded hosts only.
fn left_out(lab: &Lab, builder: &Builder<'_>) -> Vec<String> {
    let names = |is_so: &dyn Fn(&Flow) -> bool| -> Vec<String> {
        let flows = lab.traffic.iter().filter(|flow| is_so(flow));
        flows.map(|flow| flow.name.clone()).collect()
    };
    let not_sent = names(&|flow| builder.is_kernel(flow.from));
    let not_received = names(&|flow| {
        let embedded = !builder.is_kernel(flow.from) && builder.is_kernel(flow.to);
        embedded && !matches!(flow.kind, FlowKind::Ping { .. })
    });
    let notes = [
        (not_sent, "sends", "from"),
        (not_received, "receives", "at"),
    ];
    let notes = notes.into_iter().filter(|(names, ..)| !names.is_empty());
    let note = |(names, does, way): (Vec<String>, _, _)| {
        format!(
            "no program of the lab {does} traffic {way} kernel hosts ({}): use 'aerostat exec', or --embedded",
            some_of(&names)
        )
    };
    notes.map(note).collect()
}

/// A sentence about hosts that the lab file wants as Linux kernels, and that are not (`is_kernel`) in this run.
#[must_use]
pub fn made_embedded(lab: &Lab, is_kernel: impl Fn(NodeId) -> bool) -> Option<String> {
    let wish = |id: NodeId| match &lab.node(id).kind {
        NodeKind::Host(host) => host.kernel,
        NodeKind::Router(router) => router.kernel,
        _ => None,
    };
    let all = lab.nodes();
    let other = all.filter(|(id, _)| wish(*id) == Some(true) && !is_kernel(*id));
    let names: Vec<String> = other.map(|(_, node)| node.name.clone()).collect();
    (!names.is_empty()).then(|| {
        let names = some_of(&names);
        format!("nodes with 'kernel: true' are embedded with --embedded: {names}")
    })
}

/// Keys of proxies without effect: of hosts that are embedded, and the bridge of hosts that are not this machine.
fn nothing_behind(lab: &Lab, builder: &Builder<'_>, machine: bool) -> Vec<String> {
    let note = |(id, name, proxy): (NodeId, &String, &Proxy)| match &proxy.bridge {
        _ if !builder.is_kernel(id) => Some(format!(
            "{name} is embedded: no bridge of a kernel is behind it (lec.proxy)"
        )),
        Some(bridge) if !machine => Some(format!(
            "the bridge of {name} is br0: 'bridge: {bridge}' counts with 'aerostat host' only"
        )),
        _ => None,
    };
    let proxies = lab.nodes().filter_map(|(id, node)| match &node.kind {
        NodeKind::Host(host) => Some((id, &node.name, host.proxy.as_deref()?)),
        _ => None,
    });
    proxies.filter_map(note).collect()
}

/// Keys of the lab file that nodes do not follow, because they are Linux kernels.
fn not_followed(lab: &Lab, builder: &Builder<'_>) -> Vec<String> {
    let kernels = lab.nodes().filter(|(id, _)| builder.is_kernel(*id));
    let keys = kernels.flat_map(|(_, node)| {
        let tcp: &[GivenKey] = match &node.kind {
            NodeKind::Host(host) => &host.tcp.given,
            _ => &[],
        };
        let never = KEYS
            .iter()
            .filter(|follows| matches!(follows.kernel, ByKernel::Never(_)));
        let never = never.filter(|follows| tcp.iter().any(|given| given.name == follows.key));
        let never = never.map(|follows| format!("tcp.{} of {}", follows.key, node.name));
        let keys = match &node.kind {
            NodeKind::Router(router) => [
                (router.forwarding != Forwarding::Wire).then_some("forwarding"),
                None,
                None,
            ],
            NodeKind::Host(host) => [
                (host.ethernet != Cable::TEN).then_some("ethernet"),
                host.cpu.as_ref().map(|_| "cpu"),
                host.clock.map(|_| "clock"),
            ],
            NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => [None; 3],
        };
        let keys = keys.into_iter().flatten();
        let keys = keys.map(|key| format!("{key} of {}", node.name));
        keys.chain(never).collect::<Vec<_>>()
    });
    let keys: Vec<String> = keys.collect();
    if keys.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "keys without effect, because these nodes are Linux kernels: {}",
        some_of(&keys)
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_kernels_do_not_follow_are_told() {
        let text = "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s, elans: { a: 10.1.0.1, b: 10.2.0.1 }, kernel: true, forwarding: 10pps } }
hosts:
  x: { on: s, elan: a, ip: 10.1.0.10, tcp: { buffer: 4KiB, delayed_ack: 200ms } }
  y: { on: s, elan: b, ip: 10.2.0.10, tcp: { buffer: 4KiB }, kernel: false }
";
        let checked = aerostat_lab::parse("k.atm.yml", text, &[]).unwrap();
        let lab = &checked.lab;
        let told = |flavour| not_followed(lab, &Builder::new(lab, 1, flavour));
        assert_eq!(told(Flavour::Embedded), Vec::<String>::new());
        let [note] = &told(Flavour::Kernel)[..] else {
            panic!()
        };
        assert!(
            note.ends_with(": forwarding of r, tcp.delayed_ack of x")
                || note.ends_with(": tcp.delayed_ack of x, forwarding of r"),
            "{note}"
        );
    }
}
