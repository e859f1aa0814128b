//! Mutants of lab files: each is checked, and run if it is valid.

pub mod mutator;

use aerostat_lab::build::{Builder, Flavour};
use aerostat_proto::{Duration, Instant};
use aerostat_sim::run::LabRun;

/// Bounds of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limit of events.
    pub events: u64,
}

/// The result for a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The check refused the lab.
    Refused,
    /// The lab has links out of it, which `run` would refuse. Its nodes were built, and it ran without a peer.
    Outside,
    /// The lab ran for a second.
    Ran,
    /// The lab ran until it had used up its events.
    Cut,
}

/// The labs of the repository, and the example of the documents with every key.
///
/// # Panics
/// If they do not exist.
#[must_use]
pub fn labs() -> Vec<String> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut above = here.ancestors();
    let root = above.find(|dir| dir.join("interop/labs").is_dir());
    let root = root.expect("the repository's folder");
    let mut files: Vec<_> = ["labs", "interop/labs"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("labs"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".atm.yml"))
        .collect();
    files.sort();
    let read = |path: &std::path::Path| std::fs::read_to_string(path).expect("a lab");
    let mut texts: Vec<String> = files.iter().map(|path| read(path)).collect();
    let page = read(&root.join("docs/lab-file.md"));
    let example = page.split("```yaml\n").nth(1).expect("an example");
    let example = example.split("```").next().unwrap_or_default();
    texts.push(example.to_owned());
    texts
}

/// True if the check accepts the lab.
pub fn good(text: &str) -> bool {
    aerostat_lab::parse("mutant.atm.yml", text, &[]).is_ok()
}

/// Checks the lab, and runs it if it is valid.
///
/// # Panics
/// If a mutant makes Aerostat panic, or an error has no place.
pub fn drive(text: &str, limits: Limits) -> Fate {
    let checked = match aerostat_lab::parse("mutant.atm.yml", text, &["until=1s".into()]) {
        Ok(checked) => checked,
        Err(said) => {
            assert!(said.has_errors() && !said.to_string().is_empty());
            return Fate::Refused;
        }
    };
    let lab = checked.lab;
    // The nodes of a live lab.
    let builder = Builder::new(&lab, lab.seed, Flavour::Kernel).split(true);
    for (id, _) in lab.nodes() {
        let _ = builder.host(id, 0);
        let _ = builder.switch(id, 0);
    }
    let mut watcher = ();
    let mut run = LabRun::new(&lab, &mut watcher);
    run.limit_events(limits.events);
    run.start();
    run.run_until(Instant::ZERO + Duration::from_secs(1));
    let cut = run.exhausted();
    let report = run.finish().expect("nothing is captured");
    assert_eq!(report.flows.len(), lab.traffic.len(), "a row for each flow");
    match (lab.outside().next().is_some(), cut) {
        (true, _) => Fate::Outside,
        (false, true) => Fate::Cut,
        (false, false) => Fate::Ran,
    }
}
