import { routes, type ChannelSetup } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { Button } from '../parts/button.tsx';
import { CodedWords } from '../parts/coded-words.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { CheckIcon, AlertIcon, SpinnerIcon } from '../parts/icons.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { ChannelHealth } from '../trials/channel-health.tsx';
import { SimulateSection } from '../trials/simulate-section.tsx';
import { ChangeProblem, Copyable, SubmitRow, useCanChange } from './owner-parts.tsx';

const FIRST_MESSAGE_LOOK_MS = 10_000;
const changed = [routes.getChannelSetup, routes.getChannel, routes.listChannels];

/** Connects one channel in four steps, and shows how it does once it is connected. */
export function ChannelPage({ app }: { readonly app: string }): ReactNode {
  const { channels: words } = useWords().owner;
  const query = useRead(routes.getChannelSetup, { params: { channel: app } });
  const label = query.data?.label ?? app;
  return (
    <Page
      title={label}
      about={
        <Link href="/channels" className="text-primary underline">
          {words.back}
        </Link>
      }
      actions={query.data?.connected === true && <Disconnect app={app} label={label} />}
    >
      <Loaded query={query}>
        {(setup) => (
          <div className="max-w-3xl space-y-5">
            {setup.connected && <ChannelHealth app={app} channel={setup.channel} />}
            <ol className="space-y-5">
              <li>
                <Credentials app={app} setup={setup} />
              </li>
              <li>
                <Webhook setup={setup} />
              </li>
              <li>
                <Test app={app} setup={setup} />
              </li>
              <li>
                <FirstMessage app={app} setup={setup} />
              </li>
              <li>
                <SimulateSection app={app} isConnected={setup.connected} />
              </li>
            </ol>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

interface StepProps {
  readonly app: string;
  readonly setup: ChannelSetup;
}

function Credentials({ app, setup }: StepProps): ReactNode {
  const { channels: words } = useWords().owner;
  const canChange = useCanChange();
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const { verifyToken, fields, connected } = setup;
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
  const connect = useChange(routes.putChannel, changed);
  return (
    <Section title={words.stepOne} about={words.stepOneHelp}>
      <form
        className="space-y-3 rounded-xl border bg-card p-4"
        onSubmit={(event) => {
          event.preventDefault();
          // What has been written since stays.
          const onSuccess = (): void =>
            setValues((now) => Object.fromEntries(Object.entries(now).filter(([name, value]) => value !== given[name])));
          connect.mutate({ params: { channel: app }, body: given }, { onSuccess });
        }}
      >
        <div className="grid gap-3 sm:grid-cols-2">
          {fields.map(({ name, isSecret, isRequired }) => (
            <TextField
              key={name}
              label={`${name} (${isRequired ? words.required : words.optional})`}
              type={isSecret ? 'password' : 'text'}
              value={values[name] ?? ''}
              onChange={(value) => setValues({ ...values, [name]: value })}
              required={isRequired}
              autoComplete="off"
              spellCheck={false}
            />
          ))}
        </div>
        {verifyToken !== null && <Copyable label={words.suggested(verifyToken.field)} text={verifyToken.value} />}
        <SubmitRow change={connect} canChange={canChange} label={connected ? words.reconnect : words.connect} done={words.connected} />
      </form>
    </Section>
  );
}

function Webhook({ setup }: { readonly setup: ChannelSetup }): ReactNode {
  const { channels: words } = useWords().owner;
  const { webhookUrl, hasPublicUrl, verifyToken } = setup;
  return (
    <Section title={words.stepTwo} about={words.stepTwoHelp}>
      <div className="space-y-3 rounded-xl border bg-card p-4">
        <Copyable label={words.webhookUrl} text={webhookUrl} />
        {!hasPublicUrl && <p className="text-sm text-warn">{words.noPublicUrl}</p>}
        {verifyToken !== null && <Copyable label={`${words.token} (${verifyToken.field})`} text={verifyToken.value} />}
      </div>
    </Section>
  );
}

function Test({ app, setup }: StepProps): ReactNode {
  const { channels: words } = useWords().owner;
  const canChange = useCanChange();
  const test = useChange(routes.testChannel, [routes.getChannel]);
  const known: Readonly<Record<string, string>> = words.checks;
  return (
    <Section title={words.stepThree} about={words.stepThreeHelp}>
      <div className="space-y-3 rounded-xl border bg-card p-4 text-sm">
        {canChange && (
          <Button disabled={!setup.connected || test.isPending} onClick={() => test.mutate({ params: { channel: app } })}>
            {test.isPending && <SpinnerIcon />} {words.test}
          </Button>
        )}
        {!setup.connected && <p className="text-muted-foreground">{words.connectFirst}</p>}
        <div role="status">
          <ul className="space-y-1">
            {test.data?.checks.map((check) => (
              <li key={check.name} className={`flex items-start gap-2 ${check.ok ? 'text-ok' : 'text-danger'}`}>
                {check.ok ? <CheckIcon className="mt-0.5 size-4 shrink-0" /> : <AlertIcon className="mt-0.5 size-4 shrink-0" />}
                <span>
                  {known[check.name] ?? check.name}: <CodedWords said={check} />
                </span>
              </li>
            ))}
          </ul>
        </div>
        <ChangeProblem change={test} />
      </div>
    </Section>
  );
}

/** Looks from time to time until the first message has come in. */
function FirstMessage({ app, setup: { connected } }: StepProps): ReactNode {
  const { channels: words } = useWords().owner;
  const first = useRead(routes.getChannel, { params: { channel: app } }, { isEnabled: connected });
  const isWaiting = connected && first.data?.lastInboundAt === null;
  useRead(routes.getChannel, { params: { channel: app } }, { isEnabled: isWaiting, everyMs: FIRST_MESSAGE_LOOK_MS });
  return (
    <Section title={words.stepFour}>
      <div className="rounded-xl border bg-card p-4 text-sm">
        {!connected && <p className="text-muted-foreground">{words.connectFirst}</p>}
        {connected && (
          <Loaded query={first}>
            {() => (
              <p role="status" className={`flex items-center gap-2 ${isWaiting ? 'text-warn' : 'text-ok'}`}>
                {isWaiting ? <SpinnerIcon /> : <CheckIcon />} {isWaiting ? words.waiting : words.arrived}
              </p>
            )}
          </Loaded>
        )}
      </div>
    </Section>
  );
}

function Disconnect({ app, label }: { readonly app: string; readonly label: string }): ReactNode {
  const { channels: words } = useWords().owner;
  const canChange = useCanChange();
  const disconnect = useChange(routes.deleteChannel, changed);
  if (!canChange) return null;
  return (
    <ConfirmButton
      label={words.disconnect}
      title={words.disconnectTitle(label)}
      action={words.disconnect}
      onConfirm={async () => disconnect.mutateAsync({ params: { channel: app } })}
    >
      {words.disconnectText}
    </ConfirmButton>
  );
}
