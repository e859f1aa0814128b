//! Contracts of LANE; warnings about contracts, and about what is set for them, without an effect.

use super::{calls, outside, queues};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _};
use crate::file::{ElanFile, LabFile, LecFile, LinkFile, QosText};
use crate::model::{Elan, Lab, NodeKind, Pvc, Queues};
use aerostat_wire::{Qos, ServiceCategory, TrafficParams};

/// The highest rate that a TLV of the LECS can tell, cells/s.
const MOST_CELLS: u64 = u32::MAX as u64;

/// The traffic of data direct connections that this text asks for; `None` is best effort.
pub(super) fn of_data_direct(
    given: Option<&At<QosText>>,
    d: &mut Diagnostics,
) -> Option<TrafficParams> {
    let given = given?;
    let Qos { tx, rx } = given.value.0;
    if tx != rx {
        d.error(
            given.at,
            "a data direct connection has the same traffic in both directions",
        )
        .hint("without 'tx:' and 'rx:', for example qos: 'cbr:pcr=2000'");
        return None;
    }
    let class = tx.category?;
    if matches!(class, ServiceCategory::Abr | ServiceCategory::Gfr) {
        d.error(
            given.at,
            format!("LANE has no data direct connections with {class}"),
        )
        .hint("cbr, rt-vbr, nrt-vbr, or ubr with a peak rate");
        return None;
    }
    if tx.max_sdu > 0 {
        d.warning(given.at, "sdu has no effect: the ELAN has a largest frame");
    }
    let traffic = TrafficParams { max_sdu: 0, ..tx };
    Some(traffic).filter(|traffic| *traffic != TrafficParams::ubr(0))
}

/// The traffic of data direct connections of a client: its own, or that of its ELAN.
pub(super) fn of_client(
    section: &LecFile,
    elan: Option<&Elan>,
    d: &mut Diagnostics,
) -> Option<TrafficParams> {
    match &section.qos {
        Some(own) => of_data_direct(Some(own), d),
        None => elan?.data,
    }
}

/// Average and peak rate of connections to the BUS, cells/s.
pub(super) fn of_multicast_send(
    elan: &ElanFile,
    foreign: bool,
    d: &mut Diagnostics,
) -> Option<[u32; 2]> {
    let section = elan.multicast_send.as_ref()?;
    if foreign {
        d.error(
            section.place,
            "the servers of this ELAN are outside: they tell their own rates",
        )
        .rests_in(elan.place, ["lecs", "les"]);
        return None;
    }
    let peak = section.peak.value.0;
    let average = section.average.plain().unwrap_or(peak);
    if average == 0 || average > peak {
        let at = section.average.place().unwrap_or(section.peak.at);
        d.error(
            at,
            format!("an average rate is 1 cell/s to the peak rate of {peak} cells/s"),
        )
        .rests_in(section.place, ["peak"]);
        return None;
    }
    if peak > MOST_CELLS {
        d.error(
            section.peak.at,
            format!("{MOST_CELLS} cells/s are the most"),
        );
        return None;
    }
    Some([average, peak].map(|rate| u32::try_from(rate).unwrap_or(u32::MAX)))
}

/// Looks for them in a valid lab.
pub(super) fn warn(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    no_policer(file, d);
    no_policer_of_end_systems(file, lab, d);
    minimum_for_nobody(file, lab, d);
    calls::warn(file, lab, d);
}

/// Looks for tolerances of links between switches that have no policer: there, only the link itself can ask for one.
fn no_policer(file: &LabFile, d: &mut Diagnostics) {
    let switch = |end: &At<String>| {
        let mut names = file.switches.0.iter().map(|(name, _)| &name.value.0);
        names.any(|name| *name == end.value)
    };
    let trunks = file.links.iter().flatten().filter_map(|link| match link {
        LinkFile::Trunk(link) if link.ends.iter().all(switch) => Some(&link.options),
        _ => None,
    });
    for options in trunks {
        let polices = options
            .police
            .plain()
            .is_some_and(|police| !police.is_off());
        if let Some(cdvt) = options.cdvt.as_ref().filter(|_| !polices) {
            d.warning(
                cdvt.at,
                "'cdvt' has no effect: nothing polices between these switches",
            )
            .hint("police: true beside it sets policers");
        }
    }
}

