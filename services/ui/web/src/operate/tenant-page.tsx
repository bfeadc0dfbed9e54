import { routes, type OperatedTenantDetails } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { navigate } from 'wouter/use-browser-location';
import { buildAddress } from '../../../src/json-client.ts';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Badge, Page, Section, Tile } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { LimitsForm } from './limits-form.tsx';
import { SLOW_MS } from './shared.tsx';
import { TenantKeys } from './tenant-keys.tsx';

/** One tenant: what it may take, its keys, and what operators do with it as a whole. */
export function TenantPage({ tenant }: { readonly tenant: string }): ReactNode {
  const words = useWords().operate;
  const details = useRead(routes.getOperatedTenant, { params: { tenant } }, { everyMs: SLOW_MS });
  const about = (
    <>
      <Link href="/operate/tenants" className="text-primary hover:underline">
        {words.nav.tenants}
      </Link>{' '}
      ›
    </>
  );
  return (
    <Page title={tenant} about={about} actions={details.data !== undefined && <Actions details={details.data} />}>
      <Loaded query={details}>
        {(found) => (
          <>
            <Facts details={found} />
            <LimitsForm key={JSON.stringify(found.settings.limits)} details={found} />
            <TenantKeys tenant={tenant} />
            <Removal tenant={tenant} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ details: { tenantId, suspended } }: { readonly details: OperatedTenantDetails }): ReactNode {
  const { tenants } = useWords().operate;
  const affected = [routes.getOperatedTenant, routes.listTenants, routes.listOperatorAudit];
  const suspension = useChange(suspended ? routes.resumeTenant : routes.suspendTenant, affected);
  return (
    <>
      <a
        href={buildAddress(routes.exportTenant, { params: { tenant: tenantId } })}
        download
        className="inline-flex min-h-9 items-center rounded-lg border border-input bg-card px-3 text-sm font-medium hover:bg-muted"
      >
        {tenants.export}
      </a>
      <ConfirmButton
        label={suspended ? tenants.resume : tenants.suspend}
        title={suspended ? tenants.resumeTitle(tenantId) : tenants.suspendTitle(tenantId)}
        action={suspended ? tenants.resume : tenants.suspend}
        tone={suspended ? 'primary' : 'danger'}
        onConfirm={async () => suspension.mutateAsync({ params: { tenant: tenantId } })}
      >
        {suspended ? tenants.resumeText : tenants.suspendText}
      </ConfirmButton>
    </>
  );
}

function Facts({ details }: { readonly details: OperatedTenantDetails }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const { tenantId, name, plan, suspended, problem, activeKeys, skills, waitingTurns } = details;
  const links = [
    { href: `/operate/waiting?tenant=${tenantId}`, label: words.nav.waiting },
    { href: `/operate/turns?tenant=${tenantId}`, label: words.nav.turns },
    { href: `/operate/failures?tenant=${tenantId}`, label: words.nav.failures },
    { href: `/operate/deliveries?tenant=${tenantId}`, label: words.nav.deliveries },
    { href: `/operate/audit?tenant=${tenantId}`, label: words.nav.audit },
  ];
  return (
    <>
      <p className="flex flex-wrap items-center gap-2 text-sm">
        {name !== null && <span className="font-medium">{name}</span>}
        <Badge>{plan}</Badge>
        <Badge tone={suspended ? 'warn' : 'ok'}>{suspended ? words.tenants.suspended : words.tenants.active}</Badge>
        {problem !== null && <span className="text-danger">{problem}</span>}
        {links.map(({ href, label }) => (
          <Link key={href} href={href} className="text-primary hover:underline">
            {label}
          </Link>
        ))}
      </p>
      <div className="grid grid-cols-3 gap-3">
        <Tile label={words.tenants.unanswered} value={formats.number(waitingTurns)} />
        <Tile label={words.tenants.activeKeys} value={formats.number(activeKeys)} />
        <Tile label={words.tenants.skills} value={formats.number(skills)} />
      </div>
    </>
  );
}

function Removal({ tenant }: { readonly tenant: string }): ReactNode {
  const { tenants } = useWords().operate;
  const [typed, setTyped] = useState('');
  const [isOpen, setOpen] = useState(false);
  const removal = useChange(routes.deleteTenant, [routes.listTenants]);
  return (
    <Section title={tenants.remove} about={tenants.removeAbout}>
      {isOpen ? (
        <div className="max-w-sm space-y-2">
          <TextField label={tenants.typeId(tenant)} value={typed} onChange={setTyped} autoComplete="off" />
          <ConfirmButton
            label={tenants.remove}
            buttonTone="danger"
            disabled={typed !== tenant}
            title={tenants.removeTitle(tenant)}
            action={tenants.removeAction}
            onConfirm={async () => {
              await removal.mutateAsync({ params: { tenant } });
              navigate('/operate/tenants');
            }}
          >
            {tenants.removeText}
          </ConfirmButton>
        </div>
      ) : (
        <Button onClick={() => setOpen(true)}>{tenants.removeOpen}</Button>
      )}
    </Section>
  );
}
