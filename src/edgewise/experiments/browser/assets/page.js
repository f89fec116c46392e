// The page of one game: draws the position, sends moves, and lets the policies move.
"use strict";

const at = (name) => document.getElementById(name);
const CORNERS = Array.from({ length: 6 }, (_, k) => [Math.sin((k * Math.PI) / 3), Math.cos((k * Math.PI) / 3)]);
let position = null;
let picked = null;
let busy = false;

const key = (place) => `${place[0].toFixed(3)},${place[1].toFixed(3)}`;
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

function say(text, isError = false) {
  at("status").textContent = text;
  at("status").className = isError ? "error" : "";
}

function shape(name, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [field, value] of Object.entries(attributes)) element.setAttribute(field, value);
  element.textContent = text;
  return element;
}

function hexagon([x, y], classes) {
  const points = CORNERS.map(([dx, dy]) => `${x + 0.96 * dx},${-(y + 0.96 * dy)}`).join(" ");
  return shape("polygon", { points, class: classes });
}

function label([x, y], text, classes) {
  return shape("text", { x, y: -y, class: classes }, text);
}

// The moves that a click can make now: those of the picked tile, or those that need no tile first.
function offered() {
  const moves = position.thinks === null ? position.moves.filter((move) => move.target !== null) : [];
  return moves.filter((move) => (move.source === null ? picked === null : key(move.source) === picked));
}

function drawTiles(board) {
  const movable = new Set();
  if (position.thinks === null)
    for (const move of position.moves) if (move.source !== null) movable.add(key(move.source));
  for (const tile of position.tiles) {
    const owner = tile.owner === null ? "" : ["first", "second"][tile.owner];
    const here = key(tile.place);
    const classes = [owner, tile.marked ? "marked" : "", picked === here ? "picked" : ""];
    if (movable.has(here)) classes.push("movable");
    const drawn = hexagon(tile.place, classes.join(" ").trim());
    drawn.dataset.tile = tile.label;
    if (movable.has(here)) drawn.addEventListener("click", () => pick(here));
    board.append(drawn, label(tile.place, tile.label, owner));
  }
}

function drawMoves(board) {
  for (const move of offered()) {
    const target = hexagon(move.target, at("legal").checked ? "target" : "target quiet");
    target.dataset.move = move.name;
    target.setAttribute("tabindex", "0");
    target.setAttribute("role", "button");
    target.setAttribute("aria-label", move.name);
    target.addEventListener("click", () => send("play", { move: move.name }));
    target.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") send("play", { move: move.name });
    });
    board.append(target);
    if (at("hints").checked && move.share !== null && move.share >= 0.005)
      board.append(label([move.target[0], move.target[1] - 0.5], percent(move.share), "share"));
  }
}

function frame(board) {
  const places = [...position.tiles.map((tile) => tile.place)];
  for (const move of position.moves) if (move.target !== null) places.push(move.target);
  if (!places.length) places.push([0, 0]);
  const xs = places.map(([x]) => x);
  const ys = places.map(([, y]) => -y);
  const [left, upper] = [Math.min(...xs) - 1.3, Math.min(...ys) - 1.3];
  const [width, height] = [Math.max(...xs) + 1.3 - left, Math.max(...ys) + 1.3 - upper];
  board.setAttribute("viewBox", `${left} ${upper} ${width} ${height}`);
}

function drawSide() {
  const [first, second] = position.names;
  at("title").textContent = `${position.game}: ${first} against ${second}`;
  at("players").replaceChildren(...position.sides.map((side, k) => item(`${side}: ${position.names[k]}`)));
  at("note").textContent = position.note;
  at("worth").hidden = position.value === null;
  if (position.value !== null) {
    const chance = (1 + position.value) / 2;
    at("share").style.width = `${100 * chance}%`;
    at("chance").textContent = `the policy gives ${position.sides[0].split(/[ ,]/)[0]} ${percent(chance)}`;
  }
  const passing = position.thinks === null && position.moves.find((move) => move.target === null);
  at("pass").hidden = !passing;
  at("pass").textContent = passing ? passing.name : "pass";
  at("watching").hidden = position.seat !== null;
  at("history").replaceChildren(...position.history.map((name) => item(name)));
  at("history").scrollTop = at("history").scrollHeight;
  const known = position.moves.filter((move) => move.share !== null);
  const best = known.sort((one, other) => other.share - one.share).slice(0, 6);
  at("best").hidden = !at("hints").checked || !best.length;
  at("best").replaceChildren(...best.map((move) => item(`${move.name} ${percent(move.share)}`)));
}

function item(text) {
  const element = document.createElement("li");
  element.textContent = text;
  return element;
}

function draw() {
  const board = at("board");
  board.replaceChildren();
  frame(board);
  drawTiles(board);
  drawMoves(board);
  drawSide();
  document.body.dataset.version = position.version;
  document.body.dataset.over = position.over;
  document.body.dataset.thinks = position.thinks === null ? "" : position.thinks;
}

function pick(here) {
  picked = picked === here ? null : here;
  draw();
}

function show(found) {
  position = found;
  picked = null;
  draw();
  const turn = position.seat === null ? position.names[position.turn] : "you";
  say(position.over ? position.result : position.thinks !== null ? `${position.thinks} thinks` : `${turn} to move`);
  if (position.thinks !== null && (position.seat !== null || at("running").checked))
    setTimeout(() => send("think"), position.seat === null ? 300 : 0);
}

async function ask(name, options) {
  const answer = await fetch(name, options);
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error), { status: answer.status });
  return found;
}

async function send(name, data = {}) {
  if (busy) return;
  busy = true;
  try {
    const body = JSON.stringify({ ...data, version: position.version });
    const found = await ask(name, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    busy = false;
    show(found);
  } catch (error) {
    busy = false;
    if (error.status === 409) show(await ask("position"));
    say(error.status ? error.message : "the server does not answer: is `edgewise play` still running?", true);
  }
}

at("back").addEventListener("click", () => send("back"));
at("new").addEventListener("click", () => send("new"));
at("pass").addEventListener("click", () => send("play", { move: at("pass").textContent }));
for (const name of ["legal", "hints"]) at(name).addEventListener("change", draw);
at("running").addEventListener("change", () => show(position));
if (location.hash === "#hints") at("hints").checked = true;
ask("position").then(show, (error) => say(error.message, true));
