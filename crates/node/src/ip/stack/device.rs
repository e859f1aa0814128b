//! The network card for smoltcp: IP packets, with one queue in each direction.

use crate::ip::packet::ETHERNET_HEADER;
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use std::collections::VecDeque;

/// Queues of packets; every packet has room for an Ethernet header in front.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) received: VecDeque<Vec<u8>>,
    pub(super) sent: VecDeque<Vec<u8>>,
    mtu: usize,
}

impl Queues {
    /// Limit of packets that wait to be taken. The queue is empty at the end of every run, so this limits one burst.
    const MAX_SENT: usize = 4096;

    pub(super) fn new(mtu: usize) -> Self {
        Self {
            received: VecDeque::new(),
            sent: VecDeque::new(),
            mtu,
        }
    }
}

impl Device for Queues {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sender<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Received, Sender<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Received(packet), Sender(&mut self.sent)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Sender<'_>> {
        (self.sent.len() < Self::MAX_SENT).then_some(Sender(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

pub(super) struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0.get(ETHERNET_HEADER..).unwrap_or_default())
    }
}

pub(super) struct Sender<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Sender<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; ETHERNET_HEADER + len];
        let result = f(&mut packet[ETHERNET_HEADER..]);
        self.0.push_back(packet);
        result
    }
}
