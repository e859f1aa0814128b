//! The heartbeat of daemons: a question on the socket, and a judgement of a process that does not answer.
//!
//! **Question.** A question is a frame of one octet, which the main loop of the daemon's process sends back
//! ([`super::process`]); every other frame has four octets at least. A process is asked every 0.4 s while it has
//! something to do: the lab has sent a frame since the last question, or the process has. A quiet process is asked
//! every 0.8 s ([`QUIET`]), because it does no harm before the next frame. If there are more than 800 processes, each
//! is asked less often ([`Round`]).
//!
//! **Judgement.** Silence alone proves nothing, because a loaded machine makes healthy processes silent. After 0.2 s of
//! silence the privileged helper reads the state of the process and its CPU time from `/proc/PID/stat` ([`Sight`]):
//!
//! | state of the silent process | verdict |
//! |---|---|
//! | stopped by a signal | hung |
//! | asleep for 0.4 s without using CPU time, although the question wakes it | hung: it waits for something else |
//! | has used 1 s of CPU time without a frame, or 10 s with frames but without the answer | hung: it loops |
//! | ready to run, but gets no CPU time | starved: the lab waits |
//! | waits for a disk, or for a debugger | the lab waits |
//! | cannot be seen | hung after 10 s of silence |
//!
//! So the patience is measured in CPU time of the process wherever a lack of CPU time may be the reason. A process that
//! has not greeted yet is judged in the same way, with 10 s in place of 0.4 s and 1 s. The looks at a process that
//! sends faster than the lab reads begin after 10 s, because its answer may wait among its frames.
//!
//! **Cost.** A question costs two frames, one wakeup of the daemon and one of the lab. With 69 idle daemons in a debug
//! build on a loaded machine with two cores, the daemon used 0.07 ms of CPU time for each question, and the lab 0.03
//! ms. 69 daemons get 180 questions a second, which is 1.8 % of a core. From the same figures follow 0.4 % for 10
//! daemons (40 questions a second) and 20 % for 10 000 (2000 questions a second). The helper looks at silent processes
//! only, at most 320 times a second.

use aerostat_proto::{Duration, Instant};

/// How often a tick comes: questions and looks are spread over the ticks.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// Ticks between two questions to one process.
const EVERY: usize = 8;
/// Most questions in one tick: 2000 in a second.
const QUESTIONS: usize = 100;
/// Most looks in one tick.
pub(super) const LOOKS: usize = 16;
/// Time between two questions to a process with which no other frame was exchanged.
const QUIET: Duration = Duration::from_millis(800);
/// Silence before the first look.
const SILENCE: Duration = Duration::from_millis(200);

/// How long a silent process may be in a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Asleep, wall-clock time.
    asleep: Duration,
    /// Busy without a frame, CPU time.
    busy: Duration,
    /// Busy with frames but without an answer, CPU time.
    total: Duration,
    /// Unseen, wall-clock time; also the silence before looks at a process whose answer may wait among its frames.
    pub(super) unseen: Duration,
}

/// With a process that serves.
pub(super) const SERVING: Patience = Patience {
    asleep: Duration::from_millis(400),
    busy: Duration::from_secs(1),
    total: Duration::from_secs(10),
    unseen: Duration::from_secs(10),
};
/// With a process that starts: it may wait for the lab's answer to its greeting.
pub(super) const STARTING: Patience = Patience {
    asleep: Duration::from_secs(10),
    busy: Duration::from_secs(10),
    total: Duration::from_secs(10),
    unseen: Duration::from_secs(10),
};

/// Contents of `/proc/PID/stat` about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// The letter of its state. Source: proc_pid_stat(5).
    pub(crate) state: u8,
    /// CPU time that it has used.
    pub(crate) cpu: Duration,
}

/// The observations of a silent process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Evidence {
    /// Time since the question.
    silent: Duration,
    /// Its state; `None` if the process cannot be seen.
    state: Option<u8>,
    /// For how long every look found it in this state, with the same CPU time and without a frame from it.
    still: Duration,
    /// CPU time that it used since its last frame, or since the first look.
    busy: Duration,
    /// CPU time that it used since the first look.
    total: Duration,
}

aerostat_wire::named! {
    /// Why a process counts as hung.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Why {
        /// A signal has stopped it.
        Stopped = "stopped",
        /// It sleeps and does not read.
        Asleep = "asleep with an unread question",
        /// It uses CPU time and does not read.
        Loops = "busy without an answer",
        /// It is silent, and cannot be seen.
        Unseen = "silent",
    }
}

