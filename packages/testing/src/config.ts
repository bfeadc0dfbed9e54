/** On a machine that must offer everything (`CI=true`), what cannot be run is a failure and not a skip. */
export const mustRunAll = process.env['CI'] === 'true';
