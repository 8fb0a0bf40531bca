# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the completion of shstk for zsh or fish (-v shell=) from the table of all options that the
# command prints: COMMAND LONG SHORT ARGUMENT TEXT, see tools/complete.h. Both shells have functions
# of their own, which only need a list of options and what follows each option.

# Returns a word in single quotes, as the shell reads it.
function quoted(s)
{
	if (shell == "fish") {
		gsub(/\\/, "&&", s)
		gsub(/'/, "\\'", s)
	} else {
		gsub(/'/, "'\\''", s)
	}
	return "'" s "'"
}

# Returns the words of a list this|that with blanks between them, or "" if it is no list.
function choices(kind)
{
	if (kind !~ /\|/)
		return ""
	gsub(/\|/, " ", kind)
	return kind
}

# ---- zsh: specifications for _arguments ----

# Escapes brackets and colons, which have a meaning in a specification.
function zsh_text(s)
{
	gsub(/\\/, "\\\\&", s)
	gsub(/\[/, "\\\\&", s)
	gsub(/\]/, "\\\\&", s)
	gsub(/:/, "\\\\&", s)
	return s
}

# Returns MESSAGE:ACTION for what follows an option, or for an operand.
function zsh_action(kind)
{
	if (choices(kind) != "")
		return "word:(" choices(kind) ")"
	if (kind == "FILE")
		return "file:_files"
	if (kind == "DIR" || kind == "PATH")
		return "folder:_files -/"
	if (kind == "PID")
		return "process:_pids"
	if (kind == "PROGRAM")
		return "program:_command_names -e"
	return zsh_text(kind) ":"
}

function zsh_option(long, short, kind, text,	tail)
{
	tail = "[" zsh_text(text) "]" (kind == "-" ? "" : ":" zsh_action(kind))
	if (long != "-")
		spec(quoted("*" long (kind == "-" ? "" : "=") tail))
	if (short != "-")
		spec(quoted("*" short (kind == "-" ? "" : "+") tail))
}

# Writes the specification of an operand. Everything after COMMAND belongs to the program that is
# started.
function zsh_operand(kind)
{
	if (kind == "COMMAND") {
		spec("'(-):command:_command_names -e'")
		spec("'*::argument:_normal'")
	} else if (kind != "-") {
		spec(quoted((choices(kind) != "" ? "1:" : "*:") zsh_action(kind)))
	}
}

function spec(word)
{
	specs[command] = specs[command] " \\\n\t\t\t" word
}

function zsh_end(	i)
{
	print "#compdef shstk"
	print "# Made by tools/completion.awk from the option tables of shstk."
	print ""
	print "_shstk() {"
	print "\tlocal curcontext=$curcontext context state state_descr line"
	print "\ttypeset -A opt_args"
	print "\tlocal -a commands=("
	for (i = 1; i <= count; i++)
		print "\t\t" quoted(names[i] ":" zsh_text(summary[names[i]]))
	print "\t)"
	print ""
	print "\t_arguments -C" specs["shstk"] " \\"
	print "\t\t'1:command:->command' '*::argument:->argument'"
	print "\tcase $state in"
	print "\tcommand) _describe -t commands command commands ;;"
	print "\targument)"
	print "\t\tcase $words[1] in"
	for (i = 1; i <= count; i++)
		if (specs[names[i]] != "")
			print "\t\t" names[i] ") _arguments -S" specs[names[i]] " ;;"
	print "\t\tesac ;;"
	print "\tesac"
	print "}"
	print ""
	print "_shstk \"$@\""
}

# ---- fish: a call of complete for each option ----

function fish_action(kind)
{
	if (choices(kind) != "")
		return " -x -a " quoted(choices(kind))
	if (kind == "FILE")
		return " -r -F"
	if (kind == "DIR" || kind == "PATH")
		return " -x -a '(__fish_complete_directories (commandline -ct))'"
	if (kind == "PID")
		return " -x -a '(__fish_complete_pids)'"
	if (kind == "-")
		return ""
	return " -x"
}

function fish_complete(condition, rest)
{
	lines[++line_count] = "complete -c shstk -n " quoted(condition) rest
}

function fish_option(long, short, kind, text,	rest)
{
	rest = (long == "-" ? "" : " -l " substr(long, 3)) (short == "-" ? "" : " -s " substr(short, 2))
	if (text != "")
		rest = rest " -d " quoted(text)
	fish_complete(command == "shstk" ? "__shstk_first" : "__shstk_in " command,
		      rest fish_action(kind))
}

function fish_operand(kind,	condition)
{
	condition = "__shstk_in " command
	if (kind == "COMMAND")
		fish_complete(condition, " -x -a '(__shstk_started)'")
	else if (kind == "FILE" || kind == "PROGRAM")
		fish_complete(condition, " -F")
	else if (kind == "PID")
		fish_complete(condition, " -a '(__fish_complete_pids)'")
	else if (choices(kind) != "")
		fish_complete(condition, " -a " quoted(choices(kind)))
}

function fish_end(	i)
{
	print "# Made by tools/completion.awk from the option tables of shstk."
	print ""
	print "# Is the command of shstk the next word, or one of those named?"
	print "function __shstk_first"
	print "    test (count (commandline -opc)) -lt 2"
	print "end"
	print "function __shstk_in"
	print "    set -l words (commandline -opc)"
	print "    test (count $words) -ge 2; and contains -- $words[2] $argv"
	print "end"
	print "# What is started is completed in its own way: behind its first word, or behind --."
	print "function __shstk_started"
	print "    set -l words (commandline -opc)"
	print "    set -l word (commandline -ct)"
	print "    set -l at (contains -i -- -- $words)"
	print "    if test -n \"$at\""
	print "        set -l rest (string join ' ' -- $words[(math $at + 1)..-1] \"$word\")"
	print "        complete \"--do-complete=$rest\""
	print "    else"
	print "        complete \"--do-complete=$word\""
	print "    end"
	print "end"
	print ""
	print "complete -c shstk -f"
	for (i = 1; i <= count; i++)
		print "complete -c shstk -n __shstk_first -a " names[i] " -d " quoted(summary[names[i]])
	for (i = 1; i <= line_count; i++)
		print lines[i]
}

# ---- The table ----

{
	command = $1
	text = ""
	for (i = 5; i <= NF; i++)
		text = text (i > 5 ? " " : "") $i
}
$2 == "-" && $3 == "-" && command != "shstk" {
	names[++count] = command
	summary[command] = text
	if (shell == "fish")
		fish_operand($4)
	else
		zsh_operand($4)
	next
}
$2 == "-" && $3 == "-" { next }
{
	if (shell == "fish")
		fish_option($2, $3, $4, text)
	else
		zsh_option($2, $3, $4, text)
}

END {
	if (shell == "fish")
		fish_end()
	else
		zsh_end()
}
