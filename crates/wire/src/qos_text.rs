//! Quality of service as text, in the syntax of linux-atm's `qos(7)`.
//!
//! ```text
//! qos   := class[,aal5|,aal0][:list][,tx:list][,rx:list]       before the first list stands ':'
//! list  := none | param{,param}
//! param := pcr=R | max_pcr=R | pcr0=R | min_pcr=R | mdcr=R | scr=R | scr0=R | mbs=N | max_cdv=T | cdvt=T
//!        | scr_cdvt=T | pcr0_cdvt=T
//!        | sdu=N | max_sdu=N | tagging=B | frame_discard=B
//! B     := true | false
//! T     := number[.fraction]                             microseconds, with up to three decimals
//! R     := number[.fraction][[k|M|G](cps|bps)] | max      no unit: cells/s; 384 bit/s are one cell/s
//! ```
//!
//! Case does not matter in words, names and multipliers. `cps` and `bps` are small: an octet is no bit, so libatm and
//! this program refuse `MBps`. Blanks are not allowed. Parameters before `tx:` hold for both directions. Peak and
//! sustainable rates in bit/s are rounded down, minimum rates up. Extensions: the classes `rt-vbr`, `nrt-vbr` (also
//! `vbr`) and `gfr`; `scr` and `mbs` (sustainable rate and burst size of all cells), `scr0` (of cells with CLP 0; `mbs`
//! then, too), `pcr0` (peak rate of cells with CLP 0), `max_cdv` or `cdvt` (tolerance in microseconds), `scr_cdvt` and
//! `pcr0_cdvt` (tolerance of the sustainable rate, and of cells with CLP 0, if it is another one), `mdcr` (`min_pcr` of
//! best effort), `tagging` and `frame_discard`; a class as first word of a `tx:` or `rx:` list, where the directions
//! differ; `MAX`; rates up to 4 294 967 294 cells/s. Refused here: a sign or blank in front of a number, SDUs above 65
//! 535 octets, `none` for both directions. Differences: `pcr` is another name of `max_pcr`, which takes precedence if
//! both are given. `aal0` is for [`ConnectionQos`] only, the text of a permanent connection of a program; its SDUs have
//! 52 octets. [`contract`](crate::contract) finds texts whose parameters contradict each other.

mod units;

pub(crate) use units::micros;
use units::{lower, number, rate};

use crate::{AalType, ConnectionQos, Qos, ServiceCategory, TrafficParams, aal0};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// Why a text is not a QoS: the fault and its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QosError {
    /// Offset in octets from the start of the text.
    pub at: usize,
    /// The fault, in one sentence.
    pub text: String,
}

impl fmt::Display for QosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (character {})", self.text, self.at + 1)
    }
}

impl std::error::Error for QosError {}

pub(crate) fn error<T>(at: usize, text: impl Into<String>) -> Result<T, QosError> {
    Err(QosError {
        at,
        text: text.into(),
    })
}

/// Bits of user data per cell, by which linux-atm converts bit/s to cells/s.
const CELL_PAYLOAD_BITS: u128 = 384;

fn class_of(word: &str) -> Option<ServiceCategory> {
    match word {
        "vbr" => Some(ServiceCategory::NrtVbr),
        _ => ServiceCategory::by_name(word),
    }
}

/// A tolerance in microseconds, with as many decimals as it has: `250`, `0.5`.
#[must_use]
pub fn micros_text(tolerance: Duration) -> String {
    let (whole, rest) = (tolerance.as_micros(), tolerance.subsec_nanos() % 1000);
    match rest {
        0 => whole.to_string(),
        rest => format!("{whole}.{rest:03}")
            .trim_end_matches('0')
            .to_owned(),
    }
}

