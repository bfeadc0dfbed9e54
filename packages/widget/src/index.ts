/** What `build.mjs` makes of this package: the same from `src` and from `dist`. */
export const widgetFile = new URL('../dist/browser/widget.js', import.meta.url);
