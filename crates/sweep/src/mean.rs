//! Means over the seeds of a point, with 95 % confidence intervals.
//!
//! Rows with the same labels (flow, phase) belong together. An interval holds if the values are about normally
//! distributed: mean ± t·s/√n, with Student's t for n − 1 degrees of freedom.

use crate::shape::{Field, Role};
use aerostat_node::inspect::{Importance, Kind};
use serde_json::Value;

/// Mean and variance of values (Welford's method).
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut moments = Self::default();
        values.iter().for_each(|value| moments.add(*value));
        moments
    }

    fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// The mean; `None` of no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Half the width of the 95 % confidence interval; `None` for fewer than two values.
    pub fn half_width(&self) -> Option<f64> {
        let freedom = self.count.checked_sub(1).filter(|freedom| *freedom > 0)?;
        let variance = self.squares / freedom as f64;
        Some(student_t(freedom) * (variance / self.count as f64).sqrt())
    }
}

/// The value that a variable with Student's distribution exceeds, up or down, with a probability of 5 %.
fn student_t(freedom: u64) -> f64 {
    let (mut low, mut high) = (1.9, 12.8);
    // 60 halvings of the range leave less than its last digit.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if within(middle, freedom) < 0.95 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The probability of −t to t. Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn within(t: f64, freedom: u64) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    // The sum ends with the power freedom − 2 of the cosine.
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    let mut power = if odd { 3 } else { 2 };
    while power <= freedom.saturating_sub(2) {
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
        sum += term;
        power += 2;
    }
    if odd {
        (angle + sine * sum) * std::f64::consts::FRAC_2_PI
    } else {
        sine * sum
    }
}

/// The most important columns of means with a throughput, in this order.
const FIRST: [&str; 10] = [
    "name",
    "phase",
    "n",
    "throughput_mbps",
    "throughput_mbps_ci95",
    "lost",
    "delay_us_mean",
    "delay_us_mean_ci95",
    "lost_ci95",
    "delivered",
];

/// The columns of means.
pub fn fields(fields: &[Field]) -> Vec<Field> {
    let kept = |field: &&Field| matches!(field.role, Role::Key | Role::Label);
    let mut all: Vec<Field> = fields.iter().filter(kept).cloned().collect();
    let number = |name: String, kind, null| Field {
        name,
        kind,
        role: Role::Measure,
        null,
        importance: Importance::Plain,
    };
    let mut count = number("n".into(), Kind::Count, false);
    count.role = Role::Run;
    all.push(count);
    for field in fields.iter().filter(|field| field.role == Role::Measure) {
        let name = &field.name;
        let mut mean = number(name.clone(), Kind::Number, field.null);
        mean.importance = field.importance;
        all.push(mean);
        all.push(number(format!("{name}_ci95"), Kind::Number, true));
        if field.null {
            let mut count = number(format!("{name}_n"), Kind::Count, false);
            count.role = Role::Run;
            all.push(count);
        }
    }
    if all.iter().any(|field| field.name == "throughput_mbps") {
        for field in &mut all {
            let place = (1..).zip(FIRST).find(|(_, name)| *name == field.name);
            field.importance = match (place, field.importance) {
                (Some((place, _)), _) => Importance::Lead(place),
                (None, Importance::Lead(_)) => Importance::Plain,
                (None, own) => own,
            };
        }
    }
    all
}

/// The rows of one point with different seeds.
#[derive(Debug, Default)]
pub struct Point {
    /// Keys and labels, number of rows, moments of each measure.
    groups: Vec<(Vec<Value>, u64, Vec<Moments>)>,
}

