//! Captures in memory: recordings of Linux ATM hosts, and files from SDUs.

use aerostat_explain::{Limits, Report, Rule, explain};
use aerostat_testing::recording;
use aerostat_wire::Vc;
use aerostat_wire::pcapng::{CapturedSdu, Direction, InterfaceId, LinkType, PcapNg};
use std::collections::{BTreeMap, BTreeSet};

/// An SDU of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Sdu {
    /// Seconds since the start.
    pub(crate) time: f64,
    /// Sender and receiver, `A>sw`.
    pub(crate) way: String,
    pub(crate) vc: Vc,
    pub(crate) octets: Vec<u8>,
}

/// The SDUs of a recording; those of 0.0 are texts of `atmtcp`.
pub(crate) fn recorded(name: &str) -> Vec<Sdu> {
    let sdus = recording::sdus(name).into_iter().map(|record| Sdu {
        time: record.time,
        way: record.dir,
        vc: Vc::new(record.vpi, record.vci),
        octets: record.sdu,
    });
    sdus.filter(|sdu| sdu.vc != Vc::default()).collect()
}

/// A file with these SDUs, an interface for each pair of ends.
pub(crate) fn file(sdus: &[Sdu]) -> Vec<u8> {
    let mut file = PcapNg::new(Vec::new(), "").expect("memory");
    let mut interfaces: BTreeMap<String, InterfaceId> = BTreeMap::new();
    for sdu in sdus {
        let (from, to) = sdu.way.split_once('>').expect("two ends");
        let (first, second) = if from < to { (from, to) } else { (to, from) };
        let name = format!("{first}:{first}-{second}");
        let interface = match interfaces.get(&name) {
            Some(known) => *known,
            None => file.interface(LinkType::SunAtm, &name, "").expect("memory"),
        };
        interfaces.insert(name, interface);
        file.sdu(&CapturedSdu {
            interface,
            time_ns: (sdu.time * 1e9) as u64,
            direction: match from < to {
                true => Direction::Sent,
                false => Direction::Received,
            },
            vc: sdu.vc,
            clp: false,
            uu: 0,
            sdu: &sdu.octets,
            dropped: None,
        })
        .expect("an SDU");
    }
    file.into_inner()
}

pub(crate) fn explained(file: &[u8]) -> Report {
    explain(file, Limits::default(), None).expect("a capture")
}

/// Rules that a file breaks.
pub(crate) fn rules(report: &Report) -> BTreeSet<Rule> {
    report.broken.keys().copied().collect()
}

/// The findings of a report, for messages of tests.
pub(crate) fn said(report: &Report) -> String {
    let places = report.findings.iter().map(|one| {
        format!(
            "{} packet {} {}>{}: {}",
            one.rule, one.packet, one.from, one.to, one.text
        )
    });
    places.collect::<Vec<_>>().join("\n")
}
