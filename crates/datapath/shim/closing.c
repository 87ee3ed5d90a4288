/* The ways to close a descriptor that a library sees: the agent hears of the connection's end at once. When a server closes
 * in another way, the table notices at the next use of the descriptor's number. */
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "connection.h"
#include "real.h"
#include "table.h"

#define EXPORT __attribute__((visibility("default")))

static int close_by(int fd, int (*close_really)(int))
{
    struct connection *connection = table_peek(fd);
    /* Of one that was given back, nothing is left to do but to forget it, whatever the descriptor is by now. */
    if (connection != NULL && !connection->given_back)
        connection = table_find(fd);
    if (connection == NULL || !table_is_of_process())
        return close_really(fd);
    connection_drain(connection);
    int channel = table_remove(connection);
    int result = close_really(fd);
    int before = errno;
    /* Its end tells the agent that the socket is closed. */
    if (channel >= 0)
        real_functions()->close(channel);
    errno = before;
    return result;
}

EXPORT int close(int fd)
{
    return close_by(fd, real_functions()->close);
}

EXPORT int dup2(int from, int to)
{
    int result = real_functions()->dup2(from, to);
    if (result >= 0)
        table_check((unsigned)to, (unsigned)to);
    return result;
}

EXPORT int dup3(int from, int to, int flags)
{
    int result = real_functions()->dup3(from, to, flags);
    if (result >= 0)
        table_check((unsigned)to, (unsigned)to);
    return result;
}

/* With flags the descriptors stay, or stay with other threads. */
static void closed_range(unsigned low, unsigned high, int flags)
{
    if (flags == 0)
        table_check(low, high);
}

EXPORT int close_range(unsigned low, unsigned high, int flags)
{
    int (*real)(unsigned, unsigned, int) = real_functions()->close_range;
    if (real == NULL) {
        errno = ENOSYS;
        return -1;
    }
    int result = real(low, high, flags);
    if (result == 0)
        closed_range(low, high, flags);
    return result;
}

#if defined(__x86_64__) || defined(__aarch64__)

#define ARGUMENTS 6

/* The kernel returns an error as its negative number. */
#define HIGHEST_ERROR 4095

/* Does what the C library's `syscall` does. Looking that up could need memory, and allocators call `syscall` while they
 * start (jemalloc). */
static long call_kernel(long number, const long arguments[ARGUMENTS])
{
#if defined(__x86_64__)
    long result;
    register long fourth __asm__("r10") = arguments[3];
    register long fifth __asm__("r8") = arguments[4];
    register long sixth __asm__("r9") = arguments[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(fourth), "r"(fifth),
                       "r"(sixth)
                     : "rcx", "r11", "memory");
#else
    register long which __asm__("x8") = number;
    register long result __asm__("x0") = arguments[0];
    register long second __asm__("x1") = arguments[1];
    register long third __asm__("x2") = arguments[2];
    register long fourth __asm__("x3") = arguments[3];
    register long fifth __asm__("x4") = arguments[4];
    register long sixth __asm__("x5") = arguments[5];
    __asm__ volatile("svc #0"
                     : "+r"(result)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
#endif
    if (result < 0 && result >= -HIGHEST_ERROR) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static int close_by_kernel(int fd)
{
    const long arguments[ARGUMENTS] = {fd};
    return (int)call_kernel(SYS_close, arguments);
}

/* Some event loops close in this way (libuv, which Node uses). */
EXPORT long syscall(long number, ...)
{
    long arguments[ARGUMENTS];
    va_list rest;
    va_start(rest, number);
    for (int at = 0; at < ARGUMENTS; at++)
        arguments[at] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_close)
        return close_by((int)arguments[0], close_by_kernel);
    long result = call_kernel(number, arguments);
    if (result < 0)
        return result;
    switch (number) {
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup3:
        table_check((unsigned)arguments[1], (unsigned)arguments[1]);
        break;
#ifdef SYS_close_range
    case SYS_close_range:
        closed_range((unsigned)arguments[0], (unsigned)arguments[1], (int)arguments[2]);
        break;
#endif
    default:
        break;
    }
    return result;
}

#endif
