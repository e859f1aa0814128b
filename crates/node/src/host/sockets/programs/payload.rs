//! Payloads of PDUs of programs, and their check sums.

/// A PDU of this size with the pattern of `ttcp`.
#[must_use]
pub fn pattern(size: u16) -> Vec<u8> {
    (0..size).map(|i| 0x20 + (i % 95) as u8).collect()
}

/// CRC-32 of IEEE 802.3 over the octets that `before` covers, followed by `octets`.
#[must_use]
pub fn crc32(before: u32, octets: &[u8]) -> u32 {
    let step =
        |crc: u32, octet: &u8| CRC_TABLE[usize::from(crc.to_le_bytes()[0] ^ *octet)] ^ (crc >> 8);
    !octets.iter().fold(!before, step)
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let (mut crc, mut bit) = (n as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
};
