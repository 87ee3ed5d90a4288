/* A connection that the agent has handed to this process: what the server reads and writes on it. */
#ifndef PLIMSOLL_CONNECTION_H
#define PLIMSOLL_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "answer.h"
#include "handed.h"
#include "limit.h"

/* Read by one thread at a time, and written to by one, as servers use a descriptor. */
struct connection {
    _Atomic uint64_t life; /* Of which process, and which handed connection: see table.c. 0: none. */
    int fd;
    uint64_t cookie; /* Of the socket: see cookie.h. */
    int channel;     /* Unix connection to the agent; -1 once it stands in for the socket. */
    uint64_t channel_cookie;
    bool give_back;          /* At the next request. */
    _Atomic bool answered;   /* An answer has ended since the server last read. */
    bool no_end;             /* It does not end it for the client. */
    bool ended;              /* The server has ended its side. */
    _Atomic bool given_back; /* The socket is gone; its descriptor is the Unix connection now. */
    bool failed;             /* A write failed: what is under way stays incomplete. */
    struct limit limit;
    uint64_t first_byte_ns;
    struct answer answer;
};

/* Begins a connection on a descriptor. False: one of the descriptors is no socket. */
bool connection_begin(struct connection *connection, int fd, int channel, const struct handed_message *message);

/* The server has written these bytes; `bytes` is null for content of a file. */
void connection_wrote(struct connection *connection, const char *bytes, size_t count);
void connection_wrote_parts(struct connection *connection, const struct iovec *parts, size_t count, size_t bytes);

/* The server has read `count` bytes, of which the first `known` are there. */
void connection_read(struct connection *connection, const void *bytes, size_t known, size_t count);

enum reading {
    READING_ON,    /* Let it read. */
    READING_FAILS, /* With errno: EAGAIN when there is nothing for it. */
    READING_END,   /* The socket has gone back to the agent: the server is to see the end. */
};

/* The server is about to read: at most so many bytes, if it may. */
enum reading connection_reads(struct connection *connection, int flags, size_t *most);

/* Of `waiting` bytes in the socket, those that the server may know of. */
size_t connection_shows(const struct connection *connection, size_t waiting);

/* Before the server closes the socket: bytes that were kept from it would have the kernel reset the connection. */
void connection_drain(const struct connection *connection);

/* The server ends its side: so does an answer without announced length. */
void connection_ends(struct connection *connection);

/* What the agent is to hear of a connection's end. */
struct ending {
    int channel; /* -1: none. */
    uint64_t channel_cookie;
    bool is_due; /* An answer had begun. */
    struct handed_message notice;
};

/* The ending of a connection as it is now. Touches no descriptor. */
struct ending connection_ending(const struct connection *connection);

/* Whether the Unix connection is still there. */
bool ending_has_channel(const struct ending *ending);

/* Sends the notice, if one is due. */
void ending_tell(const struct ending *ending);

#endif
