//! Permanent connections: set up by management, without signalling.
//!
//! A permanent connection joins two labels in both directions; each direction has its own contract. It joins two
//! channels (VPI and VCI are translated) or two paths (the VPI is translated, all VCIs pass unchanged). Its labels are
//! never assigned to calls, and calls that name one of them are refused (cause 35). Its guarantees count for admission
//! like those of calls. It stays when signalling or the link fails, and ends with the switch or by
//! [`Switch::remove_permanent`].

use core::fmt;

use aerostat_wire::{Qos, TrafficParams, Vc};

use super::{PortNo, RouteSelect, Switch};
use crate::atm::fabric::{FabricError, FabricOp, PortVc};
use crate::switch::port::Reservation;

/// A permanent connection through one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permanent {
    /// Both ends. For a path, the VCIs have no meaning.
    pub ends: [(PortNo, Vc); 2],
    /// Traffic: `tx` from the first end to the second.
    pub qos: Qos,
    /// True to join whole paths instead of single channels.
    pub path: bool,
    /// True to police traffic that comes in at this end (CBR and VBR only), independently of policing of calls at the
    /// port. Do not use this between switches: the cells were policed where they entered the network, and queues have
    /// changed their distances.
    pub police: [bool; 2],
}

impl Permanent {
    /// A channel without policing of its own.
    #[must_use]
    pub const fn channel(from: (PortNo, Vc), to: (PortNo, Vc), qos: Qos) -> Self {
        Self {
            ends: [from, to],
            qos,
            path: false,
            police: [false; 2],
        }
    }
    /// Each direction: source, destination, and contract.
    fn directions(&self) -> [(PortVc, PortVc, TrafficParams); 2] {
        let [a, b] = self.ends.map(|(port, vc)| PortVc::new(port.0, vc));
        [(a, b, self.qos.tx), (b, a, self.qos.rx)]
    }
    /// True if traffic that comes in here is policed.
    fn polices(&self, at: PortVc) -> bool {
        let ends = self.ends.iter().zip(self.police);
        let mut here = ends.filter(|((port, vc), _)| PortVc::new(port.0, *vc) == at);
        here.any(|(_, police)| police)
    }
    /// The reservation at each end, cells/s: towards the other end of the port's link, and from there.
    #[must_use]
    pub fn reserves(&self) -> [(PortNo, u64, u64); 2] {
        self.holdings()
            .map(|((port, _), reserved)| (port, reserved.tx, reserved.rx))
    }
    /// Each end with its reservation; `tx` leaves the switch.
    fn holdings(&self) -> [((PortNo, Vc), Reservation); 2] {
        let [a, b] = self.ends;
        let of = Reservation::of;
        [(a, of(self.qos.reversed())), (b, of(self.qos))]
    }
}

/// Why a permanent connection is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermanentError {
    /// There is no such port.
    NoPort(PortNo),
    /// The label is in use, or is reserved.
    Label(PortNo, Vc),
    /// The port has not enough bandwidth left.
    Rate(PortNo),
    /// A port has no free queue.
    Full,
}

impl fmt::Display for PermanentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPort(port) => write!(f, "there is no port {port}"),
            Self::Label(_, vc) if vc.vpi > 255 => write!(f, "{vc}: VPIs go to 255"),
            // A path has VCI 0.
            Self::Label(_, vc)
                if vc.vci < Vc::FIRST_USER_VCI && (vc.vci, vc.vpi.min(1)) != (0, 1) =>
            {
                write!(
                    f,
                    "{vc} is reserved: labels for users begin at VCI 32, paths at VPI 1"
                )
            }
            Self::Label(port, vc) => write!(f, "{vc} is in use at port {port}"),
            Self::Rate(port) => write!(f, "port {port} has not that much bandwidth left"),
            Self::Full => f.write_str("a port has no more queues"),
        }
    }
}

impl std::error::Error for PermanentError {}

/// A permanent connection and its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermanentInfo {
    /// The connection.
    pub connection: Permanent,
    /// Cells that came in at the first end, and at the second.
    pub cells: [u64; 2],
    /// Of these, cells that the policer dropped.
    pub policed: [u64; 2],
}

