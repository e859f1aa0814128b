//! Seats and their daemons: wrong versions, false messages, silent connections, and daemons that die at once.

use super::batch;
use super::beat::TICK;
use super::seats::{Daemons, Event};
use crate::helper::{Helper, Owned};
use crate::seqpacket::{Frames, Got, buffer};
use crate::source::Source as _;
use aerostat_lab::model::{Lab, NodeId, Service};
use aerostat_node::host::DaemonMessage;
use aerostat_proto::mpoa::split::{FromMpcd, ToMpcd};
use aerostat_proto::sigd::{SIGNALLING, ToSigd};
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{
    Ended, FromDaemon, Greeting, Numbered, ProcessEvent, Role, ToDaemon, VERSION,
};
use aerostat_proto::{AtmEvent, ConnId, Duration, Instant};
use aerostat_wire::q2931::{CallRef, Message, MessageType};
use aerostat_wire::{Seq24, SscopPdu};
use mio::{Events, Poll, Token};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One role is sufficient.
fn only(role: Role) -> &'static [super::RoleInfo] {
    let at = super::ROLES.iter().position(|info| info.role == role);
    let at = at.expect("every role is listed");
    &super::ROLES[at..=at]
}

struct Rig {
    lab: Lab,
    daemons: Daemons,
    poll: Poll,
    directory: PathBuf,
    now: Instant,
}

