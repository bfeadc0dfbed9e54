import type { UnansweredEmail } from '@concierge/turn';
import { createTransport } from 'nodemailer';

export interface MailSettings {
  /** With user and password, where the server wants them. */
  readonly smtpUrl: string;
  /** Whom e-mails are from. */
  readonly from: string;
}

/** Servers that answer do so within seconds. */
const TIMEOUT_MS = 20_000;

/** Sends e-mails to owners, over the operator's SMTP server. */
export class Mailer {
  readonly #transport: ReturnType<typeof createTransport>;
  readonly #from: string;

  constructor({ smtpUrl, from }: MailSettings) {
    this.#from = from;
    const timeouts = { connectionTimeout: TIMEOUT_MS, greetingTimeout: TIMEOUT_MS, socketTimeout: TIMEOUT_MS };
    // E-mails have no attachments: nothing is read from files or fetched.
    this.#transport = createTransport({ url: smtpUrl, ...timeouts, disableFileAccess: true, disableUrlAccess: true });
  }

  /** Rejects when the server has not taken it. */
  async sendUnanswered({ to, tenantId, handoff }: UnansweredEmail): Promise<void> {
    const { id, sessionId, reason, since } = handoff;
    const domain = this.#from.slice(this.#from.lastIndexOf('@') + 1).replace(/>$/u, '');
    await this.#transport.sendMail({
      from: this.#from,
      // An object is one address, whatever characters it has.
      to: { name: '', address: to },
      subject: `A conversation waits for an answer (${tenantId})`,
      // The same e-mail again, after a crash, is one e-mail to most mailboxes.
      messageId: `<${id}@${domain}>`,
      text: [
        `Since ${since} a conversation has waited for a person, and no staff member has answered.`,
        '',
        `Why: ${reason}`,
        `Conversation: ${sessionId}`,
        '',
        'Open the console to answer it, or to give it back to the agent.',
      ].join('\n'),
    });
  }
}
