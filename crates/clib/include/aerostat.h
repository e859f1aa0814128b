/*
 * libaerostat: ATM sockets of the hosts of a running lab of Aerostat.
 *
 * A function that fails returns NULL or -1 and sets errno; aerostat_error() then has the reason in words, and
 * aerostat_cause() the cause of Q.850, for this thread. A NULL where an object is expected is EINVAL. Each object
 * belongs to the program, which frees it once; several threads may use different objects at the same time.
 *
 * Addresses have 40 hex digits, or are names of the lab or IPv4 addresses, which the host resolves by its Classical IP
 * interface or its NHRP client, with an optional selector ("sello/e1", "10.0.0.2"); contracts have the syntax of qos(7),
 * access points that of sap(7) of linux-atm. SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef AEROSTAT_H
#define AEROSTAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to the socket service of a host. */
typedef struct aerostat_service aerostat_service;
/* An ATM socket: a listener, a call, or a permanent connection. */
typedef struct aerostat_socket aerostat_socket;
/* A call that waits for the answer of its listener. */
typedef struct aerostat_offer aerostat_offer;

/* State of a socket. Texts end with a zero octet; an empty text: not known. */
struct aerostat_status {
    char state[16];    /* idle, bound, listening, resolving, connecting, accepting, connected, ending, ended */
    char local[41];    /* own address in hex digits */
    char peer[41];     /* address of the other end; its IP address until that is resolved */
    char label[16];    /* VPI.VCI on the link of the host; local: the call does not leave the host */
    char qos[256];     /* the contract that was agreed */
    char why[256];     /* the end in words */
    int cause;         /* cause of the end (Q.850); 0 before the end */
    uint64_t sent_pdus, sent_octets;
    uint64_t received_pdus, received_octets;
    uint64_t refused;  /* PDUs beyond the contract */
    uint64_t unsent;   /* PDUs of sent_pdus that the call or the link did not live to take */
    uint64_t unread;   /* PDUs that were dropped, because this program did not read */
    uint64_t damaged;  /* PDUs that arrived with cells missing or damaged */
    unsigned leaves;   /* leaves of this root of a point-to-multipoint call */
};

/* The last error of this thread: its reason, one sentence; and its cause of Q.850, 0 if the network had no part in it.
 * The text is valid until the next call of this library by this thread. */
const char *aerostat_error(void);
int aerostat_cause(void);

/* The service at this path (RUNTIME/LAB/atm/HOST.sock); NULL: the one that AEROSTAT_ATM names. Sockets outlive it. */
aerostat_service *aerostat_open(const char *path);
void aerostat_close(aerostat_service *service);
/* Name of the host, and its address in hex digits. Valid as long as the service. */
const char *aerostat_host(const aerostat_service *service);
const char *aerostat_address(const aerostat_service *service);

/* A new socket. Freeing it closes its descriptor; the last copy of the descriptor that is closed ends the call, once
 * what was written has left. */
aerostat_socket *aerostat_socket_new(const aerostat_service *service);
void aerostat_socket_free(aerostat_socket *socket);
/* Its descriptor, for poll and fcntl: readable if a PDU, an offer or the end waits. */
int aerostat_fd(const aerostat_socket *socket);
/* The socket of a descriptor that this process has inherited or was given; the descriptor belongs to it then. */
aerostat_socket *aerostat_adopt(const aerostat_service *service, int fd);

/* Gives it an address of its host ("": a free one) and an access point ("": any call). */
int aerostat_bind(aerostat_socket *socket, const char *address, const char *sap);
/* Makes it a listener: backlog is 1 to 128 calls that wait for an answer; max_sdu is the largest SDU that a caller may
 * send (0: any). */
int aerostat_listen(aerostat_socket *socket, unsigned backlog, unsigned max_sdu);

/* Makes a call, and waits until it can be used, at most timeout_ms (0: as long as the resolution of an IP address and
 * signalling try). */
