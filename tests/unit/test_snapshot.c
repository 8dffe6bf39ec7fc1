#include "core/tools/snapshot.h"
#include "tests/unit/golden.h"

static struct tool *named(const char *name)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup(name);
	return tool;
}

/* A snapshot of tools with these names, which ascend. */
static struct snapshot *snapshot_of(const char *const *names, size_t count)
{
	struct tool **tools = xcalloc(count, sizeof(*tools));
	struct faults none = FAULTS_INIT;
	for (size_t i = 0; i < count; i++)
		tools[i] = named(names[i]);
	struct snapshot *snapshot = snapshot_new(tools, count, &none, 1);
	for (size_t i = 0; i < count; i++)
		tool_unref(tools[i]);
	free(tools);
	return snapshot;
}

static uint32_t id_of(const char *name)
{
	struct snapshot *snapshot = snapshot_of(&name, 1);
	uint32_t id = snapshot->tools[0]->id;
	snapshot_unref(snapshot);
	return id;
}

static void tools_are_found_by_name_and_by_id(void **state)
{
	(void)state;
	static const char *const names[] = { "a", "ab", "b", "call", "\xc3\xa4" };
	struct snapshot *snapshot = snapshot_of(names, 5);
	for (size_t i = 0; i < 5; i++) {
		struct tool *tool = snapshot_find(snapshot, names[i]);
		assert_string_equal(tool->name, names[i]);
		assert_true(tool->id != 0);
		assert_ptr_equal(snapshot_find_id(snapshot, tool->id), tool);
	}
	assert_null(snapshot_find(snapshot, "aa"));
	assert_null(snapshot_find(snapshot, ""));
	assert_null(snapshot_find(snapshot, "z"));
	assert_null(snapshot_find_id(snapshot, 0));
	for (size_t i = 1; i < 5; i++)
		assert_true(snapshot->by_id[i - 1]->id < snapshot->by_id[i]->id);
	snapshot_unref(snapshot);
}

static void an_empty_snapshot_finds_nothing(void **state)
{
	(void)state;
	struct snapshot *snapshot = snapshot_of(NULL, 0);
	assert_null(snapshot_find(snapshot, "a"));
	assert_null(snapshot_find_id(snapshot, 1));
	assert_ptr_equal(snapshot_ref(snapshot), snapshot);
	snapshot_unref(snapshot);
	snapshot_unref(snapshot);
	snapshot_unref(NULL);
}

static void an_id_depends_on_the_name_alone(void **state)
{
	(void)state;
	static const char *const names[] = { "a", "b", "hello" };
	struct snapshot *snapshot = snapshot_of(names, 3);
	assert_int_equal(snapshot_find(snapshot, "hello")->id, id_of("hello"));
	/* Node numbers outlive the daemon: this one must never change. */
	assert_int_equal(id_of("hello"), UINT32_C(0x888d766e));
	snapshot_unref(snapshot);
}

/* ---- collisions: two names with one hash, found by trying */

struct hashed {
	uint32_t id;
	unsigned number;
};

static int compare_hashed(const void *left, const void *right)
{
	const struct hashed *a = left, *b = right;
	return a->id < b->id ? -1 : a->id > b->id;
}

#define TRIED 200000

/* Names without a pattern: FNV keeps similar ones apart. */
static void make_name(char name[16], unsigned number)
{
	unsigned mixed = number * 2654435761u;
	snprintf(name, 16, "t%08x%x", mixed ^ mixed >> 13, number & 0xfff);
}

/* Fills both with names of one hash, the smaller first. */
static void find_collision(char one[16], char other[16])
{
	struct hashed *hashed = xcalloc(TRIED, sizeof(*hashed));
	for (unsigned i = 0; i < TRIED; i++) {
		char name[16];
		make_name(name, i);
		hashed[i] = (struct hashed){ id_of(name), i };
	}
	qsort(hashed, TRIED, sizeof(*hashed), compare_hashed);
	size_t at = 1;
	while (at < TRIED && hashed[at].id != hashed[at - 1].id)
		at++;
	assert_true(at < TRIED);
	unsigned a = hashed[at - 1].number, b = hashed[at].number;
	make_name(one, a);
	make_name(other, b);
	if (strcmp(one, other) > 0) {
		make_name(one, b);
		make_name(other, a);
	}
	free(hashed);
}

static void of_two_names_with_one_hash_the_later_gets_another_id(void **state)
{
	(void)state;
	char one[16], other[16];
	find_collision(one, other);
	assert_int_equal(id_of(one), id_of(other));
	const char *const names[] = { one, other };
	struct snapshot *snapshot = snapshot_of(names, 2);
	uint32_t salted = snapshot->tools[1]->id;
	assert_int_equal(snapshot->tools[0]->id, id_of(one));
	assert_true(salted != id_of(other) && salted != 0);
	assert_ptr_equal(snapshot_find_id(snapshot, salted), snapshot->tools[1]);
	struct snapshot *again = snapshot_of(names, 2);
	assert_int_equal(again->tools[1]->id, salted);
	snapshot_unref(again);
	snapshot_unref(snapshot);

	/* One that had the plain hash in an earlier snapshot is replaced by a copy. */
	struct faults none = FAULTS_INIT;
	struct tool *late[] = { named(other) };
	struct snapshot *first = snapshot_new(late, 1, &none, 1);
	struct tool *both[] = { named(one), tool_ref(late[0]) };
	struct snapshot *second = snapshot_new(both, 2, &none, 2);
	assert_ptr_equal(first->tools[0], late[0]);
	assert_int_equal(first->tools[0]->id, id_of(other));
	assert_ptr_not_equal(second->tools[1], late[0]);
	assert_ptr_equal(second->tools[1], both[1]);
	assert_int_equal(second->tools[1]->id, salted);
	assert_false(snapshot_equal(first, second));
	snapshot_unref(first);
	snapshot_unref(second);
	tool_unref(late[0]);
	tool_unref(both[0]);
	tool_unref(both[1]);
}

