// A line chart as SVG: bands, dashed reference levels, a strip of stages, and a cursor that shows values.

const MARGIN = { left: 46, right: 12, top: 8, bottom: 24 };

function lineChart(chart, options) {
  const holder = element("div", { class: "plot" });
  const last = chart.lines.length === 1 ? chart.lines[0].y.at(-1) : null;
  const node = element(
    "div",
    { class: "chart" },
    element(
      "div",
      { class: "top" },
      element("h3", { title: chart.family ? `${chart.family}/${chart.name}` : chart.name }, chart.name, chart.family ? element("span", { class: "muted" }, ` ${chart.family}`) : null),
      element("span", { class: "last" }, saveLinks(chart, holder, options), last === null ? null : formatNumber(last)),
    ),
    holder,
    chart.lines.length > 1 ? legendOf(chart.lines) : null,
    cutNote(chart.lines, options),
    chart.behind ? behindLegend() : null,
  );
  whenResized(holder, (width) => holder.replaceChildren(...drawChart(viewed(chart), { ...options, width })));
  return node;
}

function legendOf(lines) {
  const entry = (line) => element("span", {}, swatch(seriesColour(line.colour)), line.label);
  return element("div", { class: "legend" }, lines.map(entry));
}

// Where a mean over seeds is cut because a seed ends.
function cutNote(lines, options) {
  const cut = lines.filter((line) => line.cut);
  if (!cut.length) return null;
  const which = (line) => (lines.length > 1 ? `${line.label}: ` : "");
  const text = ({ cut: { seeds, shortest, longest } }) =>
    `mean of ${seeds} seeds, cut at ${formatNumber(shortest)} ${options.clock}, where the shortest ends; the longest ends at ${formatNumber(longest)}`;
  return element("div", { class: "legend cut" }, cut.map((line) => element("span", {}, which(line) + text(line))));
}

function behindLegend() {
  const keys = [swatch("var(--accent)"), swatch("var(--faint)")];
  return element("div", { class: "legend" }, element("span", {}, keys[0], "evaluation"), element("span", {}, keys[1], "training episodes"));
}

function drawChart(chart, options) {
  const frame = frameOf(chart, options);
  const svg = drawn("svg", {
    viewBox: `0 0 ${options.width} ${frame.full}`,
    height: frame.full,
    role: "img",
    "aria-label": `${chart.name} over ${options.clock}`,
  });
  svg.append(...axes(frame, options));
  if (chart.behind) svg.append(drawn("path", { class: "curve behind", d: pathOf(chart.behind.x, chart.behind.y, frame) }));
  for (const line of chart.lines) svg.append(bandOf(line, frame));
  for (const level of chart.levels) svg.append(...levelOf(level, frame));
  svg.append(...levelLabels(chart, frame));
  for (const line of chart.lines) svg.append(...curveOf(line, frame));
  if (options.stages && options.stages.length) svg.append(...stageStrip(options.stages, frame));
  const tip = element("div", { class: "tip" });
  tip.hidden = true;
  followCursor(svg, tip, { chart, frame, options });
  return [svg, tip];
}

// Scales and corners of the plot.
function frameOf(chart, options) {
  const strip = options.stages && options.stages.length ? 26 : 0;
  const beside = chart.levels.length > 0 && options.width > 520;
  const right = MARGIN.right + (beside ? 128 : 0);
  const behind = chart.behind || { x: [], y: [] };
  const [begin, latest] = extent([...chart.lines.flatMap((line) => line.x), ...behind.x, options.end]) || [0, 1];
  const edges = chart.lines.flatMap((line) => [...line.y, ...robust(line)]);
  const levels = [...chart.levels.map((level) => level.estimate), ...behind.y];
  let [low, high] = extent([...edges, ...levels]) || [0, 1];
  const log = isLogarithmic([...edges, ...levels]);
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  [low, high] = log ? [low / 1.15, high * 1.15] : [low - pad, high + pad];
  const [first, end] = [Math.min(0, begin), latest > 0 ? latest : 1];
  const corner = { left: MARGIN.left, right: options.width - right, top: MARGIN.top, bottom: options.height - MARGIN.bottom };
  return {
    ...corner,
    beside,
    full: options.height + strip,
    ...{ low, high, log },
    first,
    end,
    x: scaleOf(first, end, corner.left, corner.right),
    y: (log ? logScaleOf : scaleOf)(low, high, corner.bottom, corner.top),
  };
}

// Bounds of a band without its most extreme 1 % of points, so that spikes do not flatten the line.
function robust(line) {
  const sorted = (values) => values.filter((value) => value !== null).sort((a, b) => a - b);
  const low = sorted(line.low);
  const high = sorted(line.high);
  if (!low.length || !high.length) return [];
  return [low[Math.floor(low.length * 0.01)], high[Math.ceil(high.length * 0.99) - 1]];
}

