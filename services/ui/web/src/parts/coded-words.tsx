import { Fragment, type ReactNode } from 'react';
import { sayCode, type CodedSentence } from '../words/en-coded.ts';
import { useWords } from '../words/words.tsx';
import { ServiceWords } from './states.tsx';

/**
 * A sentence of the service in the page's language, by its code; in English where the page has no words for that code.
 * What a provider or a library said stands behind it as it was said.
 */
export function CodedWords({ said }: { readonly said: CodedSentence }): ReactNode {
  const { coded } = useWords();
  const sentence = sayCode(coded, said);
  if (sentence === undefined) return <ServiceWords>{said.message}</ServiceWords>;
  const reason = said.params?.['reason'];
  if (reason === undefined) return sentence;
  return (
    <>
      {sentence} <ServiceWords>{reason}</ServiceWords>
    </>
  );
}

interface SaidDetailProps {
  /** In English. */
  readonly detail: string;
  /** The same by codes, where all of it has one. */
  readonly said?: readonly Omit<CodedSentence, 'message'>[] | undefined;
}

/** What was found, in the page's language if it has words for all of it. */
export function SaidDetail({ detail, said = [] }: SaidDetailProps): ReactNode {
  const { coded } = useWords();
  const sentences = said.map((sentence) => sayCode(coded, sentence));
  const isKnown = sentences.length > 0 && sentences.every((sentence) => sentence !== undefined);
  return isKnown ? sentences.join(' ') : <ServiceWords>{detail}</ServiceWords>;
}

interface FileProblemsProps {
  readonly problem: string;
  /** The same, one each; a gateway of an earlier version does not send them. */
  readonly problems?: readonly CodedSentence[] | undefined;
}

/** What is wrong with a file of an agent or a skill. */
export function FileProblems({ problem, problems = [] }: FileProblemsProps): ReactNode {
  if (problems.length === 0) return <ServiceWords>{problem}</ServiceWords>;
  return problems.map((said) => (
    <Fragment key={said.message}>
      <CodedWords said={said} />{' '}
    </Fragment>
  ));
}
