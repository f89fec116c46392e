// Draw one frame of a replay on a canvas.

const PADDING = { given: 8, found: 34 };

// Transform from world to pixels with equal scales, centred.
function viewOf(replay, width, height) {
  const [left, bottom, right, top] = replay.area;
  const pad = 2 * (replay.bounds ? PADDING.given : PADDING.found);
  const scale = Math.min((width - pad) / (right - left), (height - pad) / (top - bottom));
  const x0 = width / 2 - (scale * (left + right)) / 2;
  const y0 = height / 2 + (scale * (bottom + top)) / 2;
  return { scale, x: (x) => x0 + scale * x, y: (y) => y0 - scale * y };
}

function drawScene(context, replay, { index, part, view, palette }) {
  const layers = Object.fromEntries(replay.names.map((name) => [name, layerBetween(replay, name, index, part)]));
  const pen = { context, view, palette, layers, replay, index };
  const labels = [];
  for (const name of replay.names) {
    const layer = layers[name];
    if (layer.kind === "grid") drawGrid(layer, pen);
    if (layer.kind === "polygons") drawPolygons(layer, pen, labels);
    if (layer.kind === "arrows") drawArrows(layer, pen);
    if (layer.kind === "edges") drawEdges(layer, pen, labels);
    if (layer.kind === "nodes") drawNodes(layer, pen, labels);
  }
  for (const label of labels) drawLabel(label, pen);
  context.globalAlpha = 1;
}

// Images of grids, cached until the layer or the theme changes.
const gridImages = new WeakMap();

function gridImage(layer, palette) {
  const kept = gridImages.get(layer);
  if (kept && kept.palette === palette) return kept.cells;
  const rows = Math.ceil(layer.value.length / layer.columns);
  const image = new ImageData(layer.columns, rows);
  layer.value.forEach((value, index) => image.data.set([...rampAt(value, palette), 255], 4 * index));
  const cells = new OffscreenCanvas(layer.columns, rows);
  cells.getContext("2d").putImageData(image, 0, 0);
  gridImages.set(layer, { palette, cells });
  return cells;
}

function drawGrid(layer, { context, view, palette }) {
  const [left, bottom, right, top] = layer.bounds;
  context.globalAlpha = layer.opacity ?? 1;
  context.imageSmoothingEnabled = layer.smooth !== false;
  context.drawImage(gridImage(layer, palette), view.x(left), view.y(top), view.scale * (right - left), view.scale * (top - bottom));
}

function drawPolygons(layer, { context, view, palette }, labels) {
  layer.points.forEach((points, index) => {
    const closed = layer.closed !== false;
    context.globalAlpha = itemOf(layer, "opacity", index, 1);
    context.beginPath();
    points.forEach(([x, y]) => context.lineTo(view.x(x), view.y(y)));
    if (closed) {
      context.closePath();
      context.fillStyle = colourOf(itemOf(layer, "color", index, "faint"), palette);
      context.fill();
    }
    const outline = itemOf(layer, "outline", index, closed ? undefined : itemOf(layer, "color", index, "muted"));
    if (outline !== undefined) {
      context.strokeStyle = colourOf(outline, palette);
      context.lineWidth = itemOf(layer, "width", index, 1.25);
      context.stroke();
    }
    const text = itemOf(layer, "label", index, "");
    const mean = (axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length;
    if (text) labels.push({ text, x: view.x(mean(0)), y: view.y(mean(1)), place: "center" });
  });
}

function drawArrows(layer, { context, view, palette }) {
  const scale = layer.scale ?? 1;
  layer.x.forEach((x, index) => {
    context.globalAlpha = itemOf(layer, "opacity", index, 0.8);
    const from = [view.x(x), view.y(layer.y[index])];
    const to = [view.x(x + scale * itemOf(layer, "dx", index)), view.y(layer.y[index] + scale * itemOf(layer, "dy", index))];
    const colour = colourOf(itemOf(layer, "color", index, "muted"), palette);
    strokeLine(context, from, to, { colour, width: itemOf(layer, "width", index, 1.25) });
    arrowHead(context, from, to, { colour, size: Math.min(7, 3 + Math.hypot(to[0] - from[0], to[1] - from[1]) / 5) });
  });
}

function strokeLine(context, from, to, { colour, width, bend }) {
  context.beginPath();
  context.moveTo(...from);
  if (bend) context.quadraticCurveTo(...bend, ...to);
  else context.lineTo(...to);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
}

function arrowHead(context, from, to, { colour, size }) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  if (Math.hypot(to[0] - from[0], to[1] - from[1]) < 1) return;
  context.beginPath();
  context.moveTo(...to);
  for (const side of [-1, 1]) {
    context.lineTo(to[0] - size * Math.cos(angle + side * 0.45), to[1] - size * Math.sin(angle + side * 0.45));
  }
  context.fillStyle = colour;
  context.fill();
}

