//! Positions in a drawing: layers from left to right, by layout-rs, or blocks where layers would be unreadable.
//!
//! Switches are in layers by their distance from the first one. End systems are beyond their switch. Those of the first
//! switch are on its other side, those of an only switch on both sides.

mod blocks;

use aerostat_lab::picture::{Kind, Picture};
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::{Point, Position};
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;
use std::collections::VecDeque;

/// Limit of machines and links in layers. The time grows with their square, and larger drawings are unreadable.
const MOST: usize = 600;

/// A rectangle: centre, and whole width and height, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    /// The same area, moved to the nearest place where it does not overlap `others`. If there is no such place nearby,
    /// it stays.
    pub(crate) fn moved_off(self, others: &[Self]) -> Self {
        let steps =
            |step: i32| (-step..=step).flat_map(move |dx| (-step..=step).map(move |dy| (dx, dy)));
        // Rings of places around it, the nearest first.
        let rings = (0..24_i32).flat_map(|step| {
            let ring = steps(step).filter(move |(dx, dy)| dx.abs().max(dy.abs()) == step);
            ring.map(|(dx, dy)| (f64::from(dx) * 4.0, f64::from(dy) * 4.0))
        });
        let mut places = rings.map(|(dx, dy)| Self {
            x: self.x + dx,
            y: self.y + dy,
            ..self
        });
        let free = places.find(|place| !others.iter().any(|other| other.meets(place, 1.0)));
        free.unwrap_or(self)
    }

    /// The upper left corner.
    fn corner(&self) -> (f64, f64) {
        (self.x - self.width / 2.0, self.y - self.height / 2.0)
    }

    /// The point where a straight line to the middle of another area leaves this one.
    fn edge(&self, to: &Self) -> (f64, f64) {
        let (dx, dy) = (to.x - self.x, to.y - self.y);
        let across = (2.0 * dx.abs() / self.width).max(2.0 * dy.abs() / self.height);
        let reach = across.max(1.0);
        (self.x + dx / reach, self.y + dy / reach)
    }

    /// True if they overlap or are less than `gap` pixels apart.
    pub(crate) fn meets(&self, other: &Self, gap: f64) -> bool {
        (self.x - other.x).abs() * 2.0 < self.width + other.width + 2.0 * gap
            && (self.y - other.y).abs() * 2.0 < self.height + other.height + 2.0 * gap
    }
}

/// A line between two machines.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Numbers of the machines.
    pub(crate) ends: [usize; 2],
    /// Its label, of one or two lines; may be empty.
    pub(crate) label: String,
}

/// The result of the layout.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Boxes by the numbers of the machines.
    pub(crate) boxes: Vec<Area>,
    /// Bézier curves as text of an SVG path, by the numbers of the lines.
    pub(crate) paths: Vec<String>,
    /// The same curves as points, in either direction.
    pub(crate) ways: Vec<Vec<(f64, f64)>>,
    /// Labels of lines, each with the number of its line.
    pub(crate) labels: Vec<(usize, Area)>,
}

impl Layout {
    /// Draws a line straight from one area to another.
    fn straight(&mut self, number: usize, [a, b]: [Area; 2]) {
        let way = vec![a.edge(&b), b.edge(&a)];
        let point = |(x, y): &(f64, f64)| format!("{x:.1} {y:.1}");
        self.paths[number] = format!("M {} L {}", point(&way[0]), point(&way[1]));
        self.ways[number] = way;
    }

    /// Gives labels to the middles of these lines, where there is room for them.
    fn label(&mut self, numbers: &[usize], lines: &[Line]) {
        let mut taken = self.boxes.clone();
        for number in numbers {
            let (width, height) = label_size(&lines[*number].label);
            let [(ax, ay), (bx, by)] = [0, 1].map(|end| self.ways[*number][end]);
            let (x, y) = (f64::midpoint(ax, bx), f64::midpoint(ay, by));
            let area = Area {
                x,
                y,
                width,
                height,
            };
            let area = area.moved_off(&taken);
            if taken.iter().any(|other| other.meets(&area, 0.0)) {
                continue;
            }
            taken.push(area);
            self.labels.push((*number, area));
        }
    }
}

/// Pixels of a label's character: labels have 10-pixel type, whose characters are about six wide.
const LABEL_CHARACTER: usize = 6;
/// Room around a box, half of it on each side.
const ROOM: Point = Point { x: 40.0, y: 24.0 };
/// Height of a label's line.
pub(crate) const LABEL_LINE: f64 = 12.0;

