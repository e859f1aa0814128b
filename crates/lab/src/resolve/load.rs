//! Load in per cent of a link: one flow for each size of its ladder.

use super::limits::MAX_FLOWS;
use super::{capacity, events, ports};
use crate::diag::{Diagnostics, Span};
use crate::file::{ArrivalsText, FrameSizes, Kind, Process, TrafficFile};
use crate::model::{
    Arrivals, Flow, FlowKind, GivenRate, Lab, Load, SendRate, Share, least_frame, most_frame,
    payload_of,
};
use crate::trace::Traces;
use aerostat_node::rate::PacketRate;
use aerostat_proto::Duration;
use std::collections::BTreeMap;

/// The tick of mgen 3.0 on Linux 2.2. Source: the thesis, chapter 5.4.
const TICK: Duration = Duration::from_millis(10);
/// Fewest frames of a period of [`Process::OnOff`] on average.
const LEAST_OF_PERIOD: f64 = 0.01;
/// Pause between two sizes of a ladder, so that queues are empty.
const PAUSE: Duration = Duration::from_secs(1);

/// The flow as the file says it, or a flow for each size of a load. A flow that is no load stays as it is.
pub(super) fn spread(
    section: &TrafficFile,
    flow: Flow,
    (lab, traces): (&Lab, &mut Traces),
    d: &mut Diagnostics,
) -> Vec<Flow> {
    if section.kind.value.0 != Kind::Load {
        foreign(section, d);
        return vec![flow];
    }
    let process = section.arrivals.get();
    if !fits(section, process, d) {
        return Vec::new();
    }
    match process {
        Process::Trace => of_trace(section, flow, (lab, traces), d)
            .into_iter()
            .collect(),
        _ => of_share(section, process, &flow, lab, d).unwrap_or_default(),
    }
}

/// Tells keys of load at another kind of traffic.
fn foreign(section: &TrafficFile, d: &mut Diagnostics) {
    let place = (section.place, &["kind"][..]);
    section.given.refuse(&KEYS, "is for kind: load", place, d);
}

/// The keys of load, except those of ticks.
const KEYS: [&str; 8] = [
    "load", "link", "layer", "frames", "arrivals", "on", "off", "trace",
];

/// False if a key is there that the process does not know, or if one is missing.
fn fits(section: &TrafficFile, process: Process, d: &mut Diagnostics) -> bool {
    let mut well = true;
    let keys = ["on", "off", "trace", "tick", "spacing"];
    for (key, at) in section.given.of(&keys) {
        let of = match key {
            "tick" | "spacing" => Process::Ticks,
            "on" | "off" => Process::OnOff,
            _ => Process::Trace,
        };
        if of != process {
            well = false;
            d.error(
                at,
                format!("'{key}' is for arrivals: {}", ArrivalsText::word(&of)),
            )
            .rests_in(section.place, ["arrivals"]);
        }
    }
    let needed: &[&str] = match process {
        Process::Trace => &["trace"],
        Process::OnOff => &["load", "on", "off"],
        _ => &["load"],
    };
    let missing = |key: &&&str| section.given.at(key).is_none();
    for key in needed.iter().filter(missing) {
        well = false;
        d.error(section.kind.at, format!("this load needs '{key}:'"))
            .hint("for example: load: 50%, arrivals: onoff, on: 10ms, off: 30ms; or arrivals: trace, trace: FILE")
            .rests_in(section.place, [*key, "arrivals", "kind"]);
    }
    if process == Process::Trace {
        let wrong = section.given.of(&KEYS);
        for (key, at) in wrong.filter(|(key, _)| !matches!(*key, "arrivals" | "trace")) {
            well = false;
            d.error(
                at,
                format!("a trace has times and sizes of its own: it takes no '{key}'"),
            )
            .rests_in(section.place, ["arrivals"]);
        }
    }
    well
}

