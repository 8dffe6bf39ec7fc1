"""How often the tool `count` ran, and with what: the file to which it appends a line a call."""

import json


class Counter:
    def __init__(self, work, name="runs"):
        self.file = work / name
        self.file.touch()
        self.file.chmod(0o666)

    def request(self, **params):
        return json.dumps({"file": str(self.file), **params})

    def runs(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def count(self):
        return len(self.runs())
