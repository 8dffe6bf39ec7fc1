/*
 * The requests of the kernel, in any order and with any content that a program can cause: names,
 * offsets, sizes, flags, numbers of nodes and files that were given or never were; with jobs that
 * end, signals, and servers that die in between. Each request has one answer, or is held; none has
 * two, and one that is held has its answer in the end or its caller still waits.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/fs/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 100
#define RESTARTS_MAX 6 /* they take long */
#define HELD_MAX 64
#define KNOWN_MAX 16
#define DATA_MAX 2000
#define READ_MAX (1u << 17)
#define RESEND_BIT (UINT64_C(1) << 63)

/* What stands behind the header: bytes of a struct, where in it a file's number is, and strings. */
struct shape {
	uint32_t opcode;
	size_t size;
	int fh_at; /* -1: nowhere */
	int length_at; /* of the 32-bit length of the data that follow, or of what is read; -1: nowhere */
	int strings;
	bool has_data;
};

static const struct shape shapes[] = {
	{ FUSE_LOOKUP, 0, -1, -1, 1, false },
	{ FUSE_FORGET, 8, -1, -1, 0, false },
	{ FUSE_GETATTR, 16, 8, -1, 0, false },
	{ FUSE_SETATTR, 88, 8, -1, 0, false },
	{ FUSE_READLINK, 0, -1, -1, 0, false },
	{ FUSE_SYMLINK, 0, -1, -1, 2, false },
	{ FUSE_MKNOD, 16, -1, -1, 1, false },
	{ FUSE_MKDIR, 8, -1, -1, 1, false },
	{ FUSE_UNLINK, 0, -1, -1, 1, false },
	{ FUSE_RMDIR, 0, -1, -1, 1, false },
	{ FUSE_RENAME, 8, -1, -1, 2, false },
	{ FUSE_LINK, 8, -1, -1, 1, false },
	{ FUSE_OPEN, 8, -1, -1, 0, false },
	{ FUSE_READ, 40, 0, 16, 0, false },
	{ FUSE_WRITE, 40, 0, 16, 0, true },
	{ FUSE_STATFS, 0, -1, -1, 0, false },
	{ FUSE_RELEASE, 24, 0, -1, 0, false },
	{ FUSE_FSYNC, 16, 0, -1, 0, false },
	{ FUSE_SETXATTR, 8, -1, 0, 1, true },
	{ FUSE_GETXATTR, 8, -1, 0, 1, false },
	{ FUSE_LISTXATTR, 8, -1, 0, 0, false },
	{ FUSE_REMOVEXATTR, 0, -1, -1, 1, false },
	{ FUSE_FLUSH, 24, 0, -1, 0, false },
	{ FUSE_OPENDIR, 8, -1, -1, 0, false },
	{ FUSE_READDIR, 40, 0, 16, 0, false },
	{ FUSE_READDIRPLUS, 40, 0, 16, 0, false },
	{ FUSE_RELEASEDIR, 24, 0, -1, 0, false },
	{ FUSE_FSYNCDIR, 16, 0, -1, 0, false },
	{ FUSE_GETLK, 48, 0, -1, 0, false },
	{ FUSE_SETLK, 48, 0, -1, 0, false },
	{ FUSE_ACCESS, 8, -1, -1, 0, false },
	{ FUSE_CREATE, 16, -1, -1, 1, false },
	{ FUSE_IOCTL, 32, 0, 24, 0, true },
	{ FUSE_POLL, 24, 0, -1, 0, false },
	{ FUSE_FALLOCATE, 32, 0, -1, 0, false },
	{ FUSE_LSEEK, 24, 0, -1, 0, false },
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

/* Beyond those: */
enum { STEP_INTERRUPT = SHAPES, STEP_JOB, STEP_RESTART, STEP_OPEN_CALL, STEP_WRITE_CALL, STEPS };

struct request {
	uint64_t unique; /* 0: the place is free */
	uint32_t opcode, len;
	unsigned char *bytes; /* owned */
};

struct kernel {
	struct world *world;
	struct input_bytes *input;
	struct request held[HELD_MAX]; /* without an answer */
	uint64_t nodes[KNOWN_MAX], files[KNOWN_MAX];
	size_t node_count, file_count;
	uint64_t unique;
	int restarts;
	bool can_resend, may_poke;
	bool is_poked; /* a server was out of its mind before it died: nothing holds but that the next lives */
};

static void know(uint64_t *list, size_t *count, uint64_t number)
{
	list[(*count)++ % KNOWN_MAX] = number;
}

/* One that was given, or the input's own. */
static uint64_t pick(struct kernel *kernel, const uint64_t *list, size_t count)
{
	uint64_t which = input_number(kernel->input, 1);
	size_t known = count < KNOWN_MAX ? count : KNOWN_MAX;
	if (which >= 240 || known == 0)
		return input_number(kernel->input, 8);
	return list[which % known];
}

/* ---- answers */

static struct request *find(struct kernel *kernel, uint64_t unique)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (kernel->held[i].unique == unique)
			return &kernel->held[i];
	return NULL;
}

