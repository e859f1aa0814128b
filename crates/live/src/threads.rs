//! Threads: where the system has no room for one more, that is an error in words, and no panic as of
//! [`std::thread::spawn`].

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Starts a thread.
///
/// # Errors
/// If no thread can be made.
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().spawn(work).map_err(in_words)
}

/// Starts a thread with a name, which debuggers show.
///
/// # Errors
/// If no thread can be made.
pub(crate) fn spawn_named<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let thread = Builder::new().name(name.to_owned());
    thread.spawn(work).map_err(in_words)
}

/// Starts a thread that ends with the scope.
///
/// # Errors
/// If no thread can be made.
pub fn spawn_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(in_words)
}

/// The system's own text speaks of a resource.
fn in_words(error: io::Error) -> io::Error {
    let text = format!("no thread can be made ('ulimit -u' shows the limit of this user): {error}");
    io::Error::new(error.kind(), text)
}
