//! A run in steps, and its results.

use crate::request::{Answer, Request};
use aerostat_lab::event::{Event, Names};
use aerostat_lab::picture::Picture;
use aerostat_lab::results::{Document, Time};
use aerostat_lab::stream::{About, Line, Options};
use aerostat_lab::{Checked, Override};
use aerostat_node::inspect::Importance;
use aerostat_sim::run::{LabRun, Watcher};
use aerostat_view::page::Contents;
use aerostat_view::{Rows, drawing, people, warnings};
use serde::Serialize;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A bound that a run has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The time that the page gives.
    Time,
    /// The memory that the page gives.
    Memory,
}

/// The machine that a job runs on: its clock and its memory.
pub trait Host {
    /// A clock, milliseconds.
    fn now_ms(&self) -> f64;
    /// Octets that the job has, with everything else of its instance.
    fn memory(&self) -> u64;
}

/// State that the watcher of a run shares with the job.
#[derive(Default)]
struct Shared {
    /// The last main step of the story.
    told: RefCell<String>,
    /// The bound that was met.
    bound: Cell<Option<Bound>>,
    /// Virtual time that has passed, seconds.
    now_s: Cell<f64>,
    /// The end as far as is known, seconds.
    end_s: Cell<f64>,
}

struct Keeper<H> {
    host: H,
    /// Instant of the clock at which the time is up, milliseconds.
    deadline_ms: f64,
    most_memory: u64,
    names: Names,
    shared: Rc<Shared>,
}

impl<H: Host> Watcher for Keeper<H> {
    fn event(&mut self, event: &Event) {
        if event.milestone {
            *self.shared.told.borrow_mut() = self.names.in_text(&event.story());
        }
    }
    fn progress(&mut self, now: aerostat_proto::Instant, end: aerostat_proto::Instant) {
        self.shared.now_s.set(now.as_secs_f64());
        self.shared.end_s.set(end.as_secs_f64());
    }
    fn interrupted(&self) -> bool {
        if self.host.now_ms() >= self.deadline_ms {
            self.shared.bound.set(Some(Bound::Time));
        } else if self.host.memory() > self.most_memory {
            self.shared.bound.set(Some(Bound::Memory));
        }
        self.shared.bound.get().is_some()
    }
}

/// A lab being run.
///
/// Lab and watcher are never given back: an instance of the module runs one lab and ends with its worker.
pub struct Job {
    checked: &'static Checked,
    overrides: Vec<Override>,
    run: LabRun<'static>,
    shared: Rc<Shared>,
    is_over: bool,
}

impl Job {
    /// Makes a run ready; the answer has the warnings about the lab.
    ///
    /// # Errors
    /// The answer with what is wrong in the lab.
    pub fn begin(
        request: &Request,
        host: impl Host + 'static,
    ) -> Result<(Self, Answer), Box<Answer>> {
        let checked = request.check()?;
        let answer = request.accepted(&checked);
        let checked: &'static Checked = Box::leak(Box::new(checked));
        let shared = Rc::new(Shared::default());
        let began = host.now_ms();
        let watcher = Box::leak(Box::new(Keeper {
            host,
            deadline_ms: began + request.most_ms.unwrap_or(f64::INFINITY),
            most_memory: request.most_memory.unwrap_or(u64::MAX),
            names: Names::new(&checked.lab),
            shared: Rc::clone(&shared),
        }));
        let mut run = LabRun::new(&checked.lab, watcher);
        run.record_events(Options {
            about: About {
                text: Some(checked.text.clone()),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                real_time: false,
            },
            drawn: true,
            ..Options::default()
        });
        run.start();
        shared.end_s.set(run.end().as_secs_f64());
        let job = Self {
            checked,
            overrides: request.overrides(),
            run,
            shared,
            is_over: false,
        };
        Ok((job, answer))
    }

    /// Lets at most a tenth of a virtual second pass; false if the run is over.
    pub fn step(&mut self) -> bool {
        self.is_over = !self.run.step_to_end();
        !self.is_over
    }

    /// Virtual time that has passed, seconds.
    #[must_use]
    pub fn now_s(&self) -> f64 {
        self.shared.now_s.get()
    }

    /// The end of the run as far as is known, seconds.
    #[must_use]
    pub fn end_s(&self) -> f64 {
        self.shared.end_s.get()
    }

    /// The last main step of the story.
    #[must_use]
    pub fn told(&self) -> String {
        self.shared.told.borrow().clone()
    }

    /// Ends the run, early unless it is over.
    #[must_use]
    pub fn finish(self) -> Results {
        let bound = self.shared.bound.get();
        let interrupted = bound.is_some() || !self.is_over;
        let lab = &self.checked.lab;
        let end = self.run.end().as_secs_f64();
        // Nothing is captured, so nothing can fail to be written.
        let (mut report, _) = self.run.finish_both();
        let mut document = Document::new(self.checked, &self.overrides, Time::Virtual, &report);
        document.interrupted(interrupted);
        let tables = people::short(&report, lab, &document);
        let picture = Picture::of(lab);
        let machines = picture.machines.len();
        let picture = picture.drawn();
        let page = report.events.take().map(|mut stream| {
            stream.add_part(&Line::Layout(aerostat_view::positions(&picture)));
            Contents {
                lab: &lab.name,
                drawing: drawing::inline(&picture),
                tables: &tables,
                stream: &stream,
            }
            .page()
        });
        Results {
            json: document.json_text(),
            page: page.unwrap_or_default(),
            summary: Summary {
                lab: lab.name.clone(),
                interrupted,
                bound,
                now_s: report.end.as_secs_f64(),
                end_s: end,
                warnings: warnings::warnings(&report, lab, Time::Virtual),
                hidden: machines - picture.machines.len(),
                tables: tables.into_iter().map(Shown::from).collect(),
            },
        }
    }
}

/// The results of a run.
#[derive(Debug)]
pub struct Results {
    /// The document of results, as `aerostat run -o json` writes it.
    pub json: String,
    /// The recorded page, as `aerostat run --view` writes it.
    pub page: String,
    /// The results for the page that asked.
    pub summary: Summary,
}

/// The results for the page that asked.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Name of the lab.
    pub lab: String,
    /// True if the run was ended early.
    pub interrupted: bool,
    /// The bound that ended it.
    pub bound: Option<Bound>,
    /// Virtual time of the results, seconds.
    pub now_s: f64,
    /// End of the run as planned, seconds.
    pub end_s: f64,
    /// Reasons for warnings.
    pub warnings: Vec<String>,
    /// Machines that the drawing leaves out.
    pub hidden: usize,
    /// The tables for people.
    pub tables: Vec<Shown>,
}

/// A table as it is shown.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// Its title.
    pub title: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Places of the columns where there is no room for all.
    pub importance: Vec<Importance>,
    /// One value for each column.
    pub rows: Vec<Vec<Value>>,
}

impl From<Rows> for Shown {
    fn from(rows: Rows) -> Self {
        Self {
            title: rows.title,
            columns: rows.columns,
            importance: rows.importance,
            rows: rows.rows,
        }
    }
}
