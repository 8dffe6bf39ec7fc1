// Make a small e-mail database for the demo and for tests: the same bytes of mail in every run.
//
//   node tests/seed/make-mail-db.mjs OUT.db [--mails N]     (default 600; needs the sqlite3 program)
//
// The schema is the reference schema of the email_db tool: emails, attachments, a full-text index
// with its triggers, sync_state. All people, companies and addresses are invented (example.org and
// friends); dates lie between 2025-01-06 and 2025-09-30. An existing OUT.db is replaced.

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SCHEMA = `
CREATE TABLE emails (
  id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, account TEXT NOT NULL,
  from_address TEXT NOT NULL, from_name TEXT, to_addresses TEXT NOT NULL, cc_addresses TEXT,
  subject TEXT NOT NULL, date INTEGER NOT NULL, snippet TEXT, body_text TEXT, body_html TEXT,
  labels TEXT NOT NULL DEFAULT '[]', is_read INTEGER NOT NULL DEFAULT 0,
  has_attachments INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0);
CREATE INDEX emails_date ON emails (date);
CREATE INDEX emails_thread ON emails (thread_id);
CREATE TABLE attachments (
  id TEXT PRIMARY KEY, email_id TEXT NOT NULL REFERENCES emails (id),
  filename TEXT NOT NULL, mime_type TEXT, size INTEGER, path TEXT);
CREATE INDEX attachments_email ON attachments (email_id);
CREATE TABLE sync_state (account TEXT PRIMARY KEY, last_sync INTEGER, history_id TEXT);
CREATE VIRTUAL TABLE emails_fts USING fts5 (
  subject, from_address, to_addresses, body_text,
  content='emails', content_rowid='rowid', tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER emails_added AFTER INSERT ON emails BEGIN
  INSERT INTO emails_fts (rowid, subject, from_address, to_addresses, body_text)
  VALUES (new.rowid, new.subject, new.from_address, new.to_addresses, new.body_text);
END;
CREATE TRIGGER emails_removed AFTER DELETE ON emails BEGIN
  INSERT INTO emails_fts (emails_fts, rowid, subject, from_address, to_addresses, body_text)
  VALUES ('delete', old.rowid, old.subject, old.from_address, old.to_addresses, old.body_text);
END;
`;

const ME = 'ada@example.org';
const DAY_MS = 86_400_000;
const FIRST_MS = Date.UTC(2025, 0, 6, 7);
const SPAN_MS = 267 * DAY_MS;

const PEOPLE = [
  ['Alice Martin', 'alice.martin@example.com'],
  ['Bob Okafor', 'bob@example.net'],
  ['Jörg Müller', 'joerg.mueller@example.de'],
  ['Chloé Lefèvre', 'chloe@example.fr'],
  ['Dana Whitfield', 'dana.whitfield@example.com'],
  ['Ravi Shah', 'ravi.shah@example.in'],
];
const SENDERS = {
  invoice: ['Northwind Power', 'billing@northwind-power.example'],
  travel: ['Blue Line Rail', 'tickets@blueline-rail.example'],
  news: ['The Weekly Kernel', 'newsletter@weekly-kernel.example'],
  bank: ['Harbour Bank', 'no-reply@harbour-bank.example'],
};

