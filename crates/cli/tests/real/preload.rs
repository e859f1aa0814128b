//! Unmodified programs for the ATM sockets of Linux, on a kernel that may have none: Debian's `atm-tools`, and programs
//! in C that are compiled against the kernel's headers.

use crate::atm_sockets::Net;
use crate::live::Runtime;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The library, which is built with this test.
pub(crate) fn library() -> PathBuf {
    let directory = Path::new(env!("CARGO_BIN_EXE_aerostat")).parent().unwrap();
    let path = directory.join("deps/libaerostat_preload.so");
    assert!(path.exists(), "{}", path.display());
    path
}

pub(crate) fn on(net: &Net, host: &str, program: &str, arguments: &[&str]) -> Command {
    // A program that waits for ever fails its test.
    let mut command = Command::new("timeout");
    command
        .args(["60", program])
        .args(arguments)
        .env("AEROSTAT_ATM", net.path(host))
        .env("LD_PRELOAD", library())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = &found {
        eprintln!("SKIPPED: {program}: {error} (Debian's package atm-tools)");
    }
    found.is_ok()
}

/// Waits until a host has so many sockets in this state.
pub(crate) fn until_there_are(net: &Net, host: &str, state: &str, count: usize) {
    until_there_are_of(&net.runtime, host, state, count);
}

/// Waits until a host of the lab in this runtime directory has so many sockets in this state.
pub(crate) fn until_there_are_of(runtime: &Runtime, host: &str, state: &str, count: usize) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let shown = runtime.run(&["inspect", host, "sockets", "-o", "jsonl"]);
        if shown.out.matches(state).count() >= count {
            return;
        }
        assert!(Instant::now() < end, "{state}: {}{}", shown.out, shown.err);
        thread::sleep(Duration::from_millis(20));
    }
}

/// Ends a program that does not end by itself.
fn stop(child: &mut Child) {
    crate::live::signal(&child.id().to_string(), "TERM");
    child.wait().unwrap();
}

pub(crate) fn output(child: Child) -> String {
    let out = child.wait_with_output().unwrap();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    text(&out.stdout) + &text(&out.stderr)
}

/// The address of sockets of a host, in capitals as people write it.
fn address(net: &Net, host: &str) -> String {
    let address = net.service(host).address().to_uppercase();
    format!("{}E0", &address[..38])
}

#[test]
fn debians_ttcp_atm_carries_every_octet_over_a_call_and_over_a_permanent_connection() {
    if !has("ttcp_atm") {
        return;
    }
    let net = Net::up("ttcp");
    let called = address(&net, "y");
    for (to, at, state) in [
        (called.as_str(), None, "listening"),
        ("0.100", Some("0.101"), "connected"),
    ] {
        let receiver: Vec<&str> = ["-r", "-a", "-s"].into_iter().chain(at).collect();
        let receiver = on(&net, "y", "ttcp_atm", &receiver).spawn().unwrap();
        until_there_are(&net, "y", state, 1);
        let sender = [
            "-t",
            "-a",
            "-s",
            "-n",
            "50",
            "-l",
            "4096",
            "-P",
            "cbr:pcr=20000",
            to,
        ];
        let sender = output(on(&net, "x", "ttcp_atm", &sender).spawn().unwrap());
        assert!(sender.contains("204800 bytes in"), "{sender}");
        let received = output(receiver);
        assert!(received.contains("204800 bytes in"), "{received}");
    }
    net.runtime.ok(&["down"]);
}

