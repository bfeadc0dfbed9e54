import { useEffect, useId, useMemo, useRef, useState, type ComponentProps, type ReactNode, type RefObject } from 'react';
import rehypeSanitize, { defaultSchema, type Options as Schema } from 'rehype-sanitize';
import {
  defaultRehypePlugins,
  Streamdown,
  type Components,
  type ControlsConfig,
  type ExtraProps,
  type PluginConfig,
  type StreamdownProps,
} from 'streamdown';
import { useWords } from '../words/words.tsx';
import { ExternalIcon, ImageIcon } from '../parts/icons.tsx';

/** Where a link leads, when a reader may be sent there. */
function parseAddress(text: unknown): URL | null {
  if (typeof text !== 'string' || !URL.canParse(text)) return null;
  const address = new URL(text);
  return ['http:', 'https:', 'mailto:'].includes(address.protocol) ? address : null;
}

function describeTarget(address: URL): string {
  return address.protocol === 'mailto:' ? address.pathname : address.host;
}

/** Only a label that is an address of that very place: a host's name may stand anywhere inside another address. */
function isSameAddress(label: ReactNode, address: URL): boolean {
  if (typeof label !== 'string') return false;
  const text = label.trim();
  if (address.protocol === 'mailto:') return text === describeTarget(address);
  if (text === describeTarget(address)) return true;
  const shown = parseAddress(text);
  return shown !== null && shown.host === address.host && shown.username === '' && shown.password === '';
}

/** Begins every id of a text. */
const OWN_ID = 'user-content-';

