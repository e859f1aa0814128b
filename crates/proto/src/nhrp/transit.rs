//! Handling of packets that a server forwards or answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aerostat_wire::mpoa;
use aerostat_wire::nhrp::{
    Body, Cie, Extension, PROTOCOL_IPV6, Packet, code, error, ext, flag, op,
};
use aerostat_wire::prefix::width;
use aerostat_wire::{AtmAddress, Reader};

/// Why a packet cannot be forwarded: code and offset of the Error Indication to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Error code (`aerostat_wire::nhrp::error`).
    pub code: u16,
    /// Octets from the start of the offending packet; 0 if no field can be named.
    pub offset: u16,
}

impl Fault {
    const fn new(code: u16) -> Self {
        Self { code, offset: 0 }
    }
}

/// The identity of a server in all records (RFC 2332 §5.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its ATM address.
    pub nbma: AtmAddress,
    /// The protocol address in records.
    pub protocol: Ipv4Addr,
    /// The same for packets about IPv6, if it has one.
    pub protocol6: Option<Ipv6Addr>,
    /// All its protocol addresses.
    pub own: Vec<IpAddr>,
}

impl Station {
    /// True if the address is one of this station's.
    #[must_use]
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }

    /// Its address in packets of this `ar$pro.type`.
    #[must_use]
    pub fn name(&self, protocol: u16) -> IpAddr {
        let six = self.protocol6.filter(|_| protocol == PROTOCOL_IPV6);
        six.map_or(self.protocol.into(), IpAddr::V6)
    }

    /// Its address in packets about this address.
    #[must_use]
    pub fn name_for(&self, address: IpAddr) -> IpAddr {
        let six = self.protocol6.filter(|_| address.is_ipv6());
        six.map_or(self.protocol.into(), IpAddr::V6)
    }

    /// The entry that this station adds to records of packets of this `ar$pro.type`.
    #[must_use]
    pub fn entry(&self, protocol: u16) -> Cie {
        Cie {
            nbma: self.nbma.into(),
            protocol: self.name(protocol).into(),
            ..Cie::default()
        }
    }

    /// The checks for every packet, whether it is answered or forwarded here.
    ///
    /// # Errors
    /// Error 3 if the packet has been here before.
    pub fn check(&self, packet: &Packet) -> Result<(), Fault> {
        // An Error Indication travels like a request, but has no records.
        let records: &[u16] = match packet.op {
            op::RESOLUTION_REQUEST | op::REGISTRATION_REQUEST | op::PURGE_REQUEST => {
                &[ext::FORWARD_TRANSIT]
            }
            op::RESOLUTION_REPLY | op::REGISTRATION_REPLY | op::PURGE_REPLY => {
                &[ext::RESPONDER, ext::REVERSE_TRANSIT]
            }
            _ => &[],
        };
        for kind in records {
            let Some(at) = position(packet, *kind) else {
                continue;
            };
            if self.is_listed(packet, *kind) {
                return Err(Fault {
                    code: error::LOOP,
                    offset: extension_offset(packet, at),
                });
            }
        }
        let mine = packet.common().and_then(|common| common.source.ip());
        if is_request(packet.op) && mine.is_some_and(|source| self.is_own(source)) {
            return Err(Fault::new(error::LOOP));
        }
        Ok(())
    }

    /// Prepares the packet for the next server: hop count, and this station in the transit record.
    ///
    /// # Errors
    /// Error 15 if the packet may go no further.
    pub fn forward(&self, mut packet: Packet) -> Result<Packet, Fault> {
        may_go_on(&packet)?;
        packet.hop_count -= 1;
        // RFC 2332 §5.3: a server that does not know a compulsory extension forwards, but stays
        // out of the records.
        if first_unknown_compulsory(&packet).is_some() {
            return Ok(packet);
        }
        let record = match packet.op {
            op::RESOLUTION_REQUEST | op::REGISTRATION_REQUEST | op::PURGE_REQUEST => {
                ext::FORWARD_TRANSIT
            }
            _ => ext::REVERSE_TRANSIT,
        };
        let entry = self.entry(packet.protocol);
        for extension in packet.extensions.iter_mut().flatten() {
            if extension.kind() == record {
                entry.encode(&mut extension.value);
            }
        }
        Ok(packet)
    }

    /// The extensions of the reply to `request`: all of them, in order, the responder address filled in.
    ///
    /// # Errors
    /// Error 1 if an extension is compulsory and unknown.
    pub fn reply_extensions(&self, request: &Packet) -> Result<Option<Vec<Extension>>, Fault> {
        if let Some(at) = first_unknown_compulsory(request) {
            return Err(Fault {
                code: error::UNRECOGNIZED_EXTENSION,
                offset: extension_offset(request, at),
            });
        }
        Ok(request.extensions.clone().map(|mut list| {
            for extension in &mut list {
                if extension.kind() == ext::RESPONDER {
                    extension.value.clear();
                    self.entry(request.protocol).encode(&mut extension.value);
                }
            }
            list
        }))
    }

    fn is_listed(&self, packet: &Packet, kind: u16) -> bool {
        packet
            .extensions
            .iter()
            .flatten()
            .filter(|extension| extension.kind() == kind)
            .any(|extension| {
                let mut reader = Reader::new(&extension.value);
                while let Ok(entry) = Cie::decode(&mut reader) {
                    if entry.protocol.ip().is_some_and(|ip| self.is_own(ip)) {
                        return true;
                    }
                }
                false
            })
    }
}

