import { afterEach, describe, expect, it } from '@jest/globals';
import { ProvidersFile } from '@concierge/contract';
import { resolveProviders, type ModelMessage } from '@concierge/model';
import { Models } from '@concierge/model/openai';
import { hang, say, startScriptedModel, status, type RecordedRequest, type ScriptedModel } from '@concierge/testing';
import { compact, type SummaryPatience } from '../src/compaction/compact.ts';
import type { ContextBudget } from '../src/loop/model-messages.ts';
import { emptySession, userMessage } from '../src/fixtures/loop-fixture.ts';
import { RecordedWriter } from '../src/fixtures/recorded-writer.ts';
import { Conversation, type ConversationStart } from '../src/loop/conversation.ts';
import { modelMessages } from '../src/loop/model-messages.ts';
// eslint-disable-next-line no-restricted-imports -- a test that wants a provider over HTTP chooses the adapter

const at = '2026-11-20T10:00:00.000Z';

type Summariser = 'keeps what it is shown' | 'answers 500' | 'hangs' | 'stops in mid-sentence';

/** Sentences of a chat that are never asked for later, from words that come again and again. */
function chatter(number: number, characters: number): string {
  const words = 'well so then we talked about the weather and the garden while the coffee was getting cold again and it was fine'.split(
    ' ',
  );
  let text = '';
  for (let index = number; text.length < characters; index += 7)
    text += `${words[(index * 5) % words.length] ?? ''}${index % 9 === 0 ? '. ' : ' '}`;
  return text.trim();
}

interface Played {
  readonly messages: readonly ModelMessage[];
  readonly failures: unknown[];
  readonly compactions: number;
}

interface Chat {
  readonly questions: readonly string[];
  /** Tokens, four characters each. */
  readonly limitTokens: number;
  readonly answer?: string;
  readonly patience?: SummaryPatience;
}

/** Which of `facts` are still in what the model is sent at the end, or were in what the summariser was shown. */
class Chats {
  readonly #model: ScriptedModel;
  readonly #models: Models;

  constructor(model: ScriptedModel) {
    this.#model = model;
    const file = ProvidersFile.parse({ default: 's/m', providers: { s: { baseUrl: model.url, models: { m: {} } } } });
    this.#models = new Models({ providers: resolveProviders(file, () => undefined), limits: { backoffMs: 1, backoffMaxMs: 1 } });
  }

  get shown(): string {
    return this.#model.requests.map(({ userText }) => userText).join('\n');
  }

  async play({ questions, limitTokens, answer = 'I see, go on.', patience }: Chat): Promise<Played> {
    const budget: ContextBudget = {
      limitTokens,
      overheadCharacters: () => 2000,
      overheadTokens: () => 500,
      estimateTokens: (text) => Math.ceil(text.length / 4),
    };
    let session: ConversationStart = emptySession;
    let compactions = 0;
    const failures: unknown[] = [];
    let messages: readonly ModelMessage[] = [];
    for (const [index, question] of questions.entries()) {
      const turnId = `t${String(index)}`;
      const conversation = new Conversation(session, turnId);
      conversation.apply({ kind: 'prompt', message: userMessage(question, turnId) });
      const run = {
        conversation,
        model: this.#models.forRef(),
        budget,
        writer: new RecordedWriter(),
        signal: new AbortController().signal,
      };
      const isSmaller = await compact({ ...run, onFallback: (error) => failures.push(error), ...(patience && { patience }) }, 'due');
      compactions += isSmaller ? 1 : 0;
      messages = modelMessages(conversation, new Map());
      const reply = { id: `${turnId}.1`, turnId, at, role: 'assistant', text: `${answer} ${String(index)}` } as const;
      session = { ...session, summary: conversation.summary, messages: [...conversation.messages, reply] };
    }
    return { messages, failures, compactions };
  }

  async close(): Promise<void> {
    this.#models.close();
    await this.#model.close();
  }
}

const open: Chats[] = [];

async function chatsWith(summariser: Summariser): Promise<Chats> {
  const facts = /FACT[^.]*\./gu;
  const findAnswer = ({ userText }: RecordedRequest): Parameters<ScriptedModel['enqueue']>[0] => {
    if (summariser === 'answers 500') return [status(500)];
    if (summariser === 'hangs') return [hang()];
    if (summariser === 'stops in mid-sentence') return [say('## Goals\n- to'), hang()];
    return [say(`## Facts and preferences\n${[...new Set(userText.match(facts))].map((fact) => `- ${fact}`).join('\n')}`)];
  };
  const chats = new Chats(await startScriptedModel({ fallback: findAnswer }));
  open.push(chats);
  return chats;
}

afterEach(async () => {
  for (const chats of open.splice(0)) await chats.close();
});

const kept = (facts: readonly string[], text: string): number => facts.filter((fact) => text.includes(fact)).length;

/** Thirty facts, every fifth of 150 messages has one: at its beginning, in its middle or at its end. */
const facts = Array.from({ length: 30 }, (_, index) => `FACT the code of locker ${String(index)} is Q${String(7919 * (index + 3))}`);
const chat: Chat = {
  limitTokens: 5760,
  answer: chatter(3, 200),
  questions: Array.from({ length: 150 }, (_, index) => {
    const [before, after] = [chatter(index, 100), chatter(index + 40, 100)];
    if (index % 5 !== 2) return `${before}. ${after}.`;
    const fact = facts[(index - 2) / 5] ?? '';
    return [`${fact}. ${before}. ${after}.`, `${before}. ${fact}. ${after}.`, `${before}. ${after}. ${fact}.`][index % 3] ?? '';
  }),
};

describe('300 messages in a window of 8,000 tokens', () => {
  it('keep 30 of 30 facts with a summariser that keeps what it is shown', async () => {
    const { messages, compactions, failures } = await (await chatsWith('keeps what it is shown')).play(chat);
    expect(compactions).toBeGreaterThanOrEqual(3);
    expect(failures).toEqual([]);
    expect(kept(facts, JSON.stringify(messages))).toBe(30);
  });

  it('keep at least 28 of 30 facts when the summariser answers 500', async () => {
    const { messages, compactions, failures } = await (await chatsWith('answers 500')).play(chat);
    expect(failures).toHaveLength(compactions);
    expect(kept(facts, JSON.stringify(messages))).toBeGreaterThanOrEqual(28);
  });

  it.each(['hangs', 'stops in mid-sentence'] as const)('go on with the same when the summariser %s', async (summariser) => {
    const patience = { silenceMs: 30, totalMs: 10_000 };
    const { messages, failures } = await (await chatsWith(summariser)).play({ ...chat, patience });
    expect(failures).not.toEqual([]);
    expect(String(failures[0])).toContain('the summariser said nothing for 30 ms');
    expect(kept(facts, JSON.stringify(messages))).toBeGreaterThanOrEqual(28);
  });
});

describe('facts at the ends of long messages', () => {
  it('reach the summariser, 80 of 80', async () => {
    const chats = await chatsWith('keeps what it is shown');
    const ends = Array.from(
      { length: 80 },
      (_, index) => `FACT the key of room ${String(index)} hangs at K${String(104_729 * (index + 5))}`,
    );
    const lengths = [500, 900, 2500, 6000];
    const questions = ends.map((end, index) => `${chatter(index, lengths[index % 4] ?? 0)}. ${end}.`);
    const { messages, compactions } = await chats.play({ questions, limitTokens: 23_000 });
    expect(compactions).toBeGreaterThanOrEqual(1);
    expect(kept(ends, chats.shown + JSON.stringify(messages))).toBe(80);
  });
});
