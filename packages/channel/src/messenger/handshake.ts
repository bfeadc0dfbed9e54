export { metaHandshake as handshakeMessenger } from '../inbound/meta.ts';
