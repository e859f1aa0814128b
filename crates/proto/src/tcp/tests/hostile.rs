//! Peers that lie: memory and work stay bounded, and nothing panics.

use super::pair::config;
use super::transfers::{feed, segments};
use crate::machine::settle;
use crate::mix::mix;
use crate::tcp::{Config, Event, Input, MAX_RANGES, Output, Profile, State, Tcp};
use crate::{Duration, Instant, Machine};
use aerostat_wire::tcp::{Flags, Segment, TimeStamps};
use proptest::prelude::*;

const ACK: Flags = Flags::ACK;

/// A peer of the test: it knows both first numbers.
struct Peer {
    end: Tcp,
    now: Instant,
    /// First number of the end, and of the peer.
    iss: u32,
    irs: u32,
}

impl Peer {
    /// An end that is connected to a peer with this MSS and window scale 14.
    fn connected(profile: Profile, mss: u16) -> Self {
        let mut params = profile.params();
        params.timestamps = false;
        params.sack = true;
        params.window_scaling = true;
        let config = Config {
            params,
            ..config(params, 0)
        };
        let mut end = Tcp::new(config);
        let now = Instant::ZERO;
        end.handle_input(Input::Connect, now).expect("connects");
        let syn = segments(&mut end, now)[0];
        let mut answer = Segment {
            source: 5001,
            destination: 4000,
            seq: u32::MAX - 100,
            ack: syn.seq.wrapping_add(1),
            flags: Flags::SYN.with(ACK),
            window: 65_535,
            ..Segment::default()
        };
        answer.options.mss = Some(mss);
        answer.options.window_scale = Some(14);
        answer.options.sack_permitted = true;
        feed(&mut end, &answer, &[], now);
        let mut peer = Self {
            end,
            now,
            iss: syn.seq,
            irs: answer.seq,
        };
        settle(&mut peer.end, now);
        assert_eq!(peer.end.state(), State::Established);
        peer
    }
    /// A segment of the peer; numbers are offsets, 1 is the first octet.
    /// The program writes as much as there is room for.
    fn fill(&mut self, octet: u8) {
        let octets = vec![octet; self.end.room()];
        let written = self.end.handle_input(Input::Write(&octets), self.now);
        written.expect("room");
        settle(&mut self.end, self.now);
    }
    fn segment(&self, seq: u64, ack: u64) -> Segment {
        Segment {
            source: 5001,
            destination: 4000,
            seq: self.irs.wrapping_add(seq as u32),
            ack: self.iss.wrapping_add(ack as u32),
            flags: ACK,
            window: 65_535,
            ..Segment::default()
        }
    }
    fn send(&mut self, segment: &Segment, data: &[u8]) -> Vec<Output> {
        self.now += Duration::from_micros(10);
        feed(&mut self.end, segment, data, self.now);
        settle(&mut self.end, self.now)
    }
}

#[test]
fn a_hundred_thousand_holes_cost_a_window_and_a_small_list() {
    let mut peer = Peer::connected(Profile::Linux, 1460);
    for hole in 0..100_000_u64 {
        let segment = peer.segment(2 + 2 * (mix(hole) % 32_000), 1);
        let answers = peer.send(&segment, b"x");
        assert!(answers.len() <= 1);
    }
    let snapshot = peer.end.snapshot();
    assert!(snapshot.ranges <= MAX_RANGES, "{snapshot:?}");
    assert!(snapshot.receive_buffer.0 <= 65_536, "{snapshot:?}");
    let counters = peer.end.counters();
    assert!(
        counters.ranges_full > 0 && counters.out_of_order > 90_000,
        "{counters:?}"
    );
    // The first octet is missing: nothing is readable. Once all holes are filled, everything is.
    assert_eq!(peer.end.unread(), 0);
    let segment = peer.segment(1, 1);
    peer.send(&segment, &[0; 60_000]);
    assert!(peer.end.unread() >= 60_000);
}

