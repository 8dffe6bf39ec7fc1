import asyncio


async def execute(tool_call_id, params):
    await asyncio.sleep(0.01)
    return f"two parameters are enough: {params['a']}"
