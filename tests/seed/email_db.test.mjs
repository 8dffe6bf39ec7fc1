// email_db against real SQLite databases: the reference schema with 800 mails, two foreign schemas,
// one without a full-text index, broken files, a write-ahead log, and SQL that wants out.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { contractTests } from './fixtures/contract.mjs';
import { ROOT, caller, childPrograms, loadTool, makePath, makeTempDir, missing, withEnv, withFastTimers } from './fixtures/harness.mjs';
import { makeMailDb, makeMails } from './make-mail-db.mjs';

const DIR = 'seed/tools/email_db';
const skip = missing('sqlite3');
const tmp = makeTempDir();
const home = join(tmp, 'home');
const db = join(tmp, "mail 'box' ?#%.db");
const MAILS = makeMails(800);
mkdirSync(home);

const ODD_MAIL = `
INSERT INTO emails VALUES ('odd''1', 't-odd', 'ada@example.org', 'eve@example.net', 'Eve "Q" %_', 'ada@example.org', 'cc@example.org',
  '100%_sure '';-- <b>', 1760000000123, NULL, NULL, '<style>x{}</style><p>Caf&eacute; &amp; <b>zwölf</b> &#8364;</p><script>bad()</script>', '["INBOX","Zwölf, drei"]', 1, 0, 9007199254740993);
INSERT INTO emails VALUES ('long', 't-long', 'ada@example.org', 'eve@example.net', NULL, 'ada@example.org', NULL,
  'long', 1760000001000, NULL, replace(hex(zeroblob(60000)), '00', 'abc '), NULL, 'not json', 1, 0, 1);`;

const sqlite = (path, sql) => execFileSync('sqlite3', ['-bail', '-init', '/dev/null', path], { input: sql, encoding: 'utf8' });
const hashOf = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');
let dbHash;
if (!skip) {
  makeMailDb(db, { mails: 800, extraSql: ODD_MAIL });
  dbHash = hashOf(db);
}

const tool = caller(await loadTool(DIR));
const on = (path, fn) => withEnv({ OFFICER_EMAIL_DB: path, OFFICER_USER_ROOT: home, HOME: home }, fn);
const ok = (params) => on(db, () => tool.ok(params));
const err = (params) => on(db, () => tool.err(params));
const json = async (params) => JSON.parse(await ok({ format: 'json', ...params }));
/** Through a file, for a long list would be cut in the text. */
const items = async (params) => {
  await ok({ output_path: 'items.json', ...params });
  return JSON.parse(readFileSync(join(home, 'items.json'), 'utf8'));
};
const ids = async (params) => (await items({ action: 'search', ...params })).map((mail) => mail.id).sort();
const expected = (holds) => MAILS.filter(holds).map((mail) => mail.id).sort();

if (!skip) {
  contractTests({
    dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), env: { OFFICER_EMAIL_DB: db },
    base: { action: 'search', query: 'invoice', limit: 2 },
  });
}

test('R117 stats counts what is there', { skip }, async () => {
  const stats = await json({ action: 'stats' });
  assert.equal(stats.messages, 802);
  assert.equal(stats.unread, expected((m) => !m.isRead).length);
  assert.equal(stats.full_text_index, 'emails_fts');
  assert.equal(stats.last, '2025-10-09T08:53:21Z');
  assert.deepEqual(stats.tables.map((t) => t.name), ['attachments', 'emails', 'sync_state']);
  const text = await ok({ action: 'stats' });
  assert.match(text, /^802 messages in \d+ threads, \d+ unread\n/);
  assert.match(text, /not json: 1/);
});

test('R117 schema shows tables, columns and how dates are kept', { skip }, async () => {
  const text = await ok({ action: 'schema' });
  assert.match(text, /emails \(table\)\n {2}id, thread_id, account/);
  assert.match(text, /Dates are milliseconds/);
  assert.doesNotMatch(text, /emails_fts_data/);
});

