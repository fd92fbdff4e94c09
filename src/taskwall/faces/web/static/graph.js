// The graph: open work and its neighbours, laid out in a worker and drawn on a canvas; and the same as a list.

import { html, signal, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { act, KEYS, link, menu, refused } from "./acts.js";
import { hit, mermaid, paint, palette, svg } from "./drawing.js";
import { passage } from "./layout.js";
import { href, shortId, State, TaskLink, Who } from "./parts.js";
import { fit, middle, nearest, neighbour, paintLink, startOf, usePointers, zoomAt } from "./steering.js";
import { about, behind, before, boardName, isDone, matches, query, tasks } from "./wall.js";
import { t } from "./words.js";

const finished = signal(false);
const critical = signal(true);
const asList = signal(false);
const selected = signal(null);
const kept = new Set(); // what was shown once stays, so that finishing a task moves nothing
const MOVES = 220; // milliseconds for which boxes move to new places
const GLIDES = !matchMedia("(prefers-reduced-motion: reduce)").matches;

const makeUrl = globalThis.trustedTypes?.createPolicy("taskwall", { createScriptURL: (url) => url });
const workerUrl = new URL("layout.js", import.meta.url).href;

export const theme = signal(""); // a picture is drawn again in other colours
const words = (row) => [t(`state.${row.state}`), row.owner ?? (row.reserved && t("card.for", { name: row.reserved }))].filter(Boolean).join(" · ");

// The rows to show, oldest first, and the edges among them.
function shownRows() {
  const all = tasks.value;
  const chosen = new Set();
  for (const row of all.values()) {
    if (finished.value || !isDone(row) || kept.has(row.id)) chosen.add(row.id);
    if (!isDone(row)) for (const id of row.blockers ?? []) if (all.has(id)) chosen.add(id);
  }
  for (const id of chosen) kept.add(id);
  const rows = [...chosen].filter((id) => all.has(id)).map((id) => all.get(id));
  rows.sort((a, b) => (a.createdAt ?? "").localeCompare(b.createdAt ?? "") || a.id.localeCompare(b.id));
  const edges = rows.flatMap((row) => (row.blockers ?? []).filter((id) => chosen.has(id) && all.has(id)).map((id) => [id, row.id]));
  return { rows, edges };
}

// The longest chain of open work, from what can move first to its end.
function criticalPath(rows) {
  const open = rows.filter((row) => !isDone(row) && row.rank);
  const path = [];
  let at = open.reduce((best, row) => ((row.rank ?? 0) > (best?.rank ?? 0) ? row : best), null);
  while (at) {
    path.push(at.id);
    const rank = at.rank ?? 0;
    at = behind(at.id).map((id) => tasks.value.get(id)).find((row) => !isDone(row) && (row.rank ?? 0) === rank - 1);
  }
  return path;
}

// Everything that a task waits for, or that waits for it, near and far.
function chain(id, next) {
  const found = new Set([id]);
  for (const each of found) for (const other of next(each)) if (tasks.value.has(other)) found.add(other);
  found.delete(id);
  return found;
}

const openOf = (ids) => [...ids].filter((id) => !isDone(tasks.value.get(id))).length;

// Places from the worker, again whenever nodes or edges are others.
function usePlaces(rows, edges) {
  const [places, setPlaces] = useState({});
  const worker = useRef();
  const latest = useRef({});
  const key = JSON.stringify([rows.map((row) => row.id), edges]);
  useEffect(() => {
    worker.current = new Worker(makeUrl ? makeUrl.createScriptURL(workerUrl) : workerUrl, { type: "module" });
    worker.current.onmessage = ({ data }) => {
      if (data.run !== latest.current.run) return;
      latest.current.places = data.places;
      setPlaces(data.places);
    };
    return () => worker.current.terminate();
  }, []);
  useEffect(() => {
    latest.current.run = (latest.current.run ?? 0) + 1;
    worker.current.postMessage({ run: latest.current.run, nodes: rows.map((row) => row.id), edges, before: latest.current.places });
  }, [key]);
  return places;
}

export function Graph({ id }) {
  const { rows, edges } = useMemo(shownRows, [tasks.value, finished.value]);
  const places = usePlaces(rows, edges);
  useEffect(() => {
    if (id) selected.value = id;
  }, [id]);
  const folded = tasks.value.size - rows.length;
  const scene = useMemo(() => {
    const place = (key) => ({ key, x: places[key][0], y: places[key][1] });
    const nodes = rows.filter((row) => places[row.id]).map((row) => ({ ...place(row.id), row }));
    const known = new Map(nodes.map((node) => [node.row.id, node]));
    const via = (from, to) => {
      const found = [];
      for (let n = 1, key; places[(key = passage(from, to, n))]; n += 1) found.push(place(key));
      return found;
    };
    const drawn = edges.filter((ids) => ids.every((one) => known.has(one))).map((ids) => ({ from: known.get(ids[0]), to: known.get(ids[1]), via: via(...ids) }));
    const path = critical.value ? criticalPath(rows) : [];
    const steps = new Set(path.slice(1).map((one, n) => `${path[n]}\n${one}`));
    const bold = new Set(drawn.filter(({ from, to }) => steps.has(`${from.row.id}\n${to.row.id}`)));
    return { nodes, edges: drawn, bold, known };
  }, [rows, places, critical.value]);
  const toggle = (of, key) => html`<button class=${of.value ? "on" : ""} aria-pressed=${of.value} onClick=${() => (of.value = !of.value)}>${t(key)}</button>`;
  return html`<div class="graph">
    <h1 class="hidden">${t("nav.graph")}</h1>
    <div class="tools">
      ${toggle(critical, "graph.path")} ${toggle(finished, "graph.finished")}
      <button aria-pressed=${asList.value} onClick=${() => (asList.value = !asList.value)}>${t(asList.value ? "graph.picture" : "graph.list")}</button>
      <button onClick=${() => save("svg", "image/svg+xml", svg(scene, palette(), words))}>${t("graph.svg")}</button>
      <button onClick=${() => save("mmd", "text/plain", mermaid(scene, words))}>${t("graph.mermaid")}</button>
      <span class="soft">${t("graph.counts", { n: rows.length, m: folded })}</span>
    </div>
    ${!rows.length ? html`<p class="empty">${t("graph.empty")}</p>` : asList.value ? html`<${List} scene=${scene} />` : html`<${Picture} scene=${scene} />`}
  </div>`;
}

function save(suffix, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement("a"), { href: url, download: `${boardName.value || "board"}.${suffix}` }).click();
  URL.revokeObjectURL(url);
}

