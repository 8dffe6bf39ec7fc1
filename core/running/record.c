#include "core/running/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"

#define RECORD_SIZE_MAX ((size_t)1 << 30)
#define HEADER_SIZE 4096 /* the header line is padded to this, so that parts have known offsets */

static void name_of(uint64_t seq, enum call_part part, char name[48])
{
	const char *suffix = part == CALL_PART_LOG        ? ".log"
			     : part == CALL_PART_PROGRESS ? ".progress"
							  : "";
	snprintf(name, 48, "%" PRIx64 "%s", seq, suffix);
}

static json_t *chain_to_json(const struct chain *chain)
{
	json_t *links = json_array();
	for (size_t i = 0; i < chain->count; i++)
		json_array_append_new(links, json_pack("[I,I]", (json_int_t)chain->links[i].pid,
						     (json_int_t)chain->links[i].start));
	return links;
}

static json_t *header_to_json(const struct call *call)
{
	json_t *lens = json_array();
	for (int part = 0; part < CALL_PARTS; part++)
		json_array_append_new(lens, json_integer((json_int_t)call->part_len[part]));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "id",
		call->id, "tool", tool_key(call->tool), "uid", (json_int_t)call->uid, "gid",
		(json_int_t)call->gid, "pid_ns", (json_int_t)call->pid_ns, "state",
		call_state_name(call->state), "reason", call->reason, "created_ms",
		(json_int_t)call->created_ms, "started_ms", (json_int_t)call->started_ms,
		"changed_ms", (json_int_t)call->changed_ms, "chain", chain_to_json(&call->chain),
		"len", lens);
}

static int append_header(struct buf *file, const struct call *call)
{
	auto_json json_t *header = header_to_json(call);
	if (!header || buf_reserve(file, HEADER_SIZE) < 0)
		return -ENOMEM;
	memset(file->data, ' ', HEADER_SIZE);
	size_t len = json_dumpb(header, file->data, HEADER_SIZE - 1, JSON_COMPACT);
	if (len == 0 || len > HEADER_SIZE - 1)
		return -E2BIG;
	file->data[HEADER_SIZE - 1] = '\n';
	file->len = HEADER_SIZE;
	return 0;
}

int record_save(int dir_fd, const struct call *call, const struct record_parts *parts)
{
	auto_buf struct buf file = BUF_INIT(RECORD_SIZE_MAX);
	int result = append_header(&file, call);
	if (result < 0)
		return result;
	buf_append(&file, parts->request, call->part_len[CALL_PART_REQUEST]);
	buf_append(&file, parts->result_json, call->part_len[CALL_PART_RESULT_JSON]);
	buf_append(&file, parts->result_text, call->part_len[CALL_PART_RESULT_TEXT]);
	if (file.failed)
		return file.failed;
	char name[48];
	name_of(call->seq, CALL_PART_REQUEST, name);
	return io_replace_file(dir_fd, name, file.data, file.len, 0600);
}

/* One page at the beginning of a file on tmpfs: whoever is killed meanwhile has written all or nothing. */
int record_mark(int dir_fd, const struct call *call)
{
	auto_buf struct buf header = BUF_INIT(HEADER_SIZE + 1);
	char name[48];
	int result = append_header(&header, call);
	if (result < 0)
		return result;
	name_of(call->seq, CALL_PART_REQUEST, name);
	auto_close int fd = openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return pwrite(fd, header.data, HEADER_SIZE, 0) == HEADER_SIZE ? 0 : -EIO;
}

