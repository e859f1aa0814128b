//! `nhrp:` in a lab file.

use super::{Name, keys};
use crate::field::{At, Table, section};

section! {
    /// Parameters of NHRP servers and clients, and the keys of MPOA.
    NhrpFile (keys::nhrp()) {
        /// A key that a server shares with all its neighbours, servers and clients of NHRP and MPOA, and a client with
        /// its servers and other clients: what they say to each other is signed.
        key: Option<NhrpKeyFile>;
        /// Keys for single neighbours by name, instead of `key`.
        keys: Option<Table<Name, NhrpKeyFile>>;
        /// Obey neighbours to which the lab gives no key, too; default: only if there is no key.
        unsigned: Option<At<bool>>;
        /// Server: stations may register their addresses on its networks; default: if it is on a subnet with NHRP.
        register: Option<At<bool>>;
    }
}
section! {
    /// A key that two neighbours share.
    NhrpKeyFile {
        /// Number of the key (security parameter index), 0 to 65535.
        spi: At<u64>;
        /// The secret.
        secret: At<String>;
        /// Send the secret itself, as Cisco's `ip nhrp authentication` does: spi is 1, and the secret has 1 to 8
        /// characters. This is no security.
        clear_text: Option<At<bool>>;
    }
}
