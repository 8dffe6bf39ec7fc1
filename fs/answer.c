#include "fs/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/quota.h"
#include "core/running/record.h"
#include "core/tools/answer.h"
#include "fs/server.h"

static struct answer *new_answer(struct server *server, uid_t uid)
{
	struct answer *answer = xcalloc(1, sizeof(*answer));
	answer->fd = -1;
	answer->quota = &server->handles.quota;
	answer->uid = uid;
	return answer;
}

/* Lets go of all that it holds. */
static void drop(struct answer *answer)
{
	if (answer->fd >= 0)
		close(take_fd(&answer->fd));
	bytes_unref(answer->head);
	answer->head = NULL;
	answer->tail_len = 0;
	if (answer->weight > 0)
		quota_give(answer->quota, answer->uid, answer->weight);
	answer->weight = 0;
}

void answer_free(struct answer *answer)
{
	if (answer)
		drop(answer);
	free(answer);
}

static struct answer *refuse(struct answer *answer, int error)
{
	drop(answer);
	answer->error = error;
	return answer;
}

/* Charges what it holds. */
static struct answer *settle(struct answer *answer)
{
	size_t weight =
		(answer->head ? answer->head->len / HANDLE_BYTES_A_UNIT : 0) + (answer->fd >= 0);
	if (answer_len(answer) == 0) /* it could not be kept, and an empty answer would be a lie */
		return refuse(answer, EIO);
	if (weight > 0 && !quota_take(answer->quota, answer->uid, weight))
		return refuse(answer, EMFILE);
	answer->weight = weight;
	return answer;
}

/* A negative errno, or 0. */
static int add_part(struct answer *answer, const struct calls *calls, const struct call *call,
	enum call_part part)
{
	answer->fd = calls_open(calls, call, part, &answer->start);
	answer->tail_len = answer->fd < 0 ? 0 : call->part_len[part];
	return answer->fd < 0 ? answer->fd : 0;
}

static struct answer *plain(struct server *server, uid_t uid, const struct call *call)
{
	struct answer *answer = new_answer(server, uid);
	const enum call_part part = CALL_PART_RESULT_JSON;
	struct fail why = FAIL_INIT;
	if (!call)
		return refuse(answer, EIO);
	if (call->part_len[part] < HANDLE_BYTES_A_UNIT)
		answer->head = calls_load(server->calls, call, part, &why);
	else
		add_part(answer, server->calls, call, part);
	return settle(answer);
}

/* The status and the notes, and behind them what the record holds. */
static struct answer *whole(struct server *server, uid_t uid, const struct call *call,
	const struct arguments *run, enum call_part part)
{
	struct answer *answer = new_answer(server, uid);
	auto_buf struct buf out = BUF_INIT(ANSWER_MORE_MAX);
	answer_result(run, call->state != CALL_DONE, "", 0, "", &out);
	answer->head = bytes_take(&out);
	if (call->part_len[part] > 0 && add_part(answer, server->calls, call, part) < 0)
		return refuse(answer, EIO);
	return settle(answer);
}

static struct answer *bounded(
	struct server *server, uid_t uid, const struct call *call, const struct arguments *run)
{
	struct fail why = FAIL_INIT;
	struct bytes *text = calls_load(server->calls, call, CALL_PART_RESULT_TEXT, &why);
	if (!text)
		return answer_of_refusal(server, uid, NULL, call->tool, run, &why);
	char path[sizeof("calls//result.txt") + CALL_ID_MAX];
	snprintf(path, sizeof(path), "calls/%s/result.txt", call->id);
	auto_buf struct buf out = BUF_INIT(ANSWER_SIZE_MAX + ANSWER_MORE_MAX);
	answer_result(run, call->state != CALL_DONE, text->data, text->len, path, &out);
	bytes_unref(text);
	struct answer *answer = new_answer(server, uid);
	answer->head = bytes_take(&out);
	return settle(answer);
}

struct answer *answer_of_call(
	struct server *server, uid_t uid, const struct call *call, const struct arguments *run)
{
	if (!run)
		return plain(server, uid, call);
	if (run->show == ARGUMENTS_BOUNDED)
		return bounded(server, uid, call, run);
	return whole(server, uid, call, run,
		run->show == ARGUMENTS_JSON ? CALL_PART_RESULT_JSON : CALL_PART_RESULT_TEXT);
}

struct answer *answer_of_refusal(struct server *server, uid_t uid, const struct call *call,
	const struct tool *tool, const struct arguments *run, const struct fail *why)
{
	if (!run)
		return plain(server, uid, call);
	auto_buf struct buf out = BUF_INIT(ANSWER_MORE_MAX);
	answer_refused(tool, run, why, &out);
	struct answer *answer = new_answer(server, uid);
	answer->head = bytes_take(&out);
	return settle(answer);
}

struct answer *answer_of_help(
	struct server *server, uid_t uid, const struct tool *tool, const struct arguments *run)
{
	auto_buf struct buf out = BUF_INIT(ANSWER_MORE_MAX);
	answer_help(tool, run, &out);
	struct answer *answer = new_answer(server, uid);
	answer->head = bytes_take(&out);
	return settle(answer);
}

size_t answer_len(const struct answer *answer)
{
	return answer ? (answer->head ? answer->head->len : 0) + answer->tail_len : 0;
}

int answer_read(const struct answer *answer, size_t size, size_t offset, struct buf *out)
{
	size_t head_len = answer->head ? answer->head->len : 0;
	if (offset < head_len) {
		size_t part = size < head_len - offset ? size : head_len - offset;
		int result = buf_append(out, answer->head->data + offset, part);
		if (result < 0)
			return result;
		size -= part;
		offset += part;
	}
	if (size == 0 || offset - head_len >= answer->tail_len)
		return 0;
	offset -= head_len;
	if (size > answer->tail_len - offset)
		size = answer->tail_len - offset;
	return record_read_range(answer->fd, answer->start + (off_t)offset, size, out);
}
