// The board as this page knows it: rows by id, and what follows from them. What a task's state is, the server says.

import { batch, computed, signal } from "./vendor/preact.js";
import { listen } from "./api.js";

export const tasks = signal(new Map());
export const about = signal(null);
export const line = signal("offline");
export const trouble = signal(null);
export const query = signal("");
export const now = signal(Date.now()); // the server's clock; moves slowly, for ages and leases

export const COLUMNS = ["blocked", "ready", "active", "person", "done"];
export const COLUMN_OF = {
  blocked: "blocked",
  ready: "ready",
  stale: "ready",
  in_progress: "active",
  waiting: "person",
  held: "person",
  broken: "person",
  completed: "done",
  cancelled: "done",
};
export const isDone = (row) => COLUMN_OF[row.state] === "done";

let skew = 0;
const EVENTS = {
  board(told) {
    tasks.value = new Map(told.tasks.map((row) => [row.id, row]));
    about.value = told.about;
    trouble.value = null;
  },
  change(told) {
    const next = new Map(tasks.value);
    for (const row of told.tasks) next.set(row.id, row);
    for (const id of told.gone) next.delete(id);
    tasks.value = next;
    trouble.value = null;
  },
  trouble(told) {
    trouble.value = told.error;
  },
};

export function begin() {
  setInterval(() => (now.value = Date.now() + skew), 5000);
  listen(
    (event, told) =>
      batch(() => {
        if (told.now) skew = told.now - Date.now();
        now.value = Date.now() + skew;
        EVENTS[event]?.(told);
      }),
    (state) => (line.value = state),
  );
}

// Most urgent first, then what most waits for, then the oldest.
const order = (a, b) =>
  a.priority - b.priority || (b.rank ?? 0) - (a.rank ?? 0) || (a.createdAt ?? "").localeCompare(b.createdAt ?? "");
const latest = (a, b) => (b.completedAt ?? "").localeCompare(a.completedAt ?? "");

export function matches(row, words) {
  const text = [row.id, row.subject, row.owner, row.claim?.session, ...(row.labels ?? [])].join("\n").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export const columns = computed(() => {
  const found = Object.fromEntries(COLUMNS.map((name) => [name, []]));
  const words = query.value.trim();
  for (const row of tasks.value.values()) {
    if (!words || matches(row, words)) found[COLUMN_OF[row.state]].push(row);
  }
  for (const name of COLUMNS) found[name].sort(name === "done" ? latest : order);
  return found;
});

export const inbox = computed(() => [...tasks.value.values()].filter((row) => row.you).sort(order));

// The tasks that wait for each id.
export const dependents = computed(() => {
  const found = new Map();
  for (const row of tasks.value.values()) {
    for (const id of row.blockers ?? []) found.set(id, [...(found.get(id) ?? []), row.id]);
  }
  return found;
});

export const before = (id) => tasks.value.get(id)?.blockers ?? [];
export const behind = (id) => dependents.value.get(id) ?? [];

export const boardName = computed(() => about.value?.board.replace(/[\\/]\.tasks$/, "").split(/[\\/]/).pop() ?? "");
