// The shell: which screen is shown, the keys that work everywhere, colours and language.

import { effect, html, render, signal, useEffect } from "./vendor/preact.js";
import { create, dialog, open } from "./acts.js";
import { Agents } from "./agents.js";
import { takeToken } from "./api.js";
import { Board, focusFirst } from "./board.js";
import { Dialog, Said } from "./dialogs.js";
import { Graph } from "./graph.js";
import { Inbox } from "./inbox.js";
import { theme } from "./picture.js";
import { TaskScreen } from "./task.js";
import { about, begin, boardName, inbox, line, query, trouble } from "./wall.js";
import { language, speak, t } from "./words.js";

const SCREENS = { board: Board, graph: Graph, agents: Agents, inbox: Inbox, task: TaskScreen };
const TABS = ["board", "graph", "agents", "inbox"];
const THEMES = ["auto", "light", "dark"];
const THEME = "taskwall.theme";

const route = signal({ screen: "board", id: "" });
const look = signal(localStorage.getItem(THEME) ?? "auto");
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const dark = signal(systemDark.matches);

function readRoute() {
  const [, screen, id = ""] = location.hash.split("/");
  const [known] = [screen].filter((name) => Object.hasOwn(SCREENS, name));
  route.value = { screen: known ?? "board", id: decoded(id) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand
  }
}

function App() {
  const { screen, id } = route.value;
  useEffect(() => document.getElementById("content")?.scrollTo(0, 0), [screen, id]);
  if (line.value === "locked") return html`<main class="empty"><h1>${t("locked.title")}</h1><p>${t("locked.text")}</p></main>`;
  const Screen = SCREENS[screen];
  return html`<a class="skip" href="#content" onClick=${skip}>${t("nav.skip")}</a>
    <${Header} screen=${screen} />
    ${trouble.value && html`<div class="trouble" role="alert"><strong>${t("trouble")}</strong> ${trouble.value.message}</div>`}
    <main id="content" class=${screen} tabindex="-1">${about.value ? html`<${Screen} id=${id} />` : html`<div class="empty"><p>${t("loading")}</p></div>`}</main>
    <${Dialog} /><${Said} />`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}

function Header({ screen }) {
  const waiting = inbox.value.length;
  return html`<header class="head">
    <a class="brand" href="#/"><img src="icon.svg" alt="" width="22" height="22" /><bdi>${boardName.value || "taskwall"}</bdi></a>
    <nav>${TABS.map((name) => html`<a key=${name} href="#/${name}" aria-current=${name === screen ? "page" : null}>${t(`nav.${name}`)}${name === "inbox" && waiting > 0 && html` <span class="count alert">${waiting}</span>`}</a>`)}</nav>
    <input type="search" id="search" placeholder=${`${t("head.search")} ( / )`} aria-label=${t("head.search")} value=${query.value} onInput=${(event) => (query.value = event.target.value)} />
    <div class="more">
      <span class="line ${line.value}" title=${t(`line.${line.value}`)}><i aria-hidden="true"></i><span>${t(`line.${line.value}`)}</span></span>
      ${about.value && html`<span class="actor" title=${t("head.actor", { name: about.value.actor })}><bdi>${t("head.as", { name: about.value.actor })}</bdi>${about.value.person ? "" : ` (${t("head.agent")})`}${about.value.writable ? "" : ` · ${t("head.reading")}`}</span>`}
      ${about.value?.writable && html`<button class="main" onClick=${create} aria-label=${t("head.new")} title="n"><span aria-hidden="true">+</span><span class="wide"> ${t("head.new")}</span></button>`}
      <button class="plain" onClick=${turn} aria-label=${t("head.theme", { name: t(`theme.${look.value}`) })} title=${t("head.theme", { name: t(`theme.${look.value}`) })}>${{ auto: "◐", light: "○", dark: "●" }[look.value]}</button>
      <button class="plain" onClick=${swap} lang=${language.value === "en" ? "zh" : "en"}>${t("head.language")}</button>
      <button class="plain help" onClick=${help} aria-label=${t("head.help")} title=${t("head.help")}>?</button>
    </div>
  </header>`;
}

const turn = () => {
  look.value = THEMES[(THEMES.indexOf(look.value) + 1) % THEMES.length];
  localStorage.setItem(THEME, look.value);
};
const swap = () => speak(language.value === "en" ? "zh" : "en");
const help = () => open({ title: t("help.title"), help: true });
const search = () => document.getElementById("search").focus();

function back() {
  if (document.activeElement.id === "search") {
    query.value = "";
    document.activeElement.blur();
  } else if (route.value.screen === "task") history.length > 1 ? history.back() : (location.hash = "#/");
}

const KEYS = { "/": search, n: create, "?": help, t: turn, l: swap, Escape: back, ArrowDown: focusFirst, ArrowRight: focusFirst };

function keys(event) {
  if (dialog.value || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (typing && event.key !== "Escape") return;
  const tab = TABS[Number(event.key) - 1];
  if (tab) location.hash = `#/${tab}`;
  else if (KEYS[event.key] && (!event.key.startsWith("Arrow") || document.activeElement === document.body)) KEYS[event.key]();
  else return;
  event.preventDefault();
}

takeToken();
readRoute();
addEventListener("hashchange", readRoute);
addEventListener("keydown", keys);
systemDark.addEventListener("change", () => (dark.value = systemDark.matches));
effect(() => {
  document.documentElement.dataset.theme = look.value === "auto" ? (dark.value ? "dark" : "light") : look.value;
  theme.value = document.documentElement.dataset.theme;
});
effect(() => {
  document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
  const waiting = inbox.value.length ? `(${inbox.value.length}) ` : "";
  document.title = `${waiting}${t(`nav.${TABS.includes(route.value.screen) ? route.value.screen : "board"}`)} · ${boardName.value || "taskwall"}`;
});
begin();
render(html`<${App} />`, document.body);
