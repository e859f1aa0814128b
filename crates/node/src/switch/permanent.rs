//! Permanent connections: set up by management, without signalling.
//!
//! A permanent connection joins two labels in both directions; each direction has its own contract. It joins two
//! channels (VPI and VCI are translated) or two paths (the VPI is translated, all VCIs pass unchanged). Its labels are
//! never assigned to calls, and calls that name one of them are refused (cause 35). Its guarantees count for admission
//! like those of calls. It stays when signalling or the link fails, and ends with the switch or by
//! [`Switch::remove_permanent`].

use aerostat_wire::counted;
use core::fmt;

use aerostat_wire::{Qos, TrafficParams, Vc};

use super::queues::ConnectionQueue;
use super::{PortNo, RouteSelect, Switch};
use crate::atm::Policing;
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
    /// Settings of its own queues.
    pub queue: ConnectionQueue,
    /// Policing of the traffic that comes in at each end; `None`: as the port polices calls. Between switches this
    /// needs a tolerance for the queues on the way, which have changed the distances of cells.
    pub police: [Option<Policing>; 2],
}

/// One of both directions of a permanent connection, with its contract.
#[derive(Clone, Copy)]
struct Direction {
    from: PortVc,
    to: PortVc,
    traffic: TrafficParams,
}

impl Permanent {
    /// A channel without policing of its own.
    #[must_use]
    pub const fn channel(from: (PortNo, Vc), to: (PortNo, Vc), qos: Qos) -> Self {
        Self {
            ends: [from, to],
            qos,
            path: false,
            queue: ConnectionQueue::DEFAULT,
            police: [None; 2],
        }
    }
    fn directions(&self) -> [Direction; 2] {
        let [a, b] = self.ends.map(|(port, vc)| PortVc::new(port.0, vc));
        let of = |from, to, traffic| Direction { from, to, traffic };
        [of(a, b, self.qos.tx), of(b, a, self.qos.rx)]
    }
    /// Policing of traffic that comes in here, if the connection has its own.
    fn policing(&self, at: PortVc) -> Option<Policing> {
        let mut ends = self.ends.iter().zip(self.police);
        let here = ends.find(|((port, vc), _)| PortVc::new(port.0, *vc) == at);
        here.and_then(|(_, police)| police)
    }
    /// Each end with its reservation; `tx` leaves the switch.
    #[must_use]
    pub fn holdings(&self) -> [((PortNo, Vc), Reservation); 2] {
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
    /// The port has no free queue: it has as many as its limit.
    Full(PortNo, usize),
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
            Self::Full(port, most) => {
                let most = counted(*most, "queue", "queues");
                write!(f, "port {port} has {most}, which is its limit")
            }
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
    /// True for each end whose cells a policer holds to the contract.
    pub held: [bool; 2],
    /// Of these, cells that the policer dropped.
    pub policed: [u64; 2],
    /// Of these, cells that the policer tagged.
    pub tagged: [u64; 2],
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
            if let Err(error) = self.open_direction(&new, direction) {
                for Direction { from, .. } in new.directions().into_iter().take(done) {
                    // The connection was just opened.
                    let _ = self.fabric.apply(FabricOp::Disconnect { from });
                }
                for (end, reserved) in new.holdings() {
                    self.let_go(end, new.path, reserved);
                }
                // Signalling has let go of both labels, so only queues can be missing.
                return Err(match error {
                    FabricError::NoQueue(at, most) => PermanentError::Full(PortNo(at.port), most),
                    FabricError::NoPort(port) => PermanentError::NoPort(PortNo(port)),
                    FabricError::InputBusy(at)
                    | FabricError::OutputBusy(at)
                    | FabricError::NoConnection(at)
                    | FabricError::NoLeaf(at) => PermanentError::Label(PortNo(at.port), at.vc),
                });
            }
        }
        self.permanent.push(new);
        self.unmanaged = true;
        Ok(())
    }

    /// Policing at a port, unless a permanent connection has a policing of its own.
    #[must_use]
    pub fn policing(&self, port: PortNo) -> Policing {
        let port = self.port(port);
        port.map(|port| port.config.police).unwrap_or_default()
    }

    fn open_direction(
        &mut self,
        new: &Permanent,
        Direction { from, to, traffic }: Direction,
    ) -> Result<(), FabricError> {
        let usual = self.policing(PortNo(from.port));
        let police = new.policing(from).unwrap_or(usual);
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
        })?;
        if new.queue != ConnectionQueue::DEFAULT {
            self.fabric.tune(from, to, &new.queue.tuning());
        }
        Ok(())
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
        for Direction { from, .. } in old.directions() {
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
            let views = connection.directions().map(|Direction { from, .. }| {
                let mut all = self.fabric().connections();
                all.find(|view| view.from == from && view.whole_path == connection.path)
            });
            let held = [0, 1].map(|end| views[end].as_ref().is_some_and(|view| view.policed));
            let counters = views.map(|view| view.map(|view| view.counters).unwrap_or_default());
            PermanentInfo {
                connection: *connection,
                held,
                cells: counters.map(|counters| counters.cells_in),
                policed: counters.map(|counters| counters.dropped.total()),
                tagged: counters.map(|counters| counters.tagged),
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
        if port.reserve(vc.vpi, wanted).is_err() {
            port.let_go(vc, path);
            return Err(PermanentError::Rate(number));
        }
        Ok(())
    }

    fn let_go(&mut self, (port, vc): (PortNo, Vc), path: bool, held: Reservation) {
        if let Some(port) = self.port_mut(port) {
            port.let_go(vc, path);
            port.unreserve(vc.vpi, held);
        }
    }
}
