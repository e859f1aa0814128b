//! The results of a run.

use crate::run::Done;
use crate::table::Table;
use aerostat_lab::results::{self, Document};
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The results of a run.
#[pyclass(frozen, module = "aerostat")]
pub(crate) struct Results {
    document: Document,
    /// Warnings of the run.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// Exit code of `aerostat run`: 3 if the run or its lab has warnings, otherwise 0.
    #[pyo3(get)]
    exit: u8,
    /// Tables that were asked for: each is made once, so that its columns keep their addresses.
    made: Mutex<BTreeMap<String, Table>>,
}

impl From<Done> for Results {
    fn from(done: Done) -> Self {
        Self::new(done.document, done.warnings, done.exit)
    }
}

impl Results {
    fn new(document: Document, warnings: Vec<String>, exit: u8) -> Self {
        Self {
            document,
            warnings,
            exit,
            made: Mutex::default(),
        }
    }

    fn find(&self, py: Python<'_>, name: &str) -> Option<PyResult<Table>> {
        let info = results::find(name)?;
        // Other threads of Python run meanwhile, also those that wait for the same table.
        Some(py.detach(|| {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(table) = made.get(name) {
                return Ok(table.clone());
            }
            let table = Table::new(&self.document.flat_table(info))?;
            made.insert(name.to_owned(), table.clone());
            Ok(table)
        }))
    }
}

#[pymethods]
impl Results {
    /// Names of the tables of this lab.
    fn tables(&self) -> Vec<String> {
        let all = self.document.flat();
        all.iter()
            .map(|table| table.info.flat_name().to_string())
            .collect()
    }

    /// The document of results, as `aerostat run -o json` writes it.
    fn json(&self) -> String {
        self.document.json_text()
    }

    /// A table; it has no rows if this lab lacks it.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let table = self.find(py, name);
        table.unwrap_or_else(|| {
            Err(PyKeyError::new_err(format!(
                "results have no table '{name}'"
            )))
        })
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        self.table(py, name)
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let table = self.find(py, name);
        table.unwrap_or_else(|| {
            let text = format!("results have no table and no attribute '{name}'");
            Err(PyAttributeError::new_err(text))
        })
    }

    fn __dir__(&self) -> Vec<String> {
        let own = ["exit", "json", "table", "tables", "warnings"].map(str::to_owned);
        let tables = self.tables().into_iter();
        own.into_iter()
            .chain(tables.filter(|name| !name.contains('.')))
            .collect()
    }

    #[staticmethod]
    fn _restore(document: &str, warnings: Vec<String>, exit: u8) -> PyResult<Self> {
        let document = serde_json::from_str(document);
        let document = document.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self::new(document, warnings, exit))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.get_type::<Self>().getattr("_restore")?;
        let document = serde_json::to_string(&self.document);
        let document = document.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let parts = (document, self.warnings.clone(), self.exit).into_pyobject(py)?;
        (restore, parts).into_pyobject(py)
    }
}
