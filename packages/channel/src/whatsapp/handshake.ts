export { metaHandshake as handshakeWhatsApp } from '../inbound/meta.ts';