#[test]
fn data_beyond_the_window_is_cut_and_counted() {
    let mut peer = Peer::connected(Profile::NewReno, 1460);
    for at in (0..20).map(|n| 1 + n * 10_000) {
        let segment = peer.segment(at, 1);
        peer.send(&segment, &[7; 10_000]);
    }
    assert!(peer.end.unread() <= 65_535);
    let counters = peer.end.counters();
    assert!(
        counters.beyond_window > 0 && counters.unacceptable > 0,
        "{counters:?}"
    );
    // What lies 2³¹ away is neither old nor new.
    let far = peer.segment(1 << 31, 1);
    assert!(peer.send(&far, &[1; 100]).len() <= 1);
}

/// Blocks of what was never sent, that are turned round, that overlap, or that name the same again and again.
#[test]
fn lies_in_blocks_change_nothing_and_cost_little() {
    let mut peer = Peer::connected(Profile::Linux, 536);
    peer.fill(1);
    // A window that grows by honest acknowledgements first.
    for round in 0..40_u64 {
        let segment = peer.segment(1, 1 + (round + 1) * 536);
        peer.send(&segment, &[]);
        peer.fill(1);
    }
    let una = 1 + 40 * 536;
    let sent = peer.end.snapshot().flight;
    let before = peer.end.snapshot().steps;
    for lie in 0..20_000_u64 {
        let mut segment = peer.segment(1, una);
        let number = |offset: u64| peer.iss.wrapping_add(offset as u32);
        let random = mix(lie);
        match lie % 4 {
            0 => segment
                .options
                .sack
                .push(number(una + sent + 5000), number(una + sent + 9000)),
            1 => segment
                .options
                .sack
                .push(number(una + 3000), number(una + 1000)),
            2 => segment
                .options
                .sack
                .push(number(una + 536), number(una + sent)),
            _ => segment
                .options
                .sack
                .push(number(random), number(random >> 32)),
        };
        peer.send(&segment, &[]);
    }
    let snapshot = peer.end.snapshot();
    assert!(snapshot.flight <= sent + 100 * 536, "{snapshot:?}");
    // Four steps for each of them: what is known is passed over.
    assert!(
        snapshot.steps - before < 4 * 20_000,
        "{} steps",
        snapshot.steps - before
    );
    assert!(peer.end.counters().blocks_ignored > 10_000);
}

/// A peer that acknowledges octet by octet, or what was not sent, does not open the window faster.
#[test]
fn divided_and_early_acknowledgements_gain_nothing() {
    for profile in [Profile::Linux, Profile::NewReno] {
        let mut peer = Peer::connected(profile, 1460);
        let write = |peer: &mut Peer| {
            peer.fill(1);
        };
        write(&mut peer);
        let first = peer.end.snapshot().window;
        for octet in 1..=1000_u64 {
            let segment = peer.segment(1, 1 + octet);
            peer.send(&segment, &[]);
        }
        let window = peer.end.snapshot().window;
        assert!(window <= first + 1000, "{profile}: {first} {window}");
        let early = peer.segment(1, 1 << 24);
        peer.send(&early, &[]);
        assert_eq!(peer.end.counters().bad_acks, 1);
        assert_eq!(peer.end.snapshot().window, window);
    }
}

/// RFC 5961: a reset, a SYN or an acknowledgement that only lies in the window is answered, at most ten times in 5 s.
#[test]
fn a_blind_attacker_gets_some_challenges_and_nothing_else() {
    let mut peer = Peer::connected(Profile::Linux, 1460);
    let mut answers = 0;
    for n in 0..300_u64 {
        let mut segment = peer.segment(2 + n * 100, 1);
        segment.flags = match n % 3 {
            0 => Flags::RST,
            1 => Flags::SYN,
            _ => ACK,
        };
        if n % 3 == 2 {
            segment.ack = segment.ack.wrapping_add(0x4000_0000);
        }
        answers += peer.send(&segment, &[]).len();
    }
    assert_eq!((peer.end.state(), answers), (State::Established, 10));
    assert_eq!(peer.end.counters().challenges_held, 290);
    let mut exact = peer.segment(1, 1);
    exact.flags = Flags::RST;
    peer.send(&exact, &[]);
    assert_eq!(peer.end.state(), State::Closed);
}

