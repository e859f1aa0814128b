//! Cables of stations: moving the far end from one bridging host to another.

use super::messages::{Reply, Request};
use crate::kernel::plug_in;
use crate::namespace::{NetNs, ip, ip_says};
use crate::stations::INTERFACE;
use aerostat_wire::MacAddr;
use std::io;
use std::time::{Duration, Instant};

/// How long a cable may take until it has carrier again.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A bridging host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) namespace: NetNs,
    pub(super) elan: u32,
}

/// A station and its cable.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) namespace: NetNs,
    pub(super) port: String,
    pub(super) mac: MacAddr,
    /// The host where the station is plugged in.
    pub(super) host: u32,
}

/// All hosts and stations of a lab.
#[derive(Debug, Default)]
pub(super) struct Cables {
    pub(super) hosts: Vec<Host>,
    pub(super) stations: Vec<Station>,
}

impl Cables {
    /// Executes a request if all its numbers belong to this lab.
    pub(super) fn answer(&mut self, request: Request) -> Reply {
        let done = match request {
            Request::Plug { station, host } => self.plug(station, host),
            Request::Speak { station } => self.speak(station).map(|()| Reply::Done),
            Request::Start { .. } | Request::Kill { .. } | Request::Look { .. } => {
                Err(refused("this socket is for cables"))
            }
        };
        done.unwrap_or_else(|error| Reply::Refused {
            why: error.to_string(),
        })
    }

    fn plug(&mut self, station: u32, to: u32) -> io::Result<Reply> {
        let hosts = &self.hosts;
        let at = |host: u32| hosts.get(host as usize).ok_or(refused("no such host"));
        let moved = self.stations.get_mut(station as usize);
        let moved = moved.ok_or(refused("no such station"))?;
        let (here, there) = (at(moved.host)?, at(to)?);
        if moved.host == to {
            return Err(refused("it is plugged in there"));
        }
        if here.elan != there.elan {
            return Err(refused("that host is a member of another ELAN"));
        }
        let pulled = Instant::now();
        let (port, path) = (moved.port.as_str(), there.namespace.path());
        (here.namespace).run(|| ip(&["link", "set", "dev", port, "netns", &path]))?;
        // From here on the cable is in the other namespace, even if the rest fails.
        moved.host = to;
        let up = || {
            there.namespace.run(|| plug_in(port))?;
            there.namespace.run(|| carries(port, pulled))?;
            moved.namespace.run(|| carries(INTERFACE, pulled))?;
            let took = pulled.elapsed();
            speak(moved).map(|()| took)
        };
        Ok(match up() {
            Ok(took) => Reply::Plugged {
                ms: u32::try_from(took.as_millis()).unwrap_or(u32::MAX),
            },
            Err(error) => Reply::Stuck {
                why: error.to_string(),
            },
        })
    }

    fn speak(&self, station: u32) -> io::Result<()> {
        let speaks = self.stations.get(station as usize);
        speak(speaks.ok_or(refused("no such station"))?)
    }
}

/// Sets the address of the station again, so that the kernel tells its neighbours (`arp_notify`).
fn speak(station: &Station) -> io::Result<()> {
    let mac = station.mac.to_string();
    (station.namespace).run(|| ip(&["link", "set", "dev", INTERFACE, "address", &mac]))
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Waits until an end of a cable has carrier.
fn carries(interface: &str, since: Instant) -> io::Result<()> {
    while !ip_says(&["-o", "link", "show", "dev", interface])?.contains(" state UP ") {
        if since.elapsed() > PATIENCE {
            return Err(io::Error::other("the cable does not carry again"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
