//! The answers of the LES, and the frames that it forwards. Source: LUNI 2.0 clauses 6 and 7.

use super::{Client, Les, Output, Registration, State};
use crate::lane::quota::Verdict;
use crate::{ConnId, Instant, Trace};
use aerostat_wire::lane::{
    ControlFrame, Flags, LanType, MaxFrameSize, OpCode, Status, Tlv, TlvType,
};
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::btree_map;

impl Les {
    pub(super) fn control(&mut self, conn: ConnId, frame: &ControlFrame, now: Instant) {
        if frame.op == OpCode::JOIN {
            return self.join(conn, frame, now);
        }
        if frame.version != 1 {
            self.counters.bad += 1;
            if !frame.op.is_response() {
                self.send(conn, &frame.response(Status::VERSION));
            }
            return;
        }
        // Responses carry the LECID of the requester.
        if frame.op == OpCode::ARP.response() || frame.op == OpCode::FLUSH.response() {
            return self.forward_response(conn, frame);
        }
        let Some(client) = self.clients.get(&conn) else {
            return;
        };
        if !matches!(client.state, State::Joined) || client.lecid != frame.lecid {
            self.counters.forged += 1;
            let answered = [
                OpCode::REGISTER,
                OpCode::UNREGISTER,
                OpCode::ARP,
                OpCode::VERIFY,
            ];
            if answered.contains(&frame.op) {
                self.send(conn, &frame.response(Status::REQUESTER));
            }
            return;
        }
        if matches!(frame.op, OpCode::ARP | OpCode::NARP) && !self.may_say(conn, frame) {
            self.counters.forged += 1;
            return;
        }
        match frame.op {
            OpCode::REGISTER | OpCode::UNREGISTER => self.registration(conn, frame, now),
            OpCode::ARP => self.arp(conn, frame, now),
            OpCode::NARP | OpCode::TOPOLOGY => self.announce(conn, frame, now),
            OpCode::VERIFY => {
                let known = frame.target_atm == self.config.bus;
                let status = if known {
                    Status::SUCCESS
                } else {
                    Status::ATM_ADDRESS
                };
                self.send(conn, &frame.response(status));
            }
            _ => self.counters.bad += 1,
        }
    }

    // ---- join ----

    fn join(&mut self, conn: ConnId, frame: &ControlFrame, now: Instant) {
        let Some(client) = self.clients.get(&conn) else {
            return;
        };
        match client.state {
            // The answer is under way.
            State::Joining { .. } => return,
            State::Joined => {
                let again = client.response.clone().map(|mut response| {
                    response.transaction = frame.transaction;
                    response
                });
                if let Some(response) = again {
                    self.send(conn, &response);
                }
                return;
            }
            State::Connected => {}
        }
        let lecid = match self.judge_join(client, frame) {
            Ok(lecid) => lecid,
            Err(status) => {
                self.counters.joins_refused += 1;
                return self.send(conn, &frame.response(status));
            }
        };
        let response = self.join_response(frame, lecid);
        let v2 = response.flags.contains(Flags::V2_REQUIRED);
        let mac = frame.source.as_mac();
        let Some(client) = self.clients.get_mut(&conn) else {
            return;
        };
        client.lecid = lecid;
        client.v2 = v2;
        client.selective = v2 && frame.flags.contains(Flags::SELECTIVE_MULTICAST);
        client.proxy = frame.flags.contains(Flags::PROXY);
        client.silent = mac.is_none();
        client.macs.extend(mac);
        client.state = State::Joining {
            response: Box::new(response),
        };
        let address = client.address;
        self.waits_no_more(conn, address);
        self.lecids.insert(lecid, conn);
        self.lowest = lecid + 1;
        self.members.insert(address, conn);
        if let Some(mac) = mac {
            let tlvs = frame.tlvs.list.clone();
            let registration = Registration {
                conn,
                atm: address,
                tlvs,
            };
            self.macs.insert(mac, registration);
        }
        self.tree.add(address, now);
    }

    /// The LECID to assign, or why not.
    fn judge_join(&self, client: &Client, frame: &ControlFrame) -> Result<u16, Status> {
        if frame.version != 1 {
            return Err(Status::VERSION);
        }
        // The network guarantees the caller's address; a client cannot join in the name of another.
        if frame.source_atm != client.address {
            return Err(Status::ATM_ADDRESS);
        }
        let config = &self.config;
        let kind = [LanType::UNSPECIFIED, config.lan_type].contains(&frame.lan_type);
        // The Linux client that takes 1580 octets says 1516, and adds the X5 TLV.
        let adjusted = frame.max_frame == MaxFrameSize::S1516
            && frame.tlvs.get(TlvType::X5_ADJUSTMENT).is_some();
        let asked = if adjusted {
            MaxFrameSize::S1580
        } else {
            frame.max_frame
        };
        let wanted = asked.octets().unwrap_or(u16::MAX);
        let known = frame.max_frame == MaxFrameSize::UNSPECIFIED || wanted != u16::MAX;
        let size = known && wanted >= config.max_frame.octets().unwrap_or(0);
        let name = frame.elan.is_empty() || frame.elan.same(&config.elan);
        if !kind || !size || !name || frame.source.tag > 1 {
            return Err(Status::PARAMETERS);
        }
        let mac = frame.source.as_mac();
        if mac.is_some_and(|mac| mac.is_group() || mac == MacAddr::default()) {
            return Err(Status::LAN_DESTINATION);
        }
        if mac.is_some_and(|mac| self.macs.contains_key(&mac)) {
            return Err(Status::DUPLICATE_LAN);
        }
        if self.members.contains_key(&client.address) {
            return Err(Status::DUPLICATE_ATM);
        }
        let mut free = (self.lowest..=0xfeff).filter(|lecid| !self.lecids.contains_key(lecid));
        free.next().ok_or(Status::RESOURCES)
    }

