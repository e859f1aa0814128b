//! Lines, steps and marks with ranges.

use super::axis::{Ruled, Scale};
use super::{
    Area, Figure, GREY, GRID, HEIGHT, HPos, Head, INK, LINE, MIDDLE, MOST_SERIES, SMALL, Series,
    Sign, Stroke, WIDTH, sheet, style, told, widest, width, write, write_upwards,
};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{Pos, VPos};

/// Most points of a line that have marks and bars; with more, a line alone is clearer.
const MARKED: usize = 60;
/// Widest legend beside the lines, pixels. With longer names it stands below them.
const BESIDE: i32 = 300;
/// Width of the sample in front of a name of the legend, pixels.
const SAMPLE: i32 = 44;
/// Smallest width and height of the lines alone, pixels.
const ROOM: (i32, i32) = (420, 300);

/// Draws the figure.
pub(super) fn draw(figure: &Figure, text: &mut String) -> Result<(), String> {
    let drawn = figure.series.len().min(MOST_SERIES);
    let series = &told_apart(&figure.series[..drawn]);
    let points = || series.iter().flat_map(|series| &series.points);
    let x = Ruled::new(&figure.x, points().map(|point| point.x), 8);
    let y = points().flat_map(|point| [point.low, point.y, point.high]);
    let y = Ruled::new(&figure.y, y, 6);
    let plan = Plan::new(figure, series, x, &y);
    let area = sheet(text, &plan.head, plan.size)?;
    let chart = plan.chart(figure, y);
    chart.frame(&area, figure)?;
    chart.words(&area, &figure.words)?;
    for (number, one) in series.iter().enumerate() {
        chart.series(&area, number, one)?;
    }
    for (number, (one, (left, line))) in series.iter().zip(&plan.legend).enumerate() {
        stroke(
            &area,
            one.sign(number),
            one.form,
            &[(*left, *line), (left + 36, *line)],
        )?;
        if one.form != Stroke::Steps {
            mark(&area, one.sign(number), (left + 18, *line))?;
        }
        write(
            &area,
            &one.name,
            (left + SAMPLE, line - 7),
            SMALL,
            HPos::Left,
        )?;
    }
    area.present().map_err(told)
}

/// The lines with names that differ: lines that have the same name get numbers.
fn told_apart(series: &[Series]) -> Vec<Series> {
    let owners = |name: &str| series.iter().filter(|one| one.name == name).count();
    let mut told: Vec<Series> = Vec::new();
    for one in series {
        let mut names = (1..).map(|number| format!("{} ({number})", one.name));
        let taken = |name: &str| told.iter().any(|other| other.name == name);
        let name = match owners(&one.name) {
            1 => one.name.clone(),
            _ => names
                .find(|name| owners(name) == 0 && !taken(name))
                .unwrap_or_default(),
        };
        told.push(Series {
            name,
            ..one.clone()
        });
    }
    told
}

/// Places of the parts of the drawing, pixels. The drawing grows with its names, so that all of them are whole.
struct Plan {
    head: Head,
    /// Width and height of the drawing.
    size: (i32, i32),
    /// Left, upper, right and lower edge of the lines.
    edges: [i32; 4],
    /// True if the first axis goes down.
    sideways: bool,
    /// The first axis.
    x: Ruled,
    /// Left edge and middle of each sample of the legend; nothing for a single line without a name.
    legend: Vec<(i32, i32)>,
}

