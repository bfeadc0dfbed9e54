import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import { OpenAiError, Problem, errorCodes, chooseErrorShape, keyScopes, routes, type Route } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { Client } from './client.ts';
import { ContractSystem, promise, type Tenant } from './fixture.ts';

let contract: ContractSystem;
let tenant: Tenant;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start({ gateways: 2 }));
  tenant = await contract.tenant();
});

const allRoutes: readonly Route[] = Object.values(routes);
const CreatedKey = z.object({ id: z.string(), key: z.string(), scopes: z.array(z.string()) });

describe('a key', () => {
  promise(['SI/authentication/1', 'C/5/3'], 'is needed by every endpoint that is not open', async () => {
    const guarded = allRoutes.filter(({ auth }) => auth === 'key');
    expect(guarded.length).toBeGreaterThan(20);
    for (const { method, path } of guarded) {
      const answer = await contract.client().request(path.replaceAll(/\{\w+\}/gu, 'x'), { method: method.toUpperCase() });
      const isOpenAi = chooseErrorShape(path) === 'openai';
      const code = isOpenAi ? OpenAiError.parse(answer.json()).error.code : answer.problem().code;
      expect([path, code, answer.status]).toEqual([path, isOpenAi ? 'invalid_api_key' : 'missing_key', 401]);
    }
  });

  promise(['SI/authentication/2', 'SI/tenant-and-api-key/1', 'C/2/3'], 'is signed, has one encoding, and names its tenant', async () => {
    expect(tenant.admin).toMatch(/^ck_live_[A-Za-z0-9_-]+$/u);
    const middle = Math.floor(tenant.admin.length / 2);
    const swapped = tenant.admin[middle] === 'A' ? 'B' : 'A';
    const forged = [
      'ck_live_',
      'ck_live_x',
      'sk_live_abc',
      `${tenant.admin}=`,
      `${tenant.admin}A`,
      tenant.admin.slice(0, -1),
      `${tenant.admin.slice(0, middle)}${swapped}${tenant.admin.slice(middle + 1)}`,
      `ck_live_${randomBytes(150).toString('base64url')}`,
    ];
    for (const key of forged) {
      const answer = await contract.client(key).get('/api/sessions');
      expect([key, answer.problem().code, answer.status]).toEqual([key, 'invalid_key', 401]);
    }
    const tenantView = z.object({ id: z.string() }).parse((await tenant.as('admin').get('/api/tenant')).json());
    expect(tenantView.id).toBe(tenant.tenantId);
  });

  promise(['C/2/3', 'C/5/3'], 'that is revoked stops working on every gateway within a second', async () => {
    const created = CreatedKey.parse(
      (await tenant.as('admin').request('/api/keys', { body: { scopes: ['read'], label: 'short' } })).json(),
    );
    for (const url of contract.system.gatewayUrls) expect((await new Client(url, created.key).get('/api/sessions')).status).toBe(200);
    expect((await tenant.as('admin').request(`/api/keys/${created.id}`, { method: 'DELETE' })).status).toBe(204);
    const revokedMs = Date.now();
    for (const url of contract.system.gatewayUrls) {
      // What counts is when a request was sent; when its answer comes is the machine's affair.
      let servedMs = revokedMs;
      await eventually(
        async () => {
          const sentMs = Date.now();
          const answer = await new Client(url, created.key).get('/api/sessions');
          if (answer.status !== 200) return answer.problem().code === 'revoked_key';
          servedMs = sentMs;
          return false;
        },
        { everyMs: 50 },
      );
      expect(servedMs - revokedMs).toBeLessThanOrEqual(1000);
    }
  });

  promise(['C/2/4', 'SI/what-the-service-does/6'], 'does what its scopes say and nothing else', async () => {
    const allowed = async (key: 'admin' | 'cs' | 'read', path: string, request: { method: string; body?: unknown }): Promise<boolean> => {
      const answer = await tenant.as(key).request(path, request);
      return answer.status !== 403 || answer.problem().code !== 'scope_required';
    };
    const chat = { message: 'hello' };
    const matrix: [string, string, unknown, string][] = [
      ['POST', '/api/admin', chat, 'admin'],
      ['POST', '/api/cs', chat, 'admin cs'],
      ['POST', '/api/uploads', undefined, 'admin cs'],
      ['GET', '/api/sessions', undefined, 'admin read'],
      ['GET', '/api/turns', undefined, 'admin read'],
      ['GET', '/api/deliveries', undefined, 'admin read'],
      ['GET', '/api/deliveries/m_0', undefined, 'admin read'],
      ['POST', '/api/deliveries/m_0/redrive', undefined, 'admin'],
      ['GET', '/api/skills', undefined, 'admin read'],
      ['GET', '/api/files', undefined, 'admin read'],
      ['GET', '/api/keys', undefined, 'admin read'],
      ['GET', '/api/usage', undefined, 'admin read'],
      ['GET', '/api/memory', undefined, 'admin read'],
      ['GET', '/api/memory?q=x', undefined, 'admin read'],
      ['GET', '/api/memory/contacts', undefined, 'admin read'],
      ['GET', '/api/memory/contacts/00000000000000000000000000000000', undefined, 'admin read'],
      ['GET', '/api/memory/contacts/00000000000000000000000000000000/notes/MEMORY.md', undefined, 'admin read'],
      ['DELETE', '/api/memory/contacts/00000000000000000000000000000000', undefined, 'admin'],
      ['DELETE', '/api/memory/contacts/00000000000000000000000000000000/notes/MEMORY.md', undefined, 'admin'],
      ['POST', '/api/erasures', { contact_id: '00000000000000000000000000000000' }, 'admin'],
      ['GET', '/api/erasures/00000000000000000000000000000000', undefined, 'admin read'],
      ['GET', '/api/tenant', undefined, 'admin read'],
      ['POST', '/api/skills/reindex', undefined, 'admin'],
      ['POST', '/api/keys', { scopes: ['read'] }, 'admin'],
      ['PATCH', '/api/tenant', {}, 'admin'],
      ['PUT', '/api/files/SOUL.md', undefined, 'admin'],
      ['DELETE', '/api/sessions/00000000000000000000000000000000', undefined, 'admin'],
    ];
    for (const [method, path, body, scopes] of matrix) {
      for (const key of keyScopes)
        expect([path, key, await allowed(key, path, body === undefined ? { method } : { method, body })]).toEqual([
          path,
          key,
          scopes.split(' ').includes(key),
        ]);
    }
  });

  promise(['C/2/4'], 'for cs sees its own turns only', async () => {
    const own = await tenant.as('cs').ask('cs', { message: 'mine' });
    const other = await tenant.as('admin').ask('cs', { message: 'not mine' });
    const readId = (answer: typeof own): string => z.object({ turnId: z.string() }).parse(answer.json()).turnId;
    expect((await tenant.as('cs').get(`/api/turns/${readId(own)}`)).status).toBe(200);
    expect((await tenant.as('cs').get(`/api/turns/${readId(own)}/events`)).status).toBe(200);
    for (const path of [`/api/turns/${readId(other)}`, `/api/turns/${readId(other)}/events`])
      expect((await tenant.as('cs').get(path)).status).toBe(404);
    expect((await tenant.as('cs').request(`/api/turns/${readId(other)}/cancel`, { method: 'POST' })).status).toBe(404);
  });

  promise(['C/2/4', 'C/5/3'], 'of a suspended tenant is refused, and what was accepted waits', async () => {
    const suspended = await contract.tenant();
    const tenants = await contract.system.tenants();
    await tenants.setSuspended(suspended.tenantId, true);
    await eventually(async () => (await suspended.as('admin').get('/api/tenant')).problem().code === 'tenant_suspended');
    expect((await suspended.as('cs').ask('cs', { message: 'x' })).status).toBe(403);
    await tenants.setSuspended(suspended.tenantId, false);
    await eventually(async () => (await suspended.as('cs').ask('cs', { message: 'x' })).status === 200);
  });
});

