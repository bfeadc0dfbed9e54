import { readFile } from 'node:fs/promises';
import type { Request, Response } from 'express';
import { AppError } from '@concierge/contract';
import { CompressedBytes } from '../http/compressed-bytes.ts';

/** The script of the web widget, as `packages/widget` was built. Read and compressed when it is first asked for. */
export class WidgetScript {
  readonly #file: URL;
  #loading: Promise<CompressedBytes> | undefined;

  constructor(file: URL) {
    this.#file = file;
  }

  /** @throws AppError `overloaded` as long as it has not been built */
  async send(request: Request, response: Response): Promise<void> {
    const loaded = await this.#load();
    // For pages of every origin: it holds no secret, and does nothing without a key.
    response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
    response.setHeader('Access-Control-Allow-Origin', '*');
    const type = 'text/javascript; charset=utf-8';
    loaded.send(request, response, { type, cacheControl: 'public, max-age=300, stale-while-revalidate=86400' });
  }

  async #load(): Promise<CompressedBytes> {
    this.#loading ??= readFile(this.#file).then(async (bytes) => CompressedBytes.from(bytes));
    try {
      return await this.#loading;
    } catch (error) {
      // It may be built while we run, as on a first start.
      this.#loading = undefined;
      throw new AppError('overloaded', 'The widget has not been built yet: run `node packages/widget/build.mjs`.', {
        cause: error,
        retryAfterSeconds: 2,
      });
    }
  }
}
