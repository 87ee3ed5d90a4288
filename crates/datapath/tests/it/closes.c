/* A server that answers one connection, lets go of its descriptor, and uses the descriptor's number for something else.
 *
 * usage: closes SOCKET STATE WAY NEXT USE
 *
 *   STATE  how far the connection has come: taken, half (of an answer is written), answered, given_back
 *   WAY    how the server lets go of the descriptor: see `let_go`; behind "fork " or "vfork ", a child process does so, and
 *          the server goes on with the answer
 *   NEXT   what gets the number: file, socket, accept (ordinary clients)
 *   USE    the function that first meets the number again: see `use`
 *
 * It goes on after WAY, and after the checks, when it has read a byte from its standard input. Its exit code says which
 * check failed, as the number of the line. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define CLIENTS 3

/* No shim sets it to this. */
#define LOW_MARK 3

static const char content[] = "what the number stands for now";
static const ssize_t size = sizeof content;

static int first;
static int listener;
static int next = -1;
static int other_end = -1;

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static void wait_for_test(void)
{
    char byte;
    CHECK(read(STDIN_FILENO, &byte, 1) == 1);
}

/* Writes by a pipe. */
static ssize_t splice_to(int fd, const char *bytes, size_t count)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], bytes, count) == (ssize_t)count);
    ssize_t moved = splice(ends[0], NULL, fd, NULL, count, 0);
    close(ends[0]);
    close(ends[1]);
    return moved;
}

/* Reads by a pipe. */
static ssize_t splice_from(int fd, char *bytes, size_t room)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    ssize_t count = splice(fd, NULL, ends[1], NULL, room, 0);
    CHECK(count <= 0 || read(ends[0], bytes, room) == count);
    close(ends[0]);
    close(ends[1]);
    return count;
}

static void converse(const char *state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n";
    char request[100];
    if (is(state, "taken"))
        return;
    CHECK(read(first, request, sizeof request) > 0);
    ssize_t count = is(state, "half") ? 4 : 8;
    CHECK(write(first, head, strlen(head)) == (ssize_t)strlen(head));
    CHECK(splice_to(first, "12345678", (size_t)count) == count);
    if (is(state, "given_back"))
        CHECK(read(first, request, sizeof request) == 0);
}

