/* Before the first paint, so that nothing flashes. */
try {
  const theme = localStorage.getItem('holdfast.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* storage may be off */ }