impl Rig {
    fn new(test: &str, program: &str) -> Self {
        Self::of(Role::Mpcd, test, program)
    }
    fn of(role: Role, test: &str, program: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/two-subnets.atm.yml");
        let lab = aerostat_lab::read(&file, &[]).expect("a lab").lab;
        let name = format!("aerostat-daemons-{}-{test}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let poll = Poll::new().unwrap();
        let mut daemons = Daemons::with(only(role), &lab, &directory).unwrap();
        let owned = Owned {
            daemons: Some((program.as_ref(), daemons.socket())),
            seats: daemons.seats(),
            ..Owned::default()
        };
        let helper = Helper::in_thread(&owned).unwrap();
        daemons.helped_by(&Arc::new(helper));
        daemons.register(poll.registry(), Token(7)).unwrap();
        Self {
            lab,
            daemons,
            poll,
            directory,
            now: Instant::from_secs(1),
        }
    }
    /// A rig that starts no processes.
    fn quiet(test: &str) -> Self {
        Self::quiet_of(Role::Mpcd, test)
    }
    fn quiet_of(role: Role, test: &str) -> Self {
        let mut rig = Self::of(role, test, "/nonexistent");
        rig.daemons.leave();
        // The next questions are due 50 ms later: this clock moves only in tests of the heartbeat.
        rig.turn();
        rig
    }
    fn urku(&self) -> NodeId {
        self.lab.find("urku").unwrap()
    }
    fn turn(&mut self) -> Vec<Event> {
        let mut told = Vec::new();
        for distance in 0..=self.daemons.seats().len() {
            self.daemons.ready(distance);
        }
        while self.daemons.turn(self.poll.registry(), self.now, &mut told) {}
        self.daemons.flush(self.poll.registry());
        told
    }
    fn connect(&self) -> Frames {
        Frames::connect(&self.directory.join(super::SOCKET)).unwrap()
    }
    /// Connects and sends a greeting.
    fn hello(&self, version: u16, node: &str) -> Frames {
        self.hello_of(Role::Mpcd, version, node)
    }
    fn hello_of(&self, role: Role, version: u16, node: &str) -> Frames {
        let frames = self.connect();
        let node = node.to_owned();
        let hello = Greeting::Hello {
            version,
            role,
            node,
        };
        assert!(frames.send(&hello.encode()).unwrap());
        frames
    }
    /// Greets and gets the answer.
    fn greet(&mut self, version: u16, node: &str) -> (Frames, Option<Greeting>, Vec<Event>) {
        let frames = self.hello(version, node);
        let told = self.turn();
        let answer = answer(&frames);
        (frames, answer, told)
    }
    fn welcome(&mut self) -> Frames {
        let (frames, answer, told) = self.greet(VERSION, "urku");
        assert_eq!(answer, Some(Greeting::Welcome { version: VERSION }));
        assert!(matches!(inputs(&told)[..], [ProcessEvent::Came]));
        frames
            .send(&Greeting::Confined(Vec::new()).encode())
            .unwrap();
        assert!(self.turn().is_empty());
        frames
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// How many of these connections the lab has closed. A process that another test is starting has copies of all
/// descriptors until it runs its program, so an end may be seen a moment late.
fn ended<'a>(all: impl IntoIterator<Item = &'a Frames>) -> usize {
    let all: Vec<_> = all.into_iter().collect();
    let until = std::time::Instant::now() + Duration::from_millis(200);
    loop {
        let gone = |frames: &&&Frames| frames.receive(&mut buffer()) == Got::End;
        let count = all.iter().filter(gone).count();
        if count == all.len() || std::time::Instant::now() > until {
            return count;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The lab's answer to a greeting, if there is an answer.
fn answer(frames: &Frames) -> Option<Greeting> {
    match frames.receive(&mut buffer()) {
        Got::Frame(frame) => Some(Greeting::decode(frame).unwrap()),
        Got::Nothing | Got::End => None,
    }
}

/// The packets that wait for a daemon.
fn packets(frames: &Frames) -> Vec<Vec<u8>> {
    let (mut buffer, mut all) = (buffer(), Vec::new());
    while let Got::Frame(packet) = frames.receive(&mut buffer) {
        all.push(packet.to_vec());
    }
    all
}

/// The frames that wait for a daemon.
fn received(frames: &Frames) -> Vec<Vec<u8>> {
    let packets = packets(frames);
    let all = packets.iter().flat_map(|packet| batch::frames(packet));
    all.map(|frame| frame.expect("a valid packet").to_vec())
        .collect()
}

fn inputs(told: &[Event]) -> Vec<&ProcessEvent<DaemonMessage>> {
    let inputs = told.iter().filter_map(|event| match event {
        Event::Input(_, Role::Mpcd, event) => Some(&**event),
        Event::Input(_, role, event) => panic!("{role}: {event:?}"),
        Event::Trace(..) => None,
    });
    inputs.collect()
}

fn names(told: &[Event]) -> Vec<&'static str> {
    let names = told.iter().filter_map(|event| match event {
        Event::Trace(_, trace) => Some(trace.name),
        Event::Input(..) => None,
    });
    names.collect()
}

#[test]
fn one_seat_for_each_client() {
    let mut rig = Rig::quiet("seats");
    let frames = rig.welcome();
    let refused = |rig: &mut Rig, version, node: &str| match rig.greet(version, node).1 {
        Some(Greeting::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let own = std::process::id();
    let taken = refused(&mut rig, VERSION, "urku");
    assert_eq!(taken, format!("mpcd of urku is process {own}"));
    assert!(refused(&mut rig, VERSION, "r1").contains("no seat for mpcd"));
    assert!(refused(&mut rig, VERSION + 1, "sello").contains("version"));
    // Messages pass in both directions, in order.
    let number = 0;
    let reload = |reload| Numbered {
        number,
        message: ToDaemon::Message(ToMpcd::Stop { reload }),
    };
    let seat = (rig.urku(), Role::Mpcd);
    rig.daemons.send(seat, reload(true).encode());
    rig.daemons.send(seat, reload(false).encode());
    let message = FromDaemon::Ended(Ended::Exits);
    let ended = Numbered::<FromDaemon<FromMpcd>> { number, message };
    frames.send(&ended.encode()).unwrap();
    let told = rig.turn();
    let said = ProcessEvent::Said(DaemonMessage::Mpcd(ended));
    assert_eq!(inputs(&told), [&said]);
    let received = received(&frames);
    let expected = [reload(true).encode(), reload(false).encode()];
    assert_eq!(received, expected);
    // The daemon leaves, and the seat is free.
    drop(frames);
    let told = rig.turn();
    assert!(matches!(inputs(&told)[..], [ProcessEvent::Gone]));
    rig.welcome();
}

/// A packet costs a system call and a wake-up, and a set-up has several frames in one turn.
#[test]
fn the_frames_of_a_turn_are_one_packet_in_each_direction() {
    let mut rig = Rig::quiet("packets");
    let frames = rig.welcome();
    let seat = (rig.urku(), Role::Mpcd);
    for n in 1..=5 {
        rig.daemons.send(seat, vec![n; 200]);
    }
    rig.daemons.flush(rig.poll.registry());
    let sent = packets(&frames);
    assert_eq!(sent.len(), 1, "packets");
    assert_eq!(batch::frames(&sent[0]).count(), 5);
    let stops = Numbered::<FromDaemon<FromMpcd>> {
        number: 0,
        message: FromDaemon::Ended(Ended::Stops),
    };
    let mut packet = Vec::new();
    assert_eq!(batch::pack(&mut packet, &vec![stops.encode(); 3]), 3);
    frames.send(&packet).unwrap();
    let told = rig.turn();
    let said = ProcessEvent::Said(DaemonMessage::Mpcd(stops));
    assert_eq!(inputs(&told), [&said, &said, &said]);
}

/// CALL PROCEEDING needs no answer. It waits for the CONNECT, or for the next tick if the called side takes its time.
#[test]
fn a_message_that_needs_no_answer_does_not_wake_its_daemon() {
    let mut rig = Rig::quiet_of(Role::Sigd, "rest");
    let frames = rig.hello_of(Role::Sigd, VERSION, "urku");
    rig.turn();
    assert_eq!(
        answer(&frames),
        Some(Greeting::Welcome { version: VERSION })
    );
    let seat = (rig.urku(), Role::Sigd);
    let message = |kind| {
        let call = CallRef {
            flag: true,
            value: 1,
        };
        let info = Message::new(call, kind).encode();
        let s = Seq24::ZERO;
        let sdu = SscopPdu::Data { s, info }.encode();
        let conn = SIGNALLING;
        let message = ToDaemon::<ToSigd>::Atm(AtmEvent::Received { conn, sdu });
        Numbered { number: 0, message }.encode()
    };
    let proceeding = message(MessageType::CALL_PROCEEDING);
    let connect = message(MessageType::CONNECT);
    rig.daemons.send(seat, proceeding.clone());
    rig.turn();
    assert!(packets(&frames).is_empty());
    rig.daemons.send(seat, connect.clone());
    rig.turn();
    assert_eq!(packets(&frames).len(), 1, "both together");
    rig.daemons.send(seat, proceeding.clone());
    rig.now += TICK;
    rig.turn();
    let mut got = received(&frames);
    got.retain(|frame| frame.len() > 1);
    assert_eq!(got, [proceeding]);
}

/// A daemon reads each frame of a set-up before it answers. If that woke the lab, the lab would take the processor from
/// the daemon on a machine with one.
#[test]
fn a_daemon_that_reads_wakes_the_lab_only_if_a_frame_waits_for_room() {
    let mut rig = Rig::quiet("room");
    let frames = rig.welcome();
    let seat = (rig.urku(), Role::Mpcd);
    let now = Some(Duration::ZERO);
    let mut events = Events::with_capacity(8);
    let mut wakes = |rig: &mut Rig| {
        rig.poll.poll(&mut events, now).unwrap();
        events.iter().count()
    };
    wakes(&mut rig);
    for _ in 0..10 {
        rig.daemons.send(seat, vec![1; 200]);
        rig.daemons.flush(rig.poll.registry());
        assert_eq!(packets(&frames).len(), 1);
        assert_eq!(wakes(&mut rig), 0, "for a frame that was read");
    }
    for _ in 0..20 {
        rig.daemons.send(seat, vec![1; 50_000]);
    }
    rig.daemons.flush(rig.poll.registry());
    let first = packets(&frames).len();
    assert!((1..20).contains(&first), "{first}");
    assert_eq!(wakes(&mut rig), 1, "there is room for the rest");
    let mut read = first;
    while read < 20 {
        rig.daemons.flush(rig.poll.registry());
        let more = packets(&frames).len();
        assert!(more > 0, "stuck after {read}");
        read += more;
    }
    wakes(&mut rig);
    rig.daemons.send(seat, vec![1; 200]);
    rig.daemons.flush(rig.poll.registry());
    assert_eq!(packets(&frames).len(), 1);
    assert_eq!(wakes(&mut rig), 0, "no frame waits any more");
}

#[test]
fn nonsense_costs_the_seat() {
    let mut rig = Rig::quiet("nonsense");
    let batch = [&[0xff, 0xff, 0, 0, 0, 9][..], &[0; 4]].concat();
    for nonsense in [&[0xff; 40][..], &batch, &[0; 3], &vec![1; 70_000]] {
        let frames = rig.welcome();
        frames.send(nonsense).unwrap();
        let told = rig.turn();
        assert!(matches!(inputs(&told)[..], [ProcessEvent::Gone]));
        assert_eq!(ended([&frames]), 1);
    }
    // An invalid greeting gets no answer.
    let frames = rig.connect();
    frames.send(b"hello").unwrap();
    assert!(rig.turn().is_empty());
    assert_eq!(ended([&frames]), 1);
}

#[test]
fn all_daemons_that_greet_at_once_get_an_answer() {
    let mut rig = Rig::quiet("together");
    let nodes = ["urku", "sello", "r1", "another"];
    let all: Vec<Frames> = nodes
        .iter()
        .cycle()
        .take(40)
        .map(|node| rig.hello(VERSION, node))
        .collect();
    rig.turn();
    let answers: Vec<_> = all.iter().map(answer).collect();
    let count = |wanted: fn(&Greeting) -> bool| {
        let known = answers.iter().flatten();
        known.filter(|answer| wanted(answer)).count()
    };
    let welcome = count(|answer| matches!(answer, Greeting::Welcome { .. }));
    let refused = count(|answer| matches!(answer, Greeting::Refused(_)));
    assert_eq!((welcome, refused), (2, 38), "{answers:?}");
}

#[test]
fn who_is_silent_or_does_not_read_has_to_go() {
    let mut rig = Rig::quiet("silent");
    let silent = rig.connect();
    rig.turn();
    assert_eq!(silent.receive(&mut buffer()), Got::Nothing);
    let at = rig.daemons.deadline().expect("it is watched");
    assert_eq!(at, rig.now + Duration::from_secs(2));
    rig.now = at;
    rig.turn();
    assert_eq!(ended([&silent]), 1);
    // The number of silent connections is limited: 16, and one for each of the two seats.
    let crowd: Vec<Frames> = (0..22)
        .map(|_| {
            let frames = rig.connect();
            rig.turn();
            frames
        })
        .collect();
    assert_eq!(ended(&crowd), 4);
    drop(crowd);
    rig.turn();

    let sleeper = rig.welcome();
    for _ in 0..700 {
        rig.daemons.send((rig.urku(), Role::Mpcd), vec![1; 50_000]);
        rig.daemons.flush(rig.poll.registry());
    }
    let told = rig.turn();
    assert_eq!(names(&told), ["daemon.misbehaved", "daemon.down"]);
    assert!(matches!(inputs(&told)[..], [ProcessEvent::Gone]));
    drop(sleeper);
}

/// A new daemon gets what its predecessor knew in one step, one frame for each entry, before it can read the first.
#[test]
fn a_daemon_that_gets_ten_thousand_frames_at_once_reads_them_all_and_keeps_its_seat() {
    let mut rig = Rig::quiet("entries");
    let frames = rig.welcome();
    let all: u32 = 10_000;
    for number in 0..all {
        let mut frame = vec![7; 120];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        rig.daemons.send((rig.urku(), Role::Mpcd), frame);
    }
    let mut next = 0;
    while next < all {
        let told = rig.turn();
        assert!(told.is_empty(), "after {next} frames: {told:?}");
        let before = next;
        for frame in received(&frames) {
            assert_eq!(frame[..4], u32::to_be_bytes(next));
            next += 1;
        }
        assert!(next > before, "nothing came after {next} frames");
    }
}

/// A BUS that reads more slowly than its members send loses data frames, and no others. They are counted.
#[test]
fn what_a_slow_bus_loses_is_data_and_is_counted() {
    let mut rig = Rig::quiet_of(Role::Bus, "slow");
    let node = rig.daemons.seats()[0].1.to_owned();
    let frames = rig.hello_of(Role::Bus, VERSION, &node);
    rig.turn();
    assert_eq!(
        answer(&frames),
        Some(Greeting::Welcome { version: VERSION })
    );
    let seat = (rig.lab.find(&node).unwrap(), Role::Bus);
    let frame = |message| Numbered { number: 0, message }.encode();
    let data = frame(ToDaemon::<ToMpcd>::Atm(AtmEvent::Received {
        conn: ConnId(1),
        sdu: vec![1; 64],
    }));
    let up = frame(ToDaemon::<ToMpcd>::Atm(AtmEvent::Up));
    let sent = 5000;
    for _ in 0..sent {
        rig.daemons.send(seat, data.clone());
        rig.daemons.send(seat, up.clone());
    }
    let (mut ups, mut datas) = (0, 0);
    while ups < sent {
        rig.turn();
        for frame in received(&frames) {
            ups += u64::from(frame == up);
            datas += u64::from(frame == data);
        }
    }
    let table = rig.daemons.table(seat.0, rig.now).expect("it has a seat");
    let column = table.columns.iter().position(|name| *name == "dropped");
    let dropped = &table.rows[0][column.expect("it is shown")];
    assert_eq!(dropped, &aerostat_node::inspect::Value::from(sent - datas));
    assert!((1..sent).contains(&datas), "{datas}");
}

#[test]
fn those_that_die_at_once_are_started_less_and_less_often() {
    let mut rig = Rig::new("backoff", "/bin/false");
    let mut waits = Vec::new();
    let missing = rig.daemons.missing().count();
    assert_eq!(missing, 2, "urku and sello");
    for _ in 0..9 {
        rig.turn();
        // Both have been started; both end by themselves, in real time.
        let until = std::time::Instant::now() + Duration::from_secs(20);
        let mut died = 0;
        while died < 2 {
            assert!(std::time::Instant::now() < until);
            died += names(&rig.turn())
                .iter()
                .filter(|n| **n == "daemon.down")
                .count();
            std::thread::sleep(Duration::from_millis(2));
        }
        let next = rig.daemons.deadline().expect("the next start");
        waits.push(next.since(rig.now).as_millis());
        rig.now = next;
    }
    assert_eq!(
        waits,
        [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    );
    let table = rig.daemons.table(rig.urku(), rig.now).expect("a seat");
    assert_eq!(table.rows[0][4].to_string(), "8");
    assert_eq!(table.rows[0][5].to_string(), "died (exit code 1)");
    // The experimenter's crash lasts until the experimenter's restart.
    let mut told = Vec::new();
    assert!(rig.daemons.crash(rig.urku(), None, rig.now, &mut told));
    let sello = rig.lab.find("sello").unwrap();
    let mpc = Some(Service::Mpc);
    assert!(
        !rig.daemons
            .crash(sello, Some(Service::Les), rig.now, &mut told)
    );
    assert!(rig.daemons.crash(sello, mpc, rig.now, &mut told));
    rig.turn();
    assert_eq!(rig.daemons.deadline(), None);
    rig.daemons.resume(sello, mpc, rig.now);
    assert_eq!(rig.daemons.deadline(), Some(rig.now));
}

/// The questions of the lab among the next frames for a daemon.
fn questions(frames: &Frames) -> Vec<u8> {
    let lone = |frame: Vec<u8>| (frame.len() == 1).then(|| frame[0]);
    received(frames).into_iter().filter_map(lone).collect()
}

#[test]
fn one_that_answers_keeps_its_seat_and_one_that_is_silent_and_cannot_be_seen_loses_it() {
    let mut rig = Rig::quiet("beat");
    let frames = rig.welcome();
    let mut asked = 0;
    for _ in 0..800 {
        rig.now += Duration::from_millis(50);
        assert_eq!(names(&rig.turn()), [""; 0]);
        for question in questions(&frames) {
            asked += 1;
            assert!(frames.send(&[question]).unwrap());
        }
    }
    assert_eq!(asked, 50, "40 s, one in 0.8 s, because it is quiet");
    let row = |rig: &Rig| rig.daemons.table(rig.urku(), rig.now).unwrap().rows[0].clone();
    assert_eq!(row(&rig)[7].to_string(), "0");
    // This daemon was not started by the helper, so its silence is all that is known.
    let began = rig.now;
    let told = loop {
        rig.now += Duration::from_millis(50);
        let told = rig.turn();
        if !told.is_empty() {
            break told;
        }
    };
    let silent = rig.now.since(began).as_millis();
    assert!((10_000..10_500).contains(&silent), "{silent}");
    assert_eq!(names(&told), ["daemon.hung", "daemon.down"]);
    assert!(matches!(inputs(&told)[..], [ProcessEvent::Gone]));
    assert_eq!(row(&rig)[5].to_string(), "hung (silent)");
    assert_eq!(row(&rig)[7].to_string(), "1");
}

#[test]
fn one_that_sends_without_end_and_never_answers_loses_its_seat_too() {
    let mut rig = Rig::quiet("flood");
    let frames = rig.welcome();
    let ended = Numbered::<FromDaemon<FromMpcd>> {
        number: 0,
        message: FromDaemon::Ended(Ended::Exits),
    };
    let frame = ended.encode();
    let began = rig.now;
    let silent = loop {
        rig.now += Duration::from_millis(50);
        assert!(
            rig.now.since(began) < Duration::from_secs(60),
            "never judged"
        );
        // The socket is full before each turn, so the lab never reads the last frame.
        while frames.send(&frame).unwrap() {}
        let mut told = Vec::new();
        rig.daemons.ready(1);
        rig.daemons.ready(2);
        rig.daemons.turn(rig.poll.registry(), rig.now, &mut told);
        if names(&told).contains(&"daemon.hung") {
            break rig.now.since(began).as_millis();
        }
    };
    // 10 s after the first question, and 64 turns in which its answer could have been among its frames.
    assert!((13_000..14_000).contains(&silent), "{silent}");
}

/// The lab's own process may be stopped: then answers wait, and no daemon is to blame.
#[test]
fn an_answer_behind_many_frames_is_found_after_the_lab_itself_was_stopped() {
    let mut rig = Rig::quiet("stopped");
    let frames = rig.welcome();
    let ended = Numbered::<FromDaemon<FromMpcd>> {
        number: 0,
        message: FromDaemon::Ended(Ended::Exits),
    };
    let question = loop {
        rig.now += Duration::from_millis(50);
        rig.turn();
        if let [question] = questions(&frames)[..] {
            break question;
        }
    };
    for _ in 0..150 {
        assert!(frames.send(&ended.encode()).unwrap());
    }
    assert!(frames.send(&[question]).unwrap());
    rig.now += Duration::from_secs(3600);
    assert_eq!(names(&rig.turn()), [""; 0]);
}

#[test]
fn an_answer_to_no_question_is_nonsense() {
    let mut rig = Rig::quiet("unasked");
    let frames = rig.welcome();
    frames.send(&[77]).unwrap();
    let told = rig.turn();
    assert_eq!(names(&told), ["daemon.misbehaved", "daemon.down"]);
    assert!(matches!(inputs(&told)[..], [ProcessEvent::Gone]));
}
