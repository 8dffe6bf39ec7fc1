#include "fs/answer.h"

#include <stdio.h>

#include "core/base/auto.h"
#include "core/tools/answer.h"

static struct bytes *load(
	const struct calls *calls, const struct call *call, enum call_part part, struct fail *why)
{
	return call ? calls_load(calls, call, part, why) : bytes_copy("", 0);
}

struct bytes *answer_of_call(
	const struct calls *calls, const struct call *call, const struct arguments *run)
{
	struct fail why = FAIL_INIT;
	if (!run)
		return load(calls, call, CALL_PART_RESULT_JSON, &why);
	enum call_part part =
		run->show == ARGUMENTS_JSON ? CALL_PART_RESULT_JSON : CALL_PART_RESULT_TEXT;
	struct bytes *bytes = load(calls, call, part, &why);
	if (!bytes)
		return answer_of_refusal(calls, NULL, call->tool, run, &why);
	char whole[sizeof("calls//result.txt") + CALL_ID_MAX];
	snprintf(whole, sizeof(whole), "calls/%s/result.txt", call->id);
	auto_buf struct buf out = BUF_INIT(bytes->len + ANSWER_MORE_MAX);
	answer_result(run, call->state != CALL_DONE, bytes->data, bytes->len, whole, &out);
	bytes_unref(bytes);
	return bytes_take(&out);
}

struct bytes *answer_of_refusal(const struct calls *calls, const struct call *call,
	const struct tool *tool, const struct arguments *run, const struct fail *why)
{
	if (!run)
		return answer_of_call(calls, call, NULL);
	auto_buf struct buf out = BUF_INIT(ANSWER_MORE_MAX);
	answer_refused(tool, run, why, &out);
	return bytes_take(&out);
}

struct bytes *answer_of_help(const struct tool *tool, const struct arguments *run)
{
	auto_buf struct buf out = BUF_INIT(ANSWER_MORE_MAX);
	answer_help(tool, run, &out);
	return bytes_take(&out);
}
