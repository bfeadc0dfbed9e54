import {
  OpenAiError,
  Problem,
  channelDefinitions,
  errorCodes,
  chooseErrorShape,
  listErrors,
  limits,
  routes,
  turnEventData,
  widgetEventData,
  type Route,
  type RouteAnswer,
} from '@concierge/contract';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiParameters,
  type ZodOpenApiPathsObject,
  type ZodOpenApiRequestBodyObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { z } from 'zod';
import { describeProperties } from './describe-properties.ts';
import { examples, textExample } from './examples.ts';
import { introduction } from './introduction.ts';

type OpenApiDocument = ReturnType<typeof createDocument>;

const tags = [
  { name: 'chat', description: 'Talk to an agent. Replies are streams of events, or one JSON object.' },
  { name: 'agents', description: 'The built-in agents and those of the tenant: agents/<name>.md.' },
  { name: 'openai', description: 'The agents as models, for clients of OpenAI\u2019s APIs; errors have the shape of theirs.' },
  { name: 'turns', description: 'What an agent was asked, and what became of it.' },
  { name: 'sessions', description: 'Conversations.' },
  { name: 'skills', description: 'Procedural memory: skills/<name>/SKILL.md.' },
  { name: 'uploads', description: 'Files to attach to messages.' },
  { name: 'tenant', description: 'Settings of the tenant.' },
  { name: 'files', description: 'Context files, skills, templates, agents and memory.' },
  { name: 'keys', description: 'API keys of the tenant.' },
  { name: 'memory', description: 'Memory and past conversations.' },
  { name: 'usage', description: 'Tokens and cost.' },
  {
    name: 'channels',
    description: `Channels: ${Object.values(channelDefinitions)
      .map(({ label }) => label)
      .join(', ')}.`,
  },
  { name: 'deliveries', description: 'Messages sent on channels, and their outcomes.' },
  { name: 'events', description: 'Notifications of the tenant\u2019s own systems, by signed webhooks.' },
  { name: 'mcp', description: 'MCP servers for the agents, and the agents as an MCP server.' },
  { name: 'widget', description: 'The web widget: its settings, and what pages of other sites ask with its publishable key.' },
  { name: 'webhooks', description: 'Inbound messages of channels.' },
  { name: 'operations', description: 'For operators of the service.' },
];

const eventLines = Object.keys(turnEventData)
  .map((type) => `- \`${type}\``)
  .join('\n');

const eventsDescription = `Server-Sent Events, each with an \`event:\`, a \`data:\` (one line of JSON) and an \`id:\` line; a comment every ${String(limits.sseHeartbeatMs / 1000)} s of silence. \`session\` comes first, exactly one \`done\` or \`error\` last. Per tool call: \`tool_call_start\`, then any number of \`tool_call_progress\` if it takes longer and writes output, \`tool_call_end\`, \`tool_result\`. The data of each type is in the schema \`TurnEventData\`:\n${eventLines}`;

const WidgetEventData = z
  .object(widgetEventData)
  .meta({ id: 'WidgetEventData', description: 'The data of each event of a visitor\u2019s stream, by event type.' });

/** The data of every event, by its type: what a stream's `data:` lines hold. */
const TurnEventData = z.object(turnEventData).meta({ id: 'TurnEventData', description: 'The data of each turn event, by event type.' });

let made: OpenApiDocument | undefined;

/**
 * OpenAPI 3.1 of every route, from the same objects that validate requests. Built on the first request: few ever ask.
 */
export function openApiDocument(): OpenApiDocument {
  made ??= describeProperties(makeDocument());
  return made;
}

function makeDocument(): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of Object.values<Route>(routes)) {
    paths[route.path] = { ...paths[route.path], [route.method]: toOperation(route) };
  }
  return createDocument({
    openapi: '3.1.1',
    info: {
      title: 'Concierge',
      version: '0.1.0',
      summary: 'AI agents for many tenants',
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags,
    paths,
    components: {
      schemas: { TurnEventData, WidgetEventData, Problem },
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'A key of the tenant; begins with ck_live_.' },
        bearer: { type: 'http', scheme: 'bearer', description: 'The same key.' },
        publishableKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Widget-Key',
          description:
            'The widget\u2019s publishable key; begins with ck_pub_. Also as `Authorization: Bearer` or `?key=`. Only with an allowed `Origin`.',
        },
        visitor: { type: 'apiKey', in: 'header', name: 'X-Widget-Visitor', description: 'A secret that the visitor\u2019s browser keeps.' },
        senderToken: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Widget-Token',
          description: 'Instead: who it is, signed by the tenant\u2019s server.',
        },
        operator: {
          type: 'http',
          scheme: 'bearer',
          description: 'The operators\u2019 token; without one set, these pages answer on loopback only.',
        },
      },
    },
  });
}

