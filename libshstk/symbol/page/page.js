// SPDX-License-Identifier: LGPL-2.1-or-later
//
// page.js - what the page shows, and how it is told to show something else.
//
// All that is shown follows from the profile and from `view`, which also stands in the address:
// whoever changes it calls changeView(), which writes the address and draws. So Back and Forward,
// and an address that was kept, lead to the same picture.
"use strict";

const VIEWS = [["flame", "Flame graph"], ["icicle", "Icicle"], ["callers", "Callers"],
	["table", "Table"], ["tree", "Tree"]];
const COLOURS = [["kind", "by kind"], ["module", "by module"], ["growth", "by growth"]];
const LEGEND_ENTRIES = 12;
const SEARCH_WAIT = 120; // ms of silence until an address is written

const get = id => document.getElementById(id);

let profile = null;
let first = null; // the view that the page opens with
let view = null;
let hits = null; // a mark for each frame, or null: nothing is searched
let graph = null; // what the canvas shows, see drawFlame()
let list = null;
let opened = new Set(); // nodes that the tree shows the children of
let chosen = {node: -1, frame: -1};
let addressTimer = 0;

// ---- the address ----

// Short names of the members of a view in the address.
const ADDRESS = {mode: "v", type: "t", command: "c", process: "p", thread: "h", zoom: "z",
	callersZoom: "zc", query: "q", ignoreCase: "i", colour: "k", sort: "s"};

function readAddress() {
	const words = new URLSearchParams(location.hash.slice(1));
	const ret = {...first};

	for (const [member, word] of Object.entries(ADDRESS)) {
		const text = words.get(word);

		if (text === null)
			continue;
		if (typeof first[member] === "number")
			ret[member] = Number(text) || 0;
		else
			ret[member] = typeof first[member] === "boolean" ? text === "1" : text;
	}
	return checkView(ret);
}

// Addresses are written by hand, too: what there is not is not shown.
function checkView(v) {
	const has = (names, name, or) => names.some(n => n[0] === name) ? name : or;

	v.mode = has(VIEWS, v.mode, first.mode);
	v.colour = has(colours(), v.colour, first.colour);
	if (!["none", "merged", "each"].includes(v.thread))
		v.thread = first.thread;
	if (!(v.type in profile.types))
		v.type = first.type;
	return v;
}

function writeAddress(keep) {
	const words = new URLSearchParams();

	for (const [member, word] of Object.entries(ADDRESS))
		if (view[member] !== first[member])
			words.set(word, view[member] === true ? "1" : view[member] === false ? "0" :
				view[member]);
	if (`#${words}` === (location.hash || "#"))
		return;
	try {
		history[keep ? "pushState" : "replaceState"](null, "", `#${words}`);
	} catch (error) {
		// Some places do not let a page change its address; it is only a nicety.
	}
}

// @change: members of the view that become others. What is only looked for is not kept as a
// step of its own.
function changeView(change, keep = true) {
	Object.assign(view, change);
	clearTimeout(addressTimer);
	if (keep)
		writeAddress(true);
	else
		addressTimer = setTimeout(() => writeAddress(false), SEARCH_WAIT);
	drawAll();
}

// ---- what is shown ----

function isDiff() {
	return Boolean(profile.about.diff);
}

function colours() {
	return isDiff() ? COLOURS : COLOURS.filter(c => c[0] !== "growth");
}

// In a difference the values are those before (0) and after (1).
function otherType() {
	return isDiff() ? 1 - view.type : -1;
}

function unit() {
	return profile.types[view.type].unit;
}

// What takes long to make is kept until it is asked for with another key.
const made = {};

function keep(what, key, make) {
	if (!made[what] || made[what].key !== key)
		made[what] = {key, value: make()};
	return made[what].value;
}

function treeKey() {
	return [view.type, view.command, view.process, view.thread].join();
}

function forwardTree() {
	return keep("forward", treeKey(), () => {
		opened = new Set();
		return buildTree(profile, view, view.type, otherType());
	});
}

