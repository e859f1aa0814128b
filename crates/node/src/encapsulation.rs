//! The ways in which a packet crosses the ATM network, for costs of the CPU and for the packet in an SDU.

aerostat_wire::named! {
    /// How a packet crosses the ATM network, as far as it matters for costs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Encapsulation {
        /// LAN emulation.
        Lane = "lane",
        /// An MPOA shortcut.
        Mpoa = "mpoa",
        /// Classical IP, also a shortcut of an NHRP client.
        ClassicalIp = "clip",
        /// An ATM line.
        Line = "line",
        /// A program writes and reads AAL5 SDUs.
        Native = "native",
        /// A program writes and reads packets of ATP.
        Atp = "atp",
    }
}
