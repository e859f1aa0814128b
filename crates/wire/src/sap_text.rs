//! Service access points as text, in the syntax of linux-atm's `sap(7)`.
//!
//! ```text
//! sap  := [bhli:high][,][blli:low]                 neither: any call
//! high := iso=1-8 octets | user=1-8 octets | hlp=4 octets | oui=3 octets,id=4 octets
//! low  := l2=L2 | l3=L3 | l2=L2,l3=L3
//! L2   := iso1745 | q291 | lapb | iso8802 | x75 | user,info=N
//!       | (x25_ll | x25_ml | hdlc_arm | hdlc_nrm | hdlc_abm | q922 | iso7776)[,mode=norm|ext][,window=1-127]
//! L3   := iso8473 | t70 | h310 | h321 | user,info=N | tr9577,ipi=N | tr9577,ipi=snap,oui=3 octets,pid=2 octets
//!       | (x25 | iso8208 | x223)[,mode=norm|ext][,size=4-12][,window=1-127]
//! ```
//!
//! Octets are pairs of hex digits, optionally behind `0x`; numbers are decimal, octal (`0`) or hexadecimal (`0x`). Case
//! does not matter, blanks are not allowed, and the order is fixed as above.
//!
//! Extensions: `bhli:raw=` and `blli:raw=` with the octets of the element, for elements that the syntax cannot express.
//! So every [`Sap`] has a text that parses to the same [`Sap`]. Differences: user information of the low layers has the
//! 7 bits of its element, `hlp` is always understood, `q992` (the spelling of the manual page) is another name of
//! `q922`. Not implemented: the attributes of `h310`; several B-LLI.
//!
//! Source of the octets: Q.2931 §4.5.8 and §4.5.9.

use crate::{Bhli, Blli, Sap};
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

/// Why a text is not a SAP: the fault and its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SapError {
    /// Offset in octets from the start of the text.
    pub at: usize,
    /// The fault.
    pub text: String,
}

impl fmt::Display for SapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (character {})", self.text, self.at + 1)
    }
}

impl std::error::Error for SapError {}

/// The parameters that may follow the name of a protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// No parameters.
    Plain,
    /// `mode` and `window`; at layer 3 also `size`.
    Modes,
    /// `info`.
    User,
    /// `ipi`.
    Tr9577,
}

