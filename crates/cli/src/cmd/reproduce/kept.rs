//! Values of rows that are finished, in a file: after an interruption the same command runs the others alone.
//!
//! A value is that of a row in one seed. It counts if the text of the lab, all changes of it, the seed, where the value
//! is in the results, and the program are the same.

use super::catalogue::Files;
use super::made;
use super::model::Plan;
use crate::exit::Failure;
use aerostat_sweep::store::{Keeper, Key, Record, Store};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

const KEEPER: Keeper = Keeper {
    head: "{\"schema\":\"aerostat.reproduce.kept.v1\"}\n",
    what: "reproduction",
    option: "--keep",
};

/// The file.
pub(super) struct Kept {
    store: RefCell<Store>,
    /// Names of what this process has added: rows may share a value.
    added: RefCell<BTreeSet<String>>,
}

impl Kept {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// It is no such file, cannot be read or written, or another process has it.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            store: RefCell::new(Store::open(path, false, KEEPER)?),
            added: RefCell::default(),
        })
    }

    /// The values of these plans, where the file has them.
    pub(super) fn find(&self, plans: &[&Plan], files: &Files) -> Result<Vec<Option<f64>>, Failure> {
        let mut store = self.store.borrow_mut();
        let keys = plans.iter().map(|plan| plan.key(files));
        let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        // Rows may share a plan, and the file has each of them once.
        let mut distinct = keys.clone();
        distinct.sort_by_cached_key(name);
        distinct.dedup();
        let found = store.find(distinct.iter().cloned())?;
        let values = found.places.into_iter().map(|place| {
            let record = place.map(|place| store.read(place)).transpose()?;
            Ok(record.and_then(|record| record.rows.first()?.as_f64()))
        });
        let values: Vec<Option<f64>> = values.collect::<Result<_, Failure>>()?;
        let of = |key: &Key| {
            let at = distinct.iter().position(|known| known == key);
            at.and_then(|at| values[at])
        };
        Ok(keys.iter().map(of).collect())
    }

    /// Keeps a value. One that is no number, such as the mean of nothing, is found again.
    pub(super) fn add(&self, plan: &Plan, value: f64, files: &Files) -> Result<(), Failure> {
        if !value.is_finite() {
            return Ok(());
        }
        let record = Record {
            exit: 0,
            seed: plan.seed(),
            rows: vec![json!(value)],
        };
        let key = plan.key(files)?;
        match self.added.borrow_mut().insert(name(&key)) {
            true => Ok(self.store.borrow_mut().add(&key, &record).map(|_| ())?),
            false => Ok(()),
        }
    }
}

/// The key of a value: `runs` are labs with their changes and seeds, `taken` says how the value follows from them.
pub(super) fn key(lab: &str, runs: &Value, taken: &str) -> Key {
    let mut run = Map::new();
    run.insert("runs".into(), runs.clone());
    run.insert("taken".into(), taken.into());
    Key {
        lab: aerostat_lab::digest(lab, &[]),
        version: made::version(),
        table: "values".into(),
        run,
    }
}

fn name(key: &Key) -> String {
    serde_json::to_string(&key.run).unwrap_or_default()
}
