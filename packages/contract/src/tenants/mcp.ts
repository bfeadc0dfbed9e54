import { z } from 'zod';
import { HttpUrl, limitedRecord } from '../values/values.ts';
import { limits } from '../limits.ts';
import { AgentName } from './tenant.ts';

/** Short, since it is part of the name of every tool that the server brings. */
export const McpServerName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/u, 'must be 1 to 24 lower-case letters, digits and inner hyphens')
  .meta({ id: 'McpServerName' });

/** RFC 9110, 5.1; what the transport itself sets is not for a tenant to set. */
const HeaderName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/u, 'is not a header name')
  .refine((name) => !transportHeaders.has(name.toLowerCase()), 'is set by the service itself');
const transportHeaders = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const HeaderValue = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[\u0020-\u007e]+$/u, 'must be visible ASCII');

/** PUT /api/mcp/{name}. Headers are write-only: null keeps the value that is stored. */
export const McpServerBody = z
  .strictObject({
    url: HttpUrl.meta({ description: 'Address of a streamable HTTP endpoint.' }),
    headers: limitedRecord(HeaderName, HeaderValue.nullable(), limits.mcpHeadersMax).default({}),
    agents: z
      .array(AgentName)
      .min(1)
      .max(50)
      .default(['admin'])
      .meta({ description: 'Agents that get its tools; cs and public agents only by name.' }),
    tools: z
      .array(z.string().min(1).max(256))
      .max(200)
      .nullable()
      .default(null)
      .meta({ description: 'Of its tools only these; null: all.' }),
    timeoutMs: z.int().min(1000).max(limits.toolTimeoutMaxMs).default(limits.toolTimeoutMs),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'McpServerBody' });
export type McpServerBody = z.infer<typeof McpServerBody>;

/** What is shown of an attached server; of its headers only the names. */
export const McpServerView = z
  .object({
    name: McpServerName,
    url: z.string(),
    headers: z.array(z.string()),
    agents: z.array(AgentName),
    tools: z.array(z.string()).nullable(),
    timeoutMs: z.int(),
    enabled: z.boolean(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    /** Why the file of this server cannot be used. */
    problem: z.string().nullable(),
  })
  .meta({ id: 'McpServer' });
export type McpServerView = z.infer<typeof McpServerView>;

/** POST /api/mcp/{name}/test: asked just now. */
export const McpServerTest = z
  .object({
    ok: z.boolean(),
    /** As agreed with the server; null when it could not be asked. */
    protocolVersion: z.string().nullable(),
    tools: z.array(z.object({ name: z.string(), description: z.string() })),
    problem: z.string().nullable(),
  })
  .meta({ id: 'McpServerTest' });
export type McpServerTest = z.infer<typeof McpServerTest>;
