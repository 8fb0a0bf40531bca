// SPDX-License-Identifier: LGPL-2.1-or-later
//
// head.js - what stands around the views: the header, the controls and the legend.
"use strict";

// ---- Header ----

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
	if (view.to && isLevel(profile, view.type))
		text += view.from ? ` more at ${formatTime(view.to)} than at ${formatTime(view.from)}; ` +
			"what became less is not drawn" : ` at ${formatTime(view.to)}`;
	else if (view.to)
		text += `; from ${formatTime(view.from)} to ${formatTime(view.to)}`;
	for (const [what, value] of keep("missing", treeKey(), () => missingShares(tree)))
		if (value)
			text += `; ${what} ${formatShare(value, tree.total[0])}`;
	if (node)
		text += `; shown: ${formatValueShare(shown.total[node])}`;
	if (view.mode === "callers")
		text += `; callers with less than ${100 * LEAST_PART} % are left out`;
	get("sum").textContent = text;
}

// Returns the values of what is not known of the stacks: of stacks that are cut off, and of stacks
// that end in code whose name is not known.
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

// Returns what is said of the recording: its command, machine and time first, because a small screen
// shows only the first lines.
function aboutLines(about) {
	const isFirst = line => /^((before|after): )?(command|machine): /.test(line);

	return [...about.comments.filter(isFirst), formatStart(about),
		...about.comments.filter(line => !isFirst(line))].filter(line => line);
}

function showHeader() {
	const about = profile.about;

	document.title = `${about.title} - shstk`;
	get("title").textContent = about.title;
	get("about").textContent = aboutLines(about).join(" \u00b7 ");
	get("cautions").replaceChildren(...about.cautions.map(text => makeElement("li", {}, text)));
	get("cautions").hidden = !about.cautions.length;
}

// ---- Controls ----

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
	fillSelect(get("by"), groupings(), view.by);
	get("by-label").hidden = groupings().length < 2;
	get("type").parentNode.hidden = profile.types.length < 2;
	get("thread-label").hidden = !profile.threads.name.length;
	get("command-label").hidden = get("process-label").hidden =
		!profile.processes.pid.some(pid => pid >= 0);
	get("type").addEventListener("change", e => changeType(Number(e.target.value)));
	get("colour").addEventListener("change", e => changeView({colour: e.target.value}));
	for (const id of ["command", "process"])
		get(id).addEventListener("change", e => changeLevels({[id]: e.target.checked}));
	get("by").addEventListener("change", e => changeLevels({by: e.target.value}));
	get("thread").addEventListener("change", e => changeLevels({thread: e.target.value}));
	get("search").addEventListener("input", e => changeView({query: e.target.value}, false));
	get("search").addEventListener("keydown", searchKey);
	get("case").addEventListener("click", () => changeView({ignoreCase: !view.ignoreCase}));
	get("reset").addEventListener("click", () => changeView({[zoomMember()]: 0}));
	get("help-button").addEventListener("click", () => get("help").showModal());
	get("close").addEventListener("click", () => choose(-1, -1));
	get("copy").addEventListener("click", copyPanel);
}

// Changes the levels of groups. Another tree is shown then, in which nodes have other numbers, so
// the choice and the zoom are reset.
function changeLevels(change) {
	chosen = {node: -1, frame: -1, tree: null};
	changeView({...change, zoom: 0, callersZoom: 0});
}

function changeType(type) {
	const known = timelines(type).some(t => t[0] === view.heat);

	changeLevels({type, heat: known && !isLevel(profile, type) ? view.heat : timelines(type)[0][0]});
}

function showControls() {
	for (const [id] of VIEWS)
		get(`view-${id}`).setAttribute("aria-pressed", id === view.mode);
	get("type").value = view.type;
	get("colour").value = view.colour;
	get("command").checked = view.command;
	get("process").checked = view.process;
	get("thread").value = view.thread;
	get("by").value = view.by;
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

// ---- Legend ----

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

// Returns the entries of the legend: each kind or module with the share of its own values.
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
