//! Names of hosts inside a running lab: `/etc/hosts` and the host's own name.
//!
//! Every command inside a kernel host gets a UTS namespace with the host's name, and a mount namespace in which a
//! generated file covers `/etc/hosts`: all nodes of the lab, followed by the system's file. Both namespaces end with
//! the command.

use aerostat_lab::files;
use aerostat_lab::model::{Lab, NodeKind};
use rustix::mount::mount_bind;
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Where programs look up names.
const HOSTS: &str = "/etc/hosts";

/// A name with an address, for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The node's name; for an interface after the first: `NODE-ELAN`.
    pub name: String,
    /// The address.
    pub address: IpAddr,
}

/// All names of a lab with their addresses, in the order of nodes in the file. A node on several ELANs has its own name
/// for its first address, and `NODE-ELAN` for each.
#[must_use]
pub fn of(lab: &Lab) -> Vec<Named> {
    let mut all = Vec::new();
    let mut add = |name: &str, address: IpAddr| {
        let name = name.to_owned();
        all.push(Named { name, address });
    };
    for (_, node) in lab.nodes() {
        let lecs = node.lecs().iter();
        let lecs: Vec<_> = lecs.filter_map(|lec| Some((lec, lec.ip?))).collect();
        for (place, (lec, ip)) in lecs.iter().enumerate() {
            let several = format!("{}-{}", node.name, lab.elan(lec.elan).name);
            let names = [
                (place == 0).then_some(&node.name),
                (lecs.len() > 1).then_some(&several),
            ];
            for name in names.into_iter().flatten() {
                add(name, (*ip).into());
                if let Some((six, _)) = lab.ip6(lec) {
                    add(name, six.into());
                }
            }
        }
        if let NodeKind::Host(host) = &node.kind {
            for station in &host.bridge {
                add(&station.name, station.ip.into());
            }
        }
    }
    all
}

/// The lab's part of the text of `/etc/hosts`.
#[must_use]
pub fn text(lab: &Lab) -> String {
    let mut text = format!("127.0.0.1 localhost\n::1 localhost\n# lab {}\n", lab.name);
    for Named { name, address } in of(lab) {
        text.push_str(&format!("{address} {name}\n"));
    }
    text
}

/// The names for a command inside a host.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The host's name.
    pub host: String,
    /// The lab's part of `/etc/hosts`.
    pub hosts: String,
    /// A private directory of the user in which the file is written; the file is removed at once.
    pub scratch: PathBuf,
    /// The socket service of the host; its path is in [`SOCKETS_VARIABLE`].
    pub sockets: Option<PathBuf>,
    /// The library that gives ATM sockets to programs that expect them of the kernel.
    pub preload: Option<PathBuf>,
}

/// The variable of a command inside a host that names the socket service of the host.
pub const SOCKETS_VARIABLE: &str = "AEROSTAT_ATM";

impl Identity {
    /// Gives the calling process the names. The process must have one thread and be in the lab's namespaces.
    ///
    /// # Errors
    /// The operation that failed, when the kernel refuses a namespace or a mount. Earlier steps stay in effect.
    #[allow(unsafe_code)]
    pub(crate) fn assume(&self) -> io::Result<()> {
        let of = |what: &'static str| {
            move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"))
        };
        // SAFETY: NEWUTS and NEWNS share no file descriptor table between threads.
        unsafe { unshare_unsafe(UnshareFlags::NEWUTS | UnshareFlags::NEWNS) }
            .map_err(io::Error::from)
            .map_err(of("namespaces for names"))?;
        rustix::system::sethostname(self.host.as_bytes())
            .map_err(io::Error::from)
            .map_err(of("name of the host"))?;
        let file = self.scratch.join(format!("hosts-{}", std::process::id()));
        let mounted = self.mount(&file);
        let _ = std::fs::remove_file(&file);
        mounted.map_err(of("names in /etc/hosts"))
    }

    fn mount(&self, file: &Path) -> io::Result<()> {
        let system = std::fs::read_to_string(HOSTS).unwrap_or_default();
        let mut out = files::begin(file, files::Named::ByProgram)?;
        out.write_all(self.hosts.as_bytes())?;
        out.write_all(b"# this system\n")?;
        out.write_all(system.as_bytes())?;
        drop(out);
        mount_bind(file, HOSTS).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_name_and_a_router_one_for_each_elan() {
        let text_of = "
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10, bridge: { p: 10.1.0.20 } }
  y: { on: s1, elan: b, ip: 10.2.0.10 }
";
        let lab = aerostat_lab::parse("t.atm.yml", text_of, &[]).unwrap().lab;
        let lines = text(&lab);
        let lines: Vec<&str> = lines.lines().skip(2).collect();
        let wanted = [
            "# lab t",
            "10.1.0.1 r",
            "10.1.0.1 r-a",
            "10.2.0.1 r-b",
            "10.1.0.10 x",
            "10.1.0.20 p",
            "10.2.0.10 y",
        ];
        assert_eq!(lines, wanted);
    }
}