/// The parameters of a list, without the class.
fn list_text(t: &TrafficParams) -> String {
    if t.category.is_none() {
        return "none".into();
    }
    let number = |value: u32| {
        Some(value)
            .filter(|value| *value != 0)
            .map(|v| v.to_string())
    };
    let micros = |time: Duration| (!time.is_zero()).then(|| micros_text(time));
    let second = match t.category {
        Some(ServiceCategory::Cbr) => "pcr0_cdvt",
        _ => "scr_cdvt",
    };
    let numbers = [
        ("max_pcr", t.max_pcr.map(|rate| rate.to_string())),
        ("pcr0", number(t.pcr0)),
        ("min_pcr", number(t.min_pcr)),
        (if t.clp0 { "scr0" } else { "scr" }, number(t.scr)),
        ("mbs", number(t.mbs)),
        ("max_cdv", micros(t.max_cdv)),
        (second, micros(t.second_cdv)),
        ("sdu", number(t.max_sdu.into())),
    ];
    let answers = [
        ("tagging", t.tagging.then_some(true)),
        ("frame_discard", t.frame_discard),
    ];
    let numbers = numbers
        .iter()
        .filter_map(|(name, value)| value.as_ref().map(|v| format!("{name}={v}")));
    let answers = answers
        .iter()
        .filter_map(|(name, value)| value.map(|v| format!("{name}={v}")));
    numbers.chain(answers).collect::<Vec<_>>().join(",")
}

impl fmt::Display for TrafficParams {
    /// `cbr:max_pcr=80000,sdu=1600`, `ubr`, `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(category) = self.category else {
            return f.write_str("none");
        };
        write!(f, "{category}")?;
        match list_text(self).as_str() {
            "" => Ok(()),
            list => write!(f, ":{list}"),
        }
    }
}

impl fmt::Display for Qos {
    /// `ubr,aal5:sdu=1516`, `cbr,aal5:tx:max_pcr=80000,sdu=1600,rx:none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(class) = self.tx.category.or(self.rx.category) else {
            return f.write_str("none");
        };
        write!(f, "{class},aal5")?;
        if self.tx == self.rx {
            return match list_text(&self.tx).as_str() {
                "" => Ok(()),
                list => write!(f, ":{list}"),
            };
        }
        let mut separator = ':';
        for (side, t) in [("tx", &self.tx), ("rx", &self.rx)] {
            let mut list = list_text(t);
            if let Some(own) = t.category.filter(|own| *own != class) {
                let rest = if list.is_empty() {
                    list
                } else {
                    format!(",{list}")
                };
                list = format!("{own}{rest}");
            }
            if !list.is_empty() {
                write!(f, "{separator}{side}:{list}")?;
                separator = ',';
            }
        }
        Ok(())
    }
}

/// A word of the text with its offset.
#[derive(Clone, Copy)]
struct Word<'a> {
    at: usize,
    text: &'a str,
}

/// The parts of a comma-separated text with their offsets.
fn split(text: &str, at: usize) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = at;
    for part in text.split(',') {
        words.push(Word {
            at: start,
            text: part,
        });
        start += part.len() + 1;
    }
    words
}

fn answer(word: Word<'_>) -> Result<bool, QosError> {
    match &*word.text.to_ascii_lowercase() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => error(
            word.at,
            format!("'{}' is neither true nor false", word.text),
        ),
    }
}

/// A rate or a number that has no meaning with the value 0, unlike one that is left out.
fn above_zero(value: u32, word: Word<'_>, what: &str) -> Result<u32, QosError> {
    match value {
        0 => error(word.at, format!("{what} is at least 1")),
        value => Ok(value),
    }
}

/// Applies one `name=value`; `peak_given` records that `max_pcr` was present.
fn param(t: &mut TrafficParams, word: Word<'_>, peak_given: &mut bool) -> Result<(), QosError> {
    let Some((name, value)) = word.text.split_once('=') else {
        return error(word.at, format!("'{}' is no parameter", word.text));
    };
    let value = Word {
        at: word.at + name.len() + 1,
        text: value,
    };
    match name {
        "max_pcr" => {
            t.max_pcr = rate(value, false)?;
            *peak_given = true;
        }
        "pcr" if *peak_given => {
            rate(value, false)?;
        }
        "pcr" => t.max_pcr = rate(value, false)?,
        "pcr0" => {
            let cells = rate(value, false)?.unwrap_or(0);
            t.pcr0 = above_zero(cells, value, "a peak rate of cells with CLP 0")?;
        }
        "min_pcr" | "mdcr" => t.min_pcr = rate(value, true)?.unwrap_or(0),
        "scr" | "scr0" => {
            if t.scr > 0 && t.clp0 != (name == "scr0") {
                let text = "a direction has one sustainable rate: scr (all cells) or scr0 (CLP 0)";
                return error(word.at, text);
            }
            let cells = rate(value, false)?.unwrap_or(0);
            t.scr = above_zero(cells, value, "a sustainable rate")?;
            t.clp0 = name == "scr0";
        }
        "mbs" => {
            let cells = number(value, u32::MAX - 1, "number of cells")?;
            t.mbs = above_zero(cells, value, "a burst size")?;
        }
        "max_cdv" | "cdvt" => {
            t.max_cdv = micros(value.at, value.text)?;
        }
        "pcr0_cdvt" | "scr_cdvt" => {
            let cbr = t.category == Some(ServiceCategory::Cbr);
            if cbr != (name == "pcr0_cdvt") {
                let text = "cbr has pcr0_cdvt, beside pcr0; rt-vbr and nrt-vbr have scr_cdvt";
                return error(word.at, text);
            }
            t.second_cdv = micros(value.at, value.text)?;
        }
        "tagging" => t.tagging = answer(value)?,
        "frame_discard" => t.frame_discard = Some(answer(value)?),
        "sdu" | "max_sdu" => t.max_sdu = number(value, 65535, "number of octets")? as u16,
        _ => return error(word.at, format!("unknown parameter '{name}'")),
    }
    Ok(())
}