#[test]
fn debians_aread_awrite_svc_send_and_svc_recv_run_unmodified() {
    if !has("svc_send") {
        return;
    }
    let net = Net::up("tools");
    // `aread` says what it reads when it ends, or line by line on a terminal.
    let mut reader = on(&net, "y", "stdbuf", &["-oL", "aread", "0.101"]);
    let mut reader = reader.spawn().unwrap();
    until_there_are(&net, "y", "connected", 1);
    let written = on(&net, "x", "awrite", &["0.100", "hello"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&written.stdout).trim(), "5");
    let mut line = [0; 18];
    reader
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut line)
        .unwrap();
    assert_eq!(&line, b"5:  68 65 6C 6C 6F");
    stop(&mut reader);
    // The same connection cell by cell, as `atmdump` does: one cell with the trailer of AAL5 at its end.
    until_there_are(&net, "y", "ended", 1);
    let mut dump = on(&net, "y", "stdbuf", &["-oL", "atmdump", "0.101"]);
    let mut dump = dump.spawn().unwrap();
    until_there_are(&net, "y", "connected", 1);
    let written = on(&net, "x", "awrite", &["0.100", "hello"]).output();
    assert!(written.unwrap().status.success());
    let mut shown = String::new();
    let mut lines = BufReader::new(dump.stdout.take().unwrap());
    for _ in 0..2 {
        lines.read_line(&mut shown).unwrap();
    }
    for part in [
        "VPI=0 VCI=101",
        "CLP=0, Data SDU 1 (PTI 1)",
        "68 65 6c 6c 6f 00",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    stop(&mut dump);
    // Two services at one address: the access points tell them apart.
    let receiver = on(&net, "y", "svc_recv", &[]).spawn().unwrap();
    until_there_are(&net, "y", "listening", 1);
    let mut other = on(&net, "y", "ttcp_atm", &["-r", "-a", "-s"])
        .spawn()
        .unwrap();
    until_there_are(&net, "y", "listening", 2);
    // At this rate the receiver reads all, also on a busy machine.
    let called = address(&net, "y");
    let mut sender = on(&net, "x", "svc_send", &[&called, "cbr:pcr=20000,sdu=8192"])
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(300));
    stop(&mut sender);
    // It counts what it has read, once the call has ended.
    let received = output(receiver);
    assert!(received.contains("received "), "{received}");
    let read = received.split("received ").nth(1).unwrap();
    let read: u64 = read.split(' ').next().unwrap().parse().unwrap();
    let inspect = net.runtime.inspect(&["x", "sockets"]);
    let mut rows = inspect.iter();
    // The program is gone, and its socket is remembered.
    let sent = rows.find(|row| {
        let peer = row["peer"].as_str().unwrap_or_default();
        peer.replace('.', "") == called.to_lowercase()
    });
    let sent = sent.and_then(|row| row["sent_pdus"].as_u64());
    assert!(read > 1 && sent == Some(read), "{received}{inspect:?}");
    stop(&mut other);
    net.runtime.ok(&["down"]);
}

