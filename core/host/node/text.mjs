// What a person or a model reads when a tool did not give a result, and JSON that always parses.

import { relative } from "node:path";
import { fileURLToPath } from "node:url";

const TEXT_MAX = 16 * 1024;

// Never throws, whatever value is.
export function textOf(value) {
  try {
    return String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

function shorten(text) {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} [...]` : text;
}

// "index.ts:12" of the first frame that lies in the tool's directory, or "".
export function placeOf(error, dir) {
  const stack = typeof error?.stack === "string" ? error.stack : "";
  for (const [, file, line] of stack.matchAll(/^\s+at .*?\(?((?:file:\/\/)?\/[^()]*?):(\d+):\d+\)?$/gm)) {
    const path = file.startsWith("file://") ? fileURLToPath(file) : file;
    if (path.startsWith(`${dir}/`)) return `${relative(dir, path)}:${line}`;
  }
  return "";
}

// What a tool threw, and where. Values of parameters are only in it if the tool put them there.
export function describeThrown(thrown, dir) {
  if (!(thrown instanceof Error) && !(typeof thrown?.stack === "string" && "message" in thrown)) {
    const what = thrown === null ? "null" : typeof thrown;
    return shorten(`The tool threw ${what === "object" ? "an object" : what} and no Error: ${plain(thrown)}`);
  }
  const name = textOf(thrown.name ?? "Error");
  const message = textOf(thrown.message).replaceAll(`${dir}/`, "");
  const text = name === "Error" ? message : message ? `${name}: ${message}` : name;
  const place = placeOf(thrown, dir);
  return shorten((text || "Error without a message") + (place ? `\n(thrown at ${place})` : ""));
}

function plain(value) {
  if (typeof value !== "object" || value === null) return textOf(value);
  try {
    return JSON.stringify(value) ?? textOf(value);
  } catch {
    return textOf(value);
  }
}

// JSON text of value, or undefined where JSON has none for it. Throws what JSON.stringify throws.
// Half a surrogate pair is no Unicode and no JSON reader need take it: it becomes U+FFFD.
export function jsonOf(value) {
  const json = JSON.stringify(value);
  if (json === undefined || !json.includes("\\ud")) return json;
  return json.replace(/\\(u[dD][89a-fA-F][0-9a-fA-F]{2}|[^])/g, (whole, rest) =>
    rest.length === 5 ? "\ufffd" : whole,
  );
}

export function bytesText(bytes) {
  return bytes >= 1048576 ? `${Math.ceil(bytes / 104857.6) / 10} MiB` : `${bytes} bytes`;
}
