//! Settings of pseudowires.

use super::{seconds, text};
use crate::model::{CellWire, Gathering, L2tp, L2tpEnds, Labels, Mpls, Scope, SduWire};
use aerostat_wire::l2tp::Sublayer;
use serde_json::{Value, json};

pub(super) fn of_mpls(mpls: &Mpls) -> Value {
    let Mpls {
        interface,
        peer,
        cells,
        sdus,
    } = mpls;
    let cell_wire = |wire: &CellWire| {
        let CellWire {
            labels,
            scope,
            gathering,
            word,
            sequence,
        } = wire;
        json!({
            "labels": of_labels(labels),
            "scope": of_scope(scope),
            "packing": of_gathering(gathering),
            "word": word,
            "sequence": sequence,
        })
    };
    let sdu_wire = |wire: &SduWire| {
        let SduWire {
            vc,
            labels,
            sequence,
        } = wire;
        json!({ "vc": text(vc), "labels": of_labels(labels), "sequence": sequence })
    };
    json!({
        "interface": interface,
        "peer": text(peer),
        "cells": cells.as_ref().map(cell_wire),
        "sdus": sdus.iter().map(sdu_wire).collect::<Vec<_>>(),
    })
}

/// Cookies are shown by their lengths only: they keep strangers out.
pub(super) fn of_l2tp(l2tp: &L2tp) -> Value {
    let L2tp {
        ends,
        session,
        peer_session,
        cookie,
        peer_cookie,
        sublayer,
        sequence,
        scope,
        gathering,
    } = l2tp;
    let (local, peer) = match ends {
        L2tpEnds::Ip(local, peer) => (text(local), text(peer)),
        L2tpEnds::Udp(local, peer) => (text(local), text(peer)),
    };
    let sublayer = match sublayer {
        Sublayer::None => "none",
        Sublayer::Default => "default",
        Sublayer::Atm => "atm",
    };
    json!({
        "local": local,
        "peer": peer,
        "session": session,
        "peer_session": peer_session,
        "cookie_octets": cookie.octets().len(),
        "peer_cookie_octets": peer_cookie.octets().len(),
        "sublayer": sublayer,
        "sequence": sequence,
        "scope": of_scope(scope),
        "packing": of_gathering(gathering),
    })
}

fn of_labels(Labels { outgoing, incoming }: &Labels) -> Value {
    json!({ "outgoing": outgoing, "incoming": incoming })
}

fn of_scope(scope: &Scope) -> Value {
    match scope {
        Scope::Port => json!("port"),
        Scope::Path(vpi) => json!({ "vpi": vpi }),
        Scope::Channel(vc) => json!({ "vc": text(vc) }),
    }
}

fn of_gathering(Gathering { cells, wait }: &Gathering) -> Value {
    json!({ "cells": cells, "wait_s": seconds(*wait) })
}
