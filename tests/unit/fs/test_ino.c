/* Node numbers: what goes in comes out, and nothing of one class is ever of another. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>

#include "fs/ino.h"
#include "fs/node.h"

static const uint64_t edges[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0xfffff, 0x7fffffff,
	0x80000000, 0xffffffff, (UINT64_C(1) << 51) | 5, (UINT64_C(1) << 52) - 1 };
#define EDGES (sizeof(edges) / sizeof(*edges))

static void a_static_number_holds_kind_version_and_tool(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 256; kind++)
		for (size_t i = 0; i < EDGES; i++)
			for (size_t j = 0; j < EDGES; j++) {
				uint32_t version = (uint32_t)edges[i], id = (uint32_t)edges[j];
				uint64_t ino = ino_static(kind, version, id);
				assert_int_equal(ino_class(ino), INO_STATIC);
				assert_int_equal(ino_kind(ino), kind);
				assert_int_equal(ino_tool_id(ino), id);
				/* Another version of 20 bits is another number. */
				assert_true(ino != ino_static(kind, version + 1, id));
				assert_true(ino == ino_static(kind, version + (1u << 20), id));
			}
}

static void a_call_s_number_holds_the_tool_and_is_new_each_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < EDGES; i++)
		for (size_t j = 0; j < EDGES; j++) {
			uint64_t ino = ino_call(edges[i], (uint32_t)edges[j]);
			assert_int_equal(ino_class(ino), INO_CALL);
			assert_int_equal(ino_tool_id(ino), (uint32_t)edges[j]);
			for (uint64_t later = 1; later < 1000; later++)
				assert_true(ino != ino_call(edges[i] + later, (uint32_t)edges[j]));
		}
}

static void numbers_of_a_call_hold_which_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < EDGES; i++) {
		for (unsigned kind = 0; kind < 256; kind++) {
			uint64_t ino = ino_doc(kind, edges[i]);
			assert_int_equal(ino_class(ino), INO_DOC);
			assert_int_equal(ino_kind(ino), kind);
			assert_true(ino_seq(ino) == edges[i]);
		}
		uint64_t ino = ino_id_call(edges[i], edges[i]);
		assert_int_equal(ino_class(ino), INO_ID_CALL);
		assert_true(ino_seq(ino) == edges[i]);
		assert_true(ino != ino_id_call(edges[i] + 1, edges[i]));
	}
}

/* Whatever the hash: never the root's number, nor another class's. */
static void a_file_s_number_is_of_its_class(void **state)
{
	(void)state;
	srand(3);
	for (int i = 0; i < 10000; i++) {
		uint64_t hash = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^ (uint64_t)rand();
		assert_int_equal(ino_class(ino_file(hash)), INO_FILE);
		assert_int_equal(ino_class(ino_file(UINT64_MAX - hash)), INO_FILE);
	}
	assert_true(ino_file(1) != ino_file(2));
	assert_true(ino_file(UINT64_C(1) << 59) != ino_file(0));
}

static void all_kinds_of_nodes_have_room(void **state)
{
	(void)state;
	assert_true(NODE_KINDS <= 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_static_number_holds_kind_version_and_tool),
		cmocka_unit_test(a_call_s_number_holds_the_tool_and_is_new_each_time),
		cmocka_unit_test(numbers_of_a_call_hold_which_it_is),
		cmocka_unit_test(a_file_s_number_is_of_its_class),
		cmocka_unit_test(all_kinds_of_nodes_have_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
