//! ATP between programs of the machine: the Rust interface, over an embedded lab in real time.

use crate::atm_sockets::{LAB, Net, until};
use crate::live::{Runtime, signal};
use aerostat_proto::atp::Profile;
use aerostat_proto::parameters::Octets;
use aerostat_socket::Error;
use aerostat_socket::atp::{Connection, Listener, Options, pattern};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn message(octets: usize) -> Vec<u8> {
    pattern(octets).collect()
}

/// A connection from x to y, with these options of the caller and of the listener.
fn pair(net: &Net, of: [&Options; 2]) -> [Connection; 2] {
    let listener = Listener::bind(&net.service("y"), "", 16, of[1]).unwrap();
    let address = listener.address().unwrap();
    let accepts = thread::spawn(move || listener.accept().unwrap());
    let caller = Connection::connect(&net.service("x"), &address, of[0]).unwrap();
    [caller, accepts.join().unwrap()]
}

fn of(profile: Profile) -> Options {
    let mut options = Options::default();
    options.params.profile = profile;
    options
}

fn next(connection: &Connection) -> Vec<u8> {
    connection.recv_within(PATIENCE).unwrap().unwrap()
}

#[test]
fn messages_go_both_ways_on_terms_that_signalling_has_agreed() {
    let net = Net::up("atpboth");
    for profile in [Profile::Report, Profile::Adaptive] {
        let caller = of(profile);
        let mut called = of(profile);
        called.params.mtu = 1500;
        let [x, y] = pair(&net, [&caller, &called]);
        // The called end takes smaller SDUs, and signalling tells the caller.
        assert_eq!(x.stats().params.mtu, 1500);
        assert_eq!(y.stats().params.mtu, 1500);
        assert!(x.stats().params.initial_round_trip < Duration::from_millis(100));
        let lengths = [0, 1, 1496, 1497, 1_000_000];
        let sender = thread::spawn(move || {
            for length in lengths {
                x.send(&message(length)).unwrap();
            }
            for length in lengths {
                assert!(next(&x) == message(length), "{length} came back");
            }
            x
        });
        for length in lengths {
            let came = next(&y);
            assert!(came == message(length), "{length}");
            y.send(&came).unwrap();
        }
        let x = sender.join().unwrap();
        // A short buffer cuts the message, and tells how long it was.
        x.send(&message(500)).unwrap();
        let mut short = [0; 100];
        assert_eq!(y.recv_into(&mut short).unwrap(), Some(500));
        assert!(short.to_vec() == message(100));
        let stats = y.stats();
        assert_eq!(stats.received.messages, 6);
        assert_eq!(stats.received.octets, 1_002_994 + 500);
        assert!(stats.received.time > Duration::ZERO);
        // The close of one end is the end of the messages at the other one.
        x.send(b"the last one").unwrap();
        let closes = thread::spawn(move || x.close());
        assert_eq!(next(&y), b"the last one");
        assert_eq!(y.recv_within(PATIENCE).unwrap(), None);
        let late = y.send(b"too late").unwrap_err();
        assert_eq!((late.errno(), late.cause()), (32, Some(16)), "{late}");
        closes.join().unwrap().unwrap();
        y.close().unwrap();
    }
    net.runtime.ok(&["down"]);
}

#[test]
fn a_receiver_that_does_not_read_holds_the_sender_up_and_loses_nothing() {
    let net = Net::up("atpslow");
    let mut options = Options::default();
    for (name, value) in [
        ("send_limit", "65536"),
        ("receive_limit", "65536"),
        ("timer", "40"),
        ("retransmissions", "1000"),
    ] {
        options.set(name, value).unwrap();
    }
    let [x, y] = pair(&net, [&options, &options]);
    let long = x.send(&message(70_000)).unwrap_err();
    assert_eq!(long.errno(), 90, "{long}");
    x.set_nonblocking(true);
    let mut sent = 0;
    let full = loop {
        match x.send(&message(10_000 + sent)) {
            Ok(()) => sent += 1,
            Err(full) => break full,
        }
        assert!(sent < 1000, "nothing holds the sender up");
    };
    assert_eq!(full.errno(), 11, "{full}");
    until("the receiver is full", || y.stats().counters.no_room > 0);
    let (near, far) = (x.stats().snapshot, y.stats().snapshot);
    assert!(near.waiting <= 65_536, "{near:?}");
    assert!(far.kept <= 65_536 + 20_000, "{far:?}");
    assert!(far.unread_messages > 3, "{far:?}");
    // Now it reads, and all of it comes, in order; a sender that waits goes on.
    x.set_nonblocking(false);
    let all = thread::spawn(move || {
        for number in sent..sent + 20 {
            x.send_within(&message(10_000 + number), PATIENCE).unwrap();
        }
        x.close().unwrap();
    });
    for number in 0..sent + 20 {
        assert_eq!(next(&y).len(), 10_000 + number);
    }
    assert_eq!(y.recv_within(PATIENCE).unwrap(), None);
    all.join().unwrap();
    net.runtime.ok(&["down"]);
}

