//! Addresses that an end system has by itself, instead of those of the address plan: on real networks they must differ
//! from those of all other systems.

use crate::diag::{Diagnostics, Span};
use crate::field::At;
use crate::file::{LabFile, Mac};
use crate::model::Lab;
use aerostat_wire::MacAddr;

/// The MAC address of an end system, which is also its ESI: the given one, or that of the plan.
pub(super) fn mac(given: Option<&At<Mac>>, plan: MacAddr, d: &mut Diagnostics) -> MacAddr {
    let Some(given) = given else {
        return plan;
    };
    let mac = given.value.0;
    if mac.is_group() || mac.0 == [0; 6] {
        d.error(given.at, format!("{mac} is no station's MAC address"))
            .hint("the first octet of a station's address is even, such as 02:00:00:00:00:01");
        return plan;
    }
    mac
}

/// Refuses MAC addresses of end systems that another interface of the lab has.
pub(super) fn unique(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let hosts = file.hosts.0.iter();
    let hosts = hosts.map(|(name, host)| (&name.value.0, host.mac.as_ref()));
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.map(|(name, router)| (&name.value.0, router.mac.as_ref()));
    let given: Vec<(&String, MacAddr, Span)> = (routers.chain(hosts))
        .filter_map(|(name, mac)| Some((name, mac?.value.0, mac?.at)))
        .collect();
    let names: Vec<&str> = given.iter().map(|(name, ..)| name.as_str()).collect();
    for (place, (name, mac, at)) in given.iter().enumerate() {
        // The second of two equal entries is the mistake.
        let before = given.iter().take(place).find(|(_, other, _)| other == mac);
        let before = before.map(|(other, ..)| other.as_str());
        if let Some(other) = before.or_else(|| owner(lab, &names, *mac)) {
            let text =
                format!("two nodes with one MAC address: {other} and {name} both have {mac}");
            d.error(*at, text).rests_on_name(other);
        }
    }
}

/// The node, other than those of `given`, or the station behind a node, to which the address plan gives this address.
fn owner<'a>(lab: &'a Lab, given: &[&str], mac: MacAddr) -> Option<&'a str> {
    lab.nodes()
        .filter(|(_, node)| !given.contains(&&*node.name))
        .find_map(|(id, node)| {
            if node.lecs().iter().any(|lec| lec.mac == mac) {
                return Some(node.name.as_str());
            }
            let mut behind = (0..).map_while(|place| lab.behind(id, Some(place)));
            let station = behind.find(|station| station.mac == mac);
            station.map(|station| station.name.as_str())
        })
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, lab, told, with_x};

    #[test]
    fn an_end_system_may_have_a_mac_address_of_its_own() {
        let lab = lab(&with_x("mac: '02:00:5e:00:00:07'", ""));
        let node = lab.node(lab.find("x").unwrap());
        assert_eq!(node.lecs()[0].mac.to_string(), "02:00:5e:00:00:07");
        let address = node.attachment().unwrap().address;
        assert_eq!(address.esi(), node.lecs()[0].mac);
        let router = SMALL.replace("r: { on: s2,", "r: { on: s2, mac: '02:00:5e:00:00:08',");
        let lab = crate::resolve::tests::lab(&router);
        let lecs = lab.node(lab.find("r").unwrap()).lecs();
        let macs: Vec<String> = lecs.iter().map(|lec| lec.mac.to_string()).collect();
        assert_eq!(macs, ["02:00:5e:00:00:08", "02:a7:02:00:01:01"]);
    }

    #[test]
    fn wrong_mac_addresses_are_refused() {
        for (keys, says) in [
            ("mac: '01:00:5e:00:00:07'", "is no station's MAC address"),
            (
                "mac: '02:a7:03:00:02:00'",
                "two nodes with one MAC address: y and x both have 02:a7:03:00:02:00",
            ),
            (
                "address: 47.0005.80FFE1000000F21A26D8.0020EA0000B0.00",
                "the lab gives x its ATM address",
            ),
        ] {
            let said = told(&with_x(keys, ""));
            assert!(said.contains(says), "{said}");
        }
        let both = with_x("mac: '02:00:5e:00:00:07'", "");
        let both = both.replace("ip: 10.2.0.10", "ip: 10.2.0.10, mac: '02:00:5e:00:00:07'");
        let said = told(&both);
        assert!(said.contains("both have 02:00:5e:00:00:07"), "{said}");
        assert_eq!(said.matches("error").count(), 1, "{said}");
    }
}
