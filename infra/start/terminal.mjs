// The output on a terminal: phases of the start, and the services' log lines behind a coloured name.

const colours = { gateway: 36, worker: 35, cron: 33, ui: 34, redis: 31, model: 32 };
const levels = { 10: ['trace', 90], 20: ['debug', 90], 30: ['info', 32], 40: ['warn', 33], 50: ['error', 31], 60: ['fatal', 31] };
const NAME_WIDTH = 7;
/** Fields that a reader of a terminal does not need. */
const hidden = new Set(['level', 'time', 'hostname', 'service', 'msg', 'err']);

/** A file or another program gets the services' lines as they are. */
const isRead = process.stdout.isTTY || process.env.FORCE_COLOR !== undefined;
const wantsColour = process.env.NO_COLOR === undefined && isRead;

/** `text` in an ANSI colour, where the terminal shows colours. */
export function paint(code, text) {
  return wantsColour ? `\u001B[${code}m${text}\u001B[0m` : text;
}

export const bold = (text) => paint(1, text);
export const dim = (text) => paint(2, text);

/** One line of the start script itself. */
export function say(text) {
  process.stdout.write(`${text}\n`);
}

/** One line for something that is wrong; goes to standard error. */
export function complain(text) {
  process.stderr.write(`${paint(31, text)}\n`);
}

/** An error whose message is meant for the user at the terminal: printed as one line, without a stack. */
export class StartError extends Error {
  name = 'StartError';
}

function parseLine(line) {
  if (!line.startsWith('{')) return null;
  try {
    const parsed = JSON.parse(line);
    return typeof parsed.level === 'number' ? parsed : null;
  } catch {
    return null;
  }
}

let lastSecond;
let lastClock;

/** Local time. Most lines come in the second of the line before. */
function toClock(time) {
  const second = typeof time === 'string' ? time.slice(0, 'YYYY-MM-DDThh:mm:ss'.length) : time;
  if (second !== lastSecond) {
    lastSecond = second;
    lastClock = new Date(time).toTimeString().slice(0, 8);
  }
  return lastClock;
}

function showField([name, value]) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `${name}=${text}`;
}

/** A pino line in readable form; any other line as it is. */
export function readable(line) {
  const entry = parseLine(line);
  if (entry === null) return line;
  const [level, colour] = levels[entry.level] ?? [String(entry.level), 0];
  const clock = toClock(entry.time);
  const fields = Object.entries(entry).filter(([name]) => !hidden.has(name));
  const stack = entry.err?.stack ?? entry.err?.message;
  return [
    `${dim(clock)} ${paint(colour, level.padEnd(5))} ${entry.msg ?? ''}`,
    ...(fields.length > 0 ? [` ${dim(fields.map(showField).join(' '))}`] : []),
    ...(stack === undefined ? [] : [`\n${stack}`]),
  ].join('');
}

/** Lines of a service as they are shown, each behind the service's name; readable on a terminal. */
export function renderLines(service, lines, { isReadable = isRead } = {}) {
  const prefix = paint(colours[service] ?? 37, `${service.padEnd(NAME_WIDTH)} |`);
  const parts = isReadable ? lines.flatMap((line) => readable(line).split('\n')) : lines;
  return parts.map((part) => `${prefix} ${part}\n`).join('');
}

/** Writes the output of a service, in one call. */
export function showLines(service, lines) {
  process.stdout.write(renderLines(service, lines));
}
