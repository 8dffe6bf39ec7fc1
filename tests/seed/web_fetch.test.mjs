// web_fetch against servers of its own on 127.0.0.1: what may be fetched, what the network can do to
// it, characters, kinds of content, and what becomes of a page.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createTls } from 'node:https';
import { createServer as createTcp } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { contractTests } from './fixtures/contract.mjs';
import { ROOT, caller, loadTool, makePath, makeTempDir, missing, withEnv, withFastTimers } from './fixtures/harness.mjs';
import { textPdf } from './fixtures/make-pdf.mjs';
import { noMount, startMount } from './fixtures/mount.mjs';
import { freePort, listener, startServer } from './fixtures/standin.mjs';

const DIR = 'seed/tools/web_fetch';
const PAGES = join(ROOT, 'tests/data/web_fetch');
const tmp = makeTempDir();
const home = join(tmp, 'home');
mkdirSync(home);
const tool = caller(await loadTool(DIR));

/** What the server answers; each test sets its own. */
let reply = () => ({ body: 'x' });
const server = await startServer((request) => reply(request));
const at = (path) => `${server.url}${path}`;
const allowing = (hosts, fn, more = {}) =>
  withEnv({ OFFICER_RESOURCES: JSON.stringify({ 'web-fetch': { allow_private: hosts, ...more } }), OFFICER_USER_ROOT: home, HOME: home }, fn);
const ok = (params, ...rest) => allowing(['127.0.0.1', 'localhost'], () => tool.ok({ url: at('/page'), ...params }, ...rest));
const err = (params, ...rest) => allowing(['127.0.0.1', 'localhost'], () => tool.err({ url: at('/page'), ...params }, ...rest));

const sends = (body, type, headers = {}) => { reply = () => ({ body, headers: { ...(type === undefined ? {} : { 'content-type': type }), ...headers } }); };
const sendsHtml = (body, charset = '; charset=utf-8') => sends(body, `text/html${charset}`);
/** The content, without the lines that head it. */
const bodyOf = (text) => text.slice(text.indexOf('\n\n') + 2);
const markdown = async (body, params = {}) => {
  sendsHtml(body);
  return bodyOf(await ok({ extract: 'full', ...params }));
};
const LONG = 'A sentence with some words in it, and a comma or two, so that it counts as text. '.repeat(8);

contractTests({
  dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), base: { url: at('/page') },
  env: { OFFICER_RESOURCES: JSON.stringify({ 'web-fetch': { allow_private: ['127.0.0.1'] } }) },
});

// ---- which addresses ---------------------------------------------------------------------------

test('private addresses are refused in every spelling, and nothing reaches the server', async () => {
  const before = server.requests.length;
  const port = server.port;
  const hosts = [
    '127.0.0.1', 'localhost', 'LOCALHOST', '127.1', '0x7f.1', '2130706433', '0177.0.0.1', '127.0.0.01', '①②⑦.⓪.⓪.①', '0', '0.0.0.0', '127.8.9.10',
    '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:7f00:0001]', '[::127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[fe80::1]', '[fc00::1]', '[fd12:3456::1]', '[ff02::1]', '[2001:db8::1]',
    '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254', '100.64.0.1', '198.18.0.1', '192.0.2.1', '203.0.113.9', '224.0.0.1', '255.255.255.255',
  ];
  for (const host of hosts) {
    const text = await withEnv({ OFFICER_RESOURCES: '' }, () => tool.err({ url: `http://${host}:${port}/` }));
    assert.match(text, /^Refused: \S+ resolves to a private address \([0-9a-f.:]+\)\./, host);
  }
  assert.equal(server.requests.length, before);
});

test('what the user has allowed is fetched: a host, one port of it, a network', async () => {
  sends('fine', 'text/plain');
  const { port } = server;
  const fetchAs = (hosts, url = server.url) => allowing(hosts, () => tool.call({ url }));
  for (const hosts of [['127.0.0.1'], [`127.0.0.1:${port}`], ['127.0.0.0/8'], ['10.0.0.0/8', ' 127.0.0.1/32']]) assert.equal((await fetchAs(hosts)).isError, false, String(hosts));
  for (const hosts of [[], [`127.0.0.1:${port + 1}`], ['126.0.0.0/8'], ['127.0.0.1/x'], [7, null, {}], 'all', ['127.0.0.1/99']]) assert.equal((await fetchAs(hosts)).isError, true, JSON.stringify(hosts));
  assert.equal((await fetchAs(['localhost'], `http://localhost:${port}/`)).isError, false);
  assert.equal((await fetchAs(['127.0.0.0/8', '::1'], `http://localhost:${port}/`)).isError, false);
  assert.equal((await fetchAs(['localhost'])).isError, true);
});