/// Error 11: the packet has no valid signature. The offset is that of its authentication, or 0 without one.
pub(super) fn unauthenticated(packet: &Packet) -> Fault {
    let at = position(packet, ext::AUTHENTICATION);
    Fault {
        code: error::AUTHENTICATION,
        offset: at.map_or(0, |at| extension_offset(packet, at)),
    }
}

/// Checks whether the hop count lets the packet pass one more server.
///
/// # Errors
/// Error 15 if it does not.
pub const fn may_go_on(packet: &Packet) -> Result<(), Fault> {
    if packet.hop_count == 0 {
        return Err(Fault {
            code: error::HOP_COUNT,
            offset: 9,
        });
    }
    Ok(())
}

/// The address that a packet is routed to: for replies the source protocol address, for all other packets the
/// destination.
#[must_use]
pub fn heading(packet: &Packet) -> Option<IpAddr> {
    match &packet.body {
        Body::Error(indication) => indication.destination.ip(),
        Body::Common(common) if is_request(packet.op) => common.destination.ip(),
        Body::Common(common) => common.source.ip(),
    }
}

/// The reply to `request` with the same id and addresses, a fresh hop count and these entries.
#[must_use]
pub fn reply(
    request: &Packet,
    op: u8,
    flags: u16,
    cies: Vec<Cie>,
    extensions: Option<Vec<Extension>>,
) -> Packet {
    let mut answer = request.clone();
    answer.op = op;
    answer.hop_count = Packet::HOP_COUNT;
    answer.extensions = extensions;
    if let Body::Common(common) = &mut answer.body {
        common.flags = flags;
        common.cies = cies;
    }
    answer
}

/// Flags of a Resolution Reply: Q and S are copied, U as requested; the responder sets A (authoritative) and D
/// (stable). Source: RFC 2332 §5.2.2.
#[must_use]
pub const fn reply_flags(request_flags: u16, made: u16) -> u16 {
    let copied = request_flags & (flag::ROUTER | flag::SOURCE_STABLE | flag::UNIQUE);
    copied | made & (flag::AUTHORITATIVE | flag::DESTINATION_STABLE)
}

/// The entry of a negative reply: the requested prefix and the reason.
#[must_use]
pub fn refusal(request: &Packet, code: u8) -> Cie {
    let prefix = request
        .common()
        .and_then(|common| common.cies.first())
        .map_or_else(
            || {
                request
                    .common()
                    .and_then(|c| c.destination.ip())
                    .map_or(32, width)
            },
            |cie| cie.prefix,
        );
    Cie {
        code,
        prefix,
        ..Cie::default()
    }
}

