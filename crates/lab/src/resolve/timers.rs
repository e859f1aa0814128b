//! `timers:`: each value in its range, and related values in their order.

use crate::diag::Diagnostics;
use crate::file::LabFile;
use crate::model::Timers;
use crate::parameter::Given;
use aerostat_node::ip::router::ArpParams;
use aerostat_proto::Duration;
use aerostat_proto::lane::LecParams;
use aerostat_proto::parameters::{Range, Value};
use aerostat_proto::sscop;
use std::ops::RangeInclusive;

const DAY: u64 = 86_400_000;

/// The timers of the file.
pub(super) fn timers(file: &LabFile, d: &mut Diagnostics) -> Timers {
    let mut all = Timers::default();
    let Some(given) = &file.timers else {
        return all;
    };
    // Ranges; those of times are in milliseconds.
    macro_rules! times {
        ($from:ident, $to:expr; $($field:ident $min:expr, $max:expr;)*) => {
            $( $to.$field = within(&$from.$field, stringify!($field), ms($min)..=ms($max), d); )*
        };
    }
    macro_rules! counts {
        ($from:ident, $to:expr; $($field:ident $min:expr, $max:expr;)*) => {
            $( $to.$field = within(&$from.$field, stringify!($field), $min..=$max, d); )*
        };
    }
    // Ranges of a structure of parameters.
    macro_rules! known {
        ($from:ident, $to:expr, $kind:ty; $($field:ident)*) => {
            $(
                let range = <$kind>::RANGES.$field;
                let given = $from.$field.as_ref();
                $to.$field = given.and_then(|given| given.checked(stringify!($field), range, d));
            )*
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
        counts! { lec, all.lec;
            control_backoff 2, 5;
            max_bus_retries 0, 2;
            max_unknown_count 1, 20;
            max_retry_count 0, 2;
        }
        let mut params = LecParams::default();
        all.lec.apply(&mut params);
        if params.max_reconfigure_delay < params.min_reconfigure_delay {
            let [least, most] =
                [params.min_reconfigure_delay, params.max_reconfigure_delay].map(Value::from);
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
    }
    if let Some(les) = &given.les {
        let range = ms(10_000)..=ms(300_000);
        all.les_control = within(&les.control_timeout, "control_timeout", range, d);
    }
    if let Some(arp) = &given.arp {
        known! { arp, all.arp, ArpParams; retry attempts ageing }
    }
    if let Some(link) = &given.sscop {
        known! { link, all.sscop, sscop::Params;
            timer_cc timer_poll timer_keep_alive timer_no_response timer_idle max_cc
        }
        let mut params = sscop::Params::UNI;
        all.sscop.apply(&mut params);
        let longest = params.timer_poll.max(params.timer_keep_alive);
        if params.timer_no_response <= longest {
            let [silence, longest] = [params.timer_no_response, longest].map(Value::from);
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

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A value of the file, or its mistake. The defaults of timers depend on versions and sides, so a range has none here.
fn within<T: Copy + PartialOrd>(
    given: &Option<impl Given<T>>,
    name: &str,
    range: RangeInclusive<T>,
    d: &mut Diagnostics,
) -> Option<T> {
    given
        .as_ref()?
        .checked(name, Range::new(*range.start(), range), d)
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
