//! Rules that no compiler checks: dependencies between crates, lengths of files and functions, places of tests.

use crate::{files, metadata, root};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `wire ← proto ← node ← lab ← {sim, view, live} ← cli`, `proto ← socket ← {preload, clib}` and `proto ← explain`, and
/// nothing else.
#[test]
fn dependencies_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("aerostat-wire", &[][..]),
        ("aerostat-proto", &["aerostat-wire"][..]),
        ("aerostat-node", &["aerostat-wire", "aerostat-proto"][..]),
        (
            "aerostat-lab",
            &["aerostat-wire", "aerostat-proto", "aerostat-node"][..],
        ),
        (
            "aerostat-sim",
            &[
                "aerostat-wire",
                "aerostat-proto",
                "aerostat-node",
                "aerostat-lab",
            ][..],
        ),
        // Programs are beside the lab: they know its messages only.
        ("aerostat-socket", &["aerostat-wire", "aerostat-proto"][..]),
        (
            "aerostat-preload",
            &["aerostat-wire", "aerostat-socket"][..],
        ),
        ("aerostat-clib", &["aerostat-socket"][..]),
        // Captures are of networks of others.
        ("aerostat-explain", &["aerostat-wire", "aerostat-proto"][..]),
        (
            "aerostat-view",
            &[
                "aerostat-wire",
                "aerostat-proto",
                "aerostat-node",
                "aerostat-lab",
            ][..],
        ),
        // Runs come from the command, or from Python.
        (
            "aerostat-sweep",
            &["aerostat-wire", "aerostat-node", "aerostat-lab"][..],
        ),
        (
            "aerostat-live",
            &[
                "aerostat-wire",
                "aerostat-proto",
                "aerostat-node",
                "aerostat-lab",
            ][..],
        ),
    ]);
    let metadata = metadata();
    let mut seen = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("name");
        let Some(may) = allowed.get(name) else {
            continue;
        };
        seen += 1;
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = dependency["name"].as_str().expect("name");
            // A development dependency shapes tests only.
            if dependency["kind"].as_str() == Some("dev") || !on.starts_with("aerostat-") {
                continue;
            }
            assert!(may.contains(&on), "{name} must not depend on {on}");
        }
    }
    assert_eq!(
        seen,
        allowed.len(),
        "a crate of the table is missing from the workspace"
    );
}

/// Rooms of `node` from the ground up: each uses only those before it. Tables for display (`inspect`) read all rooms,
/// and all rooms make tables, so `inspect` is left out.
const ROOMS_OF_NODE: [&str; 13] = [
    "daemon_message",
    "distribution",
    "encapsulation",
    "offload",
    "random",
    "rate",
    "atm",
    "server",
    "signalling",
    "ip",
    "manager",
    "host",
    "switch",
];

#[test]
fn rooms_of_node_rest_on_those_below_them() {
    let floor = |room: &str| ROOMS_OF_NODE.iter().position(|other| *other == room);
    let (mut seen, mut upwards) = (0, Vec::new());
    for (name, text) in sources() {
        let Some(path) = name.strip_prefix("node/src/") else {
            continue;
        };
        let room = path.split(['/', '.']).next().unwrap_or_default();
        if room == "lib" || room == "inspect" {
            continue;
        }
        let own = floor(room).unwrap_or_else(|| panic!("{name} belongs to no room"));
        for line in text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            for (at, _) in line.match_indices("crate::") {
                let used =
                    line[at + "crate::".len()..].split(|c: char| c != '_' && !c.is_alphanumeric());
                let Some(used) = used.into_iter().next().and_then(floor) else {
                    continue;
                };
                seen += 1;
                // A host and a switch stand beside each other.
                if used > own || (room == "switch" && ROOMS_OF_NODE[used] == "host") {
                    upwards.push(format!("{name}: {}", line.trim()));
                }
            }
        }
    }
    assert!(seen > 100, "{seen} uses");
    assert!(upwards.is_empty(), "these look up:\n{}", upwards.join("\n"));
}

