// Run ffmpeg or ffprobe with the agent's arguments: no shell, no network unless asked for.

import { execSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

type ToolResult = { content: Array<{ type: string; text: string }>; isError?: boolean };

type OnUpdate = (partial: { content: Array<{ type: string; text: string }> }) => void;

// Helpers that several tools share: the same text in each (tests/seed/lint.test.mjs compares them),
// because a tool can import nothing but Node's standard library.

/** The longest text given back; more goes to output_path. */
const TEXT_MAX = 50_000;

/** A failure that the agent can act on: its message is the whole error text. */
class Problem extends Error {}

function ok(text: string): ToolResult {
  return { content: [{ type: 'text', text }] };
}

function err(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/** Any thrown value as an error result; `prefix` heads what is not a Problem. */
function failure(prefix: string, e: unknown): ToolResult {
  const message = e instanceof Error ? e.message : String(e);
  const text = e instanceof Problem ? message : `${prefix}: ${message}`;
  return err(text.length > 10_000 ? `${text.slice(0, 10_000)}…` : text);
}

function capText(text: string): string {
  if (text.length <= TEXT_MAX) return text;
  const splitsPair = /[\uD800-\uDBFF]/.test(text[TEXT_MAX - 1]);
  const end = splitsPair ? TEXT_MAX - 1 : TEXT_MAX;
  const rest = text.length - end;
  return `${text.slice(0, end)}\n… truncated (${rest} more characters); set output_path to get everything.`;
}

/** Progress for the agent. What a listener throws must not end the tool from inside a timer. */
function report(onUpdate: OnUpdate | undefined, text: string): void {
  try {
    onUpdate?.({ content: [{ type: 'text', text }] });
  } catch {
    // The listener's fault; the work goes on without it.
  }
}

function firstNonEmpty(...values: Array<string | undefined>): string | undefined {
  return values.find((value) => value !== undefined && value !== '');
}

/** A string parameter; undefined when it is not given (absent, null or empty). */
function asText(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (!['string', 'number', 'boolean'].includes(typeof value)) throw new Problem(`${name} must be a string.`);
  const text = String(value);
  if (text.includes('\0')) throw new Problem(`${name} must not contain NUL characters.`);
  return text;
}

/** A number parameter within a range; undefined when it is not given. */
function asNumber(name: string, value: unknown, min: number, max: number): number | undefined {
  const text = asText(name, value)?.trim();
  if (text === undefined || text === '') return undefined;
  const number = Number(text);
  if (typeof value === 'boolean' || !(number >= min && number <= max)) {
    throw new Problem(`${name} must be a number from ${min} to ${max}, not "${text.slice(0, 40)}".`);
  }
  return number;
}

function asBoolean(name: string, value: unknown): boolean | undefined {
  const text = asText(name, value)?.trim().toLowerCase();
  if (text === undefined) return undefined;
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw new Problem(`${name} must be true or false, not "${text.slice(0, 40)}".`);
}

function asChoice(name: string, value: unknown, choices: readonly string[]): string | undefined {
  const text = asText(name, value)?.trim();
  if (text === undefined || choices.includes(text)) return text;
  throw new Problem(`Unknown ${name}: "${text.slice(0, 40)}". Available: ${choices.join(', ')}.`);
}

/** Where relative paths start: the user's own directory. */
function userRoot(): string {
  return firstNonEmpty(process.env.OFFICER_USER_ROOT, process.env.HOME) ?? process.cwd();
}

/** A path as the agent gave it, made absolute: then no program can take it for an option or a URL. */
function userPath(path: string): string {
  if (path === '~' || path.startsWith('~/')) return resolve(homedir(), path.slice(2));
  return resolve(userRoot(), path);
}

/** Make a directory and what lies above it. (Node's own recursive way never ends below /proc.) */
function makeDirs(path: string): void {
  if (existsSync(path)) return;
  makeDirs(dirname(path));
  try {
    mkdirSync(path);
  } catch (e) {
    // Another call may have made it just now.
    if (!existsSync(path)) throw e;
  }
}

/**
 * Write a file whole or not at all: to a temporary sibling, then renamed. Makes the parent
 * directory; replaces a regular file, never a directory, link or device. Returns what to tell the agent.
 */
function saveFile(path: string, data: string | Uint8Array): string {
  const temporary = join(dirname(path), `.saving-${randomBytes(6).toString('hex')}.tmp`);
  try {
    const old = lstatSync(path, { throwIfNoEntry: false });
    if (old?.isDirectory()) throw new Error('it is a directory; name a file in it');
    if (old && !old.isFile()) throw new Error('it is not a regular file');
    makeDirs(dirname(path));
    writeFileSync(temporary, data, { flag: 'wx' });
    renameSync(temporary, path);
    const size = typeof data === 'string' ? Buffer.byteLength(data) : data.length;
    return `${path} (${size} bytes${old ? ', replacing the file that was there' : ''})`;
  } catch (e) {
    rmSync(temporary, { force: true });
    throw new Problem(`Cannot write ${path}: ${e instanceof Error ? e.message : String(e)}.`);
  }
}

function hasCommand(cmd: string): boolean {
  try {
    execSync(`which ${cmd}`, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Check early that programs are there; `debianPackage` tells the user what to install. */
function requireCommands(cmds: readonly string[], debianPackage: string): void {
  for (const cmd of cmds) {
    if (hasCommand(cmd)) continue;
    throw new Problem(`${cmd} is required but not installed in the container. (Debian package: ${debianPackage})`);
  }
}

/** What a child program needs of the environment; our tokens and settings are not its business. */
function childEnv(): NodeJS.ProcessEnv {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TZ', 'TESSDATA_PREFIX', 'FONTCONFIG_FILE', 'FONTCONFIG_PATH'];
  const env: NodeJS.ProcessEnv = { LC_ALL: 'C.UTF-8', OMP_THREAD_LIMIT: '1' };
  for (const name of names) if (process.env[name] !== undefined) env[name] = process.env[name];
  return env;
}

type RunOptions = {
  timeoutMs: number;
  signal?: AbortSignal;
  input?: string;
  cwd?: string;
  env?: Record<string, string>;
  maxOutput?: number;
  maxError?: number;
  onOutput?: (chunk: string) => void;
};

/** `stopped` says why we killed the program; `stderr` is the tail of what it wrote. */
type RunResult = { code: number | null; stdout: Buffer; stderr: string; stopped?: 'timeout' | 'overflow' };

/**
 * Run a program with an argument array, never through a shell. Standard input is `input` or nothing;
 * its output is kept, or given to `onOutput` as it comes. It is ended (SIGTERM, then SIGKILL) at the
 * time limit, on cancellation, and when it writes more than `maxOutput` bytes to be kept. Cancellation
 * and a program that cannot be started reject with a Problem.
 */
function run(cmd: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const { timeoutMs, signal, input, cwd, onOutput } = options;
  const { maxOutput = 16 * 1024 * 1024, maxError = 64 * 1024 } = options;
  const env = { ...childEnv(), ...options.env };
  return new Promise((settle, reject) => {
    if (signal?.aborted) throw new Problem('Cancelled.');
    const stdin = input === undefined ? 'ignore' : 'pipe';
    const child = spawn(cmd, args, { cwd, env, stdio: [stdin, 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    let size = 0;
    let stderr = '';
    let stopped: 'timeout' | 'overflow' | 'cancelled' | undefined;
    let killTimer: NodeJS.Timeout | undefined;
    const stop = (why: typeof stopped): void => {
      if (stopped) return;
      stopped = why;
      child.kill('SIGTERM');
      killTimer = setTimeout(() => child.kill('SIGKILL'), 2_000);
    };
    const timer = setTimeout(() => stop('timeout'), timeoutMs);
    const cancel = (): void => stop('cancelled');
    const cleanUp = (): void => {
      clearTimeout(timer);
      clearTimeout(killTimer);
      signal?.removeEventListener('abort', cancel);
    };
    signal?.addEventListener('abort', cancel, { once: true });
    child.stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (onOutput) onOutput(chunk.toString());
      else if (size <= maxOutput) chunks.push(chunk);
      else stop('overflow');
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-maxError);
    });
    // A program that ends before it has read its input: its exit status tells the story.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
    child.on('error', (e) => {
      cleanUp();
      reject(new Problem(`Cannot run ${cmd}: ${e.message}.`));
    });
    child.on('close', (code) => {
      cleanUp();
      if (stopped === 'cancelled') reject(new Problem(`Cancelled: ${cmd} was stopped.`));
      else settle({ code, stdout: Buffer.concat(chunks), stderr, stopped });
    });
  });
}

/** The end of a program's error output, for an error text. */
function lastLines(text: string, count = 20): string {
  return text.trim().split('\n').slice(-count).join('\n');
}

// ---- parameters -------------------------------------------------------------------------------

type Params = {
  command?: string;
  args: string;
  working_dir?: string;
  timeout_seconds?: number;
  allow_network?: boolean;
  overwrite?: boolean;
  output_path?: string;
};

type Request = {
  command: string;
  args: string[];
  cwd: string;
  timeoutMs: number;
  network: boolean;
  overwrite: boolean;
  outputPath?: string;
};

function readRequest(params: Params): Request {
  const { command = 'ffmpeg', timeout_seconds = 600, allow_network = false, overwrite = false } = params ?? {};
  const given = asText('args', params?.args);
  if (!given?.trim()) throw new Problem('args parameter is required: the arguments for ffmpeg or ffprobe.');
  const words = splitArgs(given);
  let program = asChoice('command', command, ['ffmpeg', 'ffprobe']) ?? 'ffmpeg';
  const named = basename(words[0] ?? '');
  if (named === 'ffmpeg' || named === 'ffprobe') {
    program = named;
    words.shift();
  }
  if (words.length === 0) throw new Problem('args holds no arguments.');
  const cwd = userPath(asText('working_dir', params.working_dir) ?? '.');
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) throw new Problem(`working_dir is not a directory: ${cwd}.`);
  const outputPath = asText('output_path', params.output_path);
  return {
    command: program,
    args: words,
    cwd,
    timeoutMs: (asNumber('timeout_seconds', timeout_seconds, 1, 7200) ?? 600) * 1000,
    network: asBoolean('allow_network', allow_network) ?? false,
    overwrite: asBoolean('overwrite', overwrite) ?? false,
    outputPath: outputPath && userPath(outputPath),
  };
}

/** The arguments out of a JSON array of strings, or out of one line with quotes as in a shell. */
function splitArgs(text: string): string[] {
  const words = text.trim().startsWith('[') ? parseArray(text) : splitLine(text);
  if (words.some((word) => word.includes('\0'))) throw new Problem('args must not contain NUL characters.');
  return words;
}

function parseArray(text: string): string[] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (Array.isArray(parsed) && parsed.every((item) => typeof item === 'string' || typeof item === 'number')) return parsed.map(String);
  } catch {
    // Said below, together with the other fault.
  }
  throw new Problem('args begins with "[" but is no valid JSON array of strings, such as ["-i", "in.wav", "out.flac"].');
}

/** Split at blanks outside of '...', "..." and after \; nothing else has a meaning. */
function splitLine(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (quote === "'" ? char === "'" : quote === '"' && char === '"') quote = '';
    else if (quote === "'") word += char;
    else if (char === '\\') {
      const next = text[++i];
      if (next === undefined) throw new Problem('args ends with a lone backslash.');
      if (quote === '"' && !'"\\$`\n'.includes(next)) word += char;
      if (next !== '\n') word = (word ?? '') + next;
    } else if (quote === '"') word += char;
    else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + char;
  }
  if (quote) throw new Problem(`args has an opening ${quote} without its end.`);
  if (word !== undefined) words.push(word);
  return words;
}

// ---- what may be reached ----------------------------------------------------------------------

const LOCAL_PROTOCOLS = 'file,pipe,crypto,data,concat,subfile';
const NETWORK =
  'amqp|ffrtmp\\w*|ftp|gophers?|https?|httpproxy|icecast|ip[fn]s|mms[ht]?|prompeg|rist|rtmp\\w*|rtp|rtsps?|sap|sctp|sftp|srtp?|tcp|tls|udp(?:lite)?|unix|zmq';
const NETWORK_START = new RegExp(`^(?:\\w+[:+])*(?:${NETWORK})[:,]`, 'i');
const NETWORK_INSIDE = new RegExp(`(?:^|[^a-z0-9])(?:${NETWORK})://`, 'i');

/**
 * Refuse arguments that name something on the network. The white list of protocols is not enough:
 * filters such as movie= open files without it, and in a filter the colon may be quoted.
 */
function refuseNetwork(args: string[]): void {
  args.forEach((arg, i) => {
    if (/^-metadata/.test(args[i - 1] ?? '')) return;
    const plain = arg.replace(/[\\'"]/g, '');
    if (NETWORK_START.test(plain) || NETWORK_INSIDE.test(plain)) {
      throw new Problem(`"${arg.slice(0, 200)}" is on the network. Set allow_network: true if the user wants that.`);
    }
    if (arg === '-protocol_whitelist') throw new Problem('-protocol_whitelist is set by this tool; use allow_network: true for network protocols.');
  });
}

/** The whole command line: ours in front, and the protocols before each input. */
function fullArgs(request: Request, usesStdout: boolean): string[] {
  const { command, args, network, overwrite } = request;
  const protocols = network ? [] : ['-protocol_whitelist', LOCAL_PROTOCOLS];
  if (command === 'ffprobe') return ['-hide_banner', ...protocols, ...args];
  const progress = usesStdout || args.includes('-progress') ? [] : ['-progress', 'pipe:1'];
  const force = args.includes('-y') || args.includes('-n') ? [] : [overwrite ? '-y' : '-n'];
  const guarded = args.flatMap((arg) => (arg === '-i' ? [...protocols, arg] : [arg]));
  return ['-hide_banner', '-nostdin', '-nostats', ...progress, ...force, ...guarded];
}

/** Whether an output goes to standard output (with `-f null -` nothing comes out there). */
function writesStdout(args: string[]): boolean {
  return args.some((arg, i) => {
    const toStdout = ['-', 'pipe:', 'pipe:1'].includes(arg) && !['-i', '-progress'].includes(args[i - 1]);
    return toStdout && !(args[i - 1] === 'null' && args[i - 2] === '-f');
  });
}

// ---- running ----------------------------------------------------------------------------------

type Files = Map<string, string>;

/** The files in the directories that the arguments name, each with size and time, to see what is new. */
function listFiles(request: Request): Files {
  const folders = new Set([request.cwd]);
  for (const arg of request.args) {
    if (!arg.startsWith('-') && arg.length < 4096) folders.add(dirname(resolve(request.cwd, arg.replace(/^file:/, ''))));
  }
  const files: Files = new Map();
  for (const folder of folders) {
    try {
      for (const name of readdirSync(folder).slice(0, 10_000)) {
        const info = statSync(join(folder, name), { throwIfNoEntry: false });
        if (info?.isFile()) files.set(join(folder, name), `${info.size}:${info.mtimeMs}`);
      }
    } catch {
      // Not a directory: the argument was no path.
    }
  }
  return files;
}

function newFiles(before: Files, after: Files): string[] {
  const changed = [...after].filter(([path, state]) => before.get(path) !== state);
  const lines = changed.slice(0, 50).map(([path, state]) => `  ${path} (${state.split(':')[0]} bytes)`);
  if (changed.length > 50) lines.push(`  and ${changed.length - 50} more`);
  return lines;
}

/** Length of the first input, for the progress in percent; undefined if it cannot be known. */
async function inputSeconds(request: Request, signal: AbortSignal | undefined): Promise<number | undefined> {
  const input = request.args[request.args.indexOf('-i') + 1] ?? '';
  const path = resolve(request.cwd, input.replace(/^file:/, ''));
  if (!request.args.includes('-i') || !statSync(path, { throwIfNoEntry: false })?.isFile() || !hasCommand('ffprobe')) return undefined;
  const args = ['-v', 'error', '-protocol_whitelist', LOCAL_PROTOCOLS, '-show_entries', 'format=duration', '-of', 'csv=p=0', `file:${path}`];
  const { stdout } = await run('ffprobe', args, { timeoutMs: 20_000, signal });
  const seconds = Number(stdout.toString('utf8').trim() || NaN);
  return seconds > 0 ? seconds : undefined;
}

/** ffmpeg's -progress lines, which may come in pieces, as seconds of output done so far. */
function progressReader(onSeconds: (seconds: number) => void): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const micros = /^out_time_us=(\d+)$/.exec(line)?.[1];
      if (micros !== undefined) onSeconds(Number(micros) / 1e6);
    }
  };
}

