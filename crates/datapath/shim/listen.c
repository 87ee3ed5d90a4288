/* Servers that cannot listen on a Unix socket (Apache): with PLIMSOLL_SHIM_LISTEN=PORT=PATH in the environment, a socket
 * that the server binds to that TCP port becomes a Unix socket at that path. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "real.h"

/* The path for this address, or null. */
static const char *path_for(const struct sockaddr *address, socklen_t length)
{
    const char *setting = getenv("PLIMSOLL_SHIM_LISTEN");
    if (setting == NULL || address == NULL || length < sizeof(struct sockaddr_in))
        return NULL;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return NULL;
    /* Both families have the port at the same place. */
    unsigned port = ntohs(((const struct sockaddr_in *)address)->sin_port);
    char *end;
    if (strtoul(setting, &end, 10) != port || *end != '=' || end[1] == 0)
        return NULL;
    return end + 1;
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

__attribute__((visibility("default"))) int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    const char *path = path_for(address.__sockaddr__, length);
    int type = 0;
    socklen_t room = sizeof type;
    if (path != NULL && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &room) == 0 && type == SOCK_STREAM)
        return bind_path(fd, path);
    return real_functions()->bind(fd, address.__sockaddr__, length);
}
