//! The state of a client for display: both caches, its servers and its shortcuts, and the text of Linux'
//! `/proc/atm/mpc`.

use super::Mpc;
use super::api::MpcCounters;
use super::egress::EgressState;
use super::ingress::{Binding, Entry, IngressState};
use crate::mpoa::messages::FlowName;
use crate::split::SeatCounters;
use crate::{Cause, Changes, Instant};
use aerostat_wire::mpoa::{FlowFilter, QosEntry};
use aerostat_wire::qos_text::micros_text;
use aerostat_wire::{AtmAddress, MacAddr, Qos, TrafficParams, Vc};
use core::fmt::Write as _;
use core::net::{IpAddr, Ipv4Addr};

/// One entry of the ingress cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressRow {
    /// Destination.
    pub destination: IpAddr,
    /// State.
    pub state: IngressState,
    /// Control address of the MPS.
    pub mps: AtmAddress,
    /// Data address of the egress MPC.
    pub egress: Option<AtmAddress>,
    /// Tag.
    pub tag: Option<u32>,
    /// Time left until the answer of the MPS, or the hold-down, ends, s; `None` if there is no answer.
    pub holding_s: Option<u64>,
    /// Time left until the entry ends if nothing happens, s. Linux displays this as the holding time.
    pub left_s: u64,
    /// Packets sent on the shortcut.
    pub packets: u64,
    /// The shortcut, if it is up.
    pub vc: Option<Vc>,
    /// Code of the last reply.
    pub last_code: u8,
    /// Cause of the last call that failed, or of a release that was not normal.
    pub last_cause: Option<Cause>,
    /// Resolution Requests sent for the outstanding request.
    pub requests: u32,
    /// The QoS entry that the flow's packets fit.
    pub filter: Option<FlowFilter>,
    /// Traffic that the flow wants, if more than best effort.
    pub qos: Option<Qos>,
    /// The flow uses best effort, because the wanted traffic was not available.
    pub fallback: bool,
}

/// One entry of the egress cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressRow {
    /// Data address of the ingress MPC.
    pub ingress: AtmAddress,
    /// Cache id.
    pub cache_id: u32,
    /// State.
    pub state: EgressState,
    /// Control address of the MPS.
    pub mps: AtmAddress,
    /// Destination.
    pub destination: IpAddr,
    /// Its prefix length.
    pub prefix: u8,
    /// Tag.
    pub tag: Option<u32>,
    /// Holding time left, s.
    pub holding_s: u64,
    /// Packets received.
    pub packets: u64,
    /// Source of the last packet.
    pub latest_source: Option<IpAddr>,
    /// Interface of the ELAN.
    pub itf: usize,
    /// Data link header.
    pub header: Vec<u8>,
    /// The shortcut of the last packet; before the first packet, any shortcut with the ingress MPC.
    pub vc: Option<Vc>,
}

/// One known MPS on one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpsRow {
    /// Interface.
    pub itf: usize,
    /// MAC address.
    pub mac: MacAddr,
    /// Control address.
    pub control: AtmAddress,
    /// True while LE_ARP knows the MPS.
    pub fresh: bool,
    /// Time left before the MPS counts as dead, s; `None` if no cache has information from it.
    pub keep_alive_s: Option<u64>,
}

/// One shortcut connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortcutRow {
    /// Data address of the other end.
    pub peer: AtmAddress,
    /// Its label, once it is up.
    pub vc: Option<Vc>,
    /// True if this end opened it.
    pub opened: bool,
    /// Its traffic, if more than best effort.
    pub qos: Option<Qos>,
}

