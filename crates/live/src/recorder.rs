//! `capture:` of the lab file: a recording from the first cell to the last.
//!
//! A thread writes the data that the loop hands over. Packets that the disk is too slow for are left out and counted,
//! as for any client.

use crate::capture::{Captures, Form};
use crate::threads::spawn_named;
use aerostat_lab::growth::Growth;
use aerostat_lab::model::Lab;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// A recording under way.
pub(crate) struct Recorder {
    writer: JoinHandle<io::Result<()>>,
    /// Octets of the file so far.
    written: Arc<AtomicU64>,
    growth: Growth,
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
        let written = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&written);
        let writer = spawn_named("recorder", move || write(file, &chunks, &counted))?;
        Ok(Self {
            writer,
            written,
            growth: Growth::default(),
        })
    }

    /// Octets of the file so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// The size of the file, if it is worth a word now.
    pub(crate) fn grown(&mut self) -> Option<u64> {
        let octets = self.written();
        self.growth.reached(octets).then_some(octets)
    }

    /// Waits until all data are written, after the loop has ended its side; returns the octets of the file.
    ///
    /// # Errors
    /// The error of the disk.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let ended = self.writer.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the recording has failed")))?;
        Ok(self.written.load(Ordering::Relaxed))
    }
}

fn write(mut file: File, chunks: &Receiver<Vec<u8>>, written: &AtomicU64) -> io::Result<()> {
    for chunk in chunks {
        file.write_all(&chunk)?;
        written.fetch_add(chunk.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}
