// SPDX-License-Identifier: LGPL-2.1-or-later
//
// model.js - a profile in the page, and trees that are made of it. Nothing here draws.
//
// All data is kept in columns: the i-th frame has the name frames.name[i], the file frames.file[i]
// and so on; there is no object for a sample, a stack or a node. The file with the data is written
// by export_page.c, which describes it.
//
// The nodes of a tree are numbered in the order of a walk that starts at the outermost one, 0. So
// the nodes below node i are those from i + 1 to end[i] - 1, and a walk passes over a whole branch
// by going on at its end.
"use strict";

const GROUP_KINDS = ["all", "command", "process", "thread", "label"];

// Returns the profile of the page's data, which is base64 of gzip of JSON.
async function readProfile(text) {
	const packed = atob(text.trim());
	const bytes = new Uint8Array(packed.length);

	for (let i = 0; i < bytes.length; i++)
		bytes[i] = packed.charCodeAt(i);
	const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));

	return makeProfile(await new Response(plain).json());
}

// Returns the parents of stacks. They are stored as distances, which are small numbers.
function readParents(distances) {
	const parents = new Int32Array(distances.length);

	for (let i = 0; i < parents.length; i++)
		parents[i] = distances[i] ? i - distances[i] : -1;
	return parents;
}

function makeProfile(file) {
	const text = column => column.map(i => file.strings[i]);
	const p = {
		about: file,
		types: file.types,
		frames: {
			name: text(file.frames.name),
			label: text(file.frames.label),
			brief: text(file.frames.brief),
			module: text(file.frames.module),
			file: text(file.frames.file),
			line: file.frames.line,
		},
		kinds: GROUP_KINDS.concat(file.kinds),
		stacks: {
			parent: readParents(file.stacks.parent),
			frame: new Int32Array(file.stacks.frame),
			kind: new Uint8Array(file.stacks.kind).map(k => k + GROUP_KINDS.length),
		},
		processes: {pid: file.processes.pid, name: text(file.processes.name)},
		threads: {
			process: file.threads.process,
			tid: file.threads.tid,
			name: text(file.threads.name),
		},
		samples: {
			stack: new Int32Array(file.samples.stack),
			thread: new Int32Array(file.samples.thread),
			labels: new Int32Array(file.samples.labels),
		},
		values: file.values.map(column => new Float64Array(column)),
	};

	p.labels = readLabels(file);
	p.states = statesOf(p);
	p.moments = readMoments(p);
	p.threads.merged = mergeNames(p.threads.name);
	addGroupFrames(p);
	p.rank = rankFrames(p.frames.name);
	return p;
}

// Returns the values of labels: a map of keys, each with the value that each set has for it.
function readLabels(file) {
	const {set, key, value} = file.labels;
	const ret = new Map();

	set.forEach((number, i) => {
		const name = file.strings[key[i]];

		if (!ret.has(name))
			ret.set(name, new Map());
		if (!ret.get(name).has(number))
			ret.get(name).set(number, file.strings[value[i]]);
	});
	return ret;
}

// ---- What threads do ----

const STATES = ["on the CPU", "waiting", "preempted"];

// Returns what a thread does in a type of values as a whole: an index into STATES.
function stateOfType(type) {
	return type === "off-cpu" ? 1 : type === "preempted" ? 2 : 0;
}

// Returns what the thread does in each sample, as its label "state" says: an index into STATES.
function statesOf(p) {
	const known = p.labels.get("state");

	return known ? Uint8Array.from(p.samples.labels,
		set => Math.max(STATES.indexOf(known.get(set)), 0)) : null;
}

function stateAt(p, type, sample) {
	return p.states && p.states[sample] || stateOfType(p.types[type].type);
}

// Returns the frame in which a stack waits: the innermost one outside the kernel.
function waitFrame(p, stack) {
	const kernel = p.kinds.indexOf("kernel");
	let at = stack;

	while (at >= 0 && p.stacks.kind[at] === kernel && p.stacks.parent[at] >= 0)
		at = p.stacks.parent[at];
	return at < 0 ? -1 : p.stacks.frame[at];
}

