/* The handed connections of this process, by descriptor. */
#ifndef PLIMSOLL_CONNECTION_H
#define PLIMSOLL_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "answer.h"
#include "handed.h"
#include "limit.h"

/* Read by one thread at a time, and written to by one, as servers use a descriptor. */
struct connection {
    _Atomic unsigned life; /* Which process it is of, and whether there is one: see connection.c. */
    int fd;
    int channel;           /* Unix connection to the agent; -1 once it stands in for the socket. */
    ino_t channel_inode;   /* By which it is known again. */
    bool give_back;        /* At the next request. */
    _Atomic bool answered; /* An answer has ended since the server last read. */
    bool ended;            /* The server has ended its side. */
    bool given_back;       /* The socket is gone; its descriptor is the Unix connection now. */
    bool failed;           /* A write failed: what is under way stays incomplete. */
    struct limit limit;
    uint64_t first_byte_ns;
    struct answer answer;
};

/* The handed connection of a descriptor, or null. */
struct connection *connection_of(int fd);

/* A descriptor is a handed connection from now on. Null: there is no room for it. */
struct connection *connection_add(int fd, int channel, const struct handed_message *message);

/* No longer: the server closes the descriptor. The Unix connection to close after it, or -1. */
int connection_remove(struct connection *connection);

/* A descriptor from `low` to `high` that was a handed connection was closed, perhaps unseen: its agent is told. */
/* Whether the connections are those of this process. */
bool connection_is_of_process(void);

void connection_forget(unsigned low, unsigned high);

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

#endif