#[test]
fn lost_cells_are_made_good_in_both_profiles() {
    let lossy = LAB.replace("{ rate: oc3 }", "{ rate: oc3, loss: 0.0005 }");
    let net = Net::of("atploss", &lossy);
    for profile in [Profile::Report, Profile::Adaptive] {
        // Packets, ACKs and NAKs are lost, both ways.
        let mut options = of(profile);
        options.params.timer = Duration::from_millis(50);
        let [x, y] = pair(&net, [&options, &options]);
        let sent = message(1_500_000);
        x.send(&sent).unwrap();
        let came = next(&y);
        assert!(came == sent, "{} octets", came.len());
        y.send(&came).unwrap();
        assert!(next(&x) == sent, "it comes back");
        let (near, far) = (x.stats().counters, y.stats().counters);
        let repeated = near.packets_repeated + far.packets_repeated;
        assert!(
            repeated > 0 && near.naks_sent + far.naks_sent > 0,
            "{near:?} {far:?}"
        );
        x.close().unwrap();
    }
    net.runtime.down_with_warnings();
}

/// A message that was under way when the network ended the call is an error that names the cause.
#[test]
fn the_end_of_the_call_is_an_error_with_its_cause() {
    let net = Net::up("atpend");
    let options = Options::default();
    // The peer goes without a close, as a program that was killed.
    let [x, y] = pair(&net, [&options, &options]);
    x.send(b"before").unwrap();
    assert_eq!(next(&y), b"before");
    let plain = net.service("y").listen("").unwrap();
    let address = plain.address().unwrap();
    let silent = thread::spawn(move || plain.accept().unwrap());
    let z = Connection::connect(&net.service("x"), &address, &options).unwrap();
    let silent = silent.join().unwrap();
    z.send(&message(50_000)).unwrap();
    drop(silent);
    let killed = z.close().unwrap_err();
    assert_eq!(
        (killed.errno(), killed.cause()),
        (104, Some(16)),
        "{killed}"
    );
    // A message that was cut is no message.
    let cut = net.service("y").listen("").unwrap();
    let address = cut.address().unwrap();
    let half = thread::spawn(move || {
        let socket = cut.accept().unwrap();
        socket.send(&[0, 0, 0, 0, b'h', b'a', b'l', b'f']).unwrap();
        socket
    });
    let reader = Connection::connect(&net.service("x"), &address, &options).unwrap();
    drop(half.join().unwrap());
    let broken = reader.recv_within(PATIENCE).unwrap_err();
    assert_eq!(broken.errno(), 104, "{broken}");
    assert!(broken.to_string().contains("in the middle"), "{broken}");
    // The host at the other end loses its power.
    x.send(&message(100_000)).unwrap();
    let waits = thread::spawn(move || {
        let mut last = Ok(());
        let end = Instant::now() + PATIENCE;
        while last.is_ok() && Instant::now() < end {
            last = x.send(&message(100_000));
            thread::sleep(Duration::from_millis(5));
        }
        (last.unwrap_err(), x)
    });
    net.runtime.ok(&["fault", "crash", "y"]);
    let (error, x): (Error, Connection) = waits.join().unwrap();
    assert_eq!(error.errno(), 104, "{error}");
    assert!(error.cause().is_some_and(|cause| cause != 16), "{error}");
    let error = x.close().unwrap_err();
    assert!(error.cause().is_some(), "{error}");
    drop(y);
    net.runtime.down_with_warnings();
}

/// Many connections share one thread of this process; each has its messages, and all close at the same time.
#[test]
fn a_hundred_connections_share_a_thread() {
    const CONNECTIONS: usize = 100;
    let net = Net::up("atpmany");
    let options = of(Profile::Adaptive);
    let listener = Listener::bind(&net.service("y"), "", 64, &options).unwrap();
    let address = listener.address().unwrap();
    let server = thread::spawn(move || {
        let accepted: Vec<_> = (0..CONNECTIONS)
            .map(|_| listener.accept().unwrap())
            .collect();
        for connection in &accepted {
            let came = next(connection);
            connection.send(&came).unwrap();
        }
        // They end in the background.
        drop(accepted);
    });
    let service = net.service("x");
    let mut connections = Vec::new();
    for number in 0..CONNECTIONS {
        let connection = Connection::connect(&service, &address, &options).unwrap();
        connection.send(&message(20_000 + number)).unwrap();
        connections.push(connection);
    }
    for (number, connection) in connections.into_iter().enumerate() {
        assert!(next(&connection) == message(20_000 + number), "{number}");
        connection.close().unwrap();
    }
    server.join().unwrap();
    net.runtime.ok(&["down"]);
}

