/** White space and characters that show nothing: a model's API and most channels refuse a text of these alone. */
const invisible = /[\s\p{Cf}\u115F\u1160\u2800\u3164\uFFA0]/gu;

export function isVisible(text: string): boolean {
  return text.replace(invisible, '') !== '';
}
