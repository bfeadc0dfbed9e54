/** What every object of a reply repeats. */
export interface ReplyFacts {
  readonly turnId: string;
  readonly contactId: string;
  /** The agent, as the request named it. */
  readonly model: string;
  /** Seconds since the epoch. */
  readonly createdAt: number;
}
