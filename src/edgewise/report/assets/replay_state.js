// Expand the frames of a replay: every layer in every frame; unchanged layers are shared.

// Radius of a node that names none, in each unit.
const NODE_SIZE = { world: 0.1, pixel: 6 };

function expandReplay(replay) {
  let shown = Object.fromEntries(replay.layers.map((layer) => [layer.name, layer]));
  const frames = replay.frames.map((frame) => {
    shown = { ...shown };
    for (const [name, fields] of Object.entries(frame)) shown[name] = changedLayer(shown[name], fields);
    return shown;
  });
  return { ...replay, shown: frames, names: replay.layers.map((layer) => layer.name), area: areaOf(replay, frames) };
}

function changedLayer(layer, fields) {
  const after = { ...layer };
  for (const [name, value] of Object.entries(fields)) {
    if (Array.isArray(value) || typeof value !== "object") {
      after[name] = value;
    } else {
      after[name] = [...after[name]];
      for (const [index, item] of Object.entries(value)) after[name][Number(index)] = item;
    }
  }
  return after;
}

// A field of one item: a list has one value per item, anything else applies to all.
function itemOf(layer, field, index, otherwise) {
  const value = layer[field];
  if (value === undefined) return otherwise;
  return Array.isArray(value) ? value[index] : value;
}

function areaOf(replay, frames) {
  if (replay.bounds) return replay.bounds;
  const xs = [];
  const ys = [];
  for (const frame of frames) {
    for (const layer of Object.values(frame)) {
      if (layer.kind === "nodes" || layer.kind === "arrows") {
        xs.push(reachOf(layer, layer.x));
        ys.push(reachOf(layer, layer.y));
      } else if (layer.kind === "polygons") {
        for (const points of layer.points) {
          xs.push(extent(points.map((point) => point[0])));
          ys.push(extent(points.map((point) => point[1])));
        }
      } else if (layer.kind === "grid") {
        xs.push([layer.bounds[0], layer.bounds[2]]);
        ys.push([layer.bounds[1], layer.bounds[3]]);
      }
    }
  }
  const [left, right] = widened(extent(xs.flat()) || [0, 1]);
  const [bottom, top] = widened(extent(ys.flat()) || [0, 1]);
  return [left, bottom, right, top];
}

// The extent of items with their sizes, where those are in world units; sizes in pixels fit into the padding.
function reachOf(layer, places) {
  if (layer.kind !== "nodes" || layer.unit !== "world") return extent(places);
  const sizes = places.map((_, index) => itemOf(layer, "size", index, NODE_SIZE.world));
  return extent(places.flatMap((place, index) => [place - sizes[index], place + sizes[index]]));
}

function widened([low, high]) {
  const pad = (high - low) * 0.04 || 1;
  return [low - pad, high + pad];
}

// The layer between frame `index` and the next, with interpolated positions and headings.
function layerBetween(replay, name, index, part) {
  const now = replay.shown[index][name];
  const next = replay.shown[Math.min(index + 1, replay.shown.length - 1)][name];
  const moves = part > 0 && replay.smooth !== false && (now.kind === "nodes" || now.kind === "arrows");
  if (!moves || next === now || next.x.length !== now.x.length) return now;
  const between = { ...now };
  for (const field of ["x", "y", "dx", "dy"]) {
    if (Array.isArray(now[field])) between[field] = now[field].map((from, item) => from + part * (next[field][item] - from));
  }
  if (Array.isArray(now.heading) && Array.isArray(next.heading)) {
    between.heading = now.heading.map((from, item) => from + part * shortestTurn(from, next.heading[item]));
  }
  return between;
}

function shortestTurn(from, to) {
  const turn = (to - from) % (2 * Math.PI);
  if (turn > Math.PI) return turn - 2 * Math.PI;
  return turn < -Math.PI ? turn + 2 * Math.PI : turn;
}
