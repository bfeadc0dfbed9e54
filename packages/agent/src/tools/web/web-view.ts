/** One page of a document of the web; long documents have several. */
export interface WebPage {
  /** After redirects. */
  readonly url: string;
  /** Empty where the document has none. */
  readonly title: string;
  /** Readable Markdown; plain text and data as they are. */
  readonly text: string;
  readonly page: number;
  readonly pages: number;
  /** Bare words in place of Markdown: the document was too large or too deep for more. */
  readonly isPlain: boolean;
  /** The document is longer than its last page. */
  readonly isCut: boolean;
}

export interface WebHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

/** The open web, guarded: public addresses only, and for cs no more than what its conversation is about. */
export interface WebView {
  /** `page` counts from 1. @throws ToolError for what must not or cannot be fetched */
  fetch(url: string, options: { readonly page: number; readonly signal: AbortSignal }): Promise<WebPage>;
  /** Best first; `count` at most, and for cs at most a few. @throws ToolError when no search is configured, or it fails */
  search(query: string, options: { readonly count: number; readonly signal: AbortSignal }): Promise<readonly WebHit[]>;
}
