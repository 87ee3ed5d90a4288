/* A server that takes its sockets for TCP sockets, and ends when the kernel tells it otherwise: `names FAMILY PORT`, of which
 * FAMILY is 4 or 6. It says "served" to three clients. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static int family;
static int port;

/* Whether this is the loopback address of the family, and the port is that one, or any of a client's. */
static int is_loopback(const struct sockaddr_storage *name, socklen_t length, int wanted_port)
{
    if (family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)name;
        return length == sizeof *four && four->sin_family == AF_INET && four->sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
               (wanted_port < 0 || ntohs(four->sin_port) == wanted_port);
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)name;
    return length == sizeof *six && six->sin6_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) &&
           (wanted_port < 0 || ntohs(six->sin6_port) == wanted_port);
}

static void check_options(int fd)
{
    int one = 1, is_set = 7;
    socklen_t length = sizeof is_set;
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_set, &length) == 0);
    CHECK(length == sizeof is_set && (is_set == 0 || is_set == 1));
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, NULL, &length) == -1 && errno == EFAULT);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one) == 0);
    /* What is wrong stays wrong. */
    CHECK(setsockopt(fd, SOL_SOCKET, 12345, &one, sizeof one) == -1);
}

int main(int count, char **arguments)
{
    struct sockaddr_storage name;
    socklen_t length;
    CHECK(count == 3);
    alarm(30);
    family = arguments[1][0] == '4' ? AF_INET : AF_INET6;
    port = atoi(arguments[2]);
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int listener = socket(family, SOCK_STREAM, 0);
    CHECK(bind(listener, family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six,
               family == AF_INET ? sizeof four : sizeof six) == 0);
    check_options(listener);
    CHECK(listen(listener, 5) == 0);
    length = sizeof name;
    CHECK(getsockname(listener, (struct sockaddr *)&name, &length) == 0 && is_loopback(&name, length, port));
    CHECK(getsockname(listener, (struct sockaddr *)&name, NULL) == -1);
    for (int client = 0; client < 3; client++) {
        length = sizeof name;
        int fd = accept(listener, (struct sockaddr *)&name, &length);
        CHECK(fd >= 0 && is_loopback(&name, length, -1));
        check_options(fd);
        length = sizeof name;
        CHECK(getpeername(fd, (struct sockaddr *)&name, &length) == 0 && is_loopback(&name, length, -1));
        length = sizeof name;
        CHECK(getsockname(fd, (struct sockaddr *)&name, &length) == 0 && is_loopback(&name, length, -1));
        CHECK(write(fd, "served", 6) == 6 && close(fd) == 0);
    }
    /* Another Unix socket is none of it. */
    int pair[2], one = 1;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == -1);
    length = sizeof name;
    CHECK(getsockname(pair[0], (struct sockaddr *)&name, &length) == 0 && name.ss_family == AF_UNIX);
    return 0;
}
