//! The sources and the documents as a whole: what no compiler checks.

mod documents;
mod tidy;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
