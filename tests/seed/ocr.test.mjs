// ocr with the real tesseract and poppler on pictures made here, and with stand-ins for the services.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { contractTests } from './fixtures/contract.mjs';
import { caller, childPrograms, loadTool, makePath, makeTempDir, missing, withEnv } from './fixtures/harness.mjs';
import { drawText, encryptPdf, scanOf, scannedPdf, textPdf } from './fixtures/make-pdf.mjs';

const DIR = 'seed/tools/ocr';
const skip = missing('tesseract', 'convert', 'pdfinfo', 'pdftotext', 'pdftoppm');
const tmp = makeTempDir();
const tool = caller(await loadTool(DIR));
const at = (name) => join(tmp, name);
const home = (fn, extra = {}) => withEnv({ OFFICER_USER_ROOT: tmp, HOME: tmp, OFFICER_RESOURCES: '{}', ...extra }, fn);
const ok = (params, ...rest) => home(() => tool.ok(params, ...rest));
const err = (params, ...rest) => home(() => tool.err(params, ...rest));
const HELLO = 'Hello quick brown fox 4711';

if (!skip) {
  drawText(at('hello.png'), HELLO, { height: 160 });
  drawText(at('tiny.png'), 'Hello', { width: 260, height: 140, size: 40 });
  contractTests({ dir: DIR, load: () => loadTool(DIR), cwd: at('fuzz'), base: { input_path: at('tiny.png'), mode: 'word', provider: 'local' }, env: { OFFICER_RESOURCES: '{}' } });
}

test('R116 exact words from each image format', { skip }, async () => {
  for (const ending of ['jpg', 'tif', 'webp', 'bmp', 'gif', 'pgm']) {
    execFileSync('convert', [at('hello.png'), '-compress', ending === 'bmp' ? 'none' : 'undefined', at(`h.${ending}`)]);
    const text = await ok({ input_path: `h.${ending}` });
    assert.match(text, /^Text of 1 page: 1 by OCR \(eng, confidence \d\d %\)\n\nHello quick brown fox 4711$/);
    assert.ok(text.endsWith(HELLO), `${ending}: ${text}`);
  }
  assert.match(await ok({ input_path: 'hello.png', mode: 'line', dpi: 300 }), /Hello quick brown fox 4711$/);
});

test('R116 German needs its language', { skip: skip || (!execFileSync('tesseract', ['--list-langs'], { encoding: 'utf8' }).includes('deu') && 'no German data for tesseract') }, async () => {
  drawText(at('gruss.png'), 'Schöne Grüße aus Köln für Ärzte', { height: 160 });
  assert.ok((await ok({ input_path: 'gruss.png', language: 'deu+eng' })).endsWith('Schöne Grüße aus Köln für Ärzte'));
});

test('R116 a turned page is read in auto mode', { skip }, async () => {
  const lines = 'The quick brown fox jumps over\nthe lazy dog and runs away from\nthe hunters into the deep forest\nwhere nobody will ever find it';
  drawText(at('turned.png'), lines, { width: 1000, height: 400, extra: ['-rotate', '90'] });
  assert.match(await ok({ input_path: 'turned.png' }), /The quick brown fox jumps over\nthe lazy dog/);
});

test('R116 pages of a TIFF, all and some', { skip }, async () => {
  drawText(at('two.png'), 'Second page here', { height: 160 });
  execFileSync('convert', [at('hello.png'), at('two.png'), at('pages.tif')]);
  assert.match(await ok({ input_path: 'pages.tif' }), /^Text of 2 pages: [^\n]*\n\n--- Page 1 ---\nHello quick brown fox 4711\n\n--- Page 2 ---\nSecond page here$/);
  assert.match(await ok({ input_path: 'pages.tif', pages: '2' }), /\n\nSecond page here$/);
  assert.match(await err({ input_path: 'pages.tif', pages: '2-3' }), /^pages: 2-3 is out of range; the file has 2 pages\.$/);
  assert.match(await ok({ input_path: 'pages.tif', pages: '2', format: 'tsv' }), /Second/);
});

test('R116 PDF: own text is taken, a scan is recognized, both in one file', { skip }, async () => {
  writeFileSync(at('text.pdf'), textPdf(['This is the text of the first page.', 'And this is the second page, with text.']));
  assert.match(await ok({ input_path: 'text.pdf', pages: '2' }), /^Text of 1 page: 1 from the text in the PDF\n\nAnd this is the second page, with text\.$/);
  assert.match(await ok({ input_path: 'text.pdf', pages: '1', force: true, dpi: 150 }), /by OCR[\s\S]*This is the text of the first page\.$/);
  const scans = [scanOf(at('s1.jpg'), 'Scanned page number one'), scanOf(at('s2.jpg'), 'Scanned page number two')];
  writeFileSync(at('scan.pdf'), scannedPdf(scans));
  const updates = [];
  const text = await ok({ input_path: 'scan.pdf', dpi: 200 }, undefined, (partial) => updates.push(partial.content[0].text));
  assert.match(text, /--- Page 1 ---\nScanned page number one\n\n--- Page 2 ---\nScanned page number two$/);
  assert.deepEqual(updates, ['Reading page 1 (1 of 2)...', 'Reading page 2 (2 of 2)...']);
});

