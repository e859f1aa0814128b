//! Files with next hops that have changed.

use super::Driver;
use crate::next_hops::{Found, NextHopFiles};
use crate::run::Notice;
use aerostat_lab::model::NodeId;
use aerostat_node::host::HostCommand;
use aerostat_proto::{Instant, Trace};

impl Driver<'_> {
    /// Gives members of Classical IP subnets the next hops of files that have changed.
    pub(super) fn next_hops(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) {
        if self.next_hops.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        for found in self.next_hops.turn(self.lab, now) {
            let (whose, trace, good) = match found {
                Found::Read(whose, file, count) => {
                    let text = format!("{file}: {count} next hops read again");
                    let trace = Trace::milestone("clip.map-read", text);
                    (whose, trace.with("file", file), true)
                }
                Found::Wrong(whose, file, why) => {
                    let text = format!("{file}: {why}; the next hops stay as they were");
                    let trace = Trace::milestone("clip.map-wrong", text);
                    (whose, trace.with("file", file), false)
                }
            };
            let users = NextHopFiles::users(self.lab, whose);
            let first = users.first().map(|(node, _)| *node);
            self.event(first.unwrap_or(NodeId(0)), trace, now, tell);
            for (node, itf) in users.into_iter().filter(|_| !good) {
                self.world
                    .command(node, HostCommand::NextHopsWrong(itf), now);
            }
        }
        for (node, itf, hops) in self.next_hops.members(self.lab) {
            let station = self.world.node(node).and_then(|node| node.as_station());
            let known = station.and_then(|station| station.host().known_hops(itf));
            if known.is_some_and(|known| *known != hops) {
                self.world
                    .command(node, HostCommand::NextHops(itf, hops), now);
            }
        }
    }
}
