//! Permanent connections: set up by management, known to no signalling.

use aerostat_proto::Refused;
use aerostat_wire::{Qos, Vc};

use super::{PortNo, RouteSelect, Switch};
use crate::atm::fabric::{FabricOp, PortVc};
use crate::switch::port::Reservation;

impl<R: RouteSelect> Switch<R> {
    /// Joins two labels for good, both ways; `qos.tx` is from `from` to `to`. Signalling hands out neither from now on, and
    /// what the contract guarantees is reserved.
    ///
    /// # Errors
    /// If a port does not exist, a label is in use, or a port has not that much left. Nothing has changed then.
    pub fn add_permanent(
        &mut self,
        from: (PortNo, Vc),
        to: (PortNo, Vc),
        qos: Qos,
    ) -> Result<(), Refused> {
        let ends = [(from, qos.reversed()), (to, qos)];
        for (done, ((port, vc), seen)) in ends.into_iter().enumerate() {
            if let Err(refused) = self.hold(port, vc, seen) {
                for ((port, vc), seen) in ends.into_iter().take(done) {
                    self.let_go(port, vc, seen);
                }
                return Err(refused);
            }
        }
        for ((from, to), traffic) in [((from, to), qos.tx), ((to, from), qos.rx)] {
            let [from, to] = [from, to].map(|(port, vc)| PortVc::new(port.0, vc));
            let police = self
                .port(PortNo(from.port))
                .is_some_and(|port| port.config.police);
            let connected = self.fabric.apply(FabricOp::Connect {
                from,
                to,
                traffic,
                police,
            });
            debug_assert!(connected.is_ok(), "labels that nobody holds are free");
        }
        Ok(())
    }

    /// Takes a permanent connection down; false if there is none between these labels.
    pub fn remove_permanent(&mut self, from: (PortNo, Vc), to: (PortNo, Vc), qos: Qos) -> bool {
        let [a, b] = [from, to].map(|(port, vc)| PortVc::new(port.0, vc));
        let joined = |one: PortVc, other: PortVc| {
            let mut all = self.fabric.connections();
            all.any(|view| view.from == one && !view.local && view.to == [other])
        };
        if !joined(a, b) || !joined(b, a) {
            return false;
        }
        for from in [a, b] {
            let gone = self.fabric.apply(FabricOp::Disconnect { from });
            debug_assert!(gone.is_ok(), "just seen");
        }
        self.let_go(from.0, from.1, qos.reversed());
        self.let_go(to.0, to.1, qos);
        true
    }

    /// Takes label and bandwidth at a port; `qos.tx` leaves the switch there.
    fn hold(&mut self, port: PortNo, vc: Vc, qos: Qos) -> Result<(), Refused> {
        let port = self.port_mut(port).ok_or(Refused("no such port"))?;
        port.take(vc).map_err(|_| Refused("this label is in use"))?;
        if port.reserve(Reservation::of(qos)).is_err() {
            port.give_back(vc);
            return Err(Refused("the port has not that much bandwidth left"));
        }
        Ok(())
    }

    fn let_go(&mut self, port: PortNo, vc: Vc, qos: Qos) {
        if let Some(port) = self.port_mut(port) {
            port.give_back(vc);
            port.unreserve(Reservation::of(qos));
        }
    }
}
