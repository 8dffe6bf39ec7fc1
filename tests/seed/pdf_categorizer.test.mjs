// pdf_categorizer against real PDF files that are made here, with poppler, qpdf and tesseract.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { contractTests } from './fixtures/contract.mjs';
import { ROOT, caller, loadTool, makePath, makeTempDir, missing, treeOf, withEnv } from './fixtures/harness.mjs';
import { encryptPdf, scanOf, scannedPdf, textPdf } from './fixtures/make-pdf.mjs';

const DIR = 'seed/user-tools/pdf_categorizer';
const skip = missing('pdfinfo', 'pdftotext');
const tmp = makeTempDir();
const tool = caller(await loadTool(DIR));
const home = (fn) => withEnv({ OFFICER_USER_ROOT: tmp, HOME: tmp }, fn);
const ok = (params, ...rest) => home(() => tool.ok(params, ...rest));
const err = (params, ...rest) => home(() => tool.err(params, ...rest));

const TEXTS = {
  Invoices: 'INVOICE\nInvoice number 4711\nAmount due: EUR 100.00\nVAT included',
  Receipts: 'Kassenbon\nQuittung Nr. 5\nKartenzahlung 12,00',
  Contracts: 'Mietvertrag\nzwischen den Vertragsparteien\nKündigungsfrist drei Monate',
  'Bank statements': 'Kontoauszug 3/2025\nalter Kontostand 100,00\nneuer Kontostand 200,00',
  Tax: 'Finanzamt Musterstadt\nEinkommensteuer 2024\nSteuerbescheid',
  Insurance: 'Your insurance policy\nPolicy number 99\nPolicyholder: Ada',
  Payslips: 'Gehaltsabrechnung Mai\nBruttolohn 3000\nNettolohn 2000',
  Medical: 'Arztbrief\nPatient: Ada\nDiagnose: gesund',
  Travel: 'Boarding pass\nPassenger Ada\nFlight AB 123 departure 10:00',
  Manuals: 'User manual\nSafety instructions\nTroubleshooting',
  'Academic papers': 'A study of things\nAbstract\nRelated work and references. et al. doi 10.1',
  Resumes: 'Curriculum vitae\nWork experience\nSkills',
  Letters: 'Sehr geehrte Frau Byron,\nes ist schön.\nMit freundlichen Grüßen',
};

let count = 0;
/** A fresh directory with one PDF a category and the odd ones. */
function makeFolder(odd = true) {
  const dir = join(tmp, `pdfs ${++count}`);
  mkdirSync(dir);
  for (const [name, text] of Object.entries(TEXTS)) writeFileSync(join(dir, `x ${name}.pdf`), textPdf([text], { created: '20250301100000Z' }));
  if (!odd) return dir;
  writeFileSync(join(dir, 'empty.pdf'), '');
  writeFileSync(join(dir, 'broken.pdf'), textPdf([TEXTS.Tax]).subarray(0, 300));
  writeFileSync(join(dir, 'text.pdf'), 'just text, with the word invoice');
  writeFileSync(join(dir, 'blank.pdf'), textPdf(['']));
  writeFileSync(join(dir, 'none.pdf'), textPdf(['lorem ipsum dolor']));
  writeFileSync(join(dir, '-opw x.PDF'), textPdf([TEXTS.Invoices]));
  writeFileSync(join(dir, "a 'b' $(touch PWNED) \n;.pdf"), textPdf([TEXTS.Letters]));
  writeFileSync(join(dir, 'notes.txt'), 'invoice');
  mkdirSync(join(dir, 'folder.pdf'));
  mkdirSync(join(dir, 'sub'));
  writeFileSync(join(dir, 'sub', 'x Tax.pdf'), textPdf([TEXTS.Tax, 'a second page']));
  writeFileSync(join(tmp, 'outside.pdf'), textPdf([TEXTS.Tax]));
  symlinkSync(join(tmp, 'outside.pdf'), join(dir, 'link.pdf'));
  symlinkSync(tmp, join(dir, 'loop'));
  return dir;
}

if (!skip) {
  contractTests({ dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), base: { action: 'plan', directory: join(tmp, 'contract') } });
  mkdirSync(join(tmp, 'contract'));
  writeFileSync(join(tmp, 'contract', 'a.pdf'), textPdf([TEXTS.Tax]));
}

