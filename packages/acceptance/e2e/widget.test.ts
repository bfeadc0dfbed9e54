import { describe, expect, it } from '@jest/globals';
import { WidgetBody, limits, weekdays } from '@concierge/contract';
import { deriveSessionId, signSenderToken } from '@concierge/tenant';
import { eventually, gate, say, startScriptedSystem, status, until, type System, type ScriptedModel } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { z } from 'zod';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { chromiumPath, startChromium } from './chromium.ts';
import { eventuallyHolds } from './eventually-holds.ts';
import { ShopPage, Shop } from './shop-page.ts';

let model: ScriptedModel;
let system: System;
let browser: Browser;
let shop: Shop;
/** Of the tenant whose widget the page carries. */
let key: string;
let tenantId: string;
let secret = '';
let token = '';
let tenants = 0;

const inBrowser = chromiumPath === undefined ? describe.skip : describe;
const numbers = Array.from({ length: 40 }, (_, index) => `n${String(index)}`).join(' ');

function signed(sub: string, seconds: number): string {
  const iat = Math.floor(Date.now() / 1000);
  return signSenderToken({ sub, iat, exp: iat + seconds }, secret);
}

/** A visitor of a shop whose widget has its own tenant. */
async function visit({
  requireSenderToken = false,
  settings = {},
  ...options
}: BrowserContextOptions & { requireSenderToken?: boolean; settings?: z.input<typeof WidgetBody> } = {}): Promise<ShopPage> {
  tenants += 1;
  ({ tenantId } = await system.createTenant(`shop-${String(tenants)}`));
  const { widget } = await system.scope(tenantId);
  secret = await widget.rotateSecret();
  token = signed('ann', 600);
  const view = await widget.put(WidgetBody.parse({ enabled: true, origins: [shop.origin], requireSenderToken, ...settings }));
  key = view.key ?? '';
  return await ShopPage.begin(browser, [shop.origin, system.url], options);
}

/** Adds a staff message to the conversation. */
async function sayAsStaff(scope: Awaited<ReturnType<System['scope']>>, id: string, text: string): Promise<void> {
  const session = await eventually(async () => await scope.sessions.load(id));
  const said = {
    id: `p${String(session.revision)}`,
    turnId: 't_p',
    at: new Date().toISOString(),
    role: 'assistant',
    text,
    by: { kind: 'operator' },
  } as const;
  await scope.sessions.publish({ ...session, revision: session.revision + 1, messages: [...session.messages, said] });
}

/** The reply to a question is all of the numbers, and waits after the first ones until the gate is opened. */
function holdReply(question: string): ReturnType<typeof gate<void>> {
  const goOn = gate();
  const half = numbers.indexOf('n20');
  model.when(question, [say(numbers.slice(0, half)), until(goOn.opened), say(numbers.slice(half), { chunks: 20, delayMs: 20 })]);
  return goOn;
}

