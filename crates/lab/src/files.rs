//! Files that the program writes: one mechanism for all crates. `text` reads those that a lab names.
//!
//! **Traps.** The program often runs as root in a directory of another user, and that user may plant a symbolic link
//! where a file of results will be. The link may lead to any file of the system. So no function of this module follows
//! a link at the name of a file. Directories that the user names are followed as usual.
//!
//! | function | for | what has the name already |
//! |---|---|---|
//! | [`write_whole`], [`NewFile`] | files that appear completely or not at all: tables, drawings, pages | is replaced |
//! | [`begin`] | files that grow while others read them: captures | is replaced at the beginning |
//! | [`try_name`] | the question whether a file can be made later | stays |
//! | [`resume`] | files that the next process continues: runs of a sweep, locks | stays; an error unless it is a file |
//!
//! **How.** A new file is made under another name in the same directory: `.NAME.part`. It must not exist then, so
//! nothing is followed and nothing else is opened. `rename(2)` gives it its name and replaces whatever had the name
//! before, a link or the name of a file with several names, but not what the link leads to.
//!
//! **Pipes.** A name that a user gives may be a named pipe, a terminal or a device (`/dev/stdout`, `/dev/fd/63` of
//! `-w >(wireshark -i -)`). With [`Named::ByUser`] such a file is written to, and never replaced.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Origin of the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The program derives it: only a file of its own is meant.
    ByProgram,
    /// The user gives it, and may mean a named pipe or a device.
    ByUser,
}

/// The text of a regular file of at most so many octets; `kind` says in errors which kind of file it is.
///
/// # Errors
/// A sentence: the file cannot be read, or is too large.
pub fn text(path: &Path, most: u64, kind: &str) -> Result<String, String> {
    let said = |error: io::Error| error.to_string();
    // To open a FIFO would wait for a writer.
    if !fs::metadata(path).map_err(said)?.is_file() {
        return Err("this is no regular file".to_owned());
    }
    let (file, mut text) = (File::open(path).map_err(said)?, String::new());
    let taken = file.take(most + 1).read_to_string(&mut text);
    if taken.map_err(said)? as u64 > most {
        return Err(format!("more than {most} octets: too large for {kind}"));
    }
    Ok(text)
}

/// SHA-256 of all that a reader gives, in hexadecimal, and its octets.
///
/// # Errors
/// Those of the reader.
pub fn sha256(mut reader: impl io::Read) -> io::Result<(String, u64)> {
    use sha2::Digest as _;
    let (mut sum, mut octets) = (sha2::Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match reader.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        if count == 0 {
            break;
        }
        sum.update(&buffer[..count]);
        octets += count as u64;
    }
    let hexadecimal = sum
        .finalize()
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    Ok((hexadecimal, octets))
}

/// Names for a file until it is complete, of which one is free. Others in the directory may have made the first ones.
const NAMES: usize = 16;
/// Limit of tries for a file that others make and remove at the same time.
const TRIES: usize = 16;

/// A file that is written under another name until [`Self::keep`]. It is removed if it is dropped before.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    /// Its name until it is complete; `None` for a pipe or a device, which stays where it is.
    unfinished: Option<PathBuf>,
}

