/** Another writer published first, or the session was removed: what was to be published is based on an old revision. */
export class RevisionConflict extends Error {
  override readonly name = 'RevisionConflict';
  readonly sessionId: string;
  readonly revision: number;

  constructor(sessionId: string, revision: number) {
    super(`revision ${String(revision)} of session ${sessionId} is not the next one`);
    this.sessionId = sessionId;
    this.revision = revision;
  }
}

/** A revision whose files are in place, and may not be on disk yet. */
export interface Publication {
  readonly sessionId: string;
  /** The content of its file. */
  readonly text: string;
  /** Makes what is the session's newest revision by then durable. */
  readonly sync: () => Promise<void>;
}

/**
 * The write-ahead log of this process, for one tenant: a revision that is on disk there needs no sync of its own before
 * it counts as published (packages/turn, process-log.ts).
 */
export interface PublicationLog {
  /** Whether it would take a text of this length now. */
  takes: (length: number) => boolean;
  /** On disk there when it resolves with true; it sees to the sync from then on. */
  record: (publication: Publication) => Promise<boolean>;
}

/** The write-ahead log of this process, for the sessions of all tenants; see `PublicationLog`. */
export interface Publications extends Pick<PublicationLog, 'takes'> {
  /** `identity`: of the tenant, see `TenantScope.identity`. */
  record: (publication: Publication & { readonly tenantId: string; readonly identity: string }) => Promise<boolean>;
}
