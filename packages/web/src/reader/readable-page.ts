import { tables } from '@joplin/turndown-plugin-gfm';
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';
import { absoluteLink } from './plain-page.ts';

/** Less than this of a longer page is a teaser or a cookie notice that was taken for the article. */
const ARTICLE_MIN_SHARE = 0.1;
/** What is filled in or pressed, and is no text of a page. */
const controls = ['input', 'select', 'textarea', 'datalist', 'button'] as const;

/**
 * The article of a page as Markdown; the whole page where there is no article. Time and depth are the caller's to
 * bound.
 */
export function readablePage(html: string, url: string): { title: string; markdown: string } {
  // It reads what is no whole document as the root element alone.
  const { document } = parseHTML(/<html[\s>]/iu.test(html) ? html : `<!doctype html><html><body>${html}</body></html>`);
  const ownBase: string | null | undefined = document.querySelector('base[href]')?.getAttribute('href');
  const toMarkdown = createConverter(URL.parse(ownBase ?? '', url)?.href ?? url);
  openForms(document);
  const page = toMarkdown(html);
  const { title, content } = findArticle(document);
  const article = toMarkdown(content);
  return { title, markdown: article.length >= page.length * ARTICLE_MIN_SHARE ? article : page };
}

/** Forms hold prices, tables and whole pages: an article keeps what is in them, as of any other element. */
function openForms(document: ReturnType<typeof parseHTML>['document']): void {
  for (const control of document.querySelectorAll(controls.join(', '))) control.remove();
  for (const form of document.querySelectorAll('form')) {
    const opened = document.createElement('div');
    // One by one: a form may have more of them than a call takes arguments.
    while (form.firstChild !== null) opened.append(form.firstChild);
    form.replaceWith(opened);
  }
}

function findArticle(document: ReturnType<typeof parseHTML>['document']): { title: string; content: string } {
  const article = new Readability(document).parse();
  const title: string = article?.title ?? '';
  return { title: title.replaceAll(/\s+/gu, ' ').trim(), content: article?.content ?? '' };
}

function createConverter(base: string): (html: string) => string {
  const service = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', emDelimiter: '*' });
  service.use(tables);
  service.remove(['title', 'script', 'style', 'noscript', 'iframe', 'object', 'template', ...controls]);
  service.addRule('links', {
    filter: 'a',
    replacement: (content, node) => {
      const text = content.replaceAll(/\s+/gu, ' ').trim();
      const href = absoluteLink(attribute(node, 'href'), base);
      return text === '' || href === undefined ? text : `[${text}](${href})`;
    },
  });
  // The content of an image is in its description; its address would only reveal to its server who reads.
  service.addRule('images', {
    filter: 'img',
    replacement: (_content, node) => {
      const description = (attribute(node, 'alt') ?? '').replaceAll(/\s+/gu, ' ').trim();
      return description === '' ? '' : `[image: ${description}]`;
    },
  });
  return (html) =>
    service
      .turndown(html)
      .replaceAll(/\n{3,}/gu, '\n\n')
      .trim();
}

function attribute(node: TurndownService.Node, name: string): string | null {
  return 'getAttribute' in node ? node.getAttribute(name) : null;
}
