#include "fs/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/record.h"
#include "fs/attr.h"
#include "fs/callfile.h"
#include "fs/events.h"
#include "fs/listing.h"
#include "fs/server.h"

#define UNITS_MAX ((size_t)256 * 1024)
#define ENTRIES_A_UNIT 16
#define BYTES_MAX (64 * 1024) /* what is held in memory of a call for each who has it open */

static size_t units_max(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 > UNITS_MAX)
		return UNITS_MAX;
	return limit.rlim_cur / 2;
}

void handles_init(struct handles *handles, struct state *state)
{
	*handles = (struct handles){ .by_fh = MAP_INIT, .kept = MAP_INIT, .state = state };
	quota_init(&handles->quota, units_max());
	handles->free_kept = xcalloc(STATE_HANDLES, sizeof(*handles->free_kept));
	for (uint32_t i = STATE_HANDLES; i-- > 0;) {
		struct state_handle *kept = &state->handles[i];
		if (kept->fh)
			map_put(&handles->kept, kept->fh, kept);
		else
			handles->free_kept[handles->free_count++] = i;
	}
}

static void forget_kept(struct handles *handles, uint64_t fh)
{
	struct state_handle *kept = map_remove(&handles->kept, fh);
	if (!kept)
		return;
	kept->fh = 0;
	handles->free_kept[handles->free_count++] = (uint32_t)(kept - handles->state->handles);
}

uint64_t handles_opened_by(struct handles *handles, uint64_t unique)
{
	for (size_t i = 0; i < STATE_HANDLES; i++) {
		const struct state_handle *kept = &handles->state->handles[i];
		if (!kept->fh || kept->open_unique != unique)
			continue;
		if (kept->fh < handles->state->next_fh)
			return kept->fh;
		handles_drop(handles, kept->fh); /* its server died before all was noted */
	}
	return 0;
}

struct state_handle *handles_keep(struct handles *handles, uint64_t ino, uint64_t unique)
{
	if (handles->free_count == 0)
		return NULL;
	struct state_handle *kept =
		&handles->state->handles[handles->free_kept[--handles->free_count]];
	memset(kept, 0, sizeof(*kept));
	kept->ino = ino;
	kept->open_unique = unique;
	kept->fh = handles->state->next_fh;
	map_put(&handles->kept, kept->fh, kept);
	return kept;
}

static void free_handle(struct handle *handle)
{
	bytes_unref(handle->bytes);
	if (handle->fd >= 0)
		close(handle->fd);
	callfile_free(handle->callfile);
	listing_free(handle->listing);
	if (handle->poll)
		fuse_pollhandle_destroy(handle->poll);
	free(handle);
}

void handles_release(struct handles *handles)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&handles->by_fh, &at)))
		free_handle(slot->value);
	map_release(&handles->by_fh);
	map_release(&handles->kept);
	quota_release(&handles->quota);
	free(handles->free_kept);
	handles->free_kept = NULL;
}

/* `call` files have a limit of their own. */
static size_t weigh(const struct handle *handle)
{
	if (handle->kind == HANDLE_CALL)
		return 0;
	size_t entries = handle->listing ? handle->listing->count : 0;
	/* Texts of the tree are shared by all who read them. */
	size_t bytes = handle->bytes && handle->bytes->refs == 1 ? handle->bytes->len : 0;
	return 1 + entries / ENTRIES_A_UNIT + bytes / HANDLE_BYTES_A_UNIT;
}

uint64_t handles_add(struct handles *handles, struct handle *handle, uid_t uid)
{
	handle->uid = uid;
	handle->weight = weigh(handle);
	if (!quota_take(&handles->quota, uid, handle->weight)) {
		free_handle(handle);
		return 0;
	}
	uint64_t fh = handles->state->next_fh++;
	map_put(&handles->by_fh, fh, handle);
	return fh;
}

struct handle *handles_get(const struct handles *handles, uint64_t fh)
{
	return map_get(&handles->by_fh, fh);
}

void handles_drop(struct handles *handles, uint64_t fh)
{
	struct handle *handle = map_remove(&handles->by_fh, fh);
	if (handle) {
		handle_set_poll(handles, handle, NULL);
		quota_give(&handles->quota, handle->uid, handle->weight);
		free_handle(handle);
	}
	forget_kept(handles, fh);
}

struct handle *handle_new(enum handle_kind kind)
{
	struct handle *handle = xcalloc(1, sizeof(*handle));
	handle->kind = kind;
	handle->fd = -1;
	return handle;
}

static struct handle *open_bytes(struct bytes *bytes)
{
	if (!bytes)
		return NULL;
	struct handle *handle = handle_new(HANDLE_BYTES);
	handle->bytes = bytes;
	return handle;
}

