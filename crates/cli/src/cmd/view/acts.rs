//! Actions of a user in the page: faults, links, captures.

use super::{Desk, Gone, Line, MOST_CAPTURES, connected};
use crate::web::body::Body;
use crate::web::{Connection, plain, with_type};
use aerostat_live::control::{Answer, LinkRequest, Request as Wish};
use aerostat_live::streams::is_wait;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::future::poll_fn;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Longest request, octets.
const MOST: usize = 16 << 10;
/// Octets of a capture that are read at a time.
const CHUNK: usize = 64 << 10;
/// How long a capture waits for packets before it looks after its reader.
const LOOK: Duration = Duration::from_millis(500);

/// Does what the page asks for: a request of the control socket as JSON. The answer is that of the lab.
pub(super) async fn act(desk: &Desk, request: Request<Incoming>) -> Response<Body> {
    // A form of another page cannot have this type.
    let kind = request.headers().get(CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/json") {
        let text = "A request is application/json.\n";
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    }
    let Some(body) = whole(request.into_body()).await else {
        let text = format!("A request has at most {MOST} octets.\n");
        return plain(StatusCode::PAYLOAD_TOO_LARGE, text);
    };
    let wish: Wish = match serde_json::from_slice(&body) {
        Ok(wish) => wish,
        Err(error) => {
            return said(
                StatusCode::BAD_REQUEST,
                &Answer::error(error.to_string(), ""),
            );
        }
    };
    if !is_for_pages(&wish) {
        let answer = Answer::error("the page does not do this", "use the command line");
        return said(StatusCode::FORBIDDEN, &answer);
    }
    match desk.ask(wish).await {
        Ok(answer @ Answer::Ok(_)) => said(StatusCode::OK, &answer),
        Ok(answer) => said(StatusCode::CONFLICT, &answer),
        Err(why) => said(StatusCode::SERVICE_UNAVAILABLE, &Answer::error(why, "")),
    }
}

/// True for what the page has buttons for.
const fn is_for_pages(wish: &Wish) -> bool {
    use LinkRequest::{Reset, Set, Show};
    matches!(
        wish,
        Wish::Fault { .. } | Wish::Link(Show { .. } | Set { .. } | Reset { .. })
    )
}

fn said(status: StatusCode, answer: &Answer) -> Response<Body> {
    let text = serde_json::to_string(answer).unwrap_or_default();
    with_type(status, "application/json", text)
}

/// The body of a request; `None` if it is too long, or cut off.
async fn whole(mut body: Incoming) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let data = frame.ok()?.into_data().unwrap_or_default();
        if all.len() + data.len() > MOST {
            return None;
        }
        all.extend_from_slice(&data);
    }
    Some(all)
}

/// A capture of the link `?link=NAME`, or of all links, until the reader ends it.
pub(super) async fn capture(
    desk: &Desk,
    request: &Request<Incoming>,
    connection: Arc<Connection>,
) -> Response<Body> {
    let links = match links_of(request.uri().query().unwrap_or_default()) {
        Ok(links) => links,
        Err(text) => return plain(StatusCode::BAD_REQUEST, text),
    };
    let Ok(permit) = Arc::clone(&desk.captures).try_acquire_owned() else {
        let text = format!("{MOST_CAPTURES} captures run, which is the limit; end one.\n");
        return plain(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let name = file_name(&desk.lab, &links);
    let lab = desk.lab.clone();
    let opened = tokio::task::spawn_blocking(move || open(&lab, links));
    let stream = match opened.await {
        Ok(Ok(stream)) => stream,
        Ok(Err((status, text))) => return plain(status, text + "\n"),
        Err(error) => return plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    };
    let (line, taken) = desk.line(connection);
    let thread = std::thread::Builder::new().name("capture".to_owned());
    // The reader is gone, or the lab.
    let started = thread.spawn(move || drop(copy(stream, &line)));
    if let Err(error) = started {
        return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"));
    }
    let mut response = with_type(StatusCode::OK, "application/x-pcapng", "");
    *response.body_mut() = Body::pieces(taken, permit);
    let disposition = format!("attachment; filename=\"{name}\"");
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        response
            .headers_mut()
            .insert(CONTENT_DISPOSITION, disposition);
    }
    response
}

/// The links of a query, `link=NAME` for each.
fn links_of(query: &str) -> Result<Vec<String>, String> {
    let words = query.split('&').filter(|word| !word.is_empty());
    words
        .map(|word| match word.split_once('=') {
            Some(("link", name)) => decoded(name).ok_or_else(|| format!("'{name}' is no name.\n")),
            _ => Err(format!("'{word}' is no word of a capture: link=NAME.\n")),
        })
        .collect()
}

/// A text with the escapes of an address; `None` if an escape is wrong.
fn decoded(text: &str) -> Option<String> {
    let mut octets = Vec::new();
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(octets).ok()
}

/// The name of the file, without signs that mean something in a header or a path.
fn file_name(lab: &str, links: &[String]) -> String {
    let mut name = lab.to_owned();
    if let [link] = links {
        name = format!("{name}-{link}");
    }
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_".contains(c) {
            c
        } else {
            '_'
        }
    };
    format!("{}.pcapng", name.chars().map(plain).collect::<String>())
}