function drawEdges(layer, pen, labels) {
  const { context, view, palette, layers } = pen;
  const ends = Array.isArray(layer.between) ? layer.between : [layer.between, layer.between];
  const [sources, targets] = ends.map((name) => layers[name]);
  layer.source.forEach((source, index) => {
    const target = layer.target[index];
    const width = itemOf(layer, "width", index, 1.25);
    const opacity = itemOf(layer, "opacity", index, 1);
    if (width === 0 || opacity === 0) return;
    const from = [view.x(sources.x[source]), view.y(sources.y[source])];
    const to = [view.x(targets.x[target]), view.y(targets.y[target])];
    const away = [to[0] - from[0], to[1] - from[1]];
    const length = Math.hypot(...away) || 1;
    const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
    const curve = layer.curve ?? 0;
    const bend = curve ? [middle[0] + curve * away[1], middle[1] - curve * away[0]] : undefined;
    const colour = colourOf(itemOf(layer, "color", index, "faint"), palette);
    context.globalAlpha = opacity;
    if (layer.directed) {
      const towards = bend || from;
      const gap = radiusOf(targets, target, view) + 1.5;
      const reach = Math.hypot(to[0] - towards[0], to[1] - towards[1]) || 1;
      const tip = [to[0] - (gap * (to[0] - towards[0])) / reach, to[1] - (gap * (to[1] - towards[1])) / reach];
      strokeLine(context, from, tip, { colour, width, bend });
      if (length > gap) arrowHead(context, towards, tip, { colour, size: 6 + 1.5 * width });
    } else {
      strokeLine(context, from, to, { colour, width, bend });
    }
    const text = itemOf(layer, "label", index, "");
    const at = bend ? [(middle[0] + bend[0]) / 2, (middle[1] + bend[1]) / 2] : middle;
    if (text) labels.push({ text, x: at[0], y: at[1], place: "center" });
  });
}

function radiusOf(layer, index, view) {
  const size = itemOf(layer, "size", index, layer.unit === "world" ? NODE_SIZE.world : NODE_SIZE.pixel);
  return layer.unit === "world" ? size * view.scale : size;
}

function drawNodes(layer, pen, labels) {
  const { context, view, palette } = pen;
  if (layer.trail) drawTrails(layer, pen);
  layer.x.forEach((x, index) => {
    const place = { x: view.x(x), y: view.y(layer.y[index]), radius: radiusOf(layer, index, view) };
    const opacity = itemOf(layer, "opacity", index, 1);
    if (opacity === 0) return;
    drawRing(layer, index, place, pen);
    context.globalAlpha = opacity;
    drawShape(layer, index, place, pen);
    drawBar(layer, index, place, pen);
    const text = itemOf(layer, "label", index, "");
    if (!text) return;
    const fill = itemOf(layer, "shape", index, "circle") === "none" ? null : colourOf(itemOf(layer, "color", index, "ink"), palette);
    labels.push({ text, x: place.x, y: place.y, radius: place.radius, place: layer.label_place ?? "below", fill });
  });
}

function drawTrails(layer, { context, view, palette, replay, index }) {
  const start = Math.max(0, index - layer.trail);
  layer.x.forEach((_, item) => {
    context.strokeStyle = colourOf(itemOf(layer, "color", item, "ink"), palette);
    context.lineWidth = 1.75;
    context.lineCap = "round";
    for (let frame = start; frame <= index; frame += 1) {
      const from = replay.shown[frame][layer.name];
      const to = frame === index ? layer : replay.shown[frame + 1][layer.name];
      if (item >= from.x.length || item >= to.x.length) continue;
      context.globalAlpha = (0.55 * (frame - start + 1)) / (index - start + 1);
      context.beginPath();
      context.moveTo(view.x(from.x[item]), view.y(from.y[item]));
      context.lineTo(view.x(to.x[item]), view.y(to.y[item]));
      context.stroke();
    }
  });
}

