//! The routing of outputs: from the machine that made an output to the machine that it concerns.

use super::service::Output;
use super::{
    Client, Host, HostEvent, HostOutput, Part, Path, Sample, Serves, ServiceKind, Typed, Waits,
    sockets,
};
use crate::atm::DataUnit;
use crate::ip::books::Cause;
use crate::ip::router::RouterInput;
use crate::signalling::{self, UserId};
use aerostat_proto::discard::Discard;
use aerostat_proto::lane::{Lec, lec};
use aerostat_proto::mpoa::mpc::{self, Outbound};
use aerostat_proto::mpoa::mps::{self, Absent};
use aerostat_proto::split::codec::{Field, Message as _};
use aerostat_proto::split::{Numbered, Role, ToDaemon};
use aerostat_proto::{AtmEvent, AtmRequest, ConnId, Instant, Machine, Sdu, Trace};
use aerostat_wire::lane::Tlv;
use aerostat_wire::{AtmAddress, MacAddr, Vc};

/// ATM address of the owner of a MAC address, and the TLVs that LE_ARP returned for it.
type Owner = (AtmAddress, Vec<Tlv>);

impl Host {
    /// Gives an input to the machine in a slot, if the machine runs.
    pub(super) fn tell<M: Serves>(&mut self, to: Typed<M>, input: M::Input<'_>, now: Instant) {
        if let Some(machine) = self.machine_mut(to) {
            let refused = machine.handle_input(input, now).err();
            self.touch(Part::Slot(to.slot()));
            if let Some(refused) = refused {
                let kind = self.slots[to.slot()].kind;
                self.refused(kind, refused.into());
            }
        }
    }

    pub(super) fn start_slot(&mut self, slot: usize, now: Instant) {
        if !self.place_slot(slot) {
            return;
        }
        // A service that is restarted by "MPOA on" is already a user.
        if !core::mem::replace(&mut self.slots[slot].user, true) {
            let added = signalling::Input::AddUser(user_of(slot));
            let refused = self.signalling.handle_input(added, now).err();
            self.touch(Part::Signalling);
            if let Some(refused) = refused {
                // A service that cannot be called does not start, and must not report that it serves.
                self.slots[slot].user = false;
                let kind = self.slots[slot].kind;
                let text = format!("{kind} does not start: {refused}");
                return self.trace(Trace::milestone("host.refused", text));
            }
        }
        if self.slots[slot].kind == ServiceKind::Sockets {
            self.tell_signalling(signalling::Input::Sockets(user_of(slot)), now);
        }
        if let Some(itf) = self.interface_of(slot) {
            self.tell_tlvs(itf, now);
            self.tell_proxy(itf, now);
        }
        if let Some(service) = &mut self.slots[slot].service {
            let refused = service.start(now).err();
            self.touch(Part::Slot(slot));
            if let Some(refused) = refused {
                let kind = self.slots[slot].kind;
                self.refused(kind, refused);
            }
        }
        self.recall_members(slot, now);
        if self.slots[slot].kind == ServiceKind::Mpc {
            for itf in 0..self.interfaces.len() {
                if self.interfaces[itf].up {
                    self.tell_interface(itf, now);
                    self.recall_neighbours(itf, now);
                }
            }
        }
    }

    /// Turns MPOA on or off, for both of its services.
    pub(super) fn set_mpoa(&mut self, on: bool, now: Instant) {
        if self.mpoa == on {
            return;
        }
        self.mpoa = on;
        if on {
            let client = self.mpc.map(Typed::slot);
            for slot in client.into_iter().chain(self.mps.map(Typed::slot)) {
                self.start_slot(slot, now);
            }
        } else {
            self.tell_mpc(mpc::Input::Stop, now);
            self.tell_mps(mps::Input::Stop, now);
        }
    }

    /// Passes an event of the ATM service to the user in `slot`.
    pub(super) fn event(&mut self, slot: usize, event: AtmEvent<&[u8]>, now: Instant) {
        if let Some(service) = &mut self.slots[slot].service {
            service.event(event, now);
            self.touch(Part::Slot(slot));
        }
    }

