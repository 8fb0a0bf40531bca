// SPDX-License-Identifier: LGPL-2.1-or-later
//
// view.js - what the page shows.
//
// All that is shown follows from the profile and from `view`, which also stands in the address:
// code that changes it calls changeView(), which writes the address and draws. So Back and Forward,
// and an address that was kept, lead to the same picture.
"use strict";

const VIEWS = [["flame", "Flame graph"], ["icicle", "Icicle"], ["callers", "Callers"],
	["table", "Table"], ["tree", "Tree"]];
const COLOURS = [["kind", "by kind"], ["module", "by module"], ["growth", "by growth"]];
const LEGEND_ENTRIES = 12;
const SEARCH_WAIT = 120; // ms without input until the address is written

const get = id => document.getElementById(id);

let profile = null;
let first = null; // the view that the page opens with
let view = null;
let hits = null; // a mark for each frame, or null: nothing is searched
let graph = null; // what the canvas shows, see drawFlame()
let list = null;
let heat = null; // what the timeline shows, see makeHeat()
let dragged = -1; // start time of the range that is being drawn, or -1
let opened = new Set(); // nodes whose children the tree shows
let chosen = {node: -1, frame: -1, tree: null}; // a function, and its node in a tree
let addressTimer = 0;

// ---- The address ----

// Short names of the members of a view in the address.
const ADDRESS = {mode: "v", type: "t", command: "c", process: "p", thread: "h", zoom: "z",
	callersZoom: "zc", query: "q", ignoreCase: "i", colour: "k", sort: "s", from: "a", to: "b",
	heat: "r", by: "b"};

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

// Corrects a view: addresses are also written by hand, and may name what does not exist.
function checkView(v) {
	const has = (names, name, or) => names.some(n => n[0] === name) ? name : or;

	v.mode = has(VIEWS, v.mode, first.mode);
	v.colour = has(colours(), v.colour, first.colour);
	if (!["none", "merged", "each"].includes(v.thread))
		v.thread = first.thread;
	if (!(v.type in profile.types))
		v.type = first.type;
	if (!has(groupings(), v.by, ""))
		v.by = "";
	if (!has(timelines(v.type), v.heat, ""))
		v.heat = timelines(v.type)[0][0];
	[v.from, v.to] = profile.moments ? cutRange(profile, v.from, v.to) : [0, 0];
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
		// Some places do not let a page change its address; the page works without that.
	}
}

// Changes the view. @change has the members that change. With @keep each change is a step for Back;
// without, the address is only replaced, as for each letter of a search.
function changeView(change, keep = true) {
	Object.assign(view, change);
	clearTimeout(addressTimer);
	if (keep)
		writeAddress(true);
	else
		addressTimer = setTimeout(() => writeAddress(false), SEARCH_WAIT);
	drawAll();
}

// ---- What is shown ----

function isDiff() {
	return Boolean(profile.about.diff);
}

function colours() {
	return isDiff() ? COLOURS : COLOURS.filter(c => c[0] !== "growth");
}

// Returns what may stand outermost: labels, and where threads wait.
function groupings() {
	const waits = profile.states || profile.types.some(t => stateOfType(t.type));

	return [["", "nothing"], ...waits ? [["wait", "wait"]] : [],
		...Array.from(profile.labels.keys(), key => [key, key])];
}

// Returns the timelines of a type of values.
function timelines(type) {
	const level = isLevel(profile, type) ? [["level", "in all"]] : [];

	return [...level, ["thread", "by thread"], ["offset", "by part of a second"]];
}

// Returns the other type of a comparison, whose values are those before (0) and after (1).
function otherType() {
	return isDiff() ? 1 - view.type : -1;
}

function unit() {
	return profile.types[view.type].unit;
}

// Returns what @make() makes. The result is kept until it is requested with another key, as it
// takes long to make.
const made = {};

function keep(what, key, make) {
	if (!made[what] || made[what].key !== key)
		made[what] = {key, value: make()};
	return made[what].value;
}

function treeKey() {
	return [view.type, view.by, view.command, view.process, view.thread, view.from, view.to].join();
}

// Returns the values of all samples, or of those in the selected range.
function shownValues(type) {
	if (type < 0 || !view.to)
		return profile.values[type];
	return valuesInRange(profile, type, view.from, view.to);
}

function forwardTree() {
	return keep("forward", treeKey(), () => {
		opened = new Set();
		return buildTree(profile, view, shownValues(view.type), shownValues(otherType()));
	});
}

function backwardTree() {
	return keep("backward", treeKey(), () => invertTree(profile, forwardTree()));
}

// Returns the sums of the functions below the zoomed node.
function functionSums() {
	return keep("sums", [treeKey(), view.zoom].join(),
		() => sumFunctions(profile, forwardTree(), zoomNode()));
}

function isGraph() {
	return !["table", "tree"].includes(view.mode);
}

// Returns the tree that is shown.
function shownTree() {
	return view.mode === "callers" ? backwardTree() : forwardTree();
}

// Returns the chosen node, if it is in the tree that is shown, else -1.
function chosenNode() {
	return chosen.tree === shownTree() ? chosen.node : -1;
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
	showTimes();
	// This comes last, because it uses the room that the other parts leave.
	if (isGraph())
		drawGraph();
	else if (view.mode === "table")
		drawTable();
	else
		drawTree();
}
