// The tables of a sweep: sort by any column, one search for all of them, copy.
const originals = new WeakMap();
function rowsOf(body) {
  if (!originals.has(body)) originals.set(body, [...body.rows]);
  return originals.get(body);
}

function sortRows(header) {
  const body = header.closest("table").tBodies[0];
  body.append(...sortedRows(header, rowsOf(body)));
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
