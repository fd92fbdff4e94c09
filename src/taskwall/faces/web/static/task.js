// One task, whole, under a URL of its own.

import { html, useEffect, useState } from "./vendor/preact.js";
import { act, keyOf, KEYS, offered, refused } from "./acts.js";
import { get, verb } from "./api.js";
import { Markdown } from "./markdown.js";
import { Age, called, href, Labels, Lease, State, TaskLink, Who } from "./parts.js";
import { tasks } from "./wall.js";
import { moment, t } from "./words.js";
import { Answer } from "./inbox.js";

export function TaskScreen({ id }) {
  const row = tasks.value.get(id);
  const [found, setFound] = useState(null);
  useEffect(() => {
    let current = true;
    // The wall does not hold what is archived.
    load(id).then((told) => current && setFound(told), (error) => current && (row ? refused(error) : setFound({ task: {}, missing: id })));
    return () => (current = false);
  }, [id, row]);
  if (found?.missing === id) return html`<div class="empty"><h1>${t("task.missing", { id })}</h1><p><a href="#/">${t("task.back")}</a></p></div>`;
  if (found?.task.id !== id) return html`<div class="empty"><p>${t("loading")}</p></div>`;
  return html`<${Task} row=${row ?? found.task} ...${found} />`;
}

async function load(task_id) {
  const [shown, log, legal] = await Promise.all([
    verb("get_task", { task_id }),
    verb("history", { task_id }).catch(() => ({ events: [] })), // an unreadable file has no history
    get("actions", { task: task_id }),
  ]);
  return { ...shown, events: log.events, actions: legal.actions };
}

