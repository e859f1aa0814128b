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

use aerostat_view::escaped;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Display;

/// Smallest width of a drawing, pixels. A drawing whose names need more room is wider.
const WIDTH: i32 = 900;
/// Smallest height of a drawing, pixels.
const HEIGHT: i32 = 540;
/// Size of the text of ticks, names and numbers, pixels.
const SMALL: u32 = 13;
/// Size of the text beside an axis, pixels.
const MIDDLE: u32 = 14;
/// Height of a line of [`SMALL`] text with its gap, pixels.
const LINE: i32 = 24;
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
/// Lines and words that do not count.
const GREY: RGBColor = RGBColor(0x88, 0x88, 0x88);
/// Lines of the grid.
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// The family of the text, with those that stand in for it.
const FONT: &str = "DejaVu Sans, Verdana, Arial, sans-serif";
/// Widths of the letters from space to tilde, thousandths of the size of the text. Source: DejaVu Sans 2.37, table
/// `hmtx`; the families that stand in for it are as wide or narrower.
const ADVANCES: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];
/// Width of any other letter, in the same unit.
const OTHER_ADVANCE: u16 = 1000;

/// An axis of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Quantity, with its unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

/// Lines over a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Note for the reader, in small letters below the title: the lab, the meaning of the bars.
    pub(crate) note: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The first axis from above to below, and the second one to the right: for long names.
    pub(crate) sideways: bool,
    /// At most [`MOST_SERIES`] lines; further ones are not drawn.
    pub(crate) series: Vec<Series>,
    /// Words at values of the first axis, where there is no number.
    pub(crate) words: Vec<(f64, String)>,
}

impl Figure {
    /// The same figure in as many drawings as it needs, each with at most [`MOST_SERIES`] lines.
    pub(crate) fn parts(self) -> Vec<Drawing> {
        let parts = self.series.chunks(MOST_SERIES);
        let part = |series: &[Series]| {
            Drawing::Lines(Self {
                series: series.to_vec(),
                ..self.clone()
            })
        };
        numbered(parts.map(part).collect())
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) form: Stroke,
    pub(crate) points: Vec<Point>,
    /// Colour and mark; `None`: those of the number of the line in its drawing.
    pub(crate) sign: Option<Sign>,
}

/// Colour and mark of a line whose meaning is the same in several drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    /// Number of the colour; `None`: grey.
    pub(crate) colour: Option<usize>,
    /// Number of the mark.
    pub(crate) mark: usize,
}

impl Series {
    /// Its sign as line `number` of a drawing.
    fn sign(&self, number: usize) -> Sign {
        self.sign.unwrap_or(Sign {
            colour: Some(number),
            mark: number % COLOURS.len(),
        })
    }
}

impl Sign {
    fn colour(self) -> RGBColor {
        self.colour
            .map_or(GREY, |number| COLOURS[number % COLOURS.len()])
    }
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
    /// Quantity, with its unit.
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

/// The drawings, with numbers in the titles that several of them have.
pub(crate) fn numbered(mut drawings: Vec<Drawing>) -> Vec<Drawing> {
    let titles: Vec<String> = drawings.iter_mut().map(|one| one.title().clone()).collect();
    for (at, drawing) in drawings.iter_mut().enumerate() {
        let same = |title: &&String| **title == titles[at];
        let count = titles.iter().filter(same).count();
        if count > 1 {
            let number = titles[..=at].iter().filter(same).count();
            *drawing.title() += &format!(" ({number} of {count})");
        }
    }
    drawings
}

impl Drawing {
    /// Its title.
    pub(crate) const fn title(&mut self) -> &mut String {
        match self {
            Self::Lines(figure) => &mut figure.title,
            Self::Map(map) => &mut map.title,
        }
    }

    /// True if it has neither words nor a value other than 0.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Lines(figure) => {
                let mut points = figure.series.iter().flat_map(|series| &series.points);
                figure.words.is_empty() && points.all(|point| point.y == 0.0)
            }
            Self::Map(map) => {
                let mut values = map.values.iter().flatten().flatten();
                values.all(|value| *value == 0.0)
            }
        }
    }

    /// The drawing as the text of an SVG file.
    pub(crate) fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        let (title, drawn) = match self {
            Self::Lines(figure) => (&figure.title, lines::draw(figure, &mut text)),
            Self::Map(map) => (&map.title, map::draw(map, &mut text)),
        };
        drawn.map_err(|error| format!("the drawing '{title}': {error}"))?;
        Ok(titled(&text, title))
    }
}

