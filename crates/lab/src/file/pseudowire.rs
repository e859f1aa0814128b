//! Pseudowires of links out of the lab, as they are written.

use super::leaves::{Label, Mac, Time};
use crate::diag::Diagnostics;
use crate::field::{At, FromTree, inline_schema, one_or_more, scalar, section, words};
use crate::model::Packing;
use crate::tree::Tree;
use aerostat_wire::l2tp::{Cookie, Sublayer};
use aerostat_wire::mpls;
use std::net::{IpAddr, SocketAddr};

scalar!(
    /// A label of MPLS.
    MplsLabel(u32) = "1000", mpls_label,
    { "type": ["integer", "string"], "minimum": 16, "maximum": 1_048_575, "description": "a label of MPLS, 16 to 1048575" }
);
scalar!(
    /// A cookie of L2TPv3.
    CookieText(Cookie); digits, cookie,
    { "type": ["string", "integer"], "description": "4 or 8 octets: 8 or 16 hex digits", "examples": ["0123456789abcdef"] }
);
words!(
    /// The sublayer of an L2TPv3 session.
    SublayerText(Sublayer) { "none" = Sublayer::None, "default" = Sublayer::Default, "atm" = Sublayer::Atm }
);
scalar!(
    /// An end of an L2TPv3 session: an IP address, or one with a UDP port.
    L2tpEnd((IpAddr, Option<u16>)), l2tp_end,
    { "type": "string", "description": "an IP address (L2TPv3 over IP), or ADDRESS:PORT (over UDP)", "examples": ["192.0.2.1", "192.0.2.1:1701"] }
);

section! {
    /// Pseudowires over MPLS on an Ethernet interface (RFC 4717).
    MplsFile {
        /// Name of the interface, in the network namespace of the command.
        interface: At<String>;
        /// MAC address of the next hop, the only one that is heard.
        peer: At<Mac>;
        /// Pseudowire of cells (N-to-one mode): its label in packets to the peer, or a list of labels, the outermost
        /// first. Default: no such pseudowire, only those of entries of pvcs.
        outgoing: Option<LabelList>;
        /// With outgoing: its label in packets from the peer.
        incoming: Option<At<MplsLabel>>;
        /// It carries this VC only, VPI.VCI (VCC mode); default: the whole link (port mode).
        vc: Option<At<Label>>;
        /// It carries this VPI only (VPC mode); default: the whole link (port mode).
        vp: u64, 0..=255;
        /// At most so many cells in a packet. 28 fit an MTU of 1500.
        cells: u64 = 28, 1..=Packing::MAX_CELLS;
        /// How long a cell waits for others.
        wait: Time = "100us", "0s"..="10ms";
        /// Begin each packet with the control word.
        word: bool = true;
        /// Number packets, and keep the order of the peer's by their numbers.
        sequence: bool = false;
    }
}
section! {
    /// A pseudowire in AAL5-SDU mode (RFC 4717): the label stands for the connection.
    SduWireFile {
        /// Label in packets to the peer, or a list of labels, the outermost first.
        outgoing: LabelList;
        /// Label in packets from the peer.
        incoming: At<MplsLabel>;
        /// Number packets, and keep the order of the peer's by their numbers.
        sequence: bool = false;
    }
}
section! {
    /// An L2TPv3 session that both ends have configured (RFC 3931), with cells (RFC 4454).
    L2tpFile {
        /// This end: ADDRESS for L2TPv3 over IP, ADDRESS:PORT for L2TPv3 over UDP.
        local: At<L2tpEnd>;
        /// The peer, the only one that is heard, in the same form.
        peer: At<L2tpEnd>;
        /// Session ID in packets from the peer, 1 to 4294967295.
        session: At<u64>;
        /// Session ID in packets to the peer, 1 to 4294967295.
        peer_session: At<u64>;
        /// Cookie in packets from the peer, 8 or 16 hex digits; default: no cookie.
        cookie: Option<At<CookieText>>;
        /// Cookie in packets to the peer, 8 or 16 hex digits; default: no cookie.
        peer_cookie: Option<At<CookieText>>;
        /// Sublayer of both directions: none, default or atm.
        sublayer: SublayerText = "none";
        /// Number packets, and keep the order of the peer's by their numbers.
        sequence: bool = false;
        /// The session carries this VC only, VPI.VCI (VCC mode); default: the whole link (port mode).
        vc: Option<At<Label>>;
        /// The session carries this VPI only (VPC mode); default: the whole link (port mode).
        vp: u64, 0..=255;
        /// At most so many cells in a packet. 27 fit an MTU of 1500.
        cells: u64 = 27, 1..=Packing::MAX_CELLS;
        /// How long a cell waits for others.
        wait: Time = "100us", "0s"..="10ms";
    }
}

/// One label or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct LabelList(pub(crate) Vec<At<MplsLabel>>);

impl FromTree for LabelList {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let list = one_or_more(tree, d)?;
        if list.is_empty() || list.len() > mpls::MAX_DEPTH {
            let most = mpls::MAX_DEPTH;
            d.error(tree.at, format!("a packet has 1 to {most} labels"));
            return None;
        }
        Some(Self(list))
    }
}

inline_schema!(LabelList [one: MplsLabel], {
    "anyOf": [one, { "type": "array", "items": one, "minItems": 1, "maxItems": mpls::MAX_DEPTH }]
});

fn mpls_label(text: &str) -> Result<u32, String> {
    let (first, last) = (mpls::FIRST_LABEL, mpls::MAX_LABEL);
    let label = text.parse::<u32>().ok();
    label
        .filter(|label| (first..=last).contains(label))
        .ok_or_else(|| format!("expected a label of {first} to {last}; those below are reserved"))
}

fn cookie(text: &str) -> Result<Cookie, String> {
    let wrong = || "expected 8 or 16 hex digits (4 or 8 octets)".to_owned();
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| Some(digit.to_digit(16)? as u8))
        .collect();
    let digits = digits.filter(|digits| matches!(digits.len(), 8 | 16));
    let digits = digits.ok_or_else(wrong)?;
    let (pairs, _) = digits.as_chunks::<2>();
    let octets: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    Cookie::new(&octets).ok_or_else(wrong)
}

fn l2tp_end(text: &str) -> Result<(IpAddr, Option<u16>), String> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok((ip, None));
    }
    let socket = text.parse::<SocketAddr>();
    let socket = socket
        .map_err(|_| "expected ADDRESS or ADDRESS:PORT, such as 192.0.2.1:1701".to_owned())?;
    Ok((socket.ip(), Some(socket.port())))
}
