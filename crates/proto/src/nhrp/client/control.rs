//! Messages between a client and its server.

use std::net::Ipv4Addr;

use aerostat_wire::nhrp::{Body, Cie, Common, Extension, Packet, code, error, ext, flag, op};

use super::{Asked, CONTROL_SDU, Carries, Nhc, Output, Refusal};
use crate::nhrp::{Fault, transit};
use crate::requests::Outstanding;
use crate::vcc::{Bounds, Offered, Vcc};
use crate::{AtmRequest, ConnId, Duration, Instant, Trace};

/// Largest number of addresses of a purge on a connection to a destination that are handled.
const PURGED_MAX: usize = 256;

impl Nhc {
    /// Sends a registration, unless one is outstanding already.
    pub(super) fn register(&mut self, now: Instant) {
        self.register_at = None;
        let asked = |request: Outstanding<'_, Asked>| *request.what == Asked::Registration;
        if self.config.params.holding_s() == 0 || self.requests.iter().any(asked) {
            return;
        }
        match self
            .requests
            .open(Asked::Registration, self.config.retry, now)
        {
            Some(id) => self.send_registration(id, now),
            None => {
                self.counters.limits_met += 1;
                self.register_at = Some(now + self.config.params.hold_down);
            }
        }
    }

    pub(super) fn send_registration(&mut self, id: u32, now: Instant) {
        self.counters.registrations_sent += 1;
        let config = &self.config;
        let cie = Cie {
            prefix: 0xff,
            mtu: config.mtu,
            holding_s: config.params.holding_s(),
            nbma: config.data.into(),
            protocol: config.ip.into(),
            ..Cie::default()
        };
        let flags = flag::REGISTRATION_UNIQUE;
        let packet = self.packet(op::REGISTRATION_REQUEST, flags, id, config.server.0, cie);
        let packet = packet.with(Extension::compulsory(ext::RESPONDER, vec![]));
        self.send_control(packet, now);
    }

    pub(super) fn send_request(&mut self, id: u32, destination: Ipv4Addr, now: Instant) {
        self.counters.requests_sent += 1;
        let flags = if self.wants_first_hand(destination) {
            flag::AUTHORITATIVE
        } else {
            0
        };
        let cie = Cie::brief(self.config.params.prefix, 0);
        let mut packet = self.packet(op::RESOLUTION_REQUEST, flags, id, destination, cie);
        for kind in [ext::RESPONDER, ext::FORWARD_TRANSIT, ext::REVERSE_TRANSIT] {
            packet = packet.with(Extension::compulsory(kind, vec![]));
        }
        self.send_control(packet, now);
    }

    /// The station stops: stations that know its address must not send there any more. No reply is expected.
    pub(super) fn deregister(&mut self, now: Instant) {
        if self.registered.take().is_none() {
            return;
        }
        let id = self.requests.skip_id();
        let config = &self.config;
        let cie = Cie {
            prefix: 0xff,
            protocol: config.ip.into(),
            ..Cie::default()
        };
        let packet = self.packet(op::PURGE_REQUEST, flag::NO_REPLY, id, config.server.0, cie);
        self.send_control(packet, now);
    }

    /// A packet of this station with one entry.
    fn packet(&self, op: u8, flags: u16, id: u32, destination: Ipv4Addr, cie: Cie) -> Packet {
        Packet::new(
            op,
            Common {
                flags,
                request_id: id,
                source_nbma: self.config.address.into(),
                source: self.config.ip.into(),
                destination: destination.into(),
                cies: vec![cie],
                ..Common::default()
            },
        )
    }

    /// Sends to the server, on an existing connection or a new one.
    fn send_control(&mut self, mut packet: Packet, now: Instant) {
        let server = self.config.server.1;
        self.config.keys.sign(server, &mut packet);
        let bounds = Bounds {
            held: self.config.limits.queue,
            dial: self.may_call(),
        };
        let to = (server, Carries::Control);
        match self.conns.offer(to, packet.to_sdu(), bounds, now) {
            Offered::Send(send) => self.request(send),
            Offered::Held => {}
            Offered::Dial => {
                self.call(server, Carries::Control, CONTROL_SDU, now);
            }
            Offered::Full => self.counters.limits_met += 1,
        }
    }

