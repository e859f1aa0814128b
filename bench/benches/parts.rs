//! Small parts, each beside something else that does as much: another crate, or a copy of the octets.

#![allow(
    missing_docs,
    reason = "criterion's macros make undocumented functions"
)]

use aerostat_bench::fabric::{Cells, Contract, Crossing, Lines, Order};
use aerostat_node::atm::{
    CellRate, CellRun, OutputPort, Pdu, PortLimits, QueueConfig, RawCells, RunReassembler,
};
use aerostat_proto::Instant;
use aerostat_wire::aal5::{self, Reassembler, Segmenter};
use aerostat_wire::lane::{Control, ControlFrame, LanDestination, OpCode};
use aerostat_wire::nhrp::Packet;
use aerostat_wire::q2931::{CallRef, Ie, Message, MessageType, Number, Version, convert};
use aerostat_wire::{AtmAddress, Blli, MacAddr, Qos, TrafficParams, Vc, cell, mpoa, oam};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const SIZES: [usize; 3] = [40, 1500, 9180];

fn octets(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7) as u8).collect()
}

fn checksums(c: &mut Criterion) {
    let mut g = c.benchmark_group("crc32");
    let peer = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_BZIP2);
    for len in SIZES {
        let data = octets(len);
        g.throughput(Throughput::Bytes(len as u64));
        let id = |name| BenchmarkId::new(name, len);
        g.bench_function(id("aerostat"), |b| b.iter(|| aal5::crc32(black_box(&data))));
        g.bench_function(id("peer: crc 3.4.0"), |b| {
            b.iter(|| peer.checksum(black_box(&data)))
        });
        g.bench_function(id("anchor: copy"), |b| b.iter(|| black_box(&data).clone()));
    }
    g.finish();
    let mut g = c.benchmark_group("crc10-of-a-cell");
    g.throughput(Throughput::Elements(1));
    let payload = [0x6a; 48];
    let peer = crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_10_ATM);
    g.bench_function("aerostat", |b| b.iter(|| oam::crc10(black_box(&payload))));
    g.bench_function("peer: crc 3.4.0", |b| {
        b.iter(|| peer.checksum(black_box(&payload)))
    });
    g.finish();
    let mut g = c.benchmark_group("hec-of-a-cell");
    g.throughput(Throughput::Elements(1));
    let peer = crc::Crc::<u8, crc::Table<16>>::new(&crc::CRC_8_I_432_1);
    let header = [0x12, 0x34, 0x56, 0x78];
    g.bench_function("aerostat", |b| b.iter(|| cell::hec(black_box(header))));
    g.bench_function("peer: crc 3.4.0", |b| {
        b.iter(|| peer.checksum(black_box(&header)))
    });
    g.finish();
}

fn adaptation(c: &mut Criterion) {
    for (name, by_cells) in [("aal5-octets", false), ("aal5-cells", true)] {
        let mut g = c.benchmark_group(name);
        for len in SIZES {
            let sdu = octets(len);
            let cells: Vec<_> = Segmenter::new(&sdu, 0).collect();
            g.throughput(if by_cells {
                Throughput::Elements(cells.len() as u64)
            } else {
                Throughput::Bytes(len as u64)
            });
            let id = |name: &str| BenchmarkId::new(name, len);
            g.bench_function(id("segment"), |b| {
                b.iter(|| Segmenter::new(black_box(&sdu), 0).fold(0, |n, (p, _)| n ^ p[0]));
            });
            let mut receiver = Reassembler::new(0);
            g.bench_function(id("reassemble"), |b| {
                b.iter(|| {
                    let mut sdu = None;
                    for (payload, pti) in &cells {
                        sdu = receiver.push(payload, *pti, false);
                    }
                    sdu
                });
            });
            for (most, name) in [
                (1, "single raw cells"),
                (RawCells::MOST, "blocks of raw cells"),
            ] {
                let blocks: Vec<_> = cells.chunks(most).filter_map(block).collect();
                let mut receiver = RunReassembler::new(0);
                // A receiver gets the runs; the link that they came by keeps references to their blocks.
                g.bench_function(id(&format!("reassemble {name}")), |b| {
                    b.iter_batched(
                        || blocks.clone(),
                        |runs| runs.into_iter().fold(None, |_, run| receiver.push(run)),
                        BatchSize::SmallInput,
                    );
                });
            }
            g.bench_function(id("anchor: copy"), |b| b.iter(|| black_box(&sdu).clone()));
        }
        g.finish();
    }
}