test('R117 every search filter gives exactly the mails that hold', { skip }, async () => {
  assert.deepEqual(await ids({ from: 'müller' }), expected((m) => m.from[0] === 'Jörg Müller'));
  assert.deepEqual(await ids({ to: 'chloe@' }), expected((m) => m.to[0].startsWith('chloe')));
  assert.deepEqual(await ids({ to: 'CC@EXAMPLE' }), ["odd'1"]);
  assert.deepEqual(await ids({ subject: 're: ' }), expected((m) => m.subject.startsWith('Re: ')));
  assert.deepEqual(await ids({ label: 'finance' }), expected((m) => m.labels.includes('Finance')));
  assert.deepEqual(await ids({ label: 'Zwölf, drei' }), ["odd'1"]);
  assert.deepEqual(await ids({ label: 'Fin' }), []);
  assert.deepEqual(await ids({ unread: true }), expected((m) => !m.isRead));
  assert.equal((await ids({ unread: false })).length, 802 - expected((m) => !m.isRead).length);
  const from = Date.UTC(2025, 2, 1);
  const to = Date.UTC(2025, 3, 1);
  assert.deepEqual(await ids({ after: '2025-03-01', before: '2025-04-01' }), expected((m) => m.date >= from && m.date < to));
  const both = { label: 'Travel', unread: true, before: '2025-04-01' };
  assert.deepEqual(await ids(both), expected((m) => m.labels.includes('Travel') && !m.isRead && m.date < to));
});

test('R117 search words: all of them, phrases, OR, without, prefixes, accents', { skip }, async () => {
  const has = (m, text) => `${m.subject} ${m.text} ${m.from[1]} ${m.to}`.toLowerCase().includes(text);
  assert.deepEqual(await ids({ query: 'budget bob' }), expected((m) => has(m, 'budget') && has(m, 'bob')));
  assert.deepEqual(await ids({ query: '"the budget stays"' }), expected((m) => has(m, 'the budget stays')));
  assert.deepEqual(await ids({ query: 'lisbon OR copenhagen' }), expected((m) => has(m, 'lisbon') || has(m, 'copenhagen')));
  assert.deepEqual(await ids({ query: 'ticket -lisbon' }), expected((m) => has(m, 'ticket') && !has(m, 'lisbon')));
  assert.deepEqual(await ids({ query: '-ada -"electricity" lunch', limit: 500 }), []);
  assert.deepEqual(await ids({ query: 'sched*' }), expected((m) => has(m, 'schedulers')));
  assert.deepEqual(await ids({ query: 'zurich' }), expected((m) => has(m, 'zürich')));
  assert.deepEqual(await ids({ query: 'ÜBERWEISUNG' }), expected((m) => has(m, 'überweisung')));
  assert.deepEqual(await ids({ query: '-electricity', label: 'finance' }), expected((m) => m.labels.includes('Finance') && !has(m, 'electricity')));
});

test('R117 search text that is no FTS syntax is just text', { skip }, async () => {
  for (const query of ['a AND', 'foo:bar', 'NEAR(', '"', '""', '*', '-', 'OR', 'OR OR x', '^a', '{a b}: c', '%', '100%_', '🙂', '(', "'", 'a"b', '\\']) {
    await ok({ action: 'search', query });
  }
  assert.deepEqual(await ids({ query: '%_' }), ["odd'1"]);
  assert.deepEqual(await ids({ from: '%' }), ["odd'1"]);
  assert.match(await err({ action: 'search', query: 'x'.repeat(1001) }), /longer than 1000/);
  assert.match(await err({ action: 'search', query: 'x '.repeat(60) }), /more than 50 words/);
});

test('R117 paging gives each mail once, and says how to go on', { skip }, async () => {
  const seen = new Set();
  for (let offset = 0; offset < 802; offset += 300) {
    for (const { id } of await items({ action: 'search', limit: 300, offset })) seen.add(id);
  }
  assert.equal(seen.size, 802);
  const text = await ok({ action: 'search', limit: 2 });
  assert.match(text, /^802 messages match; 1 to 2:\n\n1\. long\n/);
  assert.match(text, /More: call again with offset 2\.$/);
  assert.match(await ok({ action: 'search', offset: 900 }), /none from offset 900/);
  assert.equal(await ok({ action: 'search', query: 'xyzzy' }), 'No messages match.');
});

