//! The tables of permanent connections that the other side may read, and the traps about their changes.

use super::{Ime, State};
use crate::Instant;
use aerostat_wire::ilmi::{Binding, Message, Oid, Pdu, Trap, Value, mib};
use aerostat_wire::{ServiceCategory, TrafficParams, Vc};
use std::collections::BTreeMap;

/// State of a permanent connection. Source: `atmfVccOperStatus`; the discriminant is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PvcStatus {
    /// The state is unknown.
    Unknown = 1,
    /// The connection carries cells from end to end.
    EndToEndUp = 2,
    /// The connection does not carry cells from end to end.
    EndToEndDown = 3,
    /// The connection is up as far as this system knows.
    LocalUp = 4,
    /// The connection is down in this system.
    LocalDown = 5,
}

crate::split_record! {
    /// A permanent connection on this interface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Pvc {
        /// Its label. The VCI of a path has no meaning.
        pub vc: Vc,
        /// True for a whole path, false for one channel.
        pub path: bool,
        /// Traffic from this end of the interface to the other.
        pub tx: TrafficParams,
        /// Traffic from the other end.
        pub rx: TrafficParams,
        /// Its state.
        pub status: PvcStatus,
    }
}

impl Pvc {
    /// Name of one of its objects: table, column and instance. `vcc` and `vpc` are the columns in the two tables.
    fn name(&self, vcc: u32, vpc: u32) -> Oid {
        if self.path {
            mib::vpc(vpc, self.vc.vpi)
        } else {
            mib::vcc(vcc, self.vc)
        }
    }
    /// The key of a connection on its interface.
    const fn key(&self) -> (bool, u16, u16) {
        (
            self.path,
            self.vc.vpi,
            if self.path { 0 } else { self.vc.vci },
        )
    }
    fn status_object(&self, status: PvcStatus) -> Binding {
        let name = self.name(mib::VCC_STATUS, mib::VPC_STATUS);
        Binding::new(name, Value::Integer(status as i32))
    }
    /// Its label as objects of a trap.
    fn label_objects(&self) -> Vec<Binding> {
        let number = |vcc, vpc, n: u16| Binding::new(self.name(vcc, vpc), Value::Integer(n.into()));
        let mut objects = vec![number(1, 1, 0)];
        if !self.path {
            objects.push(number(3, 0, self.vc.vci));
        }
        objects.push(number(2, 2, self.vc.vpi));
        objects
    }

    /// All its objects. `line` is the peak rate of traffic without a peak rate, cells/s.
    fn objects(&self, line: u32) -> Vec<Binding> {
        let mut objects = self.label_objects();
        objects.push(self.status_object(self.status));
        let directions = [
            (self.tx, mib::VCC_TX, mib::VPC_TX),
            (self.rx, mib::VCC_RX, mib::VPC_RX),
        ];
        for (traffic, vcc, vpc) in directions {
            let (kind, params) = descriptor(&traffic, line);
            let kind = Value::Oid(mib::traffic_descriptor(kind));
            objects.push(Binding::new(self.name(vcc, vpc), kind));
            for (n, param) in (1..).zip(params) {
                let value = Value::Integer(i32::try_from(param).unwrap_or(i32::MAX));
                objects.push(Binding::new(self.name(vcc + n, vpc + n), value));
            }
        }
        let best_effort = |traffic: &TrafficParams| traffic.category == Some(ServiceCategory::Ubr);
        let truth = |yes| Value::Integer(if yes { mib::TRUE } else { mib::FALSE });
        let best = self.name(mib::VCC_BEST_EFFORT, mib::VPC_BEST_EFFORT);
        let any = best_effort(&self.tx) || best_effort(&self.rx);
        objects.push(Binding::new(best, truth(any)));
        if !self.path {
            // A path has no frames: only `atmfVccTable` has these columns. A direction without traffic discards
            // nothing.
            for (column, traffic) in [
                (mib::VCC_TX_FRAMES, &self.tx),
                (mib::VCC_RX_FRAMES, &self.rx),
            ] {
                let frames = traffic.category.is_some() && traffic.discards_frames();
                objects.push(Binding::new(mib::vcc(column, self.vc), truth(frames)));
            }
        }
        let category = self.name(mib::VCC_CATEGORY, mib::VPC_CATEGORY);
        let number = category_number(self.tx.category.or(self.rx.category));
        objects.push(Binding::new(category, Value::Integer(number)));
        objects
    }
}

