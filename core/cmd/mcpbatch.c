#include "core/cmd/mcpbatch.h"

#include <stdlib.h>

#include "core/base/xalloc.h"
#include "core/tools/xjson.h"

struct mcpbatch *mcpbatch_open(struct mcpbatch **list)
{
	struct mcpbatch *batch = xcalloc(1, sizeof(*batch));
	*batch = (struct mcpbatch){ .next = *list, .answers = xjson_array(), .waiting = 1 };
	*list = batch;
	return batch;
}

static void close_batch(struct mcpbatch **list, struct mcpbatch *batch)
{
	while (*list != batch)
		list = &(*list)->next;
	*list = batch->next;
	json_decref(batch->answers);
	free(batch);
}

void mcpbatch_answer(
	struct mcpbatch **list, struct mcpbatch *batch, struct mcpstream *stream, json_t *answer)
{
	if (!batch) {
		if (answer)
			mcpstream_send(stream, answer);
		return;
	}
	if (answer)
		xjson_append(batch->answers, answer);
	if (--batch->waiting > 0)
		return;
	if (json_array_size(batch->answers) > 0)
		mcpstream_send(stream, json_incref(batch->answers));
	close_batch(list, batch);
}

void mcpbatch_free_all(struct mcpbatch **list)
{
	while (*list)
		close_batch(list, *list);
}
