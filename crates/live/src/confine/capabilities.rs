//! Giving up capabilities, and reporting them.

use rustix::thread as own;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The empty set in words.
pub(super) const NONE: &str = "none";
/// More than the number of capabilities of any kernel.
const NUMBERS: u32 = 64;

fn one(number: u32) -> CapabilitySet {
    CapabilitySet::from_bits_retain(1 << number)
}

/// Reduces the capabilities of the calling thread to those in `keep` that it has. `bounding` is the most that a program
/// started later can have. Without privilege the bounding set cannot be reduced, but no_new_privs has the same effect.
pub(crate) fn keep_only(keep: CapabilitySet, bounding: CapabilitySet) {
    for number in 0..NUMBERS {
        // The kernel refuses numbers above its last capability.
        if !bounding.contains(one(number))
            && own::remove_capability_from_bounding_set(one(number)).is_err()
        {
            break;
        }
    }
    let _ = own::clear_ambient_capability_set();
    let has = own::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    let keep = has & keep;
    let _ = own::set_capabilities(
        None,
        CapabilitySets {
            effective: keep,
            permitted: keep,
            inheritable: CapabilitySet::empty(),
        },
    );
}

/// Gives up all capabilities permanently.
pub(crate) fn drop_all() {
    keep_only(CapabilitySet::empty(), CapabilitySet::empty());
    let _ = own::set_no_new_privs(true);
}

/// The capabilities that are needed to reach the lab's directory, which the user owns, when the lab ends. A directory
/// above it may be closed to root without capabilities (`XDG_RUNTIME_DIR` of another user).
pub(super) fn to_reach(directory: &Path) -> CapabilitySet {
    let closed = |above: &Path| {
        above
            .metadata()
            .is_ok_and(|above| !may_search(above.mode(), above.uid(), above.gid()))
    };
    if directory.ancestors().skip(1).any(closed) {
        CapabilitySet::DAC_READ_SEARCH
    } else {
        CapabilitySet::empty()
    }
}

/// The capabilities that are needed to write into a directory. Root may have to write to a directory of another user.
pub(super) fn to_write(directory: &Path) -> CapabilitySet {
    let closed = |directory: std::fs::Metadata| {
        // The write bits are one position left of the search bits.
        !may_search(directory.mode() >> 1, directory.uid(), directory.gid())
    };
    if directory.metadata().is_ok_and(closed) {
        CapabilitySet::DAC_OVERRIDE | to_reach(directory)
    } else {
        to_reach(directory)
    }
}

/// True if this process may search a directory as its user alone. Source: path_resolution(7).
fn may_search(mode: u32, uid: u32, gid: u32) -> bool {
    use rustix::process as own;
    if uid == own::geteuid().as_raw() {
        return mode & 0o100 != 0;
    }
    let groups = own::getgroups().unwrap_or_default();
    let ours = gid == own::getegid().as_raw() || groups.iter().any(|group| group.as_raw() == gid);
    mode & if ours { 0o010 } else { 0o001 } != 0
}

/// The capabilities that the calling thread has.
pub(super) fn in_force() -> String {
    match own::capabilities(None) {
        Ok(sets) => words(sets.permitted | sets.effective | sets.inheritable),
        Err(error) => format!("unknown: {error}"),
    }
}

/// The capabilities that programs started by it can get.
pub(super) fn bounding() -> String {
    let all = (0..NUMBERS).map(one);
    let bounding = all.filter(|one| own::capability_is_in_bounding_set(*one) == Ok(true));
    words(bounding.collect())
}

fn words(set: CapabilitySet) -> String {
    match set.bits().count_ones() {
        0 => NONE.to_owned(),
        1..=6 => {
            let names = set.iter_names().map(|(name, _)| format!("CAP_{name}"));
            names.collect::<Vec<_>>().join(", ")
        }
        many => format!("{many} capabilities"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_reached_as_its_owner_its_group_or_anybody() {
        use rustix::process as own;
        let (uid, gid) = (own::geteuid().as_raw(), own::getegid().as_raw());
        assert!(may_search(0o700, uid, 77_777));
        assert!(!may_search(0o077, uid, gid));
        assert!(may_search(0o710, uid + 1, gid));
        assert!(!may_search(0o701, uid + 1, gid));
        assert!(may_search(0o701, uid + 1, 77_777));
        assert!(!may_search(0o770, uid + 1, 77_777));
    }
}
