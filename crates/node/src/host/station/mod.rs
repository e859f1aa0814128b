//! A host with its adapter, which a driver connects to a link.

mod blocked;
pub(super) mod cpu;
pub(super) mod intake;
pub(super) mod interruptions;
mod loopbacks;
pub(super) mod steps;

use crate::atm::{
    CellRate, CellRun, DataUnit, DropReason, Mark, Nic, NicDiscard, NicEvent, Pdu, PduTrain,
    Received, Sdus, TrainPart, Written,
};
use crate::host::station::blocked::Writers;
use crate::host::station::cpu::{Cpu, Job};
use crate::host::station::intake::Intake;
use crate::host::station::loopbacks::Loopbacks;
use crate::host::station::steps::Step;
use crate::host::{CpuConfig, Host, HostEvent, HostInput, HostOutput, IntakeConfig};
use crate::ip::books::{Cause, SocketEvent};
use crate::offload::SuperFrame;
use aerostat_proto::discard::{Discard, HEAD};
use aerostat_proto::{Instant, Sdu};
use aerostat_wire::Vc;
use aerostat_wire::aal0::UserCell;
use aerostat_wire::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

/// A host and its adapter.
pub struct Station {
    host: Host,
    nic: Nic,
    events: VecDeque<HostEvent>,
    /// SDUs that the adapter refused, because the VC was closed in the meantime.
    late: u64,
    /// Programs that wait for the adapter.
    writers: Writers,
    /// `None` if the adapter is as fast as the link.
    intake: Option<Box<Intake>>,
    /// `None` if packets cost the host no time.
    cpu: Option<Box<Cpu>>,
    /// Labels whose program had its PDU through the CPU and then found no room in the adapter.
    processed: BTreeSet<Vc>,
    books: bool,
    /// True to report [`Step`]s.
    steps: bool,
    loopbacks: Loopbacks,
}

