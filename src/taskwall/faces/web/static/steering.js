// How the reader moves over the picture of the graph: by mouse, by touch, from task to task.
// A view is {x, y, zoom}: where the origin of the picture stands on the canvas, and how large a unit of it is.

import { useRef } from "./vendor/preact.js";
import { extent, palette } from "./drawing.js";
import { BOX } from "./layout.js";
import { about, before, behind } from "./wall.js";

const ZOOM = { least: 0.004, most: 2 };

// Drag the ground to move, a box onto another to link, two fingers to zoom; click to choose, twice to open.
export function usePointers({ canvas, view, drag, pick, choose, redraw, linked, open }) {
  const fingers = useRef(new Map());
  const onPointerDown = (event) => {
    canvas.current.setPointerCapture(event.pointerId);
    fingers.current.set(event.pointerId, event);
    const node = pick(event);
    const link = node && event.pointerType === "mouse" && about.value.writable;
    drag.current = { node, mayLink: link, x: event.offsetX, y: event.offsetY, moved: false };
  };
  const onPointerMove = (event) => {
    const held = drag.current;
    const last = fingers.current.get(event.pointerId);
    if (!held || !last) return void (canvas.current.style.cursor = pick(event) ? "pointer" : "grab");
    if (!held.moved && Math.hypot(event.offsetX - held.x, event.offsetY - held.y) < 5) return;
    held.moved = true;
    if (fingers.current.size === 2) {
      const [other] = [...fingers.current.values()].filter((one) => one.pointerId !== event.pointerId);
      const apart = (one) => Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY);
      zoomAt(view.current, apart(event) / Math.max(1, apart(last)), event.offsetX, event.offsetY);
    } else if (held.mayLink) {
      held.link = { x: event.offsetX, y: event.offsetY };
    } else {
      view.current.x += event.offsetX - last.offsetX;
      view.current.y += event.offsetY - last.offsetY;
    }
    fingers.current.set(event.pointerId, event);
    redraw();
  };
  const onPointerUp = (event) => {
    fingers.current.delete(event.pointerId);
    const held = drag.current;
    if (!held || fingers.current.size) return;
    drag.current = null;
    const node = pick(event);
    if (!held.moved) choose(node);
    else if (held.link && node && node !== held.node) linked(held.node, node);
    redraw();
  };
  const onDblClick = (event) => {
    const node = pick(event);
    if (node) open(node);
  };
  return { onPointerDown, onPointerMove, onPointerUp, onPointerCancel: onPointerUp, onDblClick };
}

export function paintLink(canvas, { node, link }, view) {
  const context = canvas.getContext("2d");
  context.strokeStyle = palette().accent;
  context.lineWidth = 2 / view.zoom;
  context.setLineDash([6 / view.zoom, 4 / view.zoom]);
  context.beginPath();
  context.moveTo(node.x + BOX.width / 2, node.y);
  context.lineTo((link.x - view.x) / view.zoom, (link.y - view.y) / view.zoom);
  context.stroke();
  context.setLineDash([]);
}

export const middle = (canvas) => [canvas.clientWidth / 2, canvas.clientHeight / 2];

const READING = 0.7; // the least zoom at which a box that was gone to can be read

// Brings a box to the middle.
export function centre(view, canvas, node) {
  view.zoom = Math.max(view.zoom, READING);
  const [x, y] = middle(canvas);
  view.x = x - node.x * view.zoom;
  view.y = y - node.y * view.zoom;
}

export function zoomAt(view, factor, x, y) {
  const zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, view.zoom * factor));
  view.x = x - ((x - view.x) * zoom) / view.zoom;
  view.y = y - ((y - view.y) * zoom) / view.zoom;
  view.zoom = zoom;
}

export function fit(scene, canvas) {
  const { left, top, right, bottom } = extent(scene);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const zoom = Math.max(ZOOM.least, Math.min(1.2, (width - 40) / (right - left), (height - 40) / (bottom - top)));
  return { zoom, x: width / 2 - (zoom * (left + right)) / 2, y: height / 2 - (zoom * (top + bottom)) / 2 };
}

const MOVABLE = ["in_progress", "ready", "stale", "waiting"];

// All of a small graph; of a large one, the work that can move with what waits for it. A chosen task comes first.
export function startOf(scene, canvas, id) {
  const whole = fit(scene, canvas);
  if (whole.zoom >= READING && !id) return whole;
  const movable = scene.nodes.filter(({ row }) => MOVABLE.includes(row.state));
  const best = scene.known.get(id) ?? movable.reduce((a, b) => ((b.row.rank ?? 0) > (a?.row.rank ?? -1) ? b : a), null) ?? scene.nodes[0];
  const zoom = canvas.clientWidth < 600 ? 0.8 : 1;
  return { zoom, x: canvas.clientWidth * 0.3 - best.x * zoom, y: canvas.clientHeight * 0.45 - best.y * zoom };
}

export function nearest(scene, old, canvas, view) {
  const [x, y] = middle(canvas).map((half, n) => (half - [view.x, view.y][n]) / view.zoom);
  const away = ({ row }) => Math.hypot(old[row.id].x - x, old[row.id].y - y);
  return scene.nodes.filter(({ row }) => old[row.id]).reduce((a, b) => (a && away(a) <= away(b) ? a : b), null);
}

export function neighbour(scene, from, key) {
  if (!from) return null;
  const beside = { ArrowLeft: before, ArrowRight: behind }[key];
  if (beside) return beside(from.row.id).map((id) => scene.known.get(id)).find(Boolean);
  const sign = key === "ArrowDown" ? 1 : -1;
  const column = scene.nodes.filter((node) => Math.abs(node.x - from.x) < BOX.width && (node.y - from.y) * sign > 1);
  return column.reduce((a, b) => (a && Math.abs(a.y - from.y) <= Math.abs(b.y - from.y) ? a : b), null);
}