int aerostat_connect(aerostat_socket *socket, const char *called, const char *sap, const char *qos, unsigned timeout_ms);
/* The same without waiting: the socket is writable once the call can be used or has failed. Then aerostat_connected()
 * returns the result at once. */
int aerostat_connect_start(aerostat_socket *socket, const char *called, const char *sap, const char *qos);
int aerostat_connected(aerostat_socket *socket);
/* The root of a point-to-multipoint call, whose first leaf is called. With reports not 0, aerostat_left() tells of
 * leaves that leave. */
int aerostat_connect_multipoint(aerostat_socket *socket, const char *called, const char *sap, const char *qos,
                                unsigned timeout_ms, int reports);
/* Adds a leaf, and returns its number; drops a leaf (0: the first one). With the last leaf the call ends. */
int aerostat_add_party(aerostat_socket *socket, const char *called);
int aerostat_drop_party(aerostat_socket *socket, int party);
/* Waits for the next leaf that leaves: 1, with its number and the cause; 0: the call has ended. */
int aerostat_left(aerostat_socket *socket, int *party, int *cause);
/* Uses a permanent connection with this label (VPI.VCI). With aal0 in qos, each SDU is a cell of 52 octets. */
int aerostat_permanent(aerostat_socket *socket, const char *label, const char *qos);

/* Waits for the next call for this listener; EINVAL at a socket that is no listener. The call waits for an answer for
 * 5 s. An offer that is freed without an answer leaves the caller waiting until then, and refuses it with cause 18. */
aerostat_offer *aerostat_offer_next(aerostat_socket *listener);
void aerostat_offer_free(aerostat_offer *offer);
/* Who calls, whom, what for, and the contract as this end sees it. Valid as long as the offer. */
const char *aerostat_offer_caller(const aerostat_offer *offer);
const char *aerostat_offer_called(const aerostat_offer *offer);
const char *aerostat_offer_sap(const aerostat_offer *offer);
const char *aerostat_offer_qos(const aerostat_offer *offer);
/* 1 if this end would be a leaf of a point-to-multipoint call, which cannot send; else 0. */
int aerostat_offer_multipoint(const aerostat_offer *offer);
/* Accepts the call as offered (qos NULL or ""), or with smaller SDUs, and a lower rate if the offer has a min_pcr. An
 * answer that the offer does not allow is EINVAL, and the offer waits on. */
aerostat_socket *aerostat_accept(aerostat_offer *offer, const char *qos);
/* Refuses it with this cause of Q.850, 1 to 127 (21: call rejected). */
int aerostat_refuse(aerostat_offer *offer, int cause);

/* User data: at most 128 octets that go along with a call, its answer or its end, where every link speaks UNI 4.0 (else
 * EOPNOTSUPP). What a socket says goes with its next connect, leaf or release, what an offer says with its answer; each is said
 * once. */
int aerostat_say(aerostat_socket *socket, const void *data, size_t length);
int aerostat_offer_say(aerostat_offer *offer, const void *data, size_t length);
/* What the other end has said last (in its call, its answer, its refusal or its release), and what the caller says in an
 * offer. Copies at most length octets, and returns their number, 0 if nothing was said. */
ssize_t aerostat_heard(const aerostat_socket *socket, void *buffer, size_t length);
ssize_t aerostat_offer_heard(const aerostat_offer *offer, void *buffer, size_t length);

/* Sends a PDU of 1 to 65535 octets, and returns its length. EMSGSIZE: longer than the contract allows; EPIPE: the call
 * has ended. */
ssize_t aerostat_send(aerostat_socket *socket, const void *pdu, size_t length);
/* Receives a PDU, and returns its length; 0: the call has ended. What does not fit is cut. */
ssize_t aerostat_recv(aerostat_socket *socket, void *buffer, size_t length);
/* State and counts. */
int aerostat_status(const aerostat_socket *socket, struct aerostat_status *status);
/* Ends the call with this cause of Q.850, once what was written has left. */
int aerostat_release(aerostat_socket *socket, int cause);

#ifdef __cplusplus
}
#endif

#endif