function backwardTree() {
	return keep("backward", treeKey(), () => invertTree(profile, forwardTree()));
}

// Sums of the functions below what is zoomed.
function functionSums() {
	return keep("sums", [treeKey(), view.zoom].join(),
		() => sumFunctions(profile, forwardTree(), zoomNode()));
}

function isGraph() {
	return !["table", "tree"].includes(view.mode);
}

// The tree that is shown, and the node that is zoomed in it.
function shownTree() {
	return view.mode === "callers" ? backwardTree() : forwardTree();
}

function zoomMember() {
	return view.mode === "callers" ? "callersZoom" : "zoom";
}

function zoomNode() {
	const node = view[zoomMember()];

	return node > 0 && node < shownTree().nr ? node : 0;
}

function searchPattern() {
	if (!view.query)
		return null;
	try {
		return new RegExp(view.query, view.ignoreCase ? "iu" : "u");
	} catch (error) {
		return error;
	}
}

function drawAll() {
	const pattern = searchPattern();

	hits = pattern instanceof Error ? null :
		keep("hits", String(pattern), () => findFrames(profile, pattern));
	get("graph").hidden = !isGraph();
	get("list").hidden = isGraph();
	showControls();
	showMatches(pattern);
	showSum();
	showLegend();
	showPanel();
	// Last, in the room that the others leave.
	if (isGraph())
		drawGraph();
	else if (view.mode === "table")
		drawTable();
	else
		drawTree();
}

// ---- header ----

function formatValueShare(value) {
	return `${formatValue(value, unit())} (${formatShare(value, forwardTree().total[0])})`;
}

function showSum() {
	const tree = forwardTree(), type = profile.types[view.type];
	const node = zoomNode(), shown = shownTree();
	let text = `${type.type}: ${formatValue(tree.total[0], type.unit)}`;

	if (type.note)
		text += ` (${type.note})`;
	if (isDiff())
		text += `; ${profile.types[otherType()].type}: ${formatValue(tree.other[0], type.unit)}`;
	for (const [what, value] of keep("missing", treeKey(), () => missingShares(tree)))
		if (value)
			text += `; ${what} ${formatShare(value, tree.total[0])}`;
	if (node)
		text += `; shown: ${formatValueShare(shown.total[node])}`;
	if (view.mode === "callers")
		text += `; callers with less than ${100 * LEAST_PART} % are left out`;
	get("sum").textContent = text;
}

// What is not known of the stacks: of those that are cut off, and of those that end in code
// whose name is not known.
function missingShares(tree) {
	const note = profile.kinds.indexOf("note"), unknown = profile.kinds.indexOf("unknown");
	let cut = 0, nameless = 0;

	for (let i = 0; i < tree.nr; i++) {
		if (tree.kind[i] === note && profile.frames.name[tree.frame[i]] === "[truncated]")
			cut += tree.total[i];
		if (tree.kind[i] === unknown)
			nameless += tree.self[i];
	}
	return [["truncated stacks", cut], ["code without a name", nameless]];
}

function formatStart(about) {
	const parts = [];

	if (about.start)
		parts.push(new Date(about.start / 1e6).toLocaleString(undefined,
			{dateStyle: "medium", timeStyle: "medium"}));
	if (about.duration)
		parts.push(`${formatValue(about.duration, "nanoseconds")} long`);
	return parts.join(", ");
}

function showHeader() {
	const about = profile.about;
	const lines = [...about.comments, formatStart(about)].filter(line => line);

	document.title = `${about.title} - shstk`;
	get("title").textContent = about.title;
	get("about").textContent = lines.join(" \u00b7 ");
	get("cautions").replaceChildren(...about.cautions.map(text => makeElement("li", {}, text)));
	get("cautions").hidden = !about.cautions.length;
}

// ---- controls ----

function fillSelect(select, pairs, value) {
	select.replaceChildren(...pairs.map(([id, text]) => makeElement("option", {value: id}, text)));
	select.value = value;
}

