//! TCPs of hosts: the values of [`Params`], each with its source.
//!
//! **Sources.** *Source* is the host's own code or manual, *RFC* a standard that its documents name. *Assumed* is a
//! value that no available document gives; it is that of the family. A profile of which more than half is assumed says
//! so by [`Profile::is_mostly_assumed`], and results print it. Only `linux` is judged by its host, the kernel of this
//! machine; values of the other hosts have not been read again in their sources, page by page, for this table.
//!
//! | profile | buffers | ACKs | window growth and recovery | timers |
//! |---|---|---|---|---|
//! | `linux` | `tcp_rmem`, `tcp_wmem` of 6.18 | each second segment, 40 to 200 ms, 16 quick | CUBIC with HyStart, RACK, PRR, F-RTO, undo | variance at least 200 ms |
//! | `linux-2.2` | 64 KiB of true size, half of it as window | each second segment, 20 ms to 500 ms | Reno, SACK | variance at least 200 ms |
//! | `bsd-4.3` | 4 KiB in mbufs | by reading, 200 ms tick | Reno, Tahoe | 500 ms tick, 1 to 64 s |
//! | `irix-5` | 60 KiB in mbufs | by reading, 200 ms tick | Reno | 500 ms tick |
//! | `unicos-8` | 32 KiB | by reading, 200 ms tick | Reno | 500 ms tick |
//! | `solaris-2.6` | 8 KiB | each second segment, 50 ms | Reno | 200 ms to 60 s |
//! | `windows-nt4` | 8760 octets | each second segment, 200 ms tick | Reno | 300 ms to 240 s |
//! | `newreno`, `reno`, `tahoe` | 64 KiB | each second segment, 200 ms | as their names | RFC 6298 |

use super::params::{
    Accounting, AckDelay, AckPush, CongestionParams, Counting, Floor, Growth, InitialWindow, Nagle,
    Params, Probe, Push, ReceiveParams, Recovery, SendParams, TimerParams, WindowForm,
    WindowUpdate,
};
use crate::Duration;

aerostat_wire::named! {
    /// Profiles.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Profile {
        /// Linux 6.18.
        #[default]
        Linux = "linux",
        /// Linux 2.2.1, January 1999.
        Linux22 = "linux-2.2",
        /// 4.3BSD-Tahoe, June 1988.
        Bsd43 = "bsd-4.3",
        /// IRIX 5.
        Irix5 = "irix-5",
        /// UNICOS 8.
        Unicos8 = "unicos-8",
        /// Solaris 2.6.
        Solaris26 = "solaris-2.6",
        /// Windows NT 4.0.
        WindowsNt4 = "windows-nt4",
        /// The rules of RFC 6582 and RFC 6298, and no more.
        NewReno = "newreno",
        /// The rules of RFC 2581 and RFC 2988, and no more.
        Reno = "reno",
        /// Slow start and congestion avoidance of 1988.
        Tahoe = "tahoe",
    }
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl Profile {
    /// True if more than half of its values are assumed.
    #[must_use]
    pub const fn is_mostly_assumed(self) -> bool {
        matches!(self, Self::Irix5 | Self::Unicos8)
    }
    /// The values, for Ethernet's MTU of 1500 octets.
    #[must_use]
    pub const fn params(self) -> Params {
        match self {
            Self::Linux => linux(),
            Self::Linux22 => linux_2_2(),
            Self::Bsd43 => bsd(4096, Recovery::Tahoe),
            // Assumed except the buffer: `tcp_sendspace` and `tcp_recvspace` of IRIX 5.3, 60 KiB.
            Self::Irix5 => bsd(60 << 10, Recovery::Reno),
            // Assumed except the buffer of 32 KiB and the window scale, which the manuals of UNICOS 8 name.
            Self::Unicos8 => {
                let mut params = bsd(32 << 10, Recovery::Reno);
                params.window_scaling = true;
                params
            }
            Self::Solaris26 => solaris(),
            Self::WindowsNt4 => windows(),
            Self::NewReno => by_standards(Recovery::NewReno),
            Self::Reno => by_standards(Recovery::Reno),
            Self::Tahoe => by_standards(Recovery::Tahoe),
        }
    }
}

/// Values of RFC 5681, 6298, 3390 and 1122; buffers and the delay of acknowledgements are choices within them.
const fn by_standards(recovery: Recovery) -> Params {
    Params {
        mss: 1460,
        timestamps: false,
        window_scaling: false,
        sack: false,
        ecn: false,
        receive: STANDARD_RECEIVE,
        send: SendParams {
            buffer: 65_535,
            most: 65_535,
            accounting: Accounting::Octets,
            nagle: Nagle::Rfc896,
            probe: Probe::Octet,
            half_window: false,
            push: Push::Emptied,
            wake_at_third: false,
        },
        congestion: CongestionParams {
            recovery,
            growth: Growth::Reno,
            counting: Counting::Acks,
            grows_when_limited: false,
            // RFC 2001 for Tahoe, RFC 2581 for Reno, RFC 3390 for NewReno.
            initial_window: match recovery {
                Recovery::Tahoe => InitialWindow::Segments(1),
                Recovery::Reno => InitialWindow::Segments(2),
                Recovery::NewReno | Recovery::Sack | Recovery::Rack => InitialWindow::Rfc3390,
            },
            restart_after_idle: true,
            limited_transmit: matches!(recovery, Recovery::NewReno),
            prr: false,
            frto: false,
            undo: false,
        },
        timers: standard_timers(recovery),
    }
}

