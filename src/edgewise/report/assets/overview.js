// A page of blocks, each drawn by its type: the pages of sweeps, grids and lists of runs.

const BLOCKS = {
  charts: (block) => gridOf(block.charts.map((chart) => lineChart(chart, { clock: block.clock, end: null, height: block.charts.length === 1 ? 280 : 200 }))),
  scatters: (block) => gridOf(block.plots.map(scatterPlot)),
  intervals: (block) => gridOf(block.plots.map((plot) => intervalPlot(plot.rows, plot.name))),
  table: sortableTable,
  pictures: (block) => gridOf(block.pictures.map(drawing)),
};

function drawing({ name, source }) {
  return element("figure", {}, element("figcaption", {}, name), element("img", { src: source, alt: name }));
}

function gridOf(nodes) {
  if (!nodes.length) return null;
  const panels = nodes.map((node) => element("div", { class: "panel" }, node));
  return nodes.length === 1 ? panels[0] : element("div", { class: "grid" }, panels);
}

function buildOverview() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  const fact = ([name, value]) => element("span", {}, `${name} `, element("b", {}, String(value)));
  const names = element("div", { class: "names" }, element("p", { class: "eyebrow" }, data.eyebrow), element("h1", {}, data.title));
  names.append(element("div", { class: "facts" }, data.facts.map(fact)));
  page.append(element("header", {}, names, themeButton()));
  const links = element("nav", { "aria-label": "sections" });
  page.append(links);
  if (data.tiles.length) page.append(element("div", { class: "tiles" }, data.tiles.map(plainTile)));
  if (data.notes.length) page.append(element("div", { class: "notes" }, element("ul", {}, data.notes.map((note) => element("li", {}, note)))));
  for (const { id, title, lead, blocks } of data.sections) {
    const node = section(id, title, lead, blocks.map((block) => BLOCKS[block.type](block)));
    if (!node) continue;
    page.append(node);
    links.append(element("a", { href: `#${id}` }, title));
  }
  page.append(element("footer", {}, data.footer));
  for (const redraw of redraws) redraw();
  document.body.dataset.ready = "true";
}

function plainTile({ label, value, range }) {
  const shown = typeof value === "number" ? formatNumber(value) : value;
  return element("div", { class: "tile" }, element("div", { class: "label" }, label), element("div", { class: "value" }, shown), element("div", { class: "range" }, range ?? ""));
}

buildOverview();
