/*
 * What the options of a mount with --data mean for one user. Where a file's path or a variable's value
 * holds USEROPTIONS_NAME, that is the user's name. Without anything said, his tools run on this
 * machine with
 *
 *   OFFICER_USER_ROOT, HOME   DATA/NAME
 *   OFFICER_EMAIL_DB          DATA/NAME/data/emails.db
 *   PI_TOOLS_DIRS             DATA/tools:DATA/NAME/tools
 *
 * and in the caller's own container (--run-in caller) with the paths that are there.
 */
#ifndef PEGFS_FS_USEROPTIONS_H
#define PEGFS_FS_USEROPTIONS_H

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/running/environment.h"

#define USEROPTIONS_NAME "{email}"

struct mount_options;

/*
 * The environments of a user's tools: of those that run where the daemon is, and of those that run
 * where their caller is. Both are released by the caller. 0, or *why, and what could be read is there.
 */
int useroptions_load(const struct mount_options *options, const char *name,
	struct environment *here, struct environment *there, struct fail *why);

/* The path of his file of integrations, the caller's; NULL where none is asked for. */
char *useroptions_integrations(const struct mount_options *options, const char *name);

/* Appends what he is told of the options in force. Returns 0 or a negative errno. */
int useroptions_render(const struct mount_options *options, const char *name, struct buf *out);

#endif
