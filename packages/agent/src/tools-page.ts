import { limits, onOneLine, type JsonObject } from '@concierge/contract';
import { z } from 'zod';
import type { BuiltInTool } from './tools/tool.ts';

/** JSON Schema as the tools' arguments use it. */
const Schema = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  description: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  anyOf: z.array(z.unknown()).optional(),
  items: z.unknown().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
});
type Schema = z.output<typeof Schema>;
const ArgumentsSchema = z.looseObject({ properties: z.record(z.string(), Schema).default({}), required: z.array(z.string()).default([]) });

const domains: Readonly<Record<string, string>> = {
  files: 'Files',
  runtime: 'Runtime',
  web: 'Web',
  memory: 'Memory',
  skills: 'Skills',
  sessions: 'Sessions',
  messaging: 'Messaging',
  automation: 'Automation',
  documents: 'Documents',
};
const MS_PER_SECOND = 1000;

/** docs/tools.md: every tool as models see it and who has it, made from the registry. */
export function toolsPage(tools: readonly BuiltInTool[]): string {
  const sections = Object.entries(domains).map(([domain, title]) =>
    domainSection(
      title,
      tools.filter((tool) => tool.domain === domain),
    ),
  );
  return `${INTRODUCTION}\n\n${overview(tools)}\n${sections.filter((section) => section !== '').join('')}`;
}

const INTRODUCTION = `# Tools

What agents can do. This page is made from the tool registry by \`npm run docs\`; what is wrong here is put right in the tool's own file
(\`packages/agent/src/tools\`). Descriptions are what models read.

\`admin\` is offered every tool, \`cs\` those that say so; either may be cut down by the agent's own list, which adds none. A tool that an agent
does not have is refused however it is called. Every tool checks its arguments and refuses unknown ones; every failure is an answer to the model and
ends no turn. A result has at most 64 KiB.`;

function overview(tools: readonly BuiltInTool[]): string {
  const rows = tools.map(
    ({ name, domain, cs, sideEffect }) => `| [\`${name}\`](#${name}) | ${domain} | ${whoHas(cs)} | ${effect(sideEffect)} |`,
  );
  return ['| Tool | Domain | cs | Side effects |', '|---|---|---|---|', ...rows].join('\n');
}

function domainSection(title: string, tools: readonly BuiltInTool[]): string {
  return tools.length === 0 ? '' : `\n## ${title}\n${tools.map(toolSection).join('')}`;
}

function toolSection(tool: BuiltInTool): string {
  const forAdmin = tool.description('admin');
  const forCs = tool.description('cs');
  const parts = [
    `### ${tool.name}`,
    quoted(forAdmin),
    facts(tool),
    ...(tool.cs !== 'never' && forCs !== forAdmin ? [`For \`cs\`:\n\n${quoted(forCs)}`] : []),
    argumentsTable(tool.parameters),
  ];
  return `\n${parts.join('\n\n')}\n`;
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
}

function facts({ cs, sideEffect, timeoutMs }: BuiltInTool): string {
  return `cs: ${whoHas(cs)}. Side effects: ${effect(sideEffect)}. ${endsAfter(timeoutMs)}`;
}

function endsAfter(timeoutMs: BuiltInTool['timeoutMs']): string {
  if (typeof timeoutMs === 'number') return `Ends after ${String(timeoutMs / MS_PER_SECOND)} s at the latest.`;
  return `Ends when its own \`timeoutMs\` says, after ${String(limits.toolTimeoutMaxMs / MS_PER_SECOND)} s at the latest.`;
}

function whoHas(cs: BuiltInTool['cs']): string {
  switch (cs) {
    case 'full':
      return 'yes';
    case 'narrow':
      return 'in a narrower form';
    case 'never':
      return 'no';
  }
}

function effect(sideEffect: BuiltInTool['sideEffect']): string {
  return sideEffect === 'none' ? 'none' : 'yes; never run twice';
}

function argumentsTable(parameters: JsonObject): string {
  const { properties, required } = ArgumentsSchema.parse(parameters);
  const rows = Object.entries(properties).map(([name, schema]) => {
    const need = required.includes(name) ? 'yes' : '';
    return `| \`${name}\` | ${describeType(schema)} | ${need} | ${describeBounds(schema)} | ${inCell(schema.description ?? '')} |`;
  });
  if (rows.length === 0) return 'No arguments.';
  return ['| Argument | Type | Needed | Limits | Meaning |', '|---|---|---|---|---|', ...rows].join('\n');
}

function describeType(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.anyOf !== undefined) return schema.anyOf.map((part) => describeType(Schema.parse(part))).join(' or ');
  if (schema.type === 'array') return `list of ${schema.items === undefined ? 'anything' : describeType(Schema.parse(schema.items))}`;
  const types = Array.isArray(schema.type) ? schema.type : [schema.type ?? 'anything'];
  return types.map((type) => (type === 'string' ? 'text' : type)).join(' or ');
}

function describeBounds(schema: Schema): string {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const bounds = [span(minimum, maximum, ''), span(minLength, maxLength, ' characters'), span(minItems, maxItems, ' items')];
  return bounds.filter((bound) => bound !== '').join(', ');
}

function span(least: number | undefined, most: number | undefined, unit: string): string {
  // The bounds of JSON's own numbers are no limit of the tool.
  const [from, to] = [least, most].map((bound) => (bound === undefined || Math.abs(bound) >= Number.MAX_SAFE_INTEGER ? undefined : bound));
  if (from === undefined && to === undefined) return '';
  if (to === undefined) return from === 1 && unit !== '' ? 'not empty' : `at least ${String(from)}${unit}`;
  return `${from === undefined ? 'at most ' : `${String(from)} to `}${String(to)}${unit}`;
}

function inCell(text: string): string {
  return onOneLine(text).replaceAll('|', String.raw`\|`);
}
