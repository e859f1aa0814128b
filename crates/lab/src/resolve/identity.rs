//! Addresses that an end system has by itself, instead of those of the address plan: on real networks they must differ
//! from those of all other systems.

use crate::diag::{Diagnostics, Span};
use crate::field::At;
use crate::file::{LabFile, Mac};
use crate::model::Lab;
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::{BTreeMap, BTreeSet};

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

/// Names for addresses outside the lab. A name stands for one system, whether the lab has it or not.
pub(super) fn names(file: &LabFile, d: &mut Diagnostics) -> Vec<(String, AtmAddress)> {
    let switches = file.switches.0.iter().map(|(name, _)| name);
    let hosts = file.hosts.0.iter().map(|(name, _)| name);
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let nodes = switches.chain(hosts).chain(routers.map(|(name, _)| name));
    let nodes: BTreeSet<&str> = nodes.map(|name| name.value.0.as_str()).collect();
    let mut known: BTreeMap<AtmAddress, &str> = BTreeMap::new();
    let mut names = Vec::new();
    for (name, address) in file.names.iter().flat_map(|table| &table.0) {
        let (text, system) = (name.value.0.as_str(), address.value.0);
        if nodes.contains(text) {
            d.error(name.at, format!("'{text}' is a node of the lab"))
                .hint("names: has the systems outside the lab")
                .rests_on_name(text);
        }
        if let Some(other) = known.insert(system.with_selector(0), text) {
            let told = format!("'{other}' and '{text}' stand for the same address");
            d.error(address.at, told);
        }
        names.push((text.to_owned(), system));
    }
    names
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
    let named: BTreeSet<&str> = given.iter().map(|(name, ..)| name.as_str()).collect();
    let mut owners = planned(lab, &named);
    for (name, mac, at) in &given {
        // The second of two equal entries is the mistake.
        if let Some(other) = owners.get(mac) {
            let text =
                format!("two nodes with one MAC address: {other} and {name} both have {mac}");
            d.error(*at, text).rests_on_name(other);
        } else {
            owners.insert(*mac, name);
        }
    }
}

/// The nodes, other than those of `given`, and the stations behind nodes, by the addresses that the plan gives them.
fn planned<'a>(lab: &'a Lab, given: &BTreeSet<&str>) -> BTreeMap<MacAddr, &'a str> {
    let mut owners = BTreeMap::new();
    for (id, node) in lab.nodes().filter(|(_, node)| !given.contains(&*node.name)) {
        let own = node.lecs().iter().map(|lec| (lec.mac, node.name.as_str()));
        let behind = (0..).map_while(|place| lab.behind(id, Some(place)));
        let behind = behind.map(|station| (station.mac, station.name.as_str()));
        for (mac, name) in own.chain(behind) {
            owners.entry(mac).or_insert(name);
        }
    }
    owners
}

#[cfg(test)]
mod tests {

    /// `names:` in the story and in `inspect`, with the selector behind the name, and for calls.
    #[test]
    fn systems_outside_the_lab_have_the_names_that_the_file_gives_them() {
        let far = "4700918100000002A70000010002A703200001";
        let text = format!("{}names: {{ far: {far}E0 }}\n", SMALL);
        let lab = crate::parse("t.atm.yml", &text, &[]).unwrap().lab;
        let address = lab.names[0].1;
        let told = crate::event::Names::new(&lab).in_text(&format!("call to {address} refused"));
        let selector = &address.to_string()[address.to_string().len() - 2..];
        assert_eq!(told, format!("call to far/{selector} refused"));
        let wrong = |names: &str| {
            let text = format!("{}names: {{ {names} }}\n", SMALL);
            crate::parse("t.atm.yml", &text, &[])
                .unwrap_err()
                .to_string()
        };
        let said = wrong(&format!("x: {far}E0"));
        assert!(said.contains("'x' is a node of the lab"), "{said}");
        let said = wrong(&format!("one: {far}E0, two: {far}00"));
        assert!(
            said.contains("'one' and 'two' stand for the same address"),
            "{said}"
        );
        let said = wrong("one: 12");
        assert!(said.contains(":") && said.contains("one"), "{said}");
    }

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
