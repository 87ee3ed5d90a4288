/* Servers that cannot listen on a Unix socket (Apache): with PLIMSOLL_SHIM_LISTEN=PORT=PATH in the environment, a socket
 * that the server binds to that TCP port becomes a Unix socket at that path. The server goes on to take it, and ordinary
 * clients of the path, for TCP sockets: some end when the kernel tells them otherwise (Varnish). */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "listen.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))

/* Of the address that the server bound; an image that got the socket from an earlier one does not know it. */
static sa_family_t bound_family = AF_INET;

/* The path of the setting and its port, or null. */
static const char *setting(unsigned long *port)
{
    const char *text = getenv("PLIMSOLL_SHIM_LISTEN");
    char *end;
    if (text == NULL)
        return NULL;
    *port = strtoul(text, &end, 10);
    return *end == '=' && end[1] != 0 ? end + 1 : NULL;
}

/* The path for this address, or null. */
static const char *path_for(const struct sockaddr *address, socklen_t length)
{
    unsigned long wanted;
    const char *path = setting(&wanted);
    if (path == NULL || address == NULL || length < sizeof(struct sockaddr_in))
        return NULL;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return NULL;
    /* Both families have the port at the same place. */
    return wanted == ntohs(((const struct sockaddr_in *)address)->sin_port) ? path : NULL;
}

bool listen_stands_in(int fd)
{
    unsigned long port;
    struct sockaddr_un name = {0};
    socklen_t length = sizeof name - 1;
    const char *path = setting(&port);
    int before = errno;
    bool is_ours = path != NULL && real_functions()->getsockname(fd, (struct sockaddr *)&name, &length) == 0 &&
                   name.sun_family == AF_UNIX && strcmp(name.sun_path, path) == 0;
    errno = before;
    return is_ours;
}

void listen_loopback(struct sockaddr_storage *address, socklen_t *length, unsigned port)
{
    memset(address, 0, sizeof *address);
    if (bound_family == AF_INET6) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
        *six = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons((uint16_t)port)};
        *length = sizeof *six;
        return;
    }
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    *four = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    *length = sizeof *four;
}

static int bind_path(int fd, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(name.sun_path, path);
    int closes_on_exec = fcntl(fd, F_GETFD) & FD_CLOEXEC;
    int status = fcntl(fd, F_GETFL);
    int unix_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (status & O_NONBLOCK ? SOCK_NONBLOCK : 0), 0);
    if (unix_socket < 0)
        return -1;
    struct stat old;
    if (lstat(path, &old) == 0 && S_ISSOCK(old.st_mode))
        unlink(path);
    const struct real *real = real_functions();
    int result = real->bind(unix_socket, (const struct sockaddr *)&name, sizeof name);
    if (result == 0 && dup3(unix_socket, fd, closes_on_exec ? O_CLOEXEC : 0) < 0)
        result = -1;
    int before = errno;
    real->close(unix_socket);
    errno = before;
    return result;
}

EXPORT int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    const char *path = path_for(address.__sockaddr__, length);
    int type = 0;
    socklen_t room = sizeof type;
    if (path != NULL && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &room) == 0 && type == SOCK_STREAM) {
        bound_family = address.__sockaddr__->sa_family;
        return bind_path(fd, path);
    }
    return real_functions()->bind(fd, address.__sockaddr__, length);
}

/* A failed call about an option of TCP or IP, which a Unix socket does not have. */
static bool is_about_tcp(int fd, int level)
{
    return level != SOL_SOCKET && (errno == EOPNOTSUPP || errno == ENOPROTOOPT) && listen_stands_in(fd);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    int before = errno;
    int result = real_functions()->setsockopt(fd, level, name, value, length);
    if (result == 0 || !is_about_tcp(fd, level))
        return result;
    errno = before;
    return 0;
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    int before = errno;
    int result = real_functions()->getsockopt(fd, level, name, value, length);
    if (result == 0 || !is_about_tcp(fd, level))
        return result;
    if (value == NULL || length == NULL) {
        errno = EFAULT;
        return -1;
    }
    memset(value, 0, *length);
    errno = before;
    return 0;
}

typedef int (*name_call)(int, struct sockaddr *, socklen_t *);

/* A call that tells an address; in place of that of a Unix socket which stands in for a TCP one, one with this port. */
static int tell_name(int fd, struct sockaddr *address, socklen_t *room, name_call call, bool with_port)
{
    struct sockaddr_storage told;
    socklen_t length, given = room != NULL ? *room : 0;
    unsigned long port = 0;
    int result = call(fd, address, room);
    if (result != 0 || given < sizeof address->sa_family || address->sa_family != AF_UNIX || !listen_stands_in(fd))
        return result;
    if (with_port)
        setting(&port);
    listen_loopback(&told, &length, (unsigned)port);
    memcpy(address, &told, given < length ? given : length);
    *room = length;
    return 0;
}

EXPORT int getsockname(int fd, __SOCKADDR_ARG address, socklen_t *room)
{
    return tell_name(fd, address.__sockaddr__, room, real_functions()->getsockname, true);
}

EXPORT int getpeername(int fd, __SOCKADDR_ARG address, socklen_t *room)
{
    return tell_name(fd, address.__sockaddr__, room, real_functions()->getpeername, false);
}
