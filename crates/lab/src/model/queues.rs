//! Queues and schedulers of the ports of switches.

use super::{Lab, Link, Switch};
use aerostat_node::atm::Discipline;
use aerostat_node::switch::{CallQueues, QueueParams};

/// Queues of ports, as far as they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Buffers and thresholds; 0: not given.
    pub params: QueueParams,
    /// Order of service.
    pub scheduler: Option<Discipline>,
    /// What calls have for themselves.
    pub calls: CallQueues,
}

impl Queues {
    /// What counts at a port of this switch to this link.
    #[must_use]
    pub fn at(switch: &Switch, link: &Link) -> Self {
        Self {
            params: link.queues.params.or(switch.queues.params),
            scheduler: link.queues.scheduler.or(switch.queues.scheduler),
            calls: link.queues.calls.or(switch.queues.calls),
        }
    }
    /// The sizes of the buffers at a port: best effort, one of its connections, guaranteed, one of these. Those of a
    /// port that grows with the lab may be larger.
    #[must_use]
    pub const fn buffers(&self, lab: &Lab) -> [u32; 4] {
        const fn or(own: u32, usual: u32) -> u32 {
            if own > 0 { own } else { usual }
        }
        let (own, usual) = (&self.params, &lab.limits.port);
        [
            or(own.buffer, usual.buffer),
            or(own.vc_buffer, usual.vc_buffer),
            or(own.guaranteed_buffer, usual.guaranteed_buffer),
            or(own.guaranteed_vc_buffer, usual.guaranteed_vc_buffer),
        ]
    }
}
