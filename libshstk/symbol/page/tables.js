// SPDX-License-Identifier: LGPL-2.1-or-later
//
// tables.js - the table of functions and the tree of calls in the page.
"use strict";

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

// Returns the nodes of the rows of the tree: those whose callers are all open.
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

	list.chosen = rows.indexOf(chosenNode());
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

// Returns the name of a node, indented by its depth. A deep node would be out of sight, so its
// depth is written as a number.
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

// Opens the way to the hottest function when the tree is first seen.
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

// Shows the function's box in the graph of callers, with the whole width.
function showCallers(frame) {
	const tree = backwardTree();

	for (let i = 1; i < tree.nr; i = tree.end[i]) {
		if (tree.frame[i] !== frame)
			continue;
		chosen = {node: i, frame, tree};
		changeView({mode: "callers", callersZoom: i});
		get("graph").focus();
		return;
	}
	get("spoken").textContent = "Nothing was measured in this function itself";
}
