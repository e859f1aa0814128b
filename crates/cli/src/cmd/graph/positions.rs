//! Positions of a drawing for the stream of events: those of the drawing of `graph`, or blocks for a network that is
//! too large for it.

use super::layout::{self, Area};
use super::svg;
use aerostat_lab::picture::{Kind, Picture};
use aerostat_lab::stream::{Layout, shown};
use std::collections::BTreeMap;

/// Room between boxes, pixels.
const GAP: f64 = 10.0;
/// Room around the drawing, pixels.
const MARGIN: f64 = 8.0;

/// The positions of the machines that a drawing shows, and of the links between them.
pub(crate) fn positions(picture: &Picture) -> Layout {
    if picture.machines.len() + picture.cables.len() > layout::MOST {
        return blocks(picture);
    }
    let (found, lines) = svg::place(picture);
    let mut made = Layout::default();
    for (machine, area) in picture.machines.iter().zip(&found.boxes) {
        add(&mut made, &machine.name, area);
    }
    // Links come first, then the Ethernet segments of stations.
    let named = picture.cables.iter().zip(&found.paths);
    let paths = named.map(|(cable, path)| (cable.name.clone(), path.clone()));
    made.paths = paths.collect();
    for (number, area) in &found.labels {
        if let (Some(cable), false) = (picture.cables.get(*number), lines[*number].label.is_empty())
        {
            made.labels
                .insert(cable.name.clone(), (tenth(area.x), tenth(area.y)));
        }
    }
    made
}

fn add(made: &mut Layout, name: &str, area: &Area) {
    let (right, bottom) = (area.x + area.width / 2.0, area.y + area.height / 2.0);
    made.width = made.width.max(tenth(right + MARGIN));
    made.height = made.height.max(tenth(bottom + MARGIN));
    let numbers = [area.x, area.y, area.width, area.height].map(tenth);
    let [x, y, width, height] = numbers;
    made.boxes.push((name.to_owned(), x, y, width, height));
}

/// Tenths of a pixel are more than a screen can show.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A block for each switch, with its end systems below it, in rows.
fn blocks(picture: &Picture) -> Layout {
    let sizes = picture.machines.iter();
    let sizes: Vec<(f64, f64)> = sizes.map(|machine| svg::size(picture, machine)).collect();
    let groups = groups(picture).into_iter();
    let blocks: Vec<Block> = groups
        .map(|(switch, systems)| Block::new(switch, &systems, &sizes))
        .collect();
    let areas = blocks.iter();
    let area: f64 = areas
        .map(|one| (one.width + GAP) * (one.height + GAP))
        .sum();
    let widest = blocks.iter().map(|block| block.width).fold(0.0, f64::max);
    let row = (area * 1.6).sqrt().max(widest);
    let (mut x, mut y, mut high) = (MARGIN, MARGIN, 0.0_f64);
    let mut made = Layout::default();
    for block in blocks {
        if x > MARGIN && x + block.width > row + MARGIN {
            (x, y, high) = (MARGIN, y + high + 3.0 * GAP, 0.0);
        }
        for (number, area) in &block.boxes {
            let (x, y) = (area.x + x, area.y + y);
            let name = &picture.machines[*number].name;
            add(&mut made, name, &Area { x, y, ..*area });
        }
        x += block.width + 3.0 * GAP;
        high = high.max(block.height);
    }
    made
}

/// The machines that are shown: each switch with its end systems, and the rest.
fn groups(picture: &Picture) -> Vec<(Option<usize>, Vec<usize>)> {
    let shown = shown(picture);
    let is_switch = |number: usize| picture.machines[number].kind == Kind::Switch;
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut placed = vec![false; picture.machines.len()];
    for number in (0..placed.len()).filter(|number| is_switch(*number) && shown[*number]) {
        below.insert(number, Vec::new());
        placed[number] = true;
    }
    for cable in &picture.cables {
        let [a, b] = cable.ends;
        let (system, switch) = if is_switch(a) { (b, a) } else { (a, b) };
        let block = below.get_mut(&switch);
        if let Some(block) = block.filter(|_| shown[system] && !placed[system]) {
            block.push(system);
            placed[system] = true;
        }
    }
    let rest = (0..placed.len()).filter(|number| shown[*number] && !placed[*number]);
    let rest: Vec<usize> = rest.collect();
    let below = below.into_iter();
    let of_switches = below.map(|(switch, systems)| (Some(switch), systems));
    of_switches.chain([(None, rest)]).collect()
}

/// A switch and its end systems, from a corner at 0, 0.
struct Block {
    boxes: Vec<(usize, Area)>,
    width: f64,
    height: f64,
}

impl Block {
    fn new(switch: Option<usize>, systems: &[usize], sizes: &[(f64, f64)]) -> Self {
        let mut boxes = Vec::new();
        let (mut top, mut width) = (0.0, 0.0_f64);
        if let Some(switch) = switch {
            let (wide, high) = sizes[switch];
            boxes.push((
                switch,
                Area {
                    x: wide / 2.0,
                    y: high / 2.0,
                    width: wide,
                    height: high,
                },
            ));
            (top, width) = (high + GAP, wide);
        }
        let columns = ((systems.len() as f64).sqrt().ceil() as usize).max(1);
        for row in systems.chunks(columns) {
            let (mut x, mut high) = (0.0, 0.0_f64);
            for number in row {
                let (wide, tall) = sizes[*number];
                let area = Area {
                    x: x + wide / 2.0,
                    y: top + tall / 2.0,
                    width: wide,
                    height: tall,
                };
                boxes.push((*number, area));
                x += wide + GAP;
                high = high.max(tall);
            }
            width = width.max(x - GAP);
            top += high + GAP;
        }
        let height = (top - GAP).max(0.0);
        Self {
            boxes,
            width,
            height,
        }
    }
}
