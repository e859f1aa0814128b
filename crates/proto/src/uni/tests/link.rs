//! [`UniLink`] against [`UniLink`] over a link that loses SDUs.

use super::*;
use crate::uni::{LinkInput, LinkOutput, UniLink};

struct Wire {
    ends: [UniLink; 2],
    heard: [Vec<Indication>; 2],
    now: Instant,
    sdus: u64,
    /// Every n-th SDU is lost; 0 for none.
    lose_every: u64,
    cut: bool,
}

impl Wire {
    fn new(version: Version) -> Self {
        let end = |side| UniLink::new(Params::new(side, version));
        Self {
            ends: [end(Side::User), end(Side::Network)],
            heard: [Vec::new(), Vec::new()],
            now: Instant::from_secs(1),
            sdus: 0,
            lose_every: 0,
            cut: false,
        }
    }
    fn drain(&mut self) {
        let mut idle = 0;
        for from in [USER, NET].into_iter().cycle().take(10_000) {
            let outputs = settle(&mut self.ends[from], self.now);
            idle = if outputs.is_empty() { idle + 1 } else { 0 };
            if idle == 2 {
                return;
            }
            for output in outputs {
                match output {
                    LinkOutput::Lower(sdu) => {
                        self.sdus += 1;
                        let lost = self.lose_every > 0 && self.sdus.is_multiple_of(self.lose_every);
                        if !lost && !self.cut {
                            let input = LinkInput::Lower(&sdu);
                            self.ends[1 - from]
                                .handle_input(input, self.now)
                                .expect("never");
                        }
                    }
                    LinkOutput::Indication(i) => self.heard[from].push(i),
                    LinkOutput::Trace(_) => {}
                }
            }
        }
        panic!("the two ends never stop");
    }
    fn run(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        self.drain();
        while let Some(next) = self.ends.iter().filter_map(Machine::poll_timeout).min() {
            if next > end {
                break;
            }
            self.now = next;
            self.drain();
        }
        self.now = end;
        self.drain();
    }
    fn ask(&mut self, end: usize, request: Request) {
        self.ends[end]
            .handle_input(LinkInput::Request(request), self.now)
            .expect("request");
        self.drain();
    }
}

#[test]
fn calls_over_a_lossy_link() {
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        let mut w = Wire::new(version);
        w.lose_every = 5;
        w.run(5);
        assert!(
            w.heard.iter().all(|heard| heard.contains(&Indication::Up)),
            "{version:?}"
        );
        w.ask(USER, setup(info(1), None));
        w.run(3);
        w.ask(NET, proceeding(IN1, Some(VC1)));
        w.ask(NET, accept(IN1, None));
        w.run(3);
        let active = Indication::Connected {
            call: C1,
            info: ConnectInfo::default(),
            vc: VC1,
        };
        assert!(w.heard[USER].contains(&active), "{:?}", w.heard);
        w.ask(USER, release(C1));
        w.run(5);
        for end in &w.ends {
            assert_eq!(end.uni().calls().count(), 0);
            assert_eq!(end.saal().counters().released, 0, "the link held");
        }
    }
}

#[test]
fn a_cut_cable_is_noticed_and_mended() {
    let mut w = Wire::new(Version::Uni31);
    w.run(1);
    w.ask(USER, setup(info(1), None));
    w.ask(NET, accept(IN1, Some(VC1)));
    w.run(20);
    w.heard = [Vec::new(), Vec::new()];
    w.cut = true;
    w.run(30);
    for (heard, call) in w.heard.iter().zip([C1, IN1]) {
        assert_eq!(
            heard[..],
            [Indication::Down, released(call, Cause::OUT_OF_ORDER)]
        );
    }
    w.cut = false;
    w.run(30);
    assert!(
        w.heard
            .iter()
            .all(|heard| heard.last() == Some(&Indication::Up))
    );
    assert!(w.ends.iter().all(|end| end.uni().is_up()));
}
