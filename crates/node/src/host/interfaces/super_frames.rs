//! Super frames of a kernel: trains of PDUs from one kernel to another.
//!
//! The client that carries a super frame is asked once, with the number of its segments, and so is the client that
//! receives them. A super frame becomes single frames, on the same path as all other frames, where something concerns
//! single frames: a stack, router or bridge that is no kernel; a meter of this host; frames that wait for an address or
//! a connection; an MPOA server that counts the packets of its router; an NHRP client.

use super::clip;
use crate::atm::{PduTrain, TrainPart};
use crate::host::outputs::user_of;
use crate::host::{Client, Host, HostEvent, HostOutput, Ip, Part, Path, Segment, Typed, sockets};
use crate::offload::{KernelPart, SuperFrame};
use aerostat_proto::clip::Clip;
use aerostat_proto::discard::Discard;
use aerostat_proto::lane::Lec;
use aerostat_proto::mpoa::Mpc;
use aerostat_proto::{ConnId, Instant, Several, SharedHeader};
use aerostat_wire::Vc;

/// Octets of an Ethernet header.
const ETHERNET: usize = 14;
/// More than the octets by which an encapsulation can be longer than an Ethernet header.
const GROWTH: usize = 48;

/// Segments of a super frame for a kernel.
#[derive(Debug)]
pub struct KernelTrain {
    part: TrainPart,
    ethernet: Vec<u8>,
}

impl KernelTrain {
    /// The frame for the kernel, with its vnet header. It is there: only parts of super frames become such trains.
    #[must_use]
    pub fn frame(&self) -> Option<KernelPart<'_>> {
        self.part.for_kernel(&self.ethernet)
    }
    /// Number of frames that it stands for.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.part.count()
    }
    /// The memory of the super frame, if no other part of it is in use.
    #[must_use]
    pub fn into_memory(self) -> Option<Vec<u8>> {
        self.part.into_memory()
    }
}

fn several_of(frame: &SuperFrame) -> Several {
    let count = frame.count();
    Several {
        count: count.try_into().unwrap_or(u16::MAX),
        longest: frame.length(0),
        octets: frame.length_of(0..count),
    }
}

/// The same packets without `front` octets in front of each.
const fn without(several: Several, front: usize) -> Several {
    Several {
        count: several.count,
        longest: several.longest.saturating_sub(front),
        octets: (several.octets).saturating_sub(front * several.count as usize),
    }
}

impl Host {
    /// True if nothing in this host concerns single frames.
    fn moves_trains(&self) -> bool {
        let kernel = matches!(self.ip, Ip::Kernel | Ip::KernelRouter(_));
        let bridge = self.segment.as_ref().is_none_or(Segment::is_kernel);
        let server = self.mps.and_then(|mps| self.machine(mps));
        let triggers = self.mpoa && server.is_some_and(|mps| mps.triggers());
        kernel && bridge && !triggers && self.meter.is_idle()
    }

    /// Sends a super frame of the kernel out of interface `itf`.
    pub(in crate::host) fn send_super(&mut self, itf: usize, mut frame: SuperFrame, now: Instant) {
        let several = several_of(&frame);
        let up = self.interfaces.get(itf).is_some_and(|itf| itf.up);
        let fits = PduTrain::fits(several.count, several.longest + GROWTH);
        let client = self.client_for(itf, frame.octets());
        if !up || !fits || client.is_some() || !self.moves_trains() {
            for segment in frame.segments() {
                self.send_own(itf, segment, now);
                self.settle(now);
            }
            return;
        }
        if itf == 0 {
            self.learn_bridged(frame.octets(), (several.count, several.octets), now);
        }
        let client = self.mpc.filter(|_| self.mpoa);
        let machine = client.and_then(|mpc| self.machine_mut(mpc));
        let over = machine
            .and_then(|mpc| mpc.outbound_several(itf, frame.octets_mut(), several, now))
            .zip(client);
        match over {
            Some((shared, mpc)) => {
                self.count_sent(itf, Path::Shortcut, several.count);
                self.send_train(mpc.slot(), shared, frame, now);
            }
            None => {
                self.count_sent(itf, Path::Lane, several.count);
                self.send_super_on_lane(itf, several, frame, now);
            }
        }
        if let Some(mpc) = client {
            self.drain_slot(mpc.slot(), now);
        }
    }

