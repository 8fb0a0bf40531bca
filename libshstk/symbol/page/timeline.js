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
const LEVEL_HEIGHT = 72;
const CELL = 3;
const SECOND = 1e9;

// Returns the columns of the file's moments, or null if it has none.
function readMoments(p) {
	const from = p.about.moments;

	if (!from)
		return null;
	const time = new Float64Array(from.time);

	for (let i = 1; i < time.length; i++)
		time[i] += time[i - 1];
	for (let i = 0; i < time.length; i++)
		time[i] *= 1000;
	const m = {
		time, sample: new Int32Array(from.sample), slot: from.slot,
		values: from.values.map(v => Array.isArray(v) ? new Float64Array(v) :
			new Float64Array(time.length).fill(v)),
		end: time[time.length - 1] + Math.max(from.slot, 1000),
		lives: (from.lives || []).map(([pid, at, ended]) => ({pid, time: at * 1000, ended})),
	};

	m.end = m.lives.reduce((end, life) => Math.max(end, life.time), m.end);

	m.levels = m.values.map(values => values.some(v => v < 0));
	p.types.forEach((_, type) => {
		const spans = spansOf(p, m, type);

		for (let i = 0; spans && i < time.length; i++)
			m.end = Math.max(m.end, time[i] + spans[i]);
	});
	return m;
}

// Returns how long each moment of a type of values lasts in ns, or null if all are points in time. A
// thread that leaves the CPU has its sample then, and its value is how long it stays away.
function spansOf(p, m, type) {
	if (p.types[type].unit !== "nanoseconds" || !(p.states || stateOfType(p.types[type].type)))
		return null;
	return m.values[type].map((v, i) => stateAt(p, type, m.sample[i]) ? v : 0);
}

// Returns whether the values of a type are changes of a level, such as of the memory in use. Their sum
// up to a moment is what held then.
function isLevel(p, type) {
	return Boolean(p.moments) && (p.moments.levels[type] || /^(inuse|peak)_/.test(p.types[type].type));
}

// Returns which part of a moment that lasts @span from @time on lies in a range.
function partInRange(time, span, from, to) {
	if (!span)
		return time >= from && time < to ? 1 : 0;
	return Math.max(Math.min(time + span, to) - Math.max(time, from), 0) / span;
}

// Returns the values of the samples from @from on and before @to. What lasts counts by the part that
// lies between.
function valuesInRange(p, type, from, to) {
	const {time, sample, values} = p.moments;
	const spans = spansOf(p, p.moments, type);
	const ret = new Float64Array(p.values[type].length);

	for (let i = 0; i < time.length && time[i] < to; i++)
		ret[sample[i]] += values[type][i] * partInRange(time[i], spans ? spans[i] : 0, from, to);
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
	const pids = order.slice(0, HEAT_ROWS).map(t => t ?
		p.processes.pid[p.threads.process[t - 1]] : -1);

	if (order.length > HEAT_ROWS)
		names.push(`${order.length - HEAT_ROWS} other threads`);
	return {names, rowOf, pids};
}

// Returns the cells for a width in pixels: sums of values, row by row, with columns of @step ns. There
// are as many cells for each state. With @by "offset" a column is one or more seconds, and a row a
// part of a second.
function makeHeat(p, type, by, width) {
	const {end} = p.moments;
	const offsets = by === "offset";
	const most = Math.max(Math.floor(width / CELL), 1);
	const step = offsets ? SECOND * Math.max(Math.ceil(end / SECOND / most), 1) : end / most;
	const columns = Math.max(Math.ceil(end / step), 1);
	const {names, rowOf, pids} = offsets ?
		{names: new Array(OFFSETS).fill(""), rowOf: null, pids: []} : threadRows(p, type);
	const heat = {by, width, step, columns, names,
		cells: new Float64Array(columns * names.length),
		states: STATES.map(() => null),
		rowHeight: offsets ? OFFSET_ROW : HEAT_ROW,
		scale: width / (offsets ? columns * step : end),
		marks: pids.flatMap((pid, row) => p.moments.lives.filter(life => life.pid === pid)
			.map(({time, ended}) => ({row, time, ended})))};

	fillHeat(p, type, heat, rowOf);
	heat.most = heat.cells.reduce((a, b) => Math.max(a, b), 0);
	heat.parts = heat.states.map(cells => cells ? cells.reduce((a, b) => a + b, 0) : 0);
	heat.whole = heat.parts.reduce((a, b) => a + b, 0);
	return heat;
}

// Adds up the moments in the cells. @rowOf has the row of each thread, or is null.
function fillHeat(p, type, heat, rowOf) {
	const {time, sample, values} = p.moments;
	const spans = spansOf(p, p.moments, type);

	for (let i = 0; i < time.length; i++) {
		const state = stateAt(p, type, sample[i]);
		const cells = heat.states[state] ||= new Float64Array(heat.cells.length);
		const row = rowOf ? rowOf[p.samples.thread[sample[i]] + 1] : -1;
		const last = Math.min(Math.floor((time[i] + (spans ? spans[i] : 0)) / heat.step),
			heat.columns - 1);

		if (rowOf && values[type][i] <= 0)
			continue;
		for (let column = Math.min(Math.floor(time[i] / heat.step), last); column <= last; column++) {
			const part = last > Math.floor(time[i] / heat.step) ? partInRange(time[i], spans[i],
				column * heat.step, (column + 1) * heat.step) : 1;
			const at = (rowOf ? row : offsetRow(time[i])) * heat.columns + column;

			heat.cells[at] += values[type][i] * part;
			cells[at] += values[type][i] * part;
		}
	}
}

