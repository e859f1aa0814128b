//! Keys of load: shares of a link, sizes of frames, the layer, the process of arrivals, traces.

use crate::diag::Diagnostics;
use crate::field::{At, FromText, FromTree, inline_schema, one_or_more, scalar, words};
use crate::model::{Share, least_frame};
use crate::tree::Tree;

/// Most sizes of a ladder.
pub(crate) const MAX_FRAMES: usize = 64;
/// Digits of a load behind the point.
const DIGITS: usize = 9;

scalar!(
    /// A share of a link.
    LoadShare(Share) = "1%", share,
    { "type": "string", "description": "per cent of a link, above 0 and at most 100, with at most 9 digits behind the point", "examples": ["50%", "99.9%"] }
);
scalar!(
    /// Octets of a frame.
    FrameSize(usize) = "64", |text: &str| match text.parse::<usize>() {
        Ok(size) if size >= least_frame() => Ok(size),
        _ => Err(format!("a frame has at least {} octets, as a whole number", least_frame())),
    },
    { "type": "integer", "minimum": 64 }
);
words!(
    /// The layer at which the load is counted.
    LayerText(Layer) { "cells" = Layer::Cells, "ethernet" = Layer::Ethernet }
);
words!(
    /// When frames are sent.
    ArrivalsText(Process) = "periodic" {
        "periodic" = Process::Periodic, "ticks" = Process::Ticks, "poisson" = Process::Poisson,
        "onoff" = Process::OnOff, "trace" = Process::Trace
    }
);

/// The layer at which a load is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Cells of an ATM link.
    Cells,
    /// Octets of an Ethernet, with preamble and gap.
    Ethernet,
}

/// The process of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Equal intervals.
    Periodic,
    /// A coarse timer.
    Ticks,
    /// A Poisson process.
    Poisson,
    /// Periods with frames, and silence between them.
    OnOff,
    /// The times of a file.
    Trace,
}

/// The decimal digits of a share in per cent, as a fraction.
fn share(text: &str) -> Result<Share, String> {
    const EXPECTED: &str = "expected per cent of a link, such as 50% or 99.9%";
    let digits = text.trim().strip_suffix('%').ok_or(EXPECTED)?.trim_end();
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    if digits.is_empty()
        || whole.len() > 9
        || fraction.len() > DIGITS
        || !plain(whole)
        || !plain(fraction)
    {
        return Err(format!(
            "{EXPECTED}, with at most {DIGITS} digits behind the point"
        ));
    }
    let numerator = format!("{whole}{fraction}")
        .parse::<u64>()
        .map_err(|_| EXPECTED)?;
    // At most 10¹¹.
    let denominator = 100 * 10_u64.pow(fraction.len() as u32);
    if numerator == 0 {
        return Err("a load is above 0 %".to_owned());
    }
    if numerator > denominator {
        return Err("a link carries at most 100 %".to_owned());
    }
    Ok(Share {
        numerator,
        denominator,
    })
}

/// One size of frames or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct FrameSizes(pub(crate) Vec<At<FrameSize>>);

impl FrameSizes {
    /// Sizes of frames for Ethernet. Source: RFC 2544 §9.1.
    pub(crate) const DEFAULT: [usize; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
}

impl FromTree for FrameSizes {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let list = one_or_more(tree, d)?;
        if list.is_empty() || list.len() > MAX_FRAMES {
            d.error(
                tree.at,
                format!(
                    "a ladder has 1 to {MAX_FRAMES} sizes of frames, and this one has {}",
                    list.len()
                ),
            );
            return None;
        }
        Some(Self(list))
    }
}

inline_schema!(FrameSizes [one: FrameSize], {
    "anyOf": [one, { "type": "array", "items": one, "minItems": 1, "maxItems": MAX_FRAMES }]
});

/// A file beside the lab file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceName(pub(crate) String);

impl FromText for TraceName {
    fn from_text(text: &str) -> Result<Self, String> {
        let path = std::path::Path::new(text);
        let inside = path
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        match !text.is_empty() && text.len() <= 255 && inside && !text.contains('\0') {
            true => Ok(Self(text.to_owned())),
            false => Err("expected the name of a file beside the lab file or below, such as traces/morning.txt".to_owned()),
        }
    }
}

inline_schema!(TraceName, {
    "type": "string", "description": "a file beside the lab file", "examples": ["morning.txt"]
});
