// apify against a stand-in for its API with the real shapes: states of a run, paging, errors, limits.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApify } from './fixtures/apify.mjs';
import { contractTests } from './fixtures/contract.mjs';
import { caller, loadTool, makeTempDir, withEnv, withFastTimers } from './fixtures/harness.mjs';
import { freePort, listener, startServer, withFastWaits } from './fixtures/standin.mjs';

const DIR = 'seed/tools/apify';
const TOKEN = 'apify_api_T0kenForTheTests';
const tmp = makeTempDir();
const home = join(tmp, 'home');
mkdirSync(home);
const tool = caller(await loadTool(DIR));
const api = await startApify(TOKEN);
const { state } = api;
const ENV = { OFFICER_APIFY_TOKEN: TOKEN, OFFICER_RESOURCES: JSON.stringify({ apify: { base_url: api.url } }), OFFICER_USER_ROOT: home, HOME: home };

/** Every text that the tool gave, to look for the token in at the end. */
const said = [];
const watch = (onUpdate) => (partial) => {
  said.push(partial.content[0].text);
  onUpdate?.(partial);
};
const call = (outcome) => async (params, signal, onUpdate) => {
  const text = await withEnv(ENV, () => withFastWaits(20, () => tool[outcome](params, signal, watch(onUpdate))));
  said.push(text);
  return text;
};
const [ok, err] = [call('ok'), call('err')];
const asked = (from, method, path) => api.requests.slice(from).filter((r) => r.method === method && (path === undefined || r.path === path));

state.actors['jane~hello-world'] = {
  data: {
    id: 'actABC', userId: 'u1', name: 'hello-world', username: 'jane', title: 'Hello World Scraper', description: 'Says hello to\npages.', isPublic: true, isDeprecated: false,
    stats: { totalBuilds: 3, totalRuns: 9876, totalUsers: 321 }, exampleRunInput: { body: '{ "url": "https://example.com" }', contentType: 'application/json' },
    pricingInfos: [{ pricingModel: 'FREE' }, { pricingModel: 'PRICE_PER_DATASET_ITEM', pricePerUnitUsd: 0.005, unitName: 'result' }],
    currentPricingInfo: { pricingModel: 'PRICE_PER_DATASET_ITEM', pricePerUnitUsd: 0.005, unitName: 'result' },
  },
  build: {
    id: 'b1', status: 'SUCCEEDED', inputSchema: null,
    actorDefinition: {
      actorSpecification: 1, name: 'hello-world', input: {
        title: 'Input', type: 'object', schemaVersion: 1, required: ['url'], properties: {
          url: { title: 'Address', type: 'string', description: 'Where to start', editor: 'textfield', prefill: 'https://example.com' },
          mode: { title: 'Mode', type: 'string', enum: ['fast', 'deep'], default: 'fast' },
        },
      },
    },
  },
};
state.actors.oldactor1 = {
  data: { id: 'oldactor1', name: 'old', username: 'joe', title: 'Old Scraper', isDeprecated: true },
  build: { inputSchema: JSON.stringify({ type: 'object', properties: { q: { type: 'string', description: 'Words' } } }) },
};
const items = (count, more = {}) => Array.from({ length: count }, (_, n) => ({ n, name: `Ü${n}`, ...more }));
const run = { action: 'run', actor_id: 'jane/hello-world' };
const nextId = () => `run${Object.keys(state.runs).length + 1}`;

state.newRun = { polls: ['SUCCEEDED'] };
contractTests({ dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), base: { ...run, max_items: 2, action: 'actor', run_id: 'x', query: 'x' }, env: ENV });

