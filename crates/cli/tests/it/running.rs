//! Clients of a running lab, tested with a lab that is only a control socket.

use crate::command;
use aerostat_live::control::{Answer, Reply, Request, listen, serve};
use aerostat_node::inspect::StateKind;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

/// A runtime directory with labs that answer as the tests need.
struct Labs {
    runtime: PathBuf,
}

impl Labs {
    fn new(test: &str) -> Self {
        let runtime = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&runtime);
        fs::create_dir_all(runtime.join("aerostat")).unwrap();
        Self { runtime }
    }
    fn start(&self, name: &str) {
        let directory = self.runtime.join("aerostat").join(name);
        fs::create_dir_all(&directory).unwrap();
        let state = json!({ "name": name, "pid": 7, "file": "x.atm.yml", "started": 0 });
        fs::write(directory.join("state.json"), state.to_string()).unwrap();
        let lock = File::create(directory.join("lock")).unwrap();
        lock.lock().unwrap();
        let (requests, _) = serve(listen(&directory.join("control.sock")).unwrap(), || {}).unwrap();
        std::thread::spawn(move || {
            for pending in requests {
                let stop = pending.request == Request::Stop;
                let _ = pending.reply.send(reply(&pending.request));
                if stop {
                    // The answer must be sent before the lab ends.
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    break;
                }
            }
            end(&directory, lock);
        });
    }
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output = command(args)
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
}

fn end(directory: &Path, lock: File) {
    let _ = fs::remove_dir_all(directory);
    drop(lock);
}

fn reply(request: &Request) -> Reply {
    match request {
        Request::Inspect { node, what } if *what == StateKind::Lec => {
            let node = node.as_deref().unwrap_or("urku");
            Reply::Answer(Answer::Ok(json!([{
                "node": node, "title": "lec0", "columns": ["elan", "lecid"], "rows": [["a", 3]]
            }])))
        }
        Request::Graph => Reply::Answer(Answer::error("it draws nothing", "")),
        // The request by which a client finds out whether the lab has a node of that name.
        Request::Inspect { node, what } if *what == StateKind::Lab => {
            Reply::Answer(match node.as_deref() {
                Some("nobody") => Answer::error("there is no node 'nobody'", "nodes: urku, sello"),
                _ => Answer::Ok(json!([])),
            })
        }
        Request::Inspect { what, .. } => {
            Reply::Answer(Answer::error(format!("no node has a {what}"), "try lec"))
        }
        Request::Why { node, address } => Reply::Answer(Answer::Ok(json!([{
            "node": node, "title": "why",
            "columns": ["destination", "role", "reason", "text", "left_s", "peer"],
            "rows": [[address, "client", "refused", "the server refused with code 12", 7, null]]
        }]))),
        Request::Proc { node, what } => Reply::Answer(Answer::Ok(match node {
            Some(node) => json!([{ "node": node, "text": format!("{what} of {node}\n") }]),
            None => json!([{ "node": "urku", "text": "A\n" }, { "node": "basso", "text": "B\n" }]),
        })),
        Request::Trace {
            links, data, story, ..
        } => {
            let (to, lines) = sync_channel(4);
            let message = json!({
                "time": 1.5, "link": links.join(" "), "from": "urku", "to": "s1", "vc": "0.5",
                "protocol": "q2931", "text": format!("SETUP cr 1 data {data}")
            });
            let event = json!({
                "time": 1.75, "node": "urku", "event": "lane.joined", "text": "joined ELAN a",
                "milestone": true, "fields": {}
            });
            to.send(format!("{message}\n").into_bytes()).unwrap();
            if *story {
                to.send(format!("{event}\n").into_bytes()).unwrap();
            }
            Reply::Stream(
                Answer::Ok(json!({ "links": links.len(), "width": 5 })),
                lines,
            )
        }
        Request::Events { .. } | Request::Stream { .. } => {
            let (to, chunks) = sync_channel(4);
            for (node, milestone) in [("urku", true), ("sello", false)] {
                let line = json!({
                    "time": 1.25, "node": node, "event": "lane.joined", "text": "joined ELAN a",
                    "milestone": milestone, "fields": {}
                });
                to.send(format!("{line}\n").into_bytes()).unwrap();
            }
            Reply::Stream(Answer::Ok(json!({})), chunks)
        }
        Request::Capture { links, .. } => {
            let (to, chunks) = sync_channel(4);
            // A pcapng block with a packet, correct in its length only.
            let mut text = format!("blocks of {}", links.join(" ")).into_bytes();
            text.resize(text.len().next_multiple_of(4), b'.');
            let length = (text.len() as u32 + 12).to_le_bytes();
            let block = [&6_u32.to_le_bytes()[..], &length, &text, &length].concat();
            to.send(block).unwrap();
            Reply::Stream(Answer::Ok(json!({})), chunks)
        }
        Request::PvcAdd { node, .. }
        | Request::PvcDel { node, .. }
        | Request::QosAdd { node, .. }
        | Request::QosDel { node, .. }
        | Request::Loopback { node, .. }
        | Request::LoopbackTime { node, .. }
        | Request::Exec { node } => {
            Reply::Answer(Answer::error(format!("{node} is no kernel host"), ""))
        }
        Request::Hosts
        | Request::Converge(_)
        | Request::Results
        | Request::Ways { .. }
        | Request::Link(_)
        | Request::ProgramStart { .. }
        | Request::ProgramReport { .. } => Reply::Answer(Answer::error("not here", "")),
        Request::Move { .. } => Reply::Answer(Answer::Ok(json!({ "plugged_ms": 7 }))),
        Request::Status | Request::Stop | Request::Fault { .. } => {
            Reply::Answer(Answer::Ok(json!({ "ready": true })))
        }
    }
}