/// The numbers in the text of a tool.
fn numbers(text: &str) -> Vec<u64> {
    let words = text.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn debians_atmaddr_atmdiag_and_sonetdiag_show_the_interface_of_a_host() {
    if !has("atmdiag") {
        return;
    }
    let net = Net::with_ilmi("itf");
    let tool = |host: &str, program: &str, arguments: &[&str]| {
        let out = on(&net, host, program, arguments).output().unwrap();
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        (text(&out.stdout), text(&out.stderr))
    };
    // The tools of the same names of the command have the same texts.
    for host in ["x", "y"] {
        let (shown, told) = tool(host, "atmaddr", &["-n"]);
        assert_eq!((shown.lines().count(), told.as_str()), (1, ""), "{shown}");
        assert_eq!(shown, net.runtime.ok(&["atmaddr", "-n", host]));
    }
    // Signalling goes on meanwhile: each count is between one before and one after.
    let before = net.runtime.ok(&["atmdiag", "x"]);
    let (shown, told) = tool("x", "atmdiag", &[]);
    let after = net.runtime.ok(&["atmdiag", "x"]);
    assert_eq!(told, "");
    assert_eq!(shown.lines().count(), before.lines().count(), "{shown}");
    let [low, counts, high] = [&before, &shown, &after].map(|text| numbers(text));
    assert_eq!(
        (counts.len(), low.len(), high.len()),
        (13, 13, 13),
        "{shown}"
    );
    for (count, (low, high)) in counts.iter().zip(low.iter().zip(&high)) {
        assert!(low <= count && count <= high, "{before}{shown}{after}");
    }
    // Single cells are of programs only, so their count is exact, at both ends; and a program begins anew.
    let (from, to) = (net.service("x"), net.service("y"));
    let (sender, receiver) = (from.socket().unwrap(), to.socket().unwrap());
    sender.open_permanent("0.100", "aal0,ubr").unwrap();
    receiver.open_permanent("0.101", "aal0,ubr").unwrap();
    let mut cell = [0; 52];
    for _ in 0..3 {
        sender.send(&cell).unwrap();
        assert_eq!(receiver.recv(&mut cell).unwrap(), 52);
    }
    let row = |text: &str| {
        let row = text.lines().find(|line| line.contains("AAL0")).unwrap();
        row.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row(&tool("x", "atmdiag", &["-z"]).0), "3 0 0 0 0");
    assert_eq!(row(&tool("x", "atmdiag", &["0"]).0), "0 0 0 0 0");
    assert_eq!(row(&tool("y", "atmdiag", &[]).0), "0 0 3 0 0");
    // Cells both ways, and no errors of a line.
    let (shown, told) = tool("x", "sonetdiag", &[]);
    let counts = numbers(&shown);
    assert_eq!((counts.len(), told.as_str()), (9, ""), "{shown}");
    assert!(counts[..7].iter().all(|count| *count == 0), "{shown}");
    assert!(counts[7] > 3 && counts[8] > 0, "{shown}");
    // Refused, with the error of the kernel.
    let address = "47.0079.00000000000000000000.00A03E000001.00";
    for (program, arguments, error) in [
        ("atmaddr", &["-d", "0", address][..], "No such file"),
        ("atmdiag", &["1"], "No such device"),
        ("sonetdiag", &["1"], "No such device"),
        ("sonetdiag", &["los"], "Invalid argument"),
    ] {
        let (shown, told) = tool("x", program, arguments);
        assert!(
            told.contains(error),
            "{program} {arguments:?}: {shown}{told}"
        );
    }
    net.runtime.ok(&["down"]);
}

const PROGRAM: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <linux/atm.h>
#include <linux/atmdev.h>
#include <linux/sonet.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/sockios.h>
#ifndef SOL_ATM
#define SOL_ATM 264
#endif
#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); exit(1); } } while (0)

static struct atm_qos contract(int sdu)
{
    struct atm_qos qos;
    memset(&qos, 0, sizeof qos);
    qos.aal = ATM_AAL5;
    qos.txtp.traffic_class = qos.rxtp.traffic_class = ATM_UBR;
    qos.txtp.max_sdu = qos.rxtp.max_sdu = sdu;
    return qos;
}

/* The library has these numbers by heart. */
static void layout(void)
{
    CHECK(sizeof(struct atm_qos) == 84 && sizeof(struct atm_trafprm) == 40 && sizeof(struct atm_sap) == 40);
    CHECK(offsetof(struct atm_qos, rxtp) == 40 && offsetof(struct atm_qos, aal) == 80);
    CHECK(offsetof(struct atm_trafprm, max_pcr) == 4 && offsetof(struct atm_trafprm, pcr) == 8);
    CHECK(offsetof(struct atm_trafprm, max_cdv) == 16 && offsetof(struct atm_trafprm, max_sdu) == 20);
    CHECK(offsetof(struct atm_sap, blli) == 10 && sizeof(struct atm_blli) == 10 && sizeof(struct atm_bhli) == 10);
    CHECK(offsetof(struct atm_blli, l3_proto) == 3 && offsetof(struct atm_blli, l3) == 4);
    CHECK(sizeof(struct sockaddr_atmpvc) == 12 && offsetof(struct sockaddr_atmpvc, sap_addr.vci) == 8);
    CHECK(sizeof(struct sockaddr_atmsvc) == 44 && offsetof(struct sockaddr_atmsvc, sas_addr.prv) == 4);
    CHECK(offsetof(struct sockaddr_atmsvc, sas_addr.pub) == 24 && SOL_ATM == 264);
}

/* The interface 0 of the host; the numbers of the requests are those of the headers. */
static void interface(void)
{
    static const unsigned long changes[] = { ATM_ADDLECSADDR, ATM_DELLECSADDR,
        ATM_SETCIRANGE, ATM_SETESIF };
    static const unsigned long framing[] = { SONET_SETFRAMING, SONET_GETFRAMING, SONET_GETFRSENSE };
    int s = socket(PF_ATMPVC, SOCK_DGRAM, 0), list[4], value = -1;
    struct atm_iobuf names = { 3, list };
    struct atmif_sioc sioc = { 0, 0, NULL };
    struct sockaddr_atmsvc own[2], one;
    struct atm_dev_stats stats, later;
    struct sonet_stats cells;
    struct atm_cirange range;
    unsigned char esi[ESI_LEN];
    char type[ATM_ITFTYP_LEN];
    CHECK(s >= 0);
#define ASK(request, to) (sioc.arg = (to), sioc.length = sizeof *(to), ioctl(s, (request), &sioc))
#define GETS(request, to) (ASK(request, &(to)) == 0 && sioc.length == (int) sizeof(to))
    CHECK(ioctl(s, ATM_GETNAMES, &names) < 0 && errno == E2BIG);
    names.length = sizeof list;
    CHECK(ioctl(s, ATM_GETNAMES, &names) == 0 && names.length == sizeof(int) && list[0] == 0);
    CHECK(ASK(ATM_GETTYPE, &type) == 0 && !strcmp(type, "lab") && sioc.length == 4);
    CHECK(GETS(ATM_GETESI, esi));
    /* A list is cut to its room, and its length is told. */
    CHECK(ASK(ATM_GETADDR, &own) == 0 && sioc.length == sizeof one && own[0].sas_family == AF_ATMSVC);
    CHECK(!memcmp(own[0].sas_addr.prv + 13, esi, ESI_LEN) && own[0].sas_addr.prv[19] == 0);
    memset(&one, 0xff, sizeof one); sioc.arg = &one; sioc.length = 5;
    CHECK(ioctl(s, ATM_GETADDR, &sioc) == 0 && sioc.length == sizeof one && one.sas_addr.prv[0] == 0x47 && one.sas_addr.prv[1] == 0xff);
    CHECK(ASK(ATM_GETLECSADDR, &own) == 0 && sioc.length == sizeof one && own[0].sas_family == AF_ATMSVC);
    CHECK(GETS(ATM_GETLINKRATE, value) && value == ATM_OC3_PCR);
    CHECK(GETS(ATM_GETCIRANGE, range) && range.vpi_bits == 8 && range.vci_bits == 16);
    CHECK(GETS(ATM_GETSTAT, stats) && sizeof stats == 60 && stats.aal5.tx > 0 && stats.aal34.tx == 0);
    CHECK(GETS(ATM_GETSTATZ, stats) && GETS(ATM_GETSTAT, later) && later.aal5.tx < stats.aal5.tx);
    CHECK(GETS(SONET_GETSTAT, cells) && sizeof cells == 36 && cells.tx_cells > 0 && cells.section_bip == 0);
    CHECK(GETS(SONET_GETSTATZ, cells));
    CHECK(GETS(ATM_GETLOOP, value) && value == ATM_LM_NONE && GETS(ATM_QUERYLOOP, value) && value == 0);
    sioc.arg = (void *) ATM_LM_NONE; CHECK(ioctl(s, ATM_SETLOOP, &sioc) == 0);
    sioc.arg = (void *) ATM_LM_LOC_PHY; CHECK(ioctl(s, ATM_SETLOOP, &sioc) < 0 && errno == EINVAL);
    CHECK(GETS(SONET_GETDIAG, value) && value == 0);
    value = 0; CHECK(ASK(SONET_SETDIAG, &value) == 0 && ASK(SONET_CLRDIAG, &value) == 0);
    value = SONET_INS_LOS; CHECK(ASK(SONET_SETDIAG, &value) < 0 && errno == EINVAL);
    /* What would change the interface. */
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) CHECK(ASK(changes[i], &own) < 0 && errno == EPERM);
    for (unsigned i = 0; i < sizeof framing / sizeof *framing; i++) CHECK(ASK(framing[i], &value) < 0 && errno == EINVAL);
    CHECK(ASK(ATM_SETESI, &esi) < 0 && errno == EEXIST);
    /* No buffer, no argument, no such interface, no parties. */
    sioc.arg = NULL; CHECK(ioctl(s, ATM_GETSTAT, &sioc) < 0 && errno == EFAULT);
    CHECK(ioctl(s, ATM_GETSTAT, NULL) < 0 && errno == EFAULT);
    CHECK(ioctl(s, ATM_ADDPARTY, &names) < 0 && errno == EINVAL);
    sioc.number = 1; CHECK(ASK(ATM_GETESI, &esi) < 0 && errno == ENODEV);
    close(s);
}