test('R117 read shows headers, body and attachments; HTML becomes text', { skip }, async () => {
  const mail = MAILS.find((m) => m.file);
  const text = await ok({ action: 'read', id: mail.id });
  assert.match(text, new RegExp(`^Subject: ${mail.subject}\nFrom: `));
  assert.ok(text.includes(mail.text) && text.includes(mail.file[0]));
  const odd = await ok({ action: 'read', id: "odd'1" });
  assert.ok(odd.includes("Subject: 100%_sure ';-- <b>") && odd.includes('From: Eve "Q" %_ <eve@example.net>'));
  assert.match(odd, /\nCaf&eacute; & zwölf €$/);
  assert.match(await err({ action: 'read', id: 'nope' }), /^No message with id "nope"/);
  assert.match(await err({ action: 'read' }), /^id parameter is required for read action/);
});

test('R117 thread is found by its id and by a message in it, oldest first', { skip }, async () => {
  const reply = MAILS.find((m) => m.subject.startsWith('Re: '));
  for (const id of [reply.thread, reply.id]) {
    const messages = await json({ action: 'thread', id });
    assert.deepEqual(messages.map((m) => m.id), [reply.id.replace('-re', ''), reply.id]);
  }
  assert.match(await err({ action: 'thread', id: "x' OR 1=1 --" }), /^No thread or message/);
});

test('R117 query gives rows in order, exact numbers and every column', { skip }, async () => {
  assert.deepEqual(await json({ action: 'query', sql: "SELECT size FROM emails WHERE id = 'odd''1'" }), [{ size: '9007199254740993' }]);
  assert.deepEqual(await json({ action: 'query', sql: 'SELECT id FROM emails ORDER BY id DESC; -- the end', limit: 2 }), [{ id: "odd'1" }, { id: expected(() => true).at(-1) }]);
  assert.deepEqual(await json({ action: 'query', sql: "WITH t(a) AS (VALUES (1), (2)) SELECT a, a AS b, 'x;y' AS \"c;d\" FROM t /* ; */ LIMIT 1" }), [{ a: 1, b: 1, 'c;d': 'x;y' }]);
  assert.deepEqual(await json({ action: 'query', sql: 'SELECT 1 AS a, 2 AS a' }), [{ a: 1, 'a:1': 2 }]);
  assert.deepEqual(await json({ action: 'query', sql: "SELECT 'a\n.shell x\ngo\n;' AS t, x'00ff' IS NULL AS u" }), [{ t: 'a\n.shell x\ngo\n;', u: 0 }]);
  const text = await ok({ action: 'query', sql: 'SELECT id, cc_addresses AS cc FROM emails', limit: 1, offset: 3 });
  assert.match(text, /^1 results:\n\n4\. id: \S+ \| cc: \n\nMore: call again with offset 4\.$/);
  assert.equal(await ok({ action: 'query', sql: 'SELECT 1 WHERE 0' }), 'No results.');
});

test('R57 a missing or wrong parameter is named with what is possible', { skip }, async () => {
  assert.equal(await err({ action: 'nope' }), 'Unknown action: "nope". Available: stats, schema, search, read, thread, query.');
  assert.match(await err({}), /^action parameter is required\. Available: stats/);
  assert.equal(await err({ action: 'query' }), 'sql parameter is required for query action.');
  assert.match(await err({ action: 'search', after: '2025-02-30' }), /^after must be a date written YYYY-MM-DD/);
  assert.match(await err({ action: 'search', limit: 501 }), /^limit must be a number from 1 to 500/);
  assert.match(await err({ action: 'search', limit: 1.5 }), /whole number/);
  assert.match(await err({ action: 'search', unread: 'maybe' }), /^unread must be true or false/);
  assert.match(await err({ action: 'search', format: 'xml' }), /^Unknown format: "xml"\. Available: text, json\.$/);
  assert.match(await err({ action: 'query', sql: 'SELECT nope FROM emails' }), /no such column: nope[\s\S]*The tables and their columns:\n {2}attachments: id/);
  assert.match(await err({ action: 'query', sql: 'SELECT * FROM nope' }), /no such table: nope[\s\S]*emails: id, thread_id/);
  assert.match(await err({ action: 'query', sql: 'SELECT FROM WHERE' }), /^Database error: [\s\S]*\^--- error here/);
});

