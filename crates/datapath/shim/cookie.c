#include "cookie.h"

#include <errno.h>
#include <sys/socket.h>

uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t room = sizeof cookie;
    int before = errno;
    if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &room) != 0)
        cookie = 0;
    errno = before;
    return cookie;
}
