// Colours of a replay in the current theme: roles, exact colours, and numbers on a colour ramp.

const ROLES = ["ink", "muted", "faint", "accent", "good", "bad", "warn", "blue", "orange", "teal", "purple", "pink"];

function paletteNow() {
  const tones = Object.fromEntries(ROLES.map((role) => [role, toneOf(`--${role}`)]));
  const ramp = ["low", "mid", "high"].map((stop) => channels(toneOf(`--ramp-${stop}`)));
  return { tones, ramp, panel: toneOf("--panel"), wash: toneOf("--wash") };
}

function channels(tone) {
  if (tone.startsWith("#")) return [1, 3, 5].map((at) => Number.parseInt(tone.slice(at, at + 2), 16));
  return tone.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function colourOf(value, palette) {
  if (typeof value === "number") return `rgb(${rampAt(value, palette).join(" ")})`;
  return palette.tones[value] || value;
}

function rampAt(value, palette) {
  const place = Math.min(1, Math.max(0, value)) * 2;
  const [from, to] = place < 1 ? [palette.ramp[0], palette.ramp[1]] : [palette.ramp[1], palette.ramp[2]];
  const part = place < 1 ? place : place - 1;
  return from.map((channel, index) => Math.round(channel + part * (to[index] - channel)));
}

function contrastTo(fill) {
  const [red, green, blue] = channels(fill);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#14171a" : "#ffffff";
}
