import { describe, expect, it } from '@jest/globals';
import { stateOfImage, IMAGE } from '../sandbox/recipe.mjs';
import { dockerAnswers } from './redis-container.mjs';
import { chooseSandbox } from './sandbox.mjs';

const onLinux = process.platform === 'linux' ? describe : describe.skip;
const withImage = (await dockerAnswers()) && (await stateOfImage(IMAGE)) !== 'missing' ? describe : describe.skip;

withImage('the sandbox that npm start chooses where an engine has the image', () => {
  it('is Docker', async () => {
    const { settings, description } = await chooseSandbox({});
    expect(settings).toEqual({ SANDBOX: 'docker', SANDBOX_IMAGE: IMAGE });
    expect(description).toContain('Docker');
  });
});

onLinux('the sandbox that npm start chooses without an image', () => {
  it('is bubblewrap, and an image that the operator names is not built', async () => {
    const chosen = await chooseSandbox({ SANDBOX_IMAGE: 'concierge-no-such-image' });
    expect(chosen).toMatchObject({ settings: { SANDBOX: 'bubblewrap', SANDBOX_IMAGE: 'concierge-no-such-image' }, buildsImage: false });
  });

  it('is bubblewrap when that is asked for', async () => {
    const { settings, description } = await chooseSandbox({ SANDBOX: 'bubblewrap' });
    expect(settings.SANDBOX).toBe('bubblewrap');
    expect(description).toBe('bubblewrap');
  });
});

describe('the sandbox that SANDBOX selects for npm start', () => {
  it('stays Docker when that is asked for and its image is not there, and reports what is missing', async () => {
    const { settings, description } = await chooseSandbox({ SANDBOX: 'docker', SANDBOX_IMAGE: 'concierge-no-such-image' });
    expect(settings.SANDBOX).toBe('docker');
    expect(description).toMatch(/^Docker, but .*: bash and exec answer with an error$/u);
  });

  it('is not bubblewrap where a runtime of the engine was named', async () => {
    expect((await chooseSandbox({ SANDBOX_RUNTIME: 'runsc', SANDBOX_IMAGE: 'concierge-no-such-image' })).settings.SANDBOX).toBe('docker');
  });

  it('is none when it is switched off', async () => {
    const { settings, description } = await chooseSandbox({ SANDBOX: 'off' });
    expect(settings.SANDBOX).toBe('off');
    expect(description).toContain('SANDBOX=off');
  });

  it('leaves a value that is not known to the worker, which names every bad value at once', async () => {
    expect((await chooseSandbox({ SANDBOX: 'chroot' })).settings.SANDBOX).toBe('chroot');
  });
});
