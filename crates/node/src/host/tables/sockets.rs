//! Tables of `inspect` about programs with ATM sockets.

use crate::host::sockets::{Answer, Role, Sockets};
use crate::inspect::{Table, text};

pub(super) fn tables(sockets: &Sockets) -> Vec<Table> {
    let columns = &["name", "does", "local", "peer", "sap"];
    let mut programs = Table::new("programs", columns);
    for program in sockets.programs() {
        let does = |answer| match answer {
            Answer::Sink => "sink",
            Answer::Echo => "echo",
            Answer::Read => "read",
        };
        let (does, local, peer, sap) = match program.role {
            Role::Listen { answer, .. } => {
                (does(answer), text(program.local), None, Some(program.sap))
            }
            Role::Call { to, .. } => ("call", text(program.local), Some(to), Some(program.sap)),
            Role::Permanent { vc, answer, .. } => {
                (answer.map_or("write", does), text(vc), None, None)
            }
        };
        programs.row(vec![
            program.name.as_str().into(),
            does.into(),
            local,
            peer.map(text).into(),
            sap.map(|sap| text(format_args!("{sap:?}"))).into(),
        ]);
    }
    let columns = &[
        "name",
        "peer",
        "state",
        "vc",
        "setup_us",
        "offered_pdus",
        "refused_pdus",
        "waiting_pdus",
        "late_pdus",
        "sent_pdus",
        "sent_octets",
        "sent_crc32",
        "unsent_pdus",
        "received_pdus",
        "received_octets",
        "received_crc32",
        "damaged_pdus",
        "cause",
        "released_by",
    ];
    let mut calls = Table::new("calls", columns);
    for call in sockets.calls() {
        let name = sockets.programs().get(call.program).map(|p| p.name.clone());
        let by = if call.by_us { "us" } else { "peer" };
        let sums = [call.sent, call.received].map(|sum| {
            let crc = (sum.pdus > 0).then(|| format!("{:08x}", sum.crc32));
            [sum.pdus.into(), sum.octets.into(), crc.into()]
        });
        let mut row = vec![
            name.into(),
            call.peer.map(text).into(),
            call.state.name().into(),
            call.vc.map(text).into(),
            call.setup
                .map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
                .into(),
        ];
        let [sent, received] = sums;
        let before = [call.offered, call.refused, call.waiting(), call.late];
        row.extend(before.map(Into::into));
        row.extend(sent);
        row.push(call.unsent.into());
        row.extend(received);
        row.push(call.damaged.into());
        row.push(call.cause.map(|cause| cause.0).into());
        row.push(call.cause.map(|_| by).into());
        calls.row(row);
    }
    vec![programs, calls]
}