test('R118 plan finds each category and changes nothing', { skip }, async () => {
  const dir = makeFolder();
  const before = treeOf(dir);
  const text = await ok({ action: 'plan', directory: dir });
  assert.deepEqual(treeOf(dir), before);
  for (const name of Object.keys(TEXTS)) assert.ok(text.includes(`  x ${name}.pdf → ${name}/x ${name}.pdf (score `), `${name}:\n${text}`);
  assert.match(text, /^Plan only, nothing was changed: 15 of 20 PDF files would be moved/);
  assert.match(text, /-opw x\.PDF → Invoices\/-opw x\.PDF \(score \d+: invoice ×2 \(at the top\)/);
  assert.match(text, /Uncategorized, left in place \(2\):\n {2}blank\.pdf \(no text; try ocr: true\)\n {2}none\.pdf/);
  assert.match(text, /Unreadable, left in place \(3\):\n {2}broken\.pdf: damaged or no PDF[^\n]*\n {2}empty\.pdf: not a PDF file[^\n]*\n {2}text\.pdf: not a PDF/);
  assert.doesNotMatch(text, /link\.pdf|folder\.pdf|sub\//);
});

test('R118 apply then undo gives back the identical tree', { skip }, async () => {
  for (const extra of [{}, { recursive: true, rename: true }, { mode: 'copy' }, { target: join(tmp, 'new', 'target') }]) {
    const dir = makeFolder();
    const before = treeOf(dir);
    const text = await ok({ action: 'apply', directory: dir, ...extra });
    assert.match(text, /^1[56] of 2[01] PDF files (moved|copied)/);
    const undo = JSON.parse(/To undo: (\{.*\})/.exec(text)[1]);
    const target = extra.target ?? dir;
    assert.ok(existsSync(join(target, 'Travel')));
    assert.equal(existsSync(join(dir, 'x Travel.pdf')), extra.mode === 'copy');
    assert.match(await ok(undo), /^Undone: 1[56] files are back/);
    assert.deepEqual(treeOf(dir), before);
    assert.ok(!existsSync(join(tmp, 'new')));
  }
});

test('R118 a second run finds its files in place, a recursive one leaves the category folders alone', { skip }, async () => {
  const dir = makeFolder(false);
  await ok({ action: 'apply', directory: dir });
  const after = treeOf(dir);
  assert.match(await ok({ action: 'apply', directory: dir, recursive: true }), /^Nothing to do for 0 PDF files\./);
  assert.deepEqual(treeOf(dir), after);
  assert.match(await ok({ action: 'plan', directory: join(dir, 'Tax'), target: dir }), /In place already \(1\)/);
  const copies = makeFolder(false);
  await ok({ action: 'apply', directory: copies, mode: 'copy' });
  assert.match(await ok({ action: 'apply', directory: copies, mode: 'copy' }), /^Nothing to do for 13/);
});

test('nothing is overwritten: a name that is taken gets a number', { skip }, async () => {
  const dir = makeFolder();
  mkdirSync(join(dir, 'Tax'));
  writeFileSync(join(dir, 'Tax', 'x Tax.pdf'), 'mine');
  await ok({ action: 'apply', directory: dir, recursive: true });
  assert.equal(readFileSync(join(dir, 'Tax', 'x Tax.pdf'), 'utf8'), 'mine');
  assert.deepEqual(readdirSync(join(dir, 'Tax')).sort(), ['x Tax (2).pdf', 'x Tax (3).pdf', 'x Tax.pdf']);
});

test('R118 rename uses date, category and title; odd titles become plain names', { skip }, async () => {
  const dir = join(tmp, 'rename');
  mkdirSync(dir);
  writeFileSync(join(dir, 'a.pdf'), textPdf([TEXTS.Invoices], { title: '../../Etc: "pass|wd"', created: '20240229120000Z' }));
  writeFileSync(join(dir, 'b.pdf'), textPdf([TEXTS.Letters]));
  await ok({ action: 'apply', directory: dir, rename: true });
  assert.deepEqual(readdirSync(join(dir, 'Invoices')), ['2024-02-29_Invoices_Etc pass wd.pdf']);
  assert.match(readdirSync(join(dir, 'Letters'))[0], /^\d{4}-\d\d-\d\d_Letters_Sehr geehrte Frau Byron\.pdf$/);
});

test('R118 encrypted files: an owner password is no hindrance, a user password is', { skip: skip || missing('qpdf') }, async () => {
  const dir = join(tmp, 'encrypted');
  mkdirSync(dir);
  encryptPdf(join(dir, 'locked.pdf'), textPdf([TEXTS.Tax]), 'secret');
  encryptPdf(join(dir, 'owner.pdf'), textPdf([TEXTS.Tax]), '');
  const text = await ok({ action: 'apply', directory: dir });
  assert.match(text, /locked\.pdf: encrypted with a password/);
  assert.deepEqual(readdirSync(join(dir, 'Tax')), ['owner.pdf']);
  assert.ok(existsSync(join(dir, 'locked.pdf')));
});

const skipOcr = skip || missing('convert', 'tesseract', 'pdftoppm');
test('R118 a scan is read by OCR when asked', { skip: skipOcr }, async () => {
  const dir = join(tmp, 'scan');
  mkdirSync(dir);
  writeFileSync(join(dir, 'scan.pdf'), scannedPdf([scanOf(join(tmp, 'scan.jpg'), 'INVOICE 2025-17\n\nAmount due: 100 EUR')]));
  assert.match(await ok({ action: 'plan', directory: dir }), /0 of 1 PDF files/);
  assert.match(await ok({ action: 'plan', directory: dir, ocr: true }), /scan\.pdf → Invoices\/scan\.pdf/);
});

test('R51 R60 scan lists facts, reports progress, and saves the report', { skip }, async () => {
  const dir = join(tmp, 'facts');
  mkdirSync(dir);
  writeFileSync(join(dir, 'a.pdf'), textPdf(['one', 'two'], { title: 'A (title)', author: 'Jorge', created: '20250301100000Z' }));
  const updates = [];
  const text = await ok({ action: 'scan', directory: dir }, undefined, (partial) => updates.push(partial.content[0].text));
  assert.match(text, /a\.pdf: 2 pages, text, title "A \(title\)", author "Jorge", created 2025-03-01/);
  assert.ok(updates.length >= 2);
  const saved = await ok({ action: 'plan', directory: dir, output_path: 'report.json' });
  assert.match(saved, /1 items saved to .*report\.json/);
  assert.equal(JSON.parse(readFileSync(join(tmp, 'report.json'), 'utf8'))[0].title, 'A (title)');
});

test('R118 a run that is killed can be undone', { skip }, async () => {
  const dir = join(tmp, 'killed');
  mkdirSync(dir);
  for (let i = 0; i < 40; i++) writeFileSync(join(dir, `n${i}.pdf`), textPdf([`${TEXTS.Tax}\n${i}`]));
  const before = treeOf(dir);
  const code = `const { loadTool } = await import(${JSON.stringify(join(ROOT, 'tests/seed/fixtures/harness.mjs'))});
    const tool = await loadTool('${DIR}');
    const tell = (u) => { if (/^Moved/.test(u.content[0].text)) process.kill(process.pid, 'SIGKILL'); };
    await tool.execute('id', { action: 'apply', directory: ${JSON.stringify(dir)} }, undefined, tell);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' });
  const signal = await new Promise((settle) => child.on('close', (_, name) => settle(name)));
  assert.equal(signal, 'SIGKILL');
  assert.ok(existsSync(join(dir, 'Tax')));
  const journal = join(dir, '.pdf_categorizer', readdirSync(join(dir, '.pdf_categorizer'))[0]);
  appendFileSync(journal, '{"op":"move","from":"n39.pdf","to":"Tax/n3');
  assert.match(await ok({ action: 'undo', directory: dir }), /^Undone: \d+ files/);
  assert.deepEqual(treeOf(dir), before);
});

test('a run that is cancelled stops, says how far it came, and can be undone', { skip }, async () => {
  const dir = makeFolder(false);
  const before = treeOf(dir);
  const abort = new AbortController();
  const text = await err({ action: 'apply', directory: dir }, abort.signal, (u) => u.content[0].text.startsWith('Moved') && abort.abort());
  assert.match(text, /^Cancelled\. 1 of 13 PDF files moved/);
  await ok(JSON.parse(/To undo: (\{.*\})/.exec(text)[1]));
  assert.deepEqual(treeOf(dir), before);
});

test('undo leaves what was changed since, and says so', { skip }, async () => {
  const dir = makeFolder(false);
  await ok({ action: 'apply', directory: dir });
  writeFileSync(join(dir, 'Tax', 'x Tax.pdf'), 'edited');
  writeFileSync(join(dir, 'x Travel.pdf'), 'a new file in the old place');
  rmSync(join(dir, 'Letters', 'x Letters.pdf'));
  const text = await ok({ action: 'undo', directory: dir });
  assert.match(text, /^Undone: 10 files[\s\S]*3 steps were left as they are; the journal is kept/);
  assert.equal(readFileSync(join(dir, 'x Travel.pdf'), 'utf8'), 'a new file in the old place');
  assert.equal(readFileSync(join(dir, 'Tax', 'x Tax.pdf'), 'utf8'), 'edited');
});

test('a journal from elsewhere moves and deletes nothing outside, nor what no run made', { skip }, async () => {
  const dir = makeFolder(false);
  writeFileSync(join(tmp, 'victim.pdf'), 'victim');
  writeFileSync(join(dir, 'copy.pdf'), 'victim');
  symlinkSync(tmp, join(dir, 'out'));
  const before = treeOf(dir);
  const own = join(dir, '.pdf_categorizer');
  mkdirSync(own);
  const sha256 = execFileSync('sha256sum', [join(tmp, 'victim.pdf')], { encoding: 'utf8' }).slice(0, 64);
  const temporary = '.20250101T000000-abcdef-1.tmp';
  const deeds = [
    { op: 'move', from: 'new.pdf', to: '../victim.pdf', temporary, sha256 },
    { op: 'move', from: '../new.pdf', to: 'copy.pdf', temporary, sha256 },
    { op: 'move', from: 'new.pdf', to: 'out/victim.pdf', temporary, sha256 },
    { op: 'move', from: 'new.pdf', to: join(tmp, 'victim.pdf'), temporary, sha256 },
    { op: 'move', from: 'copy.pdf', to: 'copy.pdf', temporary, sha256 },
    { op: 'move', from: 'new.pdf', to: 'x.pdf', temporary: 'x Tax.pdf', sha256 },
    { op: 'mkdir', path: '../contract' }, { op: 'mkdir' }, { op: 'rm', to: 'copy.pdf', from: 'a', temporary },
    { op: 'move', from: null, to: 7, temporary: {}, sha256 },
  ];
  const header = { version: 1, id: 'x', directory: dir, target: dir, madeLevels: 99 };
  const write = (head) => writeFileSync(join(own, 'journal-x.json'), [head, ...deeds].map((line) => JSON.stringify(line)).join('\n'));
  write(header);
  assert.match(await ok({ action: 'undo', directory: dir }), /^Undone: 0 files[\s\S]*10 steps were left/);
  rmSync(own, { recursive: true });
  assert.deepEqual(treeOf(dir), before);
  assert.equal(readFileSync(join(tmp, 'victim.pdf'), 'utf8'), 'victim');
  mkdirSync(own);
  write({ ...header, directory: '/' });
  assert.match(await err({ action: 'undo', directory: dir }), /^This run sorted \/ into /);
  writeFileSync(join(own, 'journal-x.json'), 'nonsense');
  assert.match(await err({ action: 'undo', directory: dir }), /is not a journal/);
});

test('R118 rules of the user: used, checked field by field', { skip }, async () => {
  const dir = join(tmp, 'rules');
  mkdirSync(join(dir, '.pdf_categorizer'), { recursive: true });
  writeFileSync(join(dir, 'a.pdf'), textPdf(['Käse 12', 'x']));
  writeFileSync(join(dir, 'b.pdf'), textPdf(['Kase with ham']));
  writeFileSync(join(dir, 'c.pdf'), textPdf([`${'a'.repeat(60)}b`]));
  const path = join(dir, '.pdf_categorizer', 'rules.json');
  const rules = (...categories) => writeFileSync(path, JSON.stringify({ categories }));
  rules({ name: 'Cheese', folder: 'Käse & Co', keywords: { KASE: 1 }, regex: ['\\d{2}$'], exclude: ['ham'] }, { name: 'Slow', keywords: {}, regex: ['^(a+)+$'] });
  const text = await ok({ action: 'plan', directory: dir });
  assert.match(text, /a\.pdf → Käse & Co\/a\.pdf \(score \d+: kase ×1 \(at the top\)/);
  assert.match(text, /Note: the regular expression \/\^\(a\+\)\+\$\/ was too slow/);
  assert.match(text, /b\.pdf \(score 0\)/);
  assert.match(await ok({ action: 'rules', directory: dir }), /^2 valid categories/);
  const faults = [
    [{ keywords: {} }, /categories\[0\]\.name must be a text/],
    [{ name: 'a', keywords: { x: '3' } }, /categories\[0\]\.keywords\["x"\] must be a number/],
    [{ name: 'a', keywords: ['x'] }, /keywords must be an object/],
    [{ name: 'a', keywords: { '--': 1 } }, /word without letters/],
    [{ name: 'a', regex: ['('] }, /regex\[0\] is not a valid regular expression/],
    [{ name: 'a', exclude: 'x' }, /exclude must be a list of strings/],
    [{ name: 'a', keyword: {} }, /unknown field "keyword"/],
    ...['..', '../x', '/etc', 'a/b', 'a\\b', '.', '', ' a', 'a\0b', '.git', 'x'.repeat(300)].map((folder) => [{ name: 'a', folder }, /one plain folder name/]),
  ];
  for (const [category, message] of faults) {
    rules(category);
    assert.match(await err({ action: 'plan', directory: dir }), message);
  }
  writeFileSync(path, '{"categories": [}');
  assert.match(await err({ action: 'rules', directory: dir }), /is not valid JSON/);
  writeFileSync(path, '[]');
  assert.match(await err({ action: 'rules', directory: dir }), /must be an object with "categories"/);
  await ok({ action: 'rules', output_path: path });
  assert.match(await ok({ action: 'rules', rules_path: path }), /^13 valid categories/);
});

test('a category folder that is a link or a file is left alone', { skip }, async () => {
  const dir = makeFolder(false);
  const outside = join(tmp, 'outside');
  mkdirSync(outside);
  symlinkSync(outside, join(dir, 'Tax'));
  writeFileSync(join(dir, 'Travel'), 'a file');
  const text = await ok({ action: 'apply', directory: dir });
  assert.match(text, /^11 of 13 [\s\S]*Tax is a symbolic link[\s\S]*Travel is not a directory/);
  assert.deepEqual(readdirSync(outside), []);
  assert.ok(existsSync(join(dir, 'x Tax.pdf')) && existsSync(join(dir, 'x Travel.pdf')));
});

test('R57 missing and wrong parameters are named', { skip }, async () => {
  assert.match(await err({}), /^action parameter is required\. Available: scan, plan/);
  assert.match(await err({ action: 'sort' }), /^Unknown action: "sort"\. Available: scan, plan, apply, undo, rules\.$/);
  assert.match(await err({ action: 'plan' }), /^directory parameter is required/);
  assert.match(await err({ action: 'plan', directory: 'nope' }), /^directory not found: .*nope\.$/);
  assert.match(await err({ action: 'plan', directory: 'outside.pdf' }), /^directory is not a directory/);
  assert.match(await err({ action: 'undo', directory: '.' }), /^There is nothing to undo/);
  assert.match(await err({ action: 'plan', directory: '.', min_score: 'x' }), /^min_score must be a number from 0 to 1000/);
  assert.match(await err({ action: 'plan', directory: '.', rules_path: 'nope.json' }), /^rules file not found/);
});

test('R85 R86 without the programs the error says which', async () => {
  const text = await withEnv({ PATH: makePath(tmp) }, () => tool.err({ action: 'plan', directory: tmp }));
  assert.match(text, /^pdfinfo is required but not installed in the container\. \(Debian package: poppler-utils\)$/);
  await withEnv({}, () => tool.err({ action: 'plan' }), { keep: false });
});

const skipSecond = skip || (!existsSync('/dev/shm') && 'no /dev/shm, the second file system');
test('R118 moves across file systems are copies that were compared', { skip: skipSecond }, async (t) => {
  const dir = makeFolder(false);
  const target = join('/dev/shm', `pegfs-test-${process.pid}`);
  t.after(() => rmSync(target, { recursive: true, force: true }));
  const before = treeOf(dir);
  await ok({ action: 'apply', directory: dir, target });
  assert.deepEqual(readdirSync(dir), []);
  assert.equal(readdirSync(target).length, 14);
  await ok({ action: 'undo', directory: dir, target });
  assert.deepEqual(treeOf(dir), before);
  assert.ok(!existsSync(target));
});
