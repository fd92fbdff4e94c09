// What a person can do: each act asks what it must know, calls its verb, and says what came of it.
// Which acts are legal the server says; one that is not is refused by it, with the reason.

import { signal } from "./vendor/preact.js";
import { get, Refusal, verb } from "./api.js";
import { called, named } from "./parts.js";
import { about, COLUMN_OF } from "./wall.js";
import { t } from "./words.js";

export const dialog = signal(null); // what is asked right now: {title, text, fields, buttons, run, …}
export const said = signal([]); // what was said last: {id, good, title, lines}

let count = 0;

export function say(good, title, lines = []) {
  const id = (count += 1);
  said.value = [...said.value.slice(-2), { id, good, title, lines: lines.filter(Boolean) }];
  setTimeout(() => unsay(id), good ? 5000 : 12_000);
}

export const unsay = (id) => (said.value = said.value.filter((one) => one.id !== id));

// Refusals of which the way out is in view; that of the others is told in the server's words.
const PLAIN = "blocked held reserved already_resolved not_claimed cycle already_claimed not_owner superseded".split(" ");

export function explain(error) {
  const by = error.code === "cycle" ? error.by.map(called).join(" → ") : named(error.by);
  const known = t(`code.${error.code}`, { by });
  const title = known.startsWith("code.") ? error.message : known;
  const next = PLAIN.includes(error.code) ? "" : error.next;
  return { title, lines: [error.message === title ? "" : error.message, next].filter(Boolean) };
}

export function refused(error) {
  if (!(error instanceof Refusal)) throw error;
  const { title, lines } = explain(error);
  say(false, title, lines);
}

async function done(name, args) {
  const found = await verb(name, args);
  const freed = (found.unblocked ?? []).map((task) => task.subject);
  const task = found.task ?? found.tasks?.[0];
  const what = t(`event.${name.replace("_task", "").replace("_person", "")}`);
  say(true, t(found.already === true ? "said.already" : "said.done", { subject: task?.subject ?? "", what }), [
    freed.length ? t("said.unblocked", { names: freed.join(", ") }) : "",
    ...(found.notices ?? []),
  ]);
  return found;
}

const lines = (text) => text.split("\n").map((part) => part.trim()).filter(Boolean);
const words = (text) => text.split(/[,，、]/).map((part) => part.trim()).filter(Boolean);
const priorities = () => [0, 1, 2, 3, 4].map((n) => [String(n), t(`priority.${n}`)]);

// What is asked before an act, and the verb that it then calls. Without `fields` it is done at once.
const ACTS = {
  claim: { key: "c", run: (row) => done("claim_task", { task_id: row.id }) },
  complete: {
    key: "d",
    fields: () => [{ name: "result", kind: "text" }],
    run: (row, given) => done("complete_task", { task_id: row.id, ...given }),
  },
  answer: {
    key: "a",
    title: (row) => row.question ?? row.subject,
    fields: (row) => [{ name: "answer", kind: "text", options: row.options, required: Boolean(row.question) }],
    run: (row, given) => done("answer", { task_id: row.id, text: given.answer }),
  },
  release: {
    key: "r",
    fields: () => [{ name: "reason" }, { name: "failed", kind: "flag" }],
    run: (row, given) => done("release_task", { task_id: row.id, ...given }),
  },
  steal: {
    title: (row) => t("ask.steal", { name: row.owner }),
    fields: () => [{ name: "reason", required: true }],
    run: (row, given) => done("claim_task", { task_id: row.id, steal: true, ...given }),
  },
  resume: { run: (row) => done("resume", { task_id: row.id }) },
  reopen: { run: (row) => done("reopen", { task_id: row.id }) },
  ask: {
    key: "k",
    fields: () => [{ name: "question", kind: "text", required: true }, { name: "options", kind: "text" }],
    run: (row, given) => done("ask_person", { task_id: row.id, question: given.question, options: lines(given.options) }),
  },
  block: {
    key: "b",
    fields: (row) => [{ name: "blocker", kind: "task", without: row.id, required: true }],
    run: (row, given) => link(given.blocker, row.id),
  },
  hold: {
    key: "h",
    fields: () => [{ name: "reason" }],
    run: (row, given) => done("hold", { task_id: row.id, ...given }),
  },
  note: {
    key: "m",
    needs: "edit",
    fields: () => [{ name: "note", kind: "text", required: true }],
    run: (row, given) => done("update_task", { task_id: row.id, ...given }),
  },
  edit: {
    key: "e",
    prepare: async (row) => (await verb("get_task", { task_id: row.id })).task,
    fields: (task) => [
      { name: "subject", value: task.subject, required: true },
      { name: "description", kind: "text", value: task.description },
      { name: "priority", kind: "choice", choices: priorities(), value: String(task.priority ?? 2) },
      { name: "labels", value: (task.labels ?? []).join(", ") },
      ...(task.status === "pending" ? [{ name: "owner", value: task.owner ?? "" }] : []),
    ],
    run: edit,
  },
  cancel: { fields: () => [], danger: true, run: cancel },
};

