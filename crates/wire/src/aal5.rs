//! AAL5: an SDU of up to 65535 octets becomes padding, trailer and cells, and comes back.
//!
//! ```text
//! CPCS-PDU = SDU | PAD 0..47 | UU | CPI = 0 | Length (2) | CRC-32 (4)      a multiple of 48 octets
//! ```
//!
//! All cells of a PDU except the last have SDU type 0 in their PTI, the last has 1. Nothing else delimits PDUs, so a
//! lost last cell costs two PDUs. The CRC is taken over the whole PDU at once. A [`Reassembler`] serves one VC; every
//! way to fail has its own counter.
//!
//! **Deviation.** Dynamips, which GNS3 runs, computes the CRC least significant bit first, as on an Ethernet: its ATM
//! bridge complements it, its PA-A1 does not (its source of July 2026, `common/atm_vsar.c`, `common/dev_pa_a1.c`). No
//! receiver of I.363.5 takes such a PDU. This one does, and counts it, since it finds as many errors as the right CRC.
//!
//! Standards: I.363.5. Not implemented: corrupted data delivery, streaming mode, the reassembly timer.

use crate::cell::{PAYLOAD_LEN, Pti};
use crate::crc;

/// Octets of the trailer.
pub const TRAILER_LEN: usize = 8;
/// Largest SDU.
pub const MAX_SDU: usize = 65535;

/// Cells of a PDU that carries an SDU of `len` octets.
#[must_use]
pub const fn cells_for(len: usize) -> usize {
    (len + TRAILER_LEN).div_ceil(PAYLOAD_LEN)
}

/// Octets of padding behind an SDU of `len` octets.
#[must_use]
pub const fn pad_for(len: usize) -> usize {
    cells_for(len) * PAYLOAD_LEN - TRAILER_LEN - len
}

/// CRC-32 of AAL5: generator 04C11DB7, most significant bit first, complemented ("CRC-32/BZIP2").
#[must_use]
pub fn crc32(octets: &[u8]) -> u32 {
    crc::aal5(&[octets])
}

/// True if `crc` is what Dynamips sends in the place of [`crc32`]: the CRC of an Ethernet, or its complement.
fn is_reflected(octets: &[u8], crc: u32) -> bool {
    let reflected = crc::ethernet(octets);
    crc == reflected || crc == !reflected
}

fn length_field(sdu: &[u8]) -> u16 {
    assert!(
        !sdu.is_empty() && sdu.len() <= MAX_SDU,
        "an AAL5 SDU has 1 to 65535 octets"
    );
    sdu.len() as u16
}

/// The trailer for `sdu` with zero padding, without making the PDU.
///
/// # Panics
/// If the SDU is empty or longer than [`MAX_SDU`].
#[must_use]
pub fn trailer(sdu: &[u8], uu: u8) -> [u8; TRAILER_LEN] {
    let [high, low] = length_field(sdu).to_be_bytes();
    let padding = &[0; PAYLOAD_LEN][..pad_for(sdu.len())];
    let crc = crc::aal5(&[sdu, padding, &[uu, 0, high, low]]);
    let [a, b, c, d] = crc.to_be_bytes();
    [uu, 0, high, low, a, b, c, d]
}

/// The whole CPCS-PDU: a multiple of 48 octets.
///
/// # Panics
/// If the SDU is empty or longer than [`MAX_SDU`].
#[must_use]
pub fn encode_pdu(sdu: &[u8], uu: u8) -> Vec<u8> {
    let length = length_field(sdu);
    let mut pdu = Vec::with_capacity(cells_for(sdu.len()) * PAYLOAD_LEN);
    pdu.extend_from_slice(sdu);
    pdu.resize(sdu.len() + pad_for(sdu.len()), 0);
    pdu.extend_from_slice(&[uu, 0]);
    pdu.extend_from_slice(&length.to_be_bytes());
    let crc = crc32(&pdu);
    pdu.extend_from_slice(&crc.to_be_bytes());
    pdu
}

/// The payloads of one PDU, in order, each with the PTI that its cell needs.
#[derive(Clone, Debug)]
pub struct Segmenter {
    pdu: Vec<u8>,
    next: usize,
}

