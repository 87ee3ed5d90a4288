#include "table.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "cookie.h"
#include "real.h"

/* Descriptors from here on are not handed: kernels allow no higher ones by default. */
#define DESCRIPTORS (1 << 20)

/* The upper half of a life is the process, the lower half a serial number. */
#define PROCESS_BIT 32

/* Entries are made once and used again: nothing is allocated for a descriptor that was a handed connection before. */
static struct connection *_Atomic table[DESCRIPTORS];

/* The child of a fork increments it: the child's copies of descriptors are not its connections, as it may close them while
 * the parent goes on. Never 0. */
static _Atomic uint32_t process_serial = 1;

static _Atomic uint32_t connection_serial;

/* The child of a vfork has the table of its parent, and descriptors of its own. */
static pid_t process;

/* No descriptor above was ever handed. */
static _Atomic unsigned highest;

static void child(void)
{
    atomic_fetch_add(&process_serial, 1);
    process = getpid();
}

__attribute__((constructor)) static void watch_forks(void)
{
    process = getpid();
    pthread_atfork(NULL, NULL, child);
}

bool table_is_of_process(void)
{
    return getpid() == process;
}

/* The connection that the table lists for a descriptor, and its life; null: none. */
static struct connection *listed(int fd, uint64_t *life)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return NULL;
    struct connection *connection = atomic_load_explicit(&table[fd], memory_order_acquire);
    if (connection == NULL)
        return NULL;
    *life = atomic_load_explicit(&connection->life, memory_order_acquire);
    uint32_t serial = atomic_load_explicit(&process_serial, memory_order_relaxed);
    return *life >> PROCESS_BIT == serial ? connection : NULL;
}

/* Of a listed connection: whether its descriptor is still its socket, or the Unix connection that took its place. */
static bool is_still_it(const struct connection *connection)
{
    uint64_t cookie = cookie_of(connection->fd);
    return cookie != 0 && (cookie == connection->cookie || cookie == connection->channel_cookie);
}

/* Takes a connection whose descriptor was closed unseen from the table, and tells the agent. Neither the descriptor nor the
 * options of what is behind it now are touched. */
static void lose(struct connection *connection, uint64_t life)
{
    if (!table_is_of_process())
        return;
    /* Copied before the entry is freed, as another thread may use it again at once. If that has happened already, the life
     * is another one, and the copy is worth nothing. */
    struct ending ending = connection_ending(connection);
    if (!atomic_compare_exchange_strong(&connection->life, &life, 0))
        return;
    int before = errno;
    ending_tell(&ending);
    if (ending_has_channel(&ending))
        real_functions()->close(ending.channel);
    errno = before;
}

struct connection *table_find(int fd)
{
    uint64_t life;
    struct connection *connection = listed(fd, &life);
    if (connection == NULL || is_still_it(connection))
        return connection;
    lose(connection, life);
    return NULL;
}

struct connection *table_peek(int fd)
{
    uint64_t life;
    return listed(fd, &life);
}

void table_check(unsigned low, unsigned high)
{
    unsigned last = atomic_load(&highest);
    if (high < last)
        last = high;
    for (unsigned fd = low; fd <= last; fd++)
        table_find((int)fd);
}

/* The entry of a descriptor, which is made when there is none. */
static struct connection *entry(int fd)
{
    struct connection *connection = atomic_load_explicit(&table[fd], memory_order_acquire);
    if (connection != NULL)
        return connection;
    connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return NULL;
    atomic_store_explicit(&table[fd], connection, memory_order_release);
    unsigned before = atomic_load(&highest);
    while ((unsigned)fd > before && !atomic_compare_exchange_weak(&highest, &before, (unsigned)fd))
        ;
    return connection;
}

struct connection *table_add(int fd, int channel, const struct handed_message *message)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return NULL;
    struct connection *connection = entry(fd);
    if (connection == NULL || !connection_begin(connection, fd, channel, message))
        return NULL;
    uint64_t serial = atomic_fetch_add(&connection_serial, 1);
    uint64_t life = (uint64_t)atomic_load(&process_serial) << PROCESS_BIT | serial;
    atomic_store_explicit(&connection->life, life, memory_order_release);
    return connection;
}

int table_remove(struct connection *connection)
{
    connection_ends(connection);
    struct ending ending = connection_ending(connection);
    /* Before the descriptor is closed, after which its number can be used again. */
    atomic_store_explicit(&connection->life, 0, memory_order_release);
    return ending_has_channel(&ending) ? ending.channel : -1;
}
