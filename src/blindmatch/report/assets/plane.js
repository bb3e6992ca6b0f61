// The two sets in the plane: source a disc, target a diamond, a line between partners.
const THUMB = 26;
const imageOf = (pair, side) => one(`#pairs-table tr[data-pair="${pair}"] td:nth-child(${side}) img`)?.src;
function drawPlane() {
  const given = data.plane, room = one("#plane-plot");
  if (!given) return;
  const wide = room.clientWidth || 640, high = Math.min(Math.max(wide * 0.5, 300), 520), edge = 26;
  const points = [...given.source, ...given.target];
  const range = (axis) => [Math.min(...points.map((point) => point[axis])), Math.max(...points.map((point) => point[axis]))];
  const [[left, right], [bottom, top]] = [range(0), range(1)];
  const scale = Math.min((wide - 2 * edge) / (right - left || 1), (high - 2 * edge) / (top - bottom || 1));
  const place = ([x, y]) => [wide / 2 + (x - (left + right) / 2) * scale, high / 2 - (y - (bottom + top) / 2) * scale];
  const count = given.drawn.length, radius = count > 200 ? 3 : count > 60 ? 4 : 6;
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "application", tabindex: 0,
    "aria-label": `${count} pairs in the plane; arrow keys move from pair to pair` });
  const disc = ([x, y], kind) => svg("circle", { class: `point ${kind}`, cx: x.toFixed(1), cy: y.toFixed(1), r: radius });
  const diamond = ([x, y], kind) => {
    const size = radius * 1.25;
    return svg("path", { class: `point ${kind}`, d: `M${(x - size).toFixed(1)} ${y.toFixed(1)}l${size} ${-size} ${size} ${size} ${-size} ${size}z` });
  };
  const spare = (point, name, draw, kind) => {
    const mark = draw(place(point), `${kind} spare`);
    mark.append(svg("title", {}, `${isolated(name)}: no partner`));
    picture.append(mark);
  };
  given.source.slice(count).forEach((point, at) => spare(point, given.leftSource[at], disc, "source"));
  given.target.slice(count).forEach((point, at) => spare(point, given.leftTarget[at], diamond, "target"));
  const groups = new Map();
  given.drawn.forEach((pair, at) => {
    const [from, to] = [place(given.source[at]), place(given.target[at])];
    const wrong = data.right !== null && !data.right[pair];
    const group = svg("g", { class: `pair${wrong ? " miss" : ""}`, "data-pair": pair });
    const ends = { x1: from[0].toFixed(1), y1: from[1].toFixed(1), x2: to[0].toFixed(1), y2: to[1].toFixed(1) };
    group.append(svg("line", { class: "link", ...ends }), disc(from, "source"), diamond(to, "target"), svg("line", { class: "hit", ...ends }));
    [[from, 1], [to, 2]].forEach(([[x, y], side]) => {
      const href = count <= 60 ? imageOf(pair, side) : undefined;
      if (href) group.append(svg("image", { href, x: (x - THUMB / 2).toFixed(1), y: (y - THUMB / 2).toFixed(1), width: THUMB, height: THUMB }));
    });
    picture.append(group);
    groups.set(pair, group);
  });
  if (count <= 60) label(picture, given, place, wide, given.drawn.some((pair) => imageOf(pair, 1) || imageOf(pair, 2)) ? THUMB / 2 : radius);
  room.replaceChildren(picture);
  listenToPlane(picture, groups);
}

const shortened = (name, most) => (name.length <= most ? name : `${name.slice(0, most - 1).trimEnd()}…`);
// About how wide a label is: letters of East Asia are twice as wide as Latin ones.
const lengthOf = (name) => [...name].reduce((sum, letter) => sum + (letter >= "\u1100" && letter !== "…" ? 12.5 : 6.4), 0);

// Names beside the sources and the targets, as many as fit without overlap; sources first.
function label(picture, given, place, wide, radius) {
  const taken = [...given.source, ...given.target].map(place).map(([x, y]) => [x - radius, y - radius, x + radius, y + radius]);
  const clash = (box) => box[0] < 0 || box[2] > wide || taken.some((other) =>
    box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
  const items = ["source", "target"].flatMap((side) => given.drawn.map((pair, at) => [side, pair, at]));
  items.forEach(([side, pair, at]) => {
    const [x, y] = place(given[side][at]), name = shortened(data[side][pair], 24), long = lengthOf(name);
    const tries = [[x + radius + 4, y + 4], [x - radius - 4 - long, y + 4], [x - long / 2, y - radius - 5], [x - long / 2, y + radius + 13]];
    const spot = tries.find(([left, base]) => !clash([left, base - 10, left + long, base + 3]));
    if (!spot) return;
    taken.push([spot[0], spot[1] - 10, spot[0] + long, spot[1] + 3]);
    picture.append(svg("text", { class: `label ${side}`, x: spot[0].toFixed(1), y: spot[1].toFixed(1), "data-label": pair }, name));
  });
}

let planeGroups = new Map();
function listenToPlane(picture, groups) {
  planeGroups = groups;
  const pairs = data.plane.drawn;
  let at = -1;
  const over = (event) => {
    const group = event.target.closest("g.pair");
    if (!group) { hideTip(); light([]); return; }
    const pair = Number(group.dataset.pair);
    light([pair]);
    showTip(pairText(pair), event);
  };
  picture.addEventListener("pointermove", over);
  picture.addEventListener("pointerdown", over);
  picture.addEventListener("pointerleave", () => { hideTip(); light([]); });
  picture.addEventListener("blur", () => { hideTip(); light([]); });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    at = Math.min(Math.max(at + step, 0), pairs.length - 1);
    light([pairs[at]]);
    const box = groups.get(pairs[at]).getBoundingClientRect();
    showTip(pairText(pairs[at]), { clientX: box.right, clientY: box.bottom });
  });
}

function startPlane() {
  if (!data.plane) return;
  drawings.push(drawPlane);
  let marked = [];
  listeners.push((pairs) => {
    marked.forEach((group) => group.classList.remove("lit"));
    marked = pairs.map((pair) => planeGroups.get(pair)).filter(Boolean);
    marked.forEach((group) => group.classList.add("lit"));
  });
}
