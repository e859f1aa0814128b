//! Sends cells into a switch on one side, and checks on the other what comes out: label, HEC, payload type, order
//! within each connection, and how many.

use crate::form::{BATCH, END, Form, IN, LABEL, MOST, OUT, ROOM, VCS, socket, word};
use crate::sys::{self, Block};
use clap::{Args, ValueEnum};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Quantity to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A number of datagrams is under way; another enters when a datagram has come out
    Window,
    /// Datagrams enter at a rate, whatever comes out
    Open,
    /// One datagram at a time: how long it takes
    Latency,
}

/// Options of the generator.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Quantity to be measured
    mode: Mode,
    /// Own address on the side where cells go in
    from: SocketAddr,
    /// Address of the switch there
    to: SocketAddr,
    /// Own address on the side where they come out
    back: SocketAddr,
    /// Address of the switch there
    out: SocketAddr,
    /// For how long
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Octets of a cell
    #[arg(long, value_enum, default_value = "53")]
    form: Form,
    /// Cells in each datagram
    #[arg(long, default_value_t = 1)]
    cells: usize,
    /// Connections whose cells alternate, one by one
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(VCS)))]
    vcs: u16,
    /// Cells of the PDUs of each connection, one PDU after another, again and again; without it no cell ends a PDU
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1366))]
    pdus: Vec<u16>,
    /// Datagrams under way
    #[arg(long, default_value_t = 64)]
    window: usize,
    /// Cells a second of the open loop; 0: as many as possible
    #[arg(long, default_value_t = 0.0)]
    rate: f64,
    /// Send super-datagrams (GSO), and receive them (GRO)
    #[arg(long)]
    gso: bool,
    /// Look for cells again and again instead of sleeping until they come
    #[arg(long)]
    spin: bool,
}

/// Time after which a missing cell is lost.
const PATIENCE: Duration = Duration::from_millis(100);

/// Cells that came out.
#[derive(Clone, Debug)]
struct Seen {
    /// Cells of the connections.
    cells: u64,
    /// Cells with a wrong HEC, label or payload type, datagrams of a wrong length.
    wrong: u64,
    /// Cells whose number is not above that of the cell before on the same connection.
    disordered: u64,
    /// By connection, the least number that its next cell can have.
    next: Vec<u64>,
}

impl Seen {
    /// Nothing has come out of these connections.
    fn nothing(vcs: u16) -> Self {
        Self {
            cells: 0,
            wrong: 0,
            disordered: 0,
            next: vec![0; vcs.into()],
        }
    }
}

impl Seen {
    /// Takes the cells of one datagram, or of several; gives how many were of the connection.
    fn take(&mut self, form: Form, octets: &[u8]) -> u64 {
        self.wrong += u64::from(!octets.len().is_multiple_of(form.len()));
        let before = self.cells;
        for cell in octets.chunks_exact(form.len()) {
            let Some(word) = form.read(cell) else {
                self.wrong += 1;
                continue;
            };
            // A switch has messages of its own for its neighbour: signalling and ILMI.
            if word >> 4 & 0xffff < 32 {
                continue;
            }
            let (number, end) = number(form, cell);
            self.wrong += u64::from((word & END != 0) != end);
            let vc = (word & LABEL).wrapping_sub(OUT) >> 4;
            match self.next.get_mut(vc as usize) {
                Some(next) => {
                    self.disordered += u64::from(number < *next);
                    *next = number + 1;
                }
                None => self.wrong += 1,
            }
            self.cells += 1;
        }
        self.cells - before
    }
}

/// The number that a cell carries, and whether it was sent as the last one of its PDU.
fn number(form: Form, cell: &[u8]) -> (u64, bool) {
    let from = form.header();
    let octets = cell[from..from + 8].try_into().unwrap_or_default();
    (u64::from_be_bytes(octets), cell[from + 8] == 1)
}

/// The headers of the cells that follow each other on the line, again and again: label and payload type.
struct Headers {
    words: Vec<u32>,
    /// Place of the next cell.
    place: usize,
}

