//! Drawings of results as SVG: lines with ranges over a value, distributions, values over time, maps of two values.
//!
//! ```text
//! axis.rs    scales, ticks and their labels     lines.rs   lines, steps and marks with ranges
//! map.rs     two keys and a value as colour     words.rs   names and units of columns and keys
//! ```
//!
//! A drawing needs no network, no script and no font of its own. Colours are those of Okabe and Ito, which people with
//! any kind of colour vision tell apart; lines differ in marks and dashes, too, so they do in print without colours.

mod axis;
mod lines;
mod map;
pub(crate) mod words;

pub(crate) use axis::Scale;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Display;

/// Width of a drawing, pixels.
const WIDTH: u32 = 900;
/// Height of a drawing, pixels.
const HEIGHT: u32 = 540;
/// Most lines of a drawing: as many as there are colours.
pub(crate) const MOST_SERIES: usize = COLOURS.len();

/// Source: M. Okabe, K. Ito, "Color Universal Design" (2008), without yellow, which is hard to see on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];
/// Text and axes.
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Lines of the grid.
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// The family of the text, with those that stand in for it.
const FONT: &str = "DejaVu Sans, Verdana, Arial, sans-serif";
/// Width of a letter as a share of the size of the text, about.
const LETTER: f64 = 0.62;

/// An axis of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What it shows, with its unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

/// Lines over a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// What the reader has to know, in small letters below the title: the lab, what the bars are.
    pub(crate) note: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The first axis from above to below, and the second one to the right: for long names.
    pub(crate) sideways: bool,
    /// At most [`MOST_SERIES`] lines; further ones are not drawn.
    pub(crate) series: Vec<Series>,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) form: Stroke,
    pub(crate) points: Vec<Point>,
}

/// How the points of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// Marks with lines between them.
    Joined,
    /// A value holds until the next one; without marks.
    Steps,
    /// Marks alone.
    Marks,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Place on the horizontal axis; with [`Scale::Names`] the number of the name, from 0.
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The range, drawn as a bar; both are `y` if there is no range.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Point {
    /// A point without a range.
    pub(crate) const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: y,
            high: y,
        }
    }
}

/// Values over two keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map {
    pub(crate) title: String,
    pub(crate) note: String,
    /// Label and names of the columns.
    pub(crate) x: (String, Vec<String>),
    /// Label and names of the lines, from below.
    pub(crate) y: (String, Vec<String>),
    /// What is shown, with its unit.
    pub(crate) label: String,
    /// A value for each line and column.
    pub(crate) values: Vec<Vec<Option<f64>>>,
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawing {
    Lines(Figure),
    Map(Map),
}

impl Drawing {
    /// The drawing as the text of an SVG file.
    pub(crate) fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        let (title, drawn) = match self {
            Self::Lines(figure) => (&figure.title, lines::draw(figure, &mut text)),
            Self::Map(map) => (&map.title, map::draw(map, &mut text)),
        };
        drawn.map_err(|error| format!("the drawing '{title}': {error}"))?;
        Ok(text)
    }
}

/// An area that pixels are drawn into.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A mistake of the drawing library, in words.
fn told(error: impl Display) -> String {
    error.to_string()
}

/// An empty drawing with its title and note.
fn sheet<'a>(text: &'a mut String, title: &str, note: &str) -> Result<Area<'a>, String> {
    let area = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE).map_err(told)?;
    // Titles are ordinary prose, whose letters are narrower than those of names. A long one is smaller.
    let room = (f64::from(WIDTH) - 40.0) * 1.2;
    let line = |text: &str, sizes: &[u32], top: i32| {
        let fits = |size: &&u32| width(text, **size) <= room;
        let size = *sizes.iter().find(fits).unwrap_or(&11);
        write(
            &area,
            &shortened(text, size, room),
            (20, top),
            size,
            HPos::Left,
        )
    };
    line(title, &[18, 15, 13, 12], 16)?;
    line(note, &[13, 12], 42)?;
    Ok(area)
}

/// Height of title and note, pixels.
const HEAD: i32 = 64;

/// Writes text whose upper edge, and left edge, middle or right edge, is at `at`.
fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: u32, hold: HPos) -> Result<(), String> {
    let style = style(size).pos(Pos::new(hold, VPos::Top));
    area.draw(&Text::new(text.to_owned(), at, style))
        .map_err(told)
}

/// The style of text of this size, pixels.
fn style(size: u32) -> TextStyle<'static> {
    // The backend divides sizes by this number.
    let size = f64::from(size) * 1.24;
    (FONT, size).into_font().color(&INK)
}

/// Width of text, pixels, about.
fn width(text: &str, size: u32) -> f64 {
    text.chars().count() as f64 * f64::from(size) * LETTER
}

/// The text, cut so that it fits `room` pixels.
fn shortened(text: &str, size: u32, room: f64) -> String {
    let most = (room / (f64::from(size) * LETTER)).max(1.0) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests;
