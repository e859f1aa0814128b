//! The lab's PID namespace: processes that are started inside a lab end with the lab.
//!
//! ```text
//! aerostat up ── spawns ──> supervisor ── unshares, spawns ──> init (PID 1 of the lab) <── reaps ── commands of exec
//!       │  SIGKILL anywhere left of init ends everything right of it (parent death signal)
//!       └── a pipe ── init ends, and with it the namespace, when the lab closes it
//! ```
//!
//! The lab needs no right to send signals for that: a running lab may not send them (see [`crate::confine`]).
//!
//! The supervisor exists because a process that unshares its PID namespace cannot start threads any more. When PID 1 of
//! a namespace dies, the kernel kills every process in it; no other clean-up is needed.

use crate::charset::say;
use crate::confine::drop_all;
use crate::names::{Identity, SOCKETS_VARIABLE};
use crate::namespace::{acquire_rights_of, enter, is_ours, unshare_pids_and_mounts};
use crate::signals::is_ignored;
use crate::threads;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal};
use rustix::thread::LinkNameSpaceType;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Hidden first argument under which the command becomes the supervisor.
pub const SUPERVISOR_ARGUMENT: &str = "__lab-supervisor";
/// Hidden first argument under which the command becomes the lab's PID 1.
pub const INIT_ARGUMENT: &str = "__lab-init";

/// How long the processes of a lab may take to end, before the kernel ends them with this process.
const ENDING: Duration = Duration::from_secs(2);

/// The PID and mount namespaces of a running lab, with the process that holds them.
#[derive(Debug)]
pub struct LabProcesses {
    supervisor: Child,
    pid_ns: OwnedFd,
    mount_ns: OwnedFd,
    user_ns: OwnedFd,
}

impl LabProcesses {
    /// Starts supervisor and init; `program` is the command itself.
    ///
    /// Call it from the main thread, because the parent death signal belongs to the thread that spawned.
    ///
    /// # Errors
    /// When the namespaces cannot be made; the error contains the supervisor's own message.
    pub fn start(program: &std::path::Path) -> io::Result<Self> {
        let mut supervisor = die_with_parent(Command::new(program).arg(SUPERVISOR_ARGUMENT))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = supervisor.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let Ok(init) = line.trim().parse::<u32>() else {
            let mut said = String::new();
            if let Some(mut err) = supervisor.stderr.take() {
                let _ = io::Read::read_to_string(&mut err, &mut said);
            }
            let _ = supervisor.wait();
            return Err(io::Error::other(format!(
                "no PID namespace for the lab: {}",
                said.trim()
            )));
        };
        let open = |kind: &str| File::open(format!("/proc/{init}/ns/{kind}")).map(OwnedFd::from);
        Ok(Self {
            pid_ns: open("pid")?,
            mount_ns: open("mnt")?,
            user_ns: open("user")?,
            supervisor,
        })
    }

    /// The supervisor's process id. The supervisor ends with the lab's first process, and that process with the
    /// supervisor.
    pub(crate) fn supervisor(&self) -> u32 {
        self.supervisor.id()
    }

    /// The user namespace of the lab, which may be that of this process.
    pub(crate) fn user_ns(&self) -> BorrowedFd<'_> {
        self.user_ns.as_fd()
    }

    /// Descriptors that [`enter_and_run`] needs besides the network namespace: PID, mount, user.
    #[must_use]
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![
            self.pid_ns.as_fd(),
            self.mount_ns.as_fd(),
            self.user_ns.as_fd(),
        ]
    }
}

impl Drop for LabProcesses {
    fn drop(&mut self) {
        // A stopped supervisor ends with this process.
        drop(self.supervisor.stdin.take());
        ends_within(&mut self.supervisor, ENDING);
    }
}

/// Waits for the end of a process that was asked to end; false if it takes too long.
pub(crate) fn ends_within(child: &mut Child, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

/// The process of this command gets SIGKILL when the calling thread ends.
pub(crate) fn die_with_parent(command: &mut Command) -> &mut Command {
    signalled_with_parent(command, Signal::KILL)
}

/// The process of this command, such as a lab, is asked to end (SIGTERM) when the calling thread ends. It is in a
/// process group of its own, so that Ctrl-C reaches its parent only.
pub fn end_with_parent(command: &mut Command) -> &mut Command {
    signalled_with_parent(command.process_group(0), Signal::TERM)
}

#[allow(unsafe_code)]
fn signalled_with_parent(command: &mut Command, signal: Signal) -> &mut Command {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only two system calls are made; nothing allocates or locks.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
            // The parent may have died before the line above took effect. A parent in another PID namespace has no
            // number.
            if rustix::process::getppid().is_some_and(|now| now != parent) {
                return Err(io::Error::from_raw_os_error(3));
            }
            Ok(())
        })
    }
}

/// The command's action under [`SUPERVISOR_ARGUMENT`]: prints the PID of init and waits for init.
///
/// # Errors
/// When the kernel refuses the namespaces.
pub fn run_supervisor(program: &std::path::Path) -> io::Result<()> {
    unshare_pids_and_mounts()?;
    // `getppid` is 0 inside a new PID namespace, so the check of init's parent would fail. Init sets the death signal
    // by itself, and the lab's pipe tells it even earlier when the lab has ended.
    let mut init = Command::new(program)
        .arg(INIT_ARGUMENT)
        .stdin(Stdio::inherit())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()?;
    println!("{}", init.id());
    io::stdout().flush()?;
    drop_all();
    init.wait().map(drop)
}

