use super::super::{Client, END_OF_STREAM};
use super::*;
use std::path::PathBuf;

/// A lab's loop that answers everything at once; `trace` is an endless stream.
struct Lab {
    path: PathBuf,
    connections: Connections,
}

impl Lab {
    fn new(test: &str) -> Self {
        let name = format!("aerostat-server-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let (requests, connections) = serve(listen(&path).unwrap(), || {}).unwrap();
        std::thread::spawn(move || {
            let mut streams = Vec::new();
            for Pending { request, reply, .. } in requests {
                let ok = Answer::Ok(serde_json::json!({}));
                let answer = if let Request::Trace { .. } = request {
                    let (to, chunks) = sync_channel(STREAM_DEPTH);
                    streams.push(to);
                    Reply::Stream(ok, chunks)
                } else {
                    Reply::Answer(ok)
                };
                reply.send(answer).unwrap();
            }
        });
        Self { path, connections }
    }

    fn client(&self) -> Client {
        Client::connect(&self.path).unwrap()
    }

    fn until(&self, what: &str, done: impl Fn(Counters) -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !done(self.connections.counters()) {
            assert!(Instant::now() < end, "{what}: {:?}", self.connections);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

const TRACE: Request = Request::Trace {
    links: Vec::new(),
    data: false,
    story: false,
    past: false,
};

#[test]
fn a_client_that_leaves_a_quiet_stream_is_noticed() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (_to, chunks) = sync_channel::<Vec<u8>>(1);
    let writer = std::thread::spawn(move || pass_on(&ours, &chunks));
    drop(theirs);
    // `_to` still exists, so only the client's end can end the stream.
    writer.join().unwrap().unwrap();
}

/// Chunks that wait at the client's last word are in the stream, also while more of them come; a closed sending side is
/// no such word.
#[test]
fn a_client_that_ends_a_stream_receives_what_was_recorded_before() {
    for goes_on in [false, true] {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (to, chunks) = sync_channel::<Vec<u8>>(STREAM_DEPTH);
        for _ in 0..1000 {
            to.send(b"before ".to_vec()).unwrap();
        }
        theirs.write_all(END_OF_STREAM).unwrap();
        let more = goes_on.then(|| {
            let to = to.clone();
            std::thread::spawn(move || while to.send(b"later ".to_vec()).is_ok() {})
        });
        let writer = std::thread::spawn(move || pass_on(&ours, &chunks));
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        assert!(text.starts_with(&"before ".repeat(1000)), "{}", text.len());
        writer.join().unwrap().unwrap();
        if let Some(more) = more {
            more.join().unwrap();
        }
    }
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (to, chunks) = sync_channel::<Vec<u8>>(1);
    theirs.shutdown(Shutdown::Write).unwrap();
    let writer = std::thread::spawn(move || pass_on(&ours, &chunks));
    std::thread::sleep(3 * LOOK_AFTER_CLIENT);
    to.send(b"late".to_vec()).unwrap();
    drop(to);
    let mut text = String::new();
    theirs.read_to_string(&mut text).unwrap();
    assert_eq!(text, "late");
    writer.join().unwrap().unwrap();
}

#[test]
fn silent_connections_do_not_lock_the_owner_out() {
    let lab = Lab::new("silent");
    let silent: Vec<_> = (0..MAX_CONNECTIONS + 16).map(|_| lab.client()).collect();
    let (answer, _) = lab.client().ask(&Request::Stop).unwrap();
    assert!(matches!(answer, Answer::Ok(_)), "{answer:?}");
    let counters = lab.connections.counters();
    let newcomers = silent.len() as u64 + 1;
    assert_eq!(counters.accepted, newcomers, "{counters:?}");
    assert!(counters.gave_way >= newcomers - MAX_CONNECTIONS as u64 - 1);
    assert!(lab.connections.open() <= MAX_CONNECTIONS);
}

#[test]
fn a_client_that_asks_now_and_then_outlives_silent_ones() {
    let lab = Lab::new("now-and-then");
    let mut regular = lab.client();
    for _ in 0..4 {
        regular.ask(&Request::Status).unwrap();
        // As many new clients as take all places except its own. The lab must have accepted them before the regular
        // client asks again: otherwise they come beside the next ones, and take its place as well.
        let before = lab.connections.counters().accepted;
        let crowd: Vec<_> = (1..MAX_CONNECTIONS).map(|_| lab.client()).collect();
        let expected = before + crowd.len() as u64;
        lab.until("the crowd", |counters| counters.accepted == expected);
        regular.ask(&Request::Status).unwrap();
        drop(crowd);
    }
}

#[test]
fn with_all_places_taken_by_streams_the_lab_can_still_be_stopped() {
    let lab = Lab::new("streams");
    let mut streams = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut client = lab.client();
        client.ask(&TRACE).unwrap();
        streams.push(client.into_stream());
    }
    lab.until("all streams", |_| {
        let table = lab.connections.table();
        let streaming = |place: &&Place| place.doing == Doing::Streaming;
        table.places.values().filter(streaming).count() == MAX_CONNECTIONS
    });
    let (answer, _) = lab.client().ask(&TRACE).unwrap();
    let Answer::Error { message, .. } = answer else {
        panic!("{answer:?}");
    };
    assert!(message.contains("64 clients"), "{message}");
    let (answer, _) = lab.client().ask(&Request::Stop).unwrap();
    assert!(matches!(answer, Answer::Ok(_)), "{answer:?}");
    assert_eq!(lab.connections.counters().in_reserve, 2);
    // Clients that leave make room.
    streams.clear();
    let end = Instant::now() + Duration::from_secs(30);
    while lab.connections.open() > 0 {
        assert!(Instant::now() < end, "{:?}", lab.connections);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_request_that_is_no_text_is_answered_and_the_connection_goes_on() {
    let lab = Lab::new("no-text");
    let mut client = lab.client();
    client.say(b"\xff\xfe\"\n").unwrap();
    let (answer, _) = client.ask(&Request::Status).unwrap();
    let Answer::Error { message, .. } = answer else {
        panic!("{answer:?}");
    };
    assert!(message.starts_with("bad request"), "{message}");
    // The answer to the first request.
    let (answer, _) = client.ask(&Request::Status).unwrap();
    assert!(matches!(answer, Answer::Ok(_)), "{answer:?}");
}
