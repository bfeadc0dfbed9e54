import { readFile } from 'node:fs/promises';
import {
  agentRules,
  AppError,
  countLimitTokens,
  overheadShareMax,
  ProvidersFile,
  toolsOfAgent,
  toolTokens,
  type AgentDefinition,
  type TenantSettings,
} from '@concierge/contract';
import type { Log } from '@concierge/runtime';

/** A model as a setting names it, and the setting's name. */
export interface NamedModel {
  readonly path: string;
  readonly ref: string;
}

/**
 * The models that the providers file names: a worker would answer with the default model in place of one that no
 * provider has. A provider may have more models than the file lists, so what counts is that there is one of that name.
 */
export class ModelNames {
  readonly #file: string;
  readonly #log: Log;

  constructor(file: string, log: Log) {
    this.#file = file;
    this.#log = log;
  }

  /** @throws AppError `invalid_request`, naming each */
  async refuseUnknown(named: readonly NamedModel[]): Promise<void> {
    if (named.length === 0) return;
    const file = await this.#read();
    if (file === undefined) return;
    const providers = Object.keys(file.providers);
    const errors = named
      .filter(({ ref }) => !providers.includes(splitRef(ref).provider))
      .map(({ path, ref }) => ({ path, message: `${ref} is a model of no provider here; there are: ${providers.join(', ')}` }));
    if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
  }

  /** A key goes to no address but that of a provider of the file. @throws AppError `invalid_request` */
  async refuseUnknownProvider(name: string): Promise<void> {
    const file = await this.#read();
    if (file === undefined || Object.hasOwn(file.providers, name)) return;
    const message = `is no model provider here; there are: ${Object.keys(file.providers).join(', ')}`;
    throw new AppError('invalid_request', undefined, { errors: [{ path: 'provider', message }] });
  }

  /**
   * One for each agent whose tools leave its model little room for a conversation. Their size is estimated; the worker,
   * which has the tools, warns by their real size.
   */
  async smallWindows(agents: readonly AgentDefinition[], settings: TenantSettings): Promise<string[]> {
    const file = await this.#read();
    if (file === undefined) return [];
    return agents.flatMap((agent) => {
      const { allow, model: ref = file.default } = agentRules(agent, settings);
      const { provider, model } = splitRef(ref);
      const facts = file.providers[provider]?.models[model];
      const count = toolsOfAgent(agent.access, allow).length;
      const tokens = toolTokens(agent.access, count);
      if (facts === undefined || tokens <= countLimitTokens(facts) * overheadShareMax) return [];
      const sizes = `The ${String(count)} tools of the agent ${agent.name} take about ${String(tokens)} tokens, and ${ref} has a window of ${String(facts.contextWindow)}`;
      return [`${sizes}: conversations are shortened all the time. Give the agent fewer tools or a model with a larger window.`];
    });
  }

  /** Whether there is a key for each provider the workers use; their environment may differ. */
  async #read(): Promise<ProvidersFile | undefined> {
    try {
      return ProvidersFile.parse(JSON.parse(await readFile(this.#file, 'utf8')));
    } catch {
      // The parser's message may quote a key. The workers report that the file cannot be used.
      this.#log.debug({ file: this.#file }, 'there is no providers file that can be read: models of settings are not checked');
      return undefined;
    }
  }
}

function splitRef(ref: string): { readonly provider: string; readonly model: string } {
  const slash = ref.indexOf('/');
  return { provider: ref.slice(0, slash), model: ref.slice(slash + 1) };
}
