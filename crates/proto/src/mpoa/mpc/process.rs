//! The daemon of a client with its timers and its settings.

use super::MpcConfig;
use super::api::{Bus, MpcCounters, Numbers, Output, RELOAD_PAUSE};
use super::daemon::{Daemon, Elan, Ending};
use crate::mpoa::params::MpcParams;
use crate::mpoa::split::{ElanInfo, FromMpcd, ToMpcd};
use crate::split::{self, Ended, FromDaemon, Signal};
use crate::{AtmEvent, ConnId, Instant, Trace};
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, VecDeque};

/// The settings from [`ToMpcd::Start`], kept up to date.
#[derive(Debug)]
struct Orders {
    config: MpcConfig,
    params: MpcParams,
    elans: BTreeMap<usize, Elan>,
}

/// The daemon of an MPOA client. It is idle until it is started.
#[derive(Debug)]
pub struct Mpcd {
    orders: Option<Orders>,
    pub(super) daemon: Option<Daemon>,
    pub(super) numbers: Numbers,
    /// Id of the latest call of the daemons that have ended.
    last_conn: ConnId,
    bus: Bus,
    restart_at: Option<Instant>,
    /// The process is to end.
    exiting: bool,
    /// The contents of the last [`FromMpcd::Watched`].
    watched: Vec<(AtmAddress, Instant)>,
    out: VecDeque<FromDaemon<FromMpcd>>,
}

impl Default for Mpcd {
    fn default() -> Self {
        Self {
            orders: None,
            daemon: None,
            numbers: Numbers::new(0),
            last_conn: ConnId(0),
            bus: Bus::default(),
            restart_at: None,
            exiting: false,
            watched: Vec::new(),
            out: VecDeque::new(),
        }
    }
}

impl Mpcd {
    fn say(&mut self, message: FromMpcd) {
        self.out.push_back(FromDaemon::Message(message));
    }
    /// Reports that the daemon has ended regularly.
    fn ended(&mut self, restarts: bool) {
        self.out.push_back(FromDaemon::Ended(match restarts {
            _ if self.exiting => Ended::Exits,
            true => Ended::Restarts,
            false => Ended::Stops,
        }));
    }

    fn start(&mut self) {
        self.restart_at = None;
        if let (Some(orders), None, false) = (&self.orders, &self.daemon, self.exiting) {
            let elans = orders.elans.clone();
            self.bus
                .trace(Trace::detail("mpc.up", "the MPOA client runs"));
            let daemon = Daemon::start(
                &orders.config,
                &orders.params,
                elans,
                self.last_conn,
                &mut self.bus,
            );
            self.daemon = Some(daemon);
        }
    }

    /// Ends regularly; at once if there is nothing to purge.
    fn end(&mut self, reload: bool, now: Instant) {
        if let Some(daemon) = &mut self.daemon {
            // A daemon that is ending for a reload now ends permanently.
            if let (Ending::Wait { reload, .. }, false) = (&mut daemon.ending, reload) {
                *reload = false;
            }
            return daemon.end(reload, now, &mut self.bus);
        }
        if !reload {
            self.restart_at = None;
            self.ended(false);
        }
    }

