//! Stations behind bridging kernel hosts: each has a network namespace with one end of a cable.
//!
//! ```text
//!  station         bridging host                              Aerostat
//!  eth0 ───cable─── anna ┐
//!  eth0 ───cable─ bertta ┼ br0 (the kernel's bridge) ── lec0 ── LANE client, a proxy
//!                        └ the host's own address
//! ```
//!
//! The cable is a pair of veth interfaces. Its far end has the name of the station and is a port of the host's bridge,
//! which does all the switching. The LANE client learns the stations behind it from received frames. A station moves
//! when the far end of its cable is put into the namespace of another host; the lab's helper does that
//! ([`crate::helper`]). When the cable has carrier again, the station sends a gratuitous ARP, like systems whose cable
//! was plugged in. Without it, its new place would stay unknown until it sends.

use crate::control::{Answer, Reply};
use crate::helper::{BridgeHost, Cabled, Helper, Owned};
use crate::kernel::{KernelNode, plug_in, settings};
use crate::namespace::{NetNs, ip};
use crate::threads::spawn_named;
use aerostat_lab::model::{Lab, NodeId, NodeKind, SegmentHost};
use aerostat_lab::report::RunReport;
use aerostat_node::inspect::{StateKind, Table, host as rows};
use aerostat_proto::Trace;
use aerostat_wire::MacAddr;
use serde_json::json;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

/// The station's end of its cable.
pub(crate) const INTERFACE: &str = "eth0";
/// Longest name of an interface, octets.
const NAME_MAX: usize = 15;
/// Longest IP packet on Ethernet, octets.
const ETHERNET: u16 = 1500;
/// How often a station that has moved repeats its announcement, and at which interval.
const AGAIN: usize = 3;
const PAUSE: Duration = Duration::from_millis(700);

/// All stations of a lab.
#[derive(Debug, Default)]
pub(crate) struct Stations {
    all: Vec<Station>,
    /// Bridging kernel hosts; their numbers for the helper are their indices.
    hosts: Vec<NodeId>,
    helper: Option<Arc<Helper>>,
}

#[derive(Debug)]
struct Station {
    name: String,
    mac: MacAddr,
    ip: Ipv4Addr,
    /// Name of the far end of its cable.
    port: String,
    namespace: NetNs,
    /// The host behind which it is. Locked while it moves.
    place: Arc<Mutex<NodeId>>,
}