static void drop(struct request *request)
{
	free(request->bytes);
	memset(request, 0, sizeof(*request));
}

static void learn(struct kernel *kernel, uint32_t opcode, const unsigned char *body, size_t len)
{
	uint64_t number = 0;
	if (len < sizeof(number))
		return;
	memcpy(&number, body, sizeof(number));
	if (opcode == FUSE_OPEN || opcode == FUSE_OPENDIR)
		know(kernel->files, &kernel->file_count, number);
	if (opcode == FUSE_LOOKUP || opcode == FUSE_MKDIR || opcode == FUSE_CREATE ||
		opcode == FUSE_MKNOD)
		know(kernel->nodes, &kernel->node_count, number);
}

static void hear(struct kernel *kernel)
{
	static unsigned char bytes[1 << 21];
	struct fuse_out_header out;
	for (;;) {
		ssize_t got = recv(kernel->world->device, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got < 0)
			return;
		assert((size_t)got >= sizeof(out));
		memcpy(&out, bytes, sizeof(out));
		assert(out.len == (size_t)got);
		if (out.unique == 0) /* news */
			continue;
		assert(out.error <= 0 && out.error > -1000);
		struct request *request = find(kernel, out.unique & ~RESEND_BIT);
		if (!request && out.unique == 2) /* of FUSE_INIT */
			continue;
		if (!request && kernel->is_poked)
			continue;
		assert(request != NULL); /* a second answer, or one that nobody asked for */
		if (out.error == 0)
			learn(kernel, request->opcode, bytes + sizeof(out),
				(size_t)got - sizeof(out));
		drop(request);
	}
}

static bool may_be_held(uint32_t opcode)
{
	return opcode == FUSE_READ || opcode == FUSE_WRITE;
}

static bool has_no_answer(uint32_t opcode)
{
	return opcode == FUSE_FORGET || opcode == FUSE_INTERRUPT;
}

/* Until the server has dealt with all that was sent. */
static void let_serve(struct kernel *kernel, uint64_t raw)
{
	for (int turn = 0; turn < 100 && kernel->world->state->received != raw; turn++)
		world_turn(kernel->world);
	assert(kernel->world->state->received == raw || kernel->is_poked);
	hear(kernel);
}

static void send_bytes(
	struct kernel *kernel, const unsigned char *bytes, uint32_t len, uint64_t raw)
{
	assert(send(kernel->world->device, bytes, len, 0) == (ssize_t)len);
	let_serve(kernel, raw);
}

/* ---- requests */

static void put_string(struct kernel *kernel, unsigned char *body, size_t *at)
{
	static const char *const names[] = { "one", "two", "call", "calls", "result.json", "run",
		"sub", "file", "link", "fifo", ".pegfs", "stats", "errors", "config", "cancel",
		"status", "log", "tools.json", "prompt.md", "x", "progress", "request.json" };
	size_t len, which = input_number(kernel->input, 1);
	if (which < sizeof(names) / sizeof(*names)) {
		strcpy((char *)body + *at, names[which]);
	} else {
		const uint8_t *text = input_take(kernel->input, which, &len);
		memcpy(body + *at, text, len);
		body[*at + len] = '\0';
	}
	*at += strlen((char *)body + *at) + 1;
}

