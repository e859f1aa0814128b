//! Rows of `inspect sockets`.

use super::microseconds;
use super::words::{Does, Releaser};
use super::{Name, Table, counters};
use crate::host::sockets::programs::{Answer, Program, Record, Role};
use crate::host::sockets::{Socket, SocketLayer, Sum};
use aerostat_proto::socket::Status;
use aerostat_wire::AtmAddress;
use std::net::Ipv4Addr;

crate::rows! {
    /// Tables about programs with ATM sockets.
    pub const TABLES;

    /// One row for each program that uses the ATM service directly.
    pub struct ProgramRow: "sockets.programs" {
        /// Its name.
        pub name: String,
        /// `call`, `write` (on a permanent connection), or what it does with PDUs: `sink`, `echo` or `read`.
        pub does: Does,
        /// Address of its socket.
        pub local: String,
        /// Address or label of the other end.
        pub peer: Option<AtmAddress>,
        /// Protocol that it listens for, or that its call announces.
        pub sap: Option<String>,
    }

    /// One row for each call of a program, and for each permanent connection that it uses.
    pub struct CallRow: "sockets.calls" for (seen: &Record<'_>, programs: &[Program]) {
        /// The program.
        pub name: Option<String> = programs.get(seen.program).map(|p| p.name.clone()),
        /// ATM address at the other end.
        pub peer: Option<AtmAddress> as Detail(4) = seen.socket.peer,
        /// State of the call.
        pub state: Name = seen.socket.state().of_call().into(),
        /// VPI.VCI; `local` for a call that does not leave the host.
        pub vc: Option<String> = Some(seen.socket.label().to_string()).filter(|label| !label.is_empty()),
        /// Time from SETUP to CONNECT at the caller.
        pub setup_us: Option<u64> = seen.own.setup.map(microseconds),
        /// PDUs that the program began to write, or had to send back.
        pub offered_pdus: u64 = seen.own.offered,
        /// Of these, PDUs that were never sent: too long for the contract, more than an echo keeps, or given up with
        /// the call.
        pub refused_pdus: u64 = seen.socket.refused,
        /// Of these, PDUs that wait in the program for room in the adapter: offered = sent + refused + waiting.
        pub waiting_pdus: u64 = seen.waiting(),
        /// PDUs of its own that were written after the time that its rate gives them.
        pub late_pdus: u64 = seen.own.late,
        /// PDUs that the adapter has taken.
        pub sent_pdus: u64 = seen.socket.sent.pdus,
        /// Octets of these.
        pub sent_octets: u64 as Detail(2) = seen.socket.sent.octets,
        /// CRC-32 of the octets sent, as gzip's.
        pub sent_crc32: Option<String> as Detail(0) = crc(seen.socket.sent),
        /// Of the PDUs sent, those that the adapter dropped: the call ended, or the link went down, before they left.
        pub unsent_pdus: u64 = seen.socket.unsent,
        /// PDUs received.
        pub received_pdus: u64 = seen.socket.received.pdus,
        /// Octets of these.
        pub received_octets: u64 as Detail(3) = seen.socket.received.octets,
        /// CRC-32 of the octets received.
        pub received_crc32: Option<String> as Detail(1) = crc(seen.socket.received),
        /// PDUs that came with cells missing or damaged.
        pub damaged_pdus: u64 = seen.socket.damaged,
        /// Cause of the release, Q.2610.
        pub cause: Option<u8> = seen.socket.cause.map(|cause| cause.0),
        /// Side that released the call.
        pub released_by: Option<Releaser> = seen.socket.cause.map(|_| if seen.socket.by_us { Releaser::Us } else { Releaser::Peer }),
    }

    /// One row for each ATM socket of a program of the machine.
    pub struct OpenSocketRow: "sockets.open" for (socket: String, seen: &Socket, status: Status) {
        /// Its reference: the index, and the number of its use.
        pub socket: String = socket,
        /// `idle`, `bound`, `listening`, `resolving` (the ATM address of an IP address), `connecting`, `accepting`,
        /// `connected`, `ending` or `ended`.
        pub state: Name = seen.state().name().into(),
        /// Own address.
        pub local: String = spelled(status.local),
        /// Address of the other end; an IP address until its ATM address is known.
        pub peer: String = spelled(status.peer),
        /// Purpose of the call.
        pub sap: String = status.sap,
        /// The contract.
        pub qos: String = status.qos,
        /// VPI.VCI; `local` if the call does not leave the host.
        pub vc: String = status.label,
        /// Connections of programs to the service that may use the socket.
        pub sessions: u64 = seen.sessions() as u64,
        /// Offers that wait for an answer of the program.
        pub offers: u64 = status.offers.into(),
        /// Calls for a listener that were refused for want of an answer or of room.
        pub missed: u64 = status.missed,
        /// PDUs that its program has sent.
        pub sent_pdus: u64 = status.sent.0,
        /// Octets of these.
        pub sent_octets: u64 = status.sent.1,
        /// PDUs that were refused: longer than the contract allows, or on a connection that does not send.
        pub refused_pdus: u64 = status.refused,
        /// Of the PDUs sent, those that were dropped here: the call ended, or the link went down, before they left.
        pub unsent_pdus: u64 = status.unsent,
        /// PDUs received.
        pub received_pdus: u64 = status.received.0,
        /// Octets of these.
        pub received_octets: u64 = status.received.1,
        /// Of these, PDUs that were dropped because the program did not read.
        pub unread_pdus: u64 = status.unread,
        /// PDUs that came with cells missing or damaged.
        pub damaged_pdus: u64 = status.damaged,
        /// Cause of the end, 0 before it.
        pub cause: u8 = status.cause,
    }

    /// One row for each IP address that programs of the machine call and whose ATM address is being resolved.
    pub struct ResolvingRow: "sockets.resolving" {
        /// The IP address.
        pub ip: Ipv4Addr,
        /// Calls, and leaves of point-to-multipoint calls, that wait for it.
        pub waiting: u64,
    }
}

