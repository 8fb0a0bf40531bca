// SPDX-License-Identifier: LGPL-2.1-or-later
//
// timeline.js - when samples were taken: a heat map with a row for each thread, or, as flamescope
// has it, for each part of a second. If a range is selected in it, all views show only that range.
//
// Like flame.js it first computes what is where (makeHeat()), and then draws it. Times are in
// nanoseconds since the first sample.
"use strict";

const HEAT_ROW = 11;
const HEAT_ROWS = 12; // most threads with a row; the others share one row
const OFFSETS = 25; // parts of a second
const OFFSET_ROW = 5;
const CELL = 3;
const SECOND = 1e9;

// Returns the columns of the file's moments, or null if it has none.
function readMoments(file) {
	const from = file.moments;

	if (!from)
		return null;
	const time = new Float64Array(from.time);

	for (let i = 1; i < time.length; i++)
		time[i] += time[i - 1];
	for (let i = 0; i < time.length; i++)
		time[i] *= 1000;
	return {
		time, sample: new Int32Array(from.sample), slot: from.slot,
		values: from.values.map(v => Array.isArray(v) ? new Float64Array(v) :
			new Float64Array(time.length).fill(v)),
		end: time[time.length - 1] + Math.max(from.slot, 1000),
	};
}

// Returns the values of the samples that were taken from @from on and before @to.
function valuesInRange(p, type, from, to) {
	const {time, sample, values} = p.moments;
	const ret = new Float64Array(p.values[type].length);

	for (let i = 0; i < time.length; i++)
		if (time[i] >= from && time[i] < to)
			ret[sample[i]] += values[type][i];
	return ret;
}

// ---- What is where ----

// Returns the names of the rows, which are the threads with the highest values, and the row of each
// thread.
function threadRows(p, type) {
	const sums = new Float64Array(p.threads.name.length + 1);

	p.values[type].forEach((value, i) => sums[p.samples.thread[i] + 1] += value);
	const order = Array.from(sums.keys()).filter(t => sums[t] > 0)
		.sort((a, b) => sums[b] - sums[a]);
	const rowOf = new Int32Array(sums.length);
	const names = order.slice(0, HEAT_ROWS).map(t => t ?
		p.frames.name[p.threads.frame[t - 1]] : "(no thread)");

	order.forEach((t, row) => rowOf[t] = Math.min(row, HEAT_ROWS));
	if (order.length > HEAT_ROWS)
		names.push(`${order.length - HEAT_ROWS} other threads`);
	return {names, rowOf};
}

// Returns the cells for a width in pixels: sums of values, row by row, with columns of @step ns.
// With @by "offset" a column is one or more seconds, and a row a part of a second.
function makeHeat(p, type, by, width) {
	const {time, sample, values, end} = p.moments;
	const offsets = by === "offset";
	const most = Math.max(Math.floor(width / CELL), 1);
	const step = offsets ? SECOND * Math.max(Math.ceil(end / SECOND / most), 1) : end / most;
	const columns = Math.max(Math.ceil(end / step), 1);
	const {names, rowOf} = offsets ?
		{names: new Array(OFFSETS).fill(""), rowOf: null} : threadRows(p, type);
	const cells = new Float64Array(columns * names.length);

	for (let i = 0; i < time.length; i++) {
		const row = offsets ? OFFSETS - 1 - Math.floor(time[i] % SECOND / SECOND * OFFSETS) :
			rowOf[p.samples.thread[sample[i]] + 1];

		cells[row * columns + Math.min(Math.floor(time[i] / step), columns - 1)] += values[type][i];
	}
	return {by, width, step, columns, names, cells, most: cells.reduce((a, b) => Math.max(a, b), 0),
		rowHeight: offsets ? OFFSET_ROW : HEAT_ROW,
		scale: width / (offsets ? columns * step : end)};
}

function heatHeight(heat) {
	return heat.names.length * heat.rowHeight;
}

// Returns the cell at a place, or null.
function heatAt(heat, x, y) {
	const row = Math.floor(y / heat.rowHeight);
	const column = Math.floor(x / heat.scale / heat.step);

	if (row < 0 || row >= heat.names.length || column < 0 || column >= heat.columns)
		return null;
	return {row, column, value: heat.cells[row * heat.columns + column]};
}

// ---- Drawing ----

function heatColour(part, dark) {
	const strength = Math.sqrt(part);

	return dark ? `hsl(${45 - 30 * strength} 90% ${14 + 50 * strength}%)` :
		`hsl(${40 - 35 * strength} 95% ${90 - 52 * strength}%)`;
}

function drawHeat(context, heat, dark, theme, height) {
	const width = heat.step * heat.scale;

	context.clearRect(0, 0, heat.width, height);
	for (let row = 0; row < heat.names.length; row++)
		for (let column = 0; column < heat.columns; column++) {
			const value = heat.cells[row * heat.columns + column];

			if (value <= 0)
				continue;
			context.fillStyle = heatColour(value / heat.most, dark);
			context.fillRect(column * width, row * heat.rowHeight, Math.max(width, 1) + 0.3,
				heat.rowHeight - (heat.rowHeight > 6 ? 1 : 0));
		}
	context.font = "9px system-ui, sans-serif";
	heat.names.forEach((name, row) => drawHeatName(context, heat, name, row, theme));
}

function drawHeatName(context, heat, name, row, theme) {
	const y = (row + 1) * heat.rowHeight - 3;

	context.lineWidth = 3;
	context.strokeStyle = theme.back;
	context.strokeText(name, 3, y);
	context.fillStyle = theme.text;
	context.fillText(name, 3, y);
}

// ---- Selecting ----

function formatTime(ns) {
	return `${(ns / SECOND).toFixed(3)} s`;
}

// Returns a range that lies within the recording, in whole numbers. For an empty range and for the
// whole recording it returns [0, 0].
function cutRange(p, from, to) {
	const {end} = p.moments;
	const low = Math.max(Math.min(from, to), 0), high = Math.min(Math.max(from, to), end);

	return high - low < 1000 || high - low >= end ? [0, 0] : [Math.round(low), Math.round(high)];
}

// Returns the range after an arrow key: it is moved by its own width, or with Shift made longer or
// shorter.
function moveRange(p, from, to, key, shift) {
	const {end} = p.moments;
	const step = key === "ArrowRight" ? 1 : -1;
	const width = to > from ? to - from : end / 10;

	if (to <= from)
		return [0, width];
	if (shift)
		return [from, Math.max(Math.min(to + step * end / 50, end), from + end / 100)];
	const low = Math.max(Math.min(from + step * width, end - width), 0);

	return [low, low + width];
}
