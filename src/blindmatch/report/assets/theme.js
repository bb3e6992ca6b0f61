// Colours, printing, copying: last on every page, when its parts are there.
const KEY = "blindmatch-theme";
let chosen = null;
try { chosen = localStorage.getItem(KEY); } catch { chosen = null; } // some browsers keep nothing for files
setTheme(chosen === "dark" || chosen === "light" ? chosen : null);
one("#theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  try { localStorage.setItem(KEY, theme); } catch { /* the choice holds as long as the page is open */ }
  setTheme(theme);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme ?? null));

// Paper is white: print in light colours, whatever the screen shows.
let before = null;
addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme ?? null; setTheme("light"); });
addEventListener("afterprint", () => setTheme(before));

let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
all(".copy").forEach((button) => button.addEventListener("click", () => copy(one(`#${button.dataset.copy}`).textContent, button)));
document.documentElement.dataset.ready = "true";
