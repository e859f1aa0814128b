//! The TCP of `proto` beside that of this machine's kernel, in real time, over a TAP in a namespace of its own:
//! transfers through a relay that loses, reorders and doubles, the scripts of `crates/proto/tests/tcp`, and
//! throughputs.

mod rates;
mod scripts;
mod transfers;

use aerostat_live::namespace::{NetNs, ip};
use aerostat_live::tap::{Tap, TapConfig, VNET_HEADER};
use aerostat_proto::Duration;
use aerostat_wire::MacAddr;
use aerostat_wire::ipv4::Ipv4View;
use aerostat_wire::nhrp::internet_checksum;
use aerostat_wire::tcp::{Flags, Segment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::cell::Cell;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const KERNEL_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const ETHERNET: usize = 14;

/// A kernel with an interface, and the other end of it.
struct Bench {
    namespace: NetNs,
    tap: Tap,
    identification: Cell<u16>,
}

impl Bench {
    /// `None`, with the reason on the output, where this process may not make one.
    fn new() -> Option<Self> {
        match Self::make() {
            Ok(bench) => Some(bench),
            Err(error) => {
                println!("skipped: no TAP in a namespace ({error})");
                None
            }
        }
    }

    fn make() -> io::Result<Self> {
        let namespace = NetNs::create()?;
        let config = TapConfig {
            name: "tcp0".into(),
            mac: KERNEL_MAC,
            ip: Some((KERNEL, 24)),
            ip6: None,
            mtu: 1500,
        };
        let tap = Tap::create(&namespace, &config)?;
        namespace.run(|| {
            let (to, mac) = (OURS.to_string(), OUR_MAC.to_string());
            ip(&[
                "neigh",
                "replace",
                &to,
                "lladdr",
                &mac,
                "dev",
                "tcp0",
                "nud",
                "permanent",
            ])
        })?;
        let bench = Self {
            namespace,
            tap,
            identification: Cell::new(0),
        };
        bench.set("tcp_no_metrics_save", "1")?;
        Ok(bench)
    }

    /// Sets a variable of the kernel's TCP, for this namespace.
    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        self.namespace
            .run(|| std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value))
    }

    /// Sends a segment to the kernel.
    fn send(&self, segment: &Segment, data: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(ETHERNET + 60 + data.len());
        frame.extend(KERNEL_MAC.0);
        frame.extend(OUR_MAC.0);
        frame.extend([0x08, 0x00]);
        let length = (20 + segment.header_len() + data.len()) as u16;
        let identification = self.identification.get().wrapping_add(1);
        self.identification.set(identification);
        let mut header = vec![0x45, 0];
        header.extend(length.to_be_bytes());
        header.extend(identification.to_be_bytes());
        header.extend([0x40, 0, 64, aerostat_wire::ipv4::TCP, 0, 0]);
        header.extend(OURS.octets());
        header.extend(KERNEL.octets());
        let sum = internet_checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend(header);
        segment.encode(data, OURS, KERNEL, &mut frame);
        self.tap.write(&frame).map(drop)
    }

    /// Waits for a segment of the kernel, for so long at most; more may have come.
    fn receive(&self, wait: Duration) -> io::Result<Vec<(Segment, Vec<u8>)>> {
        let mut found = Vec::new();
        self.take(&mut found)?;
        if !found.is_empty() || wait.is_zero() {
            return Ok(found);
        }
        let timeout = Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: wait.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.tap, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.take(&mut found)?;
        Ok(found)
    }

    fn take(&self, found: &mut Vec<(Segment, Vec<u8>)>) -> io::Result<()> {
        loop {
            let mut buffer = Vec::with_capacity(VNET_HEADER + 70_000);
            if !self.tap.read(&mut buffer)? {
                return Ok(());
            }
            let (vnet, frame) = buffer.split_at(VNET_HEADER.min(buffer.len()));
            let Some(packet) = frame.get(ETHERNET..).and_then(Ipv4View::new) else {
                continue;
            };
            let segment = packet
                .packet()
                .get(packet.header_len()..)
                .map(Segment::decode);
            if let (aerostat_wire::ipv4::TCP, Some(Ok((segment, data)))) =
                (packet.protocol(), segment)
            {
                // A super frame stands for segments of this size.
                let size = vnet
                    .get(4..6)
                    .map_or(0, |size| u16::from_le_bytes([size[0], size[1]]));
                let is_super = vnet.get(1).is_some_and(|kind| *kind != 0) && size > 0;
                divide(
                    segment,
                    data,
                    if is_super { size.into() } else { usize::MAX },
                    found,
                );
            }
        }
    }
}

/// Selects the congestion control of a socket: a namespace takes only those that all users may have as its default.
fn control(socket: impl AsFd, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(socket, name)?)
}

/// Adds the segments that a super segment stands for.
fn divide(segment: Segment, data: &[u8], size: usize, found: &mut Vec<(Segment, Vec<u8>)>) {
    if data.len() <= size {
        return found.push((segment, data.to_vec()));
    }
    let parts = data.chunks(size);
    let last = parts.len() - 1;
    for (at, part) in parts.enumerate() {
        let mut one = segment;
        one.seq = segment.seq.wrapping_add((at * size) as u32);
        if at < last {
            one.flags = one.flags.without(Flags::FIN.with(Flags::PSH));
        }
        found.push((one, part.to_vec()));
    }
}