/// A parameter that a list of this text gives twice, of which the last one counts. Which text is a QoS, other functions
/// tell.
#[must_use]
pub fn repeated(text: &str) -> Option<QosError> {
    let text = lower(text);
    let mut seen: Vec<&str> = Vec::new();
    for word in split(&text, 0) {
        // A colon begins a list.
        let start = word.text.rfind(':').map_or(0, |colon| colon + 1);
        if start > 0 {
            seen.clear();
        }
        let Some((name, _)) = word.text[start..].split_once('=') else {
            continue;
        };
        let name = match name {
            "mdcr" => "min_pcr",
            "cdvt" => "max_cdv",
            "max_sdu" => "sdu",
            name => name,
        };
        if seen.contains(&name) {
            return Some(QosError {
                at: word.at + start,
                text: format!("{name} stands here twice: the last one counts"),
            });
        }
        seen.push(name);
    }
    None
}

/// A list; `own_class` allows a class as its first word.
fn list(t: &mut TrafficParams, words: &[Word<'_>], own_class: bool) -> Result<(), QosError> {
    let mut peak_given = false;
    for (i, word) in words.iter().enumerate() {
        match word.text {
            "none" if words.len() == 1 => *t = TrafficParams::none(),
            "none" => return error(word.at, "'none' must stand alone"),
            text if own_class && i == 0 && class_of(text).is_some() => t.category = class_of(text),
            _ => param(t, *word, &mut peak_given)?,
        }
    }
    Ok(())
}

/// Text before the first list, and the rest with its offset.
struct Head<'a> {
    class: ServiceCategory,
    /// The word `aal0`, if it is there.
    aal0: Option<Word<'a>>,
    rest: Option<Word<'a>>,
}

impl<'a> Head<'a> {
    /// The same for a connection that carries AAL5.
    fn aal5(self) -> Result<Self, QosError> {
        match self.aal0 {
            None => Ok(self),
            Some(word) => error(
                word.at,
                "aal0 cannot stand here: only permanent connections of programs with sockets carry single cells",
            ),
        }
    }
}

/// Splits `cbr,aal5:...`.
fn head(text: &str) -> Result<Head<'_>, QosError> {
    let (head, rest) = match text.split_once(':') {
        Some((head, rest)) => (
            head,
            Some(Word {
                at: head.len() + 1,
                text: rest,
            }),
        ),
        None => (text, None),
    };
    let mut class = None;
    let (mut aal, mut aal0) = (false, None);
    for word in split(head, 0) {
        match (word.text, class_of(word.text)) {
            ("aal5", _) if !aal => aal = true,
            ("aal0", _) if !aal => (aal, aal0) = (true, Some(word)),
            (_, Some(found)) if class.is_none() => class = Some(found),
            (_, Some(_)) | ("aal5" | "aal0", _) => {
                return error(word.at, format!("'{}' is one too many", word.text));
            }
            _ => {
                return error(
                    word.at,
                    format!(
                        "'{}' is no class: use cbr, rt-vbr, nrt-vbr, abr, gfr, ubr",
                        word.text
                    ),
                );
            }
        }
    }
    match class {
        Some(class) => Ok(Head { class, aal0, rest }),
        None => error(
            0,
            "a class is missing: cbr, rt-vbr, nrt-vbr, abr, gfr or ubr",
        ),
    }
}

