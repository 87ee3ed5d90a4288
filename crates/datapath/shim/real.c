#include "real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct real functions;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ISO C has no conversion from a pointer to an object into one to a function. */
#define FIND(name)                                             \
    do {                                                       \
        void *found = dlsym(RTLD_NEXT, #name);                 \
        memcpy(&functions.name, &found, sizeof functions.name); \
    } while (0)

static void find(void)
{
    FIND(bind);
    FIND(getsockname);
    FIND(getpeername);
    FIND(setsockopt);
    FIND(getsockopt);
    FIND(accept4);
    FIND(read);
    FIND(readv);
    FIND(recv);
    FIND(recvfrom);
    FIND(recvmsg);
    FIND(write);
    FIND(writev);
    FIND(send);
    FIND(sendto);
    FIND(sendmsg);
    FIND(sendfile);
    FIND(sendfile64);
    FIND(splice);
    FIND(close);
    FIND(close_range);
    FIND(dup2);
    FIND(dup3);
    FIND(shutdown);
    FIND(ioctl);
    FIND(epoll_ctl);
}

const struct real *real_functions(void)
{
    pthread_once(&once, find);
    return &functions;
}
