//! A TAP inside a network namespace: the Ethernet interface `lecN` of a kernel host.
//!
//! It is opened with the vnet header, so that the kernel may deliver frames without segmentation and checksums;
//! `aerostat_node::offload` completes them before they become AAL5 PDUs.

use crate::namespace::{NetNs, ip};
use aerostat_node::offload::{KernelPart, VnetHeader};
use aerostat_wire::MacAddr;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::io;

/// Length of the vnet header in front of every frame of a [`Tap`], octets.
pub const VNET_HEADER: usize = tun_rs::VIRTIO_NET_HDR_LEN;

/// An open TAP.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
}

/// Configuration of a [`Tap`].
#[derive(Clone, Debug)]
pub struct TapConfig {
    /// Interface name inside the namespace, at most 15 octets.
    pub name: String,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its IPv4 address and prefix length.
    pub ip: Option<(std::net::Ipv4Addr, u8)>,
    /// IPv6 address and prefix length; without an address the interface has no IPv6.
    pub ip6: Option<(std::net::Ipv6Addr, u8)>,
    /// Largest IP packet, octets.
    pub mtu: u16,
}

impl Tap {
    /// Makes the interface inside `ns`, with its addresses and up.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn create(ns: &NetNs, config: &TapConfig) -> io::Result<Self> {
        ns.run(|| {
            refuse_if_there(&config.name)?;
            let device = tun_rs::DeviceBuilder::new()
                .name(&config.name)
                .layer(tun_rs::Layer::L2)
                .offload(true)
                .mtu(config.mtu)
                .mac_addr(config.mac.0)
                .build_sync()?;
            device.set_nonblocking(true)?;
            // Keep the kernel's own IPv6 traffic away from an interface without IPv6.
            let v6 = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", config.name);
            if let Some((address, prefix)) = config.ip6 {
                std::fs::write(v6, "0")?;
                let text = format!("{address}/{prefix}");
                ip(&["-6", "address", "add", &text, "dev", &config.name, "nodad"])?;
            } else {
                let _ = std::fs::write(v6, "1");
            }
            if let Some((address, prefix)) = config.ip {
                let text = format!("{address}/{prefix}");
                ip(&[
                    "address",
                    "add",
                    &text,
                    "broadcast",
                    "+",
                    "dev",
                    &config.name,
                ])?;
            }
            ip(&["link", "set", "dev", &config.name, "up"])?;
            #[allow(unsafe_code)]
            // SAFETY: `into_raw_fd` gives up the only owner of an open descriptor.
            let fd = unsafe { OwnedFd::from_raw_fd(device.into_raw_fd()) };
            Ok(Self { fd })
        })
    }

    /// Reads one frame behind its vnet header, into the spare capacity of `buffer`; false when no frame waits. A frame
    /// that is longer than the capacity is cut.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn read(&self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            return match rustix::io::read(&self.fd, spare_capacity(buffer)) {
                Ok(_) => Ok(true),
                Err(rustix::io::Errno::AGAIN) => Ok(false),
                // After a signal frames may still wait, and the poller would not report them again.
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Writes one complete Ethernet frame; `Ok(false)` when the kernel has no room.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn write(&self, frame: &[u8]) -> io::Result<bool> {
        self.write_parts(&[0; VnetHeader::LEN], frame, &[])
    }

    /// Writes a frame, possibly a super frame, that the kernel completes as its vnet header says; `Ok(false)` when the
    /// kernel has no room.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn write_part(&self, part: &KernelPart<'_>) -> io::Result<bool> {
        self.write_parts(&part.vnet, &part.headers, part.payload)
    }

    fn write_parts(
        &self,
        vnet: &[u8; VnetHeader::LEN],
        headers: &[u8],
        payload: &[u8],
    ) -> io::Result<bool> {
        let mut header = [0_u8; VNET_HEADER];
        if let Some(start) = header.first_chunk_mut() {
            *start = *vnet;
        }
        let parts = [&header[..], headers, payload].map(io::IoSlice::new);
        match rustix::io::writev(&self.fd, &parts) {
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NOBUFS) => Ok(false),
            // The interface is down (a user ran `ip link set down`): the frame is lost, as on a cable.
            Err(rustix::io::Errno::IO) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The raw descriptor, for a poller.
    #[must_use]
    pub fn raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

/// A descriptor of an interface that another process has made.
impl From<OwnedFd> for Tap {
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}
impl From<Tap> for OwnedFd {
    fn from(tap: Tap) -> Self {
        tap.fd
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Refuses a name that an interface of the calling thread's network namespace has: the kernel would give an existing
/// TAP without a word.
fn refuse_if_there(name: &str) -> io::Result<()> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    // Two lines are the head of the table.
    let mut names = table
        .lines()
        .skip(2)
        .filter_map(|line| line.split_once(':'));
    if names.any(|(other, _)| other.trim() == name) {
        let text = format!("there is an interface '{name}' already");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn a_frame_goes_in_and_an_arp_request_comes_out() {
        let Ok(ns) = NetNs::create() else {
            println!("skipped: no privilege for network namespaces");
            return;
        };
        let config = TapConfig {
            name: "lec0".into(),
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            ip: Some(([10, 1, 0, 10].into(), 24)),
            ip6: None,
            mtu: 1500,
        };
        let tap = match Tap::create(&ns, &config) {
            Ok(tap) => tap,
            Err(error) => {
                println!("skipped: no TAP: {error}");
                return;
            }
        };
        ns.run(|| {
            let socket = std::net::UdpSocket::bind("10.1.0.10:0")?;
            socket.send_to(b"hello", "10.1.0.11:9").map(drop)
        })
        .unwrap();
        // The kernel also sends packets of its own, for example IPv6 group reports, before or after the ARP request.
        let mut heard = Vec::new();
        let arp = loop {
            let mut buffer = Vec::with_capacity(70_000);
            let read = tap.read(&mut buffer).unwrap();
            match read.then(|| &buffer[VNET_HEADER..]) {
                Some(frame) if frame[12..14] == [8, 6] => break frame.to_vec(),
                Some(frame) => heard.push(frame.to_vec()),
                None => {
                    let mut waits = [PollFd::new(&tap, PollFlags::IN)];
                    let (tv_sec, tv_nsec) = (30, 0);
                    let ready = poll(&mut waits, Some(&Timespec { tv_sec, tv_nsec })).unwrap();
                    assert!(ready > 0, "no ARP request for 10.1.0.11 among {heard:?}");
                }
            }
        };
        assert_eq!(&arp[..6], &[0xff; 6]);
        assert_eq!(&arp[6..12], &config.mac.0);
        assert_eq!(&arp[12..14], &[8, 6]);
        assert!(tap.write(&arp).unwrap());
        // No lab takes over an interface that is there.
        let again = Tap::create(&ns, &config).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists, "{again}");
        assert_eq!(again.to_string(), "there is an interface 'lec0' already");
    }
}