    /// Handles outputs of one service until there are no more.
    pub(super) fn drain_slot(&mut self, slot: usize, now: Instant) {
        while let Some(service) = &mut self.slots[slot].service {
            let Some(output) = service.poll_output() else {
                self.slots[slot].deadline = service.poll_timeout();
                return self.collect_discards(slot);
            };
            match output {
                Output::Lec(output) => self.lec_output(slot, output, now),
                Output::LaneServer(output) => self.server_output(slot, output, now),
                Output::Mpc(output) => self.mpc_output(slot, output, now),
                Output::Mps(output) => self.mps_output(slot, output, now),
                Output::Clip(output) => self.clip_output(slot, output, now),
                Output::Line(output) => self.line_output(slot, output, now),
                Output::Nhc(output) => self.nhc_output(slot, output, now),
                Output::Sockets(output) => self.sockets_output(slot, output, now),
            }
        }
    }

    /// Handles a request of the user in `slot` to the ATM service.
    pub(super) fn request(&mut self, slot: usize, request: AtmRequest, now: Instant) {
        match request {
            AtmRequest::Send { conn, sdu } => self.send(slot, conn, sdu.into(), now),
            request => {
                self.tell_signalling(signalling::Input::request(user_of(slot), request), now);
            }
        }
    }

    /// Sends an SDU of the user in `slot`. Signalling knows its label, but the SDU does not pass through signalling.
    pub(super) fn send(&mut self, slot: usize, conn: ConnId, sdu: Sdu, now: Instant) {
        // What was asked of signalling before leaves before.
        if self.touched.contains(&Part::Signalling) {
            self.drain_signalling(now);
        }
        match self.signalling.label(user_of(slot), conn, &sdu) {
            Ok(vc) => self.out.push_back(HostOutput::Send { vc, sdu }),
            Err(refused) => {
                self.refused("signalling", refused);
                self.lost_by_service(Discard::Closed, &sdu[..]);
            }
        }
    }

    /// Gives an input to signalling; false if signalling refuses the input.
    pub(super) fn tell_signalling(&mut self, input: signalling::Input<'_>, now: Instant) -> bool {
        let refused = self.signalling.handle_input(input, now).err();
        self.touch(Part::Signalling);
        if let Some(refused) = refused {
            self.refused("signalling", refused);
        }
        refused.is_none()
    }

    /// A message for a daemon in a process of its own, by its number there.
    pub(super) fn tell_process<M: Field>(
        &mut self,
        role: Role,
        number: usize,
        message: ToDaemon<M>,
    ) {
        let number = number as u16;
        let frame = Numbered { number, message }.encode();
        self.report(HostEvent::Daemon(role, frame));
    }

    /// An SDU from the link: signalling, or data of a connection.
    pub(super) fn receive_sdu(&mut self, vc: Vc, unit: DataUnit<'_>, now: Instant) {
        let sdu = unit.octets;
        if vc == Vc::SIGNALLING {
            self.tell_signalling(signalling::Input::Signalling(sdu), now);
        } else if let Some((user, conn)) = self.signalling.receiver(vc) {
            self.heard(unit, user, conn);
            self.event(user.0.into(), AtmEvent::Received { conn, sdu }, now);
        } else if self.signalling.hold(vc, unit) {
            // The user gets the SDU once the connection is up.
        } else if vc != Vc::ILMI || !self.manage(sdu, now) {
            self.unknown_vc += 1;
            self.lost_by_service(Discard::Closed, unit);
        }
    }

    fn lec_output(&mut self, slot: usize, output: lec::Output, now: Instant) {
        let Some(itf) = self.interface_of(slot) else {
            return;
        };
        match output {
            lec::Output::Atm(request) => self.request(slot, request, now),
            lec::Output::Trace(trace) => {
                self.note_attempt(Waits::Elan(itf), &trace);
                self.trace(trace);
            }
            lec::Output::Deliver(frame) => self.deliver(itf, frame, Path::Lane, now),
            lec::Output::News(news) => self.lec_news(itf, news, now),
            lec::Output::Lecd(message) => self.tell_process(Role::Lecd, itf, message),
        }
    }

