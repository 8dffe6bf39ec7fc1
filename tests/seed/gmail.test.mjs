// gmail against a stand-in for Google's servers with the real shapes: paging, MIME trees, charsets,
// attachments, expired tokens, limits, and every kind of refusal.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { contractTests } from './fixtures/contract.mjs';
import { apiError, multipart, part, startGmail } from './fixtures/gmail.mjs';
import { caller, loadTool, makeTempDir, withEnv } from './fixtures/harness.mjs';
import { freePort, listener, withFastWaits } from './fixtures/standin.mjs';

const DIR = 'seed/tools/gmail';
const TOKEN = 'ya29.a0AccessTokenForTheTests';
const REFRESH = '1//0gRefreshTokenForTheTests';
const SECRET = 'GOCSPX-client-secret';
const tmp = makeTempDir();
const home = join(tmp, 'home');
mkdirSync(home);
const tool = caller(await loadTool(DIR));

// ---- the mailbox -------------------------------------------------------------------------------

const BIG = randomBytes(2 * 1024 * 1024);
/** "日本語です" in ISO-2022-JP: all its bytes are ASCII. */
const JAPANESE = Buffer.from('1b2442467c4b5c386c244724391b2842', 'hex');
const LATIN = Buffer.from('Gr\xfc\xdfe aus K\xf6ln \x96 5 \x80, \x84so\x93', 'latin1');

function mail(id, { threadId = `t${id}`, labelIds = ['INBOX'], from = 'Bob <bob@example.net>', subject = `Mail ${id}`, payload = part('text/plain', `Body of ${id}`), more = {} } = {}, n = 0) {
  const date = Date.UTC(2025, 2, 1, 10) - n * 3_600_000;
  const headers = { From: from, To: 'ada@example.org', Subject: subject, Date: new Date(date).toUTCString(), ...more, ...payload.headers };
  return { id, threadId, labelIds, date, snippet: `It&#39;s ${id} &amp; more`, payload: { ...payload, headers } };
}

const inner = { ...part('text/plain', 'inner text'), headers: { From: 'Eve <eve@example.com>', Subject: 'The inner one', Date: 'Sat, 1 Mar 2025 09:00:00 +0000' } };
const nested = multipart('mixed',
  multipart('related',
    multipart('alternative', part('text/plain', 'Hello as text'), part('text/html', '<p>Hello as <b>HTML</b></p>')),
    part('image/png', 'png', { headers: { 'Content-ID': '<logo>', 'Content-Disposition': 'inline; filename="logo.png"' }, filename: 'logo.png' })),
  part('text/plain', 'A second inline text', { headers: { 'Content-Disposition': 'inline' } }),
  part('application/pdf', BIG, { filename: '=?utf-8?q?Rechnung_=E2=82=AC=2Epdf?=' }),
  part('text/csv', 'a;b\nü;ß\n', { filename: 'table.csv' }),
  part('message/rfc822', undefined, { parts: [inner] }));

const MESSAGES = [
  mail('m01', { payload: nested, subject: '=?utf-8?q?Gr=C3=BC=C3=9Fe_und?= =?UTF-8?B?IGFuZGVyZXMg4g==?=\r\n =?utf-8?B?gqw=?= (plain)', labelIds: ['INBOX', 'UNREAD', 'Label_7'] }),
  mail('m02', { payload: part('text/plain', LATIN, { headers: { 'content-type': 'text/plain; charset="ISO-8859-1"' } }), subject: '=?iso-8859-1?q?K=F6ln?= =?iso-2022-jp?b?GyRCRnxLXDhsGyhC?=' }),
  mail('m03', { payload: part('text/plain', JAPANESE, { headers: { 'Content-Type': 'text/plain; charset=ISO-2022-JP' } }) }),
  mail('m04', { payload: part('text/plain', 'Äpfel in UTF-8', { headers: { 'Content-Type': 'text/plain; charset=us-ascii' } }) }),
  mail('m05', { payload: multipart('alternative', part('text/plain', ' \r\n '), part('text/html', '<head><title>x</title></head><style>p{}</style><p>Only&nbsp;HTML &lt;3 &#8364;</p><ul><li>one<li>two</ul><script>"</p>"</script>a<br>b')) }),
  mail('m06', { payload: part('text/plain', 'large text '.repeat(10_000), { large: true }) }),
  mail('m07', { threadId: 'talk', subject: 'Re: Talk', labelIds: ['SENT'], from: 'Ada <ada@example.org>' }),
  mail('m08', { threadId: 'talk', subject: 'Talk' }),
  mail('m09', { subject: 'Nothing in it', payload: part('text/plain', '') }),
  mail('m10', { payload: multipart('mixed', part('text/html', '<div>html only</div>'), part('text/calendar', 'BEGIN:VCALENDAR')) }),
  mail('m11', { payload: part('text/plain', LATIN, { headers: { 'Content-Type': 'text/plain; charset=no-such-charset' } }) }),
  mail('m12', { labelIds: ['SPAM'] }),
].map((message, n) => ({ ...message, date: message.date - n * 3_600_000 }));
const VISIBLE = MESSAGES.slice(0, 11).map(({ id }) => id);

