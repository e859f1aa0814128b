//! The CRC-32 of AAL5 and that of Ethernet.
//!
//! `crc-fast` uses instructions of the processor. It brings tables of all CRCs for processors without them, 600 kB that
//! no packer makes smaller, so a module for browsers has the tables of these two by `crc`.

#[cfg(target_family = "wasm")]
use self::tables as library;
#[cfg(not(target_family = "wasm"))]
use fast as library;

/// CRC-32 of AAL5 over these parts: generator 04C11DB7, most significant bit first, complemented ("CRC-32/BZIP2").
pub(crate) fn aal5(parts: &[&[u8]]) -> u32 {
    library::aal5(parts)
}

/// CRC-32 of an Ethernet frame: the same generator, least significant bit first ("CRC-32/ISO-HDLC").
pub(crate) fn ethernet(frame: &[u8]) -> u32 {
    library::ethernet(frame)
}

#[cfg(not(target_family = "wasm"))]
mod fast {
    use crc_fast::{CrcAlgorithm, Digest, checksum};

    pub(super) fn aal5(parts: &[&[u8]]) -> u32 {
        if let [whole] = parts {
            return checksum(CrcAlgorithm::Crc32Bzip2, whole) as u32;
        }
        let mut digest = Digest::new(CrcAlgorithm::Crc32Bzip2);
        parts.iter().for_each(|part| digest.update(part));
        digest.finalize() as u32
    }

    pub(super) fn ethernet(frame: &[u8]) -> u32 {
        checksum(CrcAlgorithm::Crc32IsoHdlc, frame) as u32
    }
}

#[cfg(any(test, target_family = "wasm"))]
mod tables {
    use crc::{CRC_32_BZIP2, CRC_32_ISO_HDLC, Crc, Table};

    static AAL5: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_BZIP2);
    static ETHERNET: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

    pub(super) fn aal5(parts: &[&[u8]]) -> u32 {
        let mut digest = AAL5.digest();
        parts.iter().for_each(|part| digest.update(part));
        digest.finalize()
    }

    pub(super) fn ethernet(frame: &[u8]) -> u32 {
        ETHERNET.checksum(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::{fast, tables};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_libraries_give_the_same(a: Vec<u8>, b: Vec<u8>) {
            prop_assert_eq!(fast::aal5(&[&a]), tables::aal5(&[&a]));
            prop_assert_eq!(fast::aal5(&[&a, &b]), tables::aal5(&[&a, &b]));
            prop_assert_eq!(fast::aal5(&[&a, &b]), fast::aal5(&[&[&a[..], &b].concat()]));
            prop_assert_eq!(fast::ethernet(&a), tables::ethernet(&a));
        }
    }

    #[test]
    fn check_values_are_those_of_the_catalogue() {
        assert_eq!(fast::aal5(&[b"123456789"]), 0xfc89_1918);
        assert_eq!(fast::ethernet(b"123456789"), 0xcbf4_3926);
    }
}
