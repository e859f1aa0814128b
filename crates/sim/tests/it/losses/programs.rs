//! PDUs of programs that are lost, late or under way.

use super::*;

/// Two hosts whose programs are connected.
fn programs(link: &str, writer: &str, reader: &str, rest: &str) -> Vec<Dialogue> {
    let text = format!(
        "switches: {{ s: {{}} }}\nclip: {{ c: {{ subnet: 10.1.0.0/24, server: a }} }}\nhosts:\n  \
         a: {{ on: s, elan: c, ip: 10.1.0.1, sockets: [{writer}] }}\n  \
         b: {{ on: s, elan: c, ip: 10.1.0.2, link: {{ {link} }}, sockets: [{reader}] }}\n{rest}"
    );
    let (_, report) = run(&text);
    for books in &report.dialogues {
        assert_eq!(
            books.offered,
            books.sent + books.refused + books.waiting,
            "{books:?}"
        );
        if let Some(delivered) = books.delivered {
            let gone = books.lost() + books.under_way;
            assert_eq!(books.sent, delivered + gone, "{books:?}");
        }
    }
    report.dialogues
}

#[test]
fn the_pdus_of_programs_balance_over_a_connection_and_its_echo() {
    let writer = "{ name: w, call: b, pdus: 50, rate: 100pps }";
    let reader = "{ name: r, listen: echo }";
    let books = programs("rate: oc3", writer, reader, "until: 5s\n");
    let ends = books
        .iter()
        .map(|books| (&*books.from.1, books.to.as_ref().map(|to| &*to.1)));
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [("w", Some("r")), ("r", Some("w"))]
    );
    for books in &books {
        assert_eq!((books.sent, books.delivered, books.late), (50, Some(50), 0));
        assert_eq!(books.complaint(), None);
    }
}

#[test]
fn pdus_that_a_link_loses_and_pdus_that_are_late_are_warnings_unless_they_are_expected() {
    let lossy = "rate: oc3, loss: 0.02";
    let reader = "{ name: r, listen: sink }";
    for (expect, quiet) in [
        ("", false),
        (", expect: loss", true),
        (", expect: nothing", false),
    ] {
        let writer = format!("{{ name: w, call: b, pdus: 100, rate: 100pps{expect} }}");
        let books = programs(lossy, &writer, reader, "until: 5s\n");
        let books = &books[0];
        assert!((10..90).contains(&books.lost()), "{books:?}");
        assert_eq!(
            books.complaint().is_none(),
            quiet,
            "{:?}",
            books.complaint()
        );
    }
    // 4400 cells/s into a contract of 2000, and room for 4096: the last PDUs are late, and all arrive.
    let writer =
        "{ name: w, call: b, qos: 'cbr:tx:max_pcr=2000,rx:max_pcr=2000', pdus: 400, rate: 200pps }";
    let books = programs("rate: oc3", writer, reader, "until: 9s\n");
    assert_eq!((books[0].sent, books[0].delivered), (400, Some(400)));
    let late = books[0].late;
    let words = format!("program a/w: of 400 PDUs {late} late");
    assert_eq!(books[0].complaint(), Some(words));
    assert!(late > 0);
}

#[test]
fn a_call_that_is_cut_off_before_its_last_pdu_is_a_warning_that_says_when_and_why() {
    let (writer, reader) = (
        "{ name: w, call: b, pdus: 100, rate: 10pps }",
        "{ name: r, listen: sink }",
    );
    let complaint = |rest: &str| {
        let books = programs("rate: oc3", writer, reader, &format!("until: 15s\n{rest}"));
        (books[0].offered, books[0].complaint())
    };
    assert_eq!(complaint(""), (100, None));
    // The called host is gone, and the switch releases the call; nothing is under way between two PDUs.
    let (offered, words) = complaint("faults: [{ at: 5050ms, crash: b }]\n");
    let words = words.expect("a warning");
    let begin = format!("its connection ended after {offered} of 100 PDUs: ");
    assert!(offered < 100 && words.contains(&begin), "{words}");
    // The calling host is gone, and its program with it.
    let (offered, words) = complaint("faults: [{ at: 5050ms, crash: a }]\n");
    let words = words.expect("a warning");
    let end = format!("ended after {offered} of 100 PDUs: its host was switched off");
    assert!(offered < 100 && words.ends_with(&end), "{words}");
    // The run ends while the program writes: nothing was cut off.
    let books = programs("rate: oc3", writer, reader, "until: 5s\n");
    assert_eq!(books[0].complaint(), None);
}

#[test]
fn a_permanent_connection_has_its_books_while_pdus_are_under_way() {
    let (writer, reader) = (
        "{ name: w, vc: 0.100, pdus: 1000, size: 5000, rate: 1000pps, start: 1s }",
        "{ name: r, vc: 0.101, listen: sink }",
    );
    let pvc = "pvcs: [{ from: a, vc: 0.100, to: b, to_vc: 0.101 }]\nuntil: 1500ms\n";
    let books = programs("rate: oc3, delay: 50ms", writer, reader, pvc);
    let books = &books[0];
    assert_eq!(books.lost(), 0, "{books:?}");
    // 50 ms of the line.
    assert!((49..=53).contains(&books.under_way), "{books:?}");
}

/// Three calls to a host with a slow port: cells with a contract overtake CONNECT ACKNOWLEDGE there. An echo has to
/// wait for it.
const CALLED: &str = "
switches: { s1: {} }
clip: { n: { subnet: 10.0.0.0/24, server: b } }
hosts:
  a: { on: s1, elan: n, ip: 10.0.0.1, sockets: [{ name: w, call: b, size: 4096, pdus: 100, rate: 100pps, start: 1s, qos: \"cbr:max_pcr=10000\" }] }
  b: { on: s1, elan: n, ip: 10.0.0.2, link: { rate: 25.6 }, sockets: [{ name: r, listen: sink }, { name: e, listen: echo, selector: e1 }] }
  c: { on: s1, elan: n, ip: 10.0.0.3, sockets: [{ name: x, call: b, size: 48, pdus: 1, rate: 1pps, start: 1s }, { name: y, call: b/e1, selector: e1, size: 40, pdus: 1, rate: 1pps, start: 1s, hold: 1s, qos: \"cbr:max_pcr=10000\" }] }
until: 5s
";

#[test]
fn cells_that_overtake_connect_acknowledge_are_received() {
    for start in ["1s", "1000010us", "1000020us", "1000050us"] {
        let (_, report) = run(&CALLED.replace("1pps, start: 1s", &format!("1pps, start: {start}")));
        for books in &report.dialogues {
            assert_eq!(books.delivered, Some(books.offered), "{start}: {books:?}");
        }
        assert_eq!(report.dialogues.len(), 4, "{start}");
    }
}
