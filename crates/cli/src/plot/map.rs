//! A value over two keys: colour and number of each cell.

use super::axis::{Form, Ruled, Scale};
use super::{
    Area, Axis, HEAD, HEIGHT, HPos, INK, Map, WIDTH, sheet, shortened, told, width, write,
};
use plotters::prelude::*;

/// Size of text, pixels.
const SMALL: u32 = 13;
/// Narrowest cell with its number, pixels.
const READABLE: f64 = 44.0;

/// Draws the map.
pub(super) fn draw(map: &Map, text: &mut String) -> Result<(), String> {
    let area = sheet(text, &map.title, &map.note)?;
    let values = || map.values.iter().flatten().flatten().copied();
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let names = map.y.1.iter().map(|name| width(name, SMALL));
    let left = 46.0 + names.fold(0.0, f64::max).min(200.0);
    let (right, top) = (f64::from(WIDTH) - 150.0, f64::from(HEAD) + 6.0);
    let bottom = f64::from(HEIGHT) - 62.0;
    let (columns, rows) = (map.x.1.len().max(1) as f64, map.y.1.len().max(1) as f64);
    let cell = ((right - left) / columns, (bottom - top) / rows);
    let colour = |value: f64| {
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        ViridisRGB.get_color_normalized(share as f32, 0.0, 1.0)
    };
    let form = Form::of(values());
    for (row, line) in map.values.iter().enumerate() {
        for (column, value) in line.iter().enumerate() {
            let x = left + column as f64 * cell.0;
            let y = bottom - (row + 1) as f64 * cell.1;
            let corners = [(x, y), (x + cell.0, y + cell.1)].map(|(x, y)| (x as i32, y as i32));
            let fill = value.map_or(WHITE, colour);
            area.draw(&Rectangle::new(corners, fill.filled()))
                .map_err(told)?;
            area.draw(&Rectangle::new(corners, WHITE.stroke_width(1)))
                .map_err(told)?;
            if cell.0 >= READABLE && cell.1 >= 18.0 {
                let shown = value.map_or("–".into(), |value| {
                    form.number(value, (high - low) / 100.0)
                });
                let middle = ((x + cell.0 / 2.0) as i32, (y + cell.1 / 2.0) as i32 - 6);
                write_on(&area, &shown, middle, fill)?;
            }
        }
    }
    names_of(&area, map, (left, bottom), cell)?;
    scale(
        &area,
        &map.label,
        (low, high),
        (right + 30.0, top, bottom),
        &colour,
    )?;
    area.present().map_err(told)
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

/// Names of columns and lines, and what they are.
fn names_of(
    area: &Area<'_>,
    map: &Map,
    (left, bottom): (f64, f64),
    cell: (f64, f64),
) -> Result<(), String> {
    // With many columns every second or third has its name.
    let every = (60.0 / cell.0).ceil().max(1.0) as usize;
    for (column, name) in map.x.1.iter().enumerate().step_by(every) {
        let middle = left + (column as f64 + 0.5) * cell.0;
        let name = shortened(name, SMALL, cell.0 * every as f64);
        write(
            area,
            &name,
            (middle as i32, bottom as i32 + 8),
            SMALL,
            HPos::Center,
        )?;
    }
    let every = (18.0 / cell.1).ceil().max(1.0) as usize;
    for (row, name) in map.y.1.iter().enumerate().step_by(every) {
        let middle = bottom - (row as f64 + 0.5) * cell.1;
        let name = shortened(name, SMALL, 200.0);
        write(
            area,
            &name,
            (left as i32 - 8, middle as i32 - 7),
            SMALL,
            HPos::Right,
        )?;
    }
    let middle = left + cell.0 * map.x.1.len() as f64 / 2.0;
    write(
        area,
        &map.x.0,
        (middle as i32, bottom as i32 + 34),
        14,
        HPos::Center,
    )?;
    let middle = bottom - cell.1 * map.y.1.len() as f64 / 2.0;
    let style = super::style(14).transform(FontTransform::Rotate270);
    let hold = super::Pos::new(HPos::Center, super::VPos::Top);
    let at = (14, middle as i32);
    area.draw(&Text::new(map.y.0.clone(), at, style.pos(hold)))
        .map_err(told)
}

/// The colours and the numbers that they stand for.
fn scale(
    area: &Area<'_>,
    label: &str,
    (low, high): (f64, f64),
    (x, top, bottom): (f64, f64, f64),
    colour: &dyn Fn(f64) -> RGBColor,
) -> Result<(), String> {
    // Without values the ends are infinite and in the wrong order.
    if high <= low {
        return Ok(());
    }
    let height = bottom - top;
    for line in 0..height as i32 {
        let value = high - (high - low) * f64::from(line) / height;
        let y = top as i32 + line;
        let corners = [(x as i32, y), (x as i32 + 18, y + 1)];
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
        let y = (bottom - height * (value - low) / (high - low)) as i32;
        let tick = vec![(x as i32 + 18, y), (x as i32 + 23, y)];
        area.draw(&PathElement::new(tick, INK.stroke_width(1)))
            .map_err(told)?;
        write(area, name, (x as i32 + 27, y - 7), SMALL, HPos::Left)?;
    }
    let style = super::style(14).transform(FontTransform::Rotate270);
    let hold = super::Pos::new(HPos::Center, super::VPos::Bottom);
    let at = (WIDTH as i32 - 8, f64::midpoint(top, bottom) as i32);
    area.draw(&Text::new(label.to_owned(), at, style.pos(hold)))
        .map_err(told)
}
