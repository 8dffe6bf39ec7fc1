// convert_audio_to_mp3 with the real ffmpeg: every common format in, MP3 out, and files that are none.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { contractTests } from './fixtures/contract.mjs';
import { caller, childPrograms, loadTool, makePath, makeTempDir, missing, withEnv, withFastTimers } from './fixtures/harness.mjs';
import { ffprobe, makeTone, makeVideo } from './fixtures/make-media.mjs';

const DIR = 'seed/tools/convert_audio_to_mp3';
const skip = missing('ffmpeg', 'ffprobe');
const tmp = makeTempDir();
const tool = caller(await loadTool(DIR));
const home = (fn) => withEnv({ OFFICER_USER_ROOT: tmp, HOME: tmp }, fn);
const ok = (params, ...rest) => home(() => tool.ok(params, ...rest));
const err = (params, ...rest) => home(() => tool.err(params, ...rest));
const leftovers = () => readdirSync(tmp, { recursive: true }).filter((name) => String(name).includes('.converting-'));

if (!skip) {
  makeTone(join(tmp, 'tone.wav'));
  mkdirSync(join(tmp, 'contract'));
  makeTone(join(tmp, 'contract', 'short.wav'), { seconds: 0.2 });
  const base = { input_path: join(tmp, 'contract', 'short.wav'), overwrite: true };
  contractTests({ dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), base });
}

test('R115 each common format becomes an MP3 of the same length', { skip }, async () => {
  const formats = {
    'a.flac': [], 'a.ogg': ['-c:a', 'libvorbis'], 'a.opus': ['-c:a', 'libopus'], 'a.m4a': ['-c:a', 'aac'], 'a.aac': ['-c:a', 'aac'],
    'a.wma': ['-c:a', 'wmav2'], 'a.aiff': [], 'a.mka': ['-c:a', 'pcm_s24le'], 'a.ac3': ['-c:a', 'ac3', '-ac', '6'], 'high.wav': ['-ar', '96000', '-c:a', 'pcm_s32le'],
  };
  for (const [name, extra] of Object.entries(formats)) {
    makeTone(join(tmp, name), { extra });
    const text = await ok({ input_path: name, output_path: `out/${name}.mp3` });
    assert.match(text, /^Converted .* to .*\.mp3: \d+ bytes, \d\.\d s, \d+ kb\/s, \d+ Hz, [12] channels?\.$/m);
    const { format, streams } = ffprobe(join(tmp, `out/${name}.mp3`));
    assert.equal(streams[0].codec_name, 'mp3');
    assert.ok(Math.abs(Number(format.duration) - 2) < 0.2, `${name}: ${format.duration} s`);
  }
});

test('R115 the name beside the input, tags, and a video with a cover', { skip }, async () => {
  makeVideo(join(tmp, 'film.mp4'), { extra: ['-metadata', 'title=Der Film: größer'] });
  await ok({ input_path: join(tmp, 'film.mp4') });
  const { format, streams } = ffprobe(join(tmp, 'film.mp3'));
  assert.deepEqual([format.tags.title, streams.length], ['Der Film: größer', 1]);
});

test('R115 quality, bit rate, sample rate, channels, cut and loudness arrive', { skip }, async () => {
  const probe = async (params) => {
    await ok({ input_path: 'tone.wav', output_path: 'p.mp3', overwrite: true, ...params });
    const { format, streams } = ffprobe(join(tmp, 'p.mp3'));
    return { rate: Number(streams[0].sample_rate), channels: streams[0].channels, kbps: Math.round(format.bit_rate / 1000), seconds: Math.round(format.duration * 10) / 10 };
  };
  const { kbps, ...exact } = await probe({ bitrate_kbps: 64, sample_rate: 22050, channels: 2 });
  assert.deepEqual(exact, { rate: 22050, channels: 2, seconds: 2.1 });
  assert.ok(kbps >= 62 && kbps <= 67, `${kbps} kb/s`);
  assert.ok((await probe({ quality: 'low' })).kbps <= (await probe({ quality: 'best' })).kbps);
  assert.deepEqual((await probe({ start_seconds: 0.5, duration_seconds: 1 })).seconds, 1);
  assert.equal((await probe({ start_seconds: '1.5' })).seconds, 0.5);
  assert.equal((await probe({ normalize: true })).rate, 44100);
});

