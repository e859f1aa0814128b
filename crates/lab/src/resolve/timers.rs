//! `timers:`: each value in its range, and related values in their order.

use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{LabFile, Time};
use crate::model::Timers;
use aerostat_proto::Duration;
use aerostat_proto::lane::LecParams;
use aerostat_proto::sscop;

const DAY: u64 = 86_400_000;

/// The timers of the file.
pub(super) fn timers(file: &LabFile, d: &mut Diagnostics) -> Timers {
    let mut all = Timers::default();
    let Some(given) = &file.timers else {
        return all;
    };
    // Ranges in milliseconds.
    macro_rules! times {
        ($from:ident, $to:expr; $($field:ident $min:expr, $max:expr;)*) => {
            $( $to.$field = time($from.$field.as_ref(), stringify!($field), ($min, $max), d); )*
        };
    }
    if let Some(lec) = &given.lec {
        times! { lec, all.lec;
            control_timeout 10_000, 300_000;
            initial_control_timeout 1000, 10_000;
            max_unknown_time 1000, 60_000;
            vcc_timeout 0, DAY;
            aging_time 10_000, 300_000;
            forward_delay 4000, 30_000;
            expected_arp_time 1000, 30_000;
            flush_timeout 1000, 4000;
            path_switching_delay 1000, 8000;
            connection_completion 1000, 10_000;
            forward_disconnect 10_000, 300_000;
            min_reconfigure_delay 1, 10_000;
            max_reconfigure_delay 1, 10_000;
        }
        let small = |given: Option<&At<u64>>, name, range, d: &mut Diagnostics| {
            number(given, name, range, d)?.try_into().ok()
        };
        let factor = lec.control_backoff.as_ref();
        all.lec.control_backoff = small(factor, "control_backoff", (2, 5), d);
        let repeats = lec.max_bus_retries.as_ref();
        all.lec.max_bus_retries = small(repeats, "max_bus_retries", (0, 2), d);
        let mut params = LecParams::default();
        all.lec.apply(&mut params);
        if params.max_reconfigure_delay < params.min_reconfigure_delay {
            let [least, most] =
                [params.min_reconfigure_delay, params.max_reconfigure_delay].map(text);
            let given = lec.max_reconfigure_delay.as_ref();
            let given = given.or(lec.min_reconfigure_delay.as_ref());
            let at = given.map_or(lec.place, |given| given.at);
            d.error(
                at,
                format!(
                    "max_reconfigure_delay ({most}) is less than min_reconfigure_delay ({least})"
                ),
            )
            .rests_in(
                lec.place,
                ["min_reconfigure_delay", "max_reconfigure_delay"],
            );
        }
        let count = |given: Option<&At<u64>>, name, range, d: &mut Diagnostics| {
            let value = number(given, name, range, d)?;
            u16::try_from(value).ok()
        };
        let frames = lec.max_unknown_count.as_ref();
        all.lec.max_unknown_count = count(frames, "max_unknown_count", (1, 20), d);
        let retries = lec.max_retry_count.as_ref();
        all.lec.max_retry_count = count(retries, "max_retry_count", (0, 2), d);
    }
    if let Some(les) = &given.les {
        let range = (10_000, 300_000);
        let control = les.control_timeout.as_ref();
        all.les_control = time(control, "control_timeout", range, d);
    }
    if let Some(arp) = &given.arp {
        times! { arp, all.arp;
            retry 100, 60_000;
            ageing 1000, DAY;
        }
        let attempts = number(arp.attempts.as_ref(), "attempts", (1, 20), d);
        all.arp.attempts = attempts.and_then(|count| count.try_into().ok());
    }
    if let Some(link) = &given.sscop {
        times! { link, all.sscop;
            timer_cc 10, 60_000;
            timer_poll 10, 60_000;
            timer_keep_alive 10, 60_000;
            timer_no_response 20, 600_000;
            timer_idle 10, 600_000;
        }
        let most = number(link.max_cc.as_ref(), "max_cc", (1, 100), d);
        all.sscop.max_cc = most.and_then(|count| count.try_into().ok());
        let mut params = sscop::Params::UNI;
        all.sscop.apply(&mut params);
        let longest = params.timer_poll.max(params.timer_keep_alive);
        if params.timer_no_response <= longest {
            let [silence, longest] = [params.timer_no_response, longest].map(text);
            let at = link
                .timer_no_response
                .as_ref()
                .map_or(link.place, |given| given.at);
            d.error(
                at,
                format!("timer_no_response ({silence}) is not longer than the time between POLLs ({longest})"),
            )
            .hint("a link would be given up before an answer could come")
            .rests_in(link.place, ["timer_no_response", "timer_poll", "timer_keep_alive"]);
        }
    }
    if let Some(uni) = &given.uni {
        times! { uni, all.uni;
            t303 100, 60_000;
            t308 100, 600_000;
            t309 100, 600_000;
            t310 100, 600_000;
            t313 100, 60_000;
            t316 1000, 600_000;
            t322 100, 60_000;
            t398 100, 60_000;
            t399 100, 600_000;
        }
    }
    all
}

fn time(
    given: Option<&At<Time>>,
    name: &str,
    (min, max): (u64, u64),
    d: &mut Diagnostics,
) -> Option<Duration> {
    let given = given?;
    let [min, max] = [min, max].map(Duration::from_millis);
    if !(min..=max).contains(&given.value.0) {
        let [min, max] = [min, max].map(text);
        d.error(given.at, format!("{name} is {min} to {max}"));
    }
    Some(given.value.0)
}

fn number(
    given: Option<&At<u64>>,
    name: &str,
    (min, max): (u64, u64),
    d: &mut Diagnostics,
) -> Option<u64> {
    let given = given?;
    if !(min..=max).contains(&given.value) {
        d.error(given.at, format!("{name} is {min} to {max}"));
    }
    Some(given.value)
}

/// A duration in the syntax of the file.
fn text(of: Duration) -> String {
    match u64::try_from(of.as_millis()).unwrap_or(u64::MAX) {
        DAY => "24h".to_owned(),
        600_000 => "10min".to_owned(),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, lab};
    use aerostat_node::ip::router::ArpParams;
    use aerostat_proto::Duration;
    use aerostat_proto::lane::LecParams;
    use aerostat_proto::sscop;
    use aerostat_proto::uni::{Side, TimerValues, Version};

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
        let mut lec = LecParams::v1();
        timers.lec.apply(&mut lec);
        let expected = LecParams {
            aging_time: Duration::from_secs(60),
            max_retry_count: 0,
            ..LecParams::v1()
        };
        assert_eq!(lec, expected);
        let mut arp = ArpParams::default();
        timers.arp.apply(&mut arp);
        let expected = ArpParams {
            attempts: 5,
            retry: Duration::from_millis(250),
            ..ArpParams::default()
        };
        assert_eq!(arp, expected);
        let mut link = sscop::Params::UNI;
        timers.sscop.apply(&mut link);
        assert_eq!(link.timer_poll, Duration::from_millis(100));
        assert_eq!(link.timer_idle, sscop::Params::UNI.timer_idle);
        let mut uni = TimerValues::standard(Side::User, Version::Uni31);
        timers.uni.apply(&mut uni);
        assert_eq!(uni.t309, Duration::from_secs(3));
        assert_eq!(timers.les_control, Some(Duration::from_secs(30)));
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
