//! The time that packets take in a host: its CPU, and the receive path of its adapter; its clock.

use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{ClockFile, CostText, CostsFile, HostFile};
use crate::model::{Clock, Costs, CpuConfig, IntakeConfig};
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
    let given = host.adapter.as_ref()?;
    let buffer = given.buffer.value;
    if !(1..=MOST_QUEUE).contains(&buffer) {
        d.error(
            given.buffer.at,
            "an adapter has 1 to 1000000 buffers for PDUs",
        );
    }
    Some(IntakeConfig {
        rate: given.receive.value.0,
        buffer: buffer.clamp(1, MOST_QUEUE) as usize,
    })
}

/// Default limit of packets that wait: that of Linux 2.2 for received packets (`net.core.netdev_max_backlog`).
const QUEUE: usize = 300;
const MOST_QUEUE: u64 = 1_000_000;

/// The CPU of the host with this name; `None` if packets cost nothing.
pub(super) fn of(name: &str, host: &HostFile, d: &mut Diagnostics) -> Option<Box<CpuConfig>> {
    let given = host.cpu.as_ref()?;
    let cost = |cost: &Option<At<CostText>>| cost.as_ref().map(|cost| cost.value.0);
    let usual = Costs {
        send: cost(&given.send).unwrap_or(Cost::NOTHING),
        receive: cost(&given.receive).unwrap_or(Cost::NOTHING),
        ack: cost(&given.ack),
    };
    let of = |other: &Option<CostsFile>| {
        other.as_ref().map_or(usual, |other| Costs {
            send: cost(&other.send).unwrap_or(usual.send),
            receive: cost(&other.receive).unwrap_or(usual.receive),
            ack: cost(&other.ack).or(usual.ack),
        })
    };
    let costs = [&given.lane, &given.mpoa, &given.clip, &given.native].map(of);
    let nothing = |costs: &Costs| {
        let all = [costs.send, costs.receive, costs.ack.unwrap_or_default()];
        all.into_iter().all(Cost::is_nothing)
    };
    if costs.iter().all(nothing) {
        d.warning(
            given.place,
            format!("packets cost the CPU of host {name} no time"),
        )
        .hint("for example: cpu: { send: 80us + 60ns/octet, receive: 100us + 60ns/octet }");
    }
    if host.kernel.as_ref().is_some_and(At::get) {
        let text = format!("host {name} is a Linux kernel, which takes the time that it takes");
        d.warning(given.place, text)
            .hint("cpu: has an effect on embedded hosts only");
    }
    Some(Box::new(CpuConfig {
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
        seed: 0,
    }))
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
