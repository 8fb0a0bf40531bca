// SPDX-License-Identifier: LGPL-2.1-or-later
//
// flamegraph.js - the script inside a flame graph: zoom, search, tooltips.
//
// export_flamegraph.c draws all frames for a fixed width, which is what viewers without scripts
// show. This script takes the frames' places from data-x (start) and data-n (value), in the unit of
// the profile, and lays them out for the window. The search and the zoom are kept in the address,
// behind the #, so that a view can be bookmarked and sent.

(function () {
"use strict";

const svg = document.documentElement;
const get = id => document.getElementById(id);
const PAD = 10;
const FRAMES = [];
let charWidth = 7.2;
let width = 1200;
let zoomed = null;
let pattern = "";
let ignoreCase = false;
let matched = null;

function readFrames() {
	for (const g of get("frames").children) {
		const title = g.querySelector("title").textContent;
		const cut = title.lastIndexOf("\n");
		const rect = g.querySelector("rect");
		const frame = {
			g: g,
			rect: rect,
			text: g.querySelector("text"),
			name: title.slice(0, cut),
			label: g.querySelector("text").dataset.l,
			about: title.slice(cut + 1),
			x: Number(g.dataset.x),
			n: Number(g.dataset.n),
			y: Number(rect.getAttribute("y")),
			hit: false,
		};
		FRAMES.push(frame);
		g.addEventListener("click", () => zoom(frame));
		g.addEventListener("mouseover", () => describe(frame));
		g.addEventListener("mouseout", () => describe(null));
	}
	// The outermost frame is the first one.
	zoomed = FRAMES[0];
}

function describe(frame) {
	get("details").textContent = frame ? frame.name + " (" + frame.about + ")" : "";
}

// Returns a name that fits into the room. The label is a shorter form of a long name.
function fit(name, label, room) {
	const chars = Math.floor((room - 6) / charWidth);
	if (chars < 3)
		return "";
	let points = Array.from(name);
	if (points.length > chars && label)
		points = Array.from(label);
	if (points.length <= chars)
		return points.join("");
	return points.slice(0, chars - 2).join("") + "..";
}

// Places a frame. Outside of the zoomed frame nothing is shown; the frames under it are shown at
// full width, faded.
function place(frame, scale) {
	const end = zoomed.x + zoomed.n;
	const under = frame.x <= zoomed.x && frame.x + frame.n >= end &&
		outer(frame, zoomed);
	const inside = frame.x >= zoomed.x && frame.x + frame.n <= end &&
		!outer(frame, zoomed);
	const x = under ? PAD : PAD + (frame.x - zoomed.x) * scale;
	const w = under ? width - 2 * PAD : frame.n * scale;

	if (!under && (!inside || w < 0.1)) {
		frame.g.style.display = "none";
		return;
	}
	frame.g.style.display = "";
	frame.g.classList.toggle("under", under);
	frame.rect.setAttribute("x", x.toFixed(2));
	frame.rect.setAttribute("width", Math.max(w - 0.3, 0.1).toFixed(2));
	frame.text.setAttribute("x", (x + 3).toFixed(2));
	frame.text.textContent = fit(frame.name, frame.label, w);
}

// Returns whether frame a is nearer to the outermost one than b.
function outer(a, b) {
	const root = FRAMES[0].y;
	return Math.abs(a.y - root) < Math.abs(b.y - root);
}

function layout() {
	const height = svg.dataset.height;
	const scale = (width - 2 * PAD) / zoomed.n;

	svg.setAttribute("width", width);
	svg.setAttribute("viewBox", "0 0 " + width + " " + height);
	get("back").setAttribute("width", width);
	get("headback").setAttribute("width", width);
	get("title").setAttribute("x", width / 2);
	get("subtitle").setAttribute("x", width / 2);
	get("search").setAttribute("x", width - PAD);
	get("case").setAttribute("x", width - PAD - 110);
	get("matched").setAttribute("x", width - PAD);
	get("reset").style.display = zoomed === FRAMES[0] ? "none" : "";
	FRAMES.forEach(frame => place(frame, scale));
}

function zoom(frame) {
	zoomed = frame;
	layout();
	showMatches();
	remember();
}

function search(text) {
	matched = null;
	if (text) {
		try {
			matched = new RegExp(text, ignoreCase ? "iu" : "u");
		} catch (error) {
			get("matched").textContent = String(error.message);
			get("matched").style.display = "";
			return;
		}
	}
	pattern = text || "";
	FRAMES.forEach(frame => {
		frame.hit = matched !== null && matched.test(frame.name);
		frame.g.classList.toggle("hit", frame.hit);
	});
	showMatches();
	remember();
}

// Returns the part of the zoomed frame's value that is in stacks with a match. Matches on top of
// other matches count once.
function matchedValue() {
	const end = zoomed.x + zoomed.n;
	const hits = FRAMES.filter(f => f.hit && f.x < end && f.x + f.n > zoomed.x);
	let done = zoomed.x;
	let sum = 0;

	hits.sort((a, b) => a.x - b.x);
	for (const hit of hits) {
		const from = Math.max(hit.x, done);
		const to = Math.min(hit.x + hit.n, end);
		if (to > from) {
			sum += to - from;
			done = to;
		}
	}
	return sum;
}

function showMatches() {
	const shown = matched !== null;

	get("search").textContent = shown ? "Reset Search" : "Search";
	get("matched").style.display = shown ? "" : "none";
	get("case").classList.toggle("off", !ignoreCase);
	if (shown)
		get("matched").textContent = "Matched: " +
			(100 * matchedValue() / zoomed.n).toFixed(2) + " %";
}

function ask() {
	const text = prompt("Names to search for (a regular expression):", pattern);

	if (text !== null)
		search(text);
}

function remember() {
	const state = new URLSearchParams();

	if (pattern)
		state.set("s", pattern);
	if (ignoreCase)
		state.set("i", "1");
	if (zoomed !== FRAMES[0])
		state.set("z", FRAMES.indexOf(zoomed));
	try {
		history.replaceState(null, "", "#" + state);
	} catch (error) {
		// Not every page may change its address; the graph works without that.
	}
}

function recall() {
	const state = new URLSearchParams(location.hash.slice(1));
	const frame = FRAMES[Number(state.get("z"))];

	ignoreCase = state.get("i") === "1";
	if (frame)
		zoomed = frame;
	layout();
	search(state.get("s"));
}

// Measures the window without its scroll bar, which is there if the graph is high enough.
function measure() {
	svg.setAttribute("height", svg.dataset.height);
	svg.setAttribute("width", "100%");
	svg.removeAttribute("viewBox");
	width = Math.max(Math.floor(svg.getBoundingClientRect().width), 400);
}

function resize() {
	measure();
	layout();
}

function keepHeadInSight() {
	get("head").setAttribute("transform", "translate(0 " + window.scrollY + ")");
}

function key(event) {
	if (event.key === "/" || (event.key === "f" && (event.ctrlKey || event.metaKey))) {
		event.preventDefault();
		ask();
	} else if (event.key === "i" && !event.ctrlKey && !event.metaKey) {
		toggleCase();
	} else if (event.key === "Escape") {
		search("");
		zoom(FRAMES[0]);
	}
}

function toggleCase() {
	ignoreCase = !ignoreCase;
	search(pattern);
}

function start() {
	readFrames();
	if (!zoomed)
		return;
	if (FRAMES[0].text.getComputedTextLength && FRAMES[0].text.textContent)
		charWidth = FRAMES[0].text.getComputedTextLength() /
			FRAMES[0].text.textContent.length || charWidth;
	for (const id of ["search", "case"])
		get(id).style.display = "";
	get("search").addEventListener("click", () => matched ? search("") : ask());
	get("case").addEventListener("click", toggleCase);
	get("reset").addEventListener("click", () => zoom(FRAMES[0]));
	window.addEventListener("keydown", key);
	window.addEventListener("resize", resize);
	window.addEventListener("scroll", keepHeadInSight);
	measure();
	recall();
	// Otherwise a tall graph opens with nothing but its highest tips in sight.
	if (FRAMES[0].y > window.innerHeight)
		window.scrollTo(0, Number(svg.dataset.height));
}

start();
})();
