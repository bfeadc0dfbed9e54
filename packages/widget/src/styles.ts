import type { Look } from './gateway.ts';

/** Where the panel takes all of the window. */
export const coversPage = '(max-width: 480px)';

/** What is the same in every widget. */
const rules = `.head { display: flex; align-items: center; gap: 8px; padding-block: 12px; padding-inline: 16px 8px; background: var(--accent); color: var(--on-accent); }
h2 { flex: 1; margin: 0; font-size: 16px; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.head button { width: 36px; height: 36px; border-radius: 8px; display: grid; place-items: center; }
.head :focus-visible { outline-color: var(--on-accent); }
.log { flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: 16px; display: flex; flex-direction: column; gap: 10px; }
.message { max-width: 85%; padding: 8px 12px; border-radius: 12px; background: var(--soft); align-self: flex-start; overflow-wrap: anywhere; }
.message[data-from=visitor] { align-self: flex-end; background: var(--accent); color: var(--on-accent); }
.said { white-space: pre-wrap; }
time { display: block; font-size: 11px; text-align: end; }
.who time { display: inline; margin-inline-start: 6px; }
.message[data-from=person] { border-inline-start: 3px solid var(--accent); }
.who { display: block; font-size: 12px; color: var(--quiet); margin-bottom: 2px; }
.message p, .message ul, .message ol, .message pre, .message blockquote, .scroll { margin: 0 0 8px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
th, td { border: 1px solid var(--line); padding: 4px 8px; text-align: start; vertical-align: top; overflow-wrap: normal; }
.message > :last-child { margin-bottom: 0; }
.message ul, .message ol { padding-inline-start: 22px; }
.message li > ul, .message li > ol { margin: 0; }
.message blockquote { border-inline-start: 3px solid var(--line); padding-inline-start: 10px; color: var(--quiet); }
code, pre { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, monospace; }
pre { overflow-x: auto; padding: 8px; border-radius: 8px; background: var(--paper); }
a { color: inherit; text-decoration: underline; }
.leads { color: var(--quiet); font-size: 12px; }
.dots { display: inline-flex; gap: 4px; padding: 5px 0; }
.dots i { width: 7px; height: 7px; border-radius: 50%; background: var(--quiet); animation: beat 1.2s infinite; }
.dots i:nth-child(2) { animation-delay: .2s; }
.dots i:nth-child(3) { animation-delay: .4s; }
@keyframes beat { 0%, 60%, 100% { opacity: .3; } 30% { opacity: 1; } }
.note { padding: 6px 16px; font-size: 13px; color: var(--quiet); }
.trouble { margin: 0 16px 8px; padding: 8px 12px; border-radius: 8px; border: 1px solid var(--alarm); color: var(--alarm); font-size: 14px; display: flex; gap: 8px; align-items: center; }
.trouble span { flex: 1; }
.trouble button { text-decoration: underline; }
.files { flex-basis: 100%; display: flex; flex-wrap: wrap; gap: 6px; }
.files:not(:has(.chip, .refusal:not(:empty))) { display: none; }
.refusal { flex-basis: 100%; color: var(--alarm); font-size: 13px; overflow-wrap: anywhere; }
.chip { display: inline-flex; align-items: center; max-width: 100%; background: var(--soft); border-radius: 8px; padding-inline-start: 8px; font-size: 13px; }
.chip bdi { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.chip[aria-busy] { opacity: .7; }
.file { display: flex; gap: 4px; align-items: center; font-size: 13px; }
.file svg, .chip svg { width: 16px; height: 16px; flex: none; }
form { display: flex; flex-wrap: wrap; gap: 8px; align-items: flex-end; padding: 12px; border-top: 1px solid var(--line); }
textarea { flex: 1; min-width: 0; resize: none; height: 40px; max-height: 140px; padding: 8px 10px; font: inherit; font-size: 16px; color: inherit; background: var(--paper); border: 1px solid var(--line);
  border-radius: 10px; }
form button { height: 40px; padding: 0 14px; border-radius: 10px; background: var(--accent); color: var(--on-accent); font-weight: 600; }
form .attach, form .chip button { width: 36px; padding: 0; background: none; color: var(--quiet); display: grid; place-items: center; }
form .chip button { width: 28px; height: 28px; }
form button.stop { background: var(--soft); color: var(--ink); }
form button:disabled { opacity: .5; cursor: default; }
@media ${coversPage} { .panel { inset: 0; width: auto; max-width: none; height: 100dvh; border: 0; border-radius: 0; } .panel:not([hidden]) + .launcher { display: none; } }
`;

