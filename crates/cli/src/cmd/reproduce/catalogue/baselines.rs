//! Knowledge about the number of a row that needs no model: baselines, and the ± that the paper prints beside it.

use super::{AllPrinted, Entry, Printed, Row};
use crate::exit::Failure;

impl Entry {
    /// The rate of the wire, as a baseline for `row`.
    pub(in crate::cmd::reproduce) fn wire(&self, row: &Row) -> Option<f64> {
        row.wire.or(self.wire.filter(|_| row.unit.is_none()))
    }

    /// The printed number of the row above `row` that has the same unit, as a baseline.
    pub(in crate::cmd::reproduce) fn above(&self, row: &Row, printed: &AllPrinted) -> Option<f64> {
        let mut rows = self.rows.iter().rev();
        rows.find(|other| other.row == row.row)?;
        let alike = rows.filter(|other| other.unit == row.unit);
        let numbers = alike.map(|other| printed.of(&self.name, &other.row)?.number());
        numbers.flatten().next()
    }

    /// The printed numbers of the rows that `row` names as its baseline, added up; `None` if it names none.
    ///
    /// # Errors
    /// One of them has no printed number.
    pub(in crate::cmd::reproduce) fn baseline(
        &self,
        row: &Row,
        printed: &AllPrinted,
    ) -> Result<Option<f64>, Failure> {
        let numbers = row.baseline.iter().map(|name| {
            self.number(row, name, printed).ok_or_else(|| {
                let text = format!(
                    "{}, {}: no number is printed for {name}",
                    self.name, row.row
                );
                Failure::usage(text).hint("'baseline' names rows with a printed number")
            })
        });
        let sum = numbers.sum::<Result<f64, _>>()?;
        Ok((!row.baseline.is_empty()).then_some(sum))
    }

    /// The printed number of the row that `reference` of `row` names.
    pub(in crate::cmd::reproduce) fn number(
        &self,
        row: &Row,
        reference: &str,
        printed: &AllPrinted,
    ) -> Option<f64> {
        let (entry, other) = row.referred(&self.name, reference);
        printed.of(entry, other).and_then(Printed::number)
    }

    /// The ± of the printed number of `row`, as the paper prints it.
    pub(in crate::cmd::reproduce) fn plus_minus(
        &self,
        row: &Row,
        printed: &AllPrinted,
    ) -> Option<f64> {
        let reference = self.plus_minus.as_ref()?.replace("{row}", &row.row);
        self.number(row, &reference, printed)
    }
}