/// Size of a label.
pub(crate) fn label_size(text: &str) -> (f64, f64) {
    let longest = text.lines().map(|line| line.chars().count()).max();
    let width = longest.unwrap_or(0) * LABEL_CHARACTER;
    (width as f64, text.lines().count() as f64 * LABEL_LINE)
}

/// Computes the positions of machines of these sizes, and of these lines between them.
pub(crate) fn place(picture: &Picture, sizes: &[(f64, f64)], lines: &[Line]) -> Layout {
    if blocks::are_needed(picture) {
        return blocks::place(picture, sizes, lines);
    }
    let layout = layered(picture, sizes, lines);
    if blocks::are_better(&layout) {
        return blocks::place(picture, sizes, lines);
    }
    layout
}

/// The same in layers.
fn layered(picture: &Picture, sizes: &[(f64, f64)], lines: &[Line]) -> Layout {
    if sizes.is_empty() {
        return Layout::default();
    }
    let mut graph = VisualGraph::new(Orientation::LeftToRight);
    let look = |font| StyleAttr::new(Color::fast("black"), 1, None, 0, font);
    let handles: Vec<_> = sizes
        .iter()
        .enumerate()
        .map(|(number, (width, height))| {
            let shape = ShapeKind::new_box("");
            let size = Point::new(*width, *height);
            let name = number.to_string();
            let direction = Orientation::LeftToRight;
            let mut element =
                Element::create_with_properties(shape, look(12), direction, size, name);
            element.pos = Position::new(Point::zero(), size, Point::zero(), ROOM);
            graph.add_node(element)
        })
        .collect();
    let order = order(picture);
    for (number, line) in lines.iter().enumerate() {
        let [mut from, mut to] = line.ends;
        if order[to] < order[from] {
            (from, to) = (to, from);
        }
        let arrow = Arrow::with_properties(
            LineEndKind::None,
            LineEndKind::None,
            LineStyleKind::Normal,
            // The number of the line is returned with its label.
            &padded(&line.label),
            &look(LABEL_CHARACTER),
            number.to_string(),
            &None,
            &None,
        );
        graph.add_edge(arrow, handles[from], handles[to]);
    }
    let mut found = Found {
        layout: Layout {
            boxes: vec![Area::default(); sizes.len()],
            paths: vec![String::new(); lines.len()],
            ways: vec![Vec::new(); lines.len()],
            labels: Vec::new(),
        },
        texts: Vec::new(),
    };
    graph.do_it(false, false, false, &mut found);
    found.finish(lines)
}

/// A label with padding: the library uses the width of a character as the height of a line, which is half of the needed
/// height.
fn padded(label: &str) -> String {
    let lines = label.lines().count();
    let mut text = label.to_owned();
    text.extend(std::iter::repeat_n("\n ", lines));
    text
}

/// A number for each machine, such that lines lead from lower to higher numbers.
fn order(picture: &Picture) -> Vec<(usize, usize)> {
    let count = picture.machines.len();
    let is_switch = |number: usize| picture.machines[number].kind == Kind::Switch;
    let between = |cable: &[usize; 2]| cable.iter().all(|end| is_switch(*end));
    let trunks: Vec<[usize; 2]> = picture
        .cables
        .iter()
        .map(|c| c.ends)
        .filter(between)
        .collect();
    let mut depth = vec![usize::MAX; count];
    for start in (0..count).filter(|number| is_switch(*number)) {
        if depth[start] != usize::MAX {
            continue;
        }
        // Layer 0 is for end systems in front of the first switches.
        depth[start] = 1;
        let mut next = VecDeque::from([start]);
        while let Some(here) = next.pop_front() {
            for [a, b] in &trunks {
                let there = if *a == here { *b } else { *a };
                if (*a == here || *b == here) && depth[there] == usize::MAX {
                    depth[there] = depth[here] + 1;
                    next.push_back(there);
                }
            }
        }
    }
    let alone = |switch: usize| !trunks.iter().any(|ends| ends.contains(&switch));
    let mut seen = vec![0_usize; count];
    for cable in &picture.cables {
        let [a, b] = cable.ends;
        let (system, switch) = if is_switch(a) { (b, a) } else { (a, b) };
        if is_switch(system) || !is_switch(switch) {
            continue;
        }
        seen[switch] += 1;
        let before = depth[switch] == 1 && (!alone(switch) || seen[switch].is_multiple_of(2));
        depth[system] = if before { 0 } else { depth[switch] + 1 };
    }
    // A station is beyond its host, on the side away from the switch.
    for (number, machine) in picture.machines.iter().enumerate() {
        if let Some(host) = machine.behind {
            depth[number] = if depth[host] == 0 { 0 } else { depth[host] + 1 };
        }
    }
    // Stations have higher numbers than their hosts; in front of the first switch they come first.
    let place = |(number, depth): (usize, usize)| match depth {
        0 => (0, count - number),
        depth => (depth, number),
    };
    depth.into_iter().enumerate().map(place).collect()
}

