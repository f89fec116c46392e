// The replay player: a scene, its controls, and the plots beside it.

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

function replayPanel(replays, view) {
  const holder = element("div");
  const tabs = element("div", { class: "episodes", role: "group", "aria-label": "episodes" });
  let stop = () => {};
  const show = (pressed, numbers, frame) => {
    stop();
    const players = numbers.map((number) => replayPlayer(expandReplay(replays[number].replay), frame));
    stop = () => players.forEach((player) => player.stop());
    const captioned = ({ node }, index) => element("div", {}, element("h3", {}, episodeName(replays[numbers[index]], replays)), node);
    holder.replaceChildren(players.length === 1 ? players[0].node : element("div", { class: "pair" }, players.map(captioned)));
    players.forEach((player) => player.start());
    [...tabs.children].forEach((tab) => tab.setAttribute("aria-pressed", String(tab === pressed)));
  };
  const open = (number, frame) => show(tabs.children[number], [number], frame);
  replays.forEach((episode, number) => {
    const tab = element("button", { type: "button" }, episodeName(episode, replays));
    tab.addEventListener("click", () => open(number, 0));
    tabs.append(tab);
  });
  const both = beforeAndAfter(replays);
  if (both) {
    const tab = element("button", { type: "button" }, "before and after training");
    tab.addEventListener("click", () => show(tab, both, 0));
    tabs.append(tab);
  }
  const panel = element("div", { class: "panel" }, replays.length > 1 ? tabs : null, holder);
  const start = () => open(Math.min(view.replay, replays.length - 1), view.frame);
  return { panel, start };
}

// The first episodes of the earliest and of the latest evaluation of the first run; null if there is one evaluation.
function beforeAndAfter(replays) {
  const own = replays.map(({ run, name }, number) => ({ run, number, at: /^(\d+)-0$/.exec(name)?.[1] }));
  const first = own.filter(({ run, at }) => run === replays[0].run && at !== undefined);
  first.sort((left, right) => Number(left.at) - Number(right.at));
  return first.length > 1 ? [first[0].number, first.at(-1).number] : null;
}

function episodeName({ run, name }, replays) {
  const [, frames, number] = /^(\d+)-(\d+)$/.exec(name) ?? [];
  const which = Number(number) > 0 ? `, episode ${Number(number) + 1}` : "";
  const when = frames === undefined ? name : `after ${formatNumber(Number(frames))} frames${which}`;
  return replays.some((other) => other.run !== run) ? `${run}: ${when}` : when;
}

function replayPlayer(replay, firstFrame) {
  const count = replay.frames.length;
  const state = { at: Math.min(firstFrame, count - 1), playing: false, speed: 1, before: 0, request: 0 };
  const parts = playerParts(replay, count);
  const side = sideParts(replay, count);
  const node = playerNode(replay, parts, side);
  let palette = paletteNow();

  const show = () => {
    const index = Math.floor(state.at);
    drawCanvas(parts.scene, replay, { index, part: state.at - index, palette });
    for (const plot of side) plot.draw(index, palette);
    parts.scrub.value = String(index);
    parts.time.textContent = timeText(replay, index);
    parts.caption.textContent = (replay.captions && replay.captions[index]) || "";
  };
  const tick = (now) => {
    const elapsed = Math.min(0.1, Math.max(0, now - state.before) / 1000);
    state.before = now;
    state.at += elapsed * state.speed * (replay.fps ?? 8);
    if (state.at >= count - 1) {
      state.at = count - 1;
      setPlaying(false);
    }
    show();
    if (state.playing) state.request = requestAnimationFrame(tick);
  };
  const setPlaying = (playing) => {
    state.playing = playing;
    parts.play.textContent = playing ? "Pause" : "Play";
    cancelAnimationFrame(state.request);
    if (!playing) return;
    if (state.at >= count - 1) state.at = 0;
    state.before = performance.now();
    state.request = requestAnimationFrame(tick);
  };
  const goTo = (frame) => {
    setPlaying(false);
    state.at = Math.min(count - 1, Math.max(0, frame));
    show();
  };
  connect(parts, { state, setPlaying, goTo });
  let unobserve = () => {};
  const start = () => {
    const draw = () => {
      palette = paletteNow();
      show();
    };
    unobserve = whenResized(node, draw);
    draw();
  };
  return { node, start, stop: () => { setPlaying(false); unobserve(); } };
}

