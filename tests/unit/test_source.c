#include <sys/socket.h>
#include <sys/un.h>

#include "core/tools/listing.h"
#include "core/tools/manifest.h"
#include "core/tools/source.h"
#include "tests/unit/mounts.h"

#define MANIFEST(name) "---\nname: " name "\ndescription: Does it.\nversion: 1\n---\n# T\n"

/* ---- helpers */

static void write_tool(const struct scratch *scratch, const char *dir, const char *name)
{
	auto_free char *manifest = xasprintf("%s/TOOL.md", dir);
	auto_free char *entry = xasprintf("%s/index.ts", dir);
	auto_free char *text = xasprintf(MANIFEST("%s"), name);
	scratch_write(scratch, manifest, text);
	scratch_write(scratch, entry, "export async function execute() {}\n");
}

/* Its number at is in byte order of the directories. */
static struct tool *tool_at(const struct source_scan *scan, size_t at)
{
	for (size_t i = 0; i < scan->count; i++)
		if (scan->candidates[i]->tool && at-- == 0)
			return scan->candidates[i]->tool;
	return NULL;
}

static void tell_faults(const struct source_scan *scan, struct faults *faults)
{
	struct overlay overlay = OVERLAY_INIT;
	source_tell_faults(scan, faults);
	source_append_tools(scan, &overlay, 0);
	overlay_sort(&overlay);
	overlay_tell_doubled(&overlay, 0, faults);
	overlay_release(&overlay);
}

/*
 * What a scan finds, as "DIR=NAME:ENTRY ...|code@FILE ...", the files without the source's path.
 * Compares with before where that is given, and puts the new scan in its place.
 */
static void assert_rescan(
	const struct scratch *scratch, struct source_scan *before, const char *wanted)
{
	struct source_scan scan;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	auto_faults struct faults faults = FAULTS_INIT;
	const struct tool *tool;
	source_scan(scratch->path, NULL, before, &scan);
	tell_faults(&scan, &faults);
	for (size_t i = 0; (tool = tool_at(&scan, i)); i++)
		buf_printf(
			&out, "%s%s=%s:%s", i ? " " : "", tool->dir_name, tool->name, tool->entry);
	buf_putc(&out, '|');
	for (size_t i = 0; i < faults.count; i++) {
		const struct fault *fault = &faults.items[i];
		const char *file = fault->file + strlen(scratch->path);
		buf_printf(&out, "%s%s@%s", i ? " " : "", fault->code, *file ? file + 1 : ".");
	}
	if (before) {
		source_scan_release(before);
		*before = scan;
	} else {
		source_scan_release(&scan);
	}
	assert_string_equal(buf_str(&out), wanted);
}

static void assert_scan(const struct scratch *scratch, const char *wanted)
{
	assert_rescan(scratch, NULL, wanted);
}

/* The text of the first fault of a scan, which must hold `part`. */
static void assert_fault_says(const struct scratch *scratch, const char *part)
{
	struct source_scan scan;
	auto_faults struct faults faults = FAULTS_INIT;
	source_scan(scratch->path, NULL, NULL, &scan);
	source_tell_faults(&scan, &faults);
	assert_true(faults.count > 0);
	if (!strstr(faults.items[0].text, part))
		fail_msg("%s", faults.items[0].text);
	source_scan_release(&scan);
}

/* ---- what is a tool */

static void r2_a_directory_with_both_files_is_a_tool(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "hello", "hello");
	assert_scan(scratch, "hello=hello:index.ts|");
}

static void r5_bin_is_part_of_the_layout(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "hello", "hello");
	scratch_write(scratch, "hello/bin/process.py", "print(1)\n");
	assert_scan(scratch, "hello=hello:index.ts|");
}

static void r6_a_directory_that_misses_one_of_the_two_is_skipped(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "a/TOOL.md", MANIFEST("a"));
	scratch_write(scratch, "b/index.ts", "");
	scratch_write(scratch, "c/notes.txt", "");
	scratch_mkdir(scratch, "d");
	write_tool(scratch, "good", "good");
	assert_scan(
		scratch, "good=good:index.ts|missing-entry@a/TOOL.md missing-manifest@b/TOOL.md");
}

