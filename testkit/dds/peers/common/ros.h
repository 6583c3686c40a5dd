/* Type hashes and user data of the ROS 2 middleware layers. */
#ifndef ROS_H
#define ROS_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As rosidl computes them (Jazzy). */
extern const char *const MESSAGE_HASHES[MESSAGES];
extern const char REQUEST_HASH[];
extern const char RESPONSE_HASH[];
extern const char ENTITIES_HASH[];

/* USER_DATA of a participant: the enclave. */
extern const char PARTICIPANT_USER_DATA[];

/* USER_DATA of an endpoint: since Iron the type hash, after `before`, which may be empty. */
void endpoint_user_data(char *text, size_t room, enum ros ros, const char *before, const char *hash);

/* `clientid=…;` as rmw_cyclonedds writes it for both endpoints of a client: the first number is padded with a space. */
void client_user_data(char *text, size_t room, const uint8_t id[16]);

#ifdef __cplusplus
}
#endif
#endif
