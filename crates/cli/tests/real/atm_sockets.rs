//! Programs of the machine with ATM sockets: a lab in real time, embedded, and the crate `aerostat-socket`.

use crate::lab_file;
use crate::live::Runtime;
use crate::root;
use aerostat_socket::{Call, REJECTED, Service, Socket};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const LAB: &str = "
switches: { s: {}, t: {} }
links: [ [s, t, { rate: oc3 }] ]
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s, elan: a, ip: 10.1.0.10 }
  y: { on: t, elan: a, ip: 10.1.0.20 }
pvcs:
  - { from: x, vc: 0.100, to: y, to_vc: 0.101 }
  - { from: x, vc: 0.110, to: y, to_vc: 0.111 }
";

/// How long anything may take on a machine with much to do.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Net {
    pub(crate) runtime: Runtime,
    name: String,
}

impl Net {
    pub(crate) fn up(test: &str) -> Self {
        Self::of(test, LAB)
    }
    /// The same with x as a host that has its address by ILMI.
    pub(crate) fn with_ilmi(test: &str) -> Self {
        Self::of(test, &LAB.replace("x: { ", "x: { ilmi: true, "))
    }
    pub(crate) fn of(test: &str, lab: &str) -> Self {
        let runtime = Runtime::embedded(test, lab);
        let name = test.to_owned();
        Self { runtime, name }
    }
    pub(crate) fn path(&self, host: &str) -> PathBuf {
        let lab = self.runtime.directory.join("aerostat").join(&self.name);
        lab.join(format!("atm/{host}.sock"))
    }
    pub(crate) fn service(&self, host: &str) -> Service {
        Service::connect(&self.path(host)).unwrap()
    }
    /// A call from x to a listener of y.
    fn pair(&self, qos: &str) -> (Socket, Socket) {
        let listener = self.service("y").listen("").unwrap();
        let address = listener.address().unwrap();
        let accepts = thread::spawn(move || listener.accept().unwrap());
        let caller = self.service("x").call(&address, "", qos).unwrap();
        (caller, accepts.join().unwrap())
    }
}

pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn programs_call_accept_vet_and_refuse() {
    let net = Net::up("vetting");
    let (x, y) = (net.service("x"), net.service("y"));
    assert_eq!((x.host(), y.host()), ("x", "y"));
    let listener = y.listen("").unwrap();
    let address = listener.address().unwrap();
    // Best effort of x is accepted; everything else is refused.
    let own = x.address().to_owned();
    let server = thread::spawn(move || {
        let mut seen = Vec::new();
        for _ in 0..3 {
            let offer = listener.offer().unwrap();
            seen.push((offer.caller().to_owned(), offer.qos().to_owned()));
            if offer.qos().starts_with("ubr") && offer.caller()[..38] == own[..38] {
                let socket = offer.accept().unwrap();
                let mut pdu = [0; 9180];
                while let octets @ 1.. = socket.recv(&mut pdu).unwrap() {
                    socket.send(&pdu[..octets]).unwrap();
                }
            } else {
                offer.refuse(REJECTED).unwrap();
            }
        }
        seen
    });
    let socket = x.call(&address, "", "ubr:sdu=9180").unwrap();
    let mut pdu = [0; 9180];
    for size in [1, 48, 9180] {
        socket.send(&vec![7; size]).unwrap();
        assert_eq!(socket.recv(&mut pdu).unwrap(), size);
    }
    // A PDU of no octets is no PDU; one that is too long is refused here, and the call goes on.
    socket.send(&[]).unwrap();
    let long = socket.send(&[0; 9181]).unwrap_err();
    assert!(
        long.to_string()
            .contains("9181 octets: the contract allows 9180")
    );
    socket.send(b"still").unwrap();
    assert_eq!(socket.recv(&mut pdu).unwrap(), 5);
    let status = socket.status().unwrap();
    assert_eq!(
        (status.state.as_str(), status.peer.as_str()),
        ("connected", address.as_str())
    );
    assert_eq!((status.sent.0, status.received.0), (4, 4));
    drop(socket);
    for (from, qos) in [(&x, "cbr:max_pcr=1Mbps"), (&y, "ubr")] {
        let refused = from.call(&address, "", qos).unwrap_err();
        assert_eq!(
            (refused.errno(), refused.cause()),
            (111, Some(REJECTED)),
            "{refused}"
        );
    }
    let seen = server.join().unwrap();
    assert!(seen[1].1.starts_with("cbr"), "{seen:?}");
    // What is wrong is named.
    let wrong = x.call(&address, "", "ubr:pcr=fast").unwrap_err();
    assert_eq!(wrong.field(), Some(("qos", 8)));
    let nobody = x.call("y/ee", "", "ubr").unwrap_err();
    assert_eq!(nobody.cause(), Some(88), "{nobody}");
    let names = x.names().unwrap().0;
    assert!(names.iter().any(|(name, _)| name == "y"));
    net.runtime.ok(&["down"]);
}

