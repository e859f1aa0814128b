//! The boundary between the two halves of ILMI: frames, and both halves behind them, with a peer that may forge.
//!
//! One end of the link has its daemon in a process of its own, whose frames are damaged, forged, lost or in a wrong
//! order; the other end is sound, but SDUs on the link are forged, too. Bit 7 of the first octet chooses the end.
//! Results stay within the limits and belong to the end. Nothing is left when the line is down and the process is gone.

use crate::feed::Feed;
use aerostat_proto::ilmi::split::{FromIlmid, ToIlmid};
use aerostat_proto::ilmi::{Channel, ChannelInput, ChannelOutput, Config, Ilmid, Limits, Side};
use aerostat_proto::split::codec::Message;
use aerostat_proto::split::{
    FRAME_MAX, FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput, Signal,
    ToDaemon,
};
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_wire::ilmi::{Binding, Kind, Message as Ilmi, Pdu, Request, Value, mib};
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};

/// A frame for the daemon.
pub type To = Numbered<ToDaemon<ToIlmid>>;
/// A frame of the daemon.
pub type From = Numbered<FromDaemon<FromIlmid>>;

const LIMITS: Limits = Limits {
    prefixes: 3,
    addresses: 4,
    services: 2,
};
const PREFIX: [u8; 13] = [0x47; 13];
const ESI: MacAddr = MacAddr([0, 0x20, 0xea, 0, 0, 0xb0]);

fn config(side: Side) -> Config {
    let system = MacAddr([2, 0, 0, 0, 0, u8::from(side == Side::Network)]);
    let mut config = Config::new(side, system, Version::Uni40);
    config.limits = LIMITS;
    match side {
        Side::Network => {
            config.prefixes = vec![PREFIX];
            config.lecs = vec![AtmAddress::LECS];
        }
        Side::User => config.esis = vec![ESI],
    }
    config
}

/// An end whose daemon is elsewhere, and the other end, which is sound.
struct Link {
    side: Side,
    end: Channel,
    process: Option<Process<Ilmid>>,
    other: Channel,
    now: Instant,
    seen: Vec<Vec<u8>>,
    back: Vec<Vec<u8>>,
    /// SDUs of either end, to be damaged.
    sdus: Vec<Vec<u8>>,
}

impl Link {
    fn new(side: Side) -> Self {
        let other = match side {
            Side::Network => Side::User,
            Side::User => Side::Network,
        };
        Self {
            side,
            end: Channel::split(config(side)),
            process: None,
            other: Channel::new(config(other)),
            now: Instant::ZERO,
            seen: Vec::new(),
            back: Vec::new(),
            sdus: Vec::new(),
        }
    }
    fn end(&mut self, input: ChannelInput<'_>) {
        let _ = self.end.handle_input(input, self.now);
        self.drain();
    }
    fn other(&mut self, input: ChannelInput<'_>) {
        let _ = self.other.handle_input(input, self.now);
        self.drain();
    }
    fn process(&mut self, input: ProcessInput<ToIlmid>) {
        if let Some(process) = &mut self.process {
            let Ok(()) = process.handle_input(input, self.now);
        }
        self.drain();
    }
    fn comes(&mut self) {
        self.process = Some(Process::default());
        self.end(ChannelInput::Daemon(ProcessEvent::Came));
    }
    fn goes(&mut self) {
        self.process = None;
        self.end(ChannelInput::Daemon(ProcessEvent::Gone));
    }
    fn from_daemon(&mut self, frame: &[u8]) {
        crate::split::canonical::<From>(frame);
        match From::decode(frame) {
            Ok(frame) if frame.number == 0 => {
                self.end(ChannelInput::Daemon(ProcessEvent::Said(frame.message)));
            }
            Ok(_) => {}
            // As the driver does: the connection ends, and with it the daemon.
            Err(_) => self.goes(),
        }
    }
    fn to_daemon(&mut self, frame: &[u8]) {
        crate::split::canonical::<To>(frame);
        match To::decode(frame) {
            Ok(frame) => self.process(ProcessInput::Frame(frame)),
            Err(_) => self.process = None,
        }
    }
    fn note(notes: &mut Vec<Vec<u8>>, octets: &[u8]) {
        assert!(octets.len() <= FRAME_MAX);
        if notes.len() < 64 {
            notes.push(octets.to_vec());
        }
    }
    /// An output of one end, with the other end.
    fn output(&mut self, own: bool, output: ChannelOutput) {
        match output {
            ChannelOutput::Send(sdu) => {
                Self::note(&mut self.sdus, &sdu);
                let to = if own { &mut self.other } else { &mut self.end };
                let _ = to.handle_input(ChannelInput::Sdu(&sdu), self.now);
            }
            ChannelOutput::Claim { claim, .. } => {
                let (answer, refused) = (if own { &mut self.end } else { &mut self.other }, None);
                let done = answer.handle_input(ChannelInput::Claimed { claim, refused }, self.now);
                assert_eq!(done, Ok(()), "its own claim");
            }
            ChannelOutput::Daemon(message) => {
                let octets = Numbered { number: 0, message }.encode();
                let frame = To::decode(&octets).expect("own frames decode");
                Self::note(&mut self.seen, &octets);
                if let Some(process) = &mut self.process {
                    let Ok(()) = process.handle_input(ProcessInput::Frame(frame), self.now);
                }
            }
            ChannelOutput::Event(_) | ChannelOutput::Trace(_) => {}
        }
    }
    fn drain(&mut self) {
        for round in 0.. {
            assert!(round < 20_000, "they never stop talking");
            if let Some(output) = self.end.poll_output() {
                self.output(true, output);
            } else if let Some(output) = self.other.poll_output() {
                self.output(false, output);
            } else {
                match self.process.as_mut().and_then(Process::poll_output) {
                    None => return,
                    Some(ProcessOutput::Exit) => {
                        self.process = None;
                        let gone = ChannelInput::Daemon(ProcessEvent::Gone);
                        let _ = self.end.handle_input(gone, self.now);
                    }
                    Some(ProcessOutput::Frame(frame)) => {
                        let octets = frame.encode();
                        let frame = From::decode(&octets).expect("own frames decode");
                        Self::note(&mut self.back, &octets);
                        if frame.number == 0 {
                            let said = ProcessEvent::Said(frame.message);
                            let _ = self.end.handle_input(ChannelInput::Daemon(said), self.now);
                        }
                    }
                }
            }
        }
    }
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        for round in 0.. {
            assert!(round < 100_000, "timers without end");
            let process = self.process.as_ref().and_then(Machine::poll_timeout);
            let next = [self.end.poll_timeout(), self.other.poll_timeout(), process];
            let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= until) else {
                break;
            };
            self.now = at.max(self.now);
            self.end.handle_timeout(self.now);
            self.other.handle_timeout(self.now);
            if let Some(process) = &mut self.process {
                process.handle_timeout(self.now);
            }
            self.drain();
        }
        self.now = until;
    }
    fn holds(&self) {
        assert!(self.end.addresses().len() <= LIMITS.addresses);
        assert!(
            self.end
                .services()
                .is_none_or(|all| all.len() <= LIMITS.services)
        );
        for address in self.end.addresses() {
            match self.side {
                Side::Network => assert_eq!(address.prefix(), PREFIX),
                Side::User => assert_eq!(address.esi(), ESI),
            }
        }
    }
}

