//! Network namespaces that exist only while a file descriptor or a process refers to them.
//!
//! They are never bound to a path. When the lab's process ends, for whatever reason, its descriptors close, and the
//! kernel removes the namespaces and the TAPs inside. Processes that were started inside are in the lab's PID namespace
//! (see [`crate::supervisor`]) and end with it.
//!
//! The namespace of this process itself ([`NetNs::own`]) is one of them for the node that is the machine
//! (`aerostat host`): it is there before and stays, and only the TAPs inside end with the process.

use crate::threads::spawn_in;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

/// Why namespaces cannot be made here.
#[derive(Debug)]
pub struct Unprivileged {
    /// The operation that failed.
    pub tried: &'static str,
    /// The error of the kernel.
    pub error: io::Error,
}

impl std::fmt::Display for Unprivileged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.tried, self.error)
    }
}
impl std::error::Error for Unprivileged {}

/// Makes sure that this process may create network namespaces and TAPs.
///
/// Root has this right already. Any other process moves into a user namespace of its own, in which it is root. That
/// works only while the process has one thread, so call it first.
///
/// # Errors
/// [`Unprivileged`] when both ways fail.
pub fn acquire_privilege() -> Result<(), Unprivileged> {
    let fail = |tried| move |error| Unprivileged { tried, error };
    // A user namespace does not help a user who may not open this device.
    TUN.try_to_open().map_err(fail("opening /dev/net/tun"))?;
    match NetNs::create() {
        Ok(_) => return Ok(()),
        // It is not the right that is missing.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(fail("creating a network namespace")(error));
        }
        Err(_) => {}
    }
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    unshare(UnshareFlags::NEWUSER).map_err(fail("creating a user namespace"))?;
    // An unprivileged process has to give up setgroups before it may write a group map.
    let _ = std::fs::write("/proc/self/setgroups", "deny");
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))
        .map_err(fail("mapping the user into a user namespace"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
        .map_err(fail("mapping the group into a user namespace"))?;
    let made = NetNs::create().map(drop);
    made.map_err(fail("creating a network namespace inside a user namespace"))
}

/// Moves this process, which must have one thread, to the user namespace of a lab of the same user, in which it may
/// make network namespaces and TAPs.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn acquire_rights_of(user_ns: &OwnedFd) -> io::Result<()> {
    // A lab of root is in our own user namespace, which cannot be entered again.
    if !is_ours("user", user_ns)? {
        enter(user_ns.as_fd(), LinkNameSpaceType::User)?;
    }
    Ok(())
}

/// True if this process is in the namespace `other`, of this kind.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn is_ours(kind: &str, other: &OwnedFd) -> io::Result<bool> {
    let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let own = rustix::fs::stat(format!("/proc/self/ns/{kind}"))?;
    Ok(id(own) == id(rustix::fs::fstat(other)?))
}

/// Makes sure that this process may make interfaces in its own network namespace.
///
/// # Errors
/// [`Unprivileged`] if it may not.
pub fn may_make_interfaces() -> Result<(), Unprivileged> {
    use rustix::thread::{CapabilitySet, capabilities};
    let fail = |tried| move |error| Unprivileged { tried, error };
    TUN.try_to_open().map_err(fail("opening /dev/net/tun"))?;
    let tried = "making interfaces in this network namespace needs CAP_NET_ADMIN";
    let sets = capabilities(None).map_err(io::Error::from);
    let sets = sets.map_err(fail(tried))?;
    match sets.effective.contains(CapabilitySet::NET_ADMIN) {
        true => Ok(()),
        false => Err(fail(tried)(io::ErrorKind::PermissionDenied.into())),
    }
}

/// A device of the kernel with the major number 10.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Its path.
    pub path: &'static str,
    /// Its minor number.
    pub minor: u32,
}

/// The device for TAPs. Source: Linux, Documentation/admin-guide/devices.txt.
pub const TUN: Device = Device {
    path: "/dev/net/tun",
    minor: 200,
};
/// The device for file systems in user space. Source: as of [`TUN`].
pub const FUSE: Device = Device {
    path: "/dev/fuse",
    minor: 229,
};

impl Device {
    /// Opens the device, to see whether this user may.
    ///
    /// # Errors
    /// The error of the kernel; `InvalidInput` if a file or another device is in its place, where a program has written
    /// before the device was there.
    pub fn try_to_open(self) -> io::Result<()> {
        let mut how = File::options();
        let opened = how.read(true).write(true).open(self.path)?.metadata()?;
        let number = rustix::fs::makedev(10, self.minor);
        if opened.file_type().is_char_device() && opened.rdev() == number {
            return Ok(());
        }
        let text = format!("{} is not the device of the kernel", self.path);
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }
}

#[allow(unsafe_code)]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the flags used here (NEWUSER, NEWNET, NEWPID, NEWNS) share no file descriptor table between threads;
    // CLONE_FILES, which would, is what makes the call unsafe.
    unsafe { unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Moves the calling process's future children into a new PID namespace and itself into a new mount
/// namespace whose changes stay private.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn unshare_pids_and_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS)?;
    use rustix::mount::{MountPropagationFlags, mount_change};
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    Ok(())
}