function makeControls() {
	get("views").replaceChildren(...VIEWS.map(([id, title], i) => {
		const button = makeElement("button", {type: "button", id: `view-${id}`,
			title: `Key ${i + 1}`}, title);

		button.addEventListener("click", () => changeView({mode: id}));
		return button;
	}));
	fillSelect(get("type"), profile.types.map((t, i) => [i, t.type]), view.type);
	fillSelect(get("colour"), colours(), view.colour);
	get("type").parentNode.hidden = profile.types.length < 2;
	get("thread-label").hidden = !profile.threads.name.length;
	get("command-label").hidden = get("process-label").hidden =
		!profile.processes.pid.some(pid => pid >= 0);
	get("type").addEventListener("change", e => changeType(Number(e.target.value)));
	get("colour").addEventListener("change", e => changeView({colour: e.target.value}));
	for (const id of ["command", "process"])
		get(id).addEventListener("change", e => changeLevels({[id]: e.target.checked}));
	get("thread").addEventListener("change", e => changeLevels({thread: e.target.value}));
	get("search").addEventListener("input", e => changeView({query: e.target.value}, false));
	get("search").addEventListener("keydown", searchKey);
	get("case").addEventListener("click", () => changeView({ignoreCase: !view.ignoreCase}));
	get("reset").addEventListener("click", () => changeView({[zoomMember()]: 0}));
	get("help-button").addEventListener("click", () => get("help").showModal());
	get("close").addEventListener("click", () => choose(-1, -1));
	get("copy").addEventListener("click", copyPanel);
}

// Numbers of nodes are those of another tree then.
function changeLevels(change) {
	chosen = {node: -1, frame: -1};
	changeView({...change, zoom: 0, callersZoom: 0});
}

function changeType(type) {
	changeLevels({type});
}

function showControls() {
	for (const [id] of VIEWS)
		get(`view-${id}`).setAttribute("aria-pressed", id === view.mode);
	get("type").value = view.type;
	get("colour").value = view.colour;
	get("command").checked = view.command;
	get("process").checked = view.process;
	get("thread").value = view.thread;
	get("case").setAttribute("aria-pressed", view.ignoreCase);
	get("reset").hidden = !zoomNode();
	if (get("search").value !== view.query)
		get("search").value = view.query;
}

function showMatches(pattern) {
	const wrong = pattern instanceof Error;
	const tree = shownTree(), root = zoomNode();
	let text = "";

	get("search").setAttribute("aria-invalid", wrong);
	if (wrong)
		text = pattern.message;
	if (hits) {
		const found = countHits(tree, hits, root);

		text = `${found.functions} ${found.functions === 1 ? "name" : "names"}, ` +
			`${found.boxes} ${found.boxes === 1 ? "box" : "boxes"}, ` +
			`${formatShare(found.value, tree.total[root]) || "nothing"}`;
	}
	get("matched").textContent = text;
}

// ---- the graph ----

function theme() {
	const style = getComputedStyle(document.documentElement);
	const colour = name => style.getPropertyValue(name).trim();

	return {text: colour("--text"), hit: colour("--hit"), hitText: colour("--hit-text"),
		outline: colour("--outline"), focus: colour("--focus")};
}

function isDark() {
	return matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
}

// How large the canvas is: what is in sight, on paper all of it.
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
	frameBox(get("selected"), boxOf(boxes, chosen.node));
	if (moved)
		scroller.scrollTop = graph.rootBelow ? scroller.scrollHeight : 0;
	paint();
}

// Puts an element around a box, or hides it if there is none.
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

// Draws what is in sight, in the canvas' own pixels.
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

// The box under the mouse, or -1.
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