test('odd file names are names and nothing else', { skip }, async () => {
  const names = ['a b.wav', "q'u\"o`te$(touch PWNED).wav", '-y -i x.wav', 'c%03d.wav', 'a:b.wav', 'new\nline.wav', 'größe 🙂.wav', 'http:x.wav', '; touch PWNED;.wav', 'no ending', 'concat:a|b'];
  for (const name of names) {
    copyFileSync(join(tmp, 'contract/short.wav'), join(tmp, name));
    await ok({ input_path: name, output_path: `odd/${name}.mp3` });
    assert.ok(existsSync(join(tmp, `odd/${name}.mp3`)), name);
  }
  assert.deepEqual(readdirSync(join(tmp, 'odd')).length, names.length);
  assert.ok(!readdirSync(tmp).includes('PWNED') && !existsSync('PWNED'));
});

test('what cannot be converted is a clear error and leaves nothing behind', { skip }, async () => {
  makeVideo(join(tmp, 'silent.mp4'), { sound: false });
  writeFileSync(join(tmp, 'text.wav'), 'this is no sound\n'.repeat(100));
  writeFileSync(join(tmp, 'empty.wav'), '');
  makeTone(join(tmp, 'whole.m4a'), { extra: ['-c:a', 'aac'] });
  writeFileSync(join(tmp, 'cut.m4a'), readFileSync(join(tmp, 'whole.m4a')).subarray(0, 4000));
  writeFileSync(join(tmp, 'list.m3u8'), `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n${join(tmp, 'seg.ts')}\n#EXT-X-ENDLIST\n`);
  makeTone(join(tmp, 'seg.ts'), { extra: ['-c:a', 'aac', '-f', 'mpegts'] });
  execFileSync('mkfifo', [join(tmp, 'fifo.wav')]);
  const faults = [
    ['silent.mp4', /contains no audio \(format mov/], ['text.wav', /is no audio or video file/], ['empty.wav', /is an empty file/],
    ['cut.m4a', /is no audio or video file that ffmpeg can read: [\s\S]*(moov atom not found|Invalid data)/], ['list.m3u8', /is a playlist|is no audio/],
    ['fifo.wav', /is not a file/], ['nope.wav', /^input_path not found/], ['contract', /is not a file/], ['http://127.0.0.1:1/x.wav', /^input_path not found/],
  ];
  for (const [input_path, message] of faults) {
    assert.match(await err({ input_path, output_path: 'never.mp3' }), message);
    assert.ok(!existsSync(join(tmp, 'never.mp3')));
  }
  assert.deepEqual(leftovers(), []);
});

test('a source that is cut short is converted with a warning', { skip }, async () => {
  makeTone(join(tmp, 'full.flac'), { seconds: 10 });
  const bytes = readFileSync(join(tmp, 'full.flac'));
  writeFileSync(join(tmp, 'short.flac'), bytes.subarray(0, bytes.length / 2));
  assert.match(await ok({ input_path: 'short.flac' }), /Warning: 10\.0 s were expected\. The source may be cut short or damaged\./);
});

test('nothing is overwritten unasked, and never the input', { skip }, async () => {
  writeFileSync(join(tmp, 'taken.mp3'), 'mine');
  assert.match(await err({ input_path: 'tone.wav', output_path: 'taken.mp3' }), /exists already\. Set overwrite: true/);
  assert.equal(readFileSync(join(tmp, 'taken.mp3'), 'utf8'), 'mine');
  await ok({ input_path: 'tone.wav', output_path: 'taken.mp3', overwrite: true });
  assert.ok(statSync(join(tmp, 'taken.mp3')).size > 1000);
  const same = /^Input and output are the same file/;
  assert.match(await err({ input_path: 'taken.mp3', overwrite: true }), same);
  linkSync(join(tmp, 'tone.wav'), join(tmp, 'link.mp3'));
  assert.match(await err({ input_path: 'tone.wav', output_path: 'link.mp3', overwrite: true }), same);
  symlinkSync(join(tmp, 'elsewhere'), join(tmp, 'symlink.mp3'));
  assert.match(await err({ input_path: 'tone.wav', output_path: 'symlink.mp3', overwrite: true }), /directory, link or device/);
  assert.match(await err({ input_path: 'tone.wav', output_path: '/dev/null', overwrite: true }), /directory, link or device/);
  assert.match(await err({ input_path: 'tone.wav', output_path: '.', overwrite: true }), /directory, link or device/);
  assert.match(await err({ input_path: 'tone.wav', output_path: '/proc/x/y.mp3' }), /ENOENT/);
});

test('R57 wrong parameters are named with what is possible', { skip }, async () => {
  assert.match(await err({}), /^input_path parameter is required/);
  const input_path = 'tone.wav';
  assert.match(await err({ input_path, quality: 'x' }), /^Unknown quality: "x"\. Available: low, medium, high, best\.$/);
  assert.match(await err({ input_path, bitrate_kbps: 500 }), /^bitrate_kbps must be a number from 8 to 320/);
  assert.match(await err({ input_path, sample_rate: 44000 }), /^sample_rate 44000 is none that MP3 has/);
  assert.match(await err({ input_path, channels: 3 }), /^channels must be a number from 1 to 2/);
  assert.match(await err({ input_path, start_seconds: 5, output_path: 'n.mp3' }), /beyond the end of the file \(2\.0 s\)/);
  assert.match(await err({ input_path, duration_seconds: 0 }), /greater than 0/);
});

test('R51 a long conversion reports progress; cancelling ends ffmpeg and leaves nothing', { skip }, async () => {
  makeTone(join(tmp, 'long.wav'), { seconds: 600 });
  const updates = [];
  const abort = new AbortController();
  const onUpdate = (partial) => {
    updates.push(partial.content[0].text);
    if (/^Converted/.test(updates.at(-1))) abort.abort();
  };
  assert.match(await err({ input_path: 'long.wav', quality: 'best' }, abort.signal, onUpdate), /^Cancelled: ffmpeg was stopped/);
  assert.match(updates.at(-1), /^Converted \d+\.\d s \(\d+ %\)$/);
  assert.ok(updates.length >= 2);
  assert.deepEqual(childPrograms(), []);
  assert.deepEqual(leftovers(), []);
  assert.ok(!existsSync(join(tmp, 'long.mp3')));
});

test('the time limit ends ffmpeg', { skip }, async () => {
  const text = await withFastTimers(7_200, () => err({ input_path: 'long.wav', normalize: true }), 1_000_000);
  assert.match(text, /took longer than an hour/);
  assert.deepEqual([childPrograms(), leftovers()], [[], []]);
});

test('a full disk is said, and the half file is gone', { skip: skip || (process.getuid() !== 0 && 'needs root, for a small file system') }, async (t) => {
  const small = join(tmp, 'small');
  mkdirSync(small);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', small], { stdio: 'ignore' });
  } catch {
    t.skip('cannot mount a small tmpfs here');
    return;
  }
  try {
    assert.match(await err({ input_path: 'long.wav', output_path: 'small/x.mp3' }), /The disk is full|No space left/);
    assert.deepEqual(readdirSync(small), []);
  } finally {
    execFileSync('umount', [small]);
  }
});

test('R85 R86 without ffmpeg or ffprobe the error says which', async () => {
  const without = (programs) => withEnv({ PATH: makePath(tmp, programs) }, () => tool.err({ input_path: 'x.wav' }));
  assert.match(await without([]), /^ffmpeg is required but not installed in the container\. \(Debian package: ffmpeg\)$/);
  if (!skip) assert.match(await without(['ffmpeg']), /^ffprobe is required but not installed in the container\./);
  await withEnv({}, () => tool.err({ input_path: 'x.wav' }), { keep: false });
});
