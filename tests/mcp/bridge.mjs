// The conformance suite speaks HTTP to servers, `pegfs mcp` is a stdio server: this carries messages
// from one to the other and changes nothing in them but the ids of requests without a session.
//
//     node bridge.mjs PROGRAM ARGUMENT...     prints its URL; ends with its standard input
//
// Sessions (up to 2025-11-25) are carried by the official SDK's transports, each with a server process of
// its own. Requests without one (2026-07-28) share a process, as several clients of a machine might.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const [program, ...args] = process.argv.slice(2);
const META = 'io.modelcontextprotocol/';
const VERSION = META + 'protocolVersion';
const SESSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'];
const sessions = new Map();

// ---- sessions

async function openSession() {
    const stdio = new StdioClientTransport({ command: program, args, env: process.env });
    const http = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, http),
    });
    const tokens = new Map(); // of progress -> the request that gave it
    const open = [];          // requests that wait for an answer
    http.onmessage = (message) => {
        if (message.method && message.id !== undefined) open.push(message.id);
        if (message.params?._meta?.progressToken !== undefined) tokens.set(message.params._meta.progressToken, message.id);
        stdio.send(message);
    };
    stdio.onmessage = (message) => {
        if (!message.method && open.includes(message.id)) open.splice(open.indexOf(message.id), 1);
        // What belongs to a request goes to where its answer goes; stdio does not say of messages whose they are.
        const owner = message.method === 'notifications/progress' ? tokens.get(message.params.progressToken)
            : message.method === 'notifications/message' ? open.at(-1) : undefined;
        // Whoever has left is told nothing.
        http.send(message, owner === undefined ? undefined : { relatedRequestId: owner }).catch(() => {});
    };
    http.onclose = () => { sessions.delete(http.sessionId); stdio.close(); };
    await http.start();
    await stdio.start();
    return http;
}

// ---- requests without a session

let child;
let lastId = 0;
const waiting = new Map(); // id here -> { id there, token, reply, streams }

function start() {
    child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: child.stdout }).on('line', (line) => deliver(JSON.parse(line)));
}

function stream(request, message) {
    if (!request.reply.headersSent) request.reply.writeHead(200, { 'content-type': 'text/event-stream' });
    request.reply.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

const STATUS = { '-32601': 404, '-32602': 400, '-32022': 400, '-32600': 400, '-32700': 400 };

function answer(request, message) {
    message.id = request.id;
    const meta = message.result?._meta;
    if (meta?.[META + 'subscriptionId'] !== undefined) meta[META + 'subscriptionId'] = request.id;
    if (request.reply.headersSent) {
        stream(request, message);
        request.reply.end();
        return;
    }
    const isOfTheRequest = message.error && !/^there is no tool|cursor/.test(message.error.message);
    request.reply.writeHead(isOfTheRequest ? STATUS[message.error.code] ?? 500 : 200, { 'content-type': 'application/json' });
    request.reply.end(JSON.stringify(message));
}

// Whose a notification is: its subscription's, its token's, or, as stdio does not say it, the newest's.
function ownerOf({ params }) {
    const subscription = params?._meta?.[META + 'subscriptionId'];
    if (subscription !== undefined) return waiting.get(subscription);
    const open = [...waiting.values()];
    const token = params?.progressToken;
    return token === undefined ? open.filter((request) => request.logs).at(-1)
        : open.find((request) => request.token === token);
}

function deliver(message) {
    if (!message.method) {
        const request = waiting.get(message.id);
        waiting.delete(message.id);
        if (request) answer(request, message);
        return;
    }
    const request = ownerOf(message);
    if (!request) return;
    const meta = message.params?._meta;
    if (meta?.[META + 'subscriptionId'] !== undefined) meta[META + 'subscriptionId'] = request.id;
    stream(request, message);
}

function forward(body, reply) {
    const here = ++lastId;
    const meta = body.params?._meta ?? {};
    if (body.id === undefined) {
        child.stdin.write(JSON.stringify(body) + '\n');
        reply.writeHead(202).end();
        return;
    }
    waiting.set(here, { id: body.id, token: meta.progressToken, logs: meta[META + 'logLevel'], reply });
    reply.on('close', () => {
        if (waiting.delete(here))
            child.stdin.write(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: here } }) + '\n');
    });
    child.stdin.write(JSON.stringify({ ...body, id: here }) + '\n');
}

// ---- HTTP

function refuse(reply, status, id, code, message) {
    reply.writeHead(status, { 'content-type': 'application/json' });
    reply.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }));
}

// The headers must say what the body says (specification 2026-07-28, "Streamable HTTP").
function mismatch(headers, body) {
    const { method, params } = body;
    if (method && headers['mcp-method'] !== method) return 'Mcp-Method';
    if (method === 'tools/call' && headers['mcp-name'] !== params?.name) return 'Mcp-Name';
    const version = params?._meta?.[VERSION];
    return version !== undefined && headers['mcp-protocol-version'] !== version ? 'MCP-Protocol-Version' : undefined;
}

async function serve(request, reply) {
    let text = '';
    for await (const part of request) text += part;
    let body;
    try {
        body = text ? JSON.parse(text) : undefined;
    } catch {
        return refuse(reply, 400, undefined, -32700, 'no JSON');
    }
    const session = sessions.get(request.headers['mcp-session-id']);
    const isOpening = body?.method === 'initialize' && body.params?._meta?.[VERSION] === undefined;
    if (session || isOpening)
        return (session ?? await openSession()).handleRequest(request, reply, body);
    if (request.headers['mcp-session-id']) return refuse(reply, 404, body?.id, -32600, 'no such session');
    if (request.method !== 'POST') return reply.writeHead(405).end();
    const version = request.headers['mcp-protocol-version'];
    const wrong = SESSIONS.includes(version) ? undefined : mismatch(request.headers, body);
    if (wrong) return refuse(reply, 400, body.id, -32020, `${wrong} is missing or does not match the body`);
    return forward(body, reply);
}

const isLocal = (host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host ?? '');

const server = createServer((request, reply) => {
    const origin = request.headers.origin;
    if (!isLocal(request.headers.host) || (origin && !isLocal(origin.replace(/^https?:\/\//, ''))))
        return reply.writeHead(403).end();
    return serve(request, reply).catch((error) => {
        console.error(error);
        if (!reply.headersSent) reply.writeHead(500);
        reply.end();
    });
});

start();
server.listen(0, '127.0.0.1', () => console.log(`http://localhost:${server.address().port}/mcp`));
process.stdin.resume().on('end', () => {
    child.stdin.end();
    for (const http of sessions.values()) http.close();
    setTimeout(() => process.exit(0), 200);
});
