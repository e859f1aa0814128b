//! One run of a lab.
//!
//! A run asks every [`ASK`] whether a signal has come. Only the main thread of Python takes signals, so runs in other
//! threads are ended by [`Ending`], which all runs of one sweep in one process share.

use crate::lab::Lab;
use crate::mistake::Mistake;
use aerostat_lab::diag::Severity;
use aerostat_lab::event::Event;
use aerostat_lab::results::{Document, Time};
use aerostat_lab::{Checked, Override};
use aerostat_sim::run::{LabRun, Watcher};
use aerostat_view::warnings::warnings;
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pyo3::create_exception!(
    aerostat,
    LimitError,
    PyTimeoutError,
    "A run took longer than its limit of real time."
);

/// Real time between two questions of a run whether it shall end. It is a tenth of the time in which Ctrl-C shall end a
/// run, and long beside the time that the lock of the interpreter takes.
const ASK: Duration = Duration::from_millis(20);

/// A wish that several runs end, from another thread.
pub(crate) type Ending = Arc<AtomicBool>;

/// Bounds of a run that no lab file has.
#[derive(Default)]
pub(crate) struct Bounds {
    /// Most real time, seconds.
    pub(crate) limit: Option<f64>,
    /// The wish of another thread.
    pub(crate) ending: Option<Ending>,
}

/// The reason why a run has no results.
pub(crate) enum Ended {
    /// The lab is wrong.
    Wrong(Mistake),
    /// A signal's handler has raised this.
    Raised(PyErr),
    /// The run reached its limit of real time: seconds of virtual time so far, if known, and the limit.
    Late(Option<f64>, f64),
    /// Another thread wished the end.
    Wished,
}

impl Ended {
    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Wrong(mistake) => mistake.raise(py),
            Self::Raised(raised) => raised,
            Self::Late(reached, limit) => {
                let so_far = |reached| format!("; it had reached {reached:.3} s of virtual time");
                let so_far = reached.map(so_far).unwrap_or_default();
                LimitError::new_err(format!(
                    "the run was ended at its limit of {limit} s of real time{so_far}"
                ))
            }
            Self::Wished => pyo3::exceptions::PyKeyboardInterrupt::new_err("the sweep was ended"),
        }
    }
}

/// A run that is done.
pub(crate) struct Done {
    /// All its results.
    pub(crate) document: Document,
    /// Warnings of the run.
    pub(crate) warnings: Vec<String>,
    /// Exit code of the command: 3 if the run or its lab has warnings, otherwise 0.
    pub(crate) exit: u8,
}

/// The lab of this text with these changes.
pub(crate) fn read(name: &str, text: &str, set: &[Override]) -> Result<Checked, Mistake> {
    let parsed = aerostat_lab::parse(name, text, set);
    parsed
        .map(Checked::in_virtual_time)
        .map_err(|all| Mistake::first(name, &all))
}

/// The lab, if it can run in virtual time and without files of its own.
pub(crate) fn check(name: &str, text: &str, set: &[Override]) -> Result<Checked, Mistake> {
    let checked = read(name, text, set)?.without_files();
    let checked = checked.map_err(|all| Mistake::first(name, &all))?;
    match checked.lab.outside_of_time() {
        None => Ok(checked),
        Some(message) => Err(Mistake::of_lab(name, message)),
    }
}

/// Runs a lab with these changes, which include its own; the caller has not the lock of the interpreter.
pub(crate) fn run(lab: &Lab, set: &[Override], bounds: Bounds) -> Result<Done, Ended> {
    let checked = check(&lab.file, &lab.text, set).map_err(Ended::Wrong)?;
    let mut asker = Asker::new(bounds);
    let mut run = LabRun::new(&checked.lab, &mut asker);
    run.start();
    run.run_to_end();
    // Nothing is captured, so nothing can fail to be written.
    let (report, _) = run.finish_both();
    if let Some(ended) = asker.why(Some(report.end.as_secs_f64())) {
        return Err(ended);
    }
    let warnings = warnings(&report, &checked.lab, Time::Virtual);
    let warned = !warnings.is_empty() || checked.warnings.count(Severity::Warning) > 0;
    Ok(Done {
        document: Document::new(&checked, set, Time::Virtual, &report),
        exit: if warned { 3 } else { 0 },
        warnings,
    })
}

/// A watcher that asks whether the run shall end.
pub(crate) struct Asker {
    bounds: Bounds,
    began: Instant,
    asked: Cell<Instant>,
    raised: RefCell<Option<PyErr>>,
    late: Cell<bool>,
    wished: Cell<bool>,
}

impl Asker {
    /// A watcher from now on.
    pub(crate) fn new(bounds: Bounds) -> Self {
        let now = Instant::now();
        Self {
            bounds,
            began: now,
            asked: Cell::new(now),
            raised: RefCell::default(),
            late: Cell::new(false),
            wished: Cell::new(false),
        }
    }

    fn is_over(&self) -> bool {
        self.late.get() || self.wished.get() || self.raised.borrow().is_some()
    }

    /// The reason of the end, if it is not that of the lab file; `reached` is the virtual time, seconds, if known.
    pub(crate) fn why(self, reached: Option<f64>) -> Option<Ended> {
        let limit = self.bounds.limit.unwrap_or_default();
        match self.raised.into_inner() {
            Some(raised) => Some(Ended::Raised(raised)),
            None if self.wished.get() => Some(Ended::Wished),
            None if self.late.get() => Some(Ended::Late(reached, limit)),
            None => None,
        }
    }
}

impl Watcher for Asker {
    fn event(&mut self, _event: &Event) {}
    fn interrupted(&self) -> bool {
        if self.is_over() {
            return true;
        }
        if self.asked.get().elapsed() < ASK {
            return false;
        }
        self.asked.set(Instant::now());
        let ending = self.bounds.ending.as_ref();
        self.wished
            .set(ending.is_some_and(|ending| ending.load(Ordering::Relaxed)));
        let elapsed = self.began.elapsed().as_secs_f64();
        self.late
            .set(self.bounds.limit.is_some_and(|limit| elapsed > limit));
        self.raised
            .replace(Python::attach(|py| py.check_signals().err()));
        self.is_over()
    }
}
