//! The text of Linux' `/proc/net/atm/lec`, made from a client's snapshot.
//!
//! Source of the columns: the output of kernel 5.10 as a member of an ELAN of ours, which the test contains. Entries of
//! groups name the BUS.

use super::snapshot::{ArpStatus, LecSnapshot};
use aerostat_wire::{AtmAddress, MacAddr, Vc};
use core::fmt::Write as _;

/// The MAC address is behind its owner.
const REMOTE: u16 = 0x0001;
/// The entry never ages.
const PERMANENT: u16 = 0x0002;

/// One line.
struct Line {
    mac: MacAddr,
    atm: AtmAddress,
    status: ArpStatus,
    flags: u16,
    /// Frames are sent on this connection.
    vc: Option<Vc>,
    /// Frames are only received on this connection.
    receives: Option<Vc>,
}

impl Line {
    fn write(&self, text: &mut String, interface: &str) {
        let MacAddr([a, b, c, d, e, f]) = self.mac;
        let atm: String = self.atm.0.iter().map(|o| format!("{o:02x}")).collect();
        let status = format!("ESI_{}", self.status);
        let flags = self.flags;
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{interface:<4} {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} {atm} {status:<18} {flags:04x}"
        );
        let _ = match self.vc {
            Some(vc) => write!(text, "{:>3} {:>3} ", vc.vpi, vc.vci),
            None => write!(text, "{:8}", ""),
        };
        if let Some(vc) = self.receives {
            let _ = write!(text, "     {:>3} {:>3}", vc.vpi, vc.vci);
        }
        text.push('\n');
    }
}

impl LecSnapshot {
    /// The first line of `/proc/net/atm/lec`.
    pub const PROC_HEADER: &str = "Itf  MAC          ATM destination                          \
        Status            Flags VPI/VCI Recv VPI/VCI\n";

    /// The lines of this client, which is interface `lecN`: its LE_ARP cache, then its connections with the BUS.
    #[must_use]
    pub fn proc_lines(&self, interface: usize) -> String {
        let interface = format!("lec{interface}");
        let mut text = String::new();
        for row in &self.cache {
            let line = Line {
                mac: row.mac,
                atm: row.atm.unwrap_or(AtmAddress::ZERO),
                status: row.status,
                flags: if row.remote { REMOTE } else { 0 },
                vc: row.vc,
                receives: None,
            };
            line.write(&mut text, &interface);
        }
        for row in self.connections.iter().filter(|row| row.vc.is_some()) {
            let (status, flags, vc, receives) = match row.role {
                "multicast send" => (ArpStatus::ForwardDirect, PERMANENT, row.vc, None),
                "multicast forward" => (ArpStatus::Unknown, 0, None, row.vc),
                _ => continue,
            };
            let line = Line {
                mac: MacAddr([0xff; 6]),
                atm: row.peer,
                status,
                flags,
                vc,
                receives,
            };
            line.write(&mut text, &interface);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ControlCounters, DataCounters, LecArpRow, LecConnRow, LecState};
    use super::*;
    use crate::split::SeatCounters;
    use aerostat_wire::lane::{ElanName, MaxFrameSize};

    const BUS: &str = "4700918100000002a70000020002a701000100c0";

    fn cached(mac: [u8; 6], atm: &str, status: ArpStatus, vci: Option<u16>) -> LecArpRow {
        LecArpRow {
            mac: MacAddr(mac),
            atm: atm.parse().ok(),
            status,
            remote: false,
            from_data: false,
            vc: vci.map(|vci| Vc::new(0, vci)),
            tlvs: Vec::new(),
        }
    }
    fn with_bus(role: &'static str, vci: u16) -> LecConnRow {
        LecConnRow {
            role,
            peer: BUS.parse().unwrap(),
            outgoing: role == "multicast send",
            vc: Some(Vc::new(0, vci)),
            traffic: None,
        }
    }

    /// The lines of a Linux host that was a member of an ELAN of ours, without its entries of multicast addresses; and
    /// an entry that is being resolved.
    #[test]
    fn the_table_of_a_linux_host() {
        let own = [0x02, 0xa7, 3, 0, 6, 0];
        let atm = "4700918100000002a70000020002a70300060000";
        let mut remote = cached([2, 0, 0, 0, 0, 9], "", ArpStatus::ArpPending, None);
        remote.remote = true;
        let lec = LecSnapshot {
            state: LecState::Operational,
            lecid: 3,
            elan: ElanName::default(),
            elan_id: 1,
            v2: true,
            tlvs: Vec::new(),
            max_frame: MaxFrameSize::UNSPECIFIED,
            mac: MacAddr(own),
            address: AtmAddress::ZERO,
            les: AtmAddress::ZERO,
            bus: AtmAddress::ZERO,
            topology_change: false,
            groups: None,
            cache: vec![cached(own, atm, ArpStatus::ForwardDirect, Some(41)), remote],
            connections: vec![
                with_bus("control direct", 36),
                with_bus("multicast send", 38),
                with_bus("multicast forward", 39),
            ],
            control: ControlCounters::default(),
            seat: SeatCounters::default(),
            data: DataCounters::default(),
        };
        let wanted = [
            "Itf  MAC          ATM destination                          Status            Flags VPI/VCI Recv VPI/VCI\n",
            "lec0 02:a7:03:00:06:00 4700918100000002a70000020002a70300060000 ESI_FORWARD_DIRECT 0000  0  41 \n",
            "lec0 02:00:00:00:00:09 0000000000000000000000000000000000000000 ESI_ARP_PENDING    0001        \n",
            "lec0 ff:ff:ff:ff:ff:ff 4700918100000002a70000020002a701000100c0 ESI_FORWARD_DIRECT 0002  0  38 \n",
            "lec0 ff:ff:ff:ff:ff:ff 4700918100000002a70000020002a701000100c0 ESI_UNKNOWN        0000               0  39\n",
        ];
        let text = LecSnapshot::PROC_HEADER.to_owned() + &lec.proc_lines(0);
        assert_eq!(text, wanted.concat());
    }
}
