#include "limit.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "real.h"

/* Bytes that were written to the socket, sent or not. */
static uint64_t written(int fd)
{
    struct tcp_info info = {0};
    socklen_t room = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &room) != 0)
        return 0;
    return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

void limit_begin(struct limit *limit, int fd, uint32_t head_size_bytes)
{
    limit->on = head_size_bytes > 0;
    limit->hides = false;
    limit->has_hidden = false;
    limit->head_left = head_size_bytes;
    limit->epoll = -1;
    limit->is_silenced = false;
    limit->written_before = limit->on ? written(fd) : 0;
}

bool limit_was_written(const struct limit *limit, int fd)
{
    return written(fd) != limit->written_before;
}

void limit_read(struct limit *limit, int fd, size_t count)
{
    if (!limit->on || limit->head_left == 0)
        return;
    limit->head_left -= count < limit->head_left ? (uint32_t)count : limit->head_left;
    /* Now, so that a server which looks whether there is more sees nothing. */
    if (limit->head_left == 0)
        limit_hide(limit, fd);
}

static void wake_from(int fd, int bytes)
{
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

/* The server looks at what is hidden already. */
static void silence(struct limit *limit, int fd)
{
    if (limit->epoll < 0 || limit->is_silenced || (limit->event.events & (EPOLLET | EPOLLONESHOT)))
        return;
    struct epoll_event event = limit->event;
    event.events &= ~(uint32_t)(EPOLLIN | EPOLLRDNORM | EPOLLRDHUP);
    limit->is_silenced = real_functions()->epoll_ctl(limit->epoll, EPOLL_CTL_MOD, fd, &event) == 0;
}

void limit_hide(struct limit *limit, int fd)
{
    int waiting = 0;
    if (real_functions()->ioctl(fd, FIONREAD, &waiting) != 0 || waiting <= 0)
        return;
    limit->has_hidden = true;
    if (atomic_exchange(&limit->hides, true))
        silence(limit, fd);
    wake_from(fd, waiting + 1);
}

void limit_show(struct limit *limit, int fd)
{
    if (!atomic_exchange(&limit->hides, false))
        return;
    wake_from(fd, 1);
    if (limit->is_silenced)
        real_functions()->epoll_ctl(limit->epoll, EPOLL_CTL_MOD, fd, &limit->event);
    limit->is_silenced = false;
}

void limit_show_to_agent(const struct limit *limit, int fd)
{
    if (limit->has_hidden)
        wake_from(fd, 1);
}

void limit_lift(struct limit *limit, int fd)
{
    limit->on = false;
    limit_show(limit, fd);
}

void limit_watched(struct limit *limit, int epoll, int operation, const struct epoll_event *event)
{
    limit->epoll = operation == EPOLL_CTL_DEL ? -1 : epoll;
    limit->is_silenced = false;
    if (operation != EPOLL_CTL_DEL)
        limit->event = *event;
}
