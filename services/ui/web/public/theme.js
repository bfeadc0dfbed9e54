// Before the first paint, so that a dark page never flashes white. The switch itself is in src/theme.ts.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('concierge.theme');
  } catch {
    // The browser keeps nothing for this page.
  }
  const dark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
})();
