// Real pipes. What Node calls a pipe to a child is a socket, and a script cannot open that by name:
// `echo oops > /dev/stderr` would fail.

import { execFileSync } from "node:child_process";
import { constants, openSync, readSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";

const CHUNK = 64 * 1024;
const DRAIN_MAX = 16 * CHUNK; // a pipe's default size; more is being written meanwhile

class Pipe {
  onData = () => {};

  constructor(path) {
    // In this order neither waits for the other end. Both stay open, so there is never an end of
    // file: a script's end is its exit.
    this.readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.writeFd = openSync(path, constants.O_WRONLY);
    unlinkSync(path);
    this.socket = new Socket({ fd: this.readFd, readable: true, writable: false });
    this.socket.on("data", (chunk) => this.onData(chunk));
  }

  // Hands on what is in the pipe now.
  drain(onData) {
    for (let total = 0; total < DRAIN_MAX; ) {
      const chunk = Buffer.alloc(CHUNK);
      let got;
      try {
        got = readSync(this.readFd, chunk);
      } catch (error) {
        if (error.code === "EAGAIN") return;
        throw error;
      }
      if (got === 0) return;
      onData(chunk.subarray(0, got));
      total += got;
    }
  }
}

// names -> { name: Pipe }; dir is private to this host.
export function makePipes(dir, names) {
  const paths = names.map((name) => join(dir, name));
  execFileSync("mkfifo", ["-m", "600", ...paths]);
  return Object.fromEntries(names.map((name, index) => [name, new Pipe(paths[index])]));
}