/// Cells of a PDU with their own octets, as a link out of the lab receives them.
fn block(cells: &[([u8; cell::PAYLOAD_LEN], cell::Pti)]) -> Option<CellRun> {
    let mut block = RawCells::default();
    cells
        .iter()
        .for_each(|(payload, pti)| block.push(*pti, payload));
    CellRun::of_raw(Vc::new(0, 32), false, Arc::new(block))
}

fn address(n: u8) -> AtmAddress {
    let mut prefix = [0; 13];
    prefix[0] = 0x47;
    AtmAddress::from_parts(prefix, MacAddr([2, 0, 0, 0, 0, n]), 0)
}

fn setup() -> Message {
    let qos = Qos::ubr(1516);
    let mut message = Message::new(
        CallRef {
            flag: false,
            value: 5,
        },
        MessageType::SETUP,
    );
    for ie in convert::elements(&qos, false, Version::Uni31) {
        message = message.with(&ie);
    }
    message
        .with(&Ie::CalledNumber(Number::called(address(1))))
        .with(&Ie::CallingNumber(Number::calling(address(2))))
        .with(&Ie::Blli(Blli::LANE_CONTROL))
}

fn codecs(c: &mut Criterion) {
    let mut g = c.benchmark_group("codec");
    let message = setup();
    let sdu = message.encode();
    g.bench_function("q2931-setup-encode", |b| {
        b.iter(|| black_box(&message).encode())
    });
    g.bench_function("q2931-setup-decode", |b| {
        b.iter(|| Message::decode(black_box(&sdu)))
    });
    let name = format!("anchor: copy {}", sdu.len());
    g.bench_function(name, |b| b.iter(|| black_box(&sdu).clone()));

    let mut frame = ControlFrame::new(OpCode::ARP);
    frame.source = LanDestination::mac(MacAddr([2, 0, 0, 0, 0, 1]));
    frame.source_atm = address(1);
    let sdu = frame.encode();
    g.bench_function("lane-arp-encode", |b| b.iter(|| black_box(&frame).encode()));
    g.bench_function("lane-arp-decode", |b| {
        b.iter(|| Control::decode(black_box(&sdu)))
    });
    let name = format!("anchor: copy {}", sdu.len());
    g.bench_function(name, |b| b.iter(|| black_box(&sdu).clone()));

    let (here, there) = ([10, 1, 0, 11].into(), [10, 2, 0, 12].into());
    let packet = mpoa::resolution_request(7, address(1), here, there);
    let sdu = packet.to_sdu();
    g.bench_function("mpoa-request-encode", |b| {
        b.iter(|| black_box(&packet).to_sdu())
    });
    g.bench_function("mpoa-request-decode", |b| {
        b.iter(|| Packet::from_sdu(black_box(&sdu)))
    });
    let name = format!("anchor: copy {}", sdu.len());
    g.bench_function(name, |b| b.iter(|| black_box(&sdu).clone()));
    g.finish();
}

const CONNECTIONS: u16 = 1024;

