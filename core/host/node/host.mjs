// A tool host for TypeScript, JavaScript and bash: loads one tool on its first call, runs one call at a
// time, and stays warm for the next. core/running/wire.h has the protocol.

import { setPriority } from "node:os";
import "./output.mjs";
import { environment, resetEnvironment, setEnvironment } from "./env.mjs";
import { connect, flush, send } from "./wire.mjs";
import { Call } from "./call.mjs";
import { loadTool, prepareTool } from "./load.mjs";
import { loadShellTool } from "../sh/tool.mjs";
import { describeThrown } from "./text.mjs";

const SETTLE_MS = 20;
const SETTLE_TIMES = 5;
const PREPARING_NICE = 10;

const settings = { cacheDir: null, resultMax: Infinity, progressMax: Infinity, generated: [] };
const exitProcess = process.exit.bind(process);
let home = "/";
let tool = null;
let call = null;

// Where a tool's relative paths begin: the user's data, else the home directory.
function goHome() {
  for (const dir of [environment.OFFICER_USER_ROOT, environment.HOME, "/"]) {
    try {
      process.chdir(dir);
      return dir;
    } catch {
      // Not set, not there or not allowed: the next one.
    }
  }
  return "/";
}

// Each call begins as the first one did, whatever the one before changed.
function resetProcess() {
  if (process.cwd() !== home) process.chdir(home);
  resetEnvironment();
}

// ---- what a call leaves behind

function countResources() {
  const counts = new Map();
  for (const type of process.getActiveResourcesInfo()) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}

let baseline;

function isClean() {
  for (const [type, count] of countResources()) if (count > (baseline.get(type) ?? 0)) return false;
  return true;
}

// A pipe or a child that just ended is closed in the next turns of the loop, and what the warden
// sweeps ends a little later. What is still there then (a timer, a server, a connection) would run
// on into another call.
function settle(id, times = SETTLE_TIMES) {
  setImmediate(() => {
    setImmediate(() => {
      const clean = isClean();
      if (clean || times === 0) send({ type: "idle", id, clean });
      else setTimeout(settle, SETTLE_MS, id, times - 1);
    });
  });
}

// ---- messages of the server

async function onCall(message) {
  if (tool?.isStale()) {
    send({ type: "stale", id: message.id });
    return;
  }
  call = new Call(message, settings);
  send({ type: "started", id: call.id });
  if (message.env) {
    setEnvironment(message.env);
    home = goHome();
  }
  resetProcess();
  if (!tool) {
    process.title = `pegfs: ${message.name}`;
    try {
      tool = message.entry.endsWith(".sh")
        ? loadShellTool(message.dir, message.entry, settings)
        : await loadTool(message.dir, message.entry, settings);
    } catch (thrown) {
      call.failThrown(thrown, "load");
    }
  }
  // What a module opens while it is loaded stays, as its variables do.
  baseline ??= countResources();
  if (!call.isOver) await call.run(tool);
  // A tool that could not be loaded leaves a host of which nobody knows what ran in it.
  const { id } = call;
  call = null;
  if (tool) settle(id);
  else send({ type: "idle", id, clean: false });
}

async function onPrepare({ dir, entry }) {
  setPriority(PREPARING_NICE); // nobody waits for it, and calls may run
  try {
    await prepareTool(dir, entry, settings.cacheDir);
  } catch {
    // The call will say what is wrong with the tool.
  }
  send({ type: "prepared", dir });
}

// ---- what no tool can be stopped from doing

function onStray(thrown, what) {
  if (!call) {
    console.error(`${what} after the call had ended: ${describeThrown(thrown, "/")}`);
    flush(() => exitProcess(1));
    return;
  }
  call.failThrown(thrown);
  flush(() => exitProcess(1));
}

process.on("uncaughtException", (error) => onStray(error, "an uncaught exception"));
process.on("unhandledRejection", (reason) => onStray(reason, "an unhandled rejection"));

// process.exit in a tool ends the process at once; the socket takes this much without waiting.
process.on("exit", (code) => {
  call?.fail("exit", `The tool ended its own process (process.exit, status ${code}) instead of returning a result.`);
});

process.argv.length = 1;
home = goHome();

connect({
  attach(message) {
    for (const name of Object.keys(settings)) if (name in message) settings[name] = message[name];
  },
  call: onCall,
  prepare: onPrepare,
  abort({ id, reason }) {
    if (call?.id === id) call.abort(reason);
  },
  exit() {
    flush(() => exitProcess(0));
  },
});
send({ type: "ready" });
