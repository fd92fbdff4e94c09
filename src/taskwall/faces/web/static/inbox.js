// What waits on the person who looks at the page.

import { html } from "./vendor/preact.js";
import { act, refused, say } from "./acts.js";
import { verb } from "./api.js";
import { Markdown } from "./markdown.js";
import { Age, href, named, State, TaskLink, why } from "./parts.js";
import { about, behind, COLUMN_OF, inbox, isDone, tasks } from "./wall.js";
import { t } from "./words.js";

export function Inbox() {
  const others = [...tasks.value.values()].filter((row) => COLUMN_OF[row.state] === "person" && !row.you);
  return html`<div class="inbox">
    <h1>${t("inbox.title")} <span class="count">${inbox.value.length}</span></h1>
    ${!inbox.value.length && html`<p class="soft">${t("inbox.empty")}</p>`}
    ${inbox.value.map((row) => html`<${Matter} key=${row.id} row=${row} />`)}
    ${others.length > 0 && html`<h2>${t("inbox.others")}</h2><ul class="plainlist">${others.map((row) => html`<li key=${row.id}><${TaskLink} id=${row.id} /> ${row.reserved && html`<span class="soft">${t("card.for", { name: row.reserved })}</span>`}</li>`)}</ul>`}
  </div>`;
}

function Matter({ row }) {
  const waiting = behind(row.id).filter((id) => !isDone(tasks.value.get(id)));
  return html`<article class="matter ${row.state}">
    <p class="facts"><${State} name=${row.state} /> <a href=${href(row.id)}><code>${row.id}</code></a> <${Age} stamp=${row.createdAt} /></p>
    <h2><a href=${href(row.id)}><bdi>${row.subject}</bdi></a></h2>
    ${row.question && row.question !== row.subject && html`<${Markdown} text=${row.question} />`}
    ${row.why && html`<p><bdi>${why(row)}</bdi></p>`}
    ${waiting.length > 0 && html`<p class="soft">${t("inbox.unblocks", { names: named(waiting) })}</p>`}
    ${row.state === "broken" && html`<p class="soft">${t("inbox.mend")}</p>`}
    ${about.value.writable && row.state === "waiting" && html`<${Answer} row=${row} />`}
    ${about.value.writable && row.state === "held" && html`<div class="acts"><button class="main" onClick=${() => act("resume", row)}>${t("act.resume")}</button></div>`}
  </article>`;
}

// A button for each choice, and room for an answer in words.
export function Answer({ row }) {
  const send = async (text) => {
    try {
      const { unblocked } = await verb("answer", { task_id: row.id, text });
      say(true, t("said.done", { subject: row.subject, what: t("event.answer") }), [unblocked.length && t("said.unblocked", { names: unblocked.map((one) => one.subject).join(", ") })]);
    } catch (error) {
      refused(error);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    send(new FormData(event.target).get("text"));
  };
  return html`<form class="reply" onSubmit=${submit}>
    ${row.options?.length > 0 && html`<div class="options">${row.options.map((option) => html`<button type="button" key=${option} onClick=${() => send(option)}><bdi>${option}</bdi></button>`)}</div>`}
    <div class="words"><input name="text" aria-label=${t("field.answer")} placeholder=${t("field.answer")} autocomplete="off" required=${Boolean(row.question)} /><button class="main">${t("inbox.send")}</button></div>
  </form>`;
}
