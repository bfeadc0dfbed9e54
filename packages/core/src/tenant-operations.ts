import { join } from 'node:path';
import {
  AppError,
  KeyScope,
  type AuditAct,
  type CreatedTenant,
  type ErasureBody,
  type ErasureReport,
  type ImportedTenant,
  type KeyView,
  type ModelKeyBody,
  type ModelKeyView,
  type NewTenantBody,
  type OperatedTenant,
  type OperatedTenantDetails,
  type OperatedTenantPatch,
  type RemovedTenant,
  totalUsage,
  type UsageOfTenant,
} from '@concierge/contract';
import type { KeyRequest, NewKey, Tenants, TenantScope } from '@concierge/tenant';
import type { ErasureOptions, TenantRemovalOptions, Turns } from '@concierge/turn';
import type { TenantExport } from './tenant-archive.ts';

/** Redis and what runs on it. */
export type RunningParts = Pick<TenantRemovalOptions, 'redis'> & { readonly turns: Pick<Turns, 'stopAll' | 'endTurns'> };

export interface TenantOperationsOptions {
  readonly dataDir: string;
  readonly tenants: Tenants;
  /** undefined where nothing runs. */
  readonly running: () => Promise<RunningParts | undefined>;
  /** Where operators ask. */
  readonly via: 'api' | 'cli';
}

/** What is asked, and by which request; none at the command line. */
export interface Asked {
  readonly requestId: string | null;
}

interface ActFacts {
  readonly target?: string | null;
  readonly asked?: Asked;
  /** In the words of the operator. */
  readonly reason?: string;
  /** How many turns it was done to. */
  readonly turns?: number;
}

interface TenantsPage {
  readonly after?: string | undefined;
  readonly limit?: number;
}

interface UsagePage extends TenantsPage {
  /** This one alone, on one page. */
  readonly tenant?: string | undefined;
}

/** Operators may grant everything. */
const allScopes: readonly KeyScope[] = KeyScope.options;
const byHand: Asked = { requestId: null };

/**
 * What operators do with tenants, for the command line and the API alike. Each act goes on record when it is done: in
 * the log of the deployment, and in that of the tenant where there still is one.
 */
export class TenantOperations {
  readonly #options: TenantOperationsOptions;

  constructor(options: TenantOperationsOptions) {
    this.#options = options;
  }

  /** @throws AppError conflict, invalid_request */
  async create({ id, plan, name, limits }: NewTenantBody, asked = byHand): Promise<CreatedTenant> {
    const scope = await this.#options.tenants.create(id, { plan });
    if (name !== undefined || limits !== undefined) await scope.updateSettings({ name, limits });
    const keys = await createFirstKeys(scope);
    await this.record('tenant.create', { scope, asked });
    return { tenantId: id, keys };
  }