function Task({ row, task, blockers, children, dependents, missing, would_unblock, events, actions }) {
  const keys = (event) => {
    const name = KEYS[event.key];
    if (!name || !offered(actions).includes(name) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    act(name, row);
  };
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  const unblocks = new Set(would_unblock.map((one) => one.id));
  return html`<article class="task">
    <header>
      <p class="over"><a href="#/">${t("task.back")}</a> · <a href="#/graph/${encodeURIComponent(task.id)}">${t("task.chain")}</a></p>
      <h1><bdi>${task.subject}</bdi></h1>
      <p class="facts"><${State} name=${row.state} /> <${Who} name=${row.owner} /> <${Labels} names=${task.labels} /> <code>${task.id}</code></p>
      <div class="acts">${offered(actions).map((name) => html`<button key=${name} class=${MAIN.includes(name) ? "main" : name === "cancel" ? "danger" : ""} onClick=${() => act(name, row)}>
        ${t(`act.${name}`)} ${keyOf(name) && html`<kbd>${keyOf(name)}</kbd>`}</button>`)}</div>
    </header>
    <div class="body">
      <div class="story">
        ${task.question && html`<section class="question"><h2>${t("task.question")}</h2>
          <${Markdown} text=${task.question} />
          ${task.answer ? html`<p class="answer"><strong>${t("task.answered")}:</strong> <bdi>${task.answer}</bdi></p>` : actions.includes("answer") && html`<${Answer} row=${{ ...row, question: task.question, options: task.options }} />`}
        </section>`}
        ${task.result && html`<section><h2>${t("task.result")}</h2><${Markdown} text=${task.result} /></section>`}
        <section><h2>${t("task.description")}</h2>
          ${task.description ? html`<${Markdown} text=${task.description} />` : html`<p class="soft">${t("task.none")}</p>`}</section>
        <${Proof} ...${task} />
        ${task.notes?.length > 0 && html`<section><h2>${t("task.notes")}</h2>
          ${task.notes.map((note) => html`<div class="note"><p class="soft"><${Who} name=${note.by} /> <${Age} stamp=${note.at} /></p><${Markdown} text=${note.text} /></div>`)}</section>`}
        <${History} events=${events} />
      </div>
      <aside>
        ${task.reasons.length > 0 && html`<section><h2>${t("task.reasons")}</h2><ul class="plainlist">${task.reasons.map((reason) => html`<li><${Reason} ...${reason} /></li>`)}</ul></section>`}
        <${Related} name="blockers" tasks=${[...blockers, ...missing.map((id) => ({ id, state: "missing" }))]} />
        <${Related} name="children" tasks=${children} />
        <${Related} name="dependents" tasks=${dependents} marked=${unblocks} />
        <${Details} task=${task} row=${row} />
        ${task.notices?.length > 0 && html`<section><h2>${t("task.notices")}</h2><ul class="plainlist">${task.notices.map((notice) => html`<li>${notice}</li>`)}</ul></section>`}
      </aside>
    </div>
  </article>`;
}

const MAIN = ["claim", "complete", "answer", "resume"];

function Related({ name, tasks, marked }) {
  if (!tasks.length) return null;
  return html`<section><h2>${t(`task.${name}`)} <span class="count">${tasks.length}</span></h2><ul class="plainlist">
    ${tasks.map(({ id, state }) => html`<li key=${id}><${TaskLink} id=${id} state=${state === "missing" ? state : undefined} />${marked?.has(id) && html` <span class="frees">↳ ${t("task.unblocks")}</span>`}</li>`)}
  </ul></section>`;
}

function Reason({ kind, subject, how, text }) {
  const key = how ? `reason.${how}` : `reason.${kind}`;
  const words = t(key, { subject: subject && called(subject), id: subject, text });
  return html`<bdi>${words === key ? text : words}</bdi>`;
}

function Details({ task, row }) {
  const when = (stamp) => stamp && html`<time datetime=${stamp}>${moment(stamp)}</time>`;
  const facts = {
    id: html`<code>${task.id}</code>`,
    reserved: row.reserved,
    priority: t(`priority.${task.priority ?? 2}`),
    parent: task.parent && html`<a href=${href(task.parent)}><bdi>${called(task.parent)}</bdi></a>`,
    session: row.claim && html`<bdi>${row.claim.session}</bdi>`,
    lease: row.claim && html`<${Lease} claim=${row.claim} /> ${row.claim.until ? "" : t(`lease.${row.claim.lease}`)}`,
    created: task.createdAt && html`${when(task.createdAt)} ${task.createdBy && html`<${Who} name=${task.createdBy} />`}`,
    started: when(task.startedAt),
    completed: when(task.completedAt),
    attempts: task.attempts,
    metadata: task.metadata && html`<pre>${JSON.stringify(task.metadata, null, 1)}</pre>`,
  };
  return html`<section><h2>${t("task.details")}</h2><dl class="details">
    ${Object.entries(facts).map(([name, fact]) => fact && html`<div key=${name}><dt>${t(`detail.${name}`)}</dt><dd>${fact}</dd></div>`)}
  </dl>
  ${task.extra && html`<details><summary>${t("task.extra")}</summary><pre>${JSON.stringify(task.extra, null, 1)}</pre></details>`}</section>`;
}

// What was promised, and what was found when the task was completed.
function Proof({ products = [], checks = [], evidence = {} }) {
  const { products: sizes = {}, checks: ran = [], ...rest } = evidence;
  if (!products.length && !checks.length && !Object.keys(evidence).length) return null;
  const found = (glob) => (glob in sizes ? t("evidence.bytes", { n: sizes[glob] }) : t("task.unverified"));
  return html`
    ${products.length > 0 && html`<section><h2>${t("task.products")}</h2><ul class="plainlist">${products.map((glob) => html`<li><code>${glob}</code> <span class="soft">${found(glob)}</span></li>`)}</ul></section>`}
    ${checks.length > 0 && html`<section><h2>${t("task.checks")}</h2><ul class="plainlist">${checks.map((command) => html`<li><${Check} command=${command} ran=${Array.isArray(ran) && ran.find((one) => one?.command === command)} /></li>`)}</ul></section>`}
    ${Object.keys(rest).length > 0 && html`<section><h2>${t("task.evidence")}</h2><pre class="evidence">${JSON.stringify(rest, null, 1)}</pre></section>`}`;
}

function Check({ command, ran }) {
  if (!ran) return html`<code>${command}</code> <span class="soft">${t("task.unverified")}</span>`;
  return html`<code>${command}</code> <span class="soft">${t("evidence.check", { exit: ran.exit, seconds: ran.seconds })}</span>
    ${ran.output && html`<details><summary>${t("evidence.output")}</summary><pre>${ran.output}</pre></details>`}`;
}

const TOLD = ["at", "by", "session", "verb", "task", "epoch", "subject"];

function word(kind, name) {
  const words = t(`${kind}.${name}`);
  return words === `${kind}.${name}` ? name : words;
}

function History({ events }) {
  if (!events.length) return null;
  const value = (found) => (typeof found === "string" ? found : JSON.stringify(found));
  const words = ({ fields = [], ...event }) => {
    const told = Object.entries(event).filter(([key]) => !TOLD.includes(key));
    const rest = fields.filter((name) => !(name in event) && !(name === "notes" && event.note)); // else it is told anyway
    return rest.length ? [["fields", rest.map((name) => word("told", name)).join(", ")], ...told] : told;
  };
  return html`<section><h2>${t("task.history")}</h2><ol class="history" reversed>
    ${[...events].reverse().map((event) => html`<li><time datetime=${event.at} title=${event.at}>${moment(event.at)}</time>
      <${Who} name=${event.by} /> <strong>${word("event", event.verb)}</strong>
      ${words(event).map(([key, found]) => html`<span class="soft">${word("told", key)}${found === true ? null : html`: <bdi>${value(found)}</bdi>`}</span> `)}</li>`)}
  </ol></section>`;
}
