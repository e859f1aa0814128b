//! Connections over links: threads beside the ways of the links that they take, as in the recorded page.

use crate::layout::{self, Area, Layout};
use aerostat_lab::picture::{Picture, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Pixels between threads.
const SPACING: f64 = 2.6;
/// Number of lanes on one link; further threads share them.
const LANES: usize = 12;

/// Points of a line.
type Way = Vec<(f64, f64)>;

/// The ways of the links of a picture, from their first to their second end.
pub(super) struct Ways<'a> {
    picture: &'a Picture,
    pub(super) layout: &'a Layout,
    links: Vec<Way>,
    /// Points of the same ways at short distances.
    points: Vec<Way>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(picture: &'a Picture, layout: &'a Layout) -> Self {
        let links = picture.cables.iter().zip(&layout.ways).map(|(cable, way)| {
            let mut way = smoothed(way);
            let start = layout.boxes[cable.ends[0]];
            let away = |point: Option<&(f64, f64)>| {
                point.map_or(0.0, |(x, y)| libm::hypot(x - start.x, y - start.y))
            };
            if away(way.first()) > away(way.last()) {
                way.reverse();
            }
            way
        });
        let links: Vec<Way> = links.collect();
        Self {
            picture,
            layout,
            points: links.iter().map(|way| dotted(way)).collect(),
            links,
        }
    }

    /// The way of a link.
    pub(super) fn link(&self, number: usize) -> &[(f64, f64)] {
        self.links.get(number).map_or(&[], Vec::as_slice)
    }

    /// The lane of each of these threads: no two have the same one on a link while lanes are free.
    pub(super) fn lanes(&self, threads: &[&Thread]) -> Vec<usize> {
        let mut taken: BTreeSet<(usize, usize)> = BTreeSet::new();
        let lane = |thread: &&Thread| {
            let is_free = |lane: &usize| {
                thread
                    .via
                    .iter()
                    .all(|link| !taken.contains(&(*link, *lane)))
            };
            let lane = (0..LANES).find(is_free).unwrap_or(0);
            taken.extend(thread.via.iter().map(|link| (*link, lane)));
            lane
        };
        threads.iter().map(lane).collect()
    }

    /// The path of a thread. A link that does not go on from the machine that was reached last begins a new part: the
    /// branch of a tree.
    pub(super) fn thread(&self, thread: &Thread, lane: usize) -> String {
        let away = ((lane / 2) as f64 + 0.6) * SPACING;
        let by = if lane % 2 == 1 { -away } else { away };
        let mut path = String::new();
        let mut here = thread.from;
        let mut reached: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for number in &thread.via {
            let ends = self.picture.cables[*number].ends;
            let goes_on = ends.contains(&here);
            let branch = ends.iter().copied().find(|end| reached.contains_key(end));
            let start = if goes_on {
                here
            } else {
                branch.unwrap_or(ends[0])
            };
            // The side belongs to the link's own direction: threads of both directions keep their places.
            let mut way = beside(self.link(*number), by);
            if ends[0] != start {
                way.reverse();
            }
            let (Some(first), Some(last)) = (way.first().copied(), way.last().copied()) else {
                continue;
            };
            if let Some(before) = reached.get(&start) {
                if !goes_on {
                    line(&mut path, 'M', *before);
                }
                let middle = &self.layout.boxes[start];
                let _ = write!(
                    path,
                    "Q{:.1} {:.1} {:.1} {:.1}",
                    middle.x, middle.y, first.0, first.1
                );
            } else {
                line(&mut path, 'M', first);
            }
            way.iter()
                .skip(1)
                .for_each(|point| line(&mut path, 'L', *point));
            here = if ends[0] == start { ends[1] } else { ends[0] };
            reached.insert(here, last);
        }
        path
    }

    /// A place for the label of a thread: beside one of its links.
    pub(super) fn room(&self, thread: &Thread, label: &str, taken: &[Area]) -> Area {
        let size = (layout::label_size(label).0 + 14.0, 18.0);
        self.beside(&thread.via, size, 12.0, taken)
    }

    /// The place of this size beside one of these links, `gap` pixels from its middle, that hides the least: boxes that
    /// are taken, and other links.
    pub(super) fn beside(
        &self,
        links: &[usize],
        (width, height): (f64, f64),
        gap: f64,
        taken: &[Area],
    ) -> Area {
        const PARTS: [f64; 7] = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74];
        const FARTHER: [f64; 4] = [0.0, 16.0, 32.0, 48.0];
        let nowhere = Area {
            x: 0.0,
            y: 0.0,
            width,
            height,
        };
        let mut best = (f64::INFINITY, nowhere);
        for number in links {
            for part in PARTS {
                let (x, y, angle) = along(self.link(*number), part);
                let (sine, cosine) = angle.sin_cos();
                // The box just clears the way at this angle.
                let clear = width / 2.0 * sine.abs() + height / 2.0 * cosine.abs() + gap;
                for (farther, side) in FARTHER
                    .into_iter()
                    .flat_map(|far| [(far, 1.0), (far, -1.0)])
                {
                    let away = (clear + farther) * side * cosine.signum();
                    let (x, y) = (x + sine * away, y - cosine * away);
                    let place = Area { x, y, ..nowhere };
                    let cost = self.hidden(&place, *number, taken) + farther / 32.0;
                    if cost < best.0 {
                        best = (cost, place);
                    }
                }
            }
        }
        best.1
    }

    /// How much a label beside a link would hide.
    fn hidden(&self, place: &Area, own: usize, taken: &[Area]) -> f64 {
        let boxes = taken.iter().filter(|other| other.meets(place, 1.0)).count();
        let others = self
            .points
            .iter()
            .enumerate()
            .filter(|(link, _)| *link != own);
        let points = others.flat_map(|(_, way)| way).filter(|(x, y)| {
            let (x, y, width, height) = (*x, *y, 10.0, 10.0);
            Area {
                x,
                y,
                width,
                height,
            }
            .meets(place, 0.0)
        });
        10.0 * boxes as f64 + points.count() as f64
    }
}

