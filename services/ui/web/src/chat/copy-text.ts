/**
 * Puts text on the clipboard; also where the page is not served securely and the clipboard's own interface is missing.
 */
export async function copyText(text: string): Promise<void> {
  if (isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr-only';
  document.body.append(area);
  area.select();
  document.execCommand('copy'); // eslint-disable-line typescript/no-deprecated -- the only way without a secure context
  area.remove();
}