#[test]
fn what_was_written_before_a_close_arrives_and_both_ends_learn_the_cause() {
    let net = Net::up("closing");
    let (x, y) = net.pair("ubr:sdu=9180");
    let reader = thread::spawn(move || {
        let (mut pdu, mut octets) = (vec![0; 9180], 0);
        while let got @ 1.. = y.recv(&mut pdu).unwrap() {
            octets += got;
        }
        (octets, y)
    });
    for _ in 0..300 {
        x.send(&[1; 9180]).unwrap();
    }
    let session = net.service("x");
    drop(x);
    let (octets, y) = reader.join().unwrap();
    let status = y.status().unwrap();
    // Only PDUs for which the reader was too slow are lost, and they are counted.
    assert_eq!(status.received.0, 300, "{status:?}");
    assert_eq!(octets as u64, (300 - status.unread) * 9180);
    assert_eq!((status.cause, status.state.as_str()), (16, "ended"));
    // A permanent connection has no call.
    let [here, there] = [(&session, "0.100"), (&net.service("y"), "0.101")].map(|(at, label)| {
        let socket = at.socket().unwrap();
        socket.open_permanent(label, "ubr:sdu=1000").unwrap();
        socket
    });
    here.send(b"permanent").unwrap();
    let mut pdu = [0; 1000];
    assert_eq!(there.recv(&mut pdu).unwrap(), 9);
    // It carries PDUs or, at other labels, single cells.
    let [here, there] = [(&session, "0.110"), (&net.service("y"), "0.111")].map(|(at, label)| {
        let socket = at.socket().unwrap();
        let qos = socket.open_permanent(label, "aal0,ubr").unwrap();
        assert_eq!(qos, "ubr,aal0:sdu=52");
        socket
    });
    let mut cell = [7; 52];
    cell[..4].copy_from_slice(&5_u32.to_ne_bytes());
    here.send(&cell).unwrap();
    assert!(here.send(&[7; 53]).is_err());
    assert_eq!(there.recv(&mut pdu).unwrap(), 52);
    // Payload type 2 and CLP 1, on the label of this end.
    let head = 0x0000_06f5_u32.to_ne_bytes();
    assert_eq!((&pdu[..4], &pdu[4..52]), (&head[..], &cell[4..]));
    let busy = session.socket().unwrap();
    let busy = busy.open_permanent("0.100", "ubr").unwrap_err();
    assert_eq!(busy.cause(), Some(35), "{busy}");
    net.runtime.ok(&["down"]);
}

#[test]
fn a_descriptor_serves_another_session_and_its_last_copy_ends_the_call() {
    let net = Net::up("passing");
    let (x, y) = net.pair("ubr:sdu=1000");
    // As after fork, or when a descriptor was passed to another process.
    let copy = rustix_copy(&x);
    let other = net.service("x").adopt(copy).unwrap();
    drop(x);
    other.send(b"from the copy").unwrap();
    let mut pdu = [0; 100];
    assert_eq!(y.recv(&mut pdu).unwrap(), 13);
    // The contract is known to it, too.
    assert!(other.send(&[0; 1001]).is_err());
    // The service of another host does not know it.
    let stranger = net.service("y").adopt(rustix_copy(&other)).unwrap_err();
    assert_eq!(stranger.errno(), 9);
    drop(other);
    assert_eq!(y.recv(&mut pdu).unwrap(), 0);
    net.runtime.ok(&["down"]);
}

fn rustix_copy(socket: &Socket) -> std::os::fd::OwnedFd {
    use std::os::fd::AsFd as _;
    socket.as_fd().try_clone_to_owned().unwrap()
}

