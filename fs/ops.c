#include "fs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "fs/attr.h"
#include "fs/callfile.h"
#include "fs/listing.h"
#include "fs/lookup.h"
#include "fs/server.h"
#include "fs/session.h"

#define MAX_WRITE (1024 * 1024)
#define EPOCH_MINOR 44 /* of the protocol that has FUSE_NOTIFY_INC_EPOCH */

static struct server *server_of(fuse_req_t req)
{
	return session_arg(fuse_req_userdata(req));
}

static void on_init(void *userdata, struct fuse_conn_info *conn)
{
	struct server *server = session_arg(userdata);
	server->has_epoch = conn->proto_minor >= EPOCH_MINOR;
	/* An aio writer could not be killed (call-semantics.md H12); the rest is 4.1. */
	conn->want &= ~(unsigned)(FUSE_CAP_ASYNC_DIO | FUSE_CAP_WRITEBACK_CACHE);
	conn->want |= conn->capable & (FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA);
	conn->max_write = MAX_WRITE;
}

/* Where an earlier server has given the number, the handle is made anew. */
static struct handle *find_handle(
	fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi, int *error)
{
	struct server *server = server_of(req);
	struct handle *handle = handles_get(&server->handles, fi->fh);
	return handle ? handle : handle_revive(server, ino, fi->fh, fuse_req_ctx(req), error);
}

/* ---- names and attributes */

static int look_up(
	fuse_req_t req, fuse_ino_t parent, const char *name, struct node *dir, struct node *node)
{
	struct server *server = server_of(req);
	int result = node_get(server, parent, dir);
	return result < 0 ? result : lookup_name(server, dir, name, fuse_req_ctx(req), node);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct server *server = server_of(req);
	struct node dir = { .kind = NODE_ROOT }, node;
	struct fuse_entry_param entry;
	int result = look_up(req, parent, name, &dir, &node);
	bool is_in_tool = dir.kind == NODE_TOOL || dir.kind == NODE_FILE;
	if (result == -ENOENT && is_in_tool && watch_hurry(server->watch, dir.tool))
		result = look_up(req, parent, name, &dir, &node);
	if (result == 0)
		result = attr_entry(server, &node, fuse_req_ctx(req), &entry);
	if (result < 0)
		fuse_reply_err(req, -result);
	else
		fuse_reply_entry(req, &entry);
}

static void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	if (ino_class(ino) == INO_FILE)
		files_forget(&server_of(req)->files, ino, count);
	fuse_reply_none(req);
}

static void on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		if (ino_class(forgets[i].ino) == INO_FILE)
			files_forget(&server_of(req)->files, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void reply_attr(fuse_req_t req, const struct node *node)
{
	struct stat st;
	double timeout = 0;
	int result = attr_stat(server_of(req), node, fuse_req_ctx(req), &st, &timeout);
	if (result < 0)
		fuse_reply_err(req, -result);
	else
		fuse_reply_attr(req, &st, timeout);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	struct node node;
	struct stat st;
	int result = node_get(server_of(req), ino, &node);
	if (result == 0)
		reply_attr(req, &node);
	else if (attr_stat_gone(server_of(req), ino, &st))
		fuse_reply_attr(req, &st, 0);
	else
		fuse_reply_err(req, -result);
}

/* On `call` all of it succeeds and changes nothing, so that cp -a, touch and tar work: 4.3. */
static void on_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	struct server *server = server_of(req);
	struct node node;
	int result = node_get(server, ino, &node);
	if (result == 0 && !node_is_writable(&node))
		result = node.type->caching == NODE_OF_CALL ? -EPERM : -EROFS;
	if (result < 0) {
		fuse_reply_err(req, -result);
		return;
	}
	int error;
	const struct handle *handle = fi ? find_handle(req, ino, fi, &error) : NULL;
	if (handle && handle->callfile && to_set & FUSE_SET_ATTR_SIZE && attr->st_size == 0)
		callfile_truncate(handle->callfile);
	reply_attr(req, &node);
}

static void on_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct node node;
	auto_buf struct buf target = BUF_INIT(4096);
	int result = node_get(server_of(req), ino, &node);
	if (result == 0)
		result = node.file ? file_read_link(node.tool, node.file->path, &target) : -EINVAL;
	if (result < 0)
		fuse_reply_err(req, -result);
	else
		fuse_reply_readlink(req, buf_str(&target));
}