impl Plan {
    fn new(figure: &Figure, series: &[Series], x: Ruled, y: &Ruled) -> Self {
        let legend = match series {
            [only] if only.name.is_empty() => None,
            _ => Some(SAMPLE + widest(series.iter().map(|one| &one.name), SMALL) + 20),
        };
        let beside = legend.filter(|wide| *wide <= BESIDE);
        let right = beside.map_or(36, |wide| wide + 12);
        let labels = |axis: &Ruled| widest(axis.ticks.iter().map(|tick| &tick.1), SMALL);
        // Names that do not fit side by side stand below each other.
        let slot =
            (WIDTH - right - labels(y) - 44) / i32::try_from(x.ticks.len().max(1)).unwrap_or(1);
        let names = matches!(figure.x.scale, Scale::Names(_));
        let sideways = figure.sideways || (names && labels(&x) + 8 > slot);
        let (up, along, across) = match sideways {
            true => (&x, &figure.x.label, &figure.y.label),
            false => (y, &figure.y.label, &figure.x.label),
        };
        let left = labels(up) + if along.is_empty() { 24 } else { 44 };
        let below = legend.filter(|_| beside.is_none());
        let middle = |text: &String| width(text, MIDDLE).ceil() as i32;
        let wide = WIDTH
            .max(left + ROOM.0.max(middle(across)) + right)
            .max(below.map_or(0, |wide| 40 + wide));
        let head = Head::new(&figure.title, &figure.note, wide);
        let top = head.height + 8;
        let lines = i32::try_from(series.len()).unwrap_or(0);
        let under = below.map_or(0, |_| LINE * lines);
        let slots = i32::try_from(x.ticks.len()).unwrap_or(i32::MAX / 64);
        let high = ROOM.1.max(middle(along)).max(match sideways {
            true => 20 * slots,
            false => LINE * beside.map_or(0, |_| lines),
        });
        let bottom = (top + high).max(HEIGHT - 58 - under);
        let edges = [left, top, wide - right, bottom];
        let place = |number: i32| match (beside, below) {
            (Some(_), _) => (wide - right + 8, top + 12 + LINE * number),
            _ => (20, bottom + 66 + LINE * number),
        };
        Self {
            head,
            size: (wide, bottom + 58 + under),
            edges,
            sideways,
            x,
            legend: legend.map_or(Vec::new(), |_| (0..lines).map(place).collect()),
        }
    }

    /// The axes in their places.
    fn chart(&self, figure: &Figure, y: Ruled) -> Chart {
        let [left, top, right, bottom] = self.edges;
        let numbers = |axis: Ruled, scale: &Scale| match scale {
            Scale::Names(_) => axis,
            _ => axis.thinned(right - left, |label| width(label, SMALL)),
        };
        let (across, up) = match self.sideways {
            true => (numbers(y, &figure.y.scale), self.x.clone().downwards()),
            false => (numbers(self.x.clone(), &figure.x.scale), y),
        };
        Chart {
            across,
            up,
            edges: [left, top, right, bottom],
            sideways: self.sideways,
        }
    }
}

/// Two axes and their places.
struct Chart {
    /// The axis from left to right.
    across: Ruled,
    /// The axis from below to above.
    up: Ruled,
    /// Left, upper, right and lower edge, pixels.
    edges: [i32; 4],
    /// True if the first value of points belongs to the axis upwards.
    sideways: bool,
}

impl Chart {
    fn across(&self, place: f64) -> i32 {
        self.across.pixel(place, (self.edges[0], self.edges[2]))
    }

    fn up(&self, place: f64) -> i32 {
        self.up.pixel(place, (self.edges[3], self.edges[1]))
    }

    /// The pixel of a point.
    fn at(&self, x: f64, y: f64) -> (i32, i32) {
        let (across, up) = if self.sideways { (y, x) } else { (x, y) };
        (
            self.across(self.across.place(across)),
            self.up(self.up.place(up)),
        )
    }

