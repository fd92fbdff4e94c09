// The picture of the graph: drawn on a canvas, moved over by mouse, touch and keys, with a chain in the spotlight.

import { html, signal, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { act, KEYS, link, menu, refused } from "./acts.js";
import { hit, paint, palette } from "./drawing.js";
import { href, shortId, State, Who } from "./parts.js";
import { centre, fit, middle, nearest, neighbour, paintLink, startOf, usePointers, zoomAt } from "./steering.js";
import { about, before, behind, isDone, matches, query, tasks } from "./wall.js";
import { t } from "./words.js";

export const selected = signal(null);
export const theme = signal(""); // in other colours, the picture is drawn again
const MOVES = 220; // milliseconds for which boxes move to new places
const GLIDES = !matchMedia("(prefers-reduced-motion: reduce)").matches;
const FLASH = 5000;

// What stands below the subject in a box.
export const words = (row) =>
  [t(`state.${row.state}`), row.owner ?? (row.reserved && t("card.for", { name: row.reserved }))].filter(Boolean).join(" · ");

// Everything that a task waits for, or that waits for it, near and far.
function chain(id, next) {
  const found = new Set([id]);
  for (const each of found) for (const other of next(each)) if (tasks.value.has(other)) found.add(other);
  found.delete(id);
  return found;
}

const openOf = (ids) => [...ids].filter((id) => !isDone(tasks.value.get(id))).length;

export function Picture({ scene }) {
  const canvas = useRef();
  const drag = useRef(null);
  const [flash, setFlash] = useState(null);
  const sought = query.value.trim();
  const chosen = scene.known.get(selected.value);
  const up = useMemo(() => chosen && chain(chosen.key, before), [chosen]);
  const down = useMemo(() => chosen && chain(chosen.key, behind), [chosen]);
  const found = useMemo(() => sought && new Set(scene.nodes.filter(({ row }) => matches(row, sought)).map(({ key }) => key)), [scene, sought]);
  const lit = flash ?? (chosen ? new Set([chosen.key, ...up, ...down]) : found || null);
  const { view, redraw } = useDrawing(canvas, scene, lit, drag);

  const show = (node) => {
    if (node) centre(view.current, canvas.current, node);
    redraw();
  };
  useEffect(() => {
    if (found?.size) show(scene.nodes.find(({ key }) => found.has(key)));
  }, [sought]);
  const choose = (node) => (selected.value = node?.key ?? null);
  const linked = async (from, to) => {
    try {
      await link(from.key, to.key);
    } catch (error) {
      refused(error);
      setFlash(new Set([...(error.by ?? []), from.key, to.key]));
      setTimeout(() => setFlash(null), FLASH);
    }
  };
  const pick = (event) => {
    const { x, y, zoom } = view.current;
    return hit(scene, (event.offsetX - x) / zoom, (event.offsetY - y) / zoom);
  };
  const pointers = usePointers({ canvas, view, drag, pick, choose, redraw, linked, open: (node) => (location.hash = href(node.key)) });
  const tools = {
    in: () => zoomAt(view.current, 1.3, ...middle(canvas.current)),
    out: () => zoomAt(view.current, 1 / 1.3, ...middle(canvas.current)),
    fit: () => (view.current = fit(scene, canvas.current)),
    start: () => (view.current = startOf(scene, canvas.current, null)),
  };
  const keys = (event) => {
    if (!pressed(event, { scene, chosen, tools, choose, show })) return;
    event.preventDefault();
    event.stopPropagation();
    redraw();
  };
  return html`<div class="picture">
    <canvas ref=${canvas} tabindex="0" role="application" aria-busy="true" aria-label=${t("graph.label")} onKeyDown=${keys} ...${pointers}></canvas>
    <div class="zoom">${Object.entries(tools).map(([name, run]) => html`<button key=${name} onClick=${() => (run(), redraw())} aria-label=${t(`graph.${name}`)} title=${t(`graph.${name}`)}>${{ in: "+", out: "−", fit: "⤢", start: "◎" }[name]}</button>`)}</div>
    ${chosen ? html`<${Spotlight} row=${chosen.row} up=${up} down=${down} />` : about.value.writable && html`<p class="hint soft">${t("graph.hint")}</p>`}
  </div>`;
}

const TOOL_KEYS = { "+": "in", "=": "in", "-": "out", 0: "fit" };

// Does what a key means on the picture; false when it means nothing there.
function pressed(event, { scene, chosen, tools, choose, show }) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (TOOL_KEYS[event.key]) tools[TOOL_KEYS[event.key]]();
  else if (event.key.startsWith("Arrow")) {
    const next = chosen ? neighbour(scene, chosen, event.key) : scene.nodes[0];
    if (next) choose(next);
    show(next);
  } else if (!chosen) return false;
  else if (event.key === "Enter") location.hash = href(chosen.key);
  else if (event.key === "Escape") choose(null);
  else if (event.key === ".") menu(chosen.row);
  else if (KEYS[event.key] && about.value.writable) act(KEYS[event.key], chosen.row);
  else return false;
  return true;
}