impl<R: RouteSelect> Switch<R> {
    /// Joins two labels in both directions. From now on signalling assigns neither of them, and the guarantees of the
    /// contract are reserved.
    ///
    /// # Errors
    /// If a port does not exist, a label is in use, or a port has not enough bandwidth left. The switch is unchanged
    /// after an error.
    pub fn add_permanent(&mut self, new: Permanent) -> Result<(), PermanentError> {
        for (done, (end, reserved)) in new.holdings().into_iter().enumerate() {
            if let Err(error) = self.hold(end, new.path, reserved) {
                for (end, reserved) in new.holdings().into_iter().take(done) {
                    self.let_go(end, new.path, reserved);
                }
                return Err(error);
            }
        }
        for (done, direction) in new.directions().into_iter().enumerate() {
            if self.open_direction(&new, direction).is_err() {
                for (from, ..) in new.directions().into_iter().take(done) {
                    // The connection was just opened.
                    let _ = self.fabric.apply(FabricOp::Disconnect { from });
                }
                for (end, reserved) in new.holdings() {
                    self.let_go(end, new.path, reserved);
                }
                return Err(PermanentError::Full);
            }
        }
        self.permanent.push(new);
        self.unmanaged = true;
        Ok(())
    }

    fn open_direction(
        &mut self,
        new: &Permanent,
        (from, to, traffic): (PortVc, PortVc, TrafficParams),
    ) -> Result<(), FabricError> {
        let port = self.port(PortNo(from.port));
        let police = new.polices(from) || port.is_some_and(|port| port.config.police);
        self.fabric.apply(if new.path {
            FabricOp::ConnectPath {
                from,
                to,
                traffic,
                police,
            }
        } else {
            FabricOp::Connect {
                from,
                to,
                traffic,
                police,
            }
        })
    }

    /// Removes the permanent connection with this end, and returns it.
    pub fn remove_permanent(&mut self, (port, vc): (PortNo, Vc)) -> Option<Permanent> {
        let has_end = |one: &Permanent| {
            one.ends.iter().any(|(at, label)| {
                *at == port && label.vpi == vc.vpi && (one.path || label.vci == vc.vci)
            })
        };
        let index = self.permanent.iter().position(has_end)?;
        let old = self.permanent.remove(index);
        self.unmanaged = true;
        for (from, ..) in old.directions() {
            let gone = self.fabric.apply(FabricOp::Disconnect { from });
            debug_assert!(gone.is_ok(), "open as long as it is listed");
        }
        for (end, reserved) in old.holdings() {
            self.let_go(end, old.path, reserved);
        }
        Some(old)
    }