const LABELS = [
  { id: 'INBOX', name: 'INBOX', type: 'system', messageListVisibility: 'hide', labelListVisibility: 'labelShow' }, { id: 'UNREAD', name: 'UNREAD', type: 'system' },
  { id: 'SPAM', name: 'SPAM', type: 'system' }, { id: 'SENT', name: 'SENT', type: 'system' }, { id: 'Label_7', name: 'Größe/XL', type: 'user' },
];

const google = await startGmail({ tokens: [TOKEN], messages: MESSAGES, labels: LABELS });
const { state } = google;
const resourcesOf = (gmail) => JSON.stringify({ gmail: { base_url: google.url, token_url: `${google.url}/token`, ...gmail } });
const ENV = { OFFICER_RESOURCES: resourcesOf({ access_token: TOKEN }), OFFICER_USER_ROOT: home, HOME: home };
const RENEWABLE = { refresh_token: REFRESH, client_id: 'client-1.apps', client_secret: SECRET };

/** Every text that the tool gave, to look for secrets in at the end. */
const said = [];
const call = (outcome) => async (params, { env = ENV, signal, onUpdate, factor = 50 } = {}) => {
  const watch = (partial) => {
    said.push(partial.content[0].text);
    onUpdate?.(partial);
  };
  const text = await withEnv(env, () => withFastWaits(factor, () => tool[outcome](params, signal, watch)));
  said.push(text);
  return text;
};
const [ok, err] = [call('ok'), call('err')];
const with_ = (gmail, more = {}) => ({ env: { ...ENV, OFFICER_RESOURCES: resourcesOf(gmail) }, ...more });
const idsIn = (text) => [...text.matchAll(/^ {3}id (\w+), thread/gm)].map((match) => match[1]);
const since = (from) => google.requests.slice(from);

contractTests({ dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), base: { action: 'search', max_results: 2, query: 'mail', id: 'm01' }, env: ENV });

// ---- listing -----------------------------------------------------------------------------------

test('R111 search lists date, sender, subject, snippet, labels and id, page after page', async () => {
  const from = google.requests.length;
  const { texts, onUpdate } = listener();
  const text = await ok({ action: 'search', max_results: 100 }, { onUpdate });
  assert.deepEqual(idsIn(text), VISIBLE);
  assert.ok(text.startsWith('11 messages:\n\n1. Grüße und anderes € (plain)\n   2025-03-01T10:00:00Z from Bob <bob@example.net>\n   It\'s m01 & more\n   labels INBOX, UNREAD, Größe/XL\n   id m01, thread tm01\n\n2. Köln日本語\n'));
  const lists = since(from).filter(({ path }) => path === '/gmail/v1/users/me/messages');
  assert.deepEqual(lists.map(({ query }) => [query.get('maxResults'), query.get('pageToken')]), [['100', null], ['95', '10005'], ['90', '10010']]);
  assert.ok(since(from).every(({ headers, query }) => headers.authorization === `Bearer ${TOKEN}` && !query.has('access_token')));
  const meta = since(from).find(({ path }) => path.endsWith('/messages/m01'));
  assert.deepEqual([meta.query.get('format'), meta.query.getAll('metadataHeaders')], ['metadata', ['From', 'To', 'Cc', 'Subject', 'Date']]);
  assert.ok(state.busiest <= 5, `${state.busiest} requests at a time`);
  assert.ok(texts.includes('5 messages listed...') && texts.includes('Reading 11 messages...'));
});