impl NewFile {
    /// Makes a file that is going to be `path`.
    ///
    /// # Errors
    /// If it cannot be made in this directory.
    pub fn new(path: &Path, named: Named) -> io::Result<Self> {
        if named == Named::ByUser
            && let Some(file) = no_regular_file(path)?
        {
            return Ok(Self {
                file,
                path: path.to_owned(),
                unfinished: None,
            });
        }
        let name = path
            .file_name()
            .ok_or_else(|| no_file("no name of a file"))?;
        for number in 0..NAMES {
            let unfinished = path.with_file_name(unfinished(name, number));
            // What a process that was killed has left. This removes a link, and not what it leads to.
            let _ = fs::remove_file(&unfinished);
            match File::options()
                .write(true)
                .create_new(true)
                .open(&unfinished)
            {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    return Ok(Self {
                        file: made?,
                        path: path.to_owned(),
                        unfinished: Some(unfinished),
                    });
                }
            }
        }
        let text = format!("{NAMES} names such as .{}.part are taken", name.display());
        Err(io::Error::new(ErrorKind::AlreadyExists, text))
    }

    /// The open file.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If the name is that of a directory, or if another process has replaced the file in the meantime.
    pub fn keep(mut self) -> io::Result<File> {
        let file = self.file.try_clone()?;
        if let Some(unfinished) = &self.unfinished {
            if !is_same(&self.file.metadata()?, &fs::symlink_metadata(unfinished)?) {
                // What has the name is not ours to remove.
                self.unfinished = None;
                return Err(io::Error::other("another process writes this file, too"));
            }
            fs::rename(unfinished, &self.path)?;
            self.unfinished = None;
        }
        Ok(file)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// `.NAME.part`, `.NAME.1.part`, ...
fn unfinished(name: &std::ffi::OsStr, number: usize) -> OsString {
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    if number > 0 {
        unfinished.push(format!(".{number}"));
    }
    unfinished.push(".part");
    unfinished
}

/// Writes a file that appears completely or not at all.
///
/// # Errors
/// If the file cannot be made, or the error of `write`; then what had the name before is still there.
pub fn write_whole(
    path: &Path,
    named: Named,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let new = NewFile::new(path, named)?;
    let mut out = BufWriter::new(new.file());
    let written = write(&mut out).and_then(|()| out.flush());
    // After an error nothing of the rest is written.
    drop(out.into_parts());
    written?;
    new.keep().map(drop)
}

/// Begins a file that others may read while it grows: an empty file gets the name at once.
///
/// # Errors
/// If the file cannot be made.
pub fn begin(path: &Path, named: Named) -> io::Result<File> {
    NewFile::new(path, named)?.keep()
}

/// Finds out whether a file could be made under this name, before work whose result it is to take. Nothing is left.
///
/// # Errors
/// As of [`NewFile::new`]. A pipe or a device is not tried, because its reader would see that.
pub fn try_name(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() && !there.is_symlink() => Ok(()),
        _ => NewFile::new(path, Named::ByProgram).map(drop),
    }
}

/// Opens a file for reading and writing, with what it has; makes it if it does not exist.
///
/// # Errors
/// If the name is that of a symbolic link, or of anything else that is no file.
pub fn resume(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true);
    for _ in 0..TRIES {
        match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made,
        }
        let there = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            there => there?,
        };
        if there.is_symlink() {
            return Err(no_file(
                "this is a symbolic link, and links are not followed here",
            ));
        }
        if !there.is_file() {
            return Err(no_file("this is no file"));
        }
        match options.open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => {
                let opened = opened?;
                if is_same(&opened.metadata()?, &there) {
                    return Ok(opened);
                }
            }
        }
    }
    Err(io::Error::other(
        "other processes replace this file all the time",
    ))
}

/// Opens for writing what has this name, if it is a pipe, a terminal or another character device.
fn no_regular_file(path: &Path) -> io::Result<Option<File>> {
    // Links to what this process has open already, in directories of the kernel and of root.
    let own = ["/dev/stdout", "/dev/stderr"]
        .iter()
        .any(|own| path == Path::new(own))
        || path.parent().is_some_and(|parent| {
            ["/dev/fd", "/proc/self/fd"]
                .iter()
                .any(|own| parent == Path::new(own))
        });
    if own {
        return File::options()
            .write(true)
            .truncate(true)
            .open(path)
            .map(Some);
    }
    let Ok(there) = fs::symlink_metadata(path) else {
        return Ok(None);
    };
    let kind = there.file_type();
    if kind.is_file() || kind.is_symlink() {
        return Ok(None);
    }
    if !kind.is_fifo() && !kind.is_char_device() {
        return Err(no_file("this is no file"));
    }
    let file = File::options().write(true).open(path)?;
    match is_same(&file.metadata()?, &there) {
        true => Ok(Some(file)),
        false => Err(io::Error::other("another process has replaced this file")),
    }
}

