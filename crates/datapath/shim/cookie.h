/* Tells whether a descriptor still stands for a socket that the shim knows. A server can close a descriptor in ways that no
 * library sees (a raw system call, io_uring, the kernel at exec), and the kernel gives its number to the next file that is
 * opened. So a number proves nothing; the cookie does. */
#ifndef PLIMSOLL_COOKIE_H
#define PLIMSOLL_COOKIE_H

#include <stdint.h>

/* The kernel's number for the socket behind a descriptor (SO_COOKIE), which no other socket gets until the machine
 * restarts. 0: the descriptor is closed, or is no socket. Leaves errno alone. */
uint64_t cookie_of(int fd);

#endif
