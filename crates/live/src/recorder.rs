//! `capture:` of the lab file: a recording from the first cell to the last.
//!
//! A thread writes what the loop hands over; what the disk is too slow for is left out and counted, as for any client.

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
    /// If there is no thread for it.
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

    /// Waits until all is written, once nobody hands over anything any more; the octets of the file.
    ///
    /// # Errors
    /// What the disk said.
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
