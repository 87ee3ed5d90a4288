/*
 * A simple program that clones sockets: one thread for each of two nodes, no HTTP but "GET /BYTES", no policy, no record, no
 * authentication, no fault that it outlives. It says what the system calls of cloning cost this machine, and is no bound: it
 * brings its original up to date after each answer.
 *
 *     least_cloner original ADDRESS LINK_ADDRESS    accepts connections to ADDRESS, has a clone made for each request
 *     least_cloner clone ADDRESS LINK_ADDRESS       makes the clones
 *
 * For each request: the original is frozen and its state read, the packet router told, the state sent; the clone's node makes the
 * socket and answers. When the next request has come to the clone, its node sends the state back; the original is brought
 * to it, goes on, and begins anew. At SIGHUP the original prints the median time of bringing it up to date since the last
 * SIGHUP, and the clone's node that from the request to the clone, in microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINK_PORT 7499
#define PORT 80
#define HEAD_BYTES 512
#define MOST_BYTES (2u << 20)
#define MOST_TIMES 100000

struct message {
	uint32_t slot; /* The original's, which comes back. */
	uint32_t client_address, client_port;
	uint32_t send_next, receive_next, mss, timestamp, options;
	uint32_t scales;
	struct tcp_repair_window window;
	uint64_t begun_ns;
	uint32_t head_bytes;
	char head[HEAD_BYTES];
};

static struct sockaddr_in address;
static struct message states[1024]; /* By descriptor. */
static char is_away[1024]; /* Cloned, and not back yet. */
static int router = -1, link_fd, queue;
static double times_us[MOST_TIMES];
static int time_count;
static char body[MOST_BYTES + 256];

static void stop(const char *what)
{
	perror(what);
	exit(1);
}

static void check(int result, const char *what)
{
	if (result < 0)
		stop(what);
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void note(uint64_t begun_ns)
{
	times_us[time_count++ % MOST_TIMES] = (now_ns() - begun_ns) / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static volatile sig_atomic_t is_asked;

static void ask(int signal)
{
	(void)signal;
	is_asked = 1;
}

static void print_median(void)
{
	int count = time_count < MOST_TIMES ? time_count : MOST_TIMES;
	qsort(times_us, count, sizeof(times_us[0]), by_value);
	printf("%.3f\n", count ? times_us[count / 2] : 0.0);
	fflush(stdout);
	time_count = 0;
}

static void set(int fd, int name, const void *value, socklen_t len)
{
	check(setsockopt(fd, IPPROTO_TCP, name, value, len), "setsockopt");
}

static void set_int(int fd, int name, int value)
{
	set(fd, name, &value, sizeof(value));
}

static uint32_t get_int(int fd, int name)
{
	uint32_t value;
	socklen_t len = sizeof(value);
	check(getsockopt(fd, IPPROTO_TCP, name, &value, &len), "getsockopt");
	return value;
}

/* Drops what comes from now on. */
static void drop_all(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &drop };
	check(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), "SO_ATTACH_FILTER");
}

static void go_on(int fd)
{
	int zero = 0;
	check(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &zero, sizeof(zero)), "SO_DETACH_FILTER");
	set_int(fd, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP);
}

static void freeze(int fd)
{
	drop_all(fd);
	set_int(fd, TCP_REPAIR, TCP_REPAIR_ON);
}

/* What changes. Nothing is unread or unacknowledged but the request, which was peeked at. */
static void read_state(int fd, struct message *state)
{
	socklen_t len = sizeof(state->window);
	state->timestamp = get_int(fd, TCP_TIMESTAMP);
	check(getsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &state->window, &len), "TCP_REPAIR_WINDOW");
	set_int(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
	state->send_next = get_int(fd, TCP_QUEUE_SEQ);
	set_int(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
	state->receive_next = get_int(fd, TCP_QUEUE_SEQ);
}

/* What does not change. */
static void read_options(int fd, struct message *state)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	check(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), "TCP_INFO");
	state->mss = get_int(fd, TCP_MAXSEG);
	state->options = info.tcpi_options;
	state->scales = (uint32_t)info.tcpi_rcv_wscale << 16 | info.tcpi_snd_wscale;
}

