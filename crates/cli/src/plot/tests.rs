//! Drawings keep their promises: nothing outside, all points there, lines that differ without colours, names that are
//! whole and differ.

use super::*;

fn figure(series: usize) -> Figure {
    let points = (0..5).map(f64::from).map(|x| Point {
        low: x * 2.0 - 0.5,
        high: x * 2.0 + 0.5,
        ..Point::new(x, x * 2.0)
    });
    let points: Vec<Point> = points.collect();
    let series = (0..series).map(|number| Series {
        name: format!("flow {number} & <more>"),
        form: Stroke::Joined,
        points: points.clone(),
        sign: None,
    });
    Figure {
        title: "A title".into(),
        note: "three seeds".into(),
        x: Axis {
            label: "delay (ms)".into(),
            scale: Scale::Linear { zero: false },
        },
        y: Axis {
            label: "throughput (Mbit/s)".into(),
            scale: Scale::Linear { zero: true },
        },
        sideways: false,
        series: series.collect(),
        words: Vec::new(),
    }
}

/// All numbers of these attributes.
fn numbers(svg: &str, attributes: &[&str]) -> Vec<f64> {
    let values = attributes.iter().flat_map(|attribute| {
        let begin = format!(" {attribute}=\"");
        let parts = svg.split(&begin).skip(1).map(str::to_owned);
        parts.collect::<Vec<_>>()
    });
    let values = values.filter_map(|part| part.split('"').next()?.parse().ok());
    values.collect()
}

fn corners(svg: &str) -> Vec<(f64, f64)> {
    let parts = svg.split("points=\"").skip(1);
    let lists = parts.filter_map(|part| part.split('"').next());
    let pairs = lists
        .flat_map(str::split_whitespace)
        .filter_map(|pair| pair.split_once(','));
    pairs
        .filter_map(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)))
        .collect()
}

/// Text of a drawing with its attributes.
struct Label<'a> {
    attributes: &'a str,
    text: String,
}

impl Label<'_> {
    fn attribute(&self, name: &str) -> &str {
        let begin = format!(" {name}=\"");
        let (_, rest) = self.attributes.split_once(&begin).unwrap_or_default();
        rest.split('"').next().unwrap_or_default()
    }

    fn number(&self, name: &str) -> f64 {
        self.attribute(name).parse().unwrap()
    }

    /// Left, upper, right and lower edge, pixels.
    fn extent(&self) -> [f64; 4] {
        let size = self.number("font-size");
        let long = width(&self.text, size as u32);
        let (x, y) = (self.number("x"), self.number("y"));
        let (before, after) = match self.attribute("text-anchor") {
            "start" => (0.0, long),
            "end" => (long, 0.0),
            _ => (long / 2.0, long / 2.0),
        };
        match self.attribute("transform").starts_with("rotate(270") {
            true => [x, y - after, x + size, y + before],
            false => [x - before, y, x + after, y + size],
        }
    }
}

fn labels(svg: &str) -> Vec<Label<'_>> {
    let parts = svg.split("<text").skip(1);
    let labels = parts.filter_map(|part| {
        let (attributes, rest) = part.split_once('>')?;
        let text = rest.split("</text>").next()?.trim();
        let text = text.replace("&lt;", "<").replace("&gt;", ">");
        let text = text.replace("&quot;", "\"").replace("&amp;", "&");
        Some(Label { attributes, text })
    });
    labels.filter(|label| !label.text.is_empty()).collect()
}

/// Width and height of a drawing, pixels.
fn dimensions(svg: &str) -> (f64, f64) {
    let first = |attribute| numbers(svg, &[attribute])[0];
    (first("width"), first("height"))
}

