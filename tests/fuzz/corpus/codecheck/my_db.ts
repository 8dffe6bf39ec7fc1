import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

type ToolResult = { content: Array<{ type: string; text: string }>; isError?: boolean };
type Params = { action: string; sql?: string; limit?: number };

const DB_PATH = process.env.MY_DB_PATH ?? '/officer/data/my.db';

function ok(text: string): ToolResult {
    return { content: [{ type: 'text', text }] };
}

function err(text: string): ToolResult {
    return { content: [{ type: 'text', text }], isError: true };
}

function queryJson(sql: string): Record<string, unknown>[] {
    const printed = execFileSync('sqlite3', ['-json', DB_PATH], {
        input: sql,
        encoding: 'utf-8',
        timeout: 10000,
    }).trim();
    return printed === '' ? [] : JSON.parse(printed);
}

function stats(): ToolResult {
    const tables = queryJson("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    const lines = tables.map(({ name }) => {
        const [row] = queryJson(`SELECT count(*) AS n FROM "${name}"`);
        return `${name}: ${row?.n as number} rows`;
    });
    return ok(['Tables:', ...lines].join('\n'));
}

function query(sql: string, limit?: number): ToolResult {
    if (!/^select/i.test(sql.trim())) return err('Only SELECT statements are allowed.');
    const rows = queryJson(limit === undefined ? sql : `${sql} LIMIT ${limit}`);
    if (rows.length === 0) return ok('No results.');
    const lines = rows.map((row, i) => {
        const cells = Object.entries(row).map(([column, value]) => `${column}: ${value ?? ''}`);
        return `${i + 1}. ${cells.join(' | ')}`;
    });
    return ok(`${rows.length} results:\n\n${lines.join('\n')}`);
}

export async function execute(_toolCallId: string, params: Params): Promise<ToolResult> {
    try {
        const { action, sql, limit } = params;
        if (!existsSync(DB_PATH)) return err(`Database not found at ${DB_PATH}.`);
        if (action === 'stats') return stats();
        if (action !== 'query') return err(`Unknown action: "${action}". Available: query, stats.`);
        if (!sql) return err('sql parameter is required for query action.');
        return query(sql, limit);
    } catch (e) {
        return err(`Database error: ${e instanceof Error ? e.message : String(e)}`);
    }
}
