//! `aerostat view`: the page of a running lab, by a server on loopback.
//!
//! ```text
//! lab  -- control socket -->  feed.rs   the stream of the lab as server-sent events
//!      <-- requests -------   acts.rs   break, mend, change, capture
//!                             page      aerostat_view::page, the page of `run --view` with another source
//! ```
//!
//! The lab has no listening socket and no more rights than without a page; this process has those of its user.

mod acts;
mod feed;

use crate::args::{RunningLab, ViewArgs};
use crate::client;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::web::body::{Body, PIECES};
use crate::web::door::Door;
use crate::web::{self, Connection, Counters, Places, plain, with_type};
use aerostat_lab::picture::Picture;
use aerostat_live::control::{Answer, Client, Request as Wish};
use aerostat_live::runtime_dir;
use aerostat_view::page as pages;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Limit of pages that follow the lab.
const MOST_PAGES: usize = 8;
/// Limit of captures at a time.
const MOST_CAPTURES: usize = 4;
/// How long a lab may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Headers of every answer. The page is for nobody's frame, cache or log.
const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// The server of a lab's page.
struct Desk {
    lab: String,
    door: Door,
    places: Arc<Places>,
    pages: Arc<Semaphore>,
    captures: Arc<Semaphore>,
}

/// Serves the page until a signal comes.
pub(crate) fn run(args: &ViewArgs) -> Outcome {
    if let Some(directory) = &args.site {
        return super::site::run(directory, args);
    }
    if let [_, second, ..] = &args.names[..] {
        let text = format!("'{second}': a page shows one running lab");
        return Err(Failure::usage(text).hint("--site DIR takes several lab files"));
    }
    if !args.listen.ip().is_loopback() {
        let text = format!(
            "--listen {}: the page is for this machine alone",
            args.listen
        );
        return Err(Failure::usage(text).hint(
            "127.0.0.1 or [::1]; 'ssh -L' brings the page to another machine ('aerostat view --help')",
        ));
    }
    let which = RunningLab {
        lab: args.names.first().cloned().or_else(|| args.lab.clone()),
    };
    let lab = client::choose(&which)?.name;
    let interrupt = Interrupt::catch()?;
    let runtime = web::runtime()?;
    runtime.block_on(async {
        let listener = web::listen(args.listen).map_err(|error| {
            Failure::failed(format!("cannot listen at {}: {error}", args.listen))
                .hint("port 0 is any that is free")
        })?;
        let desk = Arc::new(Desk {
            lab,
            door: Door::new(listener.local_addr()?)?,
            places: Arc::default(),
            pages: Arc::new(Semaphore::new(MOST_PAGES)),
            captures: Arc::new(Semaphore::new(MOST_CAPTURES)),
        });
        writeln!(io::stdout(), "{}", desk.door.address())?;
        io::stdout().flush()?;
        exit::say(format_args!("the page of {} until Ctrl-C", desk.lab));
        let places = Arc::clone(&desk.places);
        let its = Arc::clone(&desk);
        let answer = move |request, connection| {
            let desk = Arc::clone(&its);
            async move { with_headers(answer(&desk, request, connection).await) }
        };
        tokio::select! {
            () = web::serve(listener, places, answer) => {}
            () = web::ended(&interrupt) => {}
        }
        tell_counters(&desk.places.counters);
        Ok(Exit::Ok)
    })
}

fn tell_counters(counters: &Counters) {
    let all = [
        (
            &counters.strangers,
            "requests without the token, or of other pages",
        ),
        (&counters.refused, "connections without a place"),
        (
            &counters.gave_way,
            "connections that gave way to newer ones",
        ),
        (&counters.slow, "connections that were too slow"),
    ];
    let all = all.map(|(count, what)| (count.load(Ordering::Relaxed), what));
    for (count, what) in all.into_iter().filter(|(count, _)| *count > 0) {
        exit::say(format_args!("note: {count} {what}"));
    }
}

fn with_headers(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    response
}

/// Answers a request.
async fn answer(
    desk: &Arc<Desk>,
    request: Request<Incoming>,
    connection: Arc<Connection>,
) -> Response<Body> {
    let path = match desk.door.enter(&request) {
        Ok(path) => path.to_owned(),
        Err((status, text)) => {
            Counters::count(&desk.places.counters.strangers);
            return plain(status, text);
        }
    };
    connection.know();
    let known = [
        ("", Method::GET),
        ("events", Method::GET),
        ("capture", Method::GET),
        ("do", Method::POST),
    ];
    let Some((_, method)) = known.iter().find(|(name, _)| *name == path) else {
        return plain(StatusCode::NOT_FOUND, "There is no such page.\n");
    };
    if request.method() != method {
        return plain(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("This takes {method}.\n"),
        );
    }
    match &*path {
        "" => page(desk).await,
        "events" => events(desk, connection),
        "capture" => acts::capture(desk, &request, connection).await,
        _ => acts::act(desk, request).await,
    }
}