function Picture({ scene }) {
  const canvas = useRef();
  const view = useRef(null);
  const at = useRef({}); // where each box is drawn now, on its way to its place
  const drag = useRef(null);
  const [flash, setFlash] = useState(null);
  const words_ = query.value.trim();
  const chosen = selected.value && scene.known.get(selected.value);
  const up = useMemo(() => chosen && chain(selected.value, before), [selected.value, tasks.value, chosen]);
  const down = useMemo(() => chosen && chain(selected.value, behind), [selected.value, tasks.value, chosen]);
  const found = words_ ? new Set(scene.nodes.filter(({ row }) => matches(row, words_)).map(({ row }) => row.id)) : null;
  const lit = flash ?? (chosen ? new Set([selected.value, ...up, ...down]) : found);

  const draw = () => {
    if (!canvas.current || !view.current) return;
    const here = (node) => ({ ...node, ...at.current[node.key] });
    const nodes = scene.nodes.map(here);
    const known = new Map(nodes.map((node) => [node.key, node]));
    const bold = new Set();
    const edges = scene.edges.map((edge) => {
      const moved = { from: known.get(edge.from.key), to: known.get(edge.to.key), via: edge.via.map(here) };
      if (scene.bold.has(edge)) bold.add(moved);
      return moved;
    });
    paint(canvas.current, { nodes, edges, bold, lit, selected: selected.value }, view.current, palette(), words);
    if (drag.current?.link) paintLink(canvas.current, drag.current, view.current);
  };
  const soon = useRef({});
  soon.current.draw = draw;
  const redraw = () => {
    soon.current.frame ??= requestAnimationFrame(() => {
      soon.current.frame = null;
      soon.current.draw();
    });
  };

  // New places: what the reader looks at stays where it is, and the others glide.
  useEffect(() => {
    if (!scene.nodes.length) return;
    if (!view.current) view.current = startOf(scene, canvas.current, selected.value);
    const old = { ...at.current };
    const anchor = nearest(scene, old, canvas.current, view.current);
    if (anchor) {
      view.current.x += (old[anchor.row.id].x - anchor.x) * view.current.zoom;
      view.current.y += (old[anchor.row.id].y - anchor.y) * view.current.zoom;
    }
    const shift = anchor ? { x: anchor.x - old[anchor.row.id].x, y: anchor.y - old[anchor.row.id].y } : { x: 0, y: 0 };
    const began = performance.now();
    const step = () => {
      const part = GLIDES ? Math.min(1, (performance.now() - began) / MOVES) : 1;
      for (const { key, x, y } of [...scene.nodes, ...scene.edges.flatMap((edge) => edge.via)]) {
        const from = old[key] ? { x: old[key].x + shift.x, y: old[key].y + shift.y } : { x, y };
        at.current[key] = { x: from.x + (x - from.x) * part, y: from.y + (y - from.y) * part };
      }
      canvas.current?.setAttribute("aria-busy", part < 1);
      redraw();
      if (part < 1) requestAnimationFrame(step);
    };
    step();
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

  const showNode = (node) => {
    if (!node) return;
    const { clientWidth, clientHeight } = canvas.current;
    view.current.zoom = Math.max(view.current.zoom, 0.7);
    view.current.x = clientWidth / 2 - node.x * view.current.zoom;
    view.current.y = clientHeight / 2 - node.y * view.current.zoom;
    redraw();
  };
  const choose = (node) => {
    selected.value = node?.row.id ?? null;
  };
  const pick = (event) => {
    const { x, y, zoom } = view.current;
    return hit(scene, (event.offsetX - x) / zoom, (event.offsetY - y) / zoom);
  };
  const pointers = usePointers({ canvas, view, drag, pick, choose, redraw, linked, open: (node) => (location.hash = href(node.row.id)) });
  async function linked(from, to) {
    try {
      await link(from.row.id, to.row.id);
    } catch (error) {
      refused(error);
      setFlash(new Set([...(error.by ?? []), from.row.id, to.row.id]));
      setTimeout(() => setFlash(null), 5000);
    }
  }
  const tools = {
    in: () => zoomAt(view.current, 1.3, ...middle(canvas.current)),
    out: () => zoomAt(view.current, 1 / 1.3, ...middle(canvas.current)),
    fit: () => (view.current = fit(scene, canvas.current)),
    start: () => (view.current = startOf(scene, canvas.current, null)),
  };
  const keys = (event) => {
    const act_ = KEYS[event.key];
    const name = { "+": "in", "=": "in", "-": "out", 0: "fit" }[event.key];
    if (name) tools[name]();
    else if (event.key.startsWith("Arrow")) {
      const next = neighbour(scene, chosen, event.key) ?? (chosen ? null : scene.nodes[0]);
      if (next) choose(next);
      showNode(next);
    } else if (event.key === "Enter" && chosen) location.hash = href(selected.value);
    else if (event.key === "Escape" && chosen) choose(null);
    else if (event.key === "." && chosen) menu(chosen.row);
    else if (act_ && chosen && about.value.writable && !event.ctrlKey && !event.metaKey) act(act_, chosen.row);
    else return;
    event.preventDefault();
    event.stopPropagation();
    redraw();
  };
  useEffect(() => {
    if (found?.size) showNode(scene.nodes.find(({ row }) => found.has(row.id)));
  }, [words_]);
  return html`<div class="picture">
    <canvas ref=${canvas} tabindex="0" role="application" aria-busy="true" aria-label=${t("graph.label")} onKeyDown=${keys} ...${pointers}></canvas>
    <div class="zoom">${Object.entries(tools).map(([name, run]) => html`<button key=${name} onClick=${() => (run(), redraw())} aria-label=${t(`graph.${name}`)} title=${t(`graph.${name}`)}>${{ in: "+", out: "−", fit: "⤢", start: "◎" }[name]}</button>`)}</div>
    ${chosen ? html`<${Spotlight} row=${tasks.value.get(selected.value)} up=${up} down=${down} />` : about.value.writable && html`<p class="hint soft">${t("graph.hint")}</p>`}
  </div>`;
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

const PAGE = 200;

// The same in words, in the order of the picture.
function List({ scene }) {
  const [pages, setPages] = useState(1);
  const words_ = query.value.trim();
  const nodes = [...scene.nodes].filter(({ row }) => !words_ || matches(row, words_)).sort((a, b) => a.x - b.x || a.y - b.y);
  const links = (ids) => ids.map((id) => html`<${TaskLink} key=${id} id=${id} />`);
  return html`<div class="scroll list"><table>
    <thead><tr>${["task", "state", "waits", "behind"].map((name) => html`<th scope="col">${t(`graph.column.${name}`)}</th>`)}</tr></thead>
    <tbody>${nodes.slice(0, pages * PAGE).map(({ row }) => html`<tr key=${row.id}>
      <td><a href=${href(row.id)}><bdi>${row.subject}</bdi></a> <code>${shortId(row.id)}</code></td>
      <td><${State} name=${row.state} /></td><td>${links(row.blockers ?? [])}</td><td>${links(behind(row.id))}</td></tr>`)}</tbody>
  </table>${nodes.length > pages * PAGE && html`<button class="more" onClick=${() => setPages(pages + 1)}>${t("column.more", { n: nodes.length - pages * PAGE })}</button>`}</div>`;
}
