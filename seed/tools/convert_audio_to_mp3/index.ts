// Convert an audio file, or the sound of a video, to MP3 with ffmpeg.

import { execSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, lstatSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, extname, join, resolve } from 'node:path';

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

function asInteger(name: string, value: unknown, min: number, max: number): number | undefined {
  const number = asNumber(name, value, min, max);
  if (number !== undefined && !Number.isSafeInteger(number)) {
    throw new Problem(`${name} must be a whole number, not ${number}.`);
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

/** Qualities of libmp3lame's variable bit rate. */
const VBR: Record<string, string> = { low: '7', medium: '5', high: '2', best: '0' };
const MP3_RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000];
const TIME_LIMIT_MS = 3_600_000;

type Params = {
  input_path: string;
  output_path?: string;
  quality?: string;
  bitrate_kbps?: number;
  sample_rate?: number;
  channels?: number;
  start_seconds?: number;
  duration_seconds?: number;
  normalize?: boolean;
  overwrite?: boolean;
};

type Request = {
  input: string;
  output: string;
  quality: string;
  bitrate?: number;
  rate?: number;
  channels?: number;
  start: number;
  duration?: number;
  normalize: boolean;
  overwrite: boolean;
};

function readRequest(params: Params): Request {
  const { input_path, output_path, quality = 'high', normalize = false, overwrite = false } = params ?? {};
  const given = asText('input_path', input_path);
  if (!given) throw new Problem('input_path parameter is required: the audio or video file to convert.');
  const input = userPath(given);
  const wanted = asText('output_path', output_path);
  const rate = asInteger('sample_rate', params.sample_rate, 8000, 48000);
  if (rate !== undefined && !MP3_RATES.includes(rate)) {
    throw new Problem(`sample_rate ${rate} is none that MP3 has. Available: ${MP3_RATES.join(', ')}.`);
  }
  const duration = asNumber('duration_seconds', params.duration_seconds, 0, 1e7);
  if (duration === 0) throw new Problem('duration_seconds must be greater than 0.');
  return {
    input,
    output: wanted ? userPath(wanted) : join(dirname(input), `${basename(input, extname(input))}.mp3`),
    quality: asChoice('quality', quality, Object.keys(VBR)) ?? 'high',
    bitrate: asInteger('bitrate_kbps', params.bitrate_kbps, 8, 320),
    rate,
    channels: asInteger('channels', params.channels, 1, 2),
    start: asNumber('start_seconds', params.start_seconds, 0, 1e7) ?? 0,
    duration,
    normalize: asBoolean('normalize', normalize) ?? false,
    overwrite: asBoolean('overwrite', overwrite) ?? false,
  };
}

function checkPaths({ input, output, overwrite }: Request): void {
  const source = statSync(input, { throwIfNoEntry: false });
  if (!source) throw new Problem(`input_path not found: ${input}.`);
  if (!source.isFile()) throw new Problem(`input_path is not a file: ${input}.`);
  if (source.size === 0) throw new Problem(`input_path is an empty file: ${input}.`);
  const old = lstatSync(output, { throwIfNoEntry: false });
  if (!old) return;
  if (old.ino === source.ino && old.dev === source.dev) {
    throw new Problem(`Input and output are the same file: ${output}. Give another output_path.`);
  }
  if (!old.isFile()) throw new Problem(`output_path is a directory, link or device: ${output}. Name a file.`);
  if (!overwrite) throw new Problem(`${output} exists already. Set overwrite: true to replace it, or give another output_path.`);
}

// ---- probing ----------------------------------------------------------------------------------

type Stream = { codec_type?: string; codec_name?: string; sample_rate?: string; channels?: number };
type Probe = { format?: { format_name?: string; duration?: string; bit_rate?: string }; streams?: Stream[] };

/** Formats that are lists of other files: what they name is not the file that was given. */
const LISTS = ['hls', 'concat', 'dash', 'imf', 'ffmetadata', 'sdp', 'rtsp', 'applehttp'];

async function probe(path: string, signal: AbortSignal | undefined): Promise<Probe> {
  const args = ['-v', 'error', '-protocol_whitelist', 'file,pipe', '-print_format', 'json', '-show_format', '-show_streams', `file:${path}`];
  const result = await run('ffprobe', args, { timeoutMs: 60_000, signal });
  if (result.stopped) throw new Problem(`ffprobe could not read ${path} within a minute.`);
  if (result.code !== 0) throw new Problem(`${path} is no audio or video file that ffmpeg can read: ${lastLines(result.stderr, 5)}`);
  return JSON.parse(result.stdout.toString('utf8')) as Probe;
}

function audioOf(found: Probe): Stream | undefined {
  return found.streams?.find((stream) => stream.codec_type === 'audio');
}

function secondsOf(found: Probe): number | undefined {
  const seconds = Number(found.format?.duration);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}

// ---- converting -------------------------------------------------------------------------------

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

function encoderArgs(request: Request, audio: Stream): string[] {
  const args = request.bitrate === undefined ? ['-q:a', VBR[request.quality]] : ['-b:a', `${request.bitrate}k`];
  // loudnorm works at 192 kHz: without a rate of its own the result would differ from the source.
  const own = MP3_RATES.includes(Number(audio.sample_rate)) ? Number(audio.sample_rate) : 48000;
  const rate = request.rate ?? (request.normalize ? own : undefined);
  if (request.normalize) args.push('-af', 'loudnorm');
  if (rate !== undefined) args.push('-ar', String(rate));
  if (request.channels !== undefined) args.push('-ac', String(request.channels));
  return args;
}

/** Why ffmpeg failed, with what to do where that is known. */
function encoderProblem(stderr: string): Problem {
  const text = lastLines(stderr);
  if (/No space left on device/.test(text)) return new Problem(`The disk is full. Free some space or choose another output_path.\n${text}`);
  return new Problem(`ffmpeg could not convert the file:\n${text || '(it gave no reason)'}`);
}

/** Give the finished file its name; without `overwrite` a file that appeared meanwhile is not replaced. */
function putInPlace(temporary: string, { output, overwrite }: Request): void {
  if (overwrite) {
    renameSync(temporary, output);
    return;
  }
  try {
    linkSync(temporary, output);
  } catch (e) {
    if (existsSync(output)) throw new Problem(`${output} was made by another program meanwhile. Set overwrite: true to replace it.`);
    // A file system without links.
    renameSync(temporary, output);
  }
}

async function convert(request: Request, signal: AbortSignal | undefined, onUpdate: OnUpdate | undefined): Promise<ToolResult> {
  const { input, output } = request;
  checkPaths(request);
  report(onUpdate, `Reading ${input}...`);
  const source = await probe(input, signal);
  const format = source.format?.format_name ?? '';
  if (format.split(',').some((name) => LISTS.includes(name))) {
    throw new Problem(`${input} is a playlist (${format}), not an audio file. Convert the files that it names.`);
  }
  const audio = audioOf(source);
  if (!audio) throw new Problem(`${input} contains no audio (format ${format || 'unknown'}).`);
  const total = secondsOf(source);
  if (total !== undefined && request.start >= total) {
    throw new Problem(`start_seconds ${request.start} is beyond the end of the file (${total.toFixed(1)} s).`);
  }
  const expected = total === undefined ? request.duration : Math.min(total - request.start, request.duration ?? Infinity);
  makeDirs(dirname(output));
  const temporary = join(dirname(output), `.converting-${randomBytes(6).toString('hex')}.tmp`);
  try {
    const done = await encode(request, audio, temporary, expected, signal, onUpdate);
    const target = await probe(temporary, signal);
    const seconds = secondsOf(target) ?? 0;
    if (audioOf(target)?.codec_name !== 'mp3' || Math.abs(seconds - done.seconds) > Math.max(0.2, done.seconds / 100)) {
      throw new Problem(`The result is not sound (${seconds} s instead of ${done.seconds} s), so nothing was written.`);
    }
    putInPlace(temporary, request);
    return ok(capText(summary(request, source, target, expected, done.stderr)));
  } finally {
    rmSync(temporary, { force: true });
  }
}

async function encode(
  request: Request,
  audio: Stream,
  temporary: string,
  expected: number | undefined,
  signal: AbortSignal | undefined,
  onUpdate: OnUpdate | undefined,
): Promise<{ seconds: number; stderr: string }> {
  let seconds = 0;
  let said = 0;
  const onSeconds = (now: number): void => {
    seconds = now;
    if (Date.now() - said < 1000) return;
    said = Date.now();
    const percent = expected ? ` (${Math.min(100, Math.round((100 * now) / expected))} %)` : '';
    report(onUpdate, `Converted ${now.toFixed(1)} s${percent}`);
  };
  const cut = [
    ...(request.start > 0 ? ['-ss', String(request.start)] : []),
    ...(request.duration === undefined ? [] : ['-t', String(request.duration)]),
  ];
  const args = [
    '-hide_banner', '-nostdin', '-nostats', '-v', 'error', '-progress', 'pipe:1', '-y', ...cut,
    '-protocol_whitelist', 'file,pipe', '-i', `file:${request.input}`,
    '-map', '0:a:0', '-vn', '-c:a', 'libmp3lame', ...encoderArgs(request, audio),
    '-map_metadata', '0', '-id3v2_version', '3', '-f', 'mp3', `file:${temporary}`,
  ];
  const result = await run('ffmpeg', args, { timeoutMs: TIME_LIMIT_MS, signal, onOutput: progressReader(onSeconds) });
  if (result.stopped) throw new Problem('The conversion took longer than an hour and was stopped. Convert a part: start_seconds, duration_seconds.');
  if (result.code !== 0) throw encoderProblem(result.stderr);
  if (seconds === 0) throw new Problem(`No sound came out of ${request.input}; it may be damaged.\n${lastLines(result.stderr)}`);
  return { seconds, stderr: result.stderr };
}

function summary(request: Request, source: Probe, target: Probe, expected: number | undefined, stderr: string): string {
  const [from, to] = [audioOf(source), audioOf(target)];
  const seconds = secondsOf(target) ?? 0;
  const kbps = Math.round(Number(target.format?.bit_rate ?? 0) / 1000);
  const lines = [
    `Converted ${request.input} (${from?.codec_name}, ${secondsOf(source)?.toFixed(1) ?? 'unknown'} s) to ${request.output}: ` +
      `${statSync(request.output).size} bytes, ${seconds.toFixed(1)} s, ${kbps} kb/s, ${to?.sample_rate} Hz, ${to?.channels} channel${to?.channels === 1 ? '' : 's'}.`,
  ];
  if (expected !== undefined && seconds < expected - Math.max(0.2, expected / 100)) {
    lines.push(`Warning: ${expected.toFixed(1)} s were expected. The source may be cut short or damaged.`);
  }
  if (stderr.trim()) lines.push(`Warning: ffmpeg found faults in the source:\n${lastLines(stderr, 5)}`);
  return lines.join('\n');
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
    requireCommands(['ffmpeg', 'ffprobe'], 'ffmpeg');
    return await convert(request, signal, onUpdate);
  } catch (e) {
    return failure('Conversion failed', e);
  }
}