    /// Handles an SDU of the server.
    pub(super) fn control_sdu(&mut self, sdu: &[u8], now: Instant) {
        let Ok(mut packet) = Packet::from_sdu(sdu) else {
            self.counters.malformed += 1;
            return;
        };
        if let Err(fault) = (self.config.keys).admit(self.config.server.1, &mut packet) {
            return self.fault(&packet, fault, now);
        }
        if let (op::ERROR_INDICATION, Body::Error(indication)) = (packet.op, &packet.body) {
            let (code, offending) = (indication.code, Packet::decode(&indication.offending));
            *self.counters.errors_received.entry(code).or_default() += 1;
            return match offending {
                Ok(offending) => self.error(&offending, code, now),
                Err(_) => self.counters.malformed += 1,
            };
        }
        match packet.op {
            op::REGISTRATION_REPLY => self.registration_reply(&packet, now),
            op::RESOLUTION_REPLY => self.resolution_reply(&packet, now),
            op::PURGE_REQUEST => self.purge(&packet, now),
            _ => self.counters.unexpected += 1,
        }
    }

    fn registration_reply(&mut self, packet: &Packet, now: Instant) {
        let id = packet.common().map_or(0, |common| common.request_id);
        let cie = packet.common().and_then(|common| common.cies.first());
        let (Some(Asked::Registration), Some(cie)) = (self.requests.get(id), cie) else {
            self.counters.unexpected += 1;
            return;
        };
        self.requests.close(id);
        *self
            .counters
            .registration_replies
            .entry(cie.code)
            .or_default() += 1;
        if cie.code != code::OK {
            self.registered = None;
            self.register_at = Some(now + self.config.params.hold_down);
            let text = format!("the server refused the registration with code {}", cie.code);
            return self.trace(Trace::milestone("nhc.refused", text).with("code", cie.code));
        }
        // A server may grant less than was requested.
        let holding = Duration::from_secs(
            cie.holding_s
                .clamp(1, self.config.params.holding_s())
                .into(),
        );
        let first = self.registered.is_none();
        self.registered = Some(now + holding);
        self.register_at = Some(now + holding / 3);
        if first {
            let text = format!("{} is registered", self.config.ip);
            let trace = Trace::milestone("nhc.registered", text);
            self.trace(trace.with("server", self.config.server.0));
        }
    }

    fn resolution_reply(&mut self, packet: &Packet, now: Instant) {
        let Some(common) = packet.common() else {
            return;
        };
        let (id, destination) = (common.request_id, common.destination.ipv4());
        let destination = match (self.requests.get(id), destination) {
            (Some(Asked::Resolution(asked)), Some(told)) if *asked == told => told,
            _ => {
                self.counters.unexpected += 1;
                let (code, offset) = (error::UNSOLICITED_REPLY, 0);
                return self.fault(packet, Fault { code, offset }, now);
            }
        };
        self.requests.close(id);
        let authoritative = common.flags & flag::AUTHORITATIVE != 0;
        // RFC 2332 §5.2.0.1: of several next hops the preferred one is used; an answer with this station's own address
        // is useless.
        let own = self.config.data;
        let usable = common.cies.iter().filter(|cie| {
            let nbma = cie.nbma.atm();
            let elsewhere = nbma.is_some_and(|nbma| !nbma.same_end_system(&own));
            cie.code == code::OK && cie.holding_s > 0 && elsewhere
        });
        let told = common.cies.first().map_or(code::NO_BINDING, |cie| cie.code);
        let best = usable.max_by_key(|cie| cie.preference).cloned();
        let counted = best.as_ref().map_or(told, |cie| cie.code);
        *self.counters.replies.entry(counted).or_default() += 1;
        match best {
            Some(cie) => self.resolved(destination, &cie, packet, now),
            None if !authoritative && !self.wants_first_hand(destination) => {
                self.ask_first_hand(destination, now);
            }
            None => self.refused(destination, Refusal::Code(told), now),
        }
    }

