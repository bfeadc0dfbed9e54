import { limits, widgetLanguages, type WidgetBody, type WidgetLanguage } from '@concierge/contract';
import type { ReactNode } from 'react';
import { SelectField, TextField } from '../parts/fields.tsx';
import { useWords } from '../words/words.tsx';

type Look = Pick<WidgetBody, 'appearance' | 'display'>;

interface LookFieldsProps extends Look {
  readonly onChange: (look: Look) => void;
  readonly language: WidgetLanguage;
  readonly onLanguage: (language: WidgetLanguage) => void;
}

const themes = ['auto', 'light', 'dark'] as const;
const positions = ['right', 'left'] as const;
const launchers = ['shown', 'hidden'] as const;
const filesOf = ['allowed', 'refused'] as const;

const OFFSET_MAX = limits.widgetOffsetMaxPixels;
/** What browsers take. */
const Z_INDEX_MAX = 2_147_483_647;

/** How the widget looks, and what it says in each language. */
export function WidgetLookFields(props: LookFieldsProps): ReactNode {
  const words = useWords().owner.settings.look;
  const { appearance, display, onChange } = props;
  const setDisplay = (more: Partial<Look['display']>): void => onChange({ appearance, display: { ...display, ...more } });
  const setAppearance = (more: Partial<Look['appearance']>): void => onChange({ appearance: { ...appearance, ...more }, display });
  return (
    <>
      <div className="grid gap-3 sm:grid-cols-3">
        <SelectField
          label={words.theme}
          value={display.theme}
          options={listOptions(words.themes, themes)}
          onChange={(theme) => setDisplay({ theme })}
        />
        <TextField label={words.colour} type="color" value={appearance.colour} onChange={(colour) => setAppearance({ colour })} />
        <SelectField
          label={words.position}
          value={appearance.position}
          options={listOptions(words.positions, positions)}
          onChange={(position) => setAppearance({ position })}
        />
        <WholeField
          label={words.offsetSide}
          max={OFFSET_MAX}
          value={display.offsetSide}
          onChange={(offsetSide) => setDisplay({ offsetSide })}
        />
        <WholeField
          label={words.offsetBottom}
          max={OFFSET_MAX}
          value={display.offsetBottom}
          onChange={(offsetBottom) => setDisplay({ offsetBottom })}
        />
        <WholeField
          label={words.zIndex}
          help={words.zIndexHelp}
          max={Z_INDEX_MAX}
          value={display.zIndex}
          onChange={(zIndex) => setDisplay({ zIndex })}
        />
        <SelectField
          label={words.launcher}
          help={words.launcherHelp}
          value={display.launcher}
          options={listOptions(words.launchers, launchers)}
          onChange={(launcher) => setDisplay({ launcher })}
        />
        <SelectField
          label={words.files}
          value={display.files}
          options={listOptions(words.filesOf, filesOf)}
          onChange={(files) => setDisplay({ files })}
        />
      </div>
      <LanguageFields {...props} />
    </>
  );
}

function listOptions<Value extends string>(
  names: Readonly<Record<NoInfer<Value>, string>>,
  values: readonly Value[],
): readonly { readonly value: Value; readonly label: string }[] {
  return values.map((value) => ({ value, label: names[value] }));
}

interface WholeFieldProps {
  readonly label: string;
  readonly help?: string;
  readonly max: number;
  readonly value: number;
  readonly onChange: (value: number) => void;
}

/** A whole number from 0. */
function WholeField({ label, help, max, value, onChange }: WholeFieldProps): ReactNode {
  return (
    <TextField
      label={label}
      help={help}
      type="number"
      min={0}
      max={max}
      required
      value={String(value)}
      onChange={(text) => onChange(Math.round(Number(text)))}
    />
  );
}

function LanguageFields({ appearance, display, language, onChange, onLanguage }: LookFieldsProps): ReactNode {
  const words = useWords().owner.settings;
  const own = display.texts[language] ?? {};
  const setText = (name: 'title' | 'greeting' | 'placeholder', text: string): void => {
    const { [name]: _before, ...rest } = own;
    const texts = { ...display.texts, [language]: text === '' ? rest : { ...rest, [name]: text } };
    onChange({ appearance, display: { ...display, texts } });
  };
  return (
    <fieldset className="grid gap-3 rounded-lg border p-3 sm:grid-cols-2">
      <legend className="px-1 text-xs font-medium text-muted-foreground">{words.look.texts}</legend>
      <SelectField
        label={words.look.language}
        help={words.look.textsHelp}
        value={language}
        options={widgetLanguages.map((value) => ({ value, label: words.look.languages[value] }))}
        onChange={onLanguage}
      />
      <TextField label={words.look.ownTitle} value={own.title ?? ''} maxLength={60} onChange={(text) => setText('title', text)} />
      <TextField label={words.look.ownGreeting} value={own.greeting ?? ''} maxLength={500} onChange={(text) => setText('greeting', text)} />
      <TextField
        label={words.look.placeholder}
        value={own.placeholder ?? ''}
        maxLength={100}
        onChange={(text) => setText('placeholder', text)}
      />
    </fieldset>
  );
}
