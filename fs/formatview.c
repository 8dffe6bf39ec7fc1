#include "fs/formatview.h"

#include "core/tools/formats.h"
#include "fs/server.h"

static int render(const struct server *server, enum modelapi api, struct buf *out)
{
	return formats_render(api, server->snapshot->tools, server->snapshot->count, out);
}

int formatview_typebox(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return render(server, MODELAPI_TYPEBOX, out);
}

int formatview_mcp(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return render(server, MODELAPI_MCP, out);
}

int formatview_openai(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return render(server, MODELAPI_OPENAI, out);
}

int formatview_responses(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return render(server, MODELAPI_RESPONSES, out);
}

int formatview_anthropic(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return render(server, MODELAPI_ANTHROPIC, out);
}

int formatview_gemini(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return render(server, MODELAPI_GEMINI, out);
}

int formatview_names(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return formats_names(server->snapshot->tools, server->snapshot->count, out);
}

int formatview_notes(const struct server *server, const struct tool *tool, struct buf *out)
{
	(void)tool;
	return formats_notes(server->snapshot->tools, server->snapshot->count, out);
}
