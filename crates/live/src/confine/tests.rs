//! A confined process tries what is forbidden.

use super::{Needs, capabilities, confine, confine_daemon};
use rustix::process::{Signal, kill_process};
use rustix::thread as own;
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// Tells the test that it is the confined process, and which user it is.
const ROLE: &str = "AEROSTAT_CONFINED_TEST";
const NOBODY: u32 = 65_534;

#[test]
fn a_confined_process_can_do_nothing_but_its_work() {
    if let Ok(user) = std::env::var(ROLE) {
        return as_confined(&user);
    }
    // The test uses a process of its own, because rights that are given up do not come back.
    for user in ["same", "nobody"] {
        again("a_confined_process_can_do_nothing_but_its_work", user);
    }
}

/// Runs a test in a process of its own, as this user. Its temporary files are in a directory of their own, because a
/// confined process cannot remove them.
fn again(test: &str, user: &str) {
    let name = format!("aerostat-{test}-{user}-{}", std::process::id());
    let place = std::env::temp_dir().join(name);
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    let tried = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg(format!("confine::tests::{test}"))
        .env(ROLE, user)
        .env("TMPDIR", &place)
        .output();
    fs::remove_dir_all(&place).unwrap();
    let tried = tried.unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&tried.stdout),
        String::from_utf8_lossy(&tried.stderr),
    );
    assert!(tried.status.success(), "{user}: {out}{err}");
    assert!(out.contains("all was tried"), "{user}: {out}{err}");
    for line in out.lines().filter(|line| line.starts_with("skipped")) {
        println!("{line}");
    }
}

#[test]
fn a_confined_daemon_opens_no_file_and_no_socket_and_starts_nothing() {
    match std::env::var(ROLE) {
        Ok(_) => as_daemon(),
        Err(_) => again(
            "a_confined_daemon_opens_no_file_and_no_socket_and_starts_nothing",
            "daemon",
        ),
    }
}

#[allow(unsafe_code)]
fn as_daemon() {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket, socketpair};
    use std::os::unix::process::CommandExt as _;
    let was_root = rustix::process::geteuid().is_root();
    let user = rustix::process::geteuid().as_raw();
    let flags = SocketFlags::CLOEXEC;
    let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let file = std::env::temp_dir().join(format!("aerostat-daemon-{}", std::process::id()));
    fs::write(&file, "text").unwrap();
    let parent = rustix::process::getppid().unwrap();
    let may = confine_daemon(false);
    let words = may.join("; ");
    println!("may still: {words}");
    // A thread of several cannot leave its network, and this test has an environment.
    let expected = |word: &&String| {
        word.contains("environment") || word.contains("network") || word.contains("the user of")
    };
    assert!(
        may.iter().all(|word| expected(&word)) || !words.contains("seccomp"),
        "{words}"
    );
    assert!(words.contains("has the environment of its user"), "{words}");

    // What it needs: its socket, memory, time.
    let sent = rustix::net::send(&one, b"frame", rustix::net::SendFlags::NOSIGNAL);
    assert_eq!(sent, Ok(5));
    let mut octets = [0; 16];
    assert_eq!(rustix::io::read(&other, &mut octets[..]), Ok(5));
    assert_eq!(
        vec![7_u8; 64 << 20]
            .iter()
            .map(|n| u64::from(*n))
            .sum::<u64>(),
        7 * (64 << 20)
    );
    std::thread::sleep(std::time::Duration::from_millis(1));

    if was_root && !words.contains("the user") {
        assert_ne!(rustix::process::geteuid().as_raw(), user);
    }
    if words.contains("seccomp") {
        println!("skipped: {words}");
    } else {
        denied("a file", File::open(&file));
        denied("a file of the system", File::open("/etc/passwd"));
        denied("a device", File::open("/dev/null"));
        denied("a file to write", File::create(&file));
        denied("a file goes", fs::remove_file(&file));
        denied("a directory", fs::read_dir("/"));
        for family in [
            AddressFamily::UNIX,
            AddressFamily::INET,
            AddressFamily::NETLINK,
            AddressFamily::PACKET,
        ] {
            let made = socket(family, SocketType::DGRAM, None);
            denied("a socket", made.map_err(io::Error::from));
        }
        let taken = rustix::net::accept(&listener);
        denied("a connection", taken.map_err(io::Error::from));
        denied("a process", Command::new("/bin/true").spawn());
        denied("a program", Err::<(), _>(Command::new("/bin/true").exec()));
        denied("a thread", std::thread::Builder::new().spawn(|| {}));
        let signalled = kill_process(parent, Signal::CONT);
        denied("a signal", signalled.map_err(io::Error::from));
        // SAFETY: no file descriptor table is unshared.
        let left = unsafe { unshare_unsafe(UnshareFlags::NEWUSER) };
        denied("a user namespace", left.map_err(io::Error::from));
        // SAFETY: the filter refuses the calls before anything is read.
        for call in [
            libc::SYS_clone,
            libc::SYS_execve,
            libc::SYS_ptrace,
            libc::SYS_sendmsg,
        ] {
            let done = unsafe { libc::syscall(call, 0, 0, 0, 0, 0, 0) };
            let error = io::Error::last_os_error().raw_os_error();
            assert_eq!((done, error), (-1, Some(libc::EPERM)), "{call}");
        }
    }
    println!("all was tried");
}

struct Scene {
    base: PathBuf,
    lab: PathBuf,
    other: PathBuf,
}

