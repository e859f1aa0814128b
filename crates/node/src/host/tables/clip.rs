//! Tables of `inspect` about Classical IP.

use crate::inspect::{Table, text};
use aerostat_proto::clip;

pub(super) fn tables(itf: Option<usize>, clip: &clip::Snapshot) -> Vec<Table> {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let columns = &["interface", "ip", "address", "mtu", "server", "ready"];
    let mut member = Table::new("interface", columns);
    member.row(vec![
        itf.map(|itf| format!("atm{itf}")).into(),
        text(clip.ip),
        text(clip.address),
        clip.mtu.into(),
        yes_no(clip.serves).into(),
        yes_no(clip.ready).into(),
    ]);
    let columns = &["ip", "address", "state", "expires_s", "vc", "waiting"];
    let mut entries = Table::new("atmarp", columns);
    for row in &clip.entries {
        entries.row(vec![
            text(row.ip),
            row.atm.map(text).into(),
            row.state.into(),
            row.expires_s.into(),
            row.vc.map(text).into(),
            row.waiting.into(),
        ]);
    }
    let columns = &[
        "vc",
        "role",
        "peer",
        "encapsulation",
        "packets_sent",
        "packets_received",
    ];
    let mut conns = Table::new("connections", columns);
    for row in &clip.conns {
        conns.row(vec![
            row.vc.map(text).into(),
            row.role.into(),
            row.peer.map(text).into(),
            row.encapsulation.into(),
            row.packets.0.into(),
            row.packets.1.into(),
        ]);
    }
    vec![
        member,
        entries,
        conns,
        Table::counters("counters", clip.counters.rows()),
    ]
}
