/* The Unix connection to the agent. */
#ifndef PLIMSOLL_CHANNEL_H
#define PLIMSOLL_CHANNEL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "handed.h"

/* Whether this peer of an accepted connection is the agent: it has the name, and is root or who started the server. */
bool channel_is_agent(int channel, const struct sockaddr_storage *peer, socklen_t length);

/* Waits for the message with the TCP socket, which the agent sends right after it has connected, and returns the socket;
 * -1 when the agent has gone or sent anything else. */
int channel_receive(int channel, bool cloexec, struct handed_message *message);

/* Sends a message, with the socket `fd` unless that is -1. False when the agent has gone. */
bool channel_send(int channel, const struct handed_message *message, int fd);

#endif
