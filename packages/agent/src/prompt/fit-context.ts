import { truncate, type Skill } from '@concierge/contract';
import { fairShare } from '../share-budget.ts';
import type { ToolAccess } from '../tools/tool-access.ts';

/** The share of the model's window for everything in the prompt that a tenant writes (contract §7.13). */
const WINDOW_SHARE = 0.25;
/** A token is at least one byte, and a UTF-16 unit at most three. */
const TOKENS_PER_CHARACTER_MAX = 3;
/** Applies in any window: without its first words a part is useless. */
const PART_MIN_CHARACTERS = 200;
const HEARTBEAT = 'HEARTBEAT.md';

export interface PromptSources {
  /** `bytes`: of the whole file, where `text` is only its beginning. */
  readonly files: readonly { readonly name: string; readonly text: string; readonly bytes?: number }[];
  readonly heartbeat: string | null;
  readonly heartbeatBytes?: number;
  readonly skills: readonly Pick<Skill, 'name' | 'description'>[];
  /** What an agent of the tenant's own adds of itself; null for a built-in one. */
  readonly part: string | null;
}

export interface FittingRoom {
  readonly contextWindow: number;
  readonly estimateTokens: (text: string) => number;
  readonly agent: string;
  /** Decides which tool reads on. */
  readonly access: ToolAccess;
}

/** A part of the prompt of which only the beginning is shown. */
export interface PromptCut {
  readonly name: string;
  readonly shownBytes: number;
  readonly bytes: number;
}

export interface FittedSources extends PromptSources {
  /** How many skills are not in `skills`. */
  readonly skillsLeftOut: number;
  readonly cuts: readonly PromptCut[];
}

interface Part {
  readonly name: string;
  readonly text: string;
  /** Length of the whole part. */
  readonly bytes: number;
}

/**
 * Fits what tenants write of the prompt into a quarter of the model's window: small parts stay whole, and long ones
 * share the rest alike. The last line of a cut part states the cut and names the tool that reads on. Skills are left
 * out from the end of the alphabet.
 */
export function fitContext(sources: PromptSources, room: FittingRoom): FittedSources {
  const parts = partsOf(sources, room.agent);
  const index = sources.skills.map(skillLine).join('\n');
  const share = shareOf([...parts.map(({ text }) => text), index], room);
  const shown = new Map(parts.map((part) => [part.name, truncate(part.text, charactersIn(part.text, share, room))]));
  const cuts = parts.flatMap((part) => cutOf(part, shown.get(part.name) ?? ''));
  const textOf = (name: string): string =>
    withNote(
      shown.get(name) ?? '',
      cuts.find((cut) => cut.name === name),
      room.access,
    );
  const skills = fittingSkills(sources.skills, charactersIn(index, share, room));
  const part = partName(room.agent);
  return {
    ...sources,
    files: sources.files.map((file) => ({ ...file, text: textOf(file.name) })),
    heartbeat: sources.heartbeat === null ? null : textOf(HEARTBEAT),
    part: sources.part === null ? null : textOf(part),
    skills,
    skillsLeftOut: sources.skills.length - skills.length,
    cuts,
  };
}

function partsOf({ files, heartbeat, heartbeatBytes, part }: PromptSources, agent: string): Part[] {
  const others = [
    ...(heartbeat === null ? [] : [{ name: HEARTBEAT, text: heartbeat, ...(heartbeatBytes !== undefined && { bytes: heartbeatBytes }) }]),
    ...(part === null ? [] : [{ name: partName(agent), text: part }]),
  ];
  return [...files, ...others].map(({ bytes, ...rest }) => ({ ...rest, bytes: bytes ?? Buffer.byteLength(rest.text) }));
}

function partName(agent: string): string {
  return `agents/${agent}.md`;
}

/** Tokens that one part may take; Infinity, found without estimating anything, for the usual prompt. */
function shareOf(texts: readonly string[], { contextWindow, estimateTokens }: FittingRoom): number {
  const roomTokens = contextWindow * WINDOW_SHARE;
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return characters * TOKENS_PER_CHARACTER_MAX <= roomTokens ? Number.POSITIVE_INFINITY : fairShare(texts.map(estimateTokens), roomTokens);
}

function charactersIn(text: string, shareTokens: number, { estimateTokens }: FittingRoom): number {
  if (shareTokens === Number.POSITIVE_INFINITY) return text.length;
  const tokens = estimateTokens(text);
  if (tokens <= shareTokens) return text.length;
  return Math.max(PART_MIN_CHARACTERS, Math.floor((text.length * shareTokens) / tokens));
}

function cutOf({ name, bytes }: Part, shown: string): PromptCut[] {
  const shownBytes = Buffer.byteLength(shown);
  return shownBytes < bytes ? [{ name, shownBytes, bytes }] : [];
}

function withNote(shown: string, cut: PromptCut | undefined, access: ToolAccess): string {
  if (cut === undefined) return shown;
  const line = shown.split('\n').length;
  const size = `${cut.name} has ${String(cut.bytes)} bytes, and its first ${String(cut.shownBytes)} stand here`;
  return `${shown}\n[Cut here: ${size}. ${readingOn(cut.name, line, access)}]`;
}

function readingOn(name: string, line: number, access: ToolAccess): string {
  const offset = `offset ${String(line)}`;
  if (name === 'MEMORY.md') return `Read on with memory_get, ref "MEMORY.md", ${offset}; memory_search finds a matter.`;
  return access === 'admin' ? `Read on with read, path "${name}", ${offset}.` : 'The rest cannot be read in this conversation.';
}

export function skillLine({ name, description }: Pick<Skill, 'name' | 'description'>): string {
  return `- ${name}: ${description.replaceAll(/\s+/gu, ' ').trim()}`;
}

function fittingSkills(skills: PromptSources['skills'], maxCharacters: number): PromptSources['skills'] {
  let left = maxCharacters;
  const sorted = skills.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const end = sorted.findIndex((skill) => (left -= skillLine(skill).length + 1) < -1);
  return end === -1 ? sorted : sorted.slice(0, end);
}
