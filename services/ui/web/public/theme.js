// Before the first paint, so that a dark page never flashes white. Who chooses a theme: src/shell/theme.tsx.
(() => {
  const page = document.documentElement;
  const systemDark = matchMedia('(prefers-color-scheme: dark)');
  try {
    page.dataset.chosenTheme = localStorage.getItem('concierge.theme') ?? 'system';
  } catch {
    // The browser keeps nothing for this page.
  }
  const apply = () => {
    const { chosenTheme } = page.dataset;
    const dark = chosenTheme === 'dark' || (chosenTheme !== 'light' && systemDark.matches);
    page.dataset.theme = dark ? 'dark' : 'light';
  };
  apply();
  // The device may change from day to night while the page is open.
  systemDark.addEventListener('change', apply);
})();
