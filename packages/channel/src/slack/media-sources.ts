import type { MediaSources } from '../media-sources.ts';

export const mediaSources: MediaSources = { withToken: ['slack.com'], open: [] };
