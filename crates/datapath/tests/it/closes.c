/* A server that lets go of its first connection in the way that its second argument names, then serves another. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (count != 3)
        return 2;
    alarm(30);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", arguments[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    int null = open("/dev/null", O_RDWR);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 5) != 0)
        return 3;
    int first = accept(listener, NULL, NULL);
    if (first < 0)
        return 4;
    const char *way = arguments[2];
    if (strcmp(way, "dup2") == 0)
        dup2(null, first);
    else if (strcmp(way, "dup3") == 0)
        dup3(null, first, 0);
    else if (strcmp(way, "close_range") == 0)
        close_range(first, first, 0);
    else if (strcmp(way, "all") == 0)
        close_range(null + 1, ~0u, 0);
    else if (strcmp(way, "unseen") == 0)
        syscall(SYS_close, first);
    /* Their numbers are those of the connection and its channel again. */
    int turns = strcmp(way, "unseen") == 0 ? 3 : 2;
    for (int turn = 0; turn < turns; turn++) {
        int next = accept(listener, NULL, NULL);
        if (next < 0 || write(next, "served", 6) != 6)
            return 5;
    }
    return 0;
}