    fn join_response(&self, frame: &ControlFrame, lecid: u16) -> ControlFrame {
        let config = &self.config;
        let mut response = frame.response(Status::SUCCESS);
        response.lecid = lecid;
        response.lan_type = config.lan_type;
        response.max_frame = config.max_frame;
        response.elan = config.elan;
        if config.v2 && frame.flags.contains(Flags::V2_CAPABLE) {
            response.flags = response.flags.with(Flags::V2_REQUIRED);
            response.tlvs = vec![Tlv::u32(TlvType::ELAN_ID, config.elan_id)].into();
        }
        response
    }

    // ---- registration ----

    /// Handles LE_REGISTER and LE_UNREGISTER, within the member's quota.
    fn registration(&mut self, conn: ConnId, frame: &ControlFrame, now: Instant) {
        let Some(sender) = self.clients.get(&conn).map(|client| client.address) else {
            return;
        };
        let verdict = self.registrations.take(sender, now);
        if verdict != Verdict::Pass {
            self.counters.registrations_over_quota += 1;
            return self.tell_quota(verdict, sender, "registrations");
        }
        match frame.op == OpCode::REGISTER {
            true => self.register(conn, frame),
            false => self.unregister(conn, frame),
        }
    }

    fn register(&mut self, conn: ConnId, frame: &ControlFrame) {
        let status = self.try_register(conn, frame).err();
        if status.is_some() {
            self.counters.registrations_refused += 1;
        }
        self.send(conn, &frame.response(status.unwrap_or_default()));
    }