/** A small generator of pseudo-random numbers (xorshift32), so that every run makes the same mail. */
function makeRandom(seed) {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const pick = (random, list) => list[random(list.length)];
const euros = (random) => `${20 + random(400)}.${String(random(100)).padStart(2, '0')}`;

/** Kinds of mail. Each gives subject, text, labels and perhaps an attachment and an HTML body. */
const KINDS = {
  invoice(random, number) {
    const amount = euros(random);
    return {
      from: SENDERS.invoice,
      subject: `Invoice 2025-${String(number).padStart(4, '0')} for your electricity`,
      text: `Dear customer,\n\nplease find attached the invoice over EUR ${amount}. Amount due within 14 days.\n\nNorthwind Power`,
      labels: ['INBOX', 'Finance'],
      file: [`invoice-${number}.pdf`, 'application/pdf'],
    };
  },
  travel(random, number) {
    const to = pick(random, ['Lisbon', 'Copenhagen', 'Zürich', 'Kraków']);
    const code = `BL${4000 + number}`;
    return {
      from: SENDERS.travel,
      subject: `Your ticket to ${to}`,
      text: `Your booking is confirmed. Train ${code} to ${to}, coach ${1 + random(9)}, seat ${1 + random(80)}.\nHave a good journey!`,
      html: `<html><head><title>Ticket</title><style>p{color:#333}</style></head><body><h1>Ticket to ${to}</h1><p>Train <b>${code}</b> &amp; seat reservation.</p></body></html>`,
      labels: ['INBOX', 'Travel'],
      file: [`ticket-${code}.pdf`, 'application/pdf'],
    };
  },
  news(random, number) {
    const topic = pick(random, ['file systems', 'schedulers', 'memory reclaim', 'io_uring', 'namespaces']);
    return {
      from: SENDERS.news,
      subject: `The Weekly Kernel #${number}: ${topic}`,
      html: `<p>This week we look at <i>${topic}</i>.</p><ul><li>Patches under review</li><li>A benchmark</li></ul>`,
      text: `This week we look at ${topic}.\n- Patches under review\n- A benchmark`,
      labels: ['CATEGORY_UPDATES'],
    };
  },
  bank(random) {
    return {
      from: SENDERS.bank,
      subject: 'Kontoauszug: Überweisung eingegangen',
      text: `Guten Tag,\n\nauf Ihrem Konto ist eine Überweisung über EUR ${euros(random)} eingegangen.\nMit freundlichen Grüßen\nHarbour Bank`,
      labels: ['INBOX', 'Finance'],
    };
  },
  talk(random, number) {
    const person = pick(random, PEOPLE);
    const [subject, text] = pick(random, [
      ['Lunch on Thursday?', 'Are you free for lunch on Thursday? The café at the corner has a new menu.'],
      ['Draft of the report', 'I have put my comments into the draft. Chapter 3 needs another look at the budget.'],
      ['Meeting notes', 'Notes from today: we ship in May, Bob writes the tests, the budget stays as it is.'],
      ['Photos from the trip', 'Here are the photos from the trip to the mountains. The naïve idea to hike in sandals was mine.'],
      ['Termin beim Zahnarzt', 'Denk bitte an den Termin beim Zahnarzt. Schöne Grüße'],
    ]);
    return { from: person, subject, text: `Hi Ada,\n\n${text}\n\n${person[0]} (${number})`, labels: ['INBOX'] };
  },
};

/** The mails in order of time. Every fourth talk gets an answer by Ada in the same thread. */
export function makeMails(count) {
  const random = makeRandom(20250106);
  const mails = [];
  for (let i = 1; mails.length < count; i++) {
    const kind = pick(random, ['invoice', 'travel', 'news', 'news', 'bank', 'talk', 'talk', 'talk']);
    const made = KINDS[kind](random, i);
    const date = FIRST_MS + Math.floor(((i - 1) / count) * SPAN_MS) + random(3_600_000);
    const isRead = random(5) > 0;
    const thread = `t-${String(i).padStart(5, '0')}`;
    const mail = {
      ...made, id: `m-${String(i).padStart(5, '0')}`, thread, date, isRead, to: [ME],
      labels: isRead ? made.labels : [...made.labels, 'UNREAD'],
    };
    mails.push(mail);
    if (kind !== 'talk' || random(4) > 0 || mails.length >= count) continue;
    mails.push({
      id: `${mail.id}-re`, thread, date: date + 2 * 3_600_000, isRead: true, from: ['Ada Byron', ME],
      to: [made.from[1]], subject: `Re: ${made.subject}`, labels: ['SENT'],
      text: `Thanks, that suits me.\n\nAda\n\n> ${made.text.replaceAll('\n', '\n> ')}`,
    });
  }
  return mails;
}

const quote = (value) => (value === null || value === undefined ? 'NULL' : `'${String(value).replaceAll("'", "''")}'`);

function insertMail(mail, index) {
  const [fromName, fromAddress] = mail.from;
  const values = [
    mail.id, mail.thread, ME, fromAddress, fromName, mail.to.join(', '), null, mail.subject, mail.date,
    mail.text.slice(0, 90).replaceAll('\n', ' '), mail.text, mail.html, JSON.stringify(mail.labels),
    Number(mail.isRead), mail.file ? 1 : 0, mail.text.length + (mail.html?.length ?? 0),
  ];
  const lines = [`INSERT INTO emails VALUES (${values.map(quote).join(', ')});`];
  if (mail.file) {
    const size = 20_000 + ((index * 7919) % 300_000);
    const file = [`a-${mail.id}`, mail.id, ...mail.file, size, null];
    lines.push(`INSERT INTO attachments VALUES (${file.map(quote).join(', ')});`);
  }
  return lines.join('\n');
}

/** Write the database to `path`; `extraSql` runs at the end (tests add their odd mails with it). */
export function makeMailDb(path, { mails = 600, extraSql = '' } = {}) {
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(path + end, { force: true });
  const sql = [
    'PRAGMA journal_mode=OFF;', 'PRAGMA synchronous=OFF;', 'BEGIN;', SCHEMA,
    ...makeMails(mails).map(insertMail),
    `INSERT INTO sync_state VALUES ('${ME}', ${FIRST_MS + SPAN_MS}, '184467');`,
    'COMMIT;', extraSql,
  ];
  execFileSync('sqlite3', ['-bail', '-init', '/dev/null', path], { input: sql.join('\n'), stdio: ['pipe', 'ignore', 'inherit'] });
}

function main(args) {
  const at = args.indexOf('--mails');
  const mails = at < 0 ? 600 : Number(args[at + 1]);
  const [path] = args.filter((_, i) => at < 0 || (i !== at && i !== at + 1));
  if (!path || path.startsWith('-') || !(mails >= 1 && mails <= 100_000)) {
    process.stderr.write('usage: make-mail-db.mjs OUT.db [--mails N]   (N from 1 to 100000)\n');
    process.exit(2);
  }
  makeMailDb(path, { mails });
  process.stdout.write(`${path}: ${mails} mails\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
