"""An MCP server whose tools are hard to import, and which fails in every way that it is told to.

    odd_server.py DEFINITIONS.json [HOW]     HOW: stateless, mute, chatty
"""

import json
import sys

TOOLS = json.load(open(sys.argv[1], encoding="utf-8"))
HOW = sys.argv[2] if len(sys.argv) > 2 else ""


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(id, params):
    name, arguments = params["name"], params["arguments"]
    if name.startswith("crash"):
        sys.exit(7)
    if name.startswith("refuse"):
        return send({"id": id, "error": {"code": -32602, "message": "not today"}})
    if name.startswith("ask"):
        send({"id": "mine", "method": "roots/list"})
        said = json.loads(sys.stdin.readline())
        arguments = {"answered": said["error"]["code"]}
    result = {"content": [{"type": "text", "text": json.dumps(arguments)}], "structuredContent": {"name": name, "given": arguments}}
    return send({"id": id, "result": {**result, **({"resultType": "complete"} if HOW == "stateless" else {})}})


for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message["method"], message.get("params", {})
    if HOW == "chatty":
        print("this is no JSON", flush=True)
    if HOW == "mute":
        sys.exit(0)
    if id is None:
        continue
    if HOW == "stateless":
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if method == "initialize" or version != "2026-07-28":
            send({"id": id, "error": {"code": -32602, "message": "only 2026-07-28 is spoken here"}})
            continue
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}})
    elif method == "tools/list":  # a page for each
        at = int(params.get("cursor", 0))
        send({"id": id, "result": {"tools": TOOLS[at:at + 1], **({"nextCursor": str(at + 1)} if at + 1 < len(TOOLS) else {})}})
    elif method == "tools/call":
        call(id, params)