const ATTACKS = [
  'DELETE FROM emails', 'SELECT 1; DELETE FROM emails', 'SELECT 1;\nDELETE FROM emails;', 'WITH x AS (SELECT 1) DELETE FROM emails',
  'SELECT 1) ; DELETE FROM emails; SELECT * FROM (SELECT 1', 'SELECT 1)\n;\n.shell touch PWNED\nSELECT (1',
  '.shell touch PWNED', 'SELECT 1\n.shell touch PWNED\n', 'SELECT 1;\n.system touch PWNED', 'SELECT 1 --\n.shell touch PWNED',
  'SELECT 1\ngo\n.shell touch PWNED', 'SELECT 1\n/\n.shell touch PWNED', "SELECT 'a\n.shell touch PWNED", "SELECT 1 /*\n.shell touch PWNED",
  "ATTACH 'PWNED' AS p", "SELECT 1; ATTACH 'PWNED' AS p", "VACUUM INTO 'PWNED'", 'PRAGMA query_only=0', 'EXPLAIN SELECT 1',
  "SELECT writefile('PWNED', 'x')", "SELECT readfile('/etc/passwd')", "SELECT load_extension('x')", "SELECT edit('x', 'touch PWNED')",
  "SELECT * FROM fsdir('/')", "SELECT * FROM main.fsdir('/')", `SELECT * FROM "FSDIR" WHERE path = '/'`, "SELECT * FROM[fsdir]('/')",
  "SELECT * FROM 'fsdir' WHERE path = '/'", 'SELECT * FROM`fsdir`', "SELECT * FROM zipfile('x.zip')", "SELECT (SELECT max(name) FROM fsdir('/'))",
  "SELECT fts3_tokenizer('x', x'00')", 'SELECT 1 -- ) ; \n; DELETE FROM emails', 'SELECT [a', 'SELECT `a',
  "SELECT 1 UNION SELECT 1; CREATE TABLE pwned (a)", 'INSERT INTO emails (id) VALUES (1)', 'REPLACE INTO emails (id) VALUES (1)',
];

test('SQL that writes, attaches, calls programs or leaves its statement is refused and does nothing', { skip }, async () => {
  const cwd = process.cwd();
  for (const sql of ATTACKS) assert.ok(await err({ action: 'query', sql }), sql);
  for (const value of ["'; DROP TABLE emails; --", "x') OR 1=1 --", "\n.shell touch PWNED\n", '"); DROP TABLE emails; --']) {
    for (const name of ['query', 'from', 'to', 'subject', 'label']) {
      assert.equal(await ok({ action: 'search', [name]: value }), 'No messages match.', `${name} = ${value}`);
    }
    await err({ action: 'read', id: value });
  }
  assert.equal(hashOf(db), dbHash);
  for (const dir of [cwd, home, tmp]) assert.ok(!existsSync(join(dir, 'PWNED')));
});

test('a query without end is stopped, and leaves no process', { skip }, async () => {
  const sql = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c';
  const text = await withFastTimers(60, () => err({ action: 'query', sql }));
  assert.match(text, /took longer than 30 seconds/);
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 100);
  assert.match(await on(db, () => tool.err({ action: 'query', sql }, abort.signal)), /^Cancelled/);
  assert.deepEqual(childPrograms(), []);
});

test('a query that wants too much memory or output is stopped', { skip }, async () => {
  const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000)';
  assert.match(await err({ action: 'query', sql: 'SELECT length(group_concat(hex(randomblob(100000000)))) FROM emails' }), /memory|too big/);
  assert.match(await err({ action: 'query', sql: `${endless} SELECT hex(zeroblob(1000000)) FROM c`, limit: 500 }), /larger than 64 MiB/);
});

