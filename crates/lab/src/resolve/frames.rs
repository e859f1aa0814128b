//! Links inside the lab that are Ethernets whose frames carry cells: `ethernet:` of a link.

use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{LabFile, LinkFile, LinkOptions};
use aerostat_node::atm::Framing;
use aerostat_wire::cell_frame;

/// Default rate, bit/s.
const RATE: u64 = 10_000_000;
/// Default number of cells in a frame: an MTU of 1500 holds them and a control word.
const CELLS: u16 = 28;

/// The frames of a link; a wrong number of cells is the default.
pub(super) fn of(options: Option<&LinkOptions>) -> Option<Framing> {
    let frames = options?.ethernet.as_ref()?;
    let rate = frames.rate.as_ref().map_or(RATE, |rate| rate.value.0);
    let cells = frames.cells.as_ref().map(At::get);
    Some(Framing::new(
        rate,
        cells.map_or(CELLS, |cells| fits(cells).unwrap_or(CELLS)),
    ))
}

/// A number of cells that a frame holds.
fn fits(cells: u64) -> Option<u16> {
    let cells = u16::try_from(cells).ok()?;
    (1..=cell_frame::MAX_CELLS)
        .contains(&cells)
        .then_some(cells)
}

/// Refuses what does not fit together.
pub(super) fn check(file: &LabFile, d: &mut Diagnostics) {
    for options in all(file) {
        let Some(frames) = &options.ethernet else {
            continue;
        };
        if let Some(rate) = &options.rate {
            d.error(rate.at, "'rate' and 'ethernet': a link has one of them")
                .hint("the rate of an Ethernet is a key of its own: ethernet: { rate: 100Mbps }")
                .rests_in(options.place, ["ethernet"]);
        }
        if let Some(cells) = frames
            .cells
            .as_ref()
            .filter(|cells| fits(cells.value).is_none())
        {
            let text = format!("a frame holds 1 to {} cells", cell_frame::MAX_CELLS);
            d.error(cells.at, text);
        }
        let loss = options.loss.as_ref().filter(|given| given.value.0 > 0.0);
        let errors = options
            .bit_errors
            .as_ref()
            .filter(|given| given.value.0 > 0.0);
        for given in loss.into_iter().chain(errors) {
            d.error(given.at, "an Ethernet loses frames, and no single cells")
                .hint("leave it out: errors of an Ethernet are not part of the model")
                .rests_in(options.place, ["ethernet"]);
        }
    }
}

/// The options of all links inside the lab.
fn all(file: &LabFile) -> impl Iterator<Item = &LinkOptions> {
    let links = file.links.iter().flatten().filter_map(|link| match link {
        LinkFile::Trunk(link) => link.options.as_ref(),
        LinkFile::Outside(_) => None,
    });
    let hosts = file
        .hosts
        .0
        .iter()
        .filter_map(|(_, host)| host.link.as_ref());
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.filter_map(|(_, router)| router.link.as_ref());
    let lane = file.lane.iter();
    let servers = lane.flat_map(|lane| {
        let standby = lane.standby.iter().flatten();
        lane.link
            .iter()
            .chain(standby.filter_map(|one| one.link.as_ref()))
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
        assert_eq!(link("x-s1").rate, framing.full_rate());
        assert_eq!(link("y-s2").framing, None);
    }

    #[test]
    fn mistakes() {
        for (options, says) in [
            (
                "rate: oc3, ethernet: {}",
                "'rate' and 'ethernet': a link has one of them",
            ),
            ("ethernet: { cells: 173 }", "a frame holds 1 to 172 cells"),
            ("ethernet: { cells: 0 }", "a frame holds 1 to 172 cells"),
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
