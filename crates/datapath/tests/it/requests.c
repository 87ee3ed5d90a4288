/* A small server on a Unix socket, which takes its time for each answer: half of it at once, the rest a moment later. Its
 * second argument says how it waits:
 *
 *   blocking  a thread for each connection reads, answers, reads, by all calls there are
 *   two       a thread for each connection reads all the time, another one for each request answers
 *   unseen    like blocking, but writes by ways that a library cannot get between
 *   fork      a process for each connection, else like blocking
 *   level     one thread, which reads whenever there is something to read
 *   edge      one thread, which is told of news once, and takes a short read for all there is (unless the client was
 *             seen to end its side)
 *
 * Content is the request's path. What follows a request for /upgrade is said again. X-Behind says how many bytes behind the request the server had read, and X-Looks how often
 * it looked in vain for more while it answered, since it started. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 60
#define CONNECTIONS 256

struct connection {
    int fd;
    size_t size;
    char in[65536];
    bool answers; /* The rest is due. */
    bool ready;   /* There was news that it has not looked at. */
    bool hangs_up; /* The client was seen to end its side. */
    bool ends;     /* And it was read. */
    bool over;
    long due_ms;
    size_t rest_size;
    char rest[256];
};

static const char *mode;
static int looks;

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void put(int fd, const char *bytes, size_t size)
{
    if (is("unseen"))
        dprintf(fd, "%.*s", (int)size, bytes);
    else
        send(fd, bytes, size, MSG_NOSIGNAL);
}

/* Begins the answer to the first request of the buffer, if there is a whole one. */
static bool begin(struct connection *connection)
{
    char *in = connection->in;
    in[connection->size] = 0;
    char *end = strstr(in, "\r\n\r\n");
    if (end == NULL)
        return false;
    char method[8], path[100], text[512];
    if (sscanf(in, "%7s %99s", method, path) != 2)
        exit(6);
    size_t head = (size_t)(end + 4 - in);
    connection->size -= head;
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nX-Looks: %d\r\nX-Behind: %zu\r\n\r\n%s", strlen(path),
                        looks, connection->size, strcmp(method, "HEAD") == 0 ? "" : path);
    memmove(in, in + head, connection->size);
    put(connection->fd, text, 20);
    connection->rest_size = (size_t)size - 20;
    memcpy(connection->rest, text + 20, connection->rest_size);
    return true;
}

static void pause_a_moment(void)
{
    struct timespec time = {.tv_nsec = PAUSE_MS * 1000000L};
    nanosleep(&time, NULL);
}

static void *finish(void *argument)
{
    struct connection *connection = argument;
    pause_a_moment();
    put(connection->fd, connection->rest, connection->rest_size);
    return NULL;
}

/* Reads by a pipe. */
static ssize_t splice_from(int fd, char *to, size_t room)
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(9);
    ssize_t count = splice(fd, NULL, ends[1], NULL, room, 0);
    if (count > 0 && read(ends[0], to, room) != count)
        exit(10);
    close(ends[0]);
    close(ends[1]);
    return count;
}