/// Every source file of the crates with its text; paths begin with the name of the crate.
fn sources() -> Vec<(String, String)> {
    let name = |(path, text): (PathBuf, String)| {
        let name = path.strip_prefix("crates").ok()?.display().to_string();
        Some((name, text))
    };
    let found: Vec<_> = files("rs").into_iter().filter_map(name).collect();
    assert!(found.len() > 300, "{} files", found.len());
    found
}

/// The functions of a formatted file: name and number of lines.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let mut words = code.split_whitespace();
        let qualifiers = ["const", "async", "unsafe", "pub"];
        let is_qualifier = |w: &&str| qualifiers.contains(w) || w.starts_with("pub(");
        if words.find(|word| !is_qualifier(word)) != Some("fn") || line.ends_with('}') {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        // A declaration without a body ends with a semicolon before a brace at its own depth.
        let rest = lines[at..].iter();
        let length = rest.take_while(|line| **line != end).count() + 1;
        let name = words.next().unwrap_or_default();
        let name = name.split(['(', '<']).next().unwrap_or_default();
        let body = lines[at..].iter().take(length);
        let declared = body.take_while(|line| !line.ends_with('{'));
        if !declared.into_iter().any(|line| line.ends_with(';')) {
            found.push((name, length));
        }
    }
    found
}

/// Nouns that messages count. A plural behind a number that may be 1 is `counted`.
const COUNTED: [&str; 52] = [
    "addresses",
    "answers",
    "attempts",
    "calibrations",
    "calls",
    "cells",
    "clients",
    "connections",
    "daemons",
    "digits",
    "drawings",
    "elements",
    "entries",
    "errors",
    "events",
    "files",
    "flows",
    "frames",
    "hosts",
    "interfaces",
    "keys",
    "lines",
    "links",
    "messages",
    "names",
    "nodes",
    "octets",
    "others",
    "packets",
    "pairs",
    "parameters",
    "PDUs",
    "ports",
    "predictions",
    "processes",
    "programs",
    "queues",
    "requests",
    "rows",
    "runs",
    "samples",
    "seconds",
    "servers",
    "sessions",
    "shortcuts",
    "sockets",
    "stations",
    "switches",
    "tests",
    "times",
    "transfers",
    "warnings",
];