/// Looks for tolerances of links to end systems and out of the lab whose switch polices nothing.
fn no_policer_of_end_systems(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let hosts = file.hosts.0.iter().map(|(name, host)| (name, &host.link));
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.map(|(name, router)| (name, &router.link));
    let inside = hosts.chain(routers).filter_map(|(name, options)| {
        let cdvt = options.cdvt.as_ref()?;
        Some((lab.find(&name.value.0)?, cdvt))
    });
    let outside = outside::links(file).zip(lab.outside());
    let outside =
        outside.filter_map(|(link, (node, ..))| Some((node, link.options.cdvt.as_ref()?)));
    for (node, cdvt) in inside.chain(outside) {
        let Some(at) = lab.node(node).attachment() else {
            continue;
        };
        let NodeKind::Switch(switch) = &lab.node(at.switch).kind else {
            continue;
        };
        let port = lab.link(at.link).police.unwrap_or(switch.police);
        let own = |pvc: &Pvc| {
            let here = pvc.ends.iter().any(|(end, _)| *end == node);
            here && pvc.police.is_some_and(|police| !police.is_off())
        };
        if port.is_off() && !lab.pvcs.iter().any(own) {
            d.warning(
                cdvt.at,
                "'cdvt' has no effect: nothing polices at this link",
            )
            .hint("police: true beside it, or at the switch, sets policers");
        }
    }
}