static struct request *new_request(struct kernel *kernel)
{
	struct request *request = find(kernel, 0);
	kernel->unique += 2;
	return request;
}

static void send_request(struct kernel *kernel, uint32_t opcode, uint64_t node,
	const unsigned char *body, size_t body_len)
{
	static const uint32_t users[] = { 0, 1000, 1000, 1001 };
	struct request *request = new_request(kernel);
	if (!request)
		return;
	const uint64_t who = input_number(kernel->input, 1);
	const struct fuse_in_header header = { .len = (uint32_t)(sizeof(header) + body_len),
		.opcode = opcode,
		.unique = kernel->unique,
		.nodeid = node,
		.uid = users[who % 4],
		.gid = users[who % 4],
		.pid = who & 16 ? (uint32_t)getpid() : 0 };
	*request = (struct request){ .unique = header.unique, .opcode = opcode, .len = header.len };
	request->bytes = malloc(header.len);
	assert(request->bytes != NULL);
	memcpy(request->bytes, &header, sizeof(header));
	memcpy(request->bytes + sizeof(header), body, body_len);
	const uint64_t unique = header.unique;
	send_bytes(kernel, request->bytes, header.len, unique);
	if (has_no_answer(opcode))
		drop(request);
	else
		assert(may_be_held(opcode) || request->unique != unique || kernel->is_poked);
}

static void step_request(struct kernel *kernel, const struct shape *shape)
{
	static unsigned char body[8192];
	size_t at = shape->size, len;
	uint32_t length = 0;
	memset(body, 0, shape->size);
	uint64_t node = pick(kernel, kernel->nodes, kernel->node_count);
	const uint8_t *bytes =
		input_take(kernel->input, input_number(kernel->input, 1) % (shape->size + 1), &len);
	memcpy(body, bytes, len);
	if (shape->fh_at >= 0) {
		uint64_t file = pick(kernel, kernel->files, kernel->file_count);
		memcpy(body + shape->fh_at, &file, sizeof(file));
	}
	if (shape->has_data) {
		const uint8_t *data =
			input_take(kernel->input, input_number(kernel->input, 2) % DATA_MAX, &len);
		length = (uint32_t)len;
		memcpy(body + shape->length_at, &length, sizeof(length));
		if (shape->opcode == FUSE_SETXATTR)
			put_string(kernel, body, &at);
		memcpy(body + at, data, len);
		at += len;
	} else {
		if (shape->length_at >= 0) {
			memcpy(&length, body + shape->length_at, sizeof(length));
			length %= READ_MAX;
			memcpy(body + shape->length_at, &length, sizeof(length));
		}
		for (int i = 0; i < shape->strings; i++)
			put_string(kernel, body, &at);
	}
	send_request(kernel, shape->opcode, node, body, at);
}

/* Otherwise an input would hardly ever get that far. */
static void step_open_call(struct kernel *kernel)
{
	const unsigned char name[] = "call";
	uint32_t open[2] = { input_number(kernel->input, 1) % 4, 0 };
	uint64_t dir = pick(kernel, kernel->nodes, kernel->node_count);
	send_request(kernel, FUSE_LOOKUP, dir, name, sizeof(name));
	uint64_t node =
		kernel->node_count ? kernel->nodes[(kernel->node_count - 1) % KNOWN_MAX] : 1;
	send_request(kernel, FUSE_OPEN, node, (const unsigned char *)open, sizeof(open));
}