    fn send_super_on_lane(
        &mut self,
        itf: usize,
        several: Several,
        frame: SuperFrame,
        now: Instant,
    ) {
        let Some(client) = self.interfaces.get(itf).map(|interface| interface.client) else {
            return;
        };
        let taken = match client {
            // A line is slow, and its encapsulations differ: its frames go one by one.
            Client::Line(_) => None,
            Client::Lec(lec) => {
                let machine = self.machine_mut(lec);
                machine.and_then(|lec| lec.transmit_several(frame.octets(), several, now))
            }
            Client::Clip(clip) => {
                let next_hop = clip::next_hop(frame.octets());
                let several = without(several, ETHERNET);
                let taken = next_hop.zip(self.machine_mut(clip));
                let head = frame.octets().get(ETHERNET..).unwrap_or_default();
                let taken =
                    taken.and_then(|(hop, clip)| clip.send_several(hop, head, several, now));
                taken.map(|shared| SharedHeader {
                    replaces: ETHERNET,
                    ..shared
                })
            }
        };
        self.touch(Part::Slot(client.slot()));
        let Some(shared) = taken else {
            for segment in frame.segments() {
                self.send_on_lane(itf, segment, now);
                self.drain_slot(client.slot(), now);
            }
            return;
        };
        self.send_train(client.slot(), shared, frame, now);
    }

    /// Sends the segments as SDUs with the header that they share.
    fn send_train(
        &mut self,
        slot: usize,
        shared: SharedHeader,
        mut frame: SuperFrame,
        now: Instant,
    ) {
        let SharedHeader {
            conn,
            header,
            replaces,
            least,
        } = shared;
        // What was asked of signalling before leaves before.
        if self.touched.contains(&Part::Signalling) {
            self.drain_signalling(now);
        }
        if !frame.encapsulate(&header, replaces, least) {
            for segment in frame.segments() {
                let mut sdu = [&header, segment.get(replaces..).unwrap_or_default()].concat();
                sdu.resize(sdu.len().max(least), 0);
                self.send(slot, conn, sdu.into(), now);
            }
            return;
        }
        let longest = frame.octets().get(..frame.length(0));
        let longest = longest.unwrap_or(frame.octets());
        match self.signalling.label(user_of(slot), conn, longest) {
            Ok(vc) => self.out.push_back(HostOutput::SendTrain { vc, frame }),
            Err(refused) => {
                self.refused("signalling", refused);
                for segment in frame.segments() {
                    self.lost_by_service(Discard::Closed, &segment[..]);
                }
            }
        }
    }

    /// Receives PDUs of a train. Returns them if they are to be received one by one; then nothing has happened.
    pub fn receive_train(&mut self, vc: Vc, part: TrainPart, now: Instant) -> Option<TrainPart> {
        let part = match self.take_sdus(vc, part, now) {
            Ok(()) => return None,
            Err(part) => part,
        };
        let Some((itf, ethernet)) = self.take_train(vc, &part, now) else {
            return Some(part);
        };
        let frame = KernelTrain { part, ethernet };
        self.report(HostEvent::Train { itf, frame });
        self.settle(now);
        None
    }

    /// PDUs that a program wrote, for a program: the socket service of this host gets them together.
    ///
    /// # Errors
    /// The PDUs, if they are not for the socket service, or a program did not write them.
    fn take_sdus(&mut self, vc: Vc, part: TrainPart, now: Instant) -> Result<(), TrainPart> {
        let conn = self.conn_of_program(vc);
        let machines = |conn: &ConnId| self.sockets()?.reader(*conn)?.is_none().then_some(());
        let Some(conn) = conn.filter(|conn| machines(conn).is_some()) else {
            return Err(part);
        };
        let sdus = part.into_sdus()?;
        self.tell_sockets(sockets::Input::Received { conn, sdus }, now);
        self.settle(now);
        Ok(())
    }

    /// The interface on which the kernel gets these PDUs, and their Ethernet header.
    fn take_train(&mut self, vc: Vc, part: &TrainPart, now: Instant) -> Option<(usize, Vec<u8>)> {
        if !self.moves_trains() {
            return None;
        }
        let (user, conn) = self.signalling.receiver(vc)?;
        let slot = usize::from(user.0);
        let frame = part.frame()?;
        let (sdu, several, front) = (frame.octets(), part.several(), frame.front());
        let (itf, ethernet, path) = if let Some(lec) = self.typed::<Lec>(slot) {
            let itf = self.interface_of(slot)?;
            let ethernet = sdu.get(front.checked_sub(ETHERNET)?..front)?;
            let lec = self.machine_mut(lec)?;
            lec.receive_several(conn, sdu, several, now)?;
            (itf, ethernet.to_vec(), Path::Lane)
        } else if let Some(mpc) = self.typed::<Mpc>(slot) {
            let mpc = self.machine_mut(mpc)?;
            let (itf, ethernet) = mpc.receive_several(conn, sdu, several, now)?;
            (itf, ethernet, Path::Shortcut)
        } else {
            let clip: Typed<Clip> = self.typed(slot)?;
            let itf = self.interface_of(slot)?;
            let packet = sdu.get(front..)?;
            let clip = self.machine_mut(clip)?;
            let (_, from) = clip.receive_several(conn, sdu, several, now)?;
            let path = self.path_of(from, packet, itf);
            (itf, self.arrived_header(itf), path)
        };
        self.touch(Part::Slot(slot));
        self.count_received(itf, path, several.count);
        if itf == 0 && path == Path::Lane {
            self.source_left(itf, &ethernet, now);
        }
        Some((itf, ethernet))
    }
}
