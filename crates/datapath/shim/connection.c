#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "real.h"

/* Descriptors above are not handed: the highest that kernels allow by default. */
#define DESCRIPTORS (1 << 20)

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
    connection->channel = channel;
    connection->channel_inode = status.st_ino;
    connection->epoll = -1;
    connection->give_back = message->flags & HANDED_GIVE_BACK;
    connection->answered = false;
    connection->ended = false;
    connection->given_back = false;
    connection->failed = false;
    connection->first_byte_ns = 0;
    answer_reset(&connection->answer, message->flags & HANDED_HEAD_REQUEST);
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

void connection_read(struct connection *connection, const void *bytes, size_t count)
{
    if (count == 0 || !connection->answered)
        return;
    connection->answered = false;
    connection->answer.head_request = count >= 5 && memcmp(bytes, "HEAD ", 5) == 0;
}

/* The descriptor becomes the Unix connection: the server drops the socket at once, whenever it closes the descriptor. A
 * socket that the agent has keeps its place in an epoll of this process unless it is taken out of it. */
static bool give_back(struct connection *connection, int fd)
{
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
        return false;
    }
    if (connection->epoll >= 0)
        real->epoll_ctl(connection->epoll, EPOLL_CTL_DEL, fd, &ignored);
    real->dup3(connection->channel, fd, O_CLOEXEC);
    real->close(connection->channel);
    real->close(channel);
    connection->channel = -1;
    connection->given_back = true;
    return true;
}

/* What a read would find, without reading: a read after a look could meet bytes that came in between. */
static enum reading look(struct connection *connection, int fd, int flags)
{
    bool waits = !(flags & MSG_DONTWAIT) && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
    for (;;) {
        char byte;
        ssize_t count = real_functions()->recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (count > 0)
            return give_back(connection, fd) ? READING_END : READING_ON;
        if (count == 0 || (errno != EAGAIN && errno != EINTR))
            return READING_ON;
        if (!waits)
            return READING_NOTHING;
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        if (poll(&watched, 1, -1) < 0 && errno != EINTR)
            return READING_ON;
    }
}

enum reading connection_reads(struct connection *connection, int fd, int flags)
{
    if (connection->given_back)
        return READING_END;
    if (!connection->give_back || !connection->answered || connection->ended || (flags & MSG_PEEK))
        return READING_ON;
    int before = errno;
    enum reading reading = look(connection, fd, flags);
    errno = reading == READING_NOTHING ? EAGAIN : before;
    return reading;
}

void connection_ends(struct connection *connection)
{
    if (connection->given_back || connection->ended)
        return;
    connection->ended = true;
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

void connection_forget(unsigned low, unsigned high)
{
    unsigned last = atomic_load(&highest);
    if (high < last)
        last = high;
    if (low > last || getpid() != process)
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