impl Segmenter {
    /// Segments `sdu`.
    ///
    /// # Panics
    /// If the SDU is empty or longer than [`MAX_SDU`].
    #[must_use]
    pub fn new(sdu: &[u8], uu: u8) -> Self {
        Self {
            pdu: encode_pdu(sdu, uu),
            next: 0,
        }
    }
}

impl Iterator for Segmenter {
    type Item = ([u8; PAYLOAD_LEN], Pti);
    fn next(&mut self) -> Option<Self::Item> {
        let payload = self.pdu.get(self.next..self.next + PAYLOAD_LEN)?;
        self.next += PAYLOAD_LEN;
        let pti = Pti::user(self.next == self.pdu.len());
        Some((payload.try_into().ok()?, pti))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.pdu.len() - self.next) / PAYLOAD_LEN;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Segmenter {}

crate::named! {
    /// Why cells do not make an SDU.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PduError {
        /// CRC-32 mismatch: a cell was lost or damaged.
        Crc = "CRC-32 mismatch",
        /// The length field does not fit the number of cells.
        Length = "length field does not fit the cells",
        /// The common part indicator is not 0.
        Cpi = "CPI is not 0",
        /// More cells, or a longer SDU, than this VC allows.
        TooLong = "longer than the VC allows",
        /// The sender aborted the PDU (length 0).
        Aborted = "aborted by the sender",
    }
}

impl std::error::Error for PduError {}

/// Trailer of a good PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// User-to-user octet.
    pub uu: u8,
    /// True if the CRC is that of Dynamips.
    pub reflected: bool,
}

/// Checks a complete CPCS-PDU; gives the SDU and its trailer.
///
/// # Errors
/// See [`PduError`]. The CRC is checked first: a damaged trailer says nothing.
pub fn decode_pdu(pdu: &[u8]) -> Result<(&[u8], Trailer), PduError> {
    if pdu.is_empty() || !pdu.len().is_multiple_of(PAYLOAD_LEN) {
        return Err(PduError::Length);
    }
    let (body, &[uu, cpi, high, low, a, b, c, d]) =
        pdu.split_last_chunk().ok_or(PduError::Length)?;
    let covered = pdu.get(..pdu.len() - 4).ok_or(PduError::Length)?;
    let crc = u32::from_be_bytes([a, b, c, d]);
    let reflected = crc32(covered) != crc;
    if reflected && !is_reflected(covered, crc) {
        return Err(PduError::Crc);
    }
    if cpi != 0 {
        return Err(PduError::Cpi);
    }
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len == 0 {
        return Err(PduError::Aborted);
    }
    if cells_for(len) * PAYLOAD_LEN != pdu.len() {
        return Err(PduError::Length);
    }
    let sdu = body.get(..len).ok_or(PduError::Length)?;
    Ok((sdu, Trailer { uu, reflected }))
}

/// Checks a complete CPCS-PDU like [`decode_pdu`], and leaves only the SDU in `pdu`; gives its trailer.
///
/// # Errors
/// See [`PduError`]. Then `pdu` is unchanged.
pub fn strip_pdu(pdu: &mut Vec<u8>) -> Result<Trailer, PduError> {
    let (sdu, trailer) = decode_pdu(pdu)?;
    let len = sdu.len();
    pdu.truncate(len);
    Ok(trailer)
}

/// A reassembled SDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassembled {
    /// The SDU, 1..=65535 octets.
    pub sdu: Vec<u8>,
    /// User-to-user octet.
    pub uu: u8,
    /// True if any cell had CLP 1.
    pub clp: bool,
    /// True if the last cell had congestion indicated (EFCI).
    pub congested: bool,
}

/// Counters of a [`Reassembler`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyCounters {
    /// User cells taken.
    pub cells: u64,
    /// Good SDUs.
    pub sdus: u64,
    /// Good SDUs whose CRC was that of Dynamips.
    pub reflected: u64,
    /// Cells of good SDUs.
    pub whole: u64,
    /// PDUs with a CRC-32 mismatch.
    pub crc: u64,
    /// PDUs whose length field does not fit.
    pub length: u64,
    /// PDUs with a CPI other than 0.
    pub cpi: u64,
    /// PDUs that were longer than the VC allows.
    pub too_long: u64,
    /// PDUs aborted by the sender.
    pub aborted: u64,
}

