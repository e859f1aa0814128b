//! The time that packets take in a host: its CPU, and the receive path of its adapter; its clock.

use crate::diag::{Diagnostics, Span};
use crate::field::Optional as _;
use crate::file::{CostsFile, HostFile, InterruptionsFile, ManagerFile};
use crate::model::{CallCosts, Clock, Costs, CpuConfig, IntakeConfig, Interruptions};
use aerostat_node::host::Encapsulation;
use aerostat_node::manager::{ManagerConfig, Sharing};
use aerostat_node::server::Cost;

/// The clock of the host with this name; `None` if it is that of the lab.
pub(super) fn clock(name: &str, host: &HostFile, d: &mut Diagnostics) -> Option<Clock> {
    let file = host.clock.as_ref()?;
    if host.kernel.plain() == Some(true) {
        let text = format!("host {name} is a Linux kernel, which has the clock of this machine");
        d.warning(file.place, text)
            .hint("clock: has an effect on embedded hosts only");
    }
    Some(Clock {
        phase: file.phase.get(),
        ppb: file.ppm.get(),
    })
}

/// The receive path of a host's adapter; `None` if it is as fast as the link.
pub(super) fn intake(host: &HostFile, d: &mut Diagnostics) -> Option<IntakeConfig> {
    let file = host.adapter.as_ref()?;
    match (file.receive.plain(), file.buffer.plain()) {
        (Some(rate), Some(buffer)) => Some(IntakeConfig {
            rate,
            buffer: buffer as usize,
        }),
        (None, None) if file.paths.is_some() || file.rate_queues.is_some() => None,
        _ => {
            d.error(
                file.place,
                "an adapter has 'receive' and 'buffer', or 'paths', or 'rate_queues'",
            )
            .hint("for example: adapter: { receive: 25000cells/s, buffer: 8 }")
            .rests_in(file.place, ["receive", "buffer", "paths", "rate_queues"]);
            None
        }
    }
}

/// A share of at most 1, in millionths.
fn millionths(share: f64) -> u32 {
    (share * 1e6).round() as u32
}

/// A signalling manager; `None` if messages cost nothing.
pub(super) fn manager(given: Option<&ManagerFile>, d: &mut Diagnostics) -> Option<ManagerConfig> {
    let given = given?;
    let (message, hand_over) = (given.message.get(), given.hand_over.get());
    if message.is_nothing() && hand_over.is_nothing() {
        d.warning(given.place, "this manager takes no time")
            .hint("for example: manager: { message: 2ms, hand_over: 300us }");
    }
    Some(ManagerConfig {
        message,
        hand_over,
        release: millionths(given.release.get()),
        queue: given.queue.get() as usize,
        sharing: given.competing.as_ref().map(|given| Sharing {
            kernel: given.kernel.get(),
            user: given.user.get(),
            life: given.life.get(),
            competing: given.programs.get() as u8,
            nice: given.nice.get(),
        }),
    })
}

/// The manager of a switch.
pub(super) fn switch_manager(
    given: Option<&ManagerFile>,
    d: &mut Diagnostics,
) -> Option<ManagerConfig> {
    if let Some(programs) = given.and_then(|given| given.competing.as_ref()) {
        d.error(
            programs.place,
            "programs compete with the manager of a host, not with that of a switch",
        );
    }
    manager(given, d)
}

/// Warns of what a Linux kernel host does not have.
fn not_of_kernels(what: &str, (name, host): (&str, &HostFile), at: Span, d: &mut Diagnostics) {
    if host.kernel.plain() == Some(true) {
        let text = format!("host {name} is a Linux kernel, which takes the time that it takes");
        d.warning(at, text)
            .hint(format!("{what}: has an effect on embedded hosts only"));
    }
}