/// Holds what every drawing of results promises about its words: it has a title, nothing is cut, nothing is outside,
/// and no two lines, rows or columns have the same name.
pub(crate) fn names_are_whole_and_differ(svg: &str) {
    let (_, inside) = svg.split_once('>').unwrap();
    let title = inside.trim_start().strip_prefix("<title>");
    assert!(
        title.is_some_and(|title| !title.starts_with("</title>")),
        "{svg}"
    );
    let labels = labels(svg);
    assert!(labels.len() > 3);
    // Words of a paper are no names: lines share them, and tables have them whole.
    let is_name = |label: &&&Label<'_>| !label.text.starts_with('“');
    let (wide, high) = dimensions(svg);
    for label in &labels {
        assert!(
            !is_name(&&label) || !label.text.contains('…'),
            "{}",
            label.text
        );
        let [left, top, right, bottom] = label.extent();
        let fits = left >= 0.0 && top >= 0.0 && right <= wide && bottom <= high;
        let text = &label.text;
        assert!(
            fits,
            "{text}: {left} to {right} of {wide}, {top} to {bottom} of {high}"
        );
    }
    // Title and note begin at the left edge, the legend does not; names of rows end at the first axis.
    let legend = |label: &&Label<'_>| {
        label.attribute("text-anchor") == "start" && label.attribute("x") != "20"
    };
    let rows = |label: &&Label<'_>| {
        let upwards = label.attribute("transform").is_empty();
        label.attribute("text-anchor") == "end" && upwards
    };
    let columns = |label: &&Label<'_>| {
        label.attribute("text-anchor") == "end" && !label.attribute("transform").is_empty()
    };
    let mut groups: Vec<Vec<&Label<'_>>> = vec![
        labels.iter().filter(legend).collect(),
        labels.iter().filter(rows).collect(),
        labels.iter().filter(columns).collect(),
    ];
    let below = |label: &&Label<'_>| {
        label.attribute("text-anchor") == "middle" && label.number("font-size") < 13.5
    };
    let lowest = labels.iter().filter(below).map(|label| label.number("y"));
    let lowest = lowest.fold(0.0, f64::max);
    // Names of columns that go down leave the numbers of cells as the lowest such text.
    let down = !groups[2].is_empty();
    let below = labels.iter().filter(below).filter(|_| !down);
    let below = below.filter(|label| label.number("y") == lowest);
    groups.push(below.collect());
    for group in groups {
        let group: Vec<_> = group.iter().filter(is_name).collect();
        for (at, label) in group.iter().enumerate() {
            let text = &label.text;
            let mut others = group[at + 1..].iter();
            assert!(
                !others.any(|other| other.text == *text),
                "'{text}' stands twice"
            );
        }
    }
}

#[test]
fn an_axis_without_0_says_so_and_words_stand_at_their_place() {
    let mut one = figure(1);
    let plain = Drawing::Lines(one.clone()).svg().unwrap();
    assert!(!plain.contains("axis without 0"));
    for point in &mut one.series[0].points {
        *point = Point::new(point.x, 135.0 + point.x / 100.0);
    }
    one.y.scale = Scale::Linear { zero: false };
    one.words = vec![(1.0, "low".into()), (2.0, "very ".repeat(60))];
    let drawing = Drawing::Lines(one);
    let svg = drawing.svg().unwrap();
    assert!(svg.contains("throughput (Mbit/s), axis without 0"), "{svg}");
    names_are_whole_and_differ(&svg);
    let labels = labels(&svg);
    let said: Vec<&Label<'_>> = labels
        .iter()
        .filter(|label| label.text.starts_with('“'))
        .collect();
    assert_eq!(said.len(), 2);
    assert!(said[0].text == "“low”" && said[1].text.ends_with("very …”"));
    assert!(said[0].number("x") < said[1].number("x"));
}

#[test]
fn a_drawing_of_zeros_is_empty_and_marks_with_a_meaning_keep_it() {
    let mut one = figure(2);
    assert!(!Drawing::Lines(one.clone()).is_empty());
    let grey = Sign {
        colour: None,
        mark: 1,
    };
    one.series[1].sign = Some(grey);
    let svg = Drawing::Lines(one.clone()).svg().unwrap();
    assert!(svg.contains("#888888") && !svg.contains("#D55E00"), "{svg}");
    for series in &mut one.series {
        series.points = vec![Point::new(1.0, 0.0)];
    }
    assert!(Drawing::Lines(one.clone()).is_empty());
    one.words.push((0.0, "almost nothing".into()));
    assert!(!Drawing::Lines(one).is_empty());
}