/// The prefix length of an entry about `address`; 0, 255 and invalid values mean the address alone.
#[must_use]
pub const fn prefix_len(cie: &Cie, address: IpAddr) -> u8 {
    let whole = width(address);
    if cie.prefix == 0 || cie.prefix > whole {
        return whole;
    }
    cie.prefix
}

/// The reply to a Registration Request here: clients are not registered.
#[must_use]
pub fn refuse_registration(request: &Packet) -> Packet {
    let mut cies = request.common().map_or_else(Vec::new, |c| c.cies.clone());
    for cie in &mut cies {
        cie.code = code::PROHIBITED;
        cie.holding_s = 0;
    }
    let flags = request.common().map_or(0, |common| common.flags);
    reply(
        request,
        op::REGISTRATION_REPLY,
        flags,
        cies,
        request.extensions.clone(),
    )
}

const fn is_request(op: u8) -> bool {
    matches!(
        op,
        op::RESOLUTION_REQUEST | op::REGISTRATION_REQUEST | op::PURGE_REQUEST
    )
}

fn position(packet: &Packet, kind: u16) -> Option<usize> {
    let list = packet.extensions.as_ref()?;
    list.iter().position(|extension| extension.kind() == kind)
}

/// True if an extension is compulsory and unknown here: such a packet may pass, but nothing in it is cached. Source:
/// RFC 2332 §5.3.
#[must_use]
pub fn has_unknown(packet: &Packet) -> bool {
    first_unknown_compulsory(packet).is_some()
}

/// Index of the first extension with the C bit that is not known here.
fn first_unknown_compulsory(packet: &Packet) -> Option<usize> {
    packet.extensions.as_ref()?.iter().position(|extension| {
        let known = matches!(
            extension.kind(),
            ext::RESPONDER
                | ext::FORWARD_TRANSIT
                | ext::REVERSE_TRANSIT
                | ext::AUTHENTICATION
                | ext::VENDOR
        ) || mpoa::ext::known(extension.kind());
        extension.is_compulsory() && !known
    })
}