    /// News of the LANE client of an interface.
    fn lec_news(&mut self, itf: usize, news: lec::News, now: Instant) {
        use lec::News;
        match news {
            News::Joined {
                elan_id,
                max_frame,
                tlvs,
                ..
            } => {
                self.interfaces[itf].up = true;
                self.interfaces[itf].since = Some(now);
                self.interfaces[itf].elan_id = elan_id;
                self.interfaces[itf].mtu = max_frame.mtu().unwrap_or(1500);
                self.interfaces[itf].config = tlvs;
                self.tell_interface(itf, now);
                self.tell_link(itf, true, now);
            }
            News::Left => self.interface_down(itf, now),
            News::Associate { mac, atm, tlvs } => {
                let input = mps::Input::Router(mps::FromRouter::Associate {
                    itf: itf as u32,
                    mac,
                    atm,
                    tlvs: tlvs.clone(),
                });
                self.tell_mps(input, now);
                self.tell_mpc(
                    mpc::Input::Associate {
                        itf,
                        mac,
                        atm,
                        tlvs,
                    },
                    now,
                );
            }
            News::Dissociate { mac } => {
                self.tell_mpc(mpc::Input::Dissociate { itf, mac }, now);
            }
            News::RemoteMoved { mac } => self.station_left(itf, Some(mac), now),
            News::Resolved { mac, owner } => {
                self.answer_owner(itf, mac, owner, now);
            }
        }
    }

    fn mpc_output(&mut self, slot: usize, output: mpc::Output, now: Instant) {
        match output {
            mpc::Output::Atm(request) => self.request(slot, request, now),
            mpc::Output::Trace(trace) => self.trace(trace),
            mpc::Output::Deliver { itf, frame } => self.deliver(itf, frame, Path::Shortcut, now),
            mpc::Output::SetTlvs { itf, tlvs } => self.set_tlvs(itf, tlvs, now),
            mpc::Output::Discover { itf, mac } => self.discover(itf, mac, now),
            mpc::Output::Mpcd(message) => self.tell_process(Role::Mpcd, 0, message),
        }
    }

    /// Sends a frame of the host itself out of interface `itf`.
    pub(super) fn send_own(&mut self, itf: usize, frame: Vec<u8>, now: Instant) {
        if itf == 0 && self.segment.is_some() {
            return self.send_at_bridge(frame, now);
        }
        self.transmit(itf, frame, now);
    }

    /// Sends a frame out of interface `itf`. Returns the path that the frame takes.
    pub(super) fn transmit(&mut self, itf: usize, frame: Vec<u8>, now: Instant) -> Path {
        let Some(interface) = self.interfaces.get_mut(itf) else {
            return Path::Lane;
        };
        if !interface.up {
            interface.counters.down += 1;
            self.measure_lost(&frame, Cause::Service(Discard::NotJoined), now);
            return Path::Lane;
        }
        if let Some(nhc) = self.client_for(itf, &frame) {
            return self.transmit_by_nhrp(itf, nhc, &frame, now);
        }
        let client = self.mpc.filter(|_| self.mpoa);
        let sample = self.meter.sent(&frame, Path::Lane, now);
        let path = match client.and_then(|mpc| self.machine_mut(mpc)) {
            Some(client) => client.outbound(itf, frame, now),
            None => Outbound::Lane(frame),
        };
        let taken = match path {
            Outbound::Lane(_) => Path::Lane,
            Outbound::Shortcut { .. } => Path::Shortcut,
        };
        self.note_sent(itf, sample, taken);
        match path {
            Outbound::Lane(frame) => self.send_on_lane(itf, frame, now),
            Outbound::Shortcut { conn, sdu } => {
                if let Some(mpc) = client {
                    self.send(mpc.slot(), conn, sdu, now);
                }
            }
        }
        if let Some(mpc) = client {
            self.drain_slot(mpc.slot(), now);
        }
        taken
    }

    /// Records that a frame of the host's own stack was lost before it left.
    pub(super) fn measure_lost(&mut self, frame: &[u8], cause: Cause, now: Instant) {
        if let Some(sample) = self.meter.sent(frame, Path::Lane, now) {
            self.report(HostEvent::Sample(sample));
        }
        self.lost(cause, frame);
    }

