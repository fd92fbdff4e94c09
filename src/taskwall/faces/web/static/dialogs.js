// One dialog at a time: a form for an act, a menu of acts, a choice, or the help. And what was said last.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { act, close, dialog, explain, keyOf, KEYS, open, said, unsay } from "./acts.js";
import { Refusal } from "./api.js";
import { State } from "./parts.js";
import { isDone, matches, tasks } from "./wall.js";
import { t } from "./words.js";

export function Dialog() {
  const asked = dialog.value;
  const box = useRef();
  useEffect(() => {
    if (asked && !box.current.open) box.current.showModal();
    if (!asked && box.current.open) box.current.close();
  }, [asked]);
  const outside = (event) => event.target === box.current && close();
  return html`<dialog ref=${box} onClose=${close} onMouseDown=${outside} aria-labelledby="dialog-title">
    ${asked && html`<div class="inside" key=${asked.title}>
      <h2 id="dialog-title"><bdi>${asked.title}</bdi></h2>
      ${asked.about && asked.about !== asked.title && html`<p class="about"><bdi>${asked.about}</bdi></p>`}
      ${asked.text && html`<p>${asked.text}</p>`}
      ${asked.menu ? html`<${Menu} ...${asked} />` : asked.help ? html`<${Help} />` : html`<${Form} ...${asked} />`}
    </div>`}
  </dialog>`;
}

function Menu({ menu, row }) {
  const keys = (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (step) document.activeElement[step]?.focus();
    else if (menu.includes(KEYS[event.key])) {
      close();
      act(KEYS[event.key], row);
    } else return;
    event.preventDefault();
  };
  return html`<div class="menu" onKeyDown=${keys}>
    ${menu.map((name) => html`<button key=${name} class=${name === "cancel" ? "danger" : ""} onClick=${() => (close(), act(name, row))}>
      ${t(`act.${name}`)} ${keyOf(name) && html`<kbd>${keyOf(name)}</kbd>`}
    </button>`)}
    ${!menu.length && html`<p>${t("act.none")}</p>`}
    <button onClick=${close}>${t("act.dismiss")} <kbd>Esc</kbd></button>
  </div>`;
}

function Form({ fields = [], submit, danger, run, choices }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const attempt = async (work) => {
    setBusy(true);
    try {
      const next = await work();
      if (next?.choices) open(next);
      else close();
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      setError(explain(refusal));
    } finally {
      setBusy(false);
    }
  };
  const send = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const value = ({ name, kind }) => (kind === "flag" ? form.has(name) : form.get(name).trim());
    attempt(() => run(Object.fromEntries(fields.map((field) => [field.name, value(field)]))));
  };
  const sendByKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return html`<form onSubmit=${send} onKeyDown=${sendByKey}>
    ${fields.map((field, n) => html`<${Field} key=${field.name} ...${field} first=${n === 0} />`)}
    ${error && html`<div class="refusal" role="alert"><strong>${error.title}</strong>${error.lines.map((line) => html`<p>${line}</p>`)}</div>`}
    <div class="buttons">
      <button type="button" onClick=${close}>${t(danger || choices ? "act.keep" : "act.dismiss")}</button>
      ${choices?.map(({ label, run }) => html`<button type="button" class="danger" disabled=${busy} onClick=${() => attempt(run)}>${label}</button>`)}
      ${submit && html`<button class=${danger ? "danger" : "main"} disabled=${busy}>${submit}</button>`}
    </div>
  </form>`;
}

function Field({ name, kind, value = "", required, choices, options, without, first }) {
  const input = useRef();
  useEffect(() => {
    if (first) input.current?.focus();
  }, []);
  const label = t(`field.${name}`);
  if (kind === "flag") return html`<label class="flag"><input type="checkbox" name=${name} /> ${label}</label>`;
  if (kind === "task") return html`<${Picker} ...${{ name, label, without, required }} />`;
  if (kind === "choice") {
    return html`<label>${label}<select name=${name}>
      ${choices.map(([key, words]) => html`<option value=${key} selected=${key === value}>${words}</option>`)}
    </select></label>`;
  }
  const choose = (option) => {
    input.current.value = option;
    input.current.form.requestSubmit();
  };
  return html`
    ${options?.length > 0 && html`<div class="options">${options.map((o) => html`<button type="button" onClick=${() => choose(o)}><bdi>${o}</bdi></button>`)}</div>`}
    <label>${label}${kind === "text"
      ? html`<textarea ref=${input} name=${name} rows=${name === "description" ? 8 : 3} required=${required}>${value}</textarea>`
      : html`<input ref=${input} name=${name} value=${value} required=${required} autocomplete="off" />`}</label>`;
}

const MOST_FOUND = 8;

// Finds a task by some words of it.
function Picker({ name, label, without, required }) {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState("");
  const input = useRef();
  useEffect(() => input.current.focus(), []);
  const all = [...tasks.value.values()];
  const found = words ? all.filter((row) => row.id !== without && !isDone(row) && matches(row, words)).slice(0, MOST_FOUND) : [];
  return html`<label>${label}<input ref=${input} value=${words} autocomplete="off" required=${required && !chosen}
      onInput=${(event) => (setWords(event.target.value), setChosen(""))} /></label>
    <input type="hidden" name=${name} value=${chosen || found[0]?.id || words} />
    <div class="found" role="listbox" aria-label=${label}>
      ${found.map((row, n) => html`<button type="button" role="option" key=${row.id}
        aria-selected=${row.id === (chosen || found[0].id)} onClick=${() => setChosen(row.id)}>
        <${State} name=${row.state} /><bdi>${row.subject}</bdi></button>`)}
    </div>`;
}

const HELP = [
  ["1 2 3 4", "screens"],
  ["← ↑ → ↓", "move"],
  ["Enter", "open"],
  [".", "menu"],
  ["c d r a k b h m", "acts"],
  ["/", "search"],
  ["n", "new"],
  ["+ - 0", "graph"],
  ["t l", "look"],
  ["Esc", "back"],
  ["?", "help"],
];

function Help() {
  return html`<dl class="keys">
    ${HELP.map(([keys, name]) => html`<div key=${name}><dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${t(`help.${name}`)}</dd></div>`)}
  </dl>
  <div class="buttons"><button class="main" onClick=${close}>${t("act.dismiss")}</button></div>`;
}

export function Said() {
  return html`<div class="said" role="status" aria-live="polite">
    ${said.value.map(({ id, good, title, lines }) => html`<div key=${id} class=${good ? "good" : "bad"}>
      <button class="plain" onClick=${() => unsay(id)} aria-label=${t("act.dismiss")}>×</button>
      <strong><bdi>${title}</bdi></strong>${lines.map((line) => html`<p><bdi>${line}</bdi></p>`)}
    </div>`)}
  </div>`;
}