impl Headers {
    /// Cells of these connections alternate one by one; each has PDUs of these lengths, one after another.
    fn new(vcs: u16, pdus: &[u16]) -> Self {
        let ends = pdus
            .iter()
            .flat_map(|cells| (1..=*cells).map(move |n| n == *cells));
        let mut ends: Vec<bool> = ends.collect();
        if ends.is_empty() {
            ends.push(false);
        }
        let of_all =
            |end: bool| (0..vcs).map(move |vc| IN + word(0, vc.into()) + u32::from(end) * END);
        Self {
            words: ends.into_iter().flat_map(of_all).collect(),
            place: 0,
        }
    }

    /// True if all cells have the same header.
    fn are_one(&self) -> bool {
        self.words.len() == 1
    }

    /// Writes the header of the next cell, and tells the receiver of the cell whether it ends a PDU.
    fn write(&mut self, form: Form, cell: &mut [u8]) {
        let word = self.words[self.place];
        form.write(cell, word);
        cell[form.header() + 8] = u8::from(word & END != 0);
        self.place = if self.place + 1 == self.words.len() {
            0
        } else {
            self.place + 1
        };
    }
}

/// Numbers the cells of a datagram from `first` on.
fn fill(form: Form, octets: &mut [u8], first: u64, headers: &mut Headers) {
    let same = headers.are_one();
    for (n, cell) in octets.chunks_exact_mut(form.len()).enumerate() {
        if !same {
            headers.write(form, cell);
        }
        let from = form.header();
        cell[from..from + 8].copy_from_slice(&(first + n as u64).to_be_bytes());
    }
}

/// The sending side.
struct Sender {
    socket: UdpSocket,
    block: Block,
    whole: Vec<u8>,
    form: Form,
    /// Octets and cells of a datagram.
    datagram: usize,
    cells: usize,
    gso: bool,
    next: u64,
    headers: Headers,
}

impl Sender {
    fn new(options: &Options) -> io::Result<Self> {
        let (form, cells) = (options.form, options.cells);
        let datagram = form.len() * cells;
        let socket = socket(options.from, options.to)?;
        sys::set_buffers(&socket, 4 << 20)?;
        if options.gso {
            sys::set_segments(&socket, datagram)?;
        }
        let mut block = Block::new(BATCH, ROOM);
        // The longest UDP datagram, and so the longest super-datagram, has 65 507 octets.
        let segments = BATCH.min(65_507 / datagram);
        let mut whole = vec![0x6a; datagram * segments];
        let mut headers = Headers::new(options.vcs, &options.pdus);
        let mut write = |octets: &mut [u8]| {
            for cell in octets.chunks_exact_mut(form.len()) {
                cell.fill(0x6a);
                headers.write(form, cell);
            }
        };
        write(&mut whole);
        for n in 0..BATCH {
            write(&mut block.buffer(n)[..datagram]);
            block.set_length(n, datagram);
        }
        Ok(Self {
            socket,
            block,
            whole,
            form,
            datagram,
            cells,
            gso: options.gso,
            next: 0,
            headers,
        })
    }

    /// Sends up to `most` datagrams in one call; gives how many left.
    fn send(&mut self, most: usize) -> usize {
        let sent = if self.gso {
            let count = most.min(self.whole.len() / self.datagram);
            let octets = &mut self.whole[..count * self.datagram];
            fill(self.form, octets, self.next, &mut self.headers);
            self.socket.send(octets).map_or(0, |_| count)
        } else {
            let count = most.min(BATCH);
            for n in 0..count {
                let first = self.next + (n * self.cells) as u64;
                let octets = &mut self.block.buffer(n)[..self.datagram];
                fill(self.form, octets, first, &mut self.headers);
            }
            self.block.send(&self.socket, count).unwrap_or(0)
        };
        self.next += (sent * self.cells) as u64;
        sent
    }
}

