//! Labs in virtual time in a browser's tab.
//!
//! | part | module |
//! |---|---|
//! | the request of a page, and the findings about its lab | [`request`] |
//! | a run in steps, with bounds of time and memory, and its results | [`job`] |
//! | the functions that a page calls | `abi`, for `wasm32` alone |
//!
//! # The interface to a page
//!
//! All functions take and give numbers; texts lie in the memory of the module. A page asks for room (`input`), writes
//! a request there as JSON, calls a function, and reads its answer (`output`, `output_length`). One instance runs one
//! lab: the page ends the worker with it, which gives all memory back.
//!
//! ```text
//! check            findings about the lab, and its size
//! begin            the same; then the lab is ready to run, if there is no error
//! step             some virtual time passes; 0 at the end
//! finish           ends the run; json, page and summary give its results
//! ```
//!
//! **Bounds.** Time and memory: the page gives both with the request, and the run asks for them every 1024 events. At a
//! bound it ends as after Ctrl-C, with the results so far.

#[cfg(target_arch = "wasm32")]
mod abi;
pub mod job;
pub mod request;

/// Name and version of this module. A page compares it with its own.
pub const VERSION: &str = concat!("aerostat-web ", env!("CARGO_PKG_VERSION"));
