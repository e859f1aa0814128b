//! Values of the two directions of a link as texts, and in the published settings.

use crate::model::{LineChange, LineParams, Link, Way};
use crate::settings::seconds;
use crate::units::time_text;
use aerostat_node::atm::CellRate;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Up, then down, of what is in the order of the ends at which the directions start.
fn up_and_down<T: Copy>(link: &Link, values: [T; 2]) -> [(Way, T); 2] {
    Way::ALL.map(|way| (way, values[link.side(way)]))
}

/// A value of both directions, or one for each: `10Mbps`, or `1Mbps up, 8Mbps down`.
fn text<T: Copy + Display>(link: &Link, values: [Option<T>; 2]) -> Option<String> {
    let ways = up_and_down(link, values);
    let all: Vec<String> = ways
        .iter()
        .filter_map(|(way, value)| Some(format!("{} {way}", (*value)?)))
        .collect();
    match ways {
        [(_, Some(up)), (_, Some(down))] if up.to_string() == down.to_string() => {
            Some(up.to_string())
        }
        _ => (!all.is_empty()).then(|| all.join(", ")),
    }
}

/// The link in a picture: rate, delay and errors.
pub(crate) fn describe(link: &Link) -> String {
    let all = link.lines.map(LineChange::from);
    let quiet = link
        .lines
        .map(|line| (line.errors.loss, line.errors.bits, line.errors.blocks));
    let mut shown = all;
    for line in &mut shown {
        // Errors that there are not go without saying, as does the length of blocks that are not lost.
        line.loss = line.loss.filter(|_| quiet.iter().any(|line| line.0 > 0.0));
        line.bits = line.bits.filter(|_| quiet.iter().any(|line| line.1 > 0.0));
        line.blocks = line
            .blocks
            .filter(|_| quiet.iter().any(|line| line.2 > 0.0));
        line.block = line.block.filter(|_| line.blocks.is_some());
    }
    let [rate, delay, rest @ ..] = parts(link, &shown);
    let named = ["loss", "bit errors", "block errors", "blocks of"];
    let rest = named.iter().zip(rest);
    let rest = rest.filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    let first = [rate, delay].into_iter().flatten();
    first.chain(rest).collect::<Vec<_>>().join(", ")
}

/// New values of a link in words: `rate 1Mbps up, 8Mbps down; loss 0.01`. Empty if nothing is new.
pub(crate) fn changes(link: &Link, changes: &[LineChange; 2]) -> String {
    let values = NAMES.iter().zip(parts(link, changes));
    let values = values.filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    values.collect::<Vec<_>>().join("; ")
}

/// Names of the values of a line, as in a lab file.
pub(crate) const NAMES: [&str; 6] = [
    "rate",
    "delay",
    "loss",
    "bit_errors",
    "block_errors",
    "block",
];

/// The values as texts, in the order of [`NAMES`].
fn parts(link: &Link, [a, b]: &[LineChange; 2]) -> [Option<String>; 6] {
    let [delays, blocks] = [[a.delay, b.delay], [a.block, b.block]]
        .map(|times| times.map(|value| value.map(time_text)));
    let [delays, blocks] = [&delays, &blocks].map(|all| all.each_ref().map(Option::as_deref));
    [
        text(link, [a.rate, b.rate]),
        text(link, delays),
        text(link, [a.loss, b.loss]),
        text(link, [a.bits, b.bits]),
        text(link, [a.blocks, b.blocks]),
        text(link, blocks),
    ]
}

/// The values that are given, by name with the unit; a value that differs by direction as `{ up, down }`.
pub(crate) fn published(link: &Link, lines: &[LineChange; 2]) -> Map<String, Value> {
    let cells = |rate: CellRate| rate.numerator() as f64 / rate.denominator() as f64;
    let values = lines.map(|line| {
        [
            ("rate_cps", line.rate.map(|rate| json!(cells(rate)))),
            ("delay_s", line.delay.map(|time| json!(seconds(time)))),
            ("loss", line.loss.map(Value::from)),
            ("bit_errors", line.bits.map(Value::from)),
            ("block_errors", line.blocks.map(Value::from)),
            ("block_s", line.block.map(|time| json!(seconds(time)))),
        ]
    });
    let [one, other] = &values;
    let mut all = Map::new();
    for ((name, one), (_, other)) in one.iter().zip(other) {
        let value = match up_and_down(link, [one, other]) {
            [(_, None), (_, None)] => continue,
            [(_, Some(up)), (_, Some(down))] if up == down => up.clone(),
            ways => {
                let ways = ways
                    .iter()
                    .filter_map(|(way, value)| Some((way.name().to_owned(), (*value).clone()?)));
                Value::Object(ways.collect())
            }
        };
        all.insert((*name).to_owned(), value);
    }
    all
}

/// The values of a link for the settings. Those of blocks are there if blocks can be lost.
pub(crate) fn settings(link: &Link) -> Map<String, Value> {
    let blocks = link.lines.iter().any(|line| line.errors.blocks > 0.0);
    let lines = link.lines.map(|line: LineParams| {
        let all = LineChange::from(line);
        LineChange {
            blocks: all.blocks.filter(|_| blocks),
            block: all.block.filter(|_| blocks),
            ..all
        }
    });
    published(link, &lines)
}
