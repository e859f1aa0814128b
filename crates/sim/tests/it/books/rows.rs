//! The rows of `vcs` compared with the counters of adapters, ports and links.
//!
//! A row balances by itself. It has neither more than its ends have counted nor more losses at a place than the place
//! has counted. If no node was switched off, a row of a connection with one receiver has exactly what its ends have
//! counted.

use aerostat_lab::circuits::{self, Circuit, Loss, Place};
use aerostat_lab::model::{FaultKind, Lab};
use aerostat_node::atm::nic::NicVcView;
use aerostat_sim::{LabNode, LinkId, NodeId, World};

/// All mistakes in the rows.
pub(super) fn check(lab: &Lab, world: &World<LabNode>) -> Result<(), String> {
    let all = circuits::read(lab, world.plant());
    let mut wrong = Vec::new();
    for circuit in &all.circuits {
        let row = Row {
            lab,
            world,
            circuit,
        };
        let mut found = row.balance();
        found.extend(row.ends());
        found.extend(circuit.lost.iter().filter_map(|loss| row.place(loss)));
        if !found.is_empty() {
            let name = &lab.node(circuit.from.node).name;
            wrong.push(format!(
                "VC {} of {name}: {}\n{circuit:?}",
                circuit.from.vc,
                found.join(", ")
            ));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

struct Row<'a> {
    lab: &'a Lab,
    world: &'a World<LabNode>,
    circuit: &'a Circuit,
}

impl Row<'_> {
    fn balance(&self) -> Vec<String> {
        let circuit = self.circuit;
        let begun = circuit.refused + circuit.waiting + circuit.sent;
        let ended = circuit.delivered + circuit.lost_cells() + circuit.under_way;
        let books = [
            (circuit.offered, begun, "offered = refused + waiting + sent"),
            (circuit.sent, ended, "sent = delivered + lost + under way"),
        ];
        let off = books.into_iter().filter(|(one, other, _)| one != other);
        off.map(|(one, other, what)| format!("{what}: {one}, {other}"))
            .collect()
    }

    /// Compares with the adapters at both ends.
    fn ends(&self) -> Option<String> {
        let Circuit {
            sent, delivered, ..
        } = *self.circuit;
        let counted = self.adapter(self.circuit.from)?.sent.cells_out;
        let received = self.circuit.to.and_then(|to| self.adapter(to));
        let received = received.map(|view| view.cells_received);
        let one_receiver = !self
            .circuit
            .user
            .as_ref()
            .is_some_and(|user| user.multipoint);
        let exact = one_receiver && !self.lab.faults.iter().any(|fault| is_power(fault.what));
        let wrong_sent = sent > counted || exact && sent != counted;
        let wrong_delivered =
            received.is_some_and(|came| delivered > came || exact && delivered != came);
        (wrong_sent || wrong_delivered)
            .then(|| format!("the adapters have sent {counted} and received {received:?}"))
    }

    /// Compares the cells lost at a place with everything that its port and its link have lost. A node loses its
    /// counters with its power.
    fn place(&self, loss: &Loss) -> Option<String> {
        let from = NodeId(loss.node.0);
        let link = (0..self.lab.links.len()).map(LinkId).find_map(|link| {
            let ends = self.world.ends(link);
            let way = ends
                .iter()
                .position(|end| end.node == from && end.port == loss.port)?;
            Some((link, way, ends[1 - way]))
        });
        let (link, way, far) = link?;
        if self.was_off(from) || self.was_off(far.node) || self.circuit.to.is_none() {
            return None;
        }
        let counters = self.world.link_counters(link)[way];
        let on_link = counters.lost + counters.discarded + counters.damaged + counters.down;
        let at_far = match self.world.node(far.node) {
            Some(node) => match node.as_station() {
                Some(station) => station.nic().counters.dropped,
                None => node.as_switch()?.fabric().input_counters(far.port)?.dropped,
            },
            None => return None,
        };
        let most = match loss.reason {
            None => on_link + at_far.total(),
            Some(reason) => {
                let fabric = self.world.node(from)?.as_switch()?.fabric();
                let output = fabric.output(loss.port)?.totals().dropped.of(reason);
                output + fabric.input_counters(loss.port)?.dropped.of(reason)
            }
        };
        (loss.cells > most).then(|| format!("{loss:?}, but only {most} cells were lost there"))
    }

    fn adapter(&self, place: Place) -> Option<NicVcView> {
        let station = self.world.node(NodeId(place.node.0))?.as_station()?;
        station.nic().vcs().find(|view| view.vc == place.vc)
    }

    fn was_off(&self, node: NodeId) -> bool {
        self.lab.faults.iter().any(|fault| {
            let (FaultKind::Crash(other, None) | FaultKind::Restart(other, None)) = fault.what
            else {
                return false;
            };
            other.0 == node.0
        })
    }
}

fn is_power(fault: FaultKind) -> bool {
    matches!(
        fault,
        FaultKind::Crash(_, None) | FaultKind::Restart(_, None)
    )
}

/// Runs a lab; returns the rows with the names of their ends, in order.
fn rows(text: &str) -> Vec<(String, String, Circuit)> {
    let lab = aerostat_lab::parse("rows", text, &[]).expect("a lab").lab;
    let (report, _) = super::run(&lab).expect("books that balance");
    let name = |place: Place| lab.node(place.node).name.clone();
    let all = report.circuits.circuits.into_iter();
    all.map(|row| {
        let to = row.to.map(name).unwrap_or_default();
        (name(row.from), to, row)
    })
    .collect()
}

#[test]
fn a_leaf_that_came_back_counts_only_what_was_sent_since_and_no_cell_is_nowhere() {
    let rows = rows(
        "switches: { s1: {}, s2: {} }\nlinks: [[s1, s2]]\n\
         lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }\n\
         hosts:\n  u: { on: s1, elan: a, ip: 10.1.0.10 }\n  v: { on: s2, elan: a, ip: 10.1.0.11 }\n\
         \x20 w: { on: s1, elan: a, ip: 10.1.0.12 }\n\
         traffic:\n\
         \x20 - { from: u, to: v, kind: udp, rate: 100pps, size: 100, start: 1s, duration: 5s }\n\
         \x20 # Its ARP request is a broadcast after the leaf came back.\n\
         \x20 - { from: u, to: w, kind: udp, rate: 100pps, size: 100, start: 6s, duration: 1s }\n\
         faults: [{ at: 2s, link_down: v-s2 }, { at: 3s, link_up: v-s2 }]\nuntil: 8s\n",
    );
    let leaves = |to: &str| {
        let leaves = rows.iter().filter(|(_, end, row)| {
            end == to && row.user.as_ref().is_some_and(|user| user.multipoint)
        });
        leaves.map(|(.., row)| row.sent).collect::<Vec<_>>()
    };
    let (always, late) = (leaves("u"), leaves("v"));
    assert_eq!((always.len(), late.len()), (2, 2), "LES and BUS: {rows:#?}");
    // The LES has nothing to distribute in this lab.
    let bus = |leaves: &[u64]| leaves.iter().copied().max();
    assert!(
        bus(&late) > Some(0) && bus(&late) < bus(&always),
        "{late:?} of {always:?}"
    );
    let lost: u64 = rows.iter().map(|(.., row)| row.lost_cells()).sum();
    assert_eq!(lost, 0, "{rows:#?}");
}

#[test]
fn a_permanent_vc_of_a_host_that_restarted_counts_what_this_life_of_the_host_sent() {
    let rows = rows(
        "switches: { s1: {} }\nlane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }\n\
         hosts:\n  u: { on: s1, elan: a, ip: 10.1.0.10 }\n  v: { on: s1, elan: a, ip: 10.1.0.11 }\n\
         faults: [{ at: 6s, crash: v }, { at: 7s, restart: v }]\nuntil: 8s\n",
    );
    let signalling = |from: &str| {
        let mut own = rows.iter().filter(|(node, to, row)| {
            node == from && to == "s1" && row.from.vc == aerostat_wire::Vc::SIGNALLING
        });
        let (.., row) = own.next().expect("VC 0.5");
        assert_eq!((row.sent, row.lost_cells()), (row.delivered, 0), "{row:?}");
        row.sent
    };
    let (old, young) = (signalling("u"), signalling("v"));
    assert!(0 < young && young < old, "{young}, {old}");
}
