//! Changes to the tree before it is checked, as `--set a.b=v`.

use crate::diag::{Diagnostics, Span};
use crate::resolve::{lane, outside, sockets};
use crate::tree::{self, Key, Tree, Value};

/// A change of a lab file: `PATH=VALUE`, from an option of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    option: &'static str,
    /// `PATH=VALUE`.
    change: String,
    /// Octets of `change` that the user did not type: the path that an option implies, and the sign.
    implied: usize,
}

impl Override {
    /// A change that stands in the option `--set`, or in another one, for example `--sweep`. Findings about the change
    /// name this option.
    #[must_use]
    pub fn new(option: &'static str, change: String) -> Self {
        Self {
            option,
            change,
            implied: 0,
        }
    }

    /// A change by an option that has the value alone, for example `--until 5s`. Findings show it as it was typed.
    #[must_use]
    pub fn of(option: &'static str, path: &str, value: &str) -> Self {
        Self {
            option,
            change: format!("{path}={value}"),
            implied: path.len() + 1,
        }
    }

    /// `PATH=VALUE`.
    #[must_use]
    pub fn change(&self) -> &str {
        &self.change
    }
}

impl From<String> for Override {
    fn from(change: String) -> Self {
        Self::new("--set", change)
    }
}

impl From<&str> for Override {
    fn from(change: &str) -> Self {
        change.to_owned().into()
    }
}

/// Applies one change. The value is YAML. A step of the path is a key, the name of a list entry (its
/// default name is allowed, too: `traffic.urku-sello`, `links.s1-s2`), or the index of a list entry, from 0. Missing
/// mappings are created.
pub(crate) fn apply(root: &mut Tree, change: &Override, d: &mut Diagnostics) {
    let Override {
        option,
        change,
        implied,
    } = change;
    let typed = &change[*implied..];
    let source = d.add_source(format!("{option} {typed}"), typed);
    let Some((path, value)) = change.split_once('=') else {
        let at = Span {
            source,
            start: 0,
            end: change.len(),
        };
        d.error(at, "expected PATH=VALUE")
            .hint("for example: --set mpoa=false, or --set routers.c4700.forwarding=wire");
        return;
    };
    let Some(value) = tree::parse(value, source, path.len() + 1 - implied, d) else {
        return;
    };
    let Some(mut steps) = steps(path, source, d) else {
        return;
    };
    if *implied > 0 {
        let (start, end) = (0, typed.len());
        let place = Span { source, start, end };
        steps.iter_mut().for_each(|(_, at)| *at = place);
    }
    let steps = of_end_system(root, steps);
    let mut at = root;
    // The list that contains the current node: its entries may have default names.
    let mut list = "";
    for (number, (step, place)) in steps.iter().enumerate() {
        if let Some((next, next_place)) = steps.get(number + 1)
            && missing(at, (list, step), (next, *place, *next_place), d)
        {
            return;
        }
        let in_list = matches!(at.value, Value::List(_));
        match descend(at, (list, step), *place, d) {
            Some(next) => at = next,
            None => return,
        }
        // In an entry of `links`, the next step is an option.
        list = if in_list && list == "links" {
            "link"
        } else {
            step
        };
    }
    *at = value;
}

/// Reports a path through `step` if the file has no such node or no such list entry, because the created entry would be
/// incomplete. True if reported.
fn missing(
    at: &Tree,
    (section, step): (&str, &str),
    (next, place, next_place): (&str, Span, Span),
    d: &mut Diagnostics,
) -> bool {
    if field(at, step).is_some() {
        return false;
    }
    if let Some((_, kind)) = NODES.iter().find(|(key, _)| *key == section)
        && let Value::Map(nodes) = &at.value
    {
        d.error(place, format!("there is no {kind} '{step}'"))
            .suggest(step, nodes.iter().map(|(key, _)| &*key.text));
        return true;
    }
    let absent = section.is_empty() && LISTS.contains(&step);
    if absent {
        d.error(
            next_place,
            format!("there is no entry '{next}': the lab has no '{step}'"),
        )
        .hint(format!("the whole list can be set: --set '{step}=[...]'"));
    }
    absent
}

/// Sections whose keys are nodes, with the word for such a node.
const NODES: [(&str, &str); 3] = [
    ("hosts", "host"),
    ("routers", "router"),
    ("switches", "switch"),
];
/// Sections that are lists.
const LISTS: [&str; 4] = ["links", "traffic", "pvcs", "faults"];

/// Limit of the steps of a path. No key of a lab file is as deep, and a tree is read by functions that call themselves.
const MOST_STEPS: usize = 32;

