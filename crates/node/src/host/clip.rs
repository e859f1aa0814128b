//! An interface on a Classical IP subnet, for IP stacks that think in Ethernet frames.
//!
//! Classical IP knows next hops by IP address, an IP stack hands over frames. So each next hop has a hardware address that
//! is made of its IP address (`02:00` and its four octets): what the stack asks by ARP is answered here at once, and a
//! frame to such an address says which next hop the stack has chosen, also for a destination behind a router. ATMARP goes
//! on underneath. The kernel's routing, or the embedded stack's, is used as it is.

use super::{Host, Path, Service};
use aerostat_proto::clip;
use aerostat_proto::{Instant, Machine};
use std::net::Ipv4Addr;

/// First octets of the hardware address of a next hop.
const NEXT_HOP: [u8; 2] = [0x02, 0x00];
/// Source address of frames that arrive: nobody looks at it.
const ARRIVED: [u8; 6] = [0x02, 0x00, 0, 0, 0, 1];
const ETHERNET: usize = 14;
const ARP: [u8; 2] = [0x08, 0x06];
const IPV4: [u8; 2] = [0x08, 0x00];

impl Host {
    /// A frame of the IP side for a next hop of a Classical IP subnet.
    pub(super) fn send_on_clip(&mut self, itf: usize, slot: usize, frame: &[u8], now: Instant) {
        let (Some(header), Some(payload)) =
            (frame.first_chunk::<ETHERNET>(), frame.get(ETHERNET..))
        else {
            return;
        };
        match [header[12], header[13]] {
            ARP => {
                if let Some(answer) = answer(payload) {
                    self.deliver(itf, answer, Path::Lane, now);
                }
            }
            // There is no way to send to all: broadcasts and other protocols end here.
            IPV4 if header[..2] == NEXT_HOP => {
                let next_hop = Ipv4Addr::new(header[2], header[3], header[4], header[5]);
                let packet = payload.to_vec();
                self.feed(slot, |service| match service {
                    Service::Clip(machine) => {
                        machine.handle_input(clip::Input::Send { next_hop, packet }, now)
                    }
                    _ => Ok(()),
                });
            }
            _ => {}
        }
    }

    pub(super) fn clip_output(&mut self, slot: usize, output: clip::Output, now: Instant) {
        let Some(itf) = self.interface_of(slot) else {
            return;
        };
        match output {
            clip::Output::Atm(request) => self.request(slot, request, now),
            clip::Output::Trace(trace) => self.trace(trace),
            clip::Output::Ready(ready) => {
                self.interfaces[itf].up = ready;
                // Without its server a client still reaches whom it knows: only a crash takes the link.
                if ready {
                    self.tell_link(itf, true, now);
                }
            }
            clip::Output::Deliver(packet) => {
                let mut frame = Vec::with_capacity(ETHERNET + packet.len());
                frame.extend(self.interfaces[itf].mac.0);
                frame.extend(ARRIVED);
                frame.extend(IPV4);
                frame.extend(packet);
                self.deliver(itf, frame, Path::Lane, now);
            }
        }
    }
}

/// The answer to an ARP request for a next hop; none to others, and none to a probe for the own address.
fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let request: &[u8; 28] = request.first_chunk()?;
    let (asker, own) = (&request[8..14], &request[14..18]);
    let wanted = &request[24..28];
    let is_request = request[..8] == [0, 1, 8, 0, 6, 4, 0, 1];
    if !is_request || own == wanted || own == [0; 4] {
        return None;
    }
    let hardware = [&NEXT_HOP[..], wanted].concat();
    let parts: [&[u8]; 8] = [
        asker,
        &hardware,
        &ARP,
        &[0, 1, 8, 0, 6, 4, 0, 2],
        &hardware,
        wanted,
        asker,
        own,
    ];
    Some(parts.concat())
}
