//! The request of a page, and the findings about its lab.

use aerostat_lab::diag::{Diagnostic, Severity, Span};
use aerostat_lab::{Checked, Diagnostics, Lab, Override};
use serde::{Deserialize, Serialize};

/// A lab and what `aerostat run` takes as options.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Request {
    /// Name of the file, for messages; the lab is named after it unless the text gives a name.
    pub file: String,
    /// Text of the lab.
    pub text: String,
    /// Changes as with `--set`, in their order.
    #[serde(default)]
    pub set: Vec<String>,
    /// Seed as with `--seed`.
    #[serde(default)]
    pub seed: Option<String>,
    /// End as with `--until`.
    #[serde(default)]
    pub until: Option<String>,
    /// Time that the run may take, milliseconds of the page's clock.
    #[serde(default)]
    pub most_ms: Option<f64>,
    /// Memory that the module may have, octets.
    #[serde(default)]
    pub most_memory: Option<u64>,
}

/// An answer about a lab.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The lab, if there is no error.
    pub lab: Option<About>,
    /// Findings in the order of the text.
    pub findings: Vec<Finding>,
    /// The same as text, as `aerostat validate` shows them.
    pub text: String,
}

/// Facts about a lab.
#[derive(Debug, Serialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Seed of its random streams.
    pub seed: u64,
    /// End of the run as far as is known before it, seconds.
    pub end_s: f64,
    /// Number of machines.
    pub machines: usize,
    /// Number of flows.
    pub flows: usize,
}

/// A finding. Places are offsets into the text of the lab in the units of a browser (UTF-16).
#[derive(Debug, Serialize)]
pub struct Finding {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// Name of the text: the file, or an option such as `--set mpoa=no`.
    pub source: String,
    /// Line in it, from 1.
    pub line: usize,
    /// Column in it, in characters from 1.
    pub column: usize,
    /// Place in the text of the lab; none in an option.
    pub at: Option<[usize; 2]>,
    /// The mistake.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// Another relevant place, with the reason.
    pub see: Option<String>,
}

impl Request {
    /// The options as changes of the file, in the order of `aerostat run`.
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        let set = self.set.iter().map(|change| Override::from(&**change));
        let seed = self.seed.as_ref().map(|seed| {
            // The program shows the number.
            let seed = seed.trim();
            let number = seed.parse::<u64>().map(|seed| seed.to_string());
            Override::of("--seed", "seed", number.as_deref().unwrap_or(seed))
        });
        let until = self.until.as_ref();
        let until = until.map(|until| Override::of("--until", "until", until.trim()));
        set.chain(seed).chain(until).collect()
    }

    /// Reads and checks the lab for a run in virtual time without files.
    ///
    /// # Errors
    /// The answer with what is wrong.
    pub fn check(&self) -> Result<Checked, Box<Answer>> {
        let parsed = aerostat_lab::parse(&self.file, &self.text, &self.overrides());
        let checked = parsed.and_then(Checked::without_files);
        let checked = checked.map_err(|findings| Box::new(self.answer(None, &findings)))?;
        match checked.lab.outside_of_time() {
            None => Ok(checked.in_virtual_time()),
            Some(message) => Err(Box::new(Answer {
                lab: None,
                text: format!("{}: error: {message}\n", self.file),
                findings: vec![self.of_lab(message)],
            })),
        }
    }

    /// The answer about a valid lab.
    #[must_use]
    pub fn accepted(&self, checked: &Checked) -> Answer {
        self.answer(Some(&checked.lab), &checked.warnings)
    }

    fn answer(&self, lab: Option<&Lab>, findings: &Diagnostics) -> Answer {
        Answer {
            lab: lab.map(|lab| About {
                name: lab.name.clone(),
                description: lab.description.clone(),
                seed: lab.seed,
                end_s: lab.end().as_secs_f64(),
                machines: lab.nodes.len(),
                flows: lab.traffic.len(),
            }),
            text: findings.to_string(),
            findings: findings
                .iter()
                .map(|finding| self.finding(findings, finding))
                .collect(),
        }
    }

    fn finding(&self, all: &Diagnostics, finding: &Diagnostic) -> Finding {
        let place = all.locate(finding.at);
        Finding {
            severity: match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            source: place.source.to_owned(),
            line: place.line,
            column: place.column,
            at: (finding.at.source == 0).then(|| self.units(finding.at)),
            message: finding.message.clone(),
            hint: finding.hint.clone(),
            see: finding.see.as_ref().map(|(at, why)| {
                let place = all.locate(*at);
                format!("line {}: {why}", place.line)
            }),
        }
    }

    /// A finding about the lab as a whole.
    fn of_lab(&self, message: String) -> Finding {
        Finding {
            severity: "error",
            source: self.file.clone(),
            line: 1,
            column: 1,
            at: Some([0, 0]),
            message,
            hint: Some("'aerostat up' runs this lab in real time".to_owned()),
            see: None,
        }
    }

    /// The octets of a span in the units of a browser.
    fn units(&self, at: Span) -> [usize; 2] {
        [at.start, at.end].map(|octet| {
            let octet = self.text.floor_char_boundary(octet.min(self.text.len()));
            self.text[..octet].encode_utf16().count()
        })
    }
}
