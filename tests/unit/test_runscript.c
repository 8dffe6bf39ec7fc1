/*
 * The script against a plain file in place of `call`: what it writes lies at the file's beginning
 * afterwards, and what it reads is what the file held behind that.
 */
#include <sys/wait.h>

#include "core/tools/runscript.h"
#include "tests/unit/golden.h"

static const char *const shells[] = { "dash", "bash", "busybox sh", "zsh", "mksh", "ksh" };

/* A directory of a tool, with `run` and `call`. */
struct place {
	char dir[64];
	char *run, *call, *out, *err; /* owned */
};

static void put_file(const char *path, const void *bytes, size_t len)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, bytes, len), 0);
}

static struct buf get_file(const char *path)
{
	struct buf bytes = BUF_INIT(GOLDEN_SIZE_MAX);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(io_read_all(fd, &bytes), 0);
	return bytes;
}

static void open_place(struct place *place)
{
	strcpy(place->dir, "/tmp/pegfs-test-runscript-XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	place->run = xasprintf("%s/run", place->dir);
	place->call = xasprintf("%s/call", place->dir);
	place->out = xasprintf("%s/out", place->dir);
	place->err = xasprintf("%s/err", place->dir);
	put_file(place->run, runscript_text, runscript_len);
}

static void close_place(struct place *place)
{
	unlink(place->run);
	unlink(place->call);
	unlink(place->out);
	unlink(place->err);
	assert_int_equal(rmdir(place->dir), 0);
	free(place->run);
	free(place->call);
	free(place->out);
	free(place->err);
}

/* Runs `SHELL run WORDS`, a part of a command line; returns the exit status. */
static int start(const struct place *place, const char *shell, const char *words)
{
	auto_free char *command =
		xasprintf("%s %s %s >%s 2>%s", shell, place->run, words, place->out, place->err);
	int status = system(command);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Fails unless it writes request for words; then gives it answer to read, and returns its status. */
static int transact(const struct place *place, const char *shell, const char *words,
	const struct buf *request, const char *answer)
{
	put_file(place->call, "", 0);
	assert_int_equal(start(place, shell, words), 1); /* no answer */
	auto_buf struct buf written = get_file(place->call);
	assert_int_equal(written.len, request->len);
	assert_memory_equal(written.data, request->data, request->len);
	buf_puts(&written, answer);
	put_file(place->call, written.data, written.len);
	return start(place, shell, words);
}

static void expect(const struct place *place, const char *out, const char *err)
{
	auto_buf struct buf got_out = get_file(place->out);
	auto_buf struct buf got_err = get_file(place->err);
	assert_string_equal(buf_str(&got_out), out);
	assert_string_equal(buf_str(&got_err), err);
}

static bool has(const char *shell)
{
	auto_free char *command = xasprintf("command -v %s >/dev/null", shell);
	return system(command) == 0;
}

/* In each shell that is here; dash or another /bin/sh always is. */
static void in_each_shell(void check(const struct place *place, const char *shell))
{
	size_t count = 0;
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (!has(shells[i]))
			continue;
		struct place place;
		open_place(&place);
		check(&place, shells[i]);
		close_place(&place);
		count++;
	}
	assert_true(count > 0);
}

static struct buf request_of(const struct place *place, const char *count)
{
	struct buf request = BUF_INIT(4096);
	buf_printf(&request, "run%c%s%c%s%c", 0, count, 0, place->run, 0);
	return request;
}

static void check_words(const struct place *place, const char *shell)
{
	auto_buf struct buf request = request_of(place, "4");
	buf_printf(&request, "--name%c%c it's\n\"$x\" \\n%%s%c-n%c", 0, 0, 0, 0);
	const char *words = "--name '' ' it'\\''s\n\"$x\" \\n%s' -n </dev/null";
	assert_int_equal(transact(place, shell, words, &request, "0 1 0\nHello\n\ntext"), 0);
	expect(place, "Hello\n\ntext", "");
}

static void words_are_handed_over_as_they_are(void **state)
{
	(void)state;
	in_each_shell(check_words);
}

static void check_input(const struct place *place, const char *shell)
{
	auto_buf struct buf request = request_of(place, "2+");
	buf_printf(&request, "--full%c--json%c{\"a\":\n1}\n%cend%c", 0, 0, 0, 0);
	auto_free char *command =
		xasprintf("printf '{\"a\":\\n1}\\n' | %s %s --full --json >/dev/null 2>&1", shell,
			place->run);
	put_file(place->call, "", 0);
	assert_int_equal(WEXITSTATUS(system(command)), 1);
	auto_buf struct buf written = get_file(place->call);
	assert_int_equal(written.len, request.len);
	assert_memory_equal(written.data, request.data, request.len);
}

static void standard_input_follows_where_no_word_is_an_input(void **state)
{
	(void)state;
	in_each_shell(check_input);
}

static void check_input_of_none(const struct place *place, const char *shell)
{
	auto_buf struct buf closed = request_of(place, "0");
	assert_int_equal(transact(place, shell, "<&-", &closed, "0 1 0\n"), 0);
	auto_buf struct buf empty = request_of(place, "0+");
	buf_printf(&empty, "%cend%c", 0, 0);
	assert_int_equal(transact(place, shell, "</dev/null", &empty, "0 1 0\n"), 0);
	auto_buf struct buf cut = request_of(place, "1+");
	buf_printf(&cut, "-%c%ccut%c", 0, 0, 0);
	assert_int_equal(transact(place, shell, "- </", &cut, "2 2 0\nno\n"), 2);
	expect(place, "", "no\n");
}

static void standard_input_may_be_closed_empty_or_bad(void **state)
{
	(void)state;
	in_each_shell(check_input_of_none);
}

static void check_answers(const struct place *place, const char *shell)
{
	auto_buf struct buf request = request_of(place, "1");
	buf_printf(&request, "x%c", 0);
	assert_int_equal(transact(place, shell, "x", &request, "1 2 0\nfailed\n"), 1);
	expect(place, "", "failed\n");
	assert_int_equal(transact(place, shell, "x", &request, "1 1 0\n{\"isError\":true}\n"), 1);
	expect(place, "{\"isError\":true}\n", "");
	assert_int_equal(transact(place, shell, "x", &request, "0 1 2\n  a \\n\nb\ntext"), 0);
	expect(place, "text", "  a \\n\nb\n");
	assert_int_equal(transact(place, shell, "x", &request, "2 2 1\nnote\nbad\n"), 2);
	expect(place, "", "note\nbad\n");
}

static void answers_go_where_they_say(void **state)
{
	(void)state;
	in_each_shell(check_answers);
}

static void check_none(const struct place *place, const char *shell)
{
	assert_int_equal(start(place, shell, "x"), 2);
	auto_free char *said = xasprintf(
		"%s: there is no %s; run it where it is, or by a link\n", place->run, place->call);
	expect(place, "", said);
	assert_int_equal(access(place->call, F_OK), -1);
}

static void without_a_call_file_nothing_is_made(void **state)
{
	(void)state;
	in_each_shell(check_none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_handed_over_as_they_are),
		cmocka_unit_test(standard_input_follows_where_no_word_is_an_input),
		cmocka_unit_test(standard_input_may_be_closed_empty_or_bad),
		cmocka_unit_test(answers_go_where_they_say),
		cmocka_unit_test(without_a_call_file_nothing_is_made),
	};
	return cmocka_run_group_tests_name("runscript", tests, NULL, NULL);
}
