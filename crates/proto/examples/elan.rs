//! An emulated LAN in memory: two LANE clients, a LES and a BUS. The clients join, then one sends a frame to the other.
//!
//! Protocol machines have no input, output or clock of their own. A driver, here [`World`], gives them events and the
//! time, carries out their requests, and calls them when their next deadline is due. The network of this driver
//! connects every caller with the listener at the called address, a millisecond later, without signalling.
//!
//! `cargo run -p aerostat-proto --example elan`

use aerostat_proto::lane::{Bus, BusConfig, Lec, LecConfig, Les, LesConfig, bus, lec, les};
use aerostat_proto::{
    AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, PartyId, Refused,
};
use aerostat_wire::lane::ElanName;
use aerostat_wire::summary::summary;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use std::collections::BTreeMap;

const NAMES: [&str; 4] = ["les", "bus", "anna", "bert"];
const LES: usize = 0;
const BUS: usize = 1;
const ANNA: usize = 2;
const BERT: usize = 3;
/// For experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// MAC and ATM address of a machine.
fn addresses(who: usize) -> (MacAddr, AtmAddress) {
    let mac = MacAddr([2, 0, 0, 0, 0, who as u8]);
    let prefix = [0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 1, 2];
    (mac, AtmAddress::from_parts(prefix, mac, 0))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let elan = ElanName::new("garden").ok_or("at most 32 octets")?;
    let [les, bus] = [LES, BUS].map(|who| addresses(who).1);
    let client = |who| {
        let (mac, address) = addresses(who);
        Lec::new(LecConfig {
            les: Some(les), // No LECS is asked.
            ..LecConfig::new(elan, address, mac)
        })
    };
    let mut world = World {
        les: Les::new(LesConfig::new(elan, les, bus)),
        bus: Bus::new(BusConfig::new(elan, bus)),
        clients: [client(ANNA), client(BERT)],
        net: Net::default(),
    };
    let now = Instant::ZERO;
    world.les.handle_input(les::Input::Start, now)?;
    world.bus.handle_input(bus::Input::Start, now)?;
    world.move_outputs(now)?; // The servers listen before the first call.
    for client in &mut world.clients {
        client.handle_input(lec::Input::Start, now)?;
    }
    world.run_until(Instant::from_millis(100))?;

    // The first frame goes over the BUS. Meanwhile LE_ARP finds Bert; once the answer to the flush has come back,
    // frames go to him directly, in order.
    for (time, text) in [(100, "Hello, Bert"), (200, "Hello again")] {
        let (to, from) = (addresses(BERT).0.0, addresses(ANNA).0.0);
        let frame = [&to, &from, &ETHERTYPE[..], text.as_bytes()].concat();
        let input = lec::Input::Transmit(frame);
        world.clients[0].handle_input(input, Instant::from_millis(time))?;
        world.run_until(Instant::from_millis(time + 100))?;
    }
    Ok(())
}

struct World {
    les: Les,
    bus: Bus,
    clients: [Lec; 2],
    net: Net,
}

impl World {
    /// Runs until nothing is due before `end`.
    fn run_until(&mut self, end: Instant) -> Result<(), Refused> {
        loop {
            self.move_outputs(self.net.now)?;
            let [one, other] = &self.clients;
            let due = [
                self.les.poll_timeout(),
                self.bus.poll_timeout(),
                one.poll_timeout(),
                other.poll_timeout(),
                self.net.queue.keys().next().map(|(at, _)| *at),
            ];
            match due.into_iter().flatten().min() {
                Some(at) if at <= end => self.net.now = at,
                _ => break,
            }
            while let Some((who, event)) = self.net.due() {
                let event = event.borrow();
                match who {
                    LES => self
                        .les
                        .handle_input(les::Input::Atm(event), self.net.now)?,
                    BUS => self
                        .bus
                        .handle_input(bus::Input::Atm(event), self.net.now)?,
                    _ => self.clients[who - ANNA]
                        .handle_input(lec::Input::Atm(event), self.net.now)?,
                }
            }
        }
        self.net.now = end;
        Ok(())
    }

