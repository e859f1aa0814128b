//! Sweeps: many runs of one lab with other values and seeds, and one table of their results.
//!
//! ```text
//! variants ──┬──> shape ──────────────────────┐
//!  points ───┘    columns                     v
//!  run ──record──> store ──record──> shape ──rows──> table ──> CSV, JSON lines, Parquet
//!                  on disk           rows            mean
//! ```
//!
//! [`points`] reads which runs there are: each is a [`variants::Variant`], the values of some keys and a seed. A
//! program that makes a run leaves a [`store::Record`], the rows of one table of its results. The [`store`] keeps
//! records under a [`store::Key`] by what they are made of, so that a run is done once. A [`shape::Shape`] makes rows
//! of records, and a [`table::Sink`] writes them.
//!
//! The command `aerostat sweep` makes its runs with processes, the Python module with any executor of Python. Both
//! write the same octets, because all that is written is here.
//!
//! **Bounds.** In memory are the list of runs, the place of each in the store, and the rows of one point. Parquet has
//! up to 10 000 rows in memory.

pub mod failure;
pub mod mean;
mod parquet;
pub mod points;
pub mod shape;
pub mod store;
pub mod table;
pub mod text;
pub mod variants;

use aerostat_lab::Checked;
use aerostat_lab::model::Flow;

/// Identity of a lab with its changes and the traces that it reads.
#[must_use]
pub fn identity(checked: &Checked) -> String {
    let mut all = checked.digest.clone();
    for trace in checked.lab.traffic.iter().filter_map(Flow::trace) {
        all = aerostat_lab::digest(&all, &[(*trace.digest).into()]);
    }
    all
}
