//! Limits that depend on the lab: servers of LANE, ATMARP, NHRP and MPOA, and the ports and switches on the way to
//! them, need capacity for all clients of the lab.
//!
//! Links between switches of the lab and the links of its servers get room for all clients. A host of the lab may have
//! connections to and from every other host. Links out of the lab keep their usual limits.

use crate::model::{Lab, Limits, Scale};
use aerostat_node::atm::{CellRate, Limits as BufferLimits};
use aerostat_node::host::sockets::{LISTENERS, SOCKETS};
use aerostat_node::ip::router::ArpParams;
use aerostat_node::signalling;
use aerostat_node::switch::{MAX_HELD, PortConfig, PortKind};
use aerostat_proto::clip;
use aerostat_proto::interface;
use aerostat_proto::lane::{LecLimits, ServerParams};
use aerostat_proto::mpoa::mpc::MpcLimits;
use aerostat_proto::mpoa::mps;
use aerostat_proto::nhrp::client;
use aerostat_proto::parameters::{Parameter, Parameters, Value};
use aerostat_proto::uni::Side;
use aerostat_wire::Vc;

/// A limit that is usually `usual`, for a lab whose LANE clients need `need` of it. Half of the usual limit stays for
/// everything else, so nothing changes in a lab that needs no more than the other half.
pub(super) fn grown(usual: usize, need: usize) -> usize {
    usual.max(need.saturating_add(usual / 2))
}

/// The limits of a lab that depend on its size, in an order of their own.
pub(crate) fn room(lab: &Lab, scale: &Scale) -> Vec<usize> {
    let interface = interface::Params::new(Side::Network, crate::plan::UNI);
    let port =
        || PortConfig::new("", PortKind::Host, interface, CellRate::OC3).with(&lab.limits.port);
    let [mut trunk, mut host] = [port(), port()];
    widen_port(&mut trunk, &lab.limits, scale);
    widen_host_port(&mut host, &lab.limits, scale);
    let mut signals = signalling::Config::new(crate::plan::UNI);
    widen_host(&mut signals, scale);
    widen_signalling(&mut signals, scale);
    let (mut lec, mut mpc) = (LecLimits::default(), MpcLimits::default());
    widen_lec(&mut lec, scale);
    widen_mpc(&mut mpc, scale);
    let mut clip = clip::Limits::default();
    widen_clip(&mut clip, scale);
    let mps = mps(&lab.limits, scale).with_ranges();
    let nhc = nhc(&lab.limits, scale).with_ranges();
    let counts = mps.into_iter().chain(nhc).map(|limit| match limit.value {
        Value::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
        _ => 0,
    });
    let own = [
        trunk.max_calls,
        trunk.buffers.best_effort.max as usize,
        trunk.interface.uni.limits.parties,
        host.max_calls,
        signals.limits.calls_per_user,
        signals.limits.parties_per_call,
        signals.interface.uni.limits.calls,
        lec.cache,
        lec.vccs,
        mpc.ingress,
        mpc.shortcuts,
        mpc.mps,
        clip.entries,
        clip.conns,
        held(scale),
        grown(ServerParams::DEFAULT.clients, scale.all),
        grown(ServerParams::DEFAULT.clients, scale.largest),
        grown(ArpParams::default().neighbours, scale.neighbours()),
    ];
    own.into_iter().chain(counts).collect()
}

/// A port on a possible way to the LANE servers. Limits that the lab gives stay as they are.
pub(super) fn widen_port(config: &mut PortConfig, limits: &Limits, scale: &Scale) {
    let calls = grown(config.max_calls, scale.calls());
    if calls > config.max_calls && !limits.gives("port", "calls") {
        // All clients may join at the same time.
        config.max_pending = calls;
        give_calls(config, calls);
    }
    let cells = u32::try_from(scale.burst()).unwrap_or(u32::MAX);
    if cells > config.buffers.best_effort.max && !limits.gives("port", "buffer") {
        config.buffers.best_effort = BufferLimits::of(cells);
    }
    widen_interface(&mut config.interface, scale.calls(), scale);
}

/// A port to a host or a router of the lab. Limits that the lab gives stay as they are.
pub(super) fn widen_host_port(config: &mut PortConfig, limits: &Limits, scale: &Scale) {
    let calls = grown(config.max_calls, scale.calls_of_host());
    if calls > config.max_calls && !limits.gives("port", "calls") {
        // As usual, half of the calls may be unanswered.
        config.max_pending = calls / 2;
        give_calls(config, calls);
    }
    widen_interface(&mut config.interface, scale.calls_of_host(), scale);
}