/// The directories of two labs of the user.
fn scene(user: &str) -> Scene {
    let name = format!("aerostat-confined-{}", std::process::id());
    let base = std::env::temp_dir().join(name);
    let [lab, other] = ["lab", "other"].map(|name| base.join(name));
    for directory in [&base, &lab, &other] {
        fs::create_dir_all(directory).unwrap();
        if user == "nobody" {
            std::os::unix::fs::chown(directory, Some(NOBODY), Some(NOBODY)).unwrap_or_default();
        }
    }
    for file in [lab.join("lock"), other.join("lock")] {
        fs::write(file, "").unwrap();
    }
    Scene { base, lab, other }
}

fn denied<T>(what: &str, done: io::Result<T>) {
    match done {
        Err(error) => assert_eq!(
            error.kind(),
            io::ErrorKind::PermissionDenied,
            "{what}: {error}"
        ),
        Ok(_) => panic!("{what}: done"),
    }
}

#[allow(unsafe_code)]
fn as_confined(user: &str) {
    let Scene { base, lab, other } = scene(user);
    let [known, strange] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    if user == "nobody" && rustix::process::geteuid().is_root() {
        own::set_thread_groups(&[]).unwrap();
        own::set_thread_gid(rustix::process::Gid::from_raw(NOBODY)).unwrap();
        own::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).unwrap();
    }
    let confinement = confine(&Needs {
        directory: lab.clone(),
        connects: vec![port(&known)],
        binds: false,
        results: None,
        reads: std::collections::BTreeSet::new(),
    });
    let state = confinement.in_force();
    println!("{state:?}");
    let of = |what: &str| {
        state
            .iter()
            .find(|(name, _)| name.starts_with(what))
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(of("capabilities"), "none");
    assert_eq!(of("no new privileges"), "on");
    if user == "same" && rustix::process::geteuid().is_root() {
        assert_eq!(capabilities::bounding(), "none");
    }

    // What the process needs: threads, open descriptors, time, its directory, its peers.
    assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
    let mut peer = TcpStream::connect(known.local_addr().unwrap()).unwrap();
    known.accept().unwrap();
    peer.write_all(b"octets").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1));
    File::open("/dev/null").unwrap();

    if of("system calls") == "on" {
        without_calls();
        // SAFETY: no memory is passed.
        let missing = unsafe { libc::syscall(libc::SYS_clone3, 0, 0) };
        assert_eq!(
            (missing, io::Error::last_os_error().raw_os_error()),
            (-1, Some(libc::ENOSYS))
        );
        denied(
            "a file to write, in its own directory",
            File::create(lab.join("new")),
        );
    } else {
        println!("skipped: {}", of("system calls"));
    }
    if of("files").starts_with("on") {
        denied("a file of the system", File::open("/etc/passwd"));
        denied("a directory of the system", fs::read_dir("/"));
        denied("a file of another lab", File::open(other.join("lock")));
        denied(
            "a file of another lab goes",
            fs::remove_file(other.join("lock")),
        );
    } else {
        println!("skipped: landlock is {}", of("files"));
    }
    if of("files").ends_with(|last: char| last.is_ascii_digit()) {
        denied(
            "a port of a stranger",
            TcpStream::connect(strange.local_addr().unwrap()),
        );
    }

    // The end of a lab.
    fs::rename(&lab, base.join(".gone-1-0")).unwrap();
    fs::remove_dir_all(base.join(".gone-1-0")).unwrap();
    println!("all was tried");
}

/// Calls that no lab's process makes, whatever files it may open.
#[allow(unsafe_code)]
fn without_calls() {
    use rustix::net::{AddressFamily, SocketType, socket};
    for (what, flags) in [
        ("a network namespace", UnshareFlags::NEWNET),
        ("a user namespace", UnshareFlags::NEWUSER),
        ("a mount namespace", UnshareFlags::NEWNS),
    ] {
        // SAFETY: no file descriptor table is unshared.
        denied(
            what,
            unsafe { unshare_unsafe(flags) }.map_err(io::Error::from),
        );
    }
    denied("a program", Command::new("/bin/true").spawn());
    let parent = rustix::process::getppid().unwrap();
    denied(
        "a signal",
        kill_process(parent, Signal::CONT).map_err(io::Error::from),
    );
    for family in [
        AddressFamily::PACKET,
        AddressFamily::NETLINK,
        AddressFamily::UNIX,
    ] {
        let made = socket(family, SocketType::DGRAM, None);
        denied("another socket", made.map_err(io::Error::from));
    }
    let made = socket(
        AddressFamily::INET,
        SocketType::STREAM,
        Some(rustix::net::ipproto::MPTCP),
    );
    denied(
        "a connection that landlock does not see",
        made.map_err(io::Error::from),
    );
    denied(
        "a host's name",
        rustix::system::sethostname(b"x").map_err(io::Error::from),
    );
    denied(
        "a mount",
        rustix::mount::mount_bind("/", "/mnt").map_err(io::Error::from),
    );
    // SAFETY: this maps new memory, which is not used.
    let code = unsafe {
        let rights = libc::PROT_WRITE | libc::PROT_EXEC;
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            rights,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_eq!(
        code,
        libc::MAP_FAILED,
        "memory that is written and executed"
    );
    // Calls that are not in the list.
    for call in [
        libc::SYS_ptrace,
        libc::SYS_bpf,
        libc::SYS_keyctl,
        libc::SYS_userfaultfd,
        4000,
    ] {
        // SAFETY: the filter refuses the call before anything is read.
        let done = unsafe { libc::syscall(call, 0, 0, 0, 0, 0, 0) };
        assert_eq!(
            (done, io::Error::last_os_error().raw_os_error()),
            (-1, Some(libc::EPERM)),
            "{call}"
        );
    }
}
