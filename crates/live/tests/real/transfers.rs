//! Transfers between the machine and the kernel, in both directions at once, with faults between them.

use super::{Bench, KERNEL, OURS, control};
use aerostat_proto::tcp::{Config, Event, Input, Output, Params, Profile, State, Tcp};
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_wire::tcp::Segment;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Transfers in one run of the tests; `AEROSTAT_TCP_TRANSFERS` gives another number.
const TRANSFERS: u64 = 50;
/// Transfers at a time: they mostly wait.
const AT_A_TIME: u64 = 10;
const PORT: u16 = 5001;

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
    fn flag(&mut self) -> bool {
        self.next(2) == 0
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Both ends close when they have written all.
    Orderly,
    /// The machine has nothing to write and closes at once; the kernel writes on.
    Half,
    /// The machine resets the connection when it has read half.
    Reset,
}

/// A transfer, as its seed has it.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    profile: Profile,
    params: Params,
    kernel_connects: bool,
    /// Octets of the machine, and of the kernel.
    octets: [usize; 2],
    /// Losses, doubles and late segments, of a thousand.
    faults: [u64; 3],
    delay: Duration,
    /// The programs read nothing for so long: windows become zero.
    pauses: [Duration; 2],
    ending: Ending,
    /// Variables of the kernel: congestion control, SACK, time stamps, scaling, largest receive buffer.
    kernel: (&'static str, bool, bool, bool, usize),
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let profile = Profile::ALL[(seed % 10) as usize];
        let mut params = profile.params();
        params.sack = random.flag();
        params.timestamps = random.flag();
        params.window_scaling = random.flag();
        let ending = match random.next(6) {
            0 => Ending::Half,
            1 => Ending::Reset,
            _ => Ending::Orderly,
        };
        let mut octets = [0, 1].map(|_| 20_000 + random.next(120_000) as usize);
        if ending == Ending::Half {
            octets[0] = 0;
        }
        let mut pause = || match random.next(3) {
            0 => Duration::from_millis(400),
            _ => Duration::ZERO,
        };
        let pauses = [pause(), pause()];
        let smooth = random.next(4) == 0;
        let mut fault = |most| if smooth { 0 } else { random.next(most) };
        let faults = [fault(25), fault(25), fault(40)];
        let kernel = (
            if random.flag() { "cubic" } else { "reno" },
            random.flag(),
            random.flag(),
            random.flag(),
            if random.flag() { 16_384 } else { 6 << 20 },
        );
        Self {
            seed,
            profile,
            params,
            kernel_connects: random.flag(),
            octets,
            faults,
            delay: Duration::from_micros(500 + random.next(10_000)),
            pauses,
            ending,
            kernel,
        }
    }

    fn prepare(&self, bench: &Bench) -> io::Result<()> {
        let (_, sack, stamps, scaling, buffer) = self.kernel;
        let word = |flag: bool| if flag { "1" } else { "0" };
        bench.set("tcp_sack", word(sack))?;
        bench.set("tcp_timestamps", word(stamps))?;
        bench.set("tcp_window_scaling", word(scaling))?;
        bench.set(
            "tcp_rmem",
            &format!("4096 {} {buffer}", buffer.min(131_072)),
        )
    }
}

/// The octet at a place of a stream.
fn octet(end: usize, at: usize) -> u8 {
    (at.wrapping_mul(31) ^ (at >> 8) ^ (end * 101)) as u8
}

/// Result of the kernel's program: octets that it read, and whether it was reset.
type Told = io::Result<(usize, bool)>;

/// The program at the kernel: one thread writes, this one reads.
fn program(mut stream: TcpStream, plan: &Plan) -> Told {
    let (octets, pause) = (plan.octets[1], plan.pauses[1]);
    let mut writer = stream.try_clone()?;
    let writes = std::thread::spawn(move || {
        let all: Vec<u8> = (0..octets).map(|at| octet(1, at)).collect();
        let written = writer.write_all(&all);
        let _ = writer.shutdown(Shutdown::Write);
        written.is_ok()
    });
    std::thread::sleep(pause);
    let (mut read, mut reset) = (0, false);
    let mut buffer = vec![0; 8192];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                let right = (0..count).all(|at| buffer[at] == octet(0, read + at));
                assert!(right, "other octets from {read}");
                read += count;
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                reset = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let written = writes.join().expect("the writer ends");
    Ok((read, reset || !written))
}

