//! Drawings keep their promises: nothing outside, all points there, lines that differ without colours.

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
        for x in numbers(&svg, &["x", "cx", "x1", "x2"]) {
            assert!((0.0..=f64::from(WIDTH)).contains(&x), "{x}");
        }
        for y in numbers(&svg, &["y", "cy", "y1", "y2"]) {
            assert!((0.0..=f64::from(HEIGHT)).contains(&y), "{y}");
        }
        for (x, y) in corners(&svg) {
            let inside =
                (0.0..=f64::from(WIDTH)).contains(&x) && (0.0..=f64::from(HEIGHT)).contains(&y);
            assert!(inside, "{x} {y}");
        }
    }
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
    for x in numbers(&svg, &["x"]) {
        assert!((0.0..=f64::from(WIDTH)).contains(&x), "{x}");
    }
}
