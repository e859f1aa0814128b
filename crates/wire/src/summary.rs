//! One line per SDU, for people who watch a connection: the protocol, and the contents in brief.
//!
//! The protocol of an SDU is derived from the SDU and its label alone, as for an observer of the link: VPI 0 VCI 5 is
//! signalling, VPI 0 VCI 16 is ILMI, AA-AA-03 begins LLC/SNAP, FF-00 begins LAN emulation control, and the rest is
//! taken for LAN emulation data. An SDU of another protocol without LLC on a VC of its own is therefore shown as a
//! frame of LAN emulation, or as bad.
//!
//! Text that peers choose (names of ELANs) is escaped: no part of a line moves the cursor of a terminal.

use crate::atmarp;
use crate::ilmi;
use crate::ipv4::{self, Ipv4View};
use crate::lane::{self, Control, ControlFrame, DataFrame, LanDestination, OpCode, Status};
use crate::llc::LlcSnap;
use crate::mpoa::{self, Tag};
use crate::nhrp::{self, Body, Packet, ProtocolAddress};
use crate::q2931::{Decoded, Ie, Message, id};
use crate::{Counted, DecodeError, MacAddr, Reader, SscopPdu, Vc, counted, vlan};
use core::fmt::{self, Write as _};

/// The summary of an SDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// `sscop`, `q2931`, `ilmi`, `lane`, `lane data`, `nhrp`, `mpoa`, `ipv4`, `ipv6`, `arp`, `ethernet` or `llc`.
    pub protocol: &'static str,
    /// The contents. If the SDU does not decode: `bad: FIELD at offset N: ...`, with N counted from the start of the
    /// unit that holds the field (the Q.2931 message, not the SSCOP PDU that carries it).
    pub text: String,
    /// True for signalling, LANE control, NHRP and MPOA; false for user data.
    pub control: bool,
}

impl Summary {
    fn new(protocol: &'static str, text: Result<String, DecodeError>) -> Self {
        Self {
            protocol,
            text: text.unwrap_or_else(|error| format!("bad: {error}")),
            control: matches!(
                protocol,
                "sscop" | "q2931" | "ilmi" | "lane" | "nhrp" | "mpoa"
            ),
        }
    }
}

/// True if [`summary`] would set `control`. This is cheap enough to call for every SDU that passes.
#[must_use]
pub fn is_control(vc: Vc, sdu: &[u8]) -> bool {
    let lnni = LlcSnap::LnniControl { elan_id: 0 }.header();
    vc == Vc::SIGNALLING
        || vc == Vc::ILMI
        || lane::is_control(sdu)
        || sdu.starts_with(&nhrp::LLC)
        || sdu.starts_with(&lnni)
}

/// The summary of an AAL5 SDU on `vc`.
#[must_use]
pub fn summary(vc: Vc, sdu: &[u8]) -> Summary {
    if vc == Vc::SIGNALLING {
        return signalling(sdu);
    }
    if vc == Vc::ILMI {
        return Summary::new(
            "ilmi",
            ilmi::Message::decode(sdu).map(|message| ilmi(&message)),
        );
    }
    if lane::is_control(sdu) {
        return Summary::new("lane", Control::decode(sdu).map(|frame| lane(&frame)));
    }
    if sdu.starts_with(&[0xaa, 0xaa, 0x03]) {
        return llc(sdu);
    }
    Summary::new(
        "lane data",
        DataFrame::decode(sdu)
            .map(|data| format!("{} (LECID {})", ethernet(data.frame), data.lecid)),
    )
}

fn signalling(sdu: &[u8]) -> Summary {
    match SscopPdu::decode(sdu) {
        Ok(SscopPdu::Data { info, .. } | SscopPdu::UnitData { info }) => Summary::new(
            "q2931",
            Message::decode(&info).map(|message| q2931(&message)),
        ),
        pdu => Summary::new("sscop", pdu.map(|pdu| sscop(&pdu))),
    }
}

