<?php
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that goes on with generators all the time: with those that were just made ("made"), or with one that
 * another function went on with last, whose frame is gone ("other").
 */
function generate() { while (true) yield 1; }
function begin($g) { $g->current(); }
function go_on($g) { $g->next(); }
function inside($n) { global $g; go_on($g); }

while ($argv[1] == 'made')
	begin(generate());
$g = generate();
while (true) {
	begin($g);
	go_on($g);
	array_map('inside', [1]);
}