static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	(void)ino;
	/* One block, all in use: `df` hides file systems without any. */
	const struct statvfs fs = { .f_bsize = 4096,
		.f_frsize = 4096,
		.f_blocks = 1,
		.f_files = server_of(req)->forest->only.snapshot->count,
		.f_namemax = NAME_MAX };
	fuse_reply_statfs(req, &fs);
}

/* ---- files */

static void set_caching(const struct node *node, struct fuse_file_info *fi)
{
	bool is_growing = node->call && !call_state_is_final(node->call->state);
	if (node->type->caching == NODE_VOLATILE || is_growing)
		fi->direct_io = 1;
	else
		fi->keep_cache = 1;
	fi->noflush = (fi->flags & O_ACCMODE) == O_RDONLY;
}

static int open_to_write(struct server *server, const struct node *node, const struct fuse_ctx *ctx,
	struct fuse_file_info *fi)
{
	if (!attr_may_call(server, ctx->uid))
		return -EACCES;
	const bool is_cancel = node->kind == NODE_ID_CANCEL;
	uint64_t unique = session_unique(server->session);
	fi->fh = session_is_repeat(server->session) ? handles_opened_by(&server->handles, unique)
						    : 0;
	if (fi->fh)
		return 0;
	/* callfile_free() gives it back. */
	if (!is_cancel && !quota_take(&server->open_calls, ctx->uid, 1))
		return -EMFILE;
	struct state_handle *kept =
		is_cancel ? NULL : handles_keep(&server->handles, node->ino, unique);
	if (!is_cancel && !kept) {
		quota_give(&server->open_calls, ctx->uid, 1);
		return -ENFILE;
	}
	struct handle *handle = handle_new(is_cancel ? HANDLE_CANCEL : HANDLE_CALL);
	if (is_cancel)
		handle->seq = node->call->seq;
	else
		handle->callfile = callfile_new(
			server, node->tool, node->call ? node->call->seq : 0, ctx, kept, fi->flags);
	fi->fh = handles_add(&server->handles, handle, ctx->uid);
	return fi->fh ? 0 : -EMFILE;
}

static int open_to_read(struct server *server, const struct node *node, const struct fuse_ctx *ctx,
	struct fuse_file_info *fi)
{
	struct fail why = FAIL_INIT;
	struct handle *handle = handle_open(server, node, ctx, &why);
	if (!handle) {
		if (why.code != -ENOENT && why.code != -EACCES && why.code != -ESTALE)
			log_msg(LOG_LEVEL_WARNING, "%s", why.text);
		return why.code;
	}
	fi->fh = handles_add(&server->handles, handle, ctx->uid);
	return fi->fh ? 0 : -EMFILE;
}

/*
 * The kernel finds the nodes of a call by look-ups, which only its owner can make; but root of a
 * container may come by a file handle (open_by_handle_at(2)), whose number can be guessed.
 */
static int check_reach(
	const struct server *server, const struct node *node, const struct fuse_ctx *ctx)
{
	if (!node->call)
		return 0;
	const struct caller caller = { .who = { .uid = ctx->uid },
		.pid_ns = caller_pid_namespace(ctx->pid) };
	return calls_may_see(server->calls, node->call, &caller) ? 0 : -ESTALE;
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct server *server = server_of(req);
	struct node node;
	int result = node_get(server, ino, &node);
	if (result == 0)
		result = check_reach(server, &node, fuse_req_ctx(req));
	bool to_write = (fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC;
	if (result == 0 && to_write && !node_is_writable(&node))
		result = -EROFS;
	if (result == 0 && (fi->flags & O_ACCMODE) != O_RDONLY)
		result = open_to_write(server, &node, fuse_req_ctx(req), fi);
	else if (result == 0)
		result = open_to_read(server, &node, fuse_req_ctx(req), fi);
	if (result < 0) {
		fuse_reply_err(req, -result);
		return;
	}
	uint64_t fh = fi->fh;
	set_caching(&node, fi);
	/* Interrupted meanwhile: no release will come. Or an earlier server has answered it. */
	if (fuse_reply_open(req, fi) == -ENOENT && !session_may_be_answered(server->session))
		handles_drop(&server->handles, fh);
}

/* The handle, or NULL with the request answered. */
static struct handle *handle_of(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	int error = 0;
	struct handle *handle = find_handle(req, ino, fi, &error);
	if (!handle)
		fuse_reply_err(req, -error);
	return handle;
}

static void on_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct handle *handle = handle_of(req, ino, fi);
	if (!handle)
		return;
	if (handle->callfile) {
		callfile_read(handle->callfile, req, size, offset, fi);
		return;
	}
	auto_buf struct buf bytes = BUF_INIT(size);
	int result = handle_read(server_of(req), handle, size, (size_t)offset, &bytes);
	if (result < 0)
		fuse_reply_err(req, -result);
	else
		fuse_reply_buf(req, bytes.data, bytes.len);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
	struct fuse_file_info *fi)
{
	const struct handle *handle = handle_of(req, ino, fi);
	if (!handle)
		return;
	if (handle->callfile) {
		callfile_write(handle->callfile, req, bytes, size, offset);
	} else if (handle->kind == HANDLE_CANCEL) {
		calls_cancel(server_of(req)->calls, handle->seq);
		fuse_reply_write(req, size);
	} else {
		fuse_reply_err(req, EBADF);
	}
}

