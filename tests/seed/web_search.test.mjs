// web_search against a real searx (Debian's package), and against a stand-in for what that one does
// not do: a limiter, disabled JSON, answers that are objects, infoboxes, and servers that are none.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { contractTests } from './fixtures/contract.mjs';
import { caller, loadTool, makeTempDir, withEnv, withFastTimers } from './fixtures/harness.mjs';
import { noSearx, startSearx } from './fixtures/searx.mjs';
import { freePort, listener, startServer, withFastWaits } from './fixtures/standin.mjs';

const DIR = 'seed/tools/web_search';
const tmp = makeTempDir();
const home = join(tmp, 'home');
mkdirSync(home);
const tool = caller(await loadTool(DIR));

/** What the stand-in answers; each test sets its own. */
let reply = () => ({ json: { query: 'x', results: [] } });
const standin = await startServer((request) => reply(request));
const at = (url, fn) => withEnv({ PI_SEARXNG_URL: url, OFFICER_USER_ROOT: home, HOME: home }, fn);
const ok = (params, ...rest) => at(standin.url, () => tool.ok(params, ...rest));
const err = (params, ...rest) => at(standin.url, () => tool.err(params, ...rest));

const result = (n, more = {}) => ({
  url: `https://site.example/${n}`, title: `Title ${n}`, content: `Text ${n}`, engine: 'alpha', engines: ['alpha', 'beta'], score: 1 / (n + 1),
  category: 'general', positions: [n], parsed_url: ['https', 'site.example', `/${n}`, '', '', ''], template: 'default.html', ...more,
});
const page = (results, more = {}) => ({
  json: { query: 'x', number_of_results: 0, results, answers: [], corrections: [], infoboxes: [], suggestions: [], unresponsive_engines: [], ...more },
});

/** What searx's engines read: 35 results, ten a page, each page repeating the last of the one before. */
const source = noSearx ? undefined : await startServer(({ path, query }) => {
  const first = (Number(query.get('p')) - 1) * 10;
  const items = query.get('q').startsWith('nothing') ? [] : Array.from({ length: 11 }, (_, i) => first + i - 1).filter((n) => n >= 0 && n < 35);
  return {
    json: {
      items: items.map((n) => ({ url: `https://site.example${path}/${n}`, title: `Result ${n} für ${query.get('q')}`, content: `about <b>${n}</b>` })),
      hints: [{ text: 'other words' }, { text: 'ähnliches' }],
    },
  };
});
const searx = source && await startSearx(tmp, source.url);

contractTests({
  dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), env: { PI_SEARXNG_URL: standin.url }, base: { query: 'x', max_results: 2 },
});

// ---- the real engine ---------------------------------------------------------------------------

const real = (params, ...rest) => at(searx, () => tool.ok(params, ...rest));
const urlsIn = (text) => [...text.matchAll(/^ {3}(https:\S+)$/gm)].map((match) => match[1]);

