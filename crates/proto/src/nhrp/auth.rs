//! The authentication extension: packets between neighbours that share a key.
//!
//! Authentication is hop by hop: every node that forwards a packet checks the received one and signs the sent one. The
//! extension holds a reserved half word, a security parameter index (SPI), the sender's protocol address and a digest:
//! HMAC-MD5 over the whole packet, with the digest and the checksum field zero.
//!
//! MPOA's messages have the same frame and extensions, so they are signed in the same way.
//!
//! **Trust.** A station with keys ([`Keys`]) obeys only what one of its neighbours has signed; everybody else gets
//! error
//! 11. [`Keys::unsigned`] makes an exception for callers that share no key.
//!
//! **Replays.** The key is chosen by the ATM address of the caller, which the network checks, and the address of the
//! sender in the extension must be the address of that caller ([`Neighbour::signs_as`]). So a recorded packet is of no
//! use to another caller, even to one that has the same key. Only the neighbour itself, or somebody on the line that
//! the connection takes, can repeat it: the extension has no sequence number.
//!
//! **Passwords.** Cisco's routers, and FRR's `nhrpd`, send SPI 1 and a password of at most 8 characters in the place of
//! address and digest ([`Key::clear_text`]). That keeps apart what was connected by mistake. It is no security: a
//! station that sees one packet can send any other.
//!
//! Source: RFC 2332 §5.3.4; for passwords FRR (`nhrpd/nhrp_vty.c`).
//!
//! **Not implemented.** Detection of replays on the connection of the neighbour itself (the RFC has none), negotiation
//! of SPIs, algorithms other than HMAC-MD5.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use aerostat_wire::AtmAddress;
use aerostat_wire::nhrp::{Extension, Packet, ext, op};

use super::Fault;
use super::transit;
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;

/// Octets before the sender's address: reserved and SPI.
const HEAD: usize = 4;
/// Offset of the checksum of a packet.
const CHECKSUM: usize = 12;
/// Octets of the digest.
const DIGEST: usize = 16;

crate::split_record! {
    /// A key shared with a neighbour.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Key {
        /// Security parameter index, which identifies the key.
        pub spi: u16,
        /// The secret, any length.
        pub secret: Vec<u8>,
        /// True if the secret itself is sent, as Cisco's routers do. Everybody on the way can read and repeat it.
        pub clear_text: bool,
    }
}

/// The sender of a packet that has the right signature or password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The protocol address in the signature.
    Named(Ipv4Addr),
    /// A sender that knows the password, which names no sender.
    Unnamed,
}

/// Traces must not show keys.
impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Key {{ spi: {}, .. }}", self.spi)
    }
}

impl Key {
    /// Signs `packet` as sent by `sender`. An extension of the previous hop is replaced in its place.
    pub fn sign(&self, packet: &mut Packet, sender: Ipv4Addr) {
        let mut value = vec![0, 0];
        value.extend(self.spi.to_be_bytes());
        match self.clear_text {
            true => value.extend_from_slice(&self.secret),
            false => {
                value.extend(sender.octets());
                value.extend([0; DIGEST]);
            }
        }
        let list = packet.extensions.get_or_insert_default();
        match list.iter_mut().find(|e| e.kind() == ext::AUTHENTICATION) {
            Some(known) => known.value = value,
            None => list.push(Extension::compulsory(ext::AUTHENTICATION, value)),
        }
        if self.clear_text {
            return;
        }
        let digest = mac(&self.secret, &packet.encode());
        if let Some((place, mac)) = digest_field(packet).zip(digest) {
            place.copy_from_slice(&mac.finalize().into_bytes());
        }
    }

