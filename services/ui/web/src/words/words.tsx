import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { explainFailure } from '../../../src/chat/chat-failure.ts';
import { Formats } from '../../../src/formats.ts';
import { keep, readKept } from '../parts/browser-storage.ts';
import { en, type Words } from './en.ts';

/** Languages of the console by their own names. To add one: its file beside `en.ts`, a line here and in `catalogs`. */
export const languages = { en: 'English', de: 'Deutsch' } as const;
export type Language = keyof typeof languages;

/** English is always there, and stands in until another catalog has been loaded. */
const catalogs: Readonly<Record<Language, () => Promise<Words>>> = {
  en: async () => Promise.resolve(en),
  de: async () => (await import('./de.ts')).de,
};

const NAME = 'concierge.language';

const isLanguage = (name: string | null): name is Language => name !== null && name in languages;

/** The language that was chosen, else the first of the browser's that the console speaks. */
function readLanguage(): Language {
  const kept = readKept('localStorage', NAME);
  if (isLanguage(kept)) return kept;
  return navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => isLanguage(tag)) ?? 'en';
}

interface Speech {
  readonly language: Language;
  readonly words: Words;
  readonly formats: Formats;
  readonly choose: (language: Language) => void;
}

const SpeechContext = createContext<Speech>({ language: 'en', words: en, formats: new Formats('en'), choose: () => undefined });

/** Gives the pages below it their texts and formats. */
export function SpeechProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const [language, setLanguage] = useState(readLanguage);
  const [words, setWords] = useState<Words | null>(() => (language === 'en' ? en : null));
  useEffect(() => {
    let isCurrent = true;
    document.documentElement.lang = language;
    void catalogs[language]()
      .catch(() => en)
      .then((loaded) => {
        if (isCurrent) setWords(loaded);
      });
    return () => {
      isCurrent = false;
    };
  }, [language]);
  const speech = useMemo(() => {
    // The country's own formats, where the browser has the language with a country.
    const locale = navigator.languages.find((tag) => tag.startsWith(language)) ?? language;
    const choose = (chosen: Language): void => {
      keep('localStorage', NAME, chosen);
      setLanguage(chosen);
    };
    return { language, words: words ?? en, formats: new Formats(locale), choose };
  }, [language, words]);
  // The catalog is one small file: better nothing for that moment than a flash of another language.
  return words === null ? null : <SpeechContext value={speech}>{children}</SpeechContext>;
}

/** The texts of the page, in the chosen language. */
export function useWords(): Words {
  return useContext(SpeechContext).words;
}

/** Says what happened and what to do about it, in the chosen language. */
export function useExplain(): (error: unknown) => string {
  const { failures } = useWords();
  return useCallback((error) => explainFailure(error, failures), [failures]);
}

/** Numbers, times and money as the chosen language writes them. */
export function useFormats(): Formats {
  return useContext(SpeechContext).formats;
}

export function LanguageChoice(): ReactNode {
  const { language, choose, words } = useContext(SpeechContext);
  return (
    <select
      aria-label={words.shell.language}
      className="h-8 rounded-lg border border-input bg-background px-1.5 text-[0.8125rem]"
      value={language}
      onChange={({ target }) => {
        if (isLanguage(target.value)) choose(target.value);
      }}
    >
      {Object.entries(languages).map(([value, label]) => (
        <option key={value} value={value} lang={value}>
          {label}
        </option>
      ))}
    </select>
  );
}