fn sscop(pdu: &SscopPdu) -> String {
    let name = pdu.name();
    match pdu {
        SscopPdu::Begin { sq, mr, .. }
        | SscopPdu::Resync { sq, mr, .. }
        | SscopPdu::Recover { sq, mr } => format!("{name} sq {} mr {}", sq.0, mr.get()),
        SscopPdu::BeginAck { mr, .. }
        | SscopPdu::ResyncAck { mr }
        | SscopPdu::RecoverAck { mr } => format!("{name} mr {}", mr.get()),
        SscopPdu::End { by_sscop: true, .. } => format!("{name} by SSCOP"),
        SscopPdu::Poll { ps, s } => format!("{name} ps {} s {}", ps.get(), s.get()),
        SscopPdu::Stat { ps, mr, r, list } => {
            let mut text = format!("{name} ps {} r {} mr {}", ps.get(), r.get(), mr.get());
            if !list.is_empty() {
                // A peer may list many runs, so only their number is shown.
                let _ = write!(text, " with {} list elements", list.len());
            }
            text
        }
        SscopPdu::Ustat { mr, r, from, to } => format!(
            "{name} missing {}..{} r {} mr {}",
            from.get(),
            to.get(),
            r.get(),
            mr.get()
        ),
        SscopPdu::Data { info, .. }
        | SscopPdu::UnitData { info }
        | SscopPdu::ManagementData { info } => format!("{name} {}", octets(info)),
        SscopPdu::BeginReject { .. } | SscopPdu::End { .. } | SscopPdu::EndAck => name.to_owned(),
    }
}

/// `GetNextRequest 7 atmfNetPrefixStatus`: the kind, the number, the first variable, and how many follow.
fn ilmi(message: &ilmi::Message) -> String {
    let (mut text, bindings) = match &message.0 {
        ilmi::Pdu::Request(request) => {
            let mut text = format!("{} {}", request.kind.name(), request.id);
            if request.status != ilmi::ErrorStatus::NO_ERROR {
                push(&mut text, format_args!(" {}", request.status));
            }
            (text, &request.bindings)
        }
        ilmi::Pdu::Trap(trap) if trap.generic == ilmi::Trap::COLD_START => {
            ("Trap coldStart".to_owned(), &trap.bindings)
        }
        ilmi::Pdu::Trap(trap) => {
            let text = format!("Trap {} {}", trap.generic, trap.specific);
            (text, &trap.bindings)
        }
    };
    if let Some(first) = bindings.first() {
        match ilmi::mib::name_of(&first.name) {
            Some(name) => push(&mut text, format_args!(" {name}")),
            None => push(&mut text, format_args!(" {:?}", first.name)),
        }
    }
    if bindings.len() > 1 {
        push(&mut text, format_args!(" and {} more", bindings.len() - 1));
    }
    text
}

fn q2931(decoded: &Decoded) -> String {
    let message = &decoded.message;
    let mut text = match message.kind.definition() {
        Some(known) => known.name.to_owned(),
        None => format!("message {:#04x}", message.kind.0),
    };
    push(&mut text, format_args!(" cr {}", message.call.value));
    // Parties and kind first, then places, whatever their order on the wire.
    const SHOWN: [u8; 7] = [
        id::CALLED_NUMBER,
        id::CALLING_NUMBER,
        id::BLLI,
        id::CONNECTION_ID,
        id::ENDPOINT_REFERENCE,
        id::CALL_STATE,
        id::CAUSE,
    ];
    for shown in SHOWN {
        match decoded.ie(shown) {
            Some(Ie::CalledNumber(number)) => address(&mut text, "called", number.address()),
            Some(Ie::CallingNumber(number)) => address(&mut text, "calling", number.address()),
            Some(Ie::Blli(blli)) => push(&mut text, format_args!(" blli {blli:?}")),
            Some(Ie::ConnectionId(connection)) => {
                if let Some(vc) = connection.vc() {
                    push(&mut text, format_args!(" {vc}"));
                }
            }
            Some(Ie::EndpointReference { value, .. }) => {
                push(&mut text, format_args!(" party {value}"));
            }
            Some(Ie::CallState(state)) => push(&mut text, format_args!(" state {state}")),
            Some(Ie::Cause(cause)) => push(&mut text, format_args!(" cause {}", cause.value)),
            _ => {}
        }
    }
    for (element, verdict) in decoded.faults().take(3) {
        push(
            &mut text,
            format_args!(", element {:#04x}: {verdict:?}", element.id),
        );
    }
    text
}