type Protocol = (&'static str, u8, Form);

const LAYER_2: &[Protocol] = &[
    ("iso1745", 0x01, Form::Plain),
    ("q291", 0x02, Form::Plain),
    ("x25_ll", 0x06, Form::Modes),
    ("x25_ml", 0x07, Form::Modes),
    ("lapb", 0x08, Form::Plain),
    ("hdlc_arm", 0x09, Form::Modes),
    ("hdlc_nrm", 0x0a, Form::Modes),
    ("hdlc_abm", 0x0b, Form::Modes),
    ("iso8802", 0x0c, Form::Plain),
    ("x75", 0x0d, Form::Plain),
    ("q922", 0x0e, Form::Modes),
    ("q992", 0x0e, Form::Modes),
    ("user", 0x10, Form::User),
    ("iso7776", 0x11, Form::Modes),
];
const LAYER_3: &[Protocol] = &[
    ("x25", 0x06, Form::Modes),
    ("iso8208", 0x07, Form::Modes),
    ("x223", 0x08, Form::Modes),
    ("iso8473", 0x09, Form::Plain),
    ("t70", 0x0a, Form::Plain),
    ("tr9577", 0x0b, Form::Tr9577),
    ("h310", 0x0c, Form::Plain),
    ("h321", 0x0d, Form::Plain),
    ("user", 0x10, Form::User),
];
const MODES: [(&str, u8); 2] = [("norm", 1), ("ext", 2)];
/// Initial protocol identifier of SNAP. Source: ISO/IEC TR 9577.
const SNAP: u8 = 0x80;
/// The last octet of a group.
const LAST: u8 = 0x80;

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
    fn error<T>(&self, text: impl Into<String>) -> Result<T, SapError> {
        Err(SapError {
            at: self.at,
            text: text.into(),
        })
    }
    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }
    fn need(&mut self, word: &str) -> Result<(), SapError> {
        if self.take(word) {
            return Ok(());
        }
        self.error(format!("expected '{word}'"))
    }
    /// The text up to the next separator. The separator is not consumed.
    fn word(&self) -> &'a str {
        let rest = self.rest();
        rest.split([',', ':', '=']).next().unwrap_or(rest)
    }
    /// Reads one of the words of `table`.
    fn one_of<T: Copy>(&mut self, table: &[(&str, T)], what: &str) -> Result<T, SapError> {
        let word = self.word();
        let Some((_, value)) = table.iter().find(|(name, _)| *name == word) else {
            return self.error(format!("'{word}' is no {what}"));
        };
        self.at += word.len();
        Ok(*value)
    }
    fn octets(&mut self, count: RangeInclusive<usize>) -> Result<Vec<u8>, SapError> {
        let word = self.word();
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let values: Option<Vec<u8>> = digits
            .chars()
            .map(|digit| digit.to_digit(16).map(|value| value as u8))
            .collect();
        let Some(values) = values else {
            return self.error(format!("'{word}' has other characters than hex digits"));
        };
        let (pairs, odd) = values.as_chunks::<2>();
        if !odd.is_empty() || !count.contains(&pairs.len()) {
            let (few, many) = count.into_inner();
            return self.error(format!("expected {few} to {many} pairs of hex digits"));
        }
        self.at += word.len();
        Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
    }
    fn number(&mut self, range: RangeInclusive<u8>) -> Result<u8, SapError> {
        let word = self.word();
        let value = match (word.strip_prefix("0x"), word.strip_prefix('0')) {
            (Some(digits), _) => u8::from_str_radix(digits, 16),
            (_, Some(digits)) if !digits.is_empty() => u8::from_str_radix(digits, 8),
            _ => word.parse(),
        };
        let value = value.ok().filter(|value| range.contains(value));
        let Some(value) = value.filter(|_| !word.contains('+')) else {
            let (low, high) = range.into_inner();
            return self.error(format!("expected a number from {low} to {high}"));
        };
        self.at += word.len();
        Ok(value)
    }
    /// The value of `,name=`; 0 if it is absent.
    fn option(&mut self, name: &str, range: RangeInclusive<u8>) -> Result<u8, SapError> {
        if self.take(&format!(",{name}=")) {
            self.number(range)
        } else {
            Ok(0)
        }
    }
}

fn high(cursor: &mut Cursor<'_>) -> Result<Bhli, SapError> {
    let (kind, info) = if cursor.take("iso=") {
        (Bhli::ISO, cursor.octets(1..=8)?)
    } else if cursor.take("user=") {
        (Bhli::USER, cursor.octets(1..=8)?)
    } else if cursor.take("hlp=") {
        (Bhli::PROFILE, cursor.octets(4..=4)?)
    } else if cursor.take("oui=") {
        let mut info = cursor.octets(3..=3)?;
        cursor.need(",id=")?;
        info.extend(cursor.octets(4..=4)?);
        (Bhli::VENDOR, info)
    } else if cursor.take("raw=") {
        let mut octets = cursor.octets(1..=9)?;
        let kind = octets.remove(0);
        (kind, octets)
    } else {
        return cursor.error("expected iso=, user=, hlp= or oui= behind 'bhli:'");
    };
    match Bhli::new(kind, &info) {
        Some(bhli) => Ok(bhli),
        None => cursor.error("a B-HLI has a type of 7 bits"),
    }
}

