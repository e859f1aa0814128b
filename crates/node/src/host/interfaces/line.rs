//! An interface on an ATM line.
//!
//! The IP side sees an Ethernet. On a bridged line its frames cross the line as they are. On a line that is routed or
//! has PPP only IPv4 packets cross: ARP requests are answered here, with the hardware address of a next hop as on a
//! Classical IP subnet (`clip.rs`), and every packet goes to the one station at the other end.

use crate::host::{Host, Path, Typed, Waits};
use aerostat_proto::Instant;
use aerostat_proto::discard::Discard;
use aerostat_proto::line::{Input, Line, Output};

impl Host {
    /// Gives an input to the line below interface `itf`, if that is on a line.
    pub(super) fn tell_line(&mut self, itf: usize, input: Input<'_>, now: Instant) {
        if let Some(line) = self.interfaces.get(itf).and_then(|itf| itf.client.line()) {
            self.tell(line, input, now);
        }
    }

    /// Sends a frame of the IP side, or of a bridge, on a line.
    pub(in crate::host) fn send_on_line(
        &mut self,
        itf: usize,
        line: Typed<Line>,
        frame: &[u8],
        now: Instant,
    ) {
        let Some(machine) = self.machine(line) else {
            return self.lost_by_service(Discard::Stopped, frame);
        };
        if machine.config().encapsulation.is_bridged() {
            return self.tell(line, Input::Send(frame), now);
        }
        if let Some((_, packet)) = self.packet_below(itf, frame, now) {
            self.tell(line, Input::Send(packet), now);
        }
    }

    pub(in crate::host) fn line_output(&mut self, slot: usize, output: Output, now: Instant) {
        let Some(itf) = self.interface_of(slot) else {
            return;
        };
        match output {
            Output::Atm(request) => self.request(slot, request, now),
            Output::Trace(trace) => {
                self.note_attempt(Waits::Line(itf), &trace);
                self.trace(trace);
            }
            Output::Ready(true) => {
                self.interfaces[itf].up = true;
                self.interfaces[itf].since = Some(now);
                self.tell_link(itf, true, now);
            }
            Output::Ready(false) => self.interface_down(itf, now),
            Output::Deliver(octets) => {
                let line = self.interfaces[itf].client.line();
                let line = line.and_then(|line| self.machine(line));
                match line.is_some_and(|line| line.config().encapsulation.is_bridged()) {
                    true => self.deliver(itf, octets, Path::Lane, now),
                    false => self.deliver_packet(itf, &octets, Path::Lane, now),
                }
            }
        }
    }
}
