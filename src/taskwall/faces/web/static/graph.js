// The graph: open work and its neighbours, laid out in a worker; as a picture, or as a list that says the same.

import { html, signal, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { mermaid, palette, svg } from "./drawing.js";
import { passage } from "./layout.js";
import { href, shortId, State, TaskLink } from "./parts.js";
import { Picture, selected, words } from "./picture.js";
import { behind, boardName, isDone, matches, query, tasks } from "./wall.js";
import { t } from "./words.js";

const finished = signal(false);
const critical = signal(true);
const asList = signal(false);
const kept = new Set(); // what was shown once stays, so that finishing a task moves nothing

const makeUrl = globalThis.trustedTypes?.createPolicy("taskwall", { createScriptURL: (url) => url });
const workerUrl = new URL("layout.js", import.meta.url).href;

// The rows to show, oldest first, and the edges among them.
function shownRows() {
  const all = tasks.value;
  const chosen = new Set();
  for (const row of all.values()) {
    if (finished.value || !isDone(row) || kept.has(row.id)) chosen.add(row.id);
    if (!isDone(row)) for (const id of row.blockers ?? []) if (all.has(id)) chosen.add(id);
  }
  if (!finished.value) for (const id of chosen) kept.add(id);
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

// What is drawn: boxes and edges with their places, and which edges are of the critical path.
function makeScene(rows, edges, places) {
  const place = (key) => ({ key, x: places[key][0], y: places[key][1] });
  const nodes = rows.filter((row) => places[row.id]).map((row) => ({ ...place(row.id), row }));
  const known = new Map(nodes.map((node) => [node.key, node]));
  const via = (from, to) => {
    const found = [];
    for (let n = 1, key; places[(key = passage(from, to, n))]; n += 1) found.push(place(key));
    return found;
  };
  const drawn = edges
    .filter((ids) => ids.every((id) => known.has(id)))
    .map(([from, to]) => ({ from: known.get(from), to: known.get(to), via: via(from, to) }));
  const path = critical.value ? criticalPath(rows) : [];
  const steps = new Set(path.slice(1).map((id, n) => `${path[n]}\n${id}`));
  const bold = new Set(drawn.filter(({ from, to }) => steps.has(`${from.key}\n${to.key}`)));
  return { nodes, edges: drawn, bold, known };
}

export function Graph({ id }) {
  if (id) kept.add(id);
  useEffect(() => {
    if (id) selected.value = id;
  }, [id]);
  const { rows, edges } = useMemo(shownRows, [tasks.value, finished.value, id]);
  const places = usePlaces(rows, edges);
  const scene = useMemo(() => makeScene(rows, edges, places), [rows, places, critical.value]);
  const toggle = (of, key) => html`<button class=${of.value ? "on" : ""} aria-pressed=${of.value} onClick=${() => (of.value = !of.value)}>${t(key)}</button>`;
  return html`<div class="graph">
    <h1 class="hidden">${t("nav.graph")}</h1>
    <div class="tools">
      ${toggle(critical, "graph.path")} ${toggle(finished, "graph.finished")}
      <button aria-pressed=${asList.value} onClick=${() => (asList.value = !asList.value)}>${t(asList.value ? "graph.picture" : "graph.list")}</button>
      <button onClick=${() => save("svg", "image/svg+xml", svg(scene, palette(), words))}>${t("graph.svg")}</button>
      <button onClick=${() => save("mmd", "text/plain", mermaid(scene, words))}>${t("graph.mermaid")}</button>
      <span class="soft">${t("graph.counts", { n: rows.length, m: tasks.value.size - rows.length })}</span>
    </div>
    ${!rows.length ? html`<p class="empty">${t("graph.empty")}</p>` : asList.value ? html`<${List} scene=${scene} />` : html`<${Picture} scene=${scene} />`}
  </div>`;
}

function save(suffix, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement("a"), { href: url, download: `${boardName.value || "board"}.${suffix}` }).click();
  URL.revokeObjectURL(url);
}

const PAGE = 200;

// The same in words, in the order of the picture.
function List({ scene }) {
  const [pages, setPages] = useState(1);
  const sought = query.value.trim();
  const nodes = [...scene.nodes].filter(({ row }) => !sought || matches(row, sought)).sort((a, b) => a.x - b.x || a.y - b.y);
  const links = (ids) => ids.map((id) => html`<${TaskLink} key=${id} id=${id} />`);
  return html`<div class="scroll list"><table>
    <thead><tr>${["task", "state", "waits", "behind"].map((name) => html`<th scope="col">${t(`graph.column.${name}`)}</th>`)}</tr></thead>
    <tbody>${nodes.slice(0, pages * PAGE).map(({ row }) => html`<tr key=${row.id}>
      <td><a href=${href(row.id)}><bdi>${row.subject}</bdi></a> <code>${shortId(row.id)}</code></td>
      <td><${State} name=${row.state} /></td><td>${links(row.blockers ?? [])}</td><td>${links(behind(row.id))}</td></tr>`)}</tbody>
  </table>${nodes.length > pages * PAGE && html`<button class="more" onClick=${() => setPages(pages + 1)}>${t("column.more", { n: nodes.length - pages * PAGE })}</button>`}</div>`;
}
