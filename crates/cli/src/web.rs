//! The HTTP server of `view` and `metrics`: a process of its own beside the labs, for one user on this machine.
//!
//! **Bounds.** [`MOST_CONNECTIONS`] are open at a time. A new one takes the place of the oldest that has not shown the
//! token yet; if all have, it gets status 503. A head that is not there within [`HEAD`], and an answer that is not
//! taken within [`ANSWER`], end their connection. A stream ends if its reader takes nothing for [`STALL`]. What was
//! refused or ended is counted ([`Counters`]).
//!
//! **Trust.** See [`door`].

pub(crate) mod body;
pub(crate) mod door;

use crate::interrupt::Interrupt;
use body::Body;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;

/// Limit of connections.
pub(crate) const MOST_CONNECTIONS: usize = 64;
/// Limit of connections that are told that there is no room.
const MOST_REFUSED: u64 = 64;
/// Limit of connections that wait to be accepted.
const BACKLOG: u32 = 256;
/// Time for the head of a request, also of the next one.
const HEAD: Duration = Duration::from_secs(5);
/// Time for an answer that is no stream.
const ANSWER: Duration = Duration::from_secs(30);
/// Time in which the reader of a stream takes something.
pub(crate) const STALL: Duration = Duration::from_secs(5);
/// Time in which a refused client reads why.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How often a server looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Octets that the kernel holds for a reader.
const SEND_BUFFER: u32 = 128 << 10;
/// Longest head of a request, octets.
const MOST_HEAD: usize = 16 << 10;

/// Counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Connections that were refused, because all places were taken.
    pub(crate) refused: AtomicU64,
    /// Connections that gave way to newer ones.
    pub(crate) gave_way: AtomicU64,
    /// Connections that were ended because their client was too slow.
    pub(crate) slow: AtomicU64,
    /// Requests that were not let in.
    pub(crate) strangers: AtomicU64,
}

impl Counters {
    pub(crate) fn count(what: &AtomicU64) {
        what.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// True once a request had the token.
    known: AtomicBool,
    /// True while the answer is a stream.
    streams: AtomicBool,
    /// True from a request to the end of its answer, as far as the server knows.
    answers: AtomicU64,
    end: Notify,
}

impl Connection {
    /// Notes that a request had the token.
    pub(crate) fn know(&self) {
        self.known.store(true, Ordering::Relaxed);
    }
    /// Notes that the answer goes on for any time.
    pub(crate) fn stream(&self) {
        self.streams.store(true, Ordering::Relaxed);
    }
    /// Ends it.
    pub(crate) fn end(&self) {
        self.end.notify_one();
    }
}

/// The connections by number, and their server's counters.
#[derive(Debug, Default)]
pub(crate) struct Places {
    all: Mutex<BTreeMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    told: AtomicU64,
    pub(crate) counters: Counters,
}

impl Places {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Connection>>> {
        // No code panics while it holds the map.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection; `None` if all places are taken by those who have the token.
    fn enter(&self) -> Option<(u64, Arc<Connection>)> {
        let mut all = self.all();
        if all.len() >= MOST_CONNECTIONS {
            let stranger = |one: &Connection| !one.known.load(Ordering::Relaxed);
            let oldest = all.iter().find(|(_, one)| stranger(one));
            let oldest = oldest.map(|(number, _)| *number)?;
            if let Some(gone) = all.remove(&oldest) {
                gone.end();
                Counters::count(&self.counters.gave_way);
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::default());
        all.insert(number, Arc::clone(&connection));
        Some((number, connection))
    }
}

/// Listens at an address.
///
/// # Errors
/// If the address is taken, or is not one of this machine.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    // Connections have the listener's size.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A runtime for a server.
///
/// # Errors
/// The operating system's.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(16)
        .build()
}

/// Serves for ever.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    places: Arc<Places>,
    answer: impl Fn(Request<Incoming>, Arc<Connection>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // No descriptor is left, or the client is gone again.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (places, answer) = (Arc::clone(&places), answer.clone());
        match places.enter() {
            Some((number, connection)) => {
                tokio::spawn(async move {
                    converse(stream, &places, &connection, answer).await;
                    places.all().remove(&number);
                });
            }
            None => {
                Counters::count(&places.counters.refused);
                if places.told.fetch_add(1, Ordering::Relaxed) < MOST_REFUSED {
                    tokio::spawn(async move {
                        refuse(stream).await;
                        places.told.fetch_sub(1, Ordering::Relaxed);
                    });
                } else {
                    places.told.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Returns when a signal has come.
pub(crate) async fn ended(interrupt: &Interrupt) {
    while !interrupt.has_come() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Serves a connection until it ends.
async fn converse<F>(
    stream: TcpStream,
    places: &Places,
    connection: &Arc<Connection>,
    answer: impl Fn(Request<Incoming>, Arc<Connection>) -> F,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(|request| {
        connection.answers.fetch_add(1, Ordering::Relaxed);
        let answered = answer(request, Arc::clone(connection));
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MOST_HEAD)
        .half_close(false);
    let served = http.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A client may go at any time.
        _ = served => {}
        () = connection.end.notified() => {}
        () = patience(connection) => Counters::count(&places.counters.slow),
    }
}

/// Returns when no request has been answered for [`ANSWER`], unless the answer is a stream.
async fn patience(connection: &Connection) {
    let mut before = 0;
    loop {
        tokio::time::sleep(ANSWER).await;
        let answers = connection.answers.load(Ordering::Relaxed);
        if answers == before && !connection.streams.load(Ordering::Relaxed) {
            return;
        }
        before = answers;
    }
}

/// Says that there is no room.
async fn refuse(mut stream: TcpStream) {
    let text = format!("{MOST_CONNECTIONS} connections are open, which is the limit.\n");
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n\
         Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let talk = async {
        stream.write_all(head.as_bytes()).await?;
        stream.shutdown().await?;
        // The kernel would take back what was written if octets of the client were left unread.
        let mut room = [0; 4096];
        while stream.read(&mut room).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(LAST_WORDS, talk).await;
}

/// An answer of text.
pub(crate) fn plain(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    with_type(status, "text/plain; charset=utf-8", text.into())
}

/// An answer of a type.
pub(crate) fn with_type(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<hyper::body::Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
