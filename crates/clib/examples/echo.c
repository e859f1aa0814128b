/*
 * Both sides of an echo over an ATM call.
 *
 *   cc -o echo echo.c $(pkg-config --cflags --libs aerostat)
 *   aerostat exec sello -- ./echo                           the server: it prints its address, and answers one call
 *   aerostat exec urku -- ./echo ADDRESS QOS TEXT           the client
 *
 * The server looks at each call before it answers: it refuses contracts of constant rate (cause 21), and callers whose
 * host is named in AVOID (in hex digits, cause 21), and lowers SDU sizes above 1000 octets to 1000.
 */
#include <aerostat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s (cause %d)\n", what, aerostat_error(), aerostat_cause());
    return 1;
}

static int serve(aerostat_service *service)
{
    aerostat_socket *listener = aerostat_socket_new(service), *call = NULL;
    const char *avoid = getenv("AVOID");
    struct aerostat_status status;
    char pdu[65535];
    ssize_t octets;

    if (!listener || aerostat_bind(listener, "", "") || aerostat_listen(listener, 16, 0) ||
        aerostat_status(listener, &status))
        return failed("listen");
    printf("%s\n", status.local);
    fflush(stdout);
    while (!call) {
        aerostat_offer *offer = aerostat_offer_next(listener);
        if (!offer)
            return failed("offer");
        printf("offer: %s\n", aerostat_offer_qos(offer));
        if (strncmp(aerostat_offer_qos(offer), "cbr", 3) == 0 ||
            (avoid && strncmp(aerostat_offer_caller(offer), avoid, strlen(avoid)) == 0)) {
            aerostat_refuse(offer, 21);
        } else {
            call = aerostat_accept(offer, "ubr:sdu=1000");
            /* A smaller offer is accepted as it is. */
            if (!call)
                call = aerostat_accept(offer, NULL);
        }
        aerostat_offer_free(offer);
    }
    while ((octets = aerostat_recv(call, pdu, sizeof pdu)) > 0)
        if (aerostat_send(call, pdu, octets) < 0)
            return failed("send");
    if (aerostat_status(call, &status))
        return failed("status");
    printf("echoed %llu PDUs; %s\n", (unsigned long long) status.sent_pdus, status.why);
    aerostat_socket_free(call);
    aerostat_socket_free(listener);
    return 0;
}

static int ask(aerostat_service *service, char **arguments)
{
    aerostat_socket *call = aerostat_socket_new(service);
    struct aerostat_status status;
    char pdu[65535];
    ssize_t octets;

    if (!call || aerostat_connect(call, arguments[0], "", arguments[1], 10000))
        return failed("connect");
    if (aerostat_status(call, &status))
        return failed("status");
    printf("agreed: %s\n", status.qos);
    if (aerostat_send(call, arguments[2], strlen(arguments[2])) < 0)
        return failed("send");
    if ((octets = aerostat_recv(call, pdu, sizeof pdu)) < 0)
        return failed("receive");
    printf("%.*s\n", (int) octets, pdu);
    aerostat_socket_free(call);
    return 0;
}

int main(int argc, char **argv)
{
    aerostat_service *service;
    int result;

    if (argc != 1 && argc != 4) {
        fprintf(stderr, "usage: %s [ADDRESS QOS TEXT]\n", argv[0]);
        return 2;
    }
    service = aerostat_open(NULL);
    if (!service)
        return failed("service");
    result = argc == 1 ? serve(service) : ask(service, argv + 1);
    aerostat_close(service);
    return result;
}
