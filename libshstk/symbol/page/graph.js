// SPDX-License-Identifier: LGPL-2.1-or-later
//
// graph.js - the flame graphs in the page: the visible part, the pointer, the chosen box, and keys.
"use strict";

// ---- The graph ----

function theme() {
	const style = getComputedStyle(document.documentElement);
	const colour = name => style.getPropertyValue(name).trim();

	return {text: colour("--text"), hit: colour("--hit"), hitText: colour("--hit-text"),
		back: colour("--back")};
}

function isDark() {
	return matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
}

// Returns the size of the canvas: the visible part, and on paper all of the graph.
function canvasSize(boxes) {
	const scroller = get("graph");
	const height = matchMedia("print").matches ? boxes.rows * ROW : scroller.clientHeight;

	return {width: scroller.clientWidth, height: Math.max(height, 1)};
}

function drawGraph() {
	const tree = shownTree(), zoom = zoomNode();
	const scroller = get("graph");
	const boxes = layoutFlame(tree, zoom, scroller.clientWidth);
	const key = [treeKey(), view.mode, zoom].join();
	const moved = !graph || graph.key !== key;

	graph = {
		key, tree, zoom, boxes, hits,
		palette: makePalette(profile, tree, view.colour, isDark(), view.type === 0),
		rootBelow: view.mode === "flame",
		height: scroller.clientHeight,
	};
	scroller.setAttribute("aria-label", graphLabel());
	get("sizer").style.height = `${boxes.rows * ROW}px`;
	get("hover").hidden = get("tip").hidden = true;
	frameBox(get("selected"), boxOf(boxes, chosenNode()));
	if (moved)
		scroller.scrollTop = graph.rootBelow ? scroller.scrollHeight : 0;
	paint();
}

// Puts an element around a box, or hides the element if there is no box.
function frameBox(element, box) {
	element.hidden = box < 0;
	if (box < 0)
		return;
	element.style.left = `${graph.boxes.x[box]}px`;
	element.style.top = `${rowPlace(graph)(graph.boxes.row[box])}px`;
	element.style.width = `${Math.max(graph.boxes.w[box], 3)}px`;
	element.style.height = `${ROW - 1}px`;
}

function graphLabel() {
	const [, title] = VIEWS.find(v => v[0] === view.mode);

	return `${title} of ${profile.about.title}. Arrow keys choose a box, Enter zooms, Escape ` +
		"resets, question mark for help.";
}

// Draws the visible part, in the canvas' own pixels.
function paint() {
	const canvas = get("canvas"), size = canvasSize(graph.boxes);
	const ratio = window.devicePixelRatio || 1;
	const context = canvas.getContext("2d");

	if (!charWidth)
		measureFont(context);
	canvas.style.width = `${size.width}px`;
	canvas.style.height = `${size.height}px`;
	if (canvas.width !== Math.round(size.width * ratio) ||
	    canvas.height !== Math.round(size.height * ratio)) {
		canvas.width = Math.round(size.width * ratio);
		canvas.height = Math.round(size.height * ratio);
	}
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	drawFlame(context, profile, graph, {...size, scroll: get("graph").scrollTop}, theme());
}

// Returns the box under the mouse, or -1.
function boxUnder(event) {
	const area = get("graph").getBoundingClientRect();
	const y = event.clientY - area.top + get("graph").scrollTop;
	const place = rowPlace(graph);
	const row = graph.rootBelow ? Math.ceil((place(0) + ROW - y) / ROW) - 1 : Math.floor(y / ROW);

	return boxAt(graph.boxes, event.clientX - area.left, row);
}

function hoverBox(event) {
	const box = boxUnder(event);

	frameBox(get("hover"), box);
	get("tip").hidden = box < 0;
	if (box >= 0)
		showTip(graph.boxes.node[box], event);
}

// Shows the tip of a node. The value comes first, so that a long name does not hide it.
function showTip(node, event) {
	get("tip-value").textContent = describeValue(graph.tree, node);
	get("tip-name").textContent = fitName(profile, graph.tree.frame[node], 160);
	placeTip(event);
}

function placeTip(event) {
	const tip = get("tip");
	const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 4);
	const below = event.clientY + 20;

	tip.style.left = `${Math.max(x, 2)}px`;
	tip.style.top = below + tip.offsetHeight < window.innerHeight ? `${below}px` :
		`${Math.max(event.clientY - tip.offsetHeight - 8, 0)}px`;
}

function describeValue(tree, node) {
	const value = tree.total[node];
	let text = formatValueShare(value);

	if (isDiff())
		text += `, ${describeGrowth(value, tree.other[node])}`;
	return text;
}

// Returns the growth as text. Either side of a comparison may be the one that is shown.
function describeGrowth(shown, other) {
	const growth = view.type === 1 ? shown - other : other - shown;

	return `${growth > 0 ? "+" : ""}${formatValue(growth, unit())}`;
}

function clickGraph(event) {
	const box = boxUnder(event);

	if (box < 0)
		return;
	choose(graph.boxes.node[box], graph.tree.frame[graph.boxes.node[box]]);
	zoomTo(chosen.node);
}

function zoomTo(node) {
	changeView({[zoomMember()]: node});
}

// ---- Choosing ----

// Chooses a function. @node is its node in the tree that is shown, or -1; @frame is the function.
function choose(node, frame) {
	chosen = {node, frame, tree: shownTree()};
	// The panel takes room from the rest of the page.
	if (showPanel())
		resize();
	else if (isGraph())
		frameBox(get("selected"), boxOf(graph.boxes, node));
}

