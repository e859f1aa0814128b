//! The preload library in programs that fork with several threads, and in programs that close descriptors that they do
//! not know.

use crate::atm_sockets::Net;
use crate::preload::{compiled, on, output};
use std::thread;

/// The error of a service that has gone.
const ECONNRESET: i32 = 104;

const PROGRAM: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <linux/atm.h>
#include <linux/atmdev.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef SOL_ATM
#define SOL_ATM 264
#endif
#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); exit(1); } } while (0)

static struct sockaddr_atmsvc to, nobody;

static int opened(void)
{
    struct atm_qos qos;
    int s = socket(PF_ATMSVC, SOCK_DGRAM, 0);
    memset(&qos, 0, sizeof qos);
    qos.aal = ATM_AAL5;
    qos.txtp.traffic_class = qos.rxtp.traffic_class = ATM_UBR;
    qos.txtp.max_sdu = qos.rxtp.max_sdu = 1000;
    CHECK(s >= 0);
    CHECK(setsockopt(s, SOL_ATM, SO_ATMQOS, &qos, sizeof qos) == 0);
    return s;
}

static int call(void)
{
    int s = opened();
    CHECK(connect(s, (struct sockaddr *) &to, sizeof to) == 0);
    return s;
}

/* The call is one of the library still. */
static void works(int s)
{
    struct sockaddr_atmsvc peer;
    socklen_t size = sizeof peer;
    CHECK(getpeername(s, (struct sockaddr *) &peer, &size) == 0);
    CHECK(peer.sas_family == AF_ATMSVC && !memcmp(peer.sas_addr.prv, to.sas_addr.prv, 20));
    CHECK(write(s, "hello", 5) == 5);
}

/* Closes all but its own, as a daemon does. Returns how many there were, and the greatest of them. */
static int closed(const int *keep, int count, int *last)
{
    int closed = 0, own = getdtablesize() < 4096 ? getdtablesize() : 4096;
    for (int fd = 3; fd < own; fd++) {
        int kept = 0;
        for (int i = 0; i < count; i++) kept |= keep[i] == fd;
        if (!kept && close(fd) == 0) { closed++; *last = fd; }
    }
    return closed;
}

static void descriptors(void)
{
    struct stat before, after;
    struct sockaddr_atmsvc none;
    socklen_t size = sizeof none;
    char octets[100];
    int last = -1, pair[2], keep[8], count = 0, own, s;
    keep[count++] = s = call();
    /* What the library has is above what daemons close. */
    for (int fd = 3; fd < 256; fd++) CHECK(fd == s || fcntl(fd, F_GETFD) < 0);
    CHECK(closed(keep, count, &last) == 1 && last >= 256);
    /* A stream of the program has the number now; nobody else writes or reads there. */
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK((own = dup2(pair[0], last)) == last && write(pair[1], "mine", 4) == 4);
    keep[count++] = pair[0]; keep[count++] = pair[1]; keep[count++] = own;
    alarm(20);
    works(s);
    keep[count++] = call();
    CHECK(recv(pair[1], octets, sizeof octets, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    CHECK(recv(own, octets, sizeof octets, MSG_DONTWAIT) == 4 && fstat(own, &before) == 0 && S_ISSOCK(before.st_mode));
    /* The next connection of the library: a file has its number, and a child forgets that. */
    CHECK(closed(keep, count, &last) == 1 && last >= 256 && last != own);
    CHECK((own = dup2(fileno(tmpfile()), last)) == last && fstat(own, &before) == 0);
    if (!fork()) {
        works(s); works(call());
        CHECK(fstat(own, &after) == 0 && after.st_ino == before.st_ino && after.st_size == 0);
        exit(0);
    }
    CHECK(wait(&count) > 0 && count == 0);
    works(s); works(call()); works(keep[4]);
    CHECK(fstat(own, &after) == 0 && after.st_ino == before.st_ino && after.st_size == 0);
    /* Nothing has the number. */
    keep[0] = s; keep[1] = own;
    CHECK(closed(keep, 2, &last) > 1);
    works(call()); works(s);
    s = opened();
    CHECK(getsockname(s, (struct sockaddr *) &none, &size) == 0);
}

static int shared;

static void *busy(void *unused)
{
    for (;;) {
        int multipoint, s = opened();
        socklen_t size = sizeof multipoint;
        CHECK(connect(s, (struct sockaddr *) &nobody, sizeof nobody) < 0 && errno == ECONNREFUSED);
        for (int i = 0; i < 50; i++) CHECK(getsockopt(shared, SOL_ATM, SO_MULTIPOINT, &multipoint, &size) == 0);
        close(s);
    }
    return unused;
}

static void forks(void)
{
    pthread_t thread;
    int hung = 0, failed = 0, status;
    shared = call();
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&thread, NULL, busy, NULL) == 0);
    for (int i = 0; i < 300 && hung + failed == 0; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            alarm(10);
            works(shared);
            if (i % 10 == 0) works(call());
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        hung += WIFSIGNALED(status);
        failed += !WIFSIGNALED(status) && status != 0;
    }
    if (hung + failed) fprintf(stderr, "%d children hang, %d fail\n", hung, failed);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    /* What this process has inherited. */
    for (int fd = 3; fd < 1024; fd++) close(fd);
    to.sas_family = AF_ATMSVC;
    for (int i = 0; i < 20; i++) { unsigned octet; CHECK(sscanf(argv[2] + 2 * i, "%2x", &octet) == 1); to.sas_addr.prv[i] = octet; }
    nobody = to;
    nobody.sas_addr.prv[19] = 0xee;
    if (!strcmp(argv[1], "forks")) forks(); else descriptors();
    CHECK(write(1, "done\n", 5) == 5);
    _exit(0);
}
"#;

#[test]
fn the_library_survives_forks_of_threads_and_programs_that_close_its_descriptor() {
    let Some(program) = compiled("atm-processes", PROGRAM) else {
        return;
    };
    let net = Net::up("processes");
    let listener = net.service("y").listen("").unwrap();
    let called = listener.address().unwrap();
    let accepts = thread::spawn(move || {
        let mut calls = Vec::new();
        loop {
            match listener.accept() {
                Ok(call) => calls.push(call),
                // A caller that has gone is not the end of the service.
                Err(error) if error.errno() != ECONNRESET => {}
                Err(_) => return calls.len(),
            }
        }
    });
    for what in ["descriptors", "forks"] {
        let program = program.to_str().unwrap();
        let run = on(&net, "x", program, &[what, &called]).spawn().unwrap();
        assert_eq!(output(run), "done\n", "{what}");
    }
    net.runtime.ok(&["down"]);
    assert!(accepts.join().unwrap() > 30);
}
