<?php
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that waits in a known place, and says which.
 *
 *	waiting.php FILE KIND
 *
 * KIND is how the place is reached (see $kinds). It writes into FILE its process ID, and the
 * functions and lines where it waits, as PHP itself tells them. Then it waits until it is killed.
 */
class Key {
	public static $made = 0;
	function __construct() { if (!self::$made++) wait(); }
	function __get($name) { return wait(); }
	static function compare($a, $b) { return wait(); }
}

/* Notes where the caller of this function is, at the line that calls it. */
function tell()
{
	global $argv;
	$words = [getmypid()];
	$trace = debug_backtrace();
	foreach ($trace as $i => $frame) {
		$of = $trace[$i + 1] ?? ['function' => '{main}'];
		/* The caller of what is called from C code is not in a place of the program. */
		$words[] = ($of['class'] ?? '') . ($of['type'] ?? '' ? '::' : '') . $of['function']
			. '@' . ($frame['line'] ?? 0);
	}
	file_put_contents("$argv[1].new", implode("\t", $words) . "\n");
	rename("$argv[1].new", $argv[1]);
}

function wait()
{
	tell(); fread(STDIN, 1);
}

function generate($n)
{
	yield wait();
}

function deep($n)
{
	return $n ? deep($n - 1) : wait();
}

/* A fiber made by one whose stack is deep, too: what is known of both are the ends. */
function make_inside($n)
{
	if ($n)
		return make_inside($n - 1);
	$f = new Fiber('deep');
	$f->start(700);
}

$kinds = [
	'sort' => function () { $v = [2, 1]; usort($v, 'Key::compare'); },
	'map' => fn() => array_map(fn($v) => wait(), [1]),
	'generator' => function () { foreach (generate(1) as $v); },
	'deep' => fn() => deep(60),
	'magic' => function () { Key::$made = 1; return (new Key)->missing; },
	'made' => fn() => new Key,
	'fiber' => function () { $f = new Fiber(fn() => array_map(fn($n) => deep($n), [3])); $f->start(); },
	'nested' => function () { $f = new Fiber('make_inside'); $f->start(900); },
];
$kinds[$argv[2]]();
