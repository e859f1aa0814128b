//! Conversion between [`Qos`] and the elements that carry it: AAL parameters, traffic descriptor, bearer capability,
//! QoS.
//!
//! Forward is the direction from the calling side; a [`Qos`] here is always seen from there (`tx` is forward).

use super::bearer::{Bearer, QosClass};
use super::fields::Fields;
use super::ie::{Aal, Ie};
use super::version::Version;
use crate::qos::{Qos, ServiceCategory, TrafficParams};
use core::time::Duration;

/// Peak cell rate that stands for "line rate": OC-3, 353207 cells/s, as linux-atm announces it.
pub const LINE_RATE: u32 = 353_207;

/// Traffic management options: frames of the forward direction may be discarded, and those of the backward direction.
/// Source: UNI 4.0 §2.1.
const FRAME_DISCARD: [u32; 2] = [0x80, 0x40];
/// Traffic management options: cells of the forward direction may be tagged, and those of the backward direction.
/// Source: UNI 3.1 §5.4.5.6.
const TAGGING: [u32; 2] = [0x01, 0x02];
const OPTIONS: u8 = 0xbf;

/// The elements for a connection, in the order AAL parameters, traffic descriptor, bearer, QoS.
///
/// A direction without a category carries nothing: its rate is 0. Larger rates than 24 bits hold are reduced to the
/// largest one. GFR is announced as best effort: no element of these versions can say more.
#[must_use]
pub fn elements(qos: &Qos, multipoint: bool, version: Version) -> [Ie; 4] {
    let category = category(qos);
    [
        Ie::Aal(aal(qos, version)),
        Ie::Traffic(traffic(qos, category, version)),
        Ie::Bearer(bearer(category, clp0(qos), multipoint, version)),
        Ie::Qos(qos_class(category, version)),
    ]
}

fn category(qos: &Qos) -> ServiceCategory {
    let either = qos.tx.category.or(qos.rx.category);
    match either.unwrap_or(ServiceCategory::Ubr) {
        ServiceCategory::Gfr => ServiceCategory::Ubr,
        other => other,
    }
}

/// True if a direction has a rate of cells with CLP 0 only, so that no cell with CLP 1 is guaranteed.
const fn clp0(qos: &Qos) -> bool {
    qos.tx.clp0 || qos.rx.clp0 || qos.tx.pcr0 > 0 || qos.rx.pcr0 > 0
}

/// AAL parameters for the SDU sizes of a connection; UNI 3.0 adds the mode.
#[must_use]
pub fn aal(qos: &Qos, version: Version) -> Aal {
    let (forward, backward) = (qos.tx.max_sdu, qos.rx.max_sdu);
    if forward == 0 && backward == 0 {
        return Aal::Aal5(Fields::new().with(0x84, 0));
    }
    match Aal::aal5(forward, backward) {
        Aal::Aal5(mut fields) if version == Version::Uni30 => {
            fields.insert_before(0x84, 0x83, 1);
            Aal::Aal5(fields)
        }
        aal => aal,
    }
}

fn rate(direction: &TrafficParams) -> u32 {
    let pcr = direction.max_pcr.unwrap_or(LINE_RATE).min(0xff_ffff);
    direction.category.map_or(0, |_| pcr)
}

fn traffic(qos: &Qos, category: ServiceCategory, version: Version) -> Fields {
    let both = [qos.tx, qos.rx];
    let of = |d: &TrafficParams, value: u32| d.category.map_or(0, |_| value.min(0xff_ffff));
    let mut fields = Fields::new();
    for (id, direction) in [(0x82, &qos.tx), (0x83, &qos.rx)] {
        if category == ServiceCategory::Cbr && direction.pcr0 > 0 {
            fields = fields.with(id, of(direction, direction.pcr0));
        }
    }
    let pcr = fields.with(0x84, rate(&qos.tx)).with(0x85, rate(&qos.rx));
    let mut fields = match category {
        ServiceCategory::Ubr | ServiceCategory::Gfr => pcr.with(0xbe, 0),
        ServiceCategory::Cbr => pcr,
        ServiceCategory::RtVbr | ServiceCategory::NrtVbr => sustained(pcr, &both),
        ServiceCategory::Abr => pcr
            .with(0x92, of(&qos.tx, qos.tx.min_pcr))
            .with(0x93, of(&qos.rx, qos.rx.min_pcr)),
    };
    // The bits of frame discard are spare in UNI 3.0 and 3.1.
    let frames = both.map(|d| d.frame_discard == Some(true) && version >= Version::Uni40);
    let bits = FRAME_DISCARD.iter().zip(frames);
    let bits = bits.chain(TAGGING.iter().zip(both.map(|d| d.tagging)));
    let options = bits
        .filter(|(_, asked)| *asked)
        .fold(0, |all, (bit, _)| all | bit);
    if options != 0 {
        fields = fields.with(OPTIONS, options);
    }
    fields
}

