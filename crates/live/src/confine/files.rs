//! Files and TCP connections: landlock.
//!
//! | what | why |
//! |---|---|
//! | the lab's directory: read, remove | it is removed at the end |
//! | the directory of all labs: rename and remove directories | the same: it gets another name first |
//! | `/dev/null`: read, write | the descriptor that is kept in reserve for clients |
//! | the directory of `--out`: make and write files | the results |
//! | directories with files of next hops: read | the files are read again when they change |
//! | TCP ports of `atmtcp: connect` | they connect again |
//!
//! A daemon has none of these. Descriptors that are open already stay usable: recordings, the log, sockets. Signals to
//! other processes, and their abstract sockets, are out of reach.

use super::Needs;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, NetPort,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use std::error::Error;
use std::path::Path;

/// The newest version of landlock that is requested; older kernels grant what they support.
const NEWEST: ABI = ABI::V7;

/// A set of rules that takes away everything.
fn everything() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

/// Takes all files and connections from the calling thread; returns how far the restriction holds.
pub(super) fn restrict_all() -> Result<String, RulesetError> {
    Ok(in_words(&everything()?.restrict_self()?))
}

/// Restricts the calling thread of a lab; returns how far the restriction holds.
pub(super) fn restrict(needs: &Needs) -> Result<String, Box<dyn Error>> {
    let own = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::RemoveFile | AccessFs::RemoveDir;
    let all_labs = AccessFs::MakeDir | AccessFs::RemoveDir;
    let null = AccessFs::ReadFile | AccessFs::WriteFile;
    let above = needs.directory.parent().unwrap_or(&needs.directory);
    let mut rules = everything()?;
    for (path, rights) in [
        (needs.directory.as_path(), own),
        (above, all_labs),
        (Path::new("/dev/null"), null),
    ] {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, rights))?;
    }
    if let Some(results) = &needs.results {
        // Files of results get their names once all of them are written; those of an earlier lab are removed.
        let write = AccessFs::MakeReg | AccessFs::WriteFile | AccessFs::Truncate;
        let write = write | AccessFs::ReadDir | AccessFs::RemoveFile;
        rules = rules.add_rule(PathBeneath::new(PathFd::new(results)?, write))?;
    }
    for directory in &needs.reads {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        rules = rules.add_rule(PathBeneath::new(PathFd::new(directory)?, read))?;
    }
    for port in &needs.connects {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(in_words(&rules.restrict_self()?))
}

fn in_words(status: &RestrictionStatus) -> String {
    let version = match status.landlock {
        LandlockStatus::NotEnabled => return "off: the kernel was started without it".to_owned(),
        LandlockStatus::NotImplemented => return "off: the kernel does not have it".to_owned(),
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
    };
    let beyond = match version as i32 {
        ..4 => " (TCP ports and signals are not restricted: Linux 6.12 would)",
        4..6 => " (signals are not restricted: Linux 6.12 would)",
        _ => "",
    };
    match status.ruleset {
        RulesetStatus::NotEnforced => "off".to_owned(),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            format!("on, ABI {}{beyond}", version as i32)
        }
    }
}