/// Room for this number of calls, with labels and queues for them.
fn give_calls(config: &mut PortConfig, calls: usize) {
    config.max_calls = calls;
    let last = calls + usize::from(Vc::FIRST_USER_VCI);
    let last = u16::try_from(last).unwrap_or(u16::MAX);
    config.max_vci = config.max_vci.max(last);
    config.buffers.queues = config.buffers.queues.max(calls);
}

/// The signalling of the LANE servers.
pub(super) fn widen_signalling(config: &mut signalling::Config, scale: &Scale) {
    let limits = &mut config.limits;
    limits.users = limits
        .users
        .max(scale.users())
        .max(2 * crate::plan::MAX_ELANS + 8);
    limits.calls_per_user = grown(limits.calls_per_user, scale.calls_of_server());
    limits.parties_per_call = grown(limits.parties_per_call, scale.largest);
    widen_interface(&mut config.interface, scale.calls(), scale);
}

/// The signalling of a host or a router.
pub(super) fn widen_host(config: &mut signalling::Config, scale: &Scale) {
    let limits = &mut config.limits;
    limits.calls_per_user = grown(limits.calls_per_user, scale.calls_of_user());
    widen_interface(&mut config.interface, scale.calls_of_host(), scale);
}

/// Room for the calls and the listeners of programs of the machine: a connection for each of their sockets.
pub(super) fn widen_programs(config: &mut signalling::Config) {
    let held = config.interface.uni.limits.calls;
    config.interface.hold_calls(grown(held, SOCKETS));
    let limits = &mut config.limits;
    limits.calls_per_user = limits.calls_per_user.max(SOCKETS);
    limits.listeners_per_user = limits.listeners_per_user.max(LISTENERS);
}

/// Limits of a LANE client's knowledge about other clients.
pub(super) fn widen_lec(limits: &mut LecLimits, scale: &Scale) {
    limits.cache = grown(limits.cache, scale.largest);
    limits.vccs = grown(limits.vccs, scale.calls_of_host());
}

/// Limits of an MPOA client: a host may have shortcuts to and from every other host.
pub(super) fn widen_mpc(limits: &mut MpcLimits, scale: &Scale) {
    limits.ingress = grown(limits.ingress, scale.all);
    limits.egress = grown(limits.egress, scale.all);
    limits.shortcuts = grown(limits.shortcuts, scale.calls_of_host());
    limits.queue = grown(limits.queue, scale.all);
    limits.mps = grown(limits.mps, scale.routers);
    limits.control = grown(limits.control, 2 * scale.routers);
}

/// Limits of a member of a Classical IP subnet; its server has an entry for each member.
pub(super) fn widen_clip(limits: &mut clip::Limits, scale: &Scale) {
    limits.entries = grown(limits.entries, scale.subnet);
    limits.conns = grown(limits.conns, 2 * scale.subnet);
}

/// Limits of an NHRP client, which may have a shortcut to every other one. Limits that the lab gives stay as they are.
pub(super) fn nhc(limits: &Limits, scale: &Scale) -> client::Limits {
    let needs = [("entries", scale.members), ("conns", scale.members)];
    widened(limits.nhrp, (limits, "nhrp"), &needs)
}

/// Limits of an MPOA server, one of whose clients may have a shortcut to every other host. Limits that the lab gives
/// stay as they are.
pub(super) fn mps(limits: &Limits, scale: &Scale) -> mps::Limits {
    let (all, clients) = (scale.all, scale.clients());
    let needs = [
        ("ingress", all),
        ("ingress_per_mpc", all),
        ("egress", all),
        ("queue", all),
        ("devices", all),
        // Each client may register, may have asked for one and the same destination, and for a destination of its own.
        ("registrations", clients),
        ("requesters", clients),
        ("router_bindings", clients),
        ("kept", clients),
        // A control connection with each client, and a shortcut from it.
        ("connections", 2 * clients),
    ];
    widened(limits.mps, (limits, "mps"), &needs)
}

