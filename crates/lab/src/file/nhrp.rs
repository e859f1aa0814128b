//! `nhrp:` in a lab file.

use super::{Name, Time};
use crate::field::{At, Table, section};

section! {
    /// Parameters of NHRP servers and clients.
    NhrpFile {
        /// A key that a server shares with all its neighbours, servers and clients, and a client with its server: what they
        /// say to each other is signed.
        key: Option<NhrpKeyFile>,
        /// Server: keys for single neighbours by name, instead of `key`.
        keys: Option<Table<Name, NhrpKeyFile>>,
        /// Server: stations may register their addresses on its networks; default: if it is on a subnet with NHRP.
        register: Option<At<bool>>,
        /// Client: holding time of its registration; default 15min.
        holding: Option<At<Time>>,
        /// Client: accept authoritative answers only, not cached ones; default true.
        authoritative: Option<At<bool>>,
        /// Client: the widest network that an answer may cover, as prefix length 8 to 32; default 32 (single addresses).
        prefix: Option<At<u64>>,
    }
}
section! {
    /// A key that two neighbours share.
    NhrpKeyFile {
        /// Number of the key (security parameter index), 0 to 65535.
        spi: At<u64>,
        /// The secret.
        secret: At<String>,
    }
}