/// Points of a curve of the library: its first pair is a start and a control point, the second one a control point and
/// an end; from each further one, the first control point is the mirror of the last one.
fn points(path: &[(Point, Point)]) -> Vec<(f64, f64)> {
    const STEPS: u32 = 8;
    let [(start, first), rest @ ..] = path else {
        return Vec::new();
    };
    let (mut here, mut leaving) = (*start, *first);
    let mut points = vec![(here.x, here.y)];
    for (control, end) in rest {
        for step in 1..=STEPS {
            let t = f64::from(step) / f64::from(STEPS);
            let u = 1.0 - t;
            let mix = |a: f64, b: f64, c: f64, d: f64| {
                u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
            };
            points.push((
                mix(here.x, leaving.x, control.x, end.x),
                mix(here.y, leaving.y, control.y, end.y),
            ));
        }
        leaving = Point::new(2.0 * end.x - control.x, 2.0 * end.y - control.y);
        here = *end;
    }
    points
}

/// The drawing commands of the library.
struct Found {
    layout: Layout,
    /// Labels in the order of their lines.
    texts: Vec<Point>,
}

impl Found {
    fn finish(self, lines: &[Line]) -> Layout {
        let mut layout = self.layout;
        let labelled = lines.iter().enumerate();
        let labelled = labelled.filter(|(_, line)| !line.label.is_empty());
        let mut taken = layout.boxes.clone();
        for ((number, line), at) in labelled.zip(self.texts) {
            let (width, height) = label_size(&line.label);
            let (x, y) = (at.x, at.y);
            let area = Area {
                x,
                y,
                width,
                height,
            };
            // The library puts a label beside its line, where a box may be.
            let area = area.moved_off(&taken);
            taken.push(area);
            layout.labels.push((number, area));
        }
        layout
    }
}

impl RenderBackend for Found {
    fn draw_rect(
        &mut self,
        xy: Point,
        size: Point,
        _: &StyleAttr,
        name: Option<String>,
        _: Option<ClipHandle>,
    ) {
        let number = name.and_then(|name| name.parse::<usize>().ok());
        if let Some(area) = number.and_then(|number| self.layout.boxes.get_mut(number)) {
            *area = Area {
                x: xy.x + size.x / 2.0,
                y: xy.y + size.y / 2.0,
                width: size.x,
                height: size.y,
            };
        }
    }

    fn draw_text(&mut self, xy: Point, text: &str, _: &StyleAttr) {
        // Boxes have no text here.
        if !text.is_empty() {
            self.texts.push(xy);
        }
    }

    fn draw_arrow(
        &mut self,
        path: &[(Point, Point)],
        _: bool,
        _: (bool, bool),
        _: &StyleAttr,
        name: Option<String>,
        _: &str,
    ) {
        let number = name.and_then(|name| name.parse::<usize>().ok());
        if let Some(way) = number.and_then(|number| self.layout.ways.get_mut(number)) {
            *way = points(path);
        }
        let line = number.and_then(|number| self.layout.paths.get_mut(number));
        if let (Some(line), [first, second, rest @ ..]) = (line, path) {
            let pair = |point: &Point| format!("{:.1} {:.1}", point.x, point.y);
            *line = format!("M {} C {}, ", pair(&first.0), pair(&first.1));
            line.push_str(&format!("{}, {}", pair(&second.0), pair(&second.1)));
            for (control, end) in rest {
                line.push_str(&format!(" S {}, {}", pair(control), pair(end)));
            }
        }
    }

    fn draw_line(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_circle(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}
