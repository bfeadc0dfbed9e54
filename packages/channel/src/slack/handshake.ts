/** Slack asks by POST, and signs it: that is `parse`'s `challenge`. */
export function handshakeSlack(): undefined {
  return undefined;
}
