// One call of a tool: arguments in, exactly one result or failure out.

import { send } from "./wire.mjs";
import { bytesText, describeThrown, jsonOf } from "./text.mjs";
import { ToolFault } from "./load.mjs";

export class Call {
  #abort = new AbortController();
  #progressLeft;
  #resultMax;
  #over = false;

  constructor(message, settings) {
    this.id = message.id;
    this.dir = message.dir;
    this.message = message;
    this.#progressLeft = settings.progressMax;
    this.#resultMax = settings.resultMax;
  }

  get isOver() {
    return this.#over;
  }

  abort(reason) {
    if (!this.#over) this.#abort.abort(new DOMException(reason, "AbortError"));
  }

  // onUpdate takes any value and never throws: progress is no reason for a call to fail.
  #update = (partial) => {
    if (this.#over || this.#progressLeft <= 0) return;
    let json;
    try {
      json = jsonOf(partial);
    } catch (error) {
      console.error(`onUpdate: a value that is no JSON was left out: ${error.message}`);
    }
    if (json === undefined) return;
    this.#progressLeft -= Buffer.byteLength(json);
    if (this.#progressLeft > 0) send({ type: "progress", id: this.id }, { partial: json });
    else console.error("onUpdate: this call has reached its limit of progress; the rest is left out");
  };

  #end(fields, ready) {
    if (this.#over) return;
    this.#over = true;
    send({ ...fields, id: this.id }, ready);
  }

  fail(kind, text) {
    this.#end({ type: "failed", kind, text });
  }

  failThrown(thrown, kind = "throw") {
    if (thrown instanceof ToolFault) this.fail(thrown.kind, thrown.message);
    else this.fail(kind, describeThrown(thrown, this.dir));
  }

  #finish(value) {
    let json;
    try {
      json = jsonOf(value);
    } catch (error) {
      this.fail("result", `The result cannot be written as JSON: ${error?.message ?? error}. Return only strings, numbers, booleans, null, arrays and plain objects.`);
      return;
    }
    if (json === undefined) {
      if (value === undefined) this.#end({ type: "result" });
      else this.fail("result", `The tool returned a ${typeof value}, which is no result.`);
      return;
    }
    const size = Buffer.byteLength(json);
    if (size > this.#resultMax)
      this.fail("result", `The result is ${bytesText(size)} of JSON, more than the ${bytesText(this.#resultMax)} allowed. Write large data to a file and return its path.`);
    else this.#end({ type: "result" }, { value: json });
  }

  async run(tool) {
    try {
      this.#finish(await tool.run(this.message, this.#abort.signal, this.#update));
    } catch (thrown) {
      this.failThrown(thrown);
    }
  }
}