static void on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	int error;
	const struct handle *handle = find_handle(req, ino, fi, &error);
	if (handle && handle->callfile)
		callfile_flush(handle->callfile, req);
	else
		fuse_reply_err(req, 0);
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct handles *handles = &server_of(req)->handles;
	int error;
	/* Of a `call` that an earlier server had: leaving it may cancel what runs. */
	if (map_get(&handles->kept, fi->fh))
		find_handle(req, ino, fi, &error);
	handles_drop(handles, fi->fh);
	fuse_reply_err(req, 0);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, 0);
}

/* Without it, glibc would write a NUL into the document: call-semantics.md 2. */
static void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
	struct fuse_file_info *fi)
{
	(void)ino;
	(void)mode;
	(void)offset;
	(void)length;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void on_poll(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *poll)
{
	struct server *server = server_of(req);
	int error;
	struct handle *handle = find_handle(req, ino, fi, &error);
	if (handle && handle->callfile) {
		callfile_poll(handle->callfile, req, fi, poll);
		return;
	}
	bool readable = !handle || handle_is_readable(server, handle);
	if (poll && !readable)
		handle_set_poll(&server->handles, handle, poll);
	else if (poll)
		fuse_pollhandle_destroy(poll);
	fuse_reply_poll(req, readable ? POLLIN | POLLRDNORM : 0);
}

/* ---- directories */

static void on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct server *server = server_of(req);
	struct node node;
	struct fail why = FAIL_INIT;
	struct listing *listing = NULL;
	int result = node_get(server, ino, &node);
	if (result == 0)
		result = check_reach(server, &node, fuse_req_ctx(req));
	if (result == 0 && !node_is_dir(&node))
		result = -ENOTDIR;
	if (result == 0 && !(listing = listing_new(server, &node, fuse_req_ctx(req), &why)))
		result = why.code;
	if (result < 0) {
		fuse_reply_err(req, -result);
		return;
	}
	struct handle *handle = handle_new(HANDLE_DIR);
	handle->listing = listing;
	fi->fh = handles_add(&server->handles, handle, fuse_req_ctx(req)->uid);
	if (!fi->fh) {
		fuse_reply_err(req, EMFILE);
		return;
	}
	uint64_t fh = fi->fh;
	if (fuse_reply_open(req, fi) == -ENOENT)
		handles_drop(&server->handles, fh);
}

/* Adds one entry; returns the bytes it takes, which may be more than there are left. */
static size_t add_entry(fuse_req_t req, char *at, size_t left, const struct listing_entry *item)
{
	const struct stat st = { .st_ino = item->ino, .st_mode = item->type };
	return fuse_add_direntry(req, at, left, item->name, &st, (off_t)item->offset);
}

/* With attributes, where looking the entry up is the same for all and costs nothing later. */
static size_t add_entry_plus(fuse_req_t req, const struct node *dir, char *at, size_t left,
	const struct listing_entry *item)
{
	struct server *server = server_of(req);
	struct fuse_entry_param entry = { .attr = { .st_ino = item->ino, .st_mode = item->type } };
	struct node node;
	/* First the room, then the look-up: the kernel counts only what it gets. */
	size_t need = fuse_add_direntry_plus(req, NULL, 0, item->name, &entry, 0);
	if (need <= left && item->offset >= LISTING_FIRST &&
		lookup_listed(server, dir, item->name, &node) == 0 &&
		attr_entry(server, &node, fuse_req_ctx(req), &entry) < 0)
		entry = (struct fuse_entry_param){ .attr = { .st_ino = item->ino,
							   .st_mode = item->type } };
	return fuse_add_direntry_plus(req, at, left, item->name, &entry, (off_t)item->offset);
}