// Shows or hides the panel of the chosen function. Returns whether it has come or gone.
function showPanel() {
	const node = chosenNode(), {frame} = chosen;
	const {name, file, line, module} = profile.frames;
	const before = get("panel").hidden;

	get("panel").hidden = frame < 0;
	if (frame >= 0) {
		const tree = shownTree();
		const kind = node >= 0 ? profile.kinds[tree.kind[node]] : "";
		const place = file[frame] ? `${file[frame]}${line[frame] ? `:${line[frame]}` : ""}` : "";

		get("panel-value").textContent = node >= 0 ? describeValue(tree, node) : "";
		get("panel-share").textContent = node > 0 && zoomNode() ?
			`${formatShare(tree.total[node], tree.total[zoomNode()])} of what is shown` : "";
		get("panel-name").textContent = name[frame];
		get("panel-place").textContent = [place, module[frame], KIND_WORDS[kind]]
			.filter(text => text).join(" \u00b7 ");
		get("spoken").textContent = `${get("panel-value").textContent} ${name[frame]}`;
	}
	return before !== get("panel").hidden;
}

async function copyPanel() {
	const text = `${get("panel-name").textContent}\n${get("panel-place").textContent}`;

	try {
		await navigator.clipboard.writeText(text);
		get("spoken").textContent = "Copied";
	} catch (error) {
		// Where a page may not write to the clipboard, the selected text can be copied by
		// hand.
		getSelection().selectAllChildren(get("panel-text"));
	}
}

// ---- Keys ----

// Moves the choice by an arrow key. Callees are above a box in a flame graph, else below it.
function moveChoice(key) {
	const {tree, boxes} = graph;
	const inward = view.mode === "flame" ? "ArrowUp" : "ArrowDown";
	let box = boxOf(boxes, chosenNode());

	if (box < 0)
		box = boxOf(boxes, graph.zoom);
	else if (key === "ArrowLeft" || key === "ArrowRight")
		box = boxBeside(boxes, box, key === "ArrowRight" ? 1 : -1);
	else if (key === inward)
		box = boxAbove(tree, boxes, box);
	else
		box = boxOf(boxes, tree.parent[chosenNode()]);
	if (box < 0)
		return;
	choose(boxes.node[box], tree.frame[boxes.node[box]]);
	showBox(box);
}

// Scrolls until a box is visible; the scroll event draws it.
function showBox(box) {
	const scroller = get("graph");
	const y = rowPlace(graph)(graph.boxes.row[box]);

	if (y < scroller.scrollTop)
		scroller.scrollTop = y;
	else if (y + ROW > scroller.scrollTop + scroller.clientHeight)
		scroller.scrollTop = y + ROW - scroller.clientHeight;
}

function graphKey(event) {
	if (event.ctrlKey || event.metaKey || event.altKey)
		return;
	if (event.key.startsWith("Arrow"))
		moveChoice(event.key);
	else if (event.key === "Enter" && chosenNode() >= 0)
		zoomTo(chosenNode());
	else if (event.key === "Backspace" && zoomNode())
		zoomTo(graph.tree.parent[zoomNode()]);
	else if (event.key === "Home")
		choose(graph.zoom, graph.tree.frame[graph.zoom]);
	else
		return;
	event.preventDefault();
}

// Undoes one thing at a time: the zoom, then the search, then the choice.
function escape() {
	if (zoomNode())
		changeView({[zoomMember()]: 0});
	else if (view.query)
		changeView({query: ""});
	else if (chosen.frame >= 0)
		choose(-1, -1);
}

function searchKey(event) {
	if (event.key === "Enter") {
		writeAddress(true);
		nextMatch();
	} else if (event.key === "Escape") {
		changeView({query: ""});
		(isGraph() ? get("graph") : get("list")).focus();
	} else {
		return;
	}
	event.preventDefault();
	event.stopPropagation();
}

// Chooses the match behind the one that is chosen.
function nextMatch() {
	if (!hits)
		return;
	if (!isGraph()) {
		nextRow();
		return;
	}
	const nodes = graph.boxes.node.filter(node => hits[graph.tree.frame[node]]);
	const node = nodes.find(n => n > chosenNode()) ?? nodes[0];

	if (node === undefined)
		return;
	choose(node, graph.tree.frame[node]);
	showBox(boxOf(graph.boxes, node));
}

function nextRow() {
	const {rows} = list;
	const isHit = row => hits[view.mode === "table" ? row : forwardTree().frame[row]];

	for (let i = 1; i <= rows.length; i++) {
		const place = (list.chosen + i + rows.length) % rows.length;

		if (isHit(rows[place])) {
			chooseRow(list, place);
			return;
		}
	}
}

function pageKey(event) {
	const writing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);

	if (event.ctrlKey || event.metaKey || event.altKey || get("help").open)
		return;
	if (event.key === "Escape") {
		escape();
	} else if (writing) {
		return;
	} else if (event.key === "/") {
		get("search").focus();
		get("search").select();
	} else if (event.key === "?") {
		get("help").showModal();
	} else if (VIEWS[Number(event.key) - 1]) {
		changeView({mode: VIEWS[Number(event.key) - 1][0]});
		(isGraph() ? get("graph") : get("list")).focus();
	} else {
		return;
	}
	event.preventDefault();
}