// Merges names that differ only in their numbers: "lto cgu.0" and "lto cgu.1" become "lto cgu.*".
function mergeNames(names) {
	const pattern = name => name.replace(/\d+/g, "*");
	const sets = new Map();

	for (const name of names) {
		const key = pattern(name);

		if (!sets.has(key))
			sets.set(key, new Set());
		sets.get(key).add(name);
	}
	return names.map(name => sets.get(pattern(name)).size > 1 ? pattern(name) : name);
}

// Adds frames for commands, processes and threads behind the frames of functions.
function addGroupFrames(p) {
	const known = new Map();
	const frame = name => {
		if (!known.has(name)) {
			known.set(name, p.frames.name.length);
			for (const [column, value] of [["name", name], ["label", name],
				["brief", name], ["module", ""], ["file", ""], ["line", 0]])
				p.frames[column].push(value);
		}
		return known.get(name);
	};
	const {processes, threads} = p;
	const idOf = i => threads.tid[i] < 0 ? "" : ` ${processes.pid[threads.process[i]]}/${threads.tid[i]}`;

	p.allFrame = frame("all");
	processes.commandFrame = processes.name.map(frame);
	processes.frame = processes.name.map((name, i) => frame(`${name} ${processes.pid[i]}`));
	threads.mergedFrame = threads.merged.map(frame);
	threads.frame = threads.name.map((name, i) => frame(name + idOf(i)));
	p.labelFrames = new Map();
	for (const [key, values] of p.labels)
		p.labelFrames.set(key, new Map(Array.from(values, ([set, value]) =>
			[set, frame(`${key}: ${value}`)])));
}

// Returns the place of each frame in the alphabetical order of names.
function rankFrames(names) {
	const order = Array.from(names.keys());
	const rank = new Int32Array(names.length);

	order.sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b);
	order.forEach((frame, place) => rank[frame] = place);
	return rank;
}

// ---- Trees ----

// Returns the nodes of a tree that grows: a parent comes before its children. The columns have room
// for more than there are.
function makeNodes() {
	const room = 1024;

	return {nr: 0, parent: new Int32Array(room), frame: new Int32Array(room),
		kind: new Uint8Array(room), self: new Float64Array(room), other: new Float64Array(room)};
}

function growNodes(nodes) {
	for (const column of ["parent", "frame", "kind", "self", "other"]) {
		const larger = new nodes[column].constructor(2 * nodes.nr);

		larger.set(nodes[column]);
		nodes[column] = larger;
	}
}

function addNode(nodes, parent, frame, kind) {
	if (nodes.nr === nodes.parent.length)
		growNodes(nodes);
	nodes.parent[nodes.nr] = parent;
	nodes.frame[nodes.nr] = frame;
	nodes.kind[nodes.nr] = kind;
	return nodes.nr++;
}

// Returns the frames above a thread's stacks, outermost first, as [frame, kind].
function groupsOf(p, thread, levels) {
	const process = p.threads.process[thread];
	const ret = [];

	if (levels.command && p.processes.name[process])
		ret.push([p.processes.commandFrame[process], 1]);
	if (levels.process && p.processes.pid[process] >= 0)
		ret.push([p.processes.frame[process], 2]);
	if (levels.thread === "merged" && p.threads.name[thread])
		ret.push([p.threads.mergedFrame[thread], 3]);
	if (levels.thread === "each")
		ret.push([p.threads.frame[thread], 3]);
	return ret;
}

// Returns the outermost frame of a sample as @by says: the function in which it waits ("wait"), or the
// value of a label; -1 if there is none.
function outermostFrame(p, by, sample) {
	if (by === "wait")
		return waitFrame(p, p.samples.stack[sample]);
	const frames = p.labelFrames.get(by);

	return frames && frames.has(p.samples.labels[sample]) ?
		frames.get(p.samples.labels[sample]) : -1;
}