    /// Records that a frame leaves by this path; its sample was taken before.
    fn note_sent(&mut self, itf: usize, sample: Option<Sample>, path: Path) {
        self.count_sent(itf, path, 1);
        let sample = sample.map(|sample| Sample { path, ..sample });
        self.out.extend(sample.map(HostOutput::sampled));
    }

    pub(super) fn count_sent(&mut self, itf: usize, path: Path, frames: u16) {
        let counters = &mut self.interfaces[itf].counters;
        match path {
            Path::Lane => counters.lane_out += u64::from(frames),
            Path::Shortcut => counters.shortcut_out += u64::from(frames),
        }
    }

    pub(super) fn count_received(&mut self, itf: usize, path: Path, frames: u16) {
        let counters = self.interfaces.get_mut(itf).map(|itf| &mut itf.counters);
        match (counters, path) {
            (Some(counters), Path::Lane) => counters.lane_in += u64::from(frames),
            (Some(counters), Path::Shortcut) => counters.shortcut_in += u64::from(frames),
            (None, _) => {}
        }
    }

    pub(super) fn send_on_lane(&mut self, itf: usize, frame: Vec<u8>, now: Instant) {
        let Some(interface) = self.interfaces.get(itf) else {
            return;
        };
        match interface.client {
            Client::Clip(clip) => self.send_on_clip(itf, clip, &frame, now),
            Client::Line(line) => self.send_on_line(itf, line, &frame, now),
            Client::Lec(lec) if self.machine(lec).is_none() => {
                self.lost_by_service(Discard::Stopped, &frame[..]);
            }
            Client::Lec(lec) => self.tell(lec, lec::Input::Transmit(frame), now),
        }
    }

    /// Delivers a frame that arrived on interface `itf`.
    pub(super) fn deliver(&mut self, itf: usize, frame: Vec<u8>, path: Path, now: Instant) {
        if itf >= self.interfaces.len() {
            return;
        }
        self.count_received(itf, path, 1);
        if !self.bridge_in(itf, &frame, path, now) {
            return;
        }
        let Some(frame) = self.ip.whole(frame, now) else {
            return;
        };
        if let Some(sample) = self.meter.received(&frame, path, now) {
            Self::arrived(&mut self.out, sample, &frame, self.ip.stack());
        }
        if path == Path::Lane {
            self.show_routed(itf, &frame, now);
        }
        self.pass_up(itf, frame, now);
        self.touch(Part::Ip);
    }

    pub(super) fn set_tlvs(&mut self, itf: usize, tlvs: Vec<Tlv>, now: Instant) {
        if let Some(interface) = self.interfaces.get_mut(itf) {
            interface.tlvs = tlvs;
            self.tell_tlvs(itf, now);
        }
    }

    fn tell_tlvs(&mut self, itf: usize, now: Instant) {
        if let Some(lec) = self.lec_of(itf) {
            let tlvs = self.interfaces[itf].tlvs.clone();
            self.tell(lec, lec::Input::SetTlvs(tlvs), now);
        }
    }

    /// Records that the LANE client of an interface is no longer a member of its ELAN.
    pub(super) fn interface_down(&mut self, itf: usize, now: Instant) {
        self.interfaces[itf].up = false;
        self.tell_mpc(mpc::Input::LecDown { itf }, now);
        self.tell_link(itf, false, now);
        if let Some(segment) = &mut self.segment {
            segment.forget_elan(itf);
        }
        // A client that has crashed will not answer its outstanding questions.
        let asked = self.owner_queries.keys().filter(|(at, _)| *at == itf);
        for (itf, mac) in asked.copied().collect::<Vec<_>>() {
            self.answer_owner(itf, mac, None, now);
        }
    }

    /// Tells the router and the MPOA server whether an interface is a member of its ELAN. A router does not route over
    /// an interface that is not.
    pub(super) fn tell_link(&mut self, interface: usize, up: bool, now: Instant) {
        if let Some(refused) = self.tell_router(RouterInput::Link { interface, up }, now) {
            self.refused("router", refused);
        }
    }

