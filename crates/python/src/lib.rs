//! Labs in virtual time as a Python module.
//!
//! ```text
//! lab.rs      a lab: its text, and changes of it     mistake.rs  exceptions with places
//! run.rs      one run                                results.rs  the results of a run
//! table.rs    a table as columns of Apache Arrow     written.rs  labs that were built in code
//! sweep.rs    runs of a sweep, and their table       checks.rs   checks of a lab
//! ```
//!
//! A `lab::Lab` is text and changes of it. Each run reads them anew, so a run is a function of them alone, and a lab
//! can be sent to another process. While a run computes, other threads of Python run.
//!
//! The package in `python/aerostat` gives these classes their public names; its stubs have the types.

mod checks;
mod lab;
mod mistake;
mod results;
mod run;
mod sweep;
mod table;
mod written;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
fn _aerostat(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("LabError", py.get_type::<mistake::LabError>())?;
    module.add("LimitError", py.get_type::<run::LimitError>())?;
    module.add_class::<lab::Lab>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<table::Table>()?;
    module.add("SweepError", py.get_type::<sweep::SweepError>())?;
    module.add_class::<sweep::Sweep>()?;
    module.add_function(wrap_pyfunction!(lab::value_text, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::point, module)?)?;
    module.add_function(wrap_pyfunction!(lab::labs, module)?)
}
