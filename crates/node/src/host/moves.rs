//! The routing of outputs: from the machine that made an output to the machine that it concerns.

use super::{Host, HostOutput, Part, Path, Service, ServiceKind, sockets};
use crate::atm::DataUnit;
use crate::ip::books::{Cause, SocketEvent};
use crate::ip::router::RouterInput;
use crate::signalling::{self, UserId};
use aerostat_proto::clip;
use aerostat_proto::discard::Discard;
use aerostat_proto::lane::{Member, lec, server};
use aerostat_proto::mpoa::mpc;
use aerostat_proto::mpoa::mps::{self, Absent};
use aerostat_proto::nhrp::client;
use aerostat_proto::split::codec::{Field, Message as _};
use aerostat_proto::split::{Numbered, Role, ToDaemon};
use aerostat_proto::{AtmEvent, AtmRequest, Instant, Machine, Refused, Trace};
use aerostat_wire::lane::Tlv;
use aerostat_wire::{AtmAddress, MacAddr, Vc};

/// ATM address of the owner of a MAC address, and the TLVs that LE_ARP returned for it.
type Owner = (AtmAddress, Vec<Tlv>);

/// One output of a service.
#[allow(clippy::large_enum_variant, reason = "lives on the stack for one move")]
enum Moved {
    Lec(lec::Output),
    LaneServer(server::Output),
    Mpc(mpc::Output),
    Mps(mps::Output),
    Clip(clip::Output),
    Nhc(client::Output),
    Sockets(sockets::Output),
}

