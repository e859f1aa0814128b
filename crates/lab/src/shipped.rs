//! The labs that are part of the program, so that they can be run by name from any directory.
//!
//! All of them are files of `labs`, whose folders are part of their names: `campus`, `host/worker`, `papers/sara`.

/// Name of a file below `labs`, without its extension, and its text.
pub type File = (&'static str, &'static str);

/// Files of one folder below `labs` in the directory of the crate, embedded: a [`File`](crate::shipped::File) each.
#[macro_export]
macro_rules! embedded {
    ($folder:literal $extension:literal: $($name:literal)*) => {
        &[$((
            concat!($folder, $name),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/labs/", $folder, $name, $extension)),
        )),*]
    };
}

const GENERAL: &[File] = embedded!("" ".atm.yml":
    "atp" "back-to-back" "bridges" "call-tunnel" "campus" "cbr-beside-ubr" "cell-gateway" "cell-tester" "clip"
    "dead-destination" "detken-router" "detken-trunk" "dsl" "early-discard" "ip-tunnels" "lines" "load" "managers" "native"
    "nhrp" "one-elan" "parallel-links" "policed-tcp" "rate-queues" "rfc2544" "ring" "shares" "slow-hosts"
    "slow-receiver" "sockets" "star" "tcp-windows" "telephony" "tunnel" "two-hosts" "two-subnets" "vlans"
    "wan-detour");
const OF_MACHINES: &[File] = embedded!("host/" ".atm.yml":
    "both" "bridge" "dslam" "modem" "network" "worker");
const OF_PAPERS: &[File] = embedded!("papers/" ".atm.yml":
    "atp-hosts" "busy-managers" "clip-nt" "data-path" "detken-router" "detken-trunk" "fast-router" "managers"
    "native-atm" "sara" "sara-indy" "sara-switch" "slow-hosts" "tcp-clip" "thesis-jitter" "thesis-network" "thesis-qos"
    "two-loads" "wan-detour");

/// All labs: first those that stand alone, by name.
pub fn labs() -> impl Iterator<Item = File> {
    let all = [GENERAL, OF_MACHINES, OF_PAPERS].into_iter().flatten();
    all.copied()
}

/// The same, with a lab of a paper that stands alone, too, once.
pub fn alone() -> impl Iterator<Item = File> {
    labs().filter(|(name, text)| {
        !labs().any(|(other, same)| same == *text && other.len() < name.len())
    })
}

/// The text of the lab with this name.
#[must_use]
pub fn lab(name: &str) -> Option<&'static str> {
    labs().find(|lab| lab.0 == name).map(|lab| lab.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_lab_of_the_repository_is_in_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
        let mut there = BTreeSet::new();
        for folder in ["", "host/", "papers/"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap().flatten() {
                let file = entry.file_name().into_string().unwrap();
                let name = file.strip_suffix(".atm.yml");
                there.extend(name.map(|name| format!("{folder}{name}")));
            }
        }
        let embedded: BTreeSet<String> = labs().map(|lab| lab.0.to_owned()).collect();
        assert_eq!(embedded, there);
        assert_eq!(embedded.len(), labs().count(), "a name stands twice");
    }
}