/* A text that depends on tools, which may change. */
static struct handle *open_text(struct server *server, const struct node *node, struct fail *why)
{
	struct bytes *bytes = view_get(server, node, why);
	struct stat st = { .st_mtim = attr_time(node) };
	st.st_size = bytes ? (off_t)bytes->len : 0;
	if (bytes && node->type->caching == NODE_CACHED &&
		!opened_has(&server->opened, node->ino, &st))
		opened_note(&server->opened, node->ino, bytes->data, &st);
	return open_bytes(bytes);
}

static int read_file(int fd, size_t size, size_t offset, struct buf *out)
{
	if (buf_reserve(out, size) < 0)
		return out->failed;
	ssize_t got = pread(fd, out->data + out->len, size, (off_t)offset);
	if (got < 0)
		return -errno;
	out->len += (size_t)got;
	return 0;
}

static void note_file(struct opened *opened, uint64_t ino, int fd)
{
	struct stat st;
	auto_buf struct buf bytes = BUF_INIT(OPENED_MAX);
	if (fstat(fd, &st) < 0 || st.st_size > (off_t)OPENED_MAX || opened_has(opened, ino, &st) ||
		read_file(fd, (size_t)st.st_size, 0, &bytes) < 0 || bytes.len != (size_t)st.st_size)
		return;
	opened_note(opened, ino, bytes.data, &st);
}

static struct handle *open_file(struct server *server, const struct node *node, struct fail *why)
{
	int fd = file_reopen(node->file, node->tool);
	if (fd < 0) {
		fail_set(why, fd, "cannot open %s/%s: %s", node->tool->name, node->file->path,
			strerror(-fd));
		return NULL;
	}
	note_file(&server->opened, node->ino, fd);
	struct handle *handle = handle_new(HANDLE_FILE);
	handle->fd = fd;
	return handle;
}

static struct handle *open_growing(const struct node *node)
{
	struct handle *handle = handle_new(HANDLE_GROWING);
	handle->seq = node->call->seq;
	handle->part = node->type->part;
	return handle;
}

static bool is_growing(const struct node *node)
{
	return node->call && !call_state_is_final(node->call->state) &&
	       (node->type->part == CALL_PART_LOG || node->type->part == CALL_PART_PROGRESS);
}

/* Many may read the same result of 64 MiB: each has a descriptor, not a copy. */
static struct handle *open_part(struct server *server, const struct node *node, struct fail *why)
{
	struct handle *handle = handle_new(HANDLE_PART);
	handle->len = node->call->part_len[node->type->part];
	handle->fd = calls_open(server->calls, node->call, node->type->part, &handle->start);
	if (handle->fd >= 0)
		return handle;
	fail_set(why, handle->fd, "cannot open what call %s left: %s", node->call->id,
		strerror(-handle->fd));
	free_handle(handle);
	return NULL;
}

static bool is_large(const struct node *node)
{
	return node->call && call_state_is_final(node->call->state) &&
	       node->type->part != CALL_PARTS && node->call->part_len[node->type->part] > BYTES_MAX;
}

struct handle *handle_open(struct server *server, const struct node *node,
	const struct fuse_ctx *ctx, struct fail *why)
{
	if (node->kind == NODE_EVENTS)
		return open_bytes(events_get(server, ctx, why));
	if (node->kind == NODE_FILE)
		return open_file(server, node, why);
	if (node->type->render)
		return open_text(server, node, why);
	if (is_growing(node))
		return open_growing(node);
	if (is_large(node))
		return open_part(server, node, why);
	return open_bytes(view_get_of_call(server, node, why));
}

static int read_part(
	const struct handle *handle, size_t len, size_t size, size_t offset, struct buf *out)
{
	if (offset >= len)
		return 0;
	if (size > len - offset)
		size = len - offset;
	return record_read_range(handle->fd, handle->start + (off_t)offset, size, out);
}

/* How much of it there is; of a call that is forgotten all that it left. A negative errno. */
static ssize_t grown(struct server *server, struct handle *handle)
{
	const struct call *call = calls_get(server->calls, handle->seq);
	struct stat st;
	if (call && call->part_len[handle->part] == 0)
		return 0;
	if (call && handle->fd < 0)
		handle->fd = calls_open(server->calls, call, handle->part, &handle->start);
	if (call)
		return handle->fd < 0 ? handle->fd : (ssize_t)call->part_len[handle->part];
	/* Nothing of it was read while it was there. */
	if (handle->fd < 0)
		return -ESTALE;
	return fstat(handle->fd, &st) < 0 ? -errno : st.st_size;
}

