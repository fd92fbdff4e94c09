// Small pieces that several screens show.

import { html } from "./vendor/preact.js";
import { moment, span, t } from "./words.js";
import { now, tasks } from "./wall.js";

export const href = (id) => `#/task/${encodeURIComponent(id)}`;
export const shortId = (id) => id.replace(/^task_/, "");

// The subject of a task for running text; its id where there is no such task.
export const called = (id) => tasks.value.get(id)?.subject ?? id;
export const named = (ids, most = 5) =>
  ids.slice(0, most).map(called).join(", ") + (ids.length > most ? ` +${ids.length - most}` : "");

export function State({ name }) {
  return html`<span class="state ${name}"><i aria-hidden="true"></i>${t(`state.${name}`)}</span>`;
}

export function TaskLink({ id, state }) {
  const row = tasks.value.get(id);
  const shown = state ?? row?.state ?? "missing";
  return html`<a class="tasklink" href=${href(id)}><${State} name=${shown} /><bdi>${row?.subject ?? id}</bdi></a>`;
}

// How much of a lease is left, as a ring; by hand there is none.
export function Lease({ claim }) {
  if (!claim) return null;
  const left = claim.until ? Math.max(0, claim.until - now.value) : 0;
  const live = claim.lease === "live" && left > 0;
  const said = live ? t("lease.live", { time: span(left) }) : t(`lease.${claim.lease === "live" ? "lapsed" : claim.lease}`);
  const part = live ? Math.min(1, left / (60_000 * claim.ttl)) : 0;
  const around = 2 * Math.PI * 6;
  return html`<svg class="lease ${live ? "live" : claim.lease.replace(" ", "-")}" viewBox="0 0 16 16" role="img" aria-label=${said}>
    <title>${said}</title>
    <circle cx="8" cy="8" r="6" />
    <circle class="left" cx="8" cy="8" r="6" stroke-dasharray="${part * around} ${around}" transform="rotate(-90 8 8)" />
  </svg>`;
}

export function Age({ stamp }) {
  if (!stamp) return null;
  const when = Date.parse(stamp);
  return html`<time datetime=${stamp} title=${moment(stamp)}>${Number.isNaN(when) ? stamp : span(now.value - when)}</time>`;
}

export function Labels({ names = [] }) {
  return names.map((name) => html`<span class="label" key=${name}><bdi>${name}</bdi></span>`);
}

// Two letters and a colour of its own for whoever holds a task.
export function Who({ name }) {
  if (!name) return null;
  const hue = [...name].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) % 360, 7);
  return html`<span class="who" title=${t("card.by", { name })}>
    <span class="face" style=${{ "--hue": hue }} aria-hidden="true">${[...name][0].toUpperCase()}</span><bdi>${name}</bdi>
  </span>`;
}

export function why(row) {
  if (!row.why) return "";
  if (row.why.kind === "lapsed") return t("why.stale", { name: row.owner });
  return row.why.kind === "attempts" ? t("why.attempts", { n: row.attempts }) : row.why.text;
}
