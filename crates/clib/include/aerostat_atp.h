/*
 * libaerostat: ATP, the ATM Transport Protocol, over the ATM sockets of a running lab of Aerostat: messages of any
 * length over one call, complete and in order.
 *
 * Functions fail as those of aerostat.h: NULL or -1 with errno, aerostat_error() and aerostat_cause(). Addresses and
 * contracts are texts as there. The functions aerostat_atp_* are in the library. Below them are the names of the
 * protocol's report (Z. Yang, "ATP Implementation and Performance", University of Hawaii, 1999), inside this header
 * only; a program whose own names would clash defines AEROSTAT_ATP_PREFIXED before the #include.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef AEROSTAT_ATP_H
#define AEROSTAT_ATP_H

#include <aerostat.h>
#include <errno.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An ATP socket: a listener, or one end of a connection. Several threads may use it at the same time. One thread of the
 * process serves all connections; it does not survive fork(). */
typedef struct aerostat_atp aerostat_atp;

/* State and counts of a connection. */
struct aerostat_atp_status {
    unsigned mtu;                 /* octets of the longest packet, with its header of 4 */
    unsigned window_eighths;      /* packets that may be unacknowledged, in eighths */
    unsigned outstanding;         /* packets that are not acknowledged */
    unsigned unread_messages;     /* complete messages that were not received */
    uint64_t round_trip_ns;       /* smoothed */
    uint64_t waiting;             /* octets that wait for their first transmission */
    uint64_t kept;                /* octets that the receiving half keeps */
    uint64_t messages_sent, messages_received;
    uint64_t packets_sent, packets_repeated;
    uint64_t packets_received, duplicates;
    uint64_t naks_sent, naks_received;
    uint64_t timeouts;
    uint64_t dropped;             /* packets that were not taken: too far ahead, or this program does not read */
};

/* A socket with the address that it will call or listen at (NULL or "": set later), and a contract (NULL: "ubr"). */
aerostat_atp *aerostat_atp_new(const aerostat_service *service, const char *address, const char *qos);
/* Sets an option before the connection: profile (report or adaptive, the same at both ends), sap, mtu, send_limit,
 * receive_limit, max_message, timer, timeout, linger, ... Times are in milliseconds. */
int aerostat_atp_option(aerostat_atp *socket, const char *name, const char *value);
/* Calls the address, and waits until the connection can be used. */
int aerostat_atp_connect(aerostat_atp *socket);
/* Gives a listener its address (NULL: that of the socket; "": a free one). aerostat_atp_listen() then waits for calls,
 * of which at most backlog (1 to 128) wait to be accepted. */
int aerostat_atp_bind(aerostat_atp *socket, const char *address);
int aerostat_atp_listen(aerostat_atp *socket, unsigned backlog);
/* Address of a listener in hex digits. Valid as long as the socket. */
const char *aerostat_atp_address(const aerostat_atp *listener);
/* Waits for the next call, and accepts it. */
aerostat_atp *aerostat_atp_accept(aerostat_atp *listener);

/* Queues a message of any length, and returns its length. Waits while too much is queued (option send_limit), or fails
 * with EAGAIN if the socket is non-blocking. EMSGSIZE: longer than the limit; EPIPE: the connection has ended; ETIMEDOUT,
 * ECONNRESET: it has failed. */
ssize_t aerostat_atp_send(aerostat_atp *socket, const void *message, size_t length);
/* Receives the next complete message, and returns its length; what does not fit into the buffer is lost. ENODATA: the
 * other end has closed; EAGAIN; ETIMEDOUT, ECONNRESET: the connection has failed. Complete messages come first. */
ssize_t aerostat_atp_recv(aerostat_atp *socket, void *buffer, size_t length);
/* Makes send, recv and accept fail with EAGAIN where they would wait. */
int aerostat_atp_set_nonblocking(aerostat_atp *socket, int nonblocking);
/* A descriptor for poll: readable if recv, or accept, does not wait. It belongs to the socket. */
int aerostat_atp_fd(aerostat_atp *socket);
/* State and counts of a connection. */
int aerostat_atp_status(const aerostat_atp *socket, struct aerostat_atp_status *status);
/* Waits until everything that was sent is acknowledged, ends the connection and frees the socket, also if it fails: -1
 * means that something was not acknowledged. */
int aerostat_atp_close(aerostat_atp *socket);

#ifndef AEROSTAT_ATP_PREFIXED

/* The names of the report. A socket is a variable of the program; Accept() returns one that Close() frees. */
typedef struct ATPSocket {
    aerostat_service *service;
    aerostat_atp *atp;
    int accepted;
} ATPSocket;

/* The address to call or to listen at, the contract (NULL: best effort), and the interface: the path of the socket
 * service of a host (NULL: the one that AEROSTAT_ATM names). */
static inline int InitAtpSocket(ATPSocket *sock, const char *address, const char *qos, const char *interface)
{
    sock->accepted = 0;
    sock->atp = NULL;
    sock->service = aerostat_open(interface);
    if (!sock->service)
        return -1;
    sock->atp = aerostat_atp_new(sock->service, address, qos);
    if (sock->atp)
        return 0;
    aerostat_close(sock->service);
    sock->service = NULL;
    return -1;
}
#define initAtpSocket InitAtpSocket

static inline int Connect(ATPSocket *sock)
{
    return aerostat_atp_connect(sock->atp);
}

static inline int AtpBind(ATPSocket *sock, const char *address)
{
    return aerostat_atp_bind(sock->atp, address);
}

static inline int Listen(ATPSocket *sock, int backlog)
{
    return aerostat_atp_listen(sock->atp, (unsigned) backlog);
}

static inline ATPSocket *Accept(ATPSocket *sock)
{
    ATPSocket *accepted = (ATPSocket *) calloc(1, sizeof *accepted);
    if (!accepted)
        return NULL;
    accepted->accepted = 1;
    accepted->atp = aerostat_atp_accept(sock->atp);
    if (accepted->atp)
        return accepted;
    free(accepted);
    return NULL;
}

static inline ssize_t Send(ATPSocket *sock, const void *buf, size_t len)
{
    return aerostat_atp_send(sock->atp, buf, len);
}

static inline ssize_t Recv(ATPSocket *sock, void *buf, size_t len)
{
    return aerostat_atp_recv(sock->atp, buf, len);
}

static inline int Close(ATPSocket *sock)
{
    int result = aerostat_atp_close(sock->atp);
    int reason = errno;
    aerostat_close(sock->service);
    sock->service = NULL;
    sock->atp = NULL;
    if (sock->accepted)
        free(sock);
    errno = reason;
    return result;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