/// A window that is taken back and probed: the end neither spins nor sends beyond it for long.
#[test]
fn windows_that_shrink_and_lie_do_not_make_it_spin() {
    let mut peer = Peer::connected(Profile::Linux, 1460);
    peer.fill(1);
    let mut sent = 0;
    for round in 0..2000_u64 {
        let mut segment = peer.segment(1, 1);
        segment.window = (mix(round) % 2) as u16;
        sent += peer.send(&segment, &[]).len();
        if let Some(at) = peer.end.poll_timeout().filter(|_| round % 200 == 0) {
            peer.now = peer.now.max(at);
            sent += settle(&mut peer.end, peer.now).len();
        }
    }
    assert!(
        sent < 200,
        "{sent} segments for an empty window: {:?}",
        peer.end.counters()
    );
}

/// Input, as a property generates it.
#[derive(Clone, Debug)]
enum Act {
    Segment(
        u8,
        i64,
        i64,
        u16,
        Vec<u8>,
        Option<(i64, i64)>,
        Option<(u32, u32)>,
    ),
    Write(usize),
    Read(usize),
    Wait(u64),
    Close,
    Leave,
}

fn act() -> impl Strategy<Value = Act> {
    let near = -2000_i64..6000;
    let data = prop::collection::vec(any::<u8>(), 0..300);
    let blocks = prop::option::of((near.clone(), near.clone()));
    let stamps = prop::option::of((any::<u32>(), any::<u32>()));
    let segment = (
        any::<u8>(),
        near.clone(),
        near,
        any::<u16>(),
        data,
        blocks,
        stamps,
    );
    prop_oneof![
        8 => segment.prop_map(|(a, b, c, d, e, f, g)| Act::Segment(a, b, c, d, e, f, g)),
        2 => (0_usize..3000).prop_map(Act::Write),
        2 => (0_usize..3000).prop_map(Act::Read),
        3 => (0_u64..5_000_000).prop_map(Act::Wait),
        1 => Just(Act::Close),
        1 => Just(Act::Leave),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any segments, near to the right numbers: the laws of machines hold, and memory stays within the buffers.
    #[test]
    fn no_sequence_breaks_a_law(
        profile in 0..10_usize,
        listens in any::<bool>(),
        acts in prop::collection::vec(act(), 1..80),
    ) {
        let mut params = Profile::ALL[profile].params();
        params.ecn = true;
        let mut end = Tcp::new(config(params, 0));
        let mut now = Instant::ZERO;
        let open = if listens { Input::Listen } else { Input::Connect };
        end.handle_input(open, now).expect("opens");
        let (mut iss, irs) = (0_u32, 5000_u32);
        let mut note = |outputs: Vec<Output>| {
            for output in outputs {
                match output {
                    Output::Segment { segment, .. } if segment.flags.has(Flags::SYN) => iss = segment.seq,
                    _ => {}
                }
            }
            iss
        };
        let mut iss = note(settle(&mut end, now));
        for act in acts {
            now += Duration::from_micros(100);
            match act {
                Act::Segment(flags, seq, ack, window, data, block, stamps) => {
                    let mut segment = Segment {
                        source: 5001,
                        destination: 4000,
                        seq: irs.wrapping_add(seq as u32),
                        ack: iss.wrapping_add(ack as u32),
                        flags: Flags(flags),
                        window,
                        ..Segment::default()
                    };
                    segment.options.timestamps = stamps.map(|(value, echo)| TimeStamps { value, echo });
                    segment.options.sack_permitted = flags & 2 != 0;
                    segment.options.window_scale = stamps.map(|stamps| stamps.0 as u8);
                    if let Some((left, right)) = block {
                        segment.options.sack.push(iss.wrapping_add(left as u32), iss.wrapping_add(right as u32));
                    }
                    let marked = window % 7 == 0;
                    let input = Input::Segment { segment: &segment, data: &data, marked };
                    prop_assert!(end.handle_input(input, now).is_ok());
                }
                Act::Write(count) => {
                    let _ = end.handle_input(Input::Write(&vec![3; count]), now);
                }
                Act::Read(count) => {
                    end.read(count, now);
                }
                Act::Wait(micros) => now += Duration::from_micros(micros),
                Act::Close => {
                    let _ = end.handle_input(Input::Close, now);
                }
                Act::Leave => {
                    let _ = end.handle_input(Input::Leave, now);
                }
            }
            iss = note(settle(&mut end, now));
            let snapshot = end.snapshot();
            prop_assert!(snapshot.receive_buffer.0 <= 2 * params.receive.most.max(65_535));
            prop_assert!(snapshot.send_buffer.0 <= 2 * params.send.most.max(65_535));
        }
    }
}

/// Data for a program that is gone is refused, and the peer learns it.
#[test]
fn an_end_without_a_program_answers_data_by_a_reset() {
    let mut peer = Peer::connected(Profile::Linux, 1460);
    peer.end
        .handle_input(Input::Leave, peer.now)
        .expect("leaves");
    settle(&mut peer.end, peer.now);
    let segment = peer.segment(1, 2);
    peer.send(&segment, &[]);
    assert_eq!(peer.end.state(), State::FinWait2);
    let outputs = peer.send(&segment, b"late");
    let resets = outputs.iter().any(
        |output| matches!(output, Output::Segment { segment, .. } if segment.flags.has(Flags::RST)),
    );
    assert!(resets && !outputs.contains(&Output::Event(Event::Readable)));
    assert_eq!(peer.end.state(), State::Closed);
}

/// A peer may take its window back, as long as it answers. Source: RFC 9293 §3.8.6.1.
#[test]
fn a_window_that_is_taken_back_ends_no_connection_whose_peer_answers() {
    for profile in Profile::ALL {
        let mut peer = Peer::connected(profile, 1460);
        let written = peer.end.handle_input(Input::Write(&[7; 1460]), peer.now);
        written.expect("room");
        settle(&mut peer.end, peer.now);
        let mut zero = peer.segment(1, 1);
        zero.window = 0;
        for _ in 0..100 {
            peer.send(&zero, &[]);
            peer.now = peer.end.poll_timeout().expect("a timer");
            peer.end.handle_timeout(peer.now);
            settle(&mut peer.end, peer.now);
            assert_eq!(
                peer.end.state(),
                State::Established,
                "{profile} {}",
                peer.now
            );
        }
        // One that does not answer is given up in the end.
        for _ in 0..100 {
            let Some(at) = peer.end.poll_timeout() else {
                break;
            };
            peer.now = at;
            peer.end.handle_timeout(peer.now);
            settle(&mut peer.end, peer.now);
        }
        assert_eq!(peer.end.state(), State::Closed, "{profile}");
    }
}

/// A connection that waits for its last acknowledgement has no receive buffer.
#[test]
fn what_was_read_and_is_over_takes_no_memory() {
    for leaves in [false, true] {
        let mut peer = Peer::connected(Profile::Linux, 1460);
        // A hole in front makes the end keep what follows.
        for piece in (1..40).rev() {
            let segment = peer.segment(1 + piece * 1000, 1);
            peer.send(&segment, &[7; 1000]);
        }
        let first = peer.segment(1, 1);
        peer.send(&first, &[7; 1000]);
        let now = peer.now;
        assert!(peer.end.rx.memory() >= 40_000);
        assert_eq!(peer.end.read(usize::MAX, now).len(), 40_000);
        if leaves {
            peer.end.handle_input(Input::Leave, now).expect("leaves");
            assert_eq!(peer.end.rx.memory(), 0);
            continue;
        }
        let mut last = peer.segment(40_001, 1);
        last.flags = last.flags.with(Flags::FIN);
        peer.send(&last, &[7; 10]);
        assert_eq!(peer.end.read(usize::MAX, peer.now).len(), 10);
        assert_eq!(peer.end.rx.memory(), 0);
    }
}
