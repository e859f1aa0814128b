//! A super frame of a kernel gives the same frames, counters and captures as its segments alone: where it stays a
//! train of PDUs, and where something cuts it.

use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::LinkId;
use aerostat_live::capture::Form;
use aerostat_live::world::{Output, World};
use aerostat_node::host::HostEvent;
use aerostat_node::offload::{SuperFrame, VnetHeader, complete};
use aerostat_proto::{Duration, Instant};
use std::sync::mpsc::Receiver;

/// Octets of Ethernet, IPv4 and TCP headers.
const HEADERS: usize = 14 + 20 + 20;
/// Octets of payload of a segment in an ELAN.
const SEGMENT: u16 = 1460;

const LANE: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 2.4Gbps, delay: 5us }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  a: { on: s1, elan: a, ip: 10.1.0.10, link: { rate: 10Gbps } }
  b: { on: s2, elan: a, ip: 10.1.0.20, link: { rate: 10Gbps } }
";

const MPOA: &str = "
mpoa: true
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 2.4Gbps, delay: 5us }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 }, kernel: false } }
hosts:
  a: { on: s1, elan: a, ip: 10.1.0.10, link: { rate: 10Gbps } }
  b: { on: s2, elan: b, ip: 10.2.0.20, link: { rate: 10Gbps } }
";

const CLIP: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 2.4Gbps, delay: 5us }]]
clip: { n: { subnet: 10.1.0.0/24, server: a } }
hosts:
  a: { on: s1, elan: n, ip: 10.1.0.10, link: { rate: 10Gbps } }
  b: { on: s2, elan: n, ip: 10.1.0.20, link: { rate: 10Gbps } }
";

pub(super) fn lab(text: &str) -> Lab {
    match aerostat_lab::parse("trains.atm.yml", text, &[]) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}"),
    }
}

/// A running network of kernel hosts, without kernels.
pub(super) struct Net<'a> {
    lab: &'a Lab,
    pub(super) world: World,
    pub(super) now: Instant,
    /// Frames that the kernels got: the number of the node, and a complete frame.
    pub(super) got: Vec<(usize, Vec<u8>)>,
    /// Super frames that the kernels got.
    trains: usize,
    /// Sequence number of the next super frame.
    sequence: u32,
}

impl<'a> Net<'a> {
    pub(super) fn start(lab: &'a Lab, builder: &'a Builder<'a>) -> Self {
        let mut net = Self {
            lab,
            world: World::new(builder, Instant::ZERO),
            now: Instant::ZERO,
            got: Vec::new(),
            trains: 0,
            sequence: 0xffff_0000,
        };
        net.world.start(builder, Instant::ZERO);
        net.run(Duration::from_secs(8));
        net
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.drain();
            match self.world.poll_timeout() {
                Some(next) if next <= end => self.now = next.max(self.now),
                _ => break,
            }
            while !self.world.step(self.now, 64) {}
        }
        self.now = end;
    }

    pub(super) fn drain(&mut self) {
        while let Some(output) = self.world.poll_output() {
            match output {
                Output::Host(node, HostEvent::Frame { itf, frame }) => {
                    let own = self.lab.node(node).lecs()[itf].mac.0;
                    if let Some(reply) = arp_reply(&frame, own) {
                        self.world.kernel_frame(node, itf, reply, self.now);
                    }
                    self.got.push((node.0, frame));
                }
                Output::Host(node, HostEvent::Train { frame, .. }) => {
                    // What a kernel would do with the frame.
                    let part = frame.frame().unwrap();
                    let vnet = VnetHeader::decode(&part.vnet).unwrap();
                    let whole = [&part.headers[..], part.payload].concat();
                    let frames = complete(&vnet, &whole).unwrap();
                    self.trains += usize::from(frames.len() > 1);
                    self.got
                        .extend(frames.into_iter().map(|frame| (node.0, frame)));
                }
                Output::Host(..) | Output::Finished(..) | Output::Outside(..) => {}
                Output::Trace(..) => {}
            }
        }
    }

    /// Hands over TCP payload from `a` to this MAC address and IP address: as a super frame, or segment by segment.
    pub(super) fn send(
        &mut self,
        to: ([u8; 6], [u8; 4]),
        (octets, size): (usize, u16),
        whole: bool,
    ) {
        let a = self.lab.find("a").unwrap();
        let mac = self.lab.node(a).lecs()[0].mac.0;
        let header = headers_of(mac, to, self.sequence, octets);
        self.sequence = self.sequence.wrapping_add(octets as u32);
        let payload = (0..octets).map(|n| (n * 7 % 251) as u8);
        let frame: Vec<u8> = header.into_iter().chain(payload).collect();
        let vnet = VnetHeader {
            needs_csum: true,
            gso_type: aerostat_node::offload::GsoType::TcpV4,
            gso_size: size,
            csum_start: 34,
            csum_offset: 16,
            hdr_len: HEADERS as u16,
        };
        if whole {
            let room = [vec![0; 32], frame].concat();
            let frame = SuperFrame::new(&vnet, room, 32).unwrap();
            self.world.kernel_super_frame(a, 0, frame, self.now);
        } else {
            for frame in complete(&vnet, &frame).unwrap() {
                self.world.kernel_frame(a, 0, frame, self.now);
            }
        }
    }

    /// A capture of the link `index`.
    fn capture(&mut self, index: usize, form: Form) -> Receiver<Vec<u8>> {
        let links = [LinkId(index)];
        self.world
            .captures
            .start(self.lab, &links, form, 0)
            .unwrap()
    }

    /// All counters that do not depend on how long a queue was.
    fn counters(&self) -> Vec<String> {
        let mut all = Vec::new();
        for link in 0..self.lab.links.len() {
            all.push(format!("{:?}", self.world.counters_of(LinkId(link))));
        }
        for (_, name, node) in self.world.nodes() {
            let node = node.unwrap();
            for what in ["vc", "port", "lec", "mpc", "qos", "atmarp", "atmdiag"] {
                for table in node
                    .inspect(what.parse().expect("a kind"), self.now)
                    .unwrap_or_default()
                {
                    all.push(format!("{name} {what} {table:?}"));
                }
            }
        }
        all
    }
}

