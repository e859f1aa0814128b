//! Links out of the lab that begin at an end system: the far end is its switch.

use super::direct::{self, End};
use crate::diag::Diagnostics;
use crate::field::{At, Optional as _};
use crate::file::{Atm, OutsideOptions};
use crate::model::{Lab, NodeId};

/// Refuses keys of a link from an end system that mean something at a switch alone.
pub(super) fn keys(options: &OutsideOptions, name: &str, d: &mut Diagnostics) {
    let own = format!("it stands at {name} itself, under 'hosts:' or 'routers:'");
    let switches = format!("{name} is an end system, and the far end is its switch");
    for (key, at) in (options.given).of(&["trunk", "routes", "address", "ilmi", "uni"]) {
        let of_switches = matches!(key, "trunk" | "routes");
        d.error(at, format!("'{key}' is for the link of a switch"))
            .hint(if of_switches { &switches } else { &own })
            .rests_on(["links/*/0"]);
    }
    direct::no_effect(&options.given, options.police.plain(), d);
}

/// Checks the ATM address that an end system has by itself; `uplink` if its link leads out of the lab.
pub(super) fn own_address(end: &End<'_>, address: &At<Atm>, uplink: bool, d: &mut Diagnostics) {
    let name = end.text();
    if !uplink {
        d.error(address.at, format!("the lab gives {name} its ATM address"))
            .hint("'address' is for an end system whose link leads out of the lab")
            .rests_in(end.place, ["on"])
            .rests_on(["links/*/0", "links/*/1/."]);
    } else if end.ilmi.get() {
        d.error(address.at, format!("{name} gets its ATM address by ILMI"))
            .hint("leave 'address' out, or 'ilmi'; 'mac' gives it another ESI")
            .rests_in(end.place, ["ilmi"]);
    }
}

/// Refuses ELANs of the lab's own servers at an end system whose link leads out of the lab.
pub(super) fn servers_elsewhere(end: &End<'_>, id: NodeId, lab: &Lab, d: &mut Diagnostics) {
    for lec in lab.node(id).lecs() {
        let elan = lab.elans.get(lec.elan.0);
        let elan = elan.filter(|elan| end.elans.contains(&&*elan.name));
        // A name that does not exist has been reported.
        let Some(elan) = elan.filter(|elan| elan.is_own()) else {
            continue;
        };
        let (name, elan) = (end.text(), &elan.name);
        let text = format!("{name} cannot join ELAN {elan}: its link leads out of the lab");
        d.error(end.name.at, text)
            .hint(format!(
                "give ELAN {elan} servers outside: 'lecs: well-known'"
            ))
            .rests_in(end.place, ["elan", "elans"])
            .rests_on(["lane/on", "lane/elans"]);
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Side;
    use crate::resolve::tests::{lab, told};
    use aerostat_wire::{AtmAddress, Vc};

    const UP: &str = "
switches: {}
links: [[x, { name: up, udp: { local: 127.0.0.1:7001, peer: 127.0.0.1:7002 } }]]
lane: { elans: { a: { subnet: 10.1.0.0/24, lecs: well-known } } }
pvcs: [{ from: x, vc: 0.2000, to: up }]
hosts:
  x: { elan: a, ip: 10.1.0.1, ilmi: true, gateway: 10.1.0.254, sockets: [{ call: 47.0005.80FFE1000000F21A26D8.0020EA0000B0.00 }] }
";

    #[test]
    fn an_end_system_has_the_user_side_of_a_link_out_of_the_lab() {
        let lab = lab(UP);
        let [x, up] = ["x", "up"].map(|name| lab.find(name).expect("a node"));
        assert_eq!(lab.back_to_back(x), Some((up, Side::User)));
        assert_eq!(lab.uplink(x).map(|(peer, _)| peer), Some(up));
        assert_eq!(lab.uplink(up), None);
        // A label as on any link of a host, also above those that a link between two hosts keeps for calls.
        assert_eq!(
            lab.pvcs[0].ends,
            [(x, Vc::new(0, 2000)), (up, Vc::new(0, 2000))]
        );
        assert_eq!((lab.links.len(), lab.links[0].name.as_str()), (1, "up-x"));
    }

    #[test]
    fn an_end_system_may_have_an_address_of_its_own() {
        let own = "47.0005.80FFE1000000F21A26D8.0020EA0000B1.00";
        let lab = lab(&UP.replace("ilmi: true", &format!("address: {own}")));
        let x = lab.node(lab.find("x").expect("a node"));
        let own: AtmAddress = own.parse().expect("an address");
        assert_eq!(x.attachment().expect("a link").address, own);
        assert_eq!(x.lecs()[0].address, own);
    }

    #[test]
    fn mistakes() {
        let own = "address: 47.0005.80FFE1000000F21A26D8.0020EA0000B1.00";
        for (was, is, says) in [
            (
                "{ name: up,",
                "{ name: up, trunk: user, routes: ['47'],",
                "'trunk' is for the link of a switch",
            ),
            (
                "{ name: up,",
                "{ name: up, ilmi: true,",
                "it stands at x itself, under 'hosts:' or 'routers:'",
            ),
            (
                "{ name: up,",
                "{ name: up, uni: 3.0,",
                "'uni' is for the link of a switch",
            ),
            (
                "{ name: up,",
                "{ name: up, police: true,",
                "'police' has no effect: this link has no switch",
            ),
            (
                "ilmi: true",
                "ilmi: true, link: { rate: ds3 }",
                "is described under 'links:'",
            ),
            (
                "ilmi: true",
                &format!("ilmi: true, {own}"),
                "x gets its ATM address by ILMI",
            ),
            (
                "[[x,",
                "[[x, { udp: { local: 127.0.0.1:7003, peer: 127.0.0.1:7004 } }], [x,",
                "x has a link already, to outside1",
            ),
            ("[[x,", "[[w,", "there is no switch 'w'"),
            (
                "switches: {}",
                "switches: { s: {} }\nrouters: { r: { on: s, elans: { b: 10.2.0.1 } } }",
                "there is no ELAN 'b'",
            ),
        ] {
            assert!(UP.contains(was), "{was}");
            let said = told(&UP.replacen(was, is, 1));
            assert!(said.contains(says), "{is}: {said}");
        }
    }

    #[test]
    fn elans_of_the_labs_own_servers_are_on_the_other_side() {
        let text = UP
            .replace("switches: {}", "switches: { s: {} }")
            .replace("lane: { elans", "lane: { on: s, elans")
            .replace(", lecs: well-known", "");
        let said = told(&text);
        let says = "x cannot join ELAN a: its link leads out of the lab";
        assert!(said.contains(says), "{said}");
        assert!(
            said.contains("give ELAN a servers outside: 'lecs: well-known'"),
            "{said}"
        );
    }
}
