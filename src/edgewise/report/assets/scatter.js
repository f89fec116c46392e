// Points over one setting: a number on a plain or logarithmic axis, or one of several choices.

const POINT_COLOURS = { complete: "var(--accent)", pruned: "var(--faint)", best: "var(--orange)" };

function scatterPlot(plot) {
  const holder = element("div", { class: "plot" });
  const node = element("div", { class: "chart" }, element("div", { class: "top" }, element("h3", { title: plot.name }, plot.name)), holder);
  whenResized(holder, (width) => holder.replaceChildren(drawScatter(plot, width)));
  return node;
}

function drawScatter(plot, width) {
  const height = 190;
  const place = { left: 46, right: width - 14, top: 8, bottom: height - 24 };
  const axis = horizontalAxis(plot, place);
  let [low, high] = extent(plot.points.map((point) => point.y)) || [0, 1];
  const pad = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  [low, high] = [low - pad, high + pad];
  const y = scaleOf(low, high, place.bottom, place.top);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${plot.measure} over ${plot.name}` });
  for (const tick of ticksOf(low, high, 4)) {
    svg.append(drawn("line", { class: "rule", x1: place.left, x2: place.right, y1: y(tick), y2: y(tick) }));
    svg.append(drawn("text", { x: place.left - 6, y: y(tick) + 4, "text-anchor": "end" }, formatNumber(tick)));
  }
  for (const [position, text] of axis.ticks) svg.append(drawn("text", { x: position, y: height - 6, "text-anchor": "middle" }, text));
  for (const point of plot.points) {
    const title = `${point.label}: ${plot.name} ${point.x}, ${plot.measure} ${formatNumber(point.y)}`;
    const mark = { cx: axis.x(point.x), cy: y(point.y), r: point.state === "best" ? 6 : 4, fill: POINT_COLOURS[point.state], opacity: 0.85 };
    svg.append(drawn("circle", mark, drawn("title", {}, title)));
  }
  return svg;
}

function horizontalAxis(plot, place) {
  if (plot.choices) {
    const room = (place.right - place.left) / plot.choices.length;
    const middle = (choice) => place.left + room * (plot.choices.indexOf(choice) + 0.5);
    return { x: middle, ticks: plot.choices.map((choice) => [middle(choice), choice]) };
  }
  const bend = plot.log ? Math.log10 : (value) => value;
  const scale = scaleOf(bend(plot.low), bend(plot.high), place.left + 6, place.right - 6);
  const ticks = plot.log ? [plot.low, Math.sqrt(plot.low * plot.high), plot.high] : ticksOf(plot.low, plot.high, 4);
  return { x: (value) => scale(bend(value)), ticks: ticks.map((tick) => [scale(bend(tick)), formatNumber(tick)]) };
}