// Returns the nodes of groups, and for each sample the node below which its stack stands. Stacks of
// which nothing is known stand below the root.
function addGroups(p, nodes, levels) {
	const known = new Map(), places = new Map();
	const {thread} = p.samples;
	const child = (node, frame, kind) => {
		const key = (node * p.frames.name.length + frame) * GROUP_KINDS.length + kind;

		if (!known.has(key))
			known.set(key, addNode(nodes, node, frame, kind));
		return known.get(key);
	};

	return Int32Array.from(thread, (of, i) => {
		const outermost = levels.by ? outermostFrame(p, levels.by, i) : -1;
		const key = (outermost + 1) * (p.threads.name.length + 1) + of + 1;

		if (!places.has(key)) {
			let node = outermost < 0 ? 0 : child(0, outermost, 4);

			for (const [frame, kind] of of < 0 ? [] : groupsOf(p, of, levels))
				node = child(node, frame, kind);
			places.set(key, node);
		}
		return places.get(key);
	});
}

// Returns the numbers from 0 to @nr - 1, sorted by @key(i), which is less than @keys. Numbers with
// the same key stay in their order.
function orderBy(nr, keys, key) {
	const ends = new Uint32Array(keys + 1);
	const order = new Uint32Array(nr);

	for (let i = 0; i < nr; i++)
		ends[key(i) + 1]++;
	for (let k = 0; k < keys; k++)
		ends[k + 1] += ends[k];
	for (let i = 0; i < nr; i++)
		order[ends[key(i)]++] = i;
	return order;
}

// Adds the stacks of all samples below their groups. The samples are sorted by group: nodeOf[]
// holds the node of a stack in the group in which it was met last.
function addStacks(p, nodes, groups, value, other) {
	const {parent, frame, kind} = p.stacks;
	const nodeOf = new Int32Array(parent.length);
	const groupOf = new Int32Array(parent.length).fill(-1);
	const path = [];

	const groupAt = i => groups[i];

	for (const i of orderBy(p.samples.stack.length, nodes.nr, groupAt)) {
		const group = groupAt(i);
		let stack = p.samples.stack[i];

		if (!value[i] && !(other && other[i]))
			continue;
		for (path.length = 0; stack >= 0 && groupOf[stack] !== group; stack = parent[stack])
			path.push(stack);
		let node = stack < 0 ? group : nodeOf[stack];
		while (path.length) {
			stack = path.pop();
			node = addNode(nodes, node, frame[stack], kind[stack]);
			groupOf[stack] = group;
			nodeOf[stack] = node;
		}
		nodes.self[node] += value[i];
		if (other)
			nodes.other[node] += other[i];
	}
}

// Returns the finished tree, its nodes in the order of a walk, children sorted by name.
function finishTree(p, nodes) {
	const total = nodes.self.slice(0, nodes.nr);
	const otherTotal = nodes.other.slice(0, nodes.nr);

	for (let i = nodes.nr - 1; i > 0; i--) {
		total[nodes.parent[i]] += total[i];
		otherTotal[nodes.parent[i]] += otherTotal[i];
	}
	const {first, next} = linkChildren(p, nodes, (i) => total[i] > 0 || otherTotal[i] > 0);
	return numberNodes(nodes, first, next, total, otherTotal);
}

// Makes lists of children in the order of their names: all nodes, the last name first, are put
// before those that their parents have already.
function linkChildren(p, nodes, wanted) {
	const nr = nodes.nr;
	const first = new Int32Array(nr).fill(-1);
	const next = new Int32Array(nr).fill(-1);
	const byRank = orderBy(nr, p.rank.length, i => p.rank[nodes.frame[i]]);

	for (const i of byRank.reverse()) {
		const parent = nodes.parent[i];

		if (parent < 0 || !wanted(i))
			continue;
		next[i] = first[parent];
		first[parent] = i;
	}
	return {first, next};
}

function makeTree(nr) {
	return {
		nr,
		parent: new Int32Array(nr),
		frame: new Int32Array(nr),
		kind: new Uint8Array(nr),
		depth: new Int32Array(nr),
		end: new Uint32Array(nr),
		start: new Float64Array(nr),
		self: new Float64Array(nr),
		total: new Float64Array(nr),
		other: new Float64Array(nr),
		depths: 0,
	};
}

function shrinkTree(tree, nr) {
	for (const [column, values] of Object.entries(tree))
		if (ArrayBuffer.isView(values))
			tree[column] = values.subarray(0, nr);
	tree.nr = nr;
	return tree;
}

