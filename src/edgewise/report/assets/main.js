// Build the page from its embedded data.

function requestedView(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (name) => Math.max(0, Number.parseInt(given.get(name) ?? "0", 10) || 0);
  return { replay: whole("replay"), frame: whole("frame"), given: given.has("frame") };
}

function build() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  const view = requestedView(location.hash);
  const player = data.replays.length ? replayPanel(data.replays, view) : null;
  const episode = player ? section("episode", "Episode", "Space plays, arrows step.", player.panel) : null;
  page.append(headerOf(data));
  const links = element("nav", { "aria-label": "sections" });
  const others = [tilesOf(data), notesOf(data)].filter((node) => node !== null);
  page.append(links);
  const show = (node) => {
    if (!node) return;
    page.append(node);
    links.append(element("a", { href: `#${node.id}` }, node.getAttribute("aria-label")));
  };
  show(episode);
  page.append(...others);
  for (const make of [learningSection, comparisonSection, usedSection, healthSection, configSection]) show(make(data));
  page.append(element("footer", {}, data.footer));
  for (const redraw of redraws) redraw();
  if (player) player.start();
  const asked = view.given ? episode : document.getElementById(location.hash.slice(1));
  if (asked) requestAnimationFrame(() => asked.scrollIntoView({ behavior: "instant" }));
  document.body.dataset.ready = "true";
}

build();
