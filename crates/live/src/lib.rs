//! Labs in real time: the only crate that touches the operating system.
//!
//! Everything that a lab makes in the kernel hangs on file descriptors of its one process, or lives in a PID
//! namespace whose first process dies with it: after a crash, SIGKILL included, nothing of the lab remains.

mod agenda;
mod answers;
mod assembly;
mod budget;
pub mod capture;
pub mod charset;
mod clock;
pub mod confine;
pub mod control;
mod converge;
pub mod daemons;
pub mod detach;
mod driver;
pub mod force;
mod frames;
mod graph;
pub mod helper;
mod keepers;
mod kernel;
mod ladder;
mod links;
mod loopbacks;
pub mod mount;
pub mod names;
pub mod namespace;
mod next_hops;
mod notice;
pub mod notify;
pub mod outside;
mod past;
mod pictures;
pub mod programs;
mod pvc;
mod qos;
mod recorder;
pub mod results;
mod routes;
pub mod run;
pub mod runtime_dir;
mod seqpacket;
pub mod signals;
mod site;
mod socket_service;
mod source;
mod stations;
pub mod story;
pub mod streams;
pub mod supervisor;
pub mod tap;
mod taps;
pub mod threads;
pub mod world;

pub use socket_service::has_group;