static int opened(int family, int sdu)
{
    struct atm_qos qos = contract(sdu);
    int s = socket(family, SOCK_DGRAM, 0);
    CHECK(s >= 0);
    CHECK(setsockopt(s, SOL_ATM, SO_ATMQOS, &qos, sizeof qos) == 0);
    return s;
}

static void server(void)
{
    struct sockaddr_atmsvc own, peer;
    struct sockaddr_atmpvc label;
    struct atm_qos qos;
    socklen_t size = sizeof own;
    char pdu[10000];
    struct timeval at = { 0, 0 };
    int waiting = -1, s = opened(PF_ATMSVC, 2000), c, copy, status;
    ssize_t got;
    CHECK(listen(s, 3) == 0);
    CHECK(getsockname(s, (struct sockaddr *) &own, &size) == 0 && size == sizeof own && own.sas_family == AF_ATMSVC);
    for (int i = 0; i < 20; i++) printf("%02x", own.sas_addr.prv[i]);
    puts(""); fflush(stdout);
    size = sizeof peer;
    c = accept(s, (struct sockaddr *) &peer, &size);
    CHECK(c >= 0 && peer.sas_family == AF_ATMSVC && peer.sas_addr.prv[0] == 0x47);
    /* The contract was the caller's. */
    size = sizeof qos;
    CHECK(getsockopt(c, SOL_ATM, SO_ATMQOS, &qos, &size) == 0 && size == sizeof qos);
    CHECK(qos.aal == ATM_AAL5 && qos.rxtp.max_sdu == 1000 && qos.txtp.traffic_class == ATM_UBR);
    size = sizeof label;
    CHECK(getsockopt(c, SOL_ATM, SO_ATMPVC, &label, &size) == 0 && label.sap_family == AF_ATMPVC && label.sap_addr.vci >= 32);
    CHECK((got = read(c, pdu, sizeof pdu)) == 5 && !memcmp(pdu, "hello", 5));
    CHECK(ioctl(c, SIOCGSTAMP, &at) == 0 && at.tv_sec > 0);
    { struct pollfd p = { c, POLLIN, 0 }; CHECK(poll(&p, 1, 10000) == 1); }
    usleep(200000);
    CHECK(ioctl(c, FIONREAD, &waiting) == 0 && waiting == 3);
    CHECK(read(c, pdu, sizeof pdu) == 3 && read(c, pdu, sizeof pdu) == 700);
    /* A copy, and a child, are the same socket; the child may ask about it, too. */
    copy = dup(c); CHECK(copy >= 0 && close(c) == 0);
    if (!fork()) {
        size = sizeof peer;
        CHECK(getpeername(copy, (struct sockaddr *) &peer, &size) == 0 && peer.sas_family == AF_ATMSVC);
        CHECK(write(copy, "child", 5) == 5);
        exit(0);
    }
    CHECK(wait(&status) > 0 && status == 0);
    CHECK(write(copy, "parent", 6) == 6);
    CHECK(read(copy, pdu, sizeof pdu) == 0);
    /* Two leaves of one tree. */
    c = accept(s, NULL, NULL); copy = accept(s, NULL, NULL);
    CHECK(c >= 0 && copy >= 0);
    size = sizeof qos;
    CHECK(getsockopt(c, SOL_ATM, SO_ATMQOS, &qos, &size) == 0);
    CHECK(qos.rxtp.max_sdu == 1000 && qos.txtp.traffic_class == ATM_NONE);
    CHECK(read(c, pdu, sizeof pdu) == 4 && !memcmp(pdu, "tree", 4) && read(c, pdu, sizeof pdu) == 0);
    CHECK(read(copy, pdu, sizeof pdu) == 4 && read(copy, pdu, sizeof pdu) == 0);
}

