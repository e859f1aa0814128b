//! Cells become PDUs again.
//!
//! A capture of GNS3 has both directions of a line in one list without a mark, and a PDU of one direction may have
//! cells of the other in between. So a PDU that is wrong as a whole is tried again with as many cells as its length
//! asks for, from its end. The cells in front stay for the next PDU.
//!
//! A file may begin inside a PDU. So a first PDU with fewer cells than its length asks for is left out, and is counted.

use crate::book::{At, Book};
use crate::limits::Limit;
use crate::rules::Rule;
use aerostat_wire::aal5::{self, PduError};
use aerostat_wire::cell::{CellHeader, PAYLOAD_LEN};
use aerostat_wire::oam::{Oam, OamFlow};
use aerostat_wire::{Vc, counted};
use std::collections::BTreeMap;

/// One way of a VC.
type Key = (usize, Option<bool>, Vc);

/// Cells of a VC that wait for the end of their PDU.
#[derive(Debug, Default)]
struct Waiting {
    octets: Vec<u8>,
    /// Good PDUs so far: a VC without one may have another AAL.
    good: u64,
    /// Ends of PDUs so far.
    ends: u64,
    /// Rules that would be named if the VC has AAL5.
    held: Vec<(Rule, At, String)>,
    /// Places of rules beyond those that are held.
    more: BTreeMap<Rule, u64>,
    /// True if the VC has had a PDU without end, until the next one begins.
    skipping: bool,
}

/// A PDU that is whole again.
#[derive(Debug)]
pub(crate) struct Pdu {
    pub(crate) sdu: Vec<u8>,
    pub(crate) uu: u8,
}

/// Cells of all VCs.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    vcs: BTreeMap<Key, Waiting>,
}

/// Octets of the longest PDU.
const LONGEST: usize = aal5::cells_for(aal5::MAX_SDU) * PAYLOAD_LEN;

impl Cells {
    /// Takes a cell; gives the PDU that it ends.
    pub(crate) fn push(
        &mut self,
        at: &At,
        header: &CellHeader,
        payload: &[u8; PAYLOAD_LEN],
        book: &mut Book,
    ) -> Option<Pdu> {
        if OamFlow::of(header).is_some() {
            if let Err(error) = Oam::decode(payload) {
                book.name(Rule::OamCrc, at, error.to_string());
            }
            return None;
        }
        if !header.pti.is_user() {
            return None;
        }
        let key = (at.link, at.way, header.vc);
        if self.vcs.len() >= book.limits.vcs && !self.vcs.contains_key(&key) {
            book.met.note(Limit::Vcs);
            return None;
        }
        let waiting = self.vcs.entry(key).or_default();
        if waiting.skipping {
            waiting.skipping = !header.pti.is_end();
            return None;
        }
        waiting.octets.extend_from_slice(payload);
        if !header.pti.is_end() {
            if waiting.octets.len() >= LONGEST {
                waiting.octets.clear();
                waiting.skipping = true;
                waiting.ends += 1;
                waiting.fail(Rule::Aal5TooLong, at, PduError::TooLong.to_string(), book);
            }
            return None;
        }
        waiting.complete(at, book)
    }

    /// Notes VCs whose cells made no PDU.
    pub(crate) fn end(&self, book: &mut Book) {
        for ((_, _, vc), waiting) in &self.vcs {
            if waiting.good == 0 && !waiting.held.is_empty() {
                book.note(format!(
                    "the cells of VC {vc} make no PDU of AAL5: another AAL, or a VC whose cells are not all in the file"
                ));
            }
        }
    }
}

impl Waiting {
    fn complete(&mut self, at: &At, book: &mut Book) -> Option<Pdu> {
        self.ends += 1;
        let whole = match aal5::decode_pdu(&self.octets) {
            Ok(_) => 0,
            Err(error) => match self.later_start(at) {
                Some(start) => start,
                None if self.may_be_a_tail(at) => {
                    self.octets.clear();
                    book.note("PDUs may begin before the file: their last cells were left out");
                    return None;
                }
                None => {
                    let cells = counted(self.octets.len() / PAYLOAD_LEN, "cell", "cells");
                    let text = format!("{error}: {cells} of VC {}", vc_of(at));
                    self.octets.clear();
                    self.fail(rule_of(error), at, text, book);
                    return None;
                }
            },
        };
        let pdu = self.octets.split_off(whole);
        let (sdu, trailer) = aal5::decode_pdu(&pdu).ok()?;
        if trailer.reflected {
            book.note("PDUs have their CRC-32 in the bit order of Dynamips, which no other equipment takes");
        }
        self.good += 1;
        for (rule, at, text) in self.held.drain(..) {
            book.name(rule, &at, text);
        }
        for (rule, more) in std::mem::take(&mut self.more) {
            book.name_more(rule, more);
        }
        Some(Pdu {
            sdu: sdu.to_vec(),
            uu: trailer.uu,
        })
    }

    /// Octets of the PDU that the last cell ends, by its length.
    fn wanted(&self) -> Option<usize> {
        let (_, &[_, _, high, low, ..]) =
            self.octets.split_last_chunk::<{ aal5::TRAILER_LEN }>()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        Some(aal5::cells_for(length) * PAYLOAD_LEN)
    }

    /// First octet of the PDU that the last cell ends, where cells of the other direction may be in front.
    fn later_start(&self, at: &At) -> Option<usize> {
        if at.way.is_some() {
            return None;
        }
        let start = self.octets.len().checked_sub(self.wanted()?)?;
        let pdu = self.octets.get(start..)?;
        aal5::decode_pdu(pdu).is_ok().then_some(start)
    }

    /// True if cells of this PDU may be in front of the file: in each direction, that is one PDU.
    fn may_be_a_tail(&self, at: &At) -> bool {
        let directions = if at.way.is_some() { 1 } else { 2 };
        let too_few = self
            .wanted()
            .is_some_and(|wanted| wanted > self.octets.len());
        self.ends <= directions && too_few
    }

    fn fail(&mut self, rule: Rule, at: &At, text: String, book: &mut Book) {
        let known = self.good > 0 || matches!(at.vc, Some(Vc::SIGNALLING | Vc::ILMI));
        let same = self.held.iter().filter(|(held, ..)| *held == rule).count();
        if known {
            book.name(rule, at, text);
        } else if same < book.limits.places {
            self.held.push((rule, at.clone(), text));
        } else {
            *self.more.entry(rule).or_default() += 1;
        }
    }
}

fn vc_of(at: &At) -> String {
    at.vc.map_or_else(|| "-".to_owned(), |vc| vc.to_string())
}

/// The rule that a wrong PDU breaks.
pub(crate) const fn rule_of(error: PduError) -> Rule {
    match error {
        PduError::Crc => Rule::Aal5Crc,
        PduError::Length => Rule::Aal5Length,
        PduError::Cpi => Rule::Aal5Cpi,
        PduError::TooLong => Rule::Aal5TooLong,
        PduError::Aborted => Rule::Aal5Aborted,
    }
}
