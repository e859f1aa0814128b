//! RESTART in both directions, on the global call reference. Source: Q.2931 §5.5.

use aerostat_wire::Vc;
use aerostat_wire::q2931::{
    CallRef, ConnectionId, Decoded, Element, Ie, Message, MessageType, RestartClass, id,
};

use crate::{Cause, Instant, Refused, Trace};

use super::receive::{Check, UNKNOWN_CALL, WRONG_STATE, check};
use super::state::CallKey;
use super::timers::{Timer, TimerKey};
use super::{Indication, Restart, Uni};

const ASKED: CallRef = CallRef {
    flag: false,
    value: CallRef::GLOBAL,
};

/// States of the global call reference. Source: Q.2931 §4.5.10.
const REST0: u8 = 0;
const REST1: u8 = 0x3d;
const REST2: u8 = 0x3e;

/// A restart of the peer: its calls are cleared here, and the owner is freeing their resources.
#[derive(Debug)]
pub(super) struct Clearing {
    what: Restart,
    answer: Message,
}

/// A restart of this side that the peer has not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    what: Restart,
    resent: bool,
}

impl Uni {
    pub(super) fn restart_requested(&mut self, what: Restart, now: Instant) -> Result<(), Refused> {
        if self.restart.is_none() {
            self.begin_restart(what, now);
        } else if self.restarts.len() < self.params.limits.restarts {
            self.restarts.push_back(what);
        } else {
            return Err(Refused("too many restarts wait for the one under way"));
        }
        Ok(())
    }

    fn begin_restart(&mut self, what: Restart, now: Instant) {
        self.restart = Some(Pending {
            what,
            resent: false,
        });
        self.clear_channels(what);
        self.send_restart(what);
        let t316 = TimerKey::link(Timer::T316);
        self.timers.start(t316, now, self.params.timers.t316);
    }
    fn send_restart(&mut self, what: Restart) {
        let elements = elements(what).map(|ie| ie.encode());
        let message = Message::new(ASKED, MessageType::RESTART);
        self.send(message.with_elements(elements));
    }
    /// The link is up again: repeats a restart that it may have lost.
    pub(super) fn resume_restart(&mut self) {
        if let Some(pending) = self.restart {
            self.send_restart(pending.what);
        }
    }
    pub(super) fn restart_expired(&mut self, now: Instant) {
        let Some(pending) = &mut self.restart else {
            return;
        };
        if pending.resent {
            self.finish_restart(false, now);
            return;
        }
        pending.resent = true;
        let what = pending.what;
        self.send_restart(what);
        let t316 = TimerKey::link(Timer::T316);
        self.timers.start(t316, now, self.params.timers.t316);
    }
    fn finish_restart(&mut self, answered: bool, now: Instant) {
        self.timers.stop(TimerKey::link(Timer::T316));
        if let Some(Pending { what, .. }) = self.restart.take() {
            self.indicate(Indication::RestartDone { what, answered });
        }
        if let Some(next) = self.restarts.pop_front() {
            self.begin_restart(next, now);
        }
    }

    /// Clears the calls that a restart concerns, without messages. Other channels are idle already.
    fn clear_channels(&mut self, what: Restart) {
        let hit = self.calls.iter().filter(|(_, call)| what.covers(call.vc));
        let hit: Vec<CallKey> = hit.map(|(key, _)| *key).collect();
        for key in hit {
            self.free(key, Cause::TEMPORARY.into());
        }
    }

    pub(super) fn receive_global(&mut self, decoded: &Decoded, now: Instant) {
        let reference = decoded.message.call;
        match (decoded.message.kind, reference.flag) {
            (MessageType::RESTART, false) => self.on_restart(decoded, now),
            (MessageType::RESTART_ACK, true) => self.on_restart_ack(decoded, now),
            // The peer does not support our restart; T316 would only tell the same later.
            (MessageType::STATUS, _) if self.restart.is_some() => self.finish_restart(false, now),
            (MessageType::STATUS | MessageType::RESTART | MessageType::RESTART_ACK, _) => {
                self.counters.ignored += 1;
            }
            _ => self.global_status(reference, UNKNOWN_CALL, &[]),
        }
    }

    fn global_status(&mut self, reference: CallRef, cause: Cause, diagnostics: &[u8]) {
        let cause = self.cause_with(cause, diagnostics);
        // A message that answers one of ours has the flag of our RESTART.
        let state = match (reference.flag, self.restart, &self.clearing[..]) {
            (true, Some(_), _) => REST1,
            (false, _, [_, ..]) => REST2,
            _ => REST0,
        };
        let ies = [Ie::CallState(state), cause];
        self.send_to(reference.answer(), MessageType::STATUS, &ies);
    }

