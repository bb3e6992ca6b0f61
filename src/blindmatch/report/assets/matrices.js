// Both matrices and what is between them, on canvas, with one cursor for all three.
const SEQUENCE = { // near to far; like viridis it grows lighter (or darker) all the way, so it also works without colours
  light: [[8, 45, 88], [0, 104, 168], [86, 160, 196], [178, 208, 210], [250, 246, 226]],
  dark: [[255, 214, 150], [246, 150, 82], [190, 84, 88], [96, 54, 104], [30, 32, 56]],
};
const SMALLEST = 8; // pixels of a row that has room for a name
const LOW = { light: [0, 104, 168], dark: [86, 172, 232] };
const BLANK = { light: [247, 247, 245], dark: [34, 38, 44] };
const HIGH = { light: [193, 75, 0], dark: [255, 140, 70] };

function mixed(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const before = Math.min(Math.floor(at), stops.length - 2);
  return stops[before].map((value, channel) => value + (at - before) * (stops[before + 1][channel] - value));
}

class Matrix {
  constructor(canvas, values, size, range, diverging, names) {
    Object.assign(this, { canvas, values, size, range, diverging, names });
    this.picture = document.createElement("canvas");
    this.picture.width = this.picture.height = size;
  }

  // 256 colours from one end of the range to the other: asking the page for its theme at each cell would take seconds.
  palette() {
    const theme = isDark() ? "dark" : "light";
    const stops = this.diverging ? [LOW[theme], BLANK[theme], HIGH[theme]] : SEQUENCE[theme];
    const reversed = !this.diverging && data.matrices.ends[0] !== "near"; // the strong end is for what is near
    return Array.from({ length: 256 }, (_, at) => mixed(stops, (reversed ? 255 - at : at) / 255).map(Math.round));
  }

  paint(order) {
    const context = this.picture.getContext("2d"), palette = this.palette(), [least, greatest] = this.range;
    const image = context.createImageData(this.size, this.size), scale = 255 / (greatest - least);
    let at = 0;
    for (const a of order) for (const b of order) {
      if (a !== b || data.matrices.diagonal) { // what an item is to itself says nothing: left empty
        const share = Math.round((this.values[a * this.size + b] - least) * scale);
        const shade = palette[Math.min(Math.max(share, 0), 255)];
        image.data[at] = shade[0];
        image.data[at + 1] = shade[1];
        image.data[at + 2] = shade[2];
        image.data[at + 3] = 255;
      }
      at += 4;
    }
    context.putImageData(image, 0, 0);
    this.order = order;
    this.draw(null);
    this.drawScale(palette);
  }

  // Names beside the rows where there is room for them; room for the longest of all, so that the pictures have one size.
  measure() {
    const wide = this.canvas.clientWidth;
    const context = this.canvas.getContext("2d");
    context.font = "11px system-ui, sans-serif";
    const longest = this.names && this.size <= 60 && wide >= 260
      ? Math.min(90, 8 + Math.max(...[...data.source, ...data.target].map((name) => context.measureText(name).width))) : 0;
    const margin = wide - longest >= SMALLEST * this.size ? longest : 0;
    return { wide, margin, side: wide - margin };
  }

