//! TCP of an embedded host: what smoltcp offers as options, and what can be set from outside it.
//!
//! **Purpose.** Hosts of the 1990s differed in their TCP, and measurements of that time show these differences.
//! [`TcpOptions`] describes the TCP of one host. [`STACK`] names the implementation, and results print it, because the
//! following properties are fixed.
//!
//! **Set by smoltcp's interface**: both buffers, Nagle's algorithm, the delay of acknowledgements, time stamps,
//! congestion control. **Set from outside**, in the segments with SYN that enter and leave the host (`syn`): the
//! maximum segment size, window scaling and the offer of selective acknowledgements. A [`AckDelay::Tick`] is the delay
//! to the next tick, set anew before the host reads what has arrived.
//!
//! **Fixed in smoltcp 0.14** (read in its source): the retransmission timeout is at least 1 s and at most 60 s; a
//! sender uses no selective acknowledgements, and leaves fast recovery with the first partial acknowledgement (Reno,
//! not NewReno); the initial window is 2048 octets; two segments are acknowledged together, if the second one is
//! within the delay; a window update is sent when the window has doubled; the round-trip time is taken from one segment
//! at a time, not from time stamps; at most 32 ranges wait for reassembly, which is a setting of this build.
//!
//! **Standards**: RFC 9293, 1122 §4.2.3.2 (delayed acknowledgements), 896 (Nagle), 6691 (MSS), 7323 (window scaling and
//! time stamps), 5681, 9438.

use aerostat_proto::{Duration, Instant};
use core::cell::Cell;
use smoltcp::socket::tcp;

/// The implementation of TCP in embedded hosts, as results name it.
pub const STACK: &str = "smoltcp 0.14";

/// The congestion control of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC, RFC 9438.
    #[default]
    Cubic,
    /// Reno, RFC 5681, which hosts had in 1999.
    Reno,
    /// No congestion control: only the receiver's window limits the sender.
    None,
}

/// When a host acknowledges data that it has not acknowledged yet, if it has nothing else to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDelay {
    /// At once, each segment.
    Never,
    /// So long after the first such segment, or with a second one. At least a microsecond.
    After(Duration),
    /// At the next tick of a clock of the whole host, or with a second such segment. The phase of the clock follows
    /// from the host's seed. At least a microsecond. BSD's `tcp_fasttimo` was called every 200 ms.
    Tick(Duration),
}

/// Options of every TCP socket of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control.
    pub congestion: Congestion,
    /// Receive buffer, octets, 1 to 2³⁰; above 65535 the window is scaled.
    pub receive_buffer: usize,
    /// Send buffer, octets, 1 to 2³⁰.
    pub send_buffer: usize,
    /// The largest segment that the host announces and sends, octets without TCP header; at least 48. `None`: as much as
    /// the MTU holds.
    pub mss: Option<u16>,
    /// Nagle's algorithm; `None`: the program decides.
    pub nagle: Option<bool>,
    /// Delayed acknowledgements.
    pub ack_delay: AckDelay,
    /// Time stamps, if the peer wants them, too: 12 octets of each segment.
    pub timestamps: bool,
    /// False: windows above 65535 octets are neither offered nor accepted.
    pub window_scaling: bool,
    /// False: selective acknowledgements are neither offered nor accepted.
    pub sack: bool,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            congestion: Congestion::Cubic,
            receive_buffer: 256 << 10,
            send_buffer: 256 << 10,
            mss: None,
            nagle: None,
            ack_delay: AckDelay::After(Duration::from_millis(10)),
            timestamps: false,
            window_scaling: true,
            sack: true,
        }
    }
}

thread_local! {
    /// The time for time stamps, ms. smoltcp asks for it by a function without arguments.
    static CLOCK: Cell<u32> = const { Cell::new(0) };
}

/// Sets the time of the time stamps of segments that are made next by this thread.
pub(super) fn set_clock(now: Instant) {
    // RFC 7323 §5.4: a clock of 1 ms to 1 s, whose value wraps.
    CLOCK.set((now.as_nanos() / 1_000_000) as u32);
}

/// The time until the next tick, at least a microsecond; `phase` is the time of any tick.
pub(super) fn until_tick(now: Instant, tick: Duration, phase: Duration) -> Duration {
    let tick = tick.as_micros().max(1);
    let since = u128::from(now.as_nanos() / 1000) + tick - phase.as_micros() % tick;
    let micros = tick - since % tick;
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

impl TcpOptions {
    /// A closed socket with these options.
    pub(super) fn socket(&self) -> tcp::Socket<'static> {
        let mut socket = tcp::Socket::new(
            tcp::SocketBuffer::new(vec![0; self.receive_buffer]),
            tcp::SocketBuffer::new(vec![0; self.send_buffer]),
        );
        socket.set_congestion_control(match self.congestion {
            Congestion::Cubic => tcp::CongestionControl::Cubic,
            Congestion::Reno => tcp::CongestionControl::Reno,
            Congestion::None => tcp::CongestionControl::None,
        });
        match self.ack_delay {
            AckDelay::Never => socket.set_ack_delay(None),
            AckDelay::After(time) => socket.set_ack_delay(Some(micros(time))),
            AckDelay::Tick(_) => {}
        }
        if self.timestamps {
            socket.set_tsval_generator(Some(|| CLOCK.get()));
        }
        socket
    }

    /// Whether Nagle's algorithm is on, for a program that would have it so.
    pub(super) fn nagle(&self, usual: bool) -> bool {
        self.nagle.unwrap_or(usual)
    }
}

/// A time for smoltcp, which counts microseconds.
pub(super) fn micros(time: Duration) -> smoltcp::time::Duration {
    smoltcp::time::Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