fn open(lab: &str, links: Vec<String>) -> Result<UnixStream, (StatusCode, String)> {
    let absent = |why| (StatusCode::SERVICE_UNAVAILABLE, why);
    let mut client = connected(lab).map_err(absent)?;
    let wish = Wish::Capture {
        links,
        both_ends: false,
        cells: false,
    };
    match client
        .ask(&wish)
        .map_err(|error| absent(error.to_string()))?
    {
        (Answer::Ok(_), _) => {}
        (Answer::Error { message, .. }, _) => return Err((StatusCode::CONFLICT, message)),
    }
    let stream = client.into_stream();
    let ready = stream.set_read_timeout(Some(LOOK));
    ready.map_err(|error| absent(error.to_string()))?;
    Ok(stream)
}

/// Passes the capture on. A lab does not wait for a slow reader: what is missing stands in the capture itself.
fn copy(mut stream: UnixStream, line: &Line) -> Result<(), Gone> {
    let mut room = vec![0; CHUNK];
    loop {
        match stream.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(read) => line.pass(room[..read].to_vec().into())?,
            Err(error) if is_wait(&error) => {
                if line.is_gone() {
                    return Err(Gone);
                }
            }
            Err(_) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_a_capture_names_links_and_nothing_else() {
        assert_eq!(links_of(""), Ok(vec![]));
        assert_eq!(
            links_of("link=a-b&link=c%20d"),
            Ok(vec!["a-b".to_owned(), "c d".to_owned()])
        );
        for wrong in ["a", "lab=x", "link=%", "link=%zz", "link=%ff"] {
            assert!(links_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_of_a_file_has_no_signs_of_headers_or_paths() {
        let links = ["a/b\"\r\n".to_owned()];
        assert_eq!(file_name("my lab", &links), "my_lab-a_b___.pcapng");
        assert_eq!(file_name("campus", &[]), "campus.pcapng");
    }

    #[test]
    fn the_page_ends_no_lab_and_enters_no_host() {
        for (wish, allowed) in [
            (
                r#"{"ask":"fault","action":"link_down","target":"a-b"}"#,
                true,
            ),
            (
                r#"{"ask":"link","act":"set","link":"a-b","values":["loss=1%"]}"#,
                true,
            ),
            (r#"{"ask":"link","act":"reset","link":"a-b"}"#, true),
            (r#"{"ask":"stop"}"#, false),
            (r#"{"ask":"exec","node":"a"}"#, false),
            (r#"{"ask":"qos_del","node":"a","filter":"x"}"#, false),
        ] {
            let wish: Wish = serde_json::from_str(wish).unwrap();
            assert_eq!(is_for_pages(&wish), allowed, "{wish:?}");
        }
    }
}