static void reply_listing(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	const struct fuse_file_info *fi, bool plus)
{
	struct handle *handle = handle_of(req, ino, fi);
	if (!handle)
		return;
	struct node dir;
	int result = handle->listing ? node_get(server_of(req), ino, &dir) : -ENOTDIR;
	if (result == 0 && offset == 0)
		result = handle_rewind(server_of(req), handle, &dir, fuse_req_ctx(req));
	if (result < 0) {
		fuse_reply_err(req, -result);
		return;
	}
	auto_free char *bytes = malloc(size);
	if (!bytes) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	size_t used = 0;
	const struct listing *listing = handle->listing;
	for (size_t i = listing_after(listing, (uint64_t)offset); i < listing->count; i++) {
		const struct listing_entry *item = &listing->items[i];
		size_t need = plus ? add_entry_plus(req, &dir, bytes + used, size - used, item)
				   : add_entry(req, bytes + used, size - used, item);
		if (need > size - used)
			break;
		used += need;
	}
	fuse_reply_buf(req, bytes, used);
}

static void on_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	reply_listing(req, ino, size, offset, fi, false);
}

static void on_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	reply_listing(req, ino, size, offset, fi, true);
}

/* ---- what is refused: everything but `call` is read-only */

static void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)dev;
	fuse_reply_err(req, EROFS);
}

static void on_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	on_mknod(req, parent, name, mode, 0);
}

/* An earlier server did it, and died before it could say so. */
static uint64_t reserved_before(struct server *server, const struct node *dir,
	const struct caller *caller, const char *name)
{
	const struct call *call = calls_find(server->calls, dir->tool, caller, name);
	return call && call->state == CALL_RESERVED ? call->seq : 0;
}

/* In calls/ it reserves an id. */
static void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct server *server = server_of(req);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct node dir, node;
	struct fail why = FAIL_INIT;
	struct fuse_entry_param entry;
	struct caller caller;
	(void)mode;
	if (node_get(server, parent, &dir) < 0 || dir.kind != NODE_CALLS) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if (!attr_may_call(server, ctx->uid)) {
		fuse_reply_err(req, EACCES);
		return;
	}
	caller_load_reader(&caller, ctx->uid, ctx->gid, ctx->pid);
	uint64_t seq = calls_reserve(server->calls, dir.tool, &caller, name, &why);
	if (seq == 0 && why.code == -EEXIST && session_is_repeat(server->session))
		seq = reserved_before(server, &dir, &caller, name);
	if (seq == 0) {
		fuse_reply_err(req, -why.code);
		return;
	}
	node_set_of_call(server, &node, NODE_CALL_DIR, calls_get(server->calls, seq));
	attr_entry(server, &node, ctx, &entry);
	fuse_reply_entry(req, &entry);
}

/* In calls/ it cancels the call and forgets it. */
static void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct server *server = server_of(req);
	struct node dir, node;
	int result = node_get(server, parent, &dir);
	if (result == 0 && dir.kind != NODE_CALLS)
		result = -EPERM;
	if (result == 0)
		result = lookup_name(server, &dir, name, fuse_req_ctx(req), &node);
	if (result == 0)
		calls_forget(server->calls, node.call->seq);
	else if (result == -ENOENT && session_is_repeat(server->session))
		result = 0; /* an earlier server did it, and died before it could say so */
	fuse_reply_err(req, -result);
}

static void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target;
	on_mknod(req, parent, name, 0, 0);
}

static void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	(void)ino;
	on_mknod(req, new_parent, new_name, 0, 0);
}

static void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent;
	(void)name;
	fuse_reply_err(req, EPERM);
}

static void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	const char *new_name, unsigned flags)
{
	(void)new_parent;
	(void)new_name;
	(void)flags;
	on_unlink(req, parent, name);
}

const struct fuse_lowlevel_ops server_ops = {
	.init = on_init,
	.lookup = on_lookup,
	.forget = on_forget,
	.forget_multi = on_forget_multi,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.readlink = on_readlink,
	.statfs = on_statfs,
	.open = on_open,
	.read = on_read,
	.write = on_write,
	.flush = on_flush,
	.release = on_release,
	.fsync = on_fsync,
	.fallocate = on_fallocate,
	.poll = on_poll,
	.opendir = on_opendir,
	.readdir = on_readdir,
	.readdirplus = on_readdirplus,
	.releasedir = on_release,
	.fsyncdir = on_fsync,
	.mknod = on_mknod,
	.create = on_create,
	.mkdir = on_mkdir,
	.symlink = on_symlink,
	.link = on_link,
	.unlink = on_unlink,
	.rmdir = on_rmdir,
	.rename = on_rename,
};