// The value comes first: no name is so long that it is not seen.
function showTip(node, event) {
	const tip = get("tip");

	get("tip-value").textContent = describeValue(graph.tree, node);
	get("tip-name").textContent = fitName(profile, graph.tree.frame[node], 160);
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

// What is shown may be either side of a difference.
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

// ---- choosing ----

// @node: in the tree that is shown, or -1; @frame: its function.
function choose(node, frame) {
	chosen = {node, frame};
	// The panel takes room from the rest.
	if (showPanel())
		resize();
	else if (isGraph())
		frameBox(get("selected"), boxOf(graph.boxes, node));
}

// Returns true if the panel has come or gone.
function showPanel() {
	const {node, frame} = chosen;
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
		// Where a page may not write there, what is selected can be copied by hand.
		getSelection().selectAllChildren(get("panel-text"));
	}
}

// ---- keys ----

// Which way the children of a box are: up in a flame graph, else down.
function moveChoice(key) {
	const {tree, boxes} = graph;
	const inward = view.mode === "flame" ? "ArrowUp" : "ArrowDown";
	let box = boxOf(boxes, chosen.node);

	if (box < 0)
		box = boxOf(boxes, graph.zoom);
	else if (key === "ArrowLeft" || key === "ArrowRight")
		box = boxBeside(boxes, box, key === "ArrowRight" ? 1 : -1);
	else if (key === inward)
		box = boxAbove(tree, boxes, box);
	else
		box = boxOf(boxes, tree.parent[chosen.node]);
	if (box < 0)
		return;
	choose(boxes.node[box], tree.frame[boxes.node[box]]);
	showBox(box);
}

// Scrolls so far that a box is in sight; what comes into sight is drawn then.
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
	else if (event.key === "Enter" && chosen.node >= 0)
		zoomTo(chosen.node);
	else if (event.key === "Backspace" && zoomNode())
		zoomTo(graph.tree.parent[zoomNode()]);
	else if (event.key === "Home")
		choose(graph.zoom, graph.tree.frame[graph.zoom]);
	else
		return;
	event.preventDefault();
}

// One thing at a time is undone, the last first.
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
	const node = nodes.find(n => n > chosen.node) ?? nodes[0];

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

// ---- the table and the tree ----

const SORTS = {
	"self": (sums, a, b) => sums.self[b] - sums.self[a] || sums.total[b] - sums.total[a],
	"total": (sums, a, b) => sums.total[b] - sums.total[a] || sums.self[b] - sums.self[a],
	"growth": (sums, a, b) => Math.abs(sums.total[b] - sums.otherTotal[b]) -
		Math.abs(sums.total[a] - sums.otherTotal[a]),
	"name": (sums, a, b) => profile.rank[a] - profile.rank[b],
	"module": (sums, a, b) => profile.frames.module[a] < profile.frames.module[b] ? -1 :
		profile.frames.module[a] > profile.frames.module[b] ? 1 : sums.self[b] - sums.self[a],
};

function tableColumns() {
	const sort = id => id === view.sort ?
		(["name", "module"].includes(id) ? "ascending" : "descending") : "none";
	const column = (id, title, by) => ({id, title, sort: by && sort(by)});
	const growth = isDiff() ? [column("growth", "Change", "growth")] : [];

	return [column("self-share", "Self", "self"), column("self", ""),
		column("total-share", "Total", "total"), column("total", ""), ...growth,
		column("name", "Function", "name"), column("module", "Module", "module")];
}

function drawTable() {
	const tree = forwardTree(), root = zoomNode(), whole = tree.total[root];
	const sums = functionSums();
	const by = SORTS[view.sort] || SORTS.self;
	const rows = Array.from(sums.frames).sort((a, b) => by(sums, a, b) || profile.rank[a] -
		profile.rank[b]);
	const growth = f => isDiff() ? [describeGrowth(sums.total[f], sums.otherTotal[f])] : [];

	list.chosen = rows.indexOf(chosen.frame);
	showList(list, {
		role: "grid", label: "Functions", columns: tableColumns(), rows,
		cells: f => [formatShare(sums.self[f], whole), formatValue(sums.self[f], unit()),
			formatShare(sums.total[f], whole), formatValue(sums.total[f], unit()),
			...growth(f), profile.frames.name[f], profile.frames.module[f]],
		extra: f => ({class: hits && hits[f] ? "row hit" : "row"}),
	});
}