    /// The permanent connections, oldest first.
    pub fn permanent(&self) -> impl Iterator<Item = PermanentInfo> + '_ {
        self.permanent.iter().map(|connection| {
            let counters = connection.directions().map(|(from, ..)| {
                let mut all = self.fabric().connections();
                let found =
                    all.find(|view| view.from == from && view.whole_path == connection.path);
                found.map(|view| view.counters).unwrap_or_default()
            });
            PermanentInfo {
                connection: *connection,
                cells: counters.map(|counters| counters.cells_in),
                policed: counters.map(|counters| counters.dropped.total()),
            }
        })
    }

    /// Takes label and bandwidth at a port.
    fn hold(
        &mut self,
        (number, vc): (PortNo, Vc),
        path: bool,
        wanted: Reservation,
    ) -> Result<(), PermanentError> {
        let port = self
            .port_mut(number)
            .ok_or(PermanentError::NoPort(number))?;
        if !port.hold(vc, path) {
            return Err(PermanentError::Label(number, vc));
        }
        if port.reserve(wanted).is_err() {
            port.let_go(vc, path);
            return Err(PermanentError::Rate(number));
        }
        Ok(())
    }

    fn let_go(&mut self, (port, vc): (PortNo, Vc), path: bool, held: Reservation) {
        if let Some(port) = self.port_mut(port) {
            port.let_go(vc, path);
            port.unreserve(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testnet::Net;
    use super::super::{Input, PortNo};
    use super::*;
    use crate::atm::{CellRun, Pdu};
    use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Machine};
    use aerostat_wire::Qos;

    const A: ConnId = ConnId(1);
    const P: ConnId = ConnId(7);

    /// Two hosts at one switch, at its ports 2 and 3.
    fn net() -> Net {
        let mut net = Net::chain(1, &[0, 0]);
        net.listen(1);
        net
    }

    fn ends(net: &Net, a: Vc, b: Vc) -> [(PortNo, Vc); 2] {
        [(net.port_of(0), a), (net.port_of(1), b)]
    }

    fn joined(net: &mut Net, a: Vc, b: Vc, qos: Qos) -> Result<(), PermanentError> {
        let [from, to] = ends(net, a, b);
        net.switches[0].add_permanent(Permanent::channel(from, to, qos))
    }

    fn open(net: &mut Net, host: usize, vc: Vc, qos: Qos) {
        let open = AtmRequest::OpenPermanent { conn: P, vc, qos };
        net.ask(host, open).unwrap();
    }

    #[test]
    fn data_passes_both_ways_until_it_is_removed() {
        let mut net = net();
        let (a, b) = (Vc::new(0, 100), Vc::new(3, 32));
        let qos = Qos {
            tx: TrafficParams::cbr(1000, 1500),
            rx: TrafficParams::ubr(1500),
        };
        joined(&mut net, a, b, qos).unwrap();
        open(&mut net, 0, a, qos);
        open(&mut net, 1, b, qos.reversed());
        net.send(0, P, b"to").unwrap();
        net.send(1, P, b"fro").unwrap();
        net.run_ms(10);
        assert_eq!(net.hosts[1].data, [(P, b"to".to_vec())]);
        assert_eq!(net.hosts[0].data, [(P, b"fro".to_vec())]);
        // One direction has a guarantee, the other has not.
        let reserved: Vec<_> = net.switches[0]
            .port_infos()
            .map(|port| port.reserved)
            .collect();
        assert_eq!(reserved[2..], [(0, 1000), (1000, 0)]);
        let info = net.switches[0].permanent().next().unwrap();
        assert_eq!((info.cells, info.policed), ([1, 1], [0, 0]));

        // Signalling goes down and comes up; the connection stays.
        let port = net.port_of(0);
        let now = net.now;
        net.switches[0]
            .handle_input(Input::Link(port, false), now)
            .unwrap();
        net.switches[0]
            .handle_input(Input::Link(port, true), now)
            .unwrap();
        net.send(0, P, b"still").unwrap();
        net.run_s(30);
        assert_eq!(net.hosts[1].data.len(), 2);

        let end = (net.port_of(1), b);
        assert_eq!(net.switches[0].remove_permanent(end).unwrap().qos, qos);
        assert_eq!(net.switches[0].remove_permanent(end), None);
        net.send(0, P, b"lost").unwrap();
        net.run_ms(10);
        assert_eq!(net.hosts[1].data.len(), 2);
        for host in 0..2 {
            net.release(host, P);
        }
        net.run_ms(100);
        net.assert_clean();
    }

    #[test]
    fn labels_are_of_calls_or_permanent() {
        let mut net = net();
        let (first, second) = (Vc::new(0, 32), Vc::new(0, 33));
        joined(&mut net, first, first, Qos::ubr(1500)).unwrap();
        net.call(0, 1, 1);
        net.run_ms(100);
        let label = net.hosts[0].events.iter().find_map(|event| match event {
            AtmEvent::Connected { vc, .. } => Some(*vc),
            _ => None,
        });
        assert_eq!(label, Some(second), "the permanent one is left out");
        for taken in [first, second] {
            let port = net.port_of(0);
            let error = PermanentError::Label(port, taken);
            assert_eq!(
                joined(&mut net, taken, Vc::new(0, 99), Qos::ubr(1500)),
                Err(error)
            );
        }
        // A host cannot use the label of its call, or a label of signalling.
        for label in [second, Vc::SIGNALLING] {
            let (conn, vc, qos) = (P, label, Qos::ubr(1500));
            let _ = net.ask(0, AtmRequest::OpenPermanent { conn, vc, qos });
            assert_eq!(net.hosts[0].released(P), Some(Cause::VC_UNAVAILABLE));
            net.hosts[0].events.clear();
        }
        net.release(0, A);
        let end = (net.port_of(0), first);
        assert!(net.switches[0].remove_permanent(end).is_some());
        net.run_ms(100);
        net.assert_clean();
    }

    #[test]
    fn admission_counts_both() {
        let mut net = net();
        let half = Qos::cbr(180_000, 1500);
        let label = |vci| Vc::new(0, vci);
        joined(&mut net, label(100), label(100), half).unwrap();
        net.call_with(0, 1, 1, half, false);
        net.run_ms(100);
        assert_eq!(net.hosts[0].released(A), Some(Cause::RATE_UNAVAILABLE));
        let rate = PermanentError::Rate(net.port_of(0));
        assert_eq!(joined(&mut net, label(101), label(101), half), Err(rate));
        // The refused connection holds nothing.
        joined(&mut net, label(101), label(101), Qos::ubr(1500)).unwrap();
        for vci in [100, 101] {
            let end = (net.port_of(0), label(vci));
            assert!(net.switches[0].remove_permanent(end).is_some());
        }
        net.call_with(0, 1, 2, half, false);
        net.run_ms(100);
        assert!(net.hosts[0].connected(ConnId(2)));
        net.release(0, ConnId(2));
        net.run_ms(100);
        net.assert_clean();
    }

    #[test]
    fn a_path_carries_every_channel_and_excludes_single_ones() {
        let mut net = net();
        let path = |net: &Net, a, b, police| Permanent {
            ends: ends(net, Vc::new(a, 0), Vc::new(b, 0)),
            qos: Qos::cbr(1000, 0),
            path: true,
            police: [police; 2],
        };
        let new = path(&net, 5, 9, true);
        net.switches[0].add_permanent(new).unwrap();
        let (to, from) = (net.port_of(1), net.port_of(0));
        for refused in [path(&net, 5, 8, false), path(&net, 0, 8, false)] {
            let error = PermanentError::Label(from, refused.ends[0].1);
            assert_eq!(net.switches[0].add_permanent(refused), Err(error));
        }
        let inside = Vc::new(5, 77);
        let error = PermanentError::Label(from, inside);
        assert_eq!(
            joined(&mut net, inside, Vc::new(0, 77), Qos::ubr(0)),
            Err(error)
        );
        joined(&mut net, Vc::new(6, 77), Vc::new(6, 77), Qos::ubr(0)).unwrap();
        let error = PermanentError::Label(from, Vc::new(6, 0));
        let over = path(&net, 6, 7, false);
        assert_eq!(net.switches[0].add_permanent(over), Err(error));

        // Any VCI passes, with the VPI of the other side; traffic above the contract does not.
        let run = CellRun::whole(Pdu::new(vec![7; 100]), Vc::new(5, 4321));
        let cells = u64::from(run.count);
        let now = net.now;
        for _ in 0..2 {
            let input = Input::Cells(from, run.clone());
            net.switches[0].handle_input(input, now).unwrap();
        }
        let output = net.switches[0].fabric_mut().output_mut(to.0).unwrap();
        let mut left = 0;
        while let Some(departure) = output.pop(now + aerostat_proto::Duration::from_secs(1), 1) {
            assert_eq!(departure.run.vc, Vc::new(9, 4321));
            left += u64::from(departure.run.count);
        }
        let info = net.switches[0].permanent().next().unwrap();
        assert_eq!(info.cells, [2 * cells, 0]);
        assert_eq!(info.policed, [2 * cells - left, 0]);
        assert!(left > 0 && info.policed[0] > 0, "{info:?}");

        for vpi in [5, 6] {
            let end = (from, Vc::new(vpi, 77));
            assert!(net.switches[0].remove_permanent(end).is_some());
        }
        joined(&mut net, inside, inside, Qos::ubr(0)).unwrap();
        assert!(net.switches[0].remove_permanent((to, inside)).is_some());
        net.assert_clean();
    }

    #[test]
    fn a_port_that_does_not_exist() {
        let mut net = net();
        let (vc, none) = (Vc::new(0, 50), PortNo(9));
        let new = Permanent::channel((net.port_of(0), vc), (none, vc), Qos::cbr(5, 0));
        let refused = net.switches[0].add_permanent(new);
        assert_eq!(refused, Err(PermanentError::NoPort(none)));
        let loop_back = Permanent::channel((net.port_of(0), vc), (net.port_of(0), vc), Qos::ubr(0));
        let refused = net.switches[0].add_permanent(loop_back);
        assert_eq!(refused, Err(PermanentError::Label(net.port_of(0), vc)));
        net.assert_clean();
    }
}
