// Standard output and error as a tool sees them: each write is out when it returns, so that nothing
// is lost in process.exit, all of it comes before the result, and what a child prints stays in its
// place. Node's own streams queue what a pipe does not take at once.

import { writeSync } from "node:fs";
import { Writable } from "node:stream";

const pause = new Int32Array(new SharedArrayBuffer(4));

function writeAll(fd, chunk) {
  for (let at = 0; at < chunk.length; ) {
    try {
      at += writeSync(fd, chunk, at);
    } catch (error) {
      // A child that shares the pipe may have made it non-blocking.
      if (error.code !== "EAGAIN") return;
      Atomics.wait(pause, 0, 0, 2);
    }
  }
}

class Output extends Writable {
  constructor(fd) {
    super({ decodeStrings: true, emitClose: false, autoDestroy: false });
    this.fd = fd;
  }

  _write(chunk, encoding, done) {
    writeAll(this.fd, chunk);
    done();
  }

  // A tool that ends its output has nothing more to say, and the next call has.
  end(...args) {
    if (args.length > 0 && typeof args[0] !== "function") this.write(...args);
    return this;
  }

  destroy() {
    return this;
  }
}

for (const [name, fd] of [["stdout", 1], ["stderr", 2]]) {
  const stream = new Output(fd);
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
}
