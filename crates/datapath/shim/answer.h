/* Follows the answers that a server writes (RFC 9112), across any number of writes, in a bounded state. */
#ifndef PLIMSOLL_ANSWER_H
#define PLIMSOLL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a line, this much is looked at: enough for the few fields that matter. */
#define ANSWER_LINE_BYTES 256

enum answer_state {
    ANSWER_NONE,       /* No byte of it yet. */
    ANSWER_HEAD,       /* Within the head. */
    ANSWER_COUNTED,    /* `left` more bytes of content. */
    ANSWER_CHUNK_SIZE, /* Within the line before a chunk. */
    ANSWER_CHUNK,      /* `left` more bytes of a chunk. */
    ANSWER_CHUNK_END,  /* Within the line end behind a chunk. */
    ANSWER_TRAILER,    /* Within the lines behind the last chunk. */
    ANSWER_TO_CLOSE,   /* Content until the connection ends. */
};

struct answer {
    enum answer_state state;
    bool head_request;
    bool chunked;
    bool has_length;
    bool closes; /* It says that it is the last one of its connection. */
    uint16_t status;
    uint16_t line_bytes; /* Of the line under way, at most ANSWER_LINE_BYTES. */
    bool first_line;
    uint64_t length;
    uint64_t left;
    uint64_t content_bytes;
    char line[ANSWER_LINE_BYTES];
};

/* Takes bytes of one answer at most: returns how many, and sets *complete when the answer ends with them. `bytes` is null
 * for content that the server sent from a file. */
size_t answer_take(struct answer *answer, const char *bytes, size_t count, bool *complete);

/* Forgets the answer; the next byte begins another one. */
void answer_reset(struct answer *answer, bool head_request);

#endif
