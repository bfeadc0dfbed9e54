import { describe, expect, it } from '@jest/globals';
import { mayUseTool, toolNames, type ToolName } from '@concierge/contract';
import { canRunBubblewrap, canRunDocker, eventually, serveRequests } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { tool, TestSystem, type Tenant } from './test-system.ts';

type Input = Readonly<Record<string, unknown>>;

/** One call of a tool: what it is given, and what it answers. */
interface Use {
  readonly input: Input;
  readonly says: RegExp;
  readonly isError: boolean;
}

interface Uses {
  readonly admin: readonly Use[];
  /** Where the same use comes to something else; of tools that `cs` never has there is none. */
  readonly cs?: readonly Use[];
}

const works = (input: Input, says: RegExp): Use => ({ input, says, isError: false });
const fails = (input: Input, says: RegExp): Use => ({ input, says, isError: true });
const needs = (name: string): RegExp => new RegExp(String.raw`are not valid:\n- ${name}: .*\nCorrect them and call`, 'u');

interface Place {
  /** host:port of a site that is also a SearXNG. */
  readonly web: string;
  /** A conversation of the owner's that has ended. */
  readonly sessionId: string;
}

/** Uses of each tool, good and bad: a tool that is missing here does not compile. */
function buildUses({ web, sessionId }: Place): Record<ToolName, Uses> {
  return {
    read: {
      admin: [works({ path: 'USER.md' }, /^1\t# /u), fails({ path: '../other/SOUL.md' }, /must not contain/u)],
      cs: [works({ path: 'templates/follow-up.md' }, /^1\t---/u), fails({ path: 'USER.md' }, /under skills\/ and templates\//u)],
    },
    write: {
      admin: [works({ path: 'notes/a.md', content: 'one\n' }, /^Created notes\/a\.md/u), fails({ path: 'a.md' }, needs('content'))],
    },
    edit: {
      admin: [
        works({ path: 'memory/old.md', find: 'Old', replace: 'Former' }, /^\+# Former prices$/mu),
        fails({ path: 'memory/old.md', find: 'not in it', replace: '' }, /Read the file and copy/u),
      ],
    },
    list_files: { admin: [works({}, /^SOUL\.md \(\d+ bytes\)$/mu), fails({ path: 'nowhere' }, /no such/u)] },
    search_files: {
      admin: [
        works({ query: 'take-notes' }, /^skills\/take-notes\/SKILL\.md:\d+: /u),
        fails({ query: '(', regex: true }, /regular expression/u),
      ],
    },
    bash: { admin: [works({ command: 'echo $((6 * 7))' }, /\n\n42$/u), fails({ command: 'true', timeoutMs: 0 }, needs('timeoutMs'))] },
    exec: {
      admin: [
        works({ program: 'printf', args: ['%s', '$HOME'] }, /\n\n\$HOME$/u),
        works({ program: 'no-such-program', args: [] }, /^Exit code 127[^]*no-such-program/u),
        fails({ program: '', args: [] }, needs('program')),
      ],
    },
    process: { admin: [works({ action: 'list' }, /No background commands/u), fails({ action: 'output', id: 'p9' }, /"p9"/u)] },
    web_search: { admin: [works({ query: 'bread' }, /^1\. The bakery\n/u), fails({ query: '' }, needs('query'))] },
    web_fetch: {
      admin: [works({ url: `http://${web}/` }, /We sell bread\.$/u), fails({ url: 'http://169.254.169.254/' }, /no public address/u)],
      cs: [fails({ url: `http://${web}/` }, /^This address is not open here/u), fails({ url: 'file:///etc/passwd' }, /not/u)],
    },
    memory_search: {
      admin: [works({ query: 'old prices' }, /memory\/old\.md/u), fails({ query: 'x', limit: 1000 }, needs('limit'))],
      cs: [works({ query: 'old prices' }, /^Nothing was found/u), fails({ query: '' }, needs('query'))],
    },
    memory_get: {
      admin: [works({ ref: 'memory/old.md' }, /Old prices/u), fails({ ref: '../SOUL.md' }, /no note/u)],
      cs: [fails({ ref: 'memory/old.md' }, /no note/u)],
    },
    memory_write: { admin: [works({ text: 'Likes tea.', title: 'Tea' }, /^Kept as memory\/tea\.md/u), fails({ text: '' }, needs('text'))] },
    memory_forget: { admin: [works({ ref: 'memory/old.md' }, /old\.md/u), fails({ ref: 'SOUL.md' }, /no note/u)] },
    load_skill: { admin: [works({ name: 'take-notes' }, /^# Take notes/u), fails({ name: 'nothing' }, /There are: take-notes/u)] },
    manage_skill: {
      admin: [
        works({ action: 'create', name: 'greet', description: 'Greets.', body: 'Say hello.' }, /^Created skills\/greet\/SKILL\.md/u),
        fails({ action: 'create', name: 'Big Name', description: 'x', body: 'y' }, /must be lower-case/u),
      ],
    },
    sessions_list: { admin: [works({}, new RegExp(`^${sessionId} .* admin `, 'u')), fails({ limit: 0 }, needs('limit'))] },
    session_history: {
      admin: [works({ session_id: sessionId }, /^#1 user/mu), fails({ session_id: 'none' }, needs('session_id'))],
      cs: [fails({ session_id: sessionId }, /\S/u)],
    },
    status: {
      admin: [
        works({}, /^Context: about \d+ of \d+ tokens[^]*This turn: 1 of 20 model calls/mu),
        fails({ verbose: true }, /Unrecognized key/u),
      ],
      cs: [works({}, /^(?![^]*dollars)[^]*Context: about/u)],
    },
    subagents: {
      admin: [works({ action: 'list' }, /^admin: /u), fails({ action: 'run', agent: 'nobody', task: 'x' }, /There are: admin, cs/u)],
    },
    message: {
      admin: [
        works({ channel: 'telegram', to: '4242', text: 'Hello' }, /4242/u),
        fails({ channel: 'slack', to: 'U1', text: 'Hello' }, /slack is not connected/u),
        fails({ channel: 'telegram', to: 'Ann', text: 'x' }, /chat id/u),
      ],
    },
    // On a channel it sends before the answer is there; in the web page the answer is seen as it comes.
    reply: { admin: [fails({ text: 'One moment.' }, /not on a chat app/u), fails({ text: '' }, needs('text'))] },
    channels: { admin: [works({}, /^telegram: .*\n[^]*^slack: not connected/mu), fails({ action: 'connect' }, /Unrecognized key/u)] },
    contacts: {
      admin: [works({}, /Nobody has written yet/u), fails({ action: 'delete' }, needs('action'))],
      cs: [works({}, /new or anonymous/u), fails({ action: 'list' }, /\S/u)],
    },
    handoff: {
      admin: [works({ action: 'status' }, /the agent answers/u), fails({ action: 'request', reason: 'x', hours: -1 }, needs('hours'))],
    },
    cron: {
      admin: [
        works({ action: 'create', name: 'Report', message: 'Sum up.', cron: '0 9 * * *', timezone: 'Europe/Berlin' }, /^Created\.\ns_/u),
        fails({ action: 'create', name: 'x', message: 'y', cron: '0 25 * * *' }, /cron expression cannot be used/u),
      ],
    },
    view_attachment: { admin: [works({}, /Nothing is attached/u), fails({ id: 'u_0' }, /no attachment "u_0"/u)] },
    render_template: {
      admin: [
        works({ name: 'follow-up', variables: { contact: { name: 'Ann' }, subject: 'the cake' } }, /Ann[^]*the cake/u),
        fails({ name: 'follow-up', variables: {} }, /^- subject is missing/mu),
      ],
    },
  };
}

let place: string;
let whole: TestSystem;

setUpOnce(async (stack) => {
  const web = stack.use(
    await serveRequests(({ url }) => {
      if (!new URL(url).pathname.startsWith('/search'))
        return new Response('We sell bread.', { headers: { 'content-type': 'text/plain' } });
      return Response.json({ results: [{ title: 'The bakery', url: 'https://bakery.example/', content: 'bread' }] });
    }),
  );
  place = new URL(web.url).host;
  const env = {
    SANDBOX: canRunDocker() ? 'docker' : 'bubblewrap',
    OUTBOUND_ALLOW: place,
    WEB_SEARCH_PROVIDER: 'searxng',
    WEB_SEARCH_URL: `http://${place}`,
  };
  whole = stack.use(await TestSystem.start({ env }));
});

/** With something in each of its corners. */
async function furnished(): Promise<{ readonly tenant: Tenant; readonly sessionId: string }> {
  const tenant = await whole.tenant();
  await tenant.scope.files.writeText('memory/old.md', '# Old prices\n\nBread was 2 euros.\n');
  await tenant.scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
  await tenant.calls('admin', tool('status'));
  // On a busy machine the index is behind the answer, and what lists sessions is made from it.
  const session = await eventually(async () => (await tenant.scope.index.listSessions({ limit: 1 })).items[0]);
  return { tenant, sessionId: session.id };
}

const within = canRunDocker() || canRunBubblewrap() ? describe : describe.skip;

within('every tool, in whole turns', () => {
  it.each(toolNames)('%s does what it describes for the owner’s agent', async (name) => {
    const { tenant, sessionId } = await furnished();
    const uses = buildUses({ web: place, sessionId })[name].admin;
    const outcomes = await tenant.calls('admin', ...uses.map(({ input }) => tool(name, input)));
    expect(outcomes).toEqual(uses.map(({ says, isError }) => ({ output: expect.stringMatching(says), isError })));
  });

  it.each(toolNames.filter((name) => mayUseTool('cs', name)))('%s does for cs what strangers may have', async (name) => {
    const { tenant, sessionId } = await furnished();
    const { admin, cs = admin } = buildUses({ web: place, sessionId })[name];
    const outcomes = await tenant.calls('cs', ...cs.map(({ input }) => tool(name, input)));
    expect(outcomes).toEqual(cs.map(({ says, isError }) => ({ output: expect.stringMatching(says), isError })));
  });

  it.each(toolNames.filter((name) => !mayUseTool('cs', name)))('%s is not there for cs, with arguments good or bad', async (name) => {
    const { tenant, sessionId } = await furnished();
    const uses = buildUses({ web: place, sessionId })[name].admin;
    const outcomes = await tenant.calls('cs', ...uses.map(({ input }) => tool(name, input)));
    expect(outcomes).toEqual(uses.map(() => ({ output: expect.stringContaining(`There is no tool "${name}"`), isError: true })));
  });
});
