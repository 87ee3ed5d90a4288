/* What the agent and the shim tell one another over the Unix connection that stands for a handed connection. Mirrored in
 * src/shim.rs. Both ends are on one machine: numbers have its byte order. */
#ifndef PLIMSOLL_HANDED_H
#define PLIMSOLL_HANDED_H

#include <stdint.h>

/* The agent binds its end to an abstract address that begins so (after the zero byte): other clients of the Unix socket
 * are never waited for. The name proves nothing: only root and the user that started the server may hand connections. */
#define HANDED_NAME "plimsoll-handed-"

#define HANDED_MAGIC 0x504c4d31u /* "PLM1" */
#define HANDED_VERSION 1

enum handed_kind {
    HANDED_CONNECTION = 1, /* Agent to shim, with the TCP socket: serve it. */
    HANDED_ANSWERED = 2,   /* Shim to agent: an answer has been written, or never will be. */
    HANDED_GIVEN_BACK = 3, /* Shim to agent, with the TCP socket: a further request is waiting in it. */
};

enum handed_flag {
    HANDED_GIVE_BACK = 1,    /* CONNECTION: give the socket back when a further request comes. */
    HANDED_HEAD_REQUEST = 2, /* CONNECTION: the first request is HEAD, its answer has no content. */
    HANDED_COMPLETE = 4,     /* ANSWERED: the answer was written to its end. */
    HANDED_NO_END = 8,       /* CONNECTION: the server does not end its side; the agent, which has a copy of the socket, does. */
    HANDED_ENDED = 16,       /* ANSWERED: the server has ended its side, or has said that it will, and answers nothing more. */
};

struct handed_message {
    uint32_t magic;
    uint8_t version;
    uint8_t kind;
    uint16_t status; /* ANSWERED: of the final answer; 0 when none was seen. */
    uint32_t flags;
    uint32_t head_size_bytes; /* CONNECTION: of the request that the server may read now; 0: whatever comes. */
    uint64_t content_bytes; /* ANSWERED: without head and chunk sizes. */
    uint64_t first_byte_ns; /* ANSWERED: CLOCK_MONOTONIC; 0 when nothing was written. */
};

_Static_assert(sizeof(struct handed_message) == 32, "mirrored in src/shim.rs");

#endif
