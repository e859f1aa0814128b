//! The control part of a LANE client as a daemon.

use super::adopt::{Told, drain};
use super::conns::Conns;
use super::control::Control;
use super::snapshot::View;
use super::split::{FromLecd, KnownConn, KnownEntry, Standing, ToLecd};
use super::{Input, LecConfig, LecState};
use crate::split::{Daemon, Ended, FromDaemon, Signal};
use crate::{AtmEvent, ConnId, Duration, Instant};
use aerostat_wire::MacAddr;
use std::collections::VecDeque;

/// The daemon's own clock starts at this time, so that earlier times exist even in a young process.
const EPOCH: Duration = Duration::from_secs(86_400);

/// One client.
struct Client {
    control: Control,
    /// The client was told to continue or to join, and not to stop.
    runs: bool,
    remote: Vec<MacAddr>,
    /// State that the client takes over when it is told to go.
    conns: Vec<KnownConn>,
    entries: Vec<KnownEntry>,
    told: Told,
}

/// The control part of a LANE client. It is idle until it is started.
#[derive(Default)]
pub struct LecDaemon {
    client: Option<Client>,
    out: VecDeque<FromDaemon<FromLecd>>,
}

impl core::fmt::Debug for LecDaemon {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let state = self.client.as_ref().map(|client| client.control.state());
        f.debug_struct("LecDaemon").field("state", &state).finish()
    }
}

impl Client {
    fn new(config: LecConfig, transaction: u32, conn: ConnId) -> Self {
        let mut control = Control::new(config);
        control.transaction = transaction;
        control.conns = Conns::after(conn);
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
        // Set before there is a server to tell: these addresses are known already.
        self.control.remote = core::mem::take(&mut self.remote).into_iter().collect();
        match standing {
            Some(standing) => self.control.adopt(standing, conns, entries, now),
            None => self.input(Input::Start, now),
        }
    }
}

impl LecDaemon {
    /// The state of the client; `None` if it does not run.
    pub(super) fn state(&self) -> Option<LecState> {
        self.client.as_ref().map(|client| client.control.state())
    }
    pub(super) fn lecid(&self) -> u16 {
        let client = self.client.as_ref();
        client.map_or(0, |client| client.control.lecid())
    }
    /// The state for display.
    pub(super) fn view(&self) -> Option<View> {
        let control = &self.client.as_ref()?.control;
        // No message shows the ages of entries.
        let (conns, entries) = control.rows(Instant::ZERO);
        Some(View {
            standing: control.standing(),
            conns,
            entries,
            counters: control.counters,
        })
    }

    fn told(&mut self, message: ToLecd, now: Instant) {
        if let ToLecd::Start {
            config,
            transaction,
            conn,
        } = message
        {
            self.client = Some(Client::new(*config, transaction, conn));
            return;
        }
        let Some(client) = &mut self.client else {
            return;
        };
        match message {
            ToLecd::Start { .. } => {}
            ToLecd::Conn(row) if !client.runs => client.conns.push(row),
            ToLecd::Entry(row) if !client.runs => client.entries.push(row),
            // The client has its own state by now.
            ToLecd::Conn(_) | ToLecd::Entry(_) => {}
            ToLecd::Go(standing) => client.go(standing.map(|standing| *standing), now),
            ToLecd::Stop => self.stop(Ended::Stops, now),
            ToLecd::Data(message) if client.runs => client.control.data_message(message, now),
            ToLecd::Data(_) => {}
            ToLecd::SetTlvs(tlvs) => client.input(Input::SetTlvs(tlvs), now),
            ToLecd::SetRemote(macs) if client.runs => {
                client.input(Input::SetRemote(macs), now);
            }
            ToLecd::SetRemote(macs) => client.remote = macs,
            ToLecd::SetGroups(macs) => client.input(Input::SetGroups(macs), now),
            ToLecd::TopologyChange(on) => client.input(Input::TopologyChange(on), now),
            ToLecd::Resolve(mac) => client.input(Input::Resolve { mac }, now),
        }
    }

    /// Leaves the ELAN.
    fn stop(&mut self, ended: Ended, now: Instant) {
        if let Some(client) = &mut self.client {
            client.control.handle(Input::Stop, now);
            self.pass_on();
            self.tell(now);
            self.client = None;
        }
        self.out.push_back(FromDaemon::Ended(ended));
    }

    /// Passes on all outputs.
    fn pass_on(&mut self) {
        if let Some(client) = &mut self.client {
            drain(&mut client.control, &mut self.out);
        }
    }

    /// Reports the changes of its state.
    fn tell(&mut self, now: Instant) {
        if let Some(client) = &mut self.client {
            let out = &mut self.out;
            let mut say = |message| out.push_back(FromDaemon::Message(message));
            client.told.tell(&mut client.control, now, &mut say);
        }
    }
}

impl Daemon for LecDaemon {
    type To = ToLecd;
    type From = FromLecd;
    const REPORT: Option<Duration> = Some(Duration::ZERO);

    fn message(&mut self, message: ToLecd, now: Instant) {
        self.told(message, now + EPOCH);
        self.pass_on();
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        if let Some(client) = &mut self.client {
            client.input(Input::Atm(event), now + EPOCH);
        }
        self.pass_on();
    }

    /// SIGTERM: leaves the ELAN. SIGHUP: leaves the ELAN and joins again.
    fn signal(&mut self, signal: Signal, now: Instant) {
        let now = now + EPOCH;
        match (signal, &mut self.client) {
            (Signal::Terminate, _) => self.stop(Ended::Exits, now),
            (Signal::Reload, Some(client)) => {
                client.input(Input::Stop, now);
                client.input(Input::Start, now);
            }
            (Signal::Reload, None) => {}
        }
        self.pass_on();
    }

    fn report(&mut self, now: Instant) {
        self.tell(now + EPOCH);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(client) = &mut self.client {
            client.control.timeout(now + EPOCH);
        }
        self.pass_on();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = self.client.as_ref()?.control.next();
        next.map(|at| at.before(EPOCH))
    }

    fn poll_output(&mut self) -> Option<FromDaemon<FromLecd>> {
        self.out.pop_front()
    }
}
