//! Departures in frames: [`crate::atm::framing`] has the rules.

use super::turns::Most;
use super::{Departure, Framing, InFrame, OutputPort};
use aerostat_proto::Instant;

/// The preamble of a frame, in nanoseconds.
fn lead_of(framing: Framing) -> u64 {
    u64::try_from(framing.preamble().as_nanos()).unwrap_or(u64::MAX)
}

impl OutputPort {
    /// Makes the cells leave in frames, or one by one. Call this before the first cell is queued.
    pub fn set_framing(&mut self, framing: Option<Framing>) {
        self.framing = framing;
        self.lead = framing.map_or(0, lead_of);
    }

    /// The frames in which cells leave; `None` if they leave one by one.
    #[must_use]
    pub const fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Decides the departures of the next frame, if one is due at `now`; false if none is. `most` cells of one queue
    /// leave in a turn.
    pub(super) fn fill_frame(&mut self, now: Instant, most: Most) -> bool {
        let due = self.next_start().filter(|start| *start <= now);
        let (Some(framing), Some(start)) = (self.framing, due) else {
            return false;
        };
        // The line does not move on between the cells of a frame.
        let (line, before) = (self.line, self.departed.len());
        (self.lead, self.room) = (0, framing.cells());
        let mut departure = Departure::default();
        while self.room > 0 && self.depart(start, most, &mut departure) {
            self.line = line;
            self.room = self.room.saturating_sub(departure.run.count);
            self.departed.push_back(std::mem::take(&mut departure));
        }
        let cells = framing.cells() - self.room;
        (self.lead, self.room) = (lead_of(framing), u16::MAX);
        let finish = start + framing.frame(cells);
        let filled = self.departed.iter_mut().skip(before);
        let places = std::iter::once(InFrame::First).chain(std::iter::repeat(InFrame::Further));
        for (departure, frame) in filled.zip(places) {
            (departure.start, departure.finish, departure.frame) = (start, finish, frame);
        }
        if cells > 0 {
            self.line.not_before(finish + framing.gap());
        }
        cells > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atm::{CellRun, Pdu, PortLimits, QueueConfig, QueueId};
    use aerostat_wire::{TrafficParams, Vc};

    /// An Ethernet of 10 Mb/s with 5 cells in a frame: 800 ns an octet.
    const LINE: Framing = Framing::new(10_000_000, 5);

    fn at(octets: u64) -> Instant {
        Instant::from_nanos(octets * 800)
    }

    /// A port with two queues, in front of such a line.
    fn port() -> (OutputPort, [QueueId; 2]) {
        let mut port = OutputPort::new(LINE.full_rate(), PortLimits::SWITCH);
        port.set_framing(Some(LINE));
        let ubr = QueueConfig::switch(TrafficParams::ubr(0));
        let queues = [1, 2].map(|vci| port.open(Vc::new(0, vci), ubr).unwrap());
        (port, queues)
    }

    fn put(port: &mut OutputPort, queue: QueueId, cells: usize, now: Instant) {
        let vc = Vc::new(0, queue.0 as u16 + 1);
        let run = CellRun::whole(Pdu::new(vec![7; 48 * cells - 8]), vc);
        assert_eq!(port.enqueue(queue, run, now).accepted, cells as u16);
    }

    /// VCI, start, finish and place of everything that leaves by `now`.
    fn gone(port: &mut OutputPort, now: Instant) -> Vec<(u16, Instant, Instant, InFrame)> {
        let all = std::iter::from_fn(|| port.pop(now, 1));
        all.map(|gone| (gone.run.vc.vci, gone.start, gone.finish, gone.frame))
            .collect()
    }

    #[test]
    fn a_frame_takes_what_waits_when_its_preamble_has_left() {
        use InFrame::{First, Further};
        let (mut port, [a, b]) = port();
        put(&mut port, a, 3, at(0));
        assert_eq!(port.next_departure(), Some(at(8)));
        assert!(gone(&mut port, at(7)).is_empty());
        // These come during the preamble.
        put(&mut port, b, 4, at(8));
        let first = gone(&mut port, at(8));
        // Both queues in turn, 5 cells: 14 + 5 × 52 + 4 octets behind the preamble.
        let end = at(8 + 14 + 260 + 4);
        let places = [
            (1, First),
            (2, Further),
            (1, Further),
            (2, Further),
            (1, Further),
        ];
        let wanted = places.map(|(vci, place)| (vci, at(8), end, place));
        assert_eq!(first, wanted);
        // Behind the gap and the next preamble, the rest: two cells.
        let next = at(286 + 12 + 8);
        assert_eq!(port.next_departure(), Some(next));
        let end = next + LINE.frame(2);
        assert_eq!(
            gone(&mut port, next),
            [(2, next, end, First), (2, next, end, Further)]
        );
        assert!(port.is_idle());
        // An idle line has a preamble, too.
        put(&mut port, a, 1, at(5000));
        assert_eq!(port.next_departure(), Some(at(5008)));
    }

    #[test]
    fn a_late_driver_gets_the_frames_of_a_punctual_one() {
        let run = |late: bool| {
            let (mut port, [a, b]) = port();
            if late {
                port.allow_late();
            }
            let mut all = Vec::new();
            for n in 0..40_u64 {
                // Sometimes faster and sometimes slower than the line.
                let now = at(n * 97 + (n % 7) * 31);
                if !late {
                    while let Some(due) = port.next_departure().filter(|due| *due <= now) {
                        all.extend(gone(&mut port, due));
                    }
                }
                put(
                    &mut port,
                    if n % 3 == 0 { a } else { b },
                    1 + n as usize % 3,
                    now,
                );
            }
            all.extend(gone(&mut port, at(100_000)));
            all
        };
        let punctual = run(false);
        assert_eq!(punctual.len(), (0..40).map(|n| 1 + n % 3).sum::<usize>());
        assert_eq!(run(true), punctual);
    }
}
