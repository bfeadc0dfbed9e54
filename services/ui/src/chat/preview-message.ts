/** More is never seen of it. */
const READ_CHARACTERS = 400;
/** Around the number of what is kept as it is: code, and characters that were escaped. */
const KEPT = '\u{e000}';
const kepts = /\u{e000}(\d+)\u{e000}/gu;

/** The lines around a block of code. */
const fences = /^ *(?:```|~~~).*$/gmu;
const code = /`([^`]*)`|\\([!-/:-@[-`{-~])/gu;

/** What of a form is left, in this order: what begins a line, links and pictures, marked words. */
const forms: readonly (readonly [form: RegExp, words: string])[] = [
  [/^[|: ]*-[|: -]+$/gmu, ''],
  [/^ *(?:> ?|#+ +)/gmu, ''],
  [/^ *[-*+] +(?:\[[ Xx]\])?/gmu, '• '],
  [/^ *\|/gmu, ''],
  [/\| *$/gmu, ''],
  [/!?\[([^\][]*)\]\([^()]*\)/gu, '$1'],
  [/~~([^~]+)~~/gu, '$1'],
  [/\*\*\*([^*]+)\*\*\*/gu, '$1'],
  [/(?<!\*)\*([^\s*]|[^\s*][^*]*[^\s*])\*(?!\*)/gu, '$1'],
  [/\*\*([^\s*][^*]*)\*\*/gu, '$1'],
  [/(?<!\w)__([^\s_][^_]*)__(?!\w)/gu, '$1'],
  [/(?<!\w)_([^\s_][^_]*)_(?!\w)/gu, '$1'],
];

export interface PreviewedMessage {
  readonly from: 'contact' | 'agent' | 'person';
  readonly text: string;
}

/**
 * The first words of a message, in one line. Contacts write text; what agents and staff write is Markdown, of which the
 * words are kept. Not with the renderer's parser, which is large and loaded later: what is none of the usual forms
 * stays as it was written.
 */
export function previewMessage({ from, text }: PreviewedMessage): string {
  const head = text.slice(0, READ_CHARACTERS);
  const words = from === 'contact' ? head : readWords(head);
  return words.replaceAll(/\s+/gu, ' ').trim().toWellFormed();
}

function readWords(markdown: string): string {
  const kept: string[] = [];
  const keep = (_whole: string, ticked: string | undefined, escaped = ''): string => {
    kept.push(ticked ?? escaped);
    return `${KEPT}${String(kept.length - 1)}${KEPT}`;
  };
  const text = markdown.replaceAll(KEPT, '').replaceAll(fences, '').replaceAll(code, keep);
  const words = forms.reduce((rest, [form, left]) => rest.replaceAll(form, left), text);
  return words.replaceAll(kepts, (_whole, at: string) => kept[Number(at)] ?? '');
}