test('R56 R79 with an empty environment or broken resources everything private stays refused', async () => {
  assert.match(await withEnv({}, () => tool.err({ url: at('/') }), { keep: false }), /^Refused: 127\.0\.0\.1 resolves/);
  for (const OFFICER_RESOURCES of ['no json', '[]', '{"web-fetch": 7}', '{"web-fetch": {"allow_private": "127.0.0.1"}}']) assert.match(await withEnv({ OFFICER_RESOURCES }, () => tool.err({ url: at('/') })), /^Refused/);
});

test('only http and https, without a name or password, and only whole addresses', async () => {
  for (const url of ['file:///etc/passwd', 'ftp://example.org/', 'data:text/html,x', 'javascript:alert(1)', 'gopher://x/']) assert.match(await err({ url }), /^Refused: only http and https addresses can be fetched, not \w+:/);
  assert.match(await err({ url: 'http://ann:pw@example.org/' }), /^Refused: the address has a name or password in it\./);
  for (const url of ['example.org', 'http://', 'http://[', '/x']) assert.match(await err({ url }), /is no valid address/);
  assert.match(await err({ url: '' }), /^url parameter is required/);
});

// ---- the way through the network ----------------------------------------------------------------

test('redirects are followed, relative ones too, and the last address is told', async () => {
  const ways = { '/a': [301, '/b?x=ü'], '/b': [302, 'c/d'], '/c/d': [303, '../e#there'], '/e': [307, `${server.url}/f`], '/f': [308, '/end'] };
  reply = ({ path }) => {
    const [status, location] = ways[path] ?? [200];
    return location ? { status, headers: { location: Buffer.from(location).toString('latin1') } } : { body: 'the end', headers: { 'content-type': 'text/plain' } };
  };
  const { texts, onUpdate } = listener();
  const text = await ok({ url: at('/a') }, undefined, onUpdate);
  assert.equal(text, `URL: ${server.url}/end#there (asked for ${server.url}/a)\n\nthe end`);
  assert.match(texts[0], /^Fetching 127/);
  assert.equal(texts.filter((line) => line.includes('redirects to')).length, 5);
});

test('circles, too many redirects, and redirects to nowhere end the fetch', async () => {
  reply = ({ path }) => ({ status: 302, headers: { location: path === '/a' ? '/b' : '/a' } });
  assert.match(await err({ url: at('/a') }), /^127\.0\.0\.1:\d+ redirects in a circle, back to /);
  reply = ({ path }) => ({ status: 302, headers: { location: `${path}x` } });
  const before = server.requests.length;
  assert.match(await err({ url: at('/x') }), /redirects more than 10 times/);
  assert.equal(server.requests.length - before, 11);
  for (const [location, message] of [['http://169.254.169.254/latest/meta-data/', /^Refused: 169\.254\.169\.254 resolves/], ['http://[::ffff:10.0.0.1]/', /^Refused/], ['file:///etc/passwd', /^Refused: only http/], ['http://u:p@127.0.0.1/', /^Refused: the address has a name/], ['http://[', /no valid address/]]) {
    reply = () => ({ status: 302, headers: { location } });
    assert.match(await err({}), message);
  }
  reply = () => ({ status: 302 });
  assert.match(await ok({}), /\(The page has no text\.\)$/);
});

test('a redirect to a host that the allow-list has not is refused before it is asked', async () => {
  const other = await startServer(() => ({ body: 'secret' }));
  reply = () => ({ status: 302, headers: { location: other.url } });
  assert.match(await allowing([`127.0.0.1:${server.port}`], () => tool.err({ url: at('/') })), /^Refused: 127\.0\.0\.1 resolves/);
  reply = () => ({ status: 302, headers: { location: `http://localhost:${other.port}/` } });
  assert.match(await allowing([`127.0.0.1:${server.port}`], () => tool.err({ url: at('/') })), /^Refused: localhost resolves to a private address/);
  assert.equal(other.requests.length, 0);
});

test('headers: sent as given, dropped for another server, and never shown', async () => {
  const other = await startServer(() => ({ body: 'there', headers: { 'content-type': 'text/plain' } }));
  reply = ({ path }) => (path === '/same' ? { body: 'Bearer s3cret-token-1', headers: { 'content-type': 'text/plain' } } : { status: 302, headers: { location: path === '/out' ? other.url : '/same' } });
  const headers = JSON.stringify({ Authorization: 'Bearer s3cret-token-1', Cookie: 'a=b', 'X-Key': 'k', 'Accept-Language': 'de', 'User-Agent': 'me' });
  const text = await ok({ url: at('/in'), headers });
  assert.match(text, /\*\*\*$/);
  assert.doesNotMatch(text, /s3cret/);
  assert.deepEqual([server.requests.at(-1).headers.authorization, server.requests.at(-1).headers['x-key']], ['Bearer s3cret-token-1', 'k']);
  await ok({ url: at('/out'), headers });
  const sent = other.requests.at(-1).headers;
  assert.deepEqual([sent.authorization, sent.cookie, sent['x-key'], sent['accept-language'], sent['user-agent']], [undefined, undefined, undefined, 'de', 'me']);
  for (const bad of ['{', '[]', '"x"', 'null', '7']) assert.match(await err({ headers: bad }), /^headers must be a JSON object as a string/);
  assert.match(await err({ headers: '{"A": {}}' }), /^headers: the value of "A" must be a text/);
  assert.match(await err({ headers: '{"Host": "x"}' }), /^headers: "Host" cannot be set/);
  for (const bad of ['{"a b": "x"}', '{"a": "x\\r\\nb: c"}', '{"": "x"}']) assert.match(await err({ headers: bad }), /is no valid header/);
});

