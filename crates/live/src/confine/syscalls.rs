//! System calls: seccomp.
//!
//! **The list** has the calls of the loop, of the client threads and of the memory allocator. There is no new process
//! and no program, no namespace, no mount, no memory that is both written and executed, no file opened for writing, no
//! signal to other processes, no tracing, no new kind of socket. Calls with dangerous arguments are allowed only with
//! harmless ones.
//!
//! **A call that is not in the list fails with EPERM**, and the kernel's audit log gets a line about it. Killing the
//! process instead would hardly be safer, because the call is refused either way, and a lab with its results would be
//! lost when a C library takes an untested path. Calls that libraries try first and can do without (`clone3`,
//! `openat2`, ...) fail with ENOSYS, so that the libraries use the older call. The filter can check the arguments of
//! the older call; it cannot check those of `clone3`.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

/// Calls that only some labs make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    /// TCP connections are made.
    pub(super) connects: bool,
    /// A socket is bound to another interface, or to one that has come back.
    pub(super) binds: bool,
    /// Files are made, where landlock allows that.
    pub(super) writes: bool,
}

/// Restricts the calling thread of a lab.
pub(super) fn restrict(calls: Calls) -> Result<(), String> {
    restrict_to(listed(calls))
}

/// Restricts the calling thread of a daemon.
pub(super) fn restrict_daemon() -> Result<(), String> {
    restrict_to(listed_for_daemon())
}

fn restrict_to(listed: Result<Rules, BackendError>) -> Result<(), String> {
    let arch = std::env::consts::ARCH;
    let arch = TargetArch::try_from(arch).map_err(|_| format!("not for {arch}"))?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let listed = listed.map_err(|error| error.to_string())?;
    let missing = MISSING.iter().map(|call| (*call, Vec::new())).collect();
    // The list comes last, because it forbids installing another filter. It allows the missing calls, which the first
    // filter refuses.
    for (calls, otherwise, then) in [
        (missing, SeccompAction::Allow, absent),
        (listed, denied, SeccompAction::Allow),
    ] {
        let filter = SeccompFilter::new(calls, otherwise, then, arch);
        let program = filter.and_then(BpfProgram::try_from);
        apply(&program.map_err(|error| error.to_string())?)
            .map_err(|error| format!("the kernel refuses it: {error}"))?;
    }
    Ok(())
}

/// A filter program in the kernel's format. Source: linux/filter.h.
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const sock_filter,
}

/// Installs a filter. Refused calls get a line in the audit log. The slower memory accesses that Linux before 5.16 has
/// for filtered threads are turned off, because this process runs no foreign code.
#[allow(unsafe_code)]
fn apply(program: &[sock_filter]) -> std::io::Result<()> {
    let length = u16::try_from(program.len()).map_err(std::io::Error::other)?;
    let program = Program {
        length,
        instructions: program.as_ptr(),
    };
    let mut last = Ok(());
    for flags in [
        libc::SECCOMP_FILTER_FLAG_LOG | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
        0,
    ] {
        // SAFETY: the kernel reads the program during the call, within the length that is given, and writes nothing.
        let done = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if done == 0 {
            return Ok(());
        }
        // Kernels before 4.14 do not support these flags.
        last = Err(std::io::Error::last_os_error());
    }
    last
}

/// Calls that libraries can do without.
const MISSING: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_close_range,
    libc::SYS_openat2,
    libc::SYS_faccessat2,
    libc::SYS_epoll_pwait2,
    libc::SYS_copy_file_range,
    libc::SYS_io_uring_setup,
];

/// Calls that the lab and its daemons may make with any arguments: open descriptors, waiting, time, memory, its end.
const COMMON: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_close,
    libc::SYS_ppoll,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Further calls that the lab alone may make with any arguments.
const LAB: &[i64] = &[
    // Data, on open descriptors.
    libc::SYS_readv,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_dup,
    libc::SYS_dup3,
    // Existing sockets.
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    // Waiting.
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_pidfd_open,
    // Time and random numbers.
    libc::SYS_clock_getres,
    // Identity of the process.
    libc::SYS_getppid,
    libc::SYS_capget,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    // Threads and memory.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    // At the end the lab's directory is removed.
    libc::SYS_getdents64,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
];

/// Further such calls, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLD: &[i64] = &[
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_dup2,
    libc::SYS_time,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_renameat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[i64] = &[];

/// Requests of `ioctl`: whether a descriptor is a terminal, its width, whether it blocks, and the number of an
/// interface. The type of these numbers is not the same in all C libraries.
#[allow(clippy::unnecessary_cast)]
const REQUESTS: [u64; 4] = [
    libc::TCGETS as u64,
    libc::TIOCGWINSZ as u64,
    libc::FIONBIO as u64,
    libc::SIOCGIFINDEX as u64,
];