fn start(bench: &Bench, plan: &Plan) -> io::Result<JoinHandle<Told>> {
    let plan = plan.clone();
    if plan.kernel_connects {
        let namespace = bench
            .namespace
            .run(|| std::fs::File::open("/proc/thread-self/ns/net"))?;
        let namespace =
            aerostat_live::namespace::NetNs::from(std::os::fd::OwnedFd::from(namespace));
        return Ok(std::thread::spawn(move || {
            let stream = namespace.run(|| TcpStream::connect((OURS, PORT)))?;
            control(&stream, plan.kernel.0)?;
            program(stream, &plan)
        }));
    }
    let listener = bench.namespace.run(|| TcpListener::bind((KERNEL, PORT)))?;
    control(&listener, plan.kernel.0)?;
    Ok(std::thread::spawn(move || {
        program(listener.accept()?.0, &plan)
    }))
}

/// The machine, its program, and the relay to the kernel.
struct Run<'a> {
    bench: &'a Bench,
    plan: &'a Plan,
    begin: std::time::Instant,
    now: Instant,
    end: Tcp,
    random: Random,
    /// Segments on their way: to the kernel or not, header, data.
    relay: BTreeMap<(Instant, u64), (bool, Segment, Vec<u8>)>,
    count: u64,
    written: usize,
    read: usize,
    closed: bool,
    /// The longest time without any segment, and the last segment.
    silence: Duration,
    last: Instant,
}

impl<'a> Run<'a> {
    fn new(bench: &'a Bench, plan: &'a Plan) -> Self {
        let (local, remote) = if plan.kernel_connects {
            (PORT, 0)
        } else {
            (40_000, PORT)
        };
        let end = Tcp::new(Config {
            params: plan.params,
            local,
            remote,
            seed: plan.seed,
            phase: Duration::from_millis(123),
        });
        Self {
            bench,
            plan,
            begin: std::time::Instant::now(),
            now: Instant::ZERO,
            end,
            random: Random(plan.seed ^ 0xdead),
            relay: BTreeMap::new(),
            count: 0,
            written: 0,
            read: 0,
            closed: false,
            silence: Duration::ZERO,
            last: Instant::ZERO,
        }
    }

    fn tick(&mut self) {
        self.now = Instant::ZERO + self.begin.elapsed();
    }

    /// Puts a segment on its way, or loses it.
    fn enter(&mut self, to_kernel: bool, segment: Segment, data: &[u8]) {
        self.silence = self.silence.max(self.now.since(self.last));
        self.last = self.now;
        let [lost, twice, late] = self.plan.faults;
        let kind = self.random.next(1000);
        if kind < lost {
            return;
        }
        let copies = if kind < lost + twice { 2 } else { 1 };
        let mut at = self.now + self.plan.delay;
        if (lost + twice..lost + twice + late).contains(&kind) {
            at += Duration::from_micros(self.random.next(5000));
        }
        for _ in 0..copies {
            self.count += 1;
            self.relay
                .insert((at, self.count), (to_kernel, segment, data.to_vec()));
        }
    }

    /// Gives due segments to their receivers.
    fn deliver(&mut self) -> io::Result<()> {
        while let Some((key, _)) = self.relay.first_key_value()
            && key.0 <= self.now
        {
            let Some((_, (to_kernel, segment, data))) = self.relay.pop_first() else {
                break;
            };
            if to_kernel {
                self.bench.send(&segment, &data)?;
                continue;
            }
            let input = Input::Segment {
                segment: &segment,
                data: &data,
                marked: false,
            };
            self.end
                .handle_input(input, self.now)
                .expect("segments are never refused");
            self.drain();
        }
        Ok(())
    }

    fn drain(&mut self) {
        loop {
            while let Some(output) = self.end.poll_output() {
                match output {
                    Output::Segment { segment, data, .. } => self.enter(true, segment, &data),
                    Output::Event(Event::Failed(failure)) if self.plan.ending != Ending::Reset => {
                        panic!("{:?}: {failure}", self.plan)
                    }
                    Output::Event(_) => {
                        self.act();
                    }
                }
            }
            if !self.act() {
                return;
            }
        }
    }