const STANDARD_RECEIVE: ReceiveParams = ReceiveParams {
    buffer: 65_535,
    most: 65_535,
    accounting: Accounting::Octets,
    share: 1,
    form: WindowForm::Free,
    first_segments: 0,
    ack_every: 2,
    ack_after_read: false,
    ack_delay: AckDelay::After(ms(200)),
    quick_acks: 0,
    ack_push: AckPush::Never,
    update: WindowUpdate::TwoSegmentsOrHalf,
};

const fn standard_timers(recovery: Recovery) -> TimerParams {
    TimerParams {
        // RFC 6298 §2.1; RFC 2988 has 3 s.
        initial: match recovery {
            Recovery::NewReno | Recovery::Sack | Recovery::Rack => ms(1000),
            Recovery::Tahoe | Recovery::Reno => ms(3000),
        },
        floor: Floor::Timer(ms(1000)),
        most: ms(60_000),
        granularity: ms(1),
        slow_tick: None,
        jiffy: Duration::ZERO,
        one_measurement: true,
        retries: 12,
        syn_retries: 5,
        syn_linear: 0,
        persist: Some((ms(5000), ms(60_000))),
        stamp_unit: ms(1),
        time_wait: ms(240_000),
        fin_wait: None,
        keep_alive: None,
    }
}

/// Linux 6.18. Source: its `net/ipv4` and `include/net/tcp.h`: `TCP_RTO_MIN` 200 ms, `TCP_RTO_MAX` 120 s,
/// `TCP_TIMEOUT_INIT` 1 s, `TCP_INIT_CWND` 10, `TCP_DELACK_MIN` 40 ms, `TCP_DELACK_MAX` 200 ms, `TCP_MAX_QUICKACKS` 16,
/// `TCP_TIMEWAIT_LEN` 60 s, four repetitions of SYN a second apart, timers in ticks of HZ 250 (Debian's kernels);
/// `tcp_rmem` and `tcp_wmem` as `sysctl` shows them.
/// Assumed: half of the receive buffer is the packets' overhead, so the window is half of `tcp_rmem`, octet by octet.
const fn linux() -> Params {
    let mut params = by_standards(Recovery::Rack);
    params.timestamps = true;
    params.window_scaling = true;
    params.sack = true;
    params.receive = LINUX_RECEIVE;
    params.send = SendParams {
        buffer: 87_040,
        most: 4 << 20,
        accounting: Accounting::Octets,
        nagle: Nagle::Minshall,
        probe: Probe::Empty,
        half_window: true,
        push: Push::Written,
        wake_at_third: true,
    };
    params.congestion = CongestionParams {
        recovery: Recovery::Rack,
        growth: Growth::CUBIC_OF_LINUX,
        counting: Counting::Octets,
        grows_when_limited: true,
        initial_window: InitialWindow::Segments(10),
        restart_after_idle: true,
        limited_transmit: true,
        prr: true,
        frto: true,
        undo: true,
    };
    params.timers = TimerParams {
        initial: ms(1000),
        floor: Floor::Largest(ms(200)),
        most: ms(120_000),
        granularity: Duration::from_micros(1),
        slow_tick: None,
        jiffy: ms(4),
        one_measurement: false,
        retries: 15,
        syn_retries: 6,
        syn_linear: 4,
        persist: None,
        stamp_unit: ms(1),
        time_wait: ms(60_000),
        fin_wait: Some(ms(60_000)),
        keep_alive: None,
    };
    params
}

const LINUX_RECEIVE: ReceiveParams = ReceiveParams {
    buffer: 65_536,
    most: 16 << 20,
    accounting: Accounting::Octets,
    share: 1,
    form: WindowForm::Segments,
    first_segments: 44,
    ack_every: 2,
    ack_after_read: true,
    ack_delay: AckDelay::Adaptive {
        least: ms(40),
        most: ms(200),
        jiffy: ms(4),
    },
    quick_acks: 16,
    ack_push: AckPush::WhenRead,
    update: WindowUpdate::Doubled,
};