    /// Grid, axes, ticks and their labels.
    fn frame(&self, area: &Area<'_>, figure: &Figure) -> Result<(), String> {
        let [left, top, right, bottom] = self.edges;
        let line = |from: (i32, i32), to: (i32, i32), style: ShapeStyle| {
            area.draw(&PathElement::new(vec![from, to], style))
                .map_err(told)
        };
        let (ink, grid) = (INK.stroke_width(1), GRID.stroke_width(1));
        for (place, label) in &self.across.ticks {
            let x = self.across(*place);
            line((x, top), (x, bottom), grid)?;
            line((x, bottom), (x, bottom + 5), ink)?;
            write(area, label, (x, bottom + 10), SMALL, HPos::Center)?;
        }
        for (place, label) in &self.up.ticks {
            let y = self.up(*place);
            line((left, y), (right, y), grid)?;
            line((left - 5, y), (left, y), ink)?;
            write(area, label, (left - 9, y - 7), SMALL, HPos::Right)?;
        }
        line((left, top), (left, bottom), ink)?;
        line((left, bottom), (right, bottom), ink)?;
        // Negative and positive values are on two sides of a line.
        let values = if self.sideways {
            &self.across
        } else {
            &self.up
        };
        if values.range.0 < 0.0 && values.range.1 > 0.0 && !values.is_logarithmic() {
            let zero = if self.sideways {
                self.across(0.0)
            } else {
                self.up(0.0)
            };
            match self.sideways {
                true => line((zero, top), (zero, bottom), ink)?,
                false => line((left, zero), (right, zero), ink)?,
            }
        }
        let (across, up) = match self.sideways {
            true => (&figure.y.label, &figure.x.label),
            false => (&figure.x.label, &figure.y.label),
        };
        let (mut across, mut up) = (across.clone(), up.clone());
        let (label, place, reach) = match self.sideways {
            true => (&mut across, (left + 9, bottom), (4, 6)),
            false => (&mut up, (left, bottom - 9), (6, 4)),
        };
        *label = values.told(label);
        if values.starts_late() {
            cut(area, place, reach)?;
        }
        let middle = (i32::midpoint(left, right), i32::midpoint(top, bottom));
        write(area, &across, (middle.0, bottom + 34), MIDDLE, HPos::Center)?;
        write_upwards(area, &up, (12, middle.1), MIDDLE, HPos::Center)
    }

    /// Words that stand for a number: at the right end of their line, or upwards above their place. The tables beside
    /// drawings have them whole.
    fn words(&self, area: &Area<'_>, words: &[(f64, String)]) -> Result<(), String> {
        let [left, top, right, bottom] = self.edges;
        let style = style(SMALL).color(&GREY);
        for (x, text) in words {
            let place = match self.sideways {
                true => self.up(self.up.place(*x)),
                false => self.across(self.across.place(*x)),
            };
            let (room, hold, style) = match self.sideways {
                true => ((right - left) / 2, HPos::Right, style.clone()),
                false => {
                    let upwards = style.transform(FontTransform::Rotate270);
                    (bottom - top - 16, HPos::Left, upwards)
                }
            };
            let text = shortened(&format!("“{text}”"), room);
            let at = match self.sideways {
                true => (right - 6, place - 7),
                false => (place + 5, bottom - 8),
            };
            let style = style.pos(Pos::new(hold, VPos::Top));
            area.draw(&Text::new(text, at, style)).map_err(told)?;
        }
        Ok(())
    }

    /// A line with its ranges and marks.
    fn series(&self, area: &Area<'_>, number: usize, series: &Series) -> Result<(), String> {
        let sign = series.sign(number);
        let colour = sign.colour();
        let marked = series.form != Stroke::Steps && series.points.len() <= MARKED;
        for point in series.points.iter().filter(|point| point.low < point.high) {
            let (low, high) = (self.at(point.x, point.low), self.at(point.x, point.high));
            let bar = PathElement::new(vec![low, high], colour.stroke_width(1));
            area.draw(&bar).map_err(told)?;
            for end in [low, high] {
                let (dx, dy) = if self.sideways { (0, 4) } else { (4, 0) };
                let cap = vec![(end.0 - dx, end.1 - dy), (end.0 + dx, end.1 + dy)];
                area.draw(&PathElement::new(cap, colour.stroke_width(1)))
                    .map_err(told)?;
            }
        }
        let points = series.points.iter().filter(|point| point.y.is_finite());
        let mut path: Vec<(i32, i32)> = Vec::new();
        for point in points.clone() {
            let next = self.at(point.x, point.y);
            if series.form == Stroke::Steps
                && let Some(last) = path.last().copied()
            {
                path.push((next.0, last.1));
            }
            path.push(next);
        }
        path.dedup();
        stroke(area, sign, series.form, &path)?;
        if marked || series.form == Stroke::Marks {
            points
                .map(|point| self.at(point.x, point.y))
                .try_for_each(|place| mark(area, sign, place))?;
        }
        Ok(())
    }
}