/// The state of a client at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpcSnapshot {
    /// True while the daemon runs and is not ending.
    pub running: bool,
    /// Control address.
    pub control: AtmAddress,
    /// Data address.
    pub data: AtmAddress,
    /// LANE interfaces that are up.
    pub itfs: Vec<usize>,
    /// Known MPSs.
    pub mps: Vec<MpsRow>,
    /// Ingress cache.
    pub ingress: Vec<IngressRow>,
    /// Egress cache.
    pub egress: Vec<EgressRow>,
    /// Shortcuts that are up or being opened.
    pub shortcuts: Vec<ShortcutRow>,
    /// QoS entries, in the order in which packets are matched.
    pub qos: Vec<QosEntry>,
    /// Packets that fitted each entry, in the same order.
    pub qos_packets: Vec<u64>,
    /// Counts since the start.
    pub counters: MpcCounters,
    /// Counters of the daemon's seat.
    pub seat: SeatCounters,
}

impl Mpc {
    /// QoS entries, in the order in which packets are matched.
    pub fn qos_entries(&self) -> impl Iterator<Item = QosEntry> + '_ {
        let all = self.data.qos.iter();
        all.map(|(filter, qos)| QosEntry { filter, qos })
    }
    /// Counters of the daemon's seat.
    #[must_use]
    pub const fn seat_counters(&self) -> SeatCounters {
        self.daemon.seat.counters()
    }
    /// The state at `now`.
    #[must_use]
    pub fn snapshot(&self, now: Instant) -> MpcSnapshot {
        let up = self
            .data
            .lecs
            .iter()
            .filter(|(_, lec)| lec.up)
            .map(|(itf, _)| *itf);
        MpcSnapshot {
            running: self.is_running(),
            control: self.config.control,
            data: self.config.data,
            itfs: up.collect(),
            mps: self.mps_rows(now),
            ingress: self.ingress_rows(now),
            egress: self.egress_rows(now),
            shortcuts: self.shortcut_rows(),
            qos: self.qos_entries().collect(),
            qos_packets: self
                .data
                .qos
                .iter()
                .map(|(filter, _)| self.data.qos.packets(&filter))
                .collect(),
            counters: self.counters().clone(),
            seat: self.seat_counters(),
        }
    }

    fn mps_rows(&self, now: Instant) -> Vec<MpsRow> {
        let left = |control: &AtmAddress| {
            let until = self.daemon.trusted_until(*control);
            until.map(|at| at.since(now).as_secs())
        };
        let macs = |(itf, lec): (&usize, &super::data::Lec)| {
            let itf = *itf;
            lec.macs
                .iter()
                .map(|(mac, known)| MpsRow {
                    itf,
                    mac: *mac,
                    control: known.mps,
                    fresh: !known.stale,
                    keep_alive_s: left(&known.mps),
                })
                .collect::<Vec<_>>()
        };
        self.data.lecs.iter().flat_map(macs).collect()
    }

    fn ingress_rows(&self, now: Instant) -> Vec<IngressRow> {
        let entries = self.data.ingress.entries.iter();
        entries
            .map(|(key, entry)| self.ingress_row(key, entry, now))
            .collect()
    }

    fn ingress_row(
        &self,
        (mps, destination, filter): &FlowName,
        entry: &Entry,
        now: Instant,
    ) -> IngressRow {
        let binding = entry.binding.as_ref();
        let shortcut = binding
            .and_then(Binding::shown)
            .map(|c| self.data.shortcuts.get(&c));
        let left = entry.ends().map(|at| at.since(now).as_secs());
        IngressRow {
            destination: *destination,
            state: entry.state,
            mps: *mps,
            egress: binding.map(|b| b.egress),
            tag: binding.and_then(|b| b.tag),
            holding_s: left.filter(|_| entry.state != IngressState::Cached),
            left_s: left.unwrap_or(0),
            packets: entry.packets,
            vc: shortcut.flatten().and_then(|s| s.vc),
            last_code: entry.last_code,
            last_cause: entry.last_cause,
            requests: entry.retry.map_or(0, |retry| retry.sent()),
            filter: *filter,
            qos: self.data.qos.qos(*filter),
            fallback: binding.is_some_and(|b| b.conn.is_none() && b.spare.is_some()),
        }
    }

    /// Names of the entries of the ingress cache.
    pub fn flows(&self) -> impl Iterator<Item = FlowName> + '_ {
        self.data.ingress.entries.keys().copied()
    }
    /// An entry of the ingress cache at `now`; `None` if there is no such entry.
    #[must_use]
    pub fn flow(&self, name: &FlowName, now: Instant) -> Option<IngressRow> {
        let entry = self.data.ingress.entries.get(name)?;
        Some(self.ingress_row(name, entry, now))
    }
    /// Entries of the ingress cache whose state or connection may have changed since the last call of this method.
    pub fn take_changes(&mut self) -> Changes<FlowName> {
        self.data.ingress.entries.take_changes()
    }

    fn egress_rows(&self, now: Instant) -> Vec<EgressRow> {
        let shortcuts = &self.data.shortcuts;
        let any = |peer| {
            shortcuts
                .values()
                .find(|s| s.peer == peer)
                .and_then(|s| s.vc)
        };
        let entries = self.data.egress.entries.values();
        entries
            .map(|entry| EgressRow {
                ingress: entry.info.ingress,
                cache_id: entry.info.cache_id,
                state: entry.state,
                mps: entry.info.mps,
                destination: entry.info.destination,
                prefix: entry.info.prefix,
                tag: entry.info.tag,
                holding_s: entry.expires.since(now).as_secs(),
                packets: entry.packets,
                latest_source: entry.latest_source,
                itf: entry.info.itf,
                header: entry.info.header.clone(),
                vc: match entry.conn {
                    Some(conn) => shortcuts.get(&conn).and_then(|s| s.vc),
                    None => any(entry.info.ingress),
                },
            })
            .collect()
    }

    fn shortcut_rows(&self) -> Vec<ShortcutRow> {
        let shortcuts = self.daemon.shortcuts();
        let rows = shortcuts.map(|(conn, handle)| {
            let attached = self.data.shortcuts.get(&conn);
            ShortcutRow {
                peer: handle.own.peer,
                vc: attached.and_then(|shortcut| shortcut.vc),
                opened: handle.outgoing,
                qos: attached.map_or(handle.own.qos, |shortcut| shortcut.qos),
            }
        });
        rows.collect()
    }
}