export const KEYS = Object.fromEntries(Object.entries(ACTS).flatMap(([name, act]) => (act.key ? [[act.key, name]] : [])));
export const keyOf = (name) => ACTS[name].key;

// The acts that the server's actions allow, in the order in which they are offered.
export const offered = (actions) => Object.keys(ACTS).filter((name) => actions.includes(ACTS[name].needs ?? name));

export async function act(name, row) {
  const { title, fields, prepare, danger, run } = ACTS[name];
  try {
    if (!fields) return await run(row, {});
    const subject = prepare ? await prepare(row) : row;
    open({
      title: title?.(row) ?? t(`ask.${name}`),
      text: t(`ask.${name}.text`) === `ask.${name}.text` ? "" : t(`ask.${name}.text`),
      about: row.subject,
      fields: fields(subject),
      submit: t(`act.${name}`),
      danger,
      run: (given) => run(subject, given),
    });
  } catch (error) {
    refused(error);
  }
}

export const open = (asked) => (dialog.value = asked);
export const close = () => (dialog.value = null);

async function edit(task, given) {
  const before = { subject: task.subject, description: task.description, priority: String(task.priority ?? 2) };
  const changed = Object.fromEntries(Object.entries(before).filter(([k, v]) => given[k] !== v).map(([k]) => [k, given[k]]));
  if (given.labels !== (task.labels ?? []).join(", ")) changed.labels = words(given.labels);
  if ("owner" in given && given.owner !== (task.owner ?? "")) changed.owner = given.owner || "-";
  if (Object.keys(changed).length) await done("update_task", { task_id: task.id, ...changed });
}

async function cancel(row) {
  try {
    await done("cancel", { task_id: row.id });
  } catch (error) {
    if (error.code !== "open_dependents") throw error;
    const choice = (name) => ({ label: t(`ask.${name}`), run: () => done("cancel", { task_id: row.id, [CHOICES[name]]: true }) });
    const text = t("ask.dependents.text", { names: named(error.by) });
    return { title: t("ask.dependents"), text, about: row.subject, choices: [choice("drop"), choice("cascade")] };
  }
}

const CHOICES = { drop: "drop_edges", cascade: "cascade" };

export async function link(before, after) {
  await verb("update_task", { task_id: after, addBlockedBy: [before] });
  say(true, t("said.link", { before: called(before), after: called(after) }));
}

export function releaseSession(actor, session) {
  open({
    title: t("ask.session", { name: actor }),
    text: t("ask.session.text"),
    fields: [{ name: "reason" }],
    submit: t("agents.release"),
    danger: true,
    run: (given) => done("release_task", { session, ...given }),
  });
}

export function create() {
  if (!about.value?.writable) return;
  open({
    title: t("ask.new"),
    fields: [
      { name: "subject", required: true },
      { name: "description", kind: "text" },
      { name: "priority", kind: "choice", choices: priorities(), value: "2" },
      { name: "blockers" },
      { name: "labels" },
      { name: "owner" },
    ],
    submit: t("head.new"),
    run: ({ blockers, labels, ...given }) =>
      done("create_task", { ...given, blockedBy: words(blockers), labels: words(labels) }),
  });
}

export async function menu(row) {
  try {
    const { actions } = await get("actions", { task: row.id });
    open({ title: row.subject, menu: offered(actions), row });
  } catch (error) {
    refused(error);
  }
}

// What dropping a task on a column means; the server refuses what cannot be.
export function drop(row, column) {
  const from = COLUMN_OF[row.state];
  if (from === column) return say(true, t("drop.same"));
  if (column === "ready") {
    if (from === "blocked") return say(false, t("drop.blocked", { names: named(row.waits ?? []) }));
    if (row.state === "waiting" || row.state === "broken") return say(false, t("drop.person"));
    return act({ active: "release", person: "resume", done: "reopen" }[from], row);
  }
  const answers = column === "done" && row.state === "waiting";
  return act(answers ? "answer" : { active: "claim", done: "complete", person: "ask", blocked: "block" }[column], row);
}