/// Linux 2.2.1. Source: `net/ipv4/tcp_input.c`, `tcp_output.c` and `include/net/tcp.h` of January 1999: a window of
/// half the free receive buffer of 65 535 octets in whole segments, `TCP_RTO_MIN` HZ/5, `TCP_TIMEOUT_INIT` 3 s, an
/// initial window of two segments, selective acknowledgements. Assumed: charges of packets, the least delay of an ACK
/// (HZ/50).
const fn linux_2_2() -> Params {
    let mut params = by_standards(Recovery::Sack);
    params.timestamps = true;
    params.window_scaling = true;
    params.sack = true;
    params.receive.share = 2;
    params.receive.form = WindowForm::Segments;
    params.receive.ack_delay = AckDelay::Adaptive {
        least: ms(20),
        most: ms(500),
        jiffy: Duration::ZERO,
    };
    params.receive.quick_acks = 1;
    params.receive.update = WindowUpdate::Doubled;
    params.receive.ack_after_read = true;
    params.send.nagle = Nagle::Minshall;
    params.send.probe = Probe::Empty;
    params.send.half_window = true;
    params.congestion.initial_window = InitialWindow::Segments(2);
    params.congestion.counting = Counting::Acks;
    params.congestion.restart_after_idle = false;
    params.timers.initial = ms(3000);
    params.timers.floor = Floor::Variance(ms(200));
    params.timers.most = ms(120_000);
    params.timers.granularity = ms(10);
    params.timers.stamp_unit = ms(10);
    params.timers.one_measurement = false;
    params.timers.persist = None;
    params.timers.retries = 15;
    params.timers.syn_retries = 10;
    params.timers.time_wait = ms(60_000);
    params
}

/// BSD from 4.3 to Net/2. Source: `netinet/tcp_timer.h` (`TCPTV_MIN` 1 s, `TCPTV_REXMTMAX` 64 s, `TCPTV_PERSMIN` 5 s,
/// `TCPTV_PERSMAX` 60 s, `TCPTV_MSL` 30 s, `TCP_MAXRXTSHIFT` 12, `PR_SLOWHZ` 2, `PR_FASTHZ` 5), `tcp_output.c` (silly
/// windows, Nagle), `tcp_input.c`; G. Wright and W. Stevens, *TCP/IP Illustrated*, volume 2, chapters 25, 26 and 29;
/// mbufs of 128 octets with 108 of data, clusters of 2048, chapter 2. `TCPTV_SRTTDFLT` 3 s makes the first timer 6 s.
const fn bsd(buffer: usize, recovery: Recovery) -> Params {
    let mut params = by_standards(recovery);
    let mbufs = Accounting::Mbufs {
        mbuf: 128,
        data: 108,
        cluster: 2048,
    };
    params.receive.buffer = buffer;
    params.receive.most = buffer;
    params.receive.accounting = mbufs;
    params.receive.ack_every = 0;
    params.receive.ack_delay = AckDelay::Tick(ms(200));
    params.send.buffer = buffer;
    params.send.most = buffer;
    params.send.accounting = mbufs;
    params.congestion.initial_window = InitialWindow::Segments(1);
    params.timers.initial = ms(6000);
    params.timers.most = ms(64_000);
    params.timers.granularity = ms(500);
    params.timers.slow_tick = Some(ms(500));
    params.timers.stamp_unit = ms(500);
    params.timers.time_wait = ms(60_000);
    params.timers.fin_wait = Some(ms(675_000));
    params
}

/// Solaris 2.6. Source: the parameters of `ndd /dev/tcp` in the *Solaris Tunable Parameters* manuals and W. Stevens,
/// *TCP/IP Illustrated*, volume 1, appendix E: `tcp_xmit_hiwat` and `tcp_recv_hiwat` 8192,
/// `tcp_rexmit_interval_initial` 3 s, `_min` 200 ms, `_max` 60 s, `tcp_deferred_ack_interval` 50 ms,
/// `tcp_slow_start_initial` 1, `tcp_close_wait_interval` 240 s. Assumed: recovery, window form and updates.
const fn solaris() -> Params {
    let mut params = by_standards(Recovery::Reno);
    params.receive.buffer = 8192;
    params.receive.most = 8192;
    params.receive.ack_delay = AckDelay::After(ms(50));
    params.send.buffer = 8192;
    params.send.most = 8192;
    params.congestion.initial_window = InitialWindow::Segments(1);
    params.timers.floor = Floor::Timer(ms(200));
    params.timers.granularity = ms(10);
    params.timers.persist = None;
    params
}

/// Windows NT 4.0. Source: D. MacDonald and W. Barkley, *Microsoft Windows NT 4.0 TCP/IP Implementation Details*: a
/// window of 8760 octets on Ethernet (a multiple of the segment size near 8 KiB), acknowledgement of each second
/// segment and within 200 ms, `TcpMaxDataRetransmissions` 5, `TcpMaxConnectRetransmissions` 3, first timer 3 s,
/// TIME-WAIT 240 s, fast retransmit after three duplicates. Assumed: the least timer of 300 ms, its largest of 240 s,
/// buffers for sending.
const fn windows() -> Params {
    let mut params = by_standards(Recovery::Reno);
    params.receive.buffer = 8760;
    params.receive.most = 8760;
    params.receive.ack_delay = AckDelay::Tick(ms(200));
    params.send.buffer = 8192;
    params.send.most = 8192;
    params.timers.floor = Floor::Timer(ms(300));
    params.timers.most = ms(240_000);
    params.timers.granularity = ms(100);
    params.timers.retries = 5;
    params.timers.syn_retries = 3;
    params.timers.persist = None;
    params
}
