import { element } from './dom.ts';
import { hostBeside, parseMarkdown, type Block, type Inline } from './markdown.ts';

/** A model's text as elements: created one by one, so that markup in the text stays text. */
export function renderMarkdown(text: string): HTMLElement[] {
  return parseMarkdown(text).map((block) => renderBlock(block));
}

function renderBlock(block: Block): HTMLElement {
  switch (block.kind) {
    case 'code': {
      return element('pre', { tabindex: '0' }, [element('code', {}, [block.text])]);
    }
    case 'list': {
      const items = block.items.map((item) => element('li', {}, renderInline(item)));
      return block.start === null ? element('ul', {}, items) : element('ol', { start: String(block.start) }, items);
    }
    case 'paragraph': {
      return element('p', {}, renderLines(block.lines));
    }
    case 'quote': {
      return element('blockquote', {}, renderLines(block.lines));
    }
    case 'heading': {
      return element('p', {}, [element('strong', {}, renderLines(block.lines))]);
    }
  }
}

function renderLines(lines: readonly (readonly Inline[])[]): Node[] {
  return lines.flatMap((line, index) => [...(index === 0 ? [] : [element('br')]), ...renderInline(line)]);
}

function renderInline(parts: readonly Inline[]): Node[] {
  return parts.flatMap((part) => renderPart(part));
}

function renderPart(part: Inline): Node[] {
  switch (part.kind) {
    case 'text': {
      return [document.createTextNode(part.text)];
    }
    case 'code': {
      return [element('code', {}, [part.text])];
    }
    case 'strong': {
      return [element('strong', {}, renderInline(part.children))];
    }
    case 'emphasis': {
      return [element('em', {}, renderInline(part.children))];
    }
    case 'link': {
      return renderLink(part);
    }
  }
}

/** The link's host stands beside its label. */
function renderLink(link: { readonly href: string; readonly label: string }): Node[] {
  const anchor = element('a', { href: link.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, [link.label]);
  const host = hostBeside(link);
  return host === null ? [anchor] : [anchor, element('span', { class: 'leads' }, [` (${host})`])];
}
