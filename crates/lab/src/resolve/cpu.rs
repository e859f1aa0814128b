//! The time that packets take in a host: its CPU, and the receive path of its adapter; its clock.

use crate::diag::{Diagnostics, Span};
use crate::field::At;
use crate::file::{
    ClockFile, CompetingFile, CostText, CostsFile, CpuFile, HostFile, ManagerFile, Time,
};
use crate::model::{Clock, Costs, CpuConfig, IntakeConfig};
use aerostat_node::manager::{self, ManagerConfig, Sharing};
use aerostat_node::server::{Cost, Order};
use aerostat_proto::Duration;

/// The clock of the host with this name; `None` if it is that of the lab.
pub(super) fn clock(name: &str, host: &HostFile, d: &mut Diagnostics) -> Option<Clock> {
    const MOST: Duration = Duration::from_secs(10);
    let ClockFile { phase, ppm, place } = host.clock.as_ref()?;
    if let Some(phase) = phase.as_ref().filter(|phase| phase.value.0 > MOST) {
        d.error(phase.at, "a clock is 0s to 10s late");
    }
    if host.kernel.as_ref().is_some_and(At::get) {
        let text = format!("host {name} is a Linux kernel, which has the clock of this machine");
        d.warning(*place, text)
            .hint("clock: has an effect on embedded hosts only");
    }
    Some(Clock {
        phase: phase
            .as_ref()
            .map_or(Duration::ZERO, |phase| phase.value.0.min(MOST)),
        ppb: ppm.as_ref().map_or(0, |ppm| ppm.value.0),
    })
}

/// The receive path of a host's adapter; `None` if it is as fast as the link.
pub(super) fn intake(host: &HostFile, d: &mut Diagnostics) -> Option<IntakeConfig> {
    let file = host.adapter.as_ref()?;
    let (receive, given) = match (&file.receive, &file.buffer) {
        (Some(receive), Some(buffer)) => (receive, buffer),
        (None, None) if file.paths.is_some() || file.rate_queues.is_some() => return None,
        _ => {
            d.error(
                file.place,
                "an adapter has 'receive' and 'buffer', or 'paths', or 'rate_queues'",
            )
            .hint("for example: adapter: { receive: 25000cells/s, buffer: 8 }")
            .rests_in(file.place, ["receive", "buffer", "paths", "rate_queues"]);
            return None;
        }
    };
    let buffer = given.value;
    if !(1..=MOST_QUEUE).contains(&buffer) {
        d.error(given.at, "an adapter has 1 to 1000000 buffers for PDUs");
    }
    Some(IntakeConfig {
        rate: receive.value.0,
        buffer: buffer.clamp(1, MOST_QUEUE) as usize,
    })
}

/// Default limit of packets that wait: that of Linux 2.2 for received packets (`net.core.netdev_max_backlog`).
const QUEUE: usize = 300;
const MOST_QUEUE: u64 = 1_000_000;
/// Programs that may compete with a manager.
const MOST_COMPETING: u64 = 20;

/// A signalling manager; `None` if messages cost nothing.
pub(super) fn manager(given: Option<&ManagerFile>, d: &mut Diagnostics) -> Option<ManagerConfig> {
    let given = given?;
    let cost =
        |cost: &Option<At<CostText>>| cost.as_ref().map_or(Cost::NOTHING, |cost| cost.value.0);
    let (message, hand_over) = (cost(&given.message), cost(&given.hand_over));
    if message.is_nothing() && hand_over.is_nothing() {
        d.warning(given.place, "this manager takes no time")
            .hint("for example: manager: { message: 2ms, hand_over: 300us }");
    }
    Some(ManagerConfig {
        message,
        hand_over,
        // A share is at most 1.
        release: given
            .release
            .as_ref()
            .map_or(1_000_000, |share| (share.value.0 * 1e6).round() as u32),
        queue: match &given.queue {
            None => manager::QUEUE,
            some => queue(some.as_ref(), d),
        },
        sharing: given.competing.as_ref().map(|given| sharing(given, d)),
    })
}

