//! Links inside the lab that are Ethernets whose frames carry cells: `ethernet:` of a link.

use crate::diag::Diagnostics;
use crate::field::Ways;
use crate::file::{LabFile, LinkFile, LinkOptions};
use aerostat_node::atm::Framing;

/// The frames of a link.
pub(super) fn of(options: &LinkOptions) -> Option<Framing> {
    let frames = options.ethernet.as_ref()?;
    Some(Framing::new(frames.rate.get(), frames.cells.get() as u16))
}

/// Refuses what does not fit together.
pub(super) fn check(file: &LabFile, d: &mut Diagnostics) {
    for options in all(file) {
        if options.ethernet.is_none() {
            continue;
        }
        if let Some(at) = options.rate.at {
            d.error(at, "'rate' and 'ethernet': a link has one of them")
                .hint("the rate of an Ethernet is a key of its own: ethernet: { rate: 100Mbps }")
                .rests_in(options.place, ["ethernet"]);
        }
        for given in [&options.loss, &options.bit_errors, &options.block_errors] {
            let Ways { up, down } = given.get();
            let Some(at) = given.at.filter(|_| up > 0.0 || down > 0.0) else {
                continue;
            };
            d.error(at, "an Ethernet loses frames, and no single cells")
                .hint("leave it out: errors of an Ethernet are not part of the model")
                .rests_in(options.place, ["ethernet"]);
        }
    }
}

/// The options of all links inside the lab.
fn all(file: &LabFile) -> impl Iterator<Item = &LinkOptions> {
    let links = file.links.iter().flatten().filter_map(|link| match link {
        LinkFile::Trunk(link) => Some(&link.options),
        LinkFile::Outside(_) => None,
    });
    let hosts = file.hosts.0.iter().map(|(_, host)| &host.link);
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.map(|(_, router)| &router.link);
    let lane = file.lane.iter();
    let servers = lane.flat_map(|lane| {
        let standby = lane.standby.iter().flatten();
        std::iter::once(&lane.link).chain(standby.map(|one| &one.link))
    });
    links.chain(hosts).chain(routers).chain(servers)
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, lab, told};
    use aerostat_node::atm::Framing;

    #[test]
    fn a_link_may_be_an_ethernet() {
        let text = SMALL
            .replace(
                "[[s1, s2]]",
                "[[s1, s2, { ethernet: { rate: 100Mbps, cells: 172 } }]]",
            )
            .replace("ip: 10.1.0.10", "ip: 10.1.0.10, link: { ethernet: {} }");
        let lab = lab(&text);
        let link = |name: &str| lab.links.iter().find(|link| link.name == name).unwrap();
        assert_eq!(link("s1-s2").framing, Some(Framing::new(100_000_000, 172)));
        let framing = Framing::new(10_000_000, 28);
        assert_eq!(link("x-s1").framing, Some(framing));
        assert_eq!(link("x-s1").rate(), Some(framing.full_rate()));
        assert_eq!(link("y-s2").framing, None);
    }

    #[test]
    fn mistakes() {
        for (options, says) in [
            (
                "rate: oc3, ethernet: {}",
                "'rate' and 'ethernet': a link has one of them",
            ),
            ("ethernet: { cells: 173 }", "cells is 1 to 172"),
            ("ethernet: { cells: 0 }", "cells is 1 to 172"),
            (
                "ethernet: {}, loss: 1%",
                "an Ethernet loses frames, and no single cells",
            ),
            (
                "ethernet: { rate: 11Mbps }",
                "expected 10Mbps, 100Mbps or 1Gbps",
            ),
        ] {
            let said = told(&SMALL.replace("[[s1, s2]]", &format!("[[s1, s2, {{ {options} }}]]")));
            assert!(said.contains(says), "{options}: {said}");
        }
    }
}
