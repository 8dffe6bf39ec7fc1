// web_search, apify and gmail as an agent calls them: JSON into `call` of a real mount, the answer from
// result.txt, and no token in anything that the mount shows.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApify } from './fixtures/apify.mjs';
import { part, startGmail } from './fixtures/gmail.mjs';
import { makeTempDir } from './fixtures/harness.mjs';
import { noMount, startMount } from './fixtures/mount.mjs';
import { startServer } from './fixtures/standin.mjs';

const skip = noMount;
const APIFY_TOKEN = 'apify_api_T0kenForTheMount';
const GMAIL_TOKEN = 'ya29.a0TokenForTheMount';
const home = join(makeTempDir(), 'user');
mkdirSync(home);

const searxng = await startServer(({ query }) => ({ json: { query: query.get('q'), results: [{ url: 'https://site.example/', title: `About ${query.get('q')}`, content: 'Text', engines: ['alpha'] }], answers: [], unresponsive_engines: [] } }));
const apify = await startApify(APIFY_TOKEN);
const gmail = await startGmail({
  tokens: [GMAIL_TOKEN], labels: [{ id: 'INBOX', name: 'INBOX', type: 'system' }],
  messages: [{ id: 'm1', threadId: 't1', labelIds: ['INBOX'], snippet: 'Hi', date: Date.UTC(2025, 2, 1), payload: part('text/plain', 'Grüße', { headers: { From: 'bob@example.net', Subject: 'Hello' } }) }],
});
const OFFICER_RESOURCES = JSON.stringify({ apify: { base_url: apify.url }, gmail: { base_url: gmail.url } });
const mount = skip ? undefined : await startMount(['seed/tools/web_search', 'seed/tools/apify', 'seed/tools/gmail'], { PI_SEARXNG_URL: searxng.url, OFFICER_RESOURCES, OFFICER_USER_ROOT: home });

const ok = async (name, params) => {
  const { status, text } = await mount.call(name, params);
  assert.equal(status, 0, text);
  return text;
};
const err = async (name, params) => {
  const { status, text } = await mount.call(name, params);
  assert.notEqual(status, 0, text);
  return text;
};

test('R112 web_search through the mount', { skip }, async () => {
  assert.match(await ok('web_search', { query: "Ada's \"engine\"", max_results: '3' }), /^1\. About Ada's "engine"\n {3}https:\/\/site\.example\/\n/);
  assert.match(await err('web_search', { max_results: 3 }), /query/);
});

test('R114 apify through the mount: a run, and items into a file', { skip }, async () => {
  apify.state.actors['jane~hello'] = { data: { id: 'a1' } };
  apify.state.newRun = { polls: ['READY', 'RUNNING', 'SUCCEEDED'] };
  apify.state.datasets['ds-run1'] = [{ n: 1 }, { n: 2 }];
  const text = await ok('apify', { actor_id: 'jane/hello', input: '{"a": 1}', api_token: APIFY_TOKEN, output_path: 'items.json' });
  assert.match(text, /^2 items saved to .*\/user\/items\.json/);
  assert.deepEqual(JSON.parse(readFileSync(join(home, 'items.json'), 'utf8')), [{ n: 1 }, { n: 2 }]);
  assert.equal(await err('apify', { actor_id: 'jane/hello' }).then((said) => said.trim()), 'Apify API token not configured. Ask the user to add it in Settings → Integrations.');
});

test('R111 gmail through the mount: search, then read', { skip }, async () => {
  const found = await ok('gmail', { action: 'search', access_token: GMAIL_TOKEN });
  const [, id] = /\n {3}id (\w+), thread/.exec(found);
  assert.match(await ok('gmail', { action: 'read', id, access_token: GMAIL_TOKEN }), /^Subject: Hello\n[\s\S]*\n\nGrüße\n?$/);
  assert.match(await err('gmail', { action: 'send', access_token: GMAIL_TOKEN }), /send/);
});

test('R29 the tokens of these calls are in nothing that the mount shows', { skip }, async () => {
  const filesWith = async (pattern) => {
    const grep = spawn('grep', ['-rlE', pattern, mount.path], { stdio: ['ignore', 'pipe', 'ignore'] });
    let files = '';
    grep.stdout.on('data', (chunk) => { files += chunk; });
    await new Promise((settle) => { grep.once('close', settle); });
    return files.split('\n').filter(Boolean);
  };
  assert.ok((await filesWith('jane/hello.*a.*1')).some((file) => file.endsWith('/request.json')), 'the calls are there to be read');
  assert.deepEqual(await filesWith(`${APIFY_TOKEN}|${GMAIL_TOKEN}`), []);
});
