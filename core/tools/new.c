#include "core/tools/new.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/tools/checkdoc.h"
#include "core/tools/faults.h"

#define FILE_SIZE_MAX (64 * 1024)
#define FILES_COUNT 2

/* ---- names */

/* What the name may have been meant as, or "": "My-Tool" is my_tool. */
static void mend_name(const char *name, char *mended, size_t size)
{
	size_t len = 0;
	for (; *name && len + 2 < size; name++) {
		bool is_word = isalnum((unsigned char)*name);
		/* myTool is two words; so is my-tool. */
		bool is_hump = isupper((unsigned char)*name) && len > 0 && name[-1] != '_' &&
			       islower((unsigned char)name[-1]);
		if ((is_hump || !is_word) && len > 0 && mended[len - 1] != '_')
			mended[len++] = '_';
		if (is_word && (len > 0 || isalpha((unsigned char)*name)))
			mended[len++] = (char)tolower((unsigned char)*name);
	}
	while (len > 0 && mended[len - 1] == '_')
		len--;
	mended[len] = '\0';
}

static int check_name(const char *name, struct fail *why)
{
	if (checkdoc_is_snake_case(name) && strlen(name) <= NEW_NAME_MAX)
		return 0;
	char mended[NEW_NAME_MAX + 1];
	mend_name(name, mended, sizeof(mended));
	return fail_set(why, -EINVAL,
		"the name '%s' does not fit: small letters, digits and single '_', a letter first, "
		"at most %d characters%s%s%s",
		faults_excerpt(name).text, NEW_NAME_MAX, *mended ? "; did you mean '" : "", mended,
		*mended ? "'?" : "");
}

/* my_tool -> My Tool */
static void put_label(struct buf *out, const char *name)
{
	for (const char *c = name; *c; c++) {
		bool begins = c == name || c[-1] == '_';
		char shown = *c == '_' ? ' ' : *c;
		buf_putc(out, (char)(begins ? toupper((unsigned char)shown) : shown));
	}
}

/* ---- files */

static void fill_in(struct buf *out, const char *text, const char *name)
{
	static const char name_mark[] = "@NAME@", label_mark[] = "@LABEL@";
	while (*text) {
		if (strncmp(text, name_mark, strlen(name_mark)) == 0) {
			buf_puts(out, name);
			text += strlen(name_mark);
		} else if (strncmp(text, label_mark, strlen(label_mark)) == 0) {
			put_label(out, name);
			text += strlen(label_mark);
		} else {
			buf_putc(out, *text++);
		}
	}
}

static int write_file(int dir_fd, const struct new_file *file, const char *name)
{
	auto_buf struct buf text = BUF_INIT(FILE_SIZE_MAX);
	fill_in(&text, file->text, name);
	if (text.failed)
		return text.failed;
	mode_t mode = file->is_program ? 0777 : 0666; /* and what umask(2) leaves of it */
	auto_close int fd =
		openat(dir_fd, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	int result = io_write_all(fd, text.data, text.len);
	return result == 0 && close(take_fd(&fd)) < 0 ? -errno : result;
}

static int fill(int parent_fd, const char *temp, const char *name, enum language language)
{
	if (mkdirat(parent_fd, temp, 0777) < 0)
		return -errno;
	auto_close int fd =
		openat(parent_fd, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const struct new_file *files = new_files(language);
	int result = 0;
	for (size_t i = 0; i < FILES_COUNT && result == 0; i++)
		result = write_file(fd, &files[i], name);
	return result;
}

/* A directory never replaces another one that is not empty, in the second way neither. */
static int place(int parent_fd, const char *temp, const char *name)
{
	if (renameat2(parent_fd, temp, parent_fd, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	struct stat st;
	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(parent_fd, temp, parent_fd, name) < 0 ? -errno : 0;
}

int new_tool(const char *dir, const char *name, enum language language, struct fail *why)
{
	if (check_name(name, why) < 0)
		return why->code;
	auto_close int parent_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0)
		return fail_errno(why, "the directory '%s' cannot be opened", dir);
	/* Hidden until it is whole: a mount may be watching. */
	char temp[64];
	snprintf(temp, sizeof(temp), ".pegfs-new-%d", (int)getpid());
	(void)io_remove_tree(parent_fd, temp);
	int result = fill(parent_fd, temp, name, language);
	if (result == 0)
		result = place(parent_fd, temp, name);
	if (result == 0)
		return 0;
	(void)io_remove_tree(parent_fd, temp);
	if (result == -EEXIST)
		return fail_set(
			why, result, "there is already something called '%s' in '%s'", name, dir);
	return fail_set(why, result, "'%s/%s' cannot be made: %s", dir, name, strerror(-result));
}
