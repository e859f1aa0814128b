//! Joins two TAPs: each frame is read from one and written to the other, unchanged. No program that switches frames of
//! TAPs in user space can do less. With vnet headers super-frames of up to 64 KiB pass whole.

use crate::sys;
use clap::Args;
use std::fs::File;
use std::io::{self, Read as _, Write as _};

/// Options of the copier.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Name of the first interface
    a: String,
    /// Name of the second interface
    b: String,
    /// With vnet headers: super-frames pass whole, and no program sums them
    #[arg(long)]
    vnet: bool,
}

/// Copies until it is killed.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    let taps = [
        sys::tap(&options.a, options.vnet)?,
        sys::tap(&options.b, options.vnet)?,
    ];
    println!("ready");
    let mut buffer = vec![0; 70_000];
    loop {
        let ready = sys::poll_two(&taps)?;
        for (n, is_ready) in ready.into_iter().enumerate() {
            if is_ready {
                copy(&taps[n], &taps[1 - n], &mut buffer);
            }
        }
    }
}

/// Copies at most 64 frames, so that the other direction has its turn. A TAP that is down takes no frame.
fn copy(mut from: &File, mut to: &File, buffer: &mut [u8]) {
    for _ in 0..64 {
        match from.read(buffer) {
            Ok(length @ 1..) => {
                let _ = to.write(&buffer[..length]);
            }
            Ok(_) | Err(_) => return,
        }
    }
}