  /** By id; `after`: those behind this id. */
  async list({ after, limit = Infinity }: TenantsPage = {}): Promise<OperatedTenant[]> {
    const ids = (await this.#options.tenants.list()).filter((id) => after === undefined || id > after);
    const found: OperatedTenant[] = [];
    for (const id of ids) {
      if (found.length === limit) break;
      const scope = await this.#options.tenants.find(id);
      if (scope !== undefined) found.push(await view(scope));
    }
    return found;
  }

  /** @throws AppError not_found */
  async get(id: string): Promise<OperatedTenantDetails> {
    return await viewDetails(await this.open(id));
  }

  /** @throws AppError not_found, invalid_request, conflict */
  async update(id: string, patch: OperatedTenantPatch, asked = byHand): Promise<OperatedTenantDetails> {
    const scope = await this.open(id);
    await scope.updateSettings(patch);
    await this.record('tenant.update', { scope, target: Object.keys(patch).join(' '), asked });
    return viewDetails(scope);
  }

  /** @throws AppError not_found, conflict */
  async setSuspended(id: string, suspended: boolean, asked = byHand): Promise<OperatedTenant> {
    const scope = await this.open(id);
    await this.#options.tenants.setSuspended(id, suspended);
    await this.record(suspended ? 'tenant.suspend' : 'tenant.resume', { scope, asked });
    return view(scope);
  }

  /** Its turns are stopped first, where anything runs. @throws AppError not_found, conflict */
  async delete(id: string, asked = byHand): Promise<RemovedTenant> {
    await this.open(id);
    const notes = await this.#remove(id);
    const done = { by: this.#by(), act: 'tenant.delete', tenantId: id, target: null, requestId: asked.requestId } as const;
    await this.#options.tenants.audit.record(done);
    return { tenantId: id, deleted: true, notes };
  }

  /** @throws AppError not_found */
  async listKeys(id: string): Promise<KeyView[]> {
    return await (await this.open(id)).keys.list();
  }

  /** @throws AppError not_found, invalid_request */
  async createKey(id: string, request: KeyRequest, asked = byHand): Promise<NewKey> {
    const scope = await this.open(id);
    const created = await scope.keys.create(request, allScopes);
    await this.record('key.create', { scope, target: created.id, asked });
    return created;
  }

  /** @throws AppError not_found */
  async revokeKey(id: string, keyId: string, asked = byHand): Promise<KeyView> {
    const scope = await this.open(id);
    const revoked = await scope.keys.revoke(keyId);
    await this.record('key.revoke', { scope, target: keyId, asked });
    return revoked;
  }

  /** @throws AppError not_found, conflict */
  async rotateKey(id: string, keyId: string, asked = byHand): Promise<NewKey> {
    const scope = await this.open(id);
    const created = await scope.keys.rotate(keyId, allScopes);
    await this.record('key.rotate', { scope, target: `${keyId} ${created.id}`, asked });
    return created;
  }

  /** @throws AppError not_found */
  async listModelKeys(id: string): Promise<ModelKeyView[]> {
    return await (await this.open(id)).modelKeys.list();
  }

  /** Whether there is such a provider is the caller's to see to. @throws AppError not_found, invalid_request */
  async putModelKey(
    { tenantId, provider }: { readonly tenantId: string; readonly provider: string },
    body: ModelKeyBody,
    asked = byHand,
  ): Promise<ModelKeyView> {
    const scope = await this.open(tenantId);
    const view = await scope.modelKeys.put(provider, body);
    await this.record('model-key.set', { scope, target: provider, asked });
    return view;
  }

  /** @throws AppError not_found */
  async removeModelKey({ tenantId, provider }: { readonly tenantId: string; readonly provider: string }, asked = byHand): Promise<void> {
    const scope = await this.open(tenantId);
    await scope.modelKeys.remove(provider);
    await this.record('model-key.remove', { scope, target: provider, asked });
  }

  /**
   * Begins, or goes on. On record before it ends: cut off, it is finished by itself.
   * @throws AppError not_found, overloaded
   */
  async eraseContact(id: string, whom: ErasureBody, asked = byHand): Promise<ErasureReport> {
    const scope = await this.open(id);
    const report = await (await import('@concierge/turn')).eraseContact(await this.#erasing(), scope, whom);
    await this.record('contact.erase', { scope, target: report.id, asked });
    return report;
  }

  /** Does now what the cron service would do in some seconds. @throws AppError not_found, overloaded */
  async continueErasure(id: string, erasureId: string): Promise<void> {
    await (await import('@concierge/turn')).continueErasure(await this.#erasing(), await this.open(id), erasureId);
  }

  /** Sums of tenants by id, `limit` of them behind `after`. */
  async listUsage(days: { readonly from: string; readonly to: string }, { tenant, ...page }: UsagePage = {}): Promise<UsageOfTenant[]> {
    const tenantIds = tenant === undefined ? (await this.list(page)).map(({ tenantId }) => tenantId) : [tenant];
    const items: UsageOfTenant[] = [];
    for (const tenantId of tenantIds) {
      const { turns, calls, inputTokens, cachedInputTokens, outputTokens, costUsd } = totalUsage(
        await (await this.open(tenantId)).index.usage(days),
      );
      items.push({ tenantId, turns, calls, inputTokens, cachedInputTokens, outputTokens, costUsd });
    }
    return items;
  }

  /** An act on a part of the deployment that is no tenant's. */
  async recordForDeployment(act: AuditAct, target: string, asked = byHand): Promise<void> {
    await this.#options.tenants.audit.record({ by: this.#by(), act, tenantId: null, target, requestId: asked.requestId });
  }

  /** What is accepted and only in a write-ahead log gets its file first. @throws AppError not_found */
  async export(id: string, asked = byHand): Promise<TenantExport> {
    const scope = await this.open(id);
    const exported = await this.exportScope(scope);
    await this.record('tenant.export', { scope, asked });
    return exported;
  }

  /** As `export`, on record by who asks. @throws AppError overloaded */
  async exportScope(scope: TenantScope): Promise<TenantExport> {
    const [{ exportTenant }, { fileUnanswered, LogsOnDisk }] = [await import('./tenant-archive.ts'), await import('@concierge/turn')];
    const logged = await new LogsOnDisk(this.#options.tenants.logsFolder).findTurns(scope.tenantId);
    await fileUnanswered((await this.#options.running())?.redis, scope, { turns: logged });
    return await exportTenant(scope);
  }

  /**
   * Keys stay valid under the same id and KEY_SECRET; under another id the tenant gets new ones.
   * @throws AppError invalid_request, too_large, conflict, overloaded
   */
  async import(source: AsyncIterable<Uint8Array>, newId: string | undefined, asked = byHand): Promise<ImportedTenant> {
    const { importTenant, listImportNotes } = await import('./tenant-archive.ts');
    const { dataDir, tenants } = this.#options;
    const { tenantId, files } = await importTenant({ source, tenantsFolder: join(dataDir, 'tenants'), newId });
    const scope = await tenants.open(tenantId);
    await scope.reindex();
    const keys = (await scope.keys.list()).length === 0 ? await createFirstKeys(scope) : undefined;
    await this.record('tenant.import', { scope, asked });
    return { tenantId, files, ...(keys === undefined ? {} : { keys }), notes: await listImportNotes(scope, newId) };
  }

  /** @throws AppError not_found */
  async open(id: string): Promise<TenantScope> {
    const scope = await this.#options.tenants.find(id);
    if (scope === undefined) throw new AppError('not_found', `There is no tenant ${id}.`);
    return scope;
  }

  /** Puts on record what an operator has done in a tenant. */
  async record(
    act: AuditAct,
    { scope, target = null, asked = byHand, reason, turns }: ActFacts & { readonly scope: TenantScope },
  ): Promise<void> {
    const { tenantId } = scope;
    const more = { ...(reason !== undefined && { reason }), ...(turns !== undefined && { turns }) };
    const done = { by: this.#by(), act, tenantId, target, requestId: asked.requestId, ...more };
    await scope.audit.record(done);
    await this.#options.tenants.audit.record(done);
  }

  #by(): { readonly kind: 'operator'; readonly via: 'api' | 'cli' } {
    return { kind: 'operator', via: this.#options.via };
  }

  async #erasing(): Promise<ErasureOptions> {
    const running = await this.#options.running();
    if (running === undefined) throw new AppError('overloaded', 'Redis does not answer, and has words of the contact, too.');
    return { ...running, logsFolder: this.#options.tenants.logsFolder };
  }

  /** What was not done as it should be. */
  async #remove(id: string): Promise<string[]> {
    const { tenants } = this.#options;
    const running = await this.#options.running();
    if (running === undefined) {
      await tenants.delete(id);
      return ['Redis does not answer: no turn was stopped, and what Redis still has of them is kept until it expires, within a day.'];
    }
    const { removeTenant } = await import('@concierge/turn');
    const { stillRunning } = await removeTenant({ tenants, ...running }, id);
    return stillRunning === 0 ? [] : [`${String(stillRunning)} turns did not stop in time: what they still write is lost.`];
  }
}

async function createFirstKeys(scope: TenantScope): Promise<CreatedTenant['keys']> {
  const admin = await scope.keys.create({ label: 'admin', scopes: ['admin'] }, allScopes);
  const cs = await scope.keys.create({ label: 'cs', scopes: ['cs'] }, allScopes);
  return { admin: admin.key, cs: cs.key };
}

async function view(scope: TenantScope): Promise<OperatedTenant> {
  const { plan, name, suspended } = await scope.settings();
  return { tenantId: scope.tenantId, plan, name: name ?? null, suspended: suspended === true, problem: scope.settingsProblem() };
}

async function viewDetails(scope: TenantScope): Promise<OperatedTenantDetails> {
  const [tenant, settings, keys] = [await view(scope), await scope.settings(), await scope.keys.list()];
  return {
    ...tenant,
    settings,
    activeKeys: keys.filter(({ revokedAt }) => revokedAt === null).length,
    skills: (await scope.skills.scan()).valid.length,
    waitingTurns: (await scope.inbox.list()).length,
  };
}
