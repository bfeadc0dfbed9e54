export { isSignedByMeta as verifyMessenger } from '../inbound/meta.ts';