/**
 * The look of the widget, in a shadow root: nothing of the page reaches it, and it reaches nothing of the page. The
 * host itself is the page's to style, but for what is important here: such rules of a shadow root win over those of the
 * page.
 */
export function buildStyles({ appearance, display }: Pick<Look, 'appearance' | 'display'>, direction: 'ltr' | 'rtl'): string {
  const { colour, position } = appearance;
  const { theme, offsetSide, offsetBottom, zIndex } = display;
  const side = `${position}: ${String(offsetSide)}px`;
  const above = display.launcher === 'hidden' ? offsetBottom : offsetBottom + 68;
  const dark =
    '--paper: #16191d; --ink: #e8eaed; --soft: #262b31; --line: #363d45; --quiet: #9aa5b1; --alarm: #ff8a80; color-scheme: dark !important;';
  const themes = {
    light: '',
    dark: `:host { ${dark} }`,
    auto: `@media (prefers-color-scheme: dark) { :host { ${dark} } }`,
  };
  return `
:host { all: initial !important; --accent: ${colour}; --on-accent: ${inkOn(colour)}; --paper: #fff; --ink: #1c2024; --soft: #f0f2f5; --line: #d8dde3; --quiet: #5b6570; --alarm: #b3261e;
  color-scheme: light !important; direction: ${direction} !important; font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif !important; color: var(--ink) !important; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
button { font: inherit; color: inherit; cursor: pointer; border: 0; background: none; padding: 0; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.launcher { position: fixed; ${side}; bottom: ${String(offsetBottom)}px; z-index: ${String(zIndex)}; width: 56px; height: 56px; border-radius: 28px; background: var(--accent); color: var(--on-accent);
  box-shadow: 0 4px 16px rgb(0 0 0 / 25%); display: grid; place-items: center; }
.unread { position: absolute; top: -4px; inset-inline-end: -4px; min-width: 22px; height: 22px; padding: 0 6px; border-radius: 11px; background: #b3261e; color: #fff; font-size: 12px; line-height: 22px;
  font-weight: 700; text-align: center; }
.preview { position: fixed; ${side}; bottom: ${String(above)}px; z-index: ${String(zIndex)}; max-width: min(300px, calc(100vw - ${String(offsetSide + 20)}px)); display: flex; align-items: flex-start; background: var(--paper);
  border: 1px solid var(--line); border-radius: 14px; box-shadow: 0 6px 24px rgb(0 0 0 / 20%); }
.words { flex: 1; padding-block: 10px; padding-inline: 14px 0; text-align: start; overflow-wrap: anywhere; }
.dismiss { width: 36px; height: 36px; display: grid; place-items: center; color: var(--quiet); }
.panel:focus { outline: none; }
.panel { position: fixed; ${side}; bottom: ${String(above)}px; z-index: ${String(zIndex)}; width: 380px; max-width: calc(100vw - ${String(offsetSide)}px);
  height: min(600px, calc(100dvh - ${String(above + 20)}px)); display: flex; flex-direction: column; overflow: hidden;
  background: var(--paper); border: 1px solid var(--line); border-radius: 14px; box-shadow: 0 12px 40px rgb(0 0 0 / 25%); }
${rules}${themes[theme]}
@media (prefers-reduced-motion: reduce) { .dots i { animation: none; opacity: .7; } }
`;
}

/** Black or white, whichever can be read better on it (WCAG 2: relative luminance). */
export function inkOn(colour: string): '#000' | '#fff' {
  const [red, green, blue] = [1, 3, 5].map((at) => linear(Number.parseInt(colour.slice(at, at + 2), 16) / 255));
  const luminance = 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? '#000' : '#fff';
}

function linear(share: number): number {
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
