import { routes, type ContactDetails } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { ContactNote } from '../owner/memory-page.tsx';
import { Done, useCanChange } from '../owner/owner-parts.tsx';
import { Button } from '../parts/button.tsx';
import { channelLabel } from '../parts/choice.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Loaded } from '../parts/states.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { Assignee } from './assignee.tsx';
import { useContactName } from './conversation-list.tsx';

export interface ContactPaneProps {
  readonly gateway: GatewayClient;
  readonly sessionId: string;
  readonly toHref: (id: string) => string;
  readonly onClose: () => void;
}

/** Who it is: ids, what else was talked about, what agents have noted, and whether an answer can be sent. */
export function ContactPane({ gateway, sessionId, toHref, onClose }: ContactPaneProps): ReactNode {
  const words = useWords().inbox;
  const query = useRead(routes.getSessionContact, { params: { id: sessionId } });
  return (
    <section aria-label={words.contact} tabIndex={0} className="min-h-0 flex-1 overflow-y-auto p-4 -outline-offset-2">
      <Button className="mb-3 xl:hidden" onClick={onClose}>
        {words.hideContact}
      </Button>
      <Loaded query={query}>
        {(contact) => (
          <div className="space-y-5 text-sm">
            <Facts contact={contact} sessionId={sessionId} />
            <Part title={words.assignee}>
              <Assignee sessionId={sessionId} />
            </Part>
            <Others contact={contact} sessionId={sessionId} toHref={toHref} />
            <Part title={words.notes}>
              {contact.notes.length === 0 && <p className="text-muted-foreground">{words.noNotes}</p>}
              {contact.notes.map(({ ref }) => (
                <ContactNote key={ref} gateway={gateway} id={contact.id} path={ref} />
              ))}
            </Part>
            <Erase contact={contact} sessionId={sessionId} />
          </div>
        )}
      </Loaded>
    </section>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactNode {
  return (
    <section className="space-y-1">
      <h3 className="text-xs font-semibold text-muted-foreground">{title}</h3>
      {children}
    </section>
  );
}

interface OfContact {
  readonly contact: ContactDetails;
  readonly sessionId: string;
}

function Facts({ contact, sessionId }: OfContact): ReactNode {
  const words = useWords().inbox;
  const formats = useFormats();
  const nameOf = useContactName();
  const { displayName, sender, identities, firstSeenAt, conversations } = contact;
  const here = conversations.find((one) => one.sessionId === sessionId);
  const ids = [...(sender === null ? [] : [sender]), ...identities.map(({ channel, id }) => `${id} (${channelLabel(channel)})`)];
  return (
    <>
      <h2 className="text-base font-semibold wrap-anywhere">{displayName ?? nameOf(contact)}</h2>
      {ids.length > 0 && (
        <Part title={words.identities}>
          <ul>
            {ids.map((id) => (
              <li key={id} className="wrap-anywhere">
                {id}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {firstSeenAt !== null && (
        <Part title={words.firstSeen}>
          <p>{formats.time(firstSeenAt)}</p>
        </Part>
      )}
      {here !== undefined && (
        <Part title={words.window}>
          <Window conversation={here} />
        </Part>
      )}
    </>
  );
}

function Window({ conversation }: { readonly conversation: ContactDetails['conversations'][number] }): ReactNode {
  const words = useWords().inbox;
  const formats = useFormats();
  const { window, unreachableSince } = conversation;
  if (unreachableSince !== null) return <p className="text-danger">{words.unreachable(formats.time(unreachableSince))}</p>;
  if (window.state === 'none') return <p>{words.windows.none}</p>;
  if (window.until === null) return <p className="text-danger">{words.windows.never}</p>;
  const time = formats.time(window.until);
  return window.state === 'open' ? <p>{words.windows.open(time)}</p> : <p className="text-danger">{words.windows.closed(time)}</p>;
}

function Others({ contact, sessionId, toHref }: OfContact & Pick<ContactPaneProps, 'toHref'>): ReactNode {
  const words = useWords().inbox;
  const others = contact.conversations.filter((one) => one.sessionId !== sessionId);
  return (
    <Part title={words.others}>
      {others.length === 0 && <p className="text-muted-foreground">{words.noOthers}</p>}
      <ul className="space-y-1">
        {others.map(({ sessionId: id, title, channel, updatedAt }) => (
          <li key={id}>
            <Link href={toHref(id)} className="block rounded-lg px-2 py-1 hover:bg-muted">
              <span className="block truncate">{title}</span>
              <span className="flex justify-between text-xs text-muted-foreground">
                {channelLabel(channel)} <RelativeTime at={updatedAt} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Erase({ contact, sessionId }: OfContact): ReactNode {
  const words = useWords().inbox;
  const nameOf = useContactName();
  const canChange = useCanChange();
  const erase = useChange(routes.eraseContact, [routes.listSessions, routes.listHandoffs]);
  if (!canChange) return null;
  if (erase.isSuccess) return <Done>{words.erased}</Done>;
  return (
    <ConfirmButton
      label={words.erase}
      title={words.eraseTitle(contact.displayName ?? nameOf(contact))}
      action={words.erase}
      onConfirm={async () => erase.mutateAsync({ body: { contact_id: sessionId } })}
    >
      {words.eraseText}
    </ConfirmButton>
  );
}