test('R60 tsv, hocr and a searchable PDF with its pages', { skip }, async () => {
  assert.match(await ok({ input_path: 'hello.png', format: 'tsv' }), /^level\tpage_num[\s\S]*\tHello\n/);
  assert.match(await ok({ input_path: 'hello.png', format: 'hocr', output_path: 'h.hocr' }), /^hocr saved to .*h\.hocr \(\d+ bytes\)\.$/);
  assert.match(readFileSync(at('h.hocr'), 'utf8'), /ocrx_word/);
  assert.match(await ok({ input_path: 'scan.pdf', format: 'pdf', output_path: 'new/searchable.pdf', dpi: 150 }), /^pdf saved/);
  const text = execFileSync('pdftotext', [at('new/searchable.pdf'), '-'], { encoding: 'utf8' });
  assert.match(text, /Scanned\s+page number one[\s\S]*Scanned\s+page number two/);
  assert.match(await err({ input_path: 'scan.pdf', format: 'pdf' }), /^output_path parameter is required for format pdf/);
  assert.match(await ok({ input_path: 'hello.png', output_path: 'h.txt' }), /^Text of 1 page: .*, saved to .*h\.txt/);
  assert.equal(readFileSync(at('h.txt'), 'utf8'), `${HELLO}\n`);
});

test('R116 a blank picture has no text, and that is no error', { skip }, async () => {
  drawText(at('blank.png'), '');
  assert.match(await ok({ input_path: 'blank.png' }), /^No text found in .*blank\.png \(1 page: 1 by OCR \(eng\)\)\.$/);
});

test('a file that is no image is never given to tesseract, whatever its name', { skip }, async () => {
  writeFileSync(at('list.png'), `${at('hello.png')}\n`);
  writeFileSync(at('passwd.bmp'), 'BM\n/etc/passwd\n'.repeat(5));
  writeFileSync(at('empty.png'), '');
  writeFileSync(at('cut.png'), readFileSync(at('hello.png')).subarray(0, 200));
  writeFileSync(at('half.jpg'), readFileSync(at('h.jpg')).subarray(0, 300));
  writeFileSync(at('broken.pdf'), textPdf(['x']).subarray(0, 120));
  writeFileSync(at('bad.pgm'), 'P5 /etc/passwd\n');
  writeFileSync(at('bad.tif'), Buffer.from('II*\0\xff\xff\xff\xff', 'latin1'));
  const faults = {
    'list.png': /is not an image or PDF \(judged by its content\)/, 'passwd.bmp': /is not an image or PDF/, 'empty.png': /is an empty file/,
    'cut.png': /tesseract cannot read|No text/, 'broken.pdf': /is a damaged PDF/, 'bad.pgm': /tesseract cannot read/, 'bad.tif': /tesseract cannot read/,
    'nope.png': /^input_path not found/, '.': /is not a file/, 'http://127.0.0.1:1/x.png': /^input_path not found/, '/dev/zero': /is not a file/,
  };
  for (const [input_path, message] of Object.entries(faults)) {
    const { text } = await home(() => tool.call({ input_path }));
    assert.match(text, message, input_path);
    assert.doesNotMatch(text, /Hello quick|root:/);
  }
  await home(() => tool.call({ input_path: 'half.jpg' }));
});

test('odd file names are names and nothing else', { skip }, async () => {
  mkdirSync(at('odd'));
  for (const name of ['-l deu.png', 'a b.png', "q'\"`$(touch PWNED).png", 'new\nline.png', 'größe 🙂.png', 'http:x.png', 'stdin', 'list.txt']) {
    writeFileSync(at(join('odd', name)), readFileSync(at('hello.png')));
    assert.ok((await ok({ input_path: `odd/${name}` })).endsWith(HELLO), name);
  }
  assert.ok(!readdirSync(tmp).includes('PWNED'));
});

test('R116 an encrypted PDF is said to be so', { skip: skip || missing('qpdf') }, async () => {
  encryptPdf(at('locked.pdf'), textPdf(['The text of a page that is locked.']), 'secret');
  encryptPdf(at('owner.pdf'), textPdf(['The text of a page that may be read.']), '');
  assert.match(await err({ input_path: 'locked.pdf' }), /is encrypted with a password\. Ask the user/);
  assert.match(await ok({ input_path: 'owner.pdf' }), /may be read\.$/);
});