static void r7_index_js_is_an_entry(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "a/TOOL.md", MANIFEST("a"));
	scratch_write(scratch, "a/index.js", "");
	assert_scan(scratch, "a=a:index.js|");
}

static void a6_index_ts_goes_before_index_js(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	scratch_write(scratch, "a/index.js", "");
	assert_scan(scratch, "a=a:index.ts|");
}

static void r8_other_files_do_not_matter(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	scratch_write(scratch, "a/README.md", "x");
	scratch_write(scratch, "a/package.json", "not JSON");
	scratch_write(scratch, "a/extra.ts", "throw new Error()");
	scratch_write(scratch, "a/sub/TOOL.md", MANIFEST("sub"));
	assert_scan(scratch, "a=a:index.ts|");
}

static void a9_index_py_and_index_sh_serve_their_language_only(void **state)
{
	struct scratch *scratch = *state;
	static const char python[] =
		"---\nname: p\ndescription: D.\nversion: 1\nlanguage: python\n---\n";
	static const char bash[] =
		"---\nname: b\ndescription: D.\nversion: 1\nlanguage: bash\n---\n";
	scratch_write(scratch, "a_python/TOOL.md", python);
	scratch_write(scratch, "a_python/index.py", "");
	scratch_write(scratch, "b_bash/TOOL.md", bash);
	scratch_write(scratch, "b_bash/index.sh", "");
	scratch_write(scratch, "c_python_with_ts/TOOL.md", python);
	scratch_write(scratch, "c_python_with_ts/index.py", "");
	scratch_write(scratch, "c_python_with_ts/index.js", "");
	scratch_write(scratch, "d_python_without_language/TOOL.md", MANIFEST("d"));
	scratch_write(scratch, "d_python_without_language/index.py", "");
	scratch_write(scratch, "e_bash_for_python/TOOL.md", python);
	scratch_write(scratch, "e_bash_for_python/index.sh", "");
	scratch_write(scratch, "f_python_without_entry/TOOL.md", python);
	assert_scan(scratch, "a_python=p:index.py b_bash=b:index.sh c_python_with_ts=p:index.js|"
			     "entry-language@d_python_without_language/TOOL.md "
			     "entry-language@e_bash_for_python/TOOL.md "
			     "missing-entry@f_python_without_entry/TOOL.md "
			     "duplicate-name@a_python/TOOL.md");
}

static void a5_an_invalid_manifest_is_skipped_and_reported(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "a/TOOL.md", "---\nversion: 1\n---\n");
	scratch_write(scratch, "a/index.ts", "");
	scratch_write(scratch, "b/TOOL.md", "no front matter");
	scratch_write(scratch, "b/index.ts", "");
	scratch_write(scratch, "c/TOOL.md", "no front matter, and no entry");
	write_tool(scratch, "good", "good");
	assert_scan(scratch,
		"good=good:index.ts|missing-name@a/TOOL.md missing-description@a/TOOL.md "
		"no-front-matter@b/TOOL.md no-front-matter@c/TOOL.md missing-entry@c/TOOL.md");
}

static void a7_directories_are_taken_in_byte_order_and_names_are_those_of_the_files(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "b", "x");
	write_tool(scratch, "B", "y");
	write_tool(scratch, "a10", "z");
	write_tool(scratch, "a9", "w");
	write_tool(scratch, "\xc3\xa4", "v");
	assert_scan(scratch,
		"B=y:index.ts a10=z:index.ts a9=w:index.ts b=x:index.ts \xc3\xa4=v:index.ts|");
}

static void a7_equal_names_in_one_source_are_reported(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "c", "x");
	write_tool(scratch, "a", "x");
	write_tool(scratch, "b", "x");
	assert_scan(scratch, "a=x:index.ts b=x:index.ts c=x:index.ts|duplicate-name@a/TOOL.md "
			     "duplicate-name@b/TOOL.md");
}

