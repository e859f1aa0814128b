//! Frames over a Unix socket that preserves frame boundaries.

use aerostat_proto::split::FRAME_MAX;
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, connect, listen, recv, send, socket_with,
};
use std::io;
use std::path::Path;

/// Connections that may wait to be accepted: all daemons of a lab start at once. The kernel's own limit
/// (`net.core.somaxconn`) is 4096 unless its owner has changed it.
const BACKLOG: i32 = 4096;

/// Most supplementary groups of a process (NGROUPS_MAX).
const GROUPS: usize = 65_536;

/// Room for the longest frame; a longer one is invalid.
pub(crate) fn buffer() -> Vec<u8> {
    vec![0; FRAME_MAX]
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// The socket to which daemons connect. It never blocks.
#[derive(Debug)]
pub(crate) struct Door(OwnedFd);

impl Door {
    /// Opens the socket at `path`, which must not exist.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let door = socket()?;
        bind(&door, &SocketAddrUnix::new(path)?)?;
        listen(&door, BACKLOG)?;
        Ok(Self(door))
    }
    /// The next connection.
    ///
    /// # Errors
    /// If the operating system has no descriptor or memory for the connection: it still waits.
    pub(crate) fn accept(&self) -> io::Result<Option<Frames>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            return match accept_with(&self.0, flags) {
                Ok(socket) => Ok(Some(Frames(socket))),
                Err(Errno::AGAIN) => Ok(None),
                // The connection is gone already; the next one may be good.
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The result of receiving.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Got<'a> {
    /// A frame.
    Frame(&'a [u8]),
    /// No frame has arrived yet.
    Nothing,
    /// The other end is gone, or sent an invalid frame.
    End,
}

/// One end of a connection. It never blocks.
#[derive(Debug)]
pub(crate) struct Frames(OwnedFd);

impl Frames {
    /// Connects to the socket of a lab.
    pub(crate) fn connect(path: &Path) -> io::Result<Self> {
        let frames = socket()?;
        connect(&frames, &SocketAddrUnix::new(path)?)?;
        Ok(Self(frames))
    }
    /// Sends a frame; false if there is no room for it now.
    ///
    /// # Errors
    /// If the other end is gone.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<bool> {
        loop {
            return match send(&self.0, frame, SendFlags::NOSIGNAL) {
                Ok(_) => Ok(true),
                Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
                Err(Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }
    /// The next frame, in `buffer`.
    pub(crate) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Got<'a> {
        let length = loop {
            // With TRUNC the length is that of the frame, not of the part that fitted.
            match recv(&self.0, &mut *buffer, RecvFlags::TRUNC) {
                Ok((_, length)) => break length,
                Err(Errno::AGAIN) => return Got::Nothing,
                // The other end has closed the connection without having read everything. The kernel tells so once,
                // before what was sent here: a daemon's farewell must not be lost with a frame that came too late.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(_) => return Got::End,
            }
        };
        match buffer.get(..length) {
            // No message is empty: an empty one means the end.
            None | Some([]) => Got::End,
            Some(frame) => Got::Frame(frame),
        }
    }
    /// The process that has made the connection, whatever its user; 0 if it is of another PID namespace.
    pub(crate) fn process(&self) -> u32 {
        let peer = rustix::net::sockopt::socket_peercred(&self.0);
        peer.map_or(0, |peer| peer.pid.as_raw_pid().unsigned_abs())
    }
    /// True if the process at the other end belongs to the same user, or is a member of this group. Its credentials are
    /// those of the moment when it connected.
    pub(crate) fn may_use(&self, group: Option<u32>) -> bool {
        let is_member = |group| {
            let peer = rustix::net::sockopt::socket_peercred(&self.0);
            peer.is_ok_and(|peer| peer.gid.as_raw() == group)
                || supplementary_groups(self.0.as_fd()).contains(&group)
        };
        self.peer().is_some() || group.is_some_and(is_member)
    }
    /// The process at the other end, if it belongs to the same user.
    pub(crate) fn peer(&self) -> Option<u32> {
        let peer = rustix::net::sockopt::socket_peercred(&self.0).ok()?;
        // In a user namespace, the peer's uid is seen through the same map as our own.
        let same = peer.uid == rustix::process::geteuid();
        same.then(|| peer.pid.as_raw_pid().unsigned_abs())
    }
}

/// The supplementary groups of the process at the other end of a Unix socket; no groups if the kernel does not tell
/// them.
fn supplementary_groups(socket: BorrowedFd<'_>) -> Vec<u32> {
    let mut groups = vec![0_u32; GROUPS];
    let mut length = size_of_val(&groups[..]) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` octets of numbers to the memory of `groups`.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let told = if result == 0 { length as usize } else { 0 };
    groups.truncate(told / size_of::<u32>());
    groups
}

impl AsFd for Frames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon that ends may have a question of the lab in its socket.
    #[test]
    fn the_last_frames_of_an_end_that_left_frames_unread_are_not_lost() {
        let name = format!("aerostat-farewell-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let door = Door::open(&path).unwrap();
        let daemon = Frames::connect(&path).unwrap();
        let lab = door.accept().unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(daemon.send(b"farewell").unwrap());
        assert!(lab.send(b"a question").unwrap());
        drop(daemon);
        let mut buffer = buffer();
        assert_eq!(lab.receive(&mut buffer), Got::Frame(b"farewell"));
        assert_eq!(lab.receive(&mut buffer), Got::End);
    }

    #[test]
    fn all_daemons_of_a_lab_may_connect_before_the_first_is_accepted() {
        let name = format!("aerostat-door-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let door = Door::open(&path).unwrap();
        let connected: Vec<_> = (0..300).map(|_| Frames::connect(&path).unwrap()).collect();
        for _ in &connected {
            assert!(door.accept().unwrap().is_some());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
