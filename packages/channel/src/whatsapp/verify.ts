export { isSignedByMeta as verifyWhatsApp } from '../inbound/meta.ts';