fn address(text: &mut String, role: &str, address: Option<crate::AtmAddress>) {
    match address {
        Some(address) => push(text, format_args!(" {role} {address}")),
        None => push(text, format_args!(" {role} ?")),
    }
}

/// Appends to `text`: writing to a string cannot fail.
fn push(text: &mut String, more: fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}

fn lane(control: &Control) -> String {
    let frame = match control {
        Control::ReadyQuery => return OpCode::READY_QUERY.name().to_owned(),
        Control::ReadyIndication => return OpCode::READY_IND.name().to_owned(),
        Control::Frame(frame) => frame,
    };
    let mut text = frame.op.name().to_owned();
    let request = OpCode(frame.op.0 & !0x0100);
    lane_fields(&mut text, request, frame);
    if frame.status != Status::SUCCESS {
        push(&mut text, format_args!(", {}", frame.status));
    }
    text
}

fn lane_fields(text: &mut String, request: OpCode, frame: &ControlFrame) {
    let response = frame.op.is_response();
    let (source, target) = (frame.source_atm, frame.target_atm);
    match request {
        OpCode::CONFIGURE | OpCode::JOIN => {
            if !frame.elan.is_empty() {
                push(
                    text,
                    format_args!(" elan {}", frame.elan.to_string().escape_debug()),
                );
            }
            if response && request == OpCode::JOIN {
                push(text, format_args!(" lecid {}", frame.lecid));
            } else if response && !target.is_zero() {
                push(text, format_args!(" les {target}"));
            } else {
                push(text, format_args!(" from {source}"));
            }
        }
        OpCode::REGISTER | OpCode::UNREGISTER => {
            push(text, format_args!(" {} at {source}", lan(frame.source)));
        }
        OpCode::ARP => {
            push(text, format_args!(" {}", lan(frame.target)));
            if response && !target.is_zero() {
                push(text, format_args!(" at {target}"));
            }
        }
        OpCode::NARP => {
            push(
                text,
                format_args!(" {} at {source}, no longer at {target}", lan(frame.target)),
            );
        }
        OpCode::FLUSH | OpCode::VERIFY => push(text, format_args!(" {target}")),
        OpCode::TOPOLOGY => {
            let changes = frame.flags.contains(lane::Flags::TOPOLOGY_CHANGE);
            text.push_str(if changes { " change" } else { " no change" });
        }
        _ => push(text, format_args!(" {:#06x}", frame.op.0)),
    }
}

fn lan(destination: LanDestination) -> String {
    format!("{destination:?}")
}

