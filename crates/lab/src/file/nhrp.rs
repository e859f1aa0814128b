//! `nhrp:` in a lab file.

use super::Name;
use crate::field::{At, Table, section};

section! {
    /// Parameters of NHRP servers.
    NhrpFile {
        /// A key that a server shares with every other server of the lab: what they say to each other is signed.
        key: Option<NhrpKeyFile>,
        /// Keys for single neighbours by name, instead of `key`.
        keys: Option<Table<Name, NhrpKeyFile>>,
        /// Stations may register their addresses on the networks of the server; default false.
        register: Option<At<bool>>,
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
