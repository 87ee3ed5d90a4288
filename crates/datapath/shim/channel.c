#include "channel.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "real.h"

/* Who the server was when it started: its workers may be someone else, whom anyone may be. */
static uid_t server;

__attribute__((constructor)) static void note_server(void)
{
    server = geteuid();
}

/* The agent has connected and is about to send: it may have been interrupted in between, but not for long. */
#define PATIENCE_MS 2000

union descriptor_room {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* Anyone may bind the agent's name; who connected the kernel knows. */
static bool may_hand(int channel)
{
    struct ucred peer;
    socklen_t room = sizeof peer;
    return getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &room) == 0 && room == sizeof peer &&
           (peer.uid == 0 || peer.uid == server);
}

bool channel_is_agent(int channel, const struct sockaddr_storage *peer, socklen_t length)
{
    const struct sockaddr_un *name = (const struct sockaddr_un *)peer;
    size_t prefix = sizeof HANDED_NAME - 1;
    return peer->ss_family == AF_UNIX && length > offsetof(struct sockaddr_un, sun_path) + 1 + prefix &&
           name->sun_path[0] == 0 && memcmp(name->sun_path + 1, HANDED_NAME, prefix) == 0 && may_hand(channel);
}

/* The first descriptor that came along, or -1. There is room for two, because of alignment: others are closed. */
static int only_descriptor(struct msghdr *header)
{
    int first = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t end = CMSG_LEN(sizeof(int)); end <= part->cmsg_len; end += sizeof(int)) {
            int fd;
            memcpy(&fd, (char *)part + end - sizeof fd, sizeof fd);
            if (first < 0)
                first = fd;
            else
                real_functions()->close(fd);
        }
    }
    return first;
}

static ssize_t receive_at_once(int channel, struct msghdr *header, bool cloexec)
{
    return real_functions()->recvmsg(channel, header, MSG_DONTWAIT | (cloexec ? MSG_CMSG_CLOEXEC : 0));
}

static bool wait_for_message(int channel)
{
    struct pollfd watched = {.fd = channel, .events = POLLIN};
    int ready;
    do
        ready = poll(&watched, 1, PATIENCE_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

int channel_receive(int channel, bool cloexec, struct handed_message *message)
{
    union descriptor_room room;
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    ssize_t count = receive_at_once(channel, &header, cloexec);
    if (count < 0 && errno == EAGAIN && wait_for_message(channel))
        count = receive_at_once(channel, &header, cloexec);
    int fd = count > 0 ? only_descriptor(&header) : -1;
    bool right = count == (ssize_t)sizeof *message && message->magic == HANDED_MAGIC &&
                 message->version == HANDED_VERSION && message->kind == HANDED_CONNECTION;
    if (!right && fd >= 0) {
        real_functions()->close(fd);
        return -1;
    }
    return right ? fd : -1;
}

bool channel_send(int channel, const struct handed_message *message, int fd)
{
    union descriptor_room room;
    struct iovec part = {.iov_base = (void *)message, .iov_len = sizeof *message};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        memset(&room, 0, sizeof room);
        header.msg_control = &room;
        header.msg_controllen = CMSG_SPACE(sizeof fd);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    ssize_t count;
    do
        count = real_functions()->sendmsg(channel, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    return count == (ssize_t)sizeof *message;
}
