//! The manual page of the lab file, made from its JSON Schema, so that it explains every key that the reader knows.

use crate::exit::Failure;
use roff::{Roff, bold, italic, roman};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, VecDeque};

/// The page, section 5.
pub(super) fn page() -> Result<Vec<u8>, Failure> {
    let schema = aerostat_lab::schema();
    let mut roff = Roff::new();
    roff.control("TH", ["aerostat-lab", "5"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("aerostat-lab - lab files of aerostat(1)")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(
        "A lab file is YAML and is called NAME.atm.yml. It describes switches, links, ELANs, routers and hosts of an ATM \
         network, and what happens in it. Its keys:",
    )]);
    keys(&mut roff, &schema);
    let definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
    for (name, at) in reached(&schema, &definitions) {
        let Some(definition) = definitions.get(&name) else {
            continue;
        };
        roff.control("SH", [at.to_uppercase().as_str()]);
        if let Some(text) = definition["description"].as_str() {
            roff.text([roman(text)]);
        }
        keys(&mut roff, definition);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(
        "aerostat(1), aerostat-validate(1), aerostat-graph(1), aerostat-run(1), aerostat-up(1)",
    )]);
    Ok(roff.render().into_bytes())
}

/// The keys of a map, each with its explanation and the section of its contents.
fn keys(roff: &mut Roff, of: &Value) {
    for (key, value) in properties(of) {
        roff.control("TP", []);
        let mut head = vec![bold(key)];
        if let Some(kind) = kind(value) {
            head.push(roman(" "));
            head.push(italic(kind));
        }
        roff.text(head);
        roff.text([roman(
            value["description"].as_str().unwrap_or("No more is said."),
        )]);
    }
}

fn properties(of: &Value) -> Vec<(&String, &Value)> {
    let own = of["properties"].as_object().into_iter().flatten();
    // A value with several possible forms has the keys of all forms.
    let forms = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|of_forms| of[of_forms].as_array());
    let of_forms = forms
        .flatten()
        .filter_map(|form| form["properties"].as_object());
    own.chain(of_forms.flatten()).collect()
}

/// The type of a value in a word.
fn kind(value: &Value) -> Option<String> {
    let plain = |text: &Value| {
        text.as_str()
            .filter(|text| *text != "null")
            .map(str::to_owned)
    };
    match &value["type"] {
        Value::Array(kinds) => {
            let kinds: Vec<String> = kinds.iter().filter_map(plain).collect();
            (!kinds.is_empty()).then(|| kinds.join(" or "))
        }
        kind => plain(kind),
    }
}

/// Names of the definitions in the order in which keys lead to them, each with the first such key.
fn reached(schema: &Value, definitions: &Map<String, Value>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = VecDeque::from([(schema, String::new())]);
    while let Some((here, path)) = next.pop_front() {
        for (key, value) in properties(here) {
            let at = match path.as_str() {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            for name in references(value) {
                if seen.insert(name.clone()) {
                    found.push((name.clone(), at.clone()));
                    if let Some(definition) = definitions.get(&name) {
                        next.push_back((definition, at.clone()));
                    }
                }
            }
        }
        // A definition may only choose between others.
        for name in ["anyOf", "oneOf"]
            .into_iter()
            .flat_map(|of| references(&here[of]))
        {
            if seen.insert(name.clone()) {
                found.push((name.clone(), path.clone()));
                if let Some(definition) = definitions.get(&name) {
                    next.push_back((definition, path.clone()));
                }
            }
        }
    }
    found
}

/// Definitions to which a value refers, at any depth.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value) {
                ("$ref", Value::String(name)) => {
                    let name = name.rsplit('/').next();
                    name.map(str::to_owned).into_iter().collect()
                }
                // Keys inside have sections of their own.
                ("properties", _) => Vec::new(),
                (_, value) => references(value),
            })
            .collect(),
        Value::Array(all) => all.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_lab_file_explains_every_key_and_has_a_section_for_every_map() {
        let text = String::from_utf8(page().unwrap()).unwrap();
        let schema = aerostat_lab::schema();
        let definitions = schema["$defs"].as_object().unwrap();
        assert!(definitions.len() > 20);
        let reached = reached(&schema, definitions);
        assert_eq!(reached.len(), definitions.len(), "{reached:?}");
        for of in definitions.values().chain([&schema]) {
            for (key, value) in properties(of) {
                assert!(text.contains(&format!("\\fB{key}\\fR")), "{key}");
                assert!(value["description"].is_string(), "{key} has no explanation");
            }
        }
        assert!(!text.contains("No more is said."));
    }
}