/// True if both are of one file.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn no_file(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("aerostat-files-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
        fn names(&self) -> Vec<String> {
            let all = fs::read_dir(&self.0).unwrap();
            let mut all: Vec<_> = all
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            all.sort();
            all
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// All that another user can plant at a name: a link to a file, to nothing, to a directory, and a second name of a
    /// file.
    #[test]
    fn what_is_planted_at_a_name_is_replaced_and_what_it_leads_to_is_left_alone() {
        let folder = Folder::new("planted");
        let victim = folder.0.join("victim");
        let (path, part) = (folder.0.join("x.csv"), folder.0.join(".x.csv.part"));
        let absent = folder.0.join("absent");
        for named in [Named::ByProgram, Named::ByUser] {
            for target in [&victim, &absent, &folder.0] {
                fs::write(&victim, "secret").unwrap();
                for name in [&path, &part] {
                    let _ = fs::remove_file(name);
                    symlink(target, name).unwrap();
                }
                write_whole(&path, named, |out| out.write_all(b"whole")).unwrap();
                assert!(fs::symlink_metadata(&path).unwrap().is_file());
                assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
                fs::remove_file(&path).unwrap();
                symlink(target, &path).unwrap();
                symlink(target, &part).unwrap();
                begin(&path, named).unwrap().write_all(b"grows").unwrap();
                assert!(fs::symlink_metadata(&path).unwrap().is_file());
                assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
                assert_eq!(folder.names(), ["victim", "x.csv"]);
            }
            fs::remove_file(&path).unwrap();
            fs::hard_link(&victim, &path).unwrap();
            write_whole(&path, named, |out| out.write_all(b"whole")).unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
        }
    }

    #[test]
    fn a_file_that_is_continued_is_no_link() {
        let folder = Folder::new("resumed");
        let (victim, path) = (folder.0.join("victim"), folder.0.join("x"));
        for target in [&victim, &folder.0] {
            symlink(target, &path).unwrap();
            let refused = resume(&path).unwrap_err().to_string();
            assert!(refused.contains("symbolic link"), "{refused}");
            assert_eq!(folder.names(), ["x"], "nothing is made behind the link");
            fs::remove_file(&path).unwrap();
        }
        resume(&path).unwrap().write_all(b"one").unwrap();
        let again = resume(&path).unwrap();
        assert_eq!(again.metadata().unwrap().len(), 3);
        assert!(resume(&folder.0).is_err());
    }

    #[test]
    fn a_name_is_tried_and_nothing_is_left() {
        let folder = Folder::new("tried");
        let path = folder.0.join("x.html");
        try_name(&path).unwrap();
        assert!(folder.names().is_empty());
        fs::write(&path, "old").unwrap();
        try_name(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(folder.names(), ["x.html"]);
        assert!(try_name(&folder.0.join("absent/x.html")).is_err());
    }

    #[test]
    fn a_file_that_fails_leaves_the_one_of_before_and_nothing_else() {
        let folder = Folder::new("failed");
        let path = folder.0.join("x");
        fs::write(&path, "old").unwrap();
        let failed = write_whole(&path, Named::ByProgram, |out| {
            out.write_all(b"new")?;
            Err(ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
        // Another process that writes the same file: the first one may not give the other's half a name.
        let first = NewFile::new(&path, Named::ByProgram).unwrap();
        let second = NewFile::new(&path, Named::ByProgram).unwrap();
        assert!(first.keep().is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        second.keep().unwrap();
        assert_eq!(folder.names(), ["x"]);
        assert!(begin(&folder.0, Named::ByProgram).is_err(), "a directory");
    }

    #[test]
    fn a_device_that_a_user_names_is_written_to_and_stays() {
        let null = Path::new("/dev/null");
        write_whole(null, Named::ByUser, |out| out.write_all(b"x")).unwrap();
        let kind = fs::symlink_metadata(null).unwrap().file_type();
        assert!(kind.is_char_device());
        let socket = Folder::new("socket");
        let path = socket.0.join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(begin(&path, Named::ByUser).is_err());
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    }
}
