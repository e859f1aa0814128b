//! `timers:`: each value in its range, and related values in their order.

use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::file::{LabFile, LecTimersFile, SscopTimersFile, UniTimersFile};
use crate::model::Timers;
use crate::parameter::Given;
use aerostat_proto::parameters::Value;

/// The timers of the file.
pub(super) fn timers(file: &LabFile, d: &mut Diagnostics) -> Timers {
    let mut all = Timers::default();
    let Some(given) = &file.timers else {
        return all;
    };
    if let Some(lec) = &given.lec {
        for params in [&mut all.lec_v1, &mut all.lec_v2] {
            lec.given.apply(params);
        }
        delays(lec, &all, d);
    }
    if let Some(les) = &given.les {
        les.given.apply(&mut all.les);
    }
    if let Some(arp) = &given.arp {
        arp.given.apply(&mut all.arp);
    }
    if let Some(link) = &given.sscop {
        link.given.apply(&mut all.sscop);
        polls(link, &all, d);
    }
    if let Some(uni) = &given.uni {
        for (_, _, params) in &mut all.uni {
            uni.given.apply(params);
        }
        restarts(uni, &all, d);
    }
    all
}

/// Refuses delays of a LANE client in the wrong order.
fn delays(section: &LecTimersFile, all: &Timers, d: &mut Diagnostics) {
    let least = all.lec_v2.min_reconfigure_delay;
    let most = all.lec_v2.max_reconfigure_delay;
    if most >= least {
        return;
    }
    let [least, most] = [least, most].map(Value::from);
    let text =
        format!("max_reconfigure_delay ({most}) is less than min_reconfigure_delay ({least})");
    let names = ["max_reconfigure_delay", "min_reconfigure_delay"];
    disagree(&section.given, section.place, names, text, d);
}

/// Refuses a link that would be given up before an answer could come.
fn polls(section: &SscopTimersFile, all: &Timers, d: &mut Diagnostics) {
    let silence = all.sscop.timer_no_response;
    let longest = all.sscop.timer_poll.max(all.sscop.timer_keep_alive);
    if silence > longest {
        return;
    }
    let [silence, longest] = [silence, longest].map(Value::from);
    let text = format!(
        "timer_no_response ({silence}) is not longer than the time between POLLs ({longest})"
    );
    let names = ["timer_no_response", "timer_poll", "timer_keep_alive"];
    disagree(&section.given, section.place, names, text, d)
        .hint("a link would be given up before an answer could come");
}

/// Refuses a side that answers a RESTART later than its peer waits for that.
fn restarts(section: &UniTimersFile, all: &Timers, d: &mut Diagnostics) {
    let waits = all.uni.iter().map(|(_, _, params)| params.t316).min();
    let takes = all.uni.iter().map(|(_, _, params)| params.t317).max();
    let (Some(waits), Some(takes)) = (waits, takes) else {
        return;
    };
    if takes < waits {
        return;
    }
    let [waits, takes] = [waits, takes].map(Value::from);
    let text = format!("t317 ({takes}) is not shorter than t316 ({waits})");
    disagree(&section.given, section.place, ["t317", "t316"], text, d)
        .hint("the peer of a RESTART would repeat it before an answer could come");
}

/// Reports values that contradict each other, at the first of these keys that the section has.
pub(super) fn disagree<'d, const N: usize>(
    given: &Given,
    place: Span,
    names: [&'static str; N],
    text: String,
    d: &'d mut Diagnostics,
) -> &'d mut Diagnostic {
    let at = names.iter().find_map(|name| given.at(name));
    d.error(at.unwrap_or(place), text).rests_in(place, names)
}

#[cfg(test)]
mod tests {
    use crate::model::Timers;
    use crate::resolve::tests::{SMALL, lab};
    use aerostat_node::ip::router::ArpParams;
    use aerostat_proto::Duration;
    use aerostat_proto::lane::LecParams;
    use aerostat_proto::sscop;
    use aerostat_proto::uni::TimerValues;

    fn errors(timers: &str) -> String {
        let text = format!("{SMALL}timers: {timers}\n");
        let found = crate::parse("t.atm.yml", &text, &[]);
        found.err().map_or(String::new(), |d| d.to_string())
    }

    #[test]
    fn what_is_given_takes_the_place_of_the_standards_value_and_nothing_else_changes() {
        let text = "timers: { lec: { aging_time: 60s, max_retry_count: 0 }, les: { control_timeout: 30s }, \
            arp: { attempts: 5, retry: 250ms }, sscop: { timer_poll: 100ms }, uni: { t309: 3s } }\n";
        let timers = lab(&format!("{SMALL}{text}")).timers;
        let expected = LecParams {
            aging_time: Duration::from_secs(60),
            max_retry_count: 0,
            ..LecParams::V1
        };
        assert_eq!(timers.lec_v1, expected);
        assert_eq!(
            timers.lec_v2.control_timeout,
            LecParams::DEFAULT.control_timeout
        );
        let expected = ArpParams {
            attempts: 5,
            retry: Duration::from_millis(250),
            ..ArpParams::default()
        };
        assert_eq!(timers.arp, expected);
        let expected = sscop::Params {
            timer_poll: Duration::from_millis(100),
            ..sscop::Params::UNI
        };
        assert_eq!(timers.sscop, expected);
        for (side, version, standard) in Timers::default().uni {
            let expected = TimerValues {
                t309: Duration::from_secs(3),
                ..standard
            };
            assert_eq!(timers.uni(side, version), expected);
        }
        assert_eq!(timers.les.control_timeout, Duration::from_secs(30));
    }

    #[test]
    fn what_is_out_of_its_range_is_told_with_the_range_and_its_place() {
        for (timers, said) in [
            ("{ lec: { aging_time: 9s } }", "aging_time is 10s to 300s"),
            ("{ lec: { vcc_timeout: 25h } }", "vcc_timeout is 0s to 24h"),
            (
                "{ lec: { max_unknown_count: 21 } }",
                "max_unknown_count is 1 to 20",
            ),
            (
                "{ lec: { min_reconfigure_delay: 6s } }",
                "max_reconfigure_delay (5s) is less than min_reconfigure_delay (6s)",
            ),
            (
                "{ lec: { control_backoff: 1 } }",
                "control_backoff is 2 to 5",
            ),
            (
                "{ les: { control_timeout: 1s } }",
                "control_timeout is 10s to 300s",
            ),
            ("{ arp: { attempts: 0 } }", "attempts is 1 to 20"),
            ("{ arp: { retry: 0s } }", "retry is 100ms to 60s"),
            ("{ sscop: { max_cc: 0 } }", "max_cc is 1 to 100"),
            ("{ uni: { t309: 11min } }", "t309 is 100ms to 10min"),
            (
                "{ sscop: { timer_no_response: 2s } }",
                "timer_no_response (2s) is not longer than the time between POLLs (2s)",
            ),
            (
                "{ sscop: { timer_poll: 8s } }",
                "timer_no_response (7s) is not longer than the time between POLLs (8s)",
            ),
            ("{ uni: { t300: 1s } }", "t300"),
            (
                "{ uni: { t317: 2min } }",
                "t317 (120s) is not shorter than t316 (120s)",
            ),
            (
                "{ uni: { t316: 30s } }",
                "t317 (90s) is not shorter than t316 (30s)",
            ),
        ] {
            let found = errors(timers);
            assert!(found.contains(said), "{timers}: {found}");
            assert!(found.starts_with("t.atm.yml:"), "{found}");
        }
        assert_eq!(
            errors("{ lec: { vcc_timeout: 0s }, uni: { t309: 1s } }"),
            ""
        );
    }
}