static int read_growing(
	struct server *server, struct handle *handle, size_t size, size_t offset, struct buf *out)
{
	ssize_t len = grown(server, handle);
	int result = len < 0 ? (int)len : read_part(handle, (size_t)len, size, offset, out);
	if (offset + out->len > handle->read_end)
		handle->read_end = offset + out->len;
	return result;
}

int handle_rewind(struct server *server, struct handle *handle, const struct node *dir,
	const struct fuse_ctx *ctx)
{
	struct fail why = FAIL_INIT;
	struct listing *listing = handle->listed ? listing_new(server, dir, ctx, &why) : NULL;
	if (handle->listed && !listing)
		return why.code;
	if (listing) {
		listing_free(handle->listing);
		handle->listing = listing;
	}
	handle->listed = true;
	return 0;
}

bool handle_is_readable(const struct server *server, const struct handle *handle)
{
	if (handle->kind != HANDLE_GROWING)
		return true;
	const struct call *call = calls_get(server->calls, handle->seq);
	return !call || call_state_is_final(call->state) ||
	       call->part_len[handle->part] > handle->read_end;
}

void handles_wake(struct handles *handles, uint64_t seq)
{
	size_t at = 0;
	const struct map_slot *slot;
	while (handles->polled > 0 && (slot = map_next(&handles->by_fh, &at))) {
		struct handle *handle = slot->value;
		if (handle->kind != HANDLE_GROWING || handle->seq != seq || !handle->poll)
			continue;
		fuse_lowlevel_notify_poll(handle->poll);
		handle_set_poll(handles, handle, NULL);
	}
}

void handle_set_poll(struct handles *handles, struct handle *handle, struct fuse_pollhandle *poll)
{
	if (handle->poll) {
		fuse_pollhandle_destroy(handle->poll);
		handles->polled--;
	}
	handle->poll = poll;
	if (poll)
		handles->polled++;
}

int handle_read(
	struct server *server, struct handle *handle, size_t size, size_t offset, struct buf *out)
{
	switch (handle->kind) {
	case HANDLE_BYTES:
		if (offset >= handle->bytes->len)
			return 0;
		if (size > handle->bytes->len - offset)
			size = handle->bytes->len - offset;
		return buf_append(out, handle->bytes->data + offset, size);
	case HANDLE_FILE:
		return read_file(handle->fd, size, offset, out);
	case HANDLE_PART:
		return read_part(handle, handle->len, size, offset, out);
	case HANDLE_GROWING:
		return read_growing(server, handle, size, offset, out);
	case HANDLE_CALL:
	case HANDLE_CANCEL:
	case HANDLE_DIR:
		break;
	}
	return -EISDIR;
}

/* ---- of an earlier server */

static struct handle *revive_call(
	struct server *server, struct state_handle *kept, uint64_t ino, int *error)
{
	struct node node;
	*error = node_get(server, ino, &node);
	if (*error < 0)
		return NULL;
	struct handle *handle = handle_new(HANDLE_CALL);
	handle->callfile = callfile_revive(server, node.tool, kept);
	return handle;
}

static struct handle *revive_dir(struct server *server, const struct node *node,
	const struct fuse_ctx *ctx, struct fail *why)
{
	struct listing *listing = listing_new(server, node, ctx, why);
	if (!listing)
		return NULL;
	struct handle *handle = handle_new(HANDLE_DIR);
	handle->listing = listing;
	return handle;
}

static struct handle *revive(
	struct server *server, uint64_t ino, const struct fuse_ctx *ctx, int *error)
{
	struct node node;
	struct fail why = FAIL_INIT;
	struct handle *handle;
	*error = node_get(server, ino, &node);
	if (*error < 0)
		return NULL;
	if (node_is_dir(&node)) {
		handle = revive_dir(server, &node, ctx, &why);
	} else if (node.kind == NODE_ID_CANCEL) {
		handle = handle_new(HANDLE_CANCEL);
		handle->seq = node.call->seq;
	} else {
		handle = handle_open(server, &node, ctx, &why);
	}
	*error = why.code;
	return handle;
}

struct handle *handle_revive(
	struct server *server, uint64_t ino, uint64_t fh, const struct fuse_ctx *ctx, int *error)
{
	struct handles *handles = &server->handles;
	struct state_handle *kept = map_get(&handles->kept, fh);
	if (kept && kept->ino != ino) {
		*error = -ESTALE;
		return NULL;
	}
	struct handle *handle =
		kept ? revive_call(server, kept, ino, error) : revive(server, ino, ctx, error);
	if (!handle && !kept)
		handle = open_bytes(opened_get(&server->opened, ino));
	if (handle)
		map_put(&handles->by_fh, fh, handle);
	else if (*error == 0)
		*error = -ESTALE;
	return handle;
}
