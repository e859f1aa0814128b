//! The door of a server on loopback: which requests are let in.
//!
//! Every program of this machine, and every page in a browser on it, can send requests to a port of loopback. So a
//! request needs the token, which stands in the address that only the user has seen. The other checks are for browsers,
//! which carry requests of foreign pages:
//!
//! | request | status |
//! |---|---|
//! | no `Host`, or more than one | 400 |
//! | a `Host` that is not the address of the server, such as another name that leads to 127.0.0.1 | 421 |
//! | no token, or a wrong one | 403 |
//! | an `Origin` that is not the server's, or a browser's word that another site asks | 403 |

use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::{Method, Request, StatusCode};
use std::io::{self, Read as _};
use std::net::SocketAddr;

/// Octets of chance in a token.
const TOKEN: usize = 16;

/// The door of a server.
#[derive(Debug)]
pub(crate) struct Door {
    /// Values of `Host` that mean this server; empty for any.
    hosts: Vec<String>,
    token: Option<String>,
}

/// A request that is not let in: its status, and a sentence.
pub(crate) type Refusal = (StatusCode, &'static str);

impl Door {
    /// The door of a server at an address of loopback, with a new token.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub(crate) fn new(address: SocketAddr) -> io::Result<Self> {
        let mut chance = [0; TOKEN];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut chance)?;
        let token = chance.iter().map(|octet| format!("{octet:02x}")).collect();
        Ok(Self {
            token: Some(token),
            ..Self::without_token(address)
        })
    }

    /// The door of a server whose answers everybody on this machine may read. Other machines know a server beyond
    /// loopback by names that it does not know itself.
    pub(crate) fn without_token(address: SocketAddr) -> Self {
        let hosts = match address.ip().is_loopback() {
            true => vec![address.to_string(), format!("localhost:{}", address.port())],
            false => Vec::new(),
        };
        Self { hosts, token: None }
    }

    /// The address of the page.
    pub(crate) fn address(&self) -> String {
        let host = self.hosts.first().map_or("", String::as_str);
        format!(
            "http://{host}/{}/",
            self.token.as_deref().unwrap_or_default()
        )
    }

    /// The part of the path behind the token.
    ///
    /// # Errors
    /// If the request is not let in.
    pub(crate) fn enter<'a, B>(&self, request: &'a Request<B>) -> Result<&'a str, Refusal> {
        let host = self.host(request)?;
        let path = request.uri().path();
        let path = path.strip_prefix('/').unwrap_or(path);
        let rest = match &self.token {
            None => path,
            Some(own) => {
                let (token, rest) = path.split_once('/').unwrap_or_default();
                if !same(token.as_bytes(), own.as_bytes()) {
                    let text =
                        "This address needs the token that 'aerostat view' has printed with it.\n";
                    return Err((StatusCode::FORBIDDEN, text));
                }
                rest
            }
        };
        let headers = request.headers();
        let own = |origin: &str| origin.strip_prefix("http://") == Some(host);
        let foreign = match all(headers, ORIGIN.as_str()).as_slice() {
            [] => false,
            [origin] => !own(origin),
            _ => true,
        };
        if foreign {
            return Err((StatusCode::FORBIDDEN, "Another page asks (Origin).\n"));
        }
        // A link from another site may lead to the page itself, and to nothing else.
        let leads = request.method() == Method::GET
            && rest.is_empty()
            && all(headers, "sec-fetch-mode") == ["navigate"]
            && all(headers, "sec-fetch-dest") == ["document"];
        match all(headers, "sec-fetch-site").as_slice() {
            [] | ["same-origin" | "none"] => Ok(rest),
            [_] if leads => Ok(rest),
            _ => Err((
                StatusCode::FORBIDDEN,
                "Another site asks (Sec-Fetch-Site).\n",
            )),
        }
    }

    /// The address by which the client has called the server.
    fn host<'a, B>(&self, request: &'a Request<B>) -> Result<&'a str, Refusal> {
        let [host] = all(request.headers(), HOST.as_str())[..] else {
            return Err((StatusCode::BAD_REQUEST, "A request has one Host.\n"));
        };
        let known = |name: &str| {
            let mut hosts = self.hosts.iter();
            self.hosts.is_empty() || hosts.any(|host| host.eq_ignore_ascii_case(name))
        };
        let authority = request.uri().authority();
        if !known(host) || authority.is_some_and(|authority| !known(authority.as_str())) {
            let text = "This server has another name (Host).\n";
            return Err((StatusCode::MISDIRECTED_REQUEST, text));
        }
        Ok(host)
    }
}

/// The values of a header; one that is no text is empty.
fn all<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let values = headers.get_all(name).iter();
    values
        .map(|value| value.to_str().unwrap_or_default())
        .collect()
}

/// Compares in a time that does not depend on where the texts differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        Door {
            hosts: vec!["127.0.0.1:4711".to_owned(), "localhost:4711".to_owned()],
            token: Some("secret".to_owned()),
        }
    }

    /// The status of a request with these headers; 200 if it is let in.
    fn status(method: Method, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        door()
            .enter(&request)
            .map_or_else(|(status, _)| status.as_u16(), |_| 200)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:4711");

    #[test]
    fn who_has_the_token_is_let_in_by_the_names_of_the_server() {
        for host in ["127.0.0.1:4711", "localhost:4711", "LOCALHOST:4711"] {
            assert_eq!(status(Method::GET, "/secret/", &[("host", host)]), 200);
        }
        let origin = ("origin", "http://127.0.0.1:4711");
        let site = ("sec-fetch-site", "same-origin");
        assert_eq!(
            status(Method::POST, "/secret/do", &[HOST, origin, site]),
            200
        );
        let request = Request::builder()
            .uri("/secret/events?x=1")
            .header("host", HOST.1);
        assert_eq!(door().enter(&request.body(()).unwrap()), Ok("events"));
    }

    #[test]
    fn everybody_else_gets_the_status_of_the_table() {
        let get = |uri: &str, headers: &[(&str, &str)]| status(Method::GET, uri, headers);
        assert_eq!(get("/secret/", &[]), 400);
        assert_eq!(get("/secret/", &[HOST, HOST]), 400);
        for host in [
            "evil.example:4711",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "",
        ] {
            assert_eq!(get("/secret/", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(get("http://evil.example/secret/", &[HOST]), 421);
        for path in [
            "/",
            "/secret",
            "/wrong/",
            "/secre/",
            "/secrets/",
            "//",
            "/?secret/",
        ] {
            assert_eq!(get(path, &[HOST]), 403, "{path}");
        }
        for origin in [
            "http://evil.example",
            "https://127.0.0.1:4711",
            "null",
            "http://localhost:4711",
            "http://127.0.0.1:80",
        ] {
            let headers = [HOST, ("origin", origin)];
            assert_eq!(
                status(Method::POST, "/secret/do", &headers),
                403,
                "{origin}"
            );
        }
        for site in ["cross-site", "same-site"] {
            let headers = [HOST, ("sec-fetch-site", site)];
            assert_eq!(get("/secret/events", &headers), 403);
            assert_eq!(status(Method::POST, "/secret/do", &headers), 403);
            // A page in a frame is not what the user has opened.
            let frame = [
                HOST,
                headers[1],
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "iframe"),
            ];
            assert_eq!(get("/secret/", &frame), 403);
        }
        let link = [
            HOST,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(get("/secret/", &link), 200);
        assert_eq!(get("/secret/events", &link), 403);
        assert_eq!(status(Method::POST, "/secret/", &link), 403);
    }
}
