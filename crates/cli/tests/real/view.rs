//! `aerostat view`: the server of a running lab's page, as a stranger, a flood and a slow reader find it.

use crate::lab_file;
use crate::live::{Runtime, signal, wait_for, wait_for_end};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  y: { on: s2, elan: a, ip: 10.1.0.11 }
traffic: [{ name: voice, from: x, to: y, kind: udp, rate: 200pps, size: 200, start: 4s }]
";

/// The server of a page.
struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    /// `/TOKEN/`.
    base: String,
}

impl Server {
    fn new(runtime: &Runtime, name: &str) -> Self {
        let mut child = runtime
            .command(&["view", name])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut address).unwrap();
        let rest = address.trim().strip_prefix("http://").expect("an address");
        let (host, base) = rest.split_once('/').unwrap();
        Self {
            child,
            host: host.to_owned(),
            base: format!("/{base}"),
        }
    }

    fn connect(&self) -> TcpStream {
        let address: SocketAddr = self.host.parse().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// Sends a request, whose head gets the `Host` of the server unless it has one; the connection is still open.
    fn send(&self, request: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut text = format!("{request} HTTP/1.1\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            text += &format!("Host: {}\r\n", self.host);
        }
        for header in headers {
            text += &format!("{header}\r\n");
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut stream = self.connect();
        let all = format!("{text}Connection: close\r\n\r\n{body}");
        stream.write_all(all.as_bytes()).unwrap();
        stream
    }

    /// Status and text of an answer.
    fn ask(&self, request: &str, headers: &[&str], body: &str) -> (u16, String) {
        answer_of(self.send(request, headers, body))
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {}{path}", self.base), &[], "")
    }

    fn wish(&self, wish: &str) -> (u16, Value) {
        let request = format!("POST {}do", self.base);
        let kind = "Content-Type: application/json";
        let (status, text) = self.ask(&request, &[kind], wish);
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    /// The lines of the page's stream.
    fn events(&self) -> Events {
        let request = format!("GET {}events", self.base);
        let mut lines = BufReader::new(self.send(&request, &[], ""));
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        assert!(first.starts_with("HTTP/1.1 200"), "{first}");
        Events(lines)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status_of(text: &str) -> u16 {
    let status = text.split(' ').nth(1);
    status.and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn answer_of(mut stream: TcpStream) -> (u16, String) {
    let mut octets = Vec::new();
    // A server that closes early may reset the connection behind its answer.
    let _ = stream.read_to_end(&mut octets);
    let text = String::from_utf8_lossy(&octets).into_owned();
    (status_of(&text), text)
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// Waits for a line of the lab, or the name of an event, that is wanted.
    fn until(&mut self, what: &str, mut wanted: impl FnMut(&str, &Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut event = String::new();
        loop {
            let mut line = String::new();
            let read = self
                .0
                .read_line(&mut line)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(read > 0 && Instant::now() < deadline, "{what}: {line}");
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix("event: ") {
                event = name.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                let value = serde_json::from_str(data).unwrap();
                if wanted(&event, &value) {
                    return value;
                }
            } else if line.is_empty() {
                event.clear();
            }
        }
    }
}

fn up(runtime: &Runtime, name: &str) -> String {
    let text = format!("name: {name}\n{LAB}");
    let file = lab_file(&format!("{name}.atm.yml"), &text);
    runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
    file
}

#[test]
fn who_has_no_token_or_comes_from_another_page_gets_a_status_and_nothing_else() {
    let runtime = Runtime::new("view-door");
    up(&runtime, "door");
    let server = Server::new(&runtime, "door");
    let base = server.base.clone();
    let page = format!("GET {base}");
    let act = format!("POST {base}do");
    let cut = r#"{"ask":"fault","action":"link_down","target":"s1-s2"}"#;
    let json = "Content-Type: application/json";
    let own = format!("Origin: http://{}", server.host);
    let port = server.host.split(':').nth(1).unwrap().to_owned();
    let rebound = format!("Host: lab.example:{port}");
    let local = format!("Host: localhost:{port}");
    let long = format!("{{\"ask\":\"{}\"}}", "x".repeat(20_000));
    let cases: &[(&str, &[&str], &str, u16)] = &[
        // No token, a wrong one, half of one.
        ("GET /", &[], "", 403),
        ("GET /0123456789abcdef0123456789abcdef/", &[], "", 403),
        (&page[..page.len() - 2], &[], "", 403),
        ("POST /do", &[json], cut, 403),
        // A wrong Host, and another name that leads to 127.0.0.1.
        (&page, &["Host: evil.example"], "", 421),
        (&page, &[&rebound], "", 421),
        (&act, &[&rebound, json], cut, 421),
        (&page, &["Host: 127.0.0.1"], "", 421),
        // A foreign Origin, and a browser that says that another site asks.
        (&act, &["Origin: http://evil.example", json], cut, 403),
        (&act, &["Origin: null", json], cut, 403),
        (&act, &["Sec-Fetch-Site: cross-site", json], cut, 403),
        (
            &format!("GET {base}events"),
            &["Sec-Fetch-Site: cross-site"],
            "",
            403,
        ),
        // A form of another page has one of these types.
        (&act, &["Content-Type: text/plain"], cut, 415),
        (
            &act,
            &["Content-Type: application/x-www-form-urlencoded"],
            cut,
            415,
        ),
        // Wrong use.
        (&act, &[json], "{", 400),
        (&act, &[json], r#"{"ask":"stop"}"#, 403),
        (&act, &[json], &long, 413),
        (
            &act,
            &[json],
            r#"{"ask":"fault","action":"link_down","target":"nowhere"}"#,
            409,
        ),
        (&format!("GET {base}do"), &[], "", 405),
        (&format!("POST {base}"), &[json], "{}", 405),
        (&format!("GET {base}other"), &[], "", 404),
        (&format!("GET {base}../../etc/passwd"), &[], "", 404),
        (&format!("GET {base}capture?link=nowhere"), &[], "", 409),
        (&format!("GET {base}capture?file=x"), &[], "", 400),
        (&page, &[&local], "", 200),
        (&page, &[&own], "", 200),
    ];
    for (request, headers, body, status) in cases {
        let (given, text) = server.ask(request, headers, body);
        assert_eq!(given, *status, "{request} {headers:?}: {text}");
    }
    // Nothing of all this has reached the lab.
    assert!(!runtime.ok(&["events"]).contains("fault.link-down"));
    let (_, text) = server.get("");
    for header in [
        "frame-ancestors 'none'",
        "no-referrer",
        "no-store",
        "nosniff",
    ] {
        assert!(text.contains(header), "{header}");
    }
    // A request in two hosts, an endless head, a wrong version: an answer or an end, and the server goes on.
    for broken in [
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "x\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut stream = server.connect();
        stream.write_all(broken.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!([0, 400].contains(&answer_of(stream).0), "{broken}");
    }
    let mut stream = server.connect();
    let endless = "x".repeat(1 << 20);
    let _ = stream.write_all(format!("GET {base} HTTP/1.1\r\nA: {endless}").as_bytes());
    assert!([0, 400, 431].contains(&answer_of(stream).0));
    assert_eq!(server.get("").0, 200);
    let elsewhere = runtime.run(&["view", "door", "--listen", "0.0.0.0:0"]);
    elsewhere.ends(2, "this machine alone");
    assert_eq!(runtime.run(&["view", "nowhere"]).code, 4);
}

#[test]
fn the_page_shows_and_changes_the_lab() {
    let runtime = Runtime::new("view-acts");
    up(&runtime, "acts");
    let server = Server::new(&runtime, "acts");
    let (status, text) = server.get("");
    assert_eq!(status, 200);
    assert!(
        text.contains("connect-src 'self'") && text.contains("\"is\":\"live\""),
        "{}",
        text.len()
    );
    let mut events = server.events();
    let head = events.until("the head", |_, line| line["is"] == "head");
    assert_eq!(
        (&head["lab"], &head["time"]),
        (&"acts".into(), &"real".into())
    );
    let now = events.until("the present", |_, line| line["is"] == "now");
    assert!(now["t"].as_u64().unwrap() > 0);
    let cut = r#"{"ask":"fault","action":"link_down","target":"s1-s2"}"#;
    let begin = Instant::now();
    assert_eq!(server.wish(cut).0, 200);
    let fault = events.until("the fault", |_, line| line["is"] == "fault");
    assert_eq!(fault["name"], "s1-s2");
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    let (status, answer) = server.wish(cut);
    assert_eq!(
        (status, &answer["error"]["message"]),
        (409, &"s1-s2 is down already".into())
    );
    let mend = cut.replace("down", "up");
    assert_eq!(server.wish(&mend).0, 200);
    events.until("its end", |_, line| {
        line["is"] == "fault" && line["gone"] == true
    });
    let set = r#"{"ask":"link","act":"set","link":"s1-s2","values":["loss=1%","delay=5ms"]}"#;
    assert_eq!(server.wish(set).0, 200);
    let story = events.until("the story", |_, line| line["event"] == "fault.link-change");
    assert!(story["text"].as_str().unwrap().contains("loss"), "{story}");
    assert_eq!(
        server
            .wish(r#"{"ask":"link","act":"reset","link":"s1-s2"}"#)
            .0,
        200
    );
    let wrong = r#"{"ask":"link","act":"set","link":"s1-s2","values":["loss=2"]}"#;
    assert_eq!(server.wish(wrong).0, 409);
    // A message on its way, with the samples of the interval.
    events.until("a sample", |_, line| line["is"] == "sample");
    events.until("a message", |_, line| line["is"] == "message");

    let mut capture = server.send(&format!("GET {}capture?link=s1-s2", server.base), &[], "");
    let mut head = Vec::new();
    wait_for("the head of a capture", || {
        let mut room = [0; 4096];
        let read = capture.read(&mut room).unwrap();
        head.extend_from_slice(&room[..read]);
        // A section header of pcapng.
        head.windows(4).any(|four| four == [0x0a, 0x0d, 0x0d, 0x0a])
    });
    let text = String::from_utf8_lossy(&head);
    assert!(text.contains("filename=\"acts-s1-s2.pcapng\""), "{text}");
    drop(capture);
    // The lab has neither the server's socket nor its requests: it ends as ever.
    drop(server);
    runtime.down_with_warnings();
    runtime.nothing_is_left();
}

/// Packets of the flow that were sent, received and lost, when all have arrived.
fn flow(runtime: &Runtime) -> [u64; 3] {
    let out = runtime.ok(&["events", "--initial-state", "--stats", "1s"]);
    let sample = out
        .lines()
        .rfind(|line| line.contains("\"is\":\"sample\""))
        .unwrap();
    let sample: Value = serde_json::from_str(sample).unwrap();
    [0, 1, 2].map(|n| sample["flows"]["voice"][n].as_u64().unwrap_or_default())
}

#[test]
fn a_thousand_connections_and_slow_readers_cost_the_traffic_nothing() {
    let runtime = Runtime::new("view-flood");
    up(&runtime, "flood");
    let server = Server::new(&runtime, "flood");
    wait_for("traffic", || flow(&runtime)[1] > 10);
    // Those that say nothing give way to those that come later.
    let silent: Vec<TcpStream> = (0..1000).map(|_| server.connect()).collect();
    assert_eq!(server.get("").0, 200);
    // Those without a token are told so, each of them.
    let strangers: Vec<u16> = (0..1000).map(|_| server.ask("GET /", &[], "").0).collect();
    assert!(
        strangers.iter().all(|status| *status == 403),
        "{strangers:?}"
    );
    drop(silent);
    // Those with the token follow, up to the limit; then there is no place.
    let request = format!("GET {}events", server.base);
    let mut statuses = Vec::new();
    let mut open = Vec::new();
    for _ in 0..200 {
        let mut stream = server.send(&request, &[], "");
        let mut head = [0; 12];
        let status = match stream.read_exact(&mut head) {
            Ok(()) => status_of(&String::from_utf8_lossy(&head)),
            Err(_) => 0,
        };
        statuses.push(status);
        open.push(stream);
    }
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((count(200), count(503)), (8, 192), "{statuses:?}");
    // Readers of one octet a second.
    let slow = Instant::now();
    while slow.elapsed() < Duration::from_secs(3) {
        for stream in &mut open {
            stream
                .set_read_timeout(Some(Duration::from_millis(1)))
                .unwrap();
            match stream.read(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => {}
            }
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    drop(open);
    wait_for("places", || server.get("events-not-there").0 == 404);
    // The traffic has lost nothing: what is not there yet is on its way.
    wait_for("the packets on their way", || {
        let [sent, received, lost] = flow(&runtime);
        assert_eq!(lost, 0);
        sent > 500 && sent - received < 5
    });
}

#[test]
fn a_lab_that_is_killed_is_missed_within_2_s_and_found_again() {
    let runtime = Runtime::new("view-kill");
    let file = up(&runtime, "kill");
    let mut server = Server::new(&runtime, "kill");
    let mut events = server.events();
    events.until("the present", |_, line| line["is"] == "now");
    let process = runtime.process();
    signal(&process, "KILL");
    let begin = Instant::now();
    let lost = events.until("the loss", |event, _| event == "lost");
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(lost["text"], "the lab kill has ended");
    // A page that is opened now says so, and loads itself again.
    wait_for("the socket to be gone", || server.get("").0 == 503);
    let (_, text) = server.get("");
    assert!(text.contains("http-equiv=\"refresh\""), "{text}");
    assert_eq!(
        server
            .wish(r#"{"ask":"fault","action":"link_up","target":"s1-s2"}"#)
            .0,
        503
    );
    runtime.run(&["down", "--all"]);
    runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
    let head = events.until("the head of the new lab", |_, line| line["is"] == "head");
    assert_eq!(head["lab"], "kill");
    events.until("its present", |_, line| line["is"] == "now");
    assert_eq!(server.get("").0, 200);
    // The server ends at a signal, and its readers with it.
    signal(&server.child.id().to_string(), "TERM");
    assert_eq!(wait_for_end(&mut server.child), 0);
    let mut rest = Vec::new();
    let _ = events.0.read_to_end(&mut rest);
}

/// A lab that becomes that of a changed file has not ended: its page begins with the new head.
#[test]
fn a_page_goes_on_when_its_lab_becomes_that_of_a_changed_file() {
    let runtime = Runtime::new("view-change");
    let file = up(&runtime, "change");
    let server = Server::new(&runtime, "change");
    let mut events = server.events();
    events.until("the present", |_, line| line["is"] == "now");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replacen(
            "hosts:",
            "hosts:\n  nina: { on: s1, elan: a, ip: 10.1.0.77 }",
            1,
        ),
    )
    .unwrap();
    runtime.ok(&["up", &file]);
    let mut heads = 0;
    events.until("the new host", |event, line| {
        assert_ne!(event, "lost", "{line}");
        heads += usize::from(line["is"] == "head");
        line["is"] == "node" && line["name"] == "nina"
    });
    assert_eq!(heads, 1);
}