impl MpcSnapshot {
    /// The text of Linux' `/proc/atm/mpc`. Linux has one client per interface; this one serves all of them, and shows
    /// its entries under each interface that is up: ingress entries of MPSs known there, egress entries that deliver
    /// there. With entries of layer 4 the text has the form of Figure 6.3 of the thesis, as its patched kernel shows
    /// them; columns have the widths of the kernel's.
    #[must_use]
    pub fn proc_text(&self) -> String {
        let layer_4 = self.qos.iter().any(|row| row.filter.is_layer_4());
        let head = if layer_4 {
            "Src IP address:port  Dst IP address:port  Protocol"
        } else {
            "IP address"
        };
        let mut text = format!(
            "QoS entries for shortcuts:\n{head}\n  \
             TX:max_pcr pcr     min_pcr max_cdv max_sdu\n  \
             RX:max_pcr pcr     min_pcr max_cdv max_sdu\n",
        );
        for row in &self.qos {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", entry_line(&row.filter, layer_4));
            qos_line(&mut text, &row.qos.tx);
            qos_line(&mut text, &row.qos.rx);
        }
        for itf in &self.itfs {
            let _ = write!(text, "\nInterface {itf}:\n\n");
            let flow = if layer_4 { "Proto Port  " } else { "" };
            let _ = writeln!(
                text,
                "Ingress Entries:\nIP address      {flow}State      Holding time  Packets fwded  VPI  VCI"
            );
            let here = |mps| {
                self.mps
                    .iter()
                    .any(|row| row.itf == *itf && row.control == mps)
            };
            for row in self
                .ingress
                .iter()
                .filter(|row| here(row.mps) && row.destination.is_ipv4())
            {
                ingress_line(&mut text, row, layer_4);
            }
            text.push_str(
                "\nEgress Entries:\nIngress MPC ATM addr\n\
                 Cache-id        State      Holding time  Packets recvd  Latest IP addr   VPI VCI\n",
            );
            for row in
                (self.egress.iter()).filter(|row| row.itf == *itf && row.destination.is_ipv4())
            {
                egress_lines(&mut text, row);
            }
        }
        self.ipv6_lines(&mut text);
        text
    }