test('R60 R61 large output ends at the cap, output_path gets all of it', { skip }, async () => {
  const text = await ok({ action: 'read', id: 'long' });
  assert.match(text, /… truncated \(\d+ more characters\); set output_path to get everything\.$/);
  const saved = await ok({ action: 'search', output_path: 'new dir/all.json' });
  assert.match(saved, /^802 items saved to .*\/home\/new dir\/all\.json \(\d+ bytes\); 802 match\.$/);
  assert.equal(JSON.parse(readFileSync(join(home, 'new dir/all.json'), 'utf8')).length, 802);
  assert.match(await ok({ action: 'query', sql: 'SELECT id FROM emails', output_path: 'new dir/all.json' }), /^802 items .*replacing the file that was there\); all of them/);
  assert.match(await ok({ action: 'query', sql: 'SELECT id FROM emails', limit: 700, output_path: '~/some.json' }), /there are more than 700/);
  await ok({ action: 'read', id: 'long', output_path: 'long.json' });
  assert.equal(JSON.parse(readFileSync(join(home, 'long.json'), 'utf8'))[0].body.length, 240_000);
  assert.match(await err({ action: 'stats', output_path: '.' }), /is a directory; name a file in it/);
  assert.match(await err({ action: 'stats', output_path: '/dev/null' }), /not a regular file/);
  assert.match(await err({ action: 'stats', output_path: '/proc/nope/x' }), /^Cannot write \/proc\/nope\/x: ENOENT/);
  assert.deepEqual(readdirSync(home).filter((name) => name.endsWith('.tmp')), []);
});

test('the database itself is never the output file', { skip }, async () => {
  linkSync(db, join(tmp, 'other name.db'));
  for (const path of [db, `${db}-wal`, join(tmp, 'other name.db')]) {
    assert.match(await err({ action: 'stats', output_path: path }), /is the email database itself/);
  }
  assert.equal(hashOf(db), dbHash);
});

test('R117 foreign schema: seconds, labels with commas, an index with its own content', { skip }, async () => {
  const path = join(tmp, 'foreign1.db');
  sqlite(path, `
    CREATE TABLE Messages (uid INTEGER PRIMARY KEY, conversation_id INT, sender TEXT, recipients TEXT, Subject TEXT, timestamp INTEGER, body TEXT, tags TEXT, unread INT);
    CREATE VIRTUAL TABLE messages_search USING fts5(message_id UNINDEXED, subject, body);
    INSERT INTO Messages VALUES (7, 1, 'a@x.example', '["b@x.example"]', 'Hello', 1740000000, 'green apples', 'inbox, Old', 1), (8, 1, 'b@x.example', 'a@x.example', 'Re: Hello', 1740003600, 'red apples', 'sent', 0);
    INSERT INTO messages_search SELECT uid, subject, body FROM Messages;
    CREATE TABLE contacts (id INTEGER, name TEXT, title TEXT); CREATE VIEW broken AS SELECT * FROM gone;`);
  await on(path, async () => {
    const found = JSON.parse(await tool.ok({ action: 'search', query: 'green', format: 'json' }));
    assert.equal(found.messages[0].id, '7');
    assert.equal(found.messages[0].date, '2025-02-19T21:20:00Z');
    assert.equal(found.messages[0].to, 'b@x.example');
    assert.match(await tool.ok({ action: 'search', label: 'old', unread: true }), /^1 messages match/);
    assert.match(await tool.ok({ action: 'search', query: '-green' }), /^1 messages match; 1 to 1:\n\n1\. Re: Hello/);
    assert.match(await tool.ok({ action: 'thread', id: '8' }), /^2 messages, oldest first/);
    assert.match(await tool.ok({ action: 'schema' }), /Dates are seconds/);
    assert.match(await tool.ok({ action: 'stats' }), /^2 messages in 1 threads, 1 unread/);
  });
});

