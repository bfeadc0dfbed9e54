import { limits, routes, type SessionStaff } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { ChangeProblem, useCanChange } from '../owner/owner-parts.tsx';
import { Button } from '../parts/button.tsx';
import { TextField } from '../parts/fields.tsx';
import { Loaded } from '../parts/states.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { keepStaffName, useStaffName } from './staff-name.ts';

/** Who looks after the conversation; the staff member at this browser takes it on or lets it go. */
export function Assignee({ sessionId }: { readonly sessionId: string }): ReactNode {
  const query = useRead(routes.getSessionStaff, { params: { id: sessionId } });
  return <Loaded query={query}>{({ assignee }) => <AssigneeKnown sessionId={sessionId} assignee={assignee} />}</Loaded>;
}

interface AssigneeKnownProps extends Pick<SessionStaff, 'assignee'> {
  readonly sessionId: string;
}

function AssigneeKnown({ sessionId, assignee }: AssigneeKnownProps): ReactNode {
  const words = useWords().inbox;
  const canChange = useCanChange();
  const own = useStaffName();
  const assign = useChange(routes.assignSession, [routes.getSessionStaff, routes.listSessions]);
  const set = (name: string | null): void => assign.mutate({ params: { id: sessionId }, body: { name } });
  return (
    <>
      {assignee === null ? (
        <p className="text-muted-foreground">{words.nobody}</p>
      ) : (
        <p className="wrap-anywhere">
          {assignee.name}{' '}
          <span className="text-xs text-muted-foreground">
            <RelativeTime at={assignee.since} />
          </span>
        </p>
      )}
      {canChange && (
        <div className="flex flex-wrap gap-2 pt-1">
          {own === '' && <OwnName onSaid={set} />}
          {own !== '' && assignee?.name !== own && (
            <Button disabled={assign.isPending} onClick={() => set(own)}>
              {words.assignToMe}
            </Button>
          )}
          {assignee !== null && (
            <Button disabled={assign.isPending} onClick={() => set(null)}>
              {words.unassign}
            </Button>
          )}
        </div>
      )}
      <ChangeProblem change={assign} />
    </>
  );
}

/** Keys may be shared: a staff member gives a name once, and it stays in this browser. */
function OwnName({ onSaid }: { readonly onSaid: (name: string) => void }): ReactNode {
  const words = useWords().inbox;
  const [name, setName] = useState('');
  return (
    <form
      className="w-full space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() === '') return;
        keepStaffName(name);
        onSaid(name.trim());
      }}
    >
      <TextField
        label={words.ownName}
        help={words.ownNameHelp}
        value={name}
        onChange={setName}
        required
        maxLength={limits.staffNameMaxCharacters}
        autoComplete="off"
      />
      <Button type="submit">{words.assignToMe}</Button>
    </form>
  );
}
