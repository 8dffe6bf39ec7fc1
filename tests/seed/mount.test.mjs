// The local tools as an agent calls them: JSON into `call` of a real mount, the answer from result.txt.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ROOT, makeTempDir, missing } from './fixtures/harness.mjs';
import { makeTone } from './fixtures/make-media.mjs';
import { drawText, textPdf } from './fixtures/make-pdf.mjs';
import { makeMailDb } from './make-mail-db.mjs';

const PEGFS = process.env.PEGFS ?? join(ROOT, 'build/pegfs');
const LIB_DIR = process.env.PEGFS_LIB_DIR ?? join(ROOT, 'build/lib/pegfs');
const skip =
  (!existsSync(PEGFS) && 'pegfs is not built') || (!existsSync('/dev/fuse') && 'no /dev/fuse') ||
  missing('sqlite3', 'ffmpeg', 'ffprobe', 'tesseract', 'pdftotext', 'convert');

let daemon;

/** Takes the mount away. It is registered ahead of makeTempDir's own hook, which then finds an empty directory. */
after(async () => {
  if (!daemon || daemon.exitCode !== null) return;
  const ended = new Promise((settle) => daemon.once('exit', settle));
  if (spawnSync(PEGFS, ['umount', mount], { timeout: 10_000 }).status !== 0) daemon.kill('SIGTERM');
  const timer = setTimeout(() => {
    daemon.kill('SIGKILL');
    spawnSync('umount', ['-l', mount]);
  }, 5_000);
  await ended;
  clearTimeout(timer);
});

const tmp = makeTempDir();
const mount = join(tmp, 'tools');
const home = join(tmp, 'user');
const LOCAL = ['convert_audio_to_mp3', 'email_db', 'ffmpeg', 'ocr'];

before(async () => {
  if (skip) return;
  // The five tools alone, and below the user's pdf_categorizer a global one that it must hide.
  const globals = join(tmp, 'global');
  const users = join(tmp, 'users');
  for (const dir of [mount, home, globals, users]) mkdirSync(dir);
  for (const name of LOCAL) cpSync(join(ROOT, 'seed/tools', name), join(globals, name), { recursive: true });
  cpSync(join(ROOT, 'seed/user-tools/pdf_categorizer'), join(users, 'pdf_categorizer'), { recursive: true });
  cpSync(join(users, 'pdf_categorizer'), join(globals, 'pdf_categorizer'), { recursive: true });
  writeFileSync(join(globals, 'pdf_categorizer', 'index.ts'), "export async function execute() { throw new Error('the global one'); }");
  makeMailDb(join(tmp, 'mail.db'), { mails: 200 });
  const args = ['mount', mount, '-f', '--tools', `${globals}:${users}`, '--lib-dir', LIB_DIR, '--ready-fd', '3'];
  const env = [`OFFICER_EMAIL_DB=${join(tmp, 'mail.db')}`, `OFFICER_USER_ROOT=${home}`].flatMap((item) => ['--env', item]);
  daemon = spawn(PEGFS, [...args, ...env], { stdio: ['ignore', 'inherit', 'pipe', 'pipe'] });
  let log = '';
  daemon.stderr.on('data', (chunk) => (log += chunk));
  await new Promise((settle, reject) => {
    daemon.stdio[3].once('data', settle);
    daemon.once('exit', () => reject(new Error(`pegfs ended: ${log}`)));
  });
});

/** What the shell of an agent does. Every process of this call is below one shell, so its result is its own. */
function call(name, params) {
  const script = 'printf "%s\\n" "$1" > "$2/call"; status=$?; cat "$2/result.txt"; exit $status';
  const run = spawnSync('sh', ['-c', script, 'sh', JSON.stringify(params), join(mount, name)], { encoding: 'utf8', timeout: 60_000 });
  return { status: run.status, text: run.stdout };
}

const ok = (name, params) => {
  const { status, text } = call(name, params);
  assert.equal(status, 0, text);
  return text;
};

test('R117 email_db through the mount', { skip }, () => {
  assert.match(ok('email_db', { action: 'stats' }), /^200 messages/);
  const { status, text } = call('email_db', { action: 'query', sql: 'DELETE FROM emails' });
  assert.notEqual(status, 0);
  assert.match(text, /Only SELECT statements/);
});

test('R115 convert_audio_to_mp3 and ffmpeg through the mount', { skip }, () => {
  makeTone(join(home, 'tone.wav'));
  assert.match(ok('convert_audio_to_mp3', { input_path: 'tone.wav' }), /tone\.mp3: \d+ bytes/);
  assert.match(ok('ffmpeg', { command: 'ffprobe', args: '-v error -show_format tone.mp3' }), /format_name=mp3/);
});

test('a writer that is killed takes its ffmpeg with it', { skip }, async () => {
  const params = JSON.stringify({ args: '-re -f lavfi -i sine=duration=61 -f null -' });
  const writer = spawn('sh', ['-c', 'exec printf "%s\\n" "$1" > "$2/call"', 'sh', params, join(mount, 'ffmpeg')], { stdio: 'ignore' });
  const running = () => spawnSync('pgrep', ['-f', 'sine=duration=61 -f null'], { encoding: 'utf8' }).stdout.split('\n').some((pid) => {
    return pid && existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('ffmpeg\0');
  });
  const waitFor = async (holds) => {
    const limit = Date.now() + 10_000;
    while (!holds() && Date.now() < limit) await new Promise((settle) => setTimeout(settle, 50));
    assert.ok(holds());
  };
  await waitFor(running);
  writer.kill('SIGKILL');
  await waitFor(() => !running());
});

test('R116 R29 ocr through the mount; its key is in no file', { skip }, () => {
  drawText(join(home, 'hello.png'), 'Hello quick brown fox 4711', { height: 160 });
  assert.match(ok('ocr', { input_path: 'hello.png', api_key: 'sesame-4242' }), /Hello quick brown fox 4711/);
  const found = spawnSync('grep', ['-rl', 'sesame-4242', join(mount, 'ocr'), join(mount, '.pegfs')], { encoding: 'utf8' });
  assert.equal(found.stdout, '');
});

test('R118 R12 pdf_categorizer as a user tool, over a global one of its name', { skip }, () => {
  mkdirSync(join(home, 'pdfs'));
  writeFileSync(join(home, 'pdfs', 'a.pdf'), textPdf(['INVOICE\nAmount due: 100']));
  assert.match(ok('pdf_categorizer', { action: 'apply', directory: 'pdfs' }), /^1 of 1 PDF files moved/);
  assert.deepEqual(readdirSync(join(home, 'pdfs', 'Invoices')), ['a.pdf']);
  ok('pdf_categorizer', { action: 'undo', directory: 'pdfs' });
  assert.deepEqual(readdirSync(join(home, 'pdfs')), ['a.pdf']);
});