/// Parts of messages with a plural, whose number is never 1, or is no count.
const NEVER_ONE: &[(&str, &str)] = &[
    ("cli/src/cmd/atptest/live.rs", "has {} hosts, not two"),
    ("cli/src/cmd/capture.rs", "a block of {length} octets"),
    ("cli/src/cmd/measure/ping.rs", "{} hosts are {count} pairs"),
    (
        "cli/src/cmd/reproduce/catalogue/files.rs",
        "{} octets are too many",
    ),
    ("cli/src/cmd/rfc2544.rs", "{} octets at"),
    ("view/src/warnings.rs", "{count} nodes have not"),
    ("cli/src/cmd/run/many.rs", "a name of {longest} octets"),
    ("cli/src/cmd/pool.rs", "{some} of {jobs} runs at"),
    ("sweep/src/variants.rs", "{count} runs: {most}"),
    ("sweep/src/variants.rs", "{option} names"),
    ("sweep/src/variants.rs", "{option} links"),
    ("clib/src/calls.rs", "has {} octets, and its place"),
    ("clib/src/user_data.rs", "{length} octets of user data"),
    ("lab/src/dialogues.rs", "failed {times} times"),
    ("lab/src/file/keys.rs", "default {} frames per"),
    ("lab/src/file/leaves.rs", "{length} octets: a lab's name"),
    ("lab/src/resolve/atp.rs", "packets of {theirs} octets"),
    ("lab/src/resolve/atp.rs", "begins with {} packets"),
    ("lab/src/resolve/calls.rs", "SDUs of {wanted} octets"),
    ("lab/src/resolve/capacity.rs", "frames of {frame} octets"),
    ("lab/src/resolve/events.rs", "{samples} samples, and {MOST}"),
    (
        "lab/src/resolve/events.rs",
        "a send buffer of {buffer} octets",
    ),
    (
        "lab/src/resolve/events.rs",
        "more than {} packets of {size} octets a second",
    ),
    ("lab/src/resolve/load.rs", "{flows} flows, and {MAX_FLOWS}"),
    ("lab/src/resolve/load.rs", "of {frame} octets"),
    ("lab/src/resolve/never.rs", "{} nodes ({first} to {last})"),
    ("lab/src/resolve/load.rs", "{most} octets are the most"),
    ("lab/src/resolve/tcp.rs", "an IP packet of {mtu} octets"),
    ("lab/src/resolve/uplink.rs", "give ELAN {elan} servers"),
    (
        "lab/src/trace.rs",
        "{packets} packets in traces, and {MAX_OF_LAB}",
    ),
    ("lab/src/units.rs", "a flow takes {flow_frames} frames"),
    ("live/src/programs.rs", "{name} runs no program"),
    (
        "node/src/host/sockets/resolver.rs",
        "{} addresses of {subnet}",
    ),
    (
        "node/src/host/sockets/resolver.rs",
        "{} addresses beside {ip}",
    ),
    ("node/src/host/sockets/resolver.rs", "all {entries} entries"),
    ("node/src/host/sockets/", "{waiting} calls wait"),
    ("node/src/host/sockets/", "have {most} connections"),
    ("proto/src/atp/mod.rs", "the limit of {limit} octets"),
    ("proto/src/lane/bus/mod.rs", "sends more {kind} frames"),
    ("proto/src/lane/lec/contracts.rs", "has {} octets"),
    ("socket/src/", "{} octets"),
    ("wire/src/qos_text.rs", "an SDU of aal0 has {} octets"),
];

/// A number in braces and the words behind it, wherever a plural follows it in a text of the source.
fn plurals(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices('{') {
        let Some(end) = line[at..].find('}').map(|end| at + end + 1) else {
            break;
        };
        let name = line[at + 1..end - 1].split(':').next().unwrap_or_default();
        let is_variable = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '.');
        let mut words = line[end..]
            .strip_prefix(' ')
            .unwrap_or_default()
            .split([' ', ',', ';', ':', '"', '.']);
        let (first, second) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let adjective = [
            "more", "other", "older", "further", "such", "hex", "IP", "user",
        ];
        let noun = if adjective.contains(&first) {
            second
        } else {
            first
        };
        // A range, or a limit, has more than one.
        let limit = ["to ", "most ", "least ", "than "]
            .iter()
            .any(|word| line[..at].ends_with(word));
        if name.chars().all(is_variable) && COUNTED.contains(&noun) && !limit {
            found.push(format!("{} {first} {second}", &line[at..end]));
        }
    }
    found
}

#[test]
fn a_count_that_may_be_one_has_its_noun_from_counted() {
    assert_eq!(plurals("say(\"{lines} lines of {runs} are\")").len(), 1);
    assert_eq!(plurals("say(\"{} more lines\")").len(), 1);
    assert!(plurals("say(\"1 to {most} calls, {MOST} calls, {text} is\")").is_empty());
    let (mut wrong, mut seen) = (Vec::new(), Vec::new());
    for (name, text) in sources() {
        let own = name.contains("tests") || name.starts_with("testing") || !name.contains("/src/");
        if own {
            continue;
        }
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let prose = line.trim_start().starts_with("//") || !line.contains('"');
            if prose || plurals(line).is_empty() {
                continue;
            }
            let mut known = NEVER_ONE.iter();
            match known.find(|(file, words)| name.starts_with(file) && line.contains(words)) {
                Some(one) => seen.push(one),
                None => wrong.push(format!("{name}:{}: {}", number + 1, line.trim())),
            }
        }
    }
    assert!(wrong.is_empty(), "use counted():\n{}", wrong.join("\n"));
    let gone: Vec<_> = NEVER_ONE.iter().filter(|one| !seen.contains(one)).collect();
    assert!(gone.is_empty(), "no such text: {gone:?}");
}

