import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Browser } from 'playwright-core';

/** The first of them has no windows of its own and takes a third less time for the same pages. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
const folders = ['/usr/local/bin', '/usr/bin', '/bin', '/snap/bin'];

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The machine's own browser: downloads of one fail on many networks. Undefined when there is none. */
export const chromiumPath = folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable);

/** Starts it so that it asks for nothing that the test does not ask for. */
export async function startChromium(executablePath: string): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ];
  return await chromium.launch({ executablePath, args });
}
