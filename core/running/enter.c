#include "core/running/enter.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/buf.h"
#include "core/base/xalloc.h"

/*
 * Descriptor 4 holds the script (core/host/bundle.mjs), for there are no files of pegfs there. It may
 * be any version that somebody has installed.
 */
#define NODE_BOOT                                                                                    \
	"if(parseInt(process.versions.node)<18){"                                                    \
	"console.error(`Node.js ${process.versions.node} is too old for pegfs: install 18 or newer " \
	"where the caller lives`);process.exit(1)}"                                                  \
	"const fs=require('fs'),Module=require('module'),text=Buffer.alloc(fs.fstatSync(4).size);"   \
	"for(let at=0;at<text.length;)at+=fs.readSync(4,text,at,text.length-at,at);"                 \
	"fs.closeSync(4);const main=new Module('/pegfs-host.cjs',null);"                             \
	"main.filename=main.id;main.paths=[];main._compile(text.toString('utf8'),main.id)"
#define PYTHON_BOOT                                                                                \
	"import os, sys\n"                                                                         \
	"if sys.version_info < (3, 8):\n"                                                          \
	"    sys.exit('Python %d.%d is too old for pegfs: install 3.8 or newer where the caller '" \
	" 'lives' % sys.version_info[:2])\n"                                                       \
	"text = os.pread(4, os.fstat(4).st_size, 0)\n"                                             \
	"os.close(4)\n"                                                                            \
	"exec(compile(text, 'pegfs-bundle.py', 'exec'))\n"

static void put(struct enter *enter, const char *word)
{
	assert(enter->count < ENTER_WORDS_MAX - 1);
	enter->words[enter->count++] = word;
}

static void put_made(struct enter *enter, char *word)
{
	assert(enter->owned_count < ENTER_WORDS_MAX);
	enter->owned[enter->owned_count++] = word;
	put(enter, word);
}

/* The number that a descriptor has in the child. */
static int hand_over(struct enter *enter, int fd)
{
	assert(enter->fd_count < SPAWN_FDS_MAX);
	enter->fds[enter->fd_count] = fd;
	return SPAWN_FDS_AT + (int)enter->fd_count++;
}

static void put_place(struct enter *enter, const struct anchor *anchor)
{
	auto_buf struct buf list = BUF_INIT(4096);
	buf_puts(&list, "namespaces=");
	for (size_t i = 0; i < ANCHOR_NAMESPACES; i++)
		if (anchor->namespaces[i] >= 0)
			buf_printf(&list, "%d,", hand_over(enter, anchor->namespaces[i]));
	put_made(enter, xstrdup(buf_str(&list)));
	if (anchor->user_fd >= 0)
		put_made(enter, xasprintf("user=%d", hand_over(enter, anchor->user_fd)));
	put_made(enter, xasprintf("root=%d", hand_over(enter, anchor->root_fd)));
	put_made(enter, xasprintf("cgroups=%s", anchor->cgroups));
	put_made(enter, xasprintf("label=%s", anchor->label));
	buf_reset(&list);
	buf_puts(&list, "limits=");
	for (size_t i = 0; i < RLIM_NLIMITS; i++)
		buf_printf(&list, "%llu:%llu,", (unsigned long long)anchor->limits[i].rlim_cur,
			(unsigned long long)anchor->limits[i].rlim_max);
	put_made(enter, xstrdup(buf_str(&list)));
}

static void put_rights(struct enter *enter, const struct identity *who)
{
	put_made(enter, xasprintf("uid=%u", (unsigned)who->uid));
	put_made(enter, xasprintf("gid=%u", (unsigned)who->gid));
	put_made(enter, xasprintf("caps=%llx", (unsigned long long)who->caps));
	auto_buf struct buf list = BUF_INIT(4096);
	buf_puts(&list, "groups=");
	for (size_t i = 0; i < who->group_count; i++)
		buf_printf(&list, "%u,", (unsigned)who->groups[i]);
	put_made(enter, xstrdup(buf_str(&list)));
}

void enter_make(struct enter *enter, const struct enter_setup *setup)
{
	*enter = (struct enter){ .count = 0 };
	put_made(enter, xasprintf("%s/host/enter/enter", setup->lib_dir));
	put_place(enter, setup->anchor);
	put_rights(enter, setup->who);
	put_made(enter, xasprintf("dir=%s", setup->tool_dir));
	put_made(enter, xasprintf("script=%s/host/%s", setup->lib_dir,
				setup->is_python ? "python/bundle.py" : "node/bundle.cjs"));
	put(enter, "--");
	put(enter, setup->is_python ? "python3" : "node");
	if (setup->is_python)
		put(enter, "-u");
	else if (setup->heap)
		put(enter, setup->heap);
	put(enter, setup->is_python ? "-c" : "-e");
	put(enter, setup->is_python ? PYTHON_BOOT : NODE_BOOT);
	enter->words[enter->count] = NULL;
}

void enter_release(struct enter *enter)
{
	while (enter->owned_count > 0)
		free(enter->owned[--enter->owned_count]);
}