    fn purge(&mut self, packet: &Packet, now: Instant) {
        self.counters.purges += 1;
        // This station answers the packet, so it must know all compulsory extensions.
        let extensions = match self.station().reply_extensions(packet) {
            Ok(extensions) => extensions,
            Err(fault) => return self.fault(packet, fault, now),
        };
        let Some(common) = packet.common() else {
            return;
        };
        for cie in &common.cies {
            let Some(address) = cie.protocol.ip() else {
                self.counters.malformed += 1;
                continue;
            };
            self.purged(
                (address, transit::prefix_len(cie, address)),
                cie.nbma.atm(),
                now,
            );
        }
        if common.flags & flag::NO_REPLY == 0 {
            let (flags, cies) = (common.flags, common.cies.clone());
            let reply = transit::reply(packet, op::PURGE_REPLY, flags, cies, extensions);
            self.send_control(reply, now);
        }
    }

    /// Handles a control packet on a connection to a destination: the station at its end says that packets find no
    /// entry there any more. It can end only ways to itself. Source: MPOA 1.1 §4.4.6, RFC 2332 §5.2.4.
    pub(super) fn purge_on_way(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        let Some(peer) = self.conns.get(conn).map(Vcc::peer) else {
            return;
        };
        let Ok(mut packet) = Packet::from_sdu(sdu) else {
            self.counters.malformed += 1;
            return;
        };
        if let Err(fault) = self.config.keys.admit_on_shortcut(peer, &mut packet) {
            let sdu = self
                .indication(&packet, fault)
                .map(|packet| packet.to_sdu());
            return (self.out).extend(sdu.map(|sdu| Output::Atm(AtmRequest::Send { conn, sdu })));
        }
        let common = match &packet.body {
            Body::Common(common) if packet.op == op::PURGE_REQUEST => common,
            Body::Common(_) | Body::Error(_) => {
                self.counters.unexpected += 1;
                return;
            }
        };
        self.counters.purges += 1;
        if common.flags & flag::NO_REPLY == 0
            && let Some(mut reply) = packet.reply(common.cies.clone())
        {
            self.config.keys.sign_on_shortcut(&mut reply);
            let sdu = reply.to_sdu();
            self.request(AtmRequest::Send { conn, sdu });
        }
        for cie in common.cies.iter().take(PURGED_MAX) {
            if let Some(address) = cie.protocol.ip() {
                let prefix_len = transit::prefix_len(cie, address);
                self.purged((address, prefix_len), Some(peer), now);
            }
        }
    }

    /// Handles an Error Indication about a request of this client.
    fn error(&mut self, offending: &Packet, code: u16, now: Instant) {
        let id = offending.common().map_or(0, |common| common.request_id);
        match self.requests.get(id).copied() {
            Some(Asked::Registration) if offending.op == op::REGISTRATION_REQUEST => {
                self.requests.close(id);
                self.register_at = Some(now + self.config.params.hold_down);
                let text = format!("the registration was refused with error {code}");
                self.trace(Trace::milestone("nhc.refused", text).with("error", code));
            }
            Some(Asked::Resolution(destination)) if offending.op == op::RESOLUTION_REQUEST => {
                self.requests.close(id);
                self.refused(destination, Refusal::Error(code), now);
            }
            _ => self.counters.unexpected += 1,
        }
    }

    /// Tells the server that its packet was refused.
    fn fault(&mut self, packet: &Packet, fault: Fault, now: Instant) {
        if let Some(indication) = self.indication(packet, fault) {
            self.send_control(indication, now);
        }
    }

    /// The Error Indication about a packet that was refused; `None` if the packet is one itself.
    fn indication(&mut self, packet: &Packet, fault: Fault) -> Option<Packet> {
        let (nbma, ip) = (self.config.address, self.config.ip.into());
        let indication = Packet::error_about(&packet.encode(), fault.code, fault.offset, nbma, ip);
        let counters = &mut self.counters;
        match &indication {
            Some(_) => *counters.errors_sent.entry(fault.code).or_default() += 1,
            None => counters.unexpected += 1,
        }
        indication
    }

    /// A request was not answered in time.
    pub(super) fn unanswered(&mut self, asked: Asked, now: Instant) {
        self.counters.unanswered += 1;
        match asked {
            Asked::Registration => {
                let text = match self.refused_call.take() {
                    Some(cause) => format!("no connection with the NHRP server: {cause}"),
                    None => "the NHRP server does not answer the registration".to_owned(),
                };
                self.trace(Trace::detail("nhc.unregistered", text));
                self.register_at =
                    Some(now + self.config.params.hold_down.min(self.config.retry.give_up));
            }
            Asked::Resolution(destination) => self.refused(destination, Refusal::Unanswered, now),
        }
    }
}