/// Adds sustainable rates and burst sizes. A direction that carries nothing has the form of the other one.
fn sustained(fields: Fields, both: &[TrafficParams; 2]) -> Fields {
    let form = |d: &TrafficParams| match d.category {
        Some(_) => d.clp0,
        None => both.iter().any(|other| other.clp0),
    };
    let mut fields = fields;
    for (back, direction) in (0..).zip(both) {
        let id = if form(direction) { 0x88 } else { 0x90 };
        let scr = direction.category.map_or(0, |_| direction.scr);
        fields = fields.with(id + back, scr.min(0xff_ffff));
    }
    for (back, direction) in (0..).zip(both) {
        let id = if form(direction) { 0xa0 } else { 0xb0 };
        // A burst of which no size is given is one cell.
        let least = u32::from(direction.scr > 0);
        let mbs = direction.category.map_or(0, |_| direction.mbs.max(least));
        fields = fields.with(id + back, mbs.min(0xff_ffff));
    }
    fields
}

/// The minimum desired cell rates of a best-effort connection that has some. Source: addendum to UNI Signalling 4.0 for
/// the differentiated UBR (from memory where the text was not available).
#[must_use]
pub fn desired(qos: &Qos) -> Option<Ie> {
    let of = |d: &TrafficParams| match d.category {
        Some(ServiceCategory::Ubr) => d.min_pcr.min(0xff_ffff),
        _ => 0,
    };
    let (forward, backward) = (of(&qos.tx), of(&qos.rx));
    (forward > 0 || backward > 0).then(|| Ie::MinimumCellRate {
        origin: 0,
        fields: Fields::new().with(0x00, forward).with(0x02, backward),
    })
}

/// The connection with the minimum desired cell rates of this element, which count for best effort only.
#[must_use]
pub fn with_desired(mut qos: Qos, rates: &Fields) -> Qos {
    for (id, direction) in [(0x00, &mut qos.tx), (0x02, &mut qos.rx)] {
        if direction.category == Some(ServiceCategory::Ubr) {
            let most = direction.max_pcr.unwrap_or(u32::MAX);
            direction.min_pcr = rates.get(id).unwrap_or(0).min(most);
        }
    }
    qos
}

/// The minimum acceptable traffic descriptor of a connection with a guaranteed peak rate that can do with a lower one:
/// CBR or VBR with a `min_pcr` below its peak. Source: Q.2962 §8.2.2, UNI 4.0 §8.
#[must_use]
pub fn minimum(qos: &Qos) -> Option<Fields> {
    use ServiceCategory::{Cbr, NrtVbr, RtVbr};
    let flexible = |d: &TrafficParams| {
        matches!(d.category, Some(Cbr | RtVbr | NrtVbr)) && d.min_pcr > 0 && d.min_pcr < rate(d)
    };
    let least = |d: &TrafficParams| if flexible(d) { d.min_pcr } else { rate(d) };
    let any = flexible(&qos.tx) || flexible(&qos.rx);
    any.then(|| {
        let forward = Fields::new().with(0x84, least(&qos.tx));
        forward.with(0x85, least(&qos.rx))
    })
}

