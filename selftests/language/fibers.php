<?php
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that goes on with a fiber all the time, or with its argument "inside" has one do that. Both stacks have as
 * many calls of the interpreter. That of the outer fiber has one native call more, by which it is known.
 */
function in_fiber() { while (true) Fiber::suspend(); }
function go_on($f) { $f->resume(); }

function go_on_always()
{
	$f = new Fiber('in_fiber');
	$f->start();
	while (true)
		go_on($f);
}

if ($argc > 1)
	(new Fiber('call_user_func'))->start('go_on_always');
go_on_always();
