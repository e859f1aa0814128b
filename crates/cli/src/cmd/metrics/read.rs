//! The metrics of a running lab, from its control socket.

use super::book::{self, Book, Metric};
use aerostat_live::control::{Answer, Client, Request};
use aerostat_live::runtime_dir;
use aerostat_node::inspect::StateKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::time::{Duration, Instant};

/// How long a lab may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Tables of counters have these columns.
const COUNTERS: [&str; 2] = ["counter", "value"];

/// Reads a lab. One that does not answer is down.
pub(super) fn lab(book: &mut Book, lab: &str, counters: bool) {
    let begin = Instant::now();
    let mut reading = Reading {
        book,
        lab,
        ends: BTreeMap::new(),
    };
    // The place of this one is taken before a large lab takes all of them.
    reading.set(book::UP, &[], 0.0);
    let up = reading.read(counters).is_ok();
    reading.set(book::UP, &[], f64::from(up));
    let took = begin.elapsed().as_secs_f64();
    reading.set(book::READING, &[], took);
}

struct Reading<'a> {
    book: &'a mut Book,
    lab: &'a str,
    /// Ends of links and flows by `link/NAME` and `flow/NAME`.
    ends: BTreeMap<String, [String; 2]>,
}

impl Reading<'_> {
    /// Sets a metric; the first label is the lab.
    fn set(&mut self, metric: Metric, labels: &[&str], value: f64) {
        let labels = [&[self.lab][..], labels].concat();
        self.book.set(metric, &labels, value);
    }

    /// Counts one more.
    fn count(&mut self, metric: Metric, labels: &[&str]) {
        let labels = [&[self.lab][..], labels].concat();
        self.book.add(metric, &labels, 1.0);
    }

    fn read(&mut self, counters: bool) -> io::Result<()> {
        let socket = runtime_dir::socket_of(self.lab);
        let mut client = Client::connect_within(&socket, PATIENCE)?;
        self.status(&asked(&mut client, &Request::Status)?);
        let ports = Request::Inspect {
            node: None,
            what: StateKind::Port,
        };
        for table in tables(&asked(&mut client, &ports)?) {
            self.ports(table);
        }
        if counters {
            for what in StateKind::named() {
                let wish = Request::Inspect { node: None, what };
                // Not every lab has every kind of state.
                let Ok(answer) = asked(&mut client, &wish) else {
                    continue;
                };
                for table in tables(&answer) {
                    self.counters(what, table);
                }
            }
        }
        let wish = Request::Stream {
            follow: false,
            stats_ns: Some(1_000_000_000),
            gather: None,
        };
        asked(&mut client, &wish)?;
        let stream = client.into_stream();
        stream.set_read_timeout(Some(PATIENCE))?;
        for line in BufReader::new(stream).lines() {
            if let Ok(line) = serde_json::from_str(&line?) {
                self.line(&line);
            }
        }
        Ok(())
    }

    fn status(&mut self, status: &Value) {
        let number = |key: &str| status[key].as_f64().unwrap_or_default();
        let ready = status["ready"] == true;
        self.set(book::READY, &[], f64::from(ready));
        for (metric, key) in [
            (book::UPTIME, "up_s"),
            (book::FRAMES_BAD, "frames_bad"),
            (book::FRAMES_REFUSED, "frames_refused"),
            (book::CAPTURE_DROPPED, "capture_dropped"),
            (book::EVENTS_MISSED, "events_missed"),
        ] {
            self.set(metric, &[], number(key));
        }
    }

    /// A table of ports of a switch.
    fn ports(&mut self, table: &Value) {
        let node = word(&table["node"]);
        for row in rows(table) {
            let (Some(port), Some(name)) = (row.get("port"), row.get("name")) else {
                continue;
            };
            let port = port.to_string();
            let labels = [node, &port, word(name)];
            for (metric, column) in [
                (book::PORT_RECEIVED, "cells_in"),
                (book::PORT_SENT, "cells_out"),
                (book::PORT_DROPPED, "cells_dropped"),
                (book::PORT_QUEUED, "queued_cells"),
                (book::PORT_CALLS, "calls"),
            ] {
                if let Some(value) = row.get(column).and_then(|value| value.as_f64()) {
                    self.set(metric, &labels, value);
                }
            }
        }
    }

    /// A table of counters; others are left out.
    fn counters(&mut self, kind: StateKind, table: &Value) {
        if table["columns"] != Value::from(&COUNTERS[..]) {
            return;
        }
        let (node, title) = (word(&table["node"]), word(&table["title"]));
        for row in rows(table) {
            let [Some(name), Some(value)] = COUNTERS.map(|column| row.get(column)) else {
                continue;
            };
            let labels = [self.lab, node, kind.name(), title, word(name)];
            // A node may have several tables of the same name.
            let value = value.as_f64().unwrap_or_default();
            self.book.add(book::COUNTER, &labels, value);
        }
    }

    /// A line of the stream.
    fn line(&mut self, line: &Value) {
        let of = |key: &str| word(&line[key]);
        match of("is") {
            "head" => {
                let seed = line["seed"].to_string();
                self.set(book::INFO, &[of("version"), &seed], 1.0);
            }
            "node" => self.set(book::NODE_UP, &[of("name"), of("kind")], 1.0),
            "link" => self.link(line),
            "flow" => {
                let ends = [of("from"), of("to")].map(str::to_owned);
                self.ends.insert(format!("flow/{}", of("name")), ends);
                self.flow(of("name"), &Value::Null);
            }
            "call" => self.count(book::CALLS, &[of("what"), of("state")]),
            "member" => self.count(book::MEMBERS, &[of("network"), of("by"), of("state")]),
            "shortcut" => self.count(book::SHORTCUTS, &[of("by"), of("state")]),
            "fault" => {
                self.count(book::FAULTS, &[of("what")]);
                match of("what") {
                    "link" => self.set(book::LINK_UP, &[of("name")], 0.0),
                    "node" => self.node_down(of("name")),
                    _ => {}
                }
            }
            "sample" => self.sample(line),
            _ => {}
        }
    }

    fn node_down(&mut self, name: &str) {
        self.book.put_down(self.lab, name);
    }

    fn link(&mut self, line: &Value) {
        let name = word(&line["name"]);
        let [a, b] = [0, 1].map(|end| word(&line["ends"][end]).to_owned());
        let rates = [0, 1].map(|end| line["rates"][end].as_f64().or(line["rate"].as_f64()));
        self.set(book::LINK_UP, &[name], 1.0);
        self.set(book::LINK_LOST, &[name], 0.0);
        for ([from, to], rate) in [[&a, &b], [&b, &a]].into_iter().zip(rates) {
            self.set(book::LINK_RATE, &[name, from, to], rate.unwrap_or_default());
            self.set(book::LINK_SENT, &[name, from, to], 0.0);
        }
        self.ends.insert(format!("link/{name}"), [a, b]);
    }

    /// Counters of a flow; nothing is 0.
    fn flow(&mut self, name: &str, values: &Value) {
        let Some([from, to]) = self.ends.get(&format!("flow/{name}")).cloned() else {
            return;
        };
        let value = |n: usize| values[n].as_f64().unwrap_or_default();
        for (metric, value) in [
            (book::FLOW_SENT, value(0)),
            (book::FLOW_RECEIVED, value(1)),
            (book::FLOW_LOST, value(2)),
            (book::FLOW_SENT_BYTES, value(3)),
            (book::FLOW_RECEIVED_BYTES, value(4)),
            (book::FLOW_DELAY, value(5) / 1e9),
        ] {
            self.set(metric, &[name, &from, &to], value);
        }
    }

    fn sample(&mut self, line: &Value) {
        for (name, values) in line["links"].as_object().into_iter().flatten() {
            let Some([a, b]) = self.ends.get(&format!("link/{name}")).cloned() else {
                continue;
            };
            let value = |n: usize| values[n].as_f64().unwrap_or_default();
            self.set(book::LINK_SENT, &[name, &a, &b], value(0));
            self.set(book::LINK_SENT, &[name, &b, &a], value(1));
            self.set(book::LINK_LOST, &[name], value(2));
        }
        for (name, values) in line["flows"].as_object().into_iter().flatten() {
            self.flow(name, values);
        }
    }
}

fn asked(client: &mut Client, wish: &Request) -> io::Result<Value> {
    match client.ask(wish)? {
        (Answer::Ok(value), _) => Ok(value),
        (Answer::Error { message, .. }, _) => Err(io::Error::other(message)),
    }
}

fn tables(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.as_array().into_iter().flatten()
}

/// The rows of a table by column.
fn rows(table: &Value) -> impl Iterator<Item = BTreeMap<&str, &Value>> {
    let columns: Vec<&str> = tables(&table["columns"]).map(word).collect();
    tables(&table["rows"]).map(move |row| columns.iter().copied().zip(tables(row)).collect())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