/// The CPU of the host with this name; `None` if packets and messages cost nothing.
pub(super) fn of(name: &str, host: &HostFile, d: &mut Diagnostics) -> Option<Box<CpuConfig>> {
    if let Some(given) = &host.manager {
        not_of_kernels("manager", (name, host), given.place, d);
    }
    let manager = manager(host.manager.as_ref(), d);
    if host.given.at("cpu").is_none() {
        manager.as_ref()?;
    }
    let given = &host.cpu;
    let usual = Costs {
        send: given.send.get(),
        receive: given.receive.get(),
        ack: given.ack.plain(),
    };
    let over = |usual: Costs, other: &CostsFile| Costs {
        send: other.send.plain().unwrap_or(usual.send),
        receive: other.receive.plain().unwrap_or(usual.receive),
        ack: other.ack.plain().or(usual.ack),
    };
    let of = |encapsulation| match encapsulation {
        Encapsulation::Lane => over(usual, &given.lane),
        Encapsulation::Mpoa => over(usual, &given.mpoa),
        Encapsulation::ClassicalIp => over(usual, &given.clip),
        Encapsulation::Line => over(usual, &given.line),
        Encapsulation::Native => over(usual, &given.native),
        Encapsulation::Atp => over(over(usual, &given.native), &given.atp),
    };
    let costs = Encapsulation::ALL.map(of);
    let calls = [&given.write, &given.read].map(|given| given.plain());
    let [write, read] = calls.map(Option::unwrap_or_default);
    let calls = calls
        .iter()
        .any(Option::is_some)
        .then_some(CallCosts { write, read });
    if let Some(at) = host.given.at("cpu") {
        let nothing = |costs: &Costs| {
            let all = [costs.send, costs.receive, costs.ack.unwrap_or_default()];
            all.into_iter().all(Cost::is_nothing)
        };
        if costs.iter().all(nothing) && calls.is_none() && manager.is_none() {
            d.warning(at, format!("packets cost the CPU of host {name} no time"))
                .hint("for example: cpu: { send: 80us + 60ns/octet, receive: 100us + 60ns/octet }");
        }
        not_of_kernels("cpu", (name, host), at, d);
    }
    Some(Box::new(CpuConfig {
        costs,
        calls,
        order: given.service.get(),
        jitter: millionths(given.jitter.get()),
        queue: given.queue.get() as usize,
        manager,
        interruptions: interruptions(given.interruptions.as_ref(), d),
        seed: 0,
    }))
}

/// Other work of a host; `None` without it.
fn interruptions(given: Option<&InterruptionsFile>, d: &mut Diagnostics) -> Option<Interruptions> {
    let given = given?;
    let (every, length) = (given.every.get(), given.length.get());
    if length > every {
        d.error(
            given.place,
            "interruptions take longer than the time between them",
        )
        .hint("for example: interruptions: { every: 5s, length: 20ms }");
    }
    Some(Interruptions { every, length })
}

#[cfg(test)]
mod tests {
    use crate::model::NodeKind;
    use crate::resolve::tests::{SMALL, lab, told};
    use aerostat_node::manager::QUEUE;

    fn with(host: &str, switch: &str) -> String {
        SMALL
            .replacen("ip: 10.1.0.10", &format!("ip: 10.1.0.10{host}"), 1)
            .replacen("s1: {}", &format!("s1: {{ {switch} }}"), 1)
    }

    #[test]
    fn a_manager_makes_a_cpu_and_a_cpu_takes_a_manager() {
        for (keys, sends, queue) in [
            ("manager: { message: 1ms }", 0, QUEUE),
            (
                "manager: { message: 1ms, queue: 7 }, cpu: { send: 1us }",
                1_000_000,
                7,
            ),
        ] {
            let lab = lab(&with(
                &format!(", {keys}"),
                "manager: { hand_over: 1us + 2ns/octet }",
            ));
            let NodeKind::Host(host) = &lab.node(lab.find("x").unwrap()).kind else {
                panic!("a host");
            };
            let cpu = host.cpu.as_ref().unwrap();
            let manager = cpu.manager.unwrap();
            assert_eq!(
                (manager.message.packet, manager.queue),
                (1_000_000_000, queue)
            );
            assert_eq!(cpu.costs[0].send.packet, sends);
            let NodeKind::Switch(switch) = &lab.node(lab.find("s1").unwrap()).kind else {
                panic!("a switch");
            };
            let hand_over = switch.manager.unwrap().hand_over;
            assert_eq!((hand_over.packet, hand_over.octet), (1_000_000, 2000));
        }
    }

    #[test]
    fn mistakes_and_what_has_no_effect() {
        for (host, switch, says) in [
            ("", "manager: {}", "this manager takes no time"),
            (", manager: { queue: 5 }", "", "this manager takes no time"),
            ("", "manager: { message: 11s }", "a cost is 0 to 10s"),
            (
                "",
                "manager: { message: 1ms, queue: 0 }",
                "queue is 1 to 1000000",
            ),
            ("", "manager: { mesage: 1ms }", "message"),
            (
                "",
                "manager: { message: 1ms, competing: {} }",
                "not with that of a switch",
            ),
            (
                ", manager: { message: 1ms, competing: { programs: 21 } }",
                "",
                "programs is 0 to 20",
            ),
            (
                ", manager: { message: 1ms, competing: { nice: -21 } }",
                "",
                "whole number from -20",
            ),
            (
                ", manager: { message: 1ms, competing: { life: 0s } }",
                "",
                "life is 1ms to 1h",
            ),
            (
                ", kernel: true, manager: { message: 1ms }",
                "",
                "manager: has an effect on embedded",
            ),
            (", cpu: {}, manager: { message: 1ms }", "", ""),
        ] {
            let told = told(&with(host, switch));
            match says {
                "" => assert!(!told.contains("time"), "{told}"),
                says => assert!(told.contains(says), "{host} {switch}: {told}"),
            }
        }
    }
}
