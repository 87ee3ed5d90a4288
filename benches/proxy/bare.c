/*
 * The least that a proxy with epoll can do: passes bytes on, both ways, between each client's connection and a connection of
 * its own to a back-end. It parses nothing, chooses nothing, keeps no time and no log. What a real proxy costs more is its own.
 *
 * Usage: bare PORT BACKEND-PORT…        loopback only
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_EVENTS 256
#define BUFFER_BYTES 65536

struct end {
	int fd;
	struct end *other;
	/* What the other end has sent and this one has not taken. */
	char *waiting;
	size_t waiting_bytes;
	struct end *next_dead;
};

static int events_fd;
static struct end *dead;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static void watch(int operation, struct end *end, unsigned events)
{
	struct epoll_event event = { .events = events, .data.ptr = end };

	if (epoll_ctl(events_fd, operation, end->fd, &event))
		fail("epoll_ctl");
}

static struct end *new_end(int fd)
{
	struct end *end = calloc(1, sizeof(*end));
	int on = 1;

	if (!end)
		fail("calloc");
	end->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return end;
}

/* Both ends: events of this turn may still name them, so that they are freed after it. */
static void close_both(struct end *end)
{
	struct end *ends[] = { end, end->other };
	int i;

	for (i = 0; i < 2; i++) {
		if (ends[i]->fd < 0)
			continue;
		close(ends[i]->fd);
		ends[i]->fd = -1;
		ends[i]->next_dead = dead;
		dead = ends[i];
	}
}

static void accept_all(int listener, const int *ports, int count)
{
	static unsigned turn;
	int client;

	while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct sockaddr_in address = loopback(ports[turn++ % count]);
		int server = socket(AF_INET, SOCK_STREAM, 0);
		struct end *a, *b;

		if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof(address)))
			fail("connect");
		a = new_end(client);
		b = new_end(server);
		a->other = b;
		b->other = a;
		watch(EPOLL_CTL_ADD, a, EPOLLIN);
		watch(EPOLL_CTL_ADD, b, EPOLLIN);
	}
}

/* What an end does not take waits, and the other one is not read meanwhile. */
static void pass(struct end *from)
{
	static char buffer[BUFFER_BYTES];
	struct end *to = from->other;
	ssize_t got = recv(from->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	ssize_t sent;

	if (got <= 0) {
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			close_both(from);
		return;
	}
	sent = send(to->fd, buffer, got, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && errno != EAGAIN)
		return close_both(from);
	if (sent == got)
		return;
	sent = sent < 0 ? 0 : sent;
	to->waiting_bytes = got - sent;
	to->waiting = malloc(to->waiting_bytes);
	if (!to->waiting)
		fail("malloc");
	memcpy(to->waiting, buffer + sent, to->waiting_bytes);
	watch(EPOLL_CTL_MOD, from, 0);
	watch(EPOLL_CTL_MOD, to, EPOLLIN | EPOLLOUT);
}

static void send_waiting(struct end *end)
{
	ssize_t sent = send(end->fd, end->waiting, end->waiting_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0) {
		if (errno != EAGAIN)
			close_both(end);
		return;
	}
	end->waiting_bytes -= sent;
	memmove(end->waiting, end->waiting + sent, end->waiting_bytes);
	if (end->waiting_bytes)
		return;
	free(end->waiting);
	end->waiting = NULL;
	watch(EPOLL_CTL_MOD, end, EPOLLIN);
	watch(EPOLL_CTL_MOD, end->other, EPOLLIN);
}

int main(int argc, char **argv)
{
	struct epoll_event events[MOST_EVENTS];
	struct sockaddr_in address;
	int listener, on = 1, i, count = argc - 2;
	int *ports = calloc(argc, sizeof(*ports));
	struct end *of_listener;

	if (count < 1 || !ports) {
		fprintf(stderr, "usage: bare PORT BACKEND-PORT...\n");
		return 2;
	}
	for (i = 0; i < count; i++)
		ports[i] = atoi(argv[i + 2]);
	address = loopback(atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 4096))
		fail("listen");
	events_fd = epoll_create1(0);
	of_listener = new_end(listener);
	watch(EPOLL_CTL_ADD, of_listener, EPOLLIN);
	for (;;) {
		int ready = epoll_wait(events_fd, events, MOST_EVENTS, -1);

		for (i = 0; i < ready; i++) {
			struct end *end = events[i].data.ptr;

			if (end == of_listener)
				accept_all(listener, ports, count);
			else if (end->fd >= 0 && events[i].events & EPOLLOUT && end->waiting)
				send_waiting(end);
			else if (end->fd >= 0)
				pass(end);
		}
		while (dead) {
			struct end *next = dead->next_dead;

			free(dead->waiting);
			free(dead);
			dead = next;
		}
	}
}