// Numbers the nodes in the order of a walk; @first and @next are the lists of children. Stacks may
// be deep, so nothing here calls itself.
function numberNodes(nodes, first, next, total, other) {
	const tree = makeTree(nodes.nr);
	const {parent, depth, end, start} = tree;
	const place = new Int32Array(nodes.nr);
	const order = new Int32Array(nodes.nr); // node at each place
	let nr = 0, level = 0, node = 0, from = 0;

	while (node >= 0) {
		const at = nr++;

		place[node] = at;
		order[at] = node;
		parent[at] = level ? place[nodes.parent[node]] : -1;
		depth[at] = level;
		start[at] = from;
		if (first[node] >= 0) {
			node = first[node];
			level++;
			continue;
		}
		// Nothing is below this node, nor below those whose last child it is.
		for (; node >= 0 && next[node] < 0; node = nodes.parent[node], level--)
			end[place[node]] = nr;
		if (node >= 0) {
			end[place[node]] = nr;
			from = start[place[node]] + total[node];
			node = next[node];
		}
	}
	fillTree(tree, nodes, order.subarray(0, nr), total, other);
	return shrinkTree(tree, nr);
}

function fillTree(tree, nodes, order, total, other) {
	for (let at = 0; at < order.length; at++) {
		const node = order[at];

		tree.frame[at] = nodes.frame[node];
		tree.kind[at] = nodes.kind[node];
		tree.self[at] = nodes.self[node];
		tree.total[at] = total[node];
		tree.other[at] = other[node];
		tree.depths = Math.max(tree.depths, tree.depth[at] + 1);
	}
}

// Returns the tree of all stacks, callers above callees. @values has a value for each sample;
// @others has the values that they are compared with, or is undefined.
function buildTree(p, levels, values, others) {
	const nodes = makeNodes();

	addNode(nodes, -1, p.allFrame, 0);
	addStacks(p, nodes, addGroups(p, nodes, levels), values, others);
	return finishTree(p, nodes);
}

// ---- Callers ----

// Branches with a smaller part of the whole are left out of the tree of callers, because that tree
// has a copy of a stack for each function at its end.
const LEAST_PART = 1 / 20000;

// Returns the tree of the same stacks from the innermost function on: below each function stand its
// callers. It is made of a tree of all stacks, so groups stand at the ends.
function invertTree(p, tree) {
	const nodes = makeNodes();
	const leaves = Uint32Array.from(tree.self.keys()).filter(i => tree.self[i] > 0 && i);
	const work = {
		p, tree, nodes, leaves,
		at: leaves.slice(), // place that the path of each leaf has reached
		order: Uint32Array.from(leaves.keys()), // numbers of leaves, grouped by run
		spare: new Uint32Array(leaves.length),
		count: new Uint32Array(p.frames.name.length),
		runs: [[0, leaves.length, addNode(nodes, -1, p.allFrame, 0)]],
		least: tree.total[0] * LEAST_PART,
	};

	nodes.self[0] = tree.self[0];
	while (work.runs.length)
		splitRun(work, ...work.runs.pop());
	return finishTree(p, nodes);
}

// Splits a run: the leaves order[from..to], whose paths so far are the same and led to @parent.
// Leaves that have now reached the same frame are brought together.
function splitRun(work, from, to, parent) {
	const {tree, order, spare, count, at} = work;
	const frames = [];

	for (let i = from; i < to; i++) {
		const frame = tree.frame[at[order[i]]];

		if (!count[frame]++)
			frames.push(frame);
	}
	let place = from;
	const starts = frames.map(frame => {
		const start = place;

		place += count[frame];
		count[frame] = start;
		return start;
	});
	for (let i = from; i < to; i++)
		spare[count[tree.frame[at[order[i]]]]++] = order[i];
	order.set(spare.subarray(from, to), from);
	frames.forEach((frame, i) => {
		const end = count[frame];

		count[frame] = 0;
		addCaller(work, starts[i], end, parent, frame);
	});
}

