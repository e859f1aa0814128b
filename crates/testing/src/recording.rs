//! Recordings of Linux ATM in `crates/wire/tests/vectors/linux-atm` (see the README there), read without a JSON
//! library: the files are ours, every record is one flat object on one line.

/// One AAL5 SDU of a recording.
#[derive(Clone, Debug)]
pub struct Record {
    /// `NAME:LINE`, for messages.
    pub at: String,
    /// Seconds from the start of the recording.
    pub time: f64,
    /// Direction as recorded, for example `A>B`.
    pub dir: String,
    /// VPI on the link.
    pub vpi: u16,
    /// VCI on the link.
    pub vci: u16,
    /// The SDU.
    pub sdu: Vec<u8>,
}

/// Every recording's name.
pub const ALL: [&str; 8] = [
    "c-svc",
    "c-svc-uni30",
    "c-svc-uni40",
    "d-clip-svc",
    "f-lane",
    "g-mpoa",
    "p-p2mp",
    "p-p2mp-uni30",
];

/// The SDUs of one recording in order, on all VCs; marks and omitted bulk data are skipped.
#[must_use]
pub fn sdus(name: &str) -> Vec<Record> {
    let path = format!(
        "{}/../wire/tests/vectors/linux-atm/{name}.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines()
        .enumerate()
        .filter_map(|(i, line)| {
            let hex = member(line, "hex")?;
            let number = |key| member(line, key).and_then(|v| v.parse().ok());
            Some(Record {
                at: format!("{name}:{}", i + 1),
                time: member(line, "t")?.parse().ok()?,
                dir: member(line, "dir")?.to_owned(),
                vpi: number("vpi")?,
                vci: number("vci")?,
                sdu: unhex(hex),
            })
        })
        .collect()
}

/// The SDUs of one VC (VPI 0) of one recording.
#[must_use]
pub fn on_vci(name: &str, vci: u16) -> Vec<Record> {
    let mut records = sdus(name);
    records.retain(|record| record.vpi == 0 && record.vci == vci);
    records
}

/// Octets from hex digits; blanks are skipped.
#[must_use]
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("hex digit") as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "odd number of hex digits");
    digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect()
}

/// The text of member `key` of a flat object, without quotes.
fn member<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{key}\": "))?;
    match rest.strip_prefix('"') {
        Some(text) => text.split('"').next(),
        None => rest.split([',', '}']).next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_read() {
        for name in ALL {
            let records = sdus(name);
            assert!(records.len() > 25, "{name}: {}", records.len());
            assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time));
            assert!(records.iter().any(|record| record.vci == 5));
        }
        let lane = sdus("f-lane");
        assert!(lane.iter().any(|record| record.dir == "S>A2"));
        assert_eq!(on_vci("c-svc", 5).len(), 48);
    }
}