impl Point {
    /// Adds a row of a run.
    pub fn add(&mut self, fields: &[Field], row: &[Value]) {
        let of = |wanted: fn(Role) -> bool| {
            let cells = fields.iter().zip(row);
            cells
                .filter(move |(field, _)| wanted(field.role))
                .map(|(_, value)| value)
        };
        let labels = of(|role| matches!(role, Role::Key | Role::Label));
        let measures = of(|role| role == Role::Measure);
        let known = self
            .groups
            .iter()
            .position(|group| labels.clone().eq(&group.0));
        let at = known.unwrap_or_else(|| {
            let moments = vec![Moments::default(); measures.clone().count()];
            self.groups.push((labels.cloned().collect(), 0, moments));
            self.groups.len() - 1
        });
        let (_, count, moments) = &mut self.groups[at];
        *count += 1;
        for (moments, value) in moments.iter_mut().zip(measures) {
            value
                .as_f64()
                .into_iter()
                .for_each(|value| moments.add(value));
        }
    }

    /// The rows of means, as the columns of [`fields()`]; the point is empty then.
    pub fn rows(&mut self, fields: &[Field]) -> Vec<Vec<Value>> {
        let measures = fields.iter().filter(|field| field.role == Role::Measure);
        let nulls: Vec<bool> = measures.map(|field| field.null).collect();
        let groups = std::mem::take(&mut self.groups).into_iter();
        groups
            .map(|(mut row, count, moments)| {
                row.push(count.into());
                for (moments, null) in moments.iter().zip(&nulls) {
                    row.extend([moments.mean().into(), moments.half_width().into()]);
                    row.extend(null.then(|| Value::from(moments.count)));
                }
                row
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Source: the table of Student's t in any textbook, two-sided 5 %.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, t) in [
            (1, 12.706_2),
            (2, 4.302_65),
            (3, 3.182_45),
            (4, 2.776_45),
            (9, 2.262_16),
            (19, 2.093_02),
            (30, 2.042_27),
            (120, 1.979_93),
            (9999, 1.960_2),
        ] {
            let found = student_t(freedom);
            assert!((found - t).abs() < 1e-4, "{freedom}: {found} {t}");
        }
    }

    #[test]
    fn means_are_of_the_rows_with_the_same_labels_and_say_of_how_many() {
        let field = |name: &str, role, null| Field {
            name: name.into(),
            kind: Kind::Number,
            role,
            null,
            importance: Importance::Plain,
        };
        let all = [
            field("key", Role::Key, false),
            field("seed", Role::Run, false),
            field("name", Role::Label, false),
            field("rate", Role::Measure, false),
            field("delay", Role::Measure, true),
        ];
        let names: Vec<String> = fields(&all).into_iter().map(|field| field.name).collect();
        let wanted = [
            "key",
            "name",
            "n",
            "rate",
            "rate_ci95",
            "delay",
            "delay_ci95",
            "delay_n",
        ];
        assert_eq!(names, wanted);
        let mut point = Point::default();
        for (seed, name, rate, delay) in [
            (1, "a", 2.0, json!(1.0)),
            (1, "b", 7.0, Value::Null),
            (2, "a", 4.0, Value::Null),
            (3, "a", 6.0, json!(3.0)),
        ] {
            let row = [json!("5us"), json!(seed), json!(name), json!(rate), delay];
            point.add(&all, &row);
        }
        let rows = point.rows(&all);
        let value = |row: usize, column: usize| rows[row][column].as_f64().unwrap();
        assert_eq!(
            rows[0][..4],
            [json!("5us"), json!("a"), json!(3), json!(4.0)]
        );
        // s = 2, so t(2)·2/√3; of the delays s = √2, so t(1)·√2/√2.
        assert!((value(0, 4) - 4.302_65 * 2.0 / 3.0_f64.sqrt()).abs() < 1e-4);
        assert_eq!((value(0, 5), value(0, 7)), (2.0, 2.0));
        assert!((value(0, 6) - 12.7062).abs() < 1e-3);
        assert_eq!(
            rows[1][1..],
            json!(["b", 1, 7.0, null, null, null, 0])
                .as_array()
                .unwrap()[..]
        );
        assert!(point.rows(&all).is_empty());
    }
}
