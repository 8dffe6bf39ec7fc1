/*
 * What an earlier process may have left of a call: any bytes as a record. What is loaded can be read, or
 * says why not; what is none is refused.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/running/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME "1f"
#define HEADER_SIZE 4096

static int dir_fd = -1;
static char path[] = "/dev/shm/pegfs-fuzz-XXXXXX";

static void remove_dir(void)
{
	io_remove_tree(AT_FDCWD, path);
}

static void make_dir(void)
{
	assert(mkdtemp(path));
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(dir_fd >= 0);
	atexit(remove_dir);
}

/* The header is padded, as it always is: the input is its line, and behind a NUL what follows. */
static void write_record(const uint8_t *data, size_t size)
{
	char header[HEADER_SIZE];
	size_t len = size ? strnlen((const char *)data, size) : 0;
	memset(header, ' ', sizeof(header));
	memcpy(header, data, len < sizeof(header) ? len : sizeof(header));
	auto_close int fd = openat(dir_fd, NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0 && io_write_all(fd, header, sizeof(header)) == 0);
	if (len < size)
		assert(io_write_all(fd, data + len + 1, size - len - 1) == 0);
}

static void read_parts(const struct call *call)
{
	for (int part = 0; part < CALL_PARTS; part++) {
		struct fail why = FAIL_INIT;
		auto_buf struct buf out = BUF_INIT(1 << 20);
		int result = record_read(
			dir_fd, call, (enum call_part)part, 0, call->part_len[part], &out, &why);
		assert(result < 0 ? why.code < 0 && *why.text : out.len == call->part_len[part]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct call call;
	char tool[TOOL_KEY_MAX];
	if (dir_fd < 0)
		make_dir();
	write_record(data, size);
	if (record_load(dir_fd, NAME, &call, tool) < 0)
		return 0;
	assert(memchr(tool, '\0', sizeof(tool)) && memchr(call.id, '\0', sizeof(call.id)) &&
		memchr(call.reason, '\0', sizeof(call.reason)));
	assert(call.state < CALL_STATES && call.chain.count <= CALLER_CHAIN_MAX &&
		call.seq == 0x1f);
	read_parts(&call);
	return 0;
}