test('R57 wrong parameters are named with what is possible', { skip }, async () => {
  const input_path = 'hello.png';
  assert.match(await err({}), /^input_path parameter is required/);
  assert.match(await err({ input_path, language: 'xyz' }), /^Language "xyz" is not installed \(available: .*eng.*\)\. Package: tesseract-ocr-xyz\.$/);
  assert.match(await err({ input_path, language: '--psm 0' }), /^Language "--psm 0" is not installed/);
  assert.match(await err({ input_path, language: 'eng+../../x' }), /is not installed/);
  assert.match(await err({ input_path, pages: '1-' }), /^pages must be "all" or numbers such as "1,3-5"/);
  assert.match(await err({ input_path, pages: '0' }), /out of range; the file has 1 page\.$/);
  assert.match(await err({ input_path, dpi: 1200 }), /^dpi must be a number from 72 to 600/);
  assert.match(await err({ input_path, mode: 'x' }), /^Unknown mode: "x"\. Available: auto, block, line, word, sparse\.$/);
  assert.match(await err({ input_path, output_path: 'hello.png' }), /output_path is the input file/);
});

test('a page of absurd size is read at a lower resolution', { skip }, async () => {
  const pdf = scannedPdf([scanOf(at('big.jpg'), 'A very large page')]).toString('latin1').replace(/MediaBox \[0 0 (\d+) (\d+)\]/, 'MediaBox [0 0 9999 9999]');
  writeFileSync(at('big.pdf'), Buffer.from(pdf, 'latin1'));
  const updates = [];
  const abort = new AbortController();
  const left = () => readdirSync(tmpdir()).filter((name) => /^ocr-\w{6}$/.test(name));
  const before = left();
  setTimeout(() => abort.abort(), 1500);
  const { text } = await home(() => tool.call({ input_path: 'big.pdf', dpi: 600, mode: 'sparse' }, abort.signal, (u) => updates.push(u)));
  assert.match(text, /Cancelled|very large and was read at \d\d dpi/);
  assert.deepEqual(childPrograms(), []);
  assert.deepEqual(left().filter((name) => !before.includes(name)), []);
});

/** A stand-in for an OCR service: records the requests, answers as `answer(request)` says. */
async function standIn(t, answer) {
  const requests = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('latin1');
      requests.push({ url: request.url, method: request.method, headers: request.headers, text });
      const { status = 200, body, headers = {} } = answer(requests.at(-1));
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise((settle) => server.listen(0, '127.0.0.1', settle));
  t.after(() => server.close());
  return { requests, url: `http://127.0.0.1:${server.address().port}` };
}

const withService = (config, fn) => home(fn, { OFFICER_RESOURCES: JSON.stringify({ 'optical-character-recognition': config }) });

test('R58 R79 mistral: request, pages, and the key of the parameter first', { skip }, async (t) => {
  const { requests, url } = await standIn(t, () => ({ body: { pages: [{ index: 0, markdown: '# One' }, { index: 2, markdown: 'Three' }], model: 'm', usage_info: { pages_processed: 2 } } }));
  const config = { provider: 'mistral', base_url: `${url}/v1/`, api_key: 'key-of-settings' };
  await withService(config, async () => {
    const text = await tool.ok({ input_path: 'scan.pdf', pages: '1,3' });
    assert.equal(text, 'Text of 2 pages: 2 by the OCR service\n\n--- Page 1 ---\n# One\n\n--- Page 3 ---\nThree');
    await tool.ok({ input_path: 'hello.png', api_key: 'key-of-call' });
  });
  const [first, second] = requests.map((request) => ({ ...request, body: JSON.parse(request.text) }));
  assert.deepEqual([first.method, first.url, first.headers.authorization], ['POST', '/v1/ocr', 'Bearer key-of-settings']);
  assert.deepEqual([first.body.model, first.body.pages, first.body.document.type], ['mistral-ocr-latest', [0, 2], 'document_url']);
  assert.ok(first.body.document.document_url.startsWith('data:application/pdf;base64,JVBERi0'));
  assert.deepEqual([second.headers.authorization, second.body.document.type], ['Bearer key-of-call', 'image_url']);
  assert.equal(second.body.document.image_url, `data:image/png;base64,${readFileSync(at('hello.png')).toString('base64')}`);
});

