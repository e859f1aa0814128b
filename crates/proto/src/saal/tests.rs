//! Two ends of a SAAL over a link.

use super::*;
use crate::Duration;
use crate::machine::settle;
use crate::sscop::Mode;

struct Pair {
    ends: [Saal; 2],
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    told: [Vec<Indication>; 2],
    now: Instant,
    cut: bool,
}

impl Pair {
    fn new(params: [Params; 2]) -> Self {
        Self {
            ends: params.map(Saal::new),
            wire: VecDeque::new(),
            told: Default::default(),
            now: Instant::ZERO,
            cut: false,
        }
    }
    fn ask(&mut self, end: usize, request: Request) -> Result<(), Refused> {
        let done = self.ends[end].handle_input(Input::Upper(request), self.now);
        self.drain(end);
        done
    }
    fn drain(&mut self, end: usize) {
        for output in settle(&mut self.ends[end], self.now) {
            match output {
                Output::Lower(pdu) if !self.cut => {
                    let at = self.now + Duration::from_millis(1);
                    self.wire.push_back((at, 1 - end, pdu));
                }
                Output::Lower(_) | Output::Trace(_) => {}
                Output::Upper(indication) => self.told[end].push(indication),
            }
        }
    }
    fn run(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        loop {
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let timers = self.ends.iter().filter_map(Machine::poll_timeout);
            let Some(next) = timers.chain(arrival).min().filter(|at| *at <= until) else {
                break;
            };
            self.now = next;
            if arrival == Some(next)
                && let Some((_, end, pdu)) = self.wire.pop_front()
            {
                self.ends[end]
                    .handle_input(Input::Lower(&pdu), next)
                    .unwrap();
            }
            self.drain(0);
            self.drain(1);
        }
        self.now = until;
    }
}

#[test]
fn establish_talk_release() {
    let mut pair = Pair::new([Params::UNI; 2]);
    let refused = pair.ask(0, Request::Data(vec![1]));
    assert!(refused.is_err(), "no link yet");
    pair.ask(0, Request::Establish).unwrap();
    pair.run(1);
    pair.ask(0, Request::Data(b"setup".to_vec())).unwrap();
    pair.ask(1, Request::UnitData(b"datagram".to_vec()))
        .unwrap();
    pair.run(1);
    pair.ask(1, Request::Release).unwrap();
    pair.run(1);
    use Indication::{Data, Established, Released, UnitData};
    assert_eq!(
        pair.told[0],
        [Established, UnitData(b"datagram".to_vec()), Released]
    );
    assert_eq!(
        pair.told[1],
        [Established, Data(b"setup".to_vec()), Released]
    );
    assert!(pair.ends.iter().all(|end| end.state() == State::Released));
}

#[test]
fn second_establish_resynchronises() {
    let mut pair = Pair::new([Params::UNI; 2]);
    pair.ask(0, Request::Establish).unwrap();
    pair.run(1);
    pair.ask(0, Request::Establish).unwrap();
    assert_eq!(pair.ends[0].state(), State::AwaitingResync);
    pair.run(1);
    assert_eq!(pair.told[0], [const { Indication::Established }; 2]);
    assert_eq!(pair.told[1], [const { Indication::Established }; 2]);
}

#[test]
fn recovery_shows_as_established() {
    let mut pair = Pair::new([Params::UNI; 2]);
    pair.ask(0, Request::Establish).unwrap();
    pair.run(1);
    // A STAT for a POLL that was never sent.
    let bad = [0, 0, 0x77, 0, 0, 0, 0, 9, 11, 0, 0, 0];
    let now = pair.now;
    pair.ends[1].handle_input(Input::Lower(&bad), now).unwrap();
    pair.drain(1);
    pair.run(1);
    assert_eq!(pair.told[0], [const { Indication::Established }; 2]);
    assert_eq!(pair.told[1], [const { Indication::Established }; 2]);
    assert_eq!(pair.ends[1].counters().errors, 1);
}

#[test]
fn loss_is_told_and_the_link_comes_back_when_asked() {
    let mut pair = Pair::new([Params::UNI; 2]);
    pair.ask(0, Request::Establish).unwrap();
    pair.run(1);
    pair.cut = true;
    pair.run(30);
    assert_eq!(pair.told[0].last(), Some(&Indication::Released));
    assert_eq!(pair.told[1].last(), Some(&Indication::Released));
    pair.ask(0, Request::Establish).unwrap();
    pair.run(10);
    assert_eq!(pair.told[0].len(), 3, "four BGNs without an answer");
    pair.cut = false;
    pair.ask(0, Request::Establish).unwrap();
    pair.ask(1, Request::Establish).unwrap();
    pair.run(1);
    assert!(
        pair.ends
            .iter()
            .all(|end| end.state() == State::Established)
    );
}

#[test]
fn establish_while_releasing() {
    let mut pair = Pair::new([Params::UNI; 2]);
    pair.ask(0, Request::Establish).unwrap();
    pair.run(1);
    pair.ask(0, Request::Release).unwrap();
    pair.ask(0, Request::Establish).unwrap();
    pair.run(5);
    assert!(
        pair.ends
            .iter()
            .all(|end| end.state() == State::Established)
    );
}

#[test]
fn malformed_pdus_are_counted() {
    let mut end = Saal::new(Params {
        mode: Mode::Auto,
        ..Params::UNI
    });
    for pdu in [&[1, 2, 3][..], &[0; 8], &[0xff; 4]] {
        end.handle_input(Input::Lower(pdu), Instant::ZERO).unwrap();
        settle(&mut end, Instant::ZERO);
    }
    assert_eq!(end.counters().malformed, 3);
    assert_eq!(end.counters().by_code().collect::<Vec<_>>(), [('U', 3)]);
    let next = Saal::in_place_of(&end, Params::UNI);
    assert_eq!(next.counters(), end.counters());
    assert_eq!(next.state(), State::Released);
}
