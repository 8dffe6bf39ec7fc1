// browser against a real Chromium without a window, behind a stand-in for the Browser Relay. Where
// Chromium is missing, what needs it is skipped; the relay's refusals are tested all the same.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startChrome, startRelay } from './fixtures/chrome.mjs';
import { contractTests } from './fixtures/contract.mjs';
import { caller, loadTool, makeTempDir, missing, withEnv } from './fixtures/harness.mjs';
import { noMount, startMount } from './fixtures/mount.mjs';
import { freePort, listener, startServer } from './fixtures/standin.mjs';

const DIR = 'seed/tools/browser';
const TOKEN = 'relay-token-for-tests';
const skip = missing('chromium');
const tmp = makeTempDir();
const home = join(tmp, 'home');
mkdirSync(home);
const tool = caller(await loadTool(DIR));
const chrome = skip ? undefined : await startChrome(tmp);
const relay = await startRelay(chrome, TOKEN);
const bare = await startRelay(undefined, TOKEN);

const PAGES = {
  '/form': `<title>Form</title><h1>Order</h1><p>Choose <a href="/next">Next page</a> <a href="/other" target="_blank">New tab</a></p>
    <form action="/got"><label>Name <input name="name" value="old"></label> <label>Notes <textarea name="notes">a</textarea></label>
    <label>Land <select name="land" onchange="document.title='land ' + this.value"><option value="at">Austria</option><option value="de">Germany</option><option value="no" disabled>Norway</option></select></label>
    <label>Day <input type="date" name="day"></label> <label><input type="checkbox" name="ok"> Agreed</label> <input type="file" id="file"><input id="fixed" readonly value="x"><button>Send</button></form>
    <div contenteditable id="rich" role="textbox" aria-label="Rich">rich</div>`,
  '/far': `<title>Far</title><div style="height:4000px">top</div><button onclick="document.title='clicked far'">Far below</button>
    <button style="display:none" id="ghost" onclick="document.title='ghost'">Ghost</button>
    <iframe src="/frame" style="margin:40px"></iframe><div tabindex="0" onclick="document.title='div'">Clickable</div>
    <div style="position:relative"><button id="under">Under</button><div id="veil" style="position:absolute;inset:0"></div></div>`,
  '/frame': `<button onclick="parent.document.title='from the frame'">In the frame</button>`,
  '/dialogs': `<title>Dialogs</title><button onclick="document.title = 'said ' + confirm('Really?')">Ask</button><button onclick="document.title = 'got ' + prompt('Name?')">Prompt</button>`,
  '/later': `<title>Later</title><p>Start</p><script>setTimeout(() => { document.body.innerHTML += '<p id=x>It is   there</p>'; }, 300)</script>`,
  '/next': '<title>Next</title><p>The next page</p>',
  '/other': '<title>Other</title><p>Another tab</p>',
};
let hold;
const server = await startServer(async ({ path }) => {
  if (path === '/slow') await new Promise((settle) => { hold = settle; });
  return { status: path in PAGES || ['/got', '/slow'].includes(path) ? 200 : 404, body: PAGES[path] ?? `<title>${path.slice(1)}</title>${path}`, headers: { 'content-type': 'text/html; charset=utf-8' } };
});
const at = (path) => `${server.url}${path}`;

const settings = (more = {}) => ({ OFFICER_BROWSER_RELAY_PORT: String(relay.port), OFFICER_BROWSER_RELAY_TOKEN: TOKEN, OFFICER_RESOURCES: '', OFFICER_USER_ROOT: home, HOME: home, ...more });
const ok = (params, ...rest) => withEnv(settings(), () => tool.ok(params, ...rest));
const err = (params, ...rest) => withEnv(settings(), () => tool.err(params, ...rest));
const errWith = (more, params = { action: 'tabs' }) => withEnv(settings(more), () => tool.err(params));