describe('preview tenants', () => {
  promise(['SI/limits/3', 'C/5/5'], 'get exactly 200 requests in an hour across gateways, with headers that say so', async () => {
    const preview = await contract.tenant('preview');
    const answers = await Promise.all(
      Array.from({ length: 230 }, async (_, index) => await preview.as('read', index % 2).get('/api/sessions')),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(200);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(30);
    const [first] = refused;
    expect(first?.problem().code).toBe('rate_limited');
    expect(Number(first?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(first?.headers.get('ratelimit-policy')).toMatch(/^"[^"]+";q=200;w=3600$/u);
    expect(first?.headers.get('ratelimit')).toMatch(/^"[^"]+";r=0;t=\d+$/u);
    expect((await tenant.as('read').get('/api/sessions')).status).toBe(200);
  });
});

describe('an error', () => {
  promise(['C/5/1', 'C/5/2'], 'is a problem document with the request’s id and the fields that are wrong', async () => {
    const client = tenant.as('admin');
    const answer = await client.request('/api/admin', {
      body: { message: '', attachments: 'x' },
      headers: { 'x-request-id': 'my-request-1' },
    });
    expect(answer.status).toBe(400);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/u);
    expect(answer.problem()).toMatchObject({ code: 'invalid_request', status: 400, title: errorCodes.invalid_request.title });
    expect(
      answer
        .problem()
        .errors?.map(({ path }) => path)
        .toSorted(),
    ).toEqual(['attachments', 'message']);
    expect(answer.headers.get('x-request-id')).toBe(answer.problem().requestId);
    const headers = { 'content-type': 'application/json' };
    for (const rawBody of ['{', '"text"', '', '[1]', `${'['.repeat(100)}${']'.repeat(100)}`, '\u0000']) {
      const bad = await client.request('/api/admin', { method: 'POST', rawBody, headers });
      expect([rawBody, bad.status]).toEqual([rawBody, 400]);
      expect(['invalid_json', 'invalid_request']).toContain(bad.problem().code);
    }
    expect((await client.get('/api/sessions')).headers.get('x-request-id')).toMatch(/.+/u);
  });

  promise(['C/5/4'], 'has its status: unknown paths, wrong methods, bodies too large', async () => {
    const client = tenant.as('admin');
    expect((await client.get('/api/nothing')).problem()).toMatchObject({ status: 404, code: 'not_found' });
    expect((await contract.client().get('/nothing')).problem()).toMatchObject({ status: 404 });
    const wrong = await client.request('/api/sessions', { method: 'PUT', body: {} });
    expect(wrong.problem()).toMatchObject({ status: 405, code: 'method_not_allowed' });
    expect(wrong.headers.get('allow')).toMatch(/GET/u);
    const large = await client.request('/api/admin', { body: { message: 'x'.repeat(3_000_000) } });
    expect(large.problem()).toMatchObject({ status: 413, code: 'too_large' });
    expect((await client.get('/api/sessions/%E0%A4%A')).status).toBe(400);
  });

  promise(
    ['C/5/6', 'SI/versioning/1', 'SI/versioning/2'],
    'of ours says when to come back, and every code has its documented status',
    async () => {
      expect(
        Object.entries(errorCodes)
          .filter(([, { status }]) => [502, 503, 504].includes(status))
          .map(([code]) => code),
      ).toEqual(['provider_error', 'overloaded', 'shutting_down', 'turn_timeout']);
      const gateway = contract.system.gateways[1];
      const client = tenant.as('cs', 1);
      const hanging = await client.open('/api/cs', { body: { message: '[[hang]]', sender: 'shutdown' } });
      const gone = gateway?.terminate();
      await eventually(async () => {
        const answer = await client.ask('cs', { message: 'x' }).catch(() => null);
        if (answer === null) return true;
        return answer.status === 503 && answer.problem().code === 'shutting_down' && Number(answer.headers.get('retry-after')) > 0;
      });
      await hanging.body?.cancel();
      expect(await gone).toBe(0);
      gateway?.start();
      await contract.system.ready();
      const document = (await contract.client().get('/openapi.json')).json();
      expect(document).toMatchObject({ openapi: expect.stringMatching(/^3\.1/u), info: { version: expect.stringMatching(/^0\.1/u) } });
      expect(
        Object.keys(z.object({ paths: z.record(z.string(), z.unknown()) }).parse(document).paths).filter((path) =>
          /\/v\d+\/api/u.test(path),
        ),
      ).toEqual([]);
    },
  );
});

describe('webhooks', () => {
  promise(
    [
      'SI/post-webhook-channel-tenantid/1',
      'SI/post-webhook-channel-tenantid/2',
      'SI/post-webhook-channel-tenantid/3',
      'SI/post-webhook-channel-tenantid/4',
      'SI/authentication/4',
      'SI/authentication/5',
      'SI/authentication/6',
      'SI/errors/1',
      'SI/channel-binding/1',
      'C/4/12',
      'C/4/14',
    ],
    'without a valid signature are refused with one and the same 401',
    async () => {
      const bodies = new Set<string>();
      for (const channel of ['channel_a', 'whatsapp', 'telegram', 'slack', 'fax']) {
        for (const id of [tenant.tenantId, 'nobody']) {
          for (const headers of [
            {},
            { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` },
            { 'x-messenger-bot-api-secret-token': 'guess' },
          ]) {
            const answer = await contract
              .client()
              .request(`/webhook/${channel}/${id}`, { rawBody: '{}', headers: { 'content-type': 'application/json', ...headers } });
            expect(answer.status).toBe(401);
            const { requestId: _requestId, ...rest } = answer.problem();
            bodies.add(JSON.stringify(rest));
          }
        }
      }
      expect([...bodies].map((body) => Problem.partial().parse(JSON.parse(body)).code)).toEqual(['invalid_signature']);
    },
  );
});

describe('operations', () => {
  promise(['C/4/13', 'SI/what-the-service-does/16'], 'have their endpoints', async () => {
    const client = contract.client();
    expect((await client.get('/livez')).status).toBe(200);
    // A worker that stood still for a moment is not heard of.
    await eventually(async () => {
      const ready = z
        .object({ status: z.string(), checks: z.record(z.string(), z.object({ ok: z.boolean() })) })
        .parse((await client.get('/readyz')).json());
      return ready.status === 'ready' && Object.values(ready.checks).every(({ ok }) => ok);
    });
    expect((await client.get('/metrics')).text).toMatch(/^# HELP /mu);
    expect((await client.get('/ops/queues')).status).toBe(200);
    for (const name of ['overview', 'waiting', 'workers', 'health']) expect((await client.get(`/ops/api/${name}`)).status).toBe(200);
    expect((await client.get('/ops/sign-in')).text).toContain('<form method="post"');
    const docs = await client.get('/docs');
    expect(docs.status).toBe(200);
    expect(docs.text).not.toMatch(/(?:src|href)="https?:\/\//u);
    const document = z
      .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
      .parse((await client.get('/openapi.json')).json());
    for (const { path, method } of allRoutes) expect([path, method in (document.paths[path] ?? {})]).toEqual([path, true]);
  });
});

describe('a tenant', () => {
  promise(
    ['SI/what-the-service-does/10'],
    'learns nothing of another: same answers for what is foreign and what does not exist',
    async () => {
      const other = await contract.tenant();
      await writeFile(join(contract.system.dataDir, 'tenants', other.tenantId, 'MEMORY.md'), 'canary-of-the-other');
      const reply = z
        .object({ contact_id: z.string(), turnId: z.string() })
        .parse((await other.as('admin').ask('admin', { message: 'secret' })).json());
      const client = tenant.as('admin');
      for (const path of [`/api/sessions/${reply.contact_id}`, `/api/turns/${reply.turnId}`, `/api/turns/${reply.turnId}/events`]) {
        expect((await client.get(path)).status).toBe(404);
      }
      expect((await client.request(`/api/turns/${reply.turnId}/cancel`, { method: 'POST' })).status).toBe(404);
      const everything = await Promise.all(
        [
          '/api/sessions',
          '/api/turns',
          '/api/files?recursive=true',
          '/api/usage',
          '/api/keys',
          '/api/memory',
          '/api/memory?q=canary+other+secret',
        ].map(async (path) => (await client.get(path)).text),
      );
      expect(everything.join('\n')).not.toContain('canary-of-the-other');
      expect(everything.join('\n')).not.toContain(other.tenantId);
    },
  );
});
