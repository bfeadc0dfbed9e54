export interface WebPage {
  /** After redirects. */
  readonly url: string;
  readonly title: string;
  /** Readable Markdown; plain text as it is. */
  readonly markdown: string;
}

export interface WebHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

/** The open web, guarded: public addresses only. */
export interface WebView {
  /** @throws ToolError for what must not or cannot be fetched */
  fetch(url: string, signal: AbortSignal): Promise<WebPage>;
  /** @throws ToolError when no search is configured, or it fails */
  search(query: string, options: { readonly count: number; readonly signal: AbortSignal }): Promise<readonly WebHit[]>;
}