#[test]
fn inspect_as_linux_shows_it() {
    let labs = Labs::new("proc");
    labs.start("campus");
    let (code, out, _) = labs.run(&["inspect", "urku", "mpc", "-o", "proc"]);
    assert_eq!((code, out.as_str()), (0, "mpc of urku\n"));
    let (_, out, _) = labs.run(&["inspect", "mpc", "-o", "proc"]);
    assert_eq!(out, "==> urku <==\nA\n==> basso <==\nB\n");
    let (code, _, err) = labs.run(&["inspect", "vc", "-o", "proc"]);
    assert_eq!(code, 2);
    assert!(err.contains("Linux has no file for 'vc'"), "{err}");
}

#[test]
fn inspect_in_every_form() {
    let labs = Labs::new("inspect");
    labs.start("campus");
    let (code, out, _) = labs.run(&["inspect", "lec"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "urku: lec0\nELAN  LECID\na         3\n")
    );
    let (_, out, _) = labs.run(&["inspect", "basso", "lec", "-o", "csv"]);
    assert_eq!(out, "node,table,elan,lecid\nbasso,lec0,a,3\n");
    let (_, out, _) = labs.run(&["inspect", "lec", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["schema"], "aerostat.inspect.lec.v1");
    assert_eq!(json["rows"][0]["lecid"], 3);
    let why = ["inspect", "urku", "nhrp", "--why", "10.2.0.20"];
    let (code, out, _) = labs.run(&why);
    let sentence = "the server refused with code 12";
    assert!(
        code == 0 && out.contains(sentence) && out.contains("10.2.0.20"),
        "{out}"
    );
    let (_, out, _) = labs.run(&[&why[..], &["-o", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["schema"], "aerostat.inspect.why.v1");
    assert_eq!(json["rows"][0]["reason"], "refused");
    for wrong in [&["inspect", "mpc"][..], &["inspect", "nhrp", "-o", "proc"]] {
        let (code, _, err) = labs.run(&[wrong, &["--why", "10.2.0.20"]].concat());
        assert!(
            code == 2 && err.contains("--why is for the tables of nhrp"),
            "{err}"
        );
    }
    let (code, out, err) = labs.run(&["inspect", "mpc"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no node has a mpc") && err.contains("hint: try lec"));
}

#[test]
fn events_trace_and_capture() {
    let labs = Labs::new("streams");
    labs.start("campus");
    let (code, out, _) = labs.run(&["events"]);
    assert_eq!((code, out.lines().count()), (0, 2));
    // The main steps are told, and on request all others.
    let (_, out, _) = labs.run(&["trace", "--story", "--no-follow"]);
    assert_eq!(
        out,
        "    1.250000  urku          joined ELAN a  [lane.joined]\n"
    );
    let all = ["trace", "--story", "--all"];
    let (_, out, _) = labs.run(&[&all[..], &["--node", "sello", "--no-follow"]].concat());
    assert_eq!(
        out,
        "    1.250000  sello         joined ELAN a  [lane.joined]\n"
    );
    let (_, out, _) = labs.run(&all);
    assert!(out.contains("urku") && out.contains("sello"));
    assert_eq!(labs.run(&["trace", "--all"]).0, 2);
    let (code, out, err) = labs.run(&["trace", "--story", "--node", "nobody", "--no-follow"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("no node 'nobody'"), "{err}");
    let (code, out, _) = labs.run(&["trace"]);
    assert_eq!(
        (code, out.as_str()),
        (
            0,
            "    1.500000   urku ──► s1     0.5     SETUP cr 1 data false\n    \
             1.750000  · urku: joined ELAN a\n"
        )
    );
    let (_, out, _) = labs.run(&["trace", "urku-s1", "--data", "-o", "jsonl"]);
    let message: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(message["link"], "urku-s1");
    assert_eq!(message["text"], "SETUP cr 1 data true");
    // Only the messages and events of the node are shown.
    let (_, out, _) = labs.run(&["trace", "--node", "sello"]);
    assert_eq!(out, "");
    let (_, out, _) = labs.run(&["trace", "--node", "s1"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    let (code, out, err) = labs.run(&["capture", "urku-s1", "s1-s2", "-w", "-"]);
    assert!(
        code == 0 && out.contains("blocks of urku-s1 s1-s2"),
        "{out}"
    );
    assert!(err.contains("1 PDU, 36 octets; the lab has ended"), "{err}");
    let (code, _, err) = labs.run(&["exec", "urku", "--", "true"]);
    assert_eq!(code, 1);
    assert!(err.contains("urku is no kernel host"));
}

#[test]
fn choosing_and_stopping() {
    let labs = Labs::new("choose");
    labs.start("one");
    labs.start("two");
    let (code, _, err) = labs.run(&["inspect", "lec"]);
    assert_eq!(code, 2);
    assert!(err.contains("--lab: one, two"), "{err}");
    assert_eq!(labs.run(&["inspect", "lec", "--lab", "two"]).0, 0);
    let (code, _, err) = labs.run(&["down", "--lab", "three"]);
    assert_eq!(code, 4);
    assert!(err.contains("running: one, two"), "{err}");
    let (_, out, _) = labs.run(&["ls", "-o", "csv"]);
    assert!(
        out.starts_with("lab,pid,file,up_s,state,version\none,7,x.atm.yml,"),
        "{out}"
    );
    let (code, _, err) = labs.run(&["down", "--lab", "one"]);
    assert_eq!((code, err.as_str()), (0, "lab 'one' stopped\n"));
    assert_eq!(labs.run(&["down"]).0, 0);
    assert_eq!(labs.run(&["down"]).0, 4);
}

/// A directory for running labs that cannot be used is told where one looks for labs.
#[test]
fn a_runtime_directory_that_is_passed_over_is_named() {
    for (given, told) in [("/nowhere/at/all", true), ("/dev/null", true), ("", false)] {
        for words in [&["ls"][..], &["inspect", "lab"]] {
            let output = command(words)
                .env("XDG_RUNTIME_DIR", given)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            // Labs of others may run in the directory that is used instead.
            if text.contains("no lab is running") {
                let says =
                    format!("XDG_RUNTIME_DIR is '{given}', which is no directory of this user");
                assert_eq!(text.contains(&says), told, "{words:?} {given}: {text}");
            }
        }
    }
}