/// The words of the list with this prefix (`tx:` or `rx:`), without the prefix.
fn side<'a>(words: &[Word<'a>], prefix: &str) -> Vec<Word<'a>> {
    let mut words = words.to_vec();
    if let Some(first) = words.first_mut()
        && let Some(rest) = first.text.strip_prefix(prefix)
    {
        first.text = rest;
        first.at += prefix.len();
    }
    words
}

impl FromStr for TrafficParams {
    type Err = QosError;
    /// `cbr:max_pcr=48Mbps,sdu=1600`, `ubr`, `none`.
    fn from_str(text: &str) -> Result<Self, QosError> {
        let text = lower(text);
        if text == "none" {
            return Ok(Self::none());
        }
        let Head { class, rest, .. } = head(&text)?.aal5()?;
        let mut t = Self {
            category: Some(class),
            ..Self::none()
        };
        if let Some(rest) = rest {
            list(&mut t, &split(rest.text, rest.at), false)?;
        }
        Ok(t)
    }
}

impl FromStr for Qos {
    type Err = QosError;
    /// A `qos(7)` text. Source: linux-atm `qos(7)`.
    fn from_str(text: &str) -> Result<Self, QosError> {
        let text = lower(text);
        head(&text)?.aal5()?.qos()
    }
}

impl fmt::Display for ConnectionQos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.aal {
            AalType::Aal0 => f.write_str(&self.qos.to_string().replacen("aal5", "aal0", 1)),
            AalType::Aal5 => self.qos.fmt(f),
        }
    }
}

impl FromStr for ConnectionQos {
    type Err = QosError;
    /// As [`Qos`], and with `aal0`. The SDUs of both directions then have 52 octets. Source: linux-atm `qos(7)`; the
    /// size is from memory.
    fn from_str(text: &str) -> Result<Self, QosError> {
        let text = lower(text);
        let head = head(&text)?;
        let Some(word) = head.aal0 else {
            return head.qos().map(Self::from);
        };
        let mut qos = head.qos()?;
        for side in [&mut qos.tx, &mut qos.rx] {
            let sdu = usize::from(side.max_sdu);
            if side.category.is_none() {
                continue;
            }
            if sdu != 0 && sdu != aal0::SDU_LEN {
                let text = format!("an SDU of aal0 has {} octets, not {sdu}", aal0::SDU_LEN);
                return error(word.at, text);
            }
            side.max_sdu = aal0::SDU_LEN as u16;
        }
        Ok(Self {
            aal: AalType::Aal0,
            qos,
        })
    }
}