static void snapshots_of_the_same_tools_and_faults_are_equal(void **state)
{
	(void)state;
	struct tool *tools[] = { named("a"), named("b") };
	struct faults none = FAULTS_INIT, some = FAULTS_INIT;
	struct snapshot *a = snapshot_new(tools, 2, &none, 1);
	struct snapshot *b = snapshot_new(tools, 2, &none, 2);
	struct snapshot *c = snapshot_new(tools, 1, &none, 3);
	faults_add(&some, FAULT_WARNING, "x", 0, 0, "y");
	struct snapshot *d = snapshot_new(tools, 2, &some, 4);
	assert_int_equal(some.count, 0);
	assert_true(snapshot_equal(a, b));
	assert_false(snapshot_equal(a, c));
	assert_false(snapshot_equal(a, d));
	snapshot_unref(a);
	snapshot_unref(b);
	snapshot_unref(c);
	snapshot_unref(d);
	tool_unref(tools[0]);
	tool_unref(tools[1]);
}

/* Ids and order are those of a snapshot that is made anew, whatever went before. */
static void assert_like_new(const struct snapshot *snapshot)
{
	struct tool *tools[200];
	struct faults none = FAULTS_INIT;
	for (size_t i = 0; i < snapshot->count; i++)
		tools[i] = named(snapshot->tools[i]->name);
	struct snapshot *new = snapshot_new(tools, snapshot->count, &none, 1);
	for (size_t i = 0; i < snapshot->count; i++) {
		assert_int_equal(snapshot->tools[i]->id, new->tools[i]->id);
		assert_string_equal(snapshot->by_id[i]->name, new->by_id[i]->name);
		tool_unref(tools[i]);
	}
	snapshot_unref(new);
}

static void a_snapshot_follows_another(void **state)
{
	(void)state;
	struct tool *tools[200];
	struct faults some = FAULTS_INIT;
	char one[16], other[16];
	find_collision(one, other);
	for (size_t i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "m%03zu", i * 2);
		tools[i] = named(name);
	}
	faults_add(&some, FAULT_WARNING, "x", 0, 0, "y");
	struct snapshot *first = snapshot_new(tools, 100, &some, 1);
	/* One is replaced, one goes, one comes. */
	tool_unref(tools[10]);
	tools[10] = named("m020");
	tool_unref(tools[20]);
	tools[20] = named("m041");
	struct snapshot *second = snapshot_next(first, tools, 100, NULL, 2);
	assert_like_new(second);
	assert_ptr_equal(second->faults.items, first->faults.items);
	assert_int_equal(second->tools[10]->id, first->tools[10]->id);
	snapshot_unref(first);
	assert_string_equal(second->faults.items[0].code, "x");
	/* Two with one hash, and then the first of them goes; names begin with 't'. */
	struct tool *a = tools[100] = named(one), *b = tools[101] = named(other);
	struct snapshot *third = snapshot_next(second, tools, 102, NULL, 3);
	assert_like_new(third);
	assert_true(third->has_salted);
	tools[100] = tools[101];
	struct snapshot *fourth = snapshot_next(third, tools, 101, NULL, 4);
	assert_like_new(fourth);
	assert_ptr_not_equal(tools[100], b);
	assert_false(fourth->has_salted);
	tool_unref(a);
	snapshot_unref(second);
	snapshot_unref(third);
	/* All at once. */
	for (size_t i = 0; i < 101; i++) {
		struct tool *new = named(tools[i]->name);
		tool_unref(tools[i]);
		tools[i] = new;
	}
	struct snapshot *fifth = snapshot_next(fourth, tools, 101, NULL, 5);
	assert_like_new(fifth);
	snapshot_unref(fourth);
	snapshot_unref(fifth);
	for (size_t i = 0; i < 101; i++)
		tool_unref(tools[i]);
}

static void note_name(void *arg, struct tool *tool)
{
	strcat(arg, tool->name);
}

static void new_tools_are_named(void **state)
{
	(void)state;
	struct tool *one[] = { named("a"), named("c"), named("e") };
	struct tool *two[] = { tool_ref(one[0]), named("b"), named("c"), tool_ref(one[2]),
		named("f") };
	struct faults none = FAULTS_INIT;
	struct snapshot *before = snapshot_new(one, 3, &none, 1);
	struct snapshot *now = snapshot_next(before, two, 5, NULL, 2);
	char names[16] = "";
	snapshot_each_new(before, now, note_name, names);
	assert_string_equal(names, "bcf");
	*names = '\0';
	snapshot_each_new(now, before, note_name, names);
	assert_string_equal(names, "c");
	*names = '\0';
	snapshot_each_new(NULL, before, note_name, names);
	assert_string_equal(names, "ace");
	snapshot_each_new(now, now, note_name, names);
	assert_string_equal(names, "ace");
	snapshot_unref(before);
	snapshot_unref(now);
	for (size_t i = 0; i < 3; i++)
		tool_unref(one[i]);
	for (size_t i = 0; i < 5; i++)
		tool_unref(two[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tools_are_found_by_name_and_by_id),
		cmocka_unit_test(an_empty_snapshot_finds_nothing),
		cmocka_unit_test(an_id_depends_on_the_name_alone),
		cmocka_unit_test(of_two_names_with_one_hash_the_later_gets_another_id),
		cmocka_unit_test(snapshots_of_the_same_tools_and_faults_are_equal),
		cmocka_unit_test(a_snapshot_follows_another),
		cmocka_unit_test(new_tools_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
