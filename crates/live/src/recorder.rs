//! `capture:` of the lab file: a recording from the first cell to the last.
//!
//! A thread writes the data that the loop hands over. Packets that the disk is too slow for are left out and counted,
//! as for any client.

use crate::capture::{Captures, Form};
use aerostat_lab::model::Lab;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// A recording under way.
pub(crate) struct Recorder {
    writer: JoinHandle<io::Result<u64>>,
}

impl Recorder {
    /// Starts to record the links of `capture:`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        lab: &Lab,
        file: File,
        captures: &mut Captures,
        epoch_ns: u64,
    ) -> io::Result<Self> {
        let chunks = captures.start(lab, &lab.capture, Form::default(), epoch_ns)?;
        let writer = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || write(file, &chunks))?;
        Ok(Self { writer })
    }

    /// Waits until all data are written, after the loop has ended its side; returns the octets of the file.
    ///
    /// # Errors
    /// The error of the disk.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let written = self.writer.join();
        written.unwrap_or_else(|_| Err(io::Error::other("the recording has failed")))
    }
}

fn write(mut file: File, chunks: &Receiver<Vec<u8>>) -> io::Result<u64> {
    let mut octets = 0;
    for chunk in chunks {
        file.write_all(&chunk)?;
        octets += chunk.len() as u64;
    }
    Ok(octets)
}
