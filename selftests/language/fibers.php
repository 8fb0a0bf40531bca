<?php
// SPDX-License-Identifier: GPL-2.0-or-later
/* A program that goes on with a fiber all the time: both have as many calls of the interpreter. */
function in_fiber() { while (true) Fiber::suspend(); }
function go_on($f) { $f->resume(); }

$f = new Fiber('in_fiber');
$f->start();
while (true)
	go_on($f);