test('R117 foreign schema: ISO dates, labels in a join table, no index, no id column', { skip }, async () => {
  const path = join(tmp, 'foreign2.db');
  sqlite(path, `
    CREATE TABLE mail (message_id TEXT, "from" TEXT, "to" TEXT, subject TEXT, received_at TEXT, html TEXT, seen INT);
    CREATE TABLE labels (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE mail_labels (mail_id TEXT, label_id INT);
    CREATE TABLE files (id INT, mail_id TEXT, file_name TEXT);
    INSERT INTO mail VALUES ('<a@x>', 'a@x.example', 'b@x.example', 'Grüße', '2025-03-01T10:00:00+02:00', '<p>körperlich</p>', 0), ('<b@x>', 'c@x.example', 'b@x.example', 'Zwei', 'Sat, 1 Mar 2025', NULL, 1);
    INSERT INTO labels VALUES (1, 'Inbox'), (2, 'Work'); INSERT INTO mail_labels VALUES ('<a@x>', 1), ('<a@x>', 2), ('<b@x>', 1);
    INSERT INTO files VALUES (1, '<a@x>', 'x.pdf');`);
  await on(path, async () => {
    const { messages } = JSON.parse(await tool.ok({ action: 'search', label: 'work', query: 'körper', after: '2025-03-01', format: 'json' }));
    assert.deepEqual([messages.length, messages[0].id, messages[0].date, messages[0].labels], [1, '<a@x>', '2025-03-01T08:00:00Z', ['Inbox', 'Work']]);
    assert.match(await tool.ok({ action: 'read', id: '<a@x>' }), /Attachments:\n {2}x\.pdf[\s\S]*körperlich$/);
    assert.match(await tool.ok({ action: 'read', id: '<b@x>' }), /Date: Sat, 1 Mar 2025/);
    assert.match(await tool.err({ action: 'thread', id: '<a@x>' }), /no thread column/);
    assert.match(await tool.ok({ action: 'search', unread: true }), /^1 messages match/);
    assert.match(await tool.ok({ action: 'stats' }), /Inbox: 2/);
  });
});

test('R117 HTML that is made to take for ever is read in one pass', { skip }, async () => {
  const path = join(tmp, 'bombs.db');
  const many = (text) => `replace(hex(zeroblob(150000)), '00', '${text}')`;
  const bombs = { 1: `'a<head>' || ${many('</head ')}`, 2: `'a' || ${many('<script')}`, 3: `'a<!--' || ${many('--')}`, 4: `'a' || ${many('<p ')}`, 5: `'a<STYLE>' || ${many('</style')} || '></header></Style >b'` };
  sqlite(path, `CREATE TABLE emails (id TEXT, from_address TEXT, subject TEXT, html TEXT, date TEXT);
    ${Object.entries(bombs).map(([id, html]) => `INSERT INTO emails VALUES ('${id}', 'a@x', 's', ${html}, '2025-03-01');`).join('\n')}`);
  await on(path, async () => {
    for (const id of Object.keys(bombs)) {
      const start = performance.now();
      assert.match(await tool.ok({ action: 'read', id }), /\n\na/);
      assert.ok(performance.now() - start < 10_000, `mail ${id}`);
    }
  });
});

test('R117 an index that cannot be used is replaced by plain search, and said', { skip }, async () => {
  const path = join(tmp, 'broken-fts.db');
  sqlite(path, `CREATE TABLE emails (id TEXT, from_address TEXT, subject TEXT, body TEXT); INSERT INTO emails VALUES ('1', 'a@x', 's', 'findme');
    CREATE VIRTUAL TABLE emails_fts USING fts5(subject, nosuch, content='emails'); INSERT INTO emails_fts (rowid, subject) VALUES (1, 'findme');`);
  const text = await on(path, () => tool.ok({ action: 'search', query: 'findme' }));
  assert.match(text, /^1 messages match[\s\S]*Note: the full-text index "emails_fts" cannot be used/);
});

