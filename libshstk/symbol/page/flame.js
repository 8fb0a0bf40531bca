// SPDX-License-Identifier: LGPL-2.1-or-later
//
// flame.js - flame graphs: where the boxes are, their colours and labels, and drawing them.
//
// layoutFlame() computes where boxes are and knows nothing of a canvas; drawFlame() draws the
// result. Both look only at boxes that are wide enough to be seen, so their work depends on the
// size of the window and not on the size of the profile.
"use strict";

const ROW = 18;
const FONT = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const LEAST_WIDTH = 0.5;
const LABEL_WIDTH = 32;

// ---- Layout ----

// Returns the boxes of a tree for a width in pixels, as columns: node, x, w and row (the root has
// row 0). The node @zoom and its callers have the whole width.
function layoutFlame(tree, zoom, width) {
	const boxes = {node: [], x: [], w: [], row: [], rows: 0};
	const scale = tree.total[zoom] ? width / tree.total[zoom] : 0;
	const put = (node, x, w) => {
		boxes.node.push(node);
		boxes.x.push(x);
		boxes.w.push(w);
		boxes.row.push(tree.depth[node]);
		boxes.rows = Math.max(boxes.rows, tree.depth[node] + 1);
	};

	for (let up = tree.parent[zoom]; up >= 0; up = tree.parent[up])
		put(up, 0, width);
	put(zoom, 0, width);
	for (let i = zoom + 1; i < tree.end[zoom];) {
		const w = tree.total[i] * scale;

		if (w < LEAST_WIDTH) {
			i = tree.end[i];
			continue;
		}
		put(i, (tree.start[i] - tree.start[zoom]) * scale, w);
		i++;
	}
	return boxes;
}

// Returns the box at a place, or -1.
function boxAt(boxes, x, row) {
	for (let b = 0; b < boxes.node.length; b++)
		if (boxes.row[b] === row && x >= boxes.x[b] && x < boxes.x[b] + boxes.w[b])
			return b;
	return -1;
}

// Returns the box of a node, or -1: the node is too narrow, or not below the zoomed node.
function boxOf(boxes, node) {
	return boxes.node.indexOf(node);
}

// Returns the nearest box in the same row to the right (@step 1) or to the left (-1), or -1.
function boxBeside(boxes, box, step) {
	let best = -1;

	for (let b = 0; b < boxes.node.length; b++) {
		const away = (boxes.x[b] - boxes.x[box]) * step;

		if (boxes.row[b] !== boxes.row[box] || b === box || away <= 0)
			continue;
		if (best < 0 || away < (boxes.x[best] - boxes.x[box]) * step)
			best = b;
	}
	return best;
}

// Returns the widest box of a callee of a box, or -1.
function boxAbove(tree, boxes, box) {
	let best = -1;

	for (let b = 0; b < boxes.node.length; b++)
		if (tree.parent[boxes.node[b]] === boxes.node[box] &&
		    (best < 0 || boxes.w[b] > boxes.w[best]))
			best = b;
	return best;
}

// ---- Labels ----

// Returns a name cut to so many characters. The middle is left out, as it tells least.
function cutMiddle(name, chars) {
	const points = Array.from(name);
	const tail = Math.floor((chars - 1) / 2);

	if (points.length <= chars)
		return name;
	return points.slice(0, chars - 1 - tail).join("") + "\u2026" +
		points.slice(points.length - tail).join("");
}

// Returns a frame's name in so many characters: the longest of its forms that fits.
function fitName(p, frame, chars) {
	const {name, label, brief} = p.frames;

	for (const text of [name[frame], label[frame], brief[frame]])
		if (text.length <= chars)
			return text;
	return cutMiddle(brief[frame], chars);
}

// ---- Colours ----

const KIND_HUES = {
	all: [220, 12], command: [225, 35], process: [215, 30], thread: [205, 30], label: [265, 35],
	note: [0, 0], native: [12, 78], inlined: [42, 85], kernel: [330, 55], made: [95, 45],
	python: [205, 65], java: [28, 90], javascript: [55, 80], go: [185, 60], unknown: [0, 0],
	guessed: [290, 42],
};
const KIND_WORDS = {
	native: "native code", inlined: "inlined", kernel: "kernel", made: "made at run time",
	python: "Python", java: "Java", javascript: "JavaScript", go: "Go",
	unknown: "no name known", guessed: "guessed", note: "notes", thread: "thread", process: "process",
	command: "command", all: "all", label: "label",
};

