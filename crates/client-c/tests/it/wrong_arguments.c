/* NULL, bytes that are not UTF-8, and wrong numbers, wherever they can be given. Ends with the number of the line that fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll.h"

#define CHECK(holds)                                      \
    do {                                                  \
        if (!(holds)) {                                   \
            fprintf(stderr, "line %d: " #holds "\n", __LINE__); \
            exit(1);                                      \
        }                                                 \
    } while (0)

int main(void) {
    char *message = NULL;
    CHECK(plimsoll_clients_new(NULL, &message) == NULL);
    CHECK(message != NULL && strstr(message, "NULL") != NULL);
    plimsoll_text_free(message);
    CHECK(plimsoll_clients_new("\xff\xfe", &message) == NULL);
    CHECK(message != NULL);
    plimsoll_text_free(message);
    CHECK(plimsoll_clients_new("[[services]]\nname = 's'\npolicy = 'none_such'\nendpoints = []", NULL) == NULL);
    plimsoll_text_free(NULL);
    plimsoll_clients_free(NULL);

    const char *text = "[[services]]\nname = 's'\npolicy = 'least_connections'\n"
                       "endpoints = [{ name = 'a', address = '10.1.2.3:81' }, { name = 'b', address = '[fd00::1]:82' }]\n"
                       "[[services]]\nname = 'empty'\nendpoints = []\n";
    PlimsollClients_t *clients = plimsoll_clients_new(text, &message);
    CHECK(clients != NULL && message == NULL);

    PlimsollAccess_t *access = (PlimsollAccess_t *)1;
    CHECK(plimsoll_choose(NULL, "s", "", NULL, 10, &access) == PLIMSOLL_STATUS_WRONG_ARGUMENT && access == NULL);
    CHECK(plimsoll_choose(clients, NULL, "", NULL, 10, &access) == PLIMSOLL_STATUS_WRONG_ARGUMENT);
    CHECK(plimsoll_choose(clients, "\xff", "", NULL, 10, &access) == PLIMSOLL_STATUS_WRONG_ARGUMENT);
    CHECK(plimsoll_choose(clients, "s", "\xff", NULL, 10, &access) == PLIMSOLL_STATUS_WRONG_ARGUMENT);
    CHECK(plimsoll_choose(clients, "s", "", NULL, 10, NULL) == PLIMSOLL_STATUS_WRONG_ARGUMENT);
    CHECK(plimsoll_choose(clients, "t", "", NULL, 10, &access) == PLIMSOLL_STATUS_UNKNOWN_SERVICE);
    CHECK(plimsoll_choose(clients, "s", "7", NULL, 10, &access) == PLIMSOLL_STATUS_UNKNOWN_PARTITION);
    CHECK(plimsoll_choose(clients, "empty", "", NULL, 10, &access) == PLIMSOLL_STATUS_UNKNOWN_PARTITION);
    CHECK(access == NULL);

    CHECK(plimsoll_choose(clients, "s", NULL, "\xff key", 60000, &access) == PLIMSOLL_STATUS_OK && access != NULL);
    int is_a = strcmp(plimsoll_access_name(access), "a") == 0;
    CHECK(strcmp(plimsoll_access_host(access), is_a ? "10.1.2.3" : "fd00::1") == 0);
    CHECK(plimsoll_access_port(access) == (is_a ? 81 : 82));
    CHECK(plimsoll_access_host(NULL) == NULL && plimsoll_access_name(NULL) == NULL && plimsoll_access_port(NULL) == 0);
    plimsoll_tell_load(NULL, 5);
    plimsoll_tell_load(access, 4294967295u);

    /* The other one has less to do. */
    PlimsollAccess_t *second = NULL;
    CHECK(plimsoll_choose(clients, "s", "", NULL, 60000, &second) == PLIMSOLL_STATUS_OK);
    CHECK(strcmp(plimsoll_access_name(second), is_a ? "b" : "a") == 0);
    CHECK(plimsoll_finish(second, 77) == PLIMSOLL_STATUS_WRONG_ARGUMENT);
    CHECK(plimsoll_finish(NULL, 0) == PLIMSOLL_STATUS_WRONG_ARGUMENT);

    /* An access outlives the clients. */
    plimsoll_clients_free(clients);
    CHECK(plimsoll_access_port(access) != 0);
    CHECK(plimsoll_finish(access, 0) == PLIMSOLL_STATUS_OK);
    return 0;
}
