#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "real.h"

/* Descriptors above are not handed: the highest that kernels allow by default. */
#define DESCRIPTORS (1 << 20)

/* A time-out of a socket that is longer counts as none. */
#define LONGEST_S (1 << 20)

/* No time to wait. */
#define UNKNOWN_MS INT_MIN

/* Between two looks of a thread at bytes that are not for it, whether another thread has ended the answer. */
#define PAUSE_MS 5

/* Together more than a client can have sent. */
#define DRAIN_BYTES (1 << 20)
#define DRAIN_TURNS 16

/* Entries are made once and used again: nothing is allocated for a descriptor that was a handed connection before. */
static struct connection *_Atomic table[DESCRIPTORS];

/* Changes in the child of a fork, whose copies of descriptors are not connections of its own: it may close them, and the
 * parent goes on. 0 is never used: it means no connection. */
static _Atomic unsigned life = 1;

/* The child of a vfork has the table of its parent, and descriptors of its own. */
static pid_t process;

/* No descriptor above was ever handed. */
static _Atomic unsigned highest;

static void child(void)
{
    atomic_fetch_add(&life, 1);
    process = getpid();
}

__attribute__((constructor)) static void watch_forks(void)
{
    process = getpid();
    pthread_atfork(NULL, NULL, child);
}

struct connection *connection_of(int fd)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return NULL;
    struct connection *connection = atomic_load_explicit(&table[fd], memory_order_acquire);
    if (connection == NULL || atomic_load_explicit(&connection->life, memory_order_acquire) !=
                                  atomic_load_explicit(&life, memory_order_relaxed))
        return NULL;
    return connection;
}

struct connection *connection_add(int fd, int channel, const struct handed_message *message)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return NULL;
    struct connection *connection = atomic_load_explicit(&table[fd], memory_order_acquire);
    if (connection == NULL) {
        connection = calloc(1, sizeof *connection);
        if (connection == NULL)
            return NULL;
        atomic_store_explicit(&table[fd], connection, memory_order_release);
    }
    struct stat status;
    if (fstat(channel, &status) != 0)
        return NULL;
    unsigned before = atomic_load(&highest);
    while ((unsigned)fd > before && !atomic_compare_exchange_weak(&highest, &before, (unsigned)fd))
        ;
    connection->fd = fd;
    connection->channel = channel;
    connection->channel_inode = status.st_ino;
    connection->give_back = message->flags & HANDED_GIVE_BACK;
    connection->answered = false;
    connection->ended = false;
    connection->given_back = false;
    connection->failed = false;
    connection->first_byte_ns = 0;
    answer_reset(&connection->answer, message->flags & HANDED_HEAD_REQUEST);
    limit_begin(&connection->limit, fd, connection->give_back ? message->head_size_bytes : 0);
    atomic_store_explicit(&connection->life, atomic_load(&life), memory_order_release);
    return connection;
}

static void report(struct connection *connection, bool complete)
{
    struct answer *answer = &connection->answer;
    struct handed_message message = {
        .magic = HANDED_MAGIC,
        .version = HANDED_VERSION,
        .kind = HANDED_ANSWERED,
        .status = answer->status,
        .flags = complete ? HANDED_COMPLETE : 0,
        .content_bytes = answer->content_bytes,
        .first_byte_ns = connection->first_byte_ns,
    };
    channel_send(connection->channel, &message, -1);
    answer_reset(answer, false);
    connection->first_byte_ns = 0;
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
            report(connection, true);
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
    int channel = fcntl(connection->channel, F_DUPFD_CLOEXEC, 0);
    if (channel < 0)
        return false;
    if (!channel_send(channel, &message, fd)) {
        real->close(channel);
        connection->give_back = false;
        limit_lift(&connection->limit, fd);
        return false;
    }
    if (connection->limit.epoll >= 0)
        real->epoll_ctl(connection->limit.epoll, EPOLL_CTL_DEL, fd, &ignored);
    real->dup3(connection->channel, fd, O_CLOEXEC);
    real->close(connection->channel);
    real->close(channel);
    connection->channel = -1;
    connection->given_back = true;
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
        if (count < 0 && errno != EAGAIN && errno != EINTR)
            return READING_FAILS;
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

void connection_ends(struct connection *connection)
{
    if (connection->given_back || connection->ended)
        return;
    connection->ended = true;
    limit_lift(&connection->limit, connection->fd);
    if (connection->answer.state != ANSWER_NONE || connection->first_byte_ns != 0)
        report(connection, connection->answer.state == ANSWER_TO_CLOSE && !connection->failed);
}

int connection_remove(struct connection *connection)
{
    int channel = connection->channel;
    connection_ends(connection);
    /* Before the number can be used again. */
    atomic_store_explicit(&connection->life, 0, memory_order_release);
    return channel;
}

/* The Unix connection may have been closed unseen as well, and its number be another's now. */
static bool has_channel(const struct connection *connection)
{
    struct stat status;
    return connection->channel >= 0 && fstat(connection->channel, &status) == 0 && S_ISSOCK(status.st_mode) &&
           status.st_ino == connection->channel_inode;
}

/* After vfork the child sees this table, which is the parent's: what it closes are copies of descriptors. */
bool connection_is_of_process(void)
{
    return getpid() == process;
}

void connection_forget(unsigned low, unsigned high)
{
    unsigned last = atomic_load(&highest);
    if (high < last)
        last = high;
    if (low > last || !connection_is_of_process())
        return;
    int before = errno;
    for (unsigned fd = low; fd <= last; fd++) {
        struct connection *connection = connection_of((int)fd);
        if (connection == NULL)
            continue;
        if (!has_channel(connection))
            atomic_store_explicit(&connection->life, 0, memory_order_release);
        else
            real_functions()->close(connection_remove(connection));
    }
    errno = before;
}
