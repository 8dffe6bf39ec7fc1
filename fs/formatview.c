#include "fs/formatview.h"

#include "core/tools/formats.h"
#include "fs/server.h"

static int render(const struct node *node, enum modelapi api, struct buf *out)
{
	return formats_render(api, node->tree->snapshot->tools, node->tree->snapshot->count, out);
}

int formatview_typebox(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return render(node, MODELAPI_TYPEBOX, out);
}

int formatview_mcp(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return render(node, MODELAPI_MCP, out);
}

int formatview_openai(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return render(node, MODELAPI_OPENAI, out);
}

int formatview_responses(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return render(node, MODELAPI_RESPONSES, out);
}

int formatview_anthropic(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return render(node, MODELAPI_ANTHROPIC, out);
}

int formatview_gemini(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return render(node, MODELAPI_GEMINI, out);
}

int formatview_names(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return formats_names(node->tree->snapshot->tools, node->tree->snapshot->count, out);
}

int formatview_notes(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return formats_notes(node->tree->snapshot->tools, node->tree->snapshot->count, out);
}