    /// Handles the timers that are due and takes all outputs of the machines.
    fn move_outputs(&mut self, now: Instant) -> Result<(), Refused> {
        self.les.handle_timeout(now);
        while let Some(output) = self.les.poll_output() {
            match output {
                les::Output::Atm(request) => self.net.request(LES, request),
                // The BUS serves only members of the LES.
                les::Output::Member { address, member } => {
                    let input = bus::Input::Member { address, member };
                    self.bus.handle_input(input, now)?;
                }
                les::Output::Trace(_) => {}
            }
        }
        self.bus.handle_timeout(now);
        while let Some(output) = self.bus.poll_output() {
            if let bus::Output::Atm(request) = output {
                self.net.request(BUS, request);
            }
        }
        for (client, who) in self.clients.iter_mut().zip([ANNA, BERT]) {
            client.handle_timeout(now);
            while let Some(output) = client.poll_output() {
                match output {
                    lec::Output::Atm(request) => self.net.request(who, request),
                    lec::Output::Deliver(frame) => {
                        let text = String::from_utf8_lossy(frame.get(14..).unwrap_or_default());
                        let text = text.trim_end_matches('\0'); // Frames are padded to 60 octets.
                        println!("{now} {} gets a frame: {text}", NAMES[who]);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

type Event = AtmEvent<Vec<u8>>;
/// One end of a connection: a machine, and its id of the connection.
type End = (usize, ConnId);

/// An ATM network without switches: a call goes to the listener at its address, and every step takes a millisecond.
#[derive(Default)]
struct Net {
    now: Instant,
    listeners: Vec<(usize, AtmAddress, Sap)>,
    /// The request of each caller, kept for the leaves that it adds: caller's address, contents, traffic, multipoint.
    calls: BTreeMap<End, (AtmAddress, Sap, Qos, bool)>,
    /// Calls that are offered and not accepted yet: their caller, and the leaf that it adds.
    offered: BTreeMap<End, (End, Option<PartyId>)>,
    /// The ends that receive the SDUs of an end. A point-to-multipoint connection leads from its root to many leaves,
    /// and not back.
    peers: BTreeMap<End, Vec<End>>,
    /// Events under way, by time and then in the order of requests.
    queue: BTreeMap<(Instant, u64), (usize, Event)>,
    count: u64,
}

impl Net {
    /// Carries out a request of machine `who` to the ATM service.
    fn request(&mut self, who: usize, request: AtmRequest) {
        match request {
            AtmRequest::Listen { address, sap, .. } => self.listeners.push((who, address, sap)),
            AtmRequest::Connect {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => {
                self.calls
                    .insert((who, conn), (calling, sap, qos, multipoint));
                self.offer((who, conn), None, called);
            }
            AtmRequest::AddParty {
                conn,
                party,
                called,
            } => {
                self.offer((who, conn), Some(party), called);
            }
            AtmRequest::Accept { conn, .. } => self.accept((who, conn)),
            AtmRequest::Release { conn, cause } => {
                for (to, conn) in self.peers.remove(&(who, conn)).unwrap_or_default() {
                    self.peers.remove(&(to, conn));
                    self.tell(to, AtmEvent::Released { conn, cause });
                }
            }
            AtmRequest::Send { conn, sdu } => {
                let text = summary(Vc::new(0, 32), &sdu).text;
                for (to, conn) in self.peers.get(&(who, conn)).cloned().unwrap_or_default() {
                    println!("{} {} → {}  {text}", self.now, NAMES[who], NAMES[to]);
                    let sdu = sdu.clone();
                    self.tell(to, AtmEvent::Received { conn, sdu });
                }
            }
            // This example drops no leaves and has no permanent connections.
            AtmRequest::Unlisten { .. }
            | AtmRequest::DropParty { .. }
            | AtmRequest::OpenPermanent { .. } => {}
        }
    }

    /// Offers a call, or a further leaf of a call, to the listener at its address.
    fn offer(&mut self, root: End, party: Option<PartyId>, called: AtmAddress) {
        let Some(&(calling, sap, qos, multipoint)) = self.calls.get(&root) else {
            return;
        };
        let wanted = |&&(_, address, ref listens): &&(usize, AtmAddress, Sap)| {
            address == called && listens.accepts(&sap)
        };
        let Some(&(to, ..)) = self.listeners.iter().find(wanted) else {
            return self.tell(
                root.0,
                AtmEvent::Released {
                    conn: root.1,
                    cause: Cause::NO_ROUTE,
                },
            );
        };
        println!(
            "{} {} calls {} with {sap}",
            self.now, NAMES[root.0], NAMES[to]
        );
        let conn = ConnId(ConnId::INCOMING + self.count as u32);
        self.offered.insert((to, conn), (root, party));
        let (calling, qos) = (Some(calling), qos.reversed());
        self.tell(
            to,
            AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            },
        );
    }

    fn accept(&mut self, leaf: End) {
        let Some((root, party)) = self.offered.remove(&leaf) else {
            return;
        };
        self.peers.entry(root).or_default().push(leaf);
        if self.calls.get(&root).is_some_and(|call| !call.3) {
            self.peers.insert(leaf, vec![root]);
        }
        let vc = Vc::new(0, 32);
        let asked = self.calls.get(&root).map_or(Qos::ubr(0), |call| call.2);
        let (qos, conn) = (asked.reversed(), leaf.1);
        self.tell(leaf.0, AtmEvent::Connected { conn, vc, qos });
        let (conn, qos) = (root.1, asked);
        self.tell(
            root.0,
            match party {
                Some(party) => AtmEvent::PartyAdded { conn, party },
                None => AtmEvent::Connected { conn, vc, qos },
            },
        );
    }

    fn tell(&mut self, who: usize, event: Event) {
        self.count += 1;
        let at = self.now + Duration::from_millis(1);
        self.queue.insert((at, self.count), (who, event));
    }

    fn due(&mut self) -> Option<(usize, Event)> {
        let first = self.queue.first_entry()?;
        (first.key().0 <= self.now).then(|| first.remove())
    }
}