/** A new tab with a page in it: calls in that tab. */
async function openPage(path) {
  const text = await ok({ action: 'open', url: at(path) });
  const [, tab] = /^tab (\w+)$/m.exec(text);
  const inTab = { ok: (params, ...rest) => ok({ tab, ...params }, ...rest), err: (params, ...rest) => err({ tab, ...params }, ...rest) };
  /** The ref that a snapshot has for something, such as 'button "Send"'. */
  const ref = async (what) => {
    const shot = await inTab.ok({ action: 'snapshot' });
    const line = shot.split('\n').find((candidate) => candidate.includes(what) && candidate.includes('[e'));
    assert.ok(line, `no ${what} in:\n${shot}`);
    return /\[(e\d+)\]/.exec(line)[1];
  };
  const value = async (expression) => inTab.ok({ action: 'evaluate', expression });
  return { tab, text, ref, value, ...inTab, close: () => inTab.ok({ action: 'close' }) };
}

contractTests({
  dir: DIR, load: () => loadTool(DIR), cwd: join(tmp, 'fuzz'), base: { action: 'status' },
  env: { OFFICER_BROWSER_RELAY_PORT: String(bare.port), OFFICER_BROWSER_RELAY_TOKEN: 'wrong' },
});

// ---- the relay: configuration, token, refusals --------------------------------------------------

test('R56 R79 without a port the error says what to do', async () => {
  const unset = 'Browser Relay is not configured. Ask the user to set it up in Settings → Integrations.';
  for (const OFFICER_RESOURCES of ['', '{}', 'no json', '[]', '{"browser-relay": 7}', '{"browser-relay": {"port": ""}}']) assert.equal(await errWith({ OFFICER_BROWSER_RELAY_PORT: '', OFFICER_RESOURCES }), unset);
  assert.equal(await withEnv({}, () => tool.err({ action: 'tabs' }), { keep: false }), unset);
  for (const port of ['0', '65536', '-1', '1e3', 'x', '80 81']) assert.match(await errWith({ OFFICER_BROWSER_RELAY_PORT: port }), /^The port of the Browser Relay is no port number/);
});

test('R57 an unknown action, and what each action cannot do without', async () => {
  assert.match(await err({ action: 'fly' }), /^Unknown action: "fly"\. Available: status, tabs, open, /);
  assert.match(await err({}), /^action parameter is required\. Available: status/);
  for (const [action, name] of [['open', 'url'], ['navigate', 'url'], ['type', 'text'], ['press', 'text'], ['select', 'text'], ['evaluate', 'expression'], ['screenshot', 'output_path'], ['pdf', 'output_path']]) assert.equal(await err({ action }), `${name} parameter is required for ${action} action.`);
  for (const action of ['click', 'type', 'select']) assert.match(await err({ action, text: 'x' }), new RegExp(`^ref or selector parameter is required for ${action} action`));
  assert.match(await err({ action: 'click', ref: '12' }), /^ref must be an element of the last snapshot, such as e12/);
  for (const url of ['file:///etc/passwd', 'chrome://settings', 'javascript:alert(1)', 'example.org', 'data:text/html,x']) assert.match(await err({ action: 'open', url }), /cannot be opened: give a whole http or https address/);
});

