// Text from images and scanned PDFs: tesseract here, or the OCR service that the user has configured.

import { execSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

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

/** All configured integrations; none if the variable is unset or not a JSON object. */
function resources(): Record<string, unknown> {
  try {
    return asRecord(JSON.parse(firstNonEmpty(process.env.OFFICER_RESOURCES) ?? '{}'));
  } catch {
    return {};
  }
}

// What a server sends is whatever it is: these take out what has the expected type, else nothing.

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

// ---- parameters -------------------------------------------------------------------------------

const FORMATS = ['text', 'tsv', 'hocr', 'pdf'] as const;
const PSM: Record<string, string> = { block: '6', line: '7', word: '8', sparse: '11' };
const PAGES_MAX = 500;
const FILE_MAX = 200 * 1024 * 1024;
/** More pixels than this a page: the resolution is lowered instead. */
const PIXELS_MAX = 100_000_000;

type Params = {
  input_path: string;
  language?: string;
  pages?: string;
  mode?: string;
  dpi?: number;
  format?: string;
  provider?: string;
  force?: boolean;
  output_path?: string;
  api_key?: string;
};

type Request = {
  input: string;
  language: string;
  pages: string;
  mode: string;
  dpi?: number;
  format: string;
  provider: string;
  force: boolean;
  outputPath?: string;
  apiKey?: string;
};

/** `notes` stand below the answer, `signal` and `onUpdate` are the caller's. */
type Job = { request: Request; kind: string; notes: string[]; signal?: AbortSignal; onUpdate?: OnUpdate };

function readRequest(params: Params): Request {
  const { input_path, language = 'eng', pages = 'all', mode = 'auto', format = 'text' } = params ?? {};
  const { provider = 'auto', force = false, output_path, api_key } = params ?? {};
  const input = asText('input_path', input_path);
  if (!input) throw new Problem('input_path parameter is required: the image or PDF to read.');
  const outputPath = asText('output_path', output_path);
  const request = {
    input: userPath(input),
    language: asText('language', language) ?? 'eng',
    pages: asText('pages', pages) ?? 'all',
    mode: asChoice('mode', mode, ['auto', ...Object.keys(PSM)]) ?? 'auto',
    dpi: asInteger('dpi', params.dpi, 72, 600),
    format: asChoice('format', format, FORMATS) ?? 'text',
    provider: asChoice('provider', provider, ['auto', 'local', 'remote']) ?? 'auto',
    force: asBoolean('force', force) ?? false,
    outputPath: outputPath && userPath(outputPath),
    apiKey: asText('api_key', api_key),
  };
  if (request.format === 'pdf' && !outputPath) throw new Problem('output_path parameter is required for format pdf.');
  return request;
}

/** The numbers of `1,3-5`, in order; `all` is every page. */
function pageNumbers(pages: string, count: number): number[] {
  if (pages.trim().toLowerCase() === 'all') return checkedCount(Array.from({ length: count }, (_, i) => i + 1), count);
  const numbers = new Set<number>();
  for (const part of pages.split(',')) {
    const [, from, to = from] = /^\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?$/.exec(part) ?? [];
    if (from === undefined) throw new Problem(`pages must be "all" or numbers such as "1,3-5", not "${pages.slice(0, 40)}".`);
    const [first, last] = [Number(from), Number(to)];
    if (first < 1 || last > count || first > last) throw new Problem(`pages: ${part.trim()} is out of range; the file has ${count} page${count === 1 ? '' : 's'}.`);
    for (let page = first; page <= last; page++) numbers.add(page);
  }
  return checkedCount([...numbers].sort((a, b) => a - b), count);
}

function checkedCount(numbers: number[], count: number): number[] {
  if (numbers.length <= PAGES_MAX) return numbers;
  throw new Problem(`The file has ${count} pages; at most ${PAGES_MAX} a call. Give pages, such as "1-${PAGES_MAX}".`);
}

// ---- the file ---------------------------------------------------------------------------------

/** What a file is by its first bytes. Its name does not count: tesseract takes a text as a list of files to read. */
function kindOf(head: Buffer): string | undefined {
  const text = head.toString('latin1');
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (text.startsWith('II*\0') || text.startsWith('MM\0*')) return 'image/tiff';
  if (/^RIFF[\s\S]{4}WEBP/.test(text)) return 'image/webp';
  if (/^GIF8[79]a/.test(text)) return 'image/gif';
  if (text.startsWith('BM') && [12, 40, 52, 56, 64, 108, 124].includes(head.length >= 18 ? head.readUInt32LE(14) : 0)) return 'image/bmp';
  if (/^P[1-6]\s/.test(text)) return 'image/x-portable-anymap';
  return text.includes('%PDF-') ? 'application/pdf' : undefined;
}

function checkInput(request: Request): string {
  const { input, outputPath } = request;
  const info = statSync(input, { throwIfNoEntry: false });
  if (!info) throw new Problem(`input_path not found: ${input}.`);
  if (!info.isFile()) throw new Problem(`input_path is not a file: ${input}.`);
  if (info.size === 0) throw new Problem(`input_path is an empty file: ${input}.`);
  if (info.size > FILE_MAX) throw new Problem(`input_path is larger than ${FILE_MAX / 1024 / 1024} MiB: ${input}.`);
  const kind = kindOf(readFileSync(input).subarray(0, 1024));
  if (!kind) throw new Problem(`${input} is not an image or PDF (judged by its content). Supported: png, jpg, tiff, webp, bmp, gif, pnm, pdf.`);
  const target = outputPath && statSync(outputPath, { throwIfNoEntry: false });
  if (target && target.ino === info.ino && target.dev === info.dev) throw new Problem('output_path is the input file; choose another name.');
  return kind;
}

/** Pages of a TIFF file: the length of its chain of directories. */
function tiffPages(path: string): number {
  const bytes = readFileSync(path);
  const little = bytes[0] === 0x49;
  const u16 = (at: number): number => (little ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
  const u32 = (at: number): number => (little ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));
  const seen = new Set<number>();
  let at = bytes.length >= 8 ? u32(4) : 0;
  while (at >= 8 && at + 2 <= bytes.length && !seen.has(at) && seen.size < 10_000) {
    seen.add(at);
    const next = at + 2 + 12 * u16(at);
    at = next + 4 <= bytes.length ? u32(next) : 0;
  }
  return Math.max(1, seen.size);
}

/** A directory for one call's pictures, gone afterwards. */
async function withTempDir<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'ocr-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// ---- tesseract --------------------------------------------------------------------------------

type Engine = { language: string; languages: string[]; psm: string };
type Page = { number: number; text: string; confidence?: number; from: 'ocr' | 'text layer' | 'service' };

async function openEngine(job: Job): Promise<Engine> {
  requireCommands(['tesseract'], 'tesseract-ocr');
  const { request, signal } = job;
  const result = await run('tesseract', ['--list-langs'], { timeoutMs: 30_000, signal });
  const languages = `${result.stdout.toString('utf8')}\n${result.stderr}`.split('\n').map((line) => line.trim()).filter((line) => /^[\w/]+$/.test(line));
  const wanted = request.language.split('+').map((code) => code.trim());
  for (const code of wanted) {
    if (languages.includes(code)) continue;
    const known = languages.filter((language) => language !== 'osd').join(', ') || 'none';
    const debianPackage = /^\w+$/.test(code) ? ` Package: tesseract-ocr-${code.replaceAll('_', '-')}.` : '';
    throw new Problem(`Language "${code.slice(0, 40)}" is not installed (available: ${known}).${debianPackage}`);
  }
  return { language: wanted.join('+'), languages, psm: PSM[request.mode] ?? (languages.includes('osd') ? '1' : '3') };
}

/**
 * Run tesseract on one picture, or on a list of them that we have written, into files `base`.* in
 * our own directory. `extra` says which of them and which page.
 */
async function tesseract(job: Job, engine: Engine, input: string, base: string, extra: string[], timeoutMs: number): Promise<void> {
  const dpi = job.request.dpi ?? (job.kind === 'application/pdf' ? 300 : undefined);
  const resolution = dpi === undefined ? [] : ['--dpi', String(dpi)];
  const options = ['-l', engine.language, '--psm', engine.psm, ...resolution, '-c', 'tessedit_create_txt=0'];
  const result = await run('tesseract', [input, base, ...options, ...extra], { timeoutMs, signal: job.signal });
  if (result.stopped) throw new Problem(`tesseract took longer than ${timeoutMs / 1000} seconds and was stopped. Give fewer pages or a lower dpi.`);
  if (result.code !== 0) throw new Problem(`tesseract cannot read ${job.request.input}; it may be damaged or cut short:\n${lastLines(result.stderr, 5)}`);
}

/** Mean confidence of the words in tesseract's TSV, in percent. */
function meanConfidence(tsv: string): number | undefined {
  const values = tsv.split('\n').slice(1).map((line) => line.split('\t')).filter((cells) => cells.length >= 12 && cells[11].trim() && Number(cells[10]) >= 0).map((cells) => Number(cells[10]));
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined;
}

async function ocrPage(job: Job, engine: Engine, folder: string, input: string, number: number, extra: string[]): Promise<Page> {
  const base = join(folder, `page-${number}`);
  const wanted = ['-c', 'tessedit_create_txt=1', '-c', 'tessedit_create_tsv=1', ...extra];
  await tesseract(job, engine, input, base, wanted, 300_000);
  const [text, tsv] = ['txt', 'tsv'].map((ending) => (existsSync(`${base}.${ending}`) ? readFileSync(`${base}.${ending}`, 'utf8') : ''));
  return { number, text: text.replaceAll('\f', '').trim(), confidence: meanConfidence(tsv), from: 'ocr' };
}

// ---- PDF --------------------------------------------------------------------------------------

type Pdf = { count: number; points: Array<[number, number]> };

async function openPdf(job: Job): Promise<Pdf> {
  requireCommands(['pdfinfo', 'pdftotext', 'pdftoppm'], 'poppler-utils');
  const { request, signal } = job;
  const result = await run('pdfinfo', ['-f', '1', '-l', '100000', request.input], { timeoutMs: 60_000, signal });
  if (/Incorrect password/i.test(result.stderr) && result.code !== 0) {
    throw new Problem(`${request.input} is encrypted with a password. Ask the user for a copy without one.`);
  }
  const text = result.stdout.toString('utf8');
  const count = Number(/^Pages:\s+(\d+)/m.exec(text)?.[1] ?? 0);
  if (result.stopped || result.code !== 0 || count < 1) {
    throw new Problem(`${request.input} is a damaged PDF: ${lastLines(result.stderr, 3) || 'it has no pages'}`);
  }
  const points: Pdf['points'] = [];
  for (const [, page, width, height] of text.matchAll(/^Page\s+(\d+) size:\s+([\d.]+) x ([\d.]+) pts/gm)) points[Number(page)] = [Number(width), Number(height)];
  return { count, points };
}

async function textLayer(job: Job, page: number): Promise<string> {
  const args = ['-f', String(page), '-l', String(page), '-enc', 'UTF-8', job.request.input, '-'];
  const { stdout } = await run('pdftotext', args, { timeoutMs: 60_000, signal: job.signal });
  return stdout.toString('utf8').replaceAll('\f', '').trim();
}

/** Enough text that OCR could only make it worse. */
function isRealText(text: string): boolean {
  return (text.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= 16;
}

async function drawPage(job: Job, pdf: Pdf, page: number, folder: string): Promise<string> {
  const wanted = job.request.dpi ?? 300;
  const [width, height] = pdf.points[page] ?? [612, 792];
  const fits = Math.floor(Math.sqrt(PIXELS_MAX / ((width / 72) * (height / 72) || 1)));
  const dpi = Math.max(1, Math.min(wanted, fits));
  if (dpi < wanted) job.notes.push(`Note: page ${page} is very large and was read at ${dpi} dpi.`);
  const base = join(folder, `drawn-${page}`);
  const args = ['-r', String(dpi), '-png', '-f', String(page), '-l', String(page), '-singlefile', job.request.input, base];
  const result = await run('pdftoppm', args, { timeoutMs: 300_000, signal: job.signal });
  if (result.code !== 0 || !existsSync(`${base}.png`)) throw new Problem(`Page ${page} of the PDF cannot be drawn: ${lastLines(result.stderr, 3) || 'pdftoppm gave no reason'}`);
  return `${base}.png`;
}

// ---- local work -------------------------------------------------------------------------------

async function localPages(job: Job): Promise<Page[]> {
  const { request, kind } = job;
  const pdf = kind === 'application/pdf' ? await openPdf(job) : undefined;
  const count = pdf?.count ?? (kind === 'image/tiff' ? tiffPages(request.input) : 1);
  const numbers = pageNumbers(request.pages, count);
  const pages: Page[] = [];
  let engine: Engine | undefined;
  return withTempDir(async (folder) => {
    for (const number of numbers) {
      report(job.onUpdate, `Reading page ${number} (${pages.length + 1} of ${numbers.length})...`);
      const text = pdf && !request.force ? await textLayer(job, number) : '';
      if (isRealText(text)) {
        pages.push({ number, text, from: 'text layer' });
        continue;
      }
      // Only now: a PDF that has its text needs no tesseract.
      engine ??= await openEngine(job);
      if (pdf) {
        const picture = await drawPage(job, pdf, number, folder);
        pages.push(await ocrPage(job, engine, folder, picture, number, []));
        rmSync(picture);
      } else {
        const extra = count > 1 ? ['-c', `tessedit_page_number=${number - 1}`] : [];
        pages.push(await ocrPage(job, engine, folder, request.input, number, extra));
      }
    }
    return pages;
  });
}

/** TSV, hOCR or a searchable PDF, all pages in one run of tesseract so that they are numbered through. */
async function localDocument(job: Job): Promise<Buffer> {
  const { request, kind } = job;
  const engine = await openEngine(job);
  const pdf = kind === 'application/pdf' ? await openPdf(job) : undefined;
  const count = pdf?.count ?? (kind === 'image/tiff' ? tiffPages(request.input) : 1);
  const numbers = pageNumbers(request.pages, count);
  return withTempDir(async (folder) => {
    let input = request.input;
    const extra = ['-c', `tessedit_create_${request.format}=1`];
    if (pdf) {
      const pictures: string[] = [];
      for (const number of numbers) {
        report(job.onUpdate, `Drawing page ${number} (${pictures.length + 1} of ${numbers.length})...`);
        pictures.push(await drawPage(job, pdf, number, folder));
      }
      input = join(folder, 'list.txt');
      writeFileSync(input, `${pictures.join('\n')}\n`);
    } else if (numbers.length < count) {
      if (numbers.length > 1) throw new Problem(`For format ${request.format}, give all pages of a TIFF or one of them.`);
      extra.push('-c', `tessedit_page_number=${numbers[0] - 1}`);
    }
    report(job.onUpdate, `Recognizing ${numbers.length} pages...`);
    await tesseract(job, engine, input, join(folder, 'result'), extra, Math.min(3_600_000, 300_000 * numbers.length));
    return readFileSync(join(folder, `result.${request.format}`));
  });
}

// ---- the OCR service --------------------------------------------------------------------------

type Service = { protocol: 'mistral' | 'ocrspace' | 'http'; url: string; key?: string; model?: string; language?: string };
const NOT_CONFIGURED = 'OCR service not configured. Ask the user to add it in Settings → Integrations, or use provider local.';

/** The configured service, if there is one. Its address comes from the configuration alone, for a key is sent there. */
function findService(request: Request): Service | undefined {
  const config = asRecord(resources()['optical-character-recognition']);
  const text = (...names: string[]): string | undefined => firstNonEmpty(...names.map((name) => (typeof config[name] === 'string' ? (config[name] as string) : undefined)));
  const url = text('url', 'base_url', 'baseUrl', 'endpoint');
  const named = (text('provider', 'type') ?? '').toLowerCase().replace(/[^a-z]/g, '');
  if (!url && !named) return undefined;
  const protocol = named.includes('mistral') ? 'mistral' : named.includes('ocrspace') ? 'ocrspace' : 'http';
  const defaults = { mistral: 'https://api.mistral.ai', ocrspace: 'https://api.ocr.space', http: undefined };
  const base = url ?? defaults[protocol];
  if (!base || !/^https?:\/\//.test(base)) throw new Problem('The OCR service has no valid url. Ask the user to correct it in Settings → Integrations.');
  const key = request.apiKey ?? text('api_key', 'apiKey', 'token');
  if (!key && protocol !== 'http') throw new Problem('The OCR service has no API key. Ask the user to add it in Settings → Integrations.');
  return { protocol, url: base.replace(/\/+$/, ''), key, model: text('model'), language: text('language') };
}

/** Language codes of OCR.space that differ from tesseract's. */
const OCR_SPACE: Record<string, string> = { deu: 'ger', fra: 'fre', nld: 'dut', ces: 'cze', ell: 'gre', chi_sim: 'chs', chi_tra: 'cht' };

function serviceRequest(job: Job, service: Service, numbers: number[] | undefined): { url: string; init: RequestInit } {
  const { request, kind } = job;
  const data = readFileSync(request.input).toString('base64');
  const dataUrl = `data:${kind};base64,${data}`;
  const json = { 'content-type': 'application/json' };
  const bearer: Record<string, string> = service.key ? { authorization: `Bearer ${service.key}` } : {};
  if (service.protocol === 'mistral') {
    const document = kind === 'application/pdf' ? { type: 'document_url', document_url: dataUrl } : { type: 'image_url', image_url: dataUrl };
    const body = { model: service.model ?? 'mistral-ocr-latest', document, pages: numbers?.map((number) => number - 1) };
    const root = service.url.replace(/\/v1$/, '');
    return { url: `${root}/v1/ocr`, init: { method: 'POST', headers: { ...json, ...bearer }, body: JSON.stringify(body) } };
  }
  if (service.protocol === 'ocrspace') {
    const form = new FormData();
    const [first] = request.language.split('+');
    form.set('base64Image', dataUrl);
    form.set('language', OCR_SPACE[first] ?? first);
    const url = service.url.endsWith('/parse/image') ? service.url : `${service.url}/parse/image`;
    return { url, init: { method: 'POST', headers: { apikey: service.key ?? '' }, body: form } };
  }
  const body = { data_base64: data, mime_type: kind, language: service.language ?? request.language, pages: numbers };
  return { url: service.url, init: { method: 'POST', headers: { ...json, ...bearer }, body: JSON.stringify(body) } };
}

/** What each HTTP error of a service means for the agent. */
function statusProblem(status: number, body: string, retryAfter: string | null): Problem {
  const meanings: Record<number, string> = {
    401: 'it rejected the API key. Ask the user to check it in Settings → Integrations',
    402: 'the account has no credit left. Ask the user to look at it',
    403: 'the API key may not do this. Ask the user to check it in Settings → Integrations',
    413: 'the file is too large for it. Give fewer pages, or use provider local',
    429: `too many requests. Try again later${retryAfter ? ` (it says: after ${retryAfter.slice(0, 60)})` : ''}`,
  };
  const meaning = meanings[status] ?? (body.replace(/\s+/g, ' ').trim().slice(0, 300) || 'no reason given');
  return new Problem(`OCR service answered ${status}: ${meaning}.`);
}

/** One POST, never repeated, for each may cost money. Times out, ends with the caller's signal, follows no redirect. */
async function post(url: string, init: RequestInit, signal: AbortSignal | undefined): Promise<unknown> {
  const stop = new AbortController();
  const cancel = (): void => stop.abort();
  const timer = setTimeout(cancel, 180_000);
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted) cancel();
  try {
    const response = await fetch(url, { ...init, redirect: 'error', signal: stop.signal });
    const text = (await response.text()).slice(0, 50_000_000);
    if (!response.ok) throw statusProblem(response.status, text, response.headers.get('retry-after'));
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw new Problem(`OCR service answered with something that is no JSON: ${text.slice(0, 200)}`);
    }
  } catch (e) {
    if (e instanceof Problem) throw e;
    if (signal?.aborted) throw new Problem('Cancelled.');
    if (stop.signal.aborted) throw new Problem('OCR service did not answer within 180 seconds.');
    const cause = (e as { cause?: { code?: string; message?: string } }).cause;
    throw new Problem(`OCR service at ${new URL(url).host} cannot be reached: ${cause?.code ?? cause?.message ?? String(e)}.`);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  }
}

type Answer = {
  text?: unknown;
  pages?: Array<{ index?: number; markdown?: unknown; text?: unknown }>;
  ParsedResults?: Array<{ ParsedText?: unknown }>;
  IsErroredOnProcessing?: boolean;
  ErrorMessage?: unknown;
};

async function remotePages(job: Job, service: Service): Promise<Page[]> {
  const { request, signal } = job;
  const numbers = request.pages.trim().toLowerCase() === 'all' ? undefined : pageNumbers(request.pages, 100_000);
  report(job.onUpdate, `Sending the file to the OCR service at ${new URL(service.url).host}...`);
  const { url, init } = serviceRequest(job, service, numbers);
  const reply = await post(url, init, signal);
  if (typeof reply !== 'object' || reply === null) throw new Problem('OCR service answered with something unexpected.');
  const answer = reply as Answer;
  if (answer.IsErroredOnProcessing) throw new Problem(`OCR service reports: ${[answer.ErrorMessage].flat().join('; ').slice(0, 500)}`);
  const page = (text: unknown, number: number): Page => ({ number, text: String(text ?? '').trim(), from: 'service' });
  if (Array.isArray(answer.ParsedResults)) {
    const parsed = answer.ParsedResults.map((result, i) => page(result?.ParsedText, i + 1));
    return numbers ? parsed.filter(({ number }) => numbers.includes(number)) : parsed;
  }
  if (Array.isArray(answer.pages)) {
    return answer.pages.map((item, i) => page(item?.markdown ?? item?.text, typeof item?.index === 'number' ? item.index + 1 : numbers?.[i] ?? i + 1));
  }
  if (typeof answer.text === 'string') return [page(answer.text, 1)];
  throw new Problem('OCR service answered without text or pages.');
}

// ---- putting it together ----------------------------------------------------------------------

/** The service if one is configured and wanted, else tesseract; with `auto` a failing service falls back to it. */
async function readPages(job: Job): Promise<Page[]> {
  const { request } = job;
  if (request.provider === 'local') return localPages(job);
  const remoteOnly = request.provider === 'remote';
  let service: Service | undefined;
  try {
    service = findService(request);
    if (!service && remoteOnly) throw new Problem(NOT_CONFIGURED);
    if (service) return await remotePages(job, service);
  } catch (e) {
    const why = withoutKey(e instanceof Error ? e.message : String(e), service?.key ?? request.apiKey);
    if (remoteOnly || job.signal?.aborted || !hasCommand('tesseract')) throw new Problem(why);
    job.notes.push(`Note: read here with tesseract, because the OCR service failed: ${why}`);
  }
  return localPages(job);
}

function withoutKey(text: string, key: string | undefined): string {
  return key ? text.replaceAll(key, '[api key]') : text;
}

function joined(pages: Page[]): string {
  if (pages.length === 1) return pages[0].text;
  return pages.map((page) => `--- Page ${page.number} ---\n${page.text}`).join('\n\n');
}

/** Where the text comes from and how sure tesseract is of it. */
function origin(job: Job, pages: Page[]): string {
  const counted = (from: Page['from']): number => pages.filter((page) => page.from === from).length;
  const scores = pages.map((page) => page.confidence).filter((score): score is number => score !== undefined);
  const mean = scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : undefined;
  if (mean !== undefined && mean < 60) job.notes.push('Note: the confidence is low. Try the right language, another mode, or a higher dpi.');
  const parts = [
    counted('ocr') ? `${counted('ocr')} by OCR (${job.request.language}${mean === undefined ? '' : `, confidence ${Math.round(mean)} %`})` : '',
    counted('text layer') ? `${counted('text layer')} from the text in the PDF` : '',
    counted('service') ? `${counted('service')} by the OCR service` : '',
  ];
  return `${pages.length} page${pages.length === 1 ? '' : 's'}: ${parts.filter(Boolean).join(', ')}`;
}

async function recognize(job: Job): Promise<ToolResult> {
  const { request } = job;
  const end = (): string => (job.notes.length ? `\n\n${job.notes.join('\n')}` : '');
  if (request.format !== 'text') {
    if (request.provider === 'remote') throw new Problem(`The OCR service gives text only; use provider local for format ${request.format}.`);
    const document = await localDocument(job);
    if (request.outputPath) return ok(`${request.format} saved to ${saveFile(request.outputPath, document)}.${end()}`);
    return ok(`${capText(document.toString('utf8'))}${end()}`);
  }
  const pages = await readPages(job);
  const heading = origin(job, pages);
  const text = joined(pages);
  if (pages.every((page) => page.text === '')) return ok(`No text found in ${request.input} (${heading}).${end()}`);
  if (request.outputPath) return ok(`Text of ${heading}, saved to ${saveFile(request.outputPath, `${text}\n`)}.${end()}`);
  return ok(`Text of ${heading}\n\n${capText(text)}${end()}`);
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
    if (signal?.aborted) throw new Problem('Cancelled.');
    const kind = checkInput(request);
    return await recognize({ request, kind, notes: [], signal, onUpdate });
  } catch (e) {
    return failure('OCR failed', e);
  }
}