/** A link shows where it leads, because the words of a model's link may say anything. That of a footnote stays here. */
function Link({ href, children, id, 'aria-label': label, 'aria-describedby': describedBy }: ComponentProps<'a'> & ExtraProps): ReactNode {
  if (href?.startsWith(`#${OWN_ID}`) === true)
    return (
      <a href={href} id={id} aria-label={label} aria-describedby={describedBy} className="text-primary underline underline-offset-2">
        {children}
      </a>
    );
  const address = parseAddress(href);
  if (address === null) return <span>{children}</span>;
  const place = describeTarget(address);
  const says = isSameAddress(children, address);
  return (
    <a
      href={address.href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      title={address.href}
      className="font-medium text-primary underline underline-offset-2"
    >
      {children}
      {!says && <span className="ml-1 text-xs font-normal text-muted-foreground no-underline">({place})</span>}
    </a>
  );
}

/** A picture in a model's text could leak the conversation to its server: it is a link until the user opens it. */
function Picture({ src, alt }: ComponentProps<'img'> & ExtraProps): ReactNode {
  const words = useWords().chat.markdown;
  const address = parseAddress(src);
  const name = alt === undefined || alt === '' ? words.image : alt;
  if (address === null) return <span className="text-muted-foreground">[{name}]</span>;
  return (
    <a
      href={address.href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      title={words.notLoaded(address.href)}
      className="inline-flex max-w-full items-center gap-1.5 rounded-md border bg-muted px-2 py-0.5 text-sm"
    >
      <ImageIcon className="size-4 shrink-0 text-muted-foreground" />
      <span className="truncate">{name}</span>
      <span className="truncate text-xs text-muted-foreground">{describeTarget(address)}</span>
      <ExternalIcon className="size-3.5 shrink-0 text-muted-foreground" />
    </a>
  );
}

type HeadingProps = ComponentProps<'h3'> & ExtraProps;

/** Below the name of who speaks, whatever the text begins with: readers of headings miss none between. */
function toHeading(level: number): (props: HeadingProps) => ReactNode {
  return ({ children, id }: HeadingProps) => (
    <h3 id={id} data-level={level}>
      {children}
    </h3>
  );
}

/** The box of a task: what it stands for is its state. */
function TaskBox({ checked }: ComponentProps<'input'> & ExtraProps): ReactNode {
  const words = useWords().chat.markdown;
  return <input type="checkbox" disabled checked={checked === true} aria-label={checked === true ? words.done : words.open} readOnly />;
}

const components: Components = {
  a: Link,
  img: Picture,
  input: TaskBox,
  h1: toHeading(1),
  h2: toHeading(2),
  h3: toHeading(3),
  h4: toHeading(4),
  h5: toHeading(5),
  h6: toHeading(6),
};

/** As the renderer sanitises, but for ids and names, which it leaves as they are: pages find their parts by them. */
const schema: Schema = {
  ...defaultSchema,
  // Footnotes have theirs already.
  clobberPrefix: '',
  attributes: {
    ...defaultSchema.attributes,
    '*': [
      ...(defaultSchema.attributes?.['*'] ?? []).filter((name) => name !== 'id' && name !== 'name'),
      ['id', /^user-content-/u, 'footnote-label'],
    ],
  },
};
const rehypePlugins = Object.entries(defaultRehypePlugins).map(([name, plugin]): typeof plugin =>
  name === 'sanitize' ? [rehypeSanitize, schema] : plugin,
);

const controls: ControlsConfig = { code: { copy: true, download: false }, table: false, mermaid: false, image: false };

let loadedExtras: PluginConfig | null = null;

/** Colours and formulas, which most texts do without: loaded with the first text that has code or a formula. */
function useExtras(text: string): PluginConfig | null {
  const [extras, setExtras] = useState(loadedExtras);
  const isWanted = text.includes('```') || text.includes('~~~') || text.includes('$$');
  useEffect(() => {
    if (!isWanted || extras !== null) return undefined;
    let isShown = true;
    import('./markdown-extras.ts').then(
      ({ markdownExtras }) => {
        loadedExtras = markdownExtras;
        if (isShown) setExtras(markdownExtras);
      },
      // After a deploy its file has another name: code without colours can be read as well.
      () => undefined,
    );
    return () => {
      isShown = false;
    };
  }, [isWanted, extras]);
  return isWanted ? extras : null;
}

/** What the renderer makes scroll, without giving it the focus. */
const scrolled = {
  code: '[data-streamdown="code-block-body"]:not([tabindex])',
  table: '[data-streamdown="table-wrapper"] .overflow-x-auto:not([tabindex])',
} as const;

/** Code and tables that are wider than their boxes are scrolled with the keyboard, too. */
function useReachableBoxes(): RefObject<HTMLDivElement | null> {
  const { code, table } = useWords().chat.markdown;
  const area = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = area;
    if (current === null) return undefined;
    const reach = (selector: string, label: string): void => {
      for (const box of current.querySelectorAll(selector)) {
        box.setAttribute('tabindex', '0');
        box.setAttribute('role', 'group');
        box.setAttribute('aria-label', label);
      }
    };
    const reachAll = (): void => {
      reach(scrolled.code, code);
      reach(scrolled.table, table);
    };
    const observer = new MutationObserver(reachAll);
    observer.observe(current, { childList: true, subtree: true });
    reachAll();
    return () => {
      observer.disconnect();
    };
  }, [code, table]);
  return area;
}

/** Footnotes in the page's language, with ids that no other text of the page has. */
function useFootnotes(): NonNullable<StreamdownProps['remarkRehypeOptions']> {
  const { footnotes, backTo } = useWords().chat.markdown;
  const id = useId();
  return useMemo(
    () => ({
      clobberPrefix: `${OWN_ID}${id}-`,
      footnoteLabel: footnotes,
      footnoteBackLabel: (note: number, use: number) => backTo(use > 1 ? `${String(note + 1)}-${String(use)}` : String(note + 1)),
    }),
    [id, footnotes, backTo],
  );
}

/** A model's text. The little HTML that may be in it is sanitised; nothing is loaded from anywhere. */
export function Markdown({ text, streaming }: { readonly text: string; readonly streaming: boolean }): ReactNode {
  const extras = useExtras(text);
  const area = useReachableBoxes();
  const footnotes = useFootnotes();
  return (
    <div ref={area} className="min-w-0">
      <Streamdown
        className="markdown min-w-0 [overflow-wrap:anywhere]"
        mode={streaming ? 'streaming' : 'static'}
        isAnimating={streaming}
        dir="auto"
        lineNumbers={false}
        components={components}
        rehypePlugins={rehypePlugins}
        {...(text.includes('[^') && { remarkRehypeOptions: footnotes })}
        controls={controls}
        linkSafety={{ enabled: false }}
        {...(extras !== null && { plugins: extras })}
      >
        {text}
      </Streamdown>
    </div>
  );
}