/// Limits that only get smaller: the longest file, the longest function that is no test, and how many such functions
/// have more than 60 lines. Who needs more room divides a file or a function.
#[test]
fn files_and_functions_stay_readable() {
    const LONGEST_FILE: usize = 700;
    const LONGEST_FUNCTION: usize = 94;
    const LONG_FUNCTIONS: usize = 50;
    let (mut seen, mut long, mut too_long) = (0, 0, Vec::new());
    for (name, text) in sources() {
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            too_long.push(format!("{name}: {lines} lines"));
        }
        if name.contains("tests") || name.starts_with("testing") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        for (function, lines) in functions(code.unwrap_or_default()) {
            seen += 1;
            long += usize::from(lines > 60);
            if lines > LONGEST_FUNCTION {
                too_long.push(format!("{name}: {function}: {lines} lines"));
            }
        }
    }
    assert!(seen > 3000, "{seen} functions");
    assert!(
        too_long.is_empty(),
        "divide these:\n{}",
        too_long.join("\n")
    );
    assert!(
        long <= LONG_FUNCTIONS,
        "{long} functions of more than 60 lines"
    );
}

/// The text of a pair of brackets, from the opening one on.
fn bracketed(text: &str) -> &str {
    let mut depth = 0;
    let end = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0
    });
    end.map_or(text, |(at, _)| &text[..=at])
}