test('R114 a run from READY over RUNNING to its items, with progress', async () => {
  state.newRun = { polls: ['READY', 'RUNNING', 'RUNNING', 'SUCCEEDED'], statusMessage: 'Crawled 3 of 3' };
  state.datasets[`ds-${nextId()}`] = items(3);
  const from = api.requests.length;
  const { texts, onUpdate } = listener();
  const text = await ok({ actor_id: 'jane/hello-world', input: '{"url": "https://example.com/ü"}', max_items: 10, memory_mb: 512, build: 'latest' }, undefined, onUpdate);
  assert.match(text, /^Run run\d+: SUCCEEDED \(Crawled 3 of 3\)\nstarted 2025-03-01T10:00:00\.000Z, finished 2025-03-01T10:00:12\.400Z, took 12 s, cost \$0\.0123\nDataset ds-run\d+\n\n3 items:\n\[\n/);
  assert.deepEqual(JSON.parse(text.slice(text.indexOf('\n['))), items(3));
  const [start] = asked(from, 'POST');
  assert.equal(start.path, '/v2/acts/jane~hello-world/runs');
  assert.deepEqual(Object.fromEntries(start.query), { memory: '512', maxItems: '10', build: 'latest' });
  assert.deepEqual([start.text, start.headers['content-type'], start.headers.authorization], ['{"url": "https://example.com/ü"}', 'application/json', `Bearer ${TOKEN}`]);
  const polls = api.requests.slice(from).filter((r) => r.path.startsWith('/v2/actor-runs/'));
  assert.deepEqual(polls.map((r) => Number(r.query.get('waitForFinish'))), [5, 10, 10]);
  assert.ok(api.requests.slice(from).every((r) => !r.query.has('token')));
  assert.equal(texts[0], 'Starting jane/hello-world...');
  assert.match(texts[1], /^Run run\d+: READY, Crawled 3 of 3, \d+ s$/);
  assert.match(texts[2], /^Run run\d+: RUNNING, Crawled 3 of 3, \d+ s, 3 items so far$/);
  assert.match(texts.at(-1), /: SUCCEEDED/);
});

test('R114 each way to name an actor arrives as user~name or id', async () => {
  state.newRun = { polls: ['READY'] };
  for (const [given, sent] of [['jane/hello-world', 'jane~hello-world'], ['jane~hello-world', 'jane~hello-world'], [' oldactor1 ', 'oldactor1'], ['https://apify.com/jane/hello-world?x=1', 'jane~hello-world'], ['https://console.apify.com/actors/oldactor1', 'oldactor1']]) {
    assert.match(await ok({ ...run, actor_id: given, wait: false }), /Run run\d+: READY[\s\S]*Started\. Call action=status or action=items with run_id=run\d+ later\.$/);
    assert.equal(api.requests.at(-1).path, `/v2/acts/${sent}/runs`);
  }
  const before = api.requests.length;
  for (const actor_id of ['../../users/me', 'a/b/c', '..', '.', 'a b', 'a?b=c', 'a%2fb', 'jane/..', 'a\nb', 'https://evil.example/a/b']) {
    assert.match(await err({ ...run, actor_id }), /^actor_id must be "username\/name"/);
  }
  assert.equal(api.requests.length, before);
});

test('R114 2,500 items come over three pages, to the number that is wanted', async () => {
  state.newRun = { polls: ['SUCCEEDED'] };
  const id = nextId();
  state.datasets[`ds-${id}`] = items(2500);
  const from = api.requests.length;
  const saved = await ok({ ...run, max_items: 5000, output_path: 'new dir/-items.json' });
  assert.match(saved, /^2500 items saved to .*\/home\/new dir\/-items\.json \(\d+ bytes\)\.\n\nRun run\d+: SUCCEEDED/);
  assert.ok(saved.length < 500);
  assert.deepEqual(JSON.parse(readFileSync(join(home, 'new dir/-items.json'), 'utf8')), items(2500));
  const pages = asked(from, 'GET', `/v2/datasets/ds-${id}/items`);
  assert.deepEqual(pages.map(({ query }) => [query.get('offset'), query.get('limit'), query.get('format'), query.get('clean')]), [['0', '1000', 'json', '1'], ['1000', '1000', 'json', '1'], ['2000', '1000', 'json', '1']]);
  assert.match(await ok({ action: 'items', run_id: id, max_items: 1200, output_path: 'cut.json' }), /^1200 items saved to .* \(of 2500; max_items is 1200\)\./);
  assert.deepEqual(JSON.parse(readFileSync(join(home, 'cut.json'), 'utf8')), items(1200));
});

test('R114 empty items make pages short, and no item is lost by it', async () => {
  state.newRun = { polls: ['SUCCEEDED'] };
  state.datasets[`ds-${nextId()}`] = Array.from({ length: 2200 }, (_, n) => (n % 2 ? {} : { n }));
  await ok({ ...run, max_items: 1001, output_path: 'clean.json' });
  const file = JSON.parse(readFileSync(join(home, 'clean.json'), 'utf8'));
  assert.deepEqual(file, Array.from({ length: 1001 }, (_, n) => ({ n: n * 2 })));
});

test('R60 R61 large results end with a whole item and say how to get the rest; fields keep them short', async () => {
  state.newRun = { polls: ['SUCCEEDED'] };
  const id = nextId();
  state.datasets[`ds-${id}`] = items(100, { text: 'x"\n'.repeat(1_000) });
  const text = await ok({ ...run });
  assert.match(text, /\n\]\n… truncated: \d+ of 100 items shown; set output_path to get everything, or fields to get less of each\.$/);
  assert.ok(JSON.parse(text.slice(text.indexOf('\n['), text.lastIndexOf(']') + 1)).length > 5);
  const short = await ok({ action: 'items', run_id: id, fields: 'n,name', max_items: 3 });
  assert.deepEqual(JSON.parse(short.slice(short.indexOf('\n['))), items(3));
  state.datasets[`ds-${id}`] = items(1, { text: 'y'.repeat(200_000) });
  assert.match(await ok({ action: 'items', run_id: id }), /… truncated \(\d+ more characters\); set output_path/);
});

