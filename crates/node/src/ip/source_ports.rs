//! The source ports of a program's TCP connections.
//!
//! A host that restarts has forgotten its connections, while their receivers still have them. A new connection with the
//! ports of an old one would be taken for a part of the old one, so each connection uses another source port, as with
//! the ephemeral ports of a usual host. The choice is deterministic: the flow of a packet can be told from its ports.

/// Number of ports by which two lives of a host are apart. It is odd, so that with a power of two ports every life has
/// another first port. A program that connects this many times in one life uses ports of the next life.
const PER_LIFE: u32 = 17;

/// The source ports of a program: a first one, and those at a constant distance above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePorts {
    first: u16,
    step: u16,
}

impl SourcePorts {
    /// One port for all connections.
    #[must_use]
    pub const fn only(port: u16) -> Self {
        Self {
            first: port,
            step: 0,
        }
    }

    /// The ports `first`, `first + step` and so on, up to 65535. With a `step` of 0 there is one port.
    #[must_use]
    pub const fn every(first: u16, step: u16) -> Self {
        Self { first, step }
    }

    /// The port of the first connection.
    #[must_use]
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The port, if there is only one.
    #[must_use]
    pub fn single(self) -> Option<u16> {
        (self.count() == 1).then_some(self.first)
    }

    /// How many ports there are: a power of two.
    fn count(self) -> u32 {
        let room = (u16::MAX - self.first).checked_div(self.step).unwrap_or(0);
        let all = u32::from(room) + 1;
        1 << all.ilog2()
    }

    /// The port of a connection: `life` counts the earlier starts of the host, `connection` the program's earlier
    /// connections in this life.
    #[must_use]
    pub fn of(self, life: u32, connection: u32) -> u16 {
        let number = life.wrapping_mul(PER_LIFE).wrapping_add(connection);
        self.first + (number % self.count()) as u16 * self.step
    }

    /// True if this is one of the ports.
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        match port.checked_sub(self.first) {
            Some(above) if self.step > 0 => above.is_multiple_of(self.step),
            above => above == Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_first_connection_uses_the_first_port_and_every_restart_another_one() {
        for flows in [1, 2, 3, 17, 34, 1000, 9000] {
            let ports = SourcePorts::every(40_001, flows);
            assert_eq!(ports.of(0, 0), 40_001);
            let lives: Vec<u16> = (0..1000).map(|life| ports.of(life, 0)).collect();
            assert!(
                lives.windows(2).all(|two| two[0] != two[1]),
                "{flows}: {lives:?}"
            );
            let distinct: BTreeSet<_> = lives.iter().collect();
            assert_eq!(distinct.len() as u32, ports.count().min(1000), "{flows}");
            assert!(lives.into_iter().all(|port| ports.contains(port)));
        }
    }

    #[test]
    fn flows_of_a_lab_share_no_port_whatever_their_host_and_their_life() {
        let flows = 7;
        let ports = |number| SourcePorts::every(40_001 + number, flows);
        for number in 0..flows {
            for (life, connection) in [(0, 0), (0, 5), (1, 0), (4000, 3), (u32::MAX, 9)] {
                let port = ports(number).of(life, connection);
                let owners = (0..flows).filter(|other| ports(*other).contains(port));
                assert_eq!(owners.collect::<Vec<_>>(), [number], "{port}");
            }
        }
        assert!(!ports(3).contains(40_003) && !ports(3).contains(0));
    }

    #[test]
    fn a_single_port_is_used_by_all_connections() {
        let port = SourcePorts::only(u16::MAX);
        assert_eq!((port.of(3, 4), port.count()), (u16::MAX, 1));
        assert!(port.contains(u16::MAX) && !port.contains(u16::MAX - 1));
    }
}