impl Stations {
    /// Makes the stations behind the host `id`, whose bridge exists.
    ///
    /// # Errors
    /// The error of the kernel or of `ip`, with the station's name.
    pub(crate) fn add(&mut self, lab: &Lab, id: NodeId, host: &NetNs) -> io::Result<()> {
        let node = lab.node(id);
        let NodeKind::Host(model) = &node.kind else {
            return Ok(());
        };
        if model.bridges() {
            self.hosts.push(id);
        }
        for (place, station) in model.bridge.iter().enumerate() {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", station.name))
            };
            // The index of the host is part of the substitute for a long name, because stations move.
            let port = match station.name.len() {
                ..=NAME_MAX => station.name.clone(),
                _ => format!("port{}-{place}", id.0),
            };
            let namespace = Station::make(lab, station, &port, host).map_err(named)?;
            self.all.push(Station {
                name: station.name.clone(),
                mac: station.mac,
                ip: station.ip,
                port,
                namespace,
                place: Arc::new(Mutex::new(id)),
            });
        }
        Ok(())
    }

    /// The names of all stations.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|station| station.name.as_str())
    }

    /// The tables of `inspect bridge` of a host. The bridge of a kernel host does not know the names of its stations,
    /// so its table of hosts gets the stations whose cables are plugged in there; that of a station that moves now is
    /// not.
    pub(crate) fn listed(&self, host: NodeId, mut tables: Vec<Table>) -> Vec<Table> {
        if !self.hosts.contains(&host) {
            return tables;
        }
        let here = self.all.iter().filter(|station| {
            let place = match station.place.try_lock() {
                Ok(place) => Some(*place),
                Err(TryLockError::Poisoned(place)) => Some(*place.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            place == Some(host)
        });
        let rows = here.map(|station| rows::SegmentHost {
            name: station.name.clone(),
            mac: station.mac,
            ip: station.ip,
        });
        let listed = Table::of(rows);
        if let Some(table) = tables.iter_mut().find(|table| table.title == listed.title) {
            *table = listed;
        }
        tables
    }

    /// The same in the results of a run.
    pub(crate) fn in_results(&self, lab: &Lab, report: &mut RunReport) {
        for (name, states) in Arc::make_mut(&mut report.nodes) {
            let Some(host) = lab.find(name) else { continue };
            for (_, tables) in states
                .iter_mut()
                .filter(|(what, _)| *what == StateKind::Bridge)
            {
                *tables = self.listed(host, mem::take(tables));
            }
        }
    }

    /// The objects that a helper needs to move the stations; `nodes` are the lab's kernel nodes.
    pub(crate) fn owned<'a>(&'a self, lab: &Lab, nodes: &'a [(NodeId, KernelNode)]) -> Owned<'a> {
        let namespace = |id: NodeId| nodes.iter().find(|(node, _)| *node == id);
        let elan = |id: NodeId| match &lab.node(id).kind {
            NodeKind::Host(host) => host.lec().elan.0 as u32,
            _ => u32::MAX,
        };
        let hosts = self.hosts.iter().filter_map(|id| {
            Some(BridgeHost {
                namespace: &namespace(*id)?.1.namespace,
                elan: elan(*id),
            })
        });
        let stations = self.all.iter().filter_map(|station| {
            let at = *station.place.lock().unwrap_or_else(PoisonError::into_inner);
            Some(Cabled {
                namespace: &station.namespace,
                port: &station.port,
                mac: station.mac,
                host: self.number(at)?,
            })
        });
        Owned {
            hosts: hosts.collect(),
            stations: stations.collect(),
            ..Owned::default()
        }
    }

    /// Sets the helper that moves them.
    pub(crate) fn helped_by(&mut self, helper: &Arc<Helper>) {
        self.helper = Some(Arc::clone(helper));
    }

    /// The helper's number of a host.
    fn number(&self, host: NodeId) -> Option<u32> {
        let place = self.hosts.iter().position(|id| *id == host)?;
        u32::try_from(place).ok()
    }

    /// The namespace of the station with this name.
    pub(crate) fn namespace(&self, name: &str) -> Option<&NetNs> {
        let mut all = self.all.iter();
        all.find(|station| station.name == name)
            .map(|station| &station.namespace)
    }

    /// Plugs the cable of a station into the bridge of another host. The answer comes later through `reply`.
    ///
    /// # Errors
    /// Why that cannot be started.
    pub(crate) fn plug(
        &self,
        lab: &Lab,
        name: &str,
        to: NodeId,
        (reply, told): (
            SyncSender<Reply>,
            impl FnOnce(NodeId, Trace) + Send + 'static,
        ),
    ) -> Result<(), Answer> {
        let known = self.all.iter().position(|station| station.name == name);
        let Some((number, station)) = known.and_then(|at| Some((at, self.all.get(at)?))) else {
            let names: Vec<&str> = self.names().collect();
            let hint = match names.len() {
                0 => "this lab has no stations behind kernel hosts".to_owned(),
                _ => format!("stations: {}; other ports move by hand", names.join(", ")),
            };
            return Err(Answer::error(format!("there is no station '{name}'"), hint));
        };
        let elan = |id| match &lab.node(id).kind {
            NodeKind::Host(host) if host.bridges() => Some(host.lec().elan),
            _ => None,
        };
        let host = &lab.node(to).name;
        let Some(wanted) = elan(to) else {
            let hint = "hosts with 'bridge:' or 'lec: { proxy: true }' do";
            return Err(Answer::error(format!("{host} does not bridge"), hint));
        };
        let refuse = |error: io::Error| Answer::error(error.to_string(), "");
        let (Some(helper), Some(there)) = (self.helper.clone(), self.number(to)) else {
            return Err(refuse(io::Error::other("this lab moves no stations")));
        };
        let Ok(place) = station.place.try_lock() else {
            return Err(Answer::error(format!("{name} is moving already"), ""));
        };
        if *place == to {
            return Err(Answer::error(format!("{name} is behind {host}"), ""));
        }
        if elan(*place) != Some(wanted) {
            let text = format!("{name} has an address of another subnet");
            let hint = format!("{host} is a member of another ELAN");
            return Err(Answer::error(text, hint));
        }
        let from = *place;
        drop(place);
        let (place, number) = (Arc::clone(&station.place), number as u32);
        let (name, from) = (name.to_owned(), lab.node(from).name.clone());
        let done = move || {
            let answer = match plug(&helper, (number, there), (&place, to)) {
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
            // The client may have closed the connection.
            let _ = reply.try_send(Reply::Answer(answer));
            // Repeat the announcement, as the first one may have been lost.
            for _ in 0..AGAIN {
                std::thread::sleep(PAUSE);
                helper.speak(number);
            }
        };
        spawn_named("cable", done).map(drop).map_err(refuse)
    }
}

impl Station {
    fn make(lab: &Lab, station: &SegmentHost, port: &str, host: &NetNs) -> io::Result<NetNs> {
        let elan = lab.elan(station.elan);
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
            for route in &station.routes {
                let to = format!("{}/{}", route.to.network, route.to.length);
                ip(&["route", "add", &to, "via", &route.via.to_string()])?;
            }
            Ok(())
        })?;
        host.run(|| plug_in(port))?;
        Ok(namespace)
    }
}

/// Moves the cable of a station to a host, both given by the helper's numbers; the host is the node `to`. Returns how
/// long the cable had no carrier.
fn plug(
    helper: &Helper,
    (station, host): (u32, u32),
    (place, to): (&Mutex<NodeId>, NodeId),
) -> io::Result<Duration> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    let (there, took) = helper.plug(station, host);
    if there {
        *place = to;
    }
    took
}
