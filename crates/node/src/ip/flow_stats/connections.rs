//! Connections of programs with ATM sockets: each has the accounts of a flow. A PDU is recognised by its mark.

use super::flow::Flow;
use super::{Census, PathReport};
use crate::atm::{Mark, SocketId};
use crate::ip::books::{Place, SocketEvent};
use crate::ip::meter::{FlowId, PacketKey, Path, Sample, Side};
use aerostat_proto::Instant;
use std::collections::BTreeMap;

/// The accounts of one connection, in the direction of its writer.
#[derive(Clone, Debug, Default)]
struct Connection {
    flow: Flow,
    reader: Option<(usize, usize)>,
    left: u64,
}

/// The figures of one connection, in the direction of its writer.
#[derive(Clone, Debug)]
pub struct ConnectionReport {
    /// When the adapter of the writer took the first PDU.
    pub first: Option<Instant>,
    /// The figures of its PDUs. PDUs of `left` count as received.
    pub figures: PathReport,
    /// Number of the node and index of the program that received a PDU; `None` before the first.
    pub reader: Option<(usize, usize)>,
    /// PDUs that left the programs of the lab.
    pub left: u64,
}

/// The accounts of all connections that their hosts remember.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(BTreeMap<SocketId, Connection>);

impl Connections {
    pub(super) fn handle(&mut self, node: usize, event: SocketEvent, at: Instant) {
        match event {
            SocketEvent::Sent { mark, octets } => {
                let connection = self.0.entry(mark.socket).or_default();
                connection.flow.sent(&sample(mark, Side::Sent, octets, at));
            }
            SocketEvent::Received {
                mark,
                program,
                octets,
            } => {
                if let Some(connection) = self.received(mark, octets, at) {
                    connection.reader = Some((node, program));
                }
            }
            SocketEvent::Left(mark) => {
                // The octets of a PDU that leaves the lab are not known to have arrived.
                if let Some(connection) = self.received(mark, 0, at) {
                    connection.left += 1;
                }
            }
            SocketEvent::Forgotten(socket) => self.forget(socket),
        }
    }

    fn received(&mut self, mark: Mark, octets: u32, at: Instant) -> Option<&mut Connection> {
        let connection = self.0.get_mut(&mark.socket)?;
        let sample = sample(mark, Side::Received, octets, at);
        connection.flow.received(&sample);
        Some(connection)
    }

    pub(super) fn lost(&mut self, mark: Mark, place: Place, at: Instant) -> bool {
        let connection = self.0.get_mut(&mark.socket);
        connection.is_some_and(|connection| connection.flow.lost(key(mark), place, at))
    }

    /// As [`Flow::sweep`], for all connections.
    pub(super) fn sweep(&mut self, now: Instant, census: &Census) -> usize {
        let all = self.0.iter_mut();
        all.map(|(socket, connection)| {
            let held = |key| is_held(census, *socket, key);
            connection.flow.sweep(now, held, false)
        })
        .sum()
    }

    pub(super) fn remembered(&self) -> usize {
        let all = self.0.values();
        all.map(|connection| connection.flow.remembered()).sum()
    }

    pub(super) fn forget(&mut self, socket: SocketId) {
        self.0.remove(&socket);
    }

    pub(super) fn report(
        &self,
        socket: SocketId,
        now: Instant,
        census: Option<&Census>,
    ) -> Option<ConnectionReport> {
        let connection = self.0.get(&socket)?;
        let held = census.map(|census| move |key| is_held(census, socket, key));
        // All PDUs of a program have one path.
        let mut report = connection.flow.report((FlowId(0), None), now, held);
        Some(ConnectionReport {
            first: report.first,
            figures: report.paths.pop()?,
            reader: connection.reader,
            left: connection.left,
        })
    }
}

fn is_held(census: &Census, socket: SocketId, key: PacketKey) -> bool {
    match key {
        PacketKey::Stamped { sequence: pdu } => census.pdus.contains(&Mark { socket, pdu }),
        _ => false,
    }
}

const fn key(mark: Mark) -> PacketKey {
    PacketKey::Stamped { sequence: mark.pdu }
}

const fn sample(mark: Mark, side: Side, octets: u32, at: Instant) -> Sample {
    Sample {
        flow: FlowId(0),
        side,
        path: Path::Lane,
        at,
        key: key(mark),
        payload: octets,
        ip_octets: 0,
    }
}
