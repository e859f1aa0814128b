//! `aerostat inspect`: state of a running lab.

use crate::args::InspectArgs;
use crate::client;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Form, Format, Rows};
use aerostat_lab::event::Names;
use aerostat_lab::picture::Picture;
use aerostat_live::charset;
use aerostat_live::control::{Client, Request};
use aerostat_node::inspect::{self, StateKind};
use serde_json::Value;
use std::io::{IsTerminal as _, Write as _};
use std::net::IpAddr;
use std::time::Duration;

/// Sends the requests and shows the tables of the answers.
pub(crate) fn run(args: &InspectArgs) -> Outcome {
    let wanted = Wanted::new(args)?;
    output::check(&args.tables, args.output.of_tables())?;
    let mut client = client::connect(&args.which)?;
    let Some(format) = args.output.of_tables() else {
        return repeat(args.watch, true, || {
            let mut texts: Vec<ProcText> = Vec::new();
            for request in wanted.proc_requests() {
                texts.extend(understood::<Vec<ProcText>>(client::ask(
                    &mut client,
                    &request,
                )?)?);
            }
            show_texts(&texts)
        });
    };
    let people = format == Format::Table;
    let mut names: Option<Names> = None;
    repeat(args.watch, people, || {
        let mut tables = wanted.tables(&mut client)?;
        if people && !args.wide {
            // Without names the tables have whole addresses.
            let names = names.get_or_insert_with(|| known(&mut client).unwrap_or_default());
            tables.iter_mut().for_each(|rows| shorten(rows, names));
        }
        let form = (Form::new(format, args.wide), &args.tables);
        output::write_chosen(form, &wanted.schema(), tables)
    })
}

/// The names of the end systems of the lab.
fn known(client: &mut Client) -> Result<Names, Failure> {
    let picture: Picture = understood(client::ask(client, &Request::Graph)?)?;
    let machines = picture.machines.into_iter();
    Ok(Names::of(
        machines.filter_map(|machine| Some((machine.name, machine.atm?))),
    ))
}

/// Shows the ATM addresses of end systems of the lab by name, as the story does: 20 octets leave no room for other
/// columns.
fn shorten(rows: &mut Rows, names: &Names) {
    for cell in rows.rows.iter_mut().flatten() {
        if let Value::String(text) = cell {
            *text = names.in_text(text);
        }
    }
}

/// The requested state and nodes.
struct Wanted {
    /// Nodes by name; `None` means all.
    nodes: Vec<Option<String>>,
    /// Kinds of state; if empty, all kinds that the nodes have.
    kinds: Vec<StateKind>,
    why: Option<IpAddr>,
}

impl Wanted {
    /// Separates the arguments: kinds of state come after the nodes.
    fn new(args: &InspectArgs) -> Result<Self, Failure> {
        let words = &args.nodes_and_kinds;
        let named = |word: &String| StateKind::named().find(|kind| kind.to_string() == *word);
        let nodes = words
            .iter()
            .rposition(|word| named(word).is_none())
            .map_or(0, |last| last + 1);
        let (nodes, kinds) = words.split_at(nodes);
        let kinds: Vec<StateKind> = kinds.iter().filter_map(named).collect();
        let one_kind = match kinds[..] {
            [kind] => Some(kind),
            _ => None,
        };
        if args.why.is_some()
            && (one_kind != Some(StateKind::Nhrp) || args.output.of_tables().is_none())
        {
            return Err(Failure::usage("--why is for the tables of nhrp"));
        }
        if args.output.of_tables().is_none()
            && !matches!(one_kind, Some(StateKind::Mpc | StateKind::Lec))
        {
            let what = kinds.first().map_or("all state", |kind| kind.name());
            return Err(Failure::usage(format!("Linux has no file for '{what}'"))
                .hint("-o proc is for lec and mpc: /proc/net/atm/lec and mpc"));
        }
        let nodes: Vec<_> = nodes.iter().cloned().map(Some).collect();
        Ok(Self {
            nodes: if nodes.is_empty() { vec![None] } else { nodes },
            kinds,
            why: args.why,
        })
    }

    fn schema(&self) -> String {
        match (&self.kinds[..], self.why) {
            (_, Some(_)) => "aerostat.inspect.why.v1".to_owned(),
            ([kind], None) => format!("aerostat.inspect.{kind}.v1"),
            _ => "aerostat.inspect.v1".to_owned(),
        }
    }