static void a15_plain_files_are_passed_over(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "TOOLS.md", "the guide");
	scratch_write(scratch, "TOOL.md", MANIFEST("x"));
	scratch_write(scratch, "index.ts", "");
	scratch_link(scratch, "TOOLS.md", "link");
	assert_int_equal(mkfifoat(scratch->fd, "fifo", 0644), 0);
	write_tool(scratch, "good", "good");
	assert_scan(scratch, "good=good:index.ts|");
}

static void a16_hidden_directories_are_passed_over(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, ".hidden", "hidden");
	write_tool(scratch, ".git/x", "x");
	assert_scan(scratch, "|");
}

static void r96_a_source_that_is_not_there_does_no_harm(void **state)
{
	(void)state;
	struct source_scan scan;
	source_scan("/nonexistent/tools", NULL, NULL, &scan);
	assert_int_equal(scan.count, 0);
	assert_int_equal(scan.faults.count, 1);
	assert_string_equal(scan.faults.items[0].code, "missing-source");
	assert_int_equal(scan.faults.items[0].level, FAULT_WARNING);
	assert_string_equal(scan.faults.items[0].file, "/nonexistent/tools");
	source_scan_release(&scan);
	source_scan("/etc/passwd", NULL, NULL, &scan);
	assert_string_equal(scan.faults.items[0].code, "missing-source");
	source_scan_release(&scan);
}

/* ---- who writes tools is not trusted */

static void make_special(const struct scratch *scratch, const char *dir, const char *name, int kind)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	unlinkat(scratch->fd, path, 0);
	switch (kind) {
	case 0:
		assert_int_equal(mkfifoat(scratch->fd, path, 0644), 0);
		break;
	case 1:
		scratch_mkdir(scratch, path);
		break;
	case 2:
		scratch_link(scratch, "nothing", path);
		break;
	case 3:
		scratch_link(scratch, "/etc/passwd", path);
		break;
	case 4:
		scratch_link(scratch, "/dev/zero", path);
		break;
	default:
		scratch_link(scratch, name, path);
	}
}

static void files_that_are_no_files_are_faults_that_name_them(void **state)
{
	struct scratch *scratch = *state;
	static const char *const dirs[] = { "a", "b", "c", "d", "e", "f" };
	for (int kind = 0; kind < 6; kind++) {
		write_tool(scratch, dirs[kind], dirs[kind]);
		make_special(scratch, dirs[kind], "TOOL.md", kind);
	}
	assert_scan(scratch,
		"|not-a-file@a/TOOL.md not-a-file@b/TOOL.md dangling-link@c/TOOL.md "
		"link-outside@d/TOOL.md link-outside@e/TOOL.md link-outside@f/TOOL.md");
	assert_fault_says(scratch, "'TOOL.md' is a FIFO");
	for (int kind = 0; kind < 6; kind++) {
		auto_free char *path = xasprintf("%s/TOOL.md", dirs[kind]);
		io_remove_tree(scratch->fd, path);
		write_tool(scratch, dirs[kind], dirs[kind]);
		make_special(scratch, dirs[kind], "index.ts", kind);
	}
	assert_scan(scratch,
		"|not-a-file@a/TOOL.md not-a-file@b/TOOL.md dangling-link@c/TOOL.md "
		"link-outside@d/TOOL.md link-outside@e/TOOL.md link-outside@f/TOOL.md");
	assert_fault_says(scratch, "'index.ts' is a FIFO");
}

static void a_socket_is_no_file(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	unlinkat(scratch->fd, "a/index.ts", 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/a/index.ts", scratch->path);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_scan(scratch, "|not-a-file@a/TOOL.md");
}

static void links_within_the_tool_are_fine(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "a/docs/tool.txt", MANIFEST("a"));
	scratch_write(scratch, "a/src/main.ts", "");
	scratch_link(scratch, "docs/tool.txt", "a/TOOL.md");
	scratch_link(scratch, "src/main.ts", "a/index.ts");
	assert_scan(scratch, "a=a:index.ts|");
}

