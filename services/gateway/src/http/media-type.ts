/**
 * The essence of a Content-Type (`application/json`), lower case.
 * @returns null when its charset is another than UTF-8: nothing else is read here
 */
export function essenceOf(contentType: string): string | null {
  const [essence = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  return charset === undefined || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii' ? essence : null;
}
