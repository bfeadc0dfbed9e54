/** One event as a client reads it. */
export interface SeenEvent {
  readonly type: string;
  readonly data: Record<string, unknown>;
  readonly id: string;
}

/** Reads a whole event stream by the letter: `event`, `data`, `id`, in that order. */
export function parseEvents(text: string): SeenEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => {
      const match = /^event: (?<type>\w+)\ndata: (?<data>\{.*\})\nid: (?<id>\d+-\d+)$/u.exec(block);
      if (match?.groups === undefined) throw new Error(`not an event: ${block}`);
      const { type = '', data = '{}', id = '' } = match.groups;
      const parsed: SeenEvent['data'] = JSON.parse(data);
      return { type, data: parsed, id };
    });
}

/** What a stream says, without the comments that keep its connection alive where a machine stands still. */
export function withoutComments(text: string): string {
  return text.replaceAll(/^:\n\n/gmu, '');
}

export function joinText(events: readonly SeenEvent[]): string {
  return events
    .filter(({ type }) => type === 'text_delta')
    .map(({ data }) => String(data['delta']))
    .join('');
}