/// The kernel's answer to an ARP request; `None` if the frame is something else.
fn arp_reply(frame: &[u8], own: [u8; 6]) -> Option<Vec<u8>> {
    let (header, request) = frame.split_at_checked(14)?;
    let asks = header[12..] == [8, 6] && request[6..8] == [0, 1];
    let (asker, wanted) = (&request[8..18], &request[24..28]);
    let kind = [0, 1, 8, 0, 6, 4, 0, 2];
    let parts = [&asker[..6], &own, &[8, 6], &kind, &own, wanted, asker];
    asks.then(|| parts.concat())
}

/// Ethernet, IPv4 and TCP headers; the transport checksum is that of the pseudo header.
fn headers_of(
    from: [u8; 6],
    (to, ip): ([u8; 6], [u8; 4]),
    sequence: u32,
    octets: usize,
) -> Vec<u8> {
    let total = (HEADERS - 14 + octets) as u16;
    let mut frame = [&to[..], &from, &[8, 0]].concat();
    let mut ipv4 = vec![0x45, 0];
    ipv4.extend(total.to_be_bytes());
    ipv4.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 10]);
    ipv4.extend(ip);
    let words = ipv4
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    ipv4[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame.extend(ipv4);
    frame.extend([0x9c, 0x40, 0x13, 0x89]);
    frame.extend(sequence.to_be_bytes());
    // ACK, PSH and CWR.
    frame.extend([0, 0, 0, 7, 0x50, 0x98, 1, 0, 0, 0, 0, 0]);
    frame
}

/// MAC address of a host's interface.
pub(super) fn mac(lab: &Lab, name: &str) -> [u8; 6] {
    lab.node(lab.find(name).unwrap()).lecs()[0].mac.0
}

/// Traces of a transfer: frames of the kernels, counters, and the packets in a capture of the link of `a`.
struct Left {
    got: Vec<(usize, Vec<u8>)>,
    counters: Vec<String>,
    captured: Vec<Vec<u8>>,
    trains: usize,
}

/// Sends 30 super frames of growing size to `b`, or their segments, after some single frames that open the path.
fn transfer(text: &str, to: impl Fn(&Lab) -> ([u8; 6], [u8; 4]), size: u16, whole: bool) -> Left {
    let lab = lab(text);
    let builder = Builder::new(&lab, 7, Flavour::Kernel);
    let mut net = Net::start(&lab, &builder);
    let to = to(&lab);
    for _ in 0..40 {
        net.send(to, (100, size), false);
        net.run(Duration::from_millis(50));
    }
    let link = (0..lab.links.len()).find(|link| {
        let ends = lab.link(LinkId(*link)).ends;
        ends.iter().any(|end| lab.node(end.node).name == "a")
    });
    let chunks = net.capture(link.unwrap(), Form::default());
    let mut file = Vec::new();
    for n in 1..=30 {
        net.send(to, (n * 2100, size), whole);
        net.run(Duration::from_millis(1));
        file.extend(chunks.try_iter().flatten());
    }
    net.run(Duration::from_millis(200));
    file.extend(chunks.try_iter().flatten());
    assert_eq!(net.world.captures.dropped(), 0);
    Left {
        counters: net.counters(),
        captured: sdus(&file),
        got: net.got,
        trains: net.trains,
    }
}

/// The octets of each packet of a pcapng file, without their times.
fn sdus(file: &[u8]) -> Vec<Vec<u8>> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut seen) = (0, Vec::new());
    while at < file.len() {
        let octets = word(at + 20) as usize;
        if word(at) == 6 {
            seen.push(file[at + 28..at + 28 + octets].to_vec());
        }
        at += word(at + 4) as usize;
    }
    seen
}