/// The verdict: why the process counts as hung, or `None` if it may be healthy.
fn judge(seen: &Evidence, patience: Patience) -> Option<Why> {
    let Some(state) = seen.state else {
        return (seen.silent >= patience.unseen).then_some(Why::Unseen);
    };
    let busy = seen.busy >= patience.busy || seen.total >= patience.total;
    match state {
        b'T' => Some(Why::Stopped),
        b'S' if seen.still >= patience.asleep => Some(Why::Asleep),
        // A process that is ready to run and gets no CPU time is starved, so only CPU time counts.
        b'R' | b'S' if busy => Some(Why::Loops),
        // Waiting for a disk (D), for a debugger (t), or at its end (Z, X).
        _ => None,
    }
}

/// A question without an answer.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: Instant,
    /// The first look, and the last look with the time since when looks are the same.
    first: Option<Sight>,
    last: Option<(Sight, Instant)>,
    /// CPU time at the last look after which no frame came.
    quiet: Duration,
    /// A frame has come since the last look.
    heard: bool,
}

/// The heartbeat of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beat {
    number: u8,
    open: Option<Open>,
    /// When the process was last asked.
    asked: Option<Instant>,
    /// Another frame was exchanged since then.
    busy: bool,
    slowest: Duration,
}

impl Beat {
    /// A process that was started at this time and has not greeted yet: its greeting is the answer.
    pub(super) fn starting(now: Instant) -> Self {
        let mut beat = Self::default();
        beat.ask(now);
        beat
    }
    /// The frame of a question; `None` while a question is open, or if the process is quiet and was asked recently.
    pub(super) fn ask(&mut self, now: Instant) -> Option<[u8; 1]> {
        let rests = |asked| !self.busy && now < asked + QUIET;
        if self.open.is_some() || self.asked.is_some_and(rests) {
            return None;
        }
        (self.asked, self.busy) = (Some(now), false);
        self.number = self.number.wrapping_add(1);
        self.open = Some(Open {
            at: now,
            first: None,
            last: None,
            quiet: Duration::ZERO,
            heard: false,
        });
        Some([self.number])
    }
    /// A frame of one octet has come; false if it answers no question.
    pub(super) fn answered(&mut self, octet: u8, now: Instant) -> bool {
        match self.open.take() {
            Some(open) if octet == self.number => {
                self.slowest = self.slowest.max(now.since(open.at));
                true
            }
            _ => false,
        }
    }
    /// The process gets a frame that is no question.
    pub(super) const fn told(&mut self) {
        self.busy = true;
    }
    /// Any other frame has come, or the process has read a frame that waited: it makes progress.
    pub(super) fn heard(&mut self) {
        self.busy = true;
        if let Some(open) = &mut self.open {
            open.heard = true;
        }
    }
    /// Time since the open question.
    pub(super) fn silent(&self, now: Instant) -> Duration {
        self.open.map_or(Duration::ZERO, |open| now.since(open.at))
    }
    /// True if the process has been silent for so long that its state is needed.
    pub(super) fn wants_look(&self, now: Instant) -> bool {
        self.silent(now) >= SILENCE
    }
    /// The longest time until an answer, or the time since the open question if it is longer.
    pub(super) fn slowest(&self, now: Instant) -> Duration {
        self.slowest.max(self.silent(now))
    }
    /// Takes a look at the silent process (`None`: it cannot be seen) and judges it.
    pub(super) fn look(
        &mut self,
        sight: Option<Sight>,
        patience: Patience,
        now: Instant,
    ) -> Option<Why> {
        let open = self.open.as_mut()?;
        let mut seen = Evidence {
            silent: now.since(open.at),
            state: sight.map(|sight| sight.state),
            still: Duration::ZERO,
            busy: Duration::ZERO,
            total: Duration::ZERO,
        };
        if let Some(sight) = sight {
            let first = open.first.get_or_insert(sight);
            let heard = core::mem::take(&mut open.heard);
            if heard || open.last.is_none() {
                open.quiet = sight.cpu;
            }
            let since = match open.last {
                Some((last, since)) if last == sight && !heard => since,
                _ => now,
            };
            open.last = Some((sight, since));
            seen.still = now.since(since);
            seen.busy = sight.cpu.saturating_sub(open.quiet);
            seen.total = sight.cpu.saturating_sub(first.cpu);
        }
        judge(&seen, patience)
    }
}

