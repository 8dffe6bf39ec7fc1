#include "core/tools/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/ownmount.h"
#include "core/base/xalloc.h"

static void identify(struct root *root)
{
	struct statx st;
	if (statx(root->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) < 0)
		return;
	root->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	root->ino = st.stx_ino;
	root->mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
}

struct root *root_new(const char *path, int fd)
{
	struct root *root = xcalloc(1, sizeof(*root));
	*root = (struct root){ .refs = 1, .path = xstrdup(path), .fd = fd };
	identify(root);
	return root;
}

struct root *root_open(const char *path, const struct covered *covered, int *code)
{
	int fd = pathwalk_open(path, covered, NULL, NULL);
	*code = fd < 0 ? fd : 0;
	return fd < 0 ? NULL : root_new(path, fd);
}

struct root *root_ref(struct root *root)
{
	root->refs++;
	return root;
}

void root_unref(struct root *root)
{
	if (!root || --root->refs > 0)
		return;
	close(root->fd);
	free(root->path);
	free(root);
}

bool root_equal(const struct root *a, const struct root *b)
{
	return a && b && a->dev == b->dev && a->ino == b->ino && a->mount == b->mount;
}

/*
 * A link may lead to another place in the source, but not across a mount: behind one may be our own
 * tree, which would have to answer while it asks.
 */
int root_open_dir(const struct root *root, const char *dir_name, int flags)
{
	int fd = io_open_resolve(root->fd, dir_name, flags | O_DIRECTORY, RESOLVE_NO_XDEV);
	if (fd != -EXDEV)
		return fd;
	auto_close int path_fd =
		io_open_resolve(root->fd, dir_name, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (path_fd < 0)
		return path_fd == -ELOOP ? -EXDEV : path_fd;
	if (ownmount_has(path_fd))
		return -ENOTDIR;
	return flags & O_PATH ? take_fd(&path_fd) : io_reopen(path_fd);
}