    /// The program of the machine; true if it did something.
    fn act(&mut self) -> bool {
        let open = matches!(self.end.state(), State::Established | State::CloseWait);
        let mut acted = false;
        if self.now >= Instant::ZERO + self.plan.pauses[0] && self.end.unread() > 0 {
            for found in self.end.read(usize::MAX, self.now) {
                assert_eq!(
                    found,
                    octet(1, self.read),
                    "octet {} of {:?}",
                    self.read,
                    self.plan
                );
                self.read += 1;
            }
            acted = true;
        }
        if self.plan.ending == Ending::Reset && open && self.read >= self.plan.octets[1] / 2 {
            self.end
                .handle_input(Input::Abort, self.now)
                .expect("aborts");
            return true;
        }
        let room = self.end.room().min(self.plan.octets[0] - self.written);
        if open && room > 0 {
            let octets: Vec<u8> = (self.written..self.written + room)
                .map(|at| octet(0, at))
                .collect();
            self.end
                .handle_input(Input::Write(&octets), self.now)
                .expect("there is room");
            self.written += room;
            acted = true;
        }
        if open
            && self.written == self.plan.octets[0]
            && !self.closed
            && self.plan.ending != Ending::Reset
        {
            self.end
                .handle_input(Input::Close, self.now)
                .expect("closes");
            self.closed = true;
            acted = true;
        }
        acted
    }

    /// Runs until both programs have ended and nothing is on its way.
    fn run(&mut self, kernel: &JoinHandle<Told>) -> io::Result<()> {
        let open = if self.plan.kernel_connects {
            Input::Listen
        } else {
            Input::Connect
        };
        self.end.handle_input(open, self.now).expect("opens");
        loop {
            self.tick();
            self.deliver()?;
            self.end.handle_timeout(self.now);
            self.drain();
            let ended = matches!(self.end.state(), State::Closed | State::TimeWait);
            if ended && self.end.unread() == 0 && self.relay.is_empty() && kernel.is_finished() {
                return Ok(());
            }
            let late = self.now > Instant::from_secs(90);
            assert!(
                !late,
                "{:?} does not end: {:?} {:?}",
                self.plan,
                self.end.snapshot(),
                self.end.counters()
            );
            let relay = self.relay.keys().next().map(|key| key.0);
            let pause = (self.end.unread() > 0).then_some(Instant::ZERO + self.plan.pauses[0]);
            let next = [self.end.poll_timeout(), relay, pause]
                .into_iter()
                .flatten()
                .min();
            let wait = next.map_or(Duration::from_millis(20), |next| next.since(self.now));
            let wait = wait.min(Duration::from_millis(20));
            for (segment, data) in self.bench.receive(wait)? {
                self.tick();
                self.enter(false, segment, &data);
            }
        }
    }
}

/// One transfer; the result is a line for people.
fn transfer(seed: u64) -> Option<String> {
    let bench = Bench::new()?;
    let plan = Plan::new(seed);
    plan.prepare(&bench).expect("variables of the kernel");
    let kernel = start(&bench, &plan).expect("the kernel's program");
    let mut run = Run::new(&bench, &plan);
    run.run(&kernel).expect("the TAP works");
    let (read, reset) = kernel
        .join()
        .expect("the kernel's program")
        .expect("its socket works");
    match plan.ending {
        Ending::Orderly | Ending::Half => {
            assert_eq!(
                (run.read, read),
                (plan.octets[1], plan.octets[0]),
                "{plan:?}"
            );
            assert!(!reset, "{plan:?}");
        }
        Ending::Reset => assert!(reset && run.read >= plan.octets[1] / 2, "{plan:?}"),
    }
    // A silence lasts as long as a timer: 64 times the least one of Linux at most under these losses, or some ticks.
    let most = Duration::from_millis(8000);
    assert!(run.silence < most, "{:?} of silence: {plan:?}", run.silence);
    let counters = run.end.counters();
    Some(format!(
        "{seed:>4} {:<12} {:<8} {:>6} {:>6} octets, {:>2} sent again, {} timers, silence {:>4} ms, {:>5} ms",
        plan.profile.name(),
        format!("{:?}", plan.ending),
        plan.octets[0],
        plan.octets[1],
        counters.retransmissions,
        counters.timeouts,
        run.silence.as_millis(),
        run.now.as_nanos() / 1_000_000,
    ))
}

#[test]
fn transfers_with_the_kernel_lose_nothing() {
    let number = std::env::var("AEROSTAT_TCP_TRANSFERS");
    let number = number.map_or(TRANSFERS, |number| number.parse().expect("a number"));
    let mut seed = 0;
    while seed < number {
        let until = number.min(seed + AT_A_TIME);
        let threads: Vec<_> = (seed..until)
            .map(|seed| std::thread::spawn(move || transfer(seed)))
            .collect();
        for thread in threads {
            match thread.join() {
                Ok(Some(line)) => println!("{line}"),
                Ok(None) => return,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        seed = until;
    }
}