/// The receiving side.
struct Receiver {
    socket: UdpSocket,
    block: Block,
    whole: Vec<u8>,
    form: Form,
    gso: bool,
    spin: bool,
    seen: Seen,
}

impl Receiver {
    fn new(options: &Options) -> io::Result<Self> {
        let socket = socket(options.back, options.out)?;
        sys::set_buffers(&socket, 4 << 20)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_nonblocking(options.spin)?;
        if options.gso {
            sys::set_coalescing(&socket)?;
        }
        Ok(Self {
            socket,
            block: Block::new(BATCH, ROOM),
            whole: vec![0; 1 << 16],
            form: options.form,
            gso: options.gso,
            spin: options.spin,
            seen: Seen::nothing(options.vcs),
        })
    }

    /// Waits for cells; gives how many came, `None` after 100 ms without any.
    fn receive(&mut self) -> Option<u64> {
        let start = Instant::now();
        loop {
            match self.take() {
                None if self.spin && start.elapsed() < PATIENCE => std::hint::spin_loop(),
                come => return come,
            }
        }
    }

    /// Takes the cells that are there, after a sleep unless this end spins.
    fn take(&mut self) -> Option<u64> {
        if self.gso {
            let (length, _) = sys::receive_coalesced(&self.socket, &mut self.whole).ok()?;
            return Some(self.seen.take(self.form, &self.whole[..length]));
        }
        let count = self.block.receive(&self.socket, BATCH).ok()?;
        let mut cells = 0;
        for n in 0..count {
            let length = self.block.length(n);
            cells += self.seen.take(self.form, &self.block.buffer(n)[..length]);
        }
        Some(cells)
    }

    /// Lets what is still under way from an earlier run arrive.
    fn drain(&mut self) {
        while self.receive().is_some_and(|cells| cells > 0) {}
        self.seen = Seen::nothing(self.seen.next.len() as u16);
    }
}

/// Measures, and prints one JSON object.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    if !(1..=MOST).contains(&options.cells) || options.window == 0 {
        let text = format!("1 to {MOST} cells in a datagram, and a window of at least 1");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let (sender, mut receiver) = (Sender::new(options)?, Receiver::new(options)?);
    receiver.drain();
    let time = Duration::from_secs_f64(options.seconds);
    match options.mode {
        Mode::Window => window(sender, receiver, options.window, time),
        Mode::Open => open(sender, receiver, options.rate, time),
        Mode::Latency => latency(sender, receiver, time),
    }
    Ok(())
}

fn window(mut sender: Sender, mut receiver: Receiver, window: usize, time: Duration) {
    let most = (window * sender.cells) as u64;
    // A window that opens little by little would make super-datagrams of few cells: those leave when they are full.
    let least = match sender.gso {
        true => window.min(sender.whole.len() / sender.datagram),
        false => 1,
    };
    let (mut under_way, mut lost) = (0_u64, 0_u64);
    let start = Instant::now();
    while start.elapsed() < time {
        let room = most.saturating_sub(under_way) as usize / sender.cells;
        if room >= least {
            under_way += (sender.send(room) * sender.cells) as u64;
        }
        match receiver.receive() {
            Some(cells) => under_way = under_way.saturating_sub(cells),
            // What has not come after 100 ms is lost.
            None => lost += std::mem::take(&mut under_way),
        }
    }
    let (seconds, seen) = (start.elapsed().as_secs_f64(), receiver.seen);
    let rate = seen.cells as f64 / seconds;
    let share = lost as f64 / (seen.cells + lost).max(1) as f64;
    print(rate, share, seen, "");
}

