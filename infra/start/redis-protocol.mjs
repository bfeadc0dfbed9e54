// Just enough of Redis' inline protocol to ask whether a server is there, before any library is loaded.
import { connect } from 'node:net';

const ANSWER_TIMEOUT_MS = 1000;

function parseAddress(url) {
  if (url.startsWith('unix:')) return { target: { path: url.slice('unix:'.length) }, password: '' };
  const { hostname, port, password } = new URL(url);
  return { target: { host: hostname, port: Number(port || 6379) }, password: decodeURIComponent(password) };
}

/** The last line of the answer without its type mark (`PONG`), or null without an answer. */
export function askRedis(url, command) {
  const { target, password } = parseAddress(url);
  return new Promise((resolve) => {
    const socket = connect(target);
    let heard = '';
    const finish = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => finish(null));
    socket.on('error', () => finish(null));
    socket.on('close', () => resolve(null));
    socket.on('connect', () => socket.write(`${password === '' ? '' : `AUTH ${password}\r\n`}${command}\r\n`));
    const expectedLines = password === '' ? 1 : 2;
    socket.on('data', (chunk) => {
      heard += chunk;
      const lines = heard.split('\r\n').slice(0, -1);
      if (lines.length >= expectedLines) finish(lines.at(-1).slice(1));
    });
  });
}
