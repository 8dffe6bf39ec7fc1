// The ffmpeg tool with the real programs: usual work, quoting, the network, overwriting, limits.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { contractTests } from './fixtures/contract.mjs';
import { caller, childPrograms, loadTool, makePath, makeTempDir, missing, withEnv } from './fixtures/harness.mjs';
import { ffprobe, makeTone, makeVideo } from './fixtures/make-media.mjs';

const DIR = 'seed/tools/ffmpeg';
const skip = missing('ffmpeg', 'ffprobe');
const tmp = makeTempDir();
const tool = caller(await loadTool(DIR));
const home = (fn) => withEnv({ OFFICER_USER_ROOT: tmp, HOME: tmp }, fn);
const ok = (params, ...rest) => home(() => tool.ok(typeof params === 'string' ? { args: params } : params, ...rest));
const err = (params, ...rest) => home(() => tool.err(typeof params === 'string' ? { args: params } : params, ...rest));

if (!skip) {
  makeVideo(join(tmp, 'film.mp4'));
  contractTests({ dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), base: { command: 'ffprobe', args: '-v error -show_format x.wav' } });
  makeTone(join(tmp, 'tone.wav'));
}

test('R115 ffprobe gives its JSON, tidy', { skip }, async () => {
  const args = '-v error -print_format json=compact=1 -show_format -show_streams film.mp4';
  const text = await ok({ command: 'ffprobe', args });
  assert.equal(JSON.parse(text).streams.length, 2);
  assert.ok(text.startsWith('{\n  "'));
  assert.equal(JSON.parse(await ok(`ffprobe ${args}`)).streams[0].width, 160);
});

test('R115 cut, join, scale, picture, sound, filter graph, analysis', { skip }, async () => {
  const cut = await ok('-ss 0.5 -i film.mp4 -t 1 cut.mp4');
  assert.match(cut, /^ffmpeg succeeded\.\nFiles written:\n {2}\S+\/cut\.mp4 \(\d+ bytes\)\n\nEnd of its log:\n/);
  assert.ok(Math.abs(ffprobe(join(tmp, 'cut.mp4')).format.duration - 1) < 0.15);
  writeFileSync(join(tmp, 'list.txt'), "file 'cut.mp4'\nfile 'cut.mp4'\n");
  await ok('-f concat -safe 0 -i list.txt -c copy joined.mp4');
  assert.ok(ffprobe(join(tmp, 'joined.mp4')).format.duration > 1.8);
  await ok('-i film.mp4 -vf scale=80:-2 small.mp4');
  assert.equal(ffprobe(join(tmp, 'small.mp4')).streams.find((stream) => stream.width).width, 80);
  await ok('-i film.mp4 -frames:v 1 thumb.png');
  assert.equal(readFileSync(join(tmp, 'thumb.png')).subarray(1, 4).toString(), 'PNG');
  await ok('-i film.mp4 -vn -c:a copy sound.m4a');
  assert.equal(ffprobe(join(tmp, 'sound.m4a')).streams.length, 1);
  await ok(`-i film.mp4 -i tone.wav -filter_complex "[0:a][1:a]amix=inputs=2[a]" -map '[a]' mixed.flac`);
  assert.ok(existsSync(join(tmp, 'mixed.flac')));
  assert.match(await ok('-i tone.wav -af volumedetect -f null -'), /No files were written[\s\S]*max_volume/);
});

