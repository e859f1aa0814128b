//! Labs in virtual time as a Python module.
//!
//! A [`Lab`] is text and changes of it. Each run reads them anew, so a run is a function of them alone, and a lab can
//! be sent to another process. While a run computes, other threads of Python run.
//!
//! The package in `python/aerostat` gives these classes their public names; its stubs have the types.

use aerostat_lab::diag::Diagnostic;
use aerostat_lab::event::Event;
use aerostat_lab::results::{self, Document, Time};
use aerostat_lab::{Checked, Diagnostics, Override};
use aerostat_sim::run::{LabRun, Watcher};
use pyo3::exceptions::{PyException, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::Value;
use std::cell::RefCell;
use std::path::PathBuf;

pyo3::create_exception!(aerostat, LabError, PyException, "A mistake in a lab.");

/// A place and what is wrong there.
struct Mistake {
    file: String,
    line: usize,
    column: usize,
    message: String,
    hint: Option<String>,
}

impl Mistake {
    fn of(all: &Diagnostics, finding: &Diagnostic) -> Self {
        let place = all.locate(finding.at);
        Self {
            file: place.source.to_owned(),
            line: place.line,
            column: place.column,
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        }
    }

    fn shown(&self) -> String {
        let Self {
            file,
            line,
            column,
            message,
            ..
        } = self;
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})"));
        format!(
            "{file}:{line}:{column}: {message}{}",
            hint.unwrap_or_default()
        )
    }

    fn raise(self, py: Python<'_>) -> PyErr {
        let error = LabError::new_err(self.shown());
        let value = error.value(py);
        let set = value
            .setattr("file", self.file)
            .and_then(|()| value.setattr("line", self.line))
            .and_then(|()| value.setattr("column", self.column))
            .and_then(|()| value.setattr("message", self.message))
            .and_then(|()| value.setattr("hint", self.hint));
        set.err().unwrap_or(error)
    }
}

/// A watcher that asks Python for signals.
#[derive(Default)]
struct Signals(RefCell<Option<PyErr>>);

impl Watcher for Signals {
    fn event(&mut self, _event: &Event) {}
    fn interrupted(&self) -> bool {
        let mut raised = self.0.borrow_mut();
        if raised.is_none() {
            *raised = Python::attach(|py| py.check_signals().err());
        }
        raised.is_some()
    }
}

/// A lab: the text of its file, and changes of it.
#[pyclass(frozen, module = "aerostat")]
struct Lab {
    name: String,
    text: String,
    set: Vec<String>,
    /// Warnings about the lab, one a line each.
    #[pyo3(get)]
    warnings: Vec<String>,
}

impl Lab {
    fn read(py: Python<'_>, name: String, text: String, set: Vec<String>) -> PyResult<Self> {
        let changes = overrides(&set);
        let checked = check(&name, &text, &changes).map_err(|mistake| mistake.raise(py))?;
        let found = &checked.warnings;
        let warnings = found.iter().map(|one| Mistake::of(found, one).shown());
        let warnings = warnings.collect();
        Ok(Self {
            name,
            text,
            set,
            warnings,
        })
    }
}

fn overrides(set: &[String]) -> Vec<Override> {
    set.iter()
        .map(|change| Override::new("set", change.clone()))
        .collect()
}

fn check(name: &str, text: &str, set: &[Override]) -> Result<Checked, Mistake> {
    let parsed = aerostat_lab::parse(name, text, set);
    let checked = parsed.and_then(Checked::without_files).map_err(|all| {
        let first = all.iter().next().map(|finding| Mistake::of(&all, finding));
        first.unwrap_or_else(|| of_lab(name, all.to_string()))
    })?;
    match checked.lab.outside_of_time() {
        None => Ok(checked.in_virtual_time()),
        Some(message) => Err(of_lab(name, message)),
    }
}

/// A mistake of the lab as a whole.
fn of_lab(name: &str, message: String) -> Mistake {
    Mistake {
        file: name.to_owned(),
        line: 1,
        column: 1,
        message,
        hint: None,
    }
}