/// Looks for minimum rates of best effort that admission reserves, and that no scheduler serves.
fn minimum_for_nobody(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let wanted = |qos: &Qos| {
        [qos.tx, qos.rx].iter().any(|traffic| {
            let best_effort = matches!(
                traffic.category,
                Some(ServiceCategory::Ubr | ServiceCategory::Abr | ServiceCategory::Gfr)
            );
            best_effort && traffic.min_pcr > 0
        })
    };
    let mut tell = |at: Span| {
        d.warning(
            at,
            "the minimum rate is reserved, and no scheduler on the way serves it",
        )
        .hint("'queues: { scheduler: weighted }' at a switch or a link does");
    };
    for (section, pvc) in file.pvcs.iter().flatten().zip(&lab.pvcs) {
        if let Some(At { value, at }) = &section.qos
            && wanted(&value.0)
            && !queues::weighted(queues::queues_on(pvc, lab))
        {
            tell(*at);
        }
    }
    // The way of a call is not known before it is made.
    let mut ports = lab.switches().flat_map(|(_, _, switch)| {
        let links = switch.ports.iter().map(|port| lab.link(port.link));
        links.map(move |link| Queues::at(switch, link))
    });
    if queues::weighted(&mut ports) {
        return;
    }
    let hosts = file.hosts.0.iter().map(|(_, host)| host);
    for socket in hosts.flat_map(|host| host.sockets.iter().flatten()) {
        if let Some(at) = socket.qos.at.filter(|_| wanted(&socket.qos.get())) {
            tell(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, lab, told};
    use aerostat_wire::TrafficParams;

    #[test]
    fn a_client_has_the_contract_of_its_elan_or_its_own() {
        let text = SMALL.replace(
            "subnet: 10.1.0.0/24",
            "subnet: 10.1.0.0/24, qos: 'cbr:pcr=9'",
        );
        let data = |lec: &str| {
            let text = text.replacen("ip: 10.1.0.10", &format!("ip: 10.1.0.10{lec}"), 1);
            let lab = lab(&text);
            let x = lab.find("x").expect("x");
            lab.node(x).lecs()[0].data
        };
        assert_eq!(data(""), Some(TrafficParams::cbr(9, 0)));
        assert_eq!(
            data(", lec: { qos: 'cbr:pcr=8' }"),
            Some(TrafficParams::cbr(8, 0))
        );
        assert_eq!(data(", lec: { qos: ubr }"), None);
        for (keys, says) in [
            (
                "qos: 'cbr:tx:pcr=9,rx:pcr=8'",
                "the same traffic in both directions",
            ),
            (
                "qos: 'abr:pcr=9'",
                "LANE has no data direct connections with abr",
            ),
            ("qos: 'cbr:pcr=9,sdu=9'", "sdu has no effect"),
            (
                "multicast_send: { peak: 9cells/s, average: 10cells/s }",
                "1 cell/s to the peak rate of 9 cells/s",
            ),
            (
                "multicast_send: { peak: 9cells/s, average: 0cells/s }",
                "1 cell/s",
            ),
            (
                "les: 47.0005.80FFE1000000F21A26D8.0020EA0000E0.00, multicast_send: { peak: 9cells/s }",
                "are outside",
            ),
        ] {
            let said = told(&SMALL.replace(
                "subnet: 10.1.0.0/24",
                &format!("subnet: 10.1.0.0/24, {keys}"),
            ));
            assert!(said.contains(says), "{keys}: {said}");
        }
    }

    #[test]
    fn a_tolerance_where_nothing_polices_is_told() {
        let nothing = "'cdvt' has no effect: nothing polices at this link";
        let host = |link: &str, switch: &str, pvc: &str| {
            let text = SMALL.replacen(
                "ip: 10.1.0.10",
                &format!("ip: 10.1.0.10, link: {{ {link} }}"),
                1,
            );
            let text = text.replace("s1: {}", &format!("s1: {{ {switch} }}"));
            format!("{text}pvcs: [{{ from: x, vc: 0.40, to: y, pcr: 9{pvc} }}]\n")
        };
        for (link, switch, pvc, says) in [
            ("cdvt: 1ms", "", "", true),
            ("cdvt: 1ms, police: false", "police: true", "", true),
            ("cdvt: 1ms", "police: true", "", false),
            ("cdvt: 1ms, police: all", "", "", false),
            ("cdvt: 1ms", "", ", police: true", false),
            ("delay: 1ms", "", "", false),
        ] {
            let said = told(&host(link, switch, pvc));
            assert_eq!(
                said.contains(nothing),
                says,
                "{link} {switch} {pvc}: {said}"
            );
        }
        let outside = |police: &str| {
            let udp = "udp: { local: '127.0.0.1:7', peer: '127.0.0.1:8' }";
            let link = format!("[[s1, s2], [s2, {{ {udp}, cdvt: 1ms{police} }}]]");
            SMALL.replace("[[s1, s2]]", &link)
        };
        assert!(told(&outside("")).contains(nothing));
        assert!(!told(&outside(", police: true")).contains(nothing));
    }

    #[test]
    fn a_minimum_rate_that_nobody_serves_is_told() {
        let says = "the minimum rate is reserved, and no scheduler on the way serves it";
        let weighted = "queues: { scheduler: weighted }";
        let pvc = |qos: &str, switch: &str| {
            let text = SMALL.replace("s2: {}", &format!("s2: {{ {switch} }}"));
            format!("{text}pvcs: [{{ from: x, vc: 0.40, to: y, qos: '{qos}' }}]\n")
        };
        for (qos, switch, odd) in [
            ("ubr:mdcr=9", "", true),
            ("abr:tx:min_pcr=9", "", true),
            ("ubr:mdcr=9", weighted, false),
            ("ubr:pcr=9", "", false),
            ("cbr:pcr=9,min_pcr=8", "", false),
        ] {
            let said = told(&pvc(qos, switch));
            assert_eq!(said.contains(says), odd, "{qos} {switch}: {said}");
            let call = format!("ip: 10.1.0.10, uni: 4.0, sockets: [{{ call: y, qos: '{qos}' }}]");
            let text = SMALL.replace("s2: {}", &format!("s2: {{ {switch} }}"));
            let said = told(&text.replacen("ip: 10.1.0.10", &call, 1));
            assert_eq!(said.contains(says), odd, "call: {qos} {switch}: {said}");
        }
    }

    #[test]
    fn a_parameter_that_stands_twice_is_told() {
        for (qos, says) in [
            (
                "cbr:pcr=9,pcr=8",
                "pcr stands here twice: the last one counts (character 11)",
            ),
            ("UBR:MDCR=1,min_pcr=2", "min_pcr stands here twice"),
            ("cbr:pcr=9,max_pcr=8", ""),
            ("cbr:pcr=9,tx:pcr=8,rx:pcr=7", ""),
            (
                "cbr:tx:pcr=9,sdu=8,rx:pcr=7,sdu=8,max_sdu=9",
                "sdu stands here twice",
            ),
        ] {
            let said = told(&format!(
                "{SMALL}pvcs: [{{ from: x, vc: 0.40, to: y, qos: '{qos}' }}]\n"
            ));
            match says {
                "" => assert!(!said.contains("twice"), "{qos}: {said}"),
                says => assert!(said.contains(says), "{qos}: {said}"),
            }
        }
    }
}