/// An octet string that was seen once, perhaps damaged, or octets of the input.
fn altered(feed: &mut Feed<'_>, seen: &[Vec<u8>]) -> Vec<u8> {
    let Some(mut octets) = seen.get(feed.below(64)).cloned() else {
        return feed.octets(120).to_vec();
    };
    feed.damage(&mut octets);
    octets
}

/// A request to register some addresses.
fn registration(feed: &mut Feed<'_>) -> Vec<u8> {
    let value = Value::Integer(i32::from(feed.u8() % 3) + 1);
    let bindings = (0..feed.below(6)).map(|_| {
        let esi = MacAddr([2, 0, 0, 0, 0, feed.u8()]);
        let name = mib::of_address(&mib::address_status(), mib::address(PREFIX, esi));
        Binding::new(name, value.clone())
    });
    let request = Request::new(Kind::Set, 7, bindings.collect());
    Ilmi(Pdu::Request(request)).encode()
}

fn step(feed: &mut Feed<'_>, link: &mut Link) {
    match feed.below(12) {
        0 | 1 => {
            let sdu = altered(feed, &link.sdus);
            link.end(ChannelInput::Sdu(&sdu));
        }
        2 => {
            let sdu = registration(feed);
            link.end(ChannelInput::Sdu(&sdu));
        }
        3 => {
            let frame = altered(feed, &link.seen);
            link.to_daemon(&frame);
        }
        4 | 5 => {
            let frame = altered(feed, &link.back);
            link.from_daemon(&frame);
        }
        6 => link.goes(),
        7 => {
            if link.process.is_none() {
                link.comes();
            }
        }
        8 => {
            let signal = feed.pick(&[Signal::Terminate, Signal::Reload]);
            link.process(ProcessInput::Signal(signal));
        }
        9 => {
            let (own, up) = (feed.coin(), feed.coin());
            match own {
                true => link.end(ChannelInput::Line(up)),
                false => link.other(ChannelInput::Line(up)),
            }
        }
        10 => link.wait(Duration::from_secs(u64::from(feed.u8()) / 4)),
        _ => link.wait(Duration::from_millis(u64::from(feed.u8()) * 8)),
    }
    link.holds();
}

/// Both ends come up, then the script.
pub fn script(feed: &mut Feed<'_>, network: bool) {
    let mut link = Link::new(if network { Side::Network } else { Side::User });
    link.comes();
    link.end(ChannelInput::Line(true));
    link.other(ChannelInput::Line(true));
    for _ in 0..100 {
        if feed.is_empty() {
            break;
        }
        step(feed, &mut link);
    }
    // A sound successor repairs what was forged.
    link.goes();
    link.comes();
    link.end(ChannelInput::Line(true));
    link.other(ChannelInput::Line(false));
    link.other(ChannelInput::Line(true));
    link.wait(Duration::from_secs(60));
    let own = mib::address(PREFIX, ESI);
    assert!(
        link.end.addresses().contains(&own),
        "{:?}",
        link.end.addresses()
    );
    link.goes();
    link.end(ChannelInput::Line(false));
    assert!(link.end.addresses().is_empty() && link.end.services().is_none());
    assert_eq!(link.end.poll_timeout(), None, "the daemon is elsewhere");
}
