import { describe, expect, it } from '@jest/globals';
import { imageSettings, recipeHash } from './recipe.mjs';

describe('the recipe of the sandbox image', () => {
  it('gives both ways of building the settings of the last stage of the Dockerfile', () => {
    const settings = imageSettings();
    expect(settings).toContain(`LABEL concierge.recipe=${recipeHash()}`);
    expect(settings).toContain('USER agent');
    expect(settings).toContain('WORKDIR /workspace');
    expect(settings.filter((line) => /^(?:FROM|RUN|COPY|ARG)/u.test(line))).toEqual([]);
  });
});