impl Host {
    /// Gives an input to the service in `slot`, if the service runs and is of the kind that `give` expects.
    pub(super) fn feed<R: Into<Refused>>(
        &mut self,
        slot: usize,
        give: impl FnOnce(&mut Service) -> Result<(), R>,
    ) {
        if let Some(service) = &mut self.slots[slot].service {
            let refused = give(service).err();
            self.touch(Part::Slot(slot));
            if let Some(refused) = refused {
                let kind = self.slots[slot].kind;
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
        if let Some(itf) = self.interface_of(slot) {
            self.tell_tlvs(itf, now);
            if itf == 0 {
                self.tell_proxy(now);
            }
        }
        self.feed(slot, |service| match service {
            Service::Lec(machine) => machine.handle_input(lec::Input::Start, now),
            Service::LaneServer(machine) => machine.handle_input(server::Input::Start, now),
            Service::Mpc(machine) => machine.handle_input(mpc::Input::Start, now),
            Service::Mps(machine) => machine
                .handle_input(mps::Input::Start, now)
                .map_err(Refused::from),
            Service::Clip(machine) => machine
                .handle_input(clip::Input::Start, now)
                .map_err(Refused::from),
            Service::Nhc(machine) => machine
                .handle_input(client::Input::Start, now)
                .map_err(Refused::from),
            Service::Sockets(machine) => machine
                .handle_input(sockets::Input::Start, now)
                .map_err(Refused::from),
        });
        if self.slots[slot].kind == ServiceKind::Bus {
            self.recall_members(slot, now);
        }
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
        for slot in [self.mpc, self.mps].into_iter().flatten() {
            if on {
                self.start_slot(slot, now);
            } else {
                self.feed(slot, |service| match service {
                    Service::Mpc(machine) => machine.handle_input(mpc::Input::Stop, now),
                    Service::Mps(machine) => machine
                        .handle_input(mps::Input::Stop, now)
                        .map_err(Refused::from),
                    _ => Ok(()),
                });
            }
        }
    }

    /// Passes an event of the ATM service to the user in `slot`.
    pub(super) fn event(&mut self, slot: usize, event: &AtmEvent<&[u8]>, now: Instant) {
        self.feed(slot, |service| {
            let event = *event;
            match service {
                Service::Lec(machine) => machine.handle_input(lec::Input::Atm(event), now),
                Service::LaneServer(machine) => {
                    machine.handle_input(server::Input::Atm(event), now)
                }
                Service::Mpc(machine) => machine.handle_input(mpc::Input::Atm(event), now),
                Service::Mps(machine) => machine
                    .handle_input(mps::Input::Atm(event), now)
                    .map_err(Refused::from),
                Service::Clip(machine) => machine
                    .handle_input(clip::Input::Atm(event), now)
                    .map_err(Refused::from),
                Service::Nhc(machine) => machine
                    .handle_input(client::Input::Atm(event), now)
                    .map_err(Refused::from),
                Service::Sockets(machine) => machine
                    .handle_input(sockets::Input::Atm(event), now)
                    .map_err(Refused::from),
            }
        });
    }

    /// Handles outputs of one service until there are no more.
    pub(super) fn drain_slot(&mut self, slot: usize, now: Instant) {
        while let Some(service) = &mut self.slots[slot].service {
            let moved = match service {
                Service::Lec(machine) => machine.poll_output().map(Moved::Lec),
                Service::LaneServer(machine) => machine.poll_output().map(Moved::LaneServer),
                Service::Mpc(machine) => machine.poll_output().map(Moved::Mpc),
                Service::Mps(machine) => machine.poll_output().map(Moved::Mps),
                Service::Clip(machine) => machine.poll_output().map(Moved::Clip),
                Service::Nhc(machine) => machine.poll_output().map(Moved::Nhc),
                Service::Sockets(machine) => machine.poll_output().map(Moved::Sockets),
            };
            match moved {
                Some(Moved::Lec(output)) => self.lec_output(slot, output, now),
                Some(Moved::Mpc(output)) => self.mpc_output(slot, output, now),
                Some(Moved::Mps(output)) => self.mps_output(slot, output, now),
                Some(Moved::Clip(output)) => self.clip_output(slot, output, now),
                Some(Moved::Nhc(output)) => self.nhc_output(slot, output, now),
                Some(Moved::LaneServer(output)) => match output {
                    server::Output::Atm(request) => self.request(slot, request, now),
                    server::Output::Trace(trace) => self.trace(trace),
                    server::Output::Member { address, member } => {
                        self.member(slot, address, member, now);
                    }
                    server::Output::Reaches { address, reached } => {
                        self.out.push_back(HostOutput::Reaches { address, reached });
                    }
                    server::Output::Process(message) => {
                        let Service::LaneServer(server) = service else {
                            return;
                        };
                        let role = server.role();
                        self.tell_process(role, slot, message);
                    }
                },
                Some(Moved::Sockets(sockets::Output::Atm(request))) => {
                    self.request_of_program(slot, request, now);
                }
                Some(Moved::Sockets(sockets::Output::Forgotten(id))) => {
                    if self.books {
                        let event = SocketEvent::Forgotten(id);
                        self.out.push_back(HostOutput::Socket(event));
                    }
                }
                Some(Moved::Sockets(sockets::Output::Flush(vc))) => {
                    self.out.push_back(HostOutput::Flush { vc });
                }
                Some(Moved::Sockets(sockets::Output::Trace(trace))) => self.trace(trace),
                None => {
                    self.slots[slot].deadline = service.poll_timeout();
                    return self.collect_discards(slot);
                }
            }
        }
    }

    /// Handles a request of the user in `slot` to the ATM service.
    pub(super) fn request(&mut self, slot: usize, request: AtmRequest, now: Instant) {
        let head = self.head_of(&request);
        let input = signalling::Input::Request(user_of(slot), request);
        if !self.ask(input, now)
            && let Some(head) = head
        {
            self.lost_by_service(Discard::Closed, &head[..]);
        }
    }

    /// Gives an input to the signalling manager; false if the manager refuses the input.
    pub(super) fn ask(&mut self, input: signalling::Input<'_>, now: Instant) -> bool {
        let refused = self.signalling.handle_input(input, now).err();
        self.touch(Part::Signalling);
        if let Some(refused) = refused {
            self.refused("signalling", refused);
        }
        refused.is_none()
    }

    /// A message for a daemon in a process of its own, by its number there.
    fn tell_process<M: Field>(&mut self, role: Role, number: usize, message: ToDaemon<M>) {
        let number = number as u16;
        let frame = Numbered { number, message }.encode();
        self.out.push_back(HostOutput::Daemon(role, frame));
    }

    /// An SDU from the link: signalling, or data of a connection.
    pub(super) fn receive_sdu(&mut self, vc: Vc, unit: DataUnit<'_>, now: Instant) {
        let sdu = unit.octets;
        if vc == Vc::SIGNALLING {
            self.ask(signalling::Input::Signalling(sdu), now);
        } else if let Some((user, conn)) = self.signalling.receiver(vc) {
            self.heard(unit.mark, user, conn);
            self.event(user.0.into(), &AtmEvent::Received { conn, sdu }, now);
        } else if self.signalling.hold(vc, unit) {
            // The user gets the SDU once the connection is up.
        } else if vc != Vc::ILMI || !self.manage(sdu, now) {
            self.unknown_vc += 1;
            self.lost_by_service(Discard::Closed, unit);
        }
    }

    /// Records that a member of the LES in slot `les` is new, has changed, or has left (`None`). The BUS of the LES
    /// must know this, even after a restart.
    fn member(&mut self, les: usize, address: AtmAddress, member: Option<Member>, now: Instant) {
        match &member {
            Some(member) => self.members.insert((les, address), member.clone()),
            None => self.members.remove(&(les, address)),
        };
        self.tell_bus(les, address, member, now);
    }

    fn tell_bus(&mut self, les: usize, address: AtmAddress, member: Option<Member>, now: Instant) {
        if let Some(&bus) = self.bus_of.get(&les) {
            self.feed_server(bus, server::Input::Member { address, member }, now);
        }
    }

    /// Tells a BUS that has restarted who the members are.
    pub(super) fn recall_members(&mut self, bus: usize, now: Instant) {
        let known = self
            .members
            .iter()
            .filter(|((les, _), _)| self.bus_of.get(les) == Some(&bus));
        let known: Vec<_> = known
            .map(|(&(les, address), member)| (les, address, member.clone()))
            .collect();
        for (les, address, member) in known {
            self.tell_bus(les, address, Some(member), now);
        }
    }

    /// Removes the members of a LES that has stopped.
    pub(super) fn forget_members(&mut self, les: usize, now: Instant) {
        let gone = self.members.iter().filter(|((of, _), _)| *of == les);
        let gone: Vec<_> = gone.map(|(&(_, address), _)| address).collect();
        for address in gone {
            self.member(les, address, None, now);
        }
    }

    /// Keeps the reason why the LANE client of an interface is not a member, for [`Self::why_down`].
    fn note_failure(&mut self, itf: usize, trace: &Trace) {
        if matches!(trace.name, "lane.failed" | "lane.lost") {
            let why = trace.fields.iter().find(|(key, _)| *key == "why");
            self.interfaces[itf].why_down = why.map(|(_, why)| why.clone());
        }
    }

    fn lec_output(&mut self, slot: usize, output: lec::Output, now: Instant) {
        let Some(itf) = self.interface_of(slot) else {
            return;
        };
        match output {
            lec::Output::Atm(request) => self.request(slot, request, now),
            lec::Output::Trace(trace) => {
                self.note_failure(itf, &trace);
                self.trace(trace);
            }
            lec::Output::Deliver(frame) => self.deliver(itf, frame, Path::Lane, now),
            lec::Output::Joined {
                elan_id,
                max_frame,
                tlvs,
                ..
            } => {
                self.interfaces[itf].up = true;
                self.interfaces[itf].since = Some(now);
                self.interfaces[itf].why_down = None;
                self.interfaces[itf].elan_id = elan_id;
                self.interfaces[itf].mtu = max_frame.mtu().unwrap_or(1500);
                self.interfaces[itf].config = tlvs;
                self.tell_interface(itf, now);
                self.tell_link(itf, true, now);
            }
            lec::Output::Left => self.interface_down(itf, now),
            lec::Output::Associate { mac, atm, tlvs } => {
                let input = mps::Input::Associate {
                    itf: itf as u32,
                    mac,
                    atm,
                    tlvs: tlvs.clone(),
                };
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
            lec::Output::Dissociate { mac } => {
                self.tell_mpc(mpc::Input::Dissociate { itf, mac }, now);
            }
            lec::Output::RemoteMoved { mac } => self.station_left(Some(mac), now),
            lec::Output::Resolved { mac, owner } => {
                self.answer_owner(itf, mac, owner, now);
            }
            lec::Output::Lecd(message) => self.tell_process(Role::Lecd, itf, message),
        }
    }

    fn mpc_output(&mut self, slot: usize, output: mpc::Output, now: Instant) {
        match output {
            mpc::Output::Atm(request) => self.request(slot, request, now),
            mpc::Output::Trace(trace) => self.trace(trace),
            mpc::Output::ToLec { itf, frame } => self.send_on_lane(itf, frame, now),
            mpc::Output::Deliver { itf, frame } => self.deliver(itf, frame, Path::Shortcut, now),
            mpc::Output::SetTlvs { itf, tlvs } => self.set_tlvs(itf, tlvs, now),
            mpc::Output::Discover { itf, mac } => self.discover(itf, mac, now),
            mpc::Output::Mpcd(message) => self.tell_process(Role::Mpcd, 0, message),
        }
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
        let running = |slot: &usize| self.mpoa && self.slots[*slot].service.is_some();
        if let Some(nhc) = self.client_for(itf, &frame) {
            return self.transmit_by_nhrp(itf, nhc, &frame, now);
        }
        let Some(mpc) = self.mpc.filter(running) else {
            self.measure_sent(itf, &frame, Path::Lane, now);
            self.send_on_lane(itf, frame, now);
            return Path::Lane;
        };
        // The client decides about the path and changes the frame, so the sample is taken before.
        let sample = self.meter.sent(&frame, Path::Lane, now);
        self.drain_slot(mpc, now);
        let before = self.out.len();
        self.tell_mpc(mpc::Input::Outbound { itf, frame }, now);
        let mut path = Path::Shortcut;
        while let Some(Service::Mpc(machine)) = &mut self.slots[mpc].service
            && let Some(output) = machine.poll_output()
        {
            if matches!(output, mpc::Output::ToLec { .. }) {
                path = Path::Lane;
            }
            self.mpc_output(mpc, output, now);
        }
        self.count_sent(itf, path);
        self.tell_sent(before, sample, path);
        path
    }

    /// Records that a frame of the host's own stack was lost before it left.
    pub(super) fn measure_lost(&mut self, frame: &[u8], cause: Cause, now: Instant) {
        if let Some(sample) = self.meter.sent(frame, Path::Lane, now) {
            self.out.push_back(HostOutput::Sample(sample));
        }
        self.lost(cause, frame);
    }

    fn measure_sent(&mut self, itf: usize, frame: &[u8], path: Path, now: Instant) {
        self.count_sent(itf, path);
        if let Some(sample) = self.meter.sent(frame, path, now) {
            self.out.push_back(HostOutput::Sample(sample));
        }
    }

    pub(super) fn count_sent(&mut self, itf: usize, path: Path) {
        let counters = &mut self.interfaces[itf].counters;
        match path {
            Path::Lane => counters.lane_out += 1,
            Path::Shortcut => counters.shortcut_out += 1,
        }
    }

    fn send_on_lane(&mut self, itf: usize, frame: Vec<u8>, now: Instant) {
        let Some(interface) = self.interfaces.get(itf) else {
            return;
        };
        let slot = interface.slot;
        if self.slots[slot].kind == ServiceKind::Clip {
            return self.send_on_clip(itf, slot, &frame, now);
        }
        if self.slots[slot].service.is_none() {
            return self.lost_by_service(Discard::Stopped, &frame[..]);
        }
        self.feed(slot, |service| match service {
            Service::Lec(machine) => machine.handle_input(lec::Input::Transmit(frame), now),
            _ => Ok(()),
        });
    }

    /// Delivers a frame that arrived on interface `itf`.
    pub(super) fn deliver(&mut self, itf: usize, frame: Vec<u8>, path: Path, now: Instant) {
        let Some(interface) = self.interfaces.get_mut(itf) else {
            return;
        };
        match path {
            Path::Lane => interface.counters.lane_in += 1,
            Path::Shortcut => interface.counters.shortcut_in += 1,
        }
        if !self.bridge_in(itf, &frame, path, now) {
            return;
        }
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
        let tlvs = self.interfaces[itf].tlvs.clone();
        self.feed(self.interfaces[itf].slot, |service| match service {
            Service::Lec(machine) => machine.handle_input(lec::Input::SetTlvs(tlvs), now),
            _ => Ok(()),
        });
    }

    /// Records that the LANE client of an interface is no longer a member of its ELAN.
    pub(super) fn interface_down(&mut self, itf: usize, now: Instant) {
        self.interfaces[itf].up = false;
        self.tell_mpc(mpc::Input::LecDown { itf }, now);
        self.tell_link(itf, false, now);
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

    /// Starts LE_ARP for the MPOA client. The result comes as an association.
    fn discover(&mut self, itf: usize, mac: MacAddr, now: Instant) {
        if let Some(interface) = self.interfaces.get(itf) {
            self.feed(interface.slot, |service| match service {
                Service::Lec(machine) => machine.handle_input(lec::Input::Resolve { mac }, now),
                _ => Ok(()),
            });
        }
    }

    /// Tells an MPOA client that has started what LE_ARP knows already.
    fn recall_neighbours(&mut self, itf: usize, now: Instant) {
        let Some(Service::Lec(lec)) = &self.slots[self.interfaces[itf].slot].service else {
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
        if let Some(slot) = self.mpc {
            self.feed(slot, |service| match service {
                Service::Mpc(machine) => machine.handle_input(input, now),
                _ => Ok(()),
            });
        }
    }

    /// Handles outputs of signalling: to the link, or to a user.
    pub(super) fn drain_signalling(&mut self, now: Instant) {
        use signalling::Output as Out;
        while let Some(output) = self.signalling.poll_output() {
            match output {
                Out::Send { vc, sdu } => {
                    let output = match self.writer(vc) {
                        Some(_) => HostOutput::Write { vc, sdu },
                        None => HostOutput::Send { vc, sdu },
                    };
                    self.out.push_back(output);
                }
                Out::OpenVc { vc, tx, .. } => {
                    self.out.push_back(HostOutput::OpenVc { vc, traffic: tx });
                }
                Out::CloseVc { vc } => self.out.push_back(HostOutput::CloseVc { vc }),
                Out::Trace(trace) => self.trace(trace),
                Out::Daemon(message) => self.tell_process(Role::Sigd, 0, message),
                Out::Event(user, event) => self.event(user.0.into(), &event, now),
                Out::Received { user, conn, sdu } => {
                    self.heard(sdu.mark, user, conn);
                    let event = AtmEvent::Received {
                        conn,
                        sdu: &sdu.octets[..],
                    };
                    self.event(user.0.into(), &event, now);
                }
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
