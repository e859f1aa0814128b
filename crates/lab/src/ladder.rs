//! A message on a link as a line: JSON for programs, a rung of the ladder for people. Both drivers write these lines.

use crate::event::{Event, Names};
use crate::model::{Lab, LinkId};
use aerostat_proto::Instant;
use aerostat_wire::{Vc, summary};
use serde::{Deserialize, Serialize};

/// An SDU on a link, in one line.
///
/// ```text
/// {"time":0.002,"link":"urku-s1","from":"urku","to":"s1","vc":"0.5","protocol":"q2931","text":"SETUP cr 1 ..."}
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Seconds since the start of the run.
    pub time: f64,
    /// The link.
    pub link: String,
    /// The node that sends.
    pub from: String,
    /// The node at the other end of the link.
    pub to: String,
    /// Its VC on this link, `vpi.vci`.
    pub vc: String,
    /// Its protocol: see [`summary::Summary::protocol`].
    pub protocol: String,
    /// Its contents, with names for the known addresses.
    pub text: String,
    /// Reason of the drop, if it was dropped at this link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
}

impl Message {
    /// True for a message that idle links exchange, too: POLL and STAT of SSCOP, and all of ILMI.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let poll = || {
            ["POLL", "STAT "]
                .iter()
                .any(|word| self.text.starts_with(word))
        };
        self.protocol == "ilmi" || self.protocol == "sscop" && poll()
    }

    /// The message for `sdu`, which end `side` (0 or 1) of `link` sends.
    #[must_use]
    pub fn new(
        lab: &Lab,
        names: &Names,
        (link, side): (LinkId, usize),
        at: Instant,
        (vc, sdu): (Vc, &[u8]),
    ) -> Self {
        let link = lab.link(link);
        let name = |side: usize| lab.node(link.ends[side].node).name.clone();
        let side = side.min(1);
        let summary = summary::summary(vc, sdu);
        Self {
            time: at.as_secs_f64(),
            link: link.name.clone(),
            from: name(side),
            to: name(1 - side),
            vc: vc.to_string(),
            protocol: summary.protocol.to_owned(),
            text: names.in_text(&summary.text),
            dropped: None,
        }
    }

    /// The message as one JSON line, without the line end.
    #[must_use]
    pub fn json(&self) -> String {
        // Text and finite numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The message as a rung: `    0.002000  urku ──► s1    0.5    SETUP cr 1 ...`, with room for node names of
    /// `width` characters.
    #[must_use]
    pub fn rung(&self, width: usize) -> String {
        let Self {
            time,
            from,
            to,
            vc,
            text,
            ..
        } = self;
        let lost = self.dropped.as_ref();
        let lost = lost.map_or(String::new(), |why| format!("  dropped: {why}"));
        format!("{time:>12.6}  {from:>width$} ──► {to:<width$}  {vc:<6}  {text}{lost}")
    }
}

/// An event between the rungs: `    2.003412    · urku: joined ELAN a as LECID 3`.
#[must_use]
pub fn between(event: &Event) -> String {
    let Event {
        time, node, text, ..
    } = event;
    format!("{time:>12.6}  · {node}: {text}")
}

/// Width of the longest node name of `lab` in a rung.
#[must_use]
pub fn width(lab: &Lab) -> usize {
    let lengths = lab.nodes.iter().map(|node| node.name.chars().count());
    lengths.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines() {
        let mut message = Message {
            time: 0.002,
            link: "urku-s1".into(),
            from: "urku".into(),
            to: "s1".into(),
            vc: "0.5".into(),
            protocol: "q2931".into(),
            text: "SETUP cr 1".into(),
            dropped: None,
        };
        let json = r#"{"time":0.002,"link":"urku-s1","from":"urku","to":"s1","vc":"0.5","protocol":"q2931","text":"SETUP cr 1"}"#;
        assert_eq!(message.json(), json);
        assert_eq!(serde_json::from_str::<Message>(json).unwrap(), message);
        assert_eq!(
            message.rung(5),
            "    0.002000   urku ──► s1     0.5     SETUP cr 1"
        );
        message.dropped = Some("queue full".into());
        assert!(message.rung(5).ends_with("SETUP cr 1  dropped: queue full"));
    }
}
