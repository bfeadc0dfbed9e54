import type { Page } from 'playwright-core';

/** Stops of the longest screen, and more. */
const STOPS_MAX = 400;
/** Between two looks at whether the walk is over. */
const STEPS = 10;

/** Remembers in the page where the focus goes, and what of that is wrong. */
const watch = `{
  // From the beginning of the page, also where a field had the focus.
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.removeAttribute('tabindex');
  const seen = new Set();
  const wrong = [];
  const say = (node) => node.outerHTML.slice(0, 120);
  const state = { seen, wrong, first: null, isOver: false, isLeft: false };
  globalThis.tabWalk = state;
  document.addEventListener('focusin', ({ target }) => {
    if (state.first === target) state.isOver = true;
    state.first ??= target;
    seen.add(target);
    // A choice is drawn by its label.
    const { width, height, top, bottom, left, right } = (target.closest('label') ?? target).getBoundingClientRect();
    const isIn = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
    if (!target.checkVisibility({ visibilityProperty: true, opacityProperty: false }) || width <= 1 || height <= 1 || !isIn) wrong.push('not in view: ' + say(target));
  });
}`;

/** What is wrong once the walk is over. */
const report = `(() => {
  const { seen, wrong, first, isOver } = globalThis.tabWalk;
  const say = (node) => node.outerHTML.slice(0, 120);
  const found = [...wrong];
  if (first?.getAttribute('href') !== '#page') found.push('begins with ' + (first === null ? 'nothing' : say(first)));
  if (!isOver) found.push('does not come back to its beginning; stands at ' + say(document.activeElement));
  const isChosen = (node) => node.type !== 'radio' || node.checked;
  for (const node of document.querySelectorAll('a[href], button, input, select, textarea, summary'))
    if (!seen.has(node) && !node.disabled && node.tabIndex >= 0 && isChosen(node) && node.checkVisibility({ visibilityProperty: true }))
      found.push('not reached: ' + say(node));
  return found;
})()`;

/**
 * Goes around a page by Tab. Answers with what is wrong: stops out of view, controls not reached, a trap. What was not
 * there yet when the focus passed its place, as an answer of the service may bring it, is reached the second time.
 */
export async function walkByTab(page: Page): Promise<readonly string[]> {
  await page.evaluate(watch);
  const found = await goAround(page);
  if (found.every((one) => !one.startsWith('not reached'))) return found;
  await page.evaluate('globalThis.tabWalk.isOver = false');
  return await goAround(page);
}

async function goAround(page: Page): Promise<readonly string[]> {
  for (let stops = 0; stops < STOPS_MAX && (await page.evaluate('!globalThis.tabWalk.isOver')); stops += STEPS) {
    for (let step = 0; step < STEPS; step += 1) await page.keyboard.press('Tab');
  }
  const found: unknown = await page.evaluate(report);
  return Array.isArray(found) ? found.map(String) : ['nothing was reported'];
}