/// The tables of a host's sockets: first those of programs of the lab file, then those of the machine.
pub(crate) fn tables(sockets: &SocketLayer) -> Vec<Table> {
    let (programs, open) = (sockets.programs(), sockets.sockets().next().is_some());
    let mut tables = Vec::new();
    if !programs.is_empty() {
        tables.push(Table::of(programs.iter().map(ProgramRow::from)));
        let calls = sockets.calls();
        tables.push(Table::of(calls.map(|call| CallRow::of(&call, programs))));
    }
    if open || programs.is_empty() {
        tables.extend(machines(sockets));
    }
    tables
}

/// All sockets of programs of the machine, and what has to do with calls to IP addresses if there are any.
fn machines(layer: &SocketLayer) -> Vec<Table> {
    let rows = layer.sockets().map(|(at, socket)| {
        let name = format!("{}/{}", at.index(), at.generation());
        OpenSocketRow::of(name, socket, socket.status())
    });
    let resolving = layer.questions().map(|(ip, waiting)| ResolvingRow {
        ip,
        waiting: waiting as u64,
    });
    let resolving: Vec<ResolvingRow> = resolving.collect();
    let counters = layer.counters().rows().into_iter();
    let counters: Vec<_> = counters.filter(|(_, value)| *value > 0).collect();
    let mut tables = vec![Table::of(rows)];
    if !resolving.is_empty() {
        tables.push(Table::of(resolving));
    }
    if !counters.is_empty() {
        tables.push(Table::counters(&counters::SOCKETS, counters));
    }
    tables
}

/// An ATM address of the service's protocol, which has no dots, as the other tables spell it. Other text stays.
fn spelled(text: String) -> String {
    match text.parse::<AtmAddress>() {
        Ok(address) => address.to_string(),
        Err(_) => text,
    }
}

impl From<&Program> for ProgramRow {
    fn from(seen: &Program) -> Self {
        let does = |answer| match answer {
            Answer::Sink => Does::Sink,
            Answer::Echo => Does::Echo,
            Answer::Read => Does::Read,
        };
        let (does, local, peer, sap) = match seen.role {
            Role::Listen { answer, .. } => {
                (does(answer), seen.local.to_string(), None, Some(seen.sap))
            }
            Role::Call { to, .. } => {
                let local = seen.local.to_string();
                (Does::Call, local, Some(to), Some(seen.sap))
            }
            Role::Permanent { vc, answer, .. } => {
                let does = answer.map_or(Does::Write, does);
                (does, vc.to_string(), None, None)
            }
        };
        Self {
            name: seen.name.clone(),
            does,
            local,
            peer,
            sap: sap.map(|sap| format!("{sap:?}")),
        }
    }
}

fn crc(sum: Sum) -> Option<String> {
    (sum.pdus > 0).then(|| format!("{:08x}", sum.crc32))
}