impl ReassemblyCounters {
    /// PDUs that were lost, whatever the reason. An abort is the sender's wish and does not count as a loss.
    #[must_use]
    pub const fn errors(&self) -> u64 {
        self.crc + self.length + self.cpi + self.too_long
    }
    /// Counts one failure.
    pub const fn count(&mut self, error: PduError) {
        match error {
            PduError::Crc => self.crc += 1,
            PduError::Length => self.length += 1,
            PduError::Cpi => self.cpi += 1,
            PduError::TooLong => self.too_long += 1,
            PduError::Aborted => self.aborted += 1,
        }
    }
}

/// Turns the user cells of one VC into SDUs.
#[derive(Clone, Debug)]
pub struct Reassembler {
    pdu: Vec<u8>,
    max_sdu: usize,
    clp: bool,
    /// The PDU is already too long; waits for its last cell.
    skipping: bool,
    /// Counters.
    pub counters: ReassemblyCounters,
}

impl Reassembler {
    /// A reassembler of a VC with SDUs of up to `max_sdu` octets (0 means [`MAX_SDU`]).
    #[must_use]
    pub fn new(max_sdu: u16) -> Self {
        Self {
            pdu: Vec::new(),
            max_sdu: if max_sdu == 0 {
                MAX_SDU
            } else {
                max_sdu.into()
            },
            clp: false,
            skipping: false,
            counters: ReassemblyCounters::default(),
        }
    }

    /// Cells of the PDU that is being collected.
    #[must_use]
    pub fn pending_cells(&self) -> usize {
        self.pdu.len() / PAYLOAD_LEN
    }

    /// Takes one cell; `Some` when it completes a PDU or proves it bad. Cells that carry no user data
    /// (OAM, RM) are ignored.
    #[inline]
    pub fn push(
        &mut self,
        payload: &[u8; PAYLOAD_LEN],
        pti: Pti,
        clp: bool,
    ) -> Option<Result<Reassembled, PduError>> {
        if !pti.is_user() {
            return None;
        }
        self.counters.cells += 1;
        if self.skipping {
            self.skipping = !pti.is_end();
            return None;
        }
        self.clp |= clp;
        if self.pdu.len() >= cells_for(self.max_sdu) * PAYLOAD_LEN {
            self.skipping = !pti.is_end();
            return Some(self.fail(PduError::TooLong));
        }
        self.pdu.extend_from_slice(payload);
        pti.is_end().then(|| self.complete(pti.congested()))
    }

    /// The octets of the cells become the SDU where they are.
    fn complete(&mut self, congested: bool) -> Result<Reassembled, PduError> {
        let octets = self.pdu.len();
        let Trailer { uu, reflected } = match strip_pdu(&mut self.pdu) {
            Ok(trailer) => trailer,
            Err(error) => return self.fail(error),
        };
        if self.pdu.len() > self.max_sdu {
            return self.fail(PduError::TooLong);
        }
        // The next PDU of a VC is often as long as this PDU.
        let sdu = core::mem::replace(&mut self.pdu, Vec::with_capacity(octets));
        let clp = self.clp;
        self.next_pdu();
        self.counters.sdus += 1;
        self.counters.reflected += u64::from(reflected);
        self.counters.whole += (octets / PAYLOAD_LEN) as u64;
        Ok(Reassembled {
            sdu,
            uu,
            clp,
            congested,
        })
    }

    /// Forgets the PDU that is being collected: the next cell begins a new PDU.
    pub fn reset(&mut self) {
        self.next_pdu();
        self.skipping = false;
    }

    fn next_pdu(&mut self) {
        self.pdu.clear();
        self.clp = false;
    }