#[test]
fn nothing_is_drawn_outside_and_text_is_escaped() {
    let mut many = figure(7);
    many.x.scale = Scale::Names((0..5).map(|n| format!("a rather long name {n}")).collect());
    let sideways = Figure {
        sideways: true,
        ..many.clone()
    };
    for drawing in [figure(1), figure(7), many, sideways] {
        let svg = Drawing::Lines(drawing).svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(!svg.contains("<more>") && !svg.contains("http://www.w3.org/1999/xlink"));
        let (wide, high) = dimensions(&svg);
        for x in numbers(&svg, &["x", "cx", "x1", "x2"]) {
            assert!((0.0..=wide).contains(&x), "{x}");
        }
        for y in numbers(&svg, &["y", "cy", "y1", "y2"]) {
            assert!((0.0..=high).contains(&y), "{y}");
        }
        for (x, y) in corners(&svg) {
            let inside = (0.0..=wide).contains(&x) && (0.0..=high).contains(&y);
            assert!(inside, "{x} {y}");
        }
        names_are_whole_and_differ(&svg);
    }
}

/// A figure whose lines, names and labels have these lengths.
fn long(names: usize, length: usize, sideways: bool) -> Figure {
    let name = |number: usize| format!("{}{number}", "W".repeat(length));
    let mut figure = figure(names.min(MOST_SERIES));
    for (number, series) in figure.series.iter_mut().enumerate() {
        series.name = name(number);
        series.points = (0..names)
            .map(|at| Point::new(at as f64, 1e7 + at as f64))
            .collect();
    }
    figure.x.scale = Scale::Names((0..names).map(name).collect());
    figure.title = "W".repeat(2 * length) + " over a title of several words";
    figure.note = format!("{} {}", "m".repeat(length), "n ".repeat(length));
    figure.x.label = "x".repeat(length);
    figure.y.label = "W".repeat(length);
    Figure { sideways, ..figure }
}

#[test]
fn names_of_any_length_and_number_are_whole() {
    for names in [1, 2, 7, 60] {
        for length in [1, 10, 30, 120, 400] {
            for sideways in [false, true] {
                let svg = Drawing::Lines(long(names, length, sideways)).svg().unwrap();
                names_are_whole_and_differ(&svg);
            }
            let name = |number: usize| format!("{}{number}", "W".repeat(length));
            let all: Vec<String> = (0..names).map(name).collect();
            let map = Map {
                title: "W".repeat(length),
                note: String::new(),
                x: ("x".repeat(length), all.clone()),
                y: ("y".repeat(length), all),
                label: "v".repeat(length),
                values: vec![vec![Some(1.5e-7); names]; names],
            };
            names_are_whole_and_differ(&Drawing::Map(map).svg().unwrap());
        }
    }
}

#[test]
fn lines_of_the_same_name_get_numbers_and_other_lines_keep_theirs() {
    let mut same = figure(4);
    for (series, name) in same.series.iter_mut().zip(["a", "b", "a", "a (1)"]) {
        name.clone_into(&mut series.name);
    }
    let svg = Drawing::Lines(same).svg().unwrap();
    names_are_whole_and_differ(&svg);
    for name in ["a (1)", "a (2)", "a (3)", "b"] {
        assert_eq!(svg.matches(&format!(">\n{name}\n<")).count(), 1, "{name}");
    }
}

#[test]
fn parts_of_a_figure_say_which_part_they_are() {
    let titles = |series: usize| -> Vec<(String, usize)> {
        let parts = figure(series).parts().into_iter();
        let lines = |part| match part {
            Drawing::Lines(figure) => (figure.title, figure.series.len()),
            Drawing::Map(map) => (map.title, 0),
        };
        parts.map(lines).collect()
    };
    assert_eq!(titles(7), [("A title".to_owned(), 7)]);
    let two = [
        ("A title (1 of 2)".to_owned(), 7),
        ("A title (2 of 2)".to_owned(), 1),
    ];
    assert_eq!(titles(8), two);
}

#[test]
fn points_are_where_their_values_are() {
    let svg = Drawing::Lines(figure(1)).svg().unwrap();
    let places = numbers(&svg, &["cx"])
        .into_iter()
        .zip(numbers(&svg, &["cy"]));
    // Five points, and the mark of the legend.
    let places: Vec<(f64, f64)> = places.take(5).collect();
    assert_eq!(places.len(), 5);
    let step = (places[1].0 - places[0].0, places[1].1 - places[0].1);
    assert!(step.0 > 0.0 && step.1 < 0.0);
    for pair in places.windows(2) {
        assert!((pair[1].0 - pair[0].0 - step.0).abs() <= 1.0);
        assert!((pair[1].1 - pair[0].1 - step.1).abs() <= 1.0);
    }
}

