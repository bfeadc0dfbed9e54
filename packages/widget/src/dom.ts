type Child = Node | string;

/** An element with its attributes and what is in it. Texts become text: nothing here reads HTML. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  children: readonly Child[] = [],
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** Whether the visitor writes in a field of the page: what comes later takes the focus from none. */
export function isWritingInPage(): boolean {
  return document.activeElement?.matches(':read-write, select, iframe') === true;
}

export const cross = 'M6 6l12 12M18 6L6 18';
export const clip = 'M20 11l-8 8a5 5 0 0 1-7-7l8-8a3 3 0 0 1 5 5l-8 8a1 1 0 0 1-2-2l7-7';

/** A picture of one line. */
export function icon(path: string): SVGSVGElement {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  const attributes = {
    viewBox: '0 0 24 24',
    width: '24',
    height: '24',
    fill: 'none',
    stroke: 'currentColor',
    'stroke-width': '2',
    'stroke-linecap': 'round',
    'stroke-linejoin': 'round',
    'aria-hidden': 'true',
  };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  const line = document.createElementNS(space, 'path');
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}
