// The table of pairs: search, sort, only the wrong ones, copy, highlight.
const table = one("#pairs-table"), word = table.dataset.rows;
const body = one("tbody", table);
const rows = all("tr", body);
// Long names are cut in the table, but found by all of their words.
const texts = rows.map((row) => `${row.textContent}\n${data.source[row.dataset.pair]}\n${data.target[row.dataset.pair]}`.toLowerCase());

function filterRows() {
  const wanted = one("#search").value.trim().toLowerCase();
  const onlyWrong = one("#only-wrong")?.checked ?? false;
  let count = 0;
  rows.forEach((row, at) => {
    const keep = texts[at].includes(wanted) && !(onlyWrong && !row.classList.contains("miss"));
    row.hidden = !keep;
    count += keep;
  });
  one("#shown").textContent = count === rows.length ? `${count} ${word}` : `${count} of ${rows.length} ${word}`;
  wholeRows();
}

// The box ends below a whole row; the shade of its lower edge says that there are more.
function wholeRows() {
  const box = table.parentElement;
  box.style.maxHeight = "";
  if (box.scrollHeight <= box.clientHeight) return;
  const top = table.getBoundingClientRect().top;
  let edge = 0;
  for (const row of all("tr:not([hidden])", body)) {
    const end = row.getBoundingClientRect().bottom - top;
    if (end > box.clientHeight) break;
    edge = end;
  }
  if (edge > 0) box.style.maxHeight = `${Math.ceil(edge) + box.offsetHeight - box.clientHeight}px`;
}

function csv() {
  // As in exchange.py: no cell is a formula for a spreadsheet.
  const formula = /^[=+\-@\t\n\uff1d\uff0b\uff0d\uff20]/, number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const shown = (text) => (formula.test(text) && !number.test(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = rows.map((row) => {
    const pair = Number(row.dataset.pair);
    const cells = [...row.dataset.ids.split(","), ...[data.source, data.target].map((names) => quoted(shown(names[pair].replace(/\r\n?/g, "\n"))))];
    if (data.confidence !== null) cells.push(data.confidence[pair] ?? "");
    if (data.right !== null) cells.push(data.right[pair] ? "right" : "wrong");
    return cells.join(",");
  });
  const titles = ["source", "target", "source_name", "target_name"];
  if (data.confidence !== null) titles.push("confidence");
  if (data.right !== null) titles.push("right");
  return [titles.join(","), ...lines].join("\n") + "\n";
}

function startTable() {
  one("#search").addEventListener("input", filterRows);
  one("#only-wrong")?.addEventListener("change", filterRows);
  all("th button", table).forEach((button) => button.addEventListener("click", () => {
    body.append(...sortedRows(button.closest("th"), rows));
    wholeRows();
  }));
  one("#csv").addEventListener("click", (event) => copy(csv(), event.currentTarget));
  const pairOf = (event) => event.target.closest("tr")?.dataset.pair;
  body.addEventListener("pointerover", (event) => { const pair = pairOf(event); if (pair !== undefined) light([Number(pair)]); });
  body.addEventListener("pointerleave", () => light([]));
  let marked = [];
  listeners.push((pairs) => {
    marked.forEach((row) => row.classList.remove("lit"));
    marked = pairs.map((pair) => rows[pair]);
    marked.forEach((row) => row.classList.add("lit"));
  });
  addEventListener("resize", wholeRows);
  filterRows();
}
