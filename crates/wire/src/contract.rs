//! Promises of a traffic contract: its conformance definition, and contradictions between its parameters.
//!
//! Source: Traffic Management 4.0 §4.3 (conformance definitions), UNI Signalling 4.0 annex 9 (combinations of
//! parameters).
//! Not implemented: conformance of ABR (it follows the feedback) and of GFR (it counts frames).

use crate::q2931::convert::LINE_RATE;
use crate::qos_text::QosError;
use crate::{Qos, ServiceCategory, TrafficParams};

crate::named! {
    /// Conformance definition of a contract: which cells are tested against which rate, and what happens to the others.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Conformance {
        /// Peak rate of all cells; others are discarded.
        Cbr1 = "CBR.1",
        /// Peak rate of all cells, and of cells with CLP 0; others are discarded.
        Cbr2 = "CBR.2",
        /// As CBR.2, but cells with CLP 0 above their own peak rate are tagged.
        Cbr3 = "CBR.3",
        /// Peak rate and sustainable rate of all cells; others are discarded.
        Vbr1 = "VBR.1",
        /// Peak rate of all cells, sustainable rate of cells with CLP 0; others are discarded.
        Vbr2 = "VBR.2",
        /// As VBR.2, but cells with CLP 0 above the sustainable rate are tagged.
        Vbr3 = "VBR.3",
        /// Best effort: peak rate of all cells, if the network enforces it at all.
        Ubr1 = "UBR.1",
        /// As UBR.1, and the network may tag any cell.
        Ubr2 = "UBR.2",
    }
}

/// A contradiction in a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Names under which the text of a contract may have the parameter, see [`qos_text`](crate::qos_text).
    pub names: &'static [&'static str],
    /// The contradiction, in one sentence.
    pub text: String,
}

fn contradiction<T>(names: &'static [&'static str], text: String) -> Result<T, Contradiction> {
    Err(Contradiction { names, text })
}

const PEAK: &[&str] = &["max_pcr", "pcr"];
const SUSTAINED: &[&str] = &["scr", "scr0"];

impl TrafficParams {
    /// The conformance definition; `None` for ABR, GFR, and a direction that carries nothing. A VBR contract without a
    /// sustainable rate tests the peak rate only.
    #[must_use]
    pub const fn conformance(&self) -> Option<Conformance> {
        Some(match self.category {
            Some(ServiceCategory::Cbr) => match (self.pcr0 > 0, self.tagging) {
                (false, _) => Conformance::Cbr1,
                (true, false) => Conformance::Cbr2,
                (true, true) => Conformance::Cbr3,
            },
            Some(ServiceCategory::RtVbr | ServiceCategory::NrtVbr) => {
                match (self.clp0, self.tagging) {
                    (false, _) => Conformance::Vbr1,
                    (true, false) => Conformance::Vbr2,
                    (true, true) => Conformance::Vbr3,
                }
            }
            Some(ServiceCategory::Ubr) if self.tagging => Conformance::Ubr2,
            Some(ServiceCategory::Ubr) => Conformance::Ubr1,
            Some(ServiceCategory::Abr | ServiceCategory::Gfr) | None => return None,
        })
    }

    /// The peak rate for shapers and policers, cells/s; `None` if the contract has none. A sustainable rate without a
    /// peak rate has the peak rate that a SETUP announces for it.
    #[must_use]
    pub const fn peak(&self) -> Option<u32> {
        match (self.max_pcr, self.category) {
            (None, Some(ServiceCategory::RtVbr | ServiceCategory::NrtVbr)) if self.scr > 0 => {
                Some(LINE_RATE)
            }
            (given, _) => given,
        }
    }

    /// Checks the parameters of the direction against each other.
    ///
    /// # Errors
    /// The first contradiction: a parameter that the category does not have, a rate above the peak rate, a burst size
    /// without its rate, a tolerance without its rate, tagging without a rate of cells with CLP 0.
    pub fn check(&self) -> Result<(), Contradiction> {
        let Some(category) = self.category else {
            return Ok(());
        };
        let vbr = matches!(category, ServiceCategory::RtVbr | ServiceCategory::NrtVbr);
        if self.max_pcr == Some(0) {
            return contradiction(PEAK, "a peak rate is at least 1 cell/s".into());
        }
        if self.scr > 0 && !vbr {
            let text = format!("{category} has no sustainable rate; rt-vbr and nrt-vbr do");
            return contradiction(SUSTAINED, text);
        }
        if self.pcr0 > 0 && category != ServiceCategory::Cbr {
            let text = format!("{category} has no peak rate of cells with CLP 0; cbr does");
            return contradiction(&["pcr0"], text);
        }
        let (burst, rate) = (self.mbs > 0, self.scr > 0);
        if burst && !(vbr && rate) && category != ServiceCategory::Gfr {
            return contradiction(&["mbs"], "a burst size needs a sustainable rate".into());
        }
        if !self.second_cdv.is_zero() && self.pcr0 == 0 && !rate {
            let text = "this tolerance needs its rate: pcr0 (cbr), scr or scr0 (vbr)";
            return contradiction(&["pcr0_cdvt", "scr_cdvt"], text.into());
        }
        let peak = self.max_pcr.unwrap_or(u32::MAX);
        for (names, what, rate) in [
            (SUSTAINED, "the sustainable rate", self.scr),
            (&["pcr0"], "the peak rate of cells with CLP 0", self.pcr0),
            (&["min_pcr", "mdcr"], "the minimum rate", self.min_pcr),
        ] {
            if rate > peak {
                let text = format!("{what}, {rate} cells/s, is above the peak rate, {peak}");
                return contradiction(names, text);
            }
        }
        let tags = self.pcr0 > 0 || self.clp0 || category == ServiceCategory::Ubr;
        if self.tagging && !tags {
            let text = "tagging needs a rate of cells with CLP 0: pcr0 (cbr), scr0 (vbr)";
            return contradiction(&["tagging"], text.into());
        }
        Ok(())
    }