test('R114 a run that fails tells why, with the end of its log; one that is aborted or timed out too', async () => {
  for (const [status, statusMessage, exitCode] of [['FAILED', 'No start URL', 91], ['TIMED-OUT', 'The Actor timed out', null], ['ABORTED', null, null]]) {
    state.newRun = { polls: ['RUNNING', status], statusMessage, exitCode };
    state.logs[nextId()] = Array.from({ length: 50 }, (_, n) => `2025-03-01T10:00:00.000Z \u001b[32mINFO\u001b[39m line ${n}`).join('\n');
    const text = await err({ ...run });
    assert.match(text, new RegExp(`^Run run\\d+ ended as ${status}${statusMessage ? `, ${statusMessage}` : ''}${exitCode ? `, exit code ${exitCode}` : ''}\\.\n\nThe end of its log:\n`));
    assert.match(text, /Z INFO line 49\n\nWhat it had found until then: action=items, run_id=run\d+\.$/);
    assert.doesNotMatch(text, /line 29\n/);
  }
});

test('R114 the time to wait ends before the run: it goes on, and its items come later', async () => {
  state.newRun = { polls: ['RUNNING', ...Array(500).fill('RUNNING')] };
  const id = nextId();
  state.datasets[`ds-${id}`] = items(2);
  const from = api.requests.length;
  const text = await ok({ ...run, timeout_seconds: 1 });
  assert.match(text, /After 1 s the run is still RUNNING, and goes on\. Use action=items, run_id=run\d+ later, or action=abort to stop it\.$/);
  assert.equal(asked(from, 'POST').length, 1, 'nothing is aborted by itself');
  assert.match(await ok({ action: 'items', run_id: id }), /2 items:[\s\S]*The run is still RUNNING; call action=items again later for the rest\.$/);
  assert.match(await ok({ action: 'status', run_id: id }), /^Run run\d+: RUNNING\nstarted .*\nDataset ds-run\d+$/);
  assert.match(await ok({ action: 'abort', run_id: id }), /^Run run\d+: ABORTING/);
  assert.deepEqual([api.requests.at(-1).method, api.requests.at(-1).path], ['POST', `/v2/actor-runs/${id}/abort`]);
});

