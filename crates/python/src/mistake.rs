//! Mistakes in labs as exceptions.

use aerostat_lab::Diagnostics;
use aerostat_lab::diag::{Diagnostic, Severity};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(aerostat, LabError, PyException, "A mistake in a lab.");

/// A place and what is wrong there.
pub(crate) struct Mistake {
    file: String,
    line: usize,
    column: usize,
    message: String,
    hint: Option<String>,
    /// The key, if the lab was built in code.
    key: Option<String>,
}

impl Mistake {
    /// A finding of a lab.
    pub(crate) fn of(all: &Diagnostics, finding: &Diagnostic) -> Self {
        let place = all.locate(finding.at);
        Self {
            file: place.source.to_owned(),
            line: place.line,
            column: place.column,
            message: finding.message.clone(),
            hint: finding.hint.clone(),
            key: None,
        }
    }

    /// The first error of a lab.
    pub(crate) fn first(name: &str, all: &Diagnostics) -> Self {
        let mut errors = all.iter();
        let first = errors.find(|finding| finding.severity == Severity::Error);
        let first = first.map(|finding| Self::of(all, finding));
        first.unwrap_or_else(|| Self::of_lab(name, all.to_string()))
    }

    /// A mistake of the lab as a whole.
    pub(crate) fn of_lab(name: &str, message: String) -> Self {
        Self {
            file: name.to_owned(),
            line: 1,
            column: 1,
            message,
            hint: None,
            key: None,
        }
    }

    /// The mistake with the key of its line, if the place is in the text `name` and not in a change.
    pub(crate) fn with_key(self, name: &str, keys: &[String]) -> Self {
        let line = self.line.checked_sub(1).filter(|_| self.file == name);
        let key = line.and_then(|line| keys.get(line)).cloned();
        Self { key, ..self }
    }

    /// The mistake on one line.
    pub(crate) fn shown(&self) -> String {
        let Self {
            file,
            line,
            column,
            message,
            ..
        } = self;
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})"));
        let hint = hint.unwrap_or_default();
        match &self.key {
            Some(key) => format!("{file}: {key}: {message}{hint}"),
            None => format!("{file}:{line}:{column}: {message}{hint}"),
        }
    }

    /// The exception, with the parts of the mistake as attributes.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        let error = LabError::new_err(self.shown());
        let value = error.value(py);
        let set = value
            .setattr("file", self.file)
            .and_then(|()| value.setattr("line", self.line))
            .and_then(|()| value.setattr("column", self.column))
            .and_then(|()| value.setattr("message", self.message))
            .and_then(|()| value.setattr("hint", self.hint))
            .and_then(|()| value.setattr("key", self.key));
        set.err().unwrap_or(error)
    }
}
