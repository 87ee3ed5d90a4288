#include "answer.h"

#include <string.h>
#include <strings.h>

void answer_reset(struct answer *answer, bool head_request)
{
    answer->state = ANSWER_NONE;
    answer->head_request = head_request;
    answer->chunked = false;
    answer->has_length = false;
    answer->closes = false;
    answer->status = 0;
    answer->line_bytes = 0;
    answer->first_line = true;
    answer->length = 0;
    answer->left = 0;
    answer->content_bytes = 0;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* "HTTP/1.1 200 OK" */
static void status_line(struct answer *answer)
{
    const char *line = answer->line;
    if (answer->line_bytes < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' || !is_digit(line[9]) ||
        !is_digit(line[10]) || !is_digit(line[11]))
        return;
    answer->status = (uint16_t)((line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0'));
    answer->closes = line[7] == '0';
}

/* The value of the field `name` (which ends with a colon) when the line is one, without spaces before it. */
static const char *field(const struct answer *answer, const char *name)
{
    size_t length = strlen(name);
    if (answer->line_bytes < length || strncasecmp(answer->line, name, length) != 0)
        return NULL;
    while (length < answer->line_bytes && (answer->line[length] == ' ' || answer->line[length] == '\t'))
        length++;
    return answer->line + length;
}

/* Whether a list has this element. */
static bool has_token(const char *list, const char *end, const char *token)
{
    size_t length = strlen(token);
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *last = comma != NULL ? comma : end;
        const char *next = comma != NULL ? comma + 1 : end;
        while (list < last && (*list == ' ' || *list == '\t'))
            list++;
        while (last > list && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if ((size_t)(last - list) == length && strncasecmp(list, token, length) == 0)
            return true;
        list = next;
    }
    return false;
}

static void field_line(struct answer *answer)
{
    const char *end = answer->line + answer->line_bytes;
    const char *value = field(answer, "content-length:");
    if (value != NULL) {
        uint64_t length = 0;
        const char *start = value;
        while (value < end && is_digit(*value) && value - start < 18)
            length = length * 10 + (uint64_t)(*value++ - '0');
        answer->has_length = value > start;
        answer->length = length;
    }
    value = field(answer, "transfer-encoding:");
    if (value != NULL && end - value >= 7)
        answer->chunked = strncasecmp(end - 7, "chunked", 7) == 0;
    value = field(answer, "connection:");
    if (value != NULL && has_token(value, end, "close"))
        answer->closes = true;
    else if (value != NULL && has_token(value, end, "keep-alive"))
        answer->closes = false;
}

/* Behind the empty line. True when the answer ends here. */
static bool head_ends(struct answer *answer)
{
    uint16_t status = answer->status;
    if (status >= 100 && status < 200 && status != 101) {
        answer_reset(answer, answer->head_request);
        return false;
    }
    if (status == 204 || status == 304 || (answer->head_request && status != 0 && status != 101))
        return true;
    if (status == 0 || status == 101) {
        answer->state = ANSWER_TO_CLOSE;
    } else if (answer->chunked) {
        answer->state = ANSWER_CHUNK_SIZE;
    } else if (answer->has_length) {
        answer->state = ANSWER_COUNTED;
        answer->left = answer->length;
        return answer->left == 0;
    } else {
        answer->state = ANSWER_TO_CLOSE;
    }
    return false;
}

static void chunk_size_line(struct answer *answer)
{
    uint64_t size = 0;
    int digits = 0;
    for (size_t at = 0; at < answer->line_bytes && digits < 15; at++, digits++) {
        char byte = answer->line[at] | 0x20;
        if (is_digit(byte))
            size = size * 16 + (uint64_t)(byte - '0');
        else if (byte >= 'a' && byte <= 'f')
            size = size * 16 + (uint64_t)(byte - 'a' + 10);
        else
            break;
    }
    answer->left = size;
    if (digits == 0)
        answer->state = ANSWER_TO_CLOSE; /* No size: not what was announced. */
    else
        answer->state = size == 0 ? ANSWER_TRAILER : ANSWER_CHUNK;
}

/* A line is whole, without its line end. True when the answer ends with it. */
static bool line_ends(struct answer *answer)
{
    bool ended = false;
    bool empty = answer->line_bytes == 0;
    switch (answer->state) {
    case ANSWER_HEAD:
        if (answer->first_line)
            status_line(answer);
        else if (empty)
            ended = head_ends(answer);
        else
            field_line(answer);
        /* An interim answer has been forgotten, with nothing read of the next one. */
        answer->first_line = answer->state == ANSWER_NONE;
        break;
    case ANSWER_CHUNK_SIZE:
        chunk_size_line(answer);
        break;
    case ANSWER_CHUNK_END:
        answer->state = ANSWER_CHUNK_SIZE;
        break;
    case ANSWER_TRAILER:
        ended = empty;
        break;
    default:
        break;
    }
    answer->line_bytes = 0;
    return ended;
}

/* One byte of a line. True when the answer ends with it. */
static bool line_byte(struct answer *answer, char byte)
{
    if (byte != '\n') {
        if (answer->line_bytes < ANSWER_LINE_BYTES)
            answer->line[answer->line_bytes++] = byte;
        return false;
    }
    if (answer->line_bytes > 0 && answer->line[answer->line_bytes - 1] == '\r')
        answer->line_bytes--;
    return line_ends(answer);
}

/* Content of known length. */
static size_t counted(struct answer *answer, size_t count, bool *complete)
{
    size_t taken = answer->left < count ? (size_t)answer->left : count;
    answer->left -= taken;
    answer->content_bytes += taken;
    if (answer->left == 0) {
        if (answer->state == ANSWER_CHUNK)
            answer->state = ANSWER_CHUNK_END;
        else
            *complete = true;
    }
    return taken;
}

size_t answer_take(struct answer *answer, const char *bytes, size_t count, bool *complete)
{
    size_t at = 0;
    *complete = false;
    while (at < count && !*complete) {
        switch (answer->state) {
        case ANSWER_COUNTED:
        case ANSWER_CHUNK:
            at += counted(answer, count - at, complete);
            break;
        case ANSWER_TO_CLOSE:
            answer->content_bytes += count - at;
            return count;
        default:
            if (bytes == NULL) {
                /* A file where lines are expected: its end is not known. */
                answer->state = ANSWER_TO_CLOSE;
                break;
            }
            if (answer->state == ANSWER_NONE)
                answer->state = ANSWER_HEAD;
            *complete = line_byte(answer, bytes[at++]);
        }
    }
    return at;
}
