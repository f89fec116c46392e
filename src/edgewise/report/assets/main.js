// Puts the page together once its story is read.

function askedFor(hash) {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (name) => Math.max(0, Number.parseInt(asked.get(name) ?? "0", 10) || 0);
  return { replay: whole("replay"), frame: whole("frame"), given: asked.has("frame") };
}

function build() {
  const story = JSON.parse(document.getElementById("story").textContent);
  const page = document.getElementById("page");
  const asked = askedFor(location.hash);
  const player = story.replays.length ? replayPanel(story.replays, asked) : null;
  const episode = player ? section("episode", "Episode", "Space plays, arrows step.", player.panel) : null;
  page.append(headerOf(story));
  const links = element("nav", { "aria-label": "sections" });
  const others = [tilesOf(story), notesOf(story)].filter((node) => node !== null);
  page.append(links, ...others);
  const sections = [() => learningSection(story), () => comparisonSection(story), () => episode, () => healthSection(story), () => configSection(story)];
  for (const make of sections) {
    const node = make();
    if (!node) continue;
    page.append(node);
    links.append(element("a", { href: `#${node.id}` }, node.getAttribute("aria-label")));
  }
  page.append(element("footer", {}, story.footer));
  for (const redraw of redraws) redraw();
  if (player) player.start();
  if (episode && asked.given) episode.scrollIntoView({ behavior: "instant" });
  document.body.dataset.ready = "true";
}

build();