test('the program says who it is, and the user may choose how', async () => {
  sends('x', 'text/plain');
  await ok({});
  assert.match(server.requests.at(-1).headers['user-agent'], /web_fetch/);
  await allowing(['127.0.0.1'], () => tool.ok({ url: at('/') }), { user_agent: 'Reader\r\nX: 1' });
  assert.equal(server.requests.at(-1).headers['user-agent'], 'Reader X: 1');
});

test('packed bodies of every kind are unpacked', async () => {
  const text = 'packed grüße '.repeat(200);
  const forms = { gzip: gzipSync, 'x-gzip': gzipSync, br: brotliCompressSync, deflate: deflateSync, ' Deflate ': deflateRawSync, identity: (data) => Buffer.from(data), 'gzip, br': (data) => brotliCompressSync(gzipSync(data)) };
  for (const [encoding, pack] of Object.entries(forms)) {
    sends(pack(text), 'text/plain; charset=utf-8', { 'content-encoding': encoding });
    assert.equal(bodyOf(await ok({})), text, encoding);
  }
  sends(gzipSync(text.repeat(100)).subarray(0, -20), 'text/plain', { 'content-encoding': 'gzip' });
  assert.match(await ok({}), /packed grüße/);
  sends('no gzip', 'text/plain', { 'content-encoding': 'gzip' });
  assert.match(await err({}), /damaged: it is no gzip data \(Z_DATA_ERROR\)/);
  sends('x', 'text/plain', { 'content-encoding': 'zstd' });
  assert.match(await err({}), /the encoding "zstd", which is not known here/);
  sends('x', 'text/plain', { 'content-encoding': 'br, br, br, br' });
  assert.match(await err({}), /packs its answer 4 times over/);
});

test('bombs and bodies that are too large are given up', async () => {
  const bomb = Buffer.alloc(60 * 1024 * 1024);
  for (const [encoding, pack] of [['gzip', gzipSync], ['br', (data) => brotliCompressSync(data, { params: { 1: 1 } })]]) {
    sends(pack(bomb), 'text/html', { 'content-encoding': encoding });
    assert.match(await err({}), /is larger than 10 MiB/);
  }
  const big = Buffer.alloc(11 * 1024 * 1024, 'x');
  sends(big, 'text/plain');
  assert.match(await err({}), /is larger than 10 MiB/);
  const endless = createHttp((_request, response) => {
    const timer = setInterval(() => response.write(big.subarray(0, 1_000_000)), 5);
    response.on('close', () => clearInterval(timer));
  }).listen(0, '127.0.0.1');
  await once(endless, 'listening');
  after(() => endless.close());
  assert.match(await err({ url: `http://127.0.0.1:${endless.address().port}/`, output_path: 'big' }), /is larger than 10 MiB/);
  assert.deepEqual(readdirSync(home), []);
});