#[test]
fn axes_begin_at_zero_where_they_shall_and_numbers_are_short() {
    let ruled = |scale, values: &[f64]| {
        let axis = Axis {
            label: String::new(),
            scale,
        };
        axis::Ruled::new(&axis, values.iter().copied(), 6)
    };
    let labels = |ruled: &axis::Ruled| -> Vec<String> {
        ruled.ticks.iter().map(|tick| tick.1.clone()).collect()
    };
    let zero = ruled(Scale::Linear { zero: true }, &[93.0, 117.0]);
    assert_eq!(labels(&zero), ["0", "20", "40", "60", "80", "100", "120"]);
    let near = ruled(Scale::Linear { zero: false }, &[135.08, 135.36]);
    assert_eq!(near.range.0.mul_add(100.0, 0.0).round(), 13505.0);
    assert!(labels(&near).contains(&"135.2".to_owned()), "{near:?}");
    let below = ruled(Scale::Linear { zero: true }, &[-3.0, 8.0]);
    assert!(below.range.0 <= -3.0 && labels(&below).contains(&"0".to_owned()));
    let log = ruled(Scale::Log, &[0.005, 1.0, 5.0]);
    assert_eq!(labels(&log), ["0.01", "0.1", "1"]);
    assert_eq!(log.place(1.0), 0.0);
    let same = ruled(Scale::Linear { zero: true }, &[0.0, 0.0]);
    assert!(same.range.0 == 0.0 && same.range.1 > 0.0);
    let nothing = ruled(Scale::Linear { zero: false }, &[]);
    assert!(nothing.range.0 < nothing.range.1 && nothing.ticks.len() < 20);
    assert_eq!(axis::Form::Plain.number(26_414.0, 1000.0), "26414");
    assert_eq!(axis::Form::Exponents.number(2.5e7, 1e6), "2.5e7");
    assert_eq!(Scale::fitting(&[1.0, 49.0]), Scale::Linear { zero: false });
    assert_eq!(Scale::fitting(&[1.0, 50.0]), Scale::Log);
    assert_eq!(Scale::fitting(&[0.0, 50.0]), Scale::Linear { zero: false });
}

#[test]
fn the_numbers_of_an_axis_have_one_form() {
    let axes = [
        (Scale::Log, vec![1e-6, 1e-2]),
        (Scale::Log, vec![1e3, 1e8]),
        (Scale::Log, vec![1e-4, 1e5]),
        (Scale::Linear { zero: true }, vec![0.0, 2.1e6]),
        (Scale::Linear { zero: true }, vec![0.0, 4e-4]),
        (Scale::Linear { zero: false }, vec![-3e6, 10.0]),
        (Scale::Linear { zero: false }, vec![0.5, 900_000.0]),
    ];
    for (scale, values) in axes {
        let axis = Axis {
            label: String::new(),
            scale,
        };
        let ruled = axis::Ruled::new(&axis, values.iter().copied(), 8);
        let labels: Vec<String> = ruled.ticks.into_iter().map(|tick| tick.1).collect();
        let numbers = labels.iter().filter(|label| *label != "0");
        let (powers, plain): (Vec<&String>, Vec<_>) =
            numbers.partition(|label| label.contains('e'));
        assert!(
            powers.is_empty() || plain.is_empty(),
            "{values:?}: {labels:?}"
        );
        assert!(powers.len() + plain.len() > 2, "{values:?}: {labels:?}");
    }
}

#[test]
fn a_map_has_a_cell_for_each_pair_and_its_number() {
    let map = Map {
        title: "Throughput".into(),
        note: String::new(),
        x: (
            "delay".into(),
            vec!["5us".into(), "1ms".into(), "5ms".into()],
        ),
        y: ("loss".into(), vec!["0".into(), "1e-4".into()]),
        label: "throughput (Mbit/s)".into(),
        values: vec![
            vec![Some(1.25), Some(2.5), Some(3.0)],
            vec![Some(10.0), None, Some(101.5)],
        ],
    };
    let svg = Drawing::Map(map).svg().unwrap();
    for number in ["1", "2", "3", "10", "–", "102"] {
        assert!(svg.contains(&format!(">\n{number}\n<")), "{number}");
    }
    names_are_whole_and_differ(&svg);
}