fn low(cursor: &mut Cursor<'_>) -> Result<Blli, SapError> {
    let octets = if cursor.take("raw=") {
        cursor.octets(1..=Blli::MAX)?
    } else {
        let mut octets = Vec::new();
        if cursor.take("l2=") {
            octets = protocol(cursor, 2)?;
            if cursor.take(",l3=") {
                octets.extend(protocol(cursor, 3)?);
            }
        } else if cursor.take("l3=") {
            octets = protocol(cursor, 3)?;
        }
        octets
    };
    match Blli::from_octets(&octets) {
        Some(blli) => Ok(blli),
        None if octets.is_empty() => cursor.error("expected l2= or l3= behind 'blli:'"),
        None => cursor.error("more than the 13 octets of a B-LLI"),
    }
}

/// The octets of one layer.
fn protocol(cursor: &mut Cursor<'_>, layer: u8) -> Result<Vec<u8>, SapError> {
    let table = if layer == 2 { LAYER_2 } else { LAYER_3 };
    let table: Vec<_> = table
        .iter()
        .map(|&(name, number, form)| (name, (number, form)))
        .collect();
    let (number, form) = cursor.one_of(&table, &format!("protocol of layer {layer}"))?;
    let mut octets = vec![layer << 5 | number];
    match form {
        Form::Plain => {}
        Form::Modes => {
            let mode = if cursor.take(",mode=") {
                cursor.one_of(&MODES, "mode")?
            } else {
                0
            };
            octets.push(mode << 5);
            if layer == 3 {
                octets.push(cursor.option("size", 4..=12)?);
            }
            octets.push(cursor.option("window", 1..=127)?);
            // Trailing octets of value zero carry no information and are left out.
            while octets.len() > 1 && octets.last() == Some(&0) {
                octets.pop();
            }
        }
        Form::User => {
            cursor.need(",info=")?;
            octets.push(cursor.number(0..=127)?);
        }
        Form::Tr9577 => {
            cursor.need(",ipi=")?;
            let ipi = if cursor.take("snap") {
                SNAP
            } else {
                cursor.number(0..=255)?
            };
            octets.extend([ipi >> 1, LAST | (ipi & 1) << 6]);
            if ipi == SNAP {
                octets.push(LAST);
                cursor.need(",oui=")?;
                octets.extend(cursor.octets(3..=3)?);
                cursor.need(",pid=")?;
                octets.extend(cursor.octets(2..=2)?);
            }
            return Ok(octets);
        }
    }
    if let Some(last) = octets.last_mut() {
        *last |= LAST;
    }
    Ok(octets)
}

impl FromStr for Sap {
    type Err = SapError;

    fn from_str(text: &str) -> Result<Self, SapError> {
        let text = text.to_ascii_lowercase();
        let mut cursor = Cursor { text: &text, at: 0 };
        let mut sap = Self::ANY;
        if cursor.rest().is_empty() {
            return Ok(sap);
        }
        let mut expected = "'bhli:' or 'blli:'";
        let mut more = true;
        if cursor.take("bhli:") {
            sap.bhli = Some(high(&mut cursor)?);
            expected = "'blli:'";
            more = cursor.take(",");
        }
        if more {
            if !cursor.take("blli:") {
                return cursor.error(format!("expected {expected}"));
            }
            sap.blli = Some(low(&mut cursor)?);
        }
        if cursor.rest().is_empty() {
            return Ok(sap);
        }
        cursor.error(format!(
            "'{}' is too much, or in another order",
            cursor.rest()
        ))
    }
}

fn hex(octets: &[u8]) -> String {
    let digits: String = octets.iter().map(|octet| format!("{octet:02X}")).collect();
    format!("0x{digits}")
}

fn high_text(bhli: &Bhli) -> String {
    match (bhli.kind(), bhli.info()) {
        (Bhli::ISO, info @ [_, ..]) => format!("bhli:iso={}", hex(info)),
        (Bhli::USER, info @ [_, ..]) => format!("bhli:user={}", hex(info)),
        (Bhli::PROFILE, info @ [_, _, _, _]) => format!("bhli:hlp={}", hex(info)),
        (Bhli::VENDOR, [a, b, c, id @ ..]) if id.len() == 4 => {
            format!("bhli:oui={},id={}", hex(&[*a, *b, *c]), hex(id))
        }
        (kind, info) => format!("bhli:raw={}", hex(&[&[kind], info].concat())),
    }
}