/// The limits of a section with room for these needs.
fn widened<P: Parameters>(
    mut widened: P,
    (limits, section): (&Limits, &'static str),
    needs: &[(&'static str, usize)],
) -> P {
    for Parameter { name, value, .. } in widened.with_ranges() {
        let need = needs.iter().find(|(of, _)| *of == name);
        // A count that is no size has room for everything.
        if let (Some((name, need)), Value::Count(usual)) = (need, value)
            && !limits.gives(section, name)
            && let Ok(usual) = usize::try_from(usual)
        {
            let grown = grown(usual, *need);
            let took = widened.set(name, Value::Count(grown as u64));
            debug_assert!(took, "{section}.{name} has no room for {grown}");
        }
    }
    widened
}

/// Limit of calls and parties of a switch that wait for a link to come up: all clients may call before their servers
/// are ready.
pub(super) fn held(scale: &Scale) -> usize {
    grown(MAX_HELD, scale.calls())
}

/// Limits of the neighbours of a host's or router's IP stack.
pub(super) fn arp(usual: ArpParams, scale: &Scale) -> ArpParams {
    ArpParams {
        neighbours: grown(usual.neighbours, scale.neighbours()),
        ..usual
    }
}

fn widen_interface(params: &mut interface::Params, calls: usize, scale: &Scale) {
    params.hold_calls(grown(params.uni.limits.calls, calls));
    let parties = &mut params.uni.limits.parties;
    *parties = grown(*parties, scale.largest);
}

#[cfg(test)]
mod tests {
    use crate::model::{Lab, Limits, Scale};
    use aerostat_node::atm::CellRate;
    use aerostat_node::signalling;
    use aerostat_node::switch::{PortConfig, PortKind};
    use aerostat_proto::clip;
    use aerostat_proto::interface::Params;
    use aerostat_proto::mpoa::mpc::MpcLimits;
    use aerostat_proto::parameters::{Parameter, Parameters as _};
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

    /// The needs of a subnet of Classical IP with NHRP that has this number of hosts.
    fn subnet(count: usize) -> Scale {
        let mut text =
            "switches: { s1: {} }\nclip: { big: { subnet: 10.0.0.0/8, server: r, nhrp: true } }\n\
            routers: { r: { on: s1, elans: { big: 10.255.0.1 } } }\nhosts:\n"
                .to_owned();
        for n in 1..=count {
            let (high, low) = (n / 250, n % 250 + 1);
            text += &format!("  h{n}: {{ on: s1, elan: big, ip: 10.0.{high}.{low} }}\n");
        }
        let checked = crate::parse("big", &text, &[]).map_err(|wrong| wrong.to_string());
        Scale::of(&checked.expect("a lab without mistakes").lab)
    }

    #[test]
    fn mpoa_of_a_large_lab_holds_shortcuts_between_all_hosts() {
        let (small, large) = (Scale::of(&lab(100)), Scale::of(&lab(10_000)));
        let mut limits = MpcLimits::default();
        super::widen_mpc(&mut limits, &small);
        assert_eq!(limits, MpcLimits::default());
        super::widen_mpc(&mut limits, &large);
        assert!(limits.ingress > 10_000 && limits.egress > 10_000 && limits.queue > 10_000);
        assert!(limits.shortcuts > 20_000);
        let usual = Limits::default();
        assert_eq!(super::mps(&usual, &small), usual.mps);
        assert!(super::mps(&usual, &large).ingress_per_mpc > 10_000);
    }

    /// A router that serves the members of a Classical IP subnet has room for each of them, in every table and on every
    /// way to it, and so has the server of a small subnet as before.
    #[test]
    fn servers_and_members_of_classical_ip_have_room_for_the_subnet() {
        let (small, large) = (subnet(100), subnet(10_000));
        assert_eq!((large.members, large.subnet), (10_001, 10_001));
        let usual = Limits::default();
        assert_eq!(super::mps(&usual, &small), usual.mps);
        let limits = super::mps(&usual, &large);
        for (limit, need) in [
            (limits.registrations, 10_000),
            (limits.requesters, 10_000),
            (limits.connections, 20_000),
            (limits.kept, 10_000),
        ] {
            assert!(limit > need, "{limits:?}");
        }
        let (mut few, mut many) = [clip::Limits::default(); 2].into();
        super::widen_clip(&mut few, &small);
        super::widen_clip(&mut many, &large);
        assert_eq!(few, clip::Limits::default());
        assert!(many.entries > 10_000 && many.conns > 20_000);
        assert_eq!(super::nhc(&usual, &small), usual.nhrp);
        assert!(super::nhc(&usual, &large).entries > 10_000);
        let mut host = signalling::Config::new(Version::Uni40);
        super::widen_host(&mut host, &large);
        assert!(host.limits.calls_per_user > 20_000);
        let interface = Params::new(Side::Network, Version::Uni40);
        for widen in [super::widen_port, super::widen_host_port] {
            let mut port = PortConfig::new("r", PortKind::Host, interface, CellRate::OC3);
            widen(&mut port, &usual, &large);
            assert!(port.max_calls > 40_000 && usize::from(port.max_vci) > port.max_calls);
        }
    }

    fn trunk(clients: usize) -> PortConfig {
        let interface = Params::new(Side::Network, Version::Uni40);
        let mut config = PortConfig::new("s2", PortKind::Trunk, interface, CellRate::OC3);
        super::widen_port(&mut config, &Limits::default(), &Scale::of(&lab(clients)));
        config
    }

    /// The limits of a file with this text.
    fn limits(text: &str) -> Limits {
        let text = format!("switches: {{ s1: {{}} }}\nlimits: {{ {text} }}\n");
        let checked = crate::parse("limits", &text, &[]).map_err(|wrong| wrong.to_string());
        checked.expect("a lab without mistakes").lab.limits
    }

    #[test]
    fn limits_that_a_lab_gives_do_not_grow_not_even_those_that_it_gives_with_their_usual_values() {
        let scale = Scale::of(&lab(3000));
        let port = |limits: &Limits| {
            let interface = Params::new(Side::Network, Version::Uni40);
            let config = PortConfig::new("s2", PortKind::Host, interface, CellRate::OC3);
            let mut config = config.with(&limits.port);
            super::widen_port(&mut config, limits, &scale);
            super::widen_host_port(&mut config, limits, &scale);
            (config.max_calls, config.buffers.best_effort.max)
        };
        let usual = Limits::default();
        let (calls, cells) = (usual.port.calls, usual.port.buffer);
        let grown = port(&usual);
        assert!(grown.0 > calls && grown.1 > cells, "{grown:?}");
        assert_eq!(port(&limits("port: { calls: 7, buffer: 100 }")), (7, 100));
        let text = format!("port: {{ calls: {calls}, buffer: {cells} }}");
        assert_eq!(port(&limits(&text)), (calls, cells));
        // Each limit of the others that grows stays if the file gives it.
        for (section, is) in [
            (
                "mps",
                (|limits, scale| super::mps(limits, scale).with_ranges())
                    as fn(&Limits, &Scale) -> Vec<Parameter>,
            ),
            ("nhrp", |limits, scale| {
                super::nhc(limits, scale).with_ranges()
            }),
        ] {
            let scale = subnet(3000);
            let before = is(&usual, &subnet(1));
            let grown = is(&usual, &scale).into_iter().zip(before);
            let grown: Vec<Parameter> = grown
                .filter(|(now, before)| now.value != before.value)
                .map(|(_, before)| before)
                .collect();
            assert!(!grown.is_empty(), "{section}");
            for parameter in grown {
                let given = limits(&format!(
                    "{section}: {{ {}: {} }}",
                    parameter.name, parameter.value
                ));
                let stays = is(&given, &scale)
                    .into_iter()
                    .find(|one| one.name == parameter.name);
                assert_eq!(
                    stays.map(|one| one.value),
                    Some(parameter.value),
                    "{section}.{}",
                    parameter.name
                );
            }
        }
    }

    #[test]
    fn a_port_for_many_calls_has_an_interface_for_as_many_and_one_for_few_keeps_the_usual_interface()
     {
        let usual = Params::new(Side::Network, Version::Uni40);
        for (calls, room, queue) in [
            (100, 4096, 8192),
            (5000, 5000, 10_000),
            (60_000, 60_000, 120_000),
        ] {
            let config = PortConfig::new("h", PortKind::Host, usual, CellRate::OC3);
            let config = config.with(&aerostat_node::switch::PortParams {
                calls,
                ..aerostat_node::switch::PortParams::DEFAULT
            });
            assert_eq!(config.max_calls, calls);
            assert_eq!(config.interface.uni.limits.calls, room);
            assert_eq!(config.interface.sscop.max_queue, queue);
        }
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
        // All clients send a request at once: three cells each, or five with TLVs.
        assert!(large.buffers.best_effort.early > 5 * 3000);
        assert!(
            large.max_calls > 3 * 3000 && large.max_calls < 5 * 3000 + 2048,
            "{}",
            large.max_calls
        );
        assert!(usize::from(large.max_vci) > large.max_calls);
        assert!(large.interface.uni.limits.parties > 3000);
    }
}
