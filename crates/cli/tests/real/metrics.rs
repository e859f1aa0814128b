//! `aerostat metrics`: read by the parsers and by the server of Prometheus.

use crate::live::{Killed, Runtime, has, signal, wait_for, wait_for_end};
use crate::root;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The server of the metrics, and its address `127.0.0.1:PORT`.
fn server(runtime: &Runtime, args: &[&str]) -> (Killed, String) {
    let all = [&["metrics", "--listen", "127.0.0.1:0"], args].concat();
    let mut child = runtime
        .command(&all)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut address).unwrap();
    let host = address.trim().strip_prefix("http://").unwrap();
    let host = host.strip_suffix("/metrics").unwrap().to_owned();
    (Killed(child), host)
}

/// Head and body of an answer.
fn get(host: &str, path: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(host).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let named = if headers.contains("Host:") {
        String::new()
    } else {
        format!("Host: {host}\r\n")
    };
    write!(
        stream,
        "GET {path} HTTP/1.1\r\n{named}{headers}Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
    (head.to_owned(), body.to_owned())
}

/// Feeds a program, and gives its success and what it says.
fn fed(mut command: Command, text: &str) -> (bool, String) {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// Python's parser of OpenMetrics, which refuses what the standard refuses.
const PARSER: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
families = list(parse(sys.stdin.read()))
print(len(families), sum(len(family.samples) for family in families))
";

fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn metrics_are_those_of_the_lab_and_pass_the_parsers_of_prometheus() {
    let runtime = Runtime::new("metrics");
    assert_eq!(runtime.run(&["metrics"]).code, 4);
    runtime.ok(&["up", "-d", "-q", "--embedded", "labs/two-subnets.atm.yml"]);
    let (mut server, host) = server(&runtime, &["--counters"]);
    let text = || get(&host, "/metrics", "").1;
    let received = r#"aerostat_flow_received_packets_total{lab="two-subnets","#;
    wait_for("traffic", || {
        value(&text(), received).is_some_and(|count| count > 5.0)
    });
    wait_for("a shortcut", || text().contains("aerostat_shortcuts{"));
    runtime.ok(&["fault", "link-down", "s1-s2"]);
    runtime.ok(&["fault", "crash", "sello"]);
    let text = text();
    for (series, wanted) in [
        (r#"aerostat_lab_up{lab="two-subnets"}"#, 1.0),
        (r#"aerostat_link_up{lab="two-subnets",link="s1-s2"}"#, 0.0),
        (r#"aerostat_link_up{lab="two-subnets",link="urku-s1"}"#, 1.0),
        (r#"aerostat_node_up{lab="two-subnets",node="sello","#, 0.0),
        (r#"aerostat_node_up{lab="two-subnets",node="urku","#, 1.0),
        (r#"aerostat_faults{lab="two-subnets",what="link"}"#, 1.0),
        ("aerostat_left_out_series", 0.0),
    ] {
        assert_eq!(value(&text, series), Some(wanted), "{series} in {text}");
    }
    assert!(text.contains(r#"kind="mpc","#) && text.contains("aerostat_port_sent_cells_total"));

    // Who prefers it gets OpenMetrics; other paths, names and pages get what docs/view.md says.
    let (head, open) = get(
        &host,
        "/metrics",
        "Accept: application/openmetrics-text\r\n",
    );
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(open.ends_with("# EOF\n") && !text.contains("# EOF"));
    for (path, headers, status) in [
        ("/", "", "404"),
        ("/metrics", "Host: evil.example\r\n", "421"),
        ("/metrics", "Origin: http://evil.example\r\n", "403"),
    ] {
        let (head, _) = get(&host, path, headers);
        assert_eq!(head.split(' ').nth(1), Some(status), "{path} {headers}");
    }

    let mut once = runtime.ok(&["metrics"]);
    assert!(!once.contains("aerostat_inspect_total"));
    if has("promtool") {
        for text in [&text, &once] {
            let mut check = Command::new("promtool");
            check.args(["check", "metrics"]);
            let (ok, said) = fed(check, text);
            assert!(ok && said.is_empty(), "{said}");
        }
        // It finds what is wrong.
        once.push_str("x{\n");
        let mut check = Command::new("promtool");
        check.args(["check", "metrics"]);
        assert!(!fed(check, &once).0);
    } else {
        println!("skipped in part: needs promtool (Debian's package prometheus)");
    }
    let python = || {
        let mut python = Command::new("python3");
        python.args(["-c", PARSER]);
        python
    };
    if fed(python(), "# EOF\n").0 {
        let (ok, said) = fed(python(), &open);
        assert!(ok, "{said}");
        assert!(!fed(python(), &text).0, "the other format has no end");
    } else {
        println!("skipped in part: needs python3-prometheus-client");
    }
    // A lab that is asked for by name and ends is down, and the server goes on.
    runtime.down_with_warnings();
    assert!(!get(&host, "/metrics", "").1.contains("aerostat_lab_up"));
    signal(&server.0.id().to_string(), "TERM");
    assert_eq!(wait_for_end(&mut server.0), 0);
}

/// A port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The answer of Prometheus to a query.
fn query(port: u16, query: &str) -> Option<Value> {
    let escaped: String = query.bytes().map(|octet| format!("%{octet:02X}")).collect();
    TcpStream::connect(("127.0.0.1", port)).ok()?;
    let path = format!("/api/v1/query?query={escaped}");
    // The answer may come in chunks, whose sizes stand in lines of their own.
    let (_, body) = get(&format!("127.0.0.1:{port}"), &path, "");
    let json = body.get(body.find('{')?..=body.rfind('}')?)?;
    serde_json::from_str(json).ok()
}

#[test]
fn prometheus_scrapes_a_lab_and_answers_every_query_of_the_dashboard() {
    if !has("prometheus") {
        println!("skipped: needs prometheus");
        return;
    }
    let runtime = Runtime::new("scrape");
    runtime.ok(&["up", "-d", "-q", "--embedded", "labs/two-subnets.atm.yml"]);
    let (_server, host) = server(&runtime, &[]);
    let config = runtime.directory.join("prometheus.yml");
    let text = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs: [{{ job_name: aerostat, static_configs: [{{ targets: ['{host}'] }}] }}]\n"
    );
    std::fs::write(&config, text).unwrap();
    let port = free_port();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            runtime.directory.join("tsdb").display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _prometheus = Killed(child);
    let found = |wanted: &str| -> usize {
        let answer = query(port, wanted).unwrap_or_default();
        answer["data"]["result"].as_array().map_or(0, Vec::len)
    };
    wait_for("a scrape", || {
        found(r#"aerostat_lab_up{lab="two-subnets"} == 1"#) == 1
    });
    runtime.ok(&["fault", "link-down", "s1-s2"]);
    runtime.ok(&["fault", "crash", "sello"]);
    let dashboard = std::fs::read_to_string(root().join("docs/metrics-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let wanted = target["expr"]
                .as_str()
                .unwrap()
                .replace("$lab", "two-subnets");
            wait_for(&wanted, || found(&wanted) > 0);
        }
    }
}
