import { routes } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { TextField } from '../parts/fields.tsx';
import { Section } from '../parts/page.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { SubmitRow, useCanChange } from '../owner/owner-parts.tsx';

const LOOK_MS = 2000;
const ended: ReadonlySet<string> = new Set(['done', 'failed', 'cancelled']);

/** Has a message come in as if the provider had brought it, and shows the answer that no provider gets. */
export function SimulateSection({ app, isConnected }: { readonly app: string; readonly isConnected: boolean }): ReactNode {
  const { owner, tools } = useWords();
  const words = tools.simulate;
  const canChange = useCanChange();
  const [message, setMessage] = useState('');
  const [sender, setSender] = useState('visitor');
  const simulate = useChange(routes.simulateChannel, [routes.listTurns, routes.listSessions]);
  return (
    <Section title={words.title} about={words.about}>
      <div className="space-y-3 rounded-xl border bg-card p-4 text-sm">
        {isConnected ? (
          <form
            className="space-y-3"
            onSubmit={(event) => {
              event.preventDefault();
              simulate.mutate({ params: { channel: app }, body: { message, sender } });
            }}
          >
            <div className="grid gap-3 sm:grid-cols-[2fr_1fr]">
              <TextField label={words.message} value={message} onChange={setMessage} required maxLength={2000} />
              <TextField
                label={words.sender}
                value={sender}
                onChange={setSender}
                required
                pattern="[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?"
                title={words.senderHelp}
                autoComplete="off"
                spellCheck={false}
              />
            </div>
            <SubmitRow change={simulate} canChange={canChange} label={words.send} done={words.accepted} />
          </form>
        ) : (
          <p className="text-muted-foreground">{owner.channels.connectFirst}</p>
        )}
        {simulate.data !== undefined && <SimulatedTurn key={simulate.data.turnId} turnId={simulate.data.turnId} />}
      </div>
    </Section>
  );
}

/** Looks until the turn has ended. */
function SimulatedTurn({ turnId }: { readonly turnId: string }): ReactNode {
  const { owner, tools } = useWords();
  const words = tools.simulate;
  const turn = useRead(routes.getTurn, { params: { id: turnId } });
  const isOver = ended.has(turn.data?.status ?? '');
  useRead(routes.getTurn, { params: { id: turnId } }, { isEnabled: !isOver, everyMs: LOOK_MS });
  const answers = turn.data?.deliveries ?? [];
  return (
    <div className="space-y-2" role="status">
      <p>
        {turn.data !== undefined && owner.status[turn.data.status]}{' '}
        <Link href={`/turns/${turnId}`} className="text-primary underline">
          {words.life}
        </Link>
      </p>
      {answers.map(({ id, text }) => (
        <blockquote key={id} className="rounded-lg bg-muted px-3 py-2 whitespace-pre-wrap">
          {text}
        </blockquote>
      ))}
      {answers.length > 0 && <p className="text-muted-foreground">{words.notSent}</p>}
    </div>
  );
}