/// Order in which seats are asked: all in turn, each at least every 0.4 s while there are at most 800.
#[derive(Debug, Default)]
pub(super) struct Round {
    next: usize,
    /// The tick is due at this time.
    pub(super) at: Instant,
    /// Where the looks of the next tick begin, so that each silent process gets its look.
    looks: usize,
}

impl Round {
    /// The seats to ask in this tick, of `count`.
    pub(super) fn turn(
        &mut self,
        count: usize,
        now: Instant,
    ) -> impl Iterator<Item = usize> + use<> {
        self.at = now + TICK;
        let span = count.max(EVERY);
        let some = span.div_ceil(EVERY).min(QUESTIONS);
        let first = self.next;
        self.next = (first + some) % span;
        let turn = (first..first + some).map(move |number| number % span);
        turn.filter(move |number| *number < count)
    }
    /// The order in which silent processes are looked at: [`LOOKS`] of them in one tick.
    pub(super) fn looks(&mut self, silent: &[usize]) -> Vec<usize> {
        let begin = silent.partition_point(|number| *number < self.looks);
        let (before, after) = silent.split_at(begin);
        let chosen: Vec<usize> = after.iter().chain(before).copied().take(LOOKS).collect();
        self.looks = chosen.last().map_or(0, |last| last + 1);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_verdict_follows_from_state_and_cpu_time_and_not_from_silence() {
        let evidence = |silent, state, still, busy, total| Evidence {
            silent: ms(silent),
            state,
            still: ms(still),
            busy: ms(busy),
            total: ms(total),
        };
        let hour = 3_600_000;
        for (what, silent, state, still, busy, total, verdict) in [
            ("stopped", 200, Some(b'T'), 0, 0, 0, Some(Why::Stopped)),
            ("in a debugger", hour, Some(b't'), hour, 0, 0, None),
            ("asleep, one look", 5000, Some(b'S'), 0, 0, 0, None),
            ("asleep, not for long", 5000, Some(b'S'), 399, 0, 0, None),
            ("deadlocked", 600, Some(b'S'), 400, 0, 0, Some(Why::Asleep)),
            ("starved", hour, Some(b'R'), hour, 0, 0, None),
            ("starved, a little CPU", hour, Some(b'R'), 0, 990, 990, None),
            ("looping", 1200, Some(b'R'), 0, 1000, 1000, Some(Why::Loops)),
            (
                "looping in calls",
                1300,
                Some(b'S'),
                0,
                1000,
                1000,
                Some(Why::Loops),
            ),
            ("slow, sends frames", 9000, Some(b'R'), 0, 100, 9000, None),
            (
                "sends without end",
                20_000,
                Some(b'R'),
                0,
                50,
                10_000,
                Some(Why::Loops),
            ),
            ("swapped out", hour, Some(b'D'), hour, 0, 0, None),
            ("at its end", hour, Some(b'Z'), hour, 0, 0, None),
            ("unseen", 9999, None, 0, 0, 0, None),
            ("unseen for long", 10_000, None, 0, 0, 0, Some(Why::Unseen)),
        ] {
            let seen = evidence(silent, state, still, busy, total);
            assert_eq!(judge(&seen, SERVING), verdict, "{what}");
        }
        // One that starts may wait for the lab, and works before it greets.
        for (state, still, busy, verdict) in [
            (b'T', 0, 0, Some(Why::Stopped)),
            (b'S', 9999, 0, None),
            (b'S', 10_000, 0, Some(Why::Asleep)),
            (b'R', 0, 9999, None),
            (b'R', 0, 10_000, Some(Why::Loops)),
        ] {
            let seen = evidence(hour, Some(state), still, busy, busy);
            assert_eq!(judge(&seen, STARTING), verdict, "{state} {still} {busy}");
        }
    }

    /// A process as the looks find it: at each look its state, and the CPU time that it has used since the last look.
    struct Rig {
        beat: Beat,
        now: Instant,
        cpu: Duration,
    }

    impl Rig {
        fn asked() -> Self {
            let now = Instant::from_secs(7);
            let mut beat = Beat::default();
            assert_eq!(beat.ask(now), Some([1]));
            let cpu = Duration::from_secs(40);
            Self { beat, now, cpu }
        }
        /// Looks 50 ms later.
        fn look(&mut self, state: u8, used: u64) -> Option<Why> {
            self.now += TICK;
            self.cpu += ms(used);
            if !self.beat.wants_look(self.now) {
                return None;
            }
            let sight = Sight {
                state,
                cpu: self.cpu,
            };
            self.beat.look(Some(sight), SERVING, self.now)
        }
        /// Looks until the verdict; returns it with the time since the question, ms.
        fn verdict(&mut self, state: u8, used: u64) -> Option<(Why, u128)> {
            let began = self.now;
            for _ in 0..72_000 {
                if let Some(why) = self.look(state, used) {
                    return Some((why, self.now.since(began).as_millis()));
                }
            }
            None
        }
    }

    #[test]
    fn hung_processes_are_found_within_their_time_and_starved_ones_are_left_for_an_hour() {
        assert_eq!(Rig::asked().verdict(b'T', 0), Some((Why::Stopped, 200)));
        assert_eq!(Rig::asked().verdict(b'S', 0), Some((Why::Asleep, 600)));
        assert_eq!(Rig::asked().verdict(b'R', 50), Some((Why::Loops, 1200)));
        // With a fifth of a core it takes five times as long.
        assert_eq!(Rig::asked().verdict(b'R', 10), Some((Why::Loops, 5200)));
        assert_eq!(Rig::asked().verdict(b'R', 0), None);
        assert_eq!(Rig::asked().verdict(b'D', 0), None);
    }

    #[test]
    fn frames_from_a_slow_process_prolong_the_patience_up_to_its_end() {
        let mut rig = Rig::asked();
        let mut found = None;
        for look in 0..400_u32 {
            rig.beat.heard();
            if let Some(why) = rig.look(b'R', 50) {
                found = Some((why, look));
                break;
            }
        }
        // 10 s of CPU time after the first look, which was the fourth.
        assert_eq!(found, Some((Why::Loops, 203)));
        // A process that sleeps between its frames is at work, too.
        let mut rig = Rig::asked();
        for _ in 0..400 {
            rig.beat.heard();
            assert_eq!(rig.look(b'S', 0), None);
        }
        assert_eq!(rig.verdict(b'S', 0), Some((Why::Asleep, 400)));
    }

    #[test]
    fn an_answer_ends_the_suspicion_and_a_wrong_one_is_noticed() {
        let mut rig = Rig::asked();
        assert_eq!(rig.beat.ask(rig.now), None, "one at a time");
        for _ in 0..9 {
            assert_eq!(rig.look(b'S', 0), None);
        }
        assert!(rig.beat.answered(1, rig.now));
        assert_eq!(rig.beat.slowest(rig.now), ms(450));
        assert_eq!(rig.look(b'S', 0), None, "nothing is open");
        assert_eq!(rig.beat.ask(rig.now), None, "it is quiet");
        rig.beat.told();
        assert_eq!(rig.beat.ask(rig.now), Some([2]));
        for _ in 0..9 {
            assert_eq!(rig.look(b'S', 0), None, "counted from the new question");
        }
        assert!(!rig.beat.answered(1, rig.now));
        assert!(!rig.beat.answered(2, rig.now), "not asked");
    }

    #[test]
    fn a_quiet_process_is_asked_half_as_often_as_one_with_work() {
        let asked = |work: fn(&mut Beat)| {
            let (mut beat, mut asked) = (Beat::default(), 0);
            for visit in 0..100 {
                let now = ms(400) * visit;
                let now = Instant::ZERO + now;
                if let Some([number]) = beat.ask(now) {
                    asked += 1;
                    assert!(beat.answered(number, now));
                }
                work(&mut beat);
            }
            asked
        };
        assert_eq!(asked(|_| {}), 50);
        assert_eq!(asked(Beat::told), 100);
        assert_eq!(asked(Beat::heard), 100);
    }

    #[test]
    fn every_seat_is_asked_each_400_ms_and_2000_in_a_second_at_most() {
        for (count, period) in [(1, 8), (8, 8), (69, 8), (800, 8), (10_000, 100)] {
            let mut round = Round::default();
            let mut asked = vec![0; count];
            for _ in 0..2 * period {
                for number in round.turn(count, Instant::ZERO) {
                    asked[number] += 1;
                }
            }
            assert!(asked.iter().all(|times| (2..=3).contains(times)), "{count}");
        }
        assert_eq!(Round::default().turn(0, Instant::ZERO).count(), 0);
    }

    #[test]
    fn each_of_many_silent_processes_gets_its_look() {
        let silent: Vec<usize> = (0..50).map(|n| n * 3).collect();
        let mut round = Round::default();
        let mut looks: Vec<usize> = (0..4).flat_map(|_| round.looks(&silent)).collect();
        assert_eq!(looks.len(), 4 * LOOKS);
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks, silent);
        assert!(round.looks(&[]).is_empty());
    }
}