function quoted(args: string[]): string {
  const words = args.map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`));
  const line = words.join(' ');
  return line.length > 2000 ? `${line.slice(0, 2000)}…` : line;
}

function exitProblem(request: Request, args: string[], code: number | null, stderr: string): Problem {
  const hints = [
    /already exists\. Exiting/.test(stderr) ? 'Set overwrite: true to replace the file, or choose another name.' : '',
    /not on whitelist/.test(stderr) ? 'The input refers to something on the network. Set allow_network: true if the user wants that.' : '',
    /No space left on device/.test(stderr) ? 'The disk is full.' : '',
  ];
  const lines = [`${request.command} failed (exit code ${code}).`, ...hints, lastLines(stderr), `Command: ${request.command} ${quoted(args)}`];
  return new Problem(lines.filter(Boolean).join('\n'));
}

async function runProgram(request: Request, signal: AbortSignal | undefined, onUpdate: OnUpdate | undefined): Promise<ToolResult> {
  if (!request.network) refuseNetwork(request.args);
  const { command, cwd, timeoutMs } = request;
  const usesStdout = command === 'ffprobe' || writesStdout(request.args);
  const args = fullArgs(request, usesStdout);
  const total = command === 'ffmpeg' ? await inputSeconds(request, signal) : undefined;
  let said = 0;
  const onSeconds = (seconds: number): void => {
    if (Date.now() - said < 1000) return;
    said = Date.now();
    const percent = total && seconds <= total ? ` (${Math.round((100 * seconds) / total)} % of the input)` : '';
    report(onUpdate, `${seconds.toFixed(1)} s of output done${percent}`);
  };
  const before = listFiles(request);
  report(onUpdate, `Running ${command}...`);
  const result = await run(command, args, {
    timeoutMs,
    signal,
    cwd,
    // What slips through all the same (a script of filters, say) finds no way out by HTTP.
    env: request.network ? undefined : { http_proxy: 'http://127.0.0.1:9' },
    maxOutput: 64 * 1024 * 1024,
    maxError: 4 * 1024 * 1024,
    onOutput: usesStdout ? undefined : progressReader(onSeconds),
  });
  const made = newFiles(before, listFiles(request));
  const madeText = made.length ? `\nFiles written:\n${made.join('\n')}` : '';
  if (result.stopped === 'timeout') {
    throw new Problem(`${command} took longer than ${timeoutMs / 1000} seconds and was stopped. Raise timeout_seconds (up to 7200) or do less.${madeText}`);
  }
  if (result.stopped === 'overflow') throw new Problem('More than 64 MiB came out on standard output. Write to a file instead.');
  if (result.code !== 0) throw exitProblem(request, args, result.code, result.stderr);
  return usesStdout ? giveOutput(request, result, madeText) : giveLog(request, result, madeText);
}

/** What came out on standard output: JSON tidied up, other text as it is, bytes only into a file. */
function giveOutput(request: Request, result: RunResult, madeText: string): ToolResult {
  const { stdout, stderr } = result;
  let text = stdout.toString('utf8');
  const isText = !text.includes('\0') && !text.includes('\uFFFD');
  if (isText && /^\s*[[{]/.test(text)) {
    try {
      text = `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
    } catch {
      // Some other text that begins with a bracket.
    }
  }
  if (request.outputPath) {
    const saved = saveFile(request.outputPath, isText ? text : stdout);
    return ok(`Output of ${request.command} saved to ${saved}.${madeText}`);
  }
  if (!isText) return ok(`${request.command} wrote ${stdout.length} bytes that are no text to standard output; set output_path to save them.${madeText}`);
  return ok(capText(text.trim() || `${request.command} wrote no output.\n${lastLines(stderr, 40)}${madeText}`));
}

function giveLog(request: Request, result: RunResult, madeText: string): ToolResult {
  const heading = `${request.command} succeeded.${madeText || '\nNo files were written in the directories that the arguments name.'}`;
  if (request.outputPath) return ok(capText(`${heading}\nLog saved to ${saveFile(request.outputPath, result.stderr)}.`));
  return ok(capText(`${heading}\n\nEnd of its log:\n${lastLines(result.stderr, 40)}`));
}

// ---- entry ------------------------------------------------------------------------------------

export async function execute(
  _toolCallId: string,
  params: Params,
  signal?: AbortSignal,
  onUpdate?: OnUpdate,
): Promise<ToolResult> {
  try {
    const request = readRequest(params);
    requireCommands([request.command], 'ffmpeg');
    return await runProgram(request, signal, onUpdate);
  } catch (e) {
    return failure('ffmpeg tool failed', e);
  }
}
