//! Links of the hosts: queues in memory, or ATM over TCP.

use aerostat_live::outside::atmtcp::{self, Message, Parser};
use aerostat_node::atm::{CellRun, Pdu};
use aerostat_wire::Vc;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// A host's end of a link.
pub(super) trait Line: Send {
    /// Sends an SDU, or keeps it until [`Self::wait`].
    fn send(&mut self, vc: Vc, sdu: Vec<u8>);
    /// Waits for SDUs, at most so long; they are appended.
    fn wait(&mut self, at_most: Duration, came: &mut Vec<(Vc, Vec<u8>)>);
}

/// A host's end of a link in memory.
pub(super) struct Memory {
    port: u16,
    out: Sender<(u16, CellRun)>,
    back: Receiver<CellRun>,
}

/// The switch's ends of the links in memory: what comes from all hosts, and a way to each.
pub(super) struct Ports {
    pub(super) back: Receiver<(u16, CellRun)>,
    pub(super) out: [Sender<CellRun>; 2],
}

/// Two links to a switch.
pub(super) fn memory() -> ([Memory; 2], Ports) {
    let (out, from_hosts) = channel();
    let (to_caller, caller_back) = channel();
    let (to_called, called_back) = channel();
    let hosts = [(0, out.clone(), caller_back), (1, out, called_back)];
    let hosts = hosts.map(|(port, out, back)| Memory { port, out, back });
    let ports = Ports {
        back: from_hosts,
        out: [to_caller, to_called],
    };
    (hosts, ports)
}

impl Line for Memory {
    fn send(&mut self, vc: Vc, sdu: Vec<u8>) {
        // The switch goes last: its end is there.
        let _ = self
            .out
            .send((self.port, CellRun::whole(Pdu::new(sdu), vc)));
    }
    fn wait(&mut self, at_most: Duration, came: &mut Vec<(Vc, Vec<u8>)>) {
        let first = self.back.recv_timeout(at_most).ok();
        for run in first.into_iter().chain(self.back.try_iter()) {
            if let Some(pdu) = run.whole_pdu() {
                came.push((run.vc, pdu.sdu().to_vec()));
            }
        }
    }
}

/// Waits for what hosts send to the switch; false if there are no hosts any more.
pub(super) fn from_hosts(
    back: &Receiver<(u16, CellRun)>,
    at_most: Duration,
    came: &mut Vec<(u16, CellRun)>,
) -> bool {
    match back.recv_timeout(at_most) {
        Ok(first) => {
            came.push(first);
            came.extend(back.try_iter());
            true
        }
        Err(RecvTimeoutError::Timeout) => true,
        Err(RecvTimeoutError::Disconnected) => false,
    }
}

/// ATM over TCP. A thread reads, as the time-out of a socket counts in ticks of the kernel.
pub(super) struct Tcp {
    stream: TcpStream,
    back: Receiver<(Vc, Vec<u8>)>,
    unsent: Vec<u8>,
}

impl Tcp {
    pub(super) fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        let (out, back) = channel();
        let reader = stream.try_clone()?;
        thread::spawn(move || read(reader, &out));
        Ok(Self {
            stream,
            back,
            unsent: Vec::new(),
        })
    }
}

/// Reads until the lab, or the run, ends.
fn read(mut stream: TcpStream, out: &Sender<(Vc, Vec<u8>)>) {
    let (mut parser, mut octets) = (Parser::default(), vec![0; 64 * 1024]);
    while let Ok(n @ 1..) = stream.read(&mut octets) {
        parser.push(&octets[..n]);
        while let Some(message) = parser.poll().expect("a stream of ATM over TCP") {
            if let Message::Sdu(vc, sdu) = message
                && out.send((vc, sdu)).is_err()
            {
                return;
            }
        }
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Line for Tcp {
    fn send(&mut self, vc: Vc, sdu: Vec<u8>) {
        atmtcp::encode(&mut self.unsent, vc, &sdu);
    }
    fn wait(&mut self, at_most: Duration, came: &mut Vec<(Vc, Vec<u8>)>) {
        send_all(&mut self.stream, &mut self.unsent);
        match self.back.recv_timeout(at_most) {
            Ok(first) => came.push(first),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("the lab has closed the link"),
        }
        came.extend(self.back.try_iter());
    }
}

/// Sends what waits.
fn send_all(stream: &mut TcpStream, unsent: &mut Vec<u8>) {
    stream
        .write_all(unsent)
        .expect("the lab takes what we send");
    unsent.clear();
}

/// ATM over TCP without a thread: the time-out of the socket counts in ticks of the kernel, which does not matter to
/// who waits for an answer.
pub(super) struct Direct {
    stream: TcpStream,
    parser: Parser,
    octets: Vec<u8>,
    unsent: Vec<u8>,
}

impl Direct {
    pub(super) fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            parser: Parser::default(),
            octets: vec![0; 64 * 1024],
            unsent: Vec::new(),
        })
    }
}

impl Line for Direct {
    fn send(&mut self, vc: Vc, sdu: Vec<u8>) {
        atmtcp::encode(&mut self.unsent, vc, &sdu);
    }
    fn wait(&mut self, at_most: Duration, came: &mut Vec<(Vc, Vec<u8>)>) {
        send_all(&mut self.stream, &mut self.unsent);
        if at_most.is_zero() {
            return;
        }
        self.stream
            .set_read_timeout(Some(at_most))
            .expect("a time above 0");
        match self.stream.read(&mut self.octets) {
            Ok(0) => panic!("the lab has closed the link"),
            Ok(n) => self.parser.push(&self.octets[..n]),
            Err(_) => return,
        }
        while let Some(message) = self.parser.poll().expect("a stream of ATM over TCP") {
            if let Message::Sdu(vc, sdu) = message {
                came.push((vc, sdu));
            }
        }
    }
}
