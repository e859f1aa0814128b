//! Blocks for a network that would be a strip or a thicket in layers: each switch with its end systems below it, in
//! rows.
//!
//! Blocks lie in layers by their trunks; if that is too wide or too much, in rows, where each second row goes back, so
//! that the neighbours in a chain of switches are neighbours in the drawing.

use super::{Area, Layout, Line, MOST, order};
use aerostat_lab::picture::{Kind, Picture};
use std::collections::BTreeMap;

/// Limit of end systems at a switch in a drawing of layers, where they are one below the other.
const MOST_SYSTEMS: usize = 40;
/// Limit of machines of a drawing in layers that may be a strip.
const FEW: usize = 12;
/// Limit of labelled links.
const MOST_LABELS: usize = 48;
/// Room between boxes, pixels.
const GAP: f64 = 10.0;
/// Room between blocks, pixels.
const ROOM: f64 = 60.0;
/// Width of a drawing in rows for its height.
const FORM: f64 = 1.8;

/// True if layers cannot show the network.
pub(super) fn are_needed(picture: &Picture) -> bool {
    let mut systems: BTreeMap<usize, usize> = BTreeMap::new();
    for cable in &picture.cables {
        for end in cable.ends {
            *systems.entry(end).or_default() += 1;
        }
    }
    let is_switch = |number: usize| picture.machines[number].kind == Kind::Switch;
    let mut counts = systems.into_iter();
    picture.machines.len() + picture.cables.len() > MOST
        || counts.any(|(number, count)| is_switch(number) && count > MOST_SYSTEMS)
}

/// True if a drawing in layers is a strip, and has more machines than a strip can show.
pub(super) fn are_better(layout: &Layout) -> bool {
    layout.boxes.len() > FEW && is_strip(layout)
}

/// True if a drawing is much wider than high, or the other way round.
fn is_strip(layout: &Layout) -> bool {
    let reach = |of: fn(&Area) -> f64| layout.boxes.iter().map(of).fold(1.0, f64::max);
    let (width, height) = (reach(|area| area.x), reach(|area| area.y));
    width > 6.0 * height || height > 3.0 * width
}

/// The positions of machines of these sizes in blocks, and of these lines.
pub(super) fn place(picture: &Picture, sizes: &[(f64, f64)], lines: &[Line]) -> Layout {
    let groups = groups(picture).into_iter();
    let blocks = groups.map(|(head, systems)| Block::new(head, &systems, sizes));
    let blocks: Vec<Block> = blocks.collect();
    let mut marks = vec![false; picture.machines.len()];
    for block in &blocks {
        marks[block.head] = true;
    }
    let trunks = lines.iter().enumerate();
    let trunks = trunks.filter(|(_, line)| line.ends.iter().all(|end| marks[*end]));
    let trunks: Vec<usize> = trunks.map(|(number, _)| number).collect();
    let mut layout = Layout {
        boxes: vec![Area::default(); sizes.len()],
        paths: vec![String::new(); lines.len()],
        ways: vec![Vec::new(); lines.len()],
        labels: Vec::new(),
    };
    let heads = picture.part(&marks);
    let layers = layers(&heads, &blocks, (lines, &trunks));
    let corners = match &layers {
        Some(found) => found.boxes.iter().map(Area::corner).collect(),
        None => rows(&order(&heads), &blocks),
    };
    for (block, (left, top)) in blocks.iter().zip(corners) {
        for (number, area) in &block.boxes {
            let (x, y) = (area.x + left, area.y + top);
            layout.boxes[*number] = Area { x, y, ..*area };
        }
    }
    for (number, line) in lines.iter().enumerate() {
        let [a, b] = line.ends.map(|end| layout.boxes[end]);
        layout.straight(number, [a, b]);
    }
    if let Some(found) = layers {
        for ((number, path), way) in trunks.iter().zip(found.paths).zip(found.ways) {
            layout.paths[*number] = path;
            layout.ways[*number] = way;
        }
        let labels = found.labels.into_iter();
        layout.labels = labels
            .map(|(number, area)| (trunks[number], area))
            .collect();
    } else if trunks.len() <= MOST_LABELS {
        layout.label(&trunks, lines);
    }
    layout
}

