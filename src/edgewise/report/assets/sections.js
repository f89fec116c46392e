// The sections of the page, each from its part of the data; empty sections are left out.

function headerOf(data) {
  const run = data.runs[0];
  const names = element(
    "div",
    { class: "names" },
    element("p", { class: "eyebrow" }, data.runs.length === 1 ? (run.recipe ?? "run") : `${data.runs.length} runs`),
    element("h1", {}, data.title),
    factLine(data),
  );
  return element("header", {}, names, themeButton());
}

function themeButton() {
  const toggle = element("button", { type: "button", "aria-label": "light or dark" }, "Light / dark");
  toggle.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    for (const redraw of redraws) redraw();
  });
  return toggle;
}

function factLine(data) {
  const run = data.runs[0];
  const fact = (name, value) => (value === null || value === undefined ? null : element("span", {}, `${name} `, element("b", {}, String(value))));
  const speed = run.frames && run.seconds ? `${formatNumber(run.frames / run.seconds)} frames/s` : null;
  if (data.runs.length > 1) {
    const seeds = data.runs.map((one) => one.seed).filter((seed) => seed !== null);
    return element("div", { class: "facts" }, fact("seeds", seeds.join(", ")), fact("recipes", new Set(data.runs.map((one) => one.label)).size));
  }
  return element(
    "div",
    { class: "facts" },
    run.status ? element("span", { class: "state" }, element("i", { class: `dot ${run.status.state}` }), element("b", {}, run.status.text)) : null,
    fact("frames", run.frames === null ? null : formatNumber(run.frames)),
    fact("time", formatDuration(run.seconds)),
    fact("speed", speed),
    fact("seed", run.seed),
    fact("device", run.device),
    run.resumes ? fact("resumed", run.resumes === 1 ? "once" : `${run.resumes} times`) : null,
  );
}

function tilesOf(data) {
  if (!data.headline.length) return null;
  const spread = (interval, each) => {
    const count = `${interval.n} ${each}${interval.n === 1 ? "" : "s"}`;
    return interval.low === null ? `${count}, no interval` : `95\u00a0% interval ${formatRange({ ...interval, n: null })} over ${count}`;
  };
  const tile = ({ label, interval, over }) =>
    element(
      "div",
      { class: "tile" },
      element("div", { class: "label" }, label),
      element("div", { class: "value" }, formatNumber(interval.estimate)),
      element("div", { class: "range" }, spread(interval, over)),
    );
  return element("div", { class: "tiles" }, data.headline.map(tile));
}

function section(id, title, lead, ...content) {
  const kept = content.flat().filter((node) => node !== null);
  if (!kept.length) return null;
  return element("section", { id, "aria-label": title }, element("h2", {}, title), element("p", { class: "lead" }, lead), kept);
}

function learningSection(data) {
  const [main, ...others] = data.evaluation;
  const options = { clock: data.clock, end: data.end, stages: data.stages };
  const content = data.evaluation.length + data.training.length ? [chartControls()] : [];
  if (main) content.push(element("div", { class: "panel" }, lineChart(main, { ...options, height: 320, tall: true })));
  const below = { ...options, stages: main ? [] : data.stages };
  content.push(...chartsWithin([...others, ...data.training], below, 24));
  const lead = main
    ? `${capital(main.name)} on the fixed evaluation instances, with its 95\u00a0% interval over ${data.over}; below, the metrics logged during training.`
    : "Metrics logged during training; bands are the range within each part of the run.";
  return section("learning", "Learning", lead, content);
}

function chartGrid(charts, options) {
  const panel = (chart) => element("div", { class: "panel" }, lineChart(chart, { ...options, height: 168 }));
  const grid = element("div", { class: "grid" }, charts.map(panel));
  return grid;
}

// The first charts in a grid, the others in a collapsed element below it.
function chartsWithin(charts, options, limit) {
  const moving = charts.filter((chart) => !isConstant(chart));
  const folded = moving.slice(limit);
  const more = element("details", { class: "more" }, element("summary", {}, `${folded.length} more charts`), chartGrid(folded, options));
  return [
    moving.length ? chartGrid(moving.slice(0, limit), options) : null,
    folded.length ? more : null,
    constants(charts.filter(isConstant)),
  ];
}