/// The steps of a path with their places.
fn steps<'a>(path: &'a str, source: usize, d: &mut Diagnostics) -> Option<Vec<(&'a str, Span)>> {
    let (mut start, end) = (0, path.len());
    let mut steps = Vec::new();
    let count = path.split('.').count();
    if count > MOST_STEPS {
        let place = Span { source, start, end };
        let text = format!("the path has {count} steps, and the limit is {MOST_STEPS}");
        d.error(place, text);
        return None;
    }
    for step in path.split('.') {
        let end = start + step.len();
        let place = Span { source, start, end };
        start = end + 1;
        if step.is_empty() {
            d.error(place, "an empty step in the path");
            return None;
        }
        steps.push((step, place));
    }
    Some(steps)
}

/// `links.x-s1` means the link of an end system, unless a link between switches has that name: `hosts.x.link`.
fn of_end_system<'a>(root: &Tree, steps: Vec<(&'a str, Span)>) -> Vec<(&'a str, Span)> {
    let [("links", _), (name, place), rest @ ..] = &steps[..] else {
        return steps;
    };
    let (name, place) = (*name, *place);
    let links = field(root, "links").map_or(&[][..], items);
    if names("links", links)
        .iter()
        .flatten()
        .any(|known| known == name)
    {
        return steps;
    }
    let attached = |node: &str, section: &Tree| {
        text(section, "on").is_some_and(|on| name == format!("{node}-{on}"))
    };
    for kind in ["hosts", "routers"] {
        let Some(Value::Map(nodes)) = field(root, kind).map(|nodes| &nodes.value) else {
            continue;
        };
        let mut nodes = nodes.iter();
        if let Some((node, _)) = nodes.find(|(node, section)| attached(&node.text, section)) {
            // The name of the link begins with the name of the node.
            let node = &name[..node.text.len()];
            let way = [(kind, place), (node, place), ("link", place)];
            return way.iter().chain(rest).copied().collect();
        }
    }
    let lane = field(root, "lane")
        .filter(|lane| attached(text(lane, "name").unwrap_or(lane::UNNAMED), lane));
    if lane.is_some() {
        let way = [("lane", place), ("link", place)];
        return way.iter().chain(rest).copied().collect();
    }
    steps
}

fn descend<'a>(
    at: &'a mut Tree,
    (list, step): (&str, &str),
    place: Span,
    d: &mut Diagnostics,
) -> Option<&'a mut Tree> {
    // With `mpoa: true` and mpoa.start=6s, parameters replace the switch.
    if matches!(at.value, Value::Null | Value::Bool(_)) {
        at.value = Value::Map(Vec::new());
    }
    match &mut at.value {
        Value::Map(entries) => {
            let index = entries.iter().position(|(key, _)| key.text == step);
            let index = index.unwrap_or_else(|| {
                let key = Key {
                    at: place,
                    text: step.to_owned(),
                };
                let empty = Tree {
                    at: place,
                    value: Value::Null,
                };
                entries.push((key, empty));
                entries.len() - 1
            });
            entries.get_mut(index).map(|(_, value)| value)
        }
        Value::List(items) => {
            let number = || step.parse().ok().filter(|n| *n < items.len());
            if list == "link" && number().is_none() {
                return descend(options(items, place), ("", step), place, d);
            }
            let names = names(list, items);
            // A name goes before the second name of a link, which starts at its other end.
            let first = names
                .iter()
                .position(|all| all.first().is_some_and(|n| n == step));
            let any = || names.iter().position(|all| all.iter().any(|n| n == step));
            let index = first.or_else(any).or_else(number);
            if index.is_none() {
                let known = names.iter().filter_map(|all| all.first());
                d.error(place, format!("there is no entry '{step}'"))
                    .suggest(step, known.map(String::as_str));
            }
            items.get_mut(index?)
        }
        Value::Null | Value::Bool(_) | Value::Text(_) => {
            d.error(place, format!("no '{step}' here: this is one value"));
            None
        }
    }
}

/// The options of a link, `[a, b, { options }]`; an empty mapping is created if the link has no options.
fn options(items: &mut Vec<Tree>, place: Span) -> &mut Tree {
    let there = items
        .iter()
        .rposition(|item| matches!(item.value, Value::Map(_)));
    let index = there.unwrap_or_else(|| {
        items.push(Tree {
            at: place,
            value: Value::Map(Vec::new()),
        });
        items.len() - 1
    });
    &mut items[index]
}

/// The value of a key.
fn field<'a>(item: &'a Tree, name: &str) -> Option<&'a Tree> {
    let Value::Map(entries) = &item.value else {
        return None;
    };
    let found = entries.iter().find(|(key, _)| key.text == name);
    found.map(|(_, value)| value)
}

/// The text of a key.
fn text<'a>(item: &'a Tree, name: &str) -> Option<&'a str> {
    scalar(field(item, name)?)
}

