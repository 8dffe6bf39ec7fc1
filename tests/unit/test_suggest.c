#include "core/tools/suggest.h"
#include "tests/unit/golden.h"

static const char *closest(const char *given, const char *const *known)
{
	struct suggest suggest;
	suggest_begin(&suggest, given);
	for (; *known; known++)
		suggest_offer(&suggest, *known);
	return suggest.best;
}

static const char *const inputs[] = { "query", "max_results", "api_token", "url", "id", NULL };

static void misspelt_names_find_the_right_one(void **state)
{
	(void)state;
	static const struct {
		const char *given, *wanted;
	} rows[] = {
		{ "qurey", "query" },
		{ "Query", "query" },
		{ "querry", "query" },
		{ "maxResults", "max_results" },
		{ "max-results", "max_results" },
		{ "max_result", "max_results" },
		{ "results", "max_results" },
		{ "apitoken", "api_token" },
		{ "api_tokne", "api_token" },
		{ "token", "api_token" },
		{ "ulr", "url" },
		{ "uri", "url" },
		{ "page_url", "url" },
		{ "is", "id" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *best = closest(rows[i].given, inputs);
		if (!best || strcmp(best, rows[i].wanted) != 0)
			fail_msg("%s: %s", rows[i].given, best ? best : "nothing");
	}
}

static void a_misspelling_goes_before_a_part(void **state)
{
	(void)state;
	static const char *const known[] = { "file_path", "fill", NULL };
	assert_string_equal(closest("file", known), "fill");
}

static void distant_names_find_nothing(void **state)
{
	(void)state;
	assert_null(closest("colour", inputs));
	assert_null(closest("x", inputs));
	assert_null(closest("", inputs));
	assert_null(closest("__", inputs));
	static const char *const none[] = { NULL };
	assert_null(closest("query", none));
}

static void long_names_are_not_compared(void **state)
{
	(void)state;
	char name[4096];
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	const char *const known[] = { name, "aaa", NULL };
	assert_null(closest(name, known));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misspelt_names_find_the_right_one),
		cmocka_unit_test(a_misspelling_goes_before_a_part),
		cmocka_unit_test(distant_names_find_nothing),
		cmocka_unit_test(long_names_are_not_compared),
	};
	return cmocka_run_group_tests_name("suggest", tests, NULL, NULL);
}