static void a_linked_directory_must_stay_in_its_source(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "real", "real");
	scratch_link(scratch, "real", "z_inside");
	scratch_link(scratch, "/usr", "b_outside");
	scratch_link(scratch, "..", "c_above");
	scratch_link(scratch, "nothing", "d_dangling");
	scratch_link(scratch, "e_circle", "e_circle");
	assert_scan(scratch, "real=real:index.ts z_inside=real:index.ts|link-outside@b_outside "
			     "link-outside@c_above dangling-link@d_dangling link-outside@e_circle "
			     "duplicate-name@real/TOOL.md");
	assert_fault_says(scratch, "copy the tool here or bind-mount it");
}

static void what_may_not_be_read_is_reported(void **state)
{
	struct scratch *scratch = *state;
	if (geteuid() == 0 && seteuid(65534) < 0)
		skip(); /* nothing is unreadable to root */
	if (fchmod(scratch->fd, 0755) < 0) {
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(fchown(scratch->fd, 65534, 65534), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	write_tool(scratch, "a", "a");
	write_tool(scratch, "b", "b");
	write_tool(scratch, "c", "c");
	assert_int_equal(fchmodat(scratch->fd, "a/TOOL.md", 0, 0), 0);
	assert_int_equal(fchmodat(scratch->fd, "b/index.ts", 0, 0), 0);
	assert_int_equal(fchmodat(scratch->fd, "c", 0, 0), 0);
	assert_scan(scratch, "|unreadable@a/TOOL.md unreadable@b/TOOL.md unreadable@c");
	assert_int_equal(fchmodat(scratch->fd, "c", 0755, 0), 0);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void a_manifest_that_is_too_large_is_refused(void **state)
{
	struct scratch *scratch = *state;
	auto_free char *bytes = xcalloc(1, MANIFEST_SIZE_MAX + 1);
	memset(bytes, '\n', MANIFEST_SIZE_MAX + 1);
	memcpy(bytes, MANIFEST("a"), sizeof(MANIFEST("a")) - 1);
	scratch_write(scratch, "a/index.ts", "");
	scratch_write_bytes(scratch, "a/TOOL.md", bytes, MANIFEST_SIZE_MAX);
	assert_scan(scratch, "a=a:index.ts|");
	scratch_write_bytes(scratch, "a/TOOL.md", bytes, MANIFEST_SIZE_MAX + 1);
	assert_scan(scratch, "|too-large@a/TOOL.md");
}

static void names_that_the_tree_uses_are_reported(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	scratch_write(scratch, "a/schema.json", "");
	scratch_write(scratch, "a/calls/x", "");
	scratch_write(scratch, "a/callx", "");
	assert_scan(scratch, "a=a:index.ts|hidden-file@a/TOOL.md hidden-file@a/TOOL.md");
}

static void a_manifest_in_other_letters_is_pointed_out(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "a/Tool.md", MANIFEST("a"));
	scratch_write(scratch, "a/index.ts", "");
	assert_scan(scratch, "|missing-manifest@a/TOOL.md");
	assert_fault_says(scratch, "rename 'Tool.md'");
}

static void odd_directory_names_are_names(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "with space", "a");
	write_tool(scratch, "new\nline", "b");
	write_tool(scratch, "\xff\xfe", "c");
	write_tool(scratch, "-dash", "d");
	write_tool(scratch, "call", "e");
	assert_scan(scratch,
		"-dash=d:index.ts call=e:index.ts new\nline=b:index.ts with space=a:index.ts "
		"\xff\xfe=c:index.ts|");
}

static void a_huge_directory_is_a_tool_all_the_same(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "a");
	auto_close int dir = openat(scratch->fd, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 12000; i++) {
		char name[64];
		snprintf(name, sizeof(name), "a-file-with-a-longer-name-%d", i);
		if (linkat(scratch->fd, "a/a-file-with-a-longer-name-0", dir, name, 0) < 0)
			close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	}
	write_tool(scratch, "a", "a");
	scratch_write(scratch, "a/run", "");
	assert_scan(scratch, "a=a:index.ts|hidden-file@a/TOOL.md");
}