/* A call without waiting: its result. */
static int finished(int s, struct sockaddr_atmsvc *to)
{
    struct pollfd p = { s, POLLOUT, 0 };
    int result = -1, flags = fcntl(s, F_GETFL);
    socklen_t size = sizeof result;
    CHECK(fcntl(s, F_SETFL, flags | O_NONBLOCK) == 0);
    /* On a busy machine the result may be there at once. */
    if (connect(s, (struct sockaddr *) to, sizeof *to) == 0) return fcntl(s, F_SETFL, flags);
    if (errno == ECONNREFUSED) return errno;
    CHECK(errno == EINPROGRESS);
    CHECK(poll(&p, 1, 20000) == 1);
    CHECK(getsockopt(s, SOL_SOCKET, SO_ERROR, &result, &size) == 0 && size == sizeof result);
    CHECK(fcntl(s, F_SETFL, flags) == 0);
    return result;
}

/* The root of a tree with three leaves: two at the server's host, and one of its own. */
static void tree(struct sockaddr_atmsvc *to)
{
    struct sockaddr_atmsvc own;
    socklen_t size = sizeof own;
    int root = opened(PF_ATMSVC, 1000), leaf = opened(PF_ATMSVC, 1000), on = 1, one, other, accepted, none = -1;
    char pdu[2000];
    CHECK(ioctl(root, ATM_ADDPARTY, to) < 0 && errno == EINVAL);
    CHECK(setsockopt(root, SOL_ATM, SO_MULTIPOINT, &on, sizeof on) == 0);
    on = 0; size = sizeof on;
    CHECK(getsockopt(root, SOL_ATM, SO_MULTIPOINT, &on, &size) == 0 && on == 1);
    CHECK(ioctl(root, ATM_ADDPARTY, to) < 0 && errno == EINVAL);
    CHECK(connect(root, (struct sockaddr *) to, sizeof *to) == 0);
    CHECK((one = ioctl(root, ATM_ADDPARTY, to)) > 0);
    CHECK(listen(leaf, 1) == 0);
    size = sizeof own;
    CHECK(getsockname(leaf, (struct sockaddr *) &own, &size) == 0);
    if (!fork()) {
        CHECK((accepted = accept(leaf, NULL, NULL)) >= 0 && read(accepted, pdu, sizeof pdu) == 4);
        CHECK(write(accepted, "back", 4) < 0 && errno == EMSGSIZE);
        CHECK(read(accepted, pdu, sizeof pdu) == 0);
        exit(0);
    }
    CHECK((other = ioctl(root, ATM_ADDPARTY, &own)) > one);
    own.sas_addr.prv[19] = 0xee;
    CHECK(ioctl(root, ATM_ADDPARTY, &own) < 0 && errno == ECONNREFUSED);
    CHECK(ioctl(root, ATM_ADDPARTY, NULL) < 0 && errno == EFAULT);
    CHECK(write(root, "tree", 4) == 4 && write(root, pdu, 1001) < 0 && errno == EMSGSIZE);
    usleep(300000);
    CHECK(ioctl(root, ATM_DROPPARTY, &none) < 0 && errno == EINVAL);
    CHECK(ioctl(root, ATM_DROPPARTY, &other) == 0 && ioctl(root, ATM_DROPPARTY, &other) < 0);
    CHECK(wait(&on) > 0 && on == 0);
    close(root);
}

