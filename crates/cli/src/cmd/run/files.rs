//! Files of results, which appear completely or not at all.

use aerostat_lab::files::{Named, NewFile};
use aerostat_lab::results;
use aerostat_node::inspect::TableInfo;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// Files that get their names when all of them are written. A full disk leaves the earlier files, and no incomplete
/// ones.
pub(super) struct Whole<'a> {
    directory: &'a Path,
    files: Vec<(String, NewFile)>,
}

impl<'a> Whole<'a> {
    pub(super) fn new(directory: &'a Path) -> Self {
        Self {
            directory,
            files: Vec::new(),
        }
    }

    /// Writes one more file.
    pub(super) fn add(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let new = NewFile::new(&self.directory.join(name), Named::ByProgram)?;
        let mut out = BufWriter::new(new.file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        self.files.push((name.into(), new));
        Ok(())
    }

    /// Gives the files their names. Tables of earlier results that the new results lack are removed.
    pub(super) fn keep(self) -> io::Result<()> {
        let mut heads = ["run.json", "results.json"].iter();
        let used = heads.any(|name| self.directory.join(name).exists());
        let mut written = Vec::new();
        for (name, new) in self.files {
            new.keep()?;
            written.push(name);
        }
        for name in ours().filter(|name| used && !written.contains(name)) {
            match std::fs::remove_file(self.directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Names of all files that results may have.
fn ours() -> impl Iterator<Item = String> {
    let tables = results::tables().map(TableInfo::flat_name);
    let tables = tables.flat_map(|name| [format!("{name}.csv"), format!("{name}.jsonl")]);
    tables.chain(["run.json".into(), "results.json".into()])
}

/// The files of results in a directory.
pub(super) fn there(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = ours()
        .filter(|name| directory.join(name).is_file())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).expect("a directory");
        let name = |entry: io::Result<std::fs::DirEntry>| {
            let entry = entry.expect("readable");
            entry.file_name().into_string().expect("plain")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn results_replace_those_of_before_as_a_whole_and_leave_other_files_alone() {
        let path = std::env::temp_dir().join(format!("aerostat-whole-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory");
        let path = path.as_path();
        let write = |files: &[&str], text: &'static str| {
            let mut whole = Whole::new(path);
            for name in files {
                whole.add(name, |out| out.write_all(text.as_bytes()))?;
            }
            whole.keep()
        };
        std::fs::write(path.join("vcs.csv"), "mine").expect("written");
        std::fs::write(path.join("notes.csv"), "mine").expect("written");
        // Files that are not results may be the user's.
        write(&["flows.csv", "queues.csv", "run.json"], "1").expect("written");
        let all = [
            "flows.csv",
            "notes.csv",
            "queues.csv",
            "run.json",
            "vcs.csv",
        ];
        assert_eq!(names(path), all);
        // The next run has no queues, so a table of the previous run must not remain.
        write(&["flows.csv", "run.json"], "2").expect("written");
        assert_eq!(names(path), ["flows.csv", "notes.csv", "run.json"]);
        // A failed run leaves the earlier files.
        let mut whole = Whole::new(path);
        whole
            .add("flows.csv", |out| out.write_all(b"3"))
            .expect("written");
        let full = whole.add("run.json", |_| Err(io::ErrorKind::StorageFull.into()));
        assert!(full.is_err());
        drop(whole);
        assert_eq!(names(path), ["flows.csv", "notes.csv", "run.json"]);
        let text = std::fs::read_to_string(path.join("flows.csv"));
        assert_eq!(text.expect("readable"), "2");
        std::fs::remove_dir_all(path).expect("removed");
    }
}
