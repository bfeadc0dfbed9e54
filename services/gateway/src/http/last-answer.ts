import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** How long a client may take to read the last answer on its connection and to close it. */
const LINGER_MS = 1000;

/**
 * Answers on a bare connection and ends it. Node keeps a connection half open until the client closes it, too: a client
 * that never does would hold it for ever. What still arrives is discarded, for TCP resets a connection that is closed
 * with bytes unread, and the answer may be lost.
 */
export function answerBroken(socket: Duplex, answer: string): void {
  socket.end(answer);
  socket.once('end', () => socket.destroy());
  socket.resume();
  destroyLater(socket);
}

/**
 * Answers a request whose body is not read, and ends the connection: when the client has sent the rest or has closed,
 * and after a moment in any case. The headers must be set, `Content-Length` among them: with it the client has the
 * whole answer although the response is still open.
 */
export function answerUnread(response: ServerResponse, body: string): void {
  response.write(body);
  const { req: request, socket } = response;
  request.once('end', () => response.end());
  request.resume();
  if (socket !== null) destroyLater(socket);
}

function destroyLater(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => {
    clearTimeout(timer);
  });
}