/* Gives an unconnected socket in repair mode a connection with this state. The request is in its queue, if it is to be read. */
static void connect_at(int fd, const struct message *state, uint32_t timestamp, int with_request)
{
	struct sockaddr_in client = { .sin_family = AF_INET, .sin_addr.s_addr = state->client_address, .sin_port = state->client_port };
	struct tcp_repair_opt options[] = { { 2, state->mss }, { 3, state->scales }, { 4, 0 }, { 8, 0 } };

	set_int(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
	set_int(fd, TCP_QUEUE_SEQ, state->send_next);
	set_int(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
	set_int(fd, TCP_QUEUE_SEQ, with_request ? state->receive_next - state->head_bytes : state->receive_next);
	check(connect(fd, (struct sockaddr *)&client, sizeof(client)), "connect");
	set(fd, TCP_REPAIR_OPTIONS, options, sizeof(options));
	set_int(fd, TCP_TIMESTAMP, timestamp);
	if (with_request && send(fd, state->head, state->head_bytes, 0) != (ssize_t)state->head_bytes)
		stop("filling the queue");
	set(fd, TCP_REPAIR_WINDOW, &state->window, sizeof(state->window));
}

static uint64_t client_key(const struct message *state)
{
	return (uint64_t)state->client_address << 16 | state->client_port;
}

static void route(const struct message *state, int command)
{
	uint64_t key = client_key(state);
	uint32_t value = 1;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = router;
	attr.key = (uint64_t)&key;
	if (command == BPF_MAP_UPDATE_ELEM)
		attr.value = (uint64_t)&value;
	check(syscall(SYS_bpf, command, &attr, sizeof(attr)), "bpf");
}

/* Reads the head of a request without taking it. */
static int peek(int fd, struct message *state)
{
	ssize_t got = recv(fd, state->head, HEAD_BYTES - 1, MSG_PEEK | MSG_DONTWAIT);
	if (got <= 0)
		return 0;
	state->head_bytes = got;
	state->head[got] = 0;
	return strstr(state->head, "\r\n\r\n") != NULL;
}

static void tell(const struct message *message)
{
	if (send(link_fd, message, sizeof(*message), 0) != sizeof(*message))
		stop("sending");
}

static int hear(struct message *message)
{
	return recv(link_fd, message, sizeof(*message), MSG_WAITALL) == sizeof(*message);
}

static void watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	check(epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

/* A request has come to the original. */
static void clone_it(int fd)
{
	struct message *state = &states[fd];

	if (is_away[fd]) /* Its queue was filled, or emptied. */
		return;
	if (!peek(fd, state)) {
		close(fd);
		return;
	}
	is_away[fd] = 1;
	state->slot = fd;
	state->begun_ns = now_ns();
	freeze(fd);
	read_state(fd, state);
	route(state, BPF_MAP_UPDATE_ELEM);
	tell(state);
}

/* The clone has answered, and the next request has come. */
static void take_back(void)
{
	struct message state;
	if (!hear(&state))
		exit(0);
	int fd = state.slot;
	states[fd] = state;
	is_away[fd] = 0;
	if (!state.head_bytes) { /* The client has gone. */
		route(&state, BPF_MAP_DELETE_ELEM);
		close(fd);
		return;
	}
	uint64_t begun_ns = now_ns();
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	uint32_t timestamp = get_int(fd, TCP_TIMESTAMP) + 2;
	int aborted;
	socklen_t len = sizeof(aborted);
	check(connect(fd, &none, sizeof(none)), "disconnecting");
	/* Or the next read would tell. */
	check(getsockopt(fd, SOL_SOCKET, SO_ERROR, &aborted, &len), "SO_ERROR");
	connect_at(fd, &state, timestamp, 1);
	go_on(fd);
	note(begun_ns);
	route(&state, BPF_MAP_DELETE_ELEM);
	clone_it(fd);
}

static void accept_one(int listener)
{
	struct sockaddr_in client;
	socklen_t len = sizeof(client);
	int fd = accept4(listener, (struct sockaddr *)&client, &len, SOCK_NONBLOCK);
	check(fd, "accept");
	if (fd >= 1024)
		stop("too many connections");
	states[fd] = (struct message){ .client_address = client.sin_addr.s_addr, .client_port = client.sin_port };
	read_options(fd, &states[fd]);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fd };
	check(epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

/* At the clone's node. */
static void make_clone(void)
{
	struct message state;
	if (!hear(&state))
		exit(0);
	int one = 1, room = 2 * MOST_BYTES, fd = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	check(fd, "socket");
	if (fd >= 1024)
		stop("too many connections");
	drop_all(fd);
	set_int(fd, TCP_REPAIR, TCP_REPAIR_ON);
	check(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "SO_REUSEADDR");
	check(bind(fd, (struct sockaddr *)&address, sizeof(address)), "bind");
	connect_at(fd, &state, state.timestamp + 2, 0);
	set_int(fd, TCP_NODELAY, 1);
	go_on(fd);
	note(state.begun_ns);
	/* Leaving repair mode cleared it. */
	check(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "SO_REUSEADDR");
	check(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), "SO_SNDBUFFORCE");
	states[fd] = state;
	unsigned int bytes = strtoul(state.head + 5, NULL, 10);
	if (bytes > MOST_BYTES)
		stop("too large");
	char head[128];
	int head_bytes = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", bytes);
	memcpy(body + 128 - head_bytes, head, head_bytes);
	size_t all = head_bytes + bytes;
	if (send(fd, body + 128 - head_bytes, all, MSG_NOSIGNAL) != (ssize_t)all)
		stop("answering");
	watch(fd);
}

static void hand_back(int fd)
{
	struct message *state = &states[fd];
	if (peek(fd, state)) {
		freeze(fd);
		read_state(fd, state);
	} else {
		state->head_bytes = 0;
		freeze(fd);
	}
	close(fd);
	tell(state);
}

static int open_link(int listens, const char *at)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(LINK_PORT), .sin_addr.s_addr = inet_addr(at) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (listens) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		check(bind(fd, (struct sockaddr *)&peer, sizeof(peer)), "bind the link");
		check(listen(fd, 1), "listen");
		fd = accept(fd, NULL, NULL);
	} else {
		int tries = 0;
		while (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) < 0) {
			if (++tries > 200)
				stop("connecting the link");
			usleep(10000);
		}
	}
	check(fd, "the link");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static int open_listener(void)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(bind(fd, (struct sockaddr *)&address, sizeof(address)), "bind");
	check(listen(fd, 512), "listen");
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)"/sys/fs/bpf/tc/globals/least_cloned";
	router = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	check(router, "the router's map");
	return fd;
}

int main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	int is_original = !strcmp(arguments[1], "original"), listener = -1;
	address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = inet_addr(arguments[2]) };
	sigset_t asked, none;

	/* Heard while it waits, and at no other time. */
	sigemptyset(&none);
	sigemptyset(&asked);
	sigaddset(&asked, SIGHUP);
	sigprocmask(SIG_BLOCK, &asked, NULL);
	signal(SIGHUP, ask);
	link_fd = open_link(!is_original, arguments[3]);
	queue = epoll_create1(0);
	watch(link_fd);
	if (is_original)
		watch(listener = open_listener());
	for (;;) {
		struct epoll_event events[64];
		int ready = epoll_pwait(queue, events, 64, -1, &none);
		if (is_asked) {
			is_asked = 0;
			print_median();
		}
		for (int i = 0; i < ready; i++) {
			int fd = events[i].data.fd;
			if (fd == listener)
				accept_one(fd);
			else if (is_original)
				fd == link_fd ? take_back() : clone_it(fd);
			else
				fd == link_fd ? make_clone() : hand_back(fd);
		}
	}
}
