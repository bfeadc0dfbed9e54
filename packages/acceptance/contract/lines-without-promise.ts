const leadIn = 'introduces the lines after it';
const left = 'leaves the point open; docs/spec/contract.md decides it';

/**
 * Lines that state nothing of their own, and why. A line is here or has a case; a new one fails the run until it has
 * either.
 */
export const withoutPromise: Readonly<Record<string, string>> = {
  'SI/multi-tenant-agent-chat-service-interface/1': leadIn,
  'SI/what-the-service-does/1': leadIn,
  'SI/what-the-service-does/4': leadIn,
  'SI/session/6': left,
  'SI/session/7': left,
  'SI/message-input/6': left,
  'SI/states-and-transitions/1': left,
  'SI/post-api-admin/2': leadIn,
  'SI/post-api-admin/6': leadIn,
  'SI/post-api-cs/2': leadIn,
  'SI/get-api-sessions/2': leadIn,
  'SI/events/9': leadIn,
  'SI/events/12': left,
  'SI/events/13': left,
  'SI/events/14': left,
  'SI/errors/3': left,
  'SI/limits/6': left,
  'SI/limits/7': left,
  'SI/limits/8': left,
  'SI/limits/9': left,
  'SI/authentication/3': leadIn,
  'SI/authentication/7': left,
  'SI/authentication/8': left,
  'SI/versioning/4': left,
};
