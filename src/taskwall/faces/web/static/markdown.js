// Markdown as a tree of elements, never as a string of HTML: what a task says can only ever be text.

import { html } from "./vendor/preact.js";
import { href } from "./parts.js";
import { tasks } from "./wall.js";

const INLINE = new RegExp(
  [
    "(?<code>`[^`\\n]{1,500}`)",
    "(?<strong>\\*\\*[^*\\n]{1,500}\\*\\*)",
    "(?<em>(?<![\\w*])[*_][^*_\\s][^*_\\n]{0,500}[*_](?![\\w*]))",
    "(?<link>\\[[^\\]\\n]{1,300}\\]\\([^)\\s]{1,1000}\\))",
    "(?<url>https?://[^\\s<>()（），。、；]{1,1000})",
    "(?<id>task_[0-9a-z]{10})",
  ].join("|"),
  "g",
);

const SHOWN = {
  code: (text) => html`<code>${text.slice(1, -1)}</code>`,
  strong: (text) => html`<strong>${text.slice(2, -2)}</strong>`,
  em: (text) => html`<em>${text.slice(1, -1)}</em>`,
  link: (text) => {
    const [, words, to] = /^\[(.*)\]\((.*)\)$/.exec(text);
    return outside(to, words);
  },
  url: (text) => outside(text, text),
  id: (text) => (tasks.value.has(text) ? html`<a href=${href(text)}>${tasks.value.get(text).subject}</a>` : text),
};

// Only to where a click can do no harm.
function outside(to, words) {
  if (!/^(https?:|mailto:)/i.test(to)) return words;
  return html`<a href=${to} target="_blank" rel="noopener noreferrer nofollow">${words}</a>`;
}

function inline(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    parts.push(text.slice(end, match.index));
    const [kind] = Object.entries(match.groups).find(([, found]) => found);
    parts.push(SHOWN[kind](match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const FENCE = /^\s*(```|~~~)/;
const STARTS = [ITEM, FENCE, /^#{1,6}\s/, /^>/, /^\s*([-*_]\s*){3,}$/, /^\s*\|.*\|\s*$/];
const starts = (line) => STARTS.some((start) => start.test(line));

export function Markdown({ text }) {
  return html`<div class="markdown">${blocks(text.split("\n"))}</div>`;
}

function blocks(lines) {
  const found = [];
  for (let at = 0; at < lines.length; ) {
    const [block, next] = lines[at].trim() ? blockAt(lines, at) : [null, at + 1];
    if (block) found.push(block);
    at = next;
  }
  return found;
}

// The block that begins on a line, and the line after it.
function blockAt(lines, at) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) {
    const end = until(lines, at + 1, (l) => l.trim().startsWith(fence[1]));
    return [html`<pre><code>${lines.slice(at + 1, end).join("\n")}</code></pre>`, end + 1];
  }
  const head = /^(#{1,6})\s+(.*?)#*$/.exec(line);
  if (head) return [html`<p class="heading h${Math.min(head[1].length, 3)}" role="heading" aria-level="3">${inline(head[2])}</p>`, at + 1];
  if (/^\s*([-*_]\s*){3,}$/.test(line)) return [html`<hr />`, at + 1];
  if (line.startsWith(">")) {
    const end = until(lines, at, (l) => !l.startsWith(">"));
    // One level of quotation; what is quoted within is text.
    return [html`<blockquote>${inline(lines.slice(at, end).map((l) => l.replace(/^[>\s]+/, "")).join("\n"))}</blockquote>`, end];
  }
  if (ITEM.test(line)) return list(lines, at);
  if (/^\s*\|.*\|\s*$/.test(line)) return table(lines, at);
  const end = until(lines, at + 1, (l) => !l.trim() || starts(l));
  return [html`<p>${inline(lines.slice(at, end).join("\n"))}</p>`, end];
}

function until(lines, from, stop) {
  let at = from;
  while (at < lines.length && !stop(lines[at])) at += 1;
  return at;
}

// Items one below the other; deeper ones are set in by their own indent.
function list(lines, at) {
  const end = until(lines, at, (l) => !ITEM.test(l) && !/^\s{2,}\S/.test(l));
  const items = [];
  for (const line of lines.slice(at, end)) {
    const item = ITEM.exec(line);
    if (item) items.push({ depth: Math.min(4, item[1].length >> 1), mark: item[2], text: item[3] });
    else items.at(-1).text += `\n${line.trim()}`;
  }
  const numbered = /\d/.test(items[0].mark);
  const shown = items.map(({ depth, mark, text }) => {
    const box = /^\[([ xX])\]\s+/.exec(text);
    const sign = box ? (box[1] === " " ? "☐" : "☑") : numbered ? mark : depth ? "◦" : "•";
    return html`<li class="depth${depth}"><span aria-hidden="true">${sign}</span><span>${inline(box ? text.slice(box[0].length) : text)}</span></li>`;
  });
  return [numbered ? html`<ol>${shown}</ol>` : html`<ul>${shown}</ul>`, end];
}

function table(lines, at) {
  const end = until(lines, at, (l) => !/^\s*\|.*\|\s*$/.test(l));
  const rows = lines.slice(at, end).filter((l) => !/^[\s|:-]+$/.test(l));
  const cells = rows.map((l) => l.trim().slice(1, -1).split("|").map((cell) => inline(cell.trim())));
  const [first = [], ...rest] = cells;
  return [
    html`<div class="scroll"><table><thead><tr>${first.map((cell) => html`<th>${cell}</th>`)}</tr></thead>
      <tbody>${rest.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div>`,
    end,
  ];
}
