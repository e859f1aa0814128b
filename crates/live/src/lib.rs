//! Labs in real time: the only crate that touches the operating system.
//!
//! Everything that a lab makes in the kernel hangs on file descriptors of its one process, or lives in a PID
//! namespace whose first process dies with it: after a crash, SIGKILL included, nothing of the lab remains.

pub mod control;
pub mod namespace;
pub mod runtime_dir;
pub mod supervisor;
pub mod tap;
