def execute(tool_call_id, params, signal, on_update):
    return {"content": [{"type": "text", "text": f"Hello, {params['name']}!"}]}
