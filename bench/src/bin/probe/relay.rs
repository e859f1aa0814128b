//! The least that a switch of cells over UDP can do: look the connection up, write the new header with its HEC, send.
//! It has no queues, no counters, no contracts and one direction.

use crate::form::{BATCH, Form, IN, LABEL, OUT, ROOM, VCS, socket, word};
use crate::sys::{self, Block};
use clap::{Args, ValueEnum};
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// How datagrams are moved.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// `select`, then `recv` and `send`, as Dynamips does
    Select,
    /// `recv` and `send`
    Single,
    /// `recvmmsg` and `sendmmsg`
    Mmsg,
    /// `recvmsg` with GRO, `send` with GSO
    Gso,
}

/// Options of the relay.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How datagrams are moved
    way: Way,
    /// Own address for incoming cells
    incoming: SocketAddr,
    /// Where they come from
    from: SocketAddr,
    /// Own address for outgoing cells
    outgoing: SocketAddr,
    /// Where they go
    to: SocketAddr,
    /// Octets of a cell
    #[arg(long, value_enum, default_value = "53")]
    form: Form,
    /// Cells in each datagram (only GSO must know)
    #[arg(long, default_value_t = 1)]
    cells: usize,
}

/// Outgoing labels by incoming VCI.
pub(crate) struct Table(Vec<u32>);

impl Table {
    pub(crate) fn new() -> Self {
        let mut labels = vec![0; 1 << 16];
        let first = (IN >> 4) as usize & 0xffff;
        for (label, vc) in labels[first..].iter_mut().zip(0..VCS) {
            *label = OUT + word(0, vc.into());
        }
        Self(labels)
    }
    /// Gives each whole cell its new header.
    pub(crate) fn switch(&self, form: Form, octets: &mut [u8]) {
        for cell in octets.chunks_exact_mut(form.len()) {
            let old = u32::from_be_bytes([cell[0], cell[1], cell[2], cell[3]]);
            let label = self.0[(old >> 4) as usize & 0xffff];
            form.write(cell, old & !LABEL | label);
        }
    }
}

/// Relays until it is killed.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    let input = socket(options.incoming, options.from)?;
    let output = socket(options.outgoing, options.to)?;
    println!("ready");
    let (table, form) = (Table::new(), options.form);
    match options.way {
        Way::Select => single(&input, &output, &table, form, true),
        Way::Single => single(&input, &output, &table, form, false),
        Way::Mmsg => mmsg(&input, &output, &table, form),
        Way::Gso => {
            sys::set_coalescing(&input)?;
            sys::set_segments(&output, options.cells * form.len())?;
            gso(&input, &output, &table, form)
        }
    }
}

/// A peer that is not there yet answers with ICMP, which the next call of the socket reports: no reason to end.
fn single(
    input: &UdpSocket,
    output: &UdpSocket,
    table: &Table,
    form: Form,
    select: bool,
) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        if select && !sys::select_two(input, output)? {
            continue;
        }
        if let Ok(length) = input.recv(&mut buffer) {
            table.switch(form, &mut buffer[..length]);
            let _ = output.send(&buffer[..length]);
        }
    }
}

fn mmsg(input: &UdpSocket, output: &UdpSocket, table: &Table, form: Form) -> io::Result<()> {
    let mut block = Block::new(BATCH, ROOM);
    loop {
        let Ok(count) = block.receive(input, BATCH) else {
            continue;
        };
        for n in 0..count {
            let length = block.length(n);
            table.switch(form, &mut block.buffer(n)[..length]);
            block.set_length(n, length);
        }
        let _ = block.send(output, count);
    }
}

fn gso(input: &UdpSocket, output: &UdpSocket, table: &Table, form: Form) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        if let Ok((length, _)) = sys::receive_coalesced(input, &mut buffer) {
            table.switch(form, &mut buffer[..length]);
            let _ = output.send(&buffer[..length]);
        }
    }
}
