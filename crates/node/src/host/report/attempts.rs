//! Conditions that a host still waits for before it can send to all others, with reasons.

use crate::host::Host;
use aerostat_proto::ilmi::State;
use aerostat_proto::lane::lec::LecState;
use aerostat_proto::{Trace, Value};
use aerostat_wire::counted;

/// A condition that a host still waits for before it can send to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// Interface `lecN` is not a member of its ELAN.
    Elan(usize),
    /// Interface `lecN` is not registered with its ATMARP server.
    Clip(usize),
    /// Interface `nasN` has no connection.
    Line(usize),
    /// The NHRP client is not registered with its server.
    Nhrp,
    /// The network has not registered the host's addresses by ILMI.
    Ilmi,
}

/// The attempts of a part of a host to join or to register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts that have failed since the last one that succeeded.
    pub failed: u64,
    /// Reason why the last attempt failed, in words.
    pub why: Option<String>,
    /// True if one has succeeded since the part was started.
    pub ever: bool,
}

impl Attempts {
    /// The reason and the number of attempts, for people: `the LES refuses: no access; 7 attempts`.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let why = self.why.as_ref()?;
        Some(match self.failed {
            0 => why.clone(),
            failed => format!("{why}; {}", counted(failed, "attempt", "attempts")),
        })
    }
}

/// Names of the traces of an attempt that failed.
const FAILED: [&str; 8] = [
    "lane.failed",
    "lane.lost",
    "clip.server-lost",
    "clip.refused",
    "nhc.refused",
    "nhc.unregistered",
    "ilmi.refused",
    "line.closed",
];
/// Names of the traces of an attempt that succeeded.
const DONE: [&str; 5] = [
    "lane.joined",
    "clip.registered",
    "nhc.registered",
    "ilmi.address",
    "line.open",
];

impl Host {
    /// The conditions that its interfaces and its NHRP client wait for.
    #[must_use]
    pub fn waits(&self) -> Vec<Waits> {
        let all = self.interfaces.iter().enumerate();
        let interfaces = all.filter_map(|(n, itf)| {
            let clip = itf.client.clip().and_then(|clip| self.machine(clip));
            match (clip, itf.client.line()) {
                (Some(clip), _) => (!clip.is_ready()).then_some(Waits::Clip(n)),
                (None, Some(_)) => (!itf.up).then_some(Waits::Line(n)),
                (None, None) => (!itf.up).then_some(Waits::Elan(n)),
            }
        });
        let client = self.nhc.and_then(|nhc| self.machine(nhc));
        let client = client.filter(|client| !client.is_registered());
        interfaces.chain(client.map(|_| Waits::Nhrp)).collect()
    }

    /// The attempts of a part to meet a condition. A part that waits for an address from ILMI has made none: then they
    /// are those of ILMI.
    #[must_use]
    pub fn attempts(&self, waits: Waits) -> Attempts {
        let own = self.attempts.get(&waits).cloned().unwrap_or_default();
        if waits != Waits::Ilmi && own.why.is_none() && !own.ever {
            return Attempts {
                ever: false,
                ..self.attempts(Waits::Ilmi)
            };
        }
        let seen = self.management_snapshot();
        let seen = seen.filter(|_| waits == Waits::Ilmi);
        let silent = seen.and_then(|seen| match seen.state {
            State::Establishing => Some((seen.counters.timeouts, "the switch does not answer")),
            State::Stopped => Some((0, "the link to the switch is down")),
            State::Configuring | State::Registering | State::Verifying => None,
        });
        silent.map_or(own, |(failed, why)| Attempts {
            failed,
            why: Some(format!("ILMI: {why}")),
            ever: false,
        })
    }

    /// The step at which a part is whose first attempt has neither failed nor succeeded, in words.
    #[must_use]
    pub fn stage(&self, waits: Waits) -> Option<&'static str> {
        let client = |n: usize| self.interfaces.get(n).map(|itf| itf.client);
        let silent = self.management_snapshot();
        if silent.is_some_and(|seen| seen.state != State::Verifying) {
            return Some("ILMI: the switch has not registered its addresses yet");
        }
        match waits {
            Waits::Elan(n) => {
                let lec = client(n)?.lec().and_then(|lec| self.machine(lec));
                Some(
                    match lec.map_or(LecState::Stopped, |lec| lec.snapshot().state) {
                        LecState::Stopped => "its LANE client is not started",
                        LecState::Initial => "its LANE client is about to try again",
                        LecState::LecsConnect => "the LECS has not answered its call yet",
                        LecState::Configure => "the LECS has not answered yet",
                        LecState::Join => "the LES has not answered yet",
                        LecState::InitialRegistration => "the LES has not registered it yet",
                        LecState::BusConnect => "the BUS has not answered yet",
                        LecState::Operational => return None,
                    },
                )
            }
            Waits::Clip(_) => Some("the ATMARP server has not answered yet"),
            Waits::Line(_) => Some("its line has no connection yet"),
            Waits::Nhrp => Some("the NHRP server has not answered yet"),
            Waits::Ilmi => None,
        }
    }

    /// Notes whether an attempt of a part has failed or succeeded, by the trace that tells it.
    pub(in crate::host) fn note_attempt(&mut self, waits: Waits, trace: &Trace) {
        if DONE.contains(&trace.name) {
            let ever = true;
            self.attempts.insert(
                waits,
                Attempts {
                    ever,
                    ..Attempts::default()
                },
            );
        } else if FAILED.contains(&trace.name) {
            let why = trace.field("why").map(Value::to_string);
            let why = why.unwrap_or_else(|| trace.text.to_string());
            let known = self.attempts.entry(waits).or_default();
            known.failed += 1;
            known.why = Some(why);
        }
    }
}