    fn fail(&mut self, error: PduError) -> Result<Reassembled, PduError> {
        self.counters.count(error);
        self.next_pdu();
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sample vectors of I.363.5.
    #[test]
    fn sample_trailers() {
        let counting: Vec<u8> = (1..=40).collect();
        for (sdu, crc) in [
            (vec![0; 40], 0x864d_7f99_u32),
            (vec![0xff; 40], 0xc55e_457a),
            (counting, 0xbf67_1ed0),
        ] {
            let mut want = vec![0, 0, 0, 0x28];
            want.extend(crc.to_be_bytes());
            assert_eq!(trailer(&sdu, 0).to_vec(), want);
            assert_eq!(encode_pdu(&sdu, 0)[40..], want);
        }
        assert_eq!(crc32(b"123456789"), 0xfc89_1918);
    }

    /// One cell, whose octets were computed by a script that shares no code with this crate.
    #[test]
    fn worked_cell() {
        let mut want = b"Hello, ATM".to_vec();
        want.extend([0; 30]);
        want.extend([0, 0, 0, 0x0a, 0x03, 0xab, 0x1b, 0xc7]);
        assert_eq!(encode_pdu(b"Hello, ATM", 0), want);
    }

    #[test]
    fn sizes() {
        for (len, cells, pad) in [
            (1, 1, 39),
            (40, 1, 0),
            (41, 2, 47),
            (9188, 192, 20),
            (65535, 1366, 25),
        ] {
            assert_eq!((cells_for(len), pad_for(len)), (cells, pad), "{len}");
        }
    }

    fn feed(
        r: &mut Reassembler,
        sdu: &[u8],
        drop: Option<usize>,
    ) -> Vec<Result<Reassembled, PduError>> {
        Segmenter::new(sdu, 0)
            .enumerate()
            .filter(|(i, _)| Some(*i) != drop)
            .filter_map(|(_, (payload, pti))| r.push(&payload, pti, false))
            .collect()
    }

    fn raw(r: &mut Reassembler, pdu: &[u8]) -> Option<Result<Reassembled, PduError>> {
        let cells = pdu.len() / 48;
        pdu.chunks(48)
            .enumerate()
            .find_map(|(i, c)| r.push(c.try_into().unwrap(), Pti::user(i + 1 == cells), false))
    }

    #[test]
    fn every_error_has_its_counter() {
        let mut r = Reassembler::new(100);
        let seal = |mut pdu: Vec<u8>| {
            let at = pdu.len() - 4;
            let crc = crc32(&pdu[..at]);
            pdu[at..].copy_from_slice(&crc.to_be_bytes());
            pdu
        };
        let good = encode_pdu(&[1; 60], 0);
        let mut bad = good.clone();
        bad[3] ^= 1;
        assert_eq!(raw(&mut r, &bad), Some(Err(PduError::Crc)));
        for (at, value, error) in [
            (1, 7, PduError::Cpi),
            (3, 30, PduError::Length),
            (3, 0, PduError::Aborted),
        ] {
            let mut pdu = good.clone();
            let trailer = pdu.len() - 8;
            pdu[trailer + at] = value;
            assert_eq!(raw(&mut r, &seal(pdu)), Some(Err(error)));
        }
        // The PDU ends within the cells that 100 octets may need, but its SDU is longer.
        assert_eq!(feed(&mut r, &[1; 120], None), [Err(PduError::TooLong)]);
        // The PDU does not end in time: the error is reported once, and the rest is skipped to the last cell.
        assert_eq!(feed(&mut r, &[1; 900], None), [Err(PduError::TooLong)]);
        let good = feed(&mut r, &[5; 100], None);
        assert_eq!(good[0].as_ref().map(|s| s.sdu.len()), Ok(100));
        let c = r.counters;
        assert_eq!(
            (c.crc, c.cpi, c.length, c.aborted, c.too_long, c.sdus),
            (1, 1, 1, 1, 2, 1)
        );
        assert_eq!(c.errors(), 5);
    }

    /// The last octets of PDUs that the ATM bridge of Dynamips 0.2.24 made of frames of 20, 42 and 86 octets with the
    /// values 0, 1, 2 and so on, read from its socket; the PA-A1 inverts the last four.
    #[test]
    fn pdus_of_dynamips_are_taken_and_counted() {
        const LLC: [u8; 10] = [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0];
        let mut r = Reassembler::new(0);
        for (frame, crc) in [(20, 0xc8e0_a114), (42, 0xb441_0711), (86, 0x6196_04c5_u32)] {
            let sdu: Vec<u8> = LLC.into_iter().chain(0..frame).collect();
            for crc in [crc, !crc] {
                let mut pdu = encode_pdu(&sdu, 0);
                let at = pdu.len() - 4;
                pdu[at..].copy_from_slice(&crc.to_be_bytes());
                let got = raw(&mut r, &pdu).map(|good| good.map(|good| good.sdu));
                assert_eq!(got, Some(Ok(sdu.clone())));
                pdu[5] ^= 4;
                assert_eq!(raw(&mut r, &pdu), Some(Err(PduError::Crc)));
            }
        }
        assert_eq!(
            (r.counters.sdus, r.counters.reflected, r.counters.crc),
            (6, 6, 6)
        );
        assert!(feed(&mut r, &[1; 60], None)[0].is_ok());
        assert_eq!(r.counters.reflected, 6);
    }

    #[test]
    fn a_lost_cell_costs_one_sdu_and_a_lost_last_cell_two() {
        let mut r = Reassembler::new(0);
        assert_eq!(feed(&mut r, &[1; 200], Some(2)), [Err(PduError::Crc)]);
        assert!(feed(&mut r, &[2; 200], None)[0].is_ok());
        assert!(feed(&mut r, &[3; 200], Some(4)).is_empty());
        assert_eq!(feed(&mut r, &[4; 200], None), [Err(PduError::Crc)]);
        assert!(feed(&mut r, &[5; 200], None)[0].is_ok());
    }

    #[test]
    fn clp_and_congestion_are_reported_and_oam_is_ignored() {
        let mut r = Reassembler::new(0);
        let cells: Vec<_> = Segmenter::new(&[9; 100], 0x42).collect();
        assert_eq!(cells.len(), 3);
        assert!(r.push(&cells[0].0, Pti::USER, true).is_none());
        assert!(r.push(&[0; 48], Pti::OAM_END_TO_END, false).is_none());
        assert!(r.push(&cells[1].0, Pti::USER, false).is_none());
        let last = r.push(&cells[2].0, cells[2].1.with_congestion(), false);
        let sdu = last.unwrap().unwrap();
        assert_eq!((sdu.clp, sdu.congested, sdu.uu), (true, true, 0x42));
        let next = feed(&mut r, &[1; 10], None).remove(0).unwrap();
        assert_eq!((next.clp, next.congested), (false, false));
    }

    /// After a reset in the middle of a PDU that is too long, the next PDU is taken whole.
    #[test]
    fn reset_ends_skipping() {
        let mut receiver = Reassembler::new(10);
        let too_long = [[0; 48]; 2].map(|payload| receiver.push(&payload, Pti::USER, false));
        assert_eq!(too_long, [None, Some(Err(PduError::TooLong))]);
        receiver.reset();
        let got: Vec<_> = Segmenter::new(&[7; 10], 0)
            .filter_map(|(payload, pti)| receiver.push(&payload, pti, false))
            .collect();
        assert_eq!(got[0].as_ref().map(|pdu| &pdu.sdu[..]), Ok(&[7; 10][..]));
    }

    proptest! {
        /// Cells of several VCs, interleaved in any way: each VC gets its SDUs back.
        #[test]
        fn any_interleaving(
            sdus in proptest::collection::vec((0_usize..4, proptest::collection::vec(any::<u8>(), 1..600)), 1..12),
            order in proptest::collection::vec(0_usize..4, 0..300),
        ) {
            let mut queues: Vec<std::collections::VecDeque<_>> = vec![Default::default(); 4];
            for (vc, sdu) in &sdus {
                queues[*vc].extend(Segmenter::new(sdu, *vc as u8));
            }
            let mut receivers = vec![Reassembler::new(600); 4];
            let mut got = vec![Vec::new(); 4];
            let all = order.into_iter().chain((0..4).flat_map(|vc| std::iter::repeat_n(vc, 200)));
            for vc in all {
                if let Some((payload, pti)) = queues[vc].pop_front()
                    && let Some(result) = receivers[vc].push(&payload, pti, false)
                {
                    let good = result.unwrap();
                    prop_assert_eq!(usize::from(good.uu), vc);
                    got[vc].push(good.sdu);
                }
            }
            for (vc, got) in got.into_iter().enumerate() {
                let want: Vec<_> = sdus.iter().filter(|(v, _)| *v == vc).map(|(_, s)| s.clone()).collect();
                prop_assert_eq!(got, want);
            }
        }
        #[test]
        fn hostile_cells_never_panic(
            cells in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<bool>()), 0..200),
            max_sdu: u16,
        ) {
            let mut r = Reassembler::new(max_sdu);
            for (fill, pti, clp) in cells {
                let _ = r.push(&[fill; 48], Pti::new(pti), clp);
                prop_assert!(r.pending_cells() <= 1366);
            }
        }
        #[test]
        fn hostile_pdus_never_panic(pdu in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_pdu(&pdu);
        }
    }
}
