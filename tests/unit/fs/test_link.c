/* The link between supervisor and server: what one sends, the other takes, and never more than it has room for. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fs/link.h"
#include "tests/unit/fs/pages.h"
#include "tests/unit/scratch.h"

#define FDS_MAX 8

struct world {
	struct link link;
	struct state state;
	int peer;
	size_t fds; /* at the start */
};

static int setup(void **slot)
{
	struct world *world = pages_calloc(sizeof(*world));
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	link_init(&world->link, pair[0], &world->state);
	world->peer = pair[1];
	world->fds = scratch_count_fds();
	*slot = world;
	return 0;
}

static int teardown(void **slot)
{
	struct world *world = *slot;
	size_t left = scratch_count_fds();
	size_t fds = world->fds;
	close(world->link.fd);
	close(world->peer);
	link_release(&world->link);
	free(world);
	return left == fds ? 0 : -1;
}

/* size bytes of a message, with so many descriptors. */
static void send_message(
	const struct world *world, enum supervisor_word word, size_t size, size_t fds)
{
	struct supervisor_message message = { .word = (uint32_t)word };
	struct iovec iov = { .iov_base = &message, .iov_len = size };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	memset(&control, 0, sizeof(control));
	int null[FDS_MAX];
	for (size_t i = 0; i < fds; i++)
		null[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fds > 0) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int) * fds) };
		memcpy(CMSG_DATA(&control.header), null, sizeof(int) * fds);
	}
	assert_int_equal(sendmsg(world->peer, &header, 0), (ssize_t)size);
	for (size_t i = 0; i < fds; i++)
		close(null[i]);
}

static void the_end_is_heard(void **slot)
{
	struct world *world = *slot;
	link_hear(&world->link);
	assert_false(world->link.is_to_end);
	send_message(world, SUPERVISOR_GO, sizeof(struct supervisor_message), 0);
	link_hear(&world->link);
	assert_false(world->link.is_to_end);
	send_message(world, SUPERVISOR_END, sizeof(struct supervisor_message), 0);
	link_hear(&world->link);
	assert_true(world->link.is_to_end);
}

/* Room for three descriptors is room for four, and the fourth is not to lie where it is not expected. */
static void more_descriptors_than_there_is_room_for_are_closed(void **slot)
{
	struct world *world = *slot;
	for (size_t count = 0; count <= FDS_MAX; count++) {
		send_message(world, SUPERVISOR_GO, sizeof(struct supervisor_message), count);
		link_hear(&world->link);
		assert_int_equal(scratch_count_fds(), world->fds);
	}
	assert_false(world->link.is_to_end);
}

static void half_a_message_is_the_end(void **slot)
{
	struct world *world = *slot;
	send_message(world, SUPERVISOR_GO, 3, 2);
	link_hear(&world->link);
	assert_true(world->link.is_to_end);
}

static void descriptors_of_a_host_are_given_and_taken(void **slot)
{
	struct world *world = *slot;
	const struct keeper *keeper = &world->link.keeper;
	int fds[KEEPER_FDS];
	send_message(world, SUPERVISOR_KEPT, sizeof(struct supervisor_message), KEEPER_FDS);
	assert_int_equal(keeper->take(keeper->arg, 5, fds), 0);
	for (size_t i = 0; i < KEEPER_FDS; i++)
		assert_int_equal(close(fds[i]), 0);
	/* Fewer are none. */
	send_message(world, SUPERVISOR_KEPT, sizeof(struct supervisor_message), 0);
	assert_int_equal(keeper->take(keeper->arg, 5, fds), -ENOENT);
	send_message(world, SUPERVISOR_KEPT, sizeof(struct supervisor_message), KEEPER_FDS - 1);
	assert_int_equal(keeper->take(keeper->arg, 5, fds), -ENOENT);
}

#define link_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		link_test(the_end_is_heard),
		link_test(more_descriptors_than_there_is_room_for_are_closed),
		link_test(half_a_message_is_the_end),
		link_test(descriptors_of_a_host_are_given_and_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
