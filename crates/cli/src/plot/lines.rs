//! Lines, steps and marks with ranges.

use super::axis::Ruled;
use super::{Area, COLOURS, Figure, GRID, HEAD, HPos, INK, MOST_SERIES, Series, Stroke};
use super::{WIDTH, sheet, shortened, style, told, width, write};
use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// Most points of a line that have marks and bars; with more, a line alone is clearer.
const MARKED: usize = 60;
/// Size of the text of ticks, pixels.
const SMALL: u32 = 13;
/// Widest legend, pixels.
const WIDEST: f64 = 230.0;

type Frame = Cartesian2d<Ruled, Ruled>;

/// Draws the figure.
pub(super) fn draw(figure: &Figure, text: &mut String) -> Result<(), String> {
    let area = sheet(text, &figure.title, &figure.note)?;
    let series = &figure.series[..figure.series.len().min(MOST_SERIES)];
    let points = || series.iter().flat_map(|series| &series.points);
    let x = Ruled::new(&figure.x, points().map(|point| point.x), 8);
    let y = points().flat_map(|point| [point.low, point.y, point.high]);
    let y = Ruled::new(&figure.y, y, 6);
    let (across, up) = match figure.sideways {
        true => (&y, &x.clone().downwards()),
        false => (&x, &y),
    };
    let legend = match series {
        [only] if only.name.is_empty() => 0.0,
        _ => {
            let names = series.iter().map(|series| width(&series.name, SMALL));
            names.fold(0.0, f64::max).min(WIDEST) + 60.0
        }
    };
    let right = f64::from(WIDTH) - legend;
    let (above, below) = area.split_vertically(HEAD);
    drop(above);
    let (left, _) = below.split_horizontally(right as i32);
    let chart = frame(&left, figure, across, up)?;
    let at = |x_value: f64, y_value: f64| {
        let places = (x.place(x_value), y.place(y_value));
        chart.backend_coord(&match figure.sideways {
            true => (places.1, places.0),
            false => places,
        })
    };
    if y.range.0 < 0.0 && y.range.1 > 0.0 && !y.is_logarithmic() {
        let zero = [x.range.0, x.range.1].map(|end| match figure.sideways {
            true => chart.backend_coord(&(0.0, end)),
            false => chart.backend_coord(&(end, 0.0)),
        });
        let line = PathElement::new(zero.to_vec(), INK.stroke_width(1));
        area.draw(&line).map_err(told)?;
    }
    for (number, one) in series.iter().enumerate() {
        draw_series(&area, number, one, figure.sideways, &at)?;
    }
    for (number, one) in series.iter().enumerate().filter(|_| legend > 0.0) {
        let line = HEAD + 18 + 24 * number as i32;
        let from = right as i32 + 4;
        stroke(&area, number, one.form, &[(from, line), (from + 36, line)])?;
        if one.form != Stroke::Steps {
            mark(&area, number, (from + 18, line))?;
        }
        let name = shortened(&one.name, SMALL, WIDEST);
        write(&area, &name, (from + 44, line - 7), SMALL, HPos::Left)?;
    }
    area.present().map_err(told)
}