impl Head<'_> {
    /// The contract of both directions.
    fn qos(self) -> Result<Qos, QosError> {
        let (class, rest) = (self.class, self.rest);
        let mut common = TrafficParams {
            category: Some(class),
            ..TrafficParams::none()
        };
        let Some(rest) = rest else {
            return Ok(Qos {
                tx: common,
                rx: common,
            });
        };
        let words = split(rest.text, rest.at);
        let find = |prefix| words.iter().position(|w| w.text.starts_with(prefix));
        let (tx, rx) = (find("tx:"), find("rx:"));
        if let (Some(tx), Some(rx)) = (tx, rx)
            && rx < tx
        {
            return error(
                words.get(tx).map_or(0, |w| w.at),
                "tx: must stand before rx:",
            );
        }
        let end = words.len();
        let part = |from: usize, to: usize| words.get(from..to).unwrap_or_default();
        list(&mut common, part(0, tx.or(rx).unwrap_or(end)), false)?;
        if common.category.is_none() && tx.is_none() && rx.is_none() {
            return error(rest.at, "both directions are none");
        }
        let mut qos = Qos {
            tx: common,
            rx: common,
        };
        if let Some(at) = tx {
            list(&mut qos.tx, &side(part(at, rx.unwrap_or(end)), "tx:"), true)?;
        }
        if let Some(at) = rx {
            list(&mut qos.rx, &side(part(at, end), "rx:"), true)?;
        }
        if qos.tx.category.is_none() && qos.rx.category.is_none() {
            return error(rest.at, "both directions are none");
        }
        Ok(qos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Qos {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn a_parameter_that_stands_twice_in_a_list_is_found() {
        for (text, found) in [
            ("cbr:pcr=9,sdu=1,pcr=8", Some((16, "pcr"))),
            ("cbr,aal5:tx:scr=1,rx:SDU=1,max_sdu=1", Some((27, "sdu"))),
            ("ubr:max_cdv=1,CDVT=1", Some((14, "max_cdv"))),
            ("ubr,aal5:sdu=1,tx:sdu=2,rx:sdu=3", None),
            ("cbr:pcr=1,max_pcr=2", None),
            ("ubr,ubr", None),
        ] {
            let odd = repeated(text);
            assert_eq!(
                odd.as_ref().map(|odd| odd.at),
                found.map(|found| found.0),
                "{text}"
            );
            let name = found.map_or("", |found| found.1);
            assert!(odd.is_none_or(|odd| odd.text.starts_with(name)), "{text}");
        }
    }

    /// Examples of `qos(7)`.
    #[test]
    fn manual_examples() {
        assert_eq!(parse("ubr"), Qos::ubr(0));
        assert_eq!(parse("ubr:pcr=100kbps").tx.max_pcr, Some(260));
        let both = parse("CBR,AAL5:max_pcr=11Mbps,min_pcr=10mbps,sdu=8192");
        assert_eq!(both.tx, both.rx);
        assert_eq!(
            (both.tx.max_pcr, both.tx.min_pcr, both.tx.max_sdu),
            (Some(28645), 26042, 8192)
        );
        let receive = parse("aal5,ubr:tx:none");
        assert_eq!(
            (receive.tx, receive.rx),
            (TrafficParams::none(), TrafficParams::ubr(0))
        );
        let send = parse("cbr:tx:pcr=30000,rx:none");
        assert_eq!(
            (send.tx, send.rx),
            (TrafficParams::cbr(30000, 0), TrafficParams::none())
        );
        assert_eq!(
            parse("CBR,AAL5:PCR=48Mbps"),
            parse("cbr,aal5:max_pcr=125000")
        );
        assert_eq!(parse("cbr:pcr=max").tx.max_pcr, None);
        assert_eq!(parse("cbr:pcr=1,max_pcr=2,pcr=3").tx.max_pcr, Some(2));
    }

    #[test]
    fn canonical_text() {
        for text in [
            "ubr,aal5:sdu=1516",
            "cbr,aal5:tx:max_pcr=80000,sdu=1600,rx:none",
            "nrt-vbr,aal5:max_pcr=50000,scr=10000,mbs=200,sdu=9188",
            "gfr,aal5:max_pcr=1000,min_pcr=500,mbs=64",
            "cbr,aal5:tx:max_pcr=80000,rx:ubr,sdu=1516",
            "abr,aal5",
            "cbr,aal5:max_pcr=1000,pcr0=800,tagging=true",
            "rt-vbr,aal5:max_pcr=50000,scr0=10000,mbs=200,sdu=9188,tagging=true,frame_discard=false",
            "ubr,aal5:max_pcr=1000,min_pcr=100,frame_discard=true",
            "cbr,aal5:max_pcr=1000,pcr0=800,max_cdv=0.5,pcr0_cdvt=12.125",
            "nrt-vbr,aal5:max_pcr=1000,scr=800,mbs=2,max_cdv=250,scr_cdvt=0.001",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(
            parse("cbr,aal5:tx:max_pcr=80000,sdu=1600").rx,
            TrafficParams {
                max_pcr: None,
                ..TrafficParams::cbr(0, 0)
            }
        );
        assert_eq!(
            "cbr:max_pcr=1.5kcps"
                .parse::<TrafficParams>()
                .unwrap()
                .to_string(),
            "cbr:max_pcr=1500"
        );
    }

    #[test]
    fn single_cells_are_for_permanent_connections_of_programs() {
        let parse = |text: &str| text.parse::<ConnectionQos>();
        let cells = parse("UBR,aal0:pcr=1000").unwrap();
        assert_eq!(cells.aal, AalType::Aal0);
        assert_eq!((cells.qos.tx.max_sdu, cells.qos.rx.max_sdu), (52, 52));
        assert_eq!(cells.to_string(), "ubr,aal0:max_pcr=1000,sdu=52");
        assert_eq!(parse(&cells.to_string()), Ok(cells));
        let one_way = parse("aal0,cbr:tx:pcr=9,rx:none").unwrap();
        assert_eq!(
            (one_way.qos.tx.max_sdu, one_way.qos.rx),
            (52, TrafficParams::none())
        );
        let pdus = parse("ubr:sdu=1500").unwrap();
        assert_eq!(
            (pdus.aal, pdus.to_string()),
            (AalType::Aal5, "ubr,aal5:sdu=1500".into())
        );
        for (text, at) in [("ubr,aal0:sdu=48", 4), ("aal0,ubr,aal5", 9), ("aal0", 0)] {
            assert_eq!(parse(text).unwrap_err().at, at, "{text}");
        }
        let refused = "aal0,ubr".parse::<Qos>().unwrap_err();
        assert!(refused.text.contains("permanent connections"), "{refused}");
        assert_eq!("ubr,aal0".parse::<TrafficParams>().unwrap_err().at, 4);
    }

    #[test]
    fn errors_say_where() {
        for (text, at) in [
            ("", 0),
            ("xbr", 0),
            ("cbr,ubr", 4),
            ("cbr,aal0", 4),
            ("aal5,cbr,aal0", 9),
            ("cbr:pcr=3k", 8),
            ("cbr:pcr=3kbit", 8),
            ("cbr:pcr=1,foo=2", 10),
            ("cbr:sdu=70000", 8),
            ("cbr:min_pcr=max", 12),
            ("cbr:rx:pcr=1,tx:none", 13),
            ("cbr:tx:none,rx:none", 4),
            ("cbr:pcr=1.1234567891", 8),
            ("cbr:pcr=99999Gcps", 8),
            ("cbr:pcr= 1", 8),
            ("vbr:mbs=0", 8),
            ("vbr:scr=0", 8),
            ("vbr:scr=9,scr0=5", 10),
            ("vbr:scr0=max", 9),
            ("cbr:tagging=yes", 12),
            ("cbr:cdvt=0.1234", 9),
            ("cbr:cdvt=1.", 9),
            ("cbr:cdvt=.5", 9),
            ("cbr:cdvt=1.x", 9),
            ("cbr:cdvt=4294967295", 9),
            ("cbr:pcr0=1,scr_cdvt=5", 11),
            ("vbr:scr=1,pcr0_cdvt=5", 10),
            ("cbr:frame_discard=", 18),
        ] {
            assert_eq!(text.parse::<Qos>().unwrap_err().at, at, "{text}");
        }
    }

    fn direction() -> impl Strategy<Value = TrafficParams> {
        let rates = (proptest::option::of(0..900_000_u32), [0..9_u32, 0..9, 0..9]);
        let times = [0..9_000_u64, 0..9_000].map(|nanos| nanos.prop_map(Duration::from_nanos));
        let sizes = (0..9_u32, times, any::<u16>());
        let words = (any::<[bool; 2]>(), any::<Option<bool>>());
        (0..7_usize, rates, sizes, words).prop_map(|(class, rates, sizes, words)| {
            let classes = ["cbr", "rt-vbr", "nrt-vbr", "abr", "gfr", "ubr", "none"];
            let Some(category) = class_of(classes[class]) else {
                return TrafficParams::none();
            };
            let (max_pcr, [pcr0, min_pcr, scr]) = rates;
            let (mbs, [max_cdv, second_cdv], max_sdu) = sizes;
            let ([clp0, tagging], frame_discard) = words;
            TrafficParams {
                category: Some(category),
                max_pcr,
                pcr0,
                min_pcr,
                scr,
                mbs,
                // Without a rate, there is nothing that could hold for cells with CLP 0 only.
                clp0: clp0 && scr > 0,
                tagging,
                max_cdv,
                second_cdv,
                max_sdu,
                frame_discard,
            }
        })
    }

    proptest! {
        #[test]
        fn text_round_trips(tx in direction(), rx in direction()) {
            let qos = Qos { tx, rx };
            prop_assume!(tx.category.is_some() || rx.category.is_some());
            prop_assert_eq!(qos.to_string().parse::<Qos>(), Ok(qos));
            prop_assert_eq!(tx.to_string().parse::<TrafficParams>(), Ok(tx));
        }
        #[test]
        fn any_text_is_safe(text in "[a-z0-9=:,.é]{0,40}", tail in "(cbr|ubr):[a-z0-9=:,._]{0,30}") {
            let _ = text.parse::<Qos>();
            let _ = tail.parse::<Qos>();
        }
    }
}
