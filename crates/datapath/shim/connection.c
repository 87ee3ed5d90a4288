#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "cookie.h"
#include "real.h"

/* A time-out of a socket that is longer counts as none. */
#define LONGEST_S (1 << 20)

/* No time to wait. */
#define UNKNOWN_MS INT_MIN

/* Between two looks of a thread at bytes that are not for it, whether another thread has ended the answer. */
#define PAUSE_MS 5

/* Together more than a client can have sent. */
#define DRAIN_BYTES (1 << 20)
#define DRAIN_TURNS 16

bool connection_begin(struct connection *connection, int fd, int channel, const struct handed_message *message)
{
    connection->cookie = cookie_of(fd);
    connection->channel_cookie = cookie_of(channel);
    if (connection->cookie == 0 || connection->channel_cookie == 0)
        return false;
    connection->fd = fd;
    connection->channel = channel;
    connection->give_back = message->flags & HANDED_GIVE_BACK;
    connection->no_end = message->flags & HANDED_NO_END;
    connection->answered = false;
    connection->ended = false;
    connection->given_back = false;
    connection->failed = false;
    connection->first_byte_ns = 0;
    answer_reset(&connection->answer, message->flags & HANDED_HEAD_REQUEST);
    limit_begin(&connection->limit, fd, connection->give_back ? message->head_size_bytes : 0);
    return true;
}

/* The Unix connection to the agent may have been closed unseen as well. */
static bool is_channel(int channel, uint64_t channel_cookie)
{
    return channel >= 0 && cookie_of(channel) == channel_cookie;
}

static struct handed_message notice_of(const struct connection *connection, bool complete)
{
    const struct answer *answer = &connection->answer;
    return (struct handed_message){
        .magic = HANDED_MAGIC,
        .version = HANDED_VERSION,
        .kind = HANDED_ANSWERED,
        .status = answer->status,
        .flags = complete ? HANDED_COMPLETE : 0,
        .content_bytes = answer->content_bytes,
        .first_byte_ns = connection->first_byte_ns,
    };
}

static void forget_answer(struct connection *connection)
{
    answer_reset(&connection->answer, false);
    connection->first_byte_ns = 0;
}

static void report(struct connection *connection)
{
    struct handed_message notice = notice_of(connection, true);
    if (connection->answer.closes)
        notice.flags |= HANDED_ENDED;
    if (is_channel(connection->channel, connection->channel_cookie))
        channel_send(connection->channel, &notice, -1);
    forget_answer(connection);
}

void connection_wrote(struct connection *connection, const char *bytes, size_t count)
{
    while (count > 0 && !connection->given_back) {
        /* Behind the answer to the only request that the server has read. */
        if (connection->limit.on && connection->answered)
            return;
        if (connection->first_byte_ns == 0) {
            struct timespec now;
            clock_gettime(CLOCK_MONOTONIC, &now);
            connection->first_byte_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        }
        connection->answered = false;
        bool complete;
        size_t taken = answer_take(&connection->answer, bytes, count, &complete);
        if (bytes != NULL)
            bytes += taken;
        count -= taken;
        if (complete) {
            report(connection);
            connection->answered = true;
            limit_show(&connection->limit, connection->fd);
        } else if (connection->answer.state == ANSWER_TO_CLOSE) {
            /* Another protocol, which reads, or the last answer. */
            limit_lift(&connection->limit, connection->fd);
        }
    }
}

void connection_wrote_parts(struct connection *connection, const struct iovec *parts, size_t count, size_t bytes)
{
    for (size_t at = 0; at < count && bytes > 0; at++) {
        size_t taken = parts[at].iov_len < bytes ? parts[at].iov_len : bytes;
        connection_wrote(connection, parts[at].iov_base, taken);
        bytes -= taken;
    }
}

void connection_read(struct connection *connection, const void *bytes, size_t known, size_t count)
{
    limit_read(&connection->limit, connection->fd, count);
    if (!connection->answered)
        return;
    if (connection->limit.on) {
        /* The rest of a request that was answered before it was read. */
        limit_show(&connection->limit, connection->fd);
        return;
    }
    connection->answered = false;
    connection->answer.head_request = known >= 5 && memcmp(bytes, "HEAD ", 5) == 0;
}

/* The descriptor becomes the Unix connection: the server drops the socket at once, whenever it closes the descriptor. A
 * socket that the agent has keeps its place in an epoll of this process unless it is taken out of it. */
static bool give_back(struct connection *connection)
{
    int fd = connection->fd;
    limit_show_to_agent(&connection->limit, fd);
    struct handed_message message = {
        .magic = HANDED_MAGIC, .version = HANDED_VERSION, .kind = HANDED_GIVEN_BACK};
    const struct real *real = real_functions();
    struct epoll_event ignored = {0};
    if (!is_channel(connection->channel, connection->channel_cookie) ||
        !channel_send(connection->channel, &message, fd)) {
        connection->give_back = false;
        limit_lift(&connection->limit, fd);
        return false;
    }
    /* First, so that another thread writes nothing to the Unix connection. */
    connection->given_back = true;
    if (connection->limit.epoll >= 0)
        real->epoll_ctl(connection->limit.epoll, EPOLL_CTL_DEL, fd, &ignored);
    real->dup3(connection->channel, fd, O_CLOEXEC);
    real->close(connection->channel);
    connection->channel = -1;
    return true;
}