    /// Entries of IPv6, which Linux does not have: they come after all others, and only if there are any.
    fn ipv6_lines(&self, text: &mut String) {
        let ingress: Vec<_> = (self.ingress.iter())
            .filter(|row| row.destination.is_ipv6())
            .collect();
        let egress: Vec<_> = (self.egress.iter())
            .filter(|row| row.destination.is_ipv6())
            .collect();
        if ingress.is_empty() && egress.is_empty() {
            return;
        }
        text.push_str(
            "\nIPv6 (not in Linux):\n\nIngress Entries:\nIP address                               \
             State      Holding time  Packets fwded  VPI  VCI\n",
        );
        for row in ingress {
            ingress_line(text, row, false);
        }
        text.push_str(
            "\nEgress Entries:\nIngress MPC ATM addr\n\
             Cache-id        State      Holding time  Packets recvd  Latest IP addr   VPI VCI\n",
        );
        for row in egress {
            egress_lines(text, row);
        }
    }
}

fn qos_line(text: &mut String, traffic: &TrafficParams) {
    let TrafficParams {
        max_pcr,
        min_pcr,
        max_cdv,
        max_sdu,
        ..
    } = traffic;
    let max_pcr = max_pcr.unwrap_or(0);
    let max_cdv = micros_text(*max_cdv);
    let _ = writeln!(
        text,
        "     {max_pcr:<7} {:<7} {min_pcr:<7} {max_cdv:<7} {max_sdu:<7}",
        0
    );
}

/// An entry in the form of Figure 6.1 or, with layer 4, of Figure 6.3.
fn entry_line(filter: &FlowFilter, layer_4: bool) -> String {
    if !layer_4 {
        return filter.destination.to_string();
    }
    let end = |ip: Ipv4Addr, port: u16| format!("{ip}:{port}");
    let (from, to) = (
        end(filter.source, filter.source_port),
        end(filter.destination, filter.destination_port),
    );
    format!("{from:<21}{to:<21}{}", filter.protocol_name())
}

fn ingress_line(text: &mut String, row: &IngressRow, layer_4: bool) {
    let (ip, state) = (row.destination.to_string(), row.state.linux_name());
    let wide = if row.destination.is_ipv6() { 41 } else { 16 };
    let flow = row.filter.unwrap_or(FlowFilter::ANY);
    let flow = match layer_4 {
        true => format!("{:<6}{:<6}", flow.protocol_name(), flow.destination_port),
        false => String::new(),
    };
    let _ = write!(
        text,
        "{ip:<wide$}{flow}{state:<11}{:<14}{:<12}",
        row.left_s, row.packets
    );
    if let Some(vc) = row.vc {
        let _ = write!(text, "   {:<3}  {:<3}", vc.vpi, vc.vci);
    }
    text.push('\n');
}

fn egress_lines(text: &mut String, row: &EgressRow) {
    for octet in row.ingress.0 {
        let _ = write!(text, "{octet:02x}");
    }
    let (state, holding) = (row.state.linux_name(), row.holding_s);
    let source = row
        .latest_source
        .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
        .to_string();
    let _ = write!(
        text,
        "\n{:<16}{state:<11}{holding:<14}{:<15}",
        row.cache_id, row.packets
    );
    let _ = write!(text, "{source:<16}");
    if let Some(vc) = row.vc {
        let _ = write!(text, " {:<3} {:<3}", vc.vpi, vc.vci);
    }
    text.push('\n');
}
