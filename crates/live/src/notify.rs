//! Telling a service manager how a host of this machine gets on, as `sd_notify(3)` does.
//!
//! The manager gives the path of a datagram socket in the variable `NOTIFY_SOCKET`. The socket is opened before the
//! process gives up its rights, because it may open none afterwards: that is why no library does this here.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable with the path of the socket.
pub const VARIABLE: &str = "NOTIFY_SOCKET";
/// Longest status, octets: one line of `systemctl status`.
const STATUS: usize = 300;

/// The connection to the service manager, if a service manager has started this process.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
}

impl Notifier {
    /// Connects to the socket that the environment names; without the variable no service manager listens, and nothing
    /// is told.
    ///
    /// # Errors
    /// If the variable names no socket that can be opened, with the name.
    pub fn of_environment() -> io::Result<Self> {
        std::env::var_os(VARIABLE).map_or_else(|| Ok(Self::default()), |name| Self::at(&name))
    }

    /// Connects to this socket: a path, or `@` and an abstract name. Source: sd_notify(3).
    fn at(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            [b'/', ..] => SocketAddr::from_pathname(name),
            _ => Err(io::Error::other("expected a path, or '@' and a name")),
        };
        let connected = address.and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            // A manager that does not read must not stop the network.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let named = |error: io::Error| {
            let name = name.to_string_lossy();
            io::Error::new(error.kind(), format!("{VARIABLE}={name}: {error}"))
        };
        let socket = Some(connected.map_err(named)?);
        Ok(Self { socket })
    }

    /// The service has started.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// The service is ending.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Tells what the service does now, in one line.
    pub fn status(&self, text: &str) {
        let line: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        self.send(&format!(
            "STATUS={}",
            &line[..line.floor_char_boundary(STATUS)]
        ));
    }

    fn send(&self, text: &str) {
        if let Some(socket) = &self.socket {
            // The manager may have gone, or may not read: that is no reason to stop the work.
            let _ = socket.send(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &OsStr, at: &UnixDatagram) {
        let notifier = Notifier::at(name).unwrap();
        notifier.ready();
        notifier.status("waiting\nfor \u{e4}");
        notifier.status(&"\u{e4}".repeat(STATUS));
        notifier.stopping();
        let mut octets = [0; 1024];
        let mut next = || {
            let length = at.recv(&mut octets).unwrap();
            String::from_utf8(octets[..length].to_vec()).unwrap()
        };
        assert_eq!(next(), "READY=1");
        assert_eq!(next(), "STATUS=waiting for \u{e4}");
        assert_eq!(next(), format!("STATUS={}", "\u{e4}".repeat(STATUS / 2)));
        assert_eq!(next(), "STOPPING=1");
    }

    #[test]
    fn the_manager_hears_each_state_by_either_kind_of_name() {
        let name = format!("aerostat-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let _ = std::fs::remove_file(&path);
        let by_path = UnixDatagram::bind(&path).unwrap();
        told(path.as_os_str(), &by_path);
        let _ = std::fs::remove_file(&path);
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstractly = UnixDatagram::bind_addr(&address).unwrap();
        told(OsStr::new(&format!("@{name}")), &abstractly);
    }

    #[test]
    fn a_name_that_leads_nowhere_is_told() {
        for name in ["/nowhere/notify", "vsock:2:1", ""] {
            let error = Notifier::at(OsStr::new(name)).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("NOTIFY_SOCKET={name}: ")),
                "{error}"
            );
        }
        // Without a manager there is nothing to do.
        Notifier::default().ready();
    }
}
