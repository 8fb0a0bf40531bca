<?php
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that throws exceptions into generators all the time. Where the frame was that has called one of them last,
 * there is that of array_map() then.
 */
function generate() { while (true) { try { yield 1; } catch (Exception $e) { } } }
function throw_in($g, $e) { $g->throw($e); }
function inside($e) { global $g; throw_in($g, $e); }

$all = [new Exception];
while (true) {
	$g = generate();
	$g->current();
	array_map('inside', $all);
}
