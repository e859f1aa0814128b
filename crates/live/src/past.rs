//! The latest messages of protocols on all links, for requests about the past (`aerostat trace --no-follow`).
//!
//! **Bounds.** There are two rings, each of at most [`MOST_OCTETS`] octets. One has [`MOST`] messages. The other has
//! [`MOST_IDLE`] of the messages that idle links exchange (SSCOP POLL and STAT, and ILMI), so that these do not
//! displace the others. Older messages are forgotten and counted. A message is kept as sent, on the link where it was
//! sent; text is made only on request. SDUs are shared with the cells that carry them, so keeping a message copies
//! nothing.

use crate::capture::End;
use crate::threads::spawn_named;
use aerostat_lab::event::{Event, Names};
use aerostat_lab::ladder::Message;
use aerostat_lab::model::{Lab, LinkId};
use aerostat_node::atm::{DropReason, Pdu};
use aerostat_proto::Instant;
use aerostat_wire::{SscopPdu, Vc, summary};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::mem::take;
use std::sync::mpsc::{Receiver, sync_channel};

/// Limit of kept messages.
const MOST: usize = 20_000;
/// Limit of octets of their SDUs together.
const MOST_OCTETS: usize = 8 * 1024 * 1024;
/// Limit of kept messages of idle links.
const MOST_IDLE: usize = 4096;

/// Octets of lines in one chunk, and limit of chunks that wait for a slow client.
const CHUNK: usize = 64 * 1024;
const CHUNKS: usize = 4;

/// A message that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) end: End,
    pub(crate) vc: Vc,
    pdu: Pdu,
    dropped: Option<DropReason>,
}

/// Messages, the latest one last.
#[derive(Debug, Default)]
struct Ring {
    all: VecDeque<Sent>,
    octets: usize,
    /// Messages so far, also those that are no longer kept.
    count: u64,
}

impl Ring {
    /// Keeps a message, and at most `most` messages. Returns the number of older messages that were removed.
    fn keep(&mut self, sent: Sent, most: usize) -> u64 {
        self.octets += sent.pdu.sdu().len();
        self.all.push_back(sent);
        self.count += 1;
        let mut gone = 0;
        while self.all.len() > most || self.octets > MOST_OCTETS {
            let oldest = self.all.pop_front();
            self.octets -= oldest.map_or(0, |sent| sent.pdu.sdu().len());
            gone += 1;
        }
        gone
    }
}

/// The rings.
#[derive(Debug, Default)]
pub(crate) struct Past {
    said: Ring,
    idle: Ring,
    forgotten: u64,
    /// Messages of idle links among these.
    forgotten_idle: u64,
}

impl Past {
    /// Keeps an SDU that `end` sends, if it is a message of a protocol.
    pub(crate) fn keep(
        &mut self,
        end: End,
        vc: Vc,
        pdu: &Pdu,
        dropped: Option<DropReason>,
        at: Instant,
    ) {
        if !summary::is_control(vc, pdu.sdu()) {
            return;
        }
        let pdu = pdu.clone();
        let idle = is_idle(vc, pdu.sdu());
        let sent = Sent {
            at,
            end,
            vc,
            pdu,
            dropped,
        };
        let gone = match idle {
            true => self.idle.keep(sent, MOST_IDLE),
            false => self.said.keep(sent, MOST),
        };
        self.forgotten += gone;
        self.forgotten_idle += if idle { gone } else { 0 };
    }

    /// Messages of idle links that are no longer kept, of all links.
    pub(crate) const fn forgotten_idle(&self) -> u64 {
        self.forgotten_idle
    }

    /// Messages that are no longer kept, of all links.
    pub(crate) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Number of messages so far, without those of idle links.
    pub(crate) const fn count(&self) -> u64 {
        self.said.count
    }

    /// The messages behind the first `seen`, at most the `most` latest, without those of idle links; and the number of
    /// those that were left out.
    pub(crate) fn since(&self, seen: u64, most: usize) -> (impl Iterator<Item = &Sent>, u64) {
        let new = usize::try_from(self.said.count.saturating_sub(seen)).unwrap_or(usize::MAX);
        let told = new.min(most).min(self.said.all.len());
        let first = self.said.all.len() - told;
        (self.said.all.range(first..), (new - told) as u64)
    }

    /// The messages of these links in the order of time, one JSON line each, and between them the main steps of the
    /// story if `steps` contains any. A thread of its own makes the text, so that the network does not wait.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn tell(
        &self,
        lab: &Lab,
        links: &[LinkId],
        steps: Vec<Event>,
    ) -> io::Result<Receiver<Vec<u8>>> {
        let all = self.said.all.iter().chain(&self.idle.all);
        let links: BTreeSet<LinkId> = links.iter().copied().collect();
        let wanted = all.filter(|sent| links.contains(&sent.end.link));
        let mut wanted: Vec<Sent> = wanted.cloned().collect();
        wanted.sort_by_key(|sent| sent.at);
        let (lines, receiver) = sync_channel(CHUNKS);
        let lab = lab.clone();
        let work = move || {
            let mut steps = steps.into_iter().peekable();
            let names = Names::new(&lab);
            let mut chunk = String::new();
            for sent in &wanted {
                while let Some(step) = steps.next_if(|step| step.time <= sent.at.as_secs_f64()) {
                    chunk += &(step.json() + "\n");
                }
                chunk += &(sent.message(&lab, &names).json() + "\n");
                if chunk.len() > CHUNK && lines.send(take(&mut chunk).into_bytes()).is_err() {
                    return;
                }
            }
            chunk.extend(steps.map(|step| step.json() + "\n"));
            // The client may have closed the connection.
            let _ = lines.send(chunk.into_bytes());
        };
        spawn_named("past", work)?;
        Ok(receiver)
    }
}

