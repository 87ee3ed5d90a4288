/* Preloaded into a server that knows nothing of Plimsoll: connections that the agent passes over a Unix socket look to it
 * like connections that it accepted. Every other descriptor behaves as without the shim. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#include "channel.h"
#include "listen.h"
#include "real.h"
#include "table.h"

#define EXPORT __attribute__((visibility("default")))

/* Of a read into several places, so many are used when it must not read everything. */
#define PLACES 64

static void fill_address(struct sockaddr *to, socklen_t *room, const struct sockaddr_storage *from, socklen_t length)
{
    if (to == NULL || room == NULL)
        return;
    memcpy(to, from, *room < length ? *room : length);
    *room = length;
}

/* The connection that the agent passes over `channel`, or -1 with errno as for one that ended before it was accepted. */
static int accept_handed(int channel, struct sockaddr_storage *peer, socklen_t *length, int flags)
{
    const struct real *real = real_functions();
    struct handed_message message;
    int fd = channel_receive(channel, flags & SOCK_CLOEXEC, &message);
    if (fd >= 0) {
        table_check((unsigned)fd, (unsigned)fd);
        int status = fcntl(fd, F_GETFL);
        int wanted = flags & SOCK_NONBLOCK ? status | O_NONBLOCK : status & ~O_NONBLOCK;
        *length = sizeof *peer;
        fcntl(channel, F_SETFD, FD_CLOEXEC);
        if (status >= 0 && (wanted == status || fcntl(fd, F_SETFL, wanted) == 0) &&
            getpeername(fd, (struct sockaddr *)peer, length) == 0 &&
            table_add(fd, channel, &message) != NULL)
            return fd;
        real->close(fd);
    }
    real->close(channel);
    errno = ECONNABORTED;
    return -1;
}

EXPORT int accept4(int listener, __SOCKADDR_ARG address, socklen_t *room, int flags)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    int fd = real_functions()->accept4(listener, (struct sockaddr *)&peer, &length, flags);
    if (fd >= 0)
        table_check((unsigned)fd, (unsigned)fd);
    if (fd >= 0 && channel_is_agent(fd, &peer, length))
        fd = accept_handed(fd, &peer, &length, flags);
    else if (fd >= 0 && peer.ss_family == AF_UNIX && listen_stands_in(fd))
        listen_loopback(&peer, &length, 0);
    if (fd >= 0)
        fill_address(address.__sockaddr__, room, &peer, length);
    return fd;
}

EXPORT int accept(int listener, __SOCKADDR_ARG address, socklen_t *room)
{
    return accept4(listener, address, room, 0);
}

/* A read: `bytes` and `size` are where the first bytes go; `call` reads at most `most` bytes. */
#define READ(fd, flags, bytes, size, call)                                   \
    do {                                                                     \
        size_t most = SIZE_MAX;                                              \
        struct connection *connection = table_find(fd);                      \
        if (connection == NULL)                                              \
            return (call);                                                   \
        enum reading reading = connection_reads(connection, flags, &most);   \
        if (reading != READING_ON)                                           \
            return reading == READING_END ? 0 : -1;                          \
        ssize_t count = (call);                                              \
        if (count > 0 && !((flags)&MSG_PEEK)) {                              \
            size_t known = (size_t)count < (size) ? (size_t)count : (size);  \
            connection_read(connection, bytes, known, (size_t)count);        \
        }                                                                    \
        return count;                                                        \
    } while (0)

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

EXPORT ssize_t read(int fd, void *bytes, size_t size)
{
    READ(fd, 0, bytes, size, real_functions()->read(fd, bytes, least(size, most)));
}

/* The places for the first bytes of a read into several. */
struct places {
    const struct iovec *parts;
    size_t count;
    struct iovec room[PLACES];
};

/* Leaves room for so many bytes at most. A read may always be shorter than it could be. */
static void shorten(struct places *places, size_t most)
{
    size_t at = 0;
    if (most == SIZE_MAX)
        return;
    for (; at < places->count && at < PLACES && most > 0; at++) {
        places->room[at] = places->parts[at];
        places->room[at].iov_len = least(places->room[at].iov_len, most);
        most -= places->room[at].iov_len;
    }
    places->parts = places->room;
    places->count = at;
}

static ssize_t read_places(int fd, struct places *places, size_t most)
{
    shorten(places, most);
    return real_functions()->readv(fd, places->parts, (int)places->count);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count_parts)
{
    if (count_parts <= 0)
        return real_functions()->readv(fd, parts, count_parts);
    struct places places = {.parts = parts, .count = (size_t)count_parts};
    READ(fd, 0, parts->iov_base, parts->iov_len, read_places(fd, &places, most));
}

EXPORT ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    READ(fd, flags, bytes, size, real_functions()->recv(fd, bytes, least(size, most), flags));
}

EXPORT ssize_t recvfrom(int fd, void *bytes, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *room)
{
    READ(fd, flags, bytes, size,
         real_functions()->recvfrom(fd, bytes, least(size, most), flags, from.__sockaddr__, room));
}

