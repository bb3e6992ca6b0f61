// What all parts share: the data, one highlight for the whole page, a tip, drawing helpers.
const data = JSON.parse(document.getElementById("data").textContent);
const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Numbers for people.
function formatted(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(precision(size, digits))));
}
const precision = (size, digits) => (size >= 100 && size < 1e6 ? Math.max(digits, Math.ceil(Math.log10(size + 1))) : digits);

// The same for a proved lower bound, rounded down: what is shown must hold too.
function lowered(value, digits = 3) {
  const nearest = formatted(value, digits);
  if (!(Number(nearest) > value)) return nearest;
  const size = Math.abs(value), unit = 10 ** (Math.floor(Math.log10(size)) + 1 - precision(size, digits));
  const below = formatted(value - 0.75 * unit, digits); // at least half a unit was added, and less than one and a half
  return Number(below) <= value ? below : String(value);
}

// Each part that can show pairs listens; a highlight is a list of up to two pairs.
const listeners = [];
let lit = [];
function light(pairs) {
  if (pairs.length === lit.length && pairs.every((pair, at) => pair === lit[at])) return;
  lit = pairs;
  listeners.forEach((listen) => listen(pairs));
}

const tip = one("#tip");
function showTip(text, event) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - box.width - 12 : event.clientX + 16;
  const top = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}
function hideTip() { tip.hidden = true; }

function pairText(pair) {
  const mark = data.right === null ? "" : data.right[pair] ? "  ✓ right" : "  ✗ wrong";
  return `${isolated(data.source[pair])}  ↔  ${isolated(data.target[pair])}${mark}`;
}
// Names that are written from right to left leave the order of the words around them alone: what <bdi> does in HTML.
const isolated = (name) => (/[\u0590-\uffff]/.test(name) ? `\u2068${name}\u2069` : name);

const drawing = one(".brand svg").namespaceURI;
function svg(name, attributes = {}, text = null) {
  const element = document.createElementNS(drawing, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

// About `count` round numbers from low to high.
function ticks(low, high, count) {
  const raw = (high - low) / count;
  // Numbers that differ by rounding only have no round numbers between them.
  if (!(raw > 1e-13 * Math.max(Math.abs(low), Math.abs(high)))) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + 1e-9 * step; at++) found.push(at * step);
  return found;
}

// The same for people, with as many digits as tell one from the other.
function tickWords(values) {
  for (let digits = 4; ; digits++) {
    const words = values.map((value) => formatted(value, digits));
    if (digits === 15 || new Set(words).size === words.length) return words;
  }
}

// Parts that depend on colours or on the width of the page are drawn again when those change.
const drawings = [];
const redraw = () => drawings.forEach((draw) => draw());

function setTheme(theme) {
  if (theme === null) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const dark = isDark();
  const button = one("#theme");
  button.textContent = dark ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(dark));
  button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  redraw();
}
function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// Rows in the order of a header's column; the next call reverses it. Numbers are in data-v: the largest comes first, and
// a row without one last, whichever way it is sorted. Names begin with A.
const collator = new Intl.Collator(undefined, { numeric: true });
function sortedRows(header, rows) {
  const column = [...header.parentNode.children].indexOf(header), cell = (row) => row.children[column];
  const numbers = rows.some((row) => cell(row).dataset.v !== undefined);
  const next = { none: numbers ? "descending" : "ascending", ascending: "descending", descending: "ascending" };
  const direction = next[header.getAttribute("aria-sort")];
  all("th", header.parentNode).forEach((other) => other.setAttribute("aria-sort", other === header ? direction : "none"));
  const sign = direction === "ascending" ? 1 : -1;
  const key = (row) => (numbers ? Number(cell(row).dataset.v) : cell(row).textContent);
  const compare = numbers ? (a, b) => a - b : collator.compare;
  const told = rows.filter((row) => !numbers || cell(row).dataset.v !== undefined);
  const silent = rows.filter((row) => numbers && cell(row).dataset.v === undefined);
  return [...told.map((row) => [key(row), row]).sort((a, b) => sign * compare(a[0], b[0])).map(([, row]) => row), ...silent];
}

// The clipboard's own interface is not there in every browser that opens a file.
function copy(text, button) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "skip";
  document.body.append(area);
  area.select();
  let done = false;
  try { done = document.execCommand("copy"); } catch { done = false; }
  area.remove();
  button.focus();
  const before = button.textContent;
  button.textContent = done ? "Copied" : "Select and copy by hand";
  setTimeout(() => { button.textContent = before; }, 1500);
}