function drawRing(layer, index, place, { context, view, palette }) {
  const ring = itemOf(layer, "ring", index, 0);
  if (!ring) return;
  const tone = colourOf(itemOf(layer, "ring_color", index, itemOf(layer, "color", index, "muted")), palette);
  context.beginPath();
  context.arc(place.x, place.y, ring * view.scale, 0, 2 * Math.PI);
  context.globalAlpha = 0.07;
  context.fillStyle = tone;
  context.fill();
  context.globalAlpha = 0.35;
  context.strokeStyle = tone;
  context.lineWidth = 1;
  context.stroke();
}

function drawShape(layer, index, { x, y, radius }, { context, palette }) {
  const shape = itemOf(layer, "shape", index, "circle");
  if (shape === "none") return;
  const heading = itemOf(layer, "heading", index, undefined);
  const colour = colourOf(itemOf(layer, "color", index, "ink"), palette);
  const outline = itemOf(layer, "outline", index, undefined);
  context.save();
  context.translate(x, y);
  if (heading !== undefined) context.rotate(-heading);
  context.beginPath();
  SHAPE_PATHS[shape](context, radius);
  context.fillStyle = colour;
  context.strokeStyle = outline === undefined ? colour : colourOf(outline, palette);
  context.lineWidth = outline === undefined ? 2.25 : Math.max(1.5, Math.min(2.5, radius / 6));
  if (shape !== "cross") context.fill();
  if (shape === "cross" || outline !== undefined) context.stroke();
  if (shape === "circle" && heading !== undefined) {
    context.beginPath();
    context.moveTo(radius * 0.25, 0);
    context.lineTo(radius * 1.7, 0);
    context.stroke();
  }
  context.restore();
}

const regular = (corners, turn) => (context, radius) => {
  for (let corner = 0; corner < corners; corner += 1) {
    const angle = turn + (2 * Math.PI * corner) / corners;
    context.lineTo(radius * Math.cos(angle), radius * Math.sin(angle));
  }
  context.closePath();
};

const SHAPE_PATHS = {
  circle: (context, radius) => context.arc(0, 0, radius, 0, 2 * Math.PI),
  square: (context, radius) => context.rect(-0.88 * radius, -0.88 * radius, 1.76 * radius, 1.76 * radius),
  diamond: regular(4, 0),
  triangle: regular(3, 0),
  hexagon: regular(6, Math.PI / 2),
  cross: (context, radius) => {
    for (const side of [-1, 1]) {
      context.moveTo(-0.75 * radius, -0.75 * side * radius);
      context.lineTo(0.75 * radius, 0.75 * side * radius);
    }
  },
  bullet: (context, radius) => {
    context.moveTo(1.5 * radius, 0);
    context.quadraticCurveTo(0.6 * radius, -0.75 * radius, -radius, -0.6 * radius);
    context.lineTo(-radius, 0.6 * radius);
    context.quadraticCurveTo(0.6 * radius, 0.75 * radius, 1.5 * radius, 0);
    context.closePath();
  },
};

function drawBar(layer, index, { x, y, radius }, { context, palette }) {
  const value = itemOf(layer, "bar", index, undefined);
  if (value === undefined) return;
  const share = Math.min(1, Math.max(0, value / (layer.bar_max || 1)));
  const [left, bottom, width, height] = [x + radius + 4, y + 14, 7, 28];
  context.fillStyle = palette.panel;
  context.strokeStyle = palette.tones.faint;
  context.lineWidth = 1;
  context.fillRect(left, bottom - height, width, height);
  context.fillStyle = share >= 1 ? palette.tones.bad : palette.tones.accent;
  context.fillRect(left, bottom - height * share, width, height * share);
  context.strokeRect(left + 0.5, bottom - height + 0.5, width - 1, height - 1);
}

const OFFSETS = { center: [0, 0], above: [0, -1], below: [0, 1], left: [-1, 0], right: [1, 0] };
const ALIGN = { center: "center", above: "center", below: "center", left: "right", right: "left" };

function drawLabel({ text, x, y, radius = 0, place, fill }, { context, palette }) {
  const [across, down] = OFFSETS[place];
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = ALIGN[place];
  context.textBaseline = "middle";
  context.globalAlpha = 1;
  const spot = [x + across * (radius + 5), y + down * (radius + 9)];
  const inside = place === "center" && fill && context.measureText(text).width < 2 * radius;
  if (!inside) {
    context.strokeStyle = palette.wash;
    context.lineWidth = 3.5;
    context.lineJoin = "round";
    context.strokeText(text, ...spot);
  }
  context.fillStyle = inside ? contrastTo(fill) : palette.tones.ink;
  context.fillText(text, ...spot);
}
