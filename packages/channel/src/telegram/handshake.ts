/** Telegram asks nothing: it is told where to send when the binding is made. */
export function handshakeTelegram(): undefined {
  return undefined;
}