test('R114 an actor without items leaves a record: JSON, text, or a file', async () => {
  state.newRun = { polls: ['SUCCEEDED'] };
  const id = nextId();
  assert.match(await ok({ ...run }), /\n\nNo items\.$/);
  const record = (body, type) => { state.records[`kv-${id}`] = { body, headers: { 'content-type': type } }; };
  record('{"answer": 42}', 'application/json; charset=utf-8');
  assert.match(await ok({ action: 'items', run_id: id }), /The dataset is empty; the run left the record OUTPUT \(application\/json; charset=utf-8, 14 bytes\):\n\{"answer": 42\}$/);
  const png = Buffer.from([0x89, 0x50, 0, 0xff, 0xfe]);
  record(png, 'image/png');
  assert.match(await ok({ action: 'items', run_id: id }), /OUTPUT \(image\/png, 5 bytes\)\. Set output_path to save it\.$/);
  assert.match(await ok({ action: 'items', run_id: id, output_path: 'out.png' }), /, saved to .*out\.png \(5 bytes\)\.$/);
  assert.deepEqual(readFileSync(join(home, 'out.png')), png);
  const other = await startServer(() => ({ body: 'x' }));
  state.records[`kv-${id}`] = { status: 302, headers: { location: `${other.url}/x` } };
  assert.match(await err({ action: 'items', run_id: id }), /redirects to .*, which is not followed/);
  assert.equal(other.requests.length, 0);
});

test('R114 log, actor and search', async () => {
  state.runs.longlog = { id: 'longlog', status: 'SUCCEEDED', polls: [] };
  state.logs.longlog = Array.from({ length: 20_000 }, (_, n) => `line ${n}`).join('\n');
  const text = await ok({ action: 'log', run_id: 'longlog' });
  assert.match(text, /^… truncated \(\d+ more characters before\); set output_path to get everything\.\n/);
  assert.match(text, /line 19999$/);
  assert.match(await ok({ action: 'log', run_id: 'longlog', output_path: 'log.txt' }), /^20000 lines of log saved to /);
  assert.equal(readFileSync(join(home, 'log.txt'), 'utf8'), state.logs.longlog);
  const actor = await ok({ action: 'actor', actor_id: 'jane/hello-world' });
  assert.equal(actor, [
    'Hello World Scraper (jane/hello-world, id actABC)', 'Says hello to pages.', 'Pricing: price per dataset item $0.005 per result', '',
    'Input:', '- url (string, required, prefill "https://example.com"): Address. Where to start',
    '- mode (string, one of fast | deep, default "fast"): Mode', '\nExample input: { "url": "https://example.com" }',
  ].join('\n'));
  assert.match(await ok({ action: 'actor', actor_id: 'oldactor1' }), /This actor is deprecated\.\n\nInput:\n- q \(string\): Words$/);
  const found = await ok({ action: 'search', query: 'scraper', max_items: 100 });
  assert.equal(api.requests.at(-1).query.get('limit'), '20');
  assert.match(found, /^2 actors:\n\n1\. jane\/hello-world: Hello World Scraper\n {3}Says hello to pages\.\n {3}321 users, 9876 runs, price per dataset item \$0\.005 per result\n\n2\. joe\/old: Old Scraper/);
  assert.equal(await ok({ action: 'search', query: 'xyzzy' }), 'No actors found. Try other or fewer words.');
  assert.match(await ok({ action: 'search', query: 'scraper', output_path: 'found.json' }), /^2 items saved to /);
});