test('R111 a search can be continued, and every parameter arrives', async () => {
  const first = await ok({ action: 'search', max_results: 3 });
  assert.match(first, /^3 messages \(about 11 match\):/);
  const [, token] = /\n\nnext page_token: (\d+)$/.exec(first);
  assert.deepEqual(idsIn(await ok({ action: 'search', max_results: 3, page_token: token })), ['m04', 'm05', 'm06']);
  const from = google.requests.length;
  await ok({ action: 'search', query: 'from:bob "a b" -x', label_ids: 'größe/xl, INBOX', include_spam_trash: true });
  const { query } = since(from).find(({ path }) => path.endsWith('/messages'));
  assert.deepEqual([query.get('q'), query.getAll('labelIds'), query.get('includeSpamTrash')], ['from:bob "a b" -x', ['Label_7', 'INBOX'], 'true']);
  assert.equal(idsIn(await ok({ action: 'search', max_results: 50, include_spam_trash: true })).length, 12);
  assert.match(await err({ action: 'search', label_ids: 'Nope' }), /^There is no label "Nope"\. Available: INBOX, UNREAD, SPAM, SENT, Größe\/XL\.$/);
  assert.equal(await err({ action: 'search', page_token: 'zzz' }), 'Gmail refused the request: Invalid pageToken.');
});

test('R111 nothing found, where the answer has no list at all', async () => {
  assert.equal(await ok({ action: 'search', query: 'xyzzy' }), 'No messages match.');
  assert.equal(await ok({ action: 'threads', query: 'xyzzy' }), 'No threads match.');
  assert.match(await ok({ action: 'search', query: 'xyzzy', output_path: 'none.json' }), /^0 items saved to /);
  assert.deepEqual(JSON.parse(readFileSync(join(home, 'none.json'), 'utf8')), []);
});