impl Sent {
    pub(crate) fn message(&self, lab: &Lab, names: &Names) -> Message {
        let place = (self.end.link, self.end.side);
        let mut message = Message::new(lab, names, place, self.at, (self.vc, self.pdu.sdu()));
        message.dropped = self.dropped.map(|reason| reason.name().to_owned());
        message
    }
}

/// True for the messages of an idle link.
fn is_idle(vc: Vc, sdu: &[u8]) -> bool {
    vc == Vc::ILMI || (vc == Vc::SIGNALLING && SscopPdu::is_poll_or_stat(sdu))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = include_str!("../../../labs/two-hosts.atm.yml");

    fn end(link: usize) -> End {
        End {
            link: LinkId(link),
            side: 0,
        }
    }

    fn told(past: &Past, links: &[LinkId], steps: Vec<Event>) -> Vec<String> {
        let lab = aerostat_lab::parse("two-hosts.atm.yml", LAB, &[])
            .unwrap()
            .lab;
        let chunks = past.tell(&lab, links, steps).unwrap();
        let text: Vec<u8> = chunks.iter().flatten().collect();
        String::from_utf8(text)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn poll() -> Pdu {
        Pdu::new(
            SscopPdu::Poll {
                ps: aerostat_wire::sscop::Seq24::ZERO,
                s: aerostat_wire::sscop::Seq24::ZERO,
            }
            .encode(),
        )
    }

    #[test]
    fn what_idle_links_say_does_not_push_out_what_was_said() {
        let mut past = Past::default();
        let begin = Pdu::new(SscopPdu::EndAck.encode());
        past.keep(
            end(0),
            Vc::SIGNALLING,
            &begin,
            None,
            Instant::from_millis(1),
        );
        for n in 0..MOST_IDLE as u64 + 5 {
            past.keep(
                end(0),
                Vc::SIGNALLING,
                &poll(),
                None,
                Instant::from_millis(2 + n),
            );
        }
        past.keep(
            end(0),
            Vc::new(0, 99),
            &Pdu::new(vec![7; 100]),
            None,
            Instant::from_secs(9),
        );
        assert_eq!(past.forgotten(), 5);
        let lines = told(&past, &[LinkId(0)], Vec::new());
        assert_eq!(lines.len(), MOST_IDLE + 1, "users' data is not kept");
        assert!(lines[0].contains("ENDAK"), "{}", lines[0]);
        assert!(told(&past, &[LinkId(1)], Vec::new()).is_empty());
    }

    #[test]
    fn the_past_is_bounded_in_messages_and_in_octets() {
        let mut past = Past::default();
        let control = |octets: usize| {
            let mut sdu = vec![0; octets];
            sdu[..2].copy_from_slice(&[0xff, 0]);
            Pdu::new(sdu)
        };
        assert!(summary::is_control(Vc::new(0, 40), control(108).sdu()));
        for n in 0..MOST as u64 + 7 {
            past.keep(
                end(0),
                Vc::new(0, 40),
                &control(108),
                None,
                Instant::from_millis(n),
            );
        }
        assert_eq!((past.said.all.len(), past.forgotten()), (MOST, 7));
        for n in 0..200 {
            past.keep(
                end(0),
                Vc::new(0, 40),
                &control(60_000),
                None,
                Instant::from_secs(60 + n),
            );
        }
        assert!(past.said.octets <= MOST_OCTETS && past.said.all.len() == MOST_OCTETS / 60_000);
        // A peer outside may send large SDUs on the VC of ILMI, too.
        for n in 0..200 {
            let sdu = Pdu::new(vec![0x30; 60_000]);
            past.keep(
                end(0),
                Vc::new(0, 16),
                &sdu,
                None,
                Instant::from_secs(300 + n),
            );
        }
        assert!(!past.idle.all.is_empty() && past.idle.octets <= MOST_OCTETS);
    }

    #[test]
    fn steps_of_the_story_stand_between_messages_at_their_times() {
        use aerostat_proto::Trace;
        let mut past = Past::default();
        for at in [1, 3] {
            past.keep(
                end(0),
                Vc::SIGNALLING,
                &poll(),
                None,
                Instant::from_secs(at),
            );
        }
        let step = |at, text: &'static str| {
            Event::new(Instant::from_secs(at), "urku", &Trace::milestone("x", text))
        };
        let lines = told(&past, &[LinkId(0)], vec![step(2, "two"), step(4, "four")]);
        let steps: Vec<_> = lines
            .iter()
            .map(|line| line.contains("\"event\""))
            .collect();
        assert_eq!(steps, [false, true, false, true], "{lines:#?}");
    }
}
