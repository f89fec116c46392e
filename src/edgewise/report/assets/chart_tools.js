// What readers change in charts, logarithmic axes and smoothing, and files of a chart: SVG and CSV.

const SMOOTHING = [["none", 0], ["some", 0.6], ["more", 0.9], ["most", 0.97]];
const chartView = { log: false, smoothing: 0 };
const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-family", "font-size", "font-weight", "text-anchor"];

function chartControls() {
  const redraw = () => {
    for (const each of redraws) each();
  };
  const log = element("input", { type: "checkbox", id: "log-scale" });
  log.addEventListener("change", () => {
    chartView.log = log.checked;
    redraw();
  });
  const smooth = element("select", { id: "smoothing" }, SMOOTHING.map(([name, value]) => element("option", { value }, name)));
  smooth.addEventListener("change", () => {
    chartView.smoothing = Number(smooth.value);
    redraw();
  });
  return element("div", { class: "controls" }, element("label", {}, log, " log scale"), element("label", {}, "smoothing ", smooth));
}

// A chart as it is drawn now; its data stay as they are.
function viewed(chart) {
  if (!chartView.smoothing) return chart;
  const smooth = (line) => (line ? { ...line, y: smoothed(line.y, chartView.smoothing) } : line);
  return { ...chart, lines: chart.lines.map(smooth), behind: smooth(chart.behind) };
}

// The exponential moving average, without the bias of its start; gaps stay gaps.
function smoothed(values, keep) {
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    return sum / weight;
  });
}

// Whether a chart has a logarithmic axis: all that it shows must be above zero.
function isLogarithmic(values) {
  return chartView.log && values.length > 0 && values.every((value) => value === null || value > 0);
}

function logScaleOf(low, high, from, to) {
  const inner = scaleOf(Math.log10(low), Math.log10(high), from, to);
  return (value) => inner(Math.log10(Math.max(value, low / 10)));
}

function logTicksOf(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of high / low < 100 ? [1, 2, 5] : [1]) ticks.push(Number((step * 10 ** power).toPrecision(12)));
  }
  const inside = ticks.filter((tick) => tick >= low && tick <= high);
  return inside.length > 1 ? inside : ticksOf(low, high, 4);
}

// The links of a chart that save it; the picture is the one that is shown.
function saveLinks(chart, holder, options) {
  const link = (text, make, kind) => {
    const button = element("button", { type: "button", class: "save", title: `save ${chart.name} as ${text}` }, text);
    button.addEventListener("click", () => save(make(), `${chart.name.replace(/[^\w.-]+/g, "_")}.${text.toLowerCase()}`, kind));
    return button;
  };
  return element(
    "span",
    { class: "saves" },
    link("SVG", () => standalone(holder.querySelector("svg")), "image/svg+xml"),
    link("CSV", () => csvOf(chart, options.clock), "text/csv"),
  );
}

function save(text, name, kind) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// An SVG that needs no style sheet.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  from.forEach((node, index) => {
    const style = getComputedStyle(node);
    for (const name of STYLED) to[index].setAttribute(name, style.getPropertyValue(name));
    to[index].removeAttribute("class");
  });
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", svg.clientWidth);
  return new XMLSerializer().serializeToString(copy);
}

function csvOf(chart, clock) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const names = chart.lines.flatMap((line) => {
    const name = line.label || chart.name;
    return [name, `${name} low`, `${name} high`];
  });
  const places = [...new Set(chart.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const rows = places.map((x) => {
    const cells = chart.lines.flatMap((line) => {
      const index = line.x.indexOf(x);
      return index < 0 ? ["", "", ""] : [line.y[index], line.low[index], line.high[index]].map((value) => value ?? "");
    });
    return [x, ...cells].join(",");
  });
  return `${[clock, ...names].map(quoted).join(",")}\n${rows.join("\n")}\n`;
}