/// Calls that open a file, with the number of the argument that has the flags. The C library musl prefers the older
/// call, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, u8)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(i64, u8)] = &[(libc::SYS_openat, 2)];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// All calls that a daemon may make, with the arguments that they may have.
fn listed_for_daemon() -> Result<Rules, BackendError> {
    let plain = COMMON.iter().chain(MISSING);
    #[cfg(target_arch = "x86_64")]
    let plain = plain.chain(&[libc::SYS_poll, libc::SYS_time]);
    let mut all: Rules = plain.map(|call| (*call, Vec::new())).collect();
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let data = lacks(2, libc::PROT_EXEC as u64)?;
        all.insert(call, vec![SeccompRule::new(vec![data])?]);
    }
    // An abort ends this process only.
    let own = is(0, std::process::id().into())?;
    all.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![own])?]);
    // To the other end of an open socket, and to no address.
    let connected = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    all.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![connected])?]);
    Ok(all)
}

/// All allowed calls, with the arguments that they may have.
fn listed(calls: Calls) -> Result<Rules, BackendError> {
    // Landlock decides about the destination.
    let connect = calls.connects.then_some(&libc::SYS_connect);
    let bind = calls.binds.then_some(&libc::SYS_bind);
    let open = OPENING.iter().filter(|_| calls.writes);
    let open = open.map(|(call, _)| call);
    let plain = COMMON.iter().chain(LAB).chain(OLD).chain(MISSING);
    let plain = plain.chain(connect).chain(bind).chain(open);
    let mut all: Rules = plain.map(|call| (*call, Vec::new())).collect();
    let mut allow = |call: i64, conditions: Vec<SeccompCondition>| {
        all.entry(call)
            .or_default()
            .push(SeccompRule::new(conditions)?);
        Ok(())
    };
    // A thread of this process, not a new process.
    allow(libc::SYS_clone, vec![has(0, libc::CLONE_THREAD as u64)?])?;
    // No memory becomes executable that was not executable before.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        allow(call, vec![lacks(2, libc::PROT_EXEC as u64)?])?;
    }
    // Files are opened for reading only, unless there are results to write.
    if !calls.writes {
        let writing = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
        for (call, flags) in OPENING {
            allow(*call, vec![lacks(*flags, writing as u64)?])?;
        }
    }
    // Limits may be read but not set.
    allow(libc::SYS_prlimit64, vec![is_long(2, 0)?])?;
    // An abort ends this process only.
    allow(libc::SYS_tgkill, vec![is(0, std::process::id().into())?])?;
    for command in [
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_DUPFD_CLOEXEC,
    ] {
        allow(libc::SYS_fcntl, vec![is(1, command as u64)?])?;
    }
    // Data, but no new connection: landlock does not see connections by TCP Fast Open.
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        allow(call, vec![lacks(flags, libc::MSG_FASTOPEN as u64)?])?;
    }
    // Pairs of sockets for programs, which reach nothing else.
    allow(libc::SYS_socketpair, vec![is(0, libc::AF_UNIX as u64)?])?;
    for request in REQUESTS {
        allow(libc::SYS_ioctl, vec![is(1, request)?])?;
    }
    for option in [
        libc::PR_SET_NAME,
        libc::PR_SET_PDEATHSIG,
        libc::PR_CAPBSET_READ,
        libc::PR_GET_NO_NEW_PRIVS,
        libc::PR_GET_SECCOMP,
        PR_SET_VMA,
    ] {
        allow(libc::SYS_prctl, vec![is(0, option as u64)?])?;
    }
    if calls.connects {
        for family in [libc::AF_INET, libc::AF_INET6] {
            let kind = SeccompCmpOp::MaskedEq(0xf);
            let stream =
                SeccompCondition::new(1, SeccompCmpArgLen::Dword, kind, libc::SOCK_STREAM as u64)?;
            // No other protocol: landlock does not see connections of MPTCP, SCTP and SMC.
            allow(
                libc::SYS_socket,
                vec![is(0, family as u64)?, stream, is(2, 0)?],
            )?;
        }
    }
    Ok(all)
}

/// Naming of anonymous memory, which the allocator uses.
const PR_SET_VMA: i32 = 0x53_56_4d_41;

/// True if argument `index` is this number.
fn is(index: u8, number: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, number)
}
fn is_long(index: u8, number: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, number)
}
/// True if the argument has all of these bits set.
fn has(index: u8, bits: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(
        index,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(bits),
        bits,
    )
}
/// True if the argument has all of these bits clear.
fn lacks(index: u8, bits: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(
        index,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(bits),
        0,
    )
}