// Draws the scene, again whenever it or the view changes. When places change, what the reader looks at stays where it
// is, and the other boxes glide.
function useDrawing(canvas, scene, lit, drag) {
  const view = useRef(null);
  const at = useRef({}); // where each box is drawn now, on its way to its place
  const next = useRef({});
  next.current.draw = () => {
    if (!canvas.current || !view.current) return;
    const moved = moving(scene, at.current);
    paint(canvas.current, { ...moved, lit, selected: selected.value }, view.current, palette(), words);
    if (drag.current?.link) paintLink(canvas.current, drag.current, view.current);
  };
  const redraw = () => {
    next.current.frame ??= requestAnimationFrame(() => {
      next.current.frame = null;
      next.current.draw();
    });
  };
  useEffect(() => {
    if (!scene.nodes.length) return undefined;
    view.current ??= startOf(scene, canvas.current, selected.value);
    return glide(scene, at.current, canvas.current, view.current, redraw);
  }, [scene]);
  useEffect(redraw, [scene, lit, selected.value, theme.value]);
  useEffect(() => {
    const watcher = new ResizeObserver(redraw);
    watcher.observe(canvas.current);
    const wheel = (event) => {
      event.preventDefault();
      zoomAt(view.current, Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
      redraw();
    };
    canvas.current.addEventListener("wheel", wheel, { passive: false });
    return () => watcher.disconnect();
  }, []);
  return { view, redraw };
}

// The scene with every box and passage where it is now.
function moving(scene, at) {
  const here = (node) => ({ ...node, ...at[node.key] });
  const nodes = scene.nodes.map(here);
  const known = new Map(nodes.map((node) => [node.key, node]));
  const bold = new Set();
  const edges = scene.edges.map((edge) => {
    const moved = { from: known.get(edge.from.key), to: known.get(edge.to.key), via: edge.via.map(here) };
    if (scene.bold.has(edge)) bold.add(moved);
    return moved;
  });
  return { nodes, edges, bold };
}

// Lets every box move to its place; returns what stops that.
function glide(scene, at, canvas, view, redraw) {
  const old = { ...at };
  const anchor = nearest(scene, old, canvas, view);
  const shift = anchor ? { x: anchor.x - old[anchor.key].x, y: anchor.y - old[anchor.key].y } : { x: 0, y: 0 };
  view.x -= shift.x * view.zoom;
  view.y -= shift.y * view.zoom;
  const places = [...scene.nodes, ...scene.edges.flatMap((edge) => edge.via)];
  const began = performance.now();
  let stopped = false;
  const step = () => {
    if (stopped) return;
    const part = GLIDES ? Math.min(1, (performance.now() - began) / MOVES) : 1;
    for (const { key, x, y } of places) {
      const from = old[key] ? { x: old[key].x + shift.x, y: old[key].y + shift.y } : { x, y };
      at[key] = { x: from.x + (x - from.x) * part, y: from.y + (y - from.y) * part };
    }
    canvas.setAttribute("aria-busy", part < 1);
    redraw();
    if (part < 1) requestAnimationFrame(step);
  };
  step();
  return () => (stopped = true);
}

function Spotlight({ row, up, down }) {
  return html`<aside class="spotlight" role="status">
    <p class="facts"><${State} name=${row.state} /> <${Who} name=${row.owner} /> <code>${shortId(row.id)}</code></p>
    <h2><a href=${href(row.id)}><bdi>${row.subject}</bdi></a></h2>
    <p>↑ ${t("graph.up", { open: openOf(up), all: up.size })}<br />↓ ${t("graph.down", { open: openOf(down) })}</p>
    <div class="acts"><a class="button" href=${href(row.id)}>${t("act.open")} <kbd>⏎</kbd></a>
      ${about.value.writable && html`<button onClick=${() => menu(row)}>${t("act.menu")} <kbd>.</kbd></button>`}
      <button onClick=${() => (selected.value = null)}>${t("act.dismiss")}</button></div>
  </aside>`;
}