/// Type and parameters of a traffic descriptor. VBR.1, VBR.2 and VBR.3 have types of their own; CBR.2 and CBR.3 are
/// told by their peak rate of all cells, since types 4 and 5 are obsolete. Source: af-ilmi-0065.000, traffic descriptor
/// types of its MIB.
fn descriptor(traffic: &TrafficParams, line: u32) -> (u32, [u32; 5]) {
    let pcr = traffic.max_pcr.unwrap_or(line);
    // The objects have units of a tenth of a microsecond, rounded down: who keeps the told tolerance conforms. A
    // descriptor has one tolerance, so a contract with two tells the smaller one.
    let nanos = traffic.tightest_cdv().as_nanos() / 100;
    let cdvt = u32::try_from(nanos).unwrap_or(u32::MAX);
    match traffic.category {
        None => (mib::NO_DESCRIPTOR, [0; 5]),
        Some(ServiceCategory::RtVbr | ServiceCategory::NrtVbr) => {
            let kind = match (traffic.clp0, traffic.tagging) {
                (false, _) => mib::NO_CLP_SCR,
                (true, false) => mib::CLP_NO_TAGGING_SCR,
                (true, true) => mib::CLP_TAGGING_SCR,
            };
            (kind, [pcr, traffic.scr, traffic.mbs, cdvt, 0])
        }
        Some(ServiceCategory::Abr) => (mib::CLP_MCR, [pcr, cdvt, traffic.min_pcr, 0, 0]),
        Some(ServiceCategory::Cbr | ServiceCategory::Ubr | ServiceCategory::Gfr) => {
            (mib::NO_CLP_NO_SCR, [pcr, cdvt, 0, 0, 0])
        }
    }
}

/// The number of a category in `atmfVccServiceCategory`.
const fn category_number(category: Option<ServiceCategory>) -> i32 {
    match category {
        None | Some(ServiceCategory::Gfr) => 1,
        Some(ServiceCategory::Cbr) => 2,
        Some(ServiceCategory::RtVbr) => 3,
        Some(ServiceCategory::NrtVbr) => 4,
        Some(ServiceCategory::Abr) => 5,
        Some(ServiceCategory::Ubr) => 6,
    }
}

impl Ime {
    /// Objects of the tables of these connections, in order.
    pub(super) fn pvc_objects(pvcs: &[Pvc], line: u32) -> BTreeMap<Oid, Value> {
        let objects = pvcs.iter().flat_map(|pvc| pvc.objects(line));
        objects
            .map(|Binding { name, value }| (name, value))
            .collect()
    }

    /// Sets the connections. Once both ends know each other, the other side is told of changes.
    pub(super) fn set_pvcs(&mut self, pvcs: Vec<Pvc>, now: Instant) {
        let old = core::mem::replace(&mut self.config.pvcs, pvcs);
        if old == self.config.pvcs {
            return;
        }
        self.pvc_rows = Self::pvc_objects(&self.config.pvcs, self.config.line_rate);
        if !matches!(self.state, State::Registering | State::Verifying) {
            return;
        }
        let new = self.config.pvcs.clone();
        let has = |all: &[Pvc], one: &Pvc| all.iter().any(|pvc| pvc.key() == one.key());
        for gone in old.iter().filter(|pvc| !has(&new, pvc)) {
            self.pvc_change(gone, PvcStatus::LocalDown, now);
        }
        for pvc in new.iter().filter(|pvc| !old.contains(pvc)) {
            self.pvc_change(pvc, pvc.status, now);
        }
    }

    /// Sends `atmfVpcChange` or `atmfVccChange`.
    fn pvc_change(&mut self, pvc: &Pvc, status: PvcStatus, now: Instant) {
        let mut bindings = pvc.label_objects();
        bindings.push(pvc.status_object(status));
        let trap = Trap {
            generic: Trap::ENTERPRISE,
            specific: if pvc.path {
                Trap::VPC_CHANGE
            } else {
                Trap::VCC_CHANGE
            },
            bindings,
            ..Trap::cold_start(self.up_time(now))
        };
        self.send(&Message(Pdu::Trap(trap)));
    }
}
