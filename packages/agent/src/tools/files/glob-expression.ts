/** What may stand before and behind `**` so that it stands for folders; anywhere else it is a star like one. */
const beforeFolders: ReadonlySet<string | undefined> = new Set([undefined, '/', '{', ',']);
const behindFolders: ReadonlySet<string | undefined> = new Set([undefined, '/', '}', ',']);

/**
 * A glob of ripgrep's dialect as an expression for RE2, which takes time in proportion to the path, whatever the glob: `?` and `*` within a
 * name, `**` for folders, `[a-z]` and `[!a]`, `{a,b}`, `\` before what is meant as it is. A bracket or brace that is not closed is itself.
 */
export function globExpression(glob: string): string {
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