static void client(const char *address)
{
    struct sockaddr_atmsvc to;
    struct atm_qos qos;
    socklen_t size = sizeof qos;
    char pdu[10000];
    int s = opened(PF_ATMSVC, 1000), bad, value = 1;
    interface();
    memset(&to, 0, sizeof to);
    to.sas_family = AF_ATMSVC;
    for (int i = 0; i < 20; i++) { unsigned octet; CHECK(sscanf(address + 2 * i, "%2x", &octet) == 1); to.sas_addr.prv[i] = octet; }
    /* Without a contract there is no call; AAL3/4 is not there. */
    bad = socket(PF_ATMSVC, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(connect(bad, (struct sockaddr *) &to, sizeof to) < 0 && errno == EBADFD);
    qos = contract(52); qos.aal = ATM_AAL34;
    CHECK(setsockopt(bad, SOL_ATM, SO_ATMQOS, &qos, sizeof qos) < 0 && errno == EINVAL);
    value = 2;
    CHECK(setsockopt(bad, SOL_ATM, SO_MULTIPOINT, &value, sizeof value) < 0 && errno == EINVAL);
    CHECK((fcntl(bad, F_GETFD) & FD_CLOEXEC) && !(fcntl(s, F_GETFD) & FD_CLOEXEC));
    close(bad);
    CHECK(finished(s, &to) == 0);
    CHECK(connect(s, (struct sockaddr *) &to, sizeof to) < 0 && errno == EISCONN);
    CHECK(getsockopt(s, SOL_ATM, SO_ATMQOS, &qos, &size) == 0 && qos.txtp.max_sdu == 1000 && qos.txtp.max_pcr == ATM_MAX_PCR);
    CHECK(write(s, "hello", 5) == 5);
    /* A PDU of no octets is not sent, one that is too long is refused. */
    CHECK(write(s, "", 0) == 0);
    CHECK(send(s, pdu, 1001, 0) < 0 && errno == EMSGSIZE);
    CHECK(write(s, "two", 3) == 3 && send(s, pdu, 700, 0) == 700);
    CHECK(read(s, pdu, sizeof pdu) == 5 && read(s, pdu, sizeof pdu) == 6);
    CHECK(setsockopt(s, SOL_ATM, SO_ATMQOS, &qos, sizeof qos) < 0 && errno == EOPNOTSUPP);
    close(s);
    tree(&to);
    /* Nobody listens any more, or never did. */
    s = opened(PF_ATMSVC, 1000); to.sas_addr.prv[19] = 0xee;
    CHECK(connect(s, (struct sockaddr *) &to, sizeof to) < 0 && errno == ECONNREFUSED);
    s = opened(PF_ATMSVC, 1000);
    CHECK(finished(s, &to) == ECONNREFUSED);
    /* Other sockets and files are the kernel's. */
    CHECK(socket(PF_UNIX, SOCK_STREAM, 0) >= 0 && write(1, "done\n", 5) == 5);
}

int main(int argc, char **argv)
{
    layout();
    if (argc > 1) client(argv[1]); else server();
    return 0;
}
"#;

/// A program in C for the ATM sockets of Linux; `None` if this machine cannot compile it.
pub(crate) fn compiled(name: &str, text: &str) -> Option<PathBuf> {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = program.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .arg("-pthread")
        .arg("-o")
        .arg(&program)
        .arg(&source);
    let out = match compiler.output() {
        Err(error) => {
            eprintln!("SKIPPED: cc: {error}");
            return None;
        }
        Ok(out) => out,
    };
    let told = String::from_utf8_lossy(&out.stderr);
    if told.contains("linux/atm") {
        eprintln!("SKIPPED: the kernel's headers have no <linux/atm.h>");
        return None;
    }
    assert!(out.status.success(), "{told}");
    Some(program)
}

/// Calls that no tool uses: contracts read back, labels, `dup`, `fork`, FIONREAD, errors; and the layout of the
/// structures.
#[test]
fn a_program_in_c_compiled_against_the_kernels_headers() {
    let Some(program) = compiled("atm-sockets", PROGRAM) else {
        return;
    };
    let net = Net::with_ilmi("cprogram");
    let program = program.to_str().unwrap();
    let mut server = on(&net, "y", program, &[]).spawn().unwrap();
    let mut line = [0; 41];
    let read = server.stdout.as_mut().unwrap().read_exact(&mut line);
    assert!(read.is_ok(), "{}", output(server));
    let called = str::from_utf8(&line[..40]).unwrap();
    let client = output(on(&net, "x", program, &[called]).spawn().unwrap());
    assert_eq!(client, "done\n");
    assert_eq!(output(server), "");
    // Without the variable the kernel answers.
    let mut plain = Command::new(program);
    plain
        .env("LD_PRELOAD", library())
        .env_remove("AEROSTAT_ATM");
    let plain = plain.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(told.contains("Address family not supported"), "{told}");
    net.runtime.ok(&["down"]);
}

/// Inside kernel hosts `aerostat exec` names the service.
#[test]
fn exec_runs_debians_ttcp_atm_between_kernel_hosts() {
    if !crate::live::can_run() || !has("ttcp_atm") {
        return;
    }
    let runtime = Runtime::new("execatm");
    runtime.ok(&["up", "-d", "-q", "labs/two-hosts.atm.yml"]);
    let exec = |host: &str, arguments: &[&str]| {
        let arguments = [&["exec", host, "--", "ttcp_atm", "-a", "-s"], arguments].concat();
        let mut command = runtime.command(&arguments);
        command
            .env("LD_PRELOAD", library())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let receiver = exec("sello", &["-r"]);
    let service = runtime.directory.join("aerostat/two-hosts/atm/sello.sock");
    let service = aerostat_socket::Service::connect(&service).unwrap();
    let called = format!("{}E0", &service.address().to_uppercase()[..38]);
    let end = Instant::now() + Duration::from_secs(20);
    while !runtime
        .run(&["inspect", "sello", "sockets"])
        .out
        .contains("listening")
    {
        assert!(Instant::now() < end, "no listener");
        thread::sleep(Duration::from_millis(20));
    }
    let sent = output(exec(
        "urku",
        &["-t", "-n", "20", "-P", "cbr:pcr=20000", &called],
    ));
    assert!(sent.contains("163840 bytes in"), "{sent}");
    let received = output(receiver);
    assert!(received.contains("163840 bytes in"), "{received}");
    runtime.ok(&["down"]);
}
