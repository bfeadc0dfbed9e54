import { routes, type WidgetBody, type WidgetLanguage, type WidgetView } from '@concierge/contract';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { askAnew, useApi, useChange, useRead } from '../parts/use-api.tsx';
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

interface WidgetValues extends Omit<WidgetBody, 'origins'> {
  /** As they are written: one in a line. */
  readonly origins: string;
}

function toValues({ enabled, origins, requireSenderToken, appearance, display, team }: WidgetBody): WidgetValues {
  return { enabled, origins: origins.join('\n'), requireSenderToken, appearance, display, team };
}

function toBody(values: WidgetValues): WidgetBody {
  return { ...values, origins: values.origins.split(/\s+/u).filter((origin) => origin !== '') };
}

/** What is written in a form: over what is stored now, where that is not what the form began with. */
interface Written<Fields> {
  readonly begun: Fields;
  readonly written: Fields;
  readonly stored: Fields;
}

function mergeFields<Fields extends object>({ begun, written, stored }: Written<Fields>): Fields {
  const merged = { ...stored };
  for (const name in written) {
    if (JSON.stringify(written[name]) !== JSON.stringify(begun[name])) merged[name] = written[name];
  }
  return merged;
}

function mergeValues({ begun, written, stored }: Written<WidgetValues>): WidgetValues {
  const pick = <Name extends 'appearance' | 'display' | 'team'>(name: Name): WidgetValues[Name] =>
    mergeFields({ begun: begun[name], written: written[name], stored: stored[name] });
  return { ...mergeFields({ begun, written, stored }), appearance: pick('appearance'), display: pick('display'), team: pick('team') };
}

/** What is written, over what is stored, also meanwhile and by another one: a PUT replaces all settings. */
function useWidgetValues(widget: WidgetView) {
  const api = useApi();
  const queries = useQueryClient();
  const [form, setForm] = useState(() => ({ widget, values: toValues(widget) }));
  const begun = toValues(form.widget);
  if (form.widget !== widget) setForm({ widget, values: mergeValues({ begun, written: form.values, stored: toValues(widget) }) });
  const save = useMutation({
    mutationFn: async (written: WidgetValues) => {
      const stored = toValues(await api.call(routes.getWidget));
      return api.call(routes.putWidget, { body: toBody(mergeValues({ begun, written, stored })) });
    },
    onSuccess: async () => askAnew(queries, { queryKey: [routes.getWidget.id] }),
  });
  return {
    values: form.values,
    change: (more: Partial<WidgetValues>) => setForm((now) => ({ ...now, values: { ...now.values, ...more } })),
    save,
    submit: () => {
      const sent = form.values;
      // As it is stored by now, but for what has been written since.
      const onSuccess = (): void =>
        setForm((now) => ({ ...now, values: mergeValues({ begun: sent, written: now.values, stored: toValues(now.widget) }) }));
      save.mutate(sent, { onSuccess });
    },
  };
}

function WidgetForm({ widget, sendsEmail }: WidgetFormProps): ReactNode {
  const { owner } = useWords();
  const words = owner.settings;
  const canChange = useCanChange();
  const id = useId();
  const { values, change, save, submit } = useWidgetValues(widget);
  const { enabled, origins, requireSenderToken, appearance, display, team } = values;
  const setAppearance = (next: typeof appearance): void => change({ appearance: next });
  const [language, setLanguage] = useState<WidgetLanguage>('en');
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <label className="flex min-h-9 items-center gap-2 text-sm">
        <input type="checkbox" className="size-4" checked={enabled} onChange={({ target }) => change({ enabled: target.checked })} />
        {words.widgetOn}
      </label>
      <SignedSenders
        isRequired={requireSenderToken}
        secret={widget.secret}
        onChange={(isRequired) => change({ requireSenderToken: isRequired })}
      />
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
          onChange={({ target }) => change({ origins: target.value })}
        />
        <p id={`${id}-help`} className="text-xs text-muted-foreground">
          {words.originsHelp}
        </p>
      </div>
      <WidgetLookFields appearance={appearance} display={display} onChange={change} language={language} onLanguage={setLanguage} />
      <WidgetPreview appearance={appearance} display={display} language={language} />
      <WidgetTeamFields team={team} sendsEmail={sendsEmail} onChange={(next) => change({ team: next })} />
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
