import { figures, type Figure } from './figures.ts';

const head = `# Figures

Made from \`packages/runtime/src/metrics/figures.ts\` by \`npm run docs\`. Prometheus reads them at \`/metrics\`: of the
gateway with the operators' token (\`OPS_TOKEN\`), of worker and cron at \`METRICS_PORT\`. Each carries \`service\`. Beside
these each process has those of Node (\`process_…\`, \`nodejs_…\`).

- A series exists from the start of its process, at zero, so that an increase shows its first event. Where a label's
  values follow from the API or from the operator's configuration and are not listed here, a series begins with its
  first event; no alert rule rests on such an increase.
- No label names a tenant, a session, a turn, a key, or a word of a model. What one tenant uses shows
  \`GET /api/usage\`.
- Figures of the cron service about the whole system are the same in every replica: take the maximum, not the sum.

## Why turns wait

| \`reason\` | The turn waits | It starts |
|---|---|---|
| \`own_session\` | behind another turn of its conversation | when that one ends |
| \`tenant_share\` | because all places of its tenant are taken | when another conversation of the tenant ends its turn; more workers, or a larger \`TENANT_SHARE\`, make more places |
| \`debounce\` | for more messages of its conversation | when its time is over |
| \`no_free_slot\` | for a worker with a free slot | when a turn ends; more workers, or a larger \`WORKER_CONCURRENCY\`, make more slots |
| \`no_worker\` | because no worker takes turns | when one starts |
| \`paused\` | for the next try: its tenant is suspended, or an attempt was given back | at its time |
| \`staff\` | with a staff member: conversations, not turns | when the staff member answers or gives it back |

Counted are at most 2,000 conversations that run and 2,000 that wait for a share; where there are more, the figures are
at least what is shown. Scale workers on \`no_free_slot\` and \`no_worker\`: more workers do not help the other reasons.
`;

/** docs/metrics.md: every figure with its labels and their values. */
export function metricsPage(): string {
  const all: readonly (readonly [string, Figure])[] = Object.entries(figures);
  const sections = (['gateway', 'worker', 'cron'] as const).map((service) => {
    const own = all.filter(([, { services }]) => services.length === 1 && services[0] === service);
    return `## ${service.charAt(0).toUpperCase()}${service.slice(1)}\n\n${own.map(section).join('\n')}`;
  });
  const shared = all.filter(([, { services }]) => services.length > 1);
  return `${head}\n${[...sections, `## Several services\n\n${shared.map(section).join('\n')}`].join('\n')}`;
}

function section([name, { kind, help, services, labels = {}, buckets }]: readonly [string, Figure]): string {
  const facts = [`${kind} of ${services.join(', ')}`, ...(buckets === undefined ? [] : [`buckets in seconds: ${buckets.join(', ')}`])];
  const lines = Object.entries(labels).map(
    ([label, values]) => `- \`${label}\`: ${values?.map((value) => `\`${value}\``).join(', ') ?? 'as the API or the configuration has'}`,
  );
  return `### ${name}\n\n${help}. (${facts.join('; ')})\n${lines.length === 0 ? '' : `\n${lines.join('\n')}\n`}`;
}