static void step_write_call(struct kernel *kernel)
{
	static const char *const documents[] = { "{}", "{\"a\":\"b\"}", "{\"a\":", "\"x\"}", " ",
		"{\"b\":1}" };
	const char *text = documents[input_number(kernel->input, 1) % 6];
	unsigned char body[sizeof(struct fuse_write_in) + 16];
	struct fuse_write_in in = { .size = (uint32_t)strlen(text) };
	in.fh = pick(kernel, kernel->files, kernel->file_count);
	uint64_t node = pick(kernel, kernel->nodes, kernel->node_count);
	in.offset = input_number(kernel->input, 1);
	memcpy(body, &in, sizeof(in));
	memcpy(body + sizeof(in), text, in.size);
	send_request(kernel, FUSE_WRITE, node, body, sizeof(in) + in.size);
}

static void step_interrupt(struct kernel *kernel)
{
	const struct request *request = &kernel->held[input_number(kernel->input, 1) % HELD_MAX];
	struct {
		struct fuse_in_header header;
		struct fuse_interrupt_in body;
	} message = { .header = { .len = sizeof(message), .opcode = FUSE_INTERRUPT } };
	if (!request->unique)
		return;
	message.header.unique = request->unique | 1;
	message.body.unique = request->unique;
	send_bytes(kernel, (const unsigned char *)&message, sizeof(message), message.header.unique);
}

/* What the kernel does for FUSE_NOTIFY_RESEND. */
static void resend(struct kernel *kernel)
{
	for (size_t i = 0; i < HELD_MAX; i++) {
		const struct request *request = &kernel->held[i];
		if (!request->unique)
			continue;
		struct fuse_in_header header;
		memcpy(&header, request->bytes, sizeof(header));
		header.unique |= RESEND_BIT;
		memcpy(request->bytes, &header, sizeof(header));
		send_bytes(kernel, request->bytes, request->len, header.unique);
	}
}

/* Places of the state, as memory that went wrong. Requests are only as the kernel made them. */
static void poke(struct world *world, void *arg)
{
	struct kernel *kernel = arg;
	struct state *state = world->state;
	const size_t which = input_number(kernel->input, 1) % 4;
	const struct {
		void *at;
		size_t size;
	} places[] = {
		{ &state->generation,
			(size_t)((char *)state->poisons - (char *)&state->generation) },
		{ state->poisons, sizeof(state->poisons) },
		{ &state->polls[which], sizeof(state->polls[0]) },
		{ &state->requests[which], offsetof(struct state_request, head) },
		{ &state->handles[which], sizeof(state->handles[0]) },
		{ state->receive, sizeof(uint32_t) },
	};
	for (uint64_t left = input_number(kernel->input, 1) % 16; left > 0; left--) {
		size_t len,
			place = input_number(kernel->input, 1) % (sizeof(places) / sizeof(*places));
		size_t at = input_number(kernel->input, 1) % places[place].size;
		const uint8_t *bytes = input_take(kernel->input, 1 + at % 8, &len);
		if (len <= places[place].size - at)
			memcpy((char *)places[place].at + at, bytes, len);
	}
	kernel->is_poked = true;
}

static void step(struct kernel *kernel)
{
	uint64_t what = input_number(kernel->input, 1) % STEPS;
	if (what < SHAPES)
		step_request(kernel, &shapes[what]);
	else if (what == STEP_INTERRUPT)
		step_interrupt(kernel);
	else if (what == STEP_OPEN_CALL)
		step_open_call(kernel);
	else if (what == STEP_WRITE_CALL)
		step_write_call(kernel);
	else if (what == STEP_JOB)
		world_on_job(kernel->input);
	else if (kernel->restarts++ < RESTARTS_MAX) {
		world_restart(kernel->world, kernel->may_poke ? poke : NULL, kernel);
		if (kernel->can_resend)
			resend(kernel);
	}
	hear(kernel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_bytes input = { data, size };
	struct kernel kernel = { .input = &input, .unique = 2, .nodes = { 1 }, .node_count = 1 };
	uint64_t how = input_number(&input, 1);
	kernel.can_resend = how & 1;
	kernel.may_poke = how & 2;
	kernel.world = world_start(kernel.can_resend);
	for (int i = 0; i < STEPS_MAX && input.len > 0; i++)
		step(&kernel);
	world_end(kernel.world);
	for (size_t i = 0; i < HELD_MAX; i++)
		drop(&kernel.held[i]);
	return 0;
}