/// The same transfer with and without trains.
fn both(text: &str, to: impl Fn(&Lab) -> ([u8; 6], [u8; 4]), size: u16) -> [Left; 2] {
    [true, false].map(|whole| transfer(text, &to, size, whole))
}

/// The node and the frame without the padding of LAN emulation, which no kernel reads.
fn unpadded((node, frame): &(usize, Vec<u8>)) -> (usize, Vec<u8>) {
    let mut frame = frame.clone();
    if frame[12..14] == [8, 0] {
        frame.truncate(14 + usize::from(u16::from_be_bytes([frame[16], frame[17]])));
    }
    (*node, frame)
}

fn same([trains, singles]: &[Left; 2]) {
    assert_eq!(trains.got.len(), singles.got.len(), "frames");
    let unpadded = |left: &Left| left.got.iter().map(unpadded).collect::<Vec<_>>();
    assert!(unpadded(trains) == unpadded(singles), "the same frames");
    for (with, without) in trains.counters.iter().zip(&singles.counters) {
        assert_eq!(with, without);
    }
    assert_eq!(trains.captured.len(), singles.captured.len(), "packets");
    for sent in [true, false] {
        // The first octet of a packet has its direction.
        let way = |left: &Left| {
            let all = left.captured.iter().cloned();
            all.filter(|sdu| (sdu[0] >= 0x80) == sent)
                .collect::<Vec<_>>()
        };
        assert!(way(trains) == way(singles), "the same packets, {sent}");
    }
    assert_eq!(singles.trains, 0);
}

#[test]
fn a_transfer_over_lan_emulation_is_the_same_with_trains() {
    let left = both(LANE, |lab| (mac(lab, "b"), [10, 1, 0, 20]), SEGMENT);
    same(&left);
    assert!(left[0].trains >= 28, "{} super frames", left[0].trains);
    assert!(left[0].captured.len() > 30 * 20);
}

#[test]
fn a_transfer_over_a_shortcut_is_the_same_with_trains() {
    let left = both(MPOA, |lab| (mac(lab, "r"), [10, 2, 0, 20]), SEGMENT);
    same(&left);
    assert!(left[0].trains >= 28, "{} super frames", left[0].trains);
    let node = left[0].got.last().unwrap();
    assert_eq!(node.1[22], 63, "the shortcut is one hop");
}

#[test]
fn a_transfer_over_classical_ip_is_the_same_with_trains() {
    let to = ([2, 0, 10, 1, 0, 20], [10, 1, 0, 20]);
    let text = CLIP
        .replace("2.4Gbps", "40Gbps")
        .replace("10Gbps", "40Gbps");
    let left = both(&text, |_| to, 9128);
    same(&left);
    assert!(left[0].trains >= 25, "{} super frames", left[0].trains);
}

/// Two of the transfers have a last segment of 2 and of 4 octets, which is shorter than LAN emulation allows.
#[test]
fn short_segments_are_padded_as_without_trains() {
    let left = both(LANE, |lab| (mac(lab, "b"), [10, 1, 0, 20]), 1049);
    same(&left);
    // A pseudo header of four octets is in front of each SDU.
    let padded = left[0].captured.iter().filter(|sdu| sdu.len() == 4 + 62);
    assert!(padded.count() >= 2 && left[0].trains > 0);
}

/// Both draw the same losses, since each PDU crosses the line alone.
#[test]
fn a_lossy_link_loses_the_same_pdus_of_trains() {
    let text = LANE.replace("delay: 5us", "delay: 5us, loss: 0.0005");
    let left = both(&text, |lab| (mac(lab, "b"), [10, 1, 0, 20]), SEGMENT);
    same(&left);
    assert!(left[0].trains == 0 && left[0].got.len() > 400);
}

#[test]
fn a_train_to_an_embedded_host_arrives_as_frames() {
    let text = LANE.replace("ip: 10.1.0.20,", "ip: 10.1.0.20, kernel: false,");
    let left = both(&text, |lab| (mac(lab, "b"), [10, 1, 0, 20]), SEGMENT);
    same(&left);
    assert!(left[0].trains == 0 && left[0].captured.len() > 30 * 20);
}

#[test]
fn a_slow_link_sends_the_pdus_of_a_train_one_by_one_and_a_full_queue_takes_what_fits() {
    let text = LANE.replace("2.4Gbps", "oc3");
    let left = both(&text, |lab| (mac(lab, "b"), [10, 1, 0, 20]), SEGMENT);
    assert_eq!(left[0].trains, 0);
    assert_eq!(left[0].captured.len(), left[1].captured.len());
    let [trains, singles] = [&left[0].got, &left[1].got].map(Vec::len);
    assert!(singles < left[1].captured.len(), "the queue was full");
    assert!(trains * 10 >= singles * 9, "{trains} frames, not {singles}");
}
