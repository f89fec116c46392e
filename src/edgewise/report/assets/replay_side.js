// The plots beside a replay: time series, bar charts and a legend for the current frame.

function seriesPlot(series, frames) {
  const canvas = element("canvas", { role: "img", "aria-label": series.name });
  const value = element("span");
  const node = element("div", {}, element("h3", {}, series.name, value), canvas);
  const range = extent(series.values) || [0, 1];
  const draw = (frame, palette) => {
    const now = series.values[frame];
    value.textContent = `${formatNumber(now)}${series.unit ? ` ${series.unit}` : ""}`;
    const { context, width, height } = sized(canvas, 64);
    const x = scaleOf(0, Math.max(1, frames - 1), 3, width - 3);
    const y = scaleOf(range[0], range[1] === range[0] ? range[0] + 1 : range[1], height - 5, 5);
    const colour = colourOf(series.color ?? "accent", palette);
    context.strokeStyle = palette.tones.faint;
    context.globalAlpha = 0.6;
    strokeSeries(context, series.values, { x, y, end: frames });
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    strokeSeries(context, series.values, { x, y, end: frame + 1 });
    if (now === null || now === undefined) return;
    context.beginPath();
    context.arc(x(frame), y(now), 3, 0, 2 * Math.PI);
    context.fillStyle = colour;
    context.fill();
  };
  return { node, draw };
}

function strokeSeries(context, values, { x, y, end }) {
  context.lineWidth = 1.5;
  context.beginPath();
  let broken = true;
  for (let frame = 0; frame < end; frame += 1) {
    if (values[frame] === null) {
      broken = true;
      continue;
    }
    if (broken) context.moveTo(x(frame), y(values[frame]));
    else context.lineTo(x(frame), y(values[frame]));
    broken = false;
  }
  context.stroke();
}

function barsPlot(replay, name) {
  const canvas = element("canvas", { role: "img", "aria-label": name });
  const node = element("div", {}, element("h3", {}, replay.shown[0][name].title ?? name), canvas);
  const all = extent(replay.shown.flatMap((frame) => frame[name].value)) || [0, 1];
  const draw = (frame, palette) => {
    const layer = replay.shown[frame][name];
    const labels = layer.value.map((_, index) => itemOf(layer, "label", index, ""));
    const horizontal = labels.some((label) => label.length > 4) && labels.length <= 14;
    const { context, width, height } = sized(canvas, horizontal ? 18 * labels.length + 4 : 92);
    const range = { low: layer.low ?? Math.min(0, all[0]), high: layer.high ?? Math.max(0, all[1]) };
    const box = { width, height, labels, range, palette };
    if (horizontal) horizontalBars(context, layer, box);
    else verticalBars(context, layer, box);
  };
  return { node, draw };
}

function verticalBars(context, layer, { width, height, labels, range, palette }) {
  const foot = labels.some(Boolean) ? 16 : 4;
  const y = scaleOf(range.low, range.high || 1, height - foot, 4);
  const step = width / layer.value.length;
  layer.value.forEach((value, index) => {
    const [top, zero] = [y(value), y(Math.max(range.low, Math.min(0, range.high)))];
    context.globalAlpha = itemOf(layer, "opacity", index, 1);
    context.fillStyle = colourOf(itemOf(layer, "color", index, "accent"), palette);
    context.fillRect(index * step + 1, Math.min(top, zero), Math.max(1, step - 2), Math.max(1, Math.abs(zero - top)));
    caption(context, labels[index], { x: (index + 0.5) * step, y: height - 6, align: "center", palette });
  });
}

function horizontalBars(context, layer, { width, labels, range, palette }) {
  const room = Math.min(width * 0.45, 8 + Math.max(...labels.map((label) => 6.4 * label.length)));
  const x = scaleOf(range.low, range.high || 1, room, width - 2);
  layer.value.forEach((value, index) => {
    const [end, zero] = [x(value), x(Math.max(range.low, Math.min(0, range.high)))];
    context.globalAlpha = itemOf(layer, "opacity", index, 1);
    context.fillStyle = colourOf(itemOf(layer, "color", index, "accent"), palette);
    context.fillRect(Math.min(end, zero), 18 * index + 4, Math.max(1, Math.abs(end - zero)), 12);
    caption(context, labels[index], { x: room - 8, y: 18 * index + 10, align: "right", palette });
  });
}

function replayLegend(legend) {
  const entries = legend.map((entry) => ({ entry, canvas: element("canvas", { "aria-hidden": "true" }) }));
  for (const { canvas } of entries) canvas.style.width = "18px";
  const node = element("div", { class: "legend" }, entries.map(({ entry, canvas }) => element("span", {}, canvas, entry.label)));
  const draw = (frame, palette) => {
    for (const { entry, canvas } of entries) {
      const { context, width, height } = sized(canvas, 14);
      const color = entry.color ?? "ink";
      if (entry.shape === "line") {
        strokeLine(context, [1, height / 2], [width - 1, height / 2], { colour: colourOf(color, palette), width: 2.5 });
      } else {
        const layer = { shape: entry.shape ?? "circle", color };
        drawShape(layer, 0, { x: width / 2, y: height / 2, radius: 5 }, { context, palette });
      }
    }
  };
  return { node, draw };
}

function caption(context, text, { x, y, align, palette }) {
  context.globalAlpha = 1;
  context.fillStyle = palette.tones.muted;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillText(text, x, y);
}

// Clear a canvas and fit it to its element and the pixel ratio of the screen.
function sized(canvas, height) {
  const width = canvas.clientWidth || 240;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
