/*
 * The example of ATP's report, with its names: the sender sends one message, and the receiver prints it. A message is as
 * long as memory allows; it arrives whole, or not at all.
 *
 *   cc -o atp atp.c $(pkg-config --cflags --libs aerostat)
 *   aerostat exec sello -- ./atp                            the receiver: it prints its address, and takes one connection
 *   aerostat exec urku -- ./atp ADDRESS 1000000             the sender, of so many octets
 *
 * PROFILE (report or adaptive) in the environment is the profile of both ends.
 */
#include <aerostat_atp.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s (cause %d)\n", what, aerostat_error(), aerostat_cause());
    return 1;
}

static void pattern(char *buf, size_t len)
{
    size_t i;
    for (i = 0; i < len; i++)
        buf[i] = (char) (' ' + i % 95);
}

static int receive(ATPSocket *sock)
{
    ATPSocket *newSock;
    char recv_buf[100], expected[100];
    ssize_t length;

    if (AtpBind(sock, "") != 0)
        return failed("AtpBind");
    if (Listen(sock, 5) < 0)
        return failed("listen");
    printf("%s\n", aerostat_atp_address(sock->atp));
    fflush(stdout);
    newSock = Accept(sock);
    if (!newSock)
        return failed("Accept");
    pattern(expected, sizeof expected);
    /* What does not fit into the buffer is lost; the length is that of the message. */
    while ((length = Recv(newSock, recv_buf, sizeof recv_buf)) >= 0) {
        size_t fits = (size_t) length < sizeof recv_buf ? (size_t) length : sizeof recv_buf;
        printf("%zd octets: %s\n", length, memcmp(recv_buf, expected, fits) ? "WRONG" : "right");
        if (Send(newSock, "thanks", 6) < 0)
            return failed("send");
    }
    if (errno != ENODATA)
        return failed("receive");
    if (Close(newSock) < 0)
        return failed("Close");
    Close(sock);
    return 0;
}

static int transmit(ATPSocket *sock, size_t octets)
{
    char *send_buf = calloc(octets + 1, sizeof(char));
    struct aerostat_atp_status status;
    char answer[16];

    if (send_buf == NULL) {
        perror("calloc");
        return 1;
    }
    pattern(send_buf, octets);
    if (Connect(sock) < 0)
        return failed("Connect");
    if (Send(sock, send_buf, octets) < 0)
        return failed("send");
    if (Recv(sock, answer, sizeof answer) != 6 || memcmp(answer, "thanks", 6))
        return failed("receive");
    if (aerostat_atp_status(sock->atp, &status))
        return failed("status");
    printf("%llu packets of at most %u octets\n", (unsigned long long) status.packets_sent, status.mtu);
    free(send_buf);
    return Close(sock) < 0 ? failed("Close") : 0;
}

int main(int argc, char **argv)
{
    const char *profile = getenv("PROFILE");
    ATPSocket sock;

    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: %s [ADDRESS OCTETS]\n", argv[0]);
        return 2;
    }
    if (initAtpSocket(&sock, argc == 3 ? argv[1] : NULL, "ubr:sdu=9180", 0))
        return failed("initAtpSocket");
    if (profile && aerostat_atp_option(sock.atp, "profile", profile))
        return failed("profile");
    return argc == 1 ? receive(&sock) : transmit(&sock, strtoul(argv[2], NULL, 10));
}