function toOperation(route: Route): ZodOpenApiOperationObject {
  const { description } = route;
  const scopes = route.scopes.length === 0 ? [] : [`Scopes: ${route.scopes.map((scope) => `\`${scope}\``).join(', ')}.`];
  const texts = [...(description === undefined ? [] : [description]), ...scopes];
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(texts.length === 0 ? {} : { description: texts.join('\n\n') }),
    security: toSecurity(route),
    requestParams: toParameters(route),
    ...(route.body === undefined ? {} : { requestBody: toRequestBody(route.body, examplesById.get(route.id)) }),
    responses: toResponses(route),
  };
}

function toSecurity(route: Route): Record<string, string[]>[] {
  if (route.auth === 'key') return [{ apiKey: [] }, { bearer: [] }];
  if (route.auth === 'widget') return [{ publishableKey: [] }];
  if (route.auth === 'visitor')
    return [
      { publishableKey: [], visitor: [] },
      { publishableKey: [], senderToken: [] },
    ];
  return route.auth === 'operator' ? [{ operator: [] }, {}] : [];
}

function toParameters({ params, query, headers }: Route): ZodOpenApiParameters {
  return {
    ...(params === undefined ? {} : { path: params }),
    ...(query === undefined ? {} : { query }),
    ...(headers === undefined ? {} : { header: headers }),
  };
}

const examplesById = new Map<string, unknown>(Object.entries(examples));

function toRequestBody(body: NonNullable<Route['body']>, example: unknown): ZodOpenApiRequestBodyObject {
  switch (body.kind) {
    case 'json': {
      const content = (body.types ?? ['application/json']).map((type) => [type, { schema: body.schema, example }] as const);
      return { required: true, content: Object.fromEntries(content) };
    }
    case 'files': {
      return { required: true, content: { 'multipart/form-data': { schema: body.schema } } };
    }
    case 'text': {
      return { required: true, content: { 'text/plain': { schema: { type: 'string' }, example: textExample } } };
    }
    case 'raw': {
      return { required: true, content: { '*/*': {} } };
    }
    case 'stream': {
      return { required: true, content: Object.fromEntries(body.types.map((type) => [type, {}])) };
    }
  }
}

const errorContents = {
  problem: { 'application/problem+json': { schema: Problem } },
  openai: { 'application/json': { schema: OpenAiError } },
} as const;

function toResponses(route: Route): ZodOpenApiResponsesObject {
  const responses: Record<string, ZodOpenApiResponseObject> = {};
  for (const [status, answer] of Object.entries(route.answers)) responses[status] = toResponse(answer);
  const codesByStatus = Map.groupBy(listErrors(route), (code) => errorCodes[code].status);
  for (const [status, codes] of codesByStatus) {
    const known = responses[String(status)];
    const description = codes.map((code) => `\`${code}\`: ${errorCodes[code].title}.`).join(' ');
    responses[String(status)] = {
      description: known === undefined ? description : `${known.description} Or: ${description}`,
      headers:
        known?.headers ??
        toHeaders({ description: '', ...(status === 429 || status === 503 ? { headers: { 'Retry-After': 'Seconds to wait.' } } : {}) }),
      content: { ...known?.content, ...errorContents[chooseErrorShape(route.path)] },
    };
  }
  return Object.fromEntries(Object.entries(responses).map(([status, response]) => [status as `${1 | 2 | 3 | 4 | 5}${string}`, response])); // eslint-disable-line typescript/no-unsafe-type-assertion -- keys of `answers` and statuses of error codes
}

function toResponse(answer: RouteAnswer): ZodOpenApiResponseObject {
  const content = {
    ...(answer.events === true ? { 'text/event-stream': { schema: { type: 'string' as const, description: eventsDescription } } } : {}),
    ...(answer.json === undefined ? {} : { 'application/json': { schema: answer.json } }),
    ...(answer.text === undefined ? {} : { [answer.text.split(';')[0] ?? answer.text]: { schema: { type: 'string' as const } } }),
  };
  return { description: answer.description, headers: toHeaders(answer), ...(Object.keys(content).length === 0 ? {} : { content }) };
}

function toHeaders(answer: RouteAnswer): NonNullable<ZodOpenApiResponseObject['headers']> {
  const all = { 'X-Request-Id': 'Names this request in the logs.', ...answer.headers };
  const described = Object.entries(all).map(([name, description]) => [name, { description, schema: { type: 'string' as const } }] as const);
  return Object.fromEntries(described);
}
