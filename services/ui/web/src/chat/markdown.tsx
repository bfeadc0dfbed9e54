import type { ComponentProps, ReactNode } from 'react';
import { Streamdown, type Components, type ControlsConfig, type ExtraProps } from 'streamdown';
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

/** A link shows where it leads, because the words of a model's link may say anything. */
function Link({ href, children }: ComponentProps<'a'> & ExtraProps): ReactNode {
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

const components: Components = { a: Link, img: Picture };
const controls: ControlsConfig = { code: { copy: true, download: false }, table: false, mermaid: false, image: false };

/** A model's text. The little HTML that may be in it is sanitised; nothing is loaded from anywhere. */
export function Markdown({ text, streaming }: { readonly text: string; readonly streaming: boolean }): ReactNode {
  return (
    <Streamdown
      className="markdown min-w-0 [overflow-wrap:anywhere]"
      mode={streaming ? 'streaming' : 'static'}
      isAnimating={streaming}
      dir="auto"
      lineNumbers={false}
      components={components}
      controls={controls}
      linkSafety={{ enabled: false }}
    >
      {text}
    </Streamdown>
  );
}