test('slow, broken and odd servers', async () => {
  reply = () => new Promise(() => {});
  assert.match(await withFastTimers(20, () => err({ timeout_seconds: 10 }), 5_000), /did not send the page within 10 seconds/);
  const started = Date.now();
  assert.match(await err({ timeout_seconds: 1 }), /within 1 seconds/);
  assert.ok(Date.now() - started < 4_000);
  let breaks = 1;
  reply = () => ({ body: 'late', headers: { 'content-type': 'text/plain' }, hangUp: breaks-- > 0 ? 'now' : undefined });
  assert.match(await ok({}), /late$/);
  reply = () => ({ hangUp: 'now' });
  assert.match(await err({}), /^Cannot reach 127\.0\.0\.1:\d+ \(ECONNRESET\)/);
  reply = () => ({ body: 'x'.repeat(1_000), hangUp: 'midway' });
  assert.match(await err({}), /^Cannot reach 127\.0\.0\.1:\d+ \(ECONNRESET\)/);
  const nobody = await freePort();
  assert.equal(await err({ url: `http://127.0.0.1:${nobody}/` }), `Cannot reach 127.0.0.1:${nobody} (ECONNREFUSED).`);
  assert.match(await err({ url: 'http://nowhere.invalid/' }), /^Cannot find the host nowhere\.invalid \((ENOTFOUND|EAI_AGAIN)\)/);
  const rude = createTcp((socket) => socket.on('error', () => {}).end('SSH-2.0-x\r\n')).listen(0, '127.0.0.1');
  await once(rude, 'listening');
  after(() => rude.close());
  assert.match(await err({ url: `http://127.0.0.1:${rude.address().port}/` }), /does not answer as a web server does \(HPE_/);
  assert.match(await err({ url: server.url.replace('http', 'https') }), /^No secure connection to /);
});

test('a certificate that nobody vouches for is refused', { skip: missing('openssl') }, async () => {
  const [key, cert] = [join(tmp, 'key.pem'), join(tmp, 'cert.pem')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', cert, '-subj', '/CN=localhost', '-days', '2'], { stdio: 'ignore' });
  const secure = createTls({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) => response.end('x')).listen(0, '127.0.0.1');
  await once(secure, 'listening');
  after(() => secure.close());
  assert.match(await err({ url: `https://127.0.0.1:${secure.address().port}/` }), /^No secure connection to 127\.0\.0\.1:\d+ is possible \(DEPTH_ZERO_SELF_SIGNED_CERT\)/);
});

test('R41 a fetch is cancelled while it waits for the server', async () => {
  reply = () => new Promise(() => {});
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 100);
  const started = Date.now();
  assert.equal(await err({}, abort.signal), 'Cancelled.');
  assert.ok(Date.now() - started < 2_000);
});

test('statuses are errors that say what to do and what the page says', async () => {
  const answers = async (status, headers = {}, body = '<html><head><title>T</title><style>p{}</style></head><body><p>Sorry &amp; so</p></body></html>') => {
    reply = () => ({ status, body, headers: { 'content-type': 'text/html', ...headers } });
    return err({});
  };
  assert.match(await answers(404), /^http:\/\/127\.0\.0\.1:\d+\/page answers 404 Not Found\. There is no such page\. .* It says: Sorry & so$/);
  assert.match(await answers(401), /answers 401 Unauthorized\. It needs credentials: pass an Authorization header/);
  assert.match(await answers(403), /browser tool/);
  assert.match(await answers(429, { 'retry-after': '120' }), /the server asks to wait \(Retry-After: 120\)/);
  assert.match(await answers(429), /wait a minute/);
  assert.match(await answers(503), /try again later/);
  assert.match(await answers(418, {}, 'x'.repeat(200_000)), /x{500}…$/);
  assert.match(await answers(500, { 'content-type': 'image/png' }, '\x89PNG\0\0'), /try again later\.$/);
  assert.match(await answers(404, { 'content-encoding': 'gzip' }, gzipSync('<p>packed</p>')), /It says: packed$/);
});

// ---- characters and kinds -----------------------------------------------------------------------

test('charsets: mark, header, meta, and what is likely', async () => {
  const text = 'Grüße, „Öl“ – 10 €';
  const latin = Buffer.from('Grüße ÄÖ', 'latin1');
  const show = async (body, type) => {
    sends(body, type);
    return bodyOf(await ok({ format: 'text', extract: 'full' }));
  };
  assert.equal(await show(text, 'text/html; charset=utf-8'), text);
  assert.equal(await show(text, 'text/html'), text);
  assert.equal(await show(latin, 'text/html; charset=iso-8859-1'), 'Grüße ÄÖ');
  assert.equal(await show(latin, 'text/html; charset="ISO-8859-1"'), 'Grüße ÄÖ');
  assert.equal(await show(latin, 'text/html'), 'Grüße ÄÖ');
  assert.equal(await show(Buffer.from([0x80, 0x20, 0x93, 0x41, 0x94]), 'text/plain'), '€ “A”');
  assert.equal(await show(Buffer.concat([Buffer.from('<meta charset="windows-1251"><p>'), Buffer.from([0xcf, 0xf0, 0xe8])]), 'text/html'), 'При');
  assert.equal(await show(Buffer.concat([Buffer.from('<!-- <meta charset=koi8-r> --><meta http-equiv="Content-Type" content="text/html; charset=shift_jis"><p>'), Buffer.from([0x93, 0xfa, 0x96, 0x7b])]), 'text/html'), '日本');
  assert.equal(await show(Buffer.concat([Buffer.from('<meta charset=utf-16><p>'), Buffer.from('ü')]), 'text/html'), 'ü');
  assert.equal(await show(Buffer.from('\ufeffüx', 'utf16le'), 'text/html; charset=iso-8859-1'), 'üx');
  assert.equal(await show(Buffer.from('\ufeffüx', 'utf8'), 'text/html; charset=koi8-r'), 'üx');
  assert.equal(await show(Buffer.from([0xc4, 0xe3, 0xba, 0xc3]), 'text/html; charset=gb2312'), '你好');
  assert.equal(await show(text, 'text/html; charset=klingon'), text);
  assert.equal(await show(Buffer.from([0x66, 0xff, 0x66]), 'text/html; charset=utf-8'), 'f\ufffdf');
  assert.match(await show(Buffer.concat([Buffer.from('<?xml version="1.0" encoding="ISO-8859-15"?><x>'), Buffer.from([0xa4]), Buffer.from('</x>')]), 'application/xml'), /<x>€<\/x>$/);
});

test('JSON is shown in lines, if that changes nothing', async () => {
  sends('{"b":[1,{"ü":null}],"a":"x"}', 'application/vnd.api+json');
  assert.equal(bodyOf(await ok({})), '{\n  "b": [\n    1,\n    {\n      "ü": null\n    }\n  ],\n  "a": "x"\n}');
  sends('[1, 2]', 'application/json');
  assert.equal(bodyOf(await ok({ format: 'raw' })), '[1, 2]');
  for (const same of ['{"id":12345678901234567890}', '{broken', '['.repeat(5_000)]) {
    sends(same, 'application/json');
    assert.equal(bodyOf(await ok({})), same);
  }
});

test('without a type the content tells; text stays as it is', async () => {
  const show = async (body, type) => {
    sends(body, type);
    return bodyOf(await ok({}));
  };
  assert.equal(await show('  <!DOCTYPE html><p>a <b>b</b>', undefined), 'a **b**');
  assert.equal(await show('{"a":1}', ''), '{\n  "a": 1\n}');
  assert.equal(await show('a < b\n\tc  *d*', 'text/plain'), 'a < b\n\tc  *d*');
  assert.equal(await show('<p>x', 'text/plain'), '<p>x');
  assert.equal(await show('a,b\n1,2\n', 'text/csv').then((text) => text.trim()), 'a,b\n1,2');
  assert.equal(await show('just words', 'application/octet-stream'), 'just words');
  assert.equal(await show('<svg xmlns="x"/>', 'image/svg+xml'), '<svg xmlns="x"/>');
  assert.match(await show('', 'text/html'), /^\(The page has no text\.\)$/);
});

test('binaries are refused with their size, or saved byte by byte', async () => {
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000', 'hex'), Buffer.alloc(5_000, 7)]);
  for (const [type, named] of [['image/png', 'image/png'], [undefined, 'binary data without a type'], ['text/plain', 'text/plain']]) {
    sends(png, type);
    assert.match(await err({}), new RegExp(`/page is ${named} \\(5010 bytes\\), not text\\. Set output_path to save it as a file\\.$`));
  }
  sends(png, 'image/png');
  assert.match(await ok({ output_path: 'new/-a b.png' }), /^The content as it was sent saved to .*\/home\/new\/-a b\.png \(5010 bytes\)\.\nURL: /);
  assert.deepEqual(readFileSync(join(home, 'new/-a b.png')), png);
  assert.match(await err({ output_path: 'new' }), /is a directory; name a file in it/);
});

test('R60 R61 a long page: read on with start, or all of it into a file', async () => {
  const text = Array.from({ length: 20_000 }, (_, i) => `word${i}`).join(' ');
  sendsHtml(`<title>Long</title><p>${text}</p>`);
  let read = '';
  let start = 0;
  for (let calls = 0; calls < 20; calls += 1) {
    const part = await ok({ extract: 'full', max_chars: 40_000, start });
    const [, from, to, all] = /\nCharacters (\d+) to (\d+) of (\d+)\n\n/.exec(part);
    assert.deepEqual([Number(from), Number(all)], [start, text.length]);
    const body = bodyOf(part);
    read += to === all ? body : body.slice(0, body.lastIndexOf('\n\n…'));
    if (to === all) break;
    assert.equal(Number(/read on with start: (\d+), or set output_path to get everything\.$/.exec(part)[1]), Number(to));
    start = Number(to);
  }
  assert.equal(read, text);
  assert.match(await ok({ max_chars: 50_000 }), /… \d+ more characters/);
  assert.match(await err({ start: text.length }), new RegExp(`There is nothing from character ${text.length} on: the text has ${text.length}`));
  assert.match(await ok({ output_path: 'long.md' }), new RegExp(`^${text.length} characters of markdown saved to .*/long\\.md \\(\\d+ bytes\\)\\.\nURL: .*\nTitle: Long$`));
  assert.equal(readFileSync(join(home, 'long.md'), 'utf8'), `${text}\n`);
  sendsHtml('<p>😀😀😀');
  assert.match(await ok({ max_chars: 1 }), /\n\n😀?.?\n\n… \d more/u);
});

test('a PDF is read as text, and one that is encrypted or broken says so', { skip: missing('pdftotext', 'qpdf') }, async () => {
  const pdf = textPdf(['Invoice number 4711\nTotal 10 Euro', 'Second page']);
  sends(pdf, 'application/pdf');
  const text = await ok({});
  assert.match(text, /\nFormat: PDF\n\n/);
  assert.match(text, /Invoice number 4711[\s\S]*Second page$/);
  sends(pdf, undefined);
  assert.match(await ok({}), /Invoice number 4711/);
  assert.match(await ok({ output_path: 'x.PDF' }), /^The content as it was sent saved/);
  assert.deepEqual(readFileSync(join(home, 'x.PDF')), pdf);
  assert.match(await ok({ output_path: 'x.txt' }), /^\d+ characters of markdown saved/);
  writeFileSync(join(tmp, 'plain.pdf'), pdf);
  execFileSync('qpdf', ['--encrypt', 'secret', 'secret', '256', '--', join(tmp, 'plain.pdf'), join(tmp, 'locked.pdf')]);
  sends(readFileSync(join(tmp, 'locked.pdf')), 'application/pdf');
  assert.match(await err({}), /^The PDF is encrypted and needs a password\./);
  sends('%PDF-1.4 nothing', 'application/pdf');
  assert.match(await err({}), /^The PDF cannot be read \(pdftotext: /);
});

test('R85 R86 without pdftotext a PDF is a clear error, and other pages work', async () => {
  const PATH = makePath(tmp);
  sends('%PDF-1.4', 'application/pdf');
  assert.match(await withEnv({ PATH }, () => err({})), /^pdftotext is required but not installed in the container\. \(Debian package: poppler-utils\)$/);
  sends('<p>fine', 'text/html');
  assert.match(await withEnv({ PATH }, () => ok({})), /fine$/);
});

// ---- pages ---------------------------------------------------------------------------------------

test('Markdown: headings, emphasis, links, pictures, code', async () => {
  assert.equal(await markdown('<h1>One <i>two</i></h1><h3>Three<br>four</h3>'), '# One *two*\n\n### Three four');
  assert.equal(await markdown('<p>a <b> bold </b>and<em>em</em>, <del>gone</del> <u>u</u> H<sub>2</sub>O 10<sup>2</sup>'), 'a **bold** and*em*, ~~gone~~ u H2O 10^2');
  assert.equal(await markdown('<p><a href="../x?a=1&amp;b=(2)">go</a> <a href="#top">top</a> <a href="mailto:a@b.c">m</a> <a>none</a>'), `[go](${server.url}/x?a=1&b=%282%29) top [m](mailto:a@b.c) none`);
  assert.equal(await markdown('<base href="https://other.example/d/"><p><a href=e>e</a><img src=i.png alt="An [i]">'), '[e](https://other.example/d/e)![An \\[i\\]](https://other.example/d/i.png)');
  assert.equal(await markdown('<p><a href=x>go</a> <img src=i.png alt=x>on', { include_links: false }), 'go on');
  assert.equal(await markdown('<p><img src="data:image/gif;base64,R0" data-src=/real.jpg alt=r><img src=pix.gif width=1 height=1>'), `![r](${server.url}/real.jpg)`);
  assert.equal(await markdown('<p>use <code>a*b</code> or <code>x`y</code><pre class="language-C++"><code>\nif (a &lt; b)\n\treturn;\n</code></pre>'), 'use `a*b` or ``x`y``\n\n```c++\nif (a < b)\n\treturn;\n```');
  assert.equal(await markdown('<pre>```\n</pre>'), '````\n```\n````');
  assert.equal(await markdown('<a href=/c><h2>Card</h2><p>Text</p></a>'), `## [Card](${server.url}/c)\n\nText`);
});

test('Markdown: lists, quotes, rules, definitions, breaks', async () => {
  assert.equal(await markdown('<ul><li>a<li>b<ol start=4><li>c<li>d</ol><li>e</ul>'), '- a\n- b\n  4. c\n  5. d\n- e');
  assert.equal(await markdown('<ol><li><p>a</p><p>b</p><li>c</ol>'), '1. a\n\n   b\n\n2. c');
  assert.equal(await markdown('<ul><li>a</li><ul><li>b</ul></ul>'), '- a\n  - b');
  assert.equal(await markdown('<blockquote>a<p>b<blockquote>c</blockquote></blockquote><hr>z'), '> a\n>\n> b\n>\n> > c\n\n---\n\nz');
  assert.equal(await markdown('<dl><dt>T<dd>d</dl>a<br>b<br><br>c'), '**T**\n\nd\n\na  \nb\n\nc');
  assert.equal(await markdown('<div>a<div>b</div>c</div> d'), 'a\n\nb\n\nc\n\nd');
});

test('Markdown: tables of data as tables, those of layout as text', async () => {
  assert.equal(await markdown('<table><caption>C</caption><tr><th>A<th>B|b<tr><td>1<td>2<br>3</table>'), 'C\n\n| A | B\\|b |\n| --- | --- |\n| 1 | 2 3 |');
  assert.equal(await markdown('<table><tr><td colspan=2>a<td>b<tr><td rowspan=2>c<td>d<td>e<tr><td>f<td>g</table>'), '| a |  | b |\n| --- | --- | --- |\n| c | d | e |\n|  | f | g |');
  assert.equal(await markdown('<table><tr><td><table><tr><td>x</table><td><p>y</table>'), 'x\n\ny');
  assert.equal(await markdown('<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>'), 'a\n\nb\n\nc\n\nd');
  assert.equal(await markdown('<table><tr><th>A<th>B<tr><td>1<td>2</table>', { format: 'text' }), 'A | B\n1 | 2');
});

test('Markdown: characters that would be marks are escaped', async () => {
  assert.equal(await markdown('<p># a<p>1. b<p>- c<p>> d<p>2 * 3 *x* `y` \\z<p>snake_case _u_<p>&lt;b> &amp;lt; [x](y) ~~s~~<p>---<p>1986\\. a'), '\\# a\n\n1\\. b\n\n\\- c\n\n\\> d\n\n2 * 3 \\*x\\* \\`y\\` \\\\z\n\nsnake_case \\_u\\_\n\n\\<b> \\&lt; [x\\](y) \\~~s\\~~\n\n\\---\n\n1986\\\\. a');
  assert.equal(await markdown('<p># a *b*', { format: 'text' }), '# a *b*');
});

test('HTML as it is really written: missing ends, wrong nesting, entities', async () => {
  assert.equal(await markdown('<p>a<p>b<div>c</p>d</div><b><p>e</b>f</p>g'), 'a\n\nb\n\nc d\n\ne f\n\ng'.replace('c d', 'cd').replace('e f', 'ef'));
  assert.equal(await markdown('<P>1 < 2 &amp;&lt;&#65;&#x42;&copy&nbsp;&eacute;&hellip;&#128;&#0;&bogus;&ampx &notit;'), '1 < 2 &\\<AB© é…€\ufffd\\&bogus;&x ¬it;');
  assert.equal(await markdown('<p><a href="?a=1&copy=2&lt;">x</a>'), `[x](${server.url}/page?a=1&copy=2%3C)`);
  assert.equal(await markdown('<!-- <p>no --><p>yes<!--> <p>too</p><script>"</p>" + "<p>no"</script><style>p{}</style><![CDATA[ x ]]>!'), 'yes\n\ntoo\n\n!');
  assert.equal(await markdown('<p hidden>a<p style="display: none">b<p aria-hidden=true>c<p>d<noscript>e</noscript><textarea>f</textarea><select><option>g</select>'), 'd');
  assert.equal(await markdown('<table><tr><td>a</div></table></td>b<td>'), 'a\n\nb');
  assert.equal(await markdown('<title>x</title><svg><title>no</title><path/></svg><p>a<br/>b<img/src=x>'), `a  \nb![](${server.url}/x)`);
  assert.equal(await markdown('<p a="<p>" b=\'>\' c=d/>x</P>< p>y</ p>'), 'x\n\n\\< p>y\\</ p>'.replace('\\< p', '< p'));
});

test('clean HTML has no script, no handler and no dangerous address', async () => {
  const html = await markdown('<p onclick=x() style="color:red" lang=de>a &lt; <a href="javascript:alert(1)">j</a><a href=" JaVa\tscript:x">k</a><a href="/ok" target=_top>ok</a><img src=x onerror=y()><script>z</script><iframe src=q></iframe><a href="data:text/html,x">d</a><a href="vbscript:x">v</a>', { format: 'html' });
  assert.equal(html, `<p lang="de">a &lt; <a>j</a><a>k</a><a href="${server.url}/ok">ok</a><img src="${server.url}/x"><a>d</a><a>v</a></p>`);
  assert.doesNotMatch(await markdown('<p><a href="javascript:alert(1)">j</a> <a href="&#106;avascript:x">k</a> <img src="javascript:x">'), /script/);
});

test('what a page says of itself heads the answer', async () => {
  sendsHtml(`<html lang="de"><head><title>Head &amp; Site</title><meta property="og:title" content="Head"><meta name=author content="Ann"><meta property="og:site_name" content="Site"><meta name=description content="About\nit"><link rel=canonical href="/real"><script type="application/ld+json">{"@graph":[{"@type":"X"},{"headline":"The headline","datePublished":"2025-03-01T10:00:00Z","author":[{"name":"Bob"},{"name":"Eve"}]}]}</script></head><body><p>${LONG}</p>`);
  assert.equal((await ok({})).split('\n\n')[0], `URL: ${server.url}/page\nTitle: The headline\nAuthor: Bob, Eve\nPublished: 2025-03-01T10:00:00Z\nSite: Site\nLanguage: de\nCanonical: ${server.url}/real\nDescription: About it`);
  sendsHtml('<script type="application/ld+json">{broken</script><title>\n T\n</title><meta name=author content="Ann"><meta property=article:published_time content=2024-01-02><p>x');
  assert.equal((await ok({})).split('\n\n')[0], `URL: ${server.url}/page\nTitle: T\nAuthor: Ann\nPublished: 2024-01-02`);
});

test('pages that JavaScript fills, or that forward, say so', async () => {
  sendsHtml('<html><body><div id="root"></div><noscript>You need to enable JavaScript</noscript><script src=a.js></script></body>');
  assert.match(await ok({}), /JavaScript fills it in\. Use the browser tool to see it\.$/);
  sendsHtml('<meta http-equiv="Refresh" content="0; URL=\'/next\'"><p>moved');
  assert.match(await ok({}), new RegExp(`This page forwards to ${server.url}/next; fetch that address\\.$`));
});

test('feeds are lists of their entries, other XML is as it is', async () => {
  sends(`<?xml version="1.0"?><rss version="2.0"><channel><title>News &amp; more</title><link>/</link><description><![CDATA[All <b>of</b> it]]></description>
    <item><title>First &lt;b&gt;one&lt;/b&gt;</title><link>/1</link><pubDate>Sat, 01 Mar 2025 10:00:00 GMT</pubDate><dc:creator>Ann</dc:creator><description><![CDATA[<p>Hello</p> <script>no</script>there]]></description></item>
    <item><title>Second</title><link>javascript:x</link></item></channel></rss>`, 'application/rss+xml');
  assert.equal(await ok({}), `URL: ${server.url}/page\nTitle: News & more\nDescription: All of it\nFeed: 2 entries\n\n## [First one](${server.url}/1)\n\nSat, 01 Mar 2025 10:00:00 GMT, Ann\n\nHello there\n\n## Second`);
  sends('<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><entry><title type="html">E</title><link rel="edit" href="/no"/><link href="/e"/><updated>2025-01-01T00:00:00Z</updated><author><name>Bob</name></author><summary>S</summary></entry></feed>', undefined);
  assert.equal(bodyOf(await ok({ format: 'text' })), `E\n${server.url}/e\n2025-01-01T00:00:00Z, Bob\nS`);
  sends('<a><b>x</b></a>', 'application/xml');
  assert.equal(bodyOf(await ok({})), '<a><b>x</b></a>');
});

// ---- articles: own pages, each with what must and what must not be in the result ------------------

const cases = readdirSync(PAGES).filter((name) => name.endsWith('.html'));
for (const name of cases) {
  test(`the article of ${name} without what is around it`, async () => {
    sendsHtml(readFileSync(join(PAGES, name)));
    const expected = JSON.parse(readFileSync(join(PAGES, name.replace('.html', '.json')), 'utf8'));
    const text = bodyOf(await ok({}));
    for (const part of expected.has) assert.ok(text.includes(part), `lacks: ${part}\n${text}`);
    for (const part of expected.lacks) assert.ok(!text.includes(part), `has: ${part}\n${text}`);
    if (expected.starts) assert.ok(text.startsWith(expected.starts), text.slice(0, 200));
    const full = bodyOf(await ok({ extract: 'full' }));
    for (const part of expected.full) assert.ok(full.includes(part), `the full page lacks: ${part}`);
  });
}

// ---- hostile pages --------------------------------------------------------------------------------

const filled = (unit, size = 5 * 1024 * 1024) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);

test('5 MB of anything is read in time and without a stack overflow', async () => {
  const pages = {
    angles: filled('<'), deep: filled('<div>'), flat: filled('<p>a,'), bold: filled('<b><p>'), ends: filled('<div>', 5_000) + filled('</x></p>'),
    comments: filled('<!--'), quotes: filled('<a b="'), ampersands: filled('&a'), lists: filled('<ul><li>x'), quoted: filled('<blockquote>', 12_000) + filled('x<br>'),
    attributes: `<a ${filled('x ')}>`, spaces: `<a${filled(' ')}>`, marks: `<p>${filled('*_`~[](<')}`, spans: `<table>${filled('<tr><td colspan=1000 rowspan=1000>x')}`,
    base: `<base href="http://a/${'x'.repeat(1_900)}">${filled('<a href=b>x</a> ', 1_000_000)}`,
  };
  for (const [name, page] of Object.entries(pages)) {
    sendsHtml(page);
    const cpu = process.cpuUsage();
    await ok({});
    const { user } = process.cpuUsage(cpu);
    // Time of the processor, not of the clock: other tests run at the same time.
    assert.ok(user < 6_000_000, `${name} took ${Math.round(user / 1000)} ms`);
  }
  sends(filled('['), 'application/json');
  await ok({});
  sends(`<rss><channel>${filled('<item><title>x</title>')}`, 'application/xml');
  assert.match(await ok({}), /has more than 100000 elements; the rest of it was left out\.$/);
});

// ---- through the mount ----------------------------------------------------------------------------

test('R112 web_fetch through a real mount', { skip: noMount }, async () => {
  const OFFICER_RESOURCES = JSON.stringify({ 'web-fetch': { allow_private: [`127.0.0.1:${server.port}`] } });
  const mount = await startMount([DIR], { OFFICER_RESOURCES, OFFICER_USER_ROOT: home });
  sendsHtml(`<title>Mounted</title><h1>Hello</h1><p>${LONG}</p>`);
  const { status, text } = await mount.call('web_fetch', { url: at('/m') });
  assert.equal(status, 0, text);
  assert.match(text, /\nTitle: Mounted\n\n# Hello\n\nA sentence/);
  const refused = await mount.call('web_fetch', { url: `http://localhost:${server.port}/` });
  assert.notEqual(refused.status, 0);
  assert.match(refused.text, /^Refused: localhost resolves to a private address/);
  assert.ok(!existsSync(join(home, 'PWNED')));
});