/// A descriptor for `poll` follows what can be read.
#[test]
fn a_descriptor_tells_when_a_message_is_there() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let net = Net::up("atppoll");
    let options = Options::default();
    let [x, y] = pair(&net, [&options, &options]);
    let readable = |connection: &Connection, seconds| {
        let fd = connection.readable().unwrap();
        let limit = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap() == 1
    };
    assert!(!readable(&y, 0));
    x.send(&message(30_000)).unwrap();
    assert!(readable(&y, 30));
    y.set_nonblocking(true);
    assert_eq!(y.recv().unwrap().map(|came| came.len()), Some(30_000));
    assert!(!readable(&y, 0));
    assert_eq!(y.recv().unwrap_err().errno(), 11);
    let ends = thread::spawn(move || x.close());
    assert!(readable(&y, 30));
    assert_eq!(y.recv().unwrap(), None);
    ends.join().unwrap().unwrap();
    net.runtime.ok(&["down"]);
}

/// A permanent connection carries ATP as well: both ends begin at the same time.
#[test]
fn atp_over_a_permanent_connection() {
    let net = Net::up("atppvc");
    let end = |host: &str, label: &str| {
        let socket = net.service(host).socket().unwrap();
        socket.open_permanent(label, "ubr:sdu=9180").unwrap();
        Connection::over(socket, &Options::default()).unwrap()
    };
    let (x, y) = (end("x", "0.100"), end("y", "0.101"));
    x.send(&message(100_000)).unwrap();
    assert!(next(&y) == message(100_000));
    y.send(b"back").unwrap();
    assert_eq!(next(&x), b"back");
    let _: &Runtime = &net.runtime;
    assert_eq!(x.stats().params.send_limit, Octets(256 << 20));
    net.runtime.ok(&["down"]);
}

/// The tests of the report in real time: between two hosts, and by a receiver and a sender that run in them.
#[test]
fn atptest_measures_between_two_hosts_of_a_running_lab() {
    let net = Net::up("atptest");
    let rows = |text: &str| {
        let all: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(all["schema"], "aerostat.atptest.v1");
        all["rows"].as_array().unwrap().clone()
    };
    let between = "atptest --between x,y --test throughput,latency,correctness --octets 60000 \
                   --profile report,adaptive -q -o json";
    let found = net
        .runtime
        .ok(&between.split_whitespace().collect::<Vec<_>>());
    let all = rows(&found);
    assert_eq!(all.len(), 6);
    for row in &all {
        assert_eq!(row["correct"], true, "{row}");
        let latency = row["test"] == "latency";
        let (rate, time) = (row["mbps"].as_f64(), row["latency_us"].as_f64());
        assert_eq!(
            (rate.is_some(), time.is_some()),
            (!latency, latency),
            "{row}"
        );
        assert!(rate.or(time).is_some_and(|value| value > 0.0), "{row}");
        // One more packet announces what follows.
        let packets = row["packets"].as_u64().unwrap();
        let expected = match row["mtu"].as_u64() {
            Some(10) => 10_000,
            _ => 7,
        };
        assert!(packets > expected, "{row}");
    }
    let one = net.runtime.run(&["atptest", "--between", "x"]);
    assert_eq!(one.code, 2, "{}", one.err);
    let nobody = net.runtime.run(&["atptest", "--between", "x,nobody"]);
    let told = "error: lab 'atptest' has no host 'nobody'\n  hint: its hosts are x, y\n";
    assert_eq!(nobody.err, told);
    let mut server = net.runtime.command(&["atptest", "--serve"]);
    let server = server.env("AEROSTAT_ATM", net.path("y"));
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    out.read_line(&mut address).unwrap();
    // A caller that does not speak ATP does not keep its call; others are served meanwhile.
    let garbage = net.service("x");
    let garbage = garbage
        .call(address.trim(), "blli:l3=user,info=2", "ubr:sdu=9180")
        .unwrap();
    garbage.send(b"no packet of ATP").unwrap();
    let mut client = net
        .runtime
        .command(&["atptest", "--connect", address.trim()]);
    let client = client.args(["--test", "latency", "--octets", "9000", "-q", "-o", "json"]);
    let out = client.env("AEROSTAT_ATM", net.path("x")).output().unwrap();
    let all = rows(str::from_utf8(&out.stdout).unwrap());
    assert_eq!(all[0]["correct"], true);
    assert_eq!(garbage.status().unwrap().state, "connected");
    until("the call of the other caller to end", || {
        garbage.status().unwrap().state == "ended"
    });
    callers_that_hang_up(&net, address.trim());
    // Ctrl-C ends it in order.
    signal(&server.id().to_string(), "INT");
    assert_eq!(server.wait().unwrap().code(), Some(3));
    net.runtime.ok(&["down"]);
}

/// Callers that end their calls at once do not end a server, whichever rules they ask for.
fn callers_that_hang_up(net: &Net, server: &str) {
    let service = net.service("x");
    for profile in ["1", "2"] {
        for _ in 0..30 {
            let sap = format!("blli:l3=user,info={profile}");
            drop(service.call(server, &sap, "ubr:sdu=9180"));
        }
    }
    for profile in ["report", "adaptive"] {
        let mut client = net.runtime.command(&["atptest", "--connect", server]);
        let client = client.args(["--profile", profile, "--octets", "9000", "-q", "-o", "json"]);
        let out = client.env("AEROSTAT_ATM", net.path("x")).output().unwrap();
        let all: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(all["rows"][0]["correct"], true, "{profile}");
    }
}
