//! Scales of axes, their ticks, and the labels of ticks.

use super::Axis;

/// How values stand on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// At equal distances; with `zero`, the axis begins there if no value is below.
    Linear { zero: bool },
    /// By their logarithms; for values above 0.
    Log,
    /// From 0 to 1.
    Share,
    /// Names, by their numbers.
    Names(Vec<String>),
}

impl Scale {
    /// By logarithms if all values are above 0 and the largest is at least 50 times the smallest.
    pub(crate) fn fitting(values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if low > 0.0 && high.is_finite() && high >= 50.0 * low {
            Self::Log
        } else {
            Self::Linear { zero: false }
        }
    }
}

/// An axis with its range and ticks, in places.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruled {
    pub(super) range: (f64, f64),
    pub(super) ticks: Vec<(f64, String)>,
    log: bool,
}

impl Ruled {
    /// The axis for these values. `room` is about the number of ticks.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, room: usize) -> Self {
        let finite = values.filter(|value| value.is_finite());
        match &axis.scale {
            Scale::Names(names) => Self {
                range: (-0.5, names.len().max(1) as f64 - 0.5),
                ticks: (0..).map(f64::from).zip(names.iter().cloned()).collect(),
                log: false,
            },
            Scale::Log => logarithmic(finite.filter(|value| *value > 0.0)),
            Scale::Linear { zero } => linear(finite, *zero, room),
            Scale::Share => {
                let mut ruled = linear([0.0, 0.99].into_iter(), true, 5);
                // A line at 1 is whole.
                ruled.range = (0.0, 1.02);
                ruled.ticks.retain(|tick| tick.0 <= ruled.range.1);
                ruled
            }
        }
    }

    /// The same axis with its first place at the far end: names from above.
    pub(super) fn downwards(mut self) -> Self {
        self.range = (self.range.1, self.range.0);
        self
    }

    /// True if the axis begins above 0.
    pub(super) const fn starts_late(&self) -> bool {
        !self.log && self.range.0 > 0.0 && self.range.1 > 0.0
    }

    /// The label of the axis, with what a reader could overlook.
    pub(super) fn told(&self, label: &str) -> String {
        match (label, self.log, self.starts_late()) {
            ("", ..) => String::new(),
            (_, true, _) => format!("{label}, logarithmic"),
            (_, _, true) => format!("{label}, axis without 0"),
            _ => label.to_owned(),
        }
    }

    /// True if places are logarithms.
    pub(super) const fn is_logarithmic(&self) -> bool {
        self.log
    }

    /// The place of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.log {
            // A value that has no logarithm stands at the lower end.
            value.max(10_f64.powf(self.range.0)).log10()
        } else {
            value
        }
    }

    /// The pixel of a place, between those of both ends.
    pub(super) fn pixel(&self, place: f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.range.0) / (self.range.1 - self.range.0);
        from + (share * f64::from(to - from)).round() as i32
    }

    /// Leaves out every second tick until the labels are less wide than the room between two ticks. An axis of numbers
    /// says the same with fewer of them; names all stay.
    pub(super) fn thinned(mut self, wide: i32, label: impl Fn(&String) -> f64) -> Self {
        let crowded = |ticks: &[(f64, String)]| {
            let places = ticks.iter().map(|tick| self.pixel(tick.0, (0, wide)));
            let places: Vec<i32> = places.collect();
            let pairs = places.windows(2).zip(ticks.windows(2));
            pairs.into_iter().any(|(places, ticks)| {
                let both = label(&ticks[0].1) + label(&ticks[1].1);
                f64::from((places[1] - places[0]).abs()) < both / 2.0 + 6.0
            })
        };
        let mut ticks = self.ticks.clone();
        while ticks.len() > 2 && crowded(&ticks) {
            ticks = ticks.into_iter().step_by(2).collect();
        }
        self.ticks = ticks;
        self
    }
}

fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |seen, value| match seen {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// Ticks at 1, 2 or 5 times a power of ten, at both ends, too.
fn linear(values: impl Iterator<Item = f64>, zero: bool, room: usize) -> Ruled {
    let (mut low, mut high) = extremes(values).unwrap_or((0.0, 1.0));
    if zero {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    if high - low <= high.abs().max(low.abs()) * 1e-9 {
        let around = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
        (low, high) = (
            if zero && low == 0.0 {
                0.0
            } else {
                low - around
            },
            high + around,
        );
    }
    let step = step((high - low) / room.max(1) as f64);
    let mut first = (low / step).floor();
    let mut last = (high / step).ceil();
    // A mark at the edge would be cut in two.
    let edge = 0.02 * (high - low);
    if last * step - high < edge && !(zero && high == 0.0) {
        last += 1.0;
    }
    if low - first * step < edge && !(zero && low == 0.0) {
        first -= 1.0;
    }
    if low >= 0.0 {
        first = first.max(0.0);
    }
    let count = (last - first).min(100.0) as u32;
    let at = (0..=count).map(|n| (first + f64::from(n)) * step);
    let form = Form::of(at.clone());
    Ruled {
        range: (first * step, last * step),
        ticks: at.map(|value| (value, form.number(value, step))).collect(),
        log: false,
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fits = factors
        .into_iter()
        .find(|factor| factor * power >= least * 0.999);
    fits.unwrap_or(10.0) * power
}

/// Ticks at powers of ten; within less than two of them, at 2 and 5, too.
fn logarithmic(values: impl Iterator<Item = f64>) -> Ruled {
    let (low, high) = extremes(values).unwrap_or((1.0, 10.0));
    let (low, high) = (low.log10(), high.log10());
    let pad = 0.04 * (high - low).max(0.5);
    let range = (low - pad, high + pad);
    let powers = (range.0.floor() as i32)..=(range.1.ceil() as i32);
    // Many powers of ten have labels at some of them.
    let every = (powers.clone().count() / 8 + 1) as i32;
    let factors: &[f64] = if range.1 - range.0 < 3.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let powers = powers.filter(|power| power.rem_euclid(every) == 0);
    let ticks = powers.flat_map(|power| {
        factors
            .iter()
            .map(move |factor| factor * 10_f64.powi(power))
    });
    let ticks = ticks.filter(|value| (range.0..=range.1).contains(&value.log10()));
    let form = Form::of(ticks.clone());
    let ticks = ticks.map(|value| (value.log10(), form.number(value, value)));
    Ruled {
        range,
        ticks: ticks.collect(),
        log: true,
    }
}

/// Form of the numbers of one axis, or of one map: all have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As `0.005` and `26414`.
    Plain,
    /// As `2.5e7`, because one of them is very large or very small. Zero is `0`.
    Exponents,
}

impl Form {
    /// The form in which all these numbers are readable.
    pub(super) fn of(mut values: impl Iterator<Item = f64>) -> Self {
        let plain = |value: f64| value == 0.0 || (1e-4..1e6).contains(&value.abs());
        match values.all(plain) {
            true => Self::Plain,
            false => Self::Exponents,
        }
    }

    /// A number with the digits that a step of this size needs, and a minus sign that is as wide as a plus.
    pub(super) fn number(self, value: f64, step: f64) -> String {
        if value < 0.0 {
            return format!("−{}", self.number(-value, step));
        }
        if value == 0.0 {
            return "0".into();
        }
        let zeros = |text: &str| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text.to_owned(),
        };
        match self {
            Self::Exponents => {
                let text = format!("{value:.2e}");
                let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
                format!("{}e{power}", zeros(digits))
            }
            Self::Plain => {
                let decimals = (-step.abs().log10().floor()).clamp(0.0, 9.0) as usize;
                zeros(&format!("{value:.decimals$}"))
            }
        }
    }
}