test('R79 ocrspace and a plain http service', { skip }, async (t) => {
  const space = await standIn(t, () => ({ body: { ParsedResults: [{ ParsedText: 'eins' }, { ParsedText: 'zwei' }], OCRExitCode: 1, IsErroredOnProcessing: false } }));
  await withService({ type: 'ocr.space', url: space.url, apiKey: 'k-1' }, async () => {
    assert.match(await tool.ok({ input_path: 'hello.png', language: 'deu' }), /--- Page 2 ---\nzwei$/);
    assert.match(await tool.ok({ input_path: 'hello.png', pages: '2' }), /\n\nzwei$/);
  });
  assert.deepEqual([space.requests[0].url, space.requests[0].headers.apikey], ['/parse/image', 'k-1']);
  assert.match(space.requests[0].text, /name="language"\r\n\r\nger\r\n[\s\S]*|data:image\/png;base64,/);
  const plain = await standIn(t, (request) => ({ body: JSON.parse(request.text).pages ? { pages: [{ text: 'p3' }] } : { text: 'whole' } }));
  await withService({ provider: 'http', endpoint: `${plain.url}/ocr`, token: 'k-2' }, async () => {
    assert.match(await tool.ok({ input_path: 'hello.png' }), /\n\nwhole$/);
    assert.match(await tool.ok({ input_path: 'hello.png', pages: '3' }), /\n\np3$/);
  });
  assert.deepEqual([plain.requests[0].headers.authorization, JSON.parse(plain.requests[0].text).mime_type], ['Bearer k-2', 'image/png']);
  const broken = await standIn(t, () => ({ body: { IsErroredOnProcessing: true, ErrorMessage: ['E101: bad'] } }));
  await withService({ provider: 'ocrspace', url: broken.url, api_key: 'k' }, async () => {
    assert.match(await tool.err({ input_path: 'hello.png', provider: 'remote' }), /^OCR service reports: E101: bad/);
  });
});

test('R58 the service fails: clear errors with remote, tesseract with auto, the key in no text', { skip }, async (t) => {
  const meanings = { 401: /rejected the API key/, 402: /no credit left/, 413: /too large/, 429: /too many requests\. Try again later \(it says: after 7\)/, 500: /answered 500: Bearer \[api key\] is odd/ };
  for (const [status, meaning] of Object.entries(meanings)) {
    const service = await standIn(t, (request) => ({ status: Number(status), body: `${request.headers.authorization} is odd`, headers: { 'retry-after': '7' } }));
    await withService({ provider: 'http', url: service.url, api_key: 'top-secret' }, async () => {
      const error = await tool.err({ input_path: 'hello.png', provider: 'remote' });
      assert.match(error, meaning);
      const text = await tool.ok({ input_path: 'hello.png' });
      assert.match(text, /Hello quick brown fox 4711\n\nNote: read here with tesseract, because the OCR service failed: OCR service answered/);
      assert.doesNotMatch(error + text, /top-secret/);
    });
    assert.equal(service.requests.length, 2, 'a request that may cost money is not repeated');
  }
  const odd = await standIn(t, (request) => (request.url === '/r' ? { status: 302, body: '', headers: { location: '/x' } } : { body: 'no json' }));
  const fails = async (config, message) => withService(config, async () => {
    const error = await tool.err({ input_path: 'hello.png', provider: 'remote' });
    assert.match(error, message);
    assert.doesNotMatch(error, /top-secret/);
  });
  await fails({ provider: 'http', url: odd.url }, /something that is no JSON: no json/);
  await fails({ provider: 'http', url: `${odd.url}/r` }, /cannot be reached/);
  await fails({ provider: 'http', url: 'http://127.0.0.1:9/' }, /at 127\.0\.0\.1:9 cannot be reached: ECONNREFUSED|bad port/);
  await fails({ provider: 'http', url: odd.url, api_key: 'top-secret\nx' }, /cannot be reached/);
  await fails({ provider: 'http', url: 'file:///etc/passwd' }, /no valid url/);
  await fails({ provider: 'mistral' }, /no API key\. Ask the user to add it in Settings → Integrations/);
});

test('R56 R79 no service, or settings that are broken', { skip }, async () => {
  for (const value of [undefined, '', '{}', 'not json', '[]', 'null', '{"optical-character-recognition": 7}', '{"optical-character-recognition": {}}']) {
    await withEnv({ OFFICER_USER_ROOT: tmp, HOME: tmp, PATH: process.env.PATH, ...(value === undefined ? {} : { OFFICER_RESOURCES: value }) }, async () => {
      const remote = await tool.err({ input_path: 'hello.png', provider: 'remote' });
      assert.match(remote, /^OCR service not configured\. Ask the user to add it in Settings → Integrations/);
    }, { keep: false });
  }
  assert.match(await withEnv({}, () => tool.ok({ input_path: at('hello.png') }), { keep: false }), /Hello/);
});

test('R85 R86 without a program the error says which', { skip }, async () => {
  const without = (programs, params) => home(() => tool.err(params), { PATH: makePath(tmp, programs) });
  assert.match(await without([], { input_path: 'hello.png' }), /^tesseract is required but not installed in the container\. \(Debian package: tesseract-ocr\)$/);
  assert.match(await without(['tesseract'], { input_path: 'scan.pdf' }), /^pdfinfo is required but not installed in the container\. \(Debian package: poppler-utils\)$/);
});