/// One flow with the packets of a file.
fn of_trace(
    section: &TrafficFile,
    flow: Flow,
    (lab, traces): (&Lab, &mut Traces),
    d: &mut Diagnostics,
) -> Option<Flow> {
    let given = section.trace.as_ref()?;
    let file = &given.value.0;
    let trace = match traces.of(file, &d.beside(file)) {
        Ok(trace) => trace,
        Err(why) => {
            d.error(given.at, format!("{file}: {why}"))
                .hint("each line has a time in seconds and the octets of an Ethernet frame, such as 0.25 1518");
            return None;
        }
    };
    let list = &trace.list;
    let payload = list.iter().map(|one| one.size).max()?;
    let frame = payload + least_frame() - payload_of(least_frame());
    let last = list.last()?.at;
    let mut flow = flow;
    if !fits_mtu(&flow, frame, given.at, lab, d) {
        return None;
    }
    // The mean rate of the trace, for the settings; the times of the trace count.
    let gaps = u64::try_from(list.len()).ok()?.saturating_sub(1).max(1);
    let second = Duration::from_secs(1);
    let rate = PacketRate::new(gaps, if last.is_zero() { second } else { last })?;
    flow.kind = udp(payload, rate, false);
    flow.duration.get_or_insert(last + Duration::from_nanos(1));
    flow.load = Some(Load {
        name: flow.name.clone(),
        share: None,
        of: capacity::of(section, &flow, lab, d)?,
        frame,
        arrivals: Arrivals::Trace(trace),
    });
    Some(flow)
}