/* ---- scanning again */

static void wait_until_settled(void)
{
	usleep(40000);
}

static void unchanged_tools_are_the_same_objects(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	write_tool(scratch, "b", "b");
	scratch_write(scratch, "c/TOOL.md", "---\nname: c\n---\n");
	scratch_write(scratch, "c/index.ts", "");
	wait_until_settled();
	struct source_scan scan;
	source_scan(scratch->path, NULL, NULL, &scan);
	struct tool *a = tool_ref(tool_at(&scan, 0)), *b = tool_ref(tool_at(&scan, 1));
	assert_rescan(scratch, &scan,
		"a=a:index.ts b=b:index.ts|missing-description@c/TOOL.md missing-version@c/TOOL.md");
	assert_ptr_equal(tool_at(&scan, 0), a);
	assert_ptr_equal(tool_at(&scan, 1), b);
	scratch_write(scratch, "a/TOOL.md", MANIFEST("a"));
	assert_rescan(scratch, &scan,
		"a=a:index.ts b=b:index.ts|missing-description@c/TOOL.md missing-version@c/TOOL.md");
	assert_ptr_not_equal(tool_at(&scan, 0), a);
	assert_ptr_equal(tool_at(&scan, 1), b);
	scratch_write(scratch, "b/index.ts", "// other\n");
	assert_rescan(scratch, &scan,
		"a=a:index.ts b=b:index.ts|missing-description@c/TOOL.md missing-version@c/TOOL.md");
	assert_ptr_not_equal(tool_at(&scan, 1), b);
	tool_unref(a);
	tool_unref(b);
	source_scan_release(&scan);
}

static void a_tool_knows_when_its_manifest_changed_and_what_is_in_it(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	write_tool(scratch, "b", "a");
	write_tool(scratch, "c", "c");
	const struct timespec times[] = { { 0, 0 }, { -5, 999 } };
	utimensat(scratch->fd, "a/TOOL.md", times, 0);
	struct source_scan scan;
	source_scan(scratch->path, NULL, NULL, &scan);
	const struct tool *a = tool_at(&scan, 0), *b = tool_at(&scan, 1), *c = tool_at(&scan, 2);
	assert_int_equal(a->mtime.tv_sec, -5);
	assert_int_equal(a->mtime.tv_nsec, 999);
	struct stat st;
	fstatat(scratch->fd, "b/TOOL.md", &st, 0);
	assert_memory_equal(&b->mtime, &st.st_mtim, sizeof(st.st_mtim));
	assert_int_equal(a->digest, b->digest);
	assert_int_not_equal(a->digest, c->digest);
	source_scan_release(&scan);
}

static void every_change_is_seen(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "b", "b");
	struct source_scan scan;
	source_scan(scratch->path, NULL, NULL, &scan);
	wait_until_settled();
	assert_rescan(scratch, &scan, "b=b:index.ts|");
	unlinkat(scratch->fd, "b/index.ts", 0);
	assert_rescan(scratch, &scan, "|missing-entry@b/TOOL.md");
	wait_until_settled();
	assert_rescan(scratch, &scan, "|missing-entry@b/TOOL.md");
	scratch_write(scratch, "b/index.js", "");
	assert_rescan(scratch, &scan, "b=b:index.js|");
	wait_until_settled();
	scratch_write(scratch, "b/index.ts", "");
	assert_rescan(scratch, &scan, "b=b:index.ts|");
	wait_until_settled();
	scratch_write(scratch, "b/log", "");
	assert_rescan(scratch, &scan, "b=b:index.ts|hidden-file@b/TOOL.md");
	unlinkat(scratch->fd, "b/log", 0);
	write_tool(scratch, "a", "a");
	write_tool(scratch, "c", "c");
	assert_rescan(scratch, &scan, "a=a:index.ts b=b:index.ts c=c:index.ts|");
	io_remove_tree(scratch->fd, "b");
	assert_rescan(scratch, &scan, "a=a:index.ts c=c:index.ts|");
	renameat(scratch->fd, "c", scratch->fd, "d");
	assert_rescan(scratch, &scan, "a=a:index.ts d=c:index.ts|");
	unlinkat(scratch->fd, "d/TOOL.md", 0);
	assert_rescan(scratch, &scan, "a=a:index.ts|missing-manifest@d/TOOL.md");
	source_scan_release(&scan);
}

