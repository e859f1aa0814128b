//! The capacity that servers of LANE, ATMARP, NHRP and MPOA, and the ports on the way to them, need for the clients of
//! the lab.

use super::Lab;

/// Connections of a client with LANE servers: configuration direct (while it joins), control direct, multicast send,
/// and one end each of a control distribute and a multicast forward, if these are separate calls.
const EACH: usize = 4;

/// Connections of a member of a Classical IP subnet on a link: one with the ATMARP server and one with the NHRP server;
/// and one to and one from another member.
const OF_MEMBER: usize = 4;

/// Counts of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Clients of all ELANs with servers in the lab.
    pub all: usize,
    /// Clients of the largest ELAN.
    pub largest: usize,
    /// ELANs with servers in the lab.
    pub elans: usize,
    /// Members of all Classical IP subnets, each of which may be a client of NHRP.
    pub members: usize,
    /// Members of the largest Classical IP subnet.
    pub subnet: usize,
    /// Routers, each of which may be a server of MPOA.
    pub routers: usize,
}

impl Scale {
    /// The counts for which the nodes of this lab have room: those of its start.
    #[must_use]
    pub fn of(lab: &Lab) -> Self {
        lab.retired.start.unwrap_or_else(|| Self::counted(lab))
    }

    /// The counts of this lab as it is. Clients in other labs are unknown; the usual limits have room for them.
    #[must_use]
    pub fn counted(lab: &Lab) -> Self {
        let mut counts = vec![0; lab.elans.len()];
        for (_, node) in lab.nodes() {
            for lec in node.lecs() {
                if let Some(count) = counts.get_mut(lab.network_of(lec.elan).0) {
                    *count += 1;
                }
            }
        }
        let subnets = lab.elans.iter().zip(&counts);
        let subnets: Vec<usize> = subnets
            .filter_map(|(elan, count)| elan.clip.is_some().then_some(*count))
            .collect();
        let own = lab.elans();
        let own: Vec<usize> = own
            .filter(|(_, elan)| elan.is_own())
            .map(|(id, _)| counts[id.0])
            .collect();
        Self {
            all: own.iter().sum(),
            largest: own.iter().copied().max().unwrap_or(0),
            elans: own.len(),
            members: subnets.iter().sum(),
            subnet: subnets.iter().copied().max().unwrap_or(0),
            routers: lab.routers().count(),
        }
    }
    /// Calls of one LANE server for its clients: all clients may call the LECS at the same time.
    #[must_use]
    pub const fn calls_of_server(&self) -> usize {
        2 * self.all
    }
    /// Calls for clients on a link that leads to servers.
    #[must_use]
    pub const fn calls(&self) -> usize {
        EACH * self.all + 2 * self.elans + OF_MEMBER * self.members
    }
    /// Calls of a host or a router for its clients and its shortcuts: one to and one from every other client. On
    /// Classical IP subnets these are the members, and the clients of a router that is a server.
    #[must_use]
    pub const fn calls_of_host(&self) -> usize {
        2 * self.all + OF_MEMBER * self.members
    }
    /// Calls of one part of a host or a router: of its LANE clients, its member of a subnet, its server.
    #[must_use]
    pub const fn calls_of_user(&self) -> usize {
        2 * (self.all + self.members)
    }
    /// Clients of all kinds that a router may serve.
    #[must_use]
    pub const fn clients(&self) -> usize {
        self.all + self.members
    }
    /// Neighbours of an interface in the largest ELAN.
    #[must_use]
    pub const fn neighbours(&self) -> usize {
        self.largest
    }
    /// Cells that arrive at once on a link to the LANE servers if all clients start at the same moment. The longest
    /// control frames take five cells, three quarters of a buffer are used before frames are discarded, and the same
    /// amount is added for other cells.
    #[must_use]
    pub const fn burst(&self) -> usize {
        8 * self.all
    }
    /// Users of the ATM service on the servers' host: the LECS, and a LES and a BUS for each ELAN.
    #[must_use]
    pub const fn users(&self) -> usize {
        2 * self.elans + 8
    }
}
