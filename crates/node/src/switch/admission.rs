//! Admission of calls with alternatives: which of a caller's offers can be carried, what each leg reserves, and what
//! the answer says of it.

use aerostat_proto::uni::{ConnectInfo, Fallback, SetupInfo, Version};
use aerostat_proto::{Cause, Trace};
use aerostat_wire::Qos;

use super::crankback::Obstacle;
use super::port::{Port, Reservation};
use super::{LegKey, PortNo, RouteSelect, Switch, SwitchCallId};

/// Invalid information element contents.
const BAD_ELEMENT: Cause = Cause(100);

impl<R: RouteSelect> Switch<R> {
    /// The offer as it can go from one port to another: the first of the caller's offers for which both ports have the
    /// rates. It still contains the caller's other choices, in case the next network needs them.
    pub(super) fn fit(
        &mut self,
        info: SetupInfo,
        from: PortNo,
        to: PortNo,
    ) -> Result<SetupInfo, Obstacle> {
        // If the caller cannot be told which offer was taken, only the first offer counts.
        let offered = match info.fallback() {
            Some(_) if self.speaks_40(from) => info,
            _ => info.settled(),
        };
        if self.has_room(offered.qos, from, to) {
            return Ok(offered);
        }
        let other = match offered.fallback() {
            None => return Err(self.no_rate(offered.qos, to)),
            Some(Fallback::Alternative(traffic)) => offered.with_traffic(&traffic).settled(),
            Some(Fallback::Minimum(_)) => {
                let (forward, backward) = self.room(from, to);
                offered.scaled(forward, backward)
            }
        };
        if !self.has_room(other.qos, from, to) {
            return Err(self.no_rate(other.qos, to));
        }
        let text = format!(
            "call to {} gets {} instead of {}",
            other.called, other.qos, offered.qos
        );
        self.trace(Trace::detail("switch.call.fitted", text).with("port", from));
        Ok(other)
    }

    /// The obstacle for an offer without rates: at the port where it would go out, or where it came in.
    fn no_rate(&self, qos: Qos, to: PortNo) -> Obstacle {
        let out = self.port(to).map(Port::free_for_calls);
        let here = out.is_none_or(|free| !free.covers(Reservation::of(qos)));
        let (reason, at) = (Cause::RATE_UNAVAILABLE.into(), here.then_some(to));
        Obstacle { reason, at }
    }

    pub(super) fn speaks_40(&self, port: PortNo) -> bool {
        self.port(port)
            .is_some_and(|port| port.interface.version() == Version::Uni40)
    }

    fn has_room(&self, qos: Qos, from: PortNo, to: PortNo) -> bool {
        let (root, branch) = (Reservation::of(qos.reversed()), Reservation::of(qos));
        let covers = |port, wanted| {
            self.port(port)
                .is_some_and(|port| port.free_for_calls().covers(wanted))
        };
        if from == to {
            covers(from, root.plus(branch))
        } else {
            covers(from, root) && covers(to, branch)
        }
    }

    /// Peak rates (forward, backward) that both ports have left. A call that returns to its own port uses every rate
    /// twice there, so it gets the smaller one.
    fn room(&self, from: PortNo, to: PortNo) -> (u32, u32) {
        let free = |port| {
            let port = self.port(port);
            port.map(Port::free_for_calls).unwrap_or_default()
        };
        let (root, branch) = (free(from), free(to));
        let narrow = |rate: u64| u32::try_from(rate).unwrap_or(u32::MAX);
        if from == to {
            (0, 0)
        } else {
            (
                narrow(root.rx.min(branch.tx)),
                narrow(root.tx.min(branch.rx)),
            )
        }
    }

    /// Replaces the reservation of a leg by what `qos` needs, as seen from the switch at the leg's port. If that is not
    /// possible, the leg keeps its reservation.
    pub(super) fn reserve_leg(&mut self, key: LegKey, qos: Qos) -> Result<(), Cause> {
        self.reserve(key, Reservation::of(qos))
    }

    /// A leg gives up its reservation.
    pub(super) fn reserve_nothing(&mut self, key: LegKey) {
        // Nothing is always possible.
        let _ = self.reserve(key, Reservation::default());
    }

    fn reserve(&mut self, key: LegKey, wanted: Reservation) -> Result<(), Cause> {
        let Some(leg) = self.legs.get_mut(&key) else {
            return Err(Cause::TEMPORARY);
        };
        let Some(port) = self.ports.get_mut(usize::from(key.port.0)) else {
            return Err(Cause::TEMPORARY);
        };
        port.reserve_instead(port.config.call_vpi, leg.reserved, wanted)?;
        leg.reserved = wanted;
        Ok(())
    }

    /// The called side answered a call with a choice: both legs reserve what was chosen, and the caller is told.
    pub(super) fn settle(
        &mut self,
        id: SwitchCallId,
        branch: LegKey,
        mut answer: ConnectInfo,
    ) -> Result<ConnectInfo, Cause> {
        let told = answer.traffic().filter(|_| self.speaks_40(branch.port));
        let Some(call) = self.calls.get(&id).filter(|call| call.negotiable) else {
            return Ok(answer);
        };
        let (root, offered) = (call.root, &call.info);
        let taken = match told {
            None => offered.clone().settled(),
            Some(traffic) if offered.allows(&traffic) => offered.with_traffic(&traffic).settled(),
            Some(_) => return Err(BAD_ELEMENT),
        };
        if taken.qos != offered.qos {
            self.reserve_leg(branch, taken.qos)?;
            self.reserve_leg(root, taken.qos.reversed())?;
        }
        answer.set_traffic(Some(&taken.traffic()));
        if let Some(call) = self.calls.get_mut(&id) {
            call.info = taken;
        }
        Ok(answer)
    }
}