test('R112 a real search engine: results, suggestions, and the engine that is down', { skip: noSearx }, async () => {
  const text = await real({ query: 'grüne "Äpfel" & 50% #1' });
  assert.match(text, /^1\. Result 0 für grüne "Äpfel" & 50% #1\n {3}https:\/\/site\.example\/web\/0\n {3}about 0\n {3}\(local\)\n\n2\. /);
  assert.equal(urlsIn(text).length, 10);
  assert.match(text, /\nRelated searches: .*ähnliches/);
  assert.match(text, /These engines failed, so results may be missing: dead \(.+\)/);
});

test('R112 a real search engine: paging, each result once', { skip: noSearx }, async () => {
  const { texts, onUpdate } = listener();
  const urls = urlsIn(await real({ query: 'pages', max_results: 100 }, undefined, onUpdate));
  assert.deepEqual(urls, Array.from({ length: 35 }, (_, n) => `https://site.example/web/${n}`));
  assert.deepEqual(texts.slice(0, 2), ['Searching...', '10 results so far; reading page 2...']);
  const later = await real({ query: 'pages', page: 3, max_results: 5 });
  assert.equal(urlsIn(later)[0], 'https://site.example/web/19');
  assert.match(later, /For more raise max_results \(100 at most\), or go on with page 4\.$/);
});

test('R112 a real search engine: categories, engines, and no result', { skip: noSearx }, async () => {
  assert.ok(urlsIn(await real({ query: 'x', categories: 'images' })).every((url) => url.includes('/images/')));
  const found = JSON.parse(await real({ query: 'x', engines: ' local, ', language: 'de', safesearch: '1', format: 'json' }));
  assert.deepEqual([found.results.length, found.unresponsive_engines], [10, []]);
  assert.match(await real({ query: 'nothing' }), /^No results; these engines failed: dead \(.+\)\. Try again later/);
  assert.equal(await real({ query: 'nothing', engines: 'local' }).then((text) => text.split('\n')[0]), 'No results. Try other or fewer words.');
});

test('R112 a real search engine: what it refuses is passed on', { skip: noSearx }, async () => {
  assert.match(await at(searx, () => tool.err({ query: 'x', language: 'klingon' })), /^SearXNG refused the search: Invalid value "klingon" for parameter language\.$/);
  assert.equal(urlsIn(await at(`${searx}/search`, () => tool.ok({ query: 'x' }))).length, 10);
});

// ---- the stand-in ------------------------------------------------------------------------------

test('R112 every parameter arrives, and only those that are given', async () => {
  reply = () => page([result(0)]);
  await ok({ query: ' a+b &c=d ', page: 2, max_results: 1, categories: 'news, it', engines: 'x', language: 'de-DE', time_range: 'day', safesearch: '0' });
  const { method, path, query, headers } = standin.requests.at(-1);
  assert.deepEqual([method, path, headers.authorization], ['GET', '/search', undefined]);
  assert.deepEqual(Object.fromEntries(query), { q: 'a+b &c=d', format: 'json', pageno: '2', categories: 'news,it', engines: 'x', language: 'de-DE', time_range: 'day', safesearch: '0' });
  await ok({ query: 'y', max_results: 1, categories: null, engines: '', time_range: '' });
  assert.deepEqual(Object.fromEntries(standin.requests.at(-1).query), { q: 'y', format: 'json', pageno: '1' });
});

test('R112 an address with a path, with or without a slash, and with a password', async () => {
  reply = () => page([result(0)]);
  for (const [base, path] of [['/searx/', '/searx/search'], ['/searx', '/searx/search'], ['/', '/search'], ['/a/b?x=1#y', '/a/b/search'], ['/search', '/search']]) {
    await at(standin.url + base, () => tool.ok({ query: 'x', max_results: 1 }));
    assert.equal(standin.requests.at(-1).path, path);
  }
  const withLogin = standin.url.replace('//', '//ann:s%20ecret-pass@');
  await at(withLogin, () => tool.ok({ query: 'x', max_results: 1 }));
  assert.equal(standin.requests.at(-1).headers.authorization, `Basic ${Buffer.from('ann:s ecret-pass').toString('base64')}`);
  reply = () => ({ status: 500, body: 'user ann:s ecret-pass, s%20ecret-pass' });
  const text = await at(withLogin, () => withFastWaits(100, () => tool.err({ query: 'x' })));
  assert.doesNotMatch(text, /ecret/);
  assert.match(text, /failed with status 500: user ann:\*\*\*, \*\*\*\. Try again later\.$/);
});

test('R112 answers of either kind, infobox, pictures, files, dates', async () => {
  reply = () => page([
    result(0, { publishedDate: '2025-03-01T00:00:00', content: 'a\n\tb\u0007\u001b[31m' }),
    result(1, { category: 'images', img_src: 'https://pic.example/1.jpg', resolution: '640 x 480', content: null, engines: undefined, title: '' }),
    result(2, { magnetlink: 'magnet:?xt=1', seed: 12, leech: 0, filesize: '1 GiB' }),
    { title: 'no address' }, null, 'text', result(0, { title: 'the same address again' }),
  ], {
    answers: ['42', { answer: '37 °C', url: 'https://answer.example/', engine: 'calc', template: 'answer/legacy.html' }, { template: 'answer/weather.html', engine: 'wttr', current: { temperature: 7 } }],
    infoboxes: [{ infobox: 'Ada', id: 'x', content: 'Mathematician', img_src: '', urls: [{ title: 'Wikipedia', url: 'https://wiki.example/Ada' }], attributes: [{ label: 'Born', value: '1815' }], engine: 'wikidata', engines: ['wikidata'] }],
    corrections: ['ada'], suggestions: ['babbage', 'babbage', 7], unresponsive_engines: [['google', 'Suspended: too many requests', true], 'odd'],
  });
  const text = await ok({ query: 'x' });
  assert.ok(text.startsWith('Answer: 42\nAnswer: 37 °C (https://answer.example/)\nAnswer: {"current":{"temperature":7}} (wttr)\n\nInfobox: Ada\n  Mathematician\n  Born: 1815\n  Wikipedia: https://wiki.example/Ada\n\n1. Title 0\n'));
  assert.match(text, /\n {3}a b \[31m\n {3}\(alpha, beta; 2025-03-01\)\n/);
  assert.match(text, /2\. \(no title\)\n {3}https:\/\/site\.example\/1\n {3}\(alpha; resolution 640 x 480; img_src https:\/\/pic\.example\/1\.jpg\)\n/);
  assert.match(text, /magnetlink magnet:\?xt=1; seed 12; leech 0; filesize 1 GiB/);
  assert.match(text, /Did you mean: ada\n\nRelated searches: babbage \| 7\n\nThese engines failed, so results may be missing: google \(Suspended: too many requests\), odd$/);
  assert.equal(urlsIn(text).length, 3);
  const found = JSON.parse(await ok({ query: 'x', format: 'json' }));
  assert.deepEqual(Object.keys(found.results[1]), ['url', 'engine', 'score', 'category', 'img_src', 'resolution']);
  assert.equal(found.unresponsive_engines[0].engine, 'google');
});

test('R112 five pages at most, and what there is if a later one fails', async () => {
  reply = ({ query }) => page([result(Number(query.get('pageno')))]);
  const before = standin.requests.length;
  assert.equal(urlsIn(await ok({ query: 'x', max_results: 50 })).length, 5);
  assert.equal(standin.requests.length - before, 5);
  reply = ({ query }) => (query.get('pageno') === '1' ? page([result(1)]) : { status: 403, body: '<h1>no</h1>' });
  assert.match(await ok({ query: 'x' }), /^1\. Title 1\n[\s\S]*\n\nPage 2 could not be read: JSON output is not enabled/);
});

test('R112 each way in which a server says no', async () => {
  const say = (answer) => { reply = () => answer; };
  say({ status: 403, body: '<!doctype html><title>403 Forbidden</title><h1>Forbidden</h1>', headers: { 'content-type': 'text/html' } });
  assert.match(await err({ query: 'x' }), /^JSON output is not enabled on the SearXNG server at http:\/\/127\.0\.0\.1:\d+: add `json` to `search\.formats` in the instance's settings\.yml\./);
  say({ status: 400, json: { error: 'Invalid value "decade" for parameter time_range' } });
  assert.equal(await err({ query: 'x' }), 'SearXNG refused the search: Invalid value "decade" for parameter time_range.');
  say({ status: 200, body: '<html>Welcome</html>', headers: { 'content-type': 'text/html' } });
  assert.match(await err({ query: 'x' }), /is no SearXNG result in JSON/);
  for (const json of [[], null, 7, { results: 'x' }, { error: 'x' }]) {
    say({ json });
    assert.match(await err({ query: 'x' }), /is no SearXNG result in JSON/);
  }
  say({ status: 404, body: '' });
  assert.match(await err({ query: 'x' }), /^There is no search page at http:\/\/127\.0\.0\.1:\d+\/search\./);
  say({ status: 401, body: '' });
  assert.match(await err({ query: 'x' }), /needs a name and a password/);
  say({ status: 418, body: '<style>p{}</style><p>short &amp; stout</p>' });
  assert.match(await err({ query: 'x' }), /failed with status 418: short &amp; stout\. Try again later\.$/);
});

test('R112 the limiter: waits as asked, and gives up with the time to wait', async () => {
  const { texts, onUpdate } = listener();
  let refusals = 1;
  reply = () => (refusals-- > 0 ? { status: 429, body: 'Too Many Requests', headers: { 'retry-after': '1' } } : page([result(0)]));
  const started = Date.now();
  await ok({ query: 'x', max_results: 1 }, undefined, onUpdate);
  assert.ok(Date.now() - started >= 990);
  assert.match(texts[1], /^Waiting 1\.\d s and trying again \(status 429 from 127\.0\.0\.1:\d+\)\.\.\.$/);
  const before = standin.requests.length;
  reply = () => ({ status: 429, body: 'Too Many Requests', headers: { 'retry-after': '300' } });
  assert.match(await err({ query: 'x' }), /^The limiter of .* Try again in 300 seconds/);
  assert.equal(standin.requests.length - before, 1);
  reply = () => ({ status: 429, body: 'Too Many Requests' });
  await withFastWaits(100, () => err({ query: 'x' }));
  assert.equal(standin.requests.length - before, 5);
});

test('R54 servers that hang up, cannot be reached, send too much or lead elsewhere', async () => {
  let breaks = 2;
  reply = () => (breaks-- > 0 ? { ...page([result(0)]), hangUp: breaks ? 'now' : 'midway' } : page([result(0)]));
  assert.equal(urlsIn(await withFastWaits(100, () => ok({ query: 'x', max_results: 1 }))).length, 1);
  const nobody = await freePort();
  const refused = await at(`http://127.0.0.1:${nobody}/`, () => withFastWaits(100, () => tool.err({ query: 'x' })));
  assert.equal(refused, `Cannot reach 127.0.0.1:${nobody} (ECONNREFUSED).`);
  assert.match(await at('http://nowhere.invalid/', () => withFastWaits(100, () => tool.err({ query: 'x' }))), /^Cannot reach nowhere\.invalid \((ENOTFOUND|EAI_AGAIN)\)\.$/);
  reply = () => ({ body: gzipSync(Buffer.alloc(40 * 1024 * 1024, ' ')), headers: { 'content-encoding': 'gzip' } });
  assert.match(await err({ query: 'x' }), /is larger than 16 MiB/);
  const other = await startServer(() => page([result(0)]));
  for (const location of [`${other.url}/search`, 'http://169.254.169.254/latest', 'file:///etc/passwd', 'http://[', `http://u:p@127.0.0.1:${standin.port}/`, '']) {
    reply = () => ({ status: 302, headers: { location } });
    assert.match(await err({ query: 'x' }), /redirects to .*, which is not followed/);
  }
  assert.equal(other.requests.length, 0);
  reply = ({ path }) => (path === '/s/search' ? page([result(0)]) : { status: 308, headers: { location: '/s/search?q=x' } });
  assert.equal(urlsIn(await ok({ query: 'x', max_results: 1 })).length, 1);
  reply = ({ path }) => ({ status: 301, headers: { location: `${path}/x` } });
  assert.match(await err({ query: 'x' }), /which is not followed/);
});

test('R41 a search is cancelled while it waits for the server, and while it waits to try again', async () => {
  reply = () => new Promise((settle) => { setTimeout(() => settle(page([])), 3_000).unref(); });
  for (const answer of [undefined, { status: 429, headers: { 'retry-after': '30' } }]) {
    if (answer) reply = () => answer;
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    const started = Date.now();
    assert.equal(await err({ query: 'x' }, abort.signal), 'Cancelled.');
    assert.ok(Date.now() - started < 2_000);
  }
});

test('a server that does not answer is given up after its time', async () => {
  reply = () => new Promise(() => {});
  assert.match(await withFastTimers(100, () => err({ query: 'x' })), /^127\.0\.0\.1:\d+ did not answer within 30 seconds/);
});

test('R56 R58 R79 without an address the error says what to do; the resource is second', async () => {
  const unset = 'PI_SEARXNG_URL is not set. Ask the user to configure SearXNG in Settings → Integrations.';
  for (const OFFICER_RESOURCES of ['', '{}', 'no json', '[]', '{"searxng": 7}', '{"searxng": {"url": ""}}']) {
    assert.equal(await withEnv({ OFFICER_RESOURCES, PI_SEARXNG_URL: '' }, () => tool.err({ query: 'x' })), unset);
  }
  assert.equal(await withEnv({}, () => tool.err({ query: 'x' }), { keep: false }), unset);
  reply = () => page([result(0)]);
  const OFFICER_RESOURCES = JSON.stringify({ searxng: { url: standin.url } });
  await withEnv({ OFFICER_RESOURCES, PI_SEARXNG_URL: '' }, () => tool.ok({ query: 'x', max_results: 1 }));
  for (const url of ['not a url', 'ftp://host/', 'file:///etc/passwd', '//host']) {
    assert.match(await at(url, () => tool.err({ query: 'x' })), /^PI_SEARXNG_URL is not an http or https address\./);
  }
});

test('R57 a missing or wrong parameter is named with what is possible', async () => {
  assert.equal(await err({}), 'query parameter is required: what to search for.');
  assert.match(await err({ query: '  ' }), /^query parameter is required/);
  assert.match(await err({ query: 'x'.repeat(2001) }), /^query is longer than 2000/);
  assert.match(await err({ query: 'x', max_results: 101 }), /^max_results must be a number from 1 to 100/);
  assert.match(await err({ query: 'x', time_range: 'decade' }), /^Unknown time_range: "decade"\. Available: day, week, month, year\.$/);
  assert.match(await err({ query: 'x', safesearch: '3' }), /^Unknown safesearch/);
});

test('R60 R61 large output ends at the cap, output_path gets all of it', async () => {
  reply = ({ query }) => page(Array.from({ length: 40 }, (_, i) => result(i + 100 * Number(query.get('pageno')), { content: 'long '.repeat(500), extra: 'x'.repeat(3_000) })));
  assert.match(await ok({ query: 'x', max_results: 100 }), /… truncated \(\d+ more characters\); set output_path to get everything\.$/);
  assert.match(await ok({ query: 'x', max_results: 100, format: 'json' }), /… truncated/);
  const saved = await ok({ query: 'x', max_results: 100, output_path: 'new dir/-all.json' });
  assert.match(saved, /^100 items saved to .*\/home\/new dir\/-all\.json \(\d+ bytes\)\.$/);
  const file = JSON.parse(readFileSync(join(home, 'new dir/-all.json'), 'utf8'));
  assert.deepEqual([file.results.length, file.results[99].extra.length], [100, 3_000]);
  assert.match(await err({ query: 'x', output_path: '.' }), /is a directory; name a file in it/);
  assert.deepEqual(readdirSync(home), ['new dir']);
});
