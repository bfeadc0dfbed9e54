import { AppError, WidgetBody, type WidgetView } from '@concierge/contract';
import { toWidgetBody } from '@concierge/tenant';
import { Command } from 'commander';
import { facts, type Answer, type CommandContext } from '../answer.ts';

interface EnableOptions {
  readonly origin: readonly string[];
  readonly requireToken?: boolean;
  readonly title?: string;
  readonly greeting?: string;
  readonly colour?: string;
  readonly position?: string;
}

/** What goes into a page. Where browsers reach the gateway only PUBLIC_URL knows. */
function buildSnippet({ deployment }: Pick<CommandContext, 'deployment'>, key: string): string {
  const base = deployment.config.publicUrl ?? 'https://your-concierge.example';
  return `<script src="${base}/widget.js" data-key="${key}" async></script>`;
}

/** As it is shown, with the line for the pages. */
function toAnswer(context: CommandContext, view: WidgetView): Answer {
  const snippet = view.key === null ? null : buildSnippet(context, view.key);
  const about = describe(view);
  const hint =
    context.deployment.config.publicUrl === undefined
      ? '\n\nIts address is where browsers reach the gateway: set PUBLIC_URL, or fill it in.'
      : '';
  return { json: { ...view, snippet }, text: snippet === null ? about : `${about}\n\n${snippet}${hint}` };
}

function describe(view: WidgetView): string {
  const { key, enabled, origins, requireSenderToken, secret, appearance, problem } = view;
  return facts({
    state: problem ?? (enabled ? 'enabled' : 'disabled'),
    key: key ?? 'none yet',
    origins: origins.length === 0 ? 'none: no page may use it' : origins.join(', '),
    visitors: requireSenderToken ? 'only with a sender token' : 'everyone, or with a sender token',
    secret: secret === 'unset' ? 'none: no sender token is good' : secret,
    looks: `${appearance.title}, ${appearance.colour}, ${appearance.position}`,
  });
}

async function show(context: CommandContext, tenantId: string): Promise<void> {
  const { widget } = await context.deployment.scope(tenantId);
  context.answer(toAnswer(context, await widget.view()));
}

/** Options that are not given stay as they were. @throws AppError invalid_request */
function changed(before: WidgetView, { origin, requireToken, ...looks }: EnableOptions): WidgetBody {
  const { title, greeting, colour, position } = looks;
  const given = Object.entries({ title, greeting, colour, position }).filter(([, value]) => value !== undefined);
  const body = WidgetBody.safeParse({
    ...toWidgetBody(before),
    enabled: true,
    origins: origin.length === 0 ? before.origins : origin,
    requireSenderToken: requireToken ?? before.requireSenderToken,
    appearance: { ...before.appearance, ...Object.fromEntries(given) },
  });
  if (body.success) return body.data;
  const errors = body.error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }));
  throw new AppError('invalid_request', 'These are not settings of a widget.', { errors });
}

async function enable(context: CommandContext, tenantId: string, options: EnableOptions): Promise<void> {
  const { widget } = await context.deployment.scope(tenantId);
  const view = await widget.put(changed(await widget.view(), options));
  await context.deployment.record(tenantId, 'widget.update', null);
  context.answer(toAnswer(context, view));
}

async function disable({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const { widget } = await deployment.scope(tenantId);
  const view = await widget.put({ ...toWidgetBody(await widget.view()), enabled: false });
  await deployment.record(tenantId, 'widget.update', null);
  answer({ json: view, text: 'The widget is disabled: its requests are refused from now on. Conversations stay.' });
}

async function rotateKey(context: CommandContext, tenantId: string): Promise<void> {
  const view = await (await context.deployment.scope(tenantId)).widget.rotateKey();
  await context.deployment.record(tenantId, 'widget.rotate-key', null);
  const snippet = buildSnippet(context, view.key ?? '');
  context.answer({ json: { ...view, snippet }, text: `The old key is refused from now on. The pages need the new one:\n\n${snippet}` });
}

async function rotateSecret({ deployment, answer }: CommandContext, tenantId: string): Promise<void> {
  const secret = await (await deployment.scope(tenantId)).widget.rotateSecret();
  await deployment.record(tenantId, 'widget.rotate-secret', null);
  answer({ json: { secret }, text: facts({ secret, note: 'it is shown this once; tokens that were signed with another are refused' }) });
}

/** `concierge widget …` */
export function widgetCommand(context: CommandContext): Command {
  const command = new Command('widget');
  command
    .command('show <tenant>')
    .description('its settings, and the line for the pages')
    .action(async (tenantId: string) => await show(context, tenantId));
  command
    .command('enable <tenant>')
    .description('set it up; options that are not given stay as they were')
    .option(
      '--origin <origin>',
      'whose pages may use it, as https://shop.example; repeat it. Those that are given replace the ones before',
      (origin: string, before: readonly string[]) => [...before, origin],
      [],
    )
    .option('--require-token', 'only visitors for whom your server has signed a token')
    .option('--no-require-token', 'everyone')
    .option('--title <text>', 'the head of the panel')
    .option('--greeting <text>', 'its first words')
    .option('--colour <colour>', 'as #1f6feb')
    .option('--position <side>', 'right or left')
    .action(async (tenantId: string, options: EnableOptions) => await enable(context, tenantId, options));
  command
    .command('disable <tenant>')
    .description('answer no page any more; settings and conversations stay')
    .action(async (tenantId: string) => await disable(context, tenantId));
  command
    .command('rotate-key <tenant>')
    .description('replace the publishable key')
    .action(async (tenantId: string) => await rotateKey(context, tenantId));
  command
    .command('rotate-secret <tenant>')
    .description('make the secret that signs sender tokens, or replace it; it is shown once')
    .action(async (tenantId: string) => await rotateSecret(context, tenantId));
  return command;
}