    fn try_register(&mut self, conn: ConnId, frame: &ControlFrame) -> Result<(), Status> {
        let mac = frame
            .source
            .as_mac()
            .filter(|mac| *mac != MacAddr::default());
        let mac = mac.ok_or(Status::LAN_DESTINATION)?;
        let owner = self.members.get(&frame.source_atm);
        if owner.is_some_and(|owner| *owner != conn) {
            return Err(Status::DUPLICATE_ATM);
        }
        let client = self.clients.get_mut(&conn).ok_or(Status::REQUESTER)?;
        // Only addresses of the same end system: no client can draw another host's frames.
        if !client.address.same_end_system(&frame.source_atm) {
            return Err(Status::ATM_ADDRESS);
        }
        if mac.is_group() {
            return self.register_group(conn, mac);
        }
        let tlvs = frame.tlvs.list.clone();
        match self.macs.entry(mac) {
            btree_map::Entry::Occupied(entry) if entry.get().conn != conn => {
                Err(Status::DUPLICATE_LAN)
            }
            btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().tlvs = tlvs;
                let before = core::mem::replace(&mut entry.get_mut().atm, frame.source_atm);
                if before != frame.source_atm {
                    self.tell_macs(conn);
                }
                Ok(())
            }
            btree_map::Entry::Vacant(entry) => {
                if client.macs.len() + client.groups.len() >= self.config.params.registrations {
                    return Err(Status::RESOURCES);
                }
                let atm = frame.source_atm;
                entry.insert(Registration { conn, atm, tlvs });
                client.macs.insert(mac);
                self.tell_macs(conn);
                Ok(())
            }
        }
    }

    /// A group address may be registered by several clients. Broadcast frames go to all clients in any case.
    fn register_group(&mut self, conn: ConnId, mac: MacAddr) -> Result<(), Status> {
        let limit = self.config.params.registrations;
        let client = self.clients.get_mut(&conn).ok_or(Status::REQUESTER)?;
        if !client.v2 {
            return Err(Status::LAN_DESTINATION);
        }
        if mac == MacAddr::BROADCAST || client.groups.contains(&mac) {
            return Ok(());
        }
        if client.macs.len() + client.groups.len() >= limit {
            return Err(Status::RESOURCES);
        }
        client.groups.insert(mac);
        self.tell_groups(conn);
        Ok(())
    }

    fn tell_groups(&mut self, conn: ConnId) {
        if self
            .clients
            .get(&conn)
            .is_some_and(|client| client.selective)
        {
            self.tell_member(conn);
        }
    }

    /// The unicast addresses of a client have changed.
    fn tell_macs(&mut self, conn: ConnId) {
        if self.clients.get(&conn).is_some_and(Client::registers_all) {
            self.tell_member(conn);
        }
    }

    fn unregister(&mut self, conn: ConnId, frame: &ControlFrame) {
        let mac = frame.source.as_mac();
        if let Some(client) = self.clients.get_mut(&conn)
            && mac.is_some_and(|mac| client.groups.remove(&mac))
        {
            self.tell_groups(conn);
        }
        let own = mac.filter(|mac| self.macs.get(mac).is_some_and(|known| known.conn == conn));
        if let Some(mac) = own {
            self.macs.remove(&mac);
            if let Some(client) = self.clients.get_mut(&conn) {
                client.macs.remove(&mac);
            }
            self.tell_macs(conn);
        }
        self.send(conn, &frame.response(Status::SUCCESS));
    }

    // ---- address resolution ----

    /// The source that a request names must be the sender's own: its end system, and no MAC address that another client
    /// has registered. Otherwise a member could draw the frames of another host to itself.
    fn may_say(&self, conn: ConnId, frame: &ControlFrame) -> bool {
        let source = frame.source_atm;
        let own = |client: &Client| source.is_zero() || client.address.same_end_system(&source);
        // LE_NARP names the moved address as its target; in LE_ARP the target is the question.
        let moved = (frame.op == OpCode::NARP).then_some(&frame.target);
        let mut claimed = [Some(&frame.source), moved].into_iter().flatten();
        self.clients.get(&conn).is_some_and(own)
            && claimed.all(|place| self.free_for(conn, place.as_mac()))
    }

    /// True if no other client has registered this MAC address.
    fn free_for(&self, conn: ConnId, mac: Option<MacAddr>) -> bool {
        let known = mac.and_then(|mac| self.macs.get(&mac));
        known.is_none_or(|known| known.conn == conn)
    }

    fn arp(&mut self, conn: ConnId, frame: &ControlFrame, now: Instant) {
        self.counters.arp_requests += 1;
        let Some(mac) = frame.target.as_mac() else {
            // A targetless request is an announcement.
            return self.announce(conn, frame, now);
        };
        let v2 = self.clients.get(&conn).is_some_and(|client| client.v2);
        if mac.is_group() {
            let mut response = frame.response(Status::SUCCESS);
            response.target_atm = self.config.bus;
            return self.send(conn, &response);
        }
        if let Some(known) = self.macs.get(&mac) {
            let mut response = frame.response(Status::SUCCESS);
            response.flags = response.flags.without(Flags::REMOTE);
            response.target_atm = known.atm;
            if v2 {
                response.tlvs = known.tlvs.clone().into();
            }
            return self.send(conn, &response);
        }
        let may_know = |client: &Client| {
            matches!(client.state, State::Joined) && (client.proxy || client.silent)
        };
        let asked: Vec<ConnId> = (self.clients.iter())
            .filter(|(other, client)| **other != conn && may_know(client))
            .map(|(other, _)| *other)
            .collect();
        if asked.is_empty() {
            self.counters.arp_unknown += 1;
            return;
        }
        let Some(sender) = self.clients.get(&conn).map(|client| client.address) else {
            return;
        };
        let verdict = self.unregistered.take(sender, now);
        if verdict != Verdict::Pass {
            self.counters.arp_over_quota += 1;
            return self.tell_quota(verdict, sender, "questions for unregistered addresses");
        }
        for other in asked {
            self.counters.forwarded += 1;
            self.send(other, frame);
        }
    }

    /// Forwards a member's announcement to all members, within the member's quota.
    fn announce(&mut self, conn: ConnId, frame: &ControlFrame, now: Instant) {
        let Some(sender) = self.clients.get(&conn).map(|client| client.address) else {
            return;
        };
        let verdict = self.quota.take(sender, now);
        if verdict == Verdict::Pass {
            return self.distribute(frame);
        }
        self.counters.over_quota += 1;
        self.tell_quota(verdict, sender, "announcements");
    }

    fn tell_quota(&mut self, verdict: Verdict, sender: AtmAddress, of: &str) {
        if verdict == Verdict::Tell {
            let text = format!("{sender} sends more {of} than its quota: the rest is dropped");
            let trace = Trace::milestone("les.over-quota", text).with("address", sender);
            self.out.push_back(Output::Trace(trace));
        }
    }

    /// LE_ARP and LE_FLUSH responses go to the client whose LECID they carry.
    fn forward_response(&mut self, conn: ConnId, frame: &ControlFrame) {
        let member = |conn: &ConnId| {
            let client = self.clients.get(conn);
            client.is_some_and(|client| matches!(client.state, State::Joined))
        };
        let to = self.lecids.get(&frame.lecid).copied().filter(member);
        // The answer to LE_ARP must contain an ATM address of the sender, and no MAC address of another client.
        let own = self.clients.get(&conn).is_some_and(|client| {
            frame.op != OpCode::ARP.response()
                || client.address.same_end_system(&frame.target_atm)
                    && self.free_for(conn, frame.target.as_mac())
        });
        match to {
            Some(to) if member(&conn) && own => {
                self.counters.forwarded += 1;
                self.send(to, frame);
            }
            _ => self.counters.forged += 1,
        }
    }
}
