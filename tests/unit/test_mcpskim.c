#include "core/cmd/mcpskim.h"

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

static void expect(const char *line, const char *id)
{
	json_t *found = mcpskim_id(line, strlen(line));
	char *text = found ? json_dumps(found, JSON_ENCODE_ANY) : NULL;
	if (id)
		assert_string_equal(text ? text : "(none)", id);
	else
		assert_null(text);
	free(text);
	json_decref(found);
}

static void an_id_is_found_in_the_outermost_object(void **state)
{
	(void)state;
	expect("{\"id\":7,\"x\":1e999}", "7");
	expect(" {\"x\":{\"id\":1},\"y\":[{\"id\":2}] , \"id\" : \"a\\\"b\" ,", "\"a\\\"b\"");
	expect("{\"id\":-12", "-12");
	expect("{\"x\":\"\\\"id\\\":5\",\"id\":6}", "6");
	expect("{\"x\":\"id\",\"id\":\"\"}", "\"\"");
	expect("{\"x\":\"{[\",\"id\":3", "3");
}

static void what_is_no_id_is_not_one(void **state)
{
	(void)state;
	expect("", NULL);
	expect("garbage \"id\":1", NULL);
	expect("[{\"id\":1}]", NULL);
	expect("{\"x\":{\"id\":1}", NULL);
	expect("{\"id\"", NULL);
	expect("{\"id\":", NULL);
	expect("{\"id\":\"open", NULL);
	expect("{\"id\":\"open\\", NULL);
	expect("{\"id\":null}", NULL);
	expect("{\"id\":1.5}", NULL);
	expect("{\"id\":99999999999999999999}", NULL);
	expect("{\"id\":\"\\ud800\"}", NULL);
	expect("{\"id\":{\"id\":1}}", NULL);
	expect("{\"ID\":1}", NULL);
	expect("{\"x\":\"open", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_is_found_in_the_outermost_object),
		cmocka_unit_test(what_is_no_id_is_not_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