/// The changes `PATH=VALUE` of a dictionary.
fn changes(set: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<String>> {
    let Some(set) = set else {
        return Ok(Vec::new());
    };
    let change = |(path, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let value = if let Ok(value) = value.cast::<PyBool>() {
            value.is_true().to_string()
        } else if value.is_instance_of::<PyString>()
            || value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyFloat>()
        {
            value.str()?.to_string()
        } else {
            return Err(PyTypeError::new_err(
                "a value of set is a str, bool, int or float",
            ));
        };
        Ok(format!("{}={value}", path.extract::<String>()?))
    };
    set.iter().map(change).collect()
}

#[pymethods]
impl Lab {
    #[new]
    #[pyo3(signature = (path, *, set=None))]
    fn new(py: Python<'_>, path: PathBuf, set: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let text = std::fs::read_to_string(&path)?;
        Self::read(py, path.display().to_string(), text, changes(set)?)
    }

    /// The lab of this text; `name` stands for the file in messages.
    #[staticmethod]
    #[pyo3(signature = (text, *, name="lab".to_owned(), set=None))]
    fn from_text(
        py: Python<'_>,
        text: String,
        name: String,
        set: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::read(py, name, text, changes(set)?)
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, name: String, text: String, set: Vec<String>) -> PyResult<Self> {
        Self::read(py, name, text, set)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.get_type::<Self>().getattr("_restore")?;
        let parts = (&*self.name, &*self.text, self.set.clone()).into_pyobject(py)?;
        (restore, parts).into_pyobject(py)
    }

    /// Runs the lab in virtual time: `seed` from 0, `until` a time such as "5s", `set` further changes.
    #[pyo3(signature = (seed=None, until=None, set=None))]
    fn run(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        until: Option<&str>,
        set: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Results> {
        let mut all = overrides(&self.set);
        all.extend(overrides(&changes(set)?));
        all.extend(seed.map(|seed| Override::of("seed", "seed", &seed.to_string())));
        all.extend(until.map(|until| Override::of("until", "until", until)));
        let computed = py.detach(|| {
            let checked = check(&self.name, &self.text, &all).map_err(Ended::Wrong)?;
            let mut signals = Signals::default();
            let mut run = LabRun::new(&checked.lab, &mut signals);
            run.start();
            run.run_to_end();
            // Nothing is captured, so nothing can fail to be written.
            let (report, _) = run.finish_both();
            match signals.0.into_inner() {
                Some(raised) => Err(Ended::Raised(raised)),
                None => Ok(Document::new(&checked, &all, Time::Virtual, &report)),
            }
        });
        match computed {
            Ok(document) => Ok(Results { document }),
            Err(Ended::Wrong(mistake)) => Err(mistake.raise(py)),
            Err(Ended::Raised(raised)) => Err(raised),
        }
    }
}

/// The reason why a run has no results.
enum Ended {
    Wrong(Mistake),
    Raised(PyErr),
}

/// The results of a run.
#[pyclass(frozen, module = "aerostat")]
struct Results {
    document: Document,
}

#[pymethods]
impl Results {
    /// Names of the tables, as in docs/results.md.
    fn tables(&self) -> Vec<String> {
        let all = self.document.flat();
        all.iter()
            .map(|table| table.info.flat_name().to_string())
            .collect()
    }

    /// The document of results, as `aerostat run -o json` writes it.
    fn json(&self) -> String {
        format!("{:#}\n", self.document.clone().json())
    }

    /// The rows of a table as dictionaries; a table that this lab lacks has none.
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let info = results::find(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let list = PyList::empty(py);
        for row in results::rows_of(&self.document, info) {
            let dict = PyDict::new(py);
            for (column, value) in row {
                dict.set_item(column, python(py, value)?)?;
            }
            list.append(dict)?;
        }
        Ok(list)
    }
}

/// A value of a row; what is neither number, text nor truth is JSON.
fn python(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Value::String(value) => PyString::new(py, &value).into_any(),
        Value::Number(value) => match (value.as_i64(), value.as_u64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (None, Some(value)) => value.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, value.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        other => PyString::new(py, &other.to_string()).into_any(),
    })
}

/// The compiled part of the package.
#[pymodule]
fn _aerostat(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("LabError", module.py().get_type::<LabError>())?;
    module.add_class::<Lab>()?;
    module.add_class::<Results>()
}