/* Whether a read must not reach the socket: the request was read, and what comes next is not for the server. */
static bool is_closed_off(struct connection *connection, int flags)
{
    struct limit *limit = &connection->limit;
    if (connection->ended || (limit->on && limit->head_left > 0))
        return false;
    if (connection->answered)
        return connection->give_back && !(flags & MSG_PEEK);
    if (!limit->on)
        return false;
    /* A server that writes by ways that the shim does not see: as if there were none. */
    if (connection->first_byte_ns == 0 && limit_was_written(limit, connection->fd))
        limit_lift(limit, connection->fd);
    return limit->on;
}

/* The longest that a read may wait, in milliseconds; -1: without end. */
static int patience(int fd, int flags)
{
    struct timeval time = {0};
    socklen_t room = sizeof time;
    if ((flags & MSG_DONTWAIT) || (fcntl(fd, F_GETFL) & O_NONBLOCK))
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, &room) != 0 || (time.tv_sec == 0 && time.tv_usec == 0))
        return -1;
    return time.tv_sec > LONGEST_S ? -1 : (int)(time.tv_sec * 1000 + (time.tv_usec + 999) / 1000);
}

/* Waits for bytes, or for the end of the answer when there are some. What is left of the time to wait. */
static int wait_on(int fd, bool has_bytes, int left_ms)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    if (!has_bytes)
        return poll(&watched, 1, left_ms) == 0 ? 0 : left_ms;
    /* Only another thread can end it. */
    int pause_ms = left_ms >= 0 && left_ms < PAUSE_MS ? left_ms : PAUSE_MS;
    poll(NULL, 0, pause_ms);
    return left_ms < 0 ? -1 : left_ms - pause_ms;
}

/* What a read would find, without reading: a read after a look could meet bytes that came in between. */
static enum reading look(struct connection *connection, int flags)
{
    int fd = connection->fd;
    int left_ms = UNKNOWN_MS;
    while (is_closed_off(connection, flags)) {
        char byte;
        ssize_t count = real_functions()->recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (count == 0)
            return READING_ON;
        /* The agent takes a connection that the server must not end away in its own way. */
        if (count < 0 && errno != EAGAIN && errno != EINTR)
            return connection->no_end && connection->answered ? READING_END : READING_FAILS;
        if (count > 0 && connection->answered)
            return give_back(connection) ? READING_END : READING_ON;
        if (count > 0) {
            limit_hide(&connection->limit, fd);
            /* It may have ended meanwhile. */
            if (connection->answered)
                limit_show(&connection->limit, fd);
        }
        if (left_ms == UNKNOWN_MS)
            left_ms = patience(fd, flags);
        if (left_ms == 0) {
            errno = EAGAIN;
            return READING_FAILS;
        }
        left_ms = wait_on(fd, count > 0, left_ms);
    }
    return READING_ON;
}

enum reading connection_reads(struct connection *connection, int flags, size_t *most)
{
    *most = SIZE_MAX;
    if (connection->given_back)
        return READING_END;
    int before = errno;
    enum reading reading = look(connection, flags);
    if (reading != READING_FAILS)
        errno = before;
    if (connection->limit.on && connection->limit.head_left > 0)
        *most = connection->limit.head_left;
    return reading;
}

size_t connection_shows(const struct connection *connection, size_t waiting)
{
    const struct limit *limit = &connection->limit;
    if (connection->given_back || connection->answered || !limit->on || waiting < limit->head_left)
        return waiting;
    return limit->head_left;
}

void connection_drain(const struct connection *connection)
{
    if (connection->given_back || !connection->limit.has_hidden)
        return;
    int before = errno;
    for (int turn = 0; turn < DRAIN_TURNS; turn++)
        if (real_functions()->recv(connection->fd, NULL, DRAIN_BYTES, MSG_TRUNC | MSG_DONTWAIT) <= 0)
            break;
    errno = before;
}

struct ending connection_ending(const struct connection *connection)
{
    const struct answer *answer = &connection->answer;
    bool has_begun = answer->state != ANSWER_NONE || connection->first_byte_ns != 0;
    struct handed_message notice = notice_of(connection, answer->state == ANSWER_TO_CLOSE && !connection->failed);
    notice.flags |= HANDED_ENDED;
    return (struct ending){
        .channel = connection->given_back ? -1 : connection->channel,
        .channel_cookie = connection->channel_cookie,
        .is_due = has_begun && !connection->ended && !connection->given_back,
        .notice = notice,
    };
}

bool ending_has_channel(const struct ending *ending)
{
    return is_channel(ending->channel, ending->channel_cookie);
}

void ending_tell(const struct ending *ending)
{
    if (ending->is_due && ending_has_channel(ending))
        channel_send(ending->channel, &ending->notice, -1);
}

void connection_ends(struct connection *connection)
{
    if (connection->given_back || connection->ended)
        return;
    struct ending ending = connection_ending(connection);
    connection->ended = true;
    limit_lift(&connection->limit, connection->fd);
    ending_tell(&ending);
    forget_answer(connection);
}
