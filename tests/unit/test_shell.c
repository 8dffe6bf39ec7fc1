#include "core/tools/shell.h"
#include "tests/unit/golden.h"

/* What a shell prints when it runs the text. */
static struct buf output_of(const char *shell, const char *script)
{
	struct buf output = BUF_INIT(GOLDEN_SIZE_MAX);
	auto_free char *path = xstrdup("/tmp/pegfs-test-shell-XXXXXX");
	auto_close int fd = mkstemp(path);
	assert_true(fd >= 0 && io_write_all(fd, script, strlen(script)) == 0);
	auto_free char *command = xasprintf("%s %s", shell, path);
	FILE *pipe = popen(command, "re");
	assert_non_null(pipe);
	assert_int_equal(io_read_all(fileno(pipe), &output), 0);
	assert_int_equal(pclose(pipe), 0);
	unlink(path);
	return output;
}

static const char *const shells[] = { "sh", "bash", "busybox sh" };

static const char *const awkward[] = { "plain", "", "a b", "it's", "''", "$HOME `id` $(id)", "a\nb",
	"back\\slash \\n", "\"", "*?[x]~", "-n", "#x", "{\"a\":1}", "\xc3\xa9" };

static void a_word_reaches_the_program_whole(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
		for (size_t i = 0; i < sizeof(awkward) / sizeof(awkward[0]); i++) {
			auto_buf struct buf script = BUF_INIT(4096);
			buf_puts(&script, "printf '%s' ");
			shell_word(&script, awkward[i]);
			auto_buf struct buf output = output_of(shells[s], buf_str(&script));
			assert_string_equal(buf_str(&output), awkward[i]);
		}
	}
}

static void a_plain_word_is_not_quoted(void **state)
{
	(void)state;
	auto_buf struct buf word = BUF_INIT(4096);
	shell_word(&word, "/officer/tools/my_db-1.2/call");
	assert_string_equal(buf_str(&word), "/officer/tools/my_db-1.2/call");
}

static const char *const documents[] = { "{}", "{\"name\":\"Ada\"}", "{\"a\":\"it's\"}",
	"{\"a\":\"two\\nlines \\\\ $HOME `id` %s\"}",
	"{\"a\":\"\xf0\x9f\x98\x80\",\"b\":\"'\\\"'\"}" };

static void a_document_arrives_byte_for_byte(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
		for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
			auto_buf struct buf script = BUF_INIT(4096);
			shell_send(&script, documents[i], ">&1", " && echo done");
			auto_buf struct buf output = output_of(shells[s], buf_str(&script));
			auto_free char *wanted = xasprintf("%s\ndone\n", documents[i]);
			assert_string_equal(buf_str(&output), wanted);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_reaches_the_program_whole),
		cmocka_unit_test(a_plain_word_is_not_quoted),
		cmocka_unit_test(a_document_arrives_byte_for_byte),
	};
	return cmocka_run_group_tests_name("shell", tests, NULL, NULL);
}
