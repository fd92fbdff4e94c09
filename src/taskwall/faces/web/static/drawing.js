// Draws a scene of boxes and edges: on a canvas, as SVG, as Mermaid.
// A scene: {nodes: [{row, x, y}], edges: [{from, to, via}], bold: Set of edges, lit: Set of ids or null, selected}.
// An edge goes from a node to a node, by way of places [{x, y}] between boxes.

import { BOX } from "./layout.js";

const READABLE = 0.42; // below this zoom, boxes have no words
const FONT = 'system-ui, "PingFang SC", "Noto Sans CJK SC", "Microsoft YaHei", sans-serif';
const PAD = 12;

const COLOURS = "ready active stale person blocked done card frame ink soft accent edge faint paper".split(" ");

export function palette() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const tint = {
  ready: "ready",
  in_progress: "active",
  stale: "stale",
  waiting: "person",
  held: "person",
  broken: "stale",
  blocked: "blocked",
  completed: "done",
  cancelled: "done",
};

export function paint(canvas, scene, view, colour, words) {
  const context = canvas.getContext("2d");
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.translate(view.x, view.y);
  context.scale(view.zoom, view.zoom);
  const seen = {
    left: -view.x / view.zoom - BOX.width,
    top: -view.y / view.zoom - BOX.height,
    right: (width - view.x) / view.zoom + BOX.width,
    bottom: (height - view.y) / view.zoom + BOX.height,
  };
  paintEdges(context, scene, view.zoom, seen, colour);
  for (const node of scene.nodes) {
    if (node.x > seen.left && node.x < seen.right && node.y > seen.top && node.y < seen.bottom) {
      paintNode(context, scene, node, view.zoom, colour, words);
    }
  }
}

// Edges of a kind are one path: thousands of strokes would take longer than all the boxes.
function paintEdges(context, { edges, bold, lit }, zoom, seen, colour) {
  const kinds = new Map();
  for (const edge of edges) {
    const { from, to } = edge;
    if (Math.max(from.x, to.x) < seen.left || Math.min(from.x, to.x) > seen.right) continue;
    if (Math.max(from.y, to.y) < seen.top || Math.min(from.y, to.y) > seen.bottom) continue;
    const on = !lit || (lit.has(from.row.id) && lit.has(to.row.id));
    const kind = `${on ? (bold.has(edge) ? "accent" : "edge") : "faint"}`;
    if (!kinds.has(kind)) kinds.set(kind, new Path2D());
    kinds.get(kind).addPath(new Path2D(course(edge, zoom > READABLE)));
  }
  for (const kind of ["faint", "edge", "accent"]) {
    if (!kinds.has(kind)) continue;
    context.strokeStyle = colour[kind];
    context.lineWidth = (kind === "accent" ? 2.5 : 1.25) / Math.max(zoom, 0.35);
    context.stroke(kinds.get(kind));
  }
}

// The way of an edge as SVG path data: level past boxes, in curves between them.
function course({ from, to, via }, arrow) {
  const half = BOX.width / 2;
  let path = `M${from.x + half} ${from.y}`;
  let x = from.x + half;
  let { y } = from;
  for (const next of [...via, to]) {
    const left = next.x - half;
    const bend = left > x ? (left - x) / 2 : 60;
    path += `C${x + bend} ${y} ${left - bend} ${next.y} ${left} ${next.y}`;
    [x, y] = [next.x + half, next.y];
    if (next !== to) path += `H${x}`;
  }
  return arrow ? `${path}m-6 -4l6 4l-6 4` : path;
}

