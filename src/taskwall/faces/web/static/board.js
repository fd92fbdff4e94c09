// The board: five columns of cards. Drag a card, or act on it by keys.

import { html, signal, useLayoutEffect } from "./vendor/preact.js";
import { act, drop, KEYS, menu } from "./acts.js";
import { Age, href, Labels, Lease, shortId, State, Who, why } from "./parts.js";
import { about, COLUMNS, columns, query, tasks } from "./wall.js";
import { t } from "./words.js";

const PAGE = 60; // cards of a column before "more"
const shown = signal({});
const unfolded = signal(false);
const dragged = signal(null);
const target = signal(null);

export function Board() {
  const found = columns.value;
  useLayoutEffect(refocus);
  if (!tasks.value.size) {
    return html`<div class="empty"><h1>${t("board.empty")}</h1><p>${t("board.empty.hint")}</p></div>`;
  }
  return html`<div class="board" onKeyDown=${keys} onFocusIn=${(event) => (focused = event.target.closest(".card")?.dataset.id)}>
    <h1 class="hidden">${t("nav.board")}</h1>
    ${COLUMNS.map((name) => html`<${Column} key=${name} name=${name} rows=${found[name]} />`)}
  </div>`;
}

function Column({ name, rows }) {
  const folded = name === "done" && !unfolded.value;
  const most = (shown.value[name] ?? 1) * PAGE;
  const over = dragged.value && target.value === name;
  const events = {
    onDragOver: (event) => (event.preventDefault(), (target.value = name)),
    onDragLeave: (event) => !event.currentTarget.contains(event.relatedTarget) && (target.value = null),
    onDrop: (event) => (event.preventDefault(), dropped(name)),
  };
  return html`<section class="column ${name} ${folded ? "folded" : ""} ${over ? "over" : ""}" aria-labelledby="column-${name}" ...${events}>
    <header>
      <h2 id="column-${name}">${t(`column.${name}`)} <span class="count">${rows.length}</span></h2>
      ${name === "done" && html`<button class="plain" aria-expanded=${!folded} onClick=${() => (unfolded.value = folded)}
        >${t(folded ? "column.unfold" : "column.fold")}</button>`}
    </header>
    ${!folded && html`<ul>
      ${rows.slice(0, most).map((row) => html`<${Card} key=${row.id} row=${row} />`)}
      ${!rows.length && html`<li class="none">${t(`column.empty.${query.value.trim() ? "search" : name}`)}</li>`}
      ${rows.length > most && html`<li><button class="more" onClick=${() => (shown.value = { ...shown.value, [name]: most / PAGE + 4 })}
        >${t("column.more", { n: rows.length - most })}</button></li>`}
    </ul>`}
  </section>`;
}

function Card({ row }) {
  const total = row.blockers?.length ?? 0;
  const done = total - (row.waits?.length ?? 0);
  const drag = {
    draggable: about.value.writable,
    onDragStart: (event) => {
      event.dataTransfer.setData("text/plain", row.id);
      event.dataTransfer.effectAllowed = "move";
      dragged.value = row.id;
    },
    onDragEnd: () => (dragged.value = target.value = null),
  };
  return html`<li class="card ${row.state} ${dragged.value === row.id ? "dragged" : ""}" data-id=${row.id} ...${drag}>
    <div class="top">
      <a class="subject" href=${href(row.id)}><bdi>${row.subject}</bdi></a>
      ${about.value.writable && html`<button class="plain dots" aria-label=${t("card.menu", { name: row.subject })} onClick=${() => menu(row)}>⋯</button>`}
    </div>
    ${row.why && html`<p class="why"><bdi>${why(row)}</bdi></p>`}
    <div class="facts">
      ${["stale", "held", "broken", "cancelled"].includes(row.state) && html`<${State} name=${row.state} />`}
      ${row.priority !== 2 && html`<span class="priority p${row.priority}" title=${t("card.priority", { n: row.priority })}>P${row.priority}</span>`}
      ${row.state === "in_progress" || row.state === "stale" || row.state === "completed"
        ? html`<span class="holder"><${Lease} claim=${row.claim} /><${Who} name=${row.owner} /></span>`
        : row.reserved && html`<span class="for"><bdi>${t("card.for", { name: row.reserved })}</bdi></span>`}
      ${total > 0 && row.state === "blocked" && html`<${Progress} done=${done} total=${total} />`}
      ${row.frees > 0 && html`<span class="frees">${t("card.frees", { n: row.frees })}</span>`}
      <${Labels} names=${row.labels} />
      <span class="id"><code>${shortId(row.id)}</code>${" "}<${Age} stamp=${row.completedAt ?? row.startedAt ?? row.createdAt} /></span>
    </div>
  </li>`;
}

function Progress({ done, total }) {
  const words = t("card.waits", { done, total });
  return html`<span class="progress" title=${words}>
    <svg viewBox="0 0 24 4" preserveAspectRatio="none" aria-hidden="true"><rect width="24" height="4" rx="2" /><rect class="part" width=${(24 * done) / total} height="4" rx="2" /></svg>
    <span aria-hidden="true">${done}/${total}</span><span class="hidden">${words}</span>
  </span>`;
}

function dropped(column) {
  const row = tasks.value.get(dragged.value);
  dragged.value = target.value = null;
  if (row) drop(row, column);
}

const STEPS = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };

// Keys on a card: arrows move, letters act.
function keys(event) {
  const card = event.target.closest(".card");
  if (!card || event.ctrlKey || event.metaKey || event.altKey) return;
  const row = tasks.value.get(card.dataset.id);
  const name = KEYS[event.key];
  if (event.key in STEPS) {
    move(card, ...STEPS[event.key]);
  } else if (event.key === "." && row) {
    menu(row);
  } else if (name && row && about.value.writable) {
    act(name, row);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

function move(card, across, down) {
  const lanes = [...document.querySelectorAll(".column")].map((lane) => [...lane.querySelectorAll(".card")]);
  const at = lanes.findIndex((lane) => lane.includes(card));
  const beside = across ? lanes.filter((lane, n) => lane.length && (n - at) * across > 0) : [lanes[at]];
  const lane = across < 0 ? beside.at(-1) : beside[0];
  const next = lane?.[Math.min(lanes[at].indexOf(card) + down, lane.length - 1)];
  next?.querySelector(".subject").focus();
}

let focused = null;

// A card that went to another column keeps the focus.
function refocus() {
  if (focused && document.activeElement === document.body) {
    document.querySelector(`.card[data-id="${CSS.escape(focused)}"] .subject`)?.focus();
  }
}

// The first card, for who comes by keys.
export const focusFirst = () => document.querySelector(".card .subject")?.focus();
