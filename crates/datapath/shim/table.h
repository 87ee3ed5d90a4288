/* Which descriptors of this process are handed connections. */
#ifndef PLIMSOLL_TABLE_H
#define PLIMSOLL_TABLE_H

#include <stdbool.h>

#include "connection.h"
#include "handed.h"

/* The handed connection of a descriptor, or null. Asks the kernel each time whether the descriptor is still the one that
 * was handed: if the server has closed it unseen, the agent is told, and the descriptor is left alone. */
struct connection *table_find(int fd);

/* The same without asking the kernel, for notes about the connection: they are of no use to anyone when it is gone. */
struct connection *table_peek(int fd);

/* Lists a descriptor as a handed connection. Null: there is no room for it, or it is no socket. */
struct connection *table_add(int fd, int channel, const struct handed_message *message);

/* The server is about to close the connection's descriptor. Returns the Unix connection to close after it, or -1. */
int table_remove(struct connection *connection);

/* Descriptors from `low` to `high` may have been closed or replaced: the agent is told of each that was. */
void table_check(unsigned low, unsigned high);

/* Whether the calling process is the one that the table is of. Only it may change the table: the child of a vfork shares
 * the memory of its parent, but has descriptors of its own. */
bool table_is_of_process(void);

#endif