    /// Reads the contract of one direction, whose parameters must not contradict each other.
    ///
    /// # Errors
    /// As its `FromStr`, and the first contradiction with the place of its parameter. See [`Self::check`].
    pub fn from_request(text: &str) -> Result<Self, QosError> {
        let traffic: Self = text.parse()?;
        match traffic.check() {
            Ok(()) => Ok(traffic),
            Err(found) => Err(QosError {
                at: place(text, "tx:", found.names),
                text: found.text,
            }),
        }
    }
}

impl Qos {
    /// Reads a contract whose parameters must not contradict each other, as somebody writes it who asks for it.
    ///
    /// # Errors
    /// As its `FromStr`, and the first contradiction with the place of its parameter. See [`TrafficParams::check`].
    pub fn from_request(text: &str) -> Result<Self, QosError> {
        let qos: Self = text.parse()?;
        for (list, direction) in [("tx:", &qos.tx), ("rx:", &qos.rx)] {
            if let Err(found) = direction.check() {
                let at = place(text, list, found.names);
                return Err(QosError {
                    at,
                    text: found.text,
                });
            }
        }
        Ok(qos)
    }
}

/// Offset of a parameter: in the list of its direction, or else in front of both lists.
fn place(text: &str, list: &str, names: &[&str]) -> usize {
    let text = text.to_ascii_lowercase();
    let of = |list: &str| text.find(list).unwrap_or(text.len());
    let (tx, rx) = (of("tx:"), of("rx:"));
    let own = match list {
        "tx:" => tx..rx.max(tx),
        _ => rx..text.len(),
    };
    for range in [own, 0..tx.min(rx)] {
        let start = range.start;
        let part = text.get(range).unwrap_or_default();
        let found = names.iter().filter_map(|name| named(part, name)).min();
        if let Some(at) = found {
            return start + at;
        }
    }
    0
}

/// Offset of `name=` where a name can begin.
fn named(part: &str, name: &str) -> Option<usize> {
    let begins = |at: &usize| {
        let before = at.checked_sub(1).and_then(|last| part.as_bytes().get(last));
        let after = part.as_bytes().get(at + name.len());
        matches!(before, None | Some(b':' | b',')) && after == Some(&b'=')
    };
    part.match_indices(name).map(|(at, _)| at).find(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contract_has_its_conformance_definition() {
        for (text, name) in [
            ("cbr:pcr=9", "CBR.1"),
            ("cbr:pcr=9,pcr0=5", "CBR.2"),
            ("cbr:pcr=9,pcr0=5,tagging=true", "CBR.3"),
            ("rt-vbr:pcr=9,scr=5,mbs=2", "VBR.1"),
            ("nrt-vbr:pcr=9,scr0=5,mbs=2", "VBR.2"),
            ("vbr:pcr=9,scr0=5,mbs=2,tagging=true", "VBR.3"),
            ("ubr:pcr=9,mdcr=2", "UBR.1"),
            ("ubr:pcr=9,tagging=true", "UBR.2"),
        ] {
            let qos = Qos::from_request(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(qos.tx.conformance().unwrap().to_string(), name, "{text}");
        }
        for text in ["abr:pcr=9,min_pcr=2", "gfr:pcr=9,min_pcr=2,mbs=3"] {
            assert_eq!(Qos::from_request(text).unwrap().tx.conformance(), None);
        }
        assert_eq!(TrafficParams::none().conformance(), None);
    }

    #[test]
    fn a_contradiction_is_told_at_its_parameter() {
        for (text, at, says) in [
            (
                "nrt-vbr:max_pcr=100,scr=200,mbs=9",
                20,
                "is above the peak rate, 100",
            ),
            (
                "vbr:tx:pcr=9,scr=3,mbs=2,rx:pcr=9,scr0=30,mbs=2",
                34,
                "30 cells/s",
            ),
            ("vbr:pcr=9,scr=30,tx:mbs=2,rx:none", 10, "sustainable rate"),
            ("cbr:pcr=9,pcr0=10", 10, "peak rate of cells with CLP 0, 10"),
            ("ubr:mdcr=10,max_pcr=9", 4, "minimum rate"),
            ("cbr:pcr=9,mbs=2", 10, "needs a sustainable rate"),
            ("cbr:pcr=9,scr=2", 10, "cbr has no sustainable rate"),
            (
                "vbr:pcr=9,scr=2,mbs=2,pcr0=3",
                22,
                "nrt-vbr has no peak rate of cells",
            ),
            ("cbr:pcr=9,tagging=true", 10, "tagging needs"),
            ("vbr:pcr=9,scr=5,mbs=2,tagging=true", 22, "tagging needs"),
            ("cbr:pcr=9,pcr0_cdvt=3", 10, "needs its rate"),
            ("vbr:pcr=9,SCR_CDVT=0.5", 10, "needs its rate"),
            ("CBR:PCR=0", 4, "at least 1"),
            ("vbr:pcr=9,mbs=2,scr=3,mbs=0", 26, "at least 1"),
        ] {
            let error = Qos::from_request(text).expect_err(text);
            assert!(error.text.contains(says), "{text}: {error}");
            assert_eq!(error.at, at, "{text}: {error}");
        }
        // The rate of the line is above any other rate.
        assert!(Qos::from_request("vbr:pcr=max,scr=400000,mbs=2").is_ok());
    }
}
