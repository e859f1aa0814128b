//! `--set a.b=v`: changes to the tree before it is checked.

use crate::diag::{Diagnostics, Span};
use crate::tree::{self, Key, Tree, Value};

/// Applies one option, `path=value`. The value is YAML. A step of the path is a key, the name of a list entry that
/// has a `name:`, or the number of a list entry from 0. Missing mappings are made.
pub(crate) fn apply(root: &mut Tree, option: &str, d: &mut Diagnostics) {
    let source = d.add_source(format!("--set {option}"), option.to_owned());
    let Some((path, value)) = option.split_once('=') else {
        let at = Span {
            source,
            start: 0,
            end: option.len(),
        };
        d.error(at, "expected PATH=VALUE")
            .hint("for example: --set mpoa=false, or --set routers.c4700.forwarding=wire");
        return;
    };
    let Some(value) = tree::parse(value, source, path.len() + 1, d) else {
        return;
    };
    let mut start = 0;
    let mut at = root;
    for step in path.split('.') {
        let place = Span {
            source,
            start,
            end: start + step.len(),
        };
        start += step.len() + 1;
        if step.is_empty() {
            d.error(place, "an empty step in the path");
            return;
        }
        match descend(at, step, place, d) {
            Some(next) => at = next,
            None => return,
        }
    }
    *at = value;
}

fn descend<'a>(
    at: &'a mut Tree,
    step: &str,
    place: Span,
    d: &mut Diagnostics,
) -> Option<&'a mut Tree> {
    // `mpoa: true` with mpoa.start=6s: parameters take the place of the switch.
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
            let names: Vec<String> = items.iter().filter_map(entry_name).collect();
            let by_name = items
                .iter()
                .position(|item| entry_name(item).as_deref() == Some(step));
            let index = by_name.or_else(|| step.parse().ok().filter(|n| *n < items.len()));
            if index.is_none() {
                d.error(place, format!("there is no entry '{step}'"))
                    .suggest(step, names.iter().map(String::as_str));
            }
            items.get_mut(index?)
        }
        Value::Null | Value::Bool(_) | Value::Text(_) => {
            d.error(place, format!("no '{step}' here: this is one value"));
            None
        }
    }
}

/// The `name:` of a list entry.
fn entry_name(item: &Tree) -> Option<String> {
    let Value::Map(entries) = &item.value else {
        return None;
    };
    entries.iter().find_map(|(key, value)| match &value.value {
        Value::Text(text) if key.text == "name" => Some(text.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::SMALL;
    use aerostat_proto::Duration;

    fn set(options: &[&str]) -> Result<crate::model::Lab, String> {
        let text =
            format!("{SMALL}traffic: [{{ name: t, from: x, to: y, kind: udp, rate: 1Mbps }}]\n");
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        crate::parse("t.atm.yml", &text, &options)
            .map(|checked| checked.lab)
            .map_err(|d| d.to_string())
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
}