function axes(frame, options) {
  const parts = [];
  const rows = Math.max(2, Math.round((frame.bottom - frame.top) / 36));
  for (const tick of frame.log ? logTicksOf(frame.low, frame.high) : ticksOf(frame.low, frame.high, rows)) {
    const y = frame.y(tick);
    parts.push(drawn("line", { class: "rule", x1: frame.left, x2: frame.right, y1: y, y2: y }));
    parts.push(drawn("text", { x: frame.left - 8, y: y + 4, "text-anchor": "end" }, formatNumber(tick)));
  }
  const columns = Math.max(2, Math.round((frame.right - frame.left) / 110));
  const ticks = ticksOf(frame.first, frame.end, columns);
  for (const tick of ticks) {
    const x = frame.x(tick);
    parts.push(drawn("line", { class: "axis", x1: x, x2: x, y1: frame.bottom, y2: frame.bottom + 4 }));
    const named = tick === ticks.at(-1) && options.tall;
    const label = named ? `${formatNumber(tick)} ${options.clock}` : formatNumber(tick);
    const place = named ? { x: Math.min(frame.right, x + 30), "text-anchor": "end" } : { x, "text-anchor": "middle" };
    parts.push(drawn("text", { ...place, y: frame.bottom + 17 }, label));
  }
  parts.push(drawn("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }));
  return parts;
}

function pathOf(xs, ys, frame) {
  let path = "";
  let pen = "M";
  xs.forEach((x, index) => {
    if (ys[index] === null) {
      pen = "M";
      return;
    }
    path += `${pen}${frame.x(x).toFixed(1)},${clampedY(ys[index], frame)}`;
    pen = "L";
  });
  return path;
}

function clampedY(value, frame) {
  return Math.min(frame.bottom, Math.max(frame.top, frame.y(value))).toFixed(1);
}

function bandOf(line, frame) {
  const known = line.x.map((_, index) => index).filter((index) => line.low[index] !== null && line.high[index] !== null);
  const upper = known.map((index) => `${frame.x(line.x[index]).toFixed(1)},${clampedY(line.high[index], frame)}`);
  const lower = known.map((index) => `${frame.x(line.x[index]).toFixed(1)},${clampedY(line.low[index], frame)}`).reverse();
  const points = [...upper, ...lower].join("L");
  return drawn("path", { class: "band", d: points ? `M${points}Z` : "", fill: seriesColour(line.colour) });
}

function curveOf(line, frame) {
  const colour = seriesColour(line.colour);
  const parts = [drawn("path", { class: "curve", d: pathOf(line.x, line.y, frame), stroke: colour })];
  if (line.x.length <= 40) {
    const radius = line.x.length === 1 ? 4 : 2.25;
    line.x.forEach((x, index) => {
      if (line.y[index] === null) return;
      parts.push(drawn("circle", { cx: frame.x(x), cy: clampedY(line.y[index], frame), r: radius, fill: colour }));
    });
  }
  if (line.cut) parts.push(cutMark(line, frame, colour));
  return parts;
}

// A dashed line at the end of a mean that is cut.
function cutMark(line, frame, colour) {
  const x = frame.x(line.cut.shortest);
  return drawn("line", { class: "cut-mark", x1: x, x2: x, y1: frame.top, y2: frame.bottom, stroke: colour, "stroke-dasharray": "3 3", opacity: 0.7 });
}

function levelOf(level, frame) {
  const y = frame.y(level.estimate);
  return [drawn("line", { class: "level", x1: frame.left, x2: frame.right, y1: y, y2: y, stroke: "var(--muted)" })];
}

// Labels beside their levels, moved apart where they overlap; on a narrow chart inside it, away from the lines.
function levelLabels({ levels, lines }, frame) {
  const short = ({ label }) => (label.length > 20 ? `${label.slice(0, 19)}…` : label);
  const named = (level, place) => drawn("text", { class: "level-label", ...place }, drawn("title", {}, level.label), short(level));
  if (!frame.beside) {
    const taken = [];
    return levels.map((level) => {
      taken.push(clearPlace(level, lines, { frame, width: 6.6 * short(level).length, taken }));
      const { x, y, anchor } = taken.at(-1);
      return named(level, { x, y, "text-anchor": anchor });
    });
  }
  const placed = levels.map((level) => ({ level, y: frame.y(level.estimate) + 4 })).sort((a, b) => a.y - b.y);
  placed.forEach((label, index) => {
    if (index > 0) label.y = Math.max(label.y, placed[index - 1].y + 14);
  });
  return placed.map(({ level, y }) => named(level, { x: frame.right + 8, y }));
}

// The position farthest from all lines, among those above and below either end of a level; none on another label if possible.
function clearPlace(level, lines, { frame, width, taken }) {
  const y = frame.y(level.estimate);
  const ends = [
    { x: frame.left + 4, anchor: "start", from: frame.left },
    { x: frame.right, anchor: "end", from: frame.right - width },
  ];
  const places = ends.flatMap((end) => [-5, 14].map((shift) => ({ ...end, y: y + shift })));
  const inside = places.filter((place) => place.y > frame.top + 7 && place.y < frame.bottom - 2);
  const meets = (place) => (other) => Math.abs(other.y - place.y) < 13 && other.from < place.from + width && place.from < other.from + other.width;
  const room = (place) => {
    if (taken.some(meets(place))) return -1;
    const heights = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => heightsAt(lines, frame, place.from + part * width));
    return Math.min(...heights.map((height) => Math.abs(height - (place.y - 4))));
  };
  const best = inside.reduce((one, other) => (room(other) > room(one) ? other : one));
  return { ...best, width };
}

// Vertical positions of the lines at a horizontal position.
function heightsAt(lines, frame, across) {
  return lines.flatMap((line) => {
    const after = line.x.findIndex((x) => frame.x(x) >= across);
    const [from, to] = after > 0 ? [after - 1, after] : [0, 0];
    if (after < 0 || line.y[from] === null || line.y[to] === null) return [];
    const part = from === to ? 0 : (across - frame.x(line.x[from])) / (frame.x(line.x[to]) - frame.x(line.x[from]));
    return [frame.y(line.y[from] + part * (line.y[to] - line.y[from]))];
  });
}

function stageStrip(stages, frame) {
  const top = frame.full - 20;
  const parts = [];
  stages.forEach((stage, index) => {
    const left = Math.max(frame.left, frame.x(stage.start));
    const width = Math.max(1, Math.min(frame.right, frame.x(stage.end)) - left - 2);
    const colour = SERIES_COLOURS[index % SERIES_COLOURS.length];
    const box = { x: left, y: top, width, height: 18, rx: 4, fill: `var(${colour})`, opacity: 0.18 };
    const title = `${stage.name}: ${formatNumber(stage.start)} to ${formatNumber(stage.end)}`;
    parts.push(drawn("rect", box, drawn("title", {}, title)));
    const room = Math.floor((width - 12) / 6.2);
    if (room >= 3) {
      const text = stage.name.length > room ? `${stage.name.slice(0, room - 1)}…` : stage.name;
      parts.push(drawn("text", { class: "stage-name", x: left + 6, y: top + 13 }, text));
    }
    if (index > 0) {
      parts.push(drawn("line", { class: "cursor", x1: left - 1, x2: left - 1, y1: frame.top, y2: top, "stroke-dasharray": "2 3" }));
    }
  });
  return parts;
}

function followCursor(svg, tip, { chart, frame, options }) {
  const cursor = drawn("line", { class: "cursor", y1: frame.top, y2: frame.bottom, visibility: "hidden" });
  const beads = chart.lines.map((line) => drawn("circle", { class: "bead", r: 3.5, fill: seriesColour(line.colour), visibility: "hidden" }));
  svg.append(cursor, ...beads);
  const hide = () => {
    tip.hidden = true;
    for (const mark of [cursor, ...beads]) mark.setAttribute("visibility", "hidden");
  };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const place = event.clientX - svg.getBoundingClientRect().left;
    const at = frame.first + ((place - frame.left) / (frame.right - frame.left)) * (frame.end - frame.first);
    const found = chart.lines.map((line) => nearest(line, at));
    const lead = found.find((index) => index !== null);
    if (lead === undefined) return;
    const x = chart.lines[found.indexOf(lead)].x[lead];
    cursor.setAttribute("x1", frame.x(x));
    cursor.setAttribute("x2", frame.x(x));
    cursor.setAttribute("visibility", "visible");
    tip.replaceChildren(element("div", { class: "muted" }, `${formatNumber(x)} ${options.clock}`));
    chart.lines.forEach((line, number) => {
      const index = found[number];
      if (index === null) return;
      placeBead(beads[number], { x: frame.x(line.x[index]), y: clampedY(line.y[index], frame) });
      tip.append(tipRow(line, index));
    });
    tip.hidden = false;
    const left = frame.x(x) + 14 + tip.offsetWidth > options.width ? frame.x(x) - tip.offsetWidth - 14 : frame.x(x) + 14;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${frame.top + 8}px`;
  });
}

function placeBead(bead, place) {
  bead.setAttribute("cx", place.x);
  bead.setAttribute("cy", place.y);
  bead.setAttribute("visibility", "visible");
}

function tipRow(line, index) {
  const spread = line.low[index] !== null && line.low[index] !== line.high[index] ? formatRange({ low: line.low[index], high: line.high[index] }) : "";
  const value = formatNumber(line.y[index]);
  return element("div", {}, swatch(seriesColour(line.colour)), element("b", {}, value), spread ? ` (${spread})` : "");
}

function nearest(line, at) {
  let best = null;
  line.x.forEach((x, index) => {
    if (line.y[index] === null) return;
    if (best === null || Math.abs(x - at) < Math.abs(line.x[best] - at)) best = index;
  });
  return best;
}
