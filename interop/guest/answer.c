/* Takes one call with CBR and sends a PDU for each SIZE octets of its input: linux-atm has no program that takes a call
 * and then sends. The network's contract for what is sent is that of the call.
 * usage: answer SIZE PCR        (input: octets) */
#include <errno.h>
#include <linux/atm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

int main(int argc, char **argv) {
    static char pdu[65536];
    size_t size = argc > 2 ? strtoul(argv[1], NULL, 10) : 0, have = 0;
    struct sockaddr_atmsvc here = { .sas_family = AF_ATMSVC };
    struct atm_qos qos;
    ssize_t got;

    if (!size || size > sizeof pdu) {
        fprintf(stderr, "usage: answer SIZE PCR\n");
        return 2;
    }
    memset(&qos, 0, sizeof qos);
    qos.aal = ATM_AAL5;
    qos.txtp.traffic_class = qos.rxtp.traffic_class = ATM_CBR;
    qos.txtp.max_pcr = qos.rxtp.max_pcr = atoi(argv[2]);
    qos.txtp.max_sdu = qos.rxtp.max_sdu = size;
    int listener = socket(PF_ATMSVC, SOCK_DGRAM, ATM_AAL5);
    must(listener, "socket");
    must(setsockopt(listener, SOL_ATM, SO_ATMQOS, &qos, sizeof qos), "SO_ATMQOS");
    must(bind(listener, (struct sockaddr *)&here, sizeof here), "bind");
    must(listen(listener, 1), "listen");
    int call = accept(listener, NULL, NULL);
    must(call, "accept");
    fprintf(stderr, "answered\n");
    while ((got = read(0, pdu + have, size - have)) > 0) {
        have += got;
        if (have < size)
            continue;
        /* The link takes what it has room for, and says so otherwise. */
        while ((got = write(call, pdu, size)) < 0 && errno == ENOBUFS)
            usleep(18000);
        must(got, "write");
        have = 0;
    }
    pause();
    return 0;
}
