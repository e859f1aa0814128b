//! The ILMI daemons of the switches in processes of their own: one for each switch, for all its ports.

use super::Net;
use aerostat_node::host::DaemonMessage;
use aerostat_node::switch::Input;
use aerostat_proto::machine::settle;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput, Role};
use aerostat_proto::uni::Version;
use aerostat_proto::{Instant, Machine};

impl Net {
    /// A chain whose trunks find out by ILMI which end plays the network side, with the ILMI daemon of each switch in a
    /// process of its own.
    pub fn chain_with_ilmids(switches: usize, at: &[usize]) -> Self {
        Self::with_trunks(Version::Uni31, switches, at, (true, true), None).with_hosts()
    }
    /// The daemon of switch `k` comes.
    pub fn start_ilmid(&mut self, k: usize) {
        self.ilmids.insert(k, Process::default());
        self.tell_switch(k, ProcessEvent::Came);
    }
    /// The daemon of switch `k` dies.
    pub fn kill_ilmid(&mut self, k: usize) {
        self.ilmids.remove(&k);
        self.tell_switch(k, ProcessEvent::Gone);
    }
    fn tell_switch(&mut self, k: usize, event: ProcessEvent<DaemonMessage>) {
        let input = Input::Daemon(Role::Ilmid, event);
        self.switches[k].handle_input(input, self.now).unwrap();
        self.drain_switch(k);
    }
    /// A frame of switch `k` for its daemon.
    pub(super) fn tell_ilmid(&mut self, k: usize, frame: &[u8]) {
        if let Some(process) = self.ilmids.get_mut(&k) {
            let frame = Numbered::decode(frame).expect("own message");
            let input = ProcessInput::Frame(frame);
            process.handle_input(input, self.now).unwrap();
        }
        self.drain_ilmid(k);
    }
    /// Handles what is due in the daemon of switch `k`, and delivers its messages.
    pub(super) fn drain_ilmid(&mut self, k: usize) {
        let now = self.now;
        let Some(process) = self.ilmids.get_mut(&k) else {
            return;
        };
        for output in settle(process, now) {
            if let ProcessOutput::Frame(frame) = output {
                let message = DaemonMessage::decode(Role::Ilmid, &frame.encode());
                let message = message.expect("own message");
                self.tell_switch(k, ProcessEvent::Said(message));
            }
        }
    }
    pub(super) fn next_of_ilmids(&self) -> Option<Instant> {
        let all = self.ilmids.values();
        all.filter_map(Machine::poll_timeout).min()
    }
}