  // A name that is too long for the margin ends in dots.
  fitted(context, name, room) {
    if (context.measureText(name).width <= room) return name;
    let letters = [...name].slice(0, 40);
    while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > room) letters.pop();
    return `${letters.join("").trimEnd()}…`;
  }

  draw(cell) {
    const { wide, margin, side } = this.measure();
    if (!wide) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(side * ratio);
    this.canvas.style.height = `${side}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, margin, 0, side, side);
    context.strokeStyle = colour("line");
    context.strokeRect(margin + 0.5, 0.5, side - 1, side - 1);
    const step = side / this.size;
    if (margin) {
      context.font = `${Math.min(11, 0.9 * step)}px system-ui, sans-serif`;
      context.textBaseline = "middle";
      this.order.forEach((a, row) => {
        context.fillStyle = colour(cell && (cell[0] === row || cell[1] === row) ? "text" : "soft");
        context.fillText(this.fitted(context, this.names[a], margin - 6), 0, (row + 0.5) * step);
      });
    }
    if (cell) this.drawCursor(context, margin, step, side, cell);
    this.canvas.dataset.cell = cell ? cell.join(",") : "";
  }

  // A cell has a frame; a pair alone (from the table or the plane) has its row and column framed.
  drawCursor(context, margin, step, side, [row, column]) {
    const wide = Math.max(step, 5), shift = (wide - step) / 2;
    const box = (x, y, w, h) => {
      context.lineWidth = 4; context.strokeStyle = colour("card"); context.strokeRect(x, y, w, h);
      context.lineWidth = 2; context.strokeStyle = colour("mark"); context.strokeRect(x, y, w, h);
    };
    context.fillStyle = isDark() ? "rgb(255 255 255 / .18)" : "rgb(0 0 0 / .14)";
    context.fillRect(margin, row * step, side, step);
    context.fillRect(margin + column * step, 0, step, side);
    if (row === column) {
      box(margin, row * step - shift, side, wide);
      box(margin + column * step - shift, 0, wide, side);
    } else box(margin + column * step - shift, row * step - shift, wide, wide);
  }

  drawScale(palette) {
    const scale = one(".scale", this.canvas.parentNode), ratio = devicePixelRatio || 1, wide = scale.clientWidth;
    scale.width = Math.round(wide * ratio);
    scale.height = Math.round(30 * ratio);
    const context = scale.getContext("2d");
    context.scale(ratio, ratio);
    const [least, greatest] = this.range;
    for (let x = 0; x < wide; x++) {
      context.fillStyle = `rgb(${palette[Math.floor(256 * x / wide)].join(" ")})`;
      context.fillRect(x, 0, 1, 9);
    }
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colour("soft");
    context.textBaseline = "top";
    const ends = this.diverging ? ["", ""] : data.matrices.ends;
    [[`${ends[0]} ${formatted(least, 2)}`, "left", 0], [`${formatted(greatest, 2)} ${ends[1]}`, "right", wide]].forEach(([text, align, x]) => {
      context.textAlign = align;
      context.fillText(text.trim(), x, 14);
    });
    if (this.diverging) { context.textAlign = "center"; context.fillText("0", wide / 2, 14); }
  }

  // The cell under the pointer: places in the present order.
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect(), { margin, side } = this.measure();
    const place = (at) => Math.floor(at / side * this.size);
    const row = place(event.clientY - box.top), column = place(event.clientX - box.left - margin);
    return row >= 0 && row < this.size && column >= 0 && column < this.size ? [row, column] : null;
  }
}

function startMatrices() {
  const given = data.matrices;
  if (!given) return;
  const decode = (side) => Float64Array.from(atob(side.data), (letter) => side.low + side.step * letter.charCodeAt(0));
  const source = decode(given.source), target = decode(given.target), size = given.order.length;
  const product = given.mode === "product";
  const third = source.map((value, at) => (product ? value * target[at] : value - target[at]));
  const off = third.filter((_, at) => given.diagonal || at % (size + 1) !== 0);
  const limit = off.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  const ranges = [[given.source.least, given.source.greatest], [given.target.least, given.target.greatest]];
  const positive = product && off.every((value) => value >= 0);
  ranges.push(positive ? [0, limit] : product ? [-limit, limit] : [ranges[0][0] - ranges[0][1], ranges[0][1] - ranges[0][0]]);
  const names = [given.drawn.map((pair) => data.source[pair]), given.drawn.map((pair) => data.target[pair])];
  names.push(names[0]);
  const matrices = all("[data-matrix]").map((canvas, at) =>
    new Matrix(canvas, [source, target, third][at], size, ranges[at], at === 2 && !positive, names[at]));

  let order = given.order, cell = null;
  const tellCell = ([row, column]) => {
    const a = order[row], b = order[column], at = a * size + b;
    const [first, second] = [given.drawn[a], given.drawn[b]];
    if (a === b && !given.diagonal) return pairText(first);
    const told = (names) => `${isolated(names[first])} – ${isolated(names[second])}`;
    return `${told(data.source)}: ${formatted(source[at])}\n${told(data.target)}: ${formatted(target[at])}\n`
      + `${product ? "cost" : "difference"}: ${formatted(third[at], product ? 4 : 2)}`;
  };
  const move = (to) => {
    cell = to;
    light(to ? [...new Set(to.map((place) => given.drawn[order[place]]))] : []);
    matrices.forEach((matrix) => matrix.draw(to));
    one("#readout").textContent = to ? tellCell(to).replaceAll("\n", "   ·   ") : "\u00a0";
  };
  matrices.forEach((matrix) => {
    matrix.canvas.addEventListener("pointermove", (event) => {
      const to = matrix.cellAt(event);
      if (!to) { hideTip(); move(null); return; }
      if (!cell || to[0] !== cell[0] || to[1] !== cell[1]) move(to);
      if (event.pointerType === "mouse") showTip(tellCell(to), event);
    });
    matrix.canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") { hideTip(); move(null); } });
    matrix.canvas.addEventListener("pointerdown", (event) => { const to = matrix.cellAt(event); if (to) move(to); });
    matrix.canvas.addEventListener("blur", () => move(null));
    matrix.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const from = cell ?? [0, 0];
      move(cell ? from.map((place, axis) => Math.min(Math.max(place + step[axis], 0), size - 1)) : from);
    });
  });
  // A pair that another part of the page points at.
  listeners.push((pairs) => {
    if (cell) return;
    const place = pairs.length === 1 ? order.findIndex((a) => given.drawn[a] === pairs[0]) : -1;
    matrices.forEach((matrix) => matrix.draw(place < 0 ? null : [place, place]));
  });
  one("#order").addEventListener("change", (event) => {
    order = event.target.value === "file" ? given.order.map((_, at) => at) : given.order;
    move(null);
    paint();
  });
  const paint = () => matrices.forEach((matrix) => matrix.paint(order));
  drawings.push(paint);
}
