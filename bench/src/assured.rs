//! Messages through two SAAL machines, each sent, delivered and acknowledged.

use aerostat_proto::saal::{Indication, Input, Output, Request, Saal};
use aerostat_proto::sscop::Params;
use aerostat_proto::{Duration, Instant, Machine};

/// An established link.
pub struct Link {
    ends: [Saal; 2],
    now: Instant,
    /// Messages delivered at end 1.
    pub delivered: u64,
}

impl Default for Link {
    fn default() -> Self {
        let mut link = Self {
            ends: [Saal::new(Params::UNI), Saal::new(Params::UNI)],
            now: Instant::ZERO,
            delivered: 0,
        };
        link.ask(Request::Establish);
        link.pump();
        link
    }
}

impl Link {
    fn ask(&mut self, request: Request) {
        let taken = self.ends[0].handle_input(Input::Upper(request), self.now);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }
    fn pump(&mut self) {
        let mut moved = true;
        while core::mem::take(&mut moved) {
            for e in 0..2 {
                while let Some(output) = self.ends[e].poll_output() {
                    match output {
                        Output::Lower(pdu) => {
                            moved = true;
                            let taken = self.ends[1 - e].handle_input(Input::Lower(&pdu), self.now);
                            debug_assert!(taken.is_ok(), "{taken:?}");
                        }
                        Output::Upper(Indication::Data(_)) => self.delivered += 1,
                        Output::Upper(_) | Output::Trace(_) => {}
                    }
                }
            }
        }
    }
    /// Sends `count` messages of `len` octets, a millisecond apart, with whatever timers are due.
    pub fn send(&mut self, count: u32, len: usize) {
        for _ in 0..count {
            self.ask(Request::Data(vec![0x5a; len]));
            self.pump();
            self.now += Duration::from_millis(1);
            for end in &mut self.ends {
                if end.poll_timeout().is_some_and(|at| at <= self.now) {
                    end.handle_timeout(self.now);
                }
            }
        }
        self.pump();
    }
}