static void a_change_of_the_same_size_in_the_same_moment_is_seen(void **state)
{
	struct scratch *scratch = *state;
	struct source_scan scan = { .root = NULL };
	for (int i = 0; i < 50; i++) {
		write_tool(scratch, "a", i % 2 ? "x" : "y");
		assert_rescan(scratch, &scan, i % 2 ? "a=x:index.ts|" : "a=y:index.ts|");
	}
	source_scan_release(&scan);
}

static void a_scan_leaves_no_descriptor_open(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	write_tool(scratch, "b", "b");
	make_special(scratch, "b", "TOOL.md", 0);
	scratch_link(scratch, "/usr", "c");
	size_t before = scratch_count_fds();
	assert_scan(scratch, "a=a:index.ts|not-a-file@b/TOOL.md link-outside@c");
	assert_int_equal(scratch_count_fds(), before);
}

/* ---- opening a tool */

static void a_tool_is_opened_through_its_source(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "a", "a");
	struct source_scan scan;
	source_scan(scratch->path, NULL, NULL, &scan);
	auto_close int fd = source_open_tool(tool_at(&scan, 0));
	assert_true(fd >= 0);
	assert_int_equal(faccessat(fd, "TOOL.md", F_OK, 0), 0);
	io_remove_tree(scratch->fd, "a");
	assert_int_equal(source_open_tool(tool_at(&scan, 0)), -ENOENT);
	scratch_link(scratch, "/usr", "a");
	assert_int_equal(source_open_tool(tool_at(&scan, 0)), -EXDEV);
	source_scan_release(&scan);
}

/* What a scan of DIR finds, put in the place of the earlier scan: "DIR=DESCRIPTION ..." */
static void rescan(const struct scratch *scratch, const char *dir, struct source_scan *scan)
{
	struct source_scan before = *scan;
	auto_free char *path = xasprintf("%s/%s", scratch->path, dir);
	source_scan(path, NULL, &before, scan);
	source_scan_release(&before);
}

static void assert_reads(const struct tool *tool, const char *wanted)
{
	auto_buf struct buf text = BUF_INIT(1000);
	auto_close int fd = source_open_tool(tool);
	assert_true(fd >= 0);
	assert_int_equal(io_load_beneath(fd, "own.txt", &text), 0);
	assert_string_equal(buf_str(&text), wanted);
}

static void write_owned(const struct scratch *scratch, const char *dir, const char *text)
{
	auto_free char *own = xasprintf("%s/own.txt", dir);
	write_tool(scratch, dir, "a");
	scratch_write(scratch, own, text);
}

static void t17_a_tool_is_read_from_where_it_was_found(void **state)
{
	struct scratch *scratch = *state;
	size_t fds = scratch_count_fds();
	write_owned(scratch, "one/a", "one");
	write_owned(scratch, "two/a", "two");
	scratch_link(scratch, "one", "link");
	struct source_scan scan = { .root = NULL };
	rescan(scratch, "link", &scan);
	auto_tool struct tool *old = tool_ref(tool_at(&scan, 0));
	rescan(scratch, "link", &scan);
	assert_ptr_equal(tool_at(&scan, 0)->root, old->root);
	scratch_link(scratch, "two", "new");
	renameat(scratch->fd, "new", scratch->fd, "link");
	assert_reads(old, "one");
	rescan(scratch, "link", &scan);
	assert_ptr_not_equal(tool_at(&scan, 0), old);
	assert_reads(old, "one");
	assert_reads(tool_at(&scan, 0), "two");
	renameat(scratch->fd, "one", scratch->fd, "elsewhere");
	assert_reads(old, "one");
	source_scan_release(&scan);
	tool_unref(old);
	old = NULL;
	assert_int_equal(scratch_count_fds(), fds);
}

