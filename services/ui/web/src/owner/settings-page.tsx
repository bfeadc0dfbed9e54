import { routes, type TenantView } from '@concierge/contract';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { TextField, useTyped } from '../parts/fields.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { saveAs } from '../parts/save-as.ts';
import { useWords } from '../words/words.tsx';
import { EventEndpointsSection, ModelKeysSection } from '../trials/connections-section.tsx';
import { McpServersSection } from '../trials/mcp-section.tsx';
import { KeysSection } from './keys-section.tsx';
import { ChangeProblem, SubmitRow, useCanChange } from './owner-parts.tsx';
import { RetentionSection } from './retention-section.tsx';
import { WidgetSection } from './widget-section.tsx';

/** The tenant's own settings: business, keys, the chat on its site, and everything in one archive. */
export function SettingsPage({ gateway }: { readonly gateway: GatewayClient }): ReactNode {
  const { owner } = useWords();
  const words = owner.settings;
  const tenant = useRead(routes.getTenant);
  const canChange = useCanChange();
  return (
    <Page title={words.title} about={canChange ? words.about : owner.readOnly}>
      <Loaded query={tenant}>{(settings) => <Business tenant={settings} />}</Loaded>
      <KeysSection />
      <WidgetSection />
      <ModelKeysSection />
      <EventEndpointsSection />
      <McpServersSection />
      <Loaded query={tenant}>{(settings) => <RetentionSection tenant={settings} />}</Loaded>
      {canChange && <Archive gateway={gateway} />}
    </Page>
  );
}

/** All time zones that the browser knows; one that is missing can be typed. */
function listTimeZones(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')];
}

function Business({ tenant }: { readonly tenant: TenantView }): ReactNode {
  const { owner } = useWords();
  const words = owner.settings;
  const canChange = useCanChange();
  const { typed, set, clear } = useTyped<'name' | 'timezone'>();
  const save = useChange(routes.updateTenant, [routes.getTenant, routes.whoAmI, routes.listSchedules]);
  return (
    <Section title={words.business}>
      <form
        className="space-y-3 rounded-xl border bg-card p-4"
        onSubmit={(event) => {
          event.preventDefault();
          const body = Object.fromEntries([...typed].map(([field, text]) => [field, text === '' ? null : text]));
          save.mutate({ body }, { onSuccess: () => clear(typed) });
        }}
      >
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField label={owner.name} value={typed.get('name') ?? tenant.name ?? ''} onChange={set('name')} maxLength={200} />
          <TextField
            label={words.timezone}
            help={words.timezoneHelp}
            value={typed.get('timezone') ?? tenant.timezone ?? ''}
            onChange={set('timezone')}
            list="zones"
            placeholder="UTC"
            maxLength={64}
          />
        </div>
        <datalist id="zones">
          {listTimeZones().map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        <SubmitRow change={save} canChange={canChange} label={owner.save} done={owner.saved} />
      </form>
    </Section>
  );
}

function Archive({ gateway }: { readonly gateway: GatewayClient }): ReactNode {
  const words = useWords().owner.settings;
  const download = useMutation({
    mutationFn: async () => {
      const response = await gateway.request(routes.exportOwnTenant.path, { method: 'POST' });
      const name = /filename="([^"]+)"/u.exec(response.headers.get('content-disposition') ?? '')?.[1] ?? 'export.tar.gz';
      saveAs(await response.blob(), name);
    },
  });
  return (
    <Section title={words.archive} about={words.archiveAbout}>
      <Button disabled={download.isPending} onClick={() => download.mutate()}>
        {download.isPending ? words.downloading : words.download}
      </Button>
      <ChangeProblem change={download} />
    </Section>
  );
}