/// The transfer capability: with the commitment on all cells, or on those with CLP 0. In UNI 3.0 and 3.1 the octet has
/// traffic type and timing, which do not tell these two apart.
fn bearer(category: ServiceCategory, clp0: bool, multipoint: bool, version: Version) -> Bearer {
    let old = version < Version::Uni40;
    let atc = match category {
        // Like linux-atm: octet 5a with class X is required in UNI 3.0 only.
        ServiceCategory::Ubr | ServiceCategory::Gfr => (version == Version::Uni30).then_some(0),
        ServiceCategory::Cbr => Some(if old || clp0 { 0x05 } else { 0x07 }),
        ServiceCategory::RtVbr => Some(if old || clp0 { 0x09 } else { 0x13 }),
        ServiceCategory::NrtVbr => Some(if old || clp0 { 0x0a } else { 0x0b }),
        ServiceCategory::Abr => Some(0x0c),
    };
    Bearer {
        class: Bearer::X,
        atc,
        clipping: 0,
        multipoint,
    }
}

fn qos_class(category: ServiceCategory, version: Version) -> QosClass {
    let class = match category {
        ServiceCategory::Cbr => 1,
        ServiceCategory::RtVbr => 2,
        ServiceCategory::NrtVbr => 3,
        _ => 0,
    };
    QosClass {
        forum: version == Version::Uni30 || class != 0,
        forward: class,
        backward: class,
    }
}

/// The connection that traffic descriptor, bearer capability and AAL parameters describe.
///
/// A best-effort indicator makes it best effort. Otherwise a sustainable rate makes it VBR (real time if the bearer
/// says so), ATC 12 makes it ABR, and the rest is CBR, as in linux-atm. The option of tagging counts where the contract
/// has a rate of cells with CLP 0, and for best effort. Frames are discarded if the traffic management
/// options ask for that, and never on a connection whose AAL parameters name another AAL than AAL5: cells of AAL1 and
/// AAL2 do not end frames.
#[must_use]
pub fn qos(traffic: &Fields, bearer: Option<&Bearer>, aal: Option<&Aal>) -> Qos {
    let atc = bearer.and_then(|b| b.atc);
    let has_scr = [0x88, 0x89, 0x90, 0x91].iter().any(|id| traffic.has(*id));
    let category = if traffic.has(0xbe) {
        ServiceCategory::Ubr
    } else if atc == Some(0x0c) {
        ServiceCategory::Abr
    } else if has_scr && matches!(atc, Some(0x01 | 0x09 | 0x13)) {
        ServiceCategory::RtVbr
    } else if has_scr {
        ServiceCategory::NrtVbr
    } else {
        ServiceCategory::Cbr
    };
    let (forward, backward) = aal.and_then(Aal::max_sdu).unwrap_or((0, 0));
    let options = traffic.get(OPTIONS).unwrap_or(0);
    let [tx, rx] = FRAME_DISCARD.map(|bit| match aal {
        Some(Aal::Aal1(_) | Aal::Aal34(_) | Aal::Other(..)) => Some(false),
        Some(Aal::Aal5(_)) | None => (options & bit != 0).then_some(true),
    });
    Qos {
        tx: TrafficParams {
            frame_discard: tx,
            ..tagged(
                direction(traffic, category, 0, forward),
                options & TAGGING[0],
            )
        },
        rx: TrafficParams {
            frame_discard: rx,
            ..tagged(
                direction(traffic, category, 1, backward),
                options & TAGGING[1],
            )
        },
    }
}

const fn tagged(mut direction: TrafficParams, asked: u32) -> TrafficParams {
    let able = direction.clp0
        || direction.pcr0 > 0
        || matches!(direction.category, Some(ServiceCategory::Ubr));
    direction.tagging = able && asked != 0;
    direction
}

