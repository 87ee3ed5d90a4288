/* The client library of Plimsoll for C; see docs/client.md. Made from crates/client-c/src/lib.rs. */


#ifndef PLIMSOLL_H
#define PLIMSOLL_H
#ifdef __cplusplus
extern "C" {
#endif

/** \brief
 *  An access to a back-end that was chosen. It counts as the back-end's load until it is finished.
 */
typedef struct PlimsollAccess PlimsollAccess_t;

/** \brief
 *  The IP address of the back-end, as text; it lives as long as the access. NULL for NULL.
 */
char const *
plimsoll_access_host (
    PlimsollAccess_t const * access);

/** \brief
 *  The name of the back-end; it lives as long as the access. NULL for NULL.
 */
char const *
plimsoll_access_name (
    PlimsollAccess_t const * access);


#include <stddef.h>
#include <stdint.h>

/** \brief
 *  The port of the back-end; 0 for NULL.
 */
uint16_t
plimsoll_access_port (
    PlimsollAccess_t const * access);

/** \brief
 *  Clients of the services of a configuration. It may be used by several threads at once.
 */
typedef struct PlimsollClients PlimsollClients_t;

/** \brief
 *  What a function has to say.
 */
/** \remark Has the same ABI as `int32_t` **/
#ifdef DOXYGEN
typedef
#endif
enum PlimsollStatus {
    /** \brief
     *  It is done.
     */
    PLIMSOLL_STATUS_OK = 0,
    /** \brief
     *  An argument is NULL, is not UTF-8, or has no such value.
     */
    PLIMSOLL_STATUS_WRONG_ARGUMENT = 1,
    /** \brief
     *  There is no such service.
     */
    PLIMSOLL_STATUS_UNKNOWN_SERVICE = 2,
    /** \brief
     *  No replica serves this partition.
     */
    PLIMSOLL_STATUS_UNKNOWN_PARTITION = 3,
    /** \brief
     *  No replica takes accesses now.
     */
    PLIMSOLL_STATUS_NO_BACKEND = 4,
    /** \brief
     *  Nothing was chosen in time.
     */
    PLIMSOLL_STATUS_TIMED_OUT = 5,
    /** \brief
     *  The library has failed. This is an error in it.
     */
    PLIMSOLL_STATUS_INTERNAL = 6,
}
#ifndef DOXYGEN
; typedef int32_t
#endif
PlimsollStatus_t;

/** \brief
 *  Chooses a back-end for an access to a partition of a service; `""` or NULL for a service without partitions. It waits for
 *  `timeout_ms` at most. `key` says what is asked for, to policies that go by it; NULL for none. With `PLIMSOLL_STATUS_OK`, `access`
 *  gets what is to be ended with `plimsoll_finish`, else NULL.
 */
PlimsollStatus_t
plimsoll_choose (
    PlimsollClients_t const * clients,
    char const * service,
    char const * partition,
    char const * key,
    uint32_t timeout_ms,
    PlimsollAccess_t * * access);

/** \brief
 *  Frees clients. Accesses that were chosen stay, and have to be finished. NULL is allowed.
 */
void
plimsoll_clients_free (
    PlimsollClients_t * clients);

/** \brief
 *  Makes clients from a configuration in TOML. NULL if that cannot be done; if `message` is not NULL, it then gets a text
 *  that says why, to be freed with `plimsoll_text_free`, and NULL otherwise. Free what it returns with `plimsoll_clients_free`.
 */
PlimsollClients_t *
plimsoll_clients_new (
    char const * configuration,
    char * * message);

/** \brief
 *  Ends an access, and frees it. `outcome` is 0 for answered, 1 for a back-end that failed, 2 for one that refused because it has too
 *  much to do, 3 for an access that was abandoned. Any other outcome counts as abandoned, and the status says so.
 */
PlimsollStatus_t
plimsoll_finish (
    PlimsollAccess_t * access,
    int32_t outcome);

/** \brief
 *  The back-end has told its load, such as in its response. NULL is allowed.
 */
void
plimsoll_tell_load (
    PlimsollAccess_t const * access,
    uint32_t load);

/** \brief
 *  Frees a text that was returned. NULL is allowed.
 */
void
plimsoll_text_free (
    char * text);


#ifdef __cplusplus
} /* extern \"C\" */
#endif

#endif /* PLIMSOLL_H */
