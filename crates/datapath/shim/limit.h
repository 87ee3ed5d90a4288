/* Of a connection that was handed for one request, the server reads that request only. What the client has sent behind it
 * stays in the socket, for whoever is to answer it.
 *
 * A server that looks at a socket with bytes that it may not read would look forever, and one that was told of them once
 * would never look again. So the kernel is told to report the socket as readable only with more bytes than are there
 * (SO_RCVLOWAT), and that one byte is enough when the answer is whole, at which it wakes whoever watches the socket, in
 * whatever way. A socket that is full, or whose client has ended its side, it always reports: where an epoll does so again
 * and again, it is told to be silent. (With poll, and EPOLLONESHOT, the server then keeps looking until the answer is
 * whole.) */
#ifndef PLIMSOLL_LIMIT_H
#define PLIMSOLL_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct limit {
    _Atomic bool on;
    _Atomic bool hides;      /* Bytes behind the request, from whoever watches the socket. */
    bool has_hidden;         /* Ever. */
    uint32_t head_left;      /* Bytes of the request that the server has not read. */
    uint64_t written_before; /* By the kernel's count, when the connection was handed. */
    int epoll;               /* Where the server watches the socket; -1: nowhere. */
    struct epoll_event event;
    bool is_silenced; /* That epoll. */
};

/* The server may read a request of this size; 0: whatever comes. */
void limit_begin(struct limit *limit, int fd, uint32_t head_size_bytes);

/* The server has read so many bytes. */
void limit_read(struct limit *limit, int fd, size_t count);

/* Bytes behind the request have come: they are hidden, until they are shown. */
void limit_hide(struct limit *limit, int fd);
void limit_show(struct limit *limit, int fd);

/* The same where another thread may be about to. */
void limit_show_to_agent(const struct limit *limit, int fd);

/* The server may read on. */
void limit_lift(struct limit *limit, int fd);

/* The server has told an epoll of the socket. */
void limit_watched(struct limit *limit, int epoll, int operation, const struct epoll_event *event);

/* Whether the socket was written to since it was handed, as the kernel sees it. */
bool limit_was_written(const struct limit *limit, int fd);

#endif