test('R57 a missing or wrong parameter is told before anything is sent', async () => {
  const before = api.requests.length;
  assert.match(await err({}), /^actor_id parameter is required for run action\. Find one with action=search/);
  assert.match(await err({ action: 'search' }), /^query parameter is required for search action/);
  for (const action of ['status', 'items', 'log', 'abort']) assert.match(await err({ action }), new RegExp(`^run_id parameter is required for ${action} action`));
  assert.equal(await err({ action: 'x' }), 'Unknown action: "x". Available: run, status, items, abort, log, actor, search.');
  assert.match(await err({ ...run, input: '{"a": ' }), /^input is not valid JSON \(.*\)\. It must be a JSON object, such as/);
  for (const input of ['[1]', '"x"', '7', 'null', 'true']) assert.match(await err({ ...run, input }), /^input must be a JSON object/);
  assert.match(await err({ ...run, memory_mb: 1000 }), /^memory_mb must be a power of 2/);
  assert.match(await err({ action: 'status', run_id: '../acts' }), /^run_id must be the id of a run, not "\.\.\/acts"/);
  assert.match(await err({ ...run, max_items: 0 }), /^max_items must be a number from 1/);
  assert.match(await err({ ...run, build: 'a b' }), /^build must be a tag/);
  assert.equal(api.requests.length, before);
  assert.match(await ok({ ...run, input: { url: 'x' }, wait: false }), /Started/);
  assert.equal(api.requests.at(-1).text, '{"url":"x"}');
});

test('R114 what the API refuses: 400, 401, 402, 403, 404, 413, 500', async () => {
  assert.match(await err({ ...run, actor_id: 'no/such' }), /^Apify has no actor "no\/such": Actor was not found \(record-not-found\)\. Look for actors with action=search\.$/);
  assert.match(await err({ action: 'status', run_id: 'nope' }), /^Apify has no run "nope": Actor run was not found \(record-not-found\)\. Take the id from/);
  assert.match(await err({ ...run, memory_mb: 16384 }), /^Apify does not allow this: By launching this job .* \(actor-memory-limit-exceeded\)\. Ask the user/);
  const answers = [
    [400, 'invalid-input', /^Apify refused the request: it says so \(invalid-input\)\. action=actor shows the input/],
    [403, 'actor-is-not-rented', /^Apify does not allow this: it says so \(actor-is-not-rented\)\. Ask the user: .* rented first/],
    [413, 'request-too-large', /^The input is too large/],
  ];
  for (const [status, type, expected] of answers) {
    state.next = [{ status, json: { error: { type, message: 'it says so' } } }];
    assert.match(await err({ ...run }), expected);
  }
  state.next = Array(4).fill({ status: 502, body: '<html><h1>Bad Gateway</h1></html>' });
  assert.match(await err({ action: 'status', run_id: 'run1' }), /^Apify failed with status 502: Bad Gateway\. Try again later\.$/);
  assert.equal(state.next.length, 0);
  state.next = [{ json: { data: null } }];
  assert.match(await err({ action: 'status', run_id: 'run1' }), /is no run of an actor/);
});