/// The command's action under [`INIT_ARGUMENT`]: PID 1 of the lab. Reaps children until the lab has ended.
///
/// # Errors
/// When the kernel refuses the death signal, or a thread.
pub fn run_init() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Mount a separate /proc, so that `ps` inside the lab shows the lab. A failure does not matter; some sandboxes
    // refuse the mount.
    let _ = rustix::mount::mount(
        "proc",
        "/proc",
        "proc",
        rustix::mount::MountFlags::empty(),
        None,
    );
    drop_all();
    let watch = || {
        // End of file on standard input means that the lab has ended.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    };
    threads::spawn(watch)?;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Runs `argv` inside a lab and returns its exit code (128 + signal if a signal killed the program, 127 if there is no
/// such program).
///
/// `identity` gives the command the names of the lab. If the kernel refuses a part of that, standard error tells so,
/// and the command runs nevertheless. `lab` has the descriptors of [`LabProcesses::descriptors`], or none for a host
/// that is the machine itself, where programs keep the machine's names and processes; `net` is the host's network
/// namespace. The terminal is passed on unchanged. SIGINT, SIGQUIT, SIGTERM and SIGHUP end the command, not the caller;
/// if the caller is killed, the command gets SIGTERM. The caller must have one thread.
///
/// # Errors
/// When a namespace cannot be entered or the command cannot be started.
pub fn enter_and_run(
    lab: &[OwnedFd],
    net: &OwnedFd,
    identity: &Identity,
    argv: &[String],
) -> io::Result<i32> {
    // What is ignored can be read only before, since the lab has a /proc of its own.
    let mut signals = Signals::new(passed_on())?;
    signals.add_signal(SIGCHLD)?;
    enter_lab(lab, net, identity)?;
    run_inside(identity, argv, &mut signals)
}

/// Moves the calling process, and its later children, into a host of a lab. The caller must have one thread.
///
/// # Errors
/// When a namespace cannot be entered.
pub fn enter_lab(lab: &[OwnedFd], net: &OwnedFd, identity: &Identity) -> io::Result<()> {
    let [pid_ns, mount_ns, user_ns] = match lab {
        // A user who is in the namespace needs no right to enter it.
        [] if is_ours("net", net)? => return Ok(()),
        [] => return enter(net.as_fd(), LinkNameSpaceType::Network),
        [pid_ns, mount_ns, user_ns] => [pid_ns, mount_ns, user_ns],
        _ => return Err(io::Error::other("the lab sent too few descriptors")),
    };
    acquire_rights_of(user_ns)?;
    enter(net.as_fd(), LinkNameSpaceType::Network)?;
    enter(pid_ns.as_fd(), LinkNameSpaceType::ProcessID)?;
    let directory = std::env::current_dir().ok();
    enter(mount_ns.as_fd(), LinkNameSpaceType::Mount)?;
    if let Err(error) = identity.assume() {
        say(format_args!(
            "warning: names of the lab are missing: {error}"
        ));
    }
    if let Some(directory) = directory.filter(|d| d.is_dir()) {
        let _ = std::env::set_current_dir(directory);
    }
    Ok(())
}

fn run_inside(identity: &Identity, argv: &[String], signals: &mut Signals) -> io::Result<i32> {
    let [program, arguments @ ..] = argv else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no command given",
        ));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(service) = &identity.sockets {
        command.env(SOCKETS_VARIABLE, service);
        if let Some(library) = &identity.preload {
            // Libraries of the user come first.
            let before = std::env::var_os("LD_PRELOAD").filter(|list| !list.is_empty());
            let mut list = before.map_or_else(Default::default, |mut list| {
                list.push(":");
                list
            });
            list.push(library);
            command.env("LD_PRELOAD", list);
        }
    }
    // Without this process no process passes anything on.
    signalled_with_parent(&mut command, Signal::TERM);
    let mut child = match command.spawn() {
        Ok(child) => child,
        // As in shells: 127 for a program that does not exist, 126 for one that cannot be executed.
        Err(error) => {
            let code = match error.kind() {
                io::ErrorKind::NotFound => 127,
                io::ErrorKind::PermissionDenied => 126,
                _ => return Err(io::Error::new(error.kind(), format!("{program}: {error}"))),
            };
            say(format_args!("aerostat: {program}: {error}"));
            return Ok(code);
        }
    };
    let status = wait_and_pass_on(&mut child, signals)?;
    Ok(status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// Signals that ask the program of [`enter_and_run`] to end. What this process was started to ignore, as by `nohup`,
/// the program ignores too.
fn passed_on() -> impl Iterator<Item = i32> {
    let all = [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter();
    all.filter(|signal| !is_ignored(*signal))
}

/// Waits for the end of the program, and passes signals on to it. The process cannot start threads: its children are in
/// another PID namespace.
fn wait_and_pass_on(child: &mut Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    let process = Pid::from_child(child);
    for signal in signals.forever() {
        match signal {
            SIGCHLD => {
                if let Some(status) = child.try_wait()? {
                    return Ok(status);
                }
            }
            // The program has it from the terminal already.
            SIGINT | SIGQUIT if in_foreground() => {}
            // It may have ended a moment ago.
            signal => drop(Signal::from_named_raw(signal).map(|it| kill_process(process, it))),
        }
    }
    child.wait()
}

/// True if Ctrl-C at the terminal reaches this process, and with it the program.
fn in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    let group = terminal.and_then(|it| Ok(rustix::termios::tcgetpgrp(it)?));
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}