/// The text of a path through points.
pub(super) fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (number, point) in points.iter().enumerate() {
        line(&mut text, if number == 0 { 'M' } else { 'L' }, *point);
    }
    text
}

fn line(path: &mut String, command: char, (x, y): (f64, f64)) {
    // Writing to a String cannot fail.
    let _ = write!(path, "{command}{x:.1} {y:.1}");
}

/// A way without points at which it turns back: where curves of a layout meet, they may overlap a little.
fn smoothed(points: &[(f64, f64)]) -> Way {
    let mut kept = Way::new();
    for point in points {
        let Some(last) = kept.last() else {
            kept.push(*point);
            continue;
        };
        let step = (point.0 - last.0, point.1 - last.1);
        let before = kept.len().checked_sub(2).map(|at| kept[at]);
        let back = before.is_some_and(|before| {
            step.0 * (last.0 - before.0) + step.1 * (last.1 - before.1) < 0.0
        });
        if !back && libm::hypot(step.0, step.1) > 0.5 {
            kept.push(*point);
        }
    }
    kept
}

/// Points of a way, at most eight pixels apart.
fn dotted(points: &[(f64, f64)]) -> Way {
    let parts = points.windows(2).flat_map(|pair| {
        let (dx, dy) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        let steps = (libm::hypot(dx, dy) / 8.0).ceil().max(1.0);
        let shares = (0..steps as u32).map(move |step| f64::from(step) / steps);
        shares.map(move |share| (pair[0].0 + dx * share, pair[0].1 + dy * share))
    });
    parts.chain(points.last().copied()).collect()
}

/// A way that is moved to the right of its direction by so many pixels.
fn beside(points: &[(f64, f64)], by: f64) -> Way {
    let moved = points.iter().enumerate().map(|(number, (x, y))| {
        let before = points[number.saturating_sub(1)];
        let behind = points[(number + 1).min(points.len() - 1)];
        let (dx, dy) = (behind.0 - before.0, behind.1 - before.1);
        let length = libm::hypot(dx, dy).max(1e-9);
        (x - dy / length * by, y + dx / length * by)
    });
    moved.collect()
}

/// The point at a part of the length of a way, and the direction there in radians.
pub(super) fn along(points: &[(f64, f64)], part: f64) -> (f64, f64, f64) {
    let length = |pair: &[(f64, f64)]| libm::hypot(pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
    let mut rest = part * points.windows(2).map(length).sum::<f64>();
    for pair in points.windows(2) {
        let here = length(pair);
        if rest <= here && here > 0.0 {
            let (from, to) = (pair[0], pair[1]);
            let share = rest / here;
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            return (
                from.0 + dx * share,
                from.1 + dy * share,
                libm::atan2(dy, dx),
            );
        }
        rest -= here;
    }
    points
        .last()
        .map_or((0.0, 0.0, 0.0), |(x, y)| (*x, *y, 0.0))
}
