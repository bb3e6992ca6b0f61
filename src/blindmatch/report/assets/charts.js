// Bound and cost against time; the costs of random pairings with ours among them.
function frame(room, high, [left, right], [low, top], ySide) {
  const yTicks = ySide ? ticks(low, top, 5) : [], yWords = tickWords(yTicks);
  const wide = room.clientWidth || 480, long = Math.max(0, ...yWords.map((word) => word.length));
  const edge = { left: ySide ? Math.max(58, 7 * long + 14) : 8, right: 14, top: 14, bottom: 36 };
  const x = (value) => edge.left + (wide - edge.left - edge.right) * (value - left) / (right - left || 1);
  const y = (value) => high - edge.bottom - (high - edge.bottom - edge.top) * (value - low) / (top - low || 1);
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img" });
  const base = high - edge.bottom;
  yTicks.forEach((value, at) => {
    picture.append(svg("line", { class: "grid", x1: edge.left, x2: wide - edge.right, y1: y(value), y2: y(value) }));
    picture.append(svg("text", { x: edge.left - 8, y: y(value) + 4, "text-anchor": "end" }, yWords[at]));
  });
  const xTicks = ticks(left, right, Math.max(2, Math.floor(wide / 110))), xWords = tickWords(xTicks);
  xTicks.forEach((value, at) => {
    picture.append(svg("line", { class: "axis", x1: x(value), x2: x(value), y1: base, y2: base + 5 }));
    picture.append(svg("text", { x: x(value), y: base + 19, "text-anchor": "middle" }, xWords[at]));
  });
  picture.append(svg("path", { class: "axis", d: `M${edge.left},${edge.top} V${base} H${wide - edge.right}` }));
  return { picture, x, y, wide, base, edge };
}

function drawTrace() {
  const room = one("#trace-plot"), moments = data.trace;
  if (!room) return;
  const series = (at) => moments.filter((moment) => moment[at] !== null).map((moment) => [moment[0], moment[at]]);
  const bound = series(1), cost = series(2);
  const final = [...bound.slice(-1), ...cost.slice(-1)].map((point) => point[1]);
  const values = [...bound, ...cost].map((point) => point[1]);
  // The first bounds may be far off; cut them where they would press the rest flat.
  const sorted = [...values].sort((a, b) => a - b), middle = sorted[Math.floor(sorted.length / 4)];
  const top = Math.max(...values), least = Math.min(...values, ...final);
  let low = Math.min(...final, least < middle - 3 * (top - middle) ? middle - (top - middle) : least);
  const margin = 0.06 * (top - low) || 0.5 * Math.max(Math.abs(top), 1);
  low -= margin;
  const seconds = moments[moments.length - 1][0] || 1;
  const { picture, x, y, wide, edge, base } = frame(room, 260, [0, seconds], [low, top + margin], true);
  const clamp = (value) => Math.max(value, low);
  const steps = (points) => points.map(([t, value], at) =>
    `${at ? `H${x(t).toFixed(1)}V` : `M${x(t).toFixed(1)},`}${y(clamp(value)).toFixed(1)}`).join("") + `H${x(seconds).toFixed(1)}`;
  if (bound.length && cost.length) {
    const start = Math.max(bound[0][0], cost[0][0]);
    const at = (points, time) => points.filter(([t]) => t <= time).pop()[1];
    const times = moments.map((moment) => moment[0]).filter((t) => t >= start);
    let area = "";
    times.forEach((t, k) => { area += `${k ? `H${x(t).toFixed(1)}V` : `M${x(t).toFixed(1)},`}${y(at(cost, t)).toFixed(1)}`; });
    area += `H${x(seconds).toFixed(1)}`;
    [...times].reverse().forEach((t) => { area += `V${y(clamp(at(bound, t))).toFixed(1)}H${x(t).toFixed(1)}`; });
    picture.append(svg("path", { class: "gap", d: `${area}Z` }));
  }
  if (cost.length) picture.append(svg("path", { class: "line cost", d: steps(cost) }));
  if (bound.length) picture.append(svg("path", { class: "line bound", d: steps(bound) }));
  picture.append(svg("text", { x: wide - edge.right, y: base + 33, "text-anchor": "end" }, "seconds"));
  const last = moments[moments.length - 1];
  picture.setAttribute("aria-label", `After ${formatted(seconds)} seconds: cost ${formatted(last[2], 7)}, bound ${lowered(last[1], 7)}`);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const t = (event.clientX - box.left) * wide / box.width;
    const now = moments.filter((moment) => x(moment[0]) <= t).pop();
    if (now) showTip(`after ${formatted(now[0])} s\ncost ${formatted(now[2], 7)}\nbound ${lowered(now[1], 7)}`, event); else hideTip();
  });
  picture.addEventListener("pointerleave", hideTip);
  room.replaceChildren(picture);
}

function drawRandom() {
  const room = one("#random-plot"), given = data.random;
  if (!room) return;
  const marks = [["bound", data.bound, "lower bound"], ["truth", given.truth, "truth"], ["cost", data.cost, `this ${data.nouns[0]}`]]
    .filter(([, value]) => value !== null);
  const shown = (kind, value) => (kind === "bound" ? lowered : formatted)(value, 5);
  const near = marks.filter(([kind]) => kind !== "bound").map(([, value]) => value);
  // A bound far away would press everything else together, one that is reached would hide the match: both are left out.
  const reach = given.high - Math.min(...near, given.low);
  const kept = marks.filter(([kind, value]) => kind !== "bound" || (value > given.low - 2 * reach && data.cost - value > 0.01 * reach));
  const left = Math.min(given.low, ...kept.map(([, value]) => value)), right = Math.max(given.high, ...near);
  const margin = 0.04 * (right - left);
  const most = Math.max(...given.counts), high = 260;
  const { picture, x, y, wide, base } = frame(room, high, [left - margin, right + margin], [0, most * 1.55], false);
  const width = (given.high - given.low) / given.counts.length;
  given.counts.forEach((count, at) => {
    const from = x(given.low + at * width), to = x(given.low + (at + 1) * width);
    picture.append(svg("rect", { class: "pile", x: from.toFixed(1), width: Math.max(to - from - 1, 1).toFixed(1), y: y(count).toFixed(1), height: (base - y(count)).toFixed(1) }));
  });
  picture.append(svg("text", { x: x(given.mean), y: y(most) - 8, "text-anchor": "middle" }, `random ${data.nouns[1]}s`));
  // Labels under each other, so that they never lie on one another.
  kept.forEach(([kind, value, word], at) => {
    const line = 20 + 17 * at, over = x(value) > wide * 0.6;
    picture.append(svg("line", { class: `mark ${kind}`, x1: x(value), x2: x(value), y1: line - 9, y2: base }));
    picture.append(svg("text", { class: kind, x: x(value) + (over ? -7 : 7), y: line, "text-anchor": over ? "end" : "start" }, `${word}: ${shown(kind, value)}`));
  });
  picture.append(svg("text", { x: wide - 14, y: base + 33, "text-anchor": "end" }, "cost"));
  picture.setAttribute("aria-label", `Random ${data.nouns[1]}s cost ${formatted(given.mean, 5)} on average; ${kept.map(([kind, value, word]) => `${word} ${shown(kind, value)}`).join(", ")}`);
  room.replaceChildren(picture);
}

function startCharts() {
  if (data.trace.length) drawings.push(drawTrace);
  if (data.random) drawings.push(drawRandom);
}
