// The server: its token, its verbs, its live events.

const KEY = "taskwall.token";
const SILENCE = 40_000; // the server pings every 15 s; after this long without a word the line is dead
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;

// A request that was not carried out, with the server's own words for it.
export class Refusal extends Error {
  constructor({ code, message, by = [], next = "", task = null }) {
    super(message);
    Object.assign(this, { code, by, next, task });
  }
}

// The token comes in the fragment of the first link, which no server or log ever sees, and leaves the address bar.
export function takeToken() {
  const found = /[#&]token=([\w-]+)/.exec(location.hash);
  if (found) {
    localStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", `${location.pathname}#/`);
  }
}

// What nobody can see, or what turns text around, is made visible wherever it comes from.
function visible(_, value) {
  if (typeof value !== "string") return value;
  const shown = value.replaceAll("\r\n", "\n");
  return shown.replace(UNSAFE, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);
}

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${localStorage.getItem(KEY) ?? ""}`, ...options.headers };
  try {
    return await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal({ code: "offline", message: "the server does not answer" });
  }
}

async function data(response) {
  const text = await response.text();
  if (response.status === 500) throw new Refusal({ code: "internal", message: text });
  const envelope = JSON.parse(text, visible);
  if (!envelope.ok) throw new Refusal(envelope.error);
  return envelope.data;
}

export async function verb(name, args) {
  const headers = { "Content-Type": "application/json" };
  return data(await ask(`/api/verbs/${name}`, { method: "POST", headers, body: JSON.stringify(args) }));
}

export async function get(path, args = {}) {
  return data(await ask(`/api/${path}?${new URLSearchParams(args)}`));
}

// Every event of the board, for ever; `onLine` is told "online", "offline", or "locked" when the token is not good.
export async function listen(onEvent, onLine) {
  for (let pause = 300; ; pause = Math.min(2 * pause, 5000)) {
    try {
      const stop = new AbortController();
      const response = await ask("/api/events", { signal: stop.signal });
      if (response.status === 401) return onLine("locked");
      if (response.ok) {
        onLine("online");
        pause = 150;
        await read(response.body.getReader(), stop, onEvent);
      }
    } catch {
      // said below, and tried again
    }
    onLine("offline");
    await new Promise((done) => setTimeout(done, pause));
  }
}

async function read(reader, stop, onEvent) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const dead = setTimeout(() => stop.abort(), SILENCE);
    const { value, done } = await reader.read().finally(() => clearTimeout(dead));
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
    rest = parts.pop();
    for (const part of parts) {
      const event = /^event: (.*)$/m.exec(part);
      const text = /^data: (.*)$/m.exec(part);
      if (event && text) onEvent(event[1].trim(), JSON.parse(text[1], visible));
    }
  }
}