#[test]
fn a_host_that_fails_ends_its_sockets_and_serves_again() {
    let net = Net::up("crashing");
    let (x, y) = net.pair("ubr");
    net.runtime.ok(&["fault", "crash", "y"]);
    let mut pdu = [0; 10];
    // The program of the host that is off sees the end; so does its peer.
    assert_eq!(y.recv(&mut pdu).unwrap(), 0);
    assert_eq!(x.recv(&mut pdu).unwrap(), 0);
    assert_eq!(y.status().unwrap_err().errno(), 104);
    let off = Service::connect(&net.path("y")).unwrap_err();
    assert!(off.to_string().contains("the host is off"), "{off}");
    net.runtime.ok(&["fault", "restart", "y"]);
    until("the host serves again", || {
        Service::connect(&net.path("y")).is_ok_and(|service| service.listen("").is_ok())
    });
    let (x, y) = net.pair("ubr");
    x.send(b"again").unwrap();
    assert_eq!(y.recv(&mut pdu).unwrap(), 5);
    net.runtime.down_with_warnings();
    assert_eq!(x.recv(&mut pdu).unwrap(), 0);
}

/// Runs a program in Python, which has the path of a host's service as its argument, and must succeed.
fn in_python(code: &str, service: &Path) {
    let out = Command::new("python3")
        .args(["-c", code])
        .arg(service)
        .env("PYTHONPATH", root().join("python"))
        .stdin(Stdio::null())
        .output();
    match out {
        Ok(out) => assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        ),
        Err(error) => eprintln!("SKIPPED in part: python3: {error}"),
    }
}

/// A library refuses what the bare descriptor cannot refuse: the call goes on.
#[test]
fn what_a_contract_forbids_is_refused_before_it_ends_a_call() {
    let net = Net::up("forbidden");
    let (x, _y) = net.pair("ubr:sdu=1000");
    let refused = x.send(&[0; 1001]).unwrap_err().to_string();
    assert!(refused.contains("the contract allows 1000"), "{refused}");
    let idle = net.service("x").socket().unwrap();
    let refused = idle.send(b"early").unwrap_err().to_string();
    assert!(refused.contains("no connection yet"), "{refused}");
    let adopted = net.service("x").adopt(idle.into_fd()).unwrap();
    let refused = adopted.send(b"early").unwrap_err().to_string();
    assert!(refused.contains("no connection yet"), "{refused}");
    for (other, state) in [(&adopted, "idle"), (&x, "connected")] {
        let refused = other.next_offer().unwrap_err();
        let text = format!("the socket is {state}, not listening");
        assert_eq!((refused.errno(), refused.to_string()), (22, text));
    }
    let python = "
import sys, threading
from aerostat_socket import Service, AtmError
def refused(errno, act):
    try: act()
    except AtmError as error: assert error.errno == errno, error
    else: raise AssertionError('not refused')
one, other = Service(sys.argv[1]), Service(sys.argv[1])
listener, got = one.listen(), []
thread = threading.Thread(target=lambda: got.append(listener.accept())); thread.start()
caller = other.call(listener.status()['local'], 'ubr:tx:sdu=1000,rx:sdu=600'); thread.join()
refused(90, lambda: caller.send(bytes(1001)))
refused(90, lambda: got[0].send(bytes(601)))
caller.send(bytes(1000)); got[0].send(bytes(600))
assert len(got[0].recv()) == 1000 and len(caller.recv()) == 600
refused(107, lambda: other.socket().send(b'early'))
refused(107, lambda: listener.send(b'early'))
refused(22, caller.offer)
";
    in_python(python, &net.path("x"));
}

/// Garbage, foreign references, PDUs beyond the contract: refused and counted, and others are not harmed.
#[test]
fn hostile_programs_harm_themselves_only() {
    let net = Net::up("hostile");
    let (x, y) = net.pair("ubr:sdu=1000");
    let python = "
import socket, struct, sys, os
path = sys.argv[1]
def connect():
    c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); c.connect(path); c.settimeout(10); return c
# 16 messages that mean nothing: each is answered, then the session is closed.
c = connect(); answers = 0
for n in range(16):
    try: c.send(os.urandom(n * 7 + 5)); answers += bool(c.recv(9000))
    except (BrokenPipeError, ConnectionResetError): break
try: end = c.recv(100) == b''
except (BrokenPipeError, ConnectionResetError): end = True
assert end and answers >= 10, answers
# A message without octets is one of them: it is answered, and the session goes on.
c = connect(); c.send(b''); a = c.recv(9000)
assert a[:6] == b'\\0\\0\\x01\\x08\\0\\x16', a
c.send(struct.pack('>HH', 7, 12)); a = c.recv(9000)
assert a[:4] == b'\\0\\x07\\x01\\x07', a
# References of others.
c = connect()
for n in range(200):
    c.send(struct.pack('>HHQ', n, 10, (1 << 32) + n)); a = c.recv(9000)
    assert a[2:6] == b'\\x01\\x08\\x00\\x09', a