fn scalar(item: &Tree) -> Option<&str> {
    match &item.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn items(list: &Tree) -> &[Tree] {
    match &list.value {
        Value::List(items) => items,
        _ => &[],
    }
}

/// The possible names of each entry of the list under `key`; the first is the name that the entry has or gets.
fn names(key: &str, entries: &[Tree]) -> Vec<Vec<String>> {
    let mut outside = 0;
    let mut taken: Vec<String> = Vec::new();
    let name = |(n, item): (usize, &Tree)| -> Vec<String> {
        if key == "links" {
            return link_names(items(item), &mut outside, &mut taken);
        }
        if let Some(name) = text(item, "name") {
            return vec![name.to_owned()];
        }
        match key {
            "traffic" => text(item, "from")
                .zip(text(item, "to"))
                .map(|(from, to)| format!("{from}-{to}"))
                .into_iter()
                .collect(),
            "sockets" => vec![format!("{}{}", sockets::UNNAMED, n + 1)],
            "standby" => vec![format!("{}{}", lane::UNNAMED, n + 2)],
            _ => Vec::new(),
        }
    };
    entries.iter().enumerate().map(name).collect()
}

/// Names of a link: its own, or those of its ends in either order. A link out of the lab also has the name of the far
/// end.
fn link_names(parts: &[Tree], outside: &mut u32, taken: &mut Vec<String>) -> Vec<String> {
    let ends: Vec<&str> = parts.iter().filter_map(scalar).collect();
    let own = parts.last().and_then(|options| text(options, "name"));
    match ends[..] {
        [on] => {
            *outside += 1;
            let far = own.map_or_else(|| format!("{}{outside}", outside::UNNAMED), str::to_owned);
            vec![format!("{far}-{on}"), far]
        }
        [a, b] => {
            let base = own.map_or_else(|| format!("{a}-{b}"), str::to_owned);
            let numbered = (2..).map(|n| format!("{base}-{n}"));
            let mut all = std::iter::once(base.clone()).chain(numbered);
            let name = all.find(|name| !taken.contains(name)).unwrap_or(base);
            taken.push(name.clone());
            vec![name, format!("{b}-{a}")]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::SMALL;
    use aerostat_proto::Duration;

    fn set(options: &[&str]) -> Result<crate::model::Lab, String> {
        let text =
            format!("{SMALL}traffic: [{{ name: t, from: x, to: y, kind: udp, rate: 1Mbps }}]\n");
        let options: Vec<crate::Override> = options.iter().map(|&o| o.into()).collect();
        crate::parse("t.atm.yml", &text, &options)
            .map(|checked| checked.lab)
            .map_err(|d| d.to_string())
    }

    /// Findings show the words of the user, and not the path that the option implies.
    #[test]
    fn an_option_with_a_value_alone_is_shown_as_it_was_typed() {
        for (option, path, value) in [
            ("--until", "until", "5"),
            ("--seed", "seed", "x"),
            ("--until", "until", "["),
            ("--duration", "traffic.no.duration", "5s"),
        ] {
            let text = "switches: { s: {} }\nhosts: {}\ntraffic: []\n";
            let change = crate::Override::of(option, path, value);
            assert_eq!(change.change(), format!("{path}={value}"));
            let found = crate::parse("t.atm.yml", text, &[change]);
            let said = found.expect_err(value).to_string();
            let head = format!("{option} {value}: error: ");
            assert!(said.contains(&head), "{said}");
            assert!(!said.contains(&format!("{path}=")), "{said}");
        }
    }

    #[test]
    fn what_the_file_does_not_have_is_not_made_by_halves() {
        let said = set(&["hosts.z.ip=10.1.0.9"]).unwrap_err();
        assert!(said.contains("there is no host 'z'"), "{said}");
        assert!(!said.contains("missing"), "{said}");
        let said = set(&["switches.s11.police=true"]).unwrap_err();
        assert!(said.contains("there is no switch 's11'"), "{said}");
        assert!(said.contains("did you mean 's1'?"), "{said}");
        let said = set(&["pvcs.a-b.pcr=1000"]).unwrap_err();
        assert!(
            said.contains("there is no entry 'a-b': the lab has no 'pvcs'"),
            "{said}"
        );
        // A complete host can be added.
        assert!(
            set(&["hosts.z={on: s1, elan: a, ip: 10.1.0.9}"])
                .is_ok_and(|lab| lab.find("z").is_some())
        );
    }

    #[test]
    fn values_replace_and_are_checked() {
        assert_eq!(set(&["seed=7", "mpoa.start=6s"]).unwrap().seed, 7);
        let lab = set(&["mpoa=true", "mpoa.start=6s"]).unwrap();
        let mpc = lab.hosts().next().unwrap().2.mpoa.clone().unwrap();
        assert_eq!(mpc.start, Duration::from_secs(6));
        let lab = set(&["traffic.t.duration=3s", "links.0=[s2, s1, {rate: ds3}]"]).unwrap();
        assert_eq!(lab.traffic[0].duration, Some(Duration::from_secs(3)));
        assert_eq!(lab.links[0].name, "s2-s1");
        assert_eq!(
            set(&["mpoa=fals"]).unwrap_err(),
            "--set mpoa=fals: error: mpoa is true, false or { parameters }, not 'fals'\n 1 | mpoa=fals\n   |      ^^^^\n = help: did you mean 'false'?\n"
        );
        assert_eq!(
            set(&["host.x.ip=10.1.0.9"]).unwrap_err(),
            "--set host.x.ip=10.1.0.9: error: unknown key 'host'\n 1 | host.x.ip=10.1.0.9\n   | ^^^^\n = help: did you mean 'hosts'?\n"
        );
        assert!(set(&["seed"]).unwrap_err().contains("expected PATH=VALUE"));
        // As deep as no key is: a tree of this depth must not be made.
        for steps in [33, 20_000] {
            let said = set(&[&format!("{}=1", vec!["mpoa"; steps].join("."))]).unwrap_err();
            let told = format!("the path has {steps} steps, and the limit is 32");
            assert!(said.contains(&told), "{said}");
        }
        let deep = format!("{}=1", vec!["mpoa"; 32].join("."));
        assert!(
            set(&[&deep]).unwrap_err().contains("mpoa"),
            "read and refused"
        );
        assert!(
            set(&["traffic.u.size=9"])
                .unwrap_err()
                .contains("no entry 'u'")
        );
        assert!(
            set(&["seed=[1"])
                .unwrap_err()
                .contains("--set seed=[1: error: not valid YAML")
        );
    }

    #[test]
    fn links_and_flows_have_the_names_that_they_get_by_default() {
        let text = SMALL.replace(
            "links: [[s1, s2]]",
            "links: [[s1, s2], [s1, s2, { rate: ds3 }], [s2, s1, { name: back }], [s1, { udp: { local: '127.0.0.1:7', peer: '127.0.0.1:8' } }]]",
        );
        let text = format!("{text}traffic: [{{ from: x, to: y, kind: udp, rate: 1Mbps }}]\n");
        let set = |options: &[&str]| {
            let options: Vec<crate::Override> = options.iter().map(|&o| o.into()).collect();
            crate::parse("t.atm.yml", &text, &options)
                .map(|checked| checked.lab)
                .map_err(|d| d.to_string())
        };
        let ms = Duration::from_millis;
        let lab = set(&[
            "links.s1-s2.delay=1ms",
            "links.s1-s2-2.delay=2ms",
            "links.back.delay=3ms",
            "links.outside1.rate=25.6",
            "links.x-s1.delay=4ms",
            "links.r-s2.delay=5ms",
            "links.lane-s1.delay=6ms",
            "traffic.x-y.duration=7s",
        ])
        .unwrap();
        let delay = |name: &str| {
            lab.links
                .iter()
                .find(|link| link.name == name)
                .unwrap()
                .lines[0]
                .delay
        };
        for (name, delay_ms) in [
            ("s1-s2", 1),
            ("s1-s2-2", 2),
            ("back", 3),
            ("x-s1", 4),
            ("r-s2", 5),
            ("lane-s1", 6),
        ] {
            assert_eq!(delay(name), ms(delay_ms), "{name}");
        }
        let outside = lab.links.iter().find(|link| link.name == "outside1-s1");
        assert_eq!(
            outside.unwrap().rate(),
            aerostat_node::atm::CellRate::named("25.6")
        );
        assert_eq!(lab.traffic[0].duration, Some(Duration::from_secs(7)));
        // By the other end, and by its index with a key.
        assert_eq!(
            set(&["links.s2-s1.delay=9ms"]).unwrap().links[0].lines[0].delay,
            ms(9)
        );
        let lab = set(&["links.0.2={ delay: 8ms }"]);
        assert!(
            lab.unwrap_err().contains("unknown key '2'"),
            "no options yet"
        );
        let lab = set(&["links.1.2.delay=8ms"]).unwrap();
        assert_eq!(lab.links[1].lines[0].delay, ms(8));
        let said = set(&["links.s1-s3.delay=1ms"]).unwrap_err();
        assert!(said.contains("there is no entry 's1-s3'"), "{said}");
        assert!(said.contains("did you mean 's1-s2'?"), "{said}");
        let said = set(&["links.s1-s2.dealy=1ms"]).unwrap_err();
        assert!(said.contains("did you mean 'delay'?"), "{said}");
    }
}