test('nobody answers, or somebody who is no relay', async () => {
  const port = await freePort();
  assert.equal(await errWith({ OFFICER_BROWSER_RELAY_PORT: String(port) }), `Cannot reach the Browser Relay at 127.0.0.1:${port} (ECONNREFUSED). Is the Browser Relay running on port ${port}? Ask the user to start it.`);
  assert.match(await errWith({ OFFICER_BROWSER_RELAY_PORT: String(server.port) }), /is no Browser Relay \(status 404\)/);
  assert.match(await errWith({ OFFICER_RESOURCES: '{"browser-relay": {"host": "nowhere.invalid"}}' }), /^Cannot find the host of the Browser Relay, nowhere\.invalid \((ENOTFOUND|EAI_AGAIN)\)/);
  const odd = createServer((_request, response) => response.end('{"webSocketDebuggerUrl": "ws://169.254.169.254:1/x"}')).listen(0, '127.0.0.1');
  await once(odd, 'listening');
  after(() => odd.close());
  odd.on('upgrade', (request, socket) => socket.end(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${request.url}\r\n\r\n`));
  assert.match(await errWith({ OFFICER_BROWSER_RELAY_PORT: String(odd.address().port) }), /does not speak WebSocket as it should/);
});

test('R58 the token: parameter, variable, resource; as it is, derived, in the address', async () => {
  const first = () => bare.state.requests.at(-1).headers['x-openclaw-relay-token'];
  bare.state.connected = false;
  const at = (more) => ({ OFFICER_BROWSER_RELAY_PORT: String(bare.port), ...more });
  await withEnv(settings(at({ OFFICER_BROWSER_RELAY_TOKEN: 'of-the-variable' })), () => tool.ok({ action: 'status', relay_token: TOKEN }));
  assert.equal(first(), TOKEN);
  const OFFICER_RESOURCES = JSON.stringify({ 'browser-relay': { token: TOKEN, host: 'localhost' } });
  await withEnv(settings(at({ OFFICER_BROWSER_RELAY_TOKEN: '', OFFICER_RESOURCES })), () => tool.ok({ action: 'status' }));
  assert.equal(first(), TOKEN);
  for (const proof of ['derived', 'query']) {
    bare.state.proof = proof;
    await withEnv(settings(at({})), () => tool.ok({ action: 'status' }));
  }
  bare.state.proof = 'plain';
  const text = await errWith(at({ OFFICER_BROWSER_RELAY_TOKEN: 'not-the-right-one' }));
  assert.equal(text, 'The Browser Relay rejected the token. Ask the user to check it in Settings → Integrations.');
  assert.match(await errWith(at({ OFFICER_BROWSER_RELAY_TOKEN: '' })), /^The Browser Relay wants a token and none is configured/);
  assert.match(await errWith(at({ OFFICER_BROWSER_RELAY_TOKEN: 'a b' })), /is not a valid token/);
});

test('no browser is connected: told by status, an error for the rest', async () => {
  const port = { OFFICER_BROWSER_RELAY_PORT: String(bare.port) };
  bare.state.connected = false;
  const why = "No browser is connected to the Browser Relay. Ask the user to open Chrome and click the Browser Relay extension's icon on a tab.";
  assert.equal(await errWith(port), why);
  assert.equal(await withEnv(settings(port), () => tool.ok({ action: 'status' })), `The Browser Relay answers at 127.0.0.1:${bare.port}.\n${why}`);
  Object.assign(bare.state, { connected: true, refusesSockets: true });
  assert.equal(await errWith(port), why);
  bare.state.refusesSockets = false;
});

test('the connection ends amid a command: the reason is told', async () => {
  const port = { OFFICER_BROWSER_RELAY_PORT: String(bare.port) };
  bare.state.onCommand = (_message, socket) => new Promise(() => {
    socket.write(Buffer.concat([Buffer.from([0x88, 2 + 22]), Buffer.from([0x03, 0xf3]), Buffer.from('extension disconnected')]));
  });
  assert.match(await errWith(port), /^The browser was disconnected from the Browser Relay \(1011 extension disconnected\)\. Ask the user to open Chrome/);
  bare.state.onCommand = (_message, socket) => new Promise(() => { socket.destroy(); });
  assert.match(await errWith(port), /^The connection to the browser ended \(1006\)/);
  bare.state.onCommand = () => new Promise(() => {});
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 100);
  const started = Date.now();
  assert.equal(await withEnv(settings(port), () => tool.err({ action: 'tabs' }, abort.signal)), 'Cancelled.');
  assert.ok(Date.now() - started < 2_000);
  bare.state.onCommand = (_message, socket) => new Promise(() => { socket.write(Buffer.from([0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0])); });
  assert.match(await errWith(port), /more than 256 MiB/);
});

// ---- the real browser -----------------------------------------------------------------------------

test('R113 status, open, tabs, focus and close', { skip }, async () => {
  assert.match(await ok({ action: 'status' }), /^The Browser Relay answers at .*\nThe browser is connected \(Chrome\/[\d.]+\); tabs: \d+\.$/);
  assert.equal(relay.state.lastPong, 'hi');
  const { texts, onUpdate } = listener();
  const text = await ok({ action: 'open', url: at('/next') }, undefined, onUpdate);
  const [, tab] = /^Next\nhttp:\/\/127\.0\.0\.1:\d+\/next\ntab (\w+)\nThis is a new tab/.exec(text);
  assert.match(texts[0], /^Opening http/);
  assert.match(await ok({ action: 'tabs' }), new RegExp(`\\d\\. Next\n {3}${at('/next')}\n {3}tab ${tab}`));
  assert.match(await ok({ action: 'focus', tab: tab.slice(0, 10).toLowerCase() }), /^Brought to the front: Next/);
  assert.match(await err({ action: 'close' }), /^tab parameter is required for close action\. Tabs:\n1\. /);
  assert.match(await ok({ action: 'close', tab }), /^Closed the tab "Next"/);
  assert.match(await err({ action: 'text', tab }), new RegExp(`^There is no tab "${tab}"\\. Tabs:\n1\\. `));
});

test('R113 navigate, back, forward, reload, and what cannot be opened', { skip }, async () => {
  const page = await openPage('/form');
  assert.match(await page.ok({ action: 'navigate', url: at('/next') }), /^Next\n/);
  assert.match(await page.ok({ action: 'back' }), /^Form\n/);
  assert.match(await page.ok({ action: 'forward' }), /^Next\n/);
  assert.match(await page.ok({ action: 'reload' }), /^Next\n/);
  assert.match(await page.err({ action: 'forward' }), /^There is no page to go forward to/);
  assert.match(await page.ok({ action: 'navigate', url: at('/next#there') }), /#there/);
  assert.match(await page.ok({ action: 'navigate', url: at('/missing') }), /The server answered with status 404\.$/);
  assert.match(await page.err({ action: 'navigate', url: `http://127.0.0.1:${await freePort()}/` }), /could not be opened: net::ERR_CONNECTION_REFUSED\. Nothing answers there\.$/);
  assert.match(await page.err({ action: 'navigate', url: 'http://nowhere.invalid/' }), /could not be opened: net::ERR_(NAME_NOT_RESOLVED|INTERNET_DISCONNECTED)/);
  // The page comes at once; a picture in it never does.
  const late = page.ok({ action: 'evaluate', expression: 'document.title' });
  assert.ok(await late);
  await page.close();
});

test('R113 snapshot, then type, select and click by ref, then send the form', { skip }, async () => {
  const page = await openPage('/form');
  const shot = await page.ok({ action: 'snapshot' });
  assert.match(shot, /- heading "Order" \(level 1\)\n/);
  assert.match(shot, /- link "Next page" \[e\d+\] → http:\/\/127\.0\.0\.1:\d+\/next\n/);
  assert.match(shot, /- textbox "Name" \[e\d+\] \(value "old"\)\n/);
  const name = /textbox "Name" \[(e\d+)\]/.exec(shot)[1];
  assert.match(await page.ok({ action: 'type', ref: name, text: 'Grüße 😀 "x"' }), new RegExp(`^Typed 12 characters into ${name} \\(text\\)\\.\nForm\n`));
  await page.ok({ action: 'type', ref: await page.ref('textbox "Notes"'), text: ' b', clear: false });
  assert.equal(await page.value("[document.forms[0].name, document.forms[0].notes.value, document.querySelector('[name=name]').value].slice(1).join('|')"), 'a b|Grüße 😀 "x"');
  assert.match(await page.ok({ action: 'select', selector: 'select', text: 'Germany' }), /^Selected "Germany" in select\.\nland de\n/);
  assert.match(await page.err({ action: 'select', selector: 'select', text: 'France' }), /has no option "France"; it has: Austria, Germany, Norway\.$/);
  assert.match(await page.err({ action: 'select', selector: 'select', text: 'no' }), /it is disabled/);
  assert.match(await page.err({ action: 'select', selector: 'h1', text: 'x' }), /is no list of options but a h1/);
  assert.match(await page.ok({ action: 'type', selector: '[name=day]', text: '2025-03-31' }), /^Set \[name=day\] \(date\) to "2025-03-31"/);
  assert.match(await page.err({ action: 'type', selector: '[name=day]', text: 'tomorrow' }), /does not take "tomorrow"/);
  await page.ok({ action: 'click', ref: await page.ref('checkbox "Agreed"') });
  assert.equal(await page.value('document.forms[0].ok.checked'), 'true');
  await page.ok({ action: 'type', ref: await page.ref('textbox "Rich"'), text: 'er', clear: false });
  assert.equal(await page.value("document.querySelector('#rich').innerText"), 'richer');
  assert.match(await page.err({ action: 'type', selector: '#file', text: '/etc/passwd' }), /^Files cannot be uploaded/);
  assert.match(await page.err({ action: 'type', selector: '#fixed', text: 'x' }), /is readonly/);
  assert.match(await page.err({ action: 'type', selector: 'h1', text: 'x' }), /cannot be typed into/);
  assert.match(await page.err({ action: 'type', selector: 'select', text: 'x' }), /Use action select/);
  await page.ok({ action: 'type', selector: '[name=notes]', text: '' });
  assert.match(await page.ok({ action: 'type', ref: name, text: 'Ann', submit: true }), /Pressed Enter\.\ngot\nhttp:\/\/127\.0\.0\.1:\d+\/got\?name=Ann&notes=&land=de&day=2025-03-31&ok=on/);
  assert.match(await page.err({ action: 'click', ref: name }), new RegExp(`^There is no element ${name} in the page \\(any more\\)\\. Take a new snapshot\\.$`));
  await page.close();
});

test('R113 click: far below, in a frame, unseen, covered, and what opens a new tab', { skip }, async () => {
  const page = await openPage('/far');
  const far = await page.ref('button "Far below"');
  assert.match(await page.ok({ action: 'click', ref: far }), /^Clicked e\d+ \(button "Far below"\)\.\nclicked far\n/);
  assert.match(await page.ok({ action: 'click', ref: await page.ref('button "In the frame"') }), /\nfrom the frame\n/);
  assert.match(await page.ok({ action: 'click', ref: await page.ref('Clickable') }), /\ndiv\n/);
  assert.match(await page.ok({ action: 'click', selector: '#ghost' }), /which is not visible, by script\.\nghost\n/);
  assert.match(await page.ok({ action: 'click', selector: '#under' }), /Something lies over it there and got the click: div#veil/);
  assert.match(await page.err({ action: 'click', selector: '#none' }), /^No element matches the selector "#none"/);
  assert.match(await page.err({ action: 'click', selector: '#[' }), /is no valid CSS selector/);
  assert.match(await page.err({ action: 'click', ref: 'e999999' }), /^There is no element e999999/);
  assert.match(await page.ok({ action: 'scroll', text: 'top' }), /^The window shows 0 to \d+ of \d+ pixels\.\n/);
  assert.match(await page.ok({ action: 'scroll', text: '250' }), /^The window shows 250 to /);
  assert.match(await page.ok({ action: 'scroll', ref: far }), /^The window shows [1-9]\d{3} to /);
  assert.match(await page.err({ action: 'scroll', text: 'sideways' }), /^Unknown way to scroll: "sideways"\. Available: down, up/);
  await page.ok({ action: 'navigate', url: at('/form') });
  const opened = await page.ok({ action: 'click', ref: await page.ref('link "New tab"') });
  const [, other] = /A new tab was opened:\n1\. .*\n.*\n {3}tab (\w+)$/.exec(opened);
  assert.match(await page.ok({ action: 'click', ref: await page.ref('link "Next page"') }), /\nNext\nhttp:\/\/127\.0\.0\.1:\d+\/next\n/);
  await ok({ action: 'close', tab: other });
  await page.close();
});

test('R113 a dialog is reported, keeps the tab from answering, and is answered', { skip }, async () => {
  const page = await openPage('/dialogs');
  const [ask, prompt] = [await page.ref('button "Ask"'), await page.ref('button "Prompt"')];
  assert.match(await page.ok({ action: 'click', ref: ask }), /^A dialog is open: confirm "Really\?"\. Answer it with action dialog \(accept true or false\)\.\nDialogs\n/);
  assert.match(await page.err({ action: 'text', timeout_seconds: 1 }), /^The tab does not answer\. Most likely a dialog is open in it: answer it with action dialog\./);
  assert.match(await page.ok({ action: 'dialog', accept: false }), /^Dismissed the dialog\.\n/);
  assert.equal(await page.value('document.title'), 'said false');
  assert.match(await page.ok({ action: 'click', ref: prompt }), /prompt "Name\?".*text is what to enter/);
  await page.ok({ action: 'dialog', text: 'Ann' });
  assert.equal(await page.value('document.title'), 'got Ann');
  assert.match(await page.err({ action: 'dialog' }), /^No dialog is open in this tab/);
  assert.match(await page.err({ action: 'evaluate', expression: "alert('now')" }), /^A dialog is open: alert "now"/);
  await page.ok({ action: 'dialog' });
  await page.close();
});

test('R113 evaluate: values, promises, failures, and 3 MB in one frame or in many', { skip }, async () => {
  const page = await openPage('/next');
  assert.equal(await page.value('1 + 1'), '2');
  assert.equal(await page.value('({ a: [1, "ü"] })'), '{\n  "a": [\n    1,\n    "ü"\n  ]\n}');
  assert.equal(await page.value('fetch("/next").then((r) => r.status)'), '200');
  assert.equal(await page.value('const r = await fetch("/missing"); r.status'), '404');
  assert.deepEqual([await page.value('undefined'), await page.value('null'), await page.value('0 / 0'), await page.value('2n')], ['undefined', 'null', 'NaN', '2n']);
  assert.match(await page.err({ action: 'evaluate', expression: 'nothing.here' }), /^The expression failed: ReferenceError: nothing is not defined/);
  assert.match(await page.err({ action: 'evaluate', expression: 'Promise.reject(new Error("no"))' }), /^The expression failed: Error: no/);
  assert.match(await page.err({ action: 'evaluate', expression: '(' }), /SyntaxError/);
  const large = '"ü".repeat(1.5e6)';
  assert.match(await page.ok({ action: 'evaluate', expression: large }), /… truncated \(1450000 more characters\)/);
  relay.state.parts = 7;
  assert.match(await page.ok({ action: 'evaluate', expression: large, output_path: 'x/-value.txt' }), /^1500000 characters saved to .*\/home\/x\/-value\.txt \(3000001 bytes\)\.$/);
  relay.state.parts = 1;
  assert.equal(readFileSync(join(home, 'x/-value.txt'), 'utf8'), `${'ü'.repeat(1.5e6)}\n`);
  assert.equal(await page.ok({ action: 'evaluate', expression: `"${'x'.repeat(200_000)}".length` }), '200000');
  assert.match(await page.err({ action: 'evaluate', expression: 'new Promise(() => {})', timeout_seconds: 2 }), /^The browser did not answer Runtime\.evaluate within 2 seconds/);
  await page.close();
});

test('R113 text, wait and press', { skip }, async () => {
  const page = await openPage('/later');
  assert.match(await page.ok({ action: 'wait', text: 'It is there' }), /^Waited [\d.]+ seconds for the text "It is there"\.\nLater\n/);
  await page.ok({ action: 'wait', selector: '#x' });
  await page.ok({ action: 'wait' });
  assert.match(await page.err({ action: 'wait', text: 'never', timeout_seconds: 1 }), /^Waited 1 seconds for the text "never"; it did not come/);
  assert.match(await page.err({ action: 'wait', selector: '#[' }), /is no valid CSS selector/);
  assert.match(await page.ok({ action: 'text' }), /^Later\nhttp.*\ntab \w+\n\nStart\n\nIt is there$/);
  assert.match(await page.ok({ action: 'text', selector: '#x' }), /\n\nIt is there$/);
  await page.ok({ action: 'navigate', url: at('/form') });
  const name = await page.ref('textbox "Name"');
  await page.ok({ action: 'press', ref: name, text: 'Control+a' });
  await page.ok({ action: 'press', text: 'Z' });
  await page.ok({ action: 'press', text: '+' });
  await page.ok({ action: 'press', text: 'Shift+ArrowLeft' });
  await page.ok({ action: 'press', text: 'Delete' });
  assert.equal(await page.value("document.querySelector('[name=name]').value"), 'Z');
  assert.match(await page.err({ action: 'press', text: 'Hyper+x' }), /^"Hyper\+x" is no key\./);
  await page.close();
});

test('R113 screenshot and pdf: of the window, the whole page, an element', { skip }, async () => {
  const page = await openPage('/far');
  const pngSize = (name) => {
    const file = readFileSync(join(home, name));
    assert.equal(file.subarray(0, 8).toString('hex'), '89504e470d0a1a0a');
    return [file.readUInt32BE(16), file.readUInt32BE(20)];
  };
  assert.match(await page.ok({ action: 'screenshot', output_path: 'shot.png' }), /^Screenshot \(png\) saved to .*\/home\/shot\.png \(\d+ bytes\)\.\nFar\n/);
  await page.ok({ action: 'screenshot', output_path: 'full.png', full_page: true });
  assert.ok(pngSize('full.png')[1] > 4_000 && pngSize('full.png')[1] > pngSize('shot.png')[1]);
  await page.ok({ action: 'screenshot', output_path: 'part.png', selector: 'button' });
  assert.ok(pngSize('part.png')[1] < 100);
  await page.ok({ action: 'screenshot', output_path: 'shot.jpg' });
  assert.equal(readFileSync(join(home, 'shot.jpg')).subarray(0, 3).toString('hex'), 'ffd8ff');
  assert.match(await page.err({ action: 'screenshot', output_path: '.' }), /is a directory; name a file in it/);
  assert.match(await page.ok({ action: 'pdf', output_path: 'page.pdf' }), /^PDF saved to /);
  assert.equal(readFileSync(join(home, 'page.pdf')).toString('latin1', 0, 5), '%PDF-');
  assert.match(await page.ok({ action: 'snapshot', output_path: 'snap.txt' }), /^\d+ lines saved to .*snap\.txt/);
  assert.deepEqual(readdirSync(home).filter((name) => name.startsWith('.saving')), []);
  await page.close();
});

test('R113 a page that does not come in time, a tab that goes away', { skip }, async () => {
  const page = await openPage('/next');
  const { texts, onUpdate } = listener();
  const slow = page.ok({ action: 'evaluate', expression: `document.body.append(Object.assign(new Image(), { src: '${at('/slow')}' })); 'started'` }, undefined, onUpdate);
  assert.equal(await slow, 'started');
  assert.deepEqual(texts, []);
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 300);
  assert.equal(await page.err({ action: 'wait', text: 'never' }, abort.signal), 'Cancelled.');
  relay.state.onCommand = async ({ method }) => {
    if (method !== 'Accessibility.enable') return;
    relay.state.onCommand = () => {};
    await ok({ action: 'close', tab: page.tab });
  };
  assert.match(await page.err({ action: 'snapshot' }), /^The tab was closed|Session with given id not found/);
  relay.state.onCommand = () => {};
  hold?.();
});

test('R113 the same works with Chromium itself, without a relay or token', { skip }, async () => {
  const own = { OFFICER_BROWSER_RELAY_PORT: String(chrome.port), OFFICER_BROWSER_RELAY_TOKEN: '', OFFICER_RESOURCES: '{"browser-relay": {"host": "localhost"}}' };
  const text = await withEnv(settings(own), () => tool.ok({ action: 'open', url: at('/next') }));
  const [, tab] = /^tab (\w+)$/m.exec(text);
  assert.match(await withEnv(settings(own), () => tool.ok({ action: 'text', tab })), /The next page$/);
  await withEnv(settings(own), () => tool.ok({ action: 'close', tab }));
});

test('R113 browser through a real mount, and its token in no answer', { skip: skip || noMount }, async () => {
  const mount = await startMount([DIR], { OFFICER_BROWSER_RELAY_PORT: String(relay.port), OFFICER_BROWSER_RELAY_TOKEN: TOKEN, OFFICER_USER_ROOT: home });
  const { status, text } = await mount.call('browser', { action: 'open', url: at('/next') });
  assert.equal(status, 0, text);
  assert.match(text, /^Next\n/);
  const refused = await mount.call('browser', { action: 'tabs', relay_token: 'some-wrong-token' });
  assert.notEqual(refused.status, 0);
  assert.match(refused.text, /rejected the token/);
  assert.doesNotMatch(refused.text, /some-wrong-token/);
});