fn llc(sdu: &[u8]) -> Summary {
    let (prefix, payload) = match LlcSnap::decode(sdu) {
        Ok(parts) => parts,
        Err(error) => return Summary::new("llc", Err(error)),
    };
    let prefix_len = sdu.len().saturating_sub(payload.len());
    match prefix {
        LlcSnap::Nhrp => nhrp_at(payload, prefix_len),
        LlcSnap::Ipv4 => Summary::new("ipv4", Ok(ip(payload))),
        LlcSnap::MpoaTagged { tag } => {
            Summary::new("ipv4", Ok(format!("{} (tagged {tag:#x})", ip(payload))))
        }
        LlcSnap::Arp => Summary::new("arp", Ok(arp(payload))),
        LlcSnap::Ipv6 => Summary::new("ipv6", Ok(format!("IPv6 {}", octets(payload)))),
        LlcSnap::BridgedEthernet { .. } => Summary::new("ethernet", Ok(ethernet(payload))),
        LlcSnap::LaneData { elan_id } => Summary::new(
            "lane data",
            Ok(format!("{} (ELAN-ID {elan_id})", octets(payload))),
        ),
        LlcSnap::LnniControl { elan_id } => Summary::new(
            "lane",
            Ok(format!("LNNI {} (ELAN-ID {elan_id})", octets(payload))),
        ),
        LlcSnap::Other {
            oui: [a, b, c],
            pid,
        } => Summary::new(
            "llc",
            Ok(format!(
                "SNAP {a:02x}-{b:02x}-{c:02x} {pid:04x} {}",
                octets(payload)
            )),
        ),
    }
}

/// The summary of an NHRP or MPOA packet without LLC, as GRE carries it.
#[must_use]
pub fn nhrp(packet: &[u8]) -> Summary {
    nhrp_at(packet, 0)
}

fn nhrp_at(payload: &[u8], prefix_len: usize) -> Summary {
    match Packet::decode(payload) {
        Ok(packet) => {
            let protocol = if packet.op < 128 { "nhrp" } else { "mpoa" };
            Summary::new(protocol, Ok(resolution(&packet)))
        }
        Err(mut error) => {
            error.offset = error.offset.saturating_add(prefix_len);
            Summary::new("nhrp", Err(error))
        }
    }
}

fn resolution(packet: &Packet) -> String {
    let mut text = mpoa::op_name(packet.op).to_owned();
    let common = match &packet.body {
        Body::Common(common) => common,
        Body::Error(error) => {
            indication(&mut text, packet.op, error);
            return text;
        }
    };
    push(&mut text, format_args!(" id {}", common.request_id));
    if common.source != ProtocolAddress::NONE || common.destination != ProtocolAddress::NONE {
        let (from, to) = (protocol(&common.source), protocol(&common.destination));
        push(&mut text, format_args!(" {from} → {to}"));
    }
    let reply = matches!(
        packet.op,
        nhrp::op::RESOLUTION_REPLY
            | nhrp::op::REGISTRATION_REPLY
            | mpoa::op::IMPOSITION_REPLY
            | mpoa::op::EGRESS_PURGE_REPLY
            | mpoa::op::RESOLUTION_REPLY
    );
    let purge = matches!(
        packet.op,
        nhrp::op::PURGE_REQUEST
            | nhrp::op::PURGE_REPLY
            | mpoa::op::EGRESS_PURGE_REQUEST
            | mpoa::op::EGRESS_PURGE_REPLY
    );
    if let Some(entry) = common.cies.first() {
        let of_entry = protocol(&entry.protocol);
        if purge {
            push(&mut text, format_args!(" of {of_entry}/{}", entry.prefix));
        } else if entry.protocol != ProtocolAddress::NONE {
            // In answers to resolutions this address is the next hop.
            push(&mut text, format_args!(" via {of_entry}"));
        }
        if reply {
            push(&mut text, format_args!(" code {}", entry.code));
        }
        if entry.code != nhrp::code::OK {
            push(
                &mut text,
                format_args!(" ({})", mpoa::code_name(entry.code)),
            );
        }
        match (entry.nbma.atm(), entry.nbma.ip()) {
            (Some(at), _) => push(&mut text, format_args!(" at {at}")),
            (_, Some(at)) => push(&mut text, format_args!(" at {at}")),
            _ => {}
        }
    }
    if let Ok(Some(Tag::Value(tag))) = Tag::of(packet) {
        push(&mut text, format_args!(" tag {tag:#x}"));
    }
    text
}