/// The types in a tuple or a list of arguments, without its brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut last, mut from, mut parts) = (0, ' ', 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if last != '-' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
        last = c;
    }
    parts.push(text[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Tuples in the signatures of functions that a reader has to count through: three parts or more, or two of one type.
fn nameless(code: &str) -> Vec<String> {
    let comment = |line: &&str| !line.trim_start().starts_with("//");
    let code: Vec<&str> = code.lines().filter(comment).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let own = code[..at].ends_with([' ', '\n']) || at == 0;
        let Some(open) = code[at..].find('(').filter(|_| own).map(|to| at + to) else {
            continue;
        };
        // The result ends where the body, or the declaration, begins.
        let arguments = bracketed(&code[open..]);
        let end = open + arguments.len();
        let result = code[end..].split(['{', ';']).next().unwrap_or_default();
        let signature = format!("{}{result}", &arguments[1..]);
        for (at, _) in signature.match_indices('(') {
            let before = signature[..at].trim_end();
            let tuple = bracketed(&signature[at..]);
            let pattern = signature[at + tuple.len()..].starts_with(':');
            let called = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let inner = tuple[1..].strip_suffix(')').unwrap_or_default();
            let parts = parts(inner);
            if !pattern && !called && (parts.len() > 2 || parts.len() == 2 && parts[0] == parts[1])
            {
                found.push(format!("({})", parts.join(", ")));
            }
        }
    }
    found
}

/// A limit that only gets smaller. A point `(f64, f64)` of a drawing and a key for sorting need no names; most others
/// do, because the reader of a call sees no type.
#[test]
fn tuples_of_signatures_become_types_with_names() {
    const NAMELESS: usize = 131;
    let text = "fn f(&self, (a, b): (u32, u32), c: impl Fn(u8, u8)) -> Vec<(A<u8, u8>, B, C)>;\n\
                fn g(p: (u8, u16)) {}\n// fn h(p: (u8, u8)) {}";
    assert_eq!(nameless(text), ["(u32, u32)", "(A<u8, u8>, B, C)"]);
    let mut all = Vec::new();
    for (name, text) in sources() {
        if name.contains("tests") || name.starts_with("testing") || !name.contains("/src/") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let found = nameless(code.unwrap_or_default());
        all.extend(found.into_iter().map(|tuple| format!("{name}: {tuple}")));
    }
    let list = all.join("\n");
    assert!(
        all.len() <= NAMELESS,
        "{}, give them names:\n{list}",
        all.len()
    );
}

/// One module makes all files (`aerostat_lab::files`), because a name in a directory of another user may be a link that
/// leads elsewhere. What is written below /proc and /dev is no file.
#[test]
fn files_are_made_in_one_place() {
    const WAYS: [&str; 6] = [
        "File::create(",
        "File::create_new(",
        "fs::write(",
        "fs::copy(",
        ".create(true)",
        ".create_new(true)",
    ];
    // The mechanism, and modules that write to the kernel's own files under /proc.
    const ALLOWED: [&str; 6] = [
        "lab/src/files.rs",
        "live/src/namespace.rs",
        "live/src/tap.rs",
        "live/src/kernel.rs",
        "live/src/kernel/tcp.rs",
        "live/src/stations.rs",
    ];
    let mut elsewhere = Vec::new();
    for (name, text) in sources() {
        let own = ["tests", "examples", "testing", "fuzz"];
        if own.iter().any(|part| name.contains(part)) || ALLOWED.contains(&&*name) {
            continue;
        }
        let code = text.split("#[cfg(test)]\n").next().unwrap_or_default();
        let found = code
            .lines()
            .filter(|line| WAYS.iter().any(|way| line.contains(way)));
        elsewhere.extend(found.map(|line| format!("{name}: {}", line.trim())));
    }
    assert!(elsewhere.is_empty(), "{}", elsewhere.join("\n"));
}

/// `thread::spawn` and `Scope::spawn` panic where the system has no room for a thread.
#[test]
fn threads_are_started_with_an_error_in_words() {
    let mut elsewhere = Vec::new();
    for (name, text) in sources() {
        let own = [
            "tests",
            "examples",
            "testing",
            "fuzz",
            "live/src/threads.rs",
        ];
        if own.iter().any(|part| name.contains(part)) {
            continue;
        }
        let code = text.split("#[cfg(test)]\n").next().unwrap_or_default();
        let code = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let found =
            code.filter(|line| line.contains("thread::spawn(") || line.contains("scope.spawn("));
        elsewhere.extend(found.map(|line| format!("{name}: {}", line.trim())));
    }
    assert!(elsewhere.is_empty(), "{}", elsewhere.join("\n"));
}

/// A test of private items stands in the module `tests` beside them; no file belongs to two crates.
#[test]
fn tests_are_where_a_reader_looks_for_them() {
    let mut elsewhere = Vec::new();
    for (name, text) in sources() {
        let mut lines = text.lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            if line.starts_with("#[path") {
                elsewhere.push(format!("{name}: {line}"));
            }
            if line != "#[cfg(test)]" {
                continue;
            }
            let next = lines.peek().copied().unwrap_or_default();
            let next = next.strip_prefix("pub(crate) ").unwrap_or(next);
            let module = next.strip_prefix("mod ");
            if module.is_some_and(|module| !module.starts_with("tests")) {
                elsewhere.push(format!("{name}: {next}"));
            }
        }
    }
    assert!(elsewhere.is_empty(), "{}", elsewhere.join("\n"));
}

/// Parts that a user of a library crate reads first, and that a package has to carry.
#[test]
fn library_crates_have_a_front_page_an_example_a_readme_and_licences() {
    for name in ["wire", "proto", "node", "lab", "sim"] {
        let folder = root().join("crates").join(name);
        let text = std::fs::read_to_string(folder.join("src/lib.rs")).expect("lib.rs");
        let page: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        assert!(
            page.len() >= 20,
            "{name}: front page of {} lines",
            page.len()
        );
        assert!(page.contains(&"//! # Example"), "{name}: no example");
        assert!(page.contains(&"//! ```"), "{name}: no example that runs");
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(folder.join(file).exists(), "{name}: no {file}");
        }
    }
}
