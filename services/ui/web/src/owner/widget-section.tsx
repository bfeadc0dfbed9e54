import { routes, type WidgetBody, type WidgetLanguage, type WidgetView } from '@concierge/contract';
import { useCallback, useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { WidgetLookFields } from './widget-look-fields.tsx';
import { WidgetTeamFields } from './widget-team-fields.tsx';
import { Copyable, SubmitRow, useCanChange } from './owner-parts.tsx';

/** The chat on the owner's site: where it may be, how it looks, and the line that puts it there. */
export function WidgetSection(): ReactNode {
  const words = useWords().owner.settings;
  const query = useRead(routes.getWidget);
  const whoAmI = useRead(routes.whoAmI);
  const publicUrl = whoAmI.data?.publicUrl ?? null;
  const host = publicUrl ?? 'http://localhost:8000';
  return (
    <Section title={words.widget} about={words.widgetAbout}>
      <Loaded query={query}>
        {(widget) => (
          <div className="space-y-3 rounded-xl border bg-card p-4">
            {widget.key === null ? (
              <p className="text-sm text-muted-foreground">{words.snippetNone}</p>
            ) : (
              <Copyable label={words.snippet} text={`<script src="${host}/widget.js" data-key="${widget.key}" async></script>`} />
            )}
            {widget.key !== null && whoAmI.data !== undefined && publicUrl === null && (
              <p className="text-sm text-warn">{words.snippetHost}</p>
            )}
            <Credentials hasKey={widget.key !== null} />
            <WidgetForm widget={widget} sendsEmail={whoAmI.data?.sendsEmail !== false} />
          </div>
        )}
      </Loaded>
    </Section>
  );
}

/** Replaces what the pages and the owner's server have: both stop at once. A first secret makes a key, too. */
function Credentials({ hasKey }: { readonly hasKey: boolean }): ReactNode {
  const words = useWords().owner.settings;
  const canChange = useCanChange();
  const key = useChange(routes.rotateWidgetKey, [routes.getWidget]);
  const secret = useChange(routes.rotateWidgetSecret, [routes.getWidget]);
  if (!canChange) return null;
  return (
    <>
      <div className="flex flex-wrap gap-2">
        {hasKey && (
          <ConfirmButton
            label={words.newWidgetKey}
            title={words.newWidgetKeyTitle}
            action={words.newWidgetKey}
            onConfirm={async () => key.mutateAsync({})}
          >
            {words.newWidgetKeyText}
          </ConfirmButton>
        )}
        <ConfirmButton
          label={words.newSecret}
          title={words.newSecretTitle}
          action={words.newSecret}
          onConfirm={async () => secret.mutateAsync({})}
        >
          {words.newSecretText}
        </ConfirmButton>
      </div>
      {secret.data !== undefined && (
        <div role="status">
          <Copyable label={words.secretMade} text={secret.data.secret} />
        </div>
      )}
    </>
  );
}

interface SignedSendersProps {
  readonly isRequired: boolean;
  readonly secret: WidgetView['secret'];
  readonly onChange: (isRequired: boolean) => void;
}

/** Whether visitors need a token of the owner's server, which has none without a secret. */
function SignedSenders({ isRequired, secret, onChange }: SignedSendersProps): ReactNode {
  const words = useWords().owner.settings;
  return (
    <>
      <label className="flex min-h-9 items-center gap-2 text-sm">
        <input type="checkbox" className="size-4" checked={isRequired} onChange={({ target }) => onChange(target.checked)} />
        {words.signedSenders}
      </label>
      {isRequired && secret !== 'set' && <p className="text-sm text-warn">{words.secretStates[secret]}</p>}
    </>
  );
}

interface WidgetFormProps {
  readonly widget: WidgetView;
  readonly sendsEmail: boolean;
}

function WidgetForm({ widget, sendsEmail }: WidgetFormProps): ReactNode {
  const { owner } = useWords();
  const words = owner.settings;
  const canChange = useCanChange();
  const id = useId();
  const [enabled, setEnabled] = useState(widget.enabled);
  const [requireSenderToken, setRequireSenderToken] = useState(widget.requireSenderToken);
  const [origins, setOrigins] = useState(widget.origins.join('\n'));
  const [{ appearance, display }, setLook] = useState({ appearance: widget.appearance, display: widget.display });
  const setAppearance = (next: typeof appearance): void => setLook({ appearance: next, display });
  const [team, setTeam] = useState(widget.team);
  const [language, setLanguage] = useState<WidgetLanguage>('en');
  const body = {
    enabled,
    origins: origins.split(/\s+/u).filter((origin) => origin !== ''),
    appearance,
    requireSenderToken,
    display,
    team,
  };
  const save = useChange(routes.putWidget, [routes.getWidget]);
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate({ body });
      }}
    >
      <label className="flex min-h-9 items-center gap-2 text-sm">
        <input type="checkbox" className="size-4" checked={enabled} onChange={({ target }) => setEnabled(target.checked)} />
        {words.widgetOn}
      </label>
      <SignedSenders isRequired={requireSenderToken} secret={widget.secret} onChange={setRequireSenderToken} />
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label={words.heading} value={appearance.title} onChange={(title) => setAppearance({ ...appearance, title })} required />
        <TextField label={words.greeting} value={appearance.greeting} onChange={(greeting) => setAppearance({ ...appearance, greeting })} />
      </div>
      <div>
        <label htmlFor={id} className="mb-1 block text-xs font-medium text-muted-foreground">
          {words.origins}
        </label>
        <textarea
          id={id}
          rows={3}
          aria-describedby={`${id}-help`}
          className="w-full rounded-lg border border-input bg-background px-3 py-2 font-mono text-sm"
          value={origins}
          onChange={({ target }) => setOrigins(target.value)}
        />
        <p id={`${id}-help`} className="text-xs text-muted-foreground">
          {words.originsHelp}
        </p>
      </div>
      <WidgetLookFields appearance={appearance} display={display} onChange={setLook} language={language} onLanguage={setLanguage} />
      <WidgetPreview appearance={appearance} display={display} language={language} />
      <WidgetTeamFields team={team} sendsEmail={sendsEmail} onChange={setTeam} />
      <SubmitRow change={save} canChange={canChange} label={owner.save} done={owner.saved} />
    </form>
  );
}

interface WidgetPreviewProps extends Pick<WidgetBody, 'appearance' | 'display'> {
  readonly language: string;
}

/** The real panel as it would be, in a frame that may send nothing. */
function WidgetPreview({ appearance, display, language }: WidgetPreviewProps): ReactNode {
  const words = useWords().owner.settings.look;
  const frame = useRef<HTMLIFrameElement>(null);
  const show = useCallback(() => {
    // To an origin that has no name; what is sent is what a visitor of any site would see.
    frame.current?.contentWindow?.postMessage({ look: { appearance, display }, language }, '*');
  }, [appearance, display, language]);
  useEffect(show, [show]);
  return (
    <div>
      <p className="mb-1 text-xs font-medium text-muted-foreground">{words.preview}</p>
      <iframe
        ref={frame}
        title={words.preview}
        src="/widget-preview.html"
        sandbox="allow-scripts"
        className="h-[36rem] w-full rounded-lg border bg-muted"
        onLoad={show}
      />
    </div>
  );
}
