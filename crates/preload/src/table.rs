//! The ATM sockets of this process, by the number of their open file.
//!
//! `dup` and `fork` copy descriptors, and not open files, so a copy finds the same entry. After `fork` the connection
//! to the service belongs to the parent: a child makes one of its own, and shows its descriptors there. A descriptor
//! that came by `exec` is not in the table, and is shown as well. The same holds after a program has closed the
//! descriptor of the connection.
//!
//! **Fork.** The thread that forks has the lock of the table meanwhile, so the child of a process with several threads
//! has a table that is whole, and a lock that it can take.

use crate::layout::{QOS, SAP};
use aerostat_socket::{Connecting, Control, Error, Service};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State of a socket: the settings of the program, and the answers of the service.
#[derive(Clone)]
pub(crate) struct Entry {
    /// `PF_ATMPVC` or `PF_ATMSVC`.
    pub(crate) family: i32,
    pub(crate) control: Control,
    /// The process whose session `control` uses.
    process: u32,
    pub(crate) qos: Option<[u8; QOS]>,
    pub(crate) sap: [u8; SAP],
    /// True once it has an address.
    pub(crate) bound: bool,
    /// True if it wanted any address, and the one for which the host's name stands was taken.
    pub(crate) beside: bool,
    /// True once it has a connection.
    pub(crate) open: bool,
    /// `SO_MULTIPOINT`: its call is a point-to-multipoint call.
    pub(crate) multipoint: bool,
    /// The call that it makes without waiting.
    pub(crate) connecting: Option<Arc<Mutex<Option<Connecting>>>>,
}

impl Entry {
    /// Takes the call that is being made, to wait for its result.
    pub(crate) fn take_call(&self) -> Option<Connecting> {
        let call = self.connecting.as_ref()?;
        call.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    /// True while the call is being made, and the program has not asked for its result.
    pub(crate) fn is_connecting(&self) -> bool {
        let call = self.connecting.as_ref();
        call.is_some_and(|call| call.lock().is_ok_and(|call| call.is_some()))
    }
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<u64, Entry>,
    service: Option<(u32, Service)>,
    /// Number of entries at which those of closed sockets are looked for.
    clean_at: usize,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

thread_local! {
    /// The lock of the table, in a thread that forks.
    static FORKING: RefCell<Option<MutexGuard<'static, Option<Table>>>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    // A thread that is ending has no such place any more; it forks without the lock.
    let _ = FORKING.try_with(|held| {
        if let Ok(mut held) = held.try_borrow_mut() {
            held.get_or_insert_with(table);
        }
    });
}

extern "C" fn after_fork() {
    let _ = FORKING.try_with(|held| held.try_borrow_mut().map(|mut held| held.take()));
}

extern "C" fn at_load() {
    // SAFETY: the functions have the type that is asked for, do not unwind, and stay in memory, because a preloaded
    // library is never unloaded. Each thread drops only the lock that it has taken: the child of `fork` has the thread
    // that forked, with its thread-local memory. The table has no pointers to what only other threads have.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
}

/// The loader calls this function before `main`, so before there are threads.
// SAFETY: `.init_array` is a list of functions without arguments that the loader calls once.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(work: impl FnOnce(&mut Table) -> T) -> T {
    work(table().get_or_insert_with(Table::default))
}

/// The connection of this process to the service.
pub(crate) fn service() -> Result<Service, Error> {
    let process = std::process::id();
    if let Some(service) = with(|table| {
        let known = table.service.as_ref();
        known
            .filter(|(of, service)| *of == process && service.owns_descriptor())
            .map(|(_, service)| service.clone())
    }) {
        return Ok(service);
    }
    let service = Service::from_env()?;
    with(|table| {
        // Dropping the parent's connection closes this process' copy of it only, and no descriptor of the program.
        table.service = Some((process, service.clone()));
    });
    Ok(service)
}

/// The number of an open file, if it is a socket.
pub(crate) fn inode(fd: i32) -> Option<u64> {
    // SAFETY: `stat` is valid memory for the result, which is read only if the call has filled it.
    let stat = unsafe {
        let mut stat = std::mem::zeroed::<libc::stat>();
        (libc::fstat(fd, &raw mut stat) == 0).then_some(stat)?
    };
    (stat.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(stat.st_ino)
}

/// Adds a socket.
pub(crate) fn add(fd: i32, family: i32, control: Control, qos: Option<[u8; QOS]>, sap: [u8; SAP]) {
    let Some(inode) = inode(fd) else {
        return;
    };
    let entry = Entry {
        family,
        control,
        process: std::process::id(),
        bound: false,
        beside: false,
        open: false,
        multipoint: false,
        connecting: None,
        qos,
        sap,
    };
    with(|table| {
        table.entries.insert(inode, entry);
        if table.entries.len() > table.clean_at.max(64) {
            let open = open_sockets();
            table.entries.retain(|inode, _| open.contains(inode));
            table.clean_at = 2 * table.entries.len();
        }
    });
}

/// The numbers of the sockets that this process has open.
fn open_sockets() -> std::collections::BTreeSet<u64> {
    let all = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    all.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        inode(number)
    })
    .collect()
}