test('R114 the rate limit is waited for, also at the start of a run; the wait is told', async () => {
  const limited = { status: 429, json: { error: { type: 'rate-limit-exceeded', message: 'You have exceeded the rate limit of 30 requests per second' } } };
  state.newRun = { polls: ['SUCCEEDED'] };
  state.next = [limited, limited];
  const { texts, onUpdate } = listener();
  await ok({ ...run }, undefined, onUpdate);
  assert.match(texts[1], /^Waiting 0\.[5-7] s and trying again \(status 429 from/);
  state.next = Array(4).fill(limited);
  assert.match(await err({ action: 'status', run_id: 'run1' }), /^Apify's rate limit is reached: You have exceeded .* Try again in a minute\.$/);
});

test('R114 a run is never started twice: a broken connection, a gateway error or cancelling says so', async () => {
  const unknown = /It is not known whether the run was started: ask the user to look in Apify Console/;
  for (const answer of [{ hangUp: 'now' }, { hangUp: 'midway', status: 201, json: { data: {} } }, { status: 503, body: 'x' }, { status: 201, body: 'no json' }]) {
    const from = api.requests.length;
    state.next = [answer];
    const text = await err({ ...run });
    assert.match(text, unknown);
    assert.equal(asked(from, 'POST').length, 1);
  }
  const abort = new AbortController();
  state.next = [() => new Promise(() => { setTimeout(() => abort.abort(), 50); })];
  assert.match(await err({ ...run }, abort.signal), unknown);
  state.next = [() => new Promise(() => {})];
  assert.match(await withFastTimers(100, () => err({ ...run })), /did not answer within 30 seconds\. Try again later\. It is not known/);
  const nobody = JSON.stringify({ apify: { base_url: `http://127.0.0.1:${await freePort()}` } });
  const refused = await withEnv({ ...ENV, OFFICER_RESOURCES: nobody }, () => withFastWaits(100, () => tool.err(run)));
  assert.match(refused, /^Cannot reach 127\.0\.0\.1:\d+ \(ECONNREFUSED\)\.$/);
});

test('R41 cancelling ends the wait but not the run, and gives its id', async () => {
  state.newRun = { polls: ['RUNNING', ...Array(500).fill('RUNNING')] };
  const id = nextId();
  const abort = new AbortController();
  const from = api.requests.length;
  const onUpdate = ({ content }) => content[0].text.includes('RUNNING') && abort.abort();
  assert.equal(await err({ ...run }, abort.signal, onUpdate), `Cancelled. The run may still go on: use action=status, items or abort with run_id=${id}.`);
  assert.equal(asked(from, 'POST').length, 1);
});

test('R56 R58 R79 the token: parameter, then environment, then resource, else an error and no request', async () => {
  const used = async (env, params) => {
    const resources = { apify: { base_url: api.url, ...env.resource } };
    await withEnv({ ...ENV, OFFICER_APIFY_TOKEN: env.token ?? '', OFFICER_RESOURCES: JSON.stringify(resources) }, () => tool.call({ action: 'search', query: 'x', ...params }));
    return api.requests.at(-1).headers.authorization;
  };
  assert.equal(await used({ token: 'env-token-1', resource: { token: 'res-token-1' } }, { api_token: 'par-token-1' }), 'Bearer par-token-1');
  assert.equal(await used({ token: 'env-token-1', resource: { token: 'res-token-1' } }, { api_token: '' }), 'Bearer env-token-1');
  assert.equal(await used({ resource: { token: 'res-token-1' } }, {}), 'Bearer res-token-1');
  const before = api.requests.length;
  for (const OFFICER_RESOURCES of ['', '{}', 'no json', 'null', '{"apify": []}']) {
    const text = await withEnv({ OFFICER_APIFY_TOKEN: '', OFFICER_RESOURCES }, () => tool.err(run));
    assert.equal(text, 'Apify API token not configured. Ask the user to add it in Settings → Integrations.');
  }
  await withEnv({}, () => tool.err(run), { keep: false });
  for (const api_token of ['a b', 'secret\nX-Evil: 1', 'tökken', 'x'.repeat(5_000)]) {
    const text = await err({ ...run, api_token });
    assert.match(text, /^api_token is not a valid token/);
    assert.ok(!text.includes(api_token));
  }
  assert.equal(api.requests.length, before);
  assert.match(await err({ action: 'status', run_id: 'x', api_token: 'wrong-token-of-another-user' }), /^Apify rejected the API token: User was not found or authentication token is not valid \(user-or-token-not-found\)\. Ask the user to check it in Settings → Integrations\.$/);
});

test('the token is in no text and no file, even if the server repeats it', async () => {
  state.next = [{ status: 400, json: { error: { type: 'invalid-input', message: `token ${TOKEN} ${encodeURIComponent(TOKEN)}` } } }];
  assert.match(await err(run), /token \*\*\* \*\*\*/);
  state.next = [{ status: 500, body: 'x'.repeat(490) + TOKEN }];
  await err(run);
  state.newRun = { polls: ['RUNNING', 'SUCCEEDED'], statusMessage: `with ${TOKEN}` };
  state.datasets[`ds-${nextId()}`] = items(2, { header: `Bearer ${TOKEN}` });
  await ok({ ...run, output_path: 'echo.json' });
  const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { name, path, parentPath } of files) said.push(readFileSync(join(parentPath ?? path, name), 'latin1'));
  assert.ok(said.length > 50);
  for (const text of said) assert.ok(!text.includes(TOKEN.slice(0, 16)), text.slice(0, 300));
});
