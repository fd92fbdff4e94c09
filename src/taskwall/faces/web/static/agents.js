// Who is at work: sessions with what they hold, and a lane for each from claim to end.

import { html, useEffect, useState } from "./vendor/preact.js";
import { act, releaseSession } from "./acts.js";
import { get } from "./api.js";
import { href, Lease, Who } from "./parts.js";
import { about, now, tasks } from "./wall.js";
import { moment, span, t } from "./words.js";

export function Agents() {
  const held = [...tasks.value.values()].filter((row) => row.state === "in_progress" || row.state === "stale");
  const sessions = Object.values(Object.groupBy(held, (row) => `${row.owner}\n${row.claim?.session ?? ""}`));
  return html`<div class="agents">
    <h1>${t("agents.now")} <span class="count">${sessions.length}</span></h1>
    ${!sessions.length && html`<p class="soft">${t("agents.nobody")}</p>`}
    <div class="sessions">${sessions.map((rows) => html`<${Session} key=${rows[0].owner + rows[0].claim?.session} rows=${rows} />`)}</div>
    <${Lanes} />
  </div>`;
}

function Session({ rows }) {
  const { owner, claim } = rows[0];
  const [open, setOpen] = useState(false);
  const lease = claim?.lease ?? "by hand";
  const beats = rows.filter((row) => row.claim?.until).map((row) => row.claim.until - 60_000 * row.claim.ttl);
  return html`<section class="session ${lease.replace(" ", "-")}">
    <header><h2><${Who} name=${owner ?? "?"} /></h2><span class="alive">${t(`agents.${lease}`)}</span></header>
    <p class="soft">${claim && claim.session !== owner && html`<bdi>${t("agents.session", { name: claim.session })}</bdi> · `}${beats.length > 0
      ? t("agents.beat", { time: span(now.value - Math.max(...beats)) })
      : html`<time>${claim && t("time.ago", { time: span(now.value - Date.parse(claim.since)) })}</time>`}</p>
    <ul class="plainlist">${rows.map((row) => html`<li key=${row.id}>
      <${Lease} claim=${row.claim} /> <a href=${href(row.id)}><bdi>${row.subject}</bdi></a>
      <span class="soft">${row.claim?.until ? t("lease.live", { time: span(row.claim.until - now.value) }) : t(`lease.${lease}`)}</span>
      ${about.value.writable && owner !== about.value.actor && html`<button class="small" onClick=${() => act(row.state === "stale" ? "claim" : "steal", row)}>${t(row.state === "stale" ? "act.claim" : "act.steal")}</button>`}
    </li>`)}</ul>
    <div class="acts">
      ${about.value.writable && claim && html`<button onClick=${() => releaseSession(owner, claim.session)}>${t("agents.release")}</button>`}
      ${claim && html`<button aria-expanded=${open} onClick=${() => setOpen(!open)}>${t("agents.log")}</button>`}
    </div>
    ${open && html`<${Log} session=${claim.session} />`}
  </section>`;
}

const LOG_EVERY = 3000;

function Log({ session }) {
  const [lines, setLines] = useState(null);
  useEffect(() => {
    const load = () => get("log", { session }).then((told) => setLines(told.lines), () => {});
    load();
    const timer = setInterval(load, LOG_EVERY);
    return () => clearInterval(timer);
  }, [session]);
  if (!lines?.length) return html`<p class="soft">${lines ? t("agents.nolog") : t("loading")}</p>`;
  return html`<ol class="log" tabindex="0" aria-label=${t("agents.log")}>${lines.map(({ who, text }) => html`<li><span class="soft">${who}</span> <bdi>${text}</bdi></li>`)}</ol>`;
}

const WINDOWS = { "1": 3_600_000, "8": 28_800_000, "24": 86_400_000 };
const HEIGHT = 30;

function Lanes() {
  const [lanes, setLanes] = useState(null);
  const [hours, setHours] = useState("");
  const claims = JSON.stringify([...tasks.value.values()].map((row) => row.claim && [row.id, row.claim.epoch, row.claim.lease]).filter(Boolean));
  useEffect(() => void get("lanes").then((told) => setLanes(told.lanes), () => {}), [claims, tasks.value.size]);
  if (!lanes) return null;
  const ended = (one) => (one.to ? Date.parse(one.to) : now.value);
  const all = lanes.flatMap((lane) => lane.spans);
  const first = Math.min(...all.map((one) => Date.parse(one.from)), now.value - 60_000);
  const from = hours ? now.value - WINDOWS[hours] : first;
  const shown = lanes.filter((lane) => lane.spans.some((one) => ended(one) >= from));
  const x = (time) => (100 * Math.max(0, time - from)) / (now.value - from);
  return html`<section class="lanes"><header><h2>${t("agents.lanes")}</h2>
    <div class="switch">${["1", "8", "24", ""].map((n) => html`<button key=${n} class=${n === hours ? "on" : ""} aria-pressed=${n === hours} onClick=${() => setHours(n)}>${n ? t("time.h", { n }) : t("agents.all")}</button>`)}</div></header>
    ${!all.length && html`<p class="soft">${t("agents.nolanes")}</p>`}
    ${shown.map((lane) => html`<div class="lane" key=${`${lane.actor}\n${lane.session}`}>
      <div class="name" title=${lane.session}><${Who} name=${lane.actor} />${lane.session !== lane.actor && html`<bdi class="soft">${lane.session}</bdi>`}</div>
      <svg height=${HEIGHT} role="img" aria-label=${`${lane.actor}: ${lane.spans.length}`}>
        ${[25, 50, 75].map((at) => html`<line class="grid" x1="${at}%" x2="${at}%" y1="0" y2=${HEIGHT} />`)}
        ${lane.spans.filter((one) => ended(one) >= from).map((one) => {
          const [left, right] = [x(Date.parse(one.from)), x(ended(one))];
          return html`<rect class="span ${one.end}" x="${left}%" y="4" width="${Math.max(0.4, right - left)}%" height=${HEIGHT - 8} rx="4" onClick=${() => (location.hash = href(one.task))}><title>${`${one.subject}\n${moment(one.from)} · ${t(`end.${one.end}`)}`}</title></rect>`;
        })}
      </svg></div>`)}
    ${shown.length > 0 && html`<div class="lane axis"><div class="name"></div><div class="times"><span>${moment(from)}</span><span>${moment(now.value)}</span></div></div>
      <p class="legend">${["open", "done", "released", "expired", "stolen"].map((end) => html`<span class="key ${end}"><i aria-hidden="true"></i>${t(`end.${end}`)}</span>`)}</p>
      <details><summary>${t("agents.table")}</summary><div class="scroll"><table><thead><tr><th>${t("detail.owner")}</th><th>${t("graph.column.task")}</th><th>${t("agents.from")}</th><th>${t("agents.to")}</th><th>${t("agents.end")}</th></tr></thead>
        <tbody>${shown.flatMap((lane) => lane.spans.map((one) => html`<tr><td><bdi>${lane.actor}</bdi></td><td><a href=${href(one.task)}><bdi>${one.subject || one.task}</bdi></a></td><td>${moment(one.from)}</td><td>${one.to ? moment(one.to) : ""}</td><td>${t(`end.${one.end}`)}</td></tr>`))}</tbody></table></div></details>`}
  </section>`;
}
