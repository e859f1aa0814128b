//! The text of a lab that was built in code from dictionaries and lists.
//!
//! The text is JSON, which is YAML, so the lab is read as a file is. Each key and each entry of a list has a line of
//! its own; [`Written::keys`] has the path of each line, so that a mistake can name the key.

use crate::lab::scalar;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};

/// Most dictionaries and lists inside each other: a dictionary that has itself as a value is an error.
const DEEPEST: usize = 32;

/// A text with the key of each line.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) text: String,
    /// Paths as those of `set`: `links.0.rate`.
    pub(crate) keys: Vec<String>,
}

impl Written {
    /// The lab of these sections.
    ///
    /// # Errors
    /// `TypeError` for a value that no lab file can have, and `ValueError` for too deep ones; both name the key.
    pub(crate) fn new(sections: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut written = Self::default();
        written.value(sections, "", 0, "")?;
        Ok(written)
    }

    /// The checks of this list.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(crate) fn list(entries: &Bound<'_, PyList>) -> PyResult<Self> {
        let mut written = Self::default();
        written.value(entries, "", 0, "")?;
        Ok(written)
    }

    fn line(&mut self, text: &str, path: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.keys.push(path.to_owned());
    }

    /// Writes a value; `before` stands in front of it on its line.
    fn value(
        &mut self,
        value: &Bound<'_, PyAny>,
        path: &str,
        depth: usize,
        before: &str,
    ) -> PyResult<()> {
        if depth > DEEPEST {
            let text =
                format!("{path}: more than {DEEPEST} dictionaries and lists inside each other");
            return Err(PyValueError::new_err(text));
        }
        let below = |step: &str| match path {
            "" => step.to_owned(),
            path => format!("{path}.{step}"),
        };
        if let Ok(dict) = value.cast::<PyDict>() {
            self.line(&format!("{before}{{"), path);
            for (at, (key, value)) in dict.iter().enumerate() {
                if !key.is_instance_of::<PyString>() && !key.is_instance_of::<PyInt>() {
                    let kind = key.get_type().name()?;
                    let text = format!("{}: a key is a str or int, and not {kind}", below("?"));
                    return Err(PyTypeError::new_err(text));
                }
                let key = key.str()?.to_string();
                let comma = if at == 0 { "" } else { "," };
                let before = format!("{comma}{}: ", serde_json::Value::from(&*key));
                self.value(&value, &below(&key), depth + 1, &before)?;
            }
            self.line("}", path);
            return Ok(());
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            self.line(&format!("{before}["), path);
            for (at, entry) in value.try_iter()?.enumerate() {
                let comma = if at == 0 { "" } else { "," };
                self.value(&entry?, &below(&at.to_string()), depth + 1, comma)?;
            }
            self.line("]", path);
            return Ok(());
        }
        let text = match value {
            none if none.is_none() => "null".to_owned(),
            text if text.is_instance_of::<PyString>() => {
                serde_json::Value::from(text.extract::<String>()?).to_string()
            }
            other => scalar(other)?.ok_or_else(|| unknown(other, path))?,
        };
        self.line(&format!("{before}{text}"), path);
        Ok(())
    }
}

fn unknown(value: &Bound<'_, PyAny>, path: &str) -> PyErr {
    let kind = value.get_type().name();
    let kind = kind.map_or_else(|_| "?".to_owned(), |kind| kind.to_string());
    let text =
        format!("{path}: a value is a str, bool, int, float, list, dict or None, and not {kind}");
    PyTypeError::new_err(text)
}
