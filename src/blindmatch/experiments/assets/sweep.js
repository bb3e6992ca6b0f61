// The tables of a sweep: sort by any column, one search for all of them, copy.
const collator = new Intl.Collator(undefined, { numeric: true });
const originals = new WeakMap();
function rowsOf(body) {
  if (!originals.has(body)) originals.set(body, [...body.rows]);
  return originals.get(body);
}

// Numbers are in data-v; a row without one comes last, whichever way it is sorted.
function sortRows(header) {
  const body = header.closest("table").tBodies[0];
  const rows = rowsOf(body);
  const column = [...header.parentNode.children].indexOf(header);
  const numbers = rows.some((row) => row.children[column].dataset.v !== undefined);
  const next = { none: numbers ? "descending" : "ascending", ascending: "descending", descending: "ascending" };
  const direction = next[header.getAttribute("aria-sort")];
  all("th", header.parentNode).forEach((other) => other.setAttribute("aria-sort", other === header ? direction : "none"));
  const sign = direction === "ascending" ? 1 : -1;
  const cell = (row) => row.children[column];
  const key = (row) => (numbers ? Number(cell(row).dataset.v) : cell(row).textContent);
  const compare = numbers ? (a, b) => a - b : collator.compare;
  const told = rows.filter((row) => !numbers || cell(row).dataset.v !== undefined);
  const silent = rows.filter((row) => numbers && cell(row).dataset.v === undefined);
  body.append(...told.map((row) => [key(row), row]).sort((a, b) => sign * compare(a[0], b[0])).map(([, row]) => row), ...silent);
}

const tables = all("table.sortable");
const lines = tables.flatMap((table) => all("tbody tr", table));
const words = lines.map((row) => row.textContent.toLowerCase());

function searchRows() {
  const wanted = one("#search").value.trim().toLowerCase();
  lines.forEach((row, at) => { row.hidden = !words[at].includes(wanted); });
  const count = lines.filter((row) => !row.hidden).length;
  one("#shown").textContent = count === lines.length ? `${count} rows` : `${count} of ${lines.length} rows`;
}

tables.forEach((table) => all("th button", table).forEach((button) => button.addEventListener("click", () => sortRows(button.closest("th")))));
all("button[data-csv]").forEach((button) => button.addEventListener("click", () => copy(data.csv[button.dataset.csv], button)));
one("#search").addEventListener("input", searchRows);
searchRows();