function isConstant({ lines }) {
  const range = extent(lines.flatMap((line) => [...line.low, ...line.high, ...line.y]));
  return range !== null && range[0] === range[1];
}

function constants(charts) {
  if (!charts.length) return null;
  const texts = charts.map((chart) => `${chart.family ? `${chart.family}/` : ""}${chart.name} ${formatNumber(chart.lines[0].y[0])}`);
  return element("p", { class: "constant" }, `Constant throughout: ${texts.join(", ")}`);
}

function comparisonSection(data) {
  const found = data.comparison;
  if (!found || !found.rows.length) return null;
  const plots = found.measures.slice(0, 3).map((name) => {
    const rows = found.rows.map((row, index) => ({ ...row, colour: index, interval: row.intervals[name] }));
    return element("div", { class: "panel" }, intervalPlot(rows, name));
  });
  const grid = element("div", { class: "grid" }, plots);
  const where = `${found.episodes} episodes on the same instances (seed ${found.seed}${found.settings ? `, ${found.settings}` : ""})`;
  const lead = `All policies played ${where}. Means with 95\u00a0% intervals; n is the number of samples.`;
  return section("comparison", "Against baselines", lead, grid, comparisonTable(found), againstTable(found, data.measure), sweepTable(data));
}

function comparisonTable(found) {
  const cell = (interval) =>
    interval
      ? element("td", {}, formatNumber(interval.estimate), " ", element("span", { class: "range" }, formatRange(interval)))
      : element("td", {}, "–");
  const who = (row) => {
    const trained = row.frames === null || row.frames === undefined ? "" : ` after ${formatNumber(row.frames)} frames`;
    return element("td", {}, element("b", {}, row.label), element("span", { class: "range" }, row.seeds > 1 ? ` ${row.seeds} seeds` : trained));
  };
  const body = found.rows.map((row) =>
    element("tr", { class: row.baseline ? null : "own" }, who(row), found.measures.map((name) => cell(row.intervals[name]))),
  );
  return tablePanel(["policy", ...found.measures], body);
}

function againstTable(found, measure) {
  if (!found.against.length) return null;
  const percent = (value) => `${Math.round(100 * value)} %`;
  const share = (interval) =>
    element("td", {}, percent(interval.estimate), " ", element("span", { class: "range" }, formatRange(interval, percent)));
  const body = found.against.map((row) =>
    element(
      "tr",
      {},
      element("td", {}, `against ${row.label}`),
      element("td", {}, formatNumber(row.difference.estimate), " ", element("span", { class: "range" }, formatRange(row.difference))),
      share(row.better),
      element("td", { class: "muted" }, row.over),
    ),
  );
  return tablePanel(["", `difference in ${measure.name}`, "better in (ties count half)", "compared over"], body);
}

function sweepTable(data) {
  if (!data.sweep.length) return null;
  const body = data.sweep.map((row) =>
    element(
      "tr",
      { class: row.baseline ? null : "own" },
      element("td", {}, row.label),
      element("td", {}, row.settings),
      element("td", {}, String(row.episodes)),
      element("td", {}, formatNumber(row.interval.estimate), " ", element("span", { class: "range" }, formatRange(row.interval))),
    ),
  );
  return tablePanel(["other instances", "settings", "episodes", data.measure.name], body);
}

function usedSection(data) {
  if (!data.used.length) {
    const text = `No ablation has been measured. ${data.ablate} lets the policy act without edges and without node features on the same instances, and adds the result here.`;
    return section("used", "What the policy uses", "A policy can be good without using what it observes.", element("p", { class: "muted" }, text));
  }
  const percent = (value) => `${(100 * value).toFixed(1)} %`;
  const body = data.used.map((row) =>
    element(
      "tr",
      {},
      element("td", {}, element("b", {}, row.without), data.runs.length > 1 ? ` (${row.run})` : ""),
      element("td", {}, row.settings),
      element("td", {}, row.measure),
      element("td", {}, formatNumber(row.mean)),
      element("td", {}, formatNumber(row.ablated)),
      element("td", {}, formatNumber(row.difference.estimate), " ", element("span", { class: "range" }, formatRange(row.difference))),
      element("td", {}, percent(row.changed)),
    ),
  );
  const lead = "The same weights without something, on the same instances. An interval that contains zero and few changed actions mean that the policy does not use it.";
  const names = ["without", "settings", "measure", "as it is", "without it", "as it is minus without it", "actions changed"];
  return section("used", "What the policy uses", lead, tablePanel(names, body));
}