fn direction(f: &Fields, category: ServiceCategory, back: u8, max_sdu: u16) -> TrafficParams {
    let either = |both: u8, high: u8| f.get(both + back).or(f.get(high + back));
    let Some(pcr) = either(0x84, 0x82).filter(|pcr| *pcr > 0) else {
        // Some callers (Linux's ttcp) give the SDU size of a direction that they do not use.
        return TrafficParams {
            max_sdu,
            ..TrafficParams::none()
        };
    };
    let unlimited = category == ServiceCategory::Ubr && pcr == LINE_RATE;
    let pcr0 = f.get(0x82 + back).filter(|_| f.has(0x84 + back));
    let scr = either(0x90, 0x88).unwrap_or(0);
    TrafficParams {
        category: Some(category),
        max_pcr: (!unlimited).then_some(pcr),
        pcr0: pcr0
            .filter(|_| category == ServiceCategory::Cbr)
            .unwrap_or(0),
        min_pcr: f.get(0x92 + back).unwrap_or(0),
        scr,
        mbs: either(0xb0, 0xa0).unwrap_or(0),
        clp0: scr > 0 && !f.has(0x90 + back),
        tagging: false,
        max_cdv: Duration::ZERO,
        second_cdv: Duration::ZERO,
        max_sdu,
        frame_discard: None,
    }
}

/// True if this combination of traffic parameters is allowed; if not, the answer is cause 73.
///
/// Not allowed are, among others, a sustainable rate or a peak rate of cells with CLP 0 above the peak rate, a burst of
/// 0 cells, and sustainable rates of all cells and of cells with CLP 0 in one direction.
///
/// Source: UNI 3.1 §5.4.5.6, UNI 4.0 annex 9.
#[must_use]
pub fn combination_allowed(f: &Fields, multipoint: bool) -> bool {
    let any = |ids: &[u8]| ids.iter().any(|id| f.has(*id));
    let scr = any(&[0x88, 0x89, 0x90, 0x91]);
    let mbs = any(&[0xa0, 0xa1, 0xb0, 0xb1]);
    let peak = |back: u8| f.has(0x82 + back) || f.has(0x84 + back);
    let back_rates = [0x83, 0x85, 0x89, 0x91, 0x93, 0xa1, 0xb1];
    let back_carries = back_rates.iter().any(|id| f.get(*id).unwrap_or(0) > 0);
    let contradicts = |back: u8| {
        let value = |id: u8| f.get(id + back).unwrap_or(0);
        let (all, high) = (value(0x84), value(0x82));
        let peak = if f.has(0x84 + back) { all } else { high };
        let sustained = value(0x90).max(value(0x88));
        let burst = value(0xb0).max(value(0xa0));
        let twice = f.has(0x90 + back) && f.has(0x88 + back);
        peak > 0 && (sustained.max(high) > peak || sustained > 0 && burst == 0 || twice)
    };
    let unsound = contradicts(0) || contradicts(1) || multipoint && back_carries;
    peak(0) && peak(1) && scr == mbs && !(f.has(0xbe) && scr) && !unsound
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of each option, through the octets of the elements.
    #[test]
    fn frame_discard_is_asked_for_by_direction() {
        for (tx, rx) in [(Some(true), None), (None, Some(true)), (None, None)] {
            let mut want = Qos::ubr(1516);
            (want.tx.frame_discard, want.rx.frame_discard) = (tx, rx);
            let [aal, traffic, ..] = elements(&want, false, Version::Uni40);
            let (Ie::Aal(aal), Ie::Traffic(traffic)) = (aal, traffic) else {
                panic!("other elements");
            };
            assert_eq!(traffic.has(OPTIONS), tx.or(rx).is_some());
            assert_eq!(qos(&traffic, None, Some(&aal)), want);
        }
    }

    /// Cells of AAL1 and AAL2 do not end frames, so frame discard would discard them for ever.
    #[test]
    fn another_aal_than_aal5_has_no_frames_to_discard() {
        let fields =
            traffic(&Qos::ubr(0), ServiceCategory::Ubr, Version::Uni40).with(OPTIONS, 0xc0);
        for aal in [Aal::Aal1(Fields::new()), Aal::Other(2, Vec::new())] {
            let got = qos(&fields, None, Some(&aal));
            assert_eq!([got.tx, got.rx].map(|d| d.frame_discard), [Some(false); 2]);
        }
        let got = qos(&fields, None, None);
        assert_eq!([got.tx, got.rx].map(|d| d.frame_discard), [Some(true); 2]);
    }
}