impl Station {
    /// A station on a link of this rate.
    #[must_use]
    pub fn new(host: Host, rate: CellRate) -> Self {
        Self {
            host,
            nic: Nic::new(rate),
            events: VecDeque::new(),
            late: 0,
            writers: Writers::default(),
            intake: None,
            cpu: None,
            processed: BTreeSet::new(),
            books: false,
            steps: false,
            loopbacks: Loopbacks::default(),
        }
    }
    /// The same station with a CPU that costs time, switched on at `now`.
    #[must_use]
    pub fn with_cpu(mut self, config: CpuConfig, now: Instant) -> Self {
        if config.manager.is_some() {
            self.host.set_paced();
        }
        self.cpu = Some(Box::new(Cpu::new(config, now)));
        self
    }
    /// The same station with an adapter that takes time for received PDUs, switched on at `now`.
    #[must_use]
    pub fn with_intake(mut self, config: IntakeConfig, now: Instant) -> Self {
        self.intake = Some(Box::new(Intake::new(config, now)));
        self
    }
    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// The host, to ask its socket service.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }
    /// The adapter.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        &self.nic
    }
    /// The adapter, from which the driver pops departures and which it tells the state of the link.
    pub fn nic_mut(&mut self) -> &mut Nic {
        &mut self.nic
    }
    /// SDUs for a VC that was closed in the meantime.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }
    /// The CPU, if packets cost time.
    pub(in crate::host) fn cpu(&self) -> Option<&Cpu> {
        self.cpu.as_deref()
    }
    /// The receive path of the adapter, if it takes time.
    pub(in crate::host) fn intake(&self) -> Option<&Intake> {
        self.intake.as_deref()
    }
    /// Calls `see` with every packet, frame or SDU that waits in this station. Those in the queues of its adapter are
    /// not included.
    pub fn held(&self, see: &mut dyn FnMut(DataUnit<'_>)) {
        self.host.held(see);
        let pdus = self.intake.iter().flat_map(|intake| intake.pdus());
        pdus.for_each(|pdu| see(pdu.into()));
        self.cpu.iter().flat_map(|cpu| cpu.held()).for_each(see);
    }

    /// Applies one input. Afterwards the adapter may have new departures.
    pub fn handle_input(&mut self, input: HostInput<'_>, now: Instant) {
        self.catch_up(now);
        let input = self.with_adapter(input);
        self.host.handle_input(input, now);
        self.drain(now);
    }

    /// Changes the host while it runs.
    pub fn change(&mut self, act: impl FnOnce(&mut Host), now: Instant) {
        self.catch_up(now);
        act(&mut self.host);
        self.drain(now);
    }

    /// Receives cells from the link.
    pub fn receive(&mut self, run: CellRun, now: Instant) {
        self.catch_up(now);
        let mut rest = Some(run);
        while rest.is_some() {
            let event = self.nic.receive_next(&mut rest, now);
            self.collect_discards();
            match event {
                NicEvent::Sdu { vc, sdu } => self.receive_pdu(vc, &sdu, now),
                NicEvent::Train {
                    vc,
                    part,
                    congested,
                } => {
                    // What is done to single PDUs is not done to a train.
                    let part = match self.costs_time() || congested {
                        true => Some(part),
                        false => self.host.receive_train(vc, part, now),
                    };
                    for pdu in part.iter().flat_map(TrainPart::pdus) {
                        let sdu = Received {
                            congested,
                            ..pdu.into()
                        };
                        self.receive_pdu(vc, &sdu, now);
                    }
                    self.drain(now);
                }
                NicEvent::Cells { run } => self.receive_cells(&run, now),
                NicEvent::Lost { vc, .. } => self.host.damaged(vc, now),
                NicEvent::LoopbackReturned { vc, tag } => self.loopbacks.returned(vc, tag, now),
                _ => {}
            }
        }
    }

    /// Passes single cells on, each as an SDU.
    fn receive_cells(&mut self, run: &CellRun, now: Instant) {
        for Cell { header, payload } in run.to_cells() {
            let (pti, clp) = (header.pti, header.clp);
            let cell = UserCell { pti, clp, payload };
            let sdu = cell.encode(run.vc).to_vec();
            let mark = run.pdu().and_then(Pdu::mark);
            self.receive_pdu(run.vc, &Pdu::marked(sdu, mark).into(), now);
        }
    }

    fn receive_pdu(&mut self, vc: Vc, sdu: &Received, now: Instant) {
        match &mut self.intake {
            None => self.take_in(vc, sdu, now),
            Some(intake) => {
                if !intake.offer(vc, sdu, now) {
                    self.lost(Cause::Intake, &sdu.pdu);
                }
            }
        }
        self.drain(now);
    }

    /// The adapter has passed a PDU to the host.
    fn take_in(&mut self, vc: Vc, sdu: &Received, now: Instant) {
        self.step(|| Step::TakenIn {
            vc,
            pdu: sdu.pdu.clone(),
        });
        match self.cpu {
            Some(_) => self.process(Job::Receive(vc, sdu.clone()), now),
            None => self.deliver(vc, sdu, now),
        }
    }

    /// Passes an SDU to the user of its connection. If it met congestion, its packet says so.
    fn deliver(&mut self, vc: Vc, sdu: &Received, now: Instant) {
        self.step(|| Step::Delivered {
            vc,
            pdu: sdu.pdu.clone(),
        });
        let octets = sdu.pdu.sdu();
        let told = sdu.congested.then(|| self.host.with_congestion(vc, octets));
        let told = told.flatten();
        let sdu = DataUnit {
            octets: told.as_deref().unwrap_or(octets),
            mark: sdu.pdu.mark(),
        };
        self.host.handle_input(HostInput::Sdu { vc, sdu }, now);
    }

    /// Gives a packet to the CPU. Call this only if there is a CPU, and [`Self::drain`] later.
    fn process(&mut self, job: Job, now: Instant) {
        let over = self.host.encapsulation(job.vc());
        let full = self
            .cpu
            .as_mut()
            .and_then(|cpu| cpu.offer(job, over, now).err());
        if let Some(unit) = full.as_ref().and_then(Job::unit) {
            self.lost(Cause::Cpu, unit);
        }
    }

    /// Does what the adapter or the CPU has had time for. False if there is nothing to do.
    fn finish_one(&mut self, now: Instant) -> bool {
        if let Some((vc, sdu)) = self.intake.as_mut().and_then(|intake| intake.take(now)) {
            self.take_in(vc, &sdu, now);
            return true;
        }
        let Some(job) = self.cpu.as_mut().and_then(|cpu| cpu.take(now)) else {
            return false;
        };
        match job {
            Job::Send(vc, sdu) => self.send(vc, Pdu::of(sdu), now),
            Job::Write(vc, sdus, mark) => self.write(vc, sdus, mark, now),
            Job::Receive(vc, sdu) => self.deliver(vc, &sdu, now),
            Job::Manage(errand) => self.host.handle_input(HostInput::Managed(errand), now),
            Job::Call(on, _) => self.host.handle_input(HostInput::Called(on), now),
        }
        true
    }

    /// When the adapter or the CPU is through with a packet.
    fn next_through(&self) -> Option<Instant> {
        let cpu = self.cpu().and_then(Cpu::deadline);
        let intake = self.intake().and_then(Intake::deadline);
        cpu.into_iter().chain(intake).min()
    }

    /// Does what should have been done before, if the driver is late.
    fn catch_up(&mut self, now: Instant) {
        if self.next_through().is_some_and(|at| at <= now) {
            self.drain(now);
        }
    }

    /// Reports what the adapter and the CPU hold for a label that is closed.
    fn withdraw(&mut self, vc: Vc) {
        self.processed.remove(&vc);
        let gone = self.intake.as_mut().map(|intake| intake.withdraw(vc));
        for (_, sdu) in gone.iter().flatten() {
            self.lost(Cause::Service(Discard::Closed), &sdu.pdu);
        }
        let gone = self.cpu.as_mut().map(|cpu| cpu.withdraw(vc));
        for job in gone.iter().flatten() {
            self.late += u64::from(matches!(job, Job::Send(..)));
            if let Some(unit) = job.unit() {
                self.lost(Cause::Service(Discard::Closed), unit);
            }
        }
    }

    /// True if these cells concern the adapter alone: they neither end a PDU nor are OAM cells or single cells.
    #[inline]
    #[must_use]
    pub fn only_wait(&self, run: &CellRun) -> bool {
        run.is_user() && run.ends() == 0 && !self.nic.is_single(run.vc)
    }

    /// Receives cells that only wait in the adapter. See [`Self::only_wait`].
    pub fn receive_middle(&mut self, run: CellRun, now: Instant) {
        let mut rest = Some(run);
        while rest.is_some() {
            self.nic.receive_next(&mut rest, now);
        }
        self.collect_discards();
    }

    /// Starts the accounts: the station reports the packets that it loses.
    pub fn keep_books(&mut self) {
        self.books = true;
        self.host.keep_books();
        self.nic.log_discards();
    }

    /// Reports the steps of data units from now on.
    pub const fn show_steps(&mut self) {
        self.steps = true;
    }

    fn step(&mut self, step: impl FnOnce() -> Step) {
        if self.steps {
            self.events.push_back(HostEvent::Step(step()));
        }
    }

    fn lost<'a>(&mut self, cause: Cause, unit: impl Into<DataUnit<'a>>) {
        if self.books {
            let head = unit.into().first(HEAD);
            self.events.push_back(HostEvent::Lost(cause, head));
        }
    }

    /// Reports what the adapter lost on arrival.
    fn collect_discards(&mut self) {
        while let Some((why, pdu)) = self.nic.take_discard() {
            let cause = match why {
                NicDiscard::UnknownVc => Cause::Cells(DropReason::UnknownVc),
                NicDiscard::Reassembly => Cause::Reassembly,
            };
            self.lost(cause, &pdu);
        }
    }

    /// The link went down or came up.
    pub fn set_link(&mut self, up: bool, now: Instant) {
        self.set_line(up, now);
        if let Some(cpu) = self.cpu.as_mut().filter(|cpu| !up && cpu.has_manager()) {
            cpu.withdraw(Vc::SIGNALLING);
        }
        self.host.line(up, now);
        self.drain(now);
    }

    /// Handles all timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(vc) = self.writers.due(&mut self.nic, now) {
            self.host.room(vc, now);
            self.drain(now);
        }
        self.host.handle_timeout(now);
        self.drain(now);
    }

    /// The next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// When [`Self::handle_timeout`] must be called next. Departures are not included: ask the port of the adapter.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (host, writers) = (self.host.poll_timeout(), self.writers.next());
        let parts = [host, writers, self.next_through()];
        parts.into_iter().flatten().min()
    }

    /// Handles outputs of the host, and what the CPU is through with, until there is nothing to do at `now`.
    fn drain(&mut self, now: Instant) {
        self.drain_host(now);
        while self.finish_one(now) {
            self.drain_host(now);
        }
    }

    fn drain_host(&mut self, now: Instant) {
        while let Some(output) = self.host.poll_output() {
            match output {
                HostOutput::Send { vc, sdu } => match self.costs(vc) {
                    true => self.send_by_cpu(vc, sdu, now),
                    false => self.send(vc, Pdu::of(sdu), now),
                },
                HostOutput::SendTrain { vc, frame } => {
                    self.send_train(vc, frame, now);
                }
                HostOutput::Write { vc, sdus, mark } => {
                    match self.costs(vc) && !self.processed.remove(&vc) {
                        true => self.process(Job::Write(vc, sdus, mark), now),
                        false => self.write(vc, sdus, mark, now),
                    }
                }
                HostOutput::Manage(errand) => {
                    self.process(Job::Manage(errand), now);
                }
                HostOutput::Call(on, call) => self.process(Job::Call(on, call), now),
                HostOutput::Flush { vc } => {
                    self.writers.flush(vc, &mut self.nic, now);
                }
                HostOutput::OpenVc {
                    vc,
                    traffic,
                    aal,
                    shaping,
                } => {
                    self.nic.open_or_change(vc, traffic, aal, shaping, now);
                }
                HostOutput::CloseVc { vc } => {
                    self.close(vc, now);
                }
                HostOutput::Event(event) => self.events.push_back(event),
            }
        }
    }

    /// The host's CPU is to take its time for an SDU.
    fn send_by_cpu(&mut self, vc: Vc, sdu: Sdu, now: Instant) {
        self.step(|| Step::ToCpu(DataUnit::from(&sdu[..]).first(HEAD)));
        self.process(Job::Send(vc, sdu), now);
    }

    /// True if packets cost time here.
    #[must_use]
    pub fn costs_time(&self) -> bool {
        self.cpu.is_some() || self.intake.is_some()
    }

    /// A label is closed.
    fn close(&mut self, vc: Vc, now: Instant) {
        self.withdraw(vc);
        let pdus = self.nic.unsent(vc, now);
        self.writers.forget(vc);
        self.nic.close(vc);
        self.host.unsent(vc, pdus, true, now);
    }

    /// True if packets sent on this label pass the CPU.
    fn costs(&self, vc: Vc) -> bool {
        self.cpu.as_ref().is_some_and(|cpu| match vc {
            Vc::SIGNALLING => cpu.has_manager(),
            vc => vc != Vc::ILMI,
        })
    }

    fn send(&mut self, vc: Vc, pdu: Pdu, now: Instant) {
        self.step(|| Step::Queued {
            vc,
            pdu: pdu.clone(),
        });
        if self.nic.send(vc, pdu.clone(), now).is_none() {
            self.late += 1;
            let why = Cause::Service(Discard::Closed);
            self.lost(why, &pdu);
        }
    }

    fn send_train(&mut self, vc: Vc, frame: SuperFrame, now: Instant) {
        match PduTrain::new(frame) {
            Ok(train) => {
                if self.nic.send_train(vc, train.clone(), now).is_none() {
                    self.late += u64::from(train.count());
                    if self.books {
                        let why = Cause::Service(Discard::Closed);
                        (0..train.count()).for_each(|index| self.lost(why, &train.pdu(index)));
                    }
                }
            }
            Err(source) => {
                for pdu in source.pdus() {
                    self.send(vc, pdu, now);
                }
            }
        }
    }

    /// A program writes. If the connection has gone, the SDUs are dropped with it.
    fn write(&mut self, vc: Vc, sdus: Sdus, mark: Option<Mark>, now: Instant) {
        if !self.host.is_written(vc) {
            self.late += sdus.count() as u64;
            return;
        }
        let octets = sdus.octets() as u32;
        let written = self.nic.write(vc, sdus, mark, now);
        if let Some(mark) = mark.filter(|_| self.books && written == Written::Taken) {
            let event = SocketEvent::Sent { mark, octets };
            self.events.push_back(HostEvent::Socket(event));
        }
        if matches!(written, Written::Full(_)) {
            self.writers.full(vc, &mut self.nic, now);
            if self.cpu.is_some() {
                self.processed.insert(vc);
            }
        }
        self.host.written(vc, written, now);
    }

    /// Sets the state of the link for the adapter and for the programs that write to it.
    fn set_line(&mut self, up: bool, now: Instant) {
        if up {
            self.nic.set_link(up);
            return self.writers.link_up(now);
        }
        let vcs: Vec<Vc> = self.nic.vcs().map(|view| view.vc).collect();
        for vc in vcs {
            if self.host.is_written(vc) {
                let pdus = self.nic.unsent(vc, now);
                self.host.unsent(vc, pdus, false, now);
            }
        }
        self.nic.set_link(up);
    }
}