# Requests without reading the answers.
c = connect(); c.setblocking(False); sent = 0
try:
    while sent < 100000: c.send(struct.pack('>HH', 1, 12)); sent += 1
except BlockingIOError: pass
assert sent < 100000, sent
# Half of a message, too long a message, a session that says nothing, and the end without a word.
connect().send(b'\\0'); connect().send(bytes(9000)); idle = connect()
print('done')
";
    in_python(python, &net.path("x"));
    // A PDU beyond the contract, past the crate: the call ends with cause 111, protocol error.
    let listener = net.service("y").listen("").unwrap();
    let address = listener.address().unwrap();
    let accepts = thread::spawn(move || listener.accept().unwrap());
    let bad = net.service("x").call(&address, "", "ubr:sdu=100").unwrap();
    let victim = accepts.join().unwrap();
    let raw = std::os::unix::net::UnixDatagram::from(rustix_copy(&bad));
    raw.send(&[0; 101]).unwrap();
    let mut pdu = [0; 1000];
    assert_eq!(victim.recv(&mut pdu).unwrap(), 0);
    let (told, found) = (bad.status().unwrap(), victim.status().unwrap());
    assert_eq!((told.cause, told.refused, found.cause), (111, 1, 111));
    // The call beside all this goes on.
    x.send(b"unharmed").unwrap();
    assert_eq!(y.recv(&mut pdu).unwrap(), 8);
    net.runtime.ok(&["down"]);
}

/// A lab with few descriptors: the next socket is an error with a sentence, and the lab lives.
#[test]
fn a_lab_without_descriptors_says_so_and_goes_on() {
    let runtime = Runtime::new("fewfds");
    let file = lab_file("fewfds.atm.yml", LAB);
    let mut command = Command::new("sh");
    let aerostat = env!("CARGO_BIN_EXE_aerostat");
    let script = "ulimit -n 64; exec \"$0\" up -q --embedded \"$1\"";
    command
        .args(["-c", script, aerostat, &file])
        .env("XDG_RUNTIME_DIR", &runtime.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut lab = command.spawn().unwrap();
    lab.stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 6])
        .unwrap();
    let path = runtime.directory.join("aerostat/fewfds/atm/x.sock");
    let service = Service::connect(&path).unwrap();
    let mut open = Vec::new();
    let full = loop {
        match service.socket() {
            Ok(socket) => open.push(socket),
            Err(error) => break error,
        }
        assert!(open.len() < 64);
    };
    assert_eq!(full.errno(), 24, "{full}");
    assert!(full.to_string().contains("'ulimit -n'"), "{full}");
    // A program that connects now waits, and is served when there is a descriptor again.
    let late =
        thread::spawn(move || Service::connect(&path).map(|service| service.host().to_owned()));
    thread::sleep(Duration::from_millis(100));
    open.truncate(5);
    assert_eq!(late.join().unwrap(), Ok("x".to_owned()));
    until("descriptors are free again", || service.socket().is_ok());
    runtime.ok(&["down"]);
    assert!(lab.wait().unwrap().success());
}

/// The module of the repository, both sides of its echo.
#[test]
fn the_python_module_calls_and_is_called() {
    echo_in_python("python", None);
}

/// `aerostat exec` preloads the library for each program: one that does not need it runs as well.
#[test]
fn the_python_module_works_beside_the_preload_library() {
    echo_in_python("pythonpreload", Some(crate::preload::library()));
}

