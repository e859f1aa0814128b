//! A value over two keys: colour and number of each cell.

use super::axis::{Form, Ruled, Scale};
use super::{
    Area, Axis, HEIGHT, HPos, Head, INK, MIDDLE, Map, SMALL, WIDTH, sheet, told, widest, width,
    write, write_upwards,
};
use plotters::prelude::*;

/// Narrowest cell with its number, pixels.
const READABLE: i32 = 44;
/// Smallest width and height of a cell, pixels, so that its names are legible.
const SMALLEST: i32 = 18;
/// Room to the right of the cells, for the colours and what they stand for, pixels.
const RIGHT: i32 = 150;

/// Draws the map.
pub(super) fn draw(map: &Map, text: &mut String) -> Result<(), String> {
    let values = || map.values.iter().flatten().flatten().copied();
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let plan = Plan::new(map);
    let area = sheet(text, &plan.head, plan.size)?;
    let colour = |value: f64| {
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        ViridisRGB.get_color_normalized(share as f32, 0.0, 1.0)
    };
    let form = Form::of(values());
    let readable = plan.cell.0 >= f64::from(READABLE) && plan.cell.1 >= f64::from(SMALLEST);
    for (row, line) in map.values.iter().enumerate() {
        for (column, value) in line.iter().enumerate() {
            let corners = [
                (plan.column(column, 0.0), plan.row(row, 1.0)),
                (plan.column(column, 1.0), plan.row(row, 0.0)),
            ];
            let fill = value.map_or(WHITE, colour);
            area.draw(&Rectangle::new(corners, fill.filled()))
                .map_err(told)?;
            area.draw(&Rectangle::new(corners, WHITE.stroke_width(1)))
                .map_err(told)?;
            if readable {
                let shown = value.map_or("–".into(), |value| {
                    form.number(value, (high - low) / 100.0)
                });
                let middle = (plan.column(column, 0.5), plan.row(row, 0.5) - 6);
                write_on(&area, &shown, middle, fill)?;
            }
        }
    }
    plan.names(&area, map)?;
    let place = (plan.right + 30, plan.top, plan.bottom);
    scale(&area, &map.label, (low, high), place, &colour)?;
    area.present().map_err(told)
}

/// Places of the parts of the map, pixels. The map grows with its names and with its cells, so that all names are
/// there, and are whole.
struct Plan {
    head: Head,
    /// Width and height of the drawing.
    size: (i32, i32),
    /// Edges of the cells.
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
    /// Width and height of a cell.
    cell: (f64, f64),
    /// True if the names of columns do not fit side by side, and go down.
    down: bool,
}

impl Plan {
    fn new(map: &Map) -> Self {
        let count = |names: &[String]| i32::try_from(names.len().max(1)).unwrap_or(i32::MAX / 64);
        let (columns, rows) = (count(&map.x.1), count(&map.y.1));
        let middle = |text: &String| width(text, MIDDLE).ceil() as i32;
        let left = 46 + widest(map.y.1.iter(), SMALL);
        let wide = (WIDTH - left - RIGHT)
            .max(SMALLEST * columns)
            .max(middle(&map.x.0));
        let name = widest(map.x.1.iter(), SMALL);
        let down = name + 8 > wide / columns;
        let names = if down { name + 12 } else { 26 };
        let head = Head::new(&map.title, &map.note, left + wide + RIGHT);
        let top = head.height + 14;
        let high = (HEIGHT - top - names - 36)
            .max(SMALLEST * rows)
            .max(middle(&map.y.0))
            .max(middle(&map.label));
        Self {
            head,
            size: (left + wide + RIGHT, top + high + names + 36),
            left,
            top,
            right: left + wide,
            bottom: top + high,
            cell: (
                f64::from(wide) / f64::from(columns),
                f64::from(high) / f64::from(rows),
            ),
            down,
        }
    }

    /// A place in a column: 0 is its left edge, 1 its right edge.
    fn column(&self, column: usize, share: f64) -> i32 {
        self.left + ((column as f64 + share) * self.cell.0) as i32
    }

    /// A place in a row: 0 is its lower edge, 1 its upper edge.
    fn row(&self, row: usize, share: f64) -> i32 {
        self.bottom - ((row as f64 + share) * self.cell.1) as i32
    }

    /// Names of columns and rows, and what they are.
    fn names(&self, area: &Area<'_>, map: &Map) -> Result<(), String> {
        for (column, name) in map.x.1.iter().enumerate() {
            let at = (self.column(column, 0.5), self.bottom + 8);
            match self.down {
                true => write_upwards(area, name, (at.0 - 6, at.1), SMALL, HPos::Right)?,
                false => write(area, name, at, SMALL, HPos::Center)?,
            }
        }
        for (row, name) in map.y.1.iter().enumerate() {
            let at = (self.left - 8, self.row(row, 0.5) - 7);
            write(area, name, at, SMALL, HPos::Right)?;
        }
        let below = (i32::midpoint(self.left, self.right), self.size.1 - 28);
        write(area, &map.x.0, below, MIDDLE, HPos::Center)?;
        let beside = (14, i32::midpoint(self.top, self.bottom));
        write_upwards(area, &map.y.0, beside, MIDDLE, HPos::Center)
    }
}

/// A number on its colour: dark on light colours, light on dark ones.
fn write_on(area: &Area<'_>, text: &str, at: (i32, i32), on: RGBColor) -> Result<(), String> {
    let light = 0.3 * f64::from(on.0) + 0.59 * f64::from(on.1) + 0.11 * f64::from(on.2);
    let colour = if light > 130.0 { INK } else { WHITE };
    let style = super::style(SMALL).color(&colour);
    let hold = super::Pos::new(HPos::Center, super::VPos::Top);
    area.draw(&Text::new(text.to_owned(), at, style.pos(hold)))
        .map_err(told)
}

/// The colours and the numbers that they stand for.
fn scale(
    area: &Area<'_>,
    label: &str,
    (low, high): (f64, f64),
    (x, top, bottom): (i32, i32, i32),
    colour: &dyn Fn(f64) -> RGBColor,
) -> Result<(), String> {
    // Without values the ends are infinite and in the wrong order.
    if high <= low {
        return Ok(());
    }
    let height = f64::from(bottom - top);
    for line in 0..bottom - top {
        let value = high - (high - low) * f64::from(line) / height;
        let corners = [(x, top + line), (x + 18, top + line + 1)];
        area.draw(&Rectangle::new(corners, colour(value).filled()))
            .map_err(told)?;
    }
    let axis = Axis {
        label: String::new(),
        scale: Scale::Linear { zero: false },
    };
    let ruled = Ruled::new(&axis, [low, high].into_iter(), 6);
    for (value, name) in ruled
        .ticks
        .iter()
        .filter(|tick| tick.0 >= low && tick.0 <= high)
    {
        let y = (f64::from(bottom) - height * (value - low) / (high - low)) as i32;
        let tick = vec![(x + 18, y), (x + 23, y)];
        area.draw(&PathElement::new(tick, INK.stroke_width(1)))
            .map_err(told)?;
        write(area, name, (x + 27, y - 7), SMALL, HPos::Left)?;
    }
    let beside = (x + RIGHT - 52, i32::midpoint(top, bottom));
    write_upwards(area, label, beside, MIDDLE, HPos::Center)
}