/// Cells from input to departure through two ports: look-up, policer, output queue, statistics of each VC.
fn switching(c: &mut Criterion) {
    let mut g = c.benchmark_group("fabric-1024-vcs");
    for (contract, police) in [
        (Contract::Policed, "policed"),
        (Contract::Unpoliced, "plain"),
    ] {
        for (run, length) in [(1, "cell by cell"), (32, "runs of 32")] {
            for (cells, kind) in [(Cells::Pdus, "PDUs"), (Cells::Raw, "raw")] {
                for (order, turns) in [(Order::Sorted, "in order"), (Order::Random, "at random")] {
                    let vcs = usize::from(CONNECTIONS);
                    let mut crossing = Crossing::new(vcs, cells, run, order, contract);
                    g.throughput(Throughput::Elements(
                        u64::from(run) * u64::from(CONNECTIONS),
                    ));
                    let name = format!("{length}, {police}, {kind}, {turns}");
                    g.bench_function(name, |b| b.iter(|| crossing.turns(vcs)));
                }
            }
        }
    }
    // What no switch can do without: a look-up, and in and out of a queue.
    let table: BTreeMap<u16, u16> = (0..CONNECTIONS).map(|n| (32 + n, n)).collect();
    let mut queue = VecDeque::new();
    g.throughput(Throughput::Elements(CONNECTIONS.into()));
    g.bench_function("anchor: BTreeMap and VecDeque", |b| {
        b.iter(|| {
            for n in 0..CONNECTIONS {
                queue.push_back(table.get(&(32 + n * 389 % CONNECTIONS)).copied());
                black_box(queue.pop_front());
            }
        });
    });
    g.finish();
}

/// Cost of a cell if the connections of a switch are few, or so many that most of their data is in memory; their order
/// has no pattern. Beside it: as many reads and writes of memory as a cell cannot do without.
fn connections(c: &mut Criterion) {
    let mut g = c.benchmark_group("fabric-connections");
    g.throughput(Throughput::Elements(TURNS as u64));
    for vcs in [100, 10_000, 1_000_000] {
        for (ahead, name) in [(true, "look ahead"), (false, "one by one")] {
            let mut crossing = None;
            g.bench_function(BenchmarkId::new(name, vcs), |b| {
                let crossing = crossing.get_or_insert_with(|| {
                    let crossing =
                        Crossing::new(vcs, Cells::Raw, 1, Order::Random, Contract::Policed);
                    crossing.looking_ahead(ahead)
                });
                b.iter(|| crossing.turns(TURNS));
            });
        }
        let mut lines = None;
        g.bench_function(BenchmarkId::new("anchor: four lines", vcs), |b| {
            let lines = lines.get_or_insert_with(|| Lines::new(vcs));
            b.iter(|| black_box(lines.turns(TURNS)));
        });
    }
    g.finish();
}

/// Cells of one measurement of many connections.
const TURNS: usize = 4096;

/// One port that is never idle: a CBR queue of single cells, seven UBR queues of 32-cell PDUs, one cell at a time.
fn port(c: &mut Criterion) {
    let mut g = c.benchmark_group("output-port");
    g.throughput(Throughput::Elements(1000));
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let mut queues = Vec::new();
    for n in 0..8 {
        let vc = Vc::new(0, 32 + n);
        let traffic = if n == 0 {
            TrafficParams::cbr(35_000, 0)
        } else {
            TrafficParams::ubr(0)
        };
        queues.extend(
            port.open(vc, QueueConfig::switch(traffic))
                .map(|queue| (queue, vc)),
        );
    }
    let (voice, data) = (Pdu::new(octets(40)), Pdu::new(octets(1500)));
    let mut now = Instant::ZERO;
    let mut turn = 0;
    g.bench_function("CBR and 7 UBR, cell by cell", |b| {
        b.iter(|| {
            for n in 0..1000 {
                if n % 10 == 0 {
                    port.enqueue(queues[0].0, CellRun::whole(voice.clone(), queues[0].1), now);
                }
                if n % 32 == 0 {
                    turn = turn % 7 + 1;
                    let (queue, vc) = queues[turn];
                    port.enqueue(queue, CellRun::whole(data.clone(), vc), now);
                }
                if let Some(at) = port.next_departure()
                    && let Some(gone) = port.pop(at, 1)
                {
                    now = gone.finish;
                }
            }
        });
    });
    let mut queue = VecDeque::new();
    g.bench_function("anchor: VecDeque of 1000", |b| {
        b.iter(|| {
            queue.extend(0..1000_u64);
            while let Some(cell) = queue.pop_front() {
                black_box(cell);
            }
        });
    });
    g.finish();
}

fn config() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = config();
    targets = checksums, adaptation, codecs, switching, connections, port
}
criterion_main!(benches);
