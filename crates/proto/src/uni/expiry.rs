//! Expiry of timers. Source: Q.2931 §7, tables 7-1 and 7-2; Q.2971 §12.

use aerostat_wire::q2931::MessageType;

use crate::{Cause, Instant};

use super::Uni;
use super::state::{CallKey, CallState};
use super::timers::{Timer, TimerKey};

/// No answer from the user (user alerted).
const NO_ANSWER: Cause = Cause(19);

impl Uni {
    pub(super) fn expired(&mut self, key: TimerKey, now: Instant) {
        match (key.call, key.party) {
            (Some(call), Some(party)) => self.party_expired(call, party, key.timer, now),
            (Some(call), None) => self.call_expired(call, key.timer, now),
            (None, _) => match key.timer {
                Timer::T309 => self.link_given_up(),
                Timer::T317 => self.clearing_expired(),
                _ => self.restart_expired(now),
            },
        }
    }

    /// The link did not come back in time, or its line is dead.
    pub(super) fn link_given_up(&mut self) {
        let keys: Vec<CallKey> = self.calls.keys().copied().collect();
        for key in keys {
            self.counters.lost_with_link += 1;
            self.free(key, Cause::OUT_OF_ORDER.into());
        }
    }

    fn call_expired(&mut self, key: CallKey, timer: Timer, now: Instant) {
        match timer {
            Timer::T301 => self.clear(key, NO_ANSWER, now),
            Timer::T303 => self.setup_unanswered(key, now),
            Timer::T308 => self.release_unanswered(key, now),
            Timer::T310 => self.clear(key, Cause::NO_RESPONSE, now),
            Timer::T313 => self.clear(key, timer.reason(), now),
            Timer::T322 => self.enquiry_unanswered(key, now),
            Timer::T309 | Timer::T316 | Timer::T317 | Timer::T397 | Timer::T398 | Timer::T399 => {}
        }
    }

    fn setup_unanswered(&mut self, key: CallKey, now: Instant) {
        let Some(call) = self.calls.get_mut(&key) else {
            return;
        };
        if !call.resent {
            call.resent = true;
            if !call.waiting {
                let setup = call.setup.clone().unwrap_or_default();
                self.send_octets(setup);
            }
            self.start(key, Timer::T303, now);
            return;
        }
        if call.waiting {
            self.free(key, Cause::OUT_OF_ORDER.into());
            return;
        }
        // The peer may have accepted the call without an answer so far; its answer would come too late.
        let cause = self.cause_with(Cause::TIMER, Timer::T303.digits());
        self.send(
            self.message(key, MessageType::RELEASE_COMPLETE)
                .with(&cause),
        );
        self.free(key, Cause::NO_RESPONSE.into());
    }

    fn release_unanswered(&mut self, key: CallKey, now: Instant) {
        let Some(call) = self.calls.get_mut(&key) else {
            return;
        };
        let cause = call.cause.clone();
        if call.resent {
            self.free(key, cause);
            return;
        }
        call.resent = true;
        let second = self.cause_with(Cause::TIMER, Timer::T308.digits());
        let message = self.ending(key, MessageType::RELEASE, &cause);
        self.send(message.with(&second));
        self.start(key, Timer::T308, now);
    }

    fn enquiry_unanswered(&mut self, key: CallKey, now: Instant) {
        let Some(call) = self.calls.get_mut(&key) else {
            return;
        };
        if call.state == CallState::Releasing {
            return;
        }
        if call.asked_again {
            self.clear(key, Timer::T322.reason(), now);
            return;
        }
        call.asked_again = true;
        self.enquire(key, now);
    }
}
