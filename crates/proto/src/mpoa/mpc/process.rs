//! The daemon of a client as a machine of its own, for a process that has nothing else.

use super::MpcConfig;
use super::api::{Bus, MpcCounters, Numbers, Output, RELOAD_PAUSE};
use super::daemon::{Daemon, Elan, Ending};
use crate::mpoa::params::MpcParams;
use crate::mpoa::split::{ElanInfo, FromMpcd, ToMpcd};
use crate::{Instant, Machine, Refused, Trace};
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, VecDeque};

/// What goes into a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MpcdInput {
    /// From the lab's process.
    Message(ToMpcd),
    /// SIGTERM and its like: purge what the MPSs imposed, wait shortly for their replies, exit.
    Terminate,
    /// SIGHUP: the same, but start again after five seconds.
    Reload,
}

/// What comes out of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MpcdOutput {
    /// For the lab's process.
    Message(FromMpcd),
    /// Everything is purged and told: the process may end.
    Exit,
}

/// What [`ToMpcd::Start`] told, kept up to date.
#[derive(Debug)]
struct Orders {
    config: MpcConfig,
    params: MpcParams,
    elans: BTreeMap<usize, Elan>,
}

/// The daemon of an MPOA client, for a process of its own. It does nothing until it is told to.
#[derive(Debug)]
pub struct Mpcd {
    orders: Option<Orders>,
    daemon: Option<Daemon>,
    pub(super) numbers: Numbers,
    bus: Bus,
    restart_at: Option<Instant>,
    /// The process is to end.
    exiting: bool,
    /// What [`FromMpcd::Watched`] told last.
    watched: Vec<(AtmAddress, Instant)>,
    out: VecDeque<MpcdOutput>,
}

impl Default for Mpcd {
    fn default() -> Self {
        Self {
            orders: None,
            daemon: None,
            numbers: Numbers::new(0),
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
        self.out.push_back(MpcdOutput::Message(message));
    }

    fn start(&mut self) {
        self.restart_at = None;
        if let (Some(orders), None, false) = (&self.orders, &self.daemon, self.exiting) {
            let elans = orders.elans.clone();
            self.bus
                .trace(Trace::detail("mpc.up", "the MPOA client runs"));
            let daemon = Daemon::start(&orders.config, &orders.params, elans, &mut self.bus);
            self.daemon = Some(daemon);
        }
    }

    /// Ends in good order; at once if there is nothing to end.
    fn end(&mut self, reload: bool, now: Instant) {
        if let Some(daemon) = &mut self.daemon {
            // One that ends already for a reload ends for good.
            if let (Ending::Wait { reload, .. }, false) = (&mut daemon.ending, reload) {
                *reload = false;
            }
            return daemon.end(reload, now, &mut self.bus);
        }
        if !reload {
            self.restart_at = None;
            if self.orders.is_some() {
                let (restarts, exits) = (false, self.exiting);
                self.say(FromMpcd::Ended { restarts, exits });
            }
            if self.exiting {
                self.out.push_back(MpcdOutput::Exit);
            }
        }
    }

    fn message(&mut self, message: ToMpcd, now: Instant) {
        match message {
            ToMpcd::Start {
                config,
                params,
                elans,
            } => {
                self.numbers = Numbers::new(config.seed);
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
            ToMpcd::Atm(event) => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.atm(event.borrow(), &mut self.numbers, now, &mut self.bus);
                }
            }
        }
    }

    /// Says what there is to say; then ends a daemon that is done.
    fn flush(&mut self, now: Instant) {
        self.pass_on();
        let Some(Ending::Done { reload }) = self.daemon.as_ref().map(|d| d.ending) else {
            return self.tell_watched(now);
        };
        if let Some(daemon) = self.daemon.take() {
            daemon.close_all(&mut self.bus);
            self.pass_on();
        }
        self.tell_watched(now);
        let exits = self.exiting;
        let restarts = reload && !exits;
        self.say(FromMpcd::Ended { restarts, exits });
        if exits {
            self.out.push_back(MpcdOutput::Exit);
        } else if restarts {
            self.restart_at = Some(now + RELOAD_PAUSE);
        }
    }

    /// Requests and the story first, as what the data plane makes of the messages comes after.
    fn pass_on(&mut self) {
        while let Some(output) = self.bus.out.pop_front() {
            let message = match output {
                Output::Atm(request) => Some(FromMpcd::Atm(request)),
                Output::Discover { itf, mac } => Some(FromMpcd::Discover { itf, mac }),
                Output::Trace(trace) => Some(FromMpcd::Trace(trace)),
                // These are the data plane's.
                Output::ToLec { .. }
                | Output::Deliver { .. }
                | Output::SetTlvs { .. }
                | Output::Mpcd(_) => None,
            };
            if let Some(message) = message {
                self.say(message);
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

impl Machine for Mpcd {
    type Input<'a> = MpcdInput;
    type Output = MpcdOutput;

    fn handle_input(&mut self, input: MpcdInput, now: Instant) -> Result<(), Refused> {
        match input {
            MpcdInput::Message(message) => self.message(message, now),
            MpcdInput::Terminate => {
                self.exiting = true;
                self.end(false, now);
            }
            MpcdInput::Reload => self.end(true, now),
        }
        self.flush(now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.restart_at.is_some_and(|at| at <= now) {
            self.start();
        }
        if let Some(daemon) = &mut self.daemon {
            daemon.handle_timeout(&mut self.numbers, now, &mut self.bus);
        }
        self.flush(now);
    }

    fn poll_output(&mut self) -> Option<MpcdOutput> {
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