    fn tell_interface(&mut self, itf: usize, now: Instant) {
        let interface = &self.interfaces[itf];
        let (elan_id, mtu) = (interface.elan_id, interface.mtu);
        let config = interface.config.clone();
        self.tell_mpc(mpc::Input::ConfigTlvs(config), now);
        self.tell_mpc(mpc::Input::LecUp { itf, elan_id, mtu }, now);
    }

    /// Starts LE_ARP. The result comes as an association, and as the owner of the MAC address.
    pub(super) fn discover(&mut self, itf: usize, mac: MacAddr, now: Instant) {
        if let Some(lec) = self.lec_of(itf) {
            self.tell(lec, lec::Input::Resolve { mac }, now);
        }
    }

    /// Tells an MPOA client that has started what LE_ARP knows already.
    fn recall_neighbours(&mut self, itf: usize, now: Instant) {
        let Some(lec) = self.lec_of(itf).and_then(|lec| self.machine(lec)) else {
            return;
        };
        for row in lec.snapshot().cache {
            if let Some(atm) = row.atm
                && !row.tlvs.is_empty()
            {
                let (mac, tlvs) = (row.mac, row.tlvs);
                let known = mpc::Input::Associate {
                    itf,
                    mac,
                    atm,
                    tlvs,
                };
                self.tell_mpc(known, now);
            }
        }
    }

    pub(super) fn tell_mpc(&mut self, input: mpc::Input<'_>, now: Instant) {
        if let Some(mpc) = self.mpc {
            self.tell(mpc, input, now);
        }
    }

    /// The LANE client of an interface; `None` for an interface on a Classical IP subnet or on a line: these have no
    /// TLVs, proxies or owners of MAC addresses.
    pub(super) fn lec_of(&self, itf: usize) -> Option<Typed<Lec>> {
        self.interfaces.get(itf)?.client.lec()
    }

    /// Handles outputs of signalling: to the link, or to a user.
    pub(super) fn drain_signalling(&mut self, now: Instant) {
        use signalling::Output as Out;
        while let Some(output) = self.signalling.poll_output() {
            match output {
                Out::Send { vc, sdu } => {
                    let sdu = sdu.into();
                    self.out.push_back(HostOutput::Send { vc, sdu });
                }
                Out::OpenVc { vc, tx, .. } | Out::ChangeVc { vc, tx } => {
                    let shaping = self.shaping(vc);
                    self.out.push_back(HostOutput::OpenVc {
                        vc,
                        traffic: tx,
                        aal: self.aal(vc),
                        shaping,
                    });
                }
                Out::CloseVc { vc } => self.out.push_back(HostOutput::CloseVc { vc }),
                Out::Trace(trace) => self.trace(trace),
                Out::Daemon(message) => self.tell_process(Role::Sigd, 0, message),
                Out::Event(user, event, heard) => self.told(user, event, heard, now),
                Out::Received { user, conn, sdu } => {
                    self.heard(sdu.view(), user, conn);
                    let event = AtmEvent::Received {
                        conn,
                        sdu: &sdu.octets[..],
                    };
                    self.event(user.0.into(), event, now);
                }
                Out::Joined {
                    conn,
                    peer,
                    qos,
                    heard,
                } => {
                    let joined = sockets::Input::Joined {
                        conn,
                        peer,
                        qos,
                        heard,
                    };
                    self.tell_sockets(joined, now);
                }
                Out::Manage(errand) => self.out.push_back(HostOutput::Manage(errand)),
                Out::Undelivered(sdu) => self.lost_by_service(Discard::Closed, sdu.view()),
            }
        }
        self.signalling_deadline = self.signalling.poll_timeout();
    }

    fn answer_owner(&mut self, itf: usize, mac: MacAddr, owner: Option<Owner>, now: Instant) {
        for query in self.owner_queries.remove(&(itf, mac)).unwrap_or_default() {
            // The address comes from the ARP cache, so its owner was present before.
            let answer = owner.clone().map(|(atm, tlvs)| (mac, atm, tlvs));
            let answer = answer.ok_or(Absent::ForNow);
            self.answer_l2(query, answer, now);
        }
    }
}

/// A service's number as a user of the ATM service.
pub(super) const fn user_of(slot: usize) -> UserId {
    UserId(slot as u16)
}
