/*
 * What watch.h keeps of one directory in a source: the watches on it and on the directories below
 * it, and what happened there since it was last looked at. A tool's directory, or one that may
 * become one. Private to watch.c.
 */
#ifndef PEGFS_TOOLS_WATCHDIR_H
#define PEGFS_TOOLS_WATCHDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tools/notify.h"
#include "core/tools/root.h"

#define WATCHDIR_DIRS_MAX 128 /* watched in one tool; those nearest to its top */
#define WATCHDIR_FILES_MAX 32 /* told one by one; beyond that, all may have changed */

struct watch_source;
struct watchdir;

/* A watched directory. */
struct place {
	struct notify_place notify; /* first: what inotify hands over */
	enum place_kind {
		PLACE_STEP, /* a name in it is part of the source's path */
		PLACE_ROOT, /* the source itself */
		PLACE_DIR,  /* in a tool */
	} kind;
	struct watch_source *source; /* borrowed, as are the others */
	struct watchdir *dir;        /* of PLACE_DIR */
	struct place *next;          /* of the same owner */
	char *text; /* owned; PLACE_STEP: the name; PLACE_DIR: its path in the tool, NULL: the top */
};

enum watchqueue_kind { WATCHQUEUE_DUE, WATCHQUEUE_TOLD, WATCHQUEUE_KINDS };

void place_free_all(struct notify *notify, struct place **places);

struct watchdir {
	char *name; /* owned; in the source */
	struct watch_source *source;
	struct watchdir *next_same; /* with the same hash of the name */
	struct watchdir_link {
		struct watchdir *next;
		bool queued;
	} links[WATCHQUEUE_KINDS]; /* watchqueue.h */
	struct place *places;      /* owned */
	char **files;              /* owned; paths in the tool that changed; "": all */
	size_t file_count, file_capacity;
	uint64_t first_ms, last_ms; /* of what happened since the last look */
	uint64_t mount;             /* the number of the mount over it; 0: none */
	bool mount_seen;
	bool look;       /* the tool may have changed */
	bool rewatch;    /* directories came or went */
	bool unfinished; /* a file was opened for writing and not closed, or something is missing */
	bool complete;   /* each directory in it is watched */
	bool refused;    /* there is no watch left for it */
};

struct watchdir *watchdir_new(struct watch_source *source, const char *name);
void watchdir_free(struct notify *notify, struct watchdir *dir);

/* Notes that the file or directory at path (dir/name, dir NULL or "": none) changed. */
void watchdir_note(struct watchdir *dir, const char *parent, const char *name);
void watchdir_forget_files(struct watchdir *dir);

/*
 * Watches the directory and those below it as they are now, and no others. New ones are noted.
 * Sets complete and refused. notify NULL: nothing can be watched. Returns whether the directory is
 * there.
 */
bool watchdir_renew(struct notify *notify, const struct root *root, struct watchdir *dir);

#endif