/* Reads in one way after the other. */
static ssize_t read_somehow(int fd, char *to, size_t room)
{
    static atomic_uint turn;
    struct iovec parts[2] = {{.iov_base = to, .iov_len = 10}, {.iov_base = to + 10, .iov_len = room - 10}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    switch (turn++ % 7) {
    case 0:
        return read(fd, to, room);
    case 1:
        return readv(fd, parts, 2);
    case 2:
        return recv(fd, to, room, 0);
    case 3:
        return recvfrom(fd, to, room, 0, NULL, NULL);
    case 4:
        return recvmsg(fd, &message, 0);
    case 5:
        return splice_from(fd, to, room);
    default:
        return read(fd, to, 7);
    }
}

/* Reads more; false at the end. To look before must not show more than there is to read. */
static bool more(struct connection *connection)
{
    size_t room = sizeof connection->in - 1 - connection->size;
    char *to = connection->in + connection->size;
    int waiting = 0;
    bool looks_first = is("blocking") && connection->size == 0 && connection->rest_size == 0;
    ssize_t peeked = looks_first ? recv(connection->fd, to, room, MSG_PEEK) : 0;
    if (looks_first && ioctl(connection->fd, FIONREAD, &waiting) == 0 && waiting != peeked)
        exit(7);
    ssize_t count = read_somehow(connection->fd, to, room);
    if (count > 0)
        connection->size += (size_t)count;
    if (count > 7 && peeked > count)
        exit(8);
    return count > 0;
}

static void echo(int fd)
{
    char bytes[100] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    ssize_t count = (ssize_t)strlen(bytes);
    do
        put(fd, bytes, (size_t)count);
    while ((count = read(fd, bytes, sizeof bytes)) > 0);
}

static void *converse(void *argument)
{
    struct connection *connection = argument;
    pthread_t writer;
    bool writes = false;
    do {
        while (memmem(connection->in, connection->size, "\r\n\r\n", 4) != NULL) {
            if (writes)
                pthread_join(writer, NULL);
            if (memcmp(connection->in, "GET /upgrade ", 13) == 0)
                echo(connection->fd);
            begin(connection);
            writes = is("two") && pthread_create(&writer, NULL, finish, connection) == 0;
            if (!writes)
                finish(connection);
        }
    } while (more(connection));
    if (writes)
        pthread_join(writer, NULL);
    close(connection->fd);
    free(connection);
    return NULL;
}

static long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void answer_next(struct connection *connection)
{
    connection->answers = begin(connection);
    connection->due_ms = now_ms() + PAUSE_MS;
}

static void look(struct connection *connection, int epoll)
{
    bool edge = is("edge");
    connection->ready = edge;
    if (edge && connection->answers)
        return;
    size_t room;
    ssize_t count;
    bool any = false;
    do {
        room = edge ? 1024 : sizeof connection->in - 1 - connection->size;
        count = recv(connection->fd, connection->in + connection->size, room, 0);
        connection->size += count > 0 ? (size_t)count : 0;
        any |= count > 0;
    } while (edge && (count == (ssize_t)room || (count > 0 && connection->hangs_up)));
    connection->ready = false;
    if (count < 0 && connection->answers)
        looks++;
    if (any && !connection->answers)
        answer_next(connection);
    if (count == 0) {
        connection->ends = true;
        epoll_ctl(epoll, EPOLL_CTL_DEL, connection->fd, NULL);
    }
    connection->over = count < 0 && errno != EAGAIN;
}

static void watch_all(int listener)
{
    static struct connection *all[CONNECTIONS];
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int news = epoll_wait(epoll, &event, 1, 5);
        struct connection *of = news == 1 ? event.data.ptr : NULL;
        if (of != NULL) {
            of->hangs_up |= (event.events & EPOLLRDHUP) != 0;
            look(of, epoll);
        }
        for (int at = 0; at < CONNECTIONS; at++) {
            struct connection *connection = all[at];
            if (connection == NULL)
                continue;
            if (connection->answers && now_ms() >= connection->due_ms) {
                put(connection->fd, connection->rest, connection->rest_size);
                answer_next(connection);
                if (connection->ready)
                    look(connection, epoll);
            }
            if (connection->over || (connection->ends && !connection->answers)) {
                close(connection->fd);
                free(connection);
                all[at] = NULL;
            }
        }
        if (news != 1 || of != NULL)
            continue;
        int at = 0;
        while (at < CONNECTIONS && all[at] != NULL)
            at++;
        int fd = at < CONNECTIONS ? accept4(listener, NULL, NULL, SOCK_NONBLOCK) : -1;
        if (fd < 0)
            continue;
        all[at] = calloc(1, sizeof **all);
        all[at]->fd = fd;
        event.events = EPOLLIN | (is("edge") ? EPOLLET | EPOLLRDHUP : 0);
        event.data.ptr = all[at];
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

int main(int count, char **arguments)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (count != 3)
        return 2;
    mode = arguments[2];
    alarm(120);
    signal(SIGCHLD, SIG_IGN);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", arguments[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 100) != 0)
        return 3;
    if (is("level") || is("edge"))
        watch_all(listener);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        struct connection *connection = calloc(1, sizeof *connection);
        connection->fd = fd;
        pthread_t thread;
        if (!is("fork")) {
            if (pthread_create(&thread, NULL, converse, connection) == 0)
                pthread_detach(thread);
            continue;
        }
        if (fork() == 0) {
            converse(connection);
            _exit(0);
        }
        close(fd);
        free(connection);
    }
}
