"""Loads a Python tool, runs its calls, and says what went wrong in them."""

import asyncio
import importlib.util
import inspect
import json
import os
import sys
import threading
import time
import traceback

TEXT_MAX = 16 * 1024
HOW = (
    "Write in it: def execute(tool_call_id, params, signal, on_update): ... "
    'that returns a text, or {"content": [{"type": "text", "text": text}]}.'
)


class ToolFault(Exception):
    """A failure of the tool that has its whole text already."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Signal:
    """The call's abort signal: .aborted, .reason, .wait(seconds), .add_callback(function)."""

    def __init__(self):
        self._event = threading.Event()
        self._callbacks = []
        self._lock = threading.Lock()
        self.reason = None

    @property
    def aborted(self):
        return self._event.is_set()

    def wait(self, timeout=None):
        return self._event.wait(timeout)

    def add_callback(self, callback):
        """Called once with no arguments, in another thread; at once where it has been aborted."""
        with self._lock:
            if not self.aborted:
                self._callbacks.append(callback)
                return
        callback()

    def throw_if_aborted(self):
        if self.aborted:
            raise InterruptedError(self.reason)

    def abort(self, reason):
        with self._lock:
            if self.aborted:
                return
            self.reason = reason
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:
                traceback.print_exc()


def fingerprint(path):
    try:
        st = os.stat(path)
    except OSError:
        return None
    return (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)


class Files:
    """The files a tool was loaded from; see core/host/node/load.mjs."""

    def __init__(self, directory, generated):
        self._directory = directory
        self._generated = generated
        self._since_ns = time.time_ns()
        self._seen = {}

    def _add(self, path):
        if path not in self._seen:
            found = fingerprint(path)
            sure = found is not None and found[4] < self._since_ns - 20_000_000
            self._seen[path] = found if sure else "in doubt"

    def add_loaded(self):
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if path and path.startswith(os.path.dirname(self._directory) + "/"):
                self._add(path)
        for name in os.listdir(self._directory):
            if name.endswith((".py", ".json")) and name not in self._generated:
                self._add(os.path.join(self._directory, name))

    def have_changed(self):
        self.add_loaded()  # also what was imported while the tool ran
        return any(fingerprint(path) != before for path, before in self._seen.items())


class Tool:
    def __init__(self, directory, entry, generated):
        self.files = Files(directory, generated)
        path = os.path.join(directory, entry)
        sys.path.insert(0, directory)
        sys.argv = [path]
        spec = importlib.util.spec_from_file_location("index", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["index"] = module
        spec.loader.exec_module(module)
        execute = getattr(module, "execute", None)
        if execute is None:
            raise ToolFault("export", f'{entry} has no function "execute". {HOW}')
        if not callable(execute):
            raise ToolFault("export", f'"execute" of {entry} is no function but {type(execute).__name__}. {HOW}')
        self._execute = execute
        self._arity = self._count_parameters(execute)
        self.files.add_loaded()

    @staticmethod
    def _count_parameters(execute):
        kinds = [parameter.kind for parameter in inspect.signature(execute).parameters.values()]
        if inspect.Parameter.VAR_POSITIONAL in kinds:
            return 4
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return min(4, sum(kind in positional for kind in kinds))

    def run(self, *arguments):
        value = self._execute(*arguments[: self._arity])
        if inspect.isawaitable(value):
            value = asyncio.run(_await(value))
        if isinstance(value, str):
            value = {"content": [{"type": "text", "text": value}]}
        return value


async def _await(awaitable):
    return await awaitable


def describe(error, directory):
    """What a tool raised, and where in it."""
    if isinstance(error, SyntaxError) and error.filename:
        text = f"SyntaxError: {error.msg}"
        place = f"{os.path.relpath(error.filename, directory)}:{error.lineno}"
    else:
        name = type(error).__name__
        message = str(error)
        text = message if type(error) in (Exception, RuntimeError) else f"{name}: {message}" if message else name
        place = _place(error, directory)
    text = text or f"{type(error).__name__} without a message"
    if len(text) > TEXT_MAX:
        text = text[:TEXT_MAX] + " [...]"
    return text + (f"\n(raised at {place})" if place else "")


def _place(error, directory):
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(directory + "/"):
            return f"{os.path.relpath(frame.filename, directory)}:{frame.lineno}"
    return ""
