"""A tool host for Python: loads one tool on its first call, runs one call at a time, and stays warm
for the next. core/running/wire.h has the protocol; the tool runs in the main thread, which is the
only one that may handle signals, and messages are read in another."""

import os
import queue
import sys
import threading
import traceback

sys.path.pop(0)  # this directory: a tool's "import tool" must not find ours


def import_ours(name):
    import importlib.util

    bundled = globals().get("PEGFS_SOURCES")
    if bundled:  # there are no files here: core/host/bundle.mjs
        module = type(sys)(f"pegfs_{name}")
        exec(compile(bundled[name], f"pegfs-{name}.py", "exec"), module.__dict__)
        return module
    here = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(f"pegfs_{name}", os.path.join(here, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
wire = import_ours("wire")
tools = import_ours("tool")

SETTLE_SECONDS = 0.03


class Host:
    def __init__(self):
        self.wire = wire.Wire()
        self.calls = queue.SimpleQueue()
        self.settings = {"resultMax": 1 << 62, "progressMax": 1 << 62, "generated": []}
        self.tool = None
        self.call_id = None
        self.signal = None
        self.progress_left = 0
        self.environment = dict(os.environ)
        self.home = self.go_home()
        self.threads = set()

    def go_home(self):
        for directory in (os.environ.get("OFFICER_USER_ROOT"), os.environ.get("HOME"), "/"):
            try:
                os.chdir(directory)
                return directory
            except (OSError, TypeError):
                continue
        return "/"

    # ---- the thread that reads

    def read(self):
        self.wire.read_forever(self.handle)
        os._exit(0)

    def handle(self, message):
        kind = message["type"]
        if kind == "attach":
            self.settings.update({name: message[name] for name in self.settings if name in message})
        elif kind == "call":
            self.calls.put(message)
        elif kind == "abort" and message["id"] == self.call_id:
            self.signal.abort(message["reason"])
        elif kind == "exit":
            self.calls.put(None)

    # ---- the main thread

    def update(self, call_id):
        def on_update(partial):
            if self.call_id != call_id or self.progress_left <= 0:
                return
            if isinstance(partial, str):
                partial = {"content": [{"type": "text", "text": partial}]}
            try:
                text = wire.to_json(partial)
            except (TypeError, ValueError, RecursionError) as error:
                print(f"on_update: a value that is no JSON was left out: {error}", file=sys.stderr)
                return
            self.progress_left -= len(text.encode())
            if self.progress_left > 0:
                self.wire.send({"type": "progress", "id": call_id}, [("partial", text)])
            else:
                print("on_update: this call has reached its limit of progress; the rest is left out", file=sys.stderr)

        return on_update

    def fail(self, kind, text):
        self.finish_output()
        self.wire.send({"type": "failed", "id": self.call_id, "kind": kind, "text": text})

    def finish_output(self):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass  # the tool has closed it

    def answer(self, value):
        if value is None:
            self.finish_output()
            self.wire.send({"type": "result", "id": self.call_id})
            return
        try:
            text = wire.to_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            self.fail("result", f"The result cannot be written as JSON: {error}. Return a text, or only "
                      "strings, finite numbers, booleans, None, lists and dicts.")
            return
        size = len(text.encode())
        if size > self.settings["resultMax"]:
            self.fail("result", f"The result is {size} bytes of JSON, more than the {self.settings['resultMax']} "
                      "allowed. Write large data to a file and return its path.")
            return
        self.finish_output()
        self.wire.send({"type": "result", "id": self.call_id}, [("value", text)])

    def reset_process(self):
        os.chdir(self.home)
        for name in set(os.environ) - set(self.environment):
            del os.environ[name]
        for name, value in self.environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value

    def load(self, message):
        # No cached bytecode: it is taken for new when the size and the second are the same.
        self.tool = tools.Tool(message["dir"], message["entry"], self.settings["generated"])

    def run(self, message):
        """One call. Returns whether the host is fit for another."""
        self.signal = tools.Signal()
        self.progress_left = self.settings["progressMax"]
        self.call_id = message["id"]
        self.wire.send({"type": "started", "id": self.call_id})
        try:
            self.reset_process()
            if self.tool is None:
                self.load(message)
            self.answer(self.tool.run(self.call_id, message["params"], self.signal, self.update(self.call_id)))
            return True
        except tools.ToolFault as fault:
            self.fail(fault.kind, str(fault))
        except SystemExit as error:
            self.fail("exit", f"The tool ended its own process (sys.exit, {error.code!r}) instead of returning a result.")
            return False
        except BaseException as error:
            self.fail("throw", tools.describe(error, message["dir"]))
        return self.tool is not None

    def is_clean(self):
        left = [thread for thread in threading.enumerate() if thread not in self.threads]
        for thread in left:
            thread.join(SETTLE_SECONDS)
        return not any(thread.is_alive() for thread in left)

    def main(self):
        reader = threading.Thread(target=self.read, daemon=True)
        reader.start()
        self.threads = {reader, threading.main_thread()}
        self.wire.send({"type": "ready"})
        while (message := self.calls.get()) is not None:
            if self.tool is not None and self.tool.files.have_changed():
                self.wire.send({"type": "stale", "id": message["id"]})
                continue
            fit = self.run(message)
            call_id, self.call_id = self.call_id, None
            self.wire.send({"type": "idle", "id": call_id, "clean": fit and self.is_clean()})


host = Host()
try:
    host.main()
except BaseException:
    traceback.print_exc()
    os._exit(1)
host.finish_output()
os._exit(0)
