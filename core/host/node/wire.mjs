// The host's side of the protocol that core/running/wire.h describes.
//
// Messages are kept until the server acknowledges them, and are sent again to a server that
// attaches anew. The socket is the only one of the host; whatever a tool prints goes elsewhere.

import { Socket } from "node:net";

const SOCKET_FD = 3;
const LINE_MAX = 256 * 1024 * 1024;

let socket;
let key = null; // null: no server has attached yet
let lastSeq = 0;
let kept = []; // [{ seq, rest }], oldest first

// `rest` is the message behind its number, so that another key can be put before it.
function write({ seq, rest }) {
  socket.write(`\n{"key":"${key}","seq":${seq},${rest}\n`);
}

// Sends fields (JSON-safe) and, behind them, ready-made JSON: { value: "..." }.
export function send(fields, ready = {}) {
  let rest = JSON.stringify(fields).slice(1, -1);
  for (const [name, json] of Object.entries(ready)) rest += `,"${name}":${json}`;
  const message = { seq: ++lastSeq, rest: `${rest}}` };
  kept.push(message);
  if (key !== null) write(message);
}

function attach({ key: newKey, acked }) {
  key = newKey;
  acknowledge(acked);
  for (const message of kept) write(message);
}

function acknowledge(seq) {
  kept = kept.filter((message) => message.seq > seq);
}

function handle(line, on) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    return; // the half of a line that a dying server left; its whole follows with "attach"
  }
  if (message.type === "attach") {
    on.attach?.(message);
    attach(message);
  } else if (message.type === "ack") acknowledge(message.seq);
  else on[message.type]?.(message);
}

// Splits what arrives into lines. Pieces are joined once a line is whole: joining each time would
// take quadratic time for a large one.
function lineReader(onLine) {
  let pieces = [];
  let size = 0;
  return (chunk) => {
    for (let from = 0; ; ) {
      const end = chunk.indexOf(10, from);
      const piece = chunk.subarray(from, end < 0 ? chunk.length : end);
      size += piece.length;
      if (size > LINE_MAX) process.exit(70);
      pieces.push(piece);
      if (end < 0) return;
      const line = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
      pieces = [];
      size = 0;
      if (line.length > 0) onLine(line.toString("utf8"));
      from = end + 1;
    }
  };
}

// handlers: one function for each type of message; attach is told before what is kept is repeated.
export function connect(handlers) {
  socket = new Socket({ fd: SOCKET_FD, readable: true, writable: true });
  socket.on("data", lineReader((line) => handle(line, handlers)));
  // No server, and none that could take over, holds the other end: nobody wants a result.
  const gone = () => process.exit(0);
  socket.on("end", gone);
  socket.on("error", gone);
}

// Runs then() when all that was sent has left this process.
export function flush(then) {
  if (socket.writableLength === 0) then();
  else socket.write("\n", then);
}
