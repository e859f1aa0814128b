//! Daemons of hosts in processes of their own.

use super::{Crossing, Net};
use aerostat_node::signalling;
use aerostat_node::signalling::DaemonEvent;
use aerostat_proto::Machine as _;
use aerostat_proto::machine::settle;
use aerostat_proto::sigd::{FromSigd, ToSigd};
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{
    FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput, Signal,
};

impl Net {
    /// A daemon comes.
    pub fn start_daemon(&mut self, i: usize) {
        self.hosts[i].daemon = Some(Process::default());
        self.daemon_event(i, ProcessEvent::Came);
    }

    /// The daemon dies; its last messages may be lost.
    pub fn kill_daemon(&mut self, i: usize) {
        self.hosts[i].daemon = None;
        self.hosts[i].daemons += 1;
        self.daemon_event(i, ProcessEvent::Gone);
    }

    /// Passes on a false message of a daemon.
    pub fn lie(&mut self, i: usize, message: FromSigd) {
        self.daemon_says(i, FromDaemon::Message(message));
    }

    /// A message from the daemon of host `i`.
    pub fn daemon_says(&mut self, i: usize, message: FromDaemon<FromSigd>) {
        self.daemon_event(i, ProcessEvent::Said(message));
    }

    /// A message from the daemon of host `i`, or an event of its process.
    fn daemon_event(&mut self, i: usize, event: DaemonEvent) {
        self.tell(i, signalling::Input::Daemon(event)).unwrap();
    }

    /// A signal to the daemon.
    pub fn signal(&mut self, i: usize, signal: Signal) {
        self.tell_daemon(i, ProcessInput::Signal(signal));
    }

    fn tell_daemon(&mut self, i: usize, input: ProcessInput<ToSigd>) {
        if let Some(daemon) = &mut self.hosts[i].daemon {
            daemon.handle_input(input, self.now).unwrap();
        }
        self.drain_daemon(i);
    }

    /// A daemon that hung continues.
    pub fn wake(&mut self, i: usize) {
        self.hosts[i].hangs = false;
        for frame in core::mem::take(&mut self.hosts[i].unread) {
            let frame = Numbered::decode(&frame).expect("own message");
            self.tell_daemon(i, ProcessInput::Frame(frame));
        }
    }

    pub(super) fn cross(&mut self, i: usize, crossing: Crossing) {
        self.frames += 1;
        let takes = match self.slow == Some(i) {
            true => self.crossing * 100,
            false => self.crossing,
        };
        let at = (self.now + takes, self.frames);
        self.pipes.insert(at, (i, self.hosts[i].daemons, crossing));
    }

    pub(super) fn drain_daemon(&mut self, i: usize) {
        let hangs = self.hosts[i].hangs;
        let Some(daemon) = self.hosts[i].daemon.as_mut().filter(|_| !hangs) else {
            return;
        };
        for output in settle(daemon, self.now) {
            match output {
                ProcessOutput::Frame(frame) => self.cross(i, Crossing::ToHost(frame.encode())),
                ProcessOutput::Exit => {
                    self.kill_daemon(i);
                    return;
                }
            }
        }
    }

    pub(super) fn crossed(&mut self, (i, life, crossing): (usize, usize, Crossing)) {
        if life != self.hosts[i].daemons {
            return;
        }
        match crossing {
            Crossing::ToDaemon(frame) if self.hosts[i].hangs => self.hosts[i].unread.push(frame),
            Crossing::ToDaemon(frame) => {
                let frame = Numbered::decode(&frame).expect("own message");
                self.tell_daemon(i, ProcessInput::Frame(frame));
            }
            Crossing::ToHost(frame) => {
                let frame = Numbered::decode(&frame).expect("own message");
                self.daemon_event(i, ProcessEvent::Said(frame.message));
            }
        }
    }
}
