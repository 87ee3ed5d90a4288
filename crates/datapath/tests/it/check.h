/* Ends the program with the line that does not hold. */
#include <stdio.h>
#include <stdlib.h>

#define CHECK(holds)                                                \
    do {                                                            \
        if (!(holds)) {                                             \
            fprintf(stderr, "line %d: %s: %m\n", __LINE__, #holds); \
            exit(1);                                                \
        }                                                           \
    } while (0)
