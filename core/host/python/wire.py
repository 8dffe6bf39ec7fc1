"""The Python host's side of the protocol that core/running/wire.h describes."""

import fcntl
import json
import os
import resource
import socket
import threading

SOCKET_FD = 3
ASIDE_FD = 100  # out of the way of a tool that thinks it knows its descriptors


def to_json(value):
    """JSON on one line, in UTF-8. Raises what json.dumps raises."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half a surrogate pair is no Unicode and no JSON reader need take it.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if _has_half(text) else text


def _has_half(text):
    try:
        text.encode("utf-8")
        return False
    except UnicodeEncodeError:
        return True


class Wire:
    """Sends messages, keeps each until it is acknowledged, and reads those of the server."""

    def __init__(self):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        fd = fcntl.fcntl(SOCKET_FD, fcntl.F_DUPFD_CLOEXEC, min(ASIDE_FD, limit // 2))
        os.close(SOCKET_FD)
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(True)
        self._lock = threading.RLock()
        self._key = None
        self._seq = 0
        self._kept = []

    def _write(self, seq, rest):
        self._socket.sendall(f'\n{{"key":"{self._key}","seq":{seq},{rest}\n'.encode())

    def send(self, fields, ready=()):
        """fields: a dict; ready: pairs of a name and ready-made JSON, put behind them."""
        rest = to_json(fields)[1:-1]
        for name, text in ready:
            rest += f',"{name}":{text}'
        with self._lock:
            self._seq += 1
            self._kept.append((self._seq, rest + "}"))
            if self._key is not None:
                self._write(*self._kept[-1])

    def _attach(self, message):
        with self._lock:
            self._key = message["key"]
            self._acknowledge(message["acked"])
            for seq, rest in self._kept:
                self._write(seq, rest)

    def _acknowledge(self, seq):
        with self._lock:
            self._kept = [kept for kept in self._kept if kept[0] > seq]

    def read_forever(self, handle):
        """Calls handle(message) for each; returns when nobody holds the other end."""
        file = self._socket.makefile("rb")
        for line in file:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # an empty line, or the half of one that a dying server left
            kind = message.get("type")
            if kind == "ack":
                self._acknowledge(message["seq"])
                continue
            handle(message)
            if kind == "attach":
                self._attach(message)
