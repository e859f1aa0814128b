//! Cells through one fabric in memory: look-up, policer, output queue, departure, and the statistics of each VC.

use aerostat_node::atm::{
    CellRate, CellRun, Departure, Fabric, FabricOp, Pdu, Policing, PortLimits, PortVc, RawCells,
};
use aerostat_proto::Instant;
use aerostat_wire::cell::Pti;
use aerostat_wire::{ServiceCategory, TrafficParams, Vc};
use std::sync::Arc;

/// Kind of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Cells of PDUs that were made in the lab.
    Pdus,
    /// Cells with their own octets, as links out of the lab receive them.
    Raw,
}

/// The order in which the VCs have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    Sorted,
    /// Each VC once per round, in an order without a pattern.
    Random,
}

/// The contract of each VC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// UBR, which no policer checks.
    Unpoliced,
    /// VBR with both rates policed.
    Policed,
}

/// Blocks and PDUs that are in use at a time, as in the pool of an outside link.
const SOURCES: usize = 64;

/// Two ports; every VC goes from the first to the second.
pub struct Crossing {
    fabric: Fabric,
    order: Vec<Vc>,
    /// The VC whose turn is next.
    next: usize,
    /// Runs that are under way: what has left comes in again.
    sources: Vec<Departure>,
    now: Instant,
    ahead: bool,
}

impl Crossing {
    /// `vcs` connections; their cells come in runs of `run` cells.
    ///
    /// # Panics
    /// If there are more than 4096 × 65 503 connections.
    #[must_use]
    pub fn new(vcs: usize, cells: Cells, run: u16, order: Order, contract: Contract) -> Self {
        let line = CellRate::OC12;
        let mut fabric = Fabric::new([1; 16]);
        let limits = PortLimits {
            queues: vcs,
            ..PortLimits::SWITCH
        };
        (0..2).for_each(|_| {
            fabric.add_port(line, limits);
        });
        let traffic = match contract {
            Contract::Unpoliced => TrafficParams::ubr(0),
            // Each VC uses half of its sustainable rate, in short bursts at the rate of the line: all cells conform.
            Contract::Policed => TrafficParams {
                category: Some(ServiceCategory::NrtVbr),
                max_pcr: Some(line.cells_per_second() / 2),
                scr: (line.cells_per_second() / vcs as u32 * 2).max(1),
                mbs: 4 * u32::from(run),
                max_cdv: std::time::Duration::from_millis(1),
                ..TrafficParams::none()
            },
        };
        let mut labels: Vec<Vc> = (0..vcs)
            .map(|n| Vc::new((n / 65_000) as u16, 32 + (n % 65_000) as u16))
            .collect();
        for vc in &labels {
            let done = fabric.apply(FabricOp::Connect {
                from: PortVc::new(0, *vc),
                to: PortVc::new(1, *vc),
                traffic,
                police: Policing::from(contract == Contract::Policed),
            });
            assert!(done.is_ok(), "{done:?}");
        }
        if order == Order::Random {
            shuffle(&mut labels);
        }
        let sources = (0..SOURCES)
            .map(|n| Departure {
                run: source(cells, run, n as u8),
                ..Departure::default()
            })
            .collect();
        Self {
            fabric,
            order: labels,
            next: 0,
            sources,
            now: Instant::ZERO,
            ahead: false,
        }
    }

    /// With a look ahead at the connections of the next cells, or without.
    #[must_use]
    pub const fn looking_ahead(mut self, ahead: bool) -> Self {
        self.ahead = ahead;
        self
    }

    /// One run of each of the next `turns` VCs, from the input to its departure. Returns the cells that left.
    pub fn turns(&mut self, turns: usize) -> u64 {
        let mut cells = 0;
        for turn in 0..turns {
            if self.next >= self.order.len() {
                self.next = 0;
            }
            if self.ahead && turn % Fabric::AHEAD == 0 {
                let next = self.order.get(self.next..).unwrap_or_default();
                self.fabric
                    .look_ahead(0, next.iter().take(Fabric::AHEAD).copied());
            }
            let place = &mut self.sources[turn % SOURCES];
            place.run.vc = self.order[self.next];
            self.next += 1;
            self.fabric.take(0, &mut place.run, self.now, |_| ());
            let Some(output) = self.fabric.output_mut(1) else {
                continue;
            };
            let due = output.next_departure().unwrap_or(self.now);
            if output.pop_to(due, u16::MAX, place) {
                self.now = place.finish;
                cells += u64::from(place.run.count);
            }
        }
        cells
    }
}

/// The memory that a cell of a policed connection must touch: an entry of the input table, two lines for the connection
/// with its policer, a line for the queue. It reads them in an order without a pattern, and writes to the lines.
pub struct Lines {
    order: Vec<u32>,
    next: usize,
    table: Vec<u32>,
    connections: Vec<[[u64; 8]; 3]>,
    queues: Vec<[[u64; 8]; 2]>,
}

impl Lines {
    /// As many as the fabric has for `vcs` connections.
    #[must_use]
    pub fn new(vcs: usize) -> Self {
        let mut order: Vec<u32> = (0..vcs as u32).collect();
        shuffle(&mut order);
        Self {
            table: (0..vcs as u32).collect(),
            connections: (0..vcs).map(|n| [[n as u64; 8]; 3]).collect(),
            queues: vec![[[1; 8]; 2]; vcs],
            order,
            next: 0,
        }
    }

    /// Memory accesses of this number of cells; returns a sum of the values read.
    pub fn turns(&mut self, turns: usize) -> u64 {
        let mut sum = 0;
        for _ in 0..turns {
            if self.next >= self.order.len() {
                self.next = 0;
            }
            let found = self.table[self.order[self.next] as usize];
            self.next += 1;
            let connection = &mut self.connections[found as usize];
            connection[1][0] += 1;
            let queue = &mut self.queues[connection[0][0] as usize];
            queue[0][0] += 1;
            sum += queue[0][0];
        }
        sum
    }
}

fn shuffle<T>(all: &mut [T]) {
    let mut random = 12345_u64;
    for n in (1..all.len()).rev() {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        all.swap(n, (random >> 33) as usize % (n + 1));
    }
}

fn source(cells: Cells, run: u16, fill: u8) -> CellRun {
    let vc = Vc::default();
    match cells {
        Cells::Pdus => CellRun::whole(Pdu::new(vec![fill; usize::from(run) * 48 - 8]), vc),
        Cells::Raw => {
            let mut block = RawCells::default();
            for n in 1..=run {
                block.push(Pti::user(n == run), &[fill; 48]);
            }
            let of = CellRun::of_raw(vc, false, Arc::new(block));
            of.unwrap_or_else(|| CellRun::raw(vc, Pti::USER, [fill; 48]))
        }
    }
}
