import { SMTPServer } from 'smtp-server';

export interface Letter {
  readonly from: string;
  readonly to: readonly string[];
  /** With its headers. */
  readonly text: string;
}

/** A real SMTP server that keeps what it takes. */
export class TestMailbox implements AsyncDisposable {
  readonly letters: Letter[] = [];
  /** How often it was given a letter, those that it refused too. */
  tries = 0;
  /** Whether it says that it can take nothing now. */
  refuse = false;
  url = '';
  readonly #server: SMTPServer;

  private constructor() {
    this.#server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData: (stream, { envelope }, done) => {
        const pieces: Buffer[] = [];
        stream.on('data', (piece: Buffer) => pieces.push(piece));
        stream.once('end', () => {
          this.tries += 1;
          if (this.refuse) return done(new Error('come back later'));
          const { mailFrom, rcptTo } = envelope;
          const to = rcptTo.map(({ address }) => address);
          this.letters.push({ from: mailFrom === false ? '' : mailFrom.address, to, text: Buffer.concat(pieces).toString('utf8') });
          return done();
        });
      },
    });
  }

  static async open(): Promise<TestMailbox> {
    const mailbox = new TestMailbox();
    await new Promise<void>((resolve) => {
      mailbox.#server.listen(0, '127.0.0.1', resolve);
    });
    const address = mailbox.#server.server.address();
    if (typeof address !== 'object' || address === null) throw new TypeError('it does not listen on a port');
    mailbox.url = `smtp://127.0.0.1:${String(address.port)}`;
    return mailbox;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }
}