fn low_text(blli: &Blli) -> String {
    let words = low_words(blli.octets()).map(|words| format!("blli:{words}"));
    // The words are used only if they parse to the same octets.
    let same = |text: &String| text.parse() == Ok(Sap::from(*blli));
    words
        .filter(same)
        .unwrap_or_else(|| format!("blli:raw={}", hex(blli.octets())))
}

/// The layers in words; `None` if the syntax cannot express them.
fn low_words(mut octets: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    while let Some(first) = octets.first() {
        let end = octets.iter().position(|octet| octet & LAST != 0)? + 1;
        let (group, rest) = octets.split_at(end);
        let layer = first >> 5 & 3;
        let table = match layer {
            2 => LAYER_2,
            3 => LAYER_3,
            _ => return None,
        };
        let number = first & 0x1f;
        let (name, _, form) = table.iter().find(|(_, known, _)| *known == number)?;
        let mut text = format!("l{layer}={name}");
        let value = |at: usize| group.get(at).map_or(0, |octet| octet & !LAST);
        octets = rest;
        match form {
            Form::Plain => {}
            Form::User => text += &format!(",info={}", value(1)),
            Form::Modes => {
                if let Some((mode, _)) = MODES.iter().find(|(_, mode)| mode << 5 == value(1)) {
                    text += &format!(",mode={mode}");
                }
                let more: &[&str] = if layer == 2 {
                    &["window"]
                } else {
                    &["size", "window"]
                };
                for (at, name) in (2..).zip(more).filter(|(at, _)| value(*at) != 0) {
                    text += &format!(",{name}={}", value(at));
                }
            }
            Form::Tr9577 => match (value(1) << 1 | value(2) >> 6, rest) {
                (SNAP, [LAST, a, b, c, pid @ ..]) => {
                    let oui = hex(&[*a, *b, *c]);
                    text += &format!(",ipi=snap,oui={oui},pid={}", hex(pid));
                    octets = &[];
                }
                (ipi, _) => text += &format!(",ipi={ipi}"),
            },
        }
        parts.push(text);
    }
    Some(parts.join(","))
}