static void a_directory_that_takes_the_place_of_another_makes_new_tools(void **state)
{
	struct scratch *scratch = *state;
	write_owned(scratch, "one/a", "old");
	/* The same files with the same stamps, in another directory. */
	scratch_mkdir(scratch, "two/a");
	assert_int_equal(linkat(scratch->fd, "one/a/TOOL.md", scratch->fd, "two/a/TOOL.md", 0), 0);
	assert_int_equal(
		linkat(scratch->fd, "one/a/index.ts", scratch->fd, "two/a/index.ts", 0), 0);
	scratch_write(scratch, "two/a/own.txt", "new");
	wait_until_settled();
	struct source_scan scan = { .root = NULL };
	rescan(scratch, "one", &scan);
	auto_tool struct tool *old = tool_ref(tool_at(&scan, 0));
	renameat2(scratch->fd, "one", scratch->fd, "two", RENAME_EXCHANGE);
	rescan(scratch, "one", &scan);
	assert_ptr_not_equal(tool_at(&scan, 0), old);
	assert_reads(old, "old");
	assert_reads(tool_at(&scan, 0), "new");
	source_scan_release(&scan);
}

static void a_mount_over_a_source_makes_new_tools(void **state)
{
	need_mounts();
	struct scratch *scratch = *state;
	write_owned(scratch, "one/a", "one");
	write_owned(scratch, "two/a", "two");
	auto_free char *one = xasprintf("%s/one", scratch->path);
	auto_free char *two = xasprintf("%s/two", scratch->path);
	struct source_scan scan = { .root = NULL };
	rescan(scratch, "one", &scan);
	auto_tool struct tool *old = tool_ref(tool_at(&scan, 0));
	assert_int_equal(mount(two, one, NULL, MS_BIND, NULL), 0);
	rescan(scratch, "one", &scan);
	assert_ptr_not_equal(tool_at(&scan, 0), old);
	assert_reads(old, "one");
	assert_reads(tool_at(&scan, 0), "two");
	source_scan_release(&scan);
	assert_int_equal(umount(one), 0);
}