inBrowser('the web widget', () => {
  setUpOnce(async (stack) => {
    ({ system, model } = await startScriptedSystem(stack));
    shop = stack.use(
      await Shop.open(system.url, (path) => {
        const signed = path === '/signed' ? ` data-token="${token}"` : '';
        return `<script src="${system.url}/widget.js" data-key="${key}"${signed} async></script>`;
      }),
    );
    browser = stack.use(await startChromium(chromiumPath ?? ''));
  });

  it('streams a reply into a page of another origin, under a strict policy, and sends no request elsewhere', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    await tab.hears('How can we help?');
    expect(await tab.panel.getByLabel('Message').getAttribute('maxlength')).toBe(String(limits.messageMaxCharacters));
    await tab.say('Are you open? [[say:Let me look.]]+[[tools:memory_search {"query":"hours"}]] [[say:**Yes**, until six.]]');
    const reply = await tab.hears('Yes, until six.');
    await eventuallyHolds(async () => expect(await reply.locator('p').allTextContents()).toEqual(['Let me look.', 'Yes, until six.']));
    await eventuallyHolds(async () => expect(await reply.locator('strong').textContent()).toBe('Yes'));
    const shown = `document.querySelector('concierge-widget').shadowRoot.querySelector('[data-from=agent]')`;
    const fontSize: unknown = await tab.page.evaluate(`getComputedStyle(${shown}).fontSize`);
    expect(fontSize).toBe('15px');
    expect(await reply.innerText()).not.toContain('memory_search');
    expect(shopping.foreignRequests).toEqual([]);
  });

  it('goes on after a reload in mid-reply, and shows the earlier messages', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    await tab.say('first [[say:an early answer]]');
    await tab.hears('an early answer');
    const goOn = holdReply('Count over a reload');
    await tab.say('Count over a reload');
    await tab.messages('agent').getByText('n3').waitFor();
    await tab.page.reload();
    await tab.open();
    await tab.hears('an early answer');
    goOn.open();
    await tab.hears(numbers);
    await eventuallyHolds(async () => expect(await tab.messages('visitor').count()).toBe(2));
    await eventuallyHolds(async () => expect(await tab.messages('agent').count()).toBe(3));
    expect(model.requests.filter(({ raw }) => JSON.stringify(raw).includes('Count over a reload'))).toHaveLength(1);
  });

  it('goes on when the gateway is killed and comes back', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    const goOn = holdReply('Count over a kill');
    await tab.say('Count over a kill');
    await tab.messages('agent').getByText('n3').waitFor();
    await system.gateways[0]?.kill();
    system.gateways[0]?.start();
    await system.ready();
    goOn.open();
    const reply = await tab.hears(numbers);
    await eventuallyHolds(async () => expect(await reply.innerText()).toContain(numbers));
  });

  it('shows a reply that is under way in a second tab, too', async () => {
    await using shopping = await visit();
    const [one, two] = [await shopping.tab(shop.origin), await shopping.tab(shop.origin)];
    await two.open();
    await one.page.bringToFront();
    await one.open();
    const goOn = holdReply('Count in two tabs');
    await one.say('Count in two tabs');
    await two.page.bringToFront();
    await two.messages('agent').getByText('n3').waitFor();
    goOn.open();
    await two.hears(numbers);
    await one.page.bringToFront();
    await one.hears(numbers);
    for (const tab of [one, two]) expect(await tab.messages('visitor').count()).toBe(1);
  });

  it('keeps visitors apart, and begins a new conversation on request', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    await tab.say('mine [[say:only for you]]');
    await tab.hears('only for you');
    const other = await ShopPage.begin(browser, [shop.origin, system.url]);
    const elsewhere = await other.tab(shop.origin);
    await elsewhere.open();
    await elsewhere.hears('How can we help?');
    expect(await elsewhere.messages('visitor').count()).toBe(0);
    await other[Symbol.asyncDispose]();
    await tab.page.evaluate('concierge.reset()');
    await tab.messages('visitor').waitFor({ state: 'detached' });
    await tab.page.reload();
    await tab.open();
    await tab.hears('How can we help?');
    expect(await tab.messages('visitor').count()).toBe(0);
  });

  it('leaves hostile Markdown what it is: text', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    const hostile = [
      '![pixel](https://evil.example/p.png)',
      '<img src=x onerror=document.title="owned">',
      '<script>document.title="owned"</script>',
      '[click](javascript:document.title="owned")',
      '[our page](https://evil.example/x)',
    ].join(' ');
    model.when(/hostile/u, [say(hostile)]);
    await tab.say('hostile');
    const reply = await tab.hears('our page');
    await eventuallyHolds(async () => expect(await reply.innerText()).toContain('<img src=x onerror=document.title="owned">'));
    expect(await reply.locator('img, script').count()).toBe(0);
    const links = await reply
      .getByRole('link')
      .evaluateAll((all) => all.map((link) => [link.getAttribute('href'), link.getAttribute('rel')]));
    expect(links.map(([href]) => href)).toEqual(['https://evil.example/p.png', 'https://evil.example/x']);
    for (const [, rel] of links) expect(rel).toContain('noopener');
    await eventuallyHolds(async () => expect(await reply.innerText()).toContain('our page (evil.example)'));
    expect(await tab.page.title()).toBe('Shop');
    expect(shopping.foreignRequests).toEqual([]);
  });

  it('shows what went wrong, and asks again', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    model.when(/Try this/u, [status(400)], [say('It worked')]);
    await tab.open();
    await tab.say('Try this');
    await tab.panel.getByRole('alert').getByText('Something went wrong').waitFor();
    await tab.panel.getByRole('button', { name: 'Try again' }).click();
    await tab.hears('It worked');
    await eventuallyHolds(async () => expect(await tab.panel.getByRole('alert').innerText()).toBe(''));
  });

  it('stops a reply', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    await tab.say('[[say:one two three]]+[[hang]]');
    await tab.messages('agent').getByText('one two three').waitFor();
    const stop = tab.panel.getByRole('button', { name: 'Stop' });
    await stop.click();
    await tab.hears('one two three');
    await stop.waitFor({ state: 'hidden' });
    const { sessions, index } = await system.scope(tenantId);
    // A turn's end waits two seconds for the index, and no longer: it may be behind.
    const [item] = await eventually(async () => {
      const { items } = await index.listSessions({ limit: 1 });
      return items.length > 0 ? items : undefined;
    });
    expect(await sessions.turnRecords(item?.id ?? '')).toMatchObject([{ status: 'cancelled' }]);
  });

  it('shows a staff answer while the panel is open', async () => {
    await using shopping = await visit({ requireSenderToken: true });
    const tab = await shopping.tab(`${shop.origin}/signed`);
    const scope = await system.scope(tenantId);
    const id = deriveSessionId('cs', 'web', 'user:ann');
    await tab.open();
    await tab.say('help [[say:One moment.]]');
    await tab.hears('One moment.');
    await scope.handoffs.request(id, { reason: 'asked', by: { kind: 'operator' } });
    await tab.page.reload();
    await tab.open();
    await tab.panel.getByText('Someone of our team answers here.').waitFor();
    await sayAsStaff(scope, id, 'Jo here.');
    await tab.messages('person').getByText('Jo here.').waitFor();
    await eventuallyHolds(async () => expect(await tab.messages('person').innerText()).toContain('Team'));
  });

  it('keeps the last message in view when the line that staff answers comes below it', async () => {
    await using shopping = await visit({ requireSenderToken: true });
    const tab = await shopping.tab(`${shop.origin}/signed`);
    const scope = await system.scope(tenantId);
    const id = deriveSessionId('cs', 'web', 'user:ann');
    await tab.open();
    await tab.say(`help [[say:${'One moment. '.repeat(200)}]]`);
    await tab.hears('One moment.');
    // Looked at when the line has come: what is drawn after it would scroll again. It may come before anything is said,
    // with the messages that the widget asks for after the reply.
    await tab.page.evaluate(`(() => {
      const root = document.querySelector('concierge-widget').shadowRoot;
      const [log, note] = ['.log', '.note'].map((part) => root.querySelector(part));
      globalThis.below = new Promise((resolve) => {
        const look = () => note.hidden || resolve(Math.round(log.scrollHeight - log.scrollTop - log.clientHeight));
        new MutationObserver(look).observe(note, { attributes: true });
      });
    })()`);
    await scope.handoffs.request(id, { reason: 'asked', by: { kind: 'operator' } });
    await tab.say('Is anybody there?');
    expect(await tab.page.evaluate('globalThis.below')).toBe(0);
  });

  it('says when staff answers again, outside of the office hours', async () => {
    // Two days ahead in the zone of the tenant, whatever the time is.
    const day = weekdays[(new Date().getUTCDay() + 1) % 7] ?? 'mon';
    const settings = { team: { hours: [{ day, from: '09:00', until: '17:00' }] } };
    await using shopping = await visit({ requireSenderToken: true, settings, locale: 'en-GB', timezoneId: 'UTC' });
    const tab = await shopping.tab(`${shop.origin}/signed`);
    const scope = await system.scope(tenantId);
    await tab.open();
    await tab.say('help [[say:One moment.]]');
    await tab.hears('One moment.');
    await scope.handoffs.request(deriveSessionId('cs', 'web', 'user:ann'), { reason: 'asked', by: { kind: 'operator' } });
    await tab.page.reload();
    const line = tab.panel.getByText('Our team answers again from');
    await line.waitFor();
    expect(await line.innerText()).toMatch(/ from \w+day.{0,5} 0?9:00( AM)?\.$/u);
  });

  it('counts staff messages on the button of a closed panel, also after a change of page', async () => {
    await using shopping = await visit({ requireSenderToken: true });
    const tab = await shopping.tab(`${shop.origin}/signed`);
    const scope = await system.scope(tenantId);
    const id = deriveSessionId('cs', 'web', 'user:ann');
    await tab.open();
    await tab.say('help [[say:One moment.]]');
    await tab.hears('One moment.');
    await scope.handoffs.request(id, { reason: 'asked', by: { kind: 'operator' } });
    await tab.page.reload();
    await tab.open();
    await tab.panel.getByText('Someone of our team answers here.').waitFor();
    await tab.panel.getByRole('button', { name: 'Close' }).click();
    await sayAsStaff(scope, id, 'Jo here.');
    const counted = tab.page.getByRole('button', { name: /^Chat, [12] new messages?$/u });
    await counted.waitFor();
    const words = tab.page.getByRole('button', { name: 'Team Jo here.' });
    await words.waitFor();
    await tab.page.reload();
    await counted.waitFor();
    await words.waitFor();
    await tab.page.getByRole('button', { name: 'Dismiss' }).click();
    await words.waitFor({ state: 'detached' });
    await tab.page.reload();
    await counted.waitFor();
    expect(await words.count()).toBe(0);
    await sayAsStaff(scope, id, '**Still** here.');
    await tab.page.getByRole('button', { name: 'Team Still here.' }).click();
    await tab.messages('person').getByText('Jo here.').waitFor();
    // Seen, so it counts no more.
    await counted.waitFor({ state: 'detached' });
    await eventuallyHolds(async () => expect(await tab.page.getByRole('button', { name: 'Chat', exact: true }).count()).toBe(1));
  });

  it('stays open on the next page of the site, with what was written, and takes no focus there', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.open();
    await tab.say('first [[say:an early answer]]');
    await tab.hears('an early answer');
    await tab.panel.getByLabel('Message').fill('half a mess');
    await tab.page.goto(`${shop.origin}/basket`);
    await tab.panel.waitFor();
    await tab.hears('an early answer');
    expect(await tab.panel.getByLabel('Message').inputValue()).toBe('half a mess');
    expect(await tab.page.evaluate('document.activeElement === document.body')).toBe(true);
    await tab.panel.getByRole('button', { name: 'Close' }).click();
    await tab.page.goto(shop.origin);
    await tab.launcher.waitFor();
    expect(await tab.panel.isVisible()).toBe(false);
  });

  it('takes the focus from no field of the page when it opens later than that was asked for, or is closed', async () => {
    await using shopping = await visit();
    const tab = await shopping.tab(shop.origin);
    await tab.launcher.waitFor();
    const [asked, answered] = [gate(), gate()];
    await tab.page.route('**/widget/settings*', async (route) => {
      asked.open();
      await answered.opened;
      await route.continue();
    });
    await tab.page.reload();
    await asked.opened;
    await tab.page.waitForFunction('window.concierge !== undefined');
    await tab.page.evaluate('concierge.open()');
    await tab.page.evaluate("document.querySelector('main').append(document.createElement('input'))");
    const field = tab.page.locator('main input');
    await field.fill('a green');
    answered.open();
    await tab.panel.waitFor();
    await tab.page.keyboard.type(' tea');
    expect([await field.inputValue(), await tab.panel.getByLabel('Message').inputValue()]).toEqual(['a green tea', '']);
    await tab.page.evaluate('concierge.close()');
    await tab.panel.waitFor({ state: 'hidden' });
    await tab.page.keyboard.type(' pot');
    expect(await field.inputValue()).toBe('a green tea pot');
  });

  it('is not shown to a visitor without a token where one is asked for', async () => {
    await using shopping = await visit({ requireSenderToken: true });
    const tab = await shopping.tab(shop.origin);
    await tab.page.waitForFunction('window.concierge !== undefined');
    expect(await tab.launcher.count()).toBe(0);
    await tab.page.evaluate(`concierge.setToken(${JSON.stringify(token)})`);
    await tab.open();
    await tab.say('[[say:Hello Ann]]');
    await tab.hears('Hello Ann');
    await tab.panel.getByLabel('Message').fill('half a mess');
    await tab.page.evaluate(`concierge.setToken(${JSON.stringify(signed('ann', 300))})`);
    await tab.hears('Hello Ann');
    expect(await tab.panel.getByLabel('Message').inputValue()).toBe('half a mess');
    await tab.page.evaluate(`concierge.setToken(${JSON.stringify(signed('bob', 300))})`);
    await tab.messages('visitor').waitFor({ state: 'detached' });
  });

  it('is used by keyboard alone, and fits a phone', async () => {
    await using shopping = await visit({ viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true });
    const tab = await shopping.tab(shop.origin);
    await tab.launcher.focus();
    await tab.page.keyboard.press('Enter');
    await tab.panel.waitFor();
    expect(await tab.panel.boundingBox()).toEqual({ x: 0, y: 0, width: 360, height: 640 });
    await tab.page.keyboard.type(`${'averyveryverylongword'.repeat(20)} [[say:ok]]`);
    await tab.panel.getByRole('button', { name: 'Send' }).click();
    await tab.hears('ok');
    await eventuallyHolds(async () => expect(await tab.page.evaluate('document.documentElement.scrollWidth')).toBe(360));
    await tab.page.keyboard.press('Escape');
    await tab.panel.waitFor({ state: 'hidden' });
    await eventuallyHolds(async () => expect(await tab.launcher.evaluate((button) => button.matches(':focus'))).toBe(true));
  });
});