test('R56 R79 no database, an empty one, another file: each its own helpful error', { skip }, async () => {
  const none = join(tmp, 'none.db');
  const message = `Email database not found at ${none}. Ask the user to connect an email account in Settings → Integrations and wait for the sync.`;
  assert.equal(await on(none, () => tool.err({ action: 'stats' })), message);
  assert.match(await on(tmp, () => tool.err({ action: 'stats' })), /is not a database file/);
  writeFileSync(join(tmp, 'text.db'), 'this is no database, it is a text of some length\n'.repeat(50));
  assert.match(await on(join(tmp, 'text.db'), () => tool.err({ action: 'stats' })), /is not an SQLite database/);
  writeFileSync(join(tmp, 'empty.db'), '');
  assert.match(await on(join(tmp, 'empty.db'), () => tool.err({ action: 'search' })), /still empty/);
  writeFileSync(join(tmp, 'cut.db'), readFileSync(db).subarray(0, 9000));
  assert.match(await on(join(tmp, 'cut.db'), () => tool.err({ action: 'search', query: 'budget' })), /damaged|Database error|No table/);
  sqlite(join(tmp, 'other.db'), 'CREATE TABLE contacts (id, name)');
  assert.match(await on(join(tmp, 'other.db'), () => tool.err({ action: 'search' })), /No table of mail found .* Tables: contacts\./);
  await withEnv({}, () => tool.err({ action: 'stats' }), { keep: false });
});

test('R117 a locked database and one that is being written to', { skip }, async () => {
  const path = join(tmp, 'wal.db');
  makeMailDb(path, { mails: 50, extraSql: 'PRAGMA journal_mode=WAL;' });
  const writer = spawn('sqlite3', ['-init', '/dev/null', path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const said = new Promise((settle) => writer.stdout.once('data', settle));
  writer.stdin.write("UPDATE emails SET subject = 'from the log'; BEGIN IMMEDIATE; UPDATE emails SET subject = 'not yet'; SELECT 1;\n");
  await said;
  const text = await on(path, () => tool.ok({ action: 'search', subject: 'from the log', limit: 1 }));
  assert.match(text, /^50 messages match/);
  writer.stdin.end();
  await new Promise((settle) => writer.once('close', settle));
});

const notRoot = skip || (process.getuid() !== 0 && 'needs root, to become another user');
test('R117 a WAL database in a directory that cannot be written to is read, with a note', { skip: notRoot }, () => {
  const dir = join(tmp, 'readonly');
  mkdirSync(dir);
  makeMailDb(join(dir, 'a ?.db'), { mails: 20, extraSql: 'PRAGMA journal_mode=WAL;' });
  chmodSync(tmp, 0o755);
  chmodSync(dir, 0o555);
  const code = `const { caller, loadTool } = await import(${JSON.stringify(join(ROOT, 'tests/seed/fixtures/harness.mjs'))});
    const tool = caller(await loadTool('${DIR}')); process.setgid(65534); process.setuid(65534);
    process.stdout.write(await tool.ok({ action: 'search', limit: 1 }));`;
  const env = { ...process.env, OFFICER_EMAIL_DB: join(dir, 'a ?.db'), HOME: '/' };
  const text = execFileSync(process.execPath, ['--input-type=module', '-e', code], { env, encoding: 'utf8' });
  assert.match(text, /^20 messages match[\s\S]*Note: the database was read without its write-ahead log/);
});

test('R85 R86 without sqlite3 the error says so', async () => {
  const text = await withEnv({ PATH: makePath(tmp) }, () => tool.err({ action: 'stats' }));
  assert.match(text, /^sqlite3 is required but not installed in the container\./);
});

test('a ~/.sqliterc does not change what the tool sees', { skip }, async () => {
  writeFileSync(join(home, '.sqliterc'), '.mode csv\n.headers off\n.shell touch PWNED\n');
  assert.deepEqual(await json({ action: 'query', sql: 'SELECT 1 AS a' }), [{ a: 1 }]);
  assert.ok(!existsSync(join(home, 'PWNED')));
});
