//! Rules of RFC 2684: what an SDU begins with. ATMARP and NHRP go on to their protocols.

use crate::Explainer;
use crate::book::At;
use crate::rules::Rule;
use aerostat_wire::ipv4::Ipv4View;
use aerostat_wire::line::{Encapsulation, Session};
use aerostat_wire::llc::LlcSnap;
use aerostat_wire::{ErrorKind, counted};

/// PIDs of bridged PDUs: with and without FCS of five media, fragments and two kinds of BPDU. Source: RFC 2684 §10.
const BRIDGED: std::ops::RangeInclusive<u16> = 0x0001..=0x000e;
/// PIDs of IANA's OUI: MARS (1, 4), NHRP (3), VPNs (8). Source: RFC 2022 §4.3, RFC 2332 §5, RFC 2684 §8.
const IANA: [u16; 4] = [1, 3, 4, 8];
/// First EtherType. Source: IEEE 802.3 §3.2.6.
const FIRST_ETHERTYPE: u16 = 0x0600;

impl Explainer<'_> {
    /// Takes an SDU that begins with AA-AA.
    pub(crate) fn llc(&mut self, at: &At, sdu: &[u8]) {
        match LlcSnap::decode(sdu) {
            Ok((LlcSnap::Nhrp, packet)) => self.nhrp(at, packet, None),
            Ok((LlcSnap::Arp, packet)) => self.atmarp.packet(at, packet, &mut self.book),
            Ok((LlcSnap::Ipv4, packet)) => self.routed(at, packet),
            Ok((LlcSnap::MpoaTagged { .. }, packet))
                if packet.first().is_some_and(|first| first >> 4 == 4) =>
            {
                self.routed(at, packet);
            }
            Ok((LlcSnap::BridgedEthernet { fcs: true }, _)) => {
                let frame = Encapsulation::BridgedLlcFcs.decode(sdu, &Session::default());
                if let Err(error) = frame.map(drop)
                    && error.kind == ErrorKind::Checksum
                {
                    let text = "the FCS of a bridged frame is wrong";
                    self.book.name(Rule::BridgedFcs, at, text);
                }
            }
            Ok((LlcSnap::Other { oui, pid }, _)) => {
                let known = match oui {
                    [0, 0, 0] => pid >= FIRST_ETHERTYPE,
                    [0, 0x80, 0xc2] => BRIDGED.contains(&pid),
                    [0, 0, 0x5e] => IANA.contains(&pid),
                    // Other organisations give their numbers as they like.
                    _ => true,
                };
                if !known {
                    let [a, b, c] = oui;
                    let text = format!("OUI {a:02x}-{b:02x}-{c:02x} has no PID {pid:04x}");
                    self.book.name(Rule::LlcPid, at, text);
                }
            }
            Ok(_) => {}
            Err(error) if error.field == "bridged.padding" => {
                self.book.name(Rule::BridgedPadding, at, error.to_string());
            }
            Err(error) => self.book.name(Rule::LlcHeader, at, error.to_string()),
        }
    }

    fn routed(&mut self, at: &At, packet: &[u8]) {
        if Ipv4View::new(packet).is_none_or(|view| !view.checksum_ok()) {
            let octets = counted(packet.len(), "octet is", "octets are");
            let text = format!("{octets} no whole IPv4 packet");
            self.book.name(Rule::RoutedLength, at, text);
        }
    }
}
