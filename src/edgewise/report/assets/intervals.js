// Estimates with their intervals, one row each on a common scale.

function intervalPlot(rows, name) {
  const holder = element("div", { class: "plot" });
  const node = element("div", { class: "chart" }, element("div", { class: "top" }, element("h3", {}, name)), holder);
  whenResized(holder, (width) => holder.replaceChildren(drawIntervals(rows, name, width)));
  return node;
}

function drawIntervals(rows, name, width) {
  const known = rows.filter((row) => row.interval);
  const room = Math.min(190, width * 0.36);
  const height = 30 * known.length + 26;
  const ends = known.flatMap(({ interval }) => [interval.low, interval.high, interval.estimate]);
  let [low, high] = extent(ends) || [0, 1];
  const pad = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  [low, high] = [low - pad, high + pad];
  const x = scaleOf(low, high, room, width - 14);
  const label = `${name}: ${known.map((row) => row.label).join(", ")}`;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  for (const tick of ticksOf(low, high, Math.max(2, Math.round((width - room) / 60)))) {
    svg.append(drawn("line", { class: "rule", x1: x(tick), x2: x(tick), y1: 0, y2: height - 22 }));
    svg.append(drawn("text", { x: x(tick), y: height - 6, "text-anchor": "middle" }, formatNumber(tick)));
  }
  known.forEach((row, index) => svg.append(...intervalRow(row, { x, y: 15 + 30 * index, room })));
  return svg;
}

function intervalRow(row, { x, y, room }) {
  const colour = row.baseline ? "var(--muted)" : seriesColour(row.colour || 0);
  const { estimate, low, high } = row.interval;
  const letters = Math.floor((room - 14) / 6.6);
  const text = row.label.length > letters ? `${row.label.slice(0, letters - 1)}…` : row.label;
  const words = { class: "level-label", x: room - 12, y: y + 4, "text-anchor": "end" };
  const parts = [drawn("text", words, drawn("title", {}, row.label), text)];
  if (low !== null && high !== null) {
    parts.push(drawn("line", { class: "whisker", x1: x(low), x2: x(high), y1: y, y2: y, stroke: colour, opacity: 0.55 }));
  }
  const title = `${row.label}: ${formatNumber(estimate)} ${formatRange(row.interval)}`;
  parts.push(drawn("circle", { cx: x(estimate), cy: y, r: 5, fill: colour }, drawn("title", {}, title)));
  return parts;
}
