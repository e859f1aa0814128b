//! A server that looks at who calls, with which contract, and with which words before it answers; and what Wireshark
//! sees of it.

use crate::live::{Runtime, signal, wait_for, wait_for_end};
use crate::root;
use crate::wireshark::{malformed_filter, tshark};
use aerostat_socket::{Call, REJECTED, Service, Socket};
use std::process::{Command, Stdio};
use std::thread;

const LAB: &str = "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s, elan: a, ip: 10.1.0.10, uni: 4.0 }
  y: { on: s, elan: a, ip: 10.1.0.20, uni: 4.0 }
  z: { on: s, elan: a, ip: 10.1.0.30, uni: 4.0 }
";

/// Resource unavailable, unspecified. Source: Q.850.
const TOO_MUCH: u8 = 47;
const PASSWORD: &[u8] = b"swordfish";

/// Accepts best effort of host x with the right word; everything else is refused with the reason.
fn server(listener: &aerostat_socket::Listener, friend: &str, calls: usize) -> Vec<Socket> {
    let mut open = Vec::new();
    for _ in 0..calls {
        let offer = listener.offer().unwrap();
        if offer.caller()[..38] != friend[..38] {
            offer.refuse_with(REJECTED, b"you are not x").unwrap();
        } else if !offer.qos().starts_with("ubr") {
            offer.refuse_with(TOO_MUCH, b"best effort only").unwrap();
        } else if offer.user_data() != PASSWORD {
            offer.refuse_with(REJECTED, b"wrong word").unwrap();
        } else {
            open.push(offer.accept_with("ubr:sdu=100", b"welcome").unwrap());
        }
    }
    open
}

#[test]
fn a_server_refuses_by_caller_by_contract_and_by_user_data() {
    let lab = Runtime::embedded("vetted", LAB);
    let at = |host: &str| {
        lab.directory
            .join(format!("aerostat/vetted/atm/{host}.sock"))
    };
    let service = |host: &str| Service::connect(&at(host)).unwrap();
    let recording = lab.directory.join("x.pcapng");
    let words = ["capture", "x-s", "-w", recording.to_str().unwrap()];
    let mut capture = lab.command(&words).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the recording", || recording.exists());

    let (x, z) = (service("x"), service("z"));
    let listener = service("y").listen("").unwrap();
    let address = listener.address().unwrap();
    let friend = x.address().to_owned();
    let serves = thread::spawn(move || server(&listener, &friend, 5));
    let call = |from: &Service, qos: &str, says: &[u8]| {
        let socket = from.socket().unwrap();
        let call = Call {
            qos,
            user_data: says,
            ..Call::to(&address)
        };
        socket.make(&call).map(|agreed| (socket, agreed))
    };
    let cases = [
        (
            "the caller is not x",
            &z,
            "ubr",
            PASSWORD,
            REJECTED,
            "you are not x",
        ),
        (
            "the contract",
            &x,
            "cbr:max_pcr=1Mbps",
            PASSWORD,
            TOO_MUCH,
            "best effort only",
        ),
        (
            "the user data",
            &x,
            "ubr",
            b"sesame".as_slice(),
            REJECTED,
            "wrong word",
        ),
    ];
    for (why, from, qos, says, cause, reason) in cases {
        let refused = call(from, qos, says).map(drop).unwrap_err();
        let said = String::from_utf8_lossy(refused.user_data()).into_owned();
        println!(
            "refused for {why}: {refused}, errno {}, \"{said}\"",
            refused.errno()
        );
        assert_eq!((refused.cause(), &*said), (Some(cause), reason));
    }
    let (socket, agreed) = call(&x, "ubr:sdu=9180", PASSWORD).unwrap();
    println!(
        "accepted: {agreed}, {:?}",
        String::from_utf8_lossy(&socket.user_data().unwrap())
    );
    assert_eq!(
        (&*agreed, &*socket.user_data().unwrap()),
        ("ubr,aal5:sdu=100", &b"welcome"[..])
    );
    // The same in Python, whose caller is refused for its word.
    let python = "
import sys
sys.path.insert(0, sys.argv[1])
from aerostat_socket import Service, AtmError
service = Service(sys.argv[2])
try: service.call(sys.argv[3], user_data=b'please')
except AtmError as error: print(error.cause, error.user_data.decode())
";
    let out = Command::new("python3")
        .args(["-c", python])
        .arg(root().join("python"))
        .arg(at("x"))
        .arg(&address)
        .output();
    match out {
        Ok(out) => {
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            assert_eq!(
                text.trim(),
                "21 wrong word",
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
        }
        Err(error) => {
            eprintln!("SKIPPED in part: python3: {error}");
            call(&x, "ubr", b"please").map(drop).unwrap_err();
        }
    }
    let open = serves.join().unwrap();
    let callee = open.first().unwrap();
    assert_eq!(callee.user_data().unwrap(), PASSWORD);
    // The end has a word, too.
    callee.release_with(16, b"closing time").unwrap();
    assert_eq!(socket.recv(&mut [0]).unwrap(), 0);
    assert_eq!(socket.user_data().unwrap(), b"closing time");
    let long = call(&x, "ubr", &[0; 129]).map(drop).unwrap_err();
    assert!(
        long.to_string().contains("129 octets of user data"),
        "{long}"
    );

    signal(&capture.id().to_string(), "INT");
    assert_eq!(wait_for_end(&mut capture), 0);
    seen_by_wireshark(&recording);
    lab.ok(&["down"]);
}

/// Wireshark finds the element 0x7E in SETUP, CONNECT and RELEASE, and nothing malformed. Version 4.0 has no name for
/// it.
fn seen_by_wireshark(recording: &std::path::Path) {
    let Some(malformed) = tshark(recording, &["-Y", &malformed_filter()]) else {
        return;
    };
    assert!(malformed.is_empty(), "{malformed:#?}");
    let shown = tshark(recording, &["-Y", "q2931", "-V"]).unwrap_or_default();
    let mut found = Vec::new();
    let mut message = String::new();
    for line in shown.iter().map(|line| line.trim()) {
        if let Some(kind) = line.strip_prefix("Message type: ") {
            message = kind.to_owned();
        } else if line.to_lowercase().contains("element (0x7e)") || line.starts_with("User-user") {
            found.push(message.clone());
        }
    }
    println!("Wireshark: user-user (0x7E) in {found:?}");
    for kind in ["SETUP", "CONNECT", "RELEASE"] {
        assert!(
            found.iter().any(|found| found.starts_with(kind)),
            "{kind}: {found:?}"
        );
    }
}
