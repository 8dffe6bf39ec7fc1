def execute(tool_call_id, params, signal, on_update)
    return "never"
