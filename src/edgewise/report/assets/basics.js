// Elements, numbers and scales. Text is inserted as text nodes only, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const SERIES_COLOURS = ["--accent", "--orange", "--teal", "--purple", "--pink", "--good"];

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function swatch(colour) {
  const key = element("i", { class: "key" });
  key.style.background = colour;
  return key;
}

// The value of a colour variable in the current theme, as "rgb(…)".
function toneOf(name) {
  const probe = document.body.appendChild(element("i"));
  probe.style.color = `var(${name})`;
  const tone = getComputedStyle(probe).color;
  probe.remove();
  return tone;
}

function seriesColour(index) {
  return `var(${SERIES_COLOURS[index % SERIES_COLOURS.length]})`;
}

function formatNumber(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  let text;
  if (size === 0) text = "0";
  else if (size >= 1e9 || size < 1e-4) text = value.toExponential(1).replace("e+", "e");
  else if (size >= 1e6) text = `${trimmed(value / 1e6, 3)} M`;
  else if (size >= 1e4) text = `${trimmed(value / 1e3, 3)} k`;
  else text = trimmed(value, 3);
  return text.replaceAll("-", "−");
}

function trimmed(value, digits) {
  const fixed = Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(digits);
  return fixed.includes(".") ? fixed.replace(/\.?0+$/, "") : fixed;
}

// The bounds of an interval and the number of samples it is from; without bounds where these cannot tell any.
function formatRange({ low, high, n }, format = formatNumber) {
  const known = low !== null && low !== undefined && high !== null && high !== undefined;
  const parts = [known ? `${format(low)} to ${format(high)}` : null, n ? `n=${n}` : null];
  return parts.filter((part) => part !== null).join(", ");
}

function formatDuration(seconds) {
  if (seconds === null || seconds === undefined) return null;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

// About `count` round numbers in [low, high].
function ticksOf(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((multiple) => multiple * power >= rough) * power;
  const ticks = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) {
    ticks.push(Number((index * step).toPrecision(12)));
  }
  return ticks;
}

function scaleOf(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

// Draw functions that depend on a width; called when it or the theme changes, and once when the page is built.
const redraws = new Set();

function whenResized(node, draw) {
  let width = 0;
  const redraw = () => {
    width = node.clientWidth;
    if (width > 0) draw(width);
  };
  redraws.add(redraw);
  const observer = new ResizeObserver(() => {
    if (node.clientWidth !== width) requestAnimationFrame(redraw);
  });
  observer.observe(node);
  return () => {
    observer.disconnect();
    redraws.delete(redraw);
  };
}