    fn on_restart(&mut self, decoded: &Decoded, now: Instant) {
        match check(decoded) {
            Check::Good(_) => {}
            Check::Ignore(None) => return,
            Check::Ignore(Some(fault)) | Check::Clear(fault) | Check::Refuse(fault) => {
                self.global_status(decoded.message.call, fault.0, &fault.1);
                return;
            }
        }
        let what = match restart(decoded) {
            Ok(what) => what,
            Err(cause) => {
                self.global_status(decoded.message.call, cause, &[id::CONNECTION_ID]);
                return;
            }
        };
        let in_range = match what {
            Restart::Channel(vc) => vc.vpi <= self.params.limits.max_vpi,
            Restart::Path { vpi } => vpi <= self.params.limits.max_vpi,
            Restart::All => true,
        };
        if !in_range {
            // Identified channel does not exist.
            self.global_status(decoded.message.call, Cause(82), &[]);
            return;
        }
        let own = [id::RESTART_INDICATOR, id::CONNECTION_ID];
        let same = decoded.good().filter(|e| own.contains(&e.id)).cloned();
        let same: Vec<Element> = same.collect();
        let answer = Message::new(decoded.message.call.answer(), MessageType::RESTART_ACK);
        let answer = answer.with_elements(same);
        if self.clearing.iter().any(|clearing| clearing.what == what) {
            // The peer's T316 expired before our answer: one answer is enough for both.
            return;
        }
        if self.clearing.len() >= self.params.limits.restarts {
            self.counters.ignored += 1;
            return;
        }
        self.clearing.push(Clearing { what, answer });
        let t317 = TimerKey::link(Timer::T317);
        self.timers.start(t317, now, self.params.timers.t317);
        self.clear_channels(what);
        self.indicate(Indication::Restarted { what });
    }

    /// The owner has freed the resources of the peer's restart.
    pub(super) fn restart_cleared(&mut self, what: Restart) -> Result<(), Refused> {
        let wanted = self
            .clearing
            .iter()
            .position(|clearing| clearing.what == what);
        let Some(at) = wanted else {
            return Err(Refused("the peer waits for no such restart"));
        };
        let Clearing { answer, .. } = self.clearing.remove(at);
        if self.clearing.is_empty() {
            self.timers.stop(TimerKey::link(Timer::T317));
        }
        self.send(answer);
        Ok(())
    }

    /// T317: the owner has not finished. The peer is not answered: its T316 tells its management. Source: Q.2931
    /// §5.5.2.
    pub(super) fn clearing_expired(&mut self) {
        for Clearing { what, .. } in core::mem::take(&mut self.clearing) {
            self.counters.restarts_unfinished += 1;
            let text = format!("Restart of {what:?} is not finished in time");
            let trace = Trace::milestone("uni.restart", text);
            self.outputs.push_back(super::Output::Trace(trace));
        }
    }

    fn on_restart_ack(&mut self, decoded: &Decoded, now: Instant) {
        let ours = self.restart.map(|pending| pending.what);
        match (ours, restart(decoded)) {
            (Some(ours), Ok(theirs)) if ours == theirs => self.finish_restart(true, now),
            (Some(_), _) => {
                let kind = decoded.message.kind.0;
                self.global_status(decoded.message.call, WRONG_STATE, &[kind]);
            }
            (None, _) => self.counters.ignored += 1,
        }
    }
}

/// Restart indicator, and its connection identifier if needed.
fn elements(what: Restart) -> impl Iterator<Item = Ie> {
    let label = match what {
        Restart::Channel(vc) => Some(ConnectionId::exact(vc)),
        Restart::Path { vpi } => Some(ConnectionId {
            preference: 4,
            ..ConnectionId::exact(Vc::new(vpi, 0))
        }),
        Restart::All => None,
    };
    let label = label.map(Ie::ConnectionId);
    label.into_iter().chain([Ie::Restart(what.class())])
}

/// The contents of a RESTART or its answer: class 2 has no connection identifier, the other classes need one.
fn restart(decoded: &Decoded) -> Result<Restart, Cause> {
    let class = match decoded.ie(id::RESTART_INDICATOR) {
        Some(Ie::Restart(class)) => class,
        _ => return Err(Cause(96)),
    };
    let label = match decoded.ie(id::CONNECTION_ID) {
        Some(Ie::ConnectionId(label)) => Some(label),
        _ => None,
    };
    match (class, label) {
        (RestartClass::All, None) => Ok(Restart::All),
        (RestartClass::All, Some(_)) => Err(Cause(100)),
        (_, None) => Err(Cause(96)),
        (RestartClass::Path, Some(label)) => Ok(Restart::Path { vpi: label.vpci }),
        (RestartClass::Channel, Some(label)) => match label.vc() {
            Some(vc) => Ok(Restart::Channel(vc)),
            None => Err(Cause(100)),
        },
    }
}
