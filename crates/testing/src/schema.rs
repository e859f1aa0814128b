//! Results against their published schema, and the accounts of their connections.

use serde_json::{Map, Value};

/// Violations by `value` of the part of JSON Schema that the published schema uses; any other keyword is an error.
pub fn violations(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let empty = Map::new();
    let rules = schema.as_object().unwrap_or(&empty);
    for (rule, wanted) in rules {
        match rule.as_str() {
            "$schema" | "title" | "description" => {}
            "const" if value == wanted => {}
            "type" if has_type(value, wanted) => {}
            "minimum" => {
                if value.as_f64().is_some_and(|v| v < wanted.as_f64().unwrap()) {
                    found.push(format!("{at}: {value} is below {wanted}"));
                }
            }
            "pattern" => {
                // The only pattern is that of a digest.
                assert_eq!(wanted, "^[0-9a-f]{64}$");
                let text = value.as_str().unwrap_or_default();
                if text.len() != 64 || text.contains(|c: char| !c.is_ascii_hexdigit()) {
                    found.push(format!("{at}: {value} is no digest"));
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    violations(wanted, item, &format!("{at}[{number}]"), found);
                }
            }
            "required" => {
                for key in wanted.as_array().into_iter().flatten() {
                    if value.is_object() && value.get(key.as_str().unwrap()).is_none() {
                        found.push(format!("{at}: {key} is missing"));
                    }
                }
            }
            "properties" | "additionalProperties" => {}
            _ => found.push(format!("{at}: {value} is not {rule} {wanted}")),
        }
    }
    let properties = rules.get("properties").and_then(Value::as_object);
    for (key, inner) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{key}");
        match (
            properties.and_then(|all| all.get(key)),
            rules.get("additionalProperties"),
        ) {
            (Some(schema), _) => violations(schema, inner, &at, found),
            (None, Some(Value::Bool(false))) => found.push(format!("{at} is not in the schema")),
            (None, Some(schema)) => violations(schema, inner, &at, found),
            (None, None) => {}
        }
    }
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Array(any) => any.iter().any(|one| has_type(value, one)),
        Value::String(name) => match name.as_str() {
            "null" => value.is_null(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            _ => false,
        },
        _ => false,
    }
}

fn number(row: &Value, column: &str) -> u64 {
    row[column]
        .as_u64()
        .unwrap_or_else(|| panic!("{column} of {row}"))
}

/// `offered = refused + waiting + sent`, `sent = delivered + lost + under way`, and the losses have their places.
pub fn balance(lab: &str, document: &Value) {
    for row in document["vcs"].as_array().expect("connections") {
        let at = |columns: &[&str]| columns.iter().map(|c| number(row, c)).sum::<u64>();
        assert_eq!(
            number(row, "cells_offered"),
            at(&["cells_refused", "cells_waiting", "cells_sent"]),
            "{lab}: {row}"
        );
        // Without a receiver the rest of the way is unknown.
        if row["to"].is_null() {
            continue;
        }
        assert_eq!(
            number(row, "cells_sent"),
            at(&["cells_delivered", "cells_lost", "cells_under_way"]),
            "{lab}: {row}"
        );
        let key = ["from", "from_vc", "to", "to_vc"];
        let losses = document["losses"].as_array().expect("losses").iter();
        let losses = losses.filter(|loss| key.iter().all(|c| loss[c] == row[c]));
        let lost: u64 = losses.map(|loss| number(loss, "cells")).sum();
        assert_eq!(number(row, "cells_lost"), lost, "{lab}: {row}");
    }
    for row in document["links"].as_array().expect("links") {
        let ends = [
            "cells_delivered",
            "cells_lost",
            "cells_discarded",
            "cells_down",
            "cells_under_way",
        ];
        let sum: u64 = ends.iter().map(|column| number(row, column)).sum();
        assert_eq!(number(row, "cells_sent"), sum, "{lab}: {row}");
    }
}
