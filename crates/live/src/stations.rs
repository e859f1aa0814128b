//! Stations behind bridging kernel hosts: a network namespace each, with one end of a cable.
//!
//! ```text
//!  station         bridging host                              Aerostat
//!  eth0 ───cable─── anna ┐
//!  eth0 ───cable─ bertta ┼ br0 (the kernel's bridge) ── lec0 ── LANE client, a proxy
//!                        └ the host's own address
//! ```
//!
//! The cable is a pair of veth interfaces. Its far end is called as the station and is a port of the host's bridge, which
//! does all the switching; the LANE client learns who is behind it from the frames that come. A station moves when the
//! far end of its cable is put into the namespace of another host. When it has carrier again it says so by a gratuitous
//! ARP, as systems do whose cable was plugged: nobody would know otherwise where it is until it speaks.

use crate::control::{Answer, Reply};
use crate::kernel::{BRIDGE, settings};
use crate::namespace::{NetNs, ip, ip_says};
use aerostat_lab::model::{Lab, Node, NodeId, NodeKind, SegmentHost};
use aerostat_proto::Trace;
use aerostat_wire::MacAddr;
use serde_json::json;
use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The station's end of its cable.
const INTERFACE: &str = "eth0";
/// Longest name of an interface, octets.
const NAME_MAX: usize = 15;
/// Longest IP packet on Ethernet, octets.
const ETHERNET: u16 = 1500;
/// How long a cable may take to carry again.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a station that has moved says again where it is, and after what time.
const AGAIN: usize = 3;
const PAUSE: Duration = Duration::from_millis(700);

/// All stations of a lab.
#[derive(Debug, Default)]
pub(crate) struct Stations(Vec<Station>);

#[derive(Debug)]
struct Station {
    name: String,
    mac: MacAddr,
    /// Of the far end of its cable.
    port: String,
    namespace: NetNs,
    /// Behind which host it is, and where that lives. Locked while it moves.
    place: Arc<Mutex<(NodeId, NetNs)>>,
}

impl Stations {
    /// Makes what stands behind the host `id`, whose bridge is there.
    ///
    /// # Errors
    /// What the kernel or `ip` answered, with the station's name.
    pub(crate) fn add(&mut self, lab: &Lab, id: NodeId, host: &NetNs) -> io::Result<()> {
        let node = lab.node(id);
        let NodeKind::Host(model) = &node.kind else {
            return Ok(());
        };
        for (place, station) in model.bridge.iter().enumerate() {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", station.name))
            };
            // A host's place among all is part of a long name's substitute: stations move.
            let port = match station.name.len() {
                ..=NAME_MAX => station.name.clone(),
                _ => format!("port{}-{place}", id.0),
            };
            let namespace = Station::make(lab, node, station, &port, host).map_err(named)?;
            self.0.push(Station {
                name: station.name.clone(),
                mac: station.mac,
                port,
                namespace,
                place: Arc::new(Mutex::new((id, host.try_clone()?))),
            });
        }
        Ok(())
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|station| station.name.as_str())
    }

    /// Where the station of this name lives.
    pub(crate) fn namespace(&self, name: &str) -> Option<&NetNs> {
        let mut all = self.0.iter();
        all.find(|station| station.name == name)
            .map(|station| &station.namespace)
    }

    /// Plugs the cable of a station into the bridge of another host, which answers through `reply` in a while.
    ///
    /// # Errors
    /// Why that cannot be begun.
    pub(crate) fn plug(
        &self,
        lab: &Lab,
        name: &str,
        (to, there): (NodeId, &NetNs),
        (reply, told): (
            SyncSender<Reply>,
            impl FnOnce(NodeId, Trace) + Send + 'static,
        ),
    ) -> Result<(), Answer> {
        let Some(station) = self.0.iter().find(|station| station.name == name) else {
            let names: Vec<&str> = self.names().collect();
            let hint = match names.len() {
                0 => "there are none behind kernel hosts in this lab".to_owned(),
                _ => format!("stations: {}", names.join(", ")),
            };
            return Err(Answer::error(format!("there is no station '{name}'"), hint));
        };
        let elan = |id| match &lab.node(id).kind {
            NodeKind::Host(host) if !host.bridge.is_empty() => Some(host.lec.elan),
            _ => None,
        };
        let host = &lab.node(to).name;
        let Some(wanted) = elan(to) else {
            return Err(Answer::error(format!("{host} does not bridge"), ""));
        };
        let refuse = |error: io::Error| Answer::error(error.to_string(), "");
        let there = there.try_clone().map_err(refuse)?;
        let own = station.namespace.try_clone().map_err(refuse)?;
        let Ok(place) = station.place.try_lock() else {
            return Err(Answer::error(format!("{name} is moving already"), ""));
        };
        if place.0 == to {
            return Err(Answer::error(format!("{name} is behind {host}"), ""));
        }
        if elan(place.0) != Some(wanted) {
            let text = format!("{name} has an address of another subnet");
            let hint = format!("{host} is a member of another ELAN");
            return Err(Answer::error(text, hint));
        }
        let from = place.0;
        drop(place);
        let cable = Cable {
            port: station.port.clone(),
            mac: station.mac,
            own,
            place: station.place.clone(),
        };
        let (name, from) = (name.to_owned(), lab.node(from).name.clone());
        let done = move || {
            let answer = match cable.plug(to, there) {
                Ok(took) => {
                    let took = took.as_millis() as u64;
                    let text = format!(
                        "{name} is plugged in here; its cable carried nothing for {took} ms"
                    );
                    let trace = Trace::milestone("station.moved", text);
                    told(to, trace.with("station", &name).with("from", &from));
                    Answer::Ok(json!({ "plugged_ms": took }))
                }
                Err(error) => Answer::error(error.to_string(), ""),
            };
            // The client may be gone already.
            let _ = reply.try_send(Reply::Answer(answer));
            // Once more, as the first may have been lost.
            for _ in 0..AGAIN {
                std::thread::sleep(PAUSE);
                let _ = cable.speak();
            }
        };
        let thread = std::thread::Builder::new().name("cable".into());
        thread.spawn(done).map(drop).map_err(refuse)
    }
}