/* The message tells its places again afterwards. */
static ssize_t receive_message(int fd, struct msghdr *message, int flags, size_t most)
{
    struct places places = {.parts = message->msg_iov, .count = message->msg_iovlen};
    struct iovec *parts = message->msg_iov;
    size_t count_parts = message->msg_iovlen;
    shorten(&places, most);
    message->msg_iov = (struct iovec *)places.parts;
    message->msg_iovlen = places.count;
    ssize_t count = real_functions()->recvmsg(fd, message, flags);
    message->msg_iov = parts;
    message->msg_iovlen = count_parts;
    return count;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    const struct iovec none = {0};
    const struct iovec *first = message->msg_iovlen > 0 ? message->msg_iov : &none;
    READ(fd, flags, first->iov_base, first->iov_len, receive_message(fd, message, flags, most));
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int result = real_functions()->ioctl(fd, request, argument);
    struct connection *connection = request == FIONREAD && result == 0 ? table_find(fd) : NULL;
    if (connection != NULL && *(int *)argument > 0)
        *(int *)argument = (int)connection_shows(connection, (size_t)(*(int *)argument));
    return result;
}

/* Programs built with _FORTIFY_SOURCE call these where a buffer's size is known. */
EXPORT ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room)
{
    if (size > room)
        __builtin_trap();
    return read(fd, bytes, size);
}

EXPORT ssize_t __recv_chk(int fd, void *bytes, size_t size, size_t room, int flags)
{
    if (size > room)
        __builtin_trap();
    return recv(fd, bytes, size, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *bytes, size_t size, size_t room, int flags, __SOCKADDR_ARG from,
                              socklen_t *length)
{
    if (size > room)
        __builtin_trap();
    return recvfrom(fd, bytes, size, flags, from, length);
}

/* A write: `account` counts what was written. */
#define WRITE(fd, call, account)                                                    \
    do {                                                                            \
        struct connection *connection = table_find(fd);                             \
        if (connection == NULL)                                                     \
            return (call);                                                          \
        if (connection->given_back) {                                               \
            errno = EPIPE;                                                          \
            return -1;                                                              \
        }                                                                           \
        ssize_t count = (call);                                                     \
        if (count > 0) {                                                            \
            int before = errno;                                                     \
            account;                                                                \
            errno = before;                                                         \
        } else if (count < 0 && errno != EAGAIN && errno != EINTR) {                \
            connection->failed = true;                                              \
        }                                                                           \
        return count;                                                               \
    } while (0)

EXPORT ssize_t write(int fd, const void *bytes, size_t size)
{
    WRITE(fd, real_functions()->write(fd, bytes, size), connection_wrote(connection, bytes, (size_t)count));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count_parts)
{
    WRITE(fd, real_functions()->writev(fd, parts, count_parts),
          connection_wrote_parts(connection, parts, (size_t)count_parts, (size_t)count));
}

EXPORT ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    WRITE(fd, real_functions()->send(fd, bytes, size, flags),
          connection_wrote(connection, bytes, (size_t)count));
}

EXPORT ssize_t sendto(int fd, const void *bytes, size_t size, int flags, __CONST_SOCKADDR_ARG to,
                      socklen_t length)
{
    WRITE(fd, real_functions()->sendto(fd, bytes, size, flags, to.__sockaddr__, length),
          connection_wrote(connection, bytes, (size_t)count));
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    WRITE(fd, real_functions()->sendmsg(fd, message, flags),
          connection_wrote_parts(connection, message->msg_iov, message->msg_iovlen, (size_t)count));
}

EXPORT ssize_t sendfile(int fd, int file, off_t *offset, size_t size)
{
    WRITE(fd, real_functions()->sendfile(fd, file, offset, size),
          connection_wrote(connection, NULL, (size_t)count));
}

EXPORT ssize_t sendfile64(int fd, int file, off64_t *offset, size_t size)
{
    WRITE(fd, real_functions()->sendfile64(fd, file, offset, size),
          connection_wrote(connection, NULL, (size_t)count));
}

/* The pipe at one end has the bytes that the kernel moves at the other. */
EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags)
{
    const size_t known_bytes = 0;
    if (table_find(from) != NULL)
        READ(from, 0, NULL, known_bytes,
             real_functions()->splice(from, from_offset, to, to_offset, least(size, most), flags));
    WRITE(to, real_functions()->splice(from, from_offset, to, to_offset, size, flags),
          connection_wrote(connection, NULL, (size_t)count));
}

EXPORT int shutdown(int fd, int how)
{
    struct connection *connection = table_find(fd);
    /* Of the side that the server may not end only the agent hears. */
    bool is_kept = connection != NULL && connection->no_end && how != SHUT_RD;
    int result = is_kept ? 0 : real_functions()->shutdown(fd, how);
    if (connection != NULL && how != SHUT_RD) {
        int before = errno;
        connection_ends(connection);
        errno = before;
    }
    return result;
}

EXPORT int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    int result = real_functions()->epoll_ctl(epoll, operation, fd, event);
    struct connection *connection = table_peek(fd);
    if (connection == NULL)
        return result;
    if (result == 0)
        limit_watched(&connection->limit, epoll, operation, event);
    else if (errno == ENOENT && connection->given_back && table_find(fd) == connection)
        /* Of a socket that was given back the server does not know that it is not watched any more. */
        return 0;
    return result;
}
