//! The functions that a page calls, and the clock that it gives.
//!
//! Everything here has one thread: the page's worker.

#![allow(
    unsafe_code,
    reason = "functions get names that a page can call, and the page's clock has one; no memory is touched by hand"
)]

use crate::VERSION;
use crate::job::{Host, Job, Results};
use crate::request::{Answer, Request};
use std::cell::RefCell;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Milliseconds of a clock.
    safe fn now_ms() -> f64;
}

/// The page's clock, and the memory of this instance.
struct Tab;

impl Host for Tab {
    fn now_ms(&self) -> f64 {
        now_ms()
    }
    fn memory(&self) -> u64 {
        const PAGE: u64 = 64 << 10;
        core::arch::wasm32::memory_size::<0>() as u64 * PAGE
    }
}

/// State of the instance.
#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    job: Option<Job>,
    results: Option<Results>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
    /// The last panic. It has a place of its own, because the state may be in use then.
    static PANIC: RefCell<String> = RefCell::default();
}

/// Does something with the state.
fn with<T>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(act)
}

/// Puts a text where the page reads it.
fn say(text: String) {
    with(|state| state.output = text.into_bytes());
}

fn answer(answer: &Answer) {
    say(serde_json::to_string(answer).unwrap_or_default());
}

/// The request of the page; `None` if it cannot be read, which the output says.
fn request() -> Option<Request> {
    std::panic::set_hook(Box::new(|panic| {
        PANIC.with_borrow_mut(|text| *text = panic.to_string());
    }));
    let input = with(|state| std::mem::take(&mut state.input));
    match serde_json::from_slice(&input) {
        Ok(request) => Some(request),
        Err(error) => {
            say(format!("the request cannot be read: {error}"));
            None
        }
    }
}

/// Room for a request of so many octets.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn input(octets: usize) -> *mut u8 {
    with(|state| {
        state.input = vec![0; octets];
        state.input.as_mut_ptr()
    })
}

/// Place of the last answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn output() -> *const u8 {
    with(|state| state.output.as_ptr())
}

/// Octets of the last answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn output_length() -> usize {
    with(|state| state.output.len())
}

/// Name and version of this module.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn version() {
    say(VERSION.to_owned());
}

/// Place of the text of the last panic. It can be read after a trap.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn panic_text() -> *const u8 {
    PANIC.with_borrow(|text| text.as_ptr())
}

/// Octets of it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn panic_length() -> usize {
    PANIC.with_borrow(String::len)
}

/// Checks the lab of the request. 1: it is valid, 0: it is not; the output is the answer. -1: there is no request.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn check() -> i32 {
    let Some(request) = request() else {
        return -1;
    };
    match request.check() {
        Ok(checked) => {
            answer(&request.accepted(&checked));
            1
        }
        Err(wrong) => {
            answer(&wrong);
            0
        }
    }
}

/// The same, and the run is ready if the lab is valid.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn begin() -> i32 {
    let Some(request) = request() else {
        return -1;
    };
    match Job::begin(&request, Tab) {
        Ok((job, ready)) => {
            with(|state| state.job = Some(job));
            answer(&ready);
            1
        }
        Err(wrong) => {
            answer(&wrong);
            0
        }
    }
}

/// Lets some virtual time pass. 1: the run goes on, 0: it is over.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn step() -> i32 {
    let job = with(|state| state.job.take());
    let Some(mut job) = job else {
        return 0;
    };
    let goes_on = job.step();
    with(|state| state.job = Some(job));
    goes_on.into()
}

/// Virtual time that has passed, seconds.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn now_s() -> f64 {
    with(|state| state.job.as_ref().map_or(0.0, |job| job.now_s()))
}

/// End of the run as far as is known, seconds.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn end_s() -> f64 {
    with(|state| state.job.as_ref().map_or(0.0, |job| job.end_s()))
}

/// The output becomes the last main step of the story.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn told() {
    let told = with(|state| state.job.as_ref().map(Job::told));
    say(told.unwrap_or_default());
}

/// Ends the run, early unless it is over; the output is the summary of its results.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn finish() {
    let Some(job) = with(|state| state.job.take()) else {
        return say(String::new());
    };
    let results = job.finish();
    say(serde_json::to_string(&results.summary).unwrap_or_default());
    with(|state| state.results = Some(results));
}

/// The output becomes the document of results.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn json() {
    with(|state| {
        let results = state.results.as_mut();
        state.output = results.map_or_else(Vec::new, |all| std::mem::take(&mut all.json).into());
    });
}

/// The output becomes the recorded page.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn page() {
    with(|state| {
        let results = state.results.as_mut();
        state.output = results.map_or_else(Vec::new, |all| std::mem::take(&mut all.page).into());
    });
}
