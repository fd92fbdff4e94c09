// A layered layout: what waits stands to the right of what it waits for. Runs in a worker; linear but for sorting.
// Layers by longest path, order by the mean place of neighbours, places by least squares, components packed in rows.

export const BOX = { width: 200, height: 46 };
const GAP = { x: 64, y: 14 };
const LANE = 8; // the height that a passing edge takes
const FARTHEST = 12; // layers over which an edge is led around boxes; a longer one goes straight
const SWEEPS = 4;

// Where the edge between two tasks passes a layer in between; it has a place like a task.
export const passage = (from, to, layer) => `${from}\n${to}\n${layer}`;

// nodes: ids, oldest first, edges: [from, to] among them, before: places of an earlier layout, by which ties are kept.
// Returns {id: [x, y]}, the middle of each box, and of each passage.
export function layout(nodes, edges, before = {}) {
  const graph = new Map(nodes.map((id, n) => [id, made(id, n, BOX.height, before[id]?.[1] ?? n)]));
  for (const [from, to] of edges) {
    graph.get(from).out.push(graph.get(to));
    graph.get(to).in.push(graph.get(from));
  }
  setLayers([...graph.values()]);
  const all = [...graph.values()].concat(edges.flatMap(([from, to]) => passages(graph.get(from), graph.get(to))));
  return pack(components(all).map(arrange));
}

const made = (id, n, height, y, layer = 0) => ({ id, n, height, y, layer, in: [], out: [] });

// Splits a long edge into steps of one layer, through passages.
function passages(from, to) {
  const steps = to.layer - from.layer;
  if (steps < 2 || steps > FARTHEST) return [];
  from.out.splice(from.out.indexOf(to), 1);
  to.in.splice(to.in.indexOf(from), 1);
  const found = [];
  for (let layer = from.layer + 1; layer < to.layer; layer += 1) {
    found.push(made(passage(from.id, to.id, layer - from.layer), from.n, LANE, from.y, layer));
  }
  [from, ...found].forEach((node, at) => {
    const next = found[at] ?? to;
    node.out.push(next);
    next.in.push(node);
  });
  return found;
}

// The longest path from a start decides; a ring is entered at its oldest node. Starts move up to what waits for them.
function setLayers(nodes) {
  const open = new Map(nodes.map((node) => [node, node.in.length]));
  const order = nodes.filter((node) => !node.in.length);
  const taken = new Set(order);
  let oldest = 0;
  for (let at = 0; order.length < nodes.length || at < order.length; at += 1) {
    if (at === order.length) {
      while (taken.has(nodes[oldest])) oldest += 1;
      taken.add(nodes[oldest]);
      order.push(nodes[oldest]);
    }
    for (const next of order[at].out) {
      if (!taken.has(next)) next.layer = Math.max(next.layer, order[at].layer + 1);
      open.set(next, open.get(next) - 1);
      if (!open.get(next) && !taken.has(next)) {
        taken.add(next);
        order.push(next);
      }
    }
  }
  for (const node of order.reverse()) {
    const after = node.out.map((next) => next.layer).filter((layer) => layer > node.layer);
    if (!node.in.length && after.length) node.layer = Math.min(...after) - 1;
  }
}

function components(nodes) {
  const seen = new Set();
  const found = [];
  for (const start of nodes) {
    if (seen.has(start)) continue;
    const part = [start];
    seen.add(start);
    for (const node of part) {
      for (const next of [...node.in, ...node.out]) {
        if (!seen.has(next)) {
          seen.add(next);
          part.push(next);
        }
      }
    }
    found.push(part);
  }
  return found;
}

// Places within one component; its corner is at 0, 0.
function arrange(part) {
  const layers = [];
  for (const node of part) (layers[node.layer] ??= []).push(node);
  const columns = layers.filter(Boolean);
  for (const column of columns) settle(column.sort((a, b) => a.y - b.y || a.n - b.n), () => []);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0;
    for (const column of forward ? columns : [...columns].reverse()) {
      const beside = (node) => (forward ? node.in : node.out);
      for (const node of column) node.wish = mean(beside(node)) ?? node.y;
      settle(column.sort((a, b) => a.wish - b.wish || a.n - b.n), beside);
    }
  }
  const top = part.reduce((least, node) => Math.min(least, node.y), Infinity);
  const bottom = part.reduce((most, node) => Math.max(most, node.y), -Infinity);
  columns.forEach((column, x) => column.forEach((node) => Object.assign(node, { x, y: node.y - top })));
  return { part, width: columns.length * (BOX.width + GAP.x), height: bottom - top + BOX.height + GAP.y };
}

const mean = (nodes) => (nodes.length ? nodes.reduce((sum, node) => sum + node.y, 0) / nodes.length : null);

// Heights in a column, in its order, as near to the neighbours' as fits: pools of boxes that push each other.
function settle(column, beside) {
  const pools = [];
  let taken = 0;
  for (const node of column) {
    node.offset = taken + node.height / 2;
    taken += node.height + GAP.y;
    const wish = (mean(beside(node)) ?? node.y) - node.offset;
    let pool = { sum: wish, nodes: [node] };
    while (pools.length && pools.at(-1).sum / pools.at(-1).nodes.length > pool.sum / pool.nodes.length) {
      const last = pools.pop();
      pool = { sum: last.sum + pool.sum, nodes: last.nodes.concat(pool.nodes) };
    }
    pools.push(pool);
  }
  for (const { sum, nodes } of pools) for (const node of nodes) node.y = sum / nodes.length + node.offset;
}

// Components in rows, in the order of their oldest tasks, about half as high as wide.
function pack(parts) {
  const area = parts.reduce((sum, { width, height }) => sum + width * height, 0);
  const most = Math.max(...parts.map(({ width }) => width), Math.sqrt(2 * area));
  const places = {};
  let [left, top, deep] = [0, 0, 0];
  for (const { part, width, height } of parts) {
    if (left && left + width > most) [left, top, deep] = [0, top + deep, 0];
    for (const { id, x, y } of part) {
      places[id] = [left + x * (BOX.width + GAP.x) + BOX.width / 2, top + y + BOX.height / 2];
    }
    left += width;
    deep = Math.max(deep, height);
  }
  return places;
}

if (globalThis.WorkerGlobalScope) {
  onmessage = ({ data: { run, nodes, edges, before } }) => {
    const began = performance.now();
    postMessage({ run, places: layout(nodes, edges, before), took: performance.now() - began });
  };
}
