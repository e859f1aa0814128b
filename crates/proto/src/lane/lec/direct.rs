//! Data direct connections: set-up, READY, crossing calls, flush, idle time.
//!
//! Source: LUNI 2.0 clauses 7.2, 8.1.13.

use super::arp::Path;
use super::conns::Conn;
use super::control::{Control, Role, Verdict};
use super::messages::ToData;
use crate::retry::Backoff;
use crate::{Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::lane::{Control as Pdu, ControlFrame, OpCode, Status, TlvType};
use aerostat_wire::{AtmAddress, MacAddr};

impl Control {
    // ---- connections ----

    pub(super) fn judge_direct(&self, caller: AtmAddress) -> Verdict {
        if caller.is_zero() {
            return Verdict::Refuse(Cause::REJECTED);
        }
        // This client will be a member soon and can take the call then.
        if !self.state.has_bus() {
            return Verdict::Refuse(Cause::TEMPORARY);
        }
        if self.count(Role::DataDirect) >= self.config.limits.vccs {
            return Verdict::Refuse(Cause::RESOURCES);
        }
        Verdict::Accept(Role::DataDirect)
    }

    pub(super) fn direct_connected(&mut self, conn: ConnId, now: Instant) {
        let idle = Some(self.params.vcc_timeout).filter(|idle| !idle.is_zero());
        let wait = self.params.connection_completion;
        let elan_id = self.state.elan_id();
        let Some(known) = self.conns.get(conn) else {
            return;
        };
        let (peer, outgoing, vc) = (known.peer(), known.outgoing(), known.vc());
        let mux = known.info.mux;
        self.refusals.remove(&peer);
        self.to_data.push_back(ToData::Open {
            conn,
            idle,
            mux: mux.then_some(elan_id),
        });
        if !outgoing && !mux {
            self.conns.query_at(conn, Some(now + wait));
        }
        let text = format!("data direct connection with {peer}");
        let trace = Trace::detail("lane.direct-up", text).with("peer", peer);
        let trace = trace.with("vc", vc.unwrap_or_default());
        self.trace(trace.with("caller", outgoing).with("llc", mux));
        if mux {
            self.direct_ready(conn, now);
        } else if outgoing {
            self.send_on(conn, Pdu::ReadyIndication.encode());
            self.direct_ready(conn, now);
        }
    }

    /// Frames may be sent on `conn` from now on: the entries of its peer move to it.
    pub(super) fn direct_ready(&mut self, conn: ConnId, now: Instant) {
        let Some(known) = self.conns.get(conn) else {
            return;
        };
        if known.info.ready || !known.is_open() {
            return;
        }
        let peer = known.peer();
        self.conns.set_ready(conn);
        self.conns.query_at(conn, None);
        for mac in self.cache.of(peer) {
            self.connect_path(mac, now);
        }
        self.retire_crossing(peer);
    }

    /// Among several usable connections with `peer`: the connection whose caller has the numerically lower address, and
    /// the oldest of these.
    pub(super) fn best(&self, peer: AtmAddress) -> Option<ConnId> {
        let own = self.config.address;
        let usable = |conn: &Conn| conn.carries() == Role::DataDirect && conn.info.ready;
        let candidates = self.conns.with(peer).filter(|(_, conn)| usable(conn));
        candidates
            .min_by_key(|(id, conn)| (if conn.outgoing() { own } else { peer }, *id))
            .map(|(id, _)| id)
    }

    /// Releases own calls that lost against a crossing call, as soon as no more frames arrive on them.
    fn retire_crossing(&mut self, peer: AtmAddress) {
        let best = self.best(peer);
        let idle = Some(self.params.flush_timeout);
        let lost = |id: ConnId, conn: &Conn| {
            let usable = conn.carries() == Role::DataDirect && conn.info.ready;
            usable && conn.outgoing() && Some(id) != best
        };
        for (id, conn) in self.conns.with(peer) {
            if lost(id, conn) {
                let (conn, mux) = (id, conn.info.mux.then_some(self.state.elan_id()));
                self.to_data.push_back(ToData::Open { conn, idle, mux });
            }
        }
    }

    pub(super) fn idle(&mut self, conn: ConnId, now: Instant) {
        let Some(known) = self.conns.get(conn).cloned() else {
            return;
        };
        self.hang_up(conn);
        if known.carries() == Role::SelectiveSend {
            return self.group_released(&known, Cause::NORMAL, now);
        }
        let text = format!("data direct connection with {} was idle", known.peer());
        self.trace(Trace::detail("lane.direct-idle", text).with("peer", known.peer()));
        self.direct_released(conn, &known, Cause::NORMAL, now);
    }

    /// A data direct connection is gone, or could not be opened.
    pub(super) fn direct_released(
        &mut self,
        conn: ConnId,
        gone: &Conn,
        cause: Cause,
        now: Instant,
    ) {
        let refused = gone.outgoing() && !gone.is_open();
        let peer = gone.peer();
        let macs = self.cache.of(peer);
        // Only the contract was refused: the same call for best effort follows at once.
        let again = refused
            && gone.info.traffic.is_some()
            && self.contract_refused((peer, Role::DataDirect), cause, now);
        let until = match again {
            true => now,
            false => now + self.wait_to_call(peer, cause),
        };
        if refused && !again {
            if gone.info.mux && self.plain.len() < self.config.limits.cache {
                self.plain.insert(peer);
            }
            let text = format!("{peer} refuses data direct: {cause}");
            self.trace(Trace::detail("lane.direct-refused", text).with("peer", peer));
        }
        let other = self.best(peer).is_some();
        // Entries that waited for this connection must not wait for ever.
        let hopeless = refused || !self.calls(peer);
        for mac in macs {
            let Some(entry) = self.cache.get_mut(&mac) else {
                continue;
            };
            let hit = match entry.path {
                Path::Direct(to) | Path::Flushing { to, .. } => to == conn,
                Path::Calling => hopeless,
                Path::Switching => true,
                Path::None | Path::Refused(_) => false,
            };
            if !hit {
                continue;
            }
            if again {
                entry.path = Path::None;
                self.connect_path(mac, now);
            } else if refused {
                entry.path = Path::Refused(until);
                let ask = entry.asking.is_none();
                // The owner may have moved: a new LE_ARP answer will tell.
                if ask && self.state.is_operational() {
                    self.ask_for(mac, 0, now);
                }
            } else if other {
                entry.path = Path::None;
                self.connect_path(mac, now);
            } else {
                self.lose_path(mac);
            }
        }
    }

    /// How long a peer that refused a call is not called again. If there is no room to remember the peer, the longest
    /// wait is used.
    pub(super) fn wait_to_call(&mut self, peer: AtmAddress, cause: Cause) -> Duration {
        let most = self.params.call_retry;
        let known = self.refusals.contains_key(&peer);
        if !known && self.refusals.len() >= self.config.limits.cache {
            return most;
        }
        let new = || Backoff::of(&self.config.address);
        let backoff = self.refusals.entry(peer).or_insert_with(new);
        backoff.wait(Some(cause), Duration::ZERO, most)
    }

    pub(super) fn direct_timeout(&mut self, now: Instant) {
        for conn in self.conns.queries_due(now) {
            self.send_on(conn, Pdu::ReadyQuery.encode());
            let next = now + self.params.connection_completion;
            self.conns.query_at(conn, Some(next));
        }
    }

    // ---- paths ----

    /// Moves the frames for `mac` to the best connection with its owner; calls the owner if there is no connection.
    pub(super) fn connect_path(&mut self, mac: MacAddr, now: Instant) {
        if mac.is_group() {
            return self.connect_group(mac, now);
        }
        let Some(entry) = self.cache.get(&mac) else {
            return;
        };
        let Some(atm) = entry.atm.filter(|_| entry.wanted) else {
            return;
        };
        let path = entry.path;
        let best = self.best(atm);
        let next = match (path, best) {
            (Path::Direct(now_on), Some(best)) if now_on == best => return,
            // The flush or the switch must end first; the better connection is considered again afterwards.
            (Path::Flushing { .. } | Path::Switching, _) => return,
            (_, Some(to)) => {
                let fresh = self.params.path_switching_delay;
                self.to_data.push_back(ToData::Switch { mac, to, fresh });
                Path::Switching
            }
            (Path::Refused(until), None) if until > now => return,
            (Path::Direct(_) | Path::Calling, None) => return,
            (Path::None | Path::Refused(_), None) => {
                if !self.calls(atm) {
                    if self.count(Role::DataDirect) >= self.config.limits.vccs {
                        return;
                    }
                    let mux = self.mux_address(mac).filter(|_| !self.plain.contains(&atm));
                    let called = mux.unwrap_or(atm);
                    self.call_for((atm, Role::DataDirect), called, mux.is_some(), now);
                }
                Path::Calling
            }
        };
        if let Some(entry) = self.cache.get_mut(&mac) {
            entry.path = next;
        }
    }

    /// Address at which the owner of `mac` takes LLC-multiplexed calls, if both sides support them.
    fn mux_address(&self, mac: MacAddr) -> Option<AtmAddress> {
        let entry = self.cache.get(&mac).filter(|_| self.multiplexes())?;
        let mut tlvs = entry.tlvs.iter();
        let tlv = tlvs.find(|tlv| tlv.kind == TlvType::LLC_MUX_ADDRESS)?;
        tlv.address().filter(|address| !address.is_zero())
    }

    /// True if a connection with `peer` is under way.
    fn calls(&self, peer: AtmAddress) -> bool {
        let mut conns = self.conns.with(peer);
        conns.any(|(_, conn)| conn.carries() == Role::DataDirect)
    }

    /// The path is gone; frames use the BUS, and the next frame asks for a path again.
    pub(super) fn lose_path(&mut self, mac: MacAddr) {
        if let Some(entry) = self.cache.get_mut(&mac) {
            entry.path = Path::None;
            entry.wanted = false;
            let asked = false;
            self.to_data.push_back(ToData::Unresolved { mac, asked });
        }
    }

    pub(super) fn switched(&mut self, mac: MacAddr, to: ConnId) {
        if let Some(entry) = self.cache.get_mut(&mac)
            && entry.path == Path::Switching
        {
            entry.path = Path::Direct(to);
            let text = format!("frames for {mac} go on a data direct connection");
            self.trace(Trace::detail("lane.direct-path", text).with("mac", mac));
        }
    }

    // ---- flush ----

    /// The data plane holds the frames for `mac`: sends a flush behind the last one.
    pub(super) fn send_flush(
        &mut self,
        mac: MacAddr,
        to: ConnId,
        via: ConnId,
        ago: Duration,
        now: Instant,
    ) {
        let mut frame = self.frame(OpCode::FLUSH);
        let until = now + self.params.flush_timeout;
        let at = until.min(now + self.params.expected_arp_time);
        let Some(entry) = self.cache.get_mut(&mac) else {
            return;
        };
        let Some(atm) = entry.atm.filter(|_| entry.path == Path::Switching) else {
            return;
        };
        frame.target_atm = atm;
        entry.path = Path::Flushing {
            transaction: frame.transaction,
            to,
            via,
            last: now.before(ago),
            until,
            at,
        };
        self.send_on(via, frame.encode());
    }

    /// Sends the request again, with the number of the first one: frames are held, so an answer to any of them says
    /// that the old path is empty. The request is lost if its target has joined the LES but not the BUS yet.
    fn repeat_flush(&mut self, mac: MacAddr, now: Instant) {
        let pause = self.params.expected_arp_time;
        let Some(entry) = self.cache.get_mut(&mac) else {
            return;
        };
        let (
            Some(atm),
            Path::Flushing {
                transaction,
                via,
                until,
                at,
                ..
            },
        ) = (entry.atm, &mut entry.path)
        else {
            return;
        };
        *at = (*until).min(now + pause);
        let (transaction, via) = (*transaction, *via);
        let mut frame = self.frame_again(OpCode::FLUSH, transaction);
        frame.target_atm = atm;
        self.send_on(via, frame.encode());
    }

    /// LE_FLUSH_REQUEST of another client, received on the path that it flushes.
    pub(super) fn flush_request(&mut self, frame: &ControlFrame) {
        if frame.target_atm == self.config.address && frame.lecid != self.state.lecid() {
            let answer = frame.response(Status::SUCCESS);
            self.send_control(&answer);
        }
    }

    pub(super) fn flush_response(&mut self, frame: &ControlFrame, now: Instant) {
        if frame.lecid != self.state.lecid() {
            return;
        }
        // A correct answer names the client that was asked.
        let likely = self.cache.of(frame.target_atm);
        let likely = likely
            .iter()
            .filter_map(|mac| self.cache.get_key_value(mac));
        let hit = likely
            .chain(self.cache.iter())
            .find_map(|(mac, entry)| match entry.path {
                Path::Flushing {
                    transaction, to, ..
                } if transaction == frame.transaction => Some((*mac, to)),
                _ => None,
            });
        match hit {
            Some((mac, to)) => self.proceed(mac, to, now),
            // One more answer to a request that was repeated, or an answer that comes too late.
            None if self.was_flushed(frame.transaction) => {}
            None => self.counters.unasked += 1,
        }
    }

    /// True if this is the number of a flush that has ended.
    fn was_flushed(&self, transaction: u32) -> bool {
        let mut entries = self.cache.iter();
        entries.any(|(_, entry)| entry.flushed == Some(transaction))
    }

    /// The old path is empty.
    fn proceed(&mut self, mac: MacAddr, to: ConnId, now: Instant) {
        if let Some(entry) = self.cache.get_mut(&mac) {
            if let Path::Flushing { transaction, .. } = entry.path {
                entry.flushed = Some(transaction);
            }
            entry.path = Path::Direct(to);
        }
        self.to_data.push_back(ToData::Proceed { mac, to });
        let text = format!("flushed; frames for {mac} go on a data direct connection");
        self.trace(Trace::detail("lane.direct-path", text).with("mac", mac));
        self.connect_path(mac, now);
    }

    /// Handles an unanswered flush (repeated every C20 until C21, then C22 from the last frame) and the end of the wait
    /// after a refused call.
    pub(super) fn path_timeout(&mut self, mac: MacAddr, now: Instant) {
        let Some(entry) = self.cache.get_mut(&mac) else {
            return;
        };
        match entry.path {
            Path::Flushing { until, at, .. } if at <= now && now < until => {
                self.repeat_flush(mac, now);
            }
            Path::Flushing { to, last, at, .. } if at <= now => {
                let quiet = last + self.params.path_switching_delay;
                if quiet <= now {
                    self.proceed(mac, to, now);
                } else if let Path::Flushing { at, .. } = &mut entry.path {
                    *at = quiet.max(now + Duration::from_nanos(1));
                }
            }
            Path::Refused(until) if until <= now => self.lose_path(mac),
            _ => {}
        }
    }
}