int record_open_growing(int dir_fd, uint64_t seq, enum call_part part)
{
	char name[48];
	name_of(seq, part, name);
	int fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* ---- loading */

int record_read_range(int fd, off_t offset, size_t len, struct buf *out)
{
	if (buf_reserve(out, len) < 0)
		return out->failed;
	while (len > 0) {
		ssize_t got = pread(fd, out->data + out->len, len, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		out->len += (size_t)got;
		offset += got;
		len -= (size_t)got;
	}
	out->data[out->len] = '\0';
	return 0;
}

static int64_t get_integer(const json_t *header, const char *name)
{
	return json_integer_value(json_object_get(header, name));
}

static int copy_string(const json_t *header, const char *name, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(header, name));
	if (!text || strlen(text) >= size)
		return -EPROTO;
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int parse_state(const json_t *header, enum call_state *state)
{
	const char *name = json_string_value(json_object_get(header, "state"));
	for (int i = 0; name && i < CALL_STATES; i++)
		if (strcmp(name, call_state_name((enum call_state)i)) == 0) {
			*state = (enum call_state)i;
			return 0;
		}
	return -EPROTO;
}

static void parse_chain(const json_t *header, struct chain *chain)
{
	const json_t *links = json_object_get(header, "chain");
	chain->count = 0;
	for (size_t i = 0; i < json_array_size(links) && i < CALLER_CHAIN_MAX; i++) {
		const json_t *link = json_array_get(links, i);
		chain->links[chain->count++] =
			(struct process){ .pid = (pid_t)json_integer_value(json_array_get(link, 0)),
				.start = (uint64_t)json_integer_value(json_array_get(link, 1)) };
	}
}

static int parse_header(const json_t *header, struct call *call, char key[TOOL_KEY_MAX])
{
	if (copy_string(header, "id", call->id, sizeof(call->id)) < 0 ||
		copy_string(header, "tool", key, TOOL_KEY_MAX) < 0 ||
		copy_string(header, "reason", call->reason, sizeof(call->reason)) < 0 ||
		parse_state(header, &call->state) < 0)
		return -EPROTO;
	call->uid = (uid_t)get_integer(header, "uid");
	call->gid = (gid_t)get_integer(header, "gid");
	call->pid_ns = (uint64_t)get_integer(header, "pid_ns");
	call->created_ms = get_integer(header, "created_ms");
	call->started_ms = get_integer(header, "started_ms");
	call->changed_ms = get_integer(header, "changed_ms");
	parse_chain(header, &call->chain);
	const json_t *lens = json_object_get(header, "len");
	for (size_t part = 0; part < CALL_PARTS; part++)
		call->part_len[part] = (size_t)json_integer_value(json_array_get(lens, part));
	return 0;
}

/* What was appended last may not be in the header. */
static void measure_growing(int dir_fd, struct call *call)
{
	static const enum call_part growing[] = { CALL_PART_LOG, CALL_PART_PROGRESS };
	for (size_t i = 0; i < sizeof(growing) / sizeof(*growing); i++) {
		char name[48];
		struct stat st;
		name_of(call->seq, growing[i], name);
		bool there = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		call->part_len[growing[i]] = there ? (size_t)st.st_size : 0;
	}
}

int record_load(int dir_fd, const char *file_name, struct call *call, char key[TOOL_KEY_MAX])
{
	char *end = NULL;
	memset(call, 0, sizeof(*call));
	call->seq = strtoull(file_name, &end, 16);
	if (call->seq == 0 || *end)
		return -EPROTO;
	auto_close int fd = openat(dir_fd, file_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(HEADER_SIZE + 1);
	int result = fd < 0 ? -errno : record_read_range(fd, 0, HEADER_SIZE, &text);
	if (result < 0)
		return result;
	auto_json json_t *header = json_loadb(text.data, text.len, 0, NULL);
	result = header ? parse_header(header, call, key) : -EPROTO;
	measure_growing(dir_fd, call);
	return result;
}

static off_t offset_of(const struct call *call, enum call_part part)
{
	size_t offset = HEADER_SIZE;
	if (part == CALL_PART_LOG || part == CALL_PART_PROGRESS)
		return 0;
	for (int before = CALL_PART_REQUEST; before < (int)part; before++)
		offset += call->part_len[before];
	return (off_t)offset;
}

int record_open(int dir_fd, const struct call *call, enum call_part part, off_t *offset)
{
	char name[48];
	name_of(call->seq, part, name);
	*offset = offset_of(call, part);
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int record_read(int dir_fd, const struct call *call, enum call_part part, size_t offset,
	size_t size, struct buf *out, struct fail *why)
{
	size_t len = call->part_len[part];
	if (offset >= len)
		return 0;
	off_t start = 0;
	auto_close int fd = record_open(dir_fd, call, part, &start);
	size_t wanted = size < len - offset ? size : len - offset;
	int result = fd < 0 ? fd : record_read_range(fd, start + (off_t)offset, wanted, out);
	if (result < 0)
		fail_set(why, result, "cannot read what call %s left: %s", call->id,
			strerror(-result));
	return result;
}

void record_remove(int dir_fd, uint64_t seq)
{
	static const enum call_part files[] = { CALL_PART_REQUEST, CALL_PART_LOG,
		CALL_PART_PROGRESS };
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char name[48];
		name_of(seq, files[i], name);
		unlinkat(dir_fd, name, 0);
	}
}
