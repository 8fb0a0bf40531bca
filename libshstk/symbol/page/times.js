// SPDX-License-Identifier: LGPL-2.1-or-later
//
// times.js - the timeline in the page: selecting a range by pointer and by keys.
"use strict";

function showTimes() {
	const section = get("times");

	section.hidden = !profile.moments;
	if (!profile.moments)
		return;
	fillSelect(get("heat"), timelines(view.type), view.heat);
	get("all-time").hidden = !view.to;
	get("range").textContent = view.to ?
		`${formatTime(view.from)} to ${formatTime(view.to)} of ${formatTime(profile.moments.end)}` :
		`${formatTime(profile.moments.end)}, all of it`;
	drawTimes();
	showRange(view.from, view.to);
}

function drawTimes() {
	const canvas = get("heat-canvas");
	const width = get("heat-area").clientWidth, ratio = window.devicePixelRatio || 1;
	const key = [view.type, view.heat, width].join();

	heat = keep("heat", key, () => view.heat === "level" ? makeLevel(profile, view.type, width) :
		makeHeat(profile, view.type, view.heat, width));
	showStates();
	keep("heat drawn", [key, ratio, isDark()].join(), () => {
		const height = heatHeight(heat), context = canvas.getContext("2d");

		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		drawHeat(context, heat, isDark(), theme(), height);
		return true;
	});
}

// Shows the colours of what threads do, if it differs.
function showStates() {
	const shown = heat.parts ? STATES.filter((_, state) => heat.parts[state]) : [];

	get("states").replaceChildren(...shown.length < 2 && !(heat.parts && !heat.parts[0]) ? [] :
		STATES.flatMap((text, state) => {
			const entry = makeElement("span", {}), swatch = makeElement("span", {class: "swatch"});

			if (!heat.parts[state])
				return [];
			swatch.style.background = stateColour(state, 0.5, isDark());
			entry.append(swatch, `${text} ${formatShare(heat.parts[state], heat.whole)}`);
			return [entry, " "];
		}));
}

function showRange(from, to) {
	const frame = get("heat-range");

	frame.hidden = to <= from;
	frame.style.left = `${from * heat.scale}px`;
	frame.style.width = `${Math.max((to - from) * heat.scale, 2)}px`;
	frame.style.height = `${heatHeight(heat)}px`;
}

// Changes the range that is shown. The tree of another range has other nodes, so the zoomed node is
// found again by its path.
function changeRange(from, to) {
	const path = pathOf(forwardTree(), zoomNode());

	chosen = {node: -1, frame: -1, tree: null};
	[view.from, view.to] = cutRange(profile, from, to);
	changeView({zoom: view.mode === "callers" ? 0 : nodeOfPath(forwardTree(), path), callersZoom: 0});
}

function timeAt(event) {
	return (event.clientX - get("heat-area").getBoundingClientRect().left) / heat.scale;
}

function hoverTimes(event) {
	const area = get("heat-canvas").getBoundingClientRect();
	const cell = heatAt(heat, event.clientX - area.left, event.clientY - area.top);

	if (dragged >= 0)
		showRange(...cutRange(profile, dragged, timeAt(event)));
	get("tip").hidden = !cell;
	if (!cell)
		return;
	get("tip-value").textContent = describeCell(heat, cell, unit());
	get("tip-name").textContent = `${formatTime(cell.column * heat.step)} ${heat.names[cell.row]}`;
	placeTip(event);
}

function timesKey(event) {
	if (event.ctrlKey || event.metaKey || event.altKey)
		return;
	if (event.key === "ArrowLeft" || event.key === "ArrowRight")
		changeRange(...moveRange(profile, view.from, view.to, event.key, event.shiftKey));
	else if (event.key === "Escape" && view.to)
		changeRange(0, 0);
	else
		return;
	event.preventDefault();
	event.stopPropagation();
}

function listenTimes() {
	const area = get("heat-area");

	area.addEventListener("pointerdown", event => {
		dragged = timeAt(event);
		area.setPointerCapture(event.pointerId);
	});
	area.addEventListener("pointermove", hoverTimes);
	area.addEventListener("pointerleave", () => get("tip").hidden = true);
	area.addEventListener("pointerup", event => {
		const from = dragged;

		dragged = -1;
		if (from >= 0)
			changeRange(from, timeAt(event));
	});
	area.addEventListener("pointercancel", () => dragged = -1);
	area.addEventListener("keydown", timesKey);
	get("heat").addEventListener("change", e => changeView({heat: e.target.value}));
	get("all-time").addEventListener("click", () => changeRange(0, 0));
}
