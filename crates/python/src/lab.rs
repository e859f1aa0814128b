//! A lab: its text, and changes of it.

use crate::checks;
use crate::mistake::Mistake;
use crate::results::Results;
use crate::run::{self, Bounds};
use crate::written::Written;
use aerostat_lab::Override;
use aerostat_lab::diag::nearest;
use aerostat_lab::shipped;
use pyo3::exceptions::{PyFileNotFoundError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::path::{Path, PathBuf};

/// End of the name of a lab file.
const ENDING: &str = ".atm.yml";
/// Largest lab file, octets: the limit of the command.
const MAX_FILE: u64 = 4 << 20;

/// A lab: the text of its file, and changes of it.
#[pyclass(frozen, module = "aerostat")]
pub(crate) struct Lab {
    /// The file, or what stands for it in messages.
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) set: Vec<String>,
    /// Warnings about the lab, one a line each.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// Its key `name`, or the name of its file without the ending.
    name: String,
}

impl Lab {
    fn read(py: Python<'_>, name: String, text: String, set: Vec<String>) -> PyResult<Self> {
        Self::of(name, text, set).map_err(|mistake| mistake.raise(py))
    }

    /// The changes of this lab, and those of one run.
    fn all_changes(
        &self,
        seed: Option<u64>,
        until: Option<&Bound<'_, PyAny>>,
        set: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<Override>> {
        let mut all = overrides(&self.set);
        all.extend(overrides(&changes(set)?));
        all.extend(seed.map(|seed| Override::of("seed", "seed", &seed.to_string())));
        let until = until.map(time).transpose()?;
        all.extend(until.map(|until| Override::of("until", "until", &until)));
        Ok(all)
    }

    fn of(file: String, text: String, set: Vec<String>) -> Result<Self, Mistake> {
        let changes = overrides(&set);
        let checked = run::read(&file, &text, &changes)?;
        let found = &checked.warnings;
        let warnings = found.iter().map(|one| Mistake::of(found, one).shown());
        let warnings = warnings.collect();
        Ok(Self {
            file,
            text,
            set,
            warnings,
            name: checked.lab.name,
        })
    }
}

/// Changes that Python has set.
pub(crate) fn overrides(set: &[String]) -> Vec<Override> {
    set.iter()
        .map(|change| Override::new("set", change.clone()))
        .collect()
}

/// A flag or number as its text in YAML; `None` for all other values.
pub(crate) fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Some(flag.is_true().to_string()));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let finite = number.extract::<f64>()?;
        if !finite.is_finite() {
            let text = format!("{finite} is no finite number");
            return Err(PyValueError::new_err(text));
        }
    } else if !value.is_instance_of::<PyInt>() {
        return Ok(None);
    }
    Ok(Some(value.str()?.to_string()))
}

/// A value of a lab file as its text in YAML: `5us`, `true`, or JSON for lists and dictionaries.
pub(crate) fn yaml(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Some(text) = scalar(value)? {
        return Ok(text);
    }
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyDict>() {
        let json = value.py().import("json")?;
        return json.call_method1("dumps", (value,))?.extract();
    }
    let kind = value.get_type().name()?;
    let text = format!("a value is a str, bool, int, float, list or dict, and not {kind}");
    Err(PyTypeError::new_err(text))
}

/// The changes `PATH=VALUE` of a dictionary.
pub(crate) fn changes(set: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<String>> {
    let pairs = set.into_iter().flatten();
    pairs
        .map(|(path, value)| Ok(format!("{}={}", path.extract::<String>()?, yaml(&value)?)))
        .collect()
}

/// A time: text with a unit, or seconds.
pub(crate) fn time(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.is_instance_of::<PyString>() {
        true => value.extract(),
        false => Ok(format!("{}s", yaml(value)?)),
    }
}

/// A lab that is not read yet.
struct Source {
    /// Name for messages.
    name: String,
    text: String,
}

/// The lab that a word names, as on the command line: a file, the beginning of the name of a file, or
/// a lab of the program.
fn find(given: &Path) -> PyResult<Source> {
    let mut longer = given.to_owned().into_os_string();
    longer.push(ENDING);
    let longer = PathBuf::from(longer);
    let name = given.to_string_lossy();
    let shipped = shipped::lab(&name).filter(|_| !given.exists() && !longer.exists());
    if let Some(text) = shipped {
        let last = name.rsplit('/').next().unwrap_or(&name);
        return Ok(Source {
            name: format!("{last}{ENDING}"),
            text: text.to_owned(),
        });
    }
    let file = if longer.is_file() { &longer } else { given };
    if !file.exists() {
        let names: Vec<&str> = shipped::labs().map(|lab| lab.0).collect();
        let near = nearest(&name, &names).map(|near| format!("; did you mean '{near}'?"));
        let near = near.unwrap_or_else(|| "; labs() lists the labs of the module".to_owned());
        let text = format!("{name}: there is no such file or lab{near}");
        return Err(PyFileNotFoundError::new_err(text));
    }
    let text = aerostat_lab::files::text(file, MAX_FILE, "a lab file");
    let text = text.map_err(|why| PyValueError::new_err(format!("{}: {why}", file.display())))?;
    let name = file.display().to_string();
    Ok(Source { name, text })
}

/// A value of a lab file as its text in YAML.
#[pyfunction]
pub(crate) fn value_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    yaml(value)
}