    fn proc_requests(&self) -> impl Iterator<Item = Request> + '_ {
        let each = self.nodes.iter();
        each.flat_map(|node| {
            self.kinds.iter().map(|what| Request::Proc {
                node: node.clone(),
                what: *what,
            })
        })
    }

    fn tables(&self, client: &mut Client) -> Result<Vec<Rows>, Failure> {
        let mut tables = Vec::new();
        for node in &self.nodes {
            if let Some(address) = self.why {
                let node = node.clone();
                let answer = client::ask(client, &Request::Why { node, address })?;
                tables.extend(understood::<Vec<Rows>>(answer)?);
            } else if self.kinds.is_empty() {
                tables.extend(everything(client, node.as_ref())?);
            } else {
                for kind in &self.kinds {
                    let of_kind = of_kind(client, node.as_ref(), *kind)?;
                    let several = self.kinds.len() > 1;
                    tables.extend(of_kind.into_iter().map(|rows| named(rows, *kind, several)));
                }
            }
        }
        Ok(tables)
    }
}

fn of_kind(
    client: &mut Client,
    node: Option<&String>,
    kind: StateKind,
) -> Result<Vec<Rows>, Failure> {
    let (node, what) = (node.cloned(), kind);
    let answer = client::ask(client, &Request::Inspect { node, what })?;
    let tables: Vec<Rows> = understood(answer)?;
    let tables = tables.into_iter().map(|mut rows| {
        rows.name = name_of(kind, &rows).replace(' ', "_");
        described(kind, rows)
    });
    Ok(tables.collect())
}

fn name_of(kind: StateKind, rows: &Rows) -> String {
    match rows.title.as_str() {
        "" => kind.to_string(),
        title => format!("{kind}.{title}"),
    }
}

/// Rows of a running lab with the importance of their columns, which the control socket does not carry.
pub(super) fn described(kind: StateKind, rows: Rows) -> Rows {
    let name = name_of(kind, &rows);
    // Hosts and switches may have other columns in a table of the same name.
    let known = inspect::tables().find(|info| info.name == name && info.names == rows.columns);
    match known {
        Some(info) => rows.described(info),
        None => rows,
    }
}

/// All tables of a node. A node without tables is an error.
fn everything(client: &mut Client, node: Option<&String>) -> Result<Vec<Rows>, Failure> {
    let (mut tables, mut first) = (Vec::new(), None);
    for kind in StateKind::named().filter(|kind| *kind != StateKind::Lab) {
        match of_kind(client, node, kind) {
            Ok(found) => {
                // Every host has the socket service, whether programs use it or not.
                let told = found
                    .into_iter()
                    .filter(|rows| kind != StateKind::Sockets || !rows.rows.is_empty());
                tables.extend(told.map(|rows| named(rows, kind, true)));
            }
            // A node without such state is not an error here.
            Err(failure) => drop(first.get_or_insert(failure)),
        }
    }
    match first {
        Some(failure) if tables.is_empty() => Err(failure),
        _ => Ok(tables),
    }
}

/// Puts the kind in front of the title, if there are tables of several kinds.
fn named(mut rows: Rows, kind: StateKind, several: bool) -> Rows {
    if several && rows.title != kind.name() {
        rows.title = match rows.title.as_str() {
            "" => kind.to_string(),
            title => format!("{kind} {title}"),
        };
    }
    rows
}

/// The text of a file under /proc for one node.
#[derive(serde::Deserialize)]
struct ProcText {
    node: String,
    text: String,
}

pub(super) fn understood<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer)
        .map_err(|error| Failure::failed(format!("the lab's answer is not understood: {error}")))
}

/// A single text is shown alone; several texts are shown under the names of their nodes.
fn show_texts(texts: &[ProcText]) -> Result<(), Failure> {
    let mut out = charset::stdout();
    for text in texts {
        if texts.len() > 1 {
            writeln!(out, "==> {} <==", text.node)?;
        }
        out.write_all(text.text.as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Shows once, or every second for `watch`. On a terminal, output for people clears the screen first.
fn repeat(watch: bool, people: bool, mut show: impl FnMut() -> Result<(), Failure>) -> Outcome {
    loop {
        if watch && people && std::io::stdout().is_terminal() {
            // Move to the start of the screen, and clear it.
            std::io::stdout().lock().write_all(b"\x1b[H\x1b[2J")?;
        }
        show()?;
        if !watch {
            return Ok(Exit::Ok);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
