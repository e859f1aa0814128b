//! Settings of pseudowires.

use super::{Published, published};
use crate::model::{CellWire, Gathering, L2tp, L2tpEnds, Labels, Mpls, Scope, SduWire};
use serde_json::{Value, json};

// Cookies are shown by their lengths only: they keep strangers out.
published! { own, lab;
    Labels { outgoing, incoming }
    Gathering { cells, wait }
    CellWire { labels, scope, gathering as "packing", word, sequence }
    SduWire { vc, labels, sequence }
    Mpls { interface, peer, cells, sdus }
    L2tp {
        ends; merged, session, peer_session, cookie as "cookie_octets" = cookie.octets().len(),
        peer_cookie as "peer_cookie_octets" = peer_cookie.octets().len(), sublayer, sequence, scope,
        gathering as "packing"
    }
}

impl Published for L2tpEnds {
    fn published(&self, _: &crate::model::Lab) -> Value {
        match self {
            Self::Ip(local, peer) => json!({ "local": local, "peer": peer }),
            Self::Udp(local, peer) => json!({ "local": local, "peer": peer }),
        }
    }
}

impl Published for Scope {
    fn published(&self, lab: &crate::model::Lab) -> Value {
        match self {
            Self::Port => json!("port"),
            Self::Path(vpi) => json!({ "vpi": vpi }),
            Self::Channel(vc) => json!({ "vc": vc.published(lab) }),
        }
    }
}