/// True if the calling thread's network namespace has no interface except `lo`.
pub(crate) fn is_network_empty() -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/thread-self/net/dev") else {
        return false;
    };
    // Two lines are the head of the table.
    let mut names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    names.all(|(name, _)| name.trim() == "lo")
}

/// Moves the calling process, which must have one thread, to an empty network namespace.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn leave_network() -> io::Result<()> {
    // A process without rights has them in a user namespace of its own.
    unshare(UnshareFlags::NEWNET).or_else(|_| unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET))
}

/// Moves the calling thread to an empty network namespace if it has the right to do so.
pub(crate) fn leave_network_by_right() {
    // Without the right each daemon tries it in its own way.
    let _ = unshare(UnshareFlags::NEWNET);
}

/// A network namespace, kept alive by its descriptor.
#[derive(Debug)]
pub struct NetNs {
    fd: OwnedFd,
    /// True for the namespace of this process.
    own: bool,
}

impl NetNs {
    /// A new, empty network namespace with `lo` up.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn create() -> io::Result<Self> {
        on_fresh_thread(|| {
            unshare(UnshareFlags::NEWNET)?;
            loopback_up()?;
            let fd = OwnedFd::from(File::open("/proc/thread-self/ns/net")?);
            Ok(Self { fd, own: false })
        })
    }

    /// The network namespace of this process.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn own() -> io::Result<Self> {
        let fd = OwnedFd::from(File::open("/proc/thread-self/ns/net")?);
        Ok(Self { fd, own: true })
    }

    /// A path under which other processes find the namespace while this value exists.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }

    /// Runs `work` inside the namespace, on a thread of its own; in that of this process on this thread, because to
    /// enter it needs a right that making interfaces does not need.
    ///
    /// # Errors
    /// The error of the kernel or of `work`.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if self.own {
            return work();
        }
        on_fresh_thread(|| {
            enter(self.fd.as_fd(), LinkNameSpaceType::Network)?;
            work()
        })
    }
}

/// A descriptor of a network namespace that another process has opened.
impl From<OwnedFd> for NetNs {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, own: false }
    }
}

impl From<NetNs> for OwnedFd {
    fn from(namespace: NetNs) -> Self {
        namespace.fd
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Brings `lo` up in the calling thread's network namespace: a host reaches its own addresses over it.
fn loopback_up() -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    // The first protocol of this family is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    let mut link = LinkMessage::default();
    // The kernel makes `lo` with each namespace, as its first interface.
    link.header.index = 1;
    (link.header.flags, link.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK;
    let payload = NetlinkPayload::from(RouteNetlinkMessage::SetLink(link));
    let mut request = NetlinkMessage::new(header, payload);
    request.finalize();
    let mut octets = vec![0; request.buffer_len()];
    request.serialize(&mut octets);
    send(&socket, &octets, SendFlags::empty())?;
    let mut answer = [0; 4096];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length]);
    match answer.map_err(io::Error::other)?.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}

/// Moves the calling thread into the namespace behind `fd`.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn enter(fd: BorrowedFd<'_>, kind: LinkNameSpaceType) -> io::Result<()> {
    move_into_link_name_space(fd, Some(kind)).map_err(io::Error::from)
}

/// Runs `work` on a new thread. Namespaces belong to threads, so the caller's namespaces do not change.
fn on_fresh_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let ended = spawn_in(scope, work)?.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs iproute2's `ip` in the calling thread's network namespace.
///
/// # Errors
/// The command and its own message, when it fails.
pub fn ip(args: &[&str]) -> io::Result<()> {
    ip_says(args).map(drop)
}

/// Like [`ip`], but returns the output.
///
/// # Errors
/// The command and its own message, when it fails.
pub(crate) fn ip_says(args: &[&str]) -> io::Result<String> {
    let out = std::process::Command::new("ip")
        .args(args)
        .output()
        .map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => " (Debian package iproute2)",
                _ => "",
            };
            io::Error::new(error.kind(), format!("cannot run `ip`{hint}: {error}"))
        })?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    Err(io::Error::other(format!(
        "ip {}: {}",
        args.join(" "),
        said.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_in_a_namespace_reaches_itself() {
        let Ok(ns) = NetNs::create() else {
            println!("skipped: no privilege for network namespaces");
            return;
        };
        let heard = ns.run(|| {
            let one = std::net::UdpSocket::bind("127.0.0.1:0")?;
            let other = std::net::UdpSocket::bind("127.0.0.1:0")?;
            one.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
            other.send_to(b"hello", one.local_addr()?)?;
            let mut octets = [0; 16];
            let length = one.recv(&mut octets)?;
            Ok(octets[..length].to_vec())
        });
        assert_eq!(heard.unwrap(), b"hello");
    }

    #[test]
    fn a_namespace_ends_with_its_descriptor() {
        let Ok(ns) = NetNs::create() else {
            println!("skipped: no privilege for network namespaces");
            return;
        };
        let list = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let inside = ns.run(list).unwrap();
        assert!(inside.contains("lo:"), "{inside}");
        assert_eq!(inside.lines().count(), 3, "only lo: {inside}");
        let here = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let there = ns
            .run(|| std::fs::read_link("/proc/thread-self/ns/net"))
            .unwrap();
        assert_ne!(here, there);
    }
}
