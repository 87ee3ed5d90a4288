/* Sends a line to replicas that Plimsoll chooses, and prints their answers.
 *
 * Usage: call CONFIGURATION SERVICE PARTITION TIMES
 *
 * cc -I crates/client-c/include crates/client-c/example/call.c -L target/release -lplimsoll_c -o call
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plimsoll.h"

enum { ANSWERED = 0, FAILED = 1 };

static char *read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    char *text = calloc(1, 65536);
    if (text == NULL || fread(text, 1, 65535, file) == 0) {
        fprintf(stderr, "%s: nothing to read\n", path);
        exit(2);
    }
    fclose(file);
    return text;
}

/* The answer of one back-end, or -1. */
static ssize_t ask(const char *host, uint16_t port, char *answer, size_t room) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1) {
        return -1;
    }
    int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
    if (socket_fd < 0) {
        return -1;
    }
    ssize_t got = -1;
    if (connect(socket_fd, (struct sockaddr *)&to, sizeof to) == 0 && write(socket_fd, "hello\n", 6) == 6) {
        got = read(socket_fd, answer, room - 1);
    }
    close(socket_fd);
    if (got > 0) {
        answer[got] = '\0';
        answer[strcspn(answer, "\n")] = '\0';
        return got;
    }
    return -1;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s CONFIGURATION SERVICE PARTITION TIMES\n", argv[0]);
        return 2;
    }
    char *configuration = read_file(argv[1]);
    char *message = NULL;
    PlimsollClients_t *clients = plimsoll_clients_new(configuration, &message);
    free(configuration);
    if (clients == NULL) {
        fprintf(stderr, "%s\n", message);
        plimsoll_text_free(message);
        return 1;
    }
    int unanswered = 0;
    for (int left = atoi(argv[4]); left > 0; left--) {
        PlimsollAccess_t *access = NULL;
        PlimsollStatus_t status = plimsoll_choose(clients, argv[2], argv[3], NULL, 1000, &access);
        if (status != PLIMSOLL_STATUS_OK) {
            fprintf(stderr, "nothing was chosen: status %d\n", (int)status);
            unanswered++;
            continue;
        }
        char answer[256];
        ssize_t got = ask(plimsoll_access_host(access), plimsoll_access_port(access), answer, sizeof answer);
        if (got > 0) {
            printf("%s: %s\n", plimsoll_access_name(access), answer);
        } else {
            printf("%s: no answer\n", plimsoll_access_name(access));
            unanswered++;
        }
        plimsoll_finish(access, got > 0 ? ANSWERED : FAILED);
    }
    plimsoll_clients_free(clients);
    return unanswered == 0 ? 0 : 1;
}