/// Names of the labs that are part of the module.
#[pyfunction]
pub(crate) fn labs() -> Vec<&'static str> {
    shipped::alone().map(|lab| lab.0).collect()
}

#[pymethods]
impl Lab {
    #[new]
    #[pyo3(signature = (path, *, set=None))]
    fn new(py: Python<'_>, path: PathBuf, set: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let Source { name, text } = find(&path)?;
        Self::read(py, name, text, changes(set)?)
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

    /// The lab of these sections of a lab file, with the same keys and values.
    #[staticmethod]
    #[pyo3(signature = (sections, *, name="lab".to_owned(), set=None))]
    fn from_dict(
        py: Python<'_>,
        sections: &Bound<'_, PyDict>,
        name: String,
        set: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let Written { text, keys } = Written::new(sections)?;
        let set = changes(set)?;
        let read = Self::of(name.clone(), text, set);
        read.map_err(|mistake| mistake.with_key(&name, &keys).raise(py))
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, name: String, text: String, set: Vec<String>) -> PyResult<Self> {
        Self::read(py, name, text, set)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.get_type::<Self>().getattr("_restore")?;
        let parts = (&*self.file, &*self.text, self.set.clone()).into_pyobject(py)?;
        (restore, parts).into_pyobject(py)
    }

    /// Judges the lab by checks, those of its file or others, in virtual time.
    #[pyo3(signature = (checks=None, seed=None, until=None, set=None, *, limit=None))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        checks: Option<&Bound<'py, PyList>>,
        seed: Option<u64>,
        until: Option<&Bound<'py, PyAny>>,
        set: Option<&Bound<'py, PyDict>>,
        limit: Option<f64>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let all = self.all_changes(seed, until, set)?;
        let checks = checks.map(Written::list).transpose()?;
        let bounds = Bounds {
            limit,
            ..Bounds::default()
        };
        let judged = py.detach(|| checks::judge(self, &all, checks.as_ref(), bounds));
        let judged = judged.map_err(|ended| ended.raise(py))?;
        let dict = |one: checks::Judged| {
            let dict = PyDict::new(py);
            dict.set_item("title", one.title)?;
            dict.set_item("stage", one.stage)?;
            dict.set_item("level", if one.required { "required" } else { "warning" })?;
            dict.set_item("verdict", one.verdict)?;
            dict.set_item("points", one.points)?;
            dict.set_item("of", one.of)?;
            dict.set_item("text", one.text)?;
            dict.set_item("details", one.details)?;
            Ok(dict)
        };
        judged.into_iter().map(dict).collect()
    }

    /// The file, or what stands for it in messages.
    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    /// Name of the lab: its key `name`, or that of its file without the ending.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The text, without the changes.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The changes, each as `PATH=VALUE`.
    #[getter]
    fn changes(&self) -> Vec<String> {
        self.set.clone()
    }

    fn __repr__(&self) -> String {
        let changes = self.set.iter().map(|change| format!(", {change}"));
        format!(
            "<aerostat.Lab {}{}>",
            self.file,
            changes.collect::<String>()
        )
    }

    /// Runs the lab in virtual time.
    #[pyo3(signature = (seed=None, until=None, set=None, *, limit=None))]
    fn run(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        until: Option<&Bound<'_, PyAny>>,
        set: Option<&Bound<'_, PyDict>>,
        limit: Option<f64>,
    ) -> PyResult<Results> {
        let all = self.all_changes(seed, until, set)?;
        let bounds = Bounds {
            limit,
            ..Bounds::default()
        };
        let done = py.detach(|| run::run(self, &all, bounds));
        done.map(Results::from).map_err(|ended| ended.raise(py))
    }
}