// Nodes of the rows of the tree: those whose callers are all open.
function treeRows(tree, root) {
	const rows = [];

	for (let i = root; i < tree.end[root];) {
		rows.push(i);
		i = opened.has(i) ? i + 1 : tree.end[i];
	}
	return rows;
}

function drawTree() {
	const tree = forwardTree(), root = zoomNode(), whole = tree.total[root];

	if (!opened.size)
		openHottest(tree, root);
	const rows = treeRows(tree, root);

	list.chosen = rows.indexOf(chosen.node);
	showList(list, {
		role: "treegrid", label: "Calls", rows,
		columns: [{id: "total-share", title: "Total"}, {id: "total", title: ""},
			{id: "self-share", title: "Self"}, {id: "name", title: "Function"},
			{id: "module", title: "Module"}],
		cells: i => [formatShare(tree.total[i], whole), formatValue(tree.total[i], unit()),
			formatShare(tree.self[i], whole), treeName(tree, root, i),
			profile.frames.module[tree.frame[i]]],
		extra: i => treeAttributes(tree, root, i),
	});
}

// Deep nodes do not leave the window: the depth is written down then.
function treeName(tree, root, i) {
	const depth = tree.depth[i] - tree.depth[root];
	const sign = tree.end[i] === i + 1 ? " " : opened.has(i) ? "\u25be" : "\u25b8";
	const indent = depth > 30 ? `${" ".repeat(30)}${depth}` : " ".repeat(depth);

	return `${indent}${sign} ${profile.frames.name[tree.frame[i]]}`;
}

function treeAttributes(tree, root, i) {
	const ret = {"aria-level": tree.depth[i] - tree.depth[root] + 1};

	if (tree.end[i] > i + 1)
		ret["aria-expanded"] = opened.has(i);
	ret.class = hits && hits[tree.frame[i]] ? "row hit" : "row";
	return ret;
}

// The way to the hottest function is open when the tree is first seen.
function openHottest(tree, root) {
	for (let i = root; tree.end[i] > i + 1;) {
		let best = i + 1;

		opened.add(i);
		for (let k = i + 1; k < tree.end[i]; k = tree.end[k])
			if (tree.total[k] > tree.total[best])
				best = k;
		i = best;
	}
}

const LIST_ACTS = {
	choose(place) {
		const row = list.rows[place];

		if (view.mode === "table")
			choose(-1, row);
		else
			choose(row, forwardTree().frame[row]);
	},
	open(place) {
		if (view.mode === "table")
			showCallers(list.rows[place]);
		else
			toggleNode(list.rows[place]);
	},
	sort(id) {
		changeView({sort: {"self-share": "self", "total-share": "total"}[id] || id});
	},
	key(event, place) {
		const tree = forwardTree(), node = list.rows[place];

		if (view.mode !== "tree" || node === undefined)
			return false;
		if (event.key === "ArrowRight" && !opened.has(node) && tree.end[node] > node + 1)
			toggleNode(node);
		else if (event.key === "ArrowRight" && opened.has(node))
			chooseRow(list, place + 1);
		else if (event.key === "ArrowLeft" && opened.has(node))
			toggleNode(node);
		else if (event.key === "ArrowLeft")
			chooseRow(list, Math.max(list.rows.indexOf(tree.parent[node]), 0));
		else
			return false;
		return true;
	},
};

function toggleNode(node) {
	if (!opened.delete(node))
		opened.add(node);
	drawTree();
}

// The function's box in the graph of callers, where it has the whole width.
function showCallers(frame) {
	const tree = backwardTree();

	for (let i = 1; i < tree.nr; i = tree.end[i]) {
		if (tree.frame[i] !== frame)
			continue;
		chosen = {node: i, frame};
		changeView({mode: "callers", callersZoom: i});
		get("graph").focus();
		return;
	}
	get("spoken").textContent = "Nothing was measured in this function itself";
}

