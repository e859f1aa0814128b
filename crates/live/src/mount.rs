//! The state of a running lab as files, as Linux hosts had it under `/proc/atm` and later `/proc/net/atm`.
//!
//! ```text
//! DIR/HOST/atm/mpc   DIR/HOST/net/atm/mpc   the caches of its MPOA client; takes "add" and "del" of QoS entries
//! DIR/HOST/atm/lec   DIR/HOST/net/atm/lec   the LE_ARP cache of its LANE clients
//! ```
//!
//! The file system (FUSE, by the `fuser` crate without libfuse) is a process of its own. It is an ordinary client of
//! the lab's control socket, and the lab never waits for it. The text of a file is that of the moment when the file is
//! opened. The file system ends with a signal or with its lab. If its process is killed, a second process takes the
//! mount away ([`run_watcher`]). A dead mount remains only if both are killed; the next command that finds it removes
//! it and says so ([`sweep`]).

use crate::control::{Answer, Client, Request};
use crate::runtime_dir;
use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, TimeOrNow, WriteFlags,
};
use rustix::mount::{UnmountFlags, unmount};
use serde::Deserialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Source of our mounts in the mount table, in front of the process id.
const SOURCE: &str = "aerostat:";
/// Limit of files that are open at once.
const OPEN_MAX: usize = 1024;
/// How often to check whether the lab still runs.
const LOOK: Duration = Duration::from_millis(200);
/// The texts.
const TEXTS: [&str; 2] = ["lec", "mpc"];

/// A directory or file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    /// Its entries, by name.
    Directory(BTreeMap<String, u64>),
    /// A text about a host.
    Text { host: String, what: &'static str },
}

/// All directories and files; the number of a node is its index plus 1.
#[derive(Debug)]
struct Tree(Vec<Node>);

impl Tree {
    /// The tree for these hosts and their texts.
    fn new(hosts: &BTreeMap<String, Vec<&'static str>>) -> Self {
        let mut tree = Self(vec![Node::Directory(BTreeMap::new())]);
        for (host, texts) in hosts {
            for what in texts {
                for way in [&["atm"][..], &["net", "atm"]] {
                    let mut at = tree.directory(1, host);
                    for name in way {
                        at = tree.directory(at, name);
                    }
                    let host = host.clone();
                    tree.add(at, what, Node::Text { host, what });
                }
            }
        }
        tree
    }
    fn get(&self, number: u64) -> Option<&Node> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.0.get(place)
    }
    /// The directory with this name in another one; it is made if necessary.
    fn directory(&mut self, parent: u64, name: &str) -> u64 {
        match self.get(parent) {
            Some(Node::Directory(entries)) if entries.contains_key(name) => entries[name],
            _ => self.add(parent, name, Node::Directory(BTreeMap::new())),
        }
    }
    fn add(&mut self, parent: u64, name: &str, node: Node) -> u64 {
        self.0.push(node);
        let number = self.0.len() as u64;
        if let Some(Node::Directory(entries)) = self.0.get_mut(parent as usize - 1) {
            entries.insert(name.to_owned(), number);
        }
        number
    }
}