fn open(mut sender: Sender, mut receiver: Receiver, rate: f64, time: Duration) {
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    let reader = thread::spawn(move || {
        while receiver.receive().is_some() || !until.load(Ordering::Relaxed) {}
        receiver.seen
    });
    let (mut offered, start) = (0_u64, Instant::now());
    // A sender with a rate sends a few at a time, so that they do not come as a burst of 64.
    let batch = if rate > 0.0 { 16 } else { BATCH };
    while start.elapsed() < time {
        let due = start.elapsed().as_secs_f64() * rate;
        if rate > 0.0 && due < offered as f64 + (batch * sender.cells) as f64 {
            // The reader may have to run on the same CPU.
            thread::yield_now();
            continue;
        }
        offered += (sender.send(batch) * sender.cells) as u64;
    }
    let seconds = start.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    let Ok(seen) = reader.join() else {
        return;
    };
    let share = offered.saturating_sub(seen.cells) as f64 / offered.max(1) as f64;
    let more = format!(", \"offered\": {:.0}", offered as f64 / seconds);
    print(seen.cells as f64 / seconds, share, seen, &more);
}

fn latency(mut sender: Sender, mut receiver: Receiver, time: Duration) {
    let (mut times, mut lost) = (Vec::new(), 0_u64);
    let start = Instant::now();
    while start.elapsed() < time {
        let sent = Instant::now();
        sender.send(1);
        // Messages of the switch itself may come between.
        loop {
            match receiver.receive() {
                Some(0) => {}
                Some(_) => break times.push(sent.elapsed().as_nanos() as u64),
                None => break lost += 1,
            }
        }
    }
    let more = crate::percentiles(&mut times);
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    let share = lost as f64 / (times.len() as u64 + lost).max(1) as f64;
    print(rate, share, receiver.seen, &more);
}

fn print(rate: f64, loss: f64, seen: Seen, more: &str) {
    let Seen {
        wrong, disordered, ..
    } = seen;
    println!(
        "{{\"cells_per_second\": {rate:.0}, \"loss\": {loss:.5}, \"wrong\": {wrong}, \"disordered\": {disordered}{more}}}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::Table;

    /// Cells of the connection with these numbers, one after another, as the generator makes them.
    fn sent(form: Form, numbers: &[u64]) -> Vec<u8> {
        let mut octets = vec![0x6a; form.len() * numbers.len()];
        let mut headers = Headers::new(1, &[2]);
        for (cell, number) in octets.chunks_exact_mut(form.len()).zip(numbers) {
            fill(form, cell, *number, &mut headers);
        }
        octets
    }

    #[test]
    fn what_a_relay_sends_on_is_right_in_both_forms() {
        for form in [Form::WithHec, Form::WithoutHec] {
            let mut octets = sent(form, &[0, 1, 2]);
            let mut seen = Seen::nothing(1);
            seen.take(form, &octets);
            assert_eq!(
                (seen.cells, seen.wrong),
                (3, 3),
                "labels are those of the way in"
            );
            Table::new().switch(form, &mut octets);
            let mut seen = Seen::nothing(1);
            assert_eq!(seen.take(form, &octets), 3);
            assert_eq!((seen.wrong, seen.disordered), (0, 0));
        }
    }

    #[test]
    fn damage_disorder_and_strange_lengths_are_each_counted() {
        let form = Form::WithHec;
        let switched = |numbers: &[u64]| {
            let mut octets = sent(form, numbers);
            Table::new().switch(form, &mut octets);
            octets
        };
        let mut seen = Seen::nothing(1);
        seen.take(form, &switched(&[0, 2, 1, 3]));
        assert_eq!((seen.cells, seen.disordered, seen.wrong), (4, 1, 0));
        let mut damaged = switched(&[4]);
        damaged[2] ^= 0x10;
        seen.take(form, &damaged);
        assert_eq!((seen.cells, seen.wrong), (4, 1), "a wrong HEC");
        let mut long = switched(&[4]);
        long.push(0);
        seen.take(form, &long);
        assert_eq!((seen.cells, seen.wrong), (5, 2), "an octet too many");
        // Signalling of the switch itself (VCI 5) is neither.
        let mut own = switched(&[9]);
        form.write(&mut own, word(0, 5));
        assert_eq!(seen.take(form, &own), 0);
        assert_eq!((seen.cells, seen.wrong), (5, 2));
    }
}
