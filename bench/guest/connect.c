/* Times connect and close of ATM sockets, whoever serves them: `connect serve ADDRESS` accepts calls and closes each
 * when its caller does; `connect ADDRESS COUNT` makes calls one after the other, and prints medians as JSON. */
#include <atm.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int fail(const char *what)
{
    perror(what);
    return 1;
}

/* A socket for best effort with SDUs of 9180 octets. */
static int atm_socket(void)
{
    struct atm_qos qos;
    int s = socket(PF_ATMSVC, SOCK_DGRAM, ATM_AAL5);
    if (s < 0)
        return -1;
    memset(&qos, 0, sizeof(qos));
    qos.aal = ATM_AAL5;
    qos.txtp.traffic_class = qos.rxtp.traffic_class = ATM_UBR;
    qos.txtp.max_sdu = qos.rxtp.max_sdu = 9180;
    return setsockopt(s, SOL_ATM, SO_ATMQOS, &qos, sizeof(qos)) < 0 ? -1 : s;
}

static int serve(const char *address)
{
    struct sockaddr_atmsvc own;
    char octet[1];
    int call, s = atm_socket();
    if (s < 0)
        return fail("socket");
    memset(&own, 0, sizeof(own));
    if (text2atm(address, (struct sockaddr *)&own, sizeof(own), T2A_SVC) < 0) {
        fprintf(stderr, "%s: no address\n", address);
        return 1;
    }
    if (bind(s, (struct sockaddr *)&own, sizeof(own)) < 0)
        return fail("bind");
    if (listen(s, 16) < 0)
        return fail("listen");
    puts("ready");
    fflush(stdout);
    while ((call = accept(s, NULL, NULL)) >= 0) {
        while (read(call, octet, 1) > 0)
            ;
        close(call);
    }
    return fail("accept");
}

static int call(const char *address, int count)
{
    struct sockaddr_atmsvc to;
    double *connects = calloc(count, sizeof(double)), *closes = calloc(count, sizeof(double)), start;
    int i, s;
    memset(&to, 0, sizeof(to));
    if (!connects || !closes || text2atm(address, (struct sockaddr *)&to, sizeof(to), T2A_SVC) < 0) {
        fprintf(stderr, "%s: no address\n", address);
        return 1;
    }
    for (i = 0; i < count; i++) {
        if ((s = atm_socket()) < 0)
            return fail("socket");
        start = now();
        if (connect(s, (struct sockaddr *)&to, sizeof(to)) < 0)
            return fail("connect");
        connects[i] = now() - start;
        start = now();
        if (close(s) < 0)
            return fail("close");
        closes[i] = now() - start;
    }
    qsort(connects, count, sizeof(double), ascending);
    qsort(closes, count, sizeof(double), ascending);
    printf("{\"calls\": %d, \"connect_p50_us\": %.1f, \"connect_p99_us\": %.1f, \"close_p50_us\": %.1f, \"close_p99_us\": %.1f}\n",
           count, connects[count / 2], connects[count * 99 / 100], closes[count / 2], closes[count * 99 / 100]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "serve"))
        return serve(argv[2]);
    if (argc == 3 && atoi(argv[2]) > 0)
        return call(argv[1], atoi(argv[2]));
    fprintf(stderr, "usage: connect serve ADDRESS | connect ADDRESS COUNT\n");
    return 2;
}