/// Offset of extension number `index` in the encoded packet.
fn extension_offset(packet: &Packet, index: usize) -> u16 {
    let Some(list) = &packet.extensions else {
        return 0;
    };
    let tail: usize = list.iter().skip(index).map(|e| 4 + e.value.len()).sum();
    let start = packet.encode().len().saturating_sub(tail + 4);
    u16::try_from(start).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::nhrp::PROTOCOL_IPV4;

    const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 5, 0, 1));

    fn station() -> Station {
        Station {
            nbma: AtmAddress([0x47; 20]),
            protocol: Ipv4Addr::new(10, 0, 0, 1),
            protocol6: None,
            own: vec![[10, 0, 0, 1].into(), [10, 1, 0, 1].into()],
        }
    }

    fn other(last: u8) -> Station {
        let ip = Ipv4Addr::new(10, 0, 0, last);
        Station {
            nbma: AtmAddress([last; 20]),
            protocol: ip,
            protocol6: None,
            own: vec![ip.into()],
        }
    }

    fn packet(op: u8, kinds: &[u16]) -> Packet {
        let (source, target) = (
            IpAddr::V4(Ipv4Addr::new(10, 5, 0, 1)),
            IpAddr::V4(Ipv4Addr::new(10, 6, 0, 1)),
        );
        let mut packet = mpoa::resolution_request(1, AtmAddress::LECS, source, target);
        packet.op = op;
        packet.extensions = Some(Vec::new());
        for kind in kinds {
            packet = packet.with(Extension::compulsory(*kind, vec![]));
        }
        packet
    }

    fn entries(packet: &Packet, kind: u16) -> Vec<Cie> {
        let mut reader = Reader::new(&packet.extension(kind).unwrap().value);
        std::iter::from_fn(|| Cie::decode(&mut reader).ok()).collect()
    }

    const ALL: [u16; 3] = [ext::RESPONDER, ext::FORWARD_TRANSIT, ext::REVERSE_TRANSIT];

    #[test]
    fn each_server_adds_itself_to_the_record_of_the_direction() {
        for (op, kind, untouched) in [
            (
                op::RESOLUTION_REQUEST,
                ext::FORWARD_TRANSIT,
                ext::REVERSE_TRANSIT,
            ),
            (
                op::PURGE_REQUEST,
                ext::FORWARD_TRANSIT,
                ext::REVERSE_TRANSIT,
            ),
            (
                op::RESOLUTION_REPLY,
                ext::REVERSE_TRANSIT,
                ext::FORWARD_TRANSIT,
            ),
            (op::PURGE_REPLY, ext::REVERSE_TRANSIT, ext::FORWARD_TRANSIT),
        ] {
            let packet = packet(op, &ALL);
            let first = other(2).forward(packet).unwrap();
            let second = other(3).forward(first).unwrap();
            assert_eq!(
                entries(&second, kind),
                [other(2).entry(PROTOCOL_IPV4), other(3).entry(PROTOCOL_IPV4)]
            );
            assert_eq!(entries(&second, untouched), []);
            assert_eq!(second.hop_count, Packet::HOP_COUNT - 2);
            assert_eq!(other(4).check(&second), Ok(()));
            // RFC 2332 §5.3: the offset is that of the extension.
            let fault = other(2).check(&second).unwrap_err();
            let octets = second.encode();
            let at = usize::from(fault.offset);
            assert_eq!(fault.code, error::LOOP);
            assert_eq!(
                octets[at..at + 2],
                (kind | Extension::COMPULSORY).to_be_bytes()
            );
        }
    }

    #[test]
    fn a_reply_of_this_station_in_transit_is_a_loop() {
        let request = packet(op::RESOLUTION_REQUEST, &ALL);
        let extensions = station().reply_extensions(&request).unwrap();
        let reply = reply(&request, op::RESOLUTION_REPLY, 0, vec![], extensions);
        assert_eq!(
            entries(&reply, ext::RESPONDER),
            [station().entry(PROTOCOL_IPV4)]
        );
        assert_eq!(station().check(&reply).unwrap_err().code, error::LOOP);
        assert_eq!(other(9).check(&reply), Ok(()));
    }

    #[test]
    fn unknown_compulsory_extensions_pass_but_are_not_answered() {
        let packet = packet(op::RESOLUTION_REQUEST, &[ext::FORWARD_TRANSIT, 0x3fff]);
        let forwarded = station().forward(packet.clone()).unwrap();
        assert_eq!(entries(&forwarded, ext::FORWARD_TRANSIT), []);
        let fault = station().reply_extensions(&packet).unwrap_err();
        assert_eq!(fault.code, error::UNRECOGNIZED_EXTENSION);
    }

    #[test]
    fn hop_counts_end() {
        let mut last = packet(op::RESOLUTION_REQUEST, &[]);
        last.hop_count = 0;
        let fault = station().forward(last).unwrap_err();
        assert_eq!((fault.code, fault.offset), (error::HOP_COUNT, 9));
    }

    #[test]
    fn flags_and_prefixes_of_replies() {
        let asked = flag::ROUTER | flag::AUTHORITATIVE | flag::DESTINATION_STABLE;
        assert_eq!(reply_flags(asked, 0), flag::ROUTER);
        assert_eq!(reply_flags(0, flag::AUTHORITATIVE), flag::AUTHORITATIVE);
        let both = flag::AUTHORITATIVE | flag::DESTINATION_STABLE;
        let copied = flag::SOURCE_STABLE | flag::UNIQUE;
        assert_eq!(reply_flags(copied, u16::MAX), copied | both);
        for (told, meant) in [(0, 32), (255, 32), (33, 32), (24, 24), (32, 32)] {
            assert_eq!(prefix_len(&Cie::brief(told, 0), SOURCE), meant);
        }
    }
}