// ---- legend ----

function showLegend() {
	const tree = shownTree(), root = zoomNode();
	const entries = view.colour === "growth" ? growthLegend() : kindLegend(tree, root);

	get("legend").replaceChildren(...entries.map(([colour, text]) => {
		const entry = makeElement("span", {});
		const swatch = makeElement("span", {class: "swatch"});

		swatch.style.background = colour;
		entry.append(swatch, text);
		return entry;
	}));
}

function growthLegend() {
	return [[growthColour(1, 2, isDark()), "grew"], [growthColour(1, 1, isDark()), "as before"],
		[growthColour(2, 1, isDark()), "shrank"]];
}

// Shares of what functions have themselves.
function kindLegend(tree, root) {
	const all = forwardTree();
	const from = view.mode === "callers" ? 0 : root;
	const byModule = view.colour === "module";
	const key = byModule ? i => profile.frames.module[all.frame[i]] || "(no module)" :
		i => profile.kinds[all.kind[i]];
	const sums = keep("legend", [treeKey(), from, byModule].join(),
		() => sumBy(all, from, key));

	return sums.slice(0, LEGEND_ENTRIES).map(([name, value]) => [
		byModule ? moduleColour(name === "(no module)" ? "" : name, 6, isDark()) :
			kindColour(name, 6, isDark()),
		`${byModule ? name : KIND_WORDS[name] || name} ${formatShare(value, all.total[from])}`]);
}

// ---- the beginning ----

// Has a command threads of several names?
function hasThreads() {
	const {threads, processes} = profile;
	const seen = new Map();

	for (const [i, name] of threads.merged.entries()) {
		const command = processes.name[threads.process[i]];

		if (seen.has(command) && seen.get(command) !== name)
			return true;
		seen.set(command, name);
	}
	return false;
}

// Levels are shown if they tell something apart.
function firstView(about) {
	const command = new Set(profile.processes.name).size > 1;

	return {
		mode: about.inverted ? "callers" : about.icicle ? "icicle" : "flame",
		type: about.shown, command, process: false,
		thread: about.perThread ? "each" :
			hasThreads() || !command ? "merged" : "none",
		zoom: 0, callersZoom: 0, query: "", ignoreCase: false,
		colour: about.diff ? "growth" : "kind", sort: "self",
	};
}

function resize() {
	if (isGraph())
		drawGraph();
	else
		drawRows(list);
}

function listen() {
	const scroller = get("graph");

	list = makeList(get("list"), LIST_ACTS);
	scroller.addEventListener("scroll", paint);
	scroller.addEventListener("mousemove", hoverBox);
	scroller.addEventListener("mouseleave", () => get("hover").hidden = get("tip").hidden = true);
	scroller.addEventListener("click", clickGraph);
	scroller.addEventListener("keydown", graphKey);
	document.addEventListener("keydown", pageKey);
	for (const event of ["popstate", "hashchange"])
		window.addEventListener(event, () => {
			view = readAddress();
			drawAll();
		});
	for (const event of ["resize", "beforeprint", "afterprint"])
		window.addEventListener(event, resize);
	for (const query of ["(prefers-color-scheme: dark)", "print"])
		matchMedia(query).addEventListener("change", drawAll);
}

async function begin() {
	profile = await readProfile(get("data").textContent);
	get("data").remove();
	first = firstView(profile.about);
	view = readAddress();
	showHeader();
	makeControls();
	listen();
	drawAll();
	performance.mark("drawn");
	document.body.dataset.ready = "1";
	// What is likely to be wanted next, while nobody waits for it.
	if (window.requestIdleCallback)
		requestIdleCallback(() => backwardTree());
}

begin().catch(error => {
	get("sum").textContent = `This page cannot be shown: ${error.message}. It needs a browser ` +
		"of 2023 or later.";
	console.error(error);
});