test('R115 a pattern of output names lists each file', { skip }, async () => {
  mkdirSync(join(tmp, 'frames'));
  const text = await ok('-i film.mp4 -r 5 frames/%03d.png');
  assert.match(text, /frames\/001\.png \(\d+ bytes\)\n/);
  assert.equal(readdirSync(join(tmp, 'frames')).length, text.match(/frames\/\d+\.png \(/g).length);
});

test('R25 quotes, backslashes and JSON arrays; nothing is run by a shell', { skip }, async () => {
  mkdirSync(join(tmp, 'q'));
  const working_dir = join(tmp, 'q');
  const names = {
    "-i ../tone.wav 'a b.flac'": 'a b.flac', '-i ../tone.wav "c\\"d e.flac"': 'c"d e.flac', '-i ../tone.wav f\\ g.flac': 'f g.flac',
    "-i ../tone.wav h'i 'j.flac": 'hi j.flac', '-i ../tone.wav \\\n"k\\l.flac"': 'k\\l.flac', '["-i", "../tone.wav", "m $x \'n.flac"]': "m $x 'n.flac",
    '-i ../tone.wav ./-o.flac': '-o.flac', '-i ../tone.wav "./new\nline.flac"': 'new\nline.flac', '-i ../tone.wav größe.flac': 'größe.flac',
  };
  for (const [args, name] of Object.entries(names)) {
    await ok({ args, working_dir });
    assert.ok(existsSync(join(working_dir, name)), args);
  }
  assert.equal(readdirSync(working_dir).length, Object.keys(names).length);
  for (const args of ['-i ../tone.wav $(touch PWNED).flac', '-i ../tone.wav `touch PWNED`', '-i ../tone.wav; touch PWNED', '-i ../tone.wav x.nope | touch PWNED', '-i *.wav > PWNED', '-i ../tone.wav && touch PWNED']) {
    await err({ args, working_dir });
  }
  assert.ok(!readdirSync(working_dir).includes('PWNED') && !existsSync('PWNED'));
  assert.match(await err("-i 'x"), /opening ' without its end/);
  assert.match(await err('-i x\\'), /lone backslash/);
  assert.match(await err('["-i", "x"'), /no valid JSON array of strings/);
  assert.match(await err('[["-i"]]'), /no valid JSON array of strings/);
  assert.match(await err('ffmpeg'), /holds no arguments/);
  assert.match(await err('["-i", "a\\u0000b"]'), /NUL/);
});

test('nothing is overwritten unasked', { skip }, async () => {
  writeFileSync(join(tmp, 'taken.flac'), 'mine');
  assert.match(await err('-i tone.wav taken.flac'), /Set overwrite: true[\s\S]*already exists\. Exiting/);
  assert.equal(readFileSync(join(tmp, 'taken.flac'), 'utf8'), 'mine');
  await ok({ args: '-i tone.wav taken.flac', overwrite: true });
  await ok('-y -i tone.wav taken.flac');
});

test('R60 output on - is saved, shown or counted', { skip }, async () => {
  assert.match(await ok('-i tone.wav -f flac -'), /wrote \d+ bytes that are no text/);
  assert.match(await ok({ args: '-i tone.wav -f flac pipe:1', output_path: 'out/x.flac' }), /saved to .*x\.flac \(\d+ bytes\)/);
  assert.equal(readFileSync(join(tmp, 'out/x.flac')).subarray(0, 4).toString(), 'fLaC');
  assert.match(await ok('-i tone.wav -f ffmetadata -'), /^;FFMETADATA1/);
  assert.match(await ok({ args: '-i tone.wav log.flac', output_path: 'log.txt' }), /Log saved to .*log\.txt/);
  assert.match(readFileSync(join(tmp, 'log.txt'), 'utf8'), /Output #0, flac/);
});

test('the network is out of reach unless it is allowed', { skip }, async (t) => {
  let requests = 0;
  const server = createServer((_, response) => {
    requests++;
    response.end(readFileSync(join(tmp, 'tone.wav')));
  });
  await new Promise((settle) => server.listen(0, '127.0.0.1', settle));
  t.after(() => server.close());
  const { port } = server.address();
  const url = `http://127.0.0.1:${port}/x.wav`;
  const escapedUrl = `http\\\\\\://127.0.0.1\\\\\\:${port}/x.wav`;
  writeFileSync(join(tmp, 'net.m3u8'), `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n${url}\n#EXT-X-ENDLIST\n`);
  writeFileSync(join(tmp, 'net.txt'), `file '${url}'\n`);
  writeFileSync(join(tmp, 'net.filter'), `amovie=http\\\\://127.0.0.1\\\\:${port}/x.wav`);
  const tries = [
    `-i ${url} n.flac`, `-i HTTP://127.0.0.1:${port}/x.wav n.flac`, `-i cache:${url} n.flac`, `-i async:${url} n.flac`, `-i "concat:${url}" n.flac`,
    `-i tone.wav -f flac ${url}`, `-i tone.wav -f tee "[f=flac]${url}"`, `-i tone.wav udp://127.0.0.1:9`, '-i tcp:127.0.0.1:9 n.flac', '-i unix:/x n.flac',
    `-protocol_whitelist http,tcp,file -i ${url} n.flac`, `-protocol_whitelist file,http,tcp -i net.m3u8 n.flac`, `-progress ${url} -i tone.wav n.flac`,
    `-f lavfi -i "amovie=${escapedUrl}" n.flac`, '-i net.m3u8 n.flac', '-f concat -safe 0 -i net.txt n.flac', '-filter_complex_script net.filter n.flac',
  ];
  for (const args of tries) assert.ok(await err(args), args);
  assert.match(await err({ command: 'ffprobe', args: url }), /is on the network\. Set allow_network: true/);
  assert.match(await err({ command: 'ffprobe', args: 'net.m3u8' }), /failed/);
  assert.equal(requests, 0);
  await ok({ args: `-i ${url} net.flac`, allow_network: true });
  assert.ok(requests > 0);
  await ok('-i tone.wav -metadata comment=http://example.org/ meta.flac');
});

test('R51 a long run reports progress and ends at its limit, with no process left', { skip }, async () => {
  makeTone(join(tmp, 'long.wav'), { seconds: 400 });
  const updates = [];
  const started = Date.now();
  const args = '-i long.wav -af atempo=0.5,loudnorm,areverse long.flac';
  const text = await err({ args, timeout_seconds: 1 }, undefined, (partial) => updates.push(partial.content[0].text));
  assert.match(text, /took longer than 1 seconds and was stopped/);
  assert.ok(Date.now() - started < 5_000);
  assert.deepEqual(childPrograms(), []);
  const abort = new AbortController();
  const slow = '-re -i long.wav -f null -';
  const cancelled = await err(slow, abort.signal, (partial) => {
    updates.push(partial.content[0].text);
    if (/done/.test(updates.at(-1))) abort.abort();
  });
  assert.match(cancelled, /^Cancelled/);
  assert.match(updates.at(-1), /^\d+\.\d s of output done \(\d+ % of the input\)$/);
  assert.deepEqual(childPrograms(), []);
});

test('R57 wrong parameters and failing commands say what to do', { skip }, async () => {
  assert.match(await err({}), /^args parameter is required/);
  assert.match(await err({ args: '-version', command: 'sh' }), /^Unknown command: "sh"\. Available: ffmpeg, ffprobe\.$/);
  assert.match(await err({ args: '-version', working_dir: 'nope' }), /^working_dir is not a directory/);
  assert.match(await err({ args: '-version', timeout_seconds: 0 }), /^timeout_seconds must be a number from 1 to 7200/);
  assert.match(await err('-i nope.wav x.flac'), /^ffmpeg failed \(exit code 1\)\.[\s\S]*No such file[\s\S]*Command: ffmpeg -hide_banner .* -i nope\.wav x\.flac$/);
  writeFileSync(join(tmp, 'cut.mov'), readFileSync(join(tmp, 'film.mp4')).subarray(0, 3000));
  assert.match(await err('-i cut.mov x.flac'), /moov atom not found|Invalid data/);
});

test('the tokens of the platform do not reach the program', { skip }, async () => {
  const args = '-f data -i /proc/self/environ -map 0 -c copy -f data env.bin';
  await withEnv({ OFFICER_APIFY_TOKEN: 'secret-1', OFFICER_RESOURCES: '{"x":"secret-2"}' }, () => ok(args));
  const text = readFileSync(join(tmp, 'env.bin'), 'latin1');
  assert.ok(text.includes('PATH=') && !text.includes('secret'));
});

test('R85 R86 without ffmpeg or ffprobe the error says which', async () => {
  const without = (programs, params) => withEnv({ PATH: makePath(tmp, programs) }, () => tool.err(params));
  assert.match(await without([], { args: '-version' }), /^ffmpeg is required but not installed in the container\. \(Debian package: ffmpeg\)$/);
  assert.match(await without([], { args: 'ffprobe x' }), /^ffprobe is required but not installed in the container\./);
  await withEnv({}, () => tool.err({ args: 'ffprobe nope' }), { keep: false });
});
