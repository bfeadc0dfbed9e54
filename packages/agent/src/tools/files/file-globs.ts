import { RE2JS } from 're2js';

/**
 * Which files globs let through, as ripgrep's `-g` does: one without a slash goes for the name in every folder, one
 * with a slash for the path from the workspace; `!` leaves out, a folder with all that is in it. The last glob that
 * matches decides; with any glob that lets in, a file that none matches is out. `folder`: where the search begins; the
 * way there is not asked about.
 * @throws what RE2 throws of a glob that is none
 */
export function globFilter(globs: readonly string[], folder: string): (path: string) => boolean {
  const rules = globs.map(readRule);
  const letsByDefault = rules.every(({ lets }) => !lets);
  const ruleFor = (path: string, kind: 'file' | 'folder'): Rule | undefined => rules.findLast((rule) => rule.matches(path, kind));
  return (path) => {
    // A folder that is left out is not entered, even if the globs match files in it.
    if (listParents(path).some((parent) => parent.length > folder.length && ruleFor(parent, 'folder')?.lets === false)) return false;
    return ruleFor(path, 'file')?.lets ?? letsByDefault;
  };
}

interface Rule {
  readonly lets: boolean;
  matches(path: string, kind: 'file' | 'folder'): boolean;
}

function readRule(glob: string): Rule {
  const lets = !glob.startsWith('!');
  const given = lets ? glob : glob.slice(1);
  const isFolderOnly = given.endsWith('/');
  const bare = isFolderOnly ? given.slice(0, -1) : given;
  const pattern = RE2JS.compile(globExpression(bare.includes('/') ? bare.replace(/^\//u, '') : `**/${bare}`), RE2JS.DOTALL);
  return { lets, matches: (path, kind) => (kind === 'folder' || !isFolderOnly) && pattern.test(path) };
}

/** `a/b/c`: `a`, `a/b`. */
function listParents(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** What may stand before and behind `**` so that it stands for folders; anywhere else it is a star like one. */
const beforeFolders: ReadonlySet<string | undefined> = new Set([undefined, '/', '{', ',']);
const behindFolders: ReadonlySet<string | undefined> = new Set([undefined, '/', '}', ',']);

/**
 * A glob of ripgrep's dialect as an expression for RE2, which takes time in proportion to the path, whatever the glob:
 * `?` and `*` within a name, `**` for folders, `[a-z]` and `[!a]`, `{a,b}`, `\` before what is meant as it is. A
 * bracket or brace that is not closed is itself.
 */
function globExpression(glob: string): string {
  return new GlobReading(glob).read();
}

class GlobReading {
  readonly #characters: readonly string[];
  #at = 0;
  #braces = 0;

  constructor(glob: string) {
    this.#characters = Array.from(glob);
  }

  read(): string {
    let source = '';
    while (this.#at < this.#characters.length) source += this.#next();
    return String.raw`\A(?:${source})\z`;
  }

  #next(): string {
    const character = this.#characters[this.#at] ?? '';
    this.#at += 1;
    switch (character) {
      case '\\':
        return this.#escaped();
      case '?':
        return '[^/]';
      case '*':
        return this.#stars();
      case '[':
        return this.#class() ?? quoted(character);
      case '{':
      case ',':
      case '}':
        return this.#brace(character);
      default:
        return quoted(character);
    }
  }

  #escaped(): string {
    const character = this.#characters[this.#at] ?? '\\';
    this.#at += 1;
    return quoted(character);
  }

  #stars(): string {
    const first = this.#at - 1;
    while (this.#characters[this.#at] === '*') this.#at += 1;
    const behind = this.#characters[this.#at];
    const isFolders = this.#at - first === 2 && beforeFolders.has(this.#characters[first - 1]) && behindFolders.has(behind);
    if (!isFolders) return '[^/]*';
    if (behind !== '/') return '.*';
    this.#at += 1;
    return '(?:.*/)?';
  }

  /** undefined when it is not closed. */
  #class(): string | undefined {
    const isNegated = ['!', '^'].includes(this.#characters[this.#at] ?? '');
    const first = this.#at + (isNegated ? 1 : 0);
    // A bracket that comes first is one of the characters.
    const end = this.#characters.indexOf(']', first + 1);
    if (end < 0) return undefined;
    this.#at = end + 1;
    const members = this.#characters.slice(first, end);
    const inside = members.map((member, place) => (member === '-' && place > 0 && place < members.length - 1 ? '-' : quoted(member)));
    return isNegated ? `[^/${inside.join('')}]` : `[${inside.join('')}]`;
  }

  #brace(character: string): string {
    if (character === '{' && this.#characters.indexOf('}', this.#at) >= 0) {
      this.#braces += 1;
      return '(?:';
    }
    if (this.#braces === 0 || character === '{') return quoted(character);
    if (character === ',') return '|';
    this.#braces -= 1;
    return ')';
  }
}

function quoted(character: string): string {
  return String.raw`\x{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