/// Words in quotation marks that need at most this much room, pixels; what is left out is "…".
fn shortened(text: &str, room: i32) -> String {
    if width(text, SMALL) <= f64::from(room) {
        return text.to_owned();
    }
    let mut kept = String::new();
    for word in text.split_inclusive(' ') {
        if width(&[&kept, word, "…”"].concat(), SMALL) > f64::from(room) {
            break;
        }
        kept += word;
    }
    kept + "…”"
}

/// Two strokes across an axis that does not begin at 0.
fn cut(area: &Area<'_>, (x, y): (i32, i32), (dx, dy): (i32, i32)) -> Result<(), String> {
    for gap in [-2, 2] {
        let (x, y) = if dx < dy { (x + gap, y) } else { (x, y + gap) };
        let ends = vec![(x - dx, y + dy), (x + dx, y - dy)];
        area.draw(&PathElement::new(ends, INK.stroke_width(1)))
            .map_err(told)?;
    }
    Ok(())
}

/// The line itself, with the dashes of its colour.
fn stroke(area: &Area<'_>, sign: Sign, form: Stroke, path: &[(i32, i32)]) -> Result<(), String> {
    let line = sign.colour().stroke_width(2);
    let dashes = match (form, sign.colour.unwrap_or_default() % 4) {
        (Stroke::Marks, _) => return Ok(()),
        (_, 0) => None,
        (_, 1) => Some((10, 5)),
        (_, 2) => Some((3, 4)),
        (_, _) => Some((16, 4)),
    };
    match dashes {
        _ if path.len() < 2 => Ok(()),
        None => area
            .draw(&PathElement::new(path.to_vec(), line))
            .map_err(told),
        Some((dash, gap)) => {
            let path = DashedPathElement::new(path.to_vec(), dash, gap, line);
            area.draw(&path).map_err(told)
        }
    }
}

/// The mark of a number: eight shapes that differ without colours, too. A line without a meaning of its own has one of
/// the first seven.
fn mark(area: &Area<'_>, sign: Sign, (x, y): (i32, i32)) -> Result<(), String> {
    let colour = sign.colour();
    let polygon = |corners: &[(i32, i32)]| {
        let corners: Vec<(i32, i32)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        area.draw(&Polygon::new(corners, colour.filled()))
            .map_err(told)
    };
    let line = |from: (i32, i32), to: (i32, i32)| {
        let ends = vec![(x + from.0, y + from.1), (x + to.0, y + to.1)];
        area.draw(&PathElement::new(ends, colour.stroke_width(2)))
            .map_err(told)
    };
    match sign.mark {
        0 => area
            .draw(&Circle::new((x, y), 5, colour.filled()))
            .map_err(told),
        1 => area
            .draw(&Circle::new((x, y), 6, colour.stroke_width(2)))
            .map_err(told),
        2 => polygon(&[(0, -6), (6, 5), (-6, 5)]),
        3 => polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)]),
        4 => line((-9, -9), (9, 9)).and_then(|()| line((-9, 9), (9, -9))),
        5 => polygon(&[(-5, -5), (5, -5), (5, 5), (-5, 5)]),
        6 => polygon(&[(-6, -5), (6, -5), (0, 6)]),
        _ => {
            let corners = [(0, -9), (9, 0), (0, 9), (-9, 0), (0, -9)];
            let corners = corners.map(|(dx, dy)| (x + dx, y + dy));
            area.draw(&PathElement::new(corners, colour.stroke_width(2)))
                .map_err(told)
        }
    }
}