function paintNode(context, { lit, selected }, { row, x, y }, zoom, colour, words) {
  const [left, top] = [x - BOX.width / 2, y - BOX.height / 2];
  const state = colour[tint[row.state]];
  const done = tint[row.state] === "done";
  context.globalAlpha = lit && !lit.has(row.id) ? 0.25 : 1;
  context.fillStyle = zoom > READABLE ? colour.card : state;
  context.strokeStyle = row.id === selected ? colour.accent : colour.frame;
  context.lineWidth = (row.id === selected ? 2.5 : 1) / Math.max(zoom, 0.35);
  context.beginPath();
  context.roundRect(left, top, BOX.width, BOX.height, 7);
  context.fill();
  context.stroke();
  if (zoom > READABLE) {
    context.fillStyle = state;
    context.beginPath();
    context.roundRect(left, top, 5, BOX.height, [7, 0, 0, 7]);
    context.fill();
    context.fillStyle = done ? colour.soft : colour.ink;
    context.font = `500 13px ${FONT}`;
    context.textBaseline = "middle";
    context.fillText(fitted(context, row.subject, BOX.width - 2 * PAD), left + PAD, y - 8);
    context.fillStyle = state;
    context.font = `11px ${FONT}`;
    context.fillText(fitted(context, words(row), BOX.width - 2 * PAD), left + PAD, y + 11);
  }
  context.globalAlpha = 1;
}

const fits = new Map();

// Text cut to a width; measured once.
function fitted(context, text, width) {
  const key = `${context.font}\n${text}`;
  if (!fits.has(key)) {
    let [short, long] = [0, [...text].length];
    const shown = (n) => (n < [...text].length ? `${[...text].slice(0, n).join("")}…` : text);
    while (short < long) {
      const middle = (short + long + 1) >> 1;
      if (context.measureText(shown(middle)).width <= width) short = middle;
      else long = middle - 1;
    }
    if (fits.size > 20_000) fits.clear();
    fits.set(key, shown(short));
  }
  return fits.get(key);
}

export const hit = ({ nodes }, x, y) =>
  nodes.findLast((node) => Math.abs(node.x - x) <= BOX.width / 2 && Math.abs(node.y - y) <= BOX.height / 2);

export function extent({ nodes }) {
  const [xs, ys] = [nodes.map(({ x }) => x), nodes.map(({ y }) => y)];
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  return {
    left: least(xs) - BOX.width / 2,
    top: least(ys) - BOX.height / 2,
    right: most(xs) + BOX.width / 2,
    bottom: most(ys) + BOX.height / 2,
  };
}

const escaped = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.codePointAt(0)};`);

export function svg(scene, colour, words) {
  const { left, top, right, bottom } = extent(scene);
  const context = document.createElement("canvas").getContext("2d");
  const text = (font, fill, x, y, content) => {
    context.font = `${font} ${FONT}`;
    return `<text x="${x}" y="${y}" style='font:${font} ${FONT}' fill="${fill}">${escaped(fitted(context, content, BOX.width - 2 * PAD))}</text>`;
  };
  const edges = scene.edges.map((edge) => {
    const bold = scene.bold.has(edge);
    return `<path d="${course(edge, true)}" fill="none" stroke="${colour[bold ? "accent" : "edge"]}" stroke-width="${bold ? 2.5 : 1.25}"/>`;
  });
  const nodes = scene.nodes.map(({ row, x, y }) => {
    const [l, u] = [x - BOX.width / 2, y - BOX.height / 2];
    const state = colour[tint[row.state]];
    return `<g><title>${escaped(`${row.id}: ${row.subject}`)}</title><rect x="${l}" y="${u}" width="${BOX.width}" height="${BOX.height}" rx="7" fill="${colour.card}" stroke="${colour.frame}"/><rect x="${l}" y="${u}" width="5" height="${BOX.height}" fill="${state}"/>${text("500 13px", colour.ink, l + PAD, y - 4, row.subject)}${text("11px", state, l + PAD, y + 15, words(row))}</g>`;
  });
  const box = `${left - 20} ${top - 20} ${right - left + 40} ${bottom - top + 40}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}"><rect x="${left - 20}" y="${top - 20}" width="100%" height="100%" fill="${colour.paper}"/>${edges.join("")}${nodes.join("")}</svg>`;
}

export function mermaid({ nodes, edges }, words) {
  const name = new Map(nodes.map((node, n) => [node, `n${n}`]));
  const label = (text) => text.replace(/[^\p{L}\p{N} .,:_()?!/-]/gu, (c) => `#${c.codePointAt(0)};`);
  return [
    "flowchart LR",
    ...nodes.map((node) => `  ${name.get(node)}["${label(`${node.row.id}: ${node.row.subject}`)}<br/>${label(words(node.row))}"]`),
    ...edges.map(({ from, to }) => `  ${name.get(from)} --> ${name.get(to)}`),
    "",
  ].join("\n");
}