/// The SVG text with the title that browsers and screen readers show.
fn titled(svg: &str, title: &str) -> String {
    let (tag, rest) = svg.split_once('>').unwrap_or((svg, ""));
    format!("{tag}>\n<title>{}</title>{rest}", escaped(title))
}

/// An area that pixels are drawn into.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A mistake of the drawing library, in words.
fn told(error: impl Display) -> String {
    error.to_string()
}

/// Title and note of a drawing, in lines that fit its width.
struct Head {
    /// Text, size and upper edge of each line, pixels.
    lines: Vec<(String, u32, i32)>,
    /// Height of all lines, pixels.
    height: i32,
}

impl Head {
    fn new(title: &str, note: &str, wide: i32) -> Self {
        let room = f64::from(wide) - 40.0;
        let mut head = Self {
            lines: Vec::new(),
            height: 16,
        };
        // A title that is too long for one line in large letters gets smaller ones.
        let size = if width(title, 18) <= room { 18 } else { 15 };
        head.add(title, size, room);
        head.add(note, SMALL, room);
        head
    }

    fn add(&mut self, text: &str, size: u32, room: f64) {
        for line in wrapped(text, size, room) {
            self.lines.push((line, size, self.height));
            self.height += size as i32 + 8;
        }
    }
}

/// An empty drawing of this width and height with its title and note.
fn sheet<'a>(text: &'a mut String, head: &Head, size: (i32, i32)) -> Result<Area<'a>, String> {
    let size = (size.0.unsigned_abs(), size.1.unsigned_abs());
    let area = SVGBackend::with_string(text, size).into_drawing_area();
    area.fill(&WHITE).map_err(told)?;
    for (line, size, top) in &head.lines {
        write(&area, line, (20, *top), *size, HPos::Left)?;
    }
    Ok(area)
}

/// Writes text whose upper edge, and left edge, middle or right edge, is at `at`.
fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: u32, hold: HPos) -> Result<(), String> {
    let style = style(size).pos(Pos::new(hold, VPos::Top));
    area.draw(&Text::new(text.to_owned(), at, style))
        .map_err(told)
}

/// Writes text from below to above, whose left edge is at `at`; `hold` is the part of the text that is there.
fn write_upwards(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: u32,
    hold: HPos,
) -> Result<(), String> {
    let style = style(size).transform(FontTransform::Rotate270);
    let style = style.pos(Pos::new(hold, VPos::Top));
    area.draw(&Text::new(text.to_owned(), at, style))
        .map_err(told)
}

/// The style of text of this size, pixels.
fn style(size: u32) -> TextStyle<'static> {
    // The backend divides sizes by this number.
    let size = f64::from(size) * 1.24;
    (FONT, size).into_font().color(&INK)
}

/// Width of text, pixels: hardly less than a browser needs.
fn width(text: &str, size: u32) -> f64 {
    let advance = |letter: char| {
        let at = (letter as usize).checked_sub(usize::from(b' '));
        let known = at.and_then(|at| ADVANCES.get(at));
        f64::from(*known.unwrap_or(&OTHER_ADVANCE))
    };
    text.chars().map(advance).sum::<f64>() * f64::from(size) / 1000.0
}

/// The largest width of these texts, pixels, rounded up.
fn widest<'a>(texts: impl Iterator<Item = &'a String>, size: u32) -> i32 {
    texts
        .map(|text| width(text, size))
        .fold(0.0, f64::max)
        .ceil() as i32
}

/// The text in lines of at most `room` pixels, divided at spaces; a word that does not fit a line is divided, too.
/// Nothing is left out.
fn wrapped(text: &str, size: u32, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let fits = |line: &str| width(&[line, word.trim_end()].concat(), size) <= room;
        if lines
            .last()
            .is_some_and(|line| !line.is_empty() && !fits(line))
        {
            lines.push(String::new());
        }
        for letter in word.chars() {
            let full = |line: &String| {
                letter != ' ' && !line.is_empty() && width(line, size) + width("W", size) > room
            };
            if lines.last().is_some_and(full) && width(word, size) > room {
                lines.push(String::new());
            }
            lines
                .last_mut()
                .into_iter()
                .for_each(|line| line.push(letter));
        }
    }
    let lines = lines.into_iter().map(|line| line.trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
pub(crate) mod tests;