test('R111 a message that cannot be read is a line, not the end of the search', async () => {
  state.next = [{ path: '/messages/m02', answer: apiError(404, 'notFound', 'Requested entity was not found.') }, { path: '/messages/m03', answer: { json: {} } }];
  const text = await ok({ action: 'search', max_results: 4 });
  assert.match(text, /\n\n2\. \(id m02 could not be read: No message with id "m02"\. Take ids/);
  assert.match(text, /\n\n3\. \(no subject\)\n {3}no date from \(nobody\)\n/);
  const limited = apiError(429, 'rateLimitExceeded', 'Too many concurrent requests for user.', { domain: 'usageLimits' });
  state.next = Array.from({ length: 100 }, () => ({ path: '/messages/m01', answer: limited }));
  const from = google.requests.length;
  assert.match(await ok({ action: 'search', max_results: 10 }), /1\. \(id m01 could not be read: Gmail's rate limit is reached \(Too many concurrent requests for user\.\)/);
  assert.equal(since(from).filter(({ path }) => path.endsWith('/m01')).length, 4);
  state.next = [];
});

test('R111 threads and a whole thread, in order', async () => {
  const text = await ok({ action: 'threads', query: 'talk' });
  assert.match(text, /^1 threads:\n\n1\. Talk\n {3}\S+Z from Bob <bob@example\.net>, Ada <ada@example\.org>\n {3}It's m07 & more\n {3}labels INBOX, SENT\n {3}thread talk, 2 messages$/);
  const whole = await ok({ action: 'thread', id: 'talk' });
  assert.match(whole, /^--- Message 1 of 2 ---\nSubject: Talk\n[\s\S]*\n\nBody of m08\n\n--- Message 2 of 2 ---\nSubject: Re: Talk\n[\s\S]*Body of m07$/);
  assert.match(await err({ action: 'thread', id: 'nope' }), /^No thread with id "nope"\./);
});

// ---- reading -----------------------------------------------------------------------------------

test('R111 R61 read: headers, the text of the alternatives, and the attachments', async () => {
  const text = await ok({ action: 'read', id: 'm01' });
  assert.equal(text, [
    'Subject: Grüße und anderes € (plain)', 'From: Bob <bob@example.net>', 'To: ada@example.org', 'Date: Sat, 01 Mar 2025 10:00:00 GMT', 'Received: 2025-03-01T10:00:00Z',
    'Labels: INBOX, UNREAD, Größe/XL', 'Id: m01, thread tm01', 'Attachments:',
    '  logo.png (image/png, 3 bytes, part 0.1)', `  Rechnung €.pdf (application/pdf, ${BIG.length} bytes, part 2)`, '  table.csv (text/csv, 10 bytes, part 3)', '  message "The inner one" (message/rfc822, 0 bytes, part 4)',
    '', 'Hello as text', '', 'A second inline text', '', '[Attached message, part 4]', 'From: Eve <eve@example.com>', 'Date: Sat, 1 Mar 2025 09:00:00 +0000', 'Subject: The inner one',
  ].join('\n'));
  assert.equal(await ok({ action: 'read', id: 'm01', format: 'html' }), '<p>Hello as <b>HTML</b></p>\n\n<pre>A second inline text</pre>');
  const headers = await ok({ action: 'read', id: 'm01', format: 'headers' });
  assert.match(headers, /^From: Bob <bob@example\.net>\nTo: [\s\S]*\nContent-Type: multipart\/mixed\n\nId: m01, thread tm01$/);
  assert.equal(google.requests.findLast(({ path }) => path.endsWith('/m01')).query.get('format'), 'metadata');
  const json = JSON.parse(await ok({ action: 'read', id: 'm08', format: 'json' }));
  assert.deepEqual([json.id, json.payload.body.data], ['m08', Buffer.from('Body of m08').toString('base64url')]);
});

test('R111 charsets: declared wrongly, rightly, unknown, and ISO-2022-JP, whose bytes pass as UTF-8', async () => {
  const body = async (id) => (await ok({ action: 'read', id })).split('\n\n').slice(1).join('\n\n');
  assert.equal(await body('m02'), 'Grüße aus Köln – 5 €, „so“');
  assert.equal(await body('m03'), '日本語です');
  assert.equal(await body('m04'), 'Äpfel in UTF-8');
  assert.equal(await body('m05'), 'Only HTML <3 €\n\n- one\n- two\na\nb');
  assert.equal(await body('m09'), '(no text)');
  assert.equal(await body('m10'), 'html only');
  assert.equal(await body('m11'), 'Grüße aus Köln – 5 €, „so“');
});

test('R60 R61 a large text is fetched, cut at the cap, and saved whole', async () => {
  assert.match(await ok({ action: 'read', id: 'm06' }), /… truncated \(\d+ more characters\); set output_path to get everything\.$/);
  assert.match(await ok({ action: 'read', id: 'm06', output_path: 'new dir/-m06.txt' }), /^Message m06 \(text\) saved to .*\/new dir\/-m06\.txt \(\d+ bytes\)\.$/);
  assert.ok(readFileSync(join(home, 'new dir/-m06.txt'), 'utf8').includes('large text '.repeat(9_999)));
  assert.match(await ok({ action: 'search', max_results: 100, output_path: 'all.json' }), /^11 items saved to .*all\.json \(\d+ bytes\)\.$/);
  const saved = JSON.parse(readFileSync(join(home, 'all.json'), 'utf8'));
  assert.deepEqual(saved[0], { id: 'm01', thread_id: 'tm01', date: '2025-03-01T10:00:00Z', from: 'Bob <bob@example.net>', to: 'ada@example.org', subject: 'Grüße und anderes € (plain)', snippet: "It's m01 & more", labels: ['INBOX', 'UNREAD', 'Größe/XL'] });
  assert.match(await ok({ action: 'thread', id: 'talk', format: 'json', output_path: 'talk.json' }), /^2 items saved to /);
  assert.equal(JSON.parse(readFileSync(join(home, 'talk.json'), 'utf8')).messages.length, 2);
});

test('R111 attachments by name or part, byte for byte', async () => {
  const { texts, onUpdate } = listener();
  assert.match(await ok({ action: 'attachment', id: 'm01', attachment: 'Rechnung €.pdf', output_path: 'in/r.pdf' }, { onUpdate }), /^Attachment Rechnung €\.pdf \(application\/pdf\) saved to .*\/in\/r\.pdf \(2097152 bytes\)\.$/);
  assert.ok(readFileSync(join(home, 'in/r.pdf')).equals(BIG));
  assert.deepEqual(texts, ['Reading the message...', 'Fetching Rechnung €.pdf (2097152 bytes)...']);
  await ok({ action: 'attachment', id: 'm01', attachment: '0.1', output_path: 'in/logo' });
  assert.equal(readFileSync(join(home, 'in/logo'), 'utf8'), 'png');
  assert.equal(await ok({ action: 'attachment', id: 'm01', attachment: 'TABLE.CSV' }), 'a;b\nü;ß\n');
  assert.equal(await ok({ action: 'attachment', id: 'm10' }), 'BEGIN:VCALENDAR');
  assert.match(await err({ action: 'attachment', id: 'm01', attachment: 'nope' }), /^Message m01 has no attachment "nope"\. It has:\n {2}logo\.png \(image\/png, 3 bytes, part 0\.1\)\n/);
  assert.match(await err({ action: 'attachment', id: 'm01' }), /^attachment parameter is required: the message has several\. It has:\n/);
  assert.equal(await err({ action: 'attachment', id: 'm02' }), 'Message m02 has no attachments.');
  assert.match(await err({ action: 'attachment', id: 'm01', attachment: 'logo.png' }), /^output_path parameter is required to save logo\.png/);
  assert.match(await err({ action: 'attachment', id: 'm01', attachment: '4', output_path: 'x' }), /has no content of its own/);
  assert.match(await err({ action: 'attachment', id: 'm01', attachment: '2', output_path: 'in' }), /is a directory; name a file in it/);
});

test('R111 labels with counts, and the profile', async () => {
  const text = await ok({ action: 'labels' });
  assert.match(text, /^INBOX \(system, id INBOX, 10 messages, 1 unread\)\n[\s\S]*\nGröße\/XL \(user, id Label_7, 1 messages, 1 unread\)$/);
  assert.equal(await ok({ action: 'profile' }), 'ada@example.org: 12 messages in 11 threads.');
  assert.match(await ok({ action: 'labels', output_path: 'labels.json' }), /^5 items saved/);
  assert.equal(JSON.parse(readFileSync(join(home, 'labels.json'), 'utf8'))[4].messagesTotal, 1);
});

// ---- access ------------------------------------------------------------------------------------

test('R58 an expired token is renewed exactly once, however many requests need it', async () => {
  state.refreshTokens = { [REFRESH]: 'ya29.renewed-token-1' };
  const from = google.requests.length;
  const options = with_({ ...RENEWABLE, access_token: 'ya29.expired-token' });
  assert.deepEqual(idsIn(await ok({ action: 'search', max_results: 100 }, options)), VISIBLE);
  const renewals = since(from).filter(({ path }) => path === '/token');
  assert.equal(renewals.length, 1);
  assert.deepEqual(Object.fromEntries(new URLSearchParams(renewals[0].text)), { ...RENEWABLE, grant_type: 'refresh_token' });
  assert.equal(renewals[0].headers.authorization, undefined);
  state.tokens.delete('ya29.renewed-token-1');
  for (const gmail of [{ ...RENEWABLE }, { ...RENEWABLE, access_token: TOKEN, expires_at: 1_700_000_000 }, { refreshToken: REFRESH, clientId: 'client-1.apps', clientSecret: SECRET, accessToken: TOKEN, expiresAt: '2025-01-01T00:00:00Z' }]) {
    const before = google.requests.length;
    await ok({ action: 'profile' }, with_(gmail));
    assert.deepEqual(since(before).map(({ path }) => path), ['/token', '/gmail/v1/users/me/profile']);
  }
  const before = google.requests.length;
  await ok({ action: 'profile' }, with_({ ...RENEWABLE, access_token: TOKEN, expires_at: Date.now() + 3_600_000 }));
  assert.equal(since(before).length, 1);
});

test('R58 when the five requests of a search find the token expired, it is renewed once', async () => {
  state.refreshTokens = { [REFRESH]: 'ya29.renewed-token-2' };
  state.tokens.add('ya29.dies-after-listing');
  const from = google.requests.length;
  const onUpdate = ({ content }) => content[0].text.startsWith('Reading') && state.tokens.delete('ya29.dies-after-listing');
  assert.equal(idsIn(await ok({ action: 'search', max_results: 5 }, with_({ ...RENEWABLE, access_token: 'ya29.dies-after-listing' }, { onUpdate }))).length, 5);
  assert.equal(since(from).filter(({ path }) => path === '/token').length, 1);
});

test('R56 a token that is refused and cannot be renewed', async () => {
  const rejected = 'Gmail rejected the token (Invalid Credentials). Ask the user to reconnect Gmail in Settings → Integrations.';
  const from = google.requests.length;
  assert.equal(await err({ action: 'search' }, with_({ access_token: 'ya29.expired-token' })), rejected);
  assert.equal(await err({ action: 'profile', access_token: 'ya29.foreign-token' }, with_({ ...RENEWABLE, access_token: TOKEN })), rejected);
  assert.equal(since(from).length, 2, 'the token of the call is not replaced by another');
  state.refreshTokens = {};
  assert.equal(await err({ action: 'profile' }, with_({ ...RENEWABLE, access_token: 'ya29.expired-token' })), 'The access to Gmail could not be renewed (invalid_grant: Token has been expired or revoked.). Ask the user to reconnect Gmail in Settings → Integrations.');
  assert.match(await err({ action: 'profile' }, with_({ ...RENEWABLE, client_secret: 'wrong-secret-here' })), /could not be renewed \(invalid_client: /);
  state.refreshTokens = { [REFRESH]: 'ya29.renewed-but-refused' };
  state.next = [{ path: '/token', answer: { json: { access_token: 'ya29.never-accepted', expires_in: 1 } } }];
  assert.equal(await err({ action: 'profile' }, with_({ ...RENEWABLE })), rejected);
  state.next = [{ path: '/token', answer: { status: 503, body: 'busy' } }];
  assert.equal(await err({ action: 'profile' }, with_({ ...RENEWABLE })), 'The access to Gmail could not be renewed (status 503). Try again later.');
});

test('R56 R58 R79 the token: parameter, then resource, else an error and no request', async () => {
  const from = google.requests.length;
  await ok({ action: 'profile', access_token: TOKEN }, with_({ access_token: 'ya29.other-token' }));
  await ok({ action: 'profile' }, { env: { ...ENV, OFFICER_RESOURCES: JSON.stringify({ google: { accessToken: TOKEN, baseUrl: google.url } }) } });
  assert.equal(since(from).length, 2);
  for (const OFFICER_RESOURCES of ['', '{}', 'no json', '[1]', '{"gmail": "x"}', '{"gmail": {"access_token": ""}}', '{"gmail": {"refresh_token": "1//x"}}']) {
    assert.equal(await err({ action: 'search' }, { env: { ...ENV, OFFICER_RESOURCES } }), 'Gmail is not connected. Ask the user to connect Gmail in Settings → Integrations.');
  }
  await withEnv({}, () => tool.err({ action: 'search' }), { keep: false });
  for (const access_token of ['a b', 'secret\r\nX-Evil: 1', 'tökken', 'x'.repeat(5_000)]) {
    const text = await err({ action: 'profile', access_token });
    assert.ok(text.startsWith('access_token is not a valid token') && !text.includes(access_token));
  }
  assert.equal(since(from).length, 2);
});

test('R111 what the API refuses, each with what to do', async () => {
  const refusals = [
    [apiError(403, 'insufficientPermissions', 'Request had insufficient authentication scopes.', { status: 'PERMISSION_DENIED', details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT' }] }), /^The token lacks a permission .* to allow the scope gmail\.readonly \(https:/],
    [apiError(403, 'forbidden', "Metadata scope does not support 'q' parameter"), /^The token lacks a permission \(Metadata scope/],
    [apiError(403, 'accessNotConfigured', 'Gmail API has not been used in project 1 before or it is disabled.', { domain: 'usageLimits' }), /^The Gmail API is not enabled/],
    [apiError(403, 'domainPolicy', 'The domain administrators have disabled Gmail apps.'), /^The administrator of the user's domain/],
    [apiError(403, 'forbidden', 'No.'), /^Gmail does not allow this: No\.\. Ask the user\.$/],
    [apiError(404, 'notFound', 'Requested entity was not found.'), /^No message with id "m01"\. Take ids from a result/],
    [apiError(400, 'failedPrecondition', 'Mail service not enabled'), /^Gmail refused the request: Mail service not enabled\.$/],
    [{ status: 418, body: '<html><title>Teapot</title></html>' }, /^Gmail failed with status 418: Teapot\. Try again later\.$/],
    [{ status: 200, body: '<html>hotel login</html>' }, /is not Gmail's\. Ask the user to check the base_url/],
    [{ status: 302, headers: { location: 'http://169.254.169.254/' } }, /redirects to 169\.254\.169\.254, which is not followed/],
  ];
  for (const [answer, expected] of refusals) {
    state.next = [{ answer }];
    assert.match(await err({ action: 'read', id: 'm01' }), expected);
    assert.equal(state.next.length, 0);
  }
});

test('R111 limits are waited for: 429 with Retry-After, 403 with a reason, a time in the message', async () => {
  const limited = (headers, message = 'Rate Limit Exceeded') => ({ answer: apiError(429, 'rateLimitExceeded', message, { domain: 'usageLimits', headers }) });
  const { texts, onUpdate } = listener();
  state.next = [limited({ 'Retry-After': '1' })];
  const started = Date.now();
  await ok({ action: 'profile' }, { onUpdate, factor: 1 });
  assert.ok(Date.now() - started >= 990);
  assert.match(texts[0], /^Waiting 1\.\d s and trying again \(status 429 from /);
  state.next = [
    { answer: apiError(403, 'userRateLimitExceeded', 'User Rate Limit Exceeded', { domain: 'usageLimits' }) },
    limited({}, `User-rate limit exceeded.  Retry after ${new Date(Date.now() + 20_000).toISOString()}`), { answer: { status: 503, body: 'x' } },
  ];
  await ok({ action: 'profile' }, { onUpdate });
  assert.match(texts.join('\n'), /status 403 from[\s\S]*Waiting (1\d|20)\.\d s and trying again \(status 429[\s\S]*Waiting 4\.\d s and trying again \(status 503/);
  state.next = Array.from({ length: 4 }, () => ({ answer: apiError(403, 'rateLimitExceeded', 'Rate Limit Exceeded', { domain: 'usageLimits' }) }));
  assert.equal(await err({ action: 'profile' }), "Gmail's rate limit is reached (Rate Limit Exceeded). Try again in a minute, with fewer messages.");
  assert.equal(state.next.length, 0);
  const from = google.requests.length;
  state.next = [limited({ 'Retry-After': new Date(Date.now() + 600_000).toUTCString() })];
  assert.match(await err({ action: 'profile' }), /^Gmail's rate limit is reached/);
  assert.equal(since(from).length, 1, 'ten minutes are not waited for');
});

test('R54 a server that hangs up or is not there', async () => {
  state.next = [{ answer: { hangUp: 'now' } }, { answer: { hangUp: 'midway', json: { emailAddress: 'x' } } }];
  assert.match(await ok({ action: 'profile' }), /^ada@/);
  const nobody = await freePort();
  assert.equal(await err({ action: 'profile' }, with_({ access_token: TOKEN, base_url: `http://127.0.0.1:${nobody}` })), `Cannot reach 127.0.0.1:${nobody} (ECONNREFUSED).`);
  assert.match(await err({ action: 'profile' }, with_({ access_token: TOKEN, base_url: 'ftp://x' })), /^The base_url of the resource gmail is not an http or https address/);
});

test('R41 cancelling ends a search amid its requests', async () => {
  const abort = new AbortController();
  const from = google.requests.length;
  const onUpdate = ({ content }) => content[0].text.startsWith('Reading') && abort.abort();
  assert.equal(await err({ action: 'search', max_results: 100 }, { signal: abort.signal, onUpdate }), 'Cancelled.');
  assert.ok(since(from).filter(({ path }) => /messages\/m/.test(path)).length <= 5);
});

// ---- hostile mail ------------------------------------------------------------------------------

test('R54 mail that is made to hurt: slow HTML, deep nesting, wrong types, names with paths', async () => {
  const extra = (id, payload, more) => { state.messages = [...MESSAGES, mail(id, { payload, ...more })]; };
  for (const html of ['<'.repeat(500_000), '<script>'.repeat(200_000), `<script>${'</script'.repeat(200_000)}`, '<!--'.repeat(300_000), '&#'.repeat(500_000), '<div>'.repeat(300_000), ' \n'.repeat(500_000), '< '.repeat(400_000), '&#x110000;&#0;&nope;']) {
    extra('evil', part('text/html', html));
    const before = process.cpuUsage();
    await ok({ action: 'read', id: 'evil' });
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 3_000_000, `${html.slice(0, 12)} took ${(user + system) / 1000} ms of processor time`);
  }
  let deep = part('text/plain', 'deep down');
  for (let i = 0; i < 500; i += 1) deep = multipart('mixed', deep);
  extra('deep', deep);
  assert.match(await ok({ action: 'read', id: 'deep' }), /\(no text\)$/);
  extra('path', multipart('mixed', part('text/plain', 'x', { filename: '../../../etc/passwd\n\u001b[31m' })), { subject: `${'=?utf-8?q?'.repeat(3_000)} =?x?b?!!!?= =?utf-8?b?/w==?=` });
  assert.match(await ok({ action: 'read', id: 'path' }), /\n {2}\.\.\/\.\.\/\.\.\/etc\/passwd \[31m \(text\/plain, 1 bytes, part 0\)\n/);
  state.messages = MESSAGES;
  for (const json of [[], { payload: 7 }, { id: {}, labelIds: 'x', internalDate: 'soon', payload: { headers: { a: 1 }, body: [], parts: 'x' } }, { internalDate: '9'.repeat(30), payload: { parts: [null, 1, { mimeType: 5 }] } }]) {
    state.next = [{ answer: { json } }];
    await ok({ action: 'read', id: 'm01' });
  }
  const before = google.requests.length;
  for (const id of ['../labels', 'a/b', 'a?b', '<abc@mail.example>', 'a b', '..']) assert.match(await err({ action: 'read', id }), /^id must be the id of a message or thread/);
  assert.equal(google.requests.length, before);
});

test('R57 a missing or wrong parameter is named with what is possible', async () => {
  assert.equal(await err({}), 'action parameter is required. Available: search, read, threads, thread, labels, attachment, profile.');
  assert.match(await err({ action: 'send' }), /^Unknown action: "send"\. Available: search, read/);
  for (const action of ['read', 'thread', 'attachment']) assert.match(await err({ action }), new RegExp(`^id parameter is required for ${action} action`));
  assert.match(await err({ action: 'search', max_results: 501 }), /^max_results must be a number from 1 to 500/);
  assert.match(await err({ action: 'search', query: 'x'.repeat(2_001) }), /^query is longer than 2000/);
  assert.match(await err({ action: 'read', id: 'm01', format: 'raw' }), /^Unknown format: "raw"\. Available: text, html, headers, json\.$/);
});

test('the tokens are in no text and no file, even if the server repeats them', async () => {
  for (const secret of [TOKEN, REFRESH, SECRET]) {
    state.next = [{ answer: apiError(400, 'invalid', `bad ${secret} ${encodeURIComponent(secret)}`) }];
    assert.equal(await err({ action: 'profile' }, with_({ ...RENEWABLE, access_token: TOKEN })), 'Gmail refused the request: bad *** ***.');
  }
  state.messages = [mail('leak', { subject: `Re: ${TOKEN}`, payload: part('text/plain', `token ${TOKEN}`) })];
  for (const params of [{ action: 'search' }, { action: 'read', id: 'leak' }, { action: 'read', id: 'leak', output_path: 'leak.txt' }, { action: 'threads', output_path: 'leak.json' }]) await ok(params);
  state.messages = MESSAGES;
  const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { name, path, parentPath } of files) said.push(readFileSync(join(parentPath ?? path, name), 'latin1'));
  assert.ok(said.length > 100);
  const secrets = [TOKEN, REFRESH, SECRET, 'ya29.renewed', 'ya29.expired', 'ya29.never', 'ya29.foreign', 'wrong-secret'];
  for (const text of said) for (const secret of secrets) assert.ok(!text.includes(secret), `${secret} in: ${text.slice(0, 200)}`);
});