/// A flow for each size of frames.
fn of_share(
    section: &TrafficFile,
    process: Process,
    flow: &Flow,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<Vec<Flow>> {
    let share = section.load.as_ref()?;
    let arrivals = match process {
        Process::Periodic => Arrivals::Periodic,
        Process::Ticks => Arrivals::Ticks,
        Process::Poisson => Arrivals::Poisson,
        Process::OnOff => on_off(section, share.value.0, d)?,
        Process::Trace => return None,
    };
    let sizes = match &section.frames {
        Some(given) => given.0.iter().map(|size| (size.value.0, size.at)).collect(),
        None => FrameSizes::DEFAULT
            .map(|size| (size, section.kind.at))
            .to_vec(),
    };
    let step = match (&section.start, flow.duration) {
        _ if sizes.len() == 1 => Duration::ZERO,
        (Some(_), Some(duration)) => duration + PAUSE,
        _ => {
            let text = format!(
                "a ladder of {} sizes needs 'start:' and 'duration:'",
                sizes.len()
            );
            d.error(section.kind.at, text)
                .hint("each size is sent for the duration, one second after the size before; frames: 512 is a single size")
                .rests_in(section.place, ["start", "duration", "frames", "kind"]);
            return None;
        }
    };
    let of = capacity::of(section, flow, lab, d)?;
    let (mut flows, mut told) = (Vec::new(), false);
    for (index, (frame, at)) in (0_u16..).zip(&sizes) {
        let frame = *frame;
        if sizes
            .iter()
            .take(index.into())
            .any(|(before, _)| *before == frame)
        {
            d.error(*at, format!("the size {frame} stands here twice"))
                .hint("each size of a ladder is a flow with the name of the load and the size")
                .rests_in(section.place, ["frames"]);
            continue;
        }
        if !fits_mtu(flow, frame, *at, lab, d) {
            continue;
        }
        let Some(rate) = of.frames(frame, share.value.0) else {
            d.error(
                share.at,
                format!(
                    "frames of {frame} octets would be fewer than one in eleven days, or too many"
                ),
            );
            continue;
        };
        if short_periods(section, &arrivals, (frame, rate), d) {
            return None;
        }
        let mut one = flow.clone();
        if sizes.len() > 1 {
            one.name = format!("{}-{frame}", flow.name);
        }
        one.kind = udp(payload_of(frame), rate, process == Process::Poisson);
        one.start += step * u32::from(index);
        one.port = flow.port.map(|port| port.saturating_add(index));
        if process == Process::Ticks {
            one.ticks = Some(ports::ticks(section, one.kind, Some(TICK), d)?);
        }
        let load = Load {
            name: flow.name.clone(),
            share: Some(share.value.0),
            of,
            frame,
            arrivals: arrivals.clone(),
        };
        if !told {
            told = capacity::above_own_link(share.at, &load, flow, lab, d);
        }
        one.load = Some(load);
        flows.push(one);
    }
    Some(flows)
}

/// Tells that ladders make more flows than a lab may have.
pub(super) fn limits(sections: &[&TrafficFile], lab: &Lab, d: &mut Diagnostics) {
    if lab.traffic.len() > MAX_FLOWS
        && let Some(section) = sections.get(MAX_FLOWS)
    {
        let flows = lab.traffic.len();
        d.error(
            section.place,
            format!("with its ladders the lab has {flows} flows, and {MAX_FLOWS} are the most"),
        )
        .hint("each size of 'frames:' is a flow");
    }
}

/// Tells flows of ladders that have the name of another flow.
pub(super) fn names(sections: &[&TrafficFile], lab: &Lab, d: &mut Diagnostics) {
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    for (flow, section) in lab.traffic.iter().zip(sections) {
        // Two sections with one name were told where they are read.
        let sizes = section.frames.as_ref().map_or(2, |frames| frames.0.len());
        let of_ladder = sizes > 1 && flow.load.as_ref().is_some_and(|load| load.share.is_some());
        let before = known.insert(&flow.name, of_ladder);
        if before.is_some_and(|before| before || of_ladder) {
            let text = format!(
                "two flows with one name: '{}', of a size of a ladder",
                flow.name
            );
            d.error(section.place, text)
                .hint("give the other one another 'name:'")
                .rests_on(["traffic/*/name", "traffic/*/frames"]);
        }
    }
}

/// Periods and silence, within which the load is at most 100 %.
fn on_off(section: &TrafficFile, share: Share, d: &mut Diagnostics) -> Option<Arrivals> {
    let (on, off) = (section.on.as_ref()?, section.off.as_ref()?);
    let (mean_on, mean_off) = (on.value.0, off.value.0);
    if mean_on.is_zero() {
        d.error(on.at, "a period has a length");
        return None;
    }
    // Shares have at most 11 digits, and times at most 20.
    let peak = u128::from(share.numerator) * (mean_on + mean_off).as_nanos();
    let most = u128::from(share.denominator) * mean_on.as_nanos();
    if peak > most {
        let per_cent = peak as f64 / most as f64 * 100.0;
        d.error(
            section.load.as_ref()?.at,
            format!("the load within a period would be {per_cent:.1} %, and a link carries at most 100 %"),
        )
        .hint("the load is the mean over periods and silence: a lower load, a longer 'on:', or a shorter 'off:'")
        .rests_in(section.place, ["on", "off"]);
        return None;
    }
    Some(Arrivals::OnOff {
        on: mean_on,
        off: mean_off,
    })
}

/// Tells periods that nearly never contain a frame; true if it did. Each period is drawn, so this bounds the work for a
/// frame.
fn short_periods(
    section: &TrafficFile,
    arrivals: &Arrivals,
    (frame, mean): (usize, PacketRate),
    d: &mut Diagnostics,
) -> bool {
    let (Arrivals::OnOff { on, off }, Some(given)) = (arrivals, &section.on) else {
        return false;
    };
    // All frames are in periods, so a period has those of its own time and of the silence before it.
    let frames = (*on + *off).as_nanos() as f64 / mean.mean_gap();
    if frames >= LEAST_OF_PERIOD {
        return false;
    }
    let text = format!(
        "a period has {frames:.1e} frames of {frame} octets on average, and {LEAST_OF_PERIOD} are the least"
    );
    let least = (mean.mean_gap() * LEAST_OF_PERIOD).ceil();
    d.error(given.at, text)
        .hint(format!(
            "at this load 'on:' and 'off:' are together at least {least}ns"
        ))
        .rests_in(section.place, ["load", "off", "frames"]);
    true
}

fn udp(size: usize, packets: PacketRate, poisson: bool) -> FlowKind {
    let given = GivenRate::Packets(1e9 / packets.mean_gap());
    FlowKind::Udp {
        size,
        rate: SendRate { given, packets },
        poisson,
    }
}

/// Tells frames that are larger than the network carries; load is never fragmented.
fn fits_mtu(flow: &Flow, frame: usize, at: Span, lab: &Lab, d: &mut Diagnostics) -> bool {
    let ends = [(flow.from, flow.segment[0]), (flow.to, flow.segment[1])];
    let mtu = events::mtu(lab, (ends, flow.over));
    let Some(mtu) = mtu.filter(|mtu| frame > most_frame(*mtu)) else {
        return true;
    };
    let most = most_frame(mtu);
    let more = match ends {
        [(_, Some(_)), _] | [_, (_, Some(_))] => {
            "an Ethernet segment carries no larger ones".to_owned()
        }
        ends => {
            let firsts = ends.map(|(node, _)| lab.node(node).lecs().first());
            let mut elans = firsts.into_iter().flatten().map(|lec| lab.elan(lec.elan));
            let elan = elans.clone().find(|elan| !elan.is_lane());
            let of = elan
                .or(elans.next())
                .map_or("network".to_owned(), ToString::to_string);
            format!("'mtu:' of {of} allows more")
        }
    };
    d.error(
        at,
        format!("a frame of {frame} octets does not fit the MTU of {mtu}"),
    )
    .hint(format!("{most} octets are the most here; {more}"))
    .rests_on([
        "lane/elans/*/mtu",
        "clip/*/mtu",
        "lines/*/mtu",
        "hosts/*/elans",
    ]);
    false
}

#[cfg(test)]
mod tests {
    use crate::build::programs;
    use crate::model::{FlowKind, LoadOf};
    use crate::resolve::tests::{SMALL, lab, told};
    use aerostat_node::ip::apps::{AppKind, Pattern};
    use aerostat_proto::Duration;

    fn with(flow: &str) -> String {
        format!("{SMALL}traffic: [{{ from: x, to: y, {flow} }}]\n")
    }

    #[test]
    fn a_load_is_an_exact_share_of_a_link() {
        let text = with("kind: load, load: 33.3%, frames: 512, link: s1-s2, arrivals: poisson");
        let lab = lab(&text);
        let [flow] = &lab.traffic[..] else {
            panic!("{:?}", lab.traffic);
        };
        let FlowKind::Udp {
            size,
            rate,
            poisson: true,
        } = flow.kind
        else {
            panic!("{:?}", flow.kind);
        };
        // 512 octets with header and check sequence: 494 of IP, 24 of LANE and AAL5: 11 cells.
        let load = flow.load.as_ref().unwrap();
        assert_eq!((size, load.of.units(512)), (512 - 46, 11));
        let nanos = 1_000_000_u128 * 11 * 424 * 1000 * 1_000_000_000 / (149_760_000 * 333);
        assert_eq!(rate.packets.after(1_000_000).as_nanos(), nanos);
    }

    #[test]
    fn a_ladder_is_a_flow_for_each_size_one_after_the_other() {
        let lab = lab(&with(
            "kind: load, load: 50%, start: 3s, duration: 2s, port: 7000, group: all",
        ));
        let seen = lab.traffic.iter().map(|flow| {
            let seconds = flow.start.as_secs_f64();
            (
                flow.name.as_str(),
                seconds,
                flow.port.unwrap(),
                flow.group.as_deref().unwrap(),
            )
        });
        let seen: Vec<_> = seen.collect();
        assert_eq!(seen.len(), 7);
        assert_eq!(seen[0], ("x-y-64", 3.0, 7000, "all"));
        assert_eq!(seen[6], ("x-y-1518", 21.0, 7006, "all"));
        assert!(matches!(
            lab.traffic[0].load.as_ref().unwrap().of,
            LoadOf::Cells { .. }
        ));
    }

    #[test]
    fn periods_are_faster_than_the_mean() {
        let lab = lab(&with(
            "kind: load, load: 25%, frames: 64, arrivals: onoff, on: 1ms, off: 2ms",
        ));
        let FlowKind::Udp { rate: mean, .. } = lab.traffic[0].kind else {
            panic!("{:?}", lab.traffic);
        };
        let program = programs(&lab).remove(0).program;
        let AppKind::UdpSource { rate, pattern, .. } = program.kind else {
            panic!("{program:?}");
        };
        assert_eq!(rate.after(3_000_000), mean.packets.after(1_000_000));
        let (on, off) = (Duration::from_millis(1), Duration::from_millis(2));
        assert_eq!(pattern, Pattern::OnOff { on, off });
    }

    #[test]
    fn periods_without_a_frame_are_told_with_their_numbers() {
        let of = |on: &str, off: &str| {
            let load = format!("load: 1%, frames: 64, arrivals: onoff, on: {on}, off: {off}");
            told(&with(&format!("kind: load, {load}")))
        };
        // 72 octets of cells at 1 % of 155.52 Mb/s, half of the time: a frame each 272 us within periods.
        for time in ["1ns", "1us"] {
            let said = of(time, time);
            assert!(
                said.contains("frames of 64 octets on average, and 0.01 are"),
                "{said}"
            );
            let least = said.split("together at least ").nth(1).expect("a hint");
            let least = least.split_whitespace().next().expect("a time");
            assert!(!of(least, time).contains("error"), "{least}");
        }
    }

    #[test]
    fn ticks_are_those_of_the_thesis() {
        let lab = lab(&with(
            "kind: load, load: 5%, frames: 1046, arrivals: ticks, spacing: 76us",
        ));
        let ticks = lab.traffic[0].ticks.unwrap();
        assert_eq!(
            (ticks.tick, ticks.spacing),
            (Duration::from_millis(10), Duration::from_micros(76))
        );
    }

    #[test]
    fn mistakes() {
        for (flow, at, says) in [
            ("kind: load", "load }", "needs 'load:'"),
            ("kind: load, load: 0%", "0%", "above 0 %"),
            ("kind: load, load: 100.1%", "100.1%", "at most 100 %"),
            ("kind: load, load: 0.5", "0.5", "per cent of a link"),
            ("kind: load, load: 1e1%", "1e1%", "per cent of a link"),
            (
                "kind: load, load: 50%",
                "load, load",
                "ladder of 7 sizes needs 'start:' and 'duration:'",
            ),
            ("kind: load, load: 50%, frames: []", "[] }", "1 to 64 sizes"),
            (
                "kind: load, load: 50%, frames: 63",
                "63",
                "at least 64 octets",
            ),
            (
                "kind: load, load: 50%, frames: [64, 1519], start: 1s, duration: 1s",
                "1519",
                "1518 octets are the most",
            ),
            (
                "kind: load, load: 50%, frames: [64, 128, 64 ], start: 1s, duration: 1s",
                "64 ]",
                "the size 64 stands here twice",
            ),
            (
                "kind: load, load: 50%, frames: 64, link: s9",
                "s9",
                "no link 's9'",
            ),
            (
                "kind: load, load: 50%, frames: 64, layer: ethernet",
                "ethernet }",
                "no Ethernet",
            ),
            (
                "kind: load, load: 50%, frames: 64, layer: ethernet, link: 11Mbps",
                "11Mbps",
                "no Ethernet",
            ),
            (
                "kind: load, load: 50%, frames: 64, rate: 5pps",
                "5pps",
                "no rate and no size",
            ),
            (
                "kind: load, load: 50%, frames: 64, on: 1s",
                "1s",
                "'on' is for arrivals: onoff",
            ),
            (
                "kind: load, load: 50%, frames: 64, tick: 1s",
                "1s",
                "'tick' is for arrivals: ticks",
            ),
            (
                "kind: load, load: 50%, frames: 64, arrivals: onoff, on: 1s",
                "load, load",
                "needs 'off:'",
            ),
            (
                "kind: load, load: 50%, frames: 64, arrivals: onoff, on: 1s, off: 2s",
                "50%",
                "within a period would be 150.0 %",
            ),
            (
                "kind: load, load: 50%, arrivals: trace, trace: t.txt",
                "50%",
                "takes no 'load'",
            ),
            (
                "kind: load, arrivals: trace, trace: ../t.txt",
                "../t.txt",
                "beside the lab file",
            ),
            (
                "kind: load, arrivals: trace, trace: /dev/zero",
                "/dev/zero",
                "beside the lab file",
            ),
            (
                "kind: load, arrivals: trace, trace: no-such-file.txt",
                "no-such-file.txt }",
                "no-such-file.txt: ",
            ),
            (
                "kind: udp, rate: 5pps, load: 50%",
                "50%",
                "'load' is for kind: load",
            ),
        ] {
            let text = with(flow);
            let said = crate::parse("t.atm.yml", &text, &[])
                .expect_err(flow)
                .to_string();
            assert!(said.contains(says), "{flow}: {said}");
            let line = text.lines().last().expect("a line");
            let column = line.find(at).expect("a place") + 1;
            assert!(
                said.contains(&format!(":{column}: error")),
                "{flow}: {said}"
            );
        }
    }

    #[test]
    fn ladders_count_as_the_flows_that_they_are() {
        let flow = "{ name: N, from: x, to: y, kind: load, load: 1%, start: 1s, duration: 1s }";
        let flows: Vec<String> = (0..1430)
            .map(|n| flow.replace('N', &format!("f{n}")))
            .collect();
        let text = format!("{SMALL}traffic: [{}]\n", flows.join(",\n"));
        let said = crate::parse("t.atm.yml", &text, &[])
            .expect_err("too many")
            .to_string();
        assert!(
            said.contains("the lab has 10010 flows, and 10000 are the most"),
            "{said}"
        );
        let text = format!(
            "{SMALL}traffic: [{}, {{ name: f-64, from: y, to: x, kind: ping }}]\n",
            flow.replace('N', "f")
        );
        let said = crate::parse("t.atm.yml", &text, &[]).err();
        // The ping is read after the ladder, whose size has the name already.
        assert!(said.is_some_and(|said| said.to_string().contains("f-64")));
    }
}