/// The page.
async fn page(desk: &Arc<Desk>) -> Response<Body> {
    let html = |status, text: String| with_type(status, "text/html; charset=utf-8", text);
    match desk.ask(Wish::Graph).await {
        Ok(Answer::Ok(picture)) => {
            let picture: Picture = match serde_json::from_value(picture) {
                Ok(picture) => picture,
                Err(error) => return plain(StatusCode::BAD_GATEWAY, format!("{error}\n")),
            };
            let lab = desk.lab.clone();
            let drawn = tokio::task::spawn_blocking(move || pages::live(&lab, &picture.drawn()));
            match drawn.await {
                Ok(page) => html(StatusCode::OK, page),
                Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            }
        }
        Ok(Answer::Error { message, .. }) => plain(StatusCode::BAD_GATEWAY, message),
        // A page that is loaded while the lab starts again looks for it by itself.
        Err(why) => html(
            StatusCode::SERVICE_UNAVAILABLE,
            pages::absent(&desk.lab, &why),
        ),
    }
}

/// The stream of the lab.
fn events(desk: &Desk, connection: Arc<Connection>) -> Response<Body> {
    let Ok(permit) = Arc::clone(&desk.pages).try_acquire_owned() else {
        let text = format!("{MOST_PAGES} pages follow this lab, which is the limit; close one.\n");
        return plain(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let (line, taken) = desk.line(connection);
    if let Err(error) = feed::start(desk.lab.clone(), line) {
        return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"));
    }
    let mut response = with_type(StatusCode::OK, "text/event-stream", "");
    *response.body_mut() = Body::pieces(taken, permit);
    response
}

impl Desk {
    /// A line to the reader of a stream, and what its connection takes from it.
    fn line(&self, connection: Arc<Connection>) -> (Line, mpsc::Receiver<Bytes>) {
        let (pieces, taken) = mpsc::channel(PIECES);
        connection.stream();
        let places = Arc::clone(&self.places);
        let line = Line {
            pieces,
            connection,
            places,
        };
        (line, taken)
    }

    /// Asks the lab; the sentence says why there is no answer.
    async fn ask(&self, wish: Wish) -> Result<Answer, String> {
        let lab = self.lab.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let mut client = connected(&lab)?;
            let (answer, _) = client.ask(&wish).map_err(|error| error.to_string())?;
            Ok(answer)
        });
        asked.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// A connection to the lab.
fn connected(lab: &str) -> Result<Client, String> {
    let socket = runtime_dir::socket_of(lab);
    Client::connect_within(&socket, PATIENCE).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => format!("the lab {lab} does not answer: {error}"),
        _ => format!("the lab {lab} is not running"),
    })
}

/// The way of a stream to its reader.
struct Line {
    pieces: mpsc::Sender<Bytes>,
    connection: Arc<Connection>,
    places: Arc<Places>,
}

/// Mark of a reader that is gone, or does not read.
struct Gone;

impl Line {
    /// Passes a piece on. A reader that takes nothing for [`web::STALL`] loses its connection.
    fn pass(&self, piece: Bytes) -> Result<(), Gone> {
        use mpsc::error::TrySendError;
        const PAUSE: Duration = Duration::from_millis(20);
        let mut piece = piece;
        let mut waited = Duration::ZERO;
        loop {
            match self.pieces.try_send(piece) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(Gone),
                Err(TrySendError::Full(_)) if waited >= web::STALL => {
                    Counters::count(&self.places.counters.slow);
                    self.connection.end();
                    return Err(Gone);
                }
                Err(TrySendError::Full(back)) => piece = back,
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// True if the reader is gone.
    fn is_gone(&self) -> bool {
        self.pieces.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpStream;
    use std::time::Instant;

    #[test]
    fn a_reader_of_one_octet_a_second_loses_its_connection() {
        let runtime = web::runtime().unwrap();
        let places: Arc<Places> = Arc::default();
        let listener = runtime.block_on(async { web::listen(([127, 0, 0, 1], 0).into()) });
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap();
        let its = Arc::clone(&places);
        let answer = move |_, connection: Arc<Connection>| {
            let (pieces, taken) = mpsc::channel(PIECES);
            let places = Arc::clone(&its);
            connection.stream();
            std::thread::spawn(move || {
                let line = Line {
                    pieces,
                    connection,
                    places,
                };
                while line.pass(vec![b'x'; 64 << 10].into()).is_ok() {}
            });
            async move {
                let permit = Arc::new(Semaphore::new(1)).try_acquire_owned();
                let mut response = plain(StatusCode::OK, "");
                *response.body_mut() = Body::pieces(taken, permit.unwrap());
                response
            }
        };
        let reader = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
            let mut head = [0; 15];
            stream.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200 OK");
            let begin = Instant::now();
            while begin.elapsed() < web::STALL + Duration::from_secs(2) {
                std::thread::sleep(Duration::from_secs(1));
                stream.read_exact(&mut [0]).unwrap();
            }
            // What the kernel holds still comes, and then the end.
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            rest.len()
        });
        let serve = web::serve(listener, Arc::clone(&places), answer);
        let rest = runtime.block_on(async {
            let read = tokio::task::spawn_blocking(move || reader.join().unwrap());
            tokio::select! {
                () = serve => unreachable!("it serves for ever"),
                read = read => read.unwrap(),
            }
        });
        assert!(rest < 16 << 20, "{rest} octets");
        assert_eq!(places.counters.slow.load(Ordering::Relaxed), 1);
    }
}
