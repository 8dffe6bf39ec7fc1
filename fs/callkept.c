#include "fs/callkept.h"

#include <errno.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "fs/answer.h"
#include "fs/callfile.h"
#include "fs/callopen.h"
#include "fs/callwait.h"
#include "fs/server.h"

#define ERRNO_MAX 4095 /* of the kernel */

struct kept *callkept_in(struct state_handle *place)
{
	return (void *)place->body;
}

void callkept_note(const struct callfile *file)
{
	struct kept *kept = file->kept;
	kept->reserved = file->reserved;
	kept->seq = file->seq;
	kept->refused_seq = file->refused_seq;
	kept->write_end = file->write_end;
	kept->base = file->base;
	kept->opener_uid = file->opener_uid;
	kept->opener_gid = file->opener_gid;
	kept->opener_caps = file->opener_caps;
	kept->opener_place = file->opener_place;
	kept->sticky = file->sticky;
	kept->outcome = file->outcome;
	kept->readable = file->readable;
	kept->result_read = file->result_read;
	kept->awaited = file->awaited;
	kept->detached = file->detached;
	kept->is_run = file->run != NULL;
	kept->show = file->run ? (int32_t)file->run->show : 0;
	kept->is_help = file->run && file->run->help;
	kept->phase = (int32_t)file->phase;
}

static void revive_run(struct callfile *file)
{
	file->run = xcalloc(1, sizeof(*file->run));
	arguments_init(file->run, file->tool);
	file->run->show = (enum arguments_show)file->kept->show;
	file->run->help = file->kept->is_help;
}

/* Its call runs on, has ended meanwhile, or is gone. */
static void revive_call(struct callfile *file)
{
	struct calls *calls = file->server->calls;
	const struct call *call = calls_get(calls, file->seq);
	if (call && !call_state_is_final(call->state)) {
		file->phase = PHASE_RUN;
		calls_watch(calls, file->seq, callwait_on_end, file);
		return;
	}
	file->phase = PHASE_DONE;
	file->outcome = call ? -call_outcome(call) : EIO;
	if (!call)
		file->sticky = EIO;
	else if (file->readable)
		file->result = answer_of_call(file->server, file->opener_uid, call, file->run);
}

static bool is_bool(const bool *field)
{
	unsigned char byte;
	memcpy(&byte, field, sizeof(byte));
	return byte <= 1;
}

/* Whoever has written it may have been out of its mind before it died. */
static bool is_sound(const struct kept *kept)
{
	const bool *const bools[] = { &kept->readable, &kept->result_read, &kept->awaited,
		&kept->detached, &kept->is_run, &kept->is_help, &kept->opener_place.is_known };
	for (size_t i = 0; i < sizeof(bools) / sizeof(*bools); i++)
		if (!is_bool(bools[i]))
			return false;
	return kept->phase >= PHASE_GATHER && kept->phase <= PHASE_DONE &&
	       kept->show >= ARGUMENTS_BOUNDED && kept->show <= ARGUMENTS_JSON &&
	       kept->sticky >= 0 && kept->sticky <= ERRNO_MAX && kept->outcome >= 0 &&
	       kept->outcome <= ERRNO_MAX;
}

static void make_useless(struct kept *kept)
{
	log_msg(LOG_LEVEL_ERROR,
		"what was noted of an open call file makes no sense: it is of no use any more");
	*kept = (struct kept){ .phase = PHASE_DONE, .sticky = EIO, .base = -1 };
}

struct callfile *callfile_revive(
	struct server *server, struct tool *tool, struct state_handle *place)
{
	struct callfile *file = callopen_make(server, tool, place);
	const struct kept *kept = file->kept;
	if (!is_sound(kept))
		make_useless(file->kept);
	quota_take(&server->open_calls, kept->opener_uid, 1);
	file->reserved = kept->reserved;
	file->seq = kept->seq;
	file->refused_seq = kept->refused_seq;
	file->readable = kept->readable;
	file->opener_uid = kept->opener_uid;
	file->opener_gid = kept->opener_gid;
	file->opener_caps = kept->opener_caps;
	file->opener_place = kept->opener_place;
	file->sticky = kept->sticky;
	file->outcome = kept->outcome;
	file->write_end = kept->write_end;
	file->base = kept->base;
	file->result_read = kept->result_read;
	file->awaited = kept->awaited;
	file->phase = (enum phase)kept->phase;
	if (kept->is_run)
		revive_run(file);
	if (file->readable)
		callopen_enter(file);
	/* A call was being started: whether it was can be told from its number. */
	bool has_call = file->seq && (file->phase != PHASE_GATHER || kept->start_unique);
	if (has_call)
		revive_call(file);
	else if (file->phase == PHASE_DONE && kept->is_help)
		file->result = answer_of_help(server, file->opener_uid, tool, file->run);
	else
		file->lost = kept->gathered > 0;
	/* The bytes that a writer would have to repeat are gone. */
	if (kept->detached)
		file->sticky = EIO;
	return file;
}
