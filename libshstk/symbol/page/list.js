// SPDX-License-Identifier: LGPL-2.1-or-later
//
// list.js - the table of functions and the tree of calls: long lists of which only the visible rows
// are in the page.
//
// A list gets its columns and its rows. Rows are numbers; their content is asked for when they
// become visible. The chosen row is known by its place in the list.
"use strict";

const LIST_ROW = 24;
const LIST_BEYOND = 10;

function makeElement(tag, attributes, text) {
	const element = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	if (text !== undefined)
		element.textContent = text;
	return element;
}

// Makes an empty list. @root is the element that scrolls. @acts are functions that the list calls:
// choose(place), open(place), sort(column), key(event, place), which returns true if it took the
// key.
function makeList(root, acts) {
	const list = {root, acts, rows: [], columns: [], chosen: -1, cells: null, extra: null};

	list.head = root.appendChild(makeElement("div", {class: "list-head", role: "row"}));
	list.body = root.appendChild(makeElement("div", {class: "list-body", role: "presentation"}));
	root.addEventListener("scroll", () => drawRows(list));
	root.addEventListener("keydown", event => listKey(list, event));
	list.body.addEventListener("click", event => {
		const row = event.target.closest("[data-place]");

		if (row)
			chooseRow(list, Number(row.dataset.place));
	});
	list.body.addEventListener("dblclick", () => list.chosen >= 0 && acts.open(list.chosen));
	return list;
}

// Shows a list. @what: role of the list, columns ({id, title, sort}), rows (an array of any
// numbers), cells(row), which returns texts, extra(row), which returns attributes, label for screen
// readers.
function showList(list, what) {
	Object.assign(list, what);
	list.root.setAttribute("role", what.role);
	list.root.setAttribute("aria-label", what.label);
	list.root.setAttribute("aria-rowcount", what.rows.length + 1);
	list.head.replaceChildren(...what.columns.map(column => columnHead(list, column)));
	list.body.style.height = `${what.rows.length * LIST_ROW}px`;
	if (list.chosen >= what.rows.length)
		list.chosen = what.rows.length - 1;
	drawRows(list);
}

function columnHead(list, column) {
	const head = makeElement("div", {role: "columnheader", class: `cell ${column.id}`});

	if (column.sort) {
		const button = makeElement("button", {type: "button"}, column.title);

		head.setAttribute("aria-sort", column.sort);
		button.addEventListener("click", () => list.acts.sort(column.id));
		head.append(button);
	} else {
		head.textContent = column.title;
	}
	return head;
}

function drawRows(list) {
	const from = Math.max(Math.floor(list.root.scrollTop / LIST_ROW) - LIST_BEYOND, 0);
	const seen = Math.ceil(list.root.clientHeight / LIST_ROW) + 2 * LIST_BEYOND;
	const to = Math.min(from + seen, list.rows.length);
	const rows = [];

	for (let place = from; place < to; place++)
		rows.push(makeRow(list, place));
	list.body.replaceChildren(...rows);
	markChosen(list);
}

function makeRow(list, place) {
	const row = makeElement("div", {
		role: "row", id: `row${place}`, class: "row", "data-place": place,
		"aria-rowindex": place + 2, ...list.extra(list.rows[place]),
	});

	row.style.top = `${place * LIST_ROW}px`;
	list.cells(list.rows[place]).forEach((text, i) => {
		const cell = makeElement("div", {role: "gridcell", class: `cell ${list.columns[i].id}`},
			text);

		row.append(cell);
	});
	return row;
}

function markChosen(list) {
	for (const row of list.body.children)
		row.setAttribute("aria-selected", Number(row.dataset.place) === list.chosen);
	if (document.getElementById(`row${list.chosen}`))
		list.root.setAttribute("aria-activedescendant", `row${list.chosen}`);
	else
		list.root.removeAttribute("aria-activedescendant");
}

function chooseRow(list, place) {
	list.chosen = Math.max(Math.min(place, list.rows.length - 1), 0);
	showRow(list, list.chosen);
	markChosen(list);
	if (list.rows.length)
		list.acts.choose(list.chosen);
}

// Scrolls until a row is visible.
function showRow(list, place) {
	const top = place * LIST_ROW;
	const room = list.root.clientHeight - list.head.offsetHeight;

	if (top < list.root.scrollTop)
		list.root.scrollTop = top;
	else if (top + LIST_ROW > list.root.scrollTop + room)
		list.root.scrollTop = top + LIST_ROW - room;
	drawRows(list);
}

function listKey(list, event) {
	const page = Math.max(Math.floor(list.root.clientHeight / LIST_ROW) - 2, 1);
	const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page,
		Home: -Infinity, End: Infinity};

	if (event.target !== list.root || event.ctrlKey || event.metaKey || event.altKey)
		return;
	if (event.key in steps)
		chooseRow(list, list.chosen < 0 ? 0 : list.chosen + steps[event.key]);
	else if (event.key === "Enter" && list.chosen >= 0)
		list.acts.open(list.chosen);
	else if (!list.acts.key(event, list.chosen))
		return;
	event.preventDefault();
}