static void t17_our_own_mount_over_a_source_changes_nothing(void **state)
{
	need_mounts();
	struct scratch *scratch = *state;
	write_owned(scratch, "mnt/a", "old");
	wait_until_settled();
	auto_free char *path = xasprintf("%s/mnt", scratch->path);
	struct source_scan scan = { .root = NULL };
	rescan(scratch, "mnt", &scan);
	auto_tool struct tool *old = tool_ref(tool_at(&scan, 0));
	auto_close int lower = openat(scratch->fd, "mnt", O_PATH | O_CLOEXEC);
	auto_close int fuse = mount_unserved(path);
	rescan(scratch, "mnt", &scan);
	assert_int_equal(scan.faults.count, 0);
	assert_ptr_equal(tool_at(&scan, 0), old);
	assert_reads(old, "old");
	struct scratch below = { .fd = lower };
	write_owned(&below, "a", "edited");
	rescan(scratch, "mnt", &scan);
	assert_ptr_not_equal(tool_at(&scan, 0), old);
	assert_reads(tool_at(&scan, 0), "edited");
	source_scan_release(&scan);
	/* Without a look from before there is nothing but the mount. */
	rescan(scratch, "mnt", &scan);
	assert_string_equal(scan.faults.items[0].code, "own-mount");
	source_scan_release(&scan);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

/* ---- files of a tool */

static void assert_opens(const struct tool *tool, const char *path, int flags, int wanted)
{
	auto_close int fd = source_open_file(tool, path, flags);
	assert_int_equal(fd < 0 ? fd : 0, wanted);
}

static void t17_files_are_opened_but_never_through_our_own_mount(void **state)
{
	need_mounts();
	struct scratch *scratch = *state;
	auto_free char *own = xasprintf("%s/a/own", scratch->path);
	auto_free char *other = xasprintf("%s/a/other", scratch->path);
	write_tool(scratch, "a", "a");
	scratch_write(scratch, "a/bin/x", "");
	scratch_mkdir(scratch, "a/own/b");
	scratch_write(scratch, "a/other/sub/x", "");
	scratch_link(scratch, "bin/x", "a/link");
	scratch_link(scratch, "bin", "a/dir");
	assert_int_equal(mount(other, other, NULL, MS_BIND, NULL), 0);
	auto_close int fuse = mount_unserved(own);
	struct source_scan scan;
	source_scan(scratch->path, NULL, NULL, &scan);
	const struct tool *tool = tool_at(&scan, 0);
	const int look = O_PATH | O_NOFOLLOW, list = O_RDONLY | O_DIRECTORY;
	assert_opens(tool, "bin/x", look, 0);
	assert_opens(tool, "bin", list, 0);
	assert_opens(tool, "link", look, 0);
	assert_opens(tool, "dir/x", look, -ELOOP);
	assert_opens(tool, "none", look, -ENOENT);
	assert_opens(tool, "../a/bin/x", look, -EXDEV);
	assert_opens(tool, "other", list, 0);
	assert_opens(tool, "other/sub", list, 0);
	assert_opens(tool, "other/sub/x", look, 0);
	assert_opens(tool, "other/sub/x/y", look, -ENOTDIR);
	assert_opens(tool, "other/../../b", look, -EXDEV);
	assert_opens(tool, "own", look, -ENOENT);
	assert_opens(tool, "own", list, -ENOENT);
	assert_opens(tool, "own/b", look, -ENOENT);
	source_scan_release(&scan);
	assert_int_equal(umount2(own, MNT_DETACH), 0);
	assert_int_equal(umount2(other, MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(r2_a_directory_with_both_files_is_a_tool),
		scratch_test(r5_bin_is_part_of_the_layout),
		scratch_test(r6_a_directory_that_misses_one_of_the_two_is_skipped),
		scratch_test(r7_index_js_is_an_entry),
		scratch_test(a6_index_ts_goes_before_index_js),
		scratch_test(r8_other_files_do_not_matter),
		scratch_test(a9_index_py_and_index_sh_serve_their_language_only),
		scratch_test(a5_an_invalid_manifest_is_skipped_and_reported),
		scratch_test(
			a7_directories_are_taken_in_byte_order_and_names_are_those_of_the_files),
		scratch_test(a7_equal_names_in_one_source_are_reported),
		scratch_test(a15_plain_files_are_passed_over),
		scratch_test(a16_hidden_directories_are_passed_over),
		scratch_test(r96_a_source_that_is_not_there_does_no_harm),
		scratch_test(files_that_are_no_files_are_faults_that_name_them),
		scratch_test(a_socket_is_no_file),
		scratch_test(links_within_the_tool_are_fine),
		scratch_test(a_linked_directory_must_stay_in_its_source),
		scratch_test(what_may_not_be_read_is_reported),
		scratch_test(a_manifest_that_is_too_large_is_refused),
		scratch_test(names_that_the_tree_uses_are_reported),
		scratch_test(a_manifest_in_other_letters_is_pointed_out),
		scratch_test(odd_directory_names_are_names),
		scratch_test(a_huge_directory_is_a_tool_all_the_same),
		scratch_test(unchanged_tools_are_the_same_objects),
		scratch_test(a_tool_knows_when_its_manifest_changed_and_what_is_in_it),
		scratch_test(every_change_is_seen),
		scratch_test(a_change_of_the_same_size_in_the_same_moment_is_seen),
		scratch_test(a_scan_leaves_no_descriptor_open),
		scratch_test(a_tool_is_opened_through_its_source),
		scratch_test(t17_a_tool_is_read_from_where_it_was_found),
		scratch_test(a_directory_that_takes_the_place_of_another_makes_new_tools),
		scratch_test(a_mount_over_a_source_makes_new_tools),
		scratch_test(t17_our_own_mount_over_a_source_changes_nothing),
		scratch_test(t17_files_are_opened_but_never_through_our_own_mount),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
