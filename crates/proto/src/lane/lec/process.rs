//! The control parts of a host's LANE clients as a machine of their own, for a process that has nothing else.

use super::adopt::{Told, drain};
use super::control::Control;
use super::split::{ForLec, FromLecd, KnownConn, KnownEntry, Standing, ToLecd};
use super::{Input, LecConfig};
use crate::{ConnId, Duration, Instant, Machine, Refused};
use aerostat_wire::MacAddr;
use std::collections::{BTreeMap, VecDeque};

/// Most clients of a host.
const LECS: usize = 256;
/// Its own clock begins here, so that what was some time ago has a time even if the process is young.
const EPOCH: Duration = Duration::from_secs(86_400);

/// What goes into a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LecdInput {
    /// From the lab's process.
    Message(ForLec<ToLecd>),
    /// SIGTERM and its like: leave the ELANs and exit.
    Terminate,
    /// SIGHUP: leave the ELANs and join them again.
    Reload,
}

/// What comes out of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LecdOutput {
    /// For the lab's process.
    Message(ForLec<FromLecd>),
    /// Every ELAN is left, and that is told: the process may end.
    Exit,
}

/// One client.
struct Client {
    control: Control,
    /// It was told to go on or to join, and not to stop.
    runs: bool,
    remote: Vec<MacAddr>,
    /// What it takes over, until it is told to go.
    conns: Vec<KnownConn>,
    entries: Vec<KnownEntry>,
    told: Told,
}

/// The LANE daemon of a host, for a process of its own. It does nothing until it is told to.
#[derive(Default)]
pub struct Lecd {
    clients: BTreeMap<u16, Client>,
    out: VecDeque<LecdOutput>,
}

impl core::fmt::Debug for Lecd {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let clients = self.clients.iter();
        let clients = clients.map(|(itf, client)| (itf, client.control.state()));
        f.debug_map().entries(clients).finish()
    }
}

impl Client {
    fn new(config: LecConfig, transaction: u32, conn: ConnId) -> Self {
        let mut control = Control::new(config);
        control.transaction = transaction;
        control.next_conn = conn.0;
        Self {
            control,
            runs: false,
            remote: Vec::new(),
            conns: Vec::new(),
            entries: Vec::new(),
            told: Told::default(),
        }
    }

    fn input(&mut self, input: Input<'_>, now: Instant) {
        if self.runs {
            self.control.handle(input, now);
        }
    }

    fn go(&mut self, standing: Option<Standing>, now: Instant) {
        if self.runs {
            return;
        }
        self.runs = true;
        let conns = core::mem::take(&mut self.conns);
        let entries = core::mem::take(&mut self.entries);
        // Before there is anybody to tell: these are known.
        self.control.remote = core::mem::take(&mut self.remote).into_iter().collect();
        match standing {
            Some(standing) => self.control.adopt(standing, conns, entries, now),
            None => self.input(Input::Start, now),
        }
    }
}

impl Lecd {
    fn message(&mut self, itf: u16, message: ToLecd, now: Instant) {
        if let ToLecd::Start {
            config,
            transaction,
            conn,
        } = message
        {
            if self.clients.len() < LECS {
                let client = Client::new(*config, transaction, conn);
                self.clients.insert(itf, client);
            }
            return;
        }
        let Some(client) = self.clients.get_mut(&itf) else {
            return;
        };
        match message {
            ToLecd::Start { .. } => {}
            ToLecd::Conn(row) if !client.runs => client.conns.push(row),
            ToLecd::Entry(row) if !client.runs => client.entries.push(row),
            // It has its own by now.
            ToLecd::Conn(_) | ToLecd::Entry(_) => {}
            ToLecd::Go(standing) => client.go(standing.map(|standing| *standing), now),
            ToLecd::Stop => self.stop(itf, false, now),
            ToLecd::Data(message) if client.runs => client.control.data_message(message, now),
            ToLecd::Data(_) => {}
            ToLecd::Atm(event) => client.input(Input::Atm(event.borrow()), now),
            ToLecd::SetTlvs(tlvs) => client.input(Input::SetTlvs(tlvs), now),
            ToLecd::SetRemote(macs) if client.runs => {
                client.input(Input::SetRemote(macs), now);
            }
            ToLecd::SetRemote(macs) => client.remote = macs,
            ToLecd::SetGroups(macs) => client.input(Input::SetGroups(macs), now),
            ToLecd::TopologyChange(on) => client.input(Input::TopologyChange(on), now),
            ToLecd::Resolve(mac) => client.input(Input::Resolve { mac }, now),
        }
        self.flush(itf, now);
    }

    /// Leaves the ELAN of one client and forgets it.
    fn stop(&mut self, itf: u16, exits: bool, now: Instant) {
        if let Some(client) = self.clients.get_mut(&itf) {
            client.control.handle(Input::Stop, now);
            self.flush(itf, now);
            self.clients.remove(&itf);
            self.say(itf, FromLecd::Ended { exits });
        }
    }

    fn say(&mut self, itf: u16, message: FromLecd) {
        let message = ForLec { itf, message };
        self.out.push_back(LecdOutput::Message(message));
    }

    /// Says what there is to say of one client.
    fn flush(&mut self, itf: u16, now: Instant) {
        let Some(client) = self.clients.get_mut(&itf) else {
            return;
        };
        let out = &mut self.out;
        let mut say = |message| {
            out.push_back(LecdOutput::Message(ForLec { itf, message }));
        };
        drain(&mut client.control, &mut say);
        client.told.tell(&mut client.control, now, &mut say);
    }

    fn clients(&self) -> Vec<u16> {
        self.clients.keys().copied().collect()
    }
}

impl Machine for Lecd {
    type Input<'a> = LecdInput;
    type Output = LecdOutput;

    fn handle_input(&mut self, input: LecdInput, now: Instant) -> Result<(), Refused> {
        let now = now + EPOCH;
        match input {
            LecdInput::Message(ForLec { itf, message }) => self.message(itf, message, now),
            LecdInput::Terminate => {
                for itf in self.clients() {
                    self.stop(itf, true, now);
                }
                self.out.push_back(LecdOutput::Exit);
            }
            LecdInput::Reload => {
                for itf in self.clients() {
                    if let Some(client) = self.clients.get_mut(&itf) {
                        client.input(Input::Stop, now);
                        client.input(Input::Start, now);
                    }
                    self.flush(itf, now);
                }
            }
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = now + EPOCH;
        for itf in self.clients() {
            if let Some(client) = self.clients.get_mut(&itf)
                && client.control.next().is_some_and(|at| at <= now)
            {
                client.control.timeout(now);
                self.flush(itf, now);
            }
        }
    }

    fn poll_output(&mut self) -> Option<LecdOutput> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let clients = self.clients.values();
        let next = clients.filter_map(|client| client.control.next()).min();
        next.map(|at| at.before(EPOCH))
    }
}
