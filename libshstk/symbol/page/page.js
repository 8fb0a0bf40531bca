// SPDX-License-Identifier: LGPL-2.1-or-later
//
// page.js - the beginning: reads the profile, and draws the page.
"use strict";

// Returns whether a command has threads with different names.
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

// Returns the view that the page opens with. Levels of groups are shown if they tell something
// apart.
function firstView(about) {
	const command = new Set(profile.processes.name).size > 1;

	return {
		mode: about.inverted ? "callers" : about.icicle ? "icicle" : "flame",
		type: about.shown, command, process: false,
		thread: about.perThread ? "each" :
			hasThreads() || !command ? "merged" : "none",
		zoom: 0, callersZoom: 0, query: "", ignoreCase: false,
		from: 0, to: 0, heat: timelines(about.shown)[0][0], by: "",
		colour: about.diff ? "growth" : "kind", sort: "self",
	};
}

function resize() {
	showTimes();
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
	listenTimes();
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
	// This makes what is likely to be wanted next, while nobody waits for it.
	if (window.requestIdleCallback)
		requestIdleCallback(() => backwardTree());
}

begin().catch(error => {
	get("sum").textContent = `This page cannot be shown: ${error.message}. It needs a browser ` +
		"of 2023 or later.";
	console.error(error);
});