function tablePanel(names, body) {
  const head = element("thead", {}, element("tr", {}, names.map((name) => element("th", { scope: "col" }, name))));
  return element("div", { class: "panel scroll" }, element("table", {}, head, element("tbody", {}, body)));
}

function healthSection(data) {
  const { runs, charts } = data.health;
  const check = (one) =>
    element("div", {}, element("span", { class: "state" }, element("i", { class: `dot ${one.state}` }), one.label), element("p", {}, one.text));
  const named = (run) =>
    runs.length > 1
      ? element("h3", {}, run.name, run.status ? element("span", { class: "state muted" }, " ", element("i", { class: `dot ${run.status.state}` }), run.status.text) : null)
      : null;
  const verdicts = (run) =>
    run.checks.length || runs.length > 1 ? element("div", { class: "panel" }, named(run), element("div", { class: "checks" }, run.checks.map(check))) : null;
  const lead = runs.length > 1 ? "Checks of the numbers of every run, and its log of events." : "Checks of the numbers behind the curves, and the log of events.";
  const events = runs.map((run) => eventList(run.events, runs.length > 1 ? run.name : null));
  return section("health", "Health", lead, runs.map(verdicts), chartsWithin(charts, { clock: data.clock, end: data.end }, 12), events);
}

function eventList(events, name) {
  if (!events.length) return null;
  const row = (event) =>
    element(
      "tr",
      {},
      element("td", { class: "muted" }, event.time ?? ""),
      element("td", {}, event.frames === null || event.frames === undefined ? "" : formatNumber(event.frames)),
      element("td", {}, event.kind),
      element("td", { class: "muted" }, event.text),
    );
  const table = element("table", {}, element("tbody", {}, events.map(row)));
  const body = element("div", { class: "body scroll" }, table);
  return element("div", { class: "panel" }, element("details", {}, element("summary", {}, `Events${name ? ` of ${name}` : ""} (${events.length})`), body));
}

function configSection(data) {
  const several = data.configs.length > 1;
  const panels = data.configs.flatMap((run) => {
    const content = configParts(run);
    if (!content.length) return [];
    return [element("div", { class: "panel" }, several ? element("details", {}, element("summary", {}, run.name), element("div", { class: "body" }, content)) : content)];
  });
  const lead = several ? "What differs between the runs, and the resolved configuration of each." : "The resolved configuration from recipe, file and flags.";
  return section("config", "Configuration", lead, several ? differingTable(data) : null, panels);
}

function differingTable(data) {
  if (!data.differing.length) return null;
  const body = data.differing.map(({ setting, values }) => element("tr", {}, element("td", {}, setting), values.map((value) => element("td", {}, JSON.stringify(value)))));
  return tablePanel(["setting", ...data.configs.map((run) => run.name)], body);
}

function configParts(run) {
  const parts = Object.entries(run.config);
  const plain = parts.filter(([, value]) => !isTree(value));
  const trees = parts.filter(([, value]) => isTree(value));
  const branch = (name, value) => element("details", {}, element("summary", {}, name), element("div", { class: "body mono" }, treeOf(value)));
  const content = [
    plain.length ? element("div", { class: "mono" }, treeOf(Object.fromEntries(plain))) : null,
    ...trees.map(([name, value]) => branch(name, value)),
    Object.keys(run.versions).length ? branch("versions", run.versions) : null,
  ].filter((node) => node !== null);
  return content;
}

function isTree(value) {
  return value !== null && typeof value === "object" && Object.keys(value).length > 0;
}

function treeOf(value) {
  const textOf = (item) => (typeof item === "string" ? item : JSON.stringify(item));
  const flat = (item) => !isTree(item) || (Array.isArray(item) && item.every((part) => !isTree(part)));
  const rows = Object.entries(value).flatMap(([name, item]) => [
    element("dt", {}, name),
    element("dd", {}, flat(item) ? textOf(item) : treeOf(item)),
  ]);
  return element("dl", { class: "tree" }, rows);
}

function notesOf(data) {
  if (!data.notes.length) return null;
  const list = element("ul", {}, data.notes.map((note) => element("li", {}, note)));
  return element("div", { class: "notes" }, "Not shown on this page:", list);
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
