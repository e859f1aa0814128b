//! The answer of a called side: what it may change in an offer.

use aerostat_wire::{Qos, ServiceCategory, TrafficParams};

/// The contract of a call that is answered with `answer` instead of `offered`, both seen from the called side.
///
/// An answer may lower the SDU size of each direction, and the peak rate of a direction where the caller has left a
/// choice: CBR or VBR with a minimum ([`TrafficParams::min_pcr`]), which only a SETUP of UNI 4.0 carries. A value that
/// `answer` does not state (SDU size 0, no rate) is that of the offer.
///
/// Source: Q.2931 §4.5.5 (SDU sizes), Q.2962 §9 (rates; from memory).
///
/// # Errors
/// If the answer asks for anything else: the reason, without a full stop.
pub fn answered(offered: &Qos, answer: &Qos) -> Result<Qos, &'static str> {
    Ok(Qos {
        tx: direction(&offered.tx, &answer.tx)?,
        rx: direction(&offered.rx, &answer.rx)?,
    })
}

/// The terms of a server for an offered call, seen from the server: what is offered, with SDUs of at most `max_sdu`
/// octets in each direction. `None` if the offer has no longer ones. Such a server listens for calls with SDUs of any
/// size.
///
/// Source: RFC 2225 §7.2 (the called side answers with its own size), Q.2931 §4.5.5.
#[must_use]
pub fn within(offered: &Qos, max_sdu: u16) -> Option<Qos> {
    let shorter = |way: TrafficParams| TrafficParams {
        max_sdu: way.max_sdu.min(max_sdu),
        ..way
    };
    let answer = Qos {
        tx: shorter(offered.tx),
        rx: shorter(offered.rx),
    };
    (answer != *offered).then_some(answer)
}

fn direction(
    offered: &TrafficParams,
    answer: &TrafficParams,
) -> Result<TrafficParams, &'static str> {
    use ServiceCategory::{Cbr, NrtVbr, RtVbr};
    fn keeps<T: PartialEq + Default>(answer: T, offered: T) -> bool {
        answer == T::default() || answer == offered
    }
    if answer.category != offered.category {
        return Err("an answer cannot change the class of a direction");
    }
    let kept = keeps(answer.pcr0, offered.pcr0)
        && keeps(answer.min_pcr, offered.min_pcr)
        && keeps(answer.scr, offered.scr)
        && keeps(answer.mbs, offered.mbs)
        && keeps(answer.clp0, offered.clp0)
        && keeps(answer.tagging, offered.tagging)
        && keeps(answer.max_cdv, offered.max_cdv)
        && keeps(answer.second_cdv, offered.second_cdv)
        && keeps(answer.frame_discard, offered.frame_discard);
    if !kept {
        return Err("an answer can change SDU sizes and peak rates only");
    }
    let mut out = *offered;
    match (answer.max_sdu, offered.max_sdu) {
        (0, _) => {}
        (size, 0) => out.max_sdu = size,
        (size, most) if size <= most => out.max_sdu = size,
        _ => return Err("an answer cannot raise an SDU size"),
    }
    if answer.max_pcr.is_some() && answer.max_pcr != offered.max_pcr {
        let flexible =
            matches!(offered.category, Some(Cbr | RtVbr | NrtVbr)) && offered.min_pcr > 0;
        let (Some(rate), Some(most)) = (answer.max_pcr.filter(|_| flexible), offered.max_pcr)
        else {
            return Err(
                "the caller has left no choice of the rate: it gave no min_pcr, or the network is not of UNI 4.0",
            );
        };
        if rate > most {
            return Err("an answer cannot raise the rate");
        }
        if rate < offered.min_pcr.max(offered.scr) {
            return Err("an answer cannot go below the caller's least rate");
        }
        out.max_pcr = Some(rate);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::answered;
    use aerostat_wire::Qos;

    fn qos(text: &str) -> Qos {
        text.parse().expect("a contract")
    }

    #[test]
    fn an_answer_lowers_what_the_caller_left_open() {
        for (offer, answer, result) in [
            ("ubr:sdu=9180", "ubr:sdu=1500", Ok("ubr:sdu=1500")),
            ("ubr:sdu=9180", "ubr", Ok("ubr:sdu=9180")),
            (
                "ubr:sdu=9180",
                "ubr:sdu=9181",
                Err("an answer cannot raise an SDU size"),
            ),
            (
                "ubr:tx:sdu=9180,rx:sdu=100",
                "ubr:tx:sdu=500,rx:sdu=99",
                Ok("ubr:tx:sdu=500,rx:sdu=99"),
            ),
            (
                "ubr:sdu=100",
                "cbr:max_pcr=1,sdu=100",
                Err("an answer cannot change the class of a direction"),
            ),
            (
                "cbr:max_pcr=1000,min_pcr=400,sdu=48",
                "cbr:max_pcr=400",
                Ok("cbr:max_pcr=400,min_pcr=400,sdu=48"),
            ),
            (
                "cbr:max_pcr=1000,min_pcr=400,sdu=48",
                "cbr:max_pcr=399",
                Err("an answer cannot go below the caller's least rate"),
            ),
            (
                "cbr:max_pcr=1000,min_pcr=400,sdu=48",
                "cbr:max_pcr=1001",
                Err("an answer cannot raise the rate"),
            ),
        ] {
            let got = answered(&qos(offer), &qos(answer));
            assert_eq!(got, result.map(qos), "{offer} answered by {answer}");
        }
        let fixed = answered(&qos("cbr:max_pcr=1000,sdu=48"), &qos("cbr:max_pcr=999"));
        assert!(fixed.is_err_and(|why| why.starts_with("the caller has left no choice")));
        let other = answered(
            &qos("cbr:max_pcr=1000,sdu=48"),
            &qos("cbr:max_pcr=1000,cdvt=5"),
        );
        assert!(other.is_err(), "{other:?}");
    }
}
