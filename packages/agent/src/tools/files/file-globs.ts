import { RE2JS } from 're2js';
import { globExpression } from './glob-expression.ts';

/**
 * Which files globs let through, as ripgrep's `-g` does: one without a slash goes for the name in every folder, one with a slash for the
 * path from the workspace; `!` leaves out, a folder with all that is in it. The last glob that matches decides; with any glob that lets
 * in, a file that none matches is out. `folder`: where the search begins; the way there is not asked about.
 * @throws what RE2 throws of a glob that is none
 */
export function globFilter(globs: readonly string[], folder: string): (path: string) => boolean {
  const rules = globs.map(ruleOf);
  const letsByDefault = rules.every(({ lets }) => !lets);
  const ruleFor = (path: string, kind: 'file' | 'folder'): Rule | undefined => rules.findLast((rule) => rule.matches(path, kind));
  return (path) => {
    // A folder that is left out is not entered, whatever the globs say of what is in it.
    if (parentsOf(path).some((parent) => parent.length > folder.length && ruleFor(parent, 'folder')?.lets === false)) return false;
    return ruleFor(path, 'file')?.lets ?? letsByDefault;
  };
}

interface Rule {
  readonly lets: boolean;
  matches(path: string, kind: 'file' | 'folder'): boolean;
}

function ruleOf(glob: string): Rule {
  const lets = !glob.startsWith('!');
  const given = lets ? glob : glob.slice(1);
  const isFolderOnly = given.endsWith('/');
  const bare = isFolderOnly ? given.slice(0, -1) : given;
  const pattern = RE2JS.compile(globExpression(bare.includes('/') ? bare.replace(/^\//u, '') : `**/${bare}`), RE2JS.DOTALL);
  return { lets, matches: (path, kind) => (kind === 'folder' || !isFolderOnly) && pattern.test(path) };
}

/** `a/b/c`: `a`, `a/b`. */
function parentsOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}