impl fmt::Display for Sap {
    /// `bhli:oui=0x0060D7,id=0x01000001,blli:l2=iso8802`; nothing for [`Sap::ANY`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.bhli.as_ref().map(high_text),
            self.blli.as_ref().map(low_text),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sap(text: &str) -> Sap {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The examples of sap(7), linux-atm 2.5.1.
    #[test]
    fn examples_of_the_manual_page() {
        let arequipa = Bhli::new(Bhli::VENDOR, &[0, 0x60, 0xd7, 1, 0, 0, 1]).unwrap();
        let both = Sap {
            blli: Some(Blli::LLC),
            bhli: Some(arequipa),
        };
        for (text, value) in [
            ("blli:l2=iso8802", Sap::LLC),
            ("bhli:oui=0x0060D7,id=0x01000001,blli:l2=iso8802", both),
            (
                "blli:l3=tr9577,ipi=snap,oui=0x00A03E,pid=0x0002",
                Sap::LANE_DATA_ETHERNET,
            ),
            ("", Sap::ANY),
        ] {
            assert_eq!(sap(text), value);
            assert_eq!(sap(&text.to_uppercase()), value);
            assert_eq!(value.to_string(), text);
        }
        let plain = "bhli:oui=0060d7,id=01000001,blli:l2=iso8802";
        assert_eq!(sap(plain), both);
    }

    /// Octets after Q.2931 §4.5.9.
    #[test]
    fn octets_of_low_layers() {
        for (text, octets) in [
            ("blli:l2=iso1745", &[0xc1][..]),
            ("blli:l2=x25_ll", &[0xc6]),
            ("blli:l2=x25_ll,mode=norm", &[0x46, 0xa0]),
            ("blli:l2=hdlc_abm,mode=ext,window=127", &[0x4b, 0x40, 0xff]),
            ("blli:l2=q922,window=1", &[0x4e, 0x00, 0x81]),
            ("blli:l2=user,info=5", &[0x50, 0x85]),
            ("blli:l3=iso8473", &[0xe9]),
            (
                "blli:l3=x25,mode=ext,size=7,window=2",
                &[0x66, 0x40, 0x07, 0x82],
            ),
            ("blli:l3=iso8208,window=3", &[0x67, 0x00, 0x00, 0x83]),
            ("blli:l3=x223,size=12", &[0x68, 0x00, 0x8c]),
            // IP alone.
            ("blli:l3=tr9577,ipi=204", &[0x6b, 0x66, 0x80]),
            ("blli:l3=tr9577,ipi=1", &[0x6b, 0x00, 0xc0]),
            ("blli:l2=iso8802,l3=h321", &[0xcc, 0xed]),
        ] {
            let value = sap(text);
            assert_eq!(value.blli.unwrap().octets(), octets, "{text}");
            assert_eq!(value.to_string(), text);
        }
        assert_eq!(
            sap("blli:l3=tr9577,ipi=0xcc"),
            sap("blli:l3=tr9577,ipi=0314")
        );
        assert_eq!(sap("blli:l2=q992"), sap("blli:l2=q922"));
        let snap = "blli:l3=tr9577,ipi=128,oui=00a03e,pid=0002";
        assert_eq!(sap(snap), Sap::LANE_DATA_ETHERNET);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at, says) in [
            ("llc", 0, "expected 'bhli:' or 'blli:'"),
            ("blli:", 5, "expected l2= or l3="),
            (
                "blli:l2=ethernet",
                8,
                "'ethernet' is no protocol of layer 2",
            ),
            ("blli:l2=iso8802,", 15, "too much"),
            ("blli:l2=iso8802,bhli:iso=00", 15, "in another order"),
            ("bhli:iso=", 9, "1 to 8 pairs"),
            ("bhli:user=0x012", 10, "1 to 8 pairs"),
            ("bhli:oui=0060d7", 15, "expected ',id='"),
            ("bhli:iso=00,", 12, "expected 'blli:'"),
            ("bhli:raw=80", 11, "7 bits"),
            ("blli:l2=x25_ll,window=128", 22, "from 1 to 127"),
            ("blli:l2=user,info=+5", 18, "from 0 to 127"),
            ("blli:l3=tr9577,ipi=snap", 23, "expected ',oui='"),
            ("bhli:iso=ä", 9, "hex digits"),
        ] {
            let error = text.parse::<Sap>().unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.text.contains(says), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn every_sap_reads_back(
            low in proptest::option::of(proptest::collection::vec(any::<u8>(), 1..=Blli::MAX)),
            high in proptest::option::of((0_u8..=0x7f, proptest::collection::vec(any::<u8>(), 0..=8))),
        ) {
            let sap = Sap {
                blli: low.and_then(|octets| Blli::from_octets(&octets)),
                bhli: high.and_then(|(kind, info)| Bhli::new(kind, &info)),
            };
            prop_assert_eq!(sap.to_string().parse(), Ok(sap));
        }

        #[test]
        fn words_read_back(octets in proptest::collection::vec(
            proptest::sample::select(vec![0x40_u8, 0x46, 0xcc, 0x66, 0x6b, 0x50, 0x00, 0x07, 0x80, 0x81, 0xa0, 0xc0]), 1..=9,
        )) {
            let sap = Sap::from(Blli::from_octets(&octets).unwrap());
            prop_assert_eq!(sap.to_string().parse(), Ok(sap));
        }

        #[test]
        fn no_text_panics(text in "(bhli:|blli:|l2=|l3=|tr9577|ipi=|snap|,|0x|[0-9a-zäü]{0,4}){0,6}") {
            let _ = text.parse::<Sap>();
        }
    }
}