fn echo_in_python(test: &str, preloaded: Option<PathBuf>) {
    let net = Net::up(test);
    let python = |host: &str, arguments: &[&str]| {
        let mut command = Command::new("python3");
        command
            .arg("python/echo.py")
            .args(arguments)
            .current_dir(root())
            .env("AEROSTAT_ATM", net.path(host))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(preloaded.iter().map(|library| ("LD_PRELOAD", library)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    };
    let mut server = match python("y", &[]).spawn() {
        Ok(server) => server,
        Err(error) => return eprintln!("SKIPPED: python3: {error}"),
    };
    let mut line = String::new();
    let mut said = std::io::BufReader::new(server.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    let client = python("x", &[&address, "hello", "world"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&client.stdout), "hello\nworld\n");
    // Rust calls Python, and Python refuses what it does not want.
    let refused = net
        .service("x")
        .call(&address, "", "cbr:max_pcr=64kbps")
        .unwrap_err();
    assert_eq!(refused.cause(), Some(REJECTED));
    let inspect = net.runtime.ok(&["inspect", "y", "sockets", "-o", "json"]);
    assert!(inspect.contains("\"listening\""), "{inspect}");
    // A program that is killed leaves nothing.
    server.kill().unwrap();
    server.wait().unwrap();
    until("the listener has gone", || {
        let gone = net.service("x").call(&address, "", "ubr").unwrap_err();
        gone.cause() == Some(88)
    });
    net.runtime.ok(&["down"]);
}

/// The doors of hosts leave most descriptors to others, and what is left out is told.
#[test]
fn a_lab_with_more_hosts_than_descriptors_says_which_have_no_service() {
    let mut lab = String::from(
        "switches: { s: {} }\nlane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }\nhosts:\n",
    );
    for n in 1..=30 {
        lab += &format!("  h{n}: {{ on: s, elan: a, ip: 10.1.0.{n} }}\n");
    }
    let runtime = Runtime::new("doors");
    let file = lab_file("doors.atm.yml", &lab);
    let script = "ulimit -n 80; exec \"$0\" up --embedded -d \"$1\"";
    let up = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_aerostat"), &file])
        .env("XDG_RUNTIME_DIR", &runtime.directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&up.stdout) + String::from_utf8_lossy(&up.stderr);
    assert!(up.status.success(), "{told}");
    assert!(
        told.contains("10 hosts have no socket service for programs: 20 have one"),
        "{told}"
    );
    let first = runtime.directory.join("aerostat/doors/atm/h1.sock");
    assert!(Service::connect(&first).unwrap().listen("").is_ok());
    runtime.ok(&["down"]);
}

#[test]
fn a_call_that_does_not_wait_takes_pdus_once_its_result_is_known() {
    let net = Net::up("nowait");
    let (x, y) = (net.service("x"), net.service("y"));
    let listener = y.listen("").unwrap();
    let address = listener.address().unwrap();
    let socket = x.socket().unwrap();
    socket.set_nonblocking(true).unwrap();
    let is_full = |socket: &Socket| {
        let sent = socket.send(b"first");
        sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    // While the other end has not answered, nothing can be written.
    let connecting = socket
        .start_connect(&Call {
            qos: "ubr:sdu=100",
            ..Call::to(&address)
        })
        .unwrap();
    let offer = listener.offer().unwrap();
    assert!(is_full(&socket) && !connecting.is_done());
    let other = offer.accept().unwrap();
    until("room", || !is_full(&socket));
    assert!(connecting.finish().unwrap().contains("sdu=100"));
    let mut pdu = [0; 100];
    assert_eq!(other.recv(&mut pdu).unwrap(), 5);
    let status = socket.status().unwrap();
    assert_eq!((status.sent, status.refused), ((1, 5), 0));
    // A refusal.
    let socket = x.socket().unwrap();
    let connecting = socket
        .start_connect(&Call {
            qos: "ubr",
            ..Call::to(&address)
        })
        .unwrap();
    listener.offer().unwrap().refuse(REJECTED).unwrap();
    let refused = connecting.finish().unwrap_err();
    assert_eq!(refused.cause(), Some(REJECTED));
    assert_eq!(socket.status().unwrap().refused, 0);
    // A call that cannot be tried fails at once, and its socket is as it was.
    let socket = x.socket().unwrap();
    let failed = socket
        .start_connect(&Call {
            qos: "nonsense",
            ..Call::to(&address)
        })
        .unwrap_err();
    assert_eq!(failed.field(), Some(("qos", 0)));
    assert_eq!(socket.status().unwrap().state, "idle");
    // A program that ends meanwhile takes its call along.
    let connecting = socket
        .start_connect(&Call {
            qos: "ubr",
            ..Call::to(&address)
        })
        .unwrap();
    let offer = listener.offer().unwrap();
    drop((connecting, socket));
    until("the end of the call", || {
        let shown = net.runtime.ok(&["inspect", "x", "sockets", "-o", "jsonl"]);
        !shown.contains("connecting")
    });
    assert!(offer.accept().is_err());
    net.runtime.ok(&["down"]);
}
