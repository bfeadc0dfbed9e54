import { createHash } from 'node:crypto';
import { AppError, limits, McpServerName, McpServerView, type McpServerBody } from '@concierge/contract';
import { RecordFolder, type FolderSync, type Parsed } from '@concierge/files';
import { KeyedMutex, type Log } from '@concierge/runtime';
import { z } from 'zod';
import type { TenantSecrets } from '../tenant-secrets.ts';

/** mcp/<name>.json. The values of headers are sealed. */
const McpServerRecord = z.strictObject({
  version: z.literal(1),
  ...McpServerView.omit({ headers: true, problem: true }).shape,
  headers: z.record(z.string(), z.string()),
});
type McpServerRecord = z.infer<typeof McpServerRecord>;

const serverNames = { test: (name: string): boolean => McpServerName.safeParse(name).success };

/** A server as its client needs it. */
export interface McpServerTools extends Pick<McpServerView, 'name' | 'url' | 'agents' | 'tools' | 'timeoutMs'> {
  /** Opened. */
  readonly headers: Readonly<Record<string, string>>;
  /** Revision of the record: each change makes another one. */
  readonly revision: string;
}

export interface McpServerStoreOptions {
  readonly tenantId: string;
  /** tenants/<id>/mcp */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly secrets: TenantSecrets;
  readonly log: Log;
}

/** The MCP servers that a tenant has attached: a file each. */
export class McpServerStore {
  readonly #secrets: TenantSecrets;
  readonly #records: RecordFolder<typeof McpServerRecord>;
  readonly #writers = new KeyedMutex();

  constructor({ secrets, ...place }: McpServerStoreOptions) {
    this.#secrets = secrets;
    this.#records = new RecordFolder({ ...place, schema: McpServerRecord, names: serverNames });
  }

  /** By name; files that cannot be used with the reason. */
  async list(): Promise<McpServerView[]> {
    const views: McpServerView[] = [];
    for (const name of await this.#records.names()) {
      const view = await this.#view(name);
      if (view !== undefined) views.push(view);
    }
    return views;
  }

  /** @throws AppError not_found */
  async find(name: string): Promise<McpServerView> {
    const view = await this.#view(name);
    if (view === undefined) throw new AppError('not_found', 'There is no such MCP server.');
    return view;
  }

  /**
   * The servers whose tools an agent may use: those that name it and are enabled. A file or a secret that cannot be
   * read leaves its server out.
   */
  async attachedTo(agent: string): Promise<McpServerTools[]> {
    const attached: McpServerTools[] = [];
    for (const name of await this.#records.names()) {
      const read = await this.#read(name);
      if (read?.status !== 'ok' || !read.value.enabled || !read.value.agents.includes(agent)) continue;
      const server = this.#opened(read.value);
      if (server !== undefined) attached.push(server);
    }
    return attached;
  }

  /**
   * The one server, to be asked now.
   * @throws AppError not_found, conflict when its file or its secrets cannot be read
   */
  async open(name: string): Promise<McpServerTools> {
    const { problem } = await this.find(name);
    const read = await this.#read(name);
    const server = read?.status === 'ok' ? this.#opened(read.value) : undefined;
    if (server === undefined) throw new AppError('conflict', `The MCP server cannot be used: ${problem ?? 'enter its headers again'}.`);
    return server;
  }

  /**
   * On disk when it returns.
   * @throws AppError invalid_request, when it is one too many or keeps a header that there is not
   */
  async put(name: string, body: McpServerBody): Promise<{ view: McpServerView; created: boolean }> {
    return this.#writers.run('put', async () => {
      const read = await this.#read(name);
      const before = read?.status === 'ok' ? read.value : undefined;
      if (read === undefined && (await this.#records.names()).length >= limits.mcpServersMax)
        throw new AppError('invalid_request', `At most ${String(limits.mcpServersMax)} MCP servers can be attached.`);
      const now = new Date().toISOString();
      const record: McpServerRecord = {
        ...before,
        ...body,
        version: 1,
        name,
        headers: this.#sealed(name, body.headers, before),
        createdAt: before?.createdAt ?? now,
        updatedAt: now,
      };
      await this.#records.put(name, record);
      return { view: toServerView(record), created: read === undefined };
    });
  }

  /** @throws AppError not_found */
  async remove(name: string): Promise<void> {
    await this.find(name);
    await this.#records.remove(name);
  }

  async sweep(): Promise<void> {
    await this.#records.sweep();
  }

  #sealed(name: string, headers: McpServerBody['headers'], before: McpServerRecord | undefined): Record<string, string> {
    const sealed: Record<string, string> = {};
    for (const [header, value] of Object.entries(headers)) {
      const kept = before?.headers[header];
      if (value !== null) sealed[header] = this.#secrets.seal(toSecretName(name, header), value);
      else if (kept !== undefined) sealed[header] = kept;
      else
        throw new AppError('invalid_request', undefined, {
          errors: [{ path: `headers.${header}`, message: 'has no stored value that could be kept' }],
        });
    }
    return sealed;
  }

  #opened(record: McpServerRecord): McpServerTools | undefined {
    const headers: Record<string, string> = {};
    try {
      for (const [header, sealed] of Object.entries(record.headers))
        headers[header] = this.#secrets.open(toSecretName(record.name, header), sealed);
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
    const { name, url, agents, tools, timeoutMs } = record;
    return { name, url, agents, tools, timeoutMs, headers, revision: hashRecord(record) };
  }

  async #view(name: string): Promise<McpServerView | undefined> {
    const read = await this.#read(name);
    if (read === undefined) return undefined;
    if (read.status === 'ok') return toServerView(read.value);
    return { ...unreadable, name, problem: read.reason };
  }

  async #read(name: string): Promise<Parsed<McpServerRecord> | undefined> {
    const parsed = await this.#records.read(name);
    if (parsed?.status !== 'ok' || parsed.value.name === name) return parsed;
    return { status: 'broken', reason: `the file is that of ${parsed.value.name}` };
  }
}

const unreadable = {
  url: '',
  headers: [],
  agents: [],
  tools: null,
  timeoutMs: limits.toolTimeoutMs,
  enabled: false,
  createdAt: new Date(0).toISOString(),
  updatedAt: new Date(0).toISOString(),
};

function toSecretName(name: string, header: string): string {
  return `mcp/${name}.headers.${header}`;
}

function hashRecord(record: McpServerRecord): string {
  return createHash('sha256').update(JSON.stringify(record)).digest('hex').slice(0, 16);
}

function toServerView({ name, url, agents, tools, timeoutMs, enabled, createdAt, updatedAt, headers }: McpServerRecord): McpServerView {
  return { name, url, agents, tools, timeoutMs, enabled, createdAt, updatedAt, headers: Object.keys(headers), problem: null };
}