// Adds a node for the leaves order[from..to], which have reached the same frame. The leaves whose
// path goes on become another run.
function addCaller(work, from, to, parent, frame) {
	const {tree, nodes, leaves, order, at, least, runs} = work;
	let sum = 0, kept = from;

	for (let i = from; i < to; i++)
		sum += tree.self[leaves[order[i]]];
	if (sum < least) {
		nodes.self[parent] += sum;
		return;
	}
	const node = addNode(nodes, parent, frame, tree.kind[at[order[from]]]);

	for (let i = from; i < to; i++) {
		const leaf = order[i];
		const up = tree.parent[at[leaf]];

		if (up > 0) {
			at[leaf] = up;
			[order[kept], order[i]] = [leaf, order[kept]];
			kept++;
		} else {
			nodes.self[node] += tree.self[leaves[leaf]];
		}
	}
	if (kept > from)
		runs.push([from, kept, node]);
}

// ---- Questions to a tree ----

// Returns whether @node is below @root, or the root itself.
function isBelow(tree, node, root) {
	return node >= root && node < tree.end[root];
}

// Returns the frames from below the root to a node, by which it can be found in another tree.
function pathOf(tree, node) {
	const path = [];

	for (; node > 0; node = tree.parent[node])
		path.unshift(tree.frame[node]);
	return path;
}

// Returns the node that a path leads to, or the root.
function nodeOfPath(tree, path) {
	let node = 0;

	for (const frame of path) {
		let child = node + 1;

		while (child < tree.end[node] && tree.frame[child] !== frame)
			child = tree.end[child];
		if (child >= tree.end[node])
			return 0;
		node = child;
	}
	return node;
}

// Counts the nodes and functions below @root that are in @hits (a mark for each frame), and their
// value. A hit inside another hit adds no value.
function countHits(tree, hits, root) {
	const seen = new Uint8Array(hits.length);
	let functions = 0, boxes = 0, value = 0, until = 0;

	for (let i = root; i < tree.end[root]; i++) {
		if (!hits[tree.frame[i]])
			continue;
		boxes++;
		functions += !seen[tree.frame[i]];
		seen[tree.frame[i]] = 1;
		if (i >= until) {
			value += tree.total[i];
			until = tree.end[i];
		}
	}
	return {boxes, functions, value};
}

// Returns a row for each function below @root: frames with their own values and their values with
// callees, where recursion counts once.
function sumFunctions(p, tree, root) {
	const nr = p.frames.name.length;
	const columns = {
		self: new Float64Array(nr), total: new Float64Array(nr),
		otherTotal: new Float64Array(nr), kind: new Uint8Array(nr),
	};
	const until = new Uint32Array(nr);
	const frames = [];

	for (let i = root; i < tree.end[root]; i++) {
		const frame = tree.frame[i];

		if (tree.kind[i] < GROUP_KINDS.length)
			continue;
		if (!until[frame])
			frames.push(frame);
		columns.self[frame] += tree.self[i];
		columns.kind[frame] = tree.kind[i];
		if (i < until[frame])
			continue;
		columns.total[frame] += tree.total[i];
		columns.otherTotal[frame] += tree.other[i];
		until[frame] = tree.end[i];
	}
	return {frames: Int32Array.from(frames), ...columns};
}

// Sums the own values below @root by @key(node). Returns [key, sum], the largest first.
function sumBy(tree, root, key) {
	const sums = new Map();

	for (let i = root; i < tree.end[root]; i++)
		if (tree.self[i])
			sums.set(key(i), (sums.get(key(i)) || 0) + tree.self[i]);
	return [...sums].sort((a, b) => b[1] - a[1]);
}

// Returns a mark for each frame whose name matches, or null if there is nothing to search for.
function findFrames(p, pattern) {
	return pattern && Uint8Array.from(p.frames.name, name => pattern.test(name) ? 1 : 0);
}

// Formats a value as shstk_format_value() of export.c does.
function formatValue(value, unit) {
	const steps = unit === "nanoseconds" ? [1000, ["ns", "us", "ms", "s"], 3] :
		unit === "bytes" ? [1024, ["B", "KiB", "MiB", "GiB", "TiB"], 2] : null;
	let i = 0;

	if (!steps)
		return unit === "count" ? String(value) : `${value} ${unit}`;
	for (; i < steps[1].length - 1 && Math.abs(value) >= steps[0]; i++)
		value /= steps[0];
	return `${value.toFixed(i ? steps[2] : 0)} ${steps[1][i]}`;
}

function formatShare(part, whole) {
	return whole ? `${(100 * part / whole).toFixed(2)} %` : "";
}
