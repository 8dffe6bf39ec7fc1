import asyncio
import json
import os
import subprocess
import sys
import threading
import time

from helper import double

calls = 0


def deep():
    raise ValueError("the table is missing")


async def later(value):
    await asyncio.sleep(0.01)
    return value


def execute(tool_call_id, params, signal, on_update):
    global calls
    calls += 1
    how = params["how"]
    if how == "text":
        return "just a text"
    if how == "none":
        return None
    if how == "async":
        return later("from a coroutine")
    if how == "helper":
        return str(double(21))
    if how == "nan":
        return {"content": [], "details": float("nan")}
    if how == "set":
        return {"content": {1, 2}}
    if how == "surrogate":
        return "a\ud800b \U0001f600"
    if how == "raise":
        deep()
    if how == "exit":
        sys.exit(4)
    if how == "kill":
        os._exit(5)
    if how == "print":
        print("to stdout")
        print("to stderr", file=sys.stderr)
        subprocess.run(["sh", "-c", "echo from a child"])
        return f"stdin has {len(sys.stdin.read())}"
    if how == "updates":
        on_update("one")
        on_update({"content": [{"type": "text", "text": "two"}]})
        on_update({1, 2})
        return "done"
    if how == "state":
        before = f"{os.getpid()} {calls} {os.getcwd()} {os.environ.get('LEFT_BEHIND')}"
        os.chdir("/tmp")
        os.environ["LEFT_BEHIND"] = "yes"
        return before
    if how == "thread":
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        return str(os.getpid())
    if how == "wait":
        fired = []
        signal.add_callback(lambda: fired.append(1))
        on_update("running")
        signal.wait(60)
        with open(params["file"], "w") as file:
            file.write(f"{signal.aborted} {signal.reason} {len(fired)}")
        return "stopped"
    if how == "ignore":
        on_update("running")
        time.sleep(60)
    return json.dumps(params)
