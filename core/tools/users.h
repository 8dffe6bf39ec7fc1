/*
 * The users of a data directory (R10): the directories in it that are named by an e-mail address,
 * each with the user's own tools in tools/. Beside them lies tools/, which everybody has (R9).
 *
 * A name is taken literally, as an identity: nothing is folded or trimmed. Which are accepted:
 *   - one '@' with something on each side, no leading dot, at most USER_NAME_MAX bytes
 *   - valid UTF-8 without control characters, blanks, and what means something to shells, mount(8),
 *     PATH-like lists or a mail address that is quoted: \ " ' ` $ ( ) < > [ ] , ; : | & * ?
 *   - no link: it could lead to another user's directory
 */
#ifndef PEGFS_TOOLS_USERS_H
#define PEGFS_TOOLS_USERS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/root.h"

#define USER_NAME_MAX 254 /* RFC 5321: what a path of SMTP may have */
#define USERS_MAX 65536   /* of one data directory that are looked at */
#define USERS_TOOLS "tools"

bool user_name_is_valid(const char *name);

struct users {
	char **items; /* owned; in byte order */
	size_t count, capacity;
	struct faults faults; /* directories that are none, and why; hidden ones are passed over */
};

/* Returns 0 or a negative errno; released by the caller in both cases. */
int users_load(const struct root *root, struct users *users);
void users_release(struct users *users);

#endif
