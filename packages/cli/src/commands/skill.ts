import { basename, dirname, join, resolve } from 'node:path';
import { AppError, limits, skillNamePattern } from '@concierge/contract';
import { readContent, walkTree, type TreeContent } from '@concierge/files';
import type { TenantScope } from '@concierge/tenant';
import { Command } from 'commander';
import { table, type CommandContext } from '../answer.ts';

const FILES_MAX = 200;

interface LocalFile {
  /** Relative to the skill's folder, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** Regular files only: what a link leads to is not part of the skill. */
async function readSkillFolder(folder: string): Promise<LocalFile[]> {
  const files: LocalFile[] = [];
  try {
    for await (const { path, content } of walkTree(folder, { isOwn: () => true })) {
      if (content === undefined) continue;
      if (files.length === FILES_MAX)
        throw new AppError('too_large', `A skill has at most ${String(FILES_MAX)} files; ${folder} has more.`);
      files.push({ path, text: await readText(join(folder, path), content) });
    }
  } catch (error) {
    if (error instanceof AppError && error.code !== 'not_found') throw error;
    throw new AppError('invalid_request', `${folder} cannot be read.`, { cause: error });
  }
  if (!files.some(({ path }) => path === 'SKILL.md')) throw new AppError('invalid_request', `${folder} has no SKILL.md.`);
  return files;
}

async function readText(path: string, content: TreeContent): Promise<string> {
  if (content.size > limits.fileMaxBytes) throw new AppError('too_large', `${path} is larger than ${String(limits.fileMaxBytes)} bytes.`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readContent(content));
  } catch (error) {
    throw new AppError('unsupported_media_type', `${path} is not text: a skill holds text files only.`, { cause: error });
  }
}

async function list({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const { valid, invalid } = await (await deployment.scope(tenantId)).skills.scan();
  const rows = [
    ...valid.map(({ name, trigger, description }) => [name, trigger, description]),
    ...invalid.map(({ path, reason }) => [path, '', `cannot be used: ${reason}`]),
  ];
  // Those that cannot be used have a reason in the place of a description.
  const broken = invalid.map(({ path, reason }) => ({ name: basename(dirname(path)), path, reason }));
  answer({ json: [...valid, ...broken], text: rows.length === 0 ? 'No skills.' : table(['SKILL', 'TRIGGER', 'DESCRIPTION'], rows) });
}

/** SKILL.md last: until it is there, the folder is no skill, and an agent sees it whole or not at all. */
async function add({ deployment, answer }: CommandContext, tenantId: string, given: string): Promise<void> {
  const scope = await deployment.scope(tenantId);
  const folder = resolve(given);
  const name = basename(folder);
  if (!skillNamePattern.test(name))
    throw new AppError(
      'invalid_request',
      `The folder's name is the skill's: ${name} must be lower-case letters, digits and inner hyphens.`,
    );
  const files = await readSkillFolder(folder);
  for (const { path, text } of files.toSorted((left, right) => Number(left.path === 'SKILL.md') - Number(right.path === 'SKILL.md'))) {
    await scope.files.writeText(`skills/${name}/${path}`, text);
  }
  const { skill } = await scope.skills.load(name);
  await scope.reindexSkills();
  await deployment.record(tenantId, 'skill.add', name);
  answer({ json: skill, text: `${name} is added (${String(files.length)} files); the next turn knows it.` });
}

/** SKILL.md first: an agent sees the skill whole or not at all. */
async function removeFiles({ files }: TenantScope, folder: string): Promise<void> {
  const main = `${folder}/SKILL.md`;
  if ((await files.stat(main))?.kind === 'file') await files.remove(main);
  await files.removeFolder(folder);
}

async function remove({ deployment, answer }: CommandContext, tenantId: string, name: string): Promise<void> {
  const scope = await deployment.scope(tenantId);
  if (!skillNamePattern.test(name)) throw new AppError('invalid_request', `${name} is not the name of a skill.`);
  try {
    await removeFiles(scope, `skills/${name}`);
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found')
      throw new AppError('not_found', `${tenantId} has no skill ${name}.`, { cause: error });
    throw error;
  }
  await scope.reindexSkills();
  await deployment.record(tenantId, 'skill.remove', name);
  answer({ json: { name, removed: true }, text: `${name} is removed.` });
}

/** `concierge skill …` */
export function skillCommand(context: CommandContext): Command {
  const command = new Command('skill');
  command
    .command('list <tenant>')
    .description('all skills')
    .action(async (tenantId: string) => await list(context, tenantId));
  command
    .command('add <tenant> <folder>')
    .description('copy a folder with a SKILL.md; its name is the name of the skill')
    .action(async (tenantId: string, folder: string) => await add(context, tenantId, folder));
  command
    .command('remove <tenant> <name>')
    .description('remove a skill and its files')
    .action(async (tenantId: string, name: string) => await remove(context, tenantId, name));
  return command;
}
