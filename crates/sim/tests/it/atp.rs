//! ATP between programs: on a clean line beside its closed form, with loss, and when the connection or a host goes
//! away.

use crate::losses;
use aerostat_lab::dialogues::Dialogue;
use aerostat_lab::report::RunReport;
use aerostat_node::host::sockets::programs::{Figures, Outcome};

/// Two hosts at a switch; the caller sends by ATP.
fn lab(profile: &str, atp: &str, link: &str, rest: &str) -> String {
    format!(
        "switches: {{ s: {{}} }}\nclip: {{ n: {{ subnet: 10.1.0.0/24, server: a }} }}\nhosts:\n\
         \x20 a: {{ on: s, elan: n, ip: 10.1.0.1, sockets: [{{ name: w, call: b, hold: 10s, atp: {{ profile: {profile}, {atp} }} }}] }}\n\
         \x20 b: {{ on: s, elan: n, ip: 10.1.0.2, {link} sockets: [{{ name: r, listen: echo, atp: {{ profile: {profile} }} }}] }}\n{rest}"
    )
}

fn row(report: &RunReport, node: &str) -> Figures {
    let mut all = report.dialogues.iter().filter(|row| row.from.0 == node);
    all.next().and_then(|row| row.atp).expect("a row of ATP")
}

/// Nothing appears twice or vanishes: offered = sent + refused + waiting, sent = delivered + lost + under way.
fn balanced(rows: &[Dialogue]) {
    for row in rows {
        assert_eq!(row.offered, row.sent + row.refused + row.waiting, "{row:?}");
        let ends = row.delivered.expect("a program reads") + row.lost() + row.under_way;
        assert_eq!(row.sent, ends, "{row:?}");
    }
}

/// One message of 1 MiB is 115 packets: 114 of 9180 octets in 192 cells, and one of 2516 octets in 53 cells.
#[test]
fn a_mebibyte_takes_the_time_of_its_cells_with_both_profiles() {
    let (_, report) = losses::run(include_str!("../../../../labs/atp.atm.yml"));
    let cells = 114.0 * 192.0 + 53.0;
    let line = cells / 353_207.5;
    for (node, reader) in [("urku", "sello"), ("kulu", "basso")] {
        let (sent, came) = (row(&report, node), row(&report, reader));
        assert_eq!(
            (sent.counters.packets_sent, sent.counters.packets_repeated),
            (115, 0)
        );
        assert_eq!((came.received.messages, came.received.octets), (1, 1 << 20));
        assert_eq!([sent.outcome, came.outcome], [Outcome::Complete; 2]);
        // The last acknowledgement comes within the cells of two short PDUs and the delays of four links.
        let more = sent.sent.time.as_secs_f64() - line;
        assert!((0.0..100e-6).contains(&more), "{node}: {more}");
        // The receiver's time has the cells behind the first packet, and so its octets: no rate is above the line's.
        let behind = came.received.time.as_secs_f64() - (cells - 192.0) / 353_207.5;
        assert!(behind.abs() < 1e-6, "{reader}: {behind}");
        assert_eq!(came.received.before, 9176);
    }
    balanced(&report.dialogues);
}

#[test]
fn cells_that_are_lost_cost_time_and_no_message_both_ways() {
    for profile in ["report", "adaptive"] {
        let atp = "bytes: 1MiB, message: 100kB";
        let text = lab(profile, atp, "link: { loss: 1e-4 },", "until: 60s\n");
        let (_, report) = losses::run(&text);
        let (sent, echo) = (row(&report, "a"), row(&report, "b"));
        let lost: u64 = report.dialogues.iter().map(Dialogue::lost).sum();
        assert!(lost > 0 && sent.counters.packets_repeated > 0, "{profile}");
        assert_eq!(sent.left, 0);
        for end in [sent, echo] {
            assert_eq!(
                (end.sent.octets, end.received.octets),
                (1 << 20, 1 << 20),
                "{profile}"
            );
            assert_eq!(end.received.messages, sent.sent.messages);
        }
        balanced(&report.dialogues);
    }
}

/// A host that is switched off in the middle, and a line that goes down: both ends tell an outcome, and the books
/// balance.
#[test]
fn an_end_that_vanishes_leaves_an_outcome_at_both_ends() {
    for (fault, outcome) in [
        ("{ at: 1200ms, crash: b }", [None, Some(Outcome::Off)]),
        ("{ at: 1200ms, crash: a }", [Some(Outcome::Off), None]),
        ("{ at: 1200ms, link_down: b-s }", [None, None]),
    ] {
        for profile in ["report", "adaptive"] {
            let rest = format!("until: 30s\nfaults: [{fault}]\n");
            let (_, report) = losses::run(&lab(profile, "bytes: 64MiB", "", &rest));
            let ends = [row(&report, "a"), row(&report, "b")];
            for (end, wanted) in ends.iter().zip(outcome) {
                assert!(
                    !matches!(end.outcome, Outcome::Open | Outcome::Complete),
                    "{fault}: {end:?}"
                );
                assert!(
                    wanted.is_none_or(|wanted| wanted == end.outcome),
                    "{fault}: {end:?}"
                );
            }
            assert!(ends[0].left > 0);
            let told = report.dialogues.iter().filter_map(Dialogue::complaint);
            assert!(told.count() > 0, "a warning");
            for row in &report.dialogues {
                assert_eq!(row.offered, row.sent + row.refused + row.waiting, "{row:?}");
            }
        }
    }
}

/// The series of a window begins and ends with the table, has its smallest and largest value, and costs the connection
/// nothing. A window of 1 sends a packet in each round trip, so quick start is seen packet by packet.
#[test]
fn the_series_of_a_window_has_every_change() {
    for (profile, window) in [("report", 10.0), ("adaptive", 10.0), ("report", 1.0)] {
        let atp = format!("bytes: 4MiB, message: 1MiB, initial_window: {window}");
        let plain = lab(profile, &atp, "link: { delay: 2ms },", "until: 60s\n");
        let (_, without) = losses::run(&plain);
        assert!(without.windows.is_empty());
        let text = plain.replace("bytes: 4MiB", "series: true, bytes: 4MiB");
        let (_, report) = losses::run(&text);
        let figures = row(&report, "a");
        assert_eq!(figures, row(&without, "a"));
        assert_eq!(figures.steps_left_out, 0);
        let steps = &report.windows;
        assert!(
            steps
                .iter()
                .all(|step| step.at == ("a".to_owned(), "w".to_owned()))
        );
        let windows: Vec<u32> = steps.iter().map(|step| step.step.window).collect();
        assert!(windows.len() > 3, "{windows:?}");
        let [least, most, last] = figures.window;
        assert_eq!(windows.first(), Some(&(window as u32 * 8)));
        assert_eq!(windows.last(), Some(&last));
        assert_eq!(
            (windows.iter().min(), windows.iter().max()),
            (Some(&least), Some(&most))
        );
        assert!(windows.windows(2).all(|two| two[0] != two[1]));
        let times = steps.windows(2).map(|two| two[0].step.at <= two[1].step.at);
        assert!(times.into_iter().all(|order| order));
        if window == 1.0 {
            // Quick start doubles once in a round trip of 4 ms until the way is full.
            let doubled = windows
                .windows(2)
                .take_while(|two| two[1] == 2 * two[0])
                .count();
            assert!(doubled >= 3, "{windows:?}");
            for two in steps[1..=doubled].windows(2) {
                let apart = two[1].step.at.since(two[0].step.at).as_secs_f64();
                assert!((0.004..0.009).contains(&apart), "{apart}");
            }
        }
    }
}