function hashText(text) {
	let h = 2166136261;

	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return (h ^ h >>> 15) >>> 0;
}

// Returns a colour for a box. Text is black on the light page and white on the dark one, so boxes
// are light or dark.
function hsl(hue, saturation, shade, dark) {
	return dark ? `hsl(${hue} ${Math.round(saturation * 0.6)}% ${22 + Math.round(shade * 0.6)}%)` :
		`hsl(${hue} ${saturation}% ${70 + shade}%)`;
}

function kindColour(kind, shade, dark) {
	const [hue, saturation] = KIND_HUES[kind] || KIND_HUES.native;

	return hsl(hue, saturation, shade, dark);
}

function moduleColour(module, shade, dark) {
	if (!module)
		return hsl(0, 0, shade, dark);
	return hsl(hashText(module) % 360, 60, shade, dark);
}

// Returns the colour of a difference: red for what grew, blue for what shrank. The colour is the
// stronger the larger the change is compared with the box.
function growthColour(before, after, dark) {
	const most = Math.max(before, after);
	const part = most ? (after - before) / most : 0;
	const strength = Math.sqrt(Math.abs(part));
	const light = dark ? 26 + 18 * strength : 94 - 30 * strength;

	return `hsl(${part > 0 ? 5 : 215} ${Math.round(85 * strength)}% ${Math.round(light)}%)`;
}

// Returns a function that gives the colour of a node. @by is "kind", "module" or "growth";
// @backwards means that the tree shows the profile before.
function makePalette(p, tree, by, dark, backwards) {
	const known = new Map();

	return node => {
		const frame = tree.frame[node], kind = tree.kind[node];
		const key = frame * 32 + kind;

		if (by === "growth")
			return backwards ? growthColour(tree.total[node], tree.other[node], dark) :
				growthColour(tree.other[node], tree.total[node], dark);
		if (!known.has(key)) {
			const shade = hashText(p.frames.name[frame]) % 13;
			const group = kind < GROUP_KINDS.length;

			known.set(key, by === "module" && !group ?
				moduleColour(p.frames.module[frame], shade, dark) :
				kindColour(p.kinds[kind], shade, dark));
		}
		return known.get(key);
	};
}

// ---- Drawing ----

let charWidth = 0;

function measureFont(context) {
	context.font = FONT;
	charWidth = context.measureText("M".repeat(20)).width / 20;
}

// Returns a function that gives the y of a row, with the root at the top or at the bottom.
function rowPlace(graph) {
	const {boxes, rootBelow, height} = graph;
	const whole = Math.max(boxes.rows * ROW, rootBelow ? height : 0);

	return row => rootBelow ? whole - (row + 1) * ROW : row * ROW;
}

function drawLabel(context, p, frame, x, y, w, right) {
	const from = Math.max(x, 0) + 3;
	const chars = Math.floor((Math.min(x + w, right) - from - 3) / charWidth);

	if (chars >= 2)
		context.fillText(fitName(p, frame, chars), from, y + ROW - 5, chars * charWidth);
}

// Draws a flame graph. @graph: tree, boxes, zoom, hits, palette, rootBelow, height. @view: width
// and height of the visible part, and scroll, in pixels. @theme: colours of the page.
function drawFlame(context, p, graph, view, theme) {
	const {tree, boxes, hits} = graph;
	const place = rowPlace(graph);

	context.clearRect(0, 0, view.width, view.height);
	context.font = FONT;
	for (let b = 0; b < boxes.node.length; b++) {
		const node = boxes.node[b], x = boxes.x[b], w = boxes.w[b];
		const y = place(boxes.row[b]) - view.scroll;
		const frame = tree.frame[node];

		if (y > view.height || y < -ROW)
			continue;
		context.globalAlpha = node !== graph.zoom && isBelow(tree, graph.zoom, node) ? 0.55 : 1;
		context.fillStyle = hits && hits[frame] ? theme.hit : graph.palette(node);
		context.fillRect(x, y, Math.max(w - 0.5, 0.5), ROW - 1);
		if (w < LABEL_WIDTH)
			continue;
		context.fillStyle = hits && hits[frame] ? theme.hitText : theme.text;
		drawLabel(context, p, frame, x, y, w, view.width);
	}
	context.globalAlpha = 1;
}
