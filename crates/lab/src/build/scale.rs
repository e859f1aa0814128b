//! Limits that follow the lab: what LANE servers, and all that leads to them, must hold for the clients that the lab has.
//!
//! Only links between switches of the lab and the links of its LANE servers get more than their usual limits. What a host, or whoever is at
//! a link out of the lab, may have stays as it is.

use crate::model::Scale;
use aerostat_node::switch::PortConfig;
use aerostat_node::{interface, signalling};
use aerostat_wire::Vc;

/// A limit that is usually `usual`, for a lab whose LANE clients need `need` of it. Half of the usual limit stays for everything else;
/// so nothing changes in a lab that needs no more than the other half.
pub(super) fn grown(usual: usize, need: usize) -> usize {
    usual.max(need.saturating_add(usual / 2))
}

/// A port that leads to the LANE servers, or may.
pub(super) fn widen_port(config: &mut PortConfig, scale: &Scale) {
    let calls = grown(config.max_calls, scale.calls());
    if calls > config.max_calls {
        config.max_calls = calls;
        // All may join at once.
        config.max_pending = calls;
    }
    let last = calls + usize::from(Vc::FIRST_USER_VCI);
    let last = u16::try_from(last).unwrap_or(u16::MAX);
    config.max_vci = config.max_vci.max(last);
    config.buffers.queues = config.buffers.queues.max(calls);
    widen_interface(&mut config.interface, scale);
}

/// The signalling of the LANE servers.
pub(super) fn widen_signalling(config: &mut signalling::Config, scale: &Scale) {
    let limits = &mut config.limits;
    limits.users = limits.users.max(scale.users());
    limits.calls_per_user = grown(limits.calls_per_user, scale.calls_of_server());
    limits.parties_per_call = grown(limits.parties_per_call, scale.largest);
    widen_interface(&mut config.interface, scale);
}

fn widen_interface(params: &mut interface::Params, scale: &Scale) {
    let limits = &mut params.uni.limits;
    limits.calls = grown(limits.calls, scale.calls());
    limits.parties = grown(limits.parties, scale.largest);
    // After a loss each call is asked for at once, and may be released at once.
    params.sscop.max_queue = params.sscop.max_queue.max(2 * limits.calls);
}

#[cfg(test)]
mod tests {
    use crate::model::{Lab, Scale};
    use aerostat_node::atm::CellRate;
    use aerostat_node::interface::Params;
    use aerostat_node::switch::{PortConfig, PortKind};
    use aerostat_proto::uni::{Side, Version};

    fn lab(clients: usize) -> Lab {
        let mut text = "switches: { s1: {} }\nlane: { on: s1, elans: { big: { subnet: 10.0.0.0/8 } } }\nhosts:\n".to_owned();
        for n in 1..=clients {
            text += &format!(
                "  h{n}: {{ on: s1, elan: big, ip: 10.0.{}.{} }}\n",
                n / 250,
                n % 250 + 1
            );
        }
        let checked = crate::parse("big", &text, &[]).map_err(|wrong| wrong.to_string());
        checked.expect("a lab without mistakes").lab
    }

    fn trunk(clients: usize) -> PortConfig {
        let interface = Params::new(Side::Network, Version::Uni40);
        let mut config = PortConfig::new("s2", PortKind::Trunk, interface, CellRate::OC3);
        super::widen_port(&mut config, &Scale::of(&lab(clients)));
        config
    }

    #[test]
    fn limits_of_a_small_lab_are_the_usual_ones_and_those_of_a_large_lab_hold_its_clients() {
        let usual = PortConfig::new(
            "s2",
            PortKind::Trunk,
            Params::new(Side::Network, Version::Uni40),
            CellRate::OC3,
        );
        assert_eq!(format!("{:?}", trunk(200)), format!("{usual:?}"));
        let large = trunk(3000);
        assert!(
            large.max_calls > 3 * 3000 && large.max_calls < 5 * 3000 + 2048,
            "{}",
            large.max_calls
        );
        assert!(usize::from(large.max_vci) > large.max_calls);
        assert!(large.interface.uni.limits.parties > 3000);
    }
}