fn indication(text: &mut String, op: u8, error: &nhrp::ErrorIndication) {
    let (from, to) = (protocol(&error.source), protocol(&error.destination));
    push(text, format_args!(" {from} → {to}"));
    if op == nhrp::op::ERROR_INDICATION {
        let name = nhrp::error::name(error.code);
        push(text, format_args!(" code {} ({name})", error.code));
    }
}

fn protocol(address: &ProtocolAddress) -> String {
    match address.ip() {
        Some(ip) => ip.to_string(),
        None => "-".to_owned(),
    }
}

/// An Ethernet frame without FCS.
fn ethernet(frame: &[u8]) -> String {
    let mut reader = Reader::new(frame);
    let mut header = || -> Result<(MacAddr, MacAddr, Option<vlan::Tag>, u16), DecodeError> {
        let destination = MacAddr(reader.array("destination MAC")?);
        let source = MacAddr(reader.array("source MAC")?);
        let tag = vlan::Tag::decode(frame)?;
        if tag.is_some() {
            reader.take("VLAN tag", vlan::TAG_LEN)?;
        }
        Ok((destination, source, tag, reader.u16("type/length")?))
    };
    match header() {
        Ok((destination, source, tag, kind)) => {
            let payload = reader.rest();
            let inner = match kind {
                0x0800 => ip(payload),
                0x0806 => arp(payload),
                _ => format!("type {kind:#06x} {}", octets(payload)),
            };
            let tag = match tag {
                Some(tag) => format!("VLAN {} priority {} ", tag.vid, tag.pcp),
                None => String::new(),
            };
            format!("Ethernet {source} → {destination} {tag}{inner}")
        }
        Err(error) => format!("bad: {error}"),
    }
}

fn ip(packet: &[u8]) -> String {
    let Some(view) = Ipv4View::new(packet) else {
        return "bad: IPv4 header at offset 0".to_owned();
    };
    let protocol = match view.protocol() {
        ipv4::ICMP => "icmp".to_owned(),
        ipv4::TCP => "tcp".to_owned(),
        ipv4::UDP => "udp".to_owned(),
        other => format!("protocol {other}"),
    };
    let (from, to) = (view.source(), view.destination());
    let length = counted(view.total_len(), "octet", "octets");
    format!("IPv4 {from} → {to} {protocol} {length}")
}

/// The length of something whose contents are not shown.
fn octets(of: &[u8]) -> Counted {
    counted(of.len(), "octet", "octets")
}

/// ARP for IPv4, of Ethernet or of ATM (RFC 2225). Only fields whose position does not depend on the length of hardware
/// addresses are shown.
fn arp(packet: &[u8]) -> String {
    let mut reader = Reader::new(packet);
    let mut read = || -> Result<String, DecodeError> {
        let hardware = reader.u16("hardware type")?;
        reader.u16("protocol type")?;
        let lengths: [u8; 2] = reader.array("address lengths")?;
        let operation = reader.u16("operation")?;
        if hardware == 0x13 {
            return atmarp::AtmArp::decode(packet).map(|packet| {
                let ip = |party: &atmarp::Party| party.ip.map_or("?".into(), |ip| ip.to_string());
                let (source, target) = (ip(&packet.source), ip(&packet.target));
                format!("{} {source} → {target}", packet.operation)
            });
        }
        if hardware != 1 || lengths != [6, 4] {
            return Ok(format!("ARP hardware {hardware} operation {operation}"));
        }
        let mac = MacAddr(reader.array("sender MAC")?);
        let sender = core::net::Ipv4Addr::from(reader.array::<4>("sender IP")?);
        reader.take("target MAC", 6)?;
        let target = core::net::Ipv4Addr::from(reader.array::<4>("target IP")?);
        Ok(match operation {
            1 => format!("ARP who has {target}, tell {sender}"),
            2 => format!("ARP {sender} is at {mac}"),
            other => format!("ARP operation {other} {sender} → {target}"),
        })
    };
    read().unwrap_or_else(|error| format!("bad: {error}"))
}