/// The programs that compete with a manager.
fn sharing(given: &CompetingFile, d: &mut Diagnostics) -> Sharing {
    let programs = given.programs.as_ref();
    if let Some(programs) = programs.filter(|programs| programs.value > MOST_COMPETING) {
        d.error(programs.at, "0 to 20 programs compete with a manager");
    }
    let mut time = |time: &Option<At<Time>>, usual: u64, least: u64, most: u64| {
        let Some(time) = time else {
            return Duration::from_millis(usual);
        };
        let (least, most) = (Duration::from_millis(least), Duration::from_secs(most));
        if !(least..=most).contains(&time.value.0) {
            d.error(
                time.at,
                "a time in the kernel or in user mode is 0s to 1s, a life 1ms to 1h",
            );
        }
        time.value.0.clamp(least, most)
    };
    Sharing {
        kernel: time(&given.kernel, 20, 0, 1),
        user: time(&given.user, 20, 0, 1),
        life: time(&given.life, 100, 1, 3600),
        competing: programs.map_or(1, |programs| programs.value.min(MOST_COMPETING)) as u8,
        nice: given.nice.as_ref().map_or(0, |nice| nice.value.0),
    }
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
    if host.kernel.as_ref().is_some_and(At::get) {
        let text = format!("host {name} is a Linux kernel, which takes the time that it takes");
        d.warning(at, text)
            .hint(format!("{what}: has an effect on embedded hosts only"));
    }
}

/// The CPU of the host with this name; `None` if packets and messages cost nothing.
pub(super) fn of(name: &str, host: &HostFile, d: &mut Diagnostics) -> Option<Box<CpuConfig>> {
    let manager = manager(host.manager.as_ref(), d);
    if let Some(given) = &host.manager {
        not_of_kernels("manager", (name, host), given.place, d);
    }
    let cpu = match &host.cpu {
        None => CpuConfig {
            costs: [Costs::default(); 5],
            order: Order::Class,
            jitter: 0,
            queue: QUEUE,
            manager: Some(manager?),
            seed: 0,
        },
        Some(given) => CpuConfig {
            manager,
            ..of_packets(given, (name, host), d)
        },
    };
    Some(Box::new(cpu))
}

/// The CPU as its own section says.
fn of_packets(given: &CpuFile, (name, host): (&str, &HostFile), d: &mut Diagnostics) -> CpuConfig {
    let cost = |cost: &Option<At<CostText>>| cost.as_ref().map(|cost| cost.value.0);
    let usual = Costs {
        send: cost(&given.send).unwrap_or(Cost::NOTHING),
        receive: cost(&given.receive).unwrap_or(Cost::NOTHING),
        ack: cost(&given.ack),
    };
    let over = |usual: Costs, other: &Option<CostsFile>| {
        other.as_ref().map_or(usual, |other| Costs {
            send: cost(&other.send).unwrap_or(usual.send),
            receive: cost(&other.receive).unwrap_or(usual.receive),
            ack: cost(&other.ack).or(usual.ack),
        })
    };
    let [lane, mpoa, clip, native] =
        [&given.lane, &given.mpoa, &given.clip, &given.native].map(|other| over(usual, other));
    let costs = [lane, mpoa, clip, native, over(native, &given.atp)];
    let nothing = |costs: &Costs| {
        let all = [costs.send, costs.receive, costs.ack.unwrap_or_default()];
        all.into_iter().all(Cost::is_nothing)
    };
    if costs.iter().all(nothing) && host.manager.is_none() {
        d.warning(
            given.place,
            format!("packets cost the CPU of host {name} no time"),
        )
        .hint("for example: cpu: { send: 80us + 60ns/octet, receive: 100us + 60ns/octet }");
    }
    not_of_kernels("cpu", (name, host), given.place, d);
    CpuConfig {
        costs,
        order: given
            .service
            .as_ref()
            .map_or(Order::Class, |order| order.value.0),
        // A jitter is at most 1.
        jitter: given
            .jitter
            .as_ref()
            .map_or(0, |jitter| (jitter.value.0 * 1e6).round() as u32),
        queue: queue(given.queue.as_ref(), d),
        manager: None,
        seed: 0,
    }
}

fn queue(given: Option<&At<u64>>, d: &mut Diagnostics) -> usize {
    let Some(given) = given else {
        return QUEUE;
    };
    if !(1..=MOST_QUEUE).contains(&given.value) {
        d.error(given.at, "a queue holds 1 to 1000000 packets");
    }
    given.value.min(MOST_QUEUE) as usize
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
                "a queue holds 1 to 1000000",
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
                "0 to 20 programs",
            ),
            (
                ", manager: { message: 1ms, competing: { nice: -21 } }",
                "",
                "whole number from -20",
            ),
            (
                ", manager: { message: 1ms, competing: { life: 0s } }",
                "",
                "a life 1ms to 1h",
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
