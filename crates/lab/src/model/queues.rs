//! Queues and schedulers of the ports of switches.

use super::{Lab, Link, Switch};
use aerostat_node::atm::Discipline;
use aerostat_node::switch::{CallQueues, QueueParams};

/// Queues of ports, as far as they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Buffers and thresholds, as far as they are given.
    pub params: QueueParams,
    /// Order of service.
    pub scheduler: Option<Discipline>,
    /// Settings of calls.
    pub calls: CallQueues,
}

impl Queues {
    /// Settings in force at a port of this switch to this link.
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
        const fn or(own: Option<u32>, usual: u32) -> u32 {
            match own {
                None | Some(0) => usual,
                Some(own) => own,
            }
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

#[cfg(test)]
mod tests {
    use super::Queues;
    use crate::file::keys;
    use crate::resolve::tests::{SMALL, lab};
    use aerostat_proto::parameters::{Parameters as _, Value};

    #[test]
    fn a_zero_of_a_link_undoes_what_its_switch_says() {
        for name in keys::queues().names() {
            let at_link = |options: &str| {
                let text = SMALL.replace("s1: {}", &format!("s1: {{ queues: {{ {name}: 20 }} }}"));
                let lab = lab(&text.replace("[[s1, s2]]", &format!("[[s1, s2, {{ {options} }}]]")));
                let (_, _, switch) = lab.switches().next().unwrap();
                let params = Queues::at(switch, &lab.links[0]).params.with_ranges();
                params
                    .into_iter()
                    .find(|one| one.name == name)
                    .unwrap()
                    .value
            };
            assert_eq!(at_link(""), Value::Count(20), "{name}");
            let zero = format!("queues: {{ {name}: 0 }}");
            assert_eq!(at_link(&zero), Value::Count(0), "{name}");
        }
    }
}
