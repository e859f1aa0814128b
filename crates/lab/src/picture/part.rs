//! Part of a picture: the machines that a drawing shows where a lab has more than a reader could look at.

use super::{Kind, Machine, Picture};

/// Limit of machines in a drawing.
pub const MOST_SHOWN: usize = 1000;

/// The machines that a drawing shows, by number. It shows all of them if they are at most [`MOST_SHOWN`]. Otherwise it
/// shows switches first, then LANE servers, routers, machines outside and the ends of flows; other hosts are counted at
/// their switches.
#[must_use]
pub fn shown(picture: &Picture) -> Vec<bool> {
    let there = picture.machines.iter().map(|machine| !machine.gone);
    if picture.machines.len() <= MOST_SHOWN {
        return there.collect();
    }
    // A station is nothing without its host.
    let mut busy: Vec<bool> = picture.machines.iter().map(|one| one.busy).collect();
    for machine in picture.machines.iter().filter(|one| one.busy) {
        if let Some(host) = machine.behind {
            busy[host] = true;
        }
    }
    let rank = |number: usize, machine: &Machine| match machine.kind {
        Kind::Switch => Some(0),
        Kind::LaneServer => Some(1),
        Kind::Router => Some(2),
        Kind::Outside => Some(3),
        Kind::Host => busy[number].then_some(4),
        Kind::Station => busy[number].then_some(5),
    };
    let machines = picture.machines.iter().enumerate();
    let machines = machines.filter(|(_, machine)| !machine.gone);
    let ranked = machines.filter_map(|(number, machine)| Some((rank(number, machine)?, number)));
    let mut ranked: Vec<(u8, usize)> = ranked.collect();
    ranked.sort_unstable();
    let mut shown = vec![false; picture.machines.len()];
    for (_, number) in ranked.into_iter().take(MOST_SHOWN) {
        shown[number] = true;
    }
    shown
}

impl Picture {
    /// The picture without what was removed from the running lab.
    #[must_use]
    pub fn present(self) -> Self {
        let marks: Vec<bool> = self.machines.iter().map(|machine| !machine.gone).collect();
        if marks.contains(&false) || self.cables.iter().any(|cable| cable.gone) {
            self.part(&marks)
        } else {
            self
        }
    }

    /// The part that a drawing shows: the picture itself, unless it is too large.
    #[must_use]
    pub fn drawn(self) -> Self {
        let shown = shown(&self);
        if shown.contains(&false) || self.cables.iter().any(|cable| cable.gone) {
            self.part(&shown)
        } else {
            self
        }
    }

    /// The machines with these marks, the links between them, and what goes over those links alone. Switches have the
    /// numbers of the hosts that are left out.
    #[must_use]
    pub fn part(&self, marks: &[bool]) -> Self {
        let (machines, of_machine) = kept(&self.machines, |number, _| marks[number]);
        let inside = |ends: &[usize; 2]| ends.iter().all(|end| marks[*end]);
        let (cables, of_cable) = kept(&self.cables, |_, cable| inside(&cable.ends) && !cable.gone);
        let (threads, of_thread) = kept(&self.threads, |_, thread| {
            marks[thread.from] && thread.via.iter().all(|link| of_cable[*link].is_some())
        });
        // Nothing is kept that names something which is not.
        let new = |numbers: &[Option<usize>], old: usize| numbers[old].unwrap_or_default();
        let ends = |ends: [usize; 2]| ends.map(|end| new(&of_machine, end));
        let mut part = Self {
            machines,
            cables,
            threads,
            networks: self.networks.clone(),
            pvcs: kept(&self.pvcs, |_, pvc| inside(&pvc.ends)).0,
            calls: kept(&self.calls, |_, calls| inside(&calls.ends)).0,
            shortcuts: kept(&self.shortcuts, |_, one| inside(&one.ends)).0,
            lab: self.lab.clone(),
            ..*self
        };
        for machine in &mut part.machines {
            let behind = machine.behind.and_then(|host| of_machine[host]);
            machine.behind = behind;
        }
        for cable in &mut part.cables {
            cable.ends = ends(cable.ends);
        }
        for thread in &mut part.threads {
            thread.from = new(&of_machine, thread.from);
            for link in &mut thread.via {
                *link = new(&of_cable, *link);
            }
        }
        for pvc in &mut part.pvcs {
            pvc.ends = ends(pvc.ends);
        }
        for calls in &mut part.calls {
            calls.ends = ends(calls.ends);
        }
        for shortcut in &mut part.shortcuts {
            shortcut.ends = ends(shortcut.ends);
            shortcut.thread = shortcut.thread.and_then(|thread| of_thread[thread]);
        }
        for cable in &self.cables {
            let [a, b] = cable.ends;
            for (switch, host) in [(a, b), (b, a)] {
                let own = &self.machines[host];
                let hidden = !marks[host] && own.kind == Kind::Host && !own.gone;
                if let Some(switch) = of_machine[switch].filter(|_| hidden) {
                    part.machines[switch].hosts += 1;
                }
            }
        }
        part
    }
}

/// Things that stay, and the new number of each thing.
fn kept<T: Clone>(all: &[T], stays: impl Fn(usize, &T) -> bool) -> (Vec<T>, Vec<Option<usize>>) {
    let (mut things, mut numbers) = (Vec::new(), Vec::new());
    for (number, thing) in all.iter().enumerate() {
        let stays = stays(number, thing);
        numbers.push(stays.then_some(things.len()));
        if stays {
            things.push(thing.clone());
        }
    }
    (things, numbers)
}

#[cfg(test)]
mod tests {
    use crate::picture::Picture;
    use std::fmt::Write as _;

    #[test]
    fn a_large_lab_shows_switches_and_the_ends_of_flows_and_counts_the_other_hosts() {
        let mut text = String::from(
            "switches: { s: {}, z: {} }\nlinks: [[s, z]]\nlane: { on: s, elans: { a: { subnet: 10.1.0.0/16 } } }\nhosts:\n",
        );
        for host in 0..1200 {
            let (a, b, on) = (1 + host / 200, 1 + host % 200, ["s", "z"][host % 2]);
            let _ = writeln!(text, "  h{host}: {{ on: {on}, elan: a, ip: 10.1.{a}.{b} }}");
        }
        text.push_str("traffic: [{ from: h3, to: h1100, kind: ping }]\nuntil: 1s\n");
        let lab = crate::parse("large", &text, &[]).unwrap().lab;
        let whole = Picture::of(&lab);
        assert_eq!(whole.machines.len(), 1203);
        let drawn = whole.drawn();
        let names = drawn.machines.iter().map(|one| (&*one.name, one.hosts));
        let names: Vec<_> = names.collect();
        assert_eq!(names.len(), 5, "{names:?}");
        for named in [("s", 599), ("z", 599), ("h3", 0), ("h1100", 0)] {
            assert!(names.contains(&named), "{names:?}");
        }
        let cables = drawn.cables.iter();
        let ends = cables.map(|cable| cable.ends.map(|end| &*drawn.machines[end].name));
        let ends: Vec<[&str; 2]> = ends.collect();
        assert_eq!(ends.len(), 4, "{ends:?}");
        assert!(
            ends.contains(&["s", "z"]) && ends.contains(&["h3", "z"]),
            "{ends:?}"
        );
    }
}