/// The blocks in layers, as machines of their sizes; `None` if this is not better than rows.
fn layers(
    heads: &Picture,
    blocks: &[Block],
    (lines, trunks): (&[Line], &[usize]),
) -> Option<Layout> {
    if heads.machines.len() + trunks.len() > MOST {
        return None;
    }
    let sizes = blocks.iter().map(|block| (block.width, block.height));
    let number = |old: usize| blocks.iter().position(|block| block.head == old);
    let between = trunks.iter().map(|trunk| {
        let line = &lines[*trunk];
        let ends = line.ends.map(|end| number(end).unwrap_or_default());
        let label = match trunks.len() <= MOST_LABELS {
            true => line.label.clone(),
            false => String::new(),
        };
        Line { ends, label }
    });
    let sizes: Vec<(f64, f64)> = sizes.collect();
    let found = super::layered(heads, &sizes, &between.collect::<Vec<_>>());
    (!is_strip(&found)).then_some(found)
}

/// The corners of blocks in rows, in this order of layers. The rows have as many blocks as give the best form.
fn rows(order: &[(usize, usize)], blocks: &[Block]) -> Vec<(f64, f64)> {
    let mut numbers: Vec<usize> = (0..blocks.len()).collect();
    numbers.sort_by_key(|number| order[*number]);
    let forms = (1..=blocks.len()).map(|columns| {
        let rows = numbers.chunks(columns).map(|row| row_size(row, blocks));
        let (width, height) = rows.fold((0.0_f64, 0.0), |(width, height), row| {
            (width.max(row.0), height + row.1 + ROOM)
        });
        (libm::log(width / height / FORM).abs(), columns, width)
    });
    let best = forms.min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, columns, width) = best.unwrap_or((0.0, 1, 0.0));
    let mut corners = vec![(0.0, 0.0); blocks.len()];
    let mut top = 0.0;
    for (row, numbers) in numbers.chunks(columns).enumerate() {
        let mut x = 0.0;
        for number in numbers {
            let wide = blocks[*number].width;
            let left = if row % 2 == 1 { width - x - wide } else { x };
            corners[*number] = (left, top);
            x += wide + ROOM;
        }
        top += row_size(numbers, blocks).1 + ROOM;
    }
    corners
}

/// Width and height of a row of blocks.
fn row_size(row: &[usize], blocks: &[Block]) -> (f64, f64) {
    let row = row.iter().map(|number| &blocks[*number]);
    let width: f64 = row.clone().map(|block| block.width + ROOM).sum();
    let height = row.map(|block| block.height).fold(0.0, f64::max);
    (width - ROOM, height)
}

/// Each switch with its end systems; a machine without a switch stands alone.
fn groups(picture: &Picture) -> BTreeMap<usize, Vec<usize>> {
    let is_switch = |number: usize| picture.machines[number].kind == Kind::Switch;
    let mut placed = vec![false; picture.machines.len()];
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for number in (0..placed.len()).filter(|number| is_switch(*number)) {
        below.insert(number, Vec::new());
        placed[number] = true;
    }
    let mut heads = vec![None; placed.len()];
    for cable in &picture.cables {
        let [a, b] = cable.ends;
        let (system, switch) = if is_switch(a) { (b, a) } else { (a, b) };
        let block = below.get_mut(&switch);
        if let Some(block) = block.filter(|_| !placed[system]) {
            block.push(system);
            placed[system] = true;
            heads[system] = Some(switch);
        }
    }
    for (number, machine) in picture.machines.iter().enumerate() {
        let head = machine.behind.and_then(|host| heads[host]);
        if let Some(block) = head.and_then(|head| below.get_mut(&head)) {
            block.push(number);
            placed[number] = true;
        }
    }
    let alone = (0..placed.len()).filter(|number| !placed[*number]);
    below.extend(alone.map(|number| (number, Vec::new())).collect::<Vec<_>>());
    below
}

/// A switch and its end systems, from a corner at 0, 0.
struct Block {
    /// Number of the switch; of a machine without one, if there is no switch.
    head: usize,
    boxes: Vec<(usize, Area)>,
    width: f64,
    height: f64,
}

impl Block {
    fn new(head: usize, systems: &[usize], sizes: &[(f64, f64)]) -> Self {
        let (mut width, high) = sizes[head];
        let mut boxes = vec![(
            head,
            Area {
                x: width / 2.0,
                y: high / 2.0,
                width,
                height: high,
            },
        )];
        let mut top = high + GAP;
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
            head,
            boxes,
            width,
            height,
        }
    }
}