/// Axes, ticks and grid.
fn frame<'a>(
    area: &Area<'a>,
    figure: &Figure,
    x: &Ruled,
    y: &Ruled,
) -> Result<ChartContext<'a, SVGBackend<'a>, Frame>, String> {
    let widest = y
        .ticks
        .iter()
        .map(|tick| width(&tick.1, SMALL))
        .fold(0.0, f64::max);
    let slots = (f64::from(area.dim_in_pixel().0) - 130.0) / x.ticks.len().max(1) as f64;
    let crowded = x.ticks.iter().any(|tick| width(&tick.1, SMALL) > slots);
    let labels = match figure.sideways {
        true => (&figure.y.label, &figure.x.label),
        false => (&figure.x.label, &figure.y.label),
    };
    let mut chart = ChartBuilder::on(area)
        .margin_left(14)
        .margin_right(24)
        .margin_bottom(10)
        .margin_top(6)
        .x_label_area_size(if crowded { 76 } else { 48 })
        .y_label_area_size(widest as i32 + 40)
        .build_cartesian_2d(x.clone(), y.clone())
        .map_err(told)?;
    chart
        .configure_mesh()
        .axis_style(INK.stroke_width(1))
        .bold_line_style(GRID.stroke_width(1))
        .light_line_style(TRANSPARENT)
        .x_labels(x.ticks.len())
        .y_labels(y.ticks.len())
        .x_label_formatter(&|place| {
            // Long names that do not fit side by side are cut; the table has them whole.
            let label = x.label(*place);
            if crowded {
                shortened(&label, SMALL, slots.max(40.0))
            } else {
                label
            }
        })
        .y_label_formatter(&|place| y.label(*place))
        .label_style(style(SMALL))
        .axis_desc_style(style(14))
        .x_desc(labels.0)
        .y_desc(labels.1)
        .draw()
        .map_err(told)?;
    Ok(chart)
}

/// A line with its ranges and marks.
fn draw_series(
    area: &Area<'_>,
    number: usize,
    series: &Series,
    sideways: bool,
    at: &dyn Fn(f64, f64) -> (i32, i32),
) -> Result<(), String> {
    let colour = COLOURS[number % COLOURS.len()];
    let marked = series.form != Stroke::Steps && series.points.len() <= MARKED;
    for point in series.points.iter().filter(|point| point.low < point.high) {
        let (low, high) = (at(point.x, point.low), at(point.x, point.high));
        let bar = PathElement::new(vec![low, high], colour.stroke_width(1));
        area.draw(&bar).map_err(told)?;
        for end in [low, high] {
            let (dx, dy) = if sideways { (0, 4) } else { (4, 0) };
            let cap = vec![(end.0 - dx, end.1 - dy), (end.0 + dx, end.1 + dy)];
            area.draw(&PathElement::new(cap, colour.stroke_width(1)))
                .map_err(told)?;
        }
    }
    let points = series.points.iter().filter(|point| point.y.is_finite());
    let mut path: Vec<(i32, i32)> = Vec::new();
    for point in points.clone() {
        let next = at(point.x, point.y);
        if series.form == Stroke::Steps
            && let Some(last) = path.last().copied()
        {
            path.push((next.0, last.1));
        }
        path.push(next);
    }
    path.dedup();
    stroke(area, number, series.form, &path)?;
    if marked || series.form == Stroke::Marks {
        points
            .map(|point| at(point.x, point.y))
            .try_for_each(|place| mark(area, number, place))?;
    }
    Ok(())
}

/// The line itself, with the dashes of its number.
fn stroke(area: &Area<'_>, number: usize, form: Stroke, path: &[(i32, i32)]) -> Result<(), String> {
    let line = COLOURS[number % COLOURS.len()].stroke_width(2);
    let dashes = match (form, number % 4) {
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

/// The mark of a number: seven shapes that differ without colours, too.
fn mark(area: &Area<'_>, number: usize, (x, y): (i32, i32)) -> Result<(), String> {
    let colour = COLOURS[number % COLOURS.len()];
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
    match number % COLOURS.len() {
        0 => area
            .draw(&Circle::new((x, y), 5, colour.filled()))
            .map_err(told),
        1 => area
            .draw(&Circle::new((x, y), 6, colour.stroke_width(2)))
            .map_err(told),
        2 => polygon(&[(0, -6), (6, 5), (-6, 5)]),
        3 => polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)]),
        4 => line((-5, -5), (5, 5)).and_then(|()| line((-5, 5), (5, -5))),
        5 => polygon(&[(-5, -5), (5, -5), (5, 5), (-5, 5)]),
        _ => polygon(&[(-6, -5), (6, -5), (0, 6)]),
    }
}
