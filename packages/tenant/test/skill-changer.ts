import { argv, kill, pid } from 'node:process';
import { SkillEditor } from '../src/skills/skill-editor.ts';
import { TenantFiles } from '../src/files/tenant-files.ts';

/**
 * An agent in a separate process that changes one skill in every way, again and again, until it is killed: so long
 * after the first round.
 */
const [, , root = '', afterMs = '0'] = argv;
const editor = new SkillEditor({ root, files: new TenantFiles({ root }), reindex: async () => Promise.resolve() });
const name = 'busy';
const skillText = (round: number): string =>
  `---\nname: ${name}\ndescription: Round ${String(round)}\n---\n${`round ${String(round)}\n`.repeat(2000)}`;

for (let round = 1; ; round += 1) {
  // What the one before left may be there or not.
  await editor.create(name, skillText(round)).catch(() => undefined);
  await editor.update(name, () => skillText(round));
  await editor.writeFile(name, 'references/round.md', `round ${String(round)}\n`.repeat(2000));
  await editor.removeFile(name, 'references/round.md');
  const version = await editor.remove(name);
  await editor.restore(name, version);
  if (round % 2 === 0) await editor.remove(name);
  if (round === 1) setTimeout(() => kill(pid, 'SIGKILL'), Number(afterMs));
}