impl Station {
    fn make(
        lab: &Lab,
        node: &Node,
        station: &SegmentHost,
        port: &str,
        host: &NetNs,
    ) -> io::Result<NetNs> {
        let NodeKind::Host(model) = &node.kind else {
            return Err(io::Error::other("only hosts bridge"));
        };
        let elan = lab.elan(model.lec.elan);
        let mtu = elan.ip_mtu().min(ETHERNET).to_string();
        let address = format!("{}/{}", station.ip, elan.subnet.length);
        let mac = station.mac.to_string();
        let namespace = NetNs::create()?;
        namespace.run(|| {
            settings(false, false)?;
            let _ = std::fs::write("/proc/sys/net/ipv4/conf/default/arp_notify", "1");
            let pair = [
                "link", "add", "name", INTERFACE, "address", &mac, "mtu", &mtu,
            ];
            let far = ["type", "veth", "peer", "name", port, "mtu", &mtu];
            ip(&[&pair[..], &far[..]].concat())?;
            ip(&["link", "set", "dev", port, "netns", &host.path()])?;
            ip(&[
                "address",
                "add",
                &address,
                "broadcast",
                "+",
                "dev",
                INTERFACE,
            ])?;
            ip(&["link", "set", "dev", INTERFACE, "up"])?;
            for route in &model.routes {
                let to = format!("{}/{}", route.to.network, route.to.length);
                ip(&["route", "add", &to, "via", &route.via.to_string()])?;
            }
            Ok(())
        })?;
        host.run(|| plug_in(port))?;
        Ok(namespace)
    }
}

/// Makes the interface a port of the bridge of the calling thread's namespace.
fn plug_in(port: &str) -> io::Result<()> {
    ip(&["link", "set", "dev", port, "master", BRIDGE, "up"])
}

/// Waits until an end of a cable carries again.
fn carries(interface: &str, since: Instant) -> io::Result<()> {
    while !ip_says(&["-o", "link", "show", "dev", interface])?.contains(" state UP ") {
        if since.elapsed() > PATIENCE {
            return Err(io::Error::other("the cable does not carry again"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The cable of a station, while it is moved.
struct Cable {
    port: String,
    mac: MacAddr,
    own: NetNs,
    place: Arc<Mutex<(NodeId, NetNs)>>,
}

impl Cable {
    /// Moves it. Returns how long nothing could pass.
    fn plug(&self, to: NodeId, there: NetNs) -> io::Result<Duration> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let pulled = Instant::now();
        (place.1).run(|| ip(&["link", "set", "dev", &self.port, "netns", &there.path()]))?;
        there.run(|| plug_in(&self.port))?;
        let bridge = there.try_clone()?;
        *place = (to, there);
        drop(place);
        bridge.run(|| carries(&self.port, pulled))?;
        self.own.run(|| carries(INTERFACE, pulled))?;
        let took = pulled.elapsed();
        self.speak().map(|()| took)
    }

    /// Sets the address that it has: the kernel tells its neighbours (`arp_notify`).
    fn speak(&self) -> io::Result<()> {
        let mac = self.mac.to_string();
        (self.own).run(|| ip(&["link", "set", "dev", INTERFACE, "address", &mac]))
    }
}