/// Changes a socket.
pub(crate) fn change(fd: i32, work: impl FnOnce(&mut Entry)) {
    let Some(inode) = inode(fd) else {
        return;
    };
    with(|table| table.entries.get_mut(&inode).map(work));
}

/// True if a process has, or may have inherited, ATM sockets: otherwise no call needs a look.
fn may_have() -> bool {
    std::env::var_os(aerostat_socket::VARIABLE).is_some()
}

/// The socket behind a descriptor, with the session of this process; `None` if it is another thing.
pub(crate) fn find(fd: i32) -> Option<Entry> {
    if !may_have() {
        return None;
    }
    let inode = inode(fd)?;
    let known = with(|table| table.entries.get(&inode).cloned());
    let process = std::process::id();
    match known {
        Some(entry) if entry.process == process && entry.control.owns_descriptor() => Some(entry),
        Some(mut entry) => {
            entry.control = adopted(fd)?;
            entry.process = process;
            // The answer comes to the parent, or to the connection that was closed.
            entry.connecting = None;
            with(|table| table.entries.insert(inode, entry.clone()));
            Some(entry)
        }
        None if is_packets(fd) => {
            let control = adopted(fd)?;
            let status = control.status().ok()?;
            let family = match status.peer.is_empty() && !status.label.is_empty() {
                true => crate::layout::ATMPVC,
                false => crate::layout::ATMSVC,
            };
            let entry = Entry {
                family,
                control,
                process,
                qos: crate::layout::qos_octets(&status.qos),
                sap: crate::layout::sap_octets(&status.sap),
                bound: !status.local.is_empty(),
                beside: false,
                open: !status.label.is_empty(),
                multipoint: status.leaves > 0,
                connecting: None,
            };
            with(|table| table.entries.insert(inode, entry.clone()));
            Some(entry)
        }
        None => None,
    }
}

fn adopted(fd: i32) -> Option<Control> {
    // SAFETY: the descriptor is open during the call, because the program has just used it in this thread.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    service().ok()?.control_of(fd).ok()
}

/// True for a Unix socket of packets, as those of the service are.
fn is_packets(fd: i32) -> bool {
    let option = |name: i32| {
        let (mut value, mut length) = (0_i32, 4);
        // SAFETY: `value` and `length` are valid for the call, which writes at most four octets.
        let done = unsafe {
            libc::syscall(
                libc::SYS_getsockopt,
                fd,
                libc::SOL_SOCKET,
                name,
                &raw mut value,
                &raw mut length,
            )
        };
        (done == 0).then_some(value)
    };
    option(libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && option(libc::SO_TYPE) == Some(libc::SOCK_SEQPACKET)
}