function playerParts(replay, count) {
  const speed = element("select", { "aria-label": "speed" });
  for (const value of SPEEDS) speed.append(element("option", { value }, `${value}×`));
  speed.value = "1";
  return {
    scene: element("canvas", { class: "scene", tabindex: 0, role: "img", "aria-label": replay.title }),
    play: element("button", { type: "button", class: "play" }, "Play"),
    back: element("button", { type: "button", "aria-label": "one frame back" }, "‹"),
    on: element("button", { type: "button", "aria-label": "one frame on" }, "›"),
    scrub: element("input", { type: "range", min: 0, max: count - 1, step: 1, value: 0, "aria-label": "frame" }),
    time: element("span", { class: "time" }),
    caption: element("p", { class: "caption" }),
    speed,
  };
}

function sideParts(replay, count) {
  const bars = replay.layers.filter((layer) => layer.kind === "bars").map((layer) => barsPlot(replay, layer.name));
  const legend = replay.legend && replay.legend.length ? [replayLegend(replay.legend)] : [];
  return [...(replay.series ?? []).map((series) => seriesPlot(series, count)), ...bars, ...legend];
}

function playerNode(replay, parts, side) {
  const stage = element(
    "div",
    { class: "stage" },
    parts.scene,
    element("div", { class: "track" }, parts.scrub, marksOf(replay)),
    element("div", { class: "controls" }, parts.play, parts.back, parts.on, parts.speed, parts.time),
    replay.captions ? parts.caption : null,
  );
  const words = element("div", {}, element("h3", {}, replay.title), replay.caption ? element("p", { class: "muted" }, replay.caption) : null);
  const aside = element("aside", {}, words, factsOf(replay), side.map((plot) => plot.node));
  return element("div", { class: "replay" }, stage, aside);
}

function marksOf(replay) {
  if (!replay.marks || !replay.marks.length) return null;
  const last = Math.max(1, replay.frames.length - 1);
  const marks = replay.marks.map((mark) => {
    const node = element("i", { class: "mark", title: `${mark.frame}: ${mark.text}` });
    node.style.left = `${(100 * mark.frame) / last}%`;
    if (typeof mark.color === "string") node.style.background = mark.color.startsWith("#") ? mark.color : `var(--${mark.color})`;
    return node;
  });
  return element("div", { class: "marks" }, marks);
}

function factsOf(replay) {
  const facts = Object.entries(replay.facts ?? {});
  if (!facts.length) return null;
  const textOf = (value) => (typeof value === "number" ? formatNumber(value) : value);
  return element("dl", {}, facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, textOf(value))]));
}

function drawCanvas(canvas, replay, { index, part, palette }) {
  const [left, bottom, right, top] = replay.area;
  const shape = Math.min(0.68, Math.max(0.4, (top - bottom) / (right - left)));
  const { context, width, height } = sized(canvas, Math.round(Math.min(560, Math.max(220, canvas.clientWidth * shape))));
  drawScene(context, replay, { index, part, view: viewOf(replay, width, height), palette });
}

function timeText(replay, index) {
  const name = replay.time_label ?? "step";
  const clock = replay.time ? replay.time[index] : index;
  const last = replay.time ? replay.time.at(-1) : replay.frames.length - 1;
  return `${name} ${formatNumber(clock)} of ${formatNumber(last)}`;
}

function connect(parts, { state, setPlaying, goTo }) {
  parts.play.addEventListener("click", () => setPlaying(!state.playing));
  parts.back.addEventListener("click", () => goTo(Math.ceil(state.at) - 1));
  parts.on.addEventListener("click", () => goTo(Math.floor(state.at) + 1));
  parts.scrub.addEventListener("input", () => goTo(Number(parts.scrub.value)));
  parts.speed.addEventListener("change", () => {
    state.speed = Number(parts.speed.value);
  });
  parts.scene.addEventListener("keydown", (event) => {
    const keys = {
      " ": () => setPlaying(!state.playing),
      ArrowLeft: () => goTo(Math.ceil(state.at) - 1),
      ArrowRight: () => goTo(Math.floor(state.at) + 1),
      Home: () => goTo(0),
      End: () => goTo(Infinity),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