// Returns the row of a part of a second. What lasts longer is shown in the row in which it begins.
function offsetRow(time) {
	return OFFSETS - 1 - Math.floor(time % SECOND / SECOND * OFFSETS);
}

// Returns a level over time for a width in pixels: what held at the end of each column.
function makeLevel(p, type, width) {
	const {time, values, end} = p.moments;
	const columns = Math.max(Math.floor(width / CELL), 1), step = end / columns;
	const cells = new Float64Array(columns);
	let sum = 0, i = 0;

	for (let column = 0; column < columns; column++) {
		for (; i < time.length && (time[i] < (column + 1) * step || column === columns - 1); i++)
			sum += values[type][i];
		cells[column] = sum;
	}
	return {by: "level", width, step, columns, names: [""], cells, rowHeight: LEVEL_HEIGHT,
		most: cells.reduce((a, b) => Math.max(a, b), 0), scale: width / end,
		unit: p.types[type].unit};
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

// Returns what a cell holds, as text.
function describeCell(heat, cell, unit) {
	const parts = STATES.flatMap((text, state) => {
		const cells = heat.states && heat.states[state];
		const value = cells ? cells[cell.row * heat.columns + cell.column] : 0;

		return value && value !== cell.value ? [`${formatValue(Math.round(value), unit)} ${text}`] : [];
	});

	return [formatValue(Math.round(cell.value), unit), ...parts].join(", ");
}

// ---- Drawing ----

// Hues of the states, for little and for much.
const STATE_HUES = [[45, 15], [200, 225], [285, 300]];

function stateColour(state, part, dark) {
	const strength = Math.sqrt(part);
	const [little, much] = STATE_HUES[state];
	const hue = little + (much - little) * strength;

	return dark ? `hsl(${hue} 90% ${14 + 50 * strength}%)` :
		`hsl(${hue} 95% ${90 - 52 * strength}%)`;
}

function drawHeat(context, heat, dark, theme, height) {
	context.clearRect(0, 0, heat.width, height);
	if (heat.by === "level")
		drawLevel(context, heat, dark, theme);
	else
		drawCells(context, heat, dark);
	drawMarks(context, heat, theme);
	context.font = "9px system-ui, sans-serif";
	heat.names.forEach((name, row) => drawHeatName(context, heat, name, row, theme));
}

// Draws each cell. If a thread did several things in it, each has its part of the cell's height.
function drawCells(context, heat, dark) {
	const width = heat.step * heat.scale;
	const inner = heat.rowHeight - (heat.rowHeight > 6 ? 1 : 0);

	for (let at = 0; at < heat.cells.length; at++) {
		const value = heat.cells[at];
		const x = at % heat.columns * width;
		let y = Math.floor(at / heat.columns) * heat.rowHeight;

		if (value <= 0)
			continue;
		heat.states.forEach((cells, state) => {
			const part = cells ? inner * cells[at] / value : 0;

			context.fillStyle = stateColour(state, value / heat.most, dark);
			if (part > 0)
				context.fillRect(x, y, Math.max(width, 1) + 0.3, part);
			y += part;
		});
	}
}

// Draws a bracket where the process of a thread began, and one where it ended.
function drawMarks(context, heat, theme) {
	context.strokeStyle = theme.text;
	context.lineWidth = 1.5;
	for (const {row, time, ended} of heat.marks || []) {
		const x = Math.min(Math.max(time * heat.scale, 1), heat.width - 1);
		const top = row * heat.rowHeight + 0.75, bottom = top + heat.rowHeight - 2.5;
		const inner = x + (ended ? -3 : 3);

		context.beginPath();
		context.moveTo(inner, top);
		context.lineTo(x, top);
		context.lineTo(x, bottom);
		context.lineTo(inner, bottom);
		context.stroke();
	}
}

// Draws a level as an area, with its highest value as text.
function drawLevel(context, heat, dark, theme) {
	const width = heat.step * heat.scale, height = heat.rowHeight - 2;
	const y = value => height - (heat.most > 0 ? Math.max(value, 0) / heat.most : 0) * (height - 14);

	context.fillStyle = stateColour(0, 0.3, dark);
	for (let column = 0; column < heat.columns; column++)
		context.fillRect(column * width, y(heat.cells[column]), width + 0.3,
			height - y(heat.cells[column]));
	context.font = "11px system-ui, sans-serif";
	context.fillStyle = theme.text;
	context.fillText(`at most ${formatValue(heat.most, heat.unit)}, ` +
		`at the end ${formatValue(heat.cells[heat.columns - 1], heat.unit)}`, 3, 11);
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