    fn told(&mut self, message: ToMpcd, now: Instant) {
        match message {
            ToMpcd::Start {
                config,
                params,
                elans,
            } => {
                // A daemon that starts again continues its numbers: a late answer must not match.
                if self.orders.is_none() {
                    self.numbers = Numbers::new(config.seed);
                }
                self.orders = Some(Orders {
                    config: *config,
                    params,
                    elans: elans.iter().map(elan).collect(),
                });
                self.start();
            }
            ToMpcd::Stop { reload } => self.end(reload, now),
            ToMpcd::ElanUp(info) => {
                let (itf, elan) = elan(&info);
                if let Some(orders) = &mut self.orders {
                    orders.elans.insert(itf, elan);
                }
                if let Some(daemon) = &mut self.daemon {
                    daemon.elans.insert(itf, elan);
                }
            }
            ToMpcd::ElanDown { itf } => {
                if let Some(orders) = &mut self.orders {
                    orders.elans.remove(&itf);
                }
                if let Some(daemon) = &mut self.daemon {
                    daemon.elans.remove(&itf);
                }
            }
            ToMpcd::Params(params) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.set_params(params.clone(), &mut self.bus);
                }
                if let Some(orders) = &mut self.orders {
                    orders.params = params;
                }
            }
            ToMpcd::Message(message) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.handle(message, &mut self.numbers, now, &mut self.bus);
                }
            }
        }
    }

    /// Sends all pending messages; then ends a daemon that is done.
    fn flush(&mut self, now: Instant) {
        self.pass_on();
        let Some(Ending::Done { reload }) = self.daemon.as_ref().map(|d| d.ending) else {
            return self.tell_watched(now);
        };
        if let Some(mut daemon) = self.daemon.take() {
            self.last_conn = daemon.conns.last_id();
            daemon.close_all(&mut self.bus);
            self.pass_on();
        }
        self.tell_watched(now);
        self.ended(reload);
        if reload && !self.exiting {
            self.restart_at = Some(now + RELOAD_PAUSE);
        }
    }

    /// Requests and traces come first, since the data plane's reaction to the messages comes after them.
    fn pass_on(&mut self) {
        while let Some(output) = self.bus.out.pop_front() {
            match output {
                Output::Atm(request) => self.out.push_back(FromDaemon::Atm(request)),
                Output::Discover { itf, mac } => self.say(FromMpcd::Discover { itf, mac }),
                Output::Trace(trace) => self.out.push_back(FromDaemon::Trace(trace)),
                // These outputs belong to the data plane.
                Output::Deliver { .. } | Output::SetTlvs { .. } | Output::Mpcd(_) => {}
            }
        }
        while let Some(message) = self.bus.to_kernel.pop_front() {
            self.say(FromMpcd::Message(message));
        }
        if self.bus.counters != MpcCounters::default() {
            let counted = core::mem::take(&mut self.bus.counters);
            self.say(FromMpcd::Counted(Box::new(counted)));
        }
    }

    fn tell_watched(&mut self, now: Instant) {
        let known = self.daemon.iter().flat_map(|daemon| &daemon.mps);
        let until = known.filter_map(|(address, mps)| Some((*address, mps.keep_alive?.deadline)));
        let watched: Vec<_> = until.collect();
        if watched != self.watched {
            let left = watched.iter().map(|(mps, at)| (*mps, at.since(now)));
            let left = left.collect();
            self.watched = watched;
            self.say(FromMpcd::Watched(left));
        }
    }
}

impl split::Daemon for Mpcd {
    type To = ToMpcd;
    type From = FromMpcd;

    fn message(&mut self, message: ToMpcd, now: Instant) {
        self.told(message, now);
        self.flush(now);
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        if let Some(daemon) = &mut self.daemon {
            daemon.atm(event, &mut self.numbers, now, &mut self.bus);
        }
        self.flush(now);
    }

    /// SIGTERM: purges the entries that MPSs imposed, waits for their replies for a short time. SIGHUP: the same, but
    /// the daemon starts again after five seconds.
    fn signal(&mut self, signal: Signal, now: Instant) {
        self.exiting |= signal == Signal::Terminate;
        self.end(signal == Signal::Reload, now);
        self.flush(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.restart_at.is_some_and(|at| at <= now) {
            self.start();
        }
        if let Some(daemon) = &mut self.daemon {
            daemon.handle_timeout(now, &mut self.bus);
        }
        self.flush(now);
    }

    fn poll_output(&mut self) -> Option<FromDaemon<FromMpcd>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let daemon = self.daemon.as_ref().and_then(Daemon::next_timeout);
        [daemon, self.restart_at].into_iter().flatten().min()
    }
}

const fn elan(info: &ElanInfo) -> (usize, Elan) {
    let (elan_id, mtu) = (info.elan_id, info.mtu);
    (info.itf, Elan { elan_id, mtu })
}