/* Closes as no library can see. */
static void close_by_io_uring(int fd)
{
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &parameters);
    CHECK(ring >= 0);
    size_t bytes = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    char *queue = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry =
        mmap(NULL, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    CHECK(queue != MAP_FAILED && (void *)entry != MAP_FAILED);
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_CLOSE;
    entry->fd = fd;
    *(unsigned *)(queue + parameters.sq_off.array) = 0;
    __atomic_store_n((unsigned *)(queue + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    CHECK(close(ring) == 0);
    munmap(entry, sizeof *entry);
    munmap(queue, bytes);
}

static void let_go(const char *way)
{
    int from = next >= 0 ? next : STDIN_FILENO;
    if (is(way, "close"))
        CHECK(close(first) == 0);
    else if (is(way, "dup2"))
        CHECK(dup2(from, first) == first);
    else if (is(way, "dup3"))
        CHECK(dup3(from, first, O_CLOEXEC) == first);
    else if (is(way, "close_range"))
        CHECK(close_range((unsigned)first, (unsigned)first, 0) == 0);
    else if (is(way, "all"))
        CHECK(close_range((unsigned)listener + 1, ~0u, 0) == 0);
    else if (is(way, "syscall close"))
        CHECK(syscall(SYS_close, first) == 0);
    else if (is(way, "syscall dup3"))
        CHECK(syscall(SYS_dup3, from, first, 0) == first);
    else if (is(way, "syscall close_range"))
        CHECK(syscall(SYS_close_range, first, first, 0) == 0);
    else if (is(way, "fclose"))
        CHECK(fclose(fdopen(first, "r")) == 0);
    else if (is(way, "closefrom"))
        closefrom(first);
    else if (is(way, "io_uring"))
        close_by_io_uring(first);
    else
        CHECK(!"a way");
}

/* A child closes its copy and uses the number for something else: this process has the connection still. */
static void let_child_go(bool shares_memory, const char *way)
{
    pid_t child = shares_memory ? vfork() : fork();
    if (child == 0) {
        int waiting;
        let_go(way);
        if (strstr(way, "dup") == NULL)
            fcntl(STDIN_FILENO, F_DUPFD, first);
        ioctl(first, FIONREAD, &waiting);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(write(first, "5678", 4) == 4);
}

/* A file or a socket from which `content` can be read, with a number that is not in the way. */
static void prepare(const char *what)
{
    int fds[2] = {-1, -1};
    if (is(what, "file")) {
        fds[0] = memfd_create("file", 0);
        CHECK(pwrite(fds[0], content, sizeof content, 0) == size);
    } else if (is(what, "socket")) {
        int low_mark = LOW_MARK;
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
        CHECK(write(fds[1], content, sizeof content) == size);
        CHECK(setsockopt(fds[0], SOL_SOCKET, SO_RCVLOWAT, &low_mark, sizeof low_mark) == 0);
    }
    next = fds[0];
    other_end = fds[1];
}

/* Uses the number for the first time. Of the socket, or of the file. */
static void use(const char *what)
{
    char bytes[100];
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct iovec written = {.iov_base = (void *)content, .iov_len = sizeof content};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct msghdr sent = {.msg_iov = &written, .msg_iovlen = 1};
    int file = memfd_create("other", 0), epoll = epoll_create1(0), waiting = 0;
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(pwrite(file, content, sizeof content, 0) == size);
    ssize_t count = is(what, "read")       ? read(first, bytes, sizeof bytes)
                    : is(what, "readv")    ? readv(first, &part, 1)
                    : is(what, "recv")     ? recv(first, bytes, sizeof bytes, 0)
                    : is(what, "recvfrom") ? recvfrom(first, bytes, sizeof bytes, 0, NULL, NULL)
                    : is(what, "recvmsg")  ? recvmsg(first, &message, 0)
                    : is(what, "write")    ? write(first, content, sizeof content)
                    : is(what, "writev")   ? writev(first, &written, 1)
                    : is(what, "send")     ? send(first, content, sizeof content, 0)
                    : is(what, "sendto")   ? sendto(first, content, sizeof content, 0, NULL, 0)
                    : is(what, "sendmsg")  ? sendmsg(first, &sent, 0)
                    : is(what, "sendfile") ? sendfile(first, file, NULL, sizeof content)
                    : is(what, "splice")   ? splice_to(first, content, sizeof content)
                    : is(what, "rsplice")  ? splice_from(first, bytes, sizeof bytes)
                    : is(what, "shutdown") ? shutdown(first, SHUT_WR) + size
                    : is(what, "epoll")    ? epoll_ctl(epoll, EPOLL_CTL_ADD, first, &event) + size
                    : is(what, "ioctl")    ? ioctl(first, FIONREAD, &waiting) + waiting
                                           : -1;
    CHECK(count == size);
    if (what[0] == 'r')
        CHECK(memcmp(bytes, content, sizeof content) == 0);
    if (is(what, "epoll"))
        CHECK(epoll_wait(epoll, &event, 1, 0) == 1 && read(first, bytes, sizeof bytes) == size);
    bool writes = what[0] == 'w' || what[0] == 's';
    if (writes && other_end >= 0 && !is(what, "shutdown"))
        CHECK(recv(other_end, bytes, sizeof bytes, MSG_DONTWAIT) == size && memcmp(bytes, content, (size_t)size) == 0);
    if (is(what, "shutdown"))
        CHECK(recv(other_end, bytes, sizeof bytes, MSG_DONTWAIT) == 0);
    close(file);
    close(epoll);
}

static void serve_others(void)
{
    bool again = false;
    for (int client = 0; client < CLIENTS; client++) {
        int fd = accept(listener, NULL, NULL);
        again |= fd == first;
        CHECK(fd >= 0 && write(fd, "served", 6) == 6);
    }
    CHECK(again);
}

int main(int count, char **arguments)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    CHECK(count == 6);
    const char *state = arguments[2], *way = arguments[3], *what = arguments[4];
    alarm(30);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", arguments[1]);
    prepare(what);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 5) == 0);
    first = accept(listener, NULL, NULL);
    CHECK(first > listener);
    converse(state);
    if (strncmp(way, "fork ", 5) == 0 || strncmp(way, "vfork ", 6) == 0) {
        let_child_go(way[0] == 'v', strchr(way, ' ') + 1);
        wait_for_test();
        return close(first);
    }
    let_go(way);
    wait_for_test();
    bool placed = strstr(way, "dup") != NULL;
    if (is(what, "accept")) {
        if (placed)
            CHECK(close(first) == 0);
        serve_others();
    } else {
        CHECK(placed || fcntl(next, F_DUPFD, first) == first);
        use(arguments[5]);
        int low_mark = LOW_MARK;
        socklen_t room = sizeof low_mark;
        CHECK(is(what, "file") || getsockopt(first, SOL_SOCKET, SO_RCVLOWAT, &low_mark, &room) == 0);
        CHECK(low_mark == LOW_MARK);
    }
    wait_for_test();
    CHECK(close(first) == 0 && fcntl(first, F_GETFD) == -1);
    return 0;
}