/// The request for a line that is written to `mpc`; Linux accepted the same lines.
fn command(host: &str, line: &str) -> Option<Request> {
    let (verb, rest) = line.trim().split_once(char::is_whitespace)?;
    let (node, rest) = (host.to_owned(), rest.trim().to_owned());
    match verb {
        "add" => Some(Request::QosAdd { node, entry: rest }),
        "del" => Some(Request::QosDel { node, filter: rest }),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Text {
    node: String,
    text: String,
}

/// The file system.
struct Files {
    lab: String,
    tree: Tree,
    client: Mutex<Option<Client>>,
    open: Mutex<BTreeMap<u64, Vec<u8>>>,
    owner: (u32, u32),
}

impl Files {
    fn ask(&self, request: &Request) -> Result<serde_json::Value, Errno> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        // An idle connection may have been closed to make room for others, so try once more with a new one.
        for _ in 0..2 {
            if client.is_none() {
                *client = Client::connect(&runtime_dir::socket_of(&self.lab)).ok();
            }
            match client.as_mut().map(|client| client.ask(request)) {
                Some(Ok((Answer::Ok(value), _))) => return Ok(value),
                Some(Ok((Answer::Error { .. }, _))) => return Err(Errno::EINVAL),
                Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => break,
                Some(Err(_)) | None => *client = None,
            }
        }
        *client = None;
        Err(Errno::EIO)
    }
    fn texts(&self, node: Option<&str>, what: &str) -> Result<Vec<Text>, Errno> {
        let what = what.parse().map_err(|_| Errno::EINVAL)?;
        let node = node.map(str::to_owned);
        let value = self.ask(&Request::Proc { node, what })?;
        serde_json::from_value(value).map_err(|_| Errno::EIO)
    }
    fn attributes(&self, number: u64) -> Option<FileAttr> {
        let (kind, perm) = match self.tree.get(number)? {
            Node::Directory(_) => (FileType::Directory, 0o555),
            Node::Text { what: "mpc", .. } => (FileType::RegularFile, 0o644),
            Node::Text { .. } => (FileType::RegularFile, 0o444),
        };
        Some(FileAttr {
            ino: INodeNo(number),
            // As under /proc, the size of a file is known only when it is read.
            size: 0,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
    /// Opens a file with its current text.
    fn opened(&self, number: u64) -> Result<u64, Errno> {
        let Some(Node::Text { host, what }) = self.tree.get(number) else {
            return Err(Errno::ENOENT);
        };
        let text = self.texts(Some(host), what).unwrap_or_default();
        let text = text.into_iter().next().map(|text| text.text.into_bytes());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN_MAX {
            return Err(Errno::ENFILE);
        }
        let handle = open.last_key_value().map_or(1, |(last, _)| last + 1);
        // The file of a host that is down is empty.
        open.insert(handle, text.unwrap_or_default());
        Ok(handle)
    }
    fn written(&self, number: u64, data: &[u8]) -> Result<(), Errno> {
        let Some(Node::Text { host, what: "mpc" }) = self.tree.get(number) else {
            return Err(Errno::EACCES);
        };
        let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.ask(&command(host, line).ok_or(Errno::EINVAL)?)?;
        }
        Ok(())
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = match (self.tree.get(parent.0), name.to_str()) {
            (Some(Node::Directory(entries)), Some(name)) => entries.get(name),
            _ => None,
        };
        match found.and_then(|number| self.attributes(*number)) {
            Some(attributes) => reply.entry(&LOOK, &attributes, fuser::Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }
    fn getattr(&self, _: &fuser::Request, at: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(at.0) {
            Some(attributes) => reply.attr(&LOOK, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }
    /// Opening a file for writing truncates it, which changes nothing here.
    fn setattr(
        &self,
        _: &fuser::Request,
        at: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(at.0) {
            Some(attributes) => reply.attr(&LOOK, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }
    fn open(&self, _: &fuser::Request, at: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.opened(at.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO),
            Err(error) => reply.error(error),
        }
    }
    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let text = open.get(&handle.0).map_or(&[][..], Vec::as_slice);
        let from = usize::try_from(offset).map_or(text.len(), |at| at.min(text.len()));
        let to = from.saturating_add(size as usize).min(text.len());
        reply.data(&text[from..to]);
    }
    fn write(
        &self,
        _: &fuser::Request,
        at: INodeNo,
        _: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.written(at.0, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }
    fn flush(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        _: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }
    fn release(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&handle.0);
        reply.ok();
    }
    fn readdir(
        &self,
        _: &fuser::Request,
        at: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(Node::Directory(entries)) = self.tree.get(at.0) else {
            return reply.error(Errno::ENOENT);
        };
        let dots = [(".", at.0), ("..", 1)].into_iter();
        let named = entries
            .iter()
            .map(|(name, number)| (name.as_str(), *number));
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for ((name, number), next) in dots.chain(named).zip(1..).skip(from) {
            let kind = match self.tree.get(number) {
                Some(Node::Text { .. }) => FileType::RegularFile,
                _ => FileType::Directory,
            };
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// Shows the state of the running lab `lab` under `directory` until a signal comes or the lab ends. `program` is this
/// command itself, which is started again as the watcher. `ready` is called when the mount exists.
///
/// # Errors
/// If the lab does not answer, or the kernel does not mount.
pub fn run(lab: &str, directory: &Path, program: &Path, ready: impl FnOnce()) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let owner = (rustix::process::geteuid(), rustix::process::getegid());
    let mut files = Files {
        lab: lab.to_owned(),
        tree: Tree::new(&BTreeMap::new()),
        client: Mutex::new(Some(Client::connect(&runtime_dir::socket_of(lab))?)),
        open: Mutex::default(),
        owner: (owner.0.as_raw(), owner.1.as_raw()),
    };
    let mut hosts: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for what in TEXTS {
        // A lab without such state answers with an error, and there are no files.
        for text in files.texts(None, what).unwrap_or_default() {
            let known = hosts.entry(text.node).or_default();
            if !known.contains(&what) {
                known.push(what);
            }
        }
    }
    files.tree = Tree::new(&hosts);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("{SOURCE}{}", std::process::id())),
        MountOption::Subtype("aerostat".to_owned()),
        MountOption::NoExec,
        MountOption::NoSuid,
        MountOption::NoDev,
    ];
    let session = fuser::spawn_mount(files, directory, &config)?;
    let _watcher = Watcher::start(program)?;
    ready();
    let runs = || runtime_dir::running().iter().any(|state| state.name == lab);
    while !stop.load(Ordering::Relaxed) && !session.guard.is_finished() && runs() {
        std::thread::sleep(LOOK);
    }
    // A process with an open file must not keep the directory busy.
    if unmount(directory, UnmountFlags::DETACH).is_ok() {
        std::mem::forget(session);
        return Ok(());
    }
    session.umount_and_join()
}

/// Hidden first argument under which the command becomes the watcher of a mount; the process of the mount follows.
pub const WATCHER_ARGUMENT: &str = "__mount-watcher";

/// The process that takes the mount away when this process has ended in whatever way. It is in a process group of its
/// own, so that Ctrl-C, or a signal to the group of this process, does not reach it.
#[derive(Debug)]
struct Watcher(Child);

impl Watcher {
    fn start(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg(WATCHER_ARGUMENT)
            .arg(std::process::id().to_string());
        // The end of this process is the end of the pipe.
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(Self)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It finds no mount.
        let _ = self.0.wait();
    }
}

/// The command's action under [`WATCHER_ARGUMENT`]: waits for the end of the process `of`, and takes its mounts away.
///
/// # Errors
/// The error of reading the pipe.
pub fn run_watcher(of: &str) -> io::Result<()> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let own = table.lines().filter_map(our_mount);
    let own = own.filter(|(process, _)| process == of);
    own.for_each(|(_, directory)| {
        // If it cannot, the next command that finds the mount tries it again.
        let _ = take_away(&directory);
    });
    Ok(())
}

/// Takes a mount away: by right, or as the user who has made it by `fusermount3`.
fn take_away(directory: &str) -> bool {
    if unmount(directory, UnmountFlags::DETACH).is_ok() {
        return true;
    }
    ["fusermount3", "fusermount"].into_iter().any(|program| {
        let mut command = Command::new(program);
        command.args(["-u", "-z", "-q", "--", directory]);
        let ended = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    })
}

/// Removes dead mounts of processes that were killed. Returns their directories.
pub fn sweep() -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let left = table.lines().filter_map(dead);
    left.filter(|directory| take_away(directory)).collect()
}

/// The process and the directory of a line of the mount table, if it is one of our mounts.
fn our_mount(line: &str) -> Option<(String, String)> {
    let (mount, kind) = line.split_once(" - ")?;
    let process = kind.split(' ').nth(1)?.strip_prefix(SOURCE)?;
    Some((process.to_owned(), plain(mount.split(' ').nth(4)?)))
}

/// A name of the mount table, where blanks and some other characters are octal numbers.
fn plain(name: &str) -> String {
    let mut plain = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, behind @ ..] = rest {
        let number = || u8::from_str_radix(std::str::from_utf8(behind.get(..3)?).ok()?, 8).ok();
        match number().filter(|_| *first == b'\\') {
            Some(octet) => {
                plain.push(octet);
                rest = &behind[3..];
            }
            None => {
                plain.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The directory of a line of the mount table, if it is one of our mounts and no process serves it.
fn dead(line: &str) -> Option<String> {
    let (process, directory) = our_mount(line)?;
    // The process id may belong to another process now.
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let serves = line.split(|octet| *octet == 0).any(|word| word == b"mount");
    (!serves).then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_hosts_has_both_ways_to_a_text() {
        let hosts = BTreeMap::from([
            ("gw".to_owned(), vec!["lec"]),
            ("urku".to_owned(), vec!["lec", "mpc"]),
        ]);
        let tree = Tree::new(&hosts);
        let find = |path: &str| {
            path.split('/').try_fold(1, |at, name| match tree.get(at)? {
                Node::Directory(entries) => entries.get(name).copied(),
                Node::Text { .. } => None,
            })
        };
        let (host, what) = ("urku".to_owned(), "mpc");
        let text = Node::Text { host, what };
        for path in ["urku/atm/mpc", "urku/net/atm/mpc"] {
            assert_eq!(tree.get(find(path).unwrap()), Some(&text), "{path}");
        }
        assert!(find("gw/atm/lec").is_some());
        for path in ["gw/atm/mpc", "urku/atm/mpc/x", "nobody"] {
            assert_eq!(find(path), None, "{path}");
        }
        assert!(tree.get(0).is_none() && tree.get(u64::MAX).is_none());
    }

    #[test]
    fn lines_are_those_of_the_thesis() {
        let add = command("urku", "add 130.230.54.146 tx=80000,0,1600 rx=tx\n");
        let (node, entry) = ("urku".to_owned(), "130.230.54.146 tx=80000,0,1600 rx=tx");
        let entry = entry.to_owned();
        assert_eq!(add, Some(Request::QosAdd { node, entry }));
        let del = command("urku", "del 130.230.54.146");
        let (node, filter) = ("urku".to_owned(), "130.230.54.146".to_owned());
        assert_eq!(del, Some(Request::QosDel { node, filter }));
        assert_eq!(command("urku", "add"), None);
        assert_eq!(command("urku", "change 1.2.3.4 tx=1,2"), None);
    }

    #[test]
    fn only_our_own_dead_mounts_are_taken_away() {
        let line = |source: &str| {
            format!("36 25 0:31 / /mnt/a\\040lab rw,nosuid shared:1 - fuse.aerostat {source} rw")
        };
        assert_eq!(
            dead(&line("aerostat:4194305")).as_deref(),
            Some("/mnt/a lab")
        );
        assert_eq!(plain("/a\\011\\134\\040b\\0"), "/a\t\\ b\\0");
        for other in ["sshfs:4194305", "proc"] {
            assert_eq!(dead(&line(other)), None, "{other}");
        }
        assert_eq!(dead("nonsense"), None);
    }
}