    /// The sender in the packet, if the packet was signed with this key and has not changed since, or has the password.
    #[must_use]
    pub fn verify(&self, packet: &Packet) -> Option<Signer> {
        let mut kinds = packet.extensions.iter().flatten();
        let extension = kinds.find(|e| e.kind() == ext::AUTHENTICATION)?;
        // Each type may occur once: a second digest would not be covered by the first.
        if kinds.any(|e| e.kind() == ext::AUTHENTICATION) {
            return None;
        }
        let value = &extension.value;
        if self.clear_text {
            let password = value.get(HEAD..)?;
            let same = value[2..HEAD] == self.spi.to_be_bytes() && password == self.secret;
            return same.then_some(Signer::Unnamed);
        }
        if value.len() != HEAD + 4 + DIGEST || value[2..HEAD] != self.spi.to_be_bytes() {
            return None;
        }
        let sender: [u8; 4] = value[HEAD..HEAD + 4].try_into().ok()?;
        let told = &value[HEAD + 4..];
        let mut blank = packet.clone();
        digest_field(&mut blank)?.fill(0);
        // The comparison takes constant time.
        let mac = mac(&self.secret, &blank.encode())?;
        mac.verify_slice(told).ok()?;
        Some(Signer::Named(sender.into()))
    }
}

crate::split_record! {
    /// A neighbour that shares a key with this station.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Neighbour {
        /// The key.
        pub key: Key,
        /// The protocol address in the neighbour's signatures. What another neighbour with the same key has signed is
        /// not accepted from this one.
        pub signs_as: Ipv4Addr,
    }
}

crate::split_record! {
    /// The neighbours of a station that share a key with it, and what others may do.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Keys {
        /// The protocol address in this station's own signatures.
        pub signs_as: Ipv4Addr,
        /// The neighbours, by the ATM address from which they call.
        pub neighbours: BTreeMap<AtmAddress, Neighbour>,
        /// The key for the clients at the other ends of shortcuts. Clients that share no key cannot purge each other's
        /// entries there, unless [`Self::unsigned`] is set.
        pub shortcuts: Option<Key>,
        /// True if messages of callers that share no key are obeyed, and unsigned purges on shortcuts. What such a
        /// caller has signed is not.
        pub unsigned: bool,
    }
}

impl Default for Keys {
    /// No keys: everybody is obeyed.
    fn default() -> Self {
        Self {
            signs_as: Ipv4Addr::UNSPECIFIED,
            neighbours: BTreeMap::new(),
            shortcuts: None,
            unsigned: true,
        }
    }
}

impl Keys {
    /// True if messages of this caller can be obeyed at all.
    #[must_use]
    pub fn admits(&self, caller: AtmAddress) -> bool {
        self.unsigned || self.neighbours.contains_key(&caller)
    }

    /// Checks the signature of a packet on a connection with `caller`, and removes it. An Error Indication has no
    /// extensions, so only its caller is checked.
    ///
    /// # Errors
    /// Error 11 if the caller must sign and has not, or if it has signed and shares no key.
    pub fn admit(&self, caller: AtmAddress, packet: &mut Packet) -> Result<(), Fault> {
        let neighbour = self.neighbours.get(&caller);
        let signs_as = neighbour.map(|neighbour| neighbour.signs_as);
        self.check(
            neighbour.map(|neighbour| &neighbour.key),
            packet,
            |signer| signer == Signer::Unnamed || signs_as.map(Signer::Named) == Some(signer),
        )
    }

    /// The same for a packet on a shortcut with the client at `peer`. The packet names the ATM address of its sender,
    /// so it is of no use on the shortcut of another client.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub fn admit_on_shortcut(&self, peer: AtmAddress, packet: &mut Packet) -> Result<(), Fault> {
        let source = packet.common().and_then(|common| common.source_nbma.atm());
        let its_own = source.is_some_and(|source| source.same_end_system(&peer));
        let signed = packet.extension(ext::AUTHENTICATION).is_some();
        let key = self.shortcuts.as_ref();
        let key = key.filter(|_| signed || !self.unsigned);
        self.check(key, packet, |_| its_own)
    }

    fn check(
        &self,
        key: Option<&Key>,
        packet: &mut Packet,
        is_sender: impl FnOnce(Signer) -> bool,
    ) -> Result<(), Fault> {
        let signed = packet.extension(ext::AUTHENTICATION).is_some();
        let good = match key {
            Some(_) if packet.op == op::ERROR_INDICATION => true,
            Some(key) => key.verify(packet).is_some_and(is_sender),
            None => self.unsigned && !signed,
        };
        if !good {
            return Err(transit::unauthenticated(packet));
        }
        strip(packet);
        Ok(())
    }

    /// Signs a packet for the neighbour at `to`, if the two share a key. Error Indications stay as they are: they have
    /// no extensions.
    pub fn sign(&self, to: AtmAddress, packet: &mut Packet) {
        self.sign_with(
            self.neighbours.get(&to).map(|neighbour| &neighbour.key),
            packet,
        );
    }

    /// Signs a packet for the client at the other end of a shortcut.
    pub fn sign_on_shortcut(&self, packet: &mut Packet) {
        self.sign_with(self.shortcuts.as_ref(), packet);
    }

    fn sign_with(&self, key: Option<&Key>, packet: &mut Packet) {
        if let Some(key) = key.filter(|_| packet.op != op::ERROR_INDICATION) {
            key.sign(packet, self.signs_as);
        }
    }
}

