// What the page says, in the language of the reader. Text of tasks, and the server's own words, stay as they are.

import { signal } from "./vendor/preact.js";
import en from "./words/en.js";
import zh from "./words/zh.js";

const CATALOGUES = { en, zh };
const KEY = "taskwall.language";

export const language = signal(
  localStorage.getItem(KEY) ?? (navigator.languages?.find((tag) => /^(en|zh)/.test(tag)) ?? "en").slice(0, 2),
);

export function speak(name) {
  localStorage.setItem(KEY, name);
  language.value = name;
}

// The words for a key, with {names} filled in; `{n|one|many}` chooses by number.
export function t(key, values = {}) {
  const words = CATALOGUES[language.value][key] ?? en[key] ?? key;
  return words
    .replace(/\{(\w+)\|([^|}]*)\|([^}]*)\}/g, (_, name, one, many) => (values[name] === 1 ? one : many))
    .replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

const STEPS = [["d", 86_400], ["h", 3600], ["m", 60]];

// How long ago or how much longer, in its largest unit.
export function span(milliseconds) {
  const seconds = Math.max(0, milliseconds / 1000);
  const [unit, size] = STEPS.find(([, size]) => seconds >= size) ?? ["s", 1];
  return t(`time.${unit}`, { n: Math.floor(seconds / size) });
}

export function moment(stamp) {
  const when = new Date(stamp);
  if (Number.isNaN(when.getTime())) return stamp;
  const own = navigator.languages?.find((tag) => tag.startsWith(language.value));
  return when.toLocaleString(own ?? language.value, { dateStyle: "medium", timeStyle: "short" });
}
