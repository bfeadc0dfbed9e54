const decoders = [
  { mark: [0xff, 0xfe], decoder: new TextDecoder('utf-16le') },
  { mark: [0xfe, 0xff], decoder: new TextDecoder('utf-16be') },
] as const;
const utf8 = new TextDecoder('utf-8');

/**
 * A file's text as ripgrep sees it: UTF-16 by its mark, otherwise UTF-8, whatever is no text in it replaced; with NUL in it, it is
 * binary and undefined. Line ends are plain.
 */
export function searchableText(bytes: Buffer): string | undefined {
  const marked = decoders.find(({ mark }) => mark.every((byte, index) => bytes[index] === byte));
  if (marked === undefined && bytes.includes(0)) return undefined;
  return (marked?.decoder ?? utf8).decode(bytes).replaceAll('\r\n', '\n');
}