/// Removes the extension of the previous hop.
fn strip(packet: &mut Packet) {
    if let Some(list) = &mut packet.extensions {
        list.retain(|extension| extension.kind() != ext::AUTHENTICATION);
    }
}

fn digest_field(packet: &mut Packet) -> Option<&mut [u8]> {
    let mut list = packet.extensions.iter_mut().flatten();
    let value = &mut list.find(|e| e.kind() == ext::AUTHENTICATION)?.value;
    let at = value.len().checked_sub(DIGEST)?;
    value.get_mut(at..)
}

/// HMAC-MD5 of a packet whose checksum is taken as zero. A secret may have any length, so this does not fail.
fn mac(secret: &[u8], packet: &[u8]) -> Option<Hmac<Md5>> {
    let mut mac = Hmac::<Md5>::new_from_slice(secret).ok()?;
    let (before, rest) = packet.split_at_checked(CHECKSUM)?;
    mac.update(before);
    mac.update(&[0, 0]);
    mac.update(rest.get(2..)?);
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::nhrp::{Body, op};
    use aerostat_wire::{AtmAddress, mpoa};

    const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn key(spi: u16, secret: &str) -> Key {
        Key {
            spi,
            secret: secret.into(),
            clear_text: false,
        }
    }

    fn packet() -> Packet {
        let mut packet =
            mpoa::resolution_request(1, AtmAddress::LECS, SENDER.into(), [10, 6, 0, 1].into());
        packet.op = op::RESOLUTION_REQUEST;
        packet.extensions = None;
        packet
    }

    #[test]
    fn what_was_signed_is_recognised_after_the_wire() {
        let key = key(7, "between neighbours");
        let mut signed = packet();
        key.sign(&mut signed, SENDER);
        let received = Packet::decode(&signed.encode()).unwrap();
        assert_eq!(key.verify(&received), Some(Signer::Named(SENDER)));
        // The next hop signs again, in the same place.
        let mut next = received.with(Extension::new(ext::VENDOR, vec![0, 1, 2]));
        assert_eq!(key.verify(&next), None, "an extension was added");
        key.sign(&mut next, SENDER);
        assert_eq!(key.verify(&next), Some(Signer::Named(SENDER)));
        assert_eq!(next.extensions.as_ref().unwrap().len(), 2);
        strip(&mut next);
        assert_eq!(next.extension(ext::AUTHENTICATION), None);
        assert_eq!(key.verify(&next), None);
    }

    /// The digest of this packet was made with Python's `hmac` and `hashlib.md5`, with digest and checksum zero.
    #[test]
    fn the_digest_is_hmac_md5_of_the_packet() {
        let mut signed = packet();
        key(7, "between neighbours").sign(&mut signed, SENDER);
        let hex: String = signed.encode().iter().map(|o| format!("{o:02x}")).collect();
        let lines: Vec<_> = hex.as_bytes().chunks(64).map(<[u8]>::to_vec).collect();
        let expected = [
            "0003080000000000004000642d7a004401011400040400000000000147007900",
            "00000000000000000000a03e000001000a0000010a0600010020000000000000",
            "0000000080070018000000070a0000010c373e2198d2ae8d3b6ad72f25b26700",
            "80000000",
        ];
        assert_eq!(lines, expected.map(|line| line.as_bytes().to_vec()));
    }

    #[test]
    fn what_was_changed_or_signed_by_others_is_not() {
        let mine = key(7, "between neighbours");
        let mut signed = packet();
        mine.sign(&mut signed, SENDER);
        assert_eq!(key(7, "guessed").verify(&signed), None);
        assert_eq!(key(8, "between neighbours").verify(&signed), None);
        let mut twice = signed.clone();
        let copy = signed.extension(ext::AUTHENTICATION).unwrap().clone();
        twice.extensions.as_mut().unwrap().push(copy);
        assert_eq!(mine.verify(&twice), None);
        let mut other = signed.clone();
        if let Body::Common(common) = &mut other.body {
            common.destination = Ipv4Addr::new(10, 6, 0, 2).into();
        }
        assert_eq!(mine.verify(&other), None);
        // Every octet of the value is covered, including the two reserved ones.
        let length = copy_of(&signed).len();
        for at in 0..length {
            let mut damaged = signed.clone();
            for extension in damaged.extensions.iter_mut().flatten() {
                extension.value[at] ^= 1;
            }
            assert_eq!(mine.verify(&damaged), None, "octet {at}");
        }
        for length in 0..length {
            let mut short = signed.clone();
            for extension in short.extensions.iter_mut().flatten() {
                extension.value.truncate(length);
            }
            assert_eq!(mine.verify(&short), None, "{length} octets");
        }
        assert_eq!(
            format!("{mine:?}"),
            "Key { spi: 7, .. }",
            "no secret in traces"
        );
    }

    /// Leniency obeys what is not signed, and nothing that is signed wrongly; a neighbour with a key must sign.
    /// The octets of `ip nhrp authentication geheim` on Cisco's routers and FRR.
    #[test]
    fn a_password_is_sent_as_it_is_and_names_nobody() {
        let mine = Key {
            clear_text: true,
            ..key(1, "geheim")
        };
        let mut packet = packet();
        mine.sign(&mut packet, SENDER);
        let sent = packet.extension(ext::AUTHENTICATION).expect("an extension");
        assert_eq!(sent.value, [&[0, 0, 0, 1][..], b"geheim"].concat());
        assert_eq!(sent.type_field, 0x8007);
        let received = Packet::decode(&packet.encode()).unwrap();
        assert_eq!(mine.verify(&received), Some(Signer::Unnamed));
        let others = [(1, "geheim2"), (1, "gehei"), (2, "geheim")];
        for (spi, secret) in others {
            let other = Key {
                clear_text: true,
                ..key(spi, secret)
            };
            assert_eq!(other.verify(&received), None, "{secret}");
        }
        assert_eq!(
            key(1, "geheim").verify(&received),
            None,
            "a digest is wanted"
        );
    }

    #[test]
    fn unsigned_messages_are_obeyed_from_those_without_a_key_alone() {
        let (ours, other) = (key(7, "ours"), key(7, "other"));
        let (neighbour, stranger) = (AtmAddress([1; 20]), AtmAddress([2; 20]));
        let mut keys = Keys {
            shortcuts: Some(ours.clone()),
            ..Keys::default()
        };
        let (key, signs_as) = (ours.clone(), SENDER);
        keys.neighbours
            .insert(neighbour, Neighbour { key, signs_as });
        let mut signed = [packet(), packet(), packet()];
        ours.sign(&mut signed[1], SENDER);
        other.sign(&mut signed[2], SENDER);
        // Messages without a signature, with ours and with another one.
        let at = |admit: &dyn Fn(&mut Packet) -> Result<(), Fault>| {
            [0, 1, 2].map(|n: usize| admit(&mut signed[n].clone()).is_ok())
        };
        for lenient in [true, false] {
            keys.unsigned = lenient;
            let from = |caller| at(&|packet| keys.admit(caller, packet));
            assert_eq!(from(neighbour), [false, true, false]);
            assert_eq!(from(stranger), [lenient, false, false]);
            // The packet names the data address of its sender, the LECS here.
            let on = |peer| at(&|packet| keys.admit_on_shortcut(peer, packet));
            assert_eq!(on(AtmAddress::LECS), [lenient, true, false]);
            assert_eq!(on(stranger), [lenient, false, false]);
        }
    }

    fn copy_of(packet: &Packet) -> Vec<u8> {
        let found = packet.extension(ext::AUTHENTICATION);
        found.map(|e| e.value.clone()).unwrap_or_default()
    }
}
