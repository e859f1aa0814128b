//! `aerostat metrics`: counters and states of running labs for Prometheus.
//!
//! ```text
//! lab -- control socket --> read.rs   lines of the stream, tables of inspect
//!                           book.rs   metrics by name, and their text
//! ```

mod book;
mod read;

use crate::args::{MetricsArgs, MetricsFormat, RunningLab};
use crate::client;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::web::body::Body;
use crate::web::door::Door;
use crate::web::{self, Connection, Counters, Places, plain, with_type};
use aerostat_live::runtime_dir;
use book::Book;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Limit of readings at a time.
const MOST_READINGS: usize = 4;

impl MetricsFormat {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::Openmetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The format that a client likes best; Prometheus' text format if it does not mind.
    fn wanted(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(ACCEPT).iter();
        let accepted = accepted.filter_map(|value| value.to_str().ok());
        let (mut open, mut text) = (0, 0);
        for one in accepted.flat_map(|value| value.split(',')) {
            let mut words = one.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default();
            let weight = weight(words);
            match kind {
                "application/openmetrics-text" => open = open.max(weight),
                "text/plain" | "text/*" | "*/*" => text = text.max(weight),
                _ => {}
            }
        }
        if open > text {
            Self::Openmetrics
        } else {
            Self::Prometheus
        }
    }
}

/// The weight among the words behind a media type, thousandths.
fn weight<'a>(mut words: impl Iterator<Item = &'a str>) -> u32 {
    let weight = words.find_map(|word| word.strip_prefix("q="));
    let weight = weight.and_then(|weight| weight.parse::<f64>().ok());
    (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32
}

/// The labs to read, and how.
#[derive(Clone, Debug)]
struct Wanted {
    /// Name of the lab; `None` for all that run.
    lab: Option<String>,
    counters: bool,
}

impl Wanted {
    /// The metrics of now as text.
    fn text(&self, format: MetricsFormat) -> String {
        let mut book = Book::default();
        let labs: Vec<String> = match &self.lab {
            Some(lab) => vec![lab.clone()],
            None => {
                let labs = runtime_dir::running().into_iter();
                labs.map(|lab| lab.name).collect()
            }
        };
        for lab in labs {
            read::lab(&mut book, &lab, self.counters);
        }
        book.text(format)
    }
}

/// Writes the metrics, or serves them until a signal comes.
pub(crate) fn run(args: &MetricsArgs) -> Outcome {
    let lab = args.name.clone().or_else(|| args.lab.clone());
    let wanted = Wanted {
        lab: lab.clone(),
        counters: args.counters,
    };
    let Some(address) = args.listen else {
        if lab.is_some() || runtime_dir::running().is_empty() {
            client::choose(&RunningLab { lab })?;
        }
        io::stdout().write_all(wanted.text(args.output).as_bytes())?;
        return Ok(Exit::Ok);
    };
    serve(address, wanted)
}

fn serve(address: SocketAddr, wanted: Wanted) -> Outcome {
    let interrupt = Interrupt::catch()?;
    web::runtime()?.block_on(async {
        let listener = web::listen(address).map_err(|error| {
            Failure::failed(format!("cannot listen at {address}: {error}"))
                .hint("port 0 is any that is free")
        })?;
        let address = listener.local_addr()?;
        writeln!(io::stdout(), "http://{address}/metrics")?;
        io::stdout().flush()?;
        if !address.ip().is_loopback() {
            exit::say(format_args!(
                "note: every machine that reaches {address} can read the metrics"
            ));
        }
        let desk = Arc::new(Desk {
            wanted,
            door: Door::without_token(address),
            readings: Arc::new(Semaphore::new(MOST_READINGS)),
            places: Arc::default(),
        });
        let places = Arc::clone(&desk.places);
        let answer = move |request, _: Arc<Connection>| {
            let desk = Arc::clone(&desk);
            async move { answer(&desk, request).await }
        };
        tokio::select! {
            () = web::serve(listener, places, answer) => {}
            () = web::ended(&interrupt) => {}
        }
        Ok(Exit::Ok)
    })
}

struct Desk {
    wanted: Wanted,
    door: Door,
    readings: Arc<Semaphore>,
    places: Arc<Places>,
}

async fn answer(desk: &Desk, request: Request<Incoming>) -> Response<Body> {
    let path = match desk.door.enter(&request) {
        Ok(path) => path,
        Err((status, text)) => {
            Counters::count(&desk.places.counters.strangers);
            return plain(status, text);
        }
    };
    if path != "metrics" {
        return plain(StatusCode::NOT_FOUND, "The metrics are at /metrics.\n");
    }
    if request.method() != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "This takes GET.\n");
    }
    let Ok(_permit) = Arc::clone(&desk.readings).try_acquire_owned() else {
        let text = format!("{MOST_READINGS} readings are under way, which is the limit.\n");
        return plain(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let format = MetricsFormat::wanted(request.headers());
    let wanted = desk.wanted.clone();
    match tokio::task::spawn_blocking(move || wanted.text(format)).await {
        Ok(text) => with_type(StatusCode::OK, format.media_type(), text),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn the_format_is_the_one_that_the_client_likes_best() {
        let open = MetricsFormat::Openmetrics;
        let text = MetricsFormat::Prometheus;
        for (accept, format) in [
            ("", text),
            ("*/*", text),
            ("image/png", text),
            ("text/plain", text),
            ("application/openmetrics-text", open),
            // Prometheus 2 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                open,
            ),
            (
                "application/openmetrics-text;version=1.0.0;q=0.2, text/plain;version=0.0.4;q=0.3",
                text,
            ),
            ("text/plain;q=0.9, application/openmetrics-text ; q=0", text),
            ("application/openmetrics-text;q=x", open),
        ] {
            let mut headers = HeaderMap::new();
            if !accept.is_empty() {
                headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
            }
            assert_eq!(MetricsFormat::wanted(&headers), format, "{accept}");
        }
    }
}
