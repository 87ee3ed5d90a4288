/* Unix sockets that a server takes for TCP sockets: see listen.c. */
#ifndef PLIMSOLL_LISTEN_H
#define PLIMSOLL_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

/* Whether a descriptor is such a Unix socket: the one that listens, or an ordinary client's. */
bool listen_stands_in(int fd);

/* The address that such a socket shows: the loopback address of the family that the server has bound. */
void listen_loopback(struct sockaddr_storage *address, socklen_t *length, unsigned port);

#endif
