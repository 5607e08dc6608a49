// Sets the user's theme before the first paint, if this browser has stored one.
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // The browser denies storage, so the system's theme applies.
}
