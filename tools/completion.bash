# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of shstk for bash. The Makefile puts in the table of all options, which the command
# itself prints: COMMAND LONG SHORT ARGUMENT TEXT, see tools/complete.h.

IFS= read -r -d '' _shstk_table <<'END' || :
@TABLE@
END

# _shstk_argument COMMAND WORD: sets argument to the kind of argument that follows the option WORD,
# or to "-" if none does. If WORD is "-", sets it to the kind of the operands.
_shstk_argument()
{
	local command long short kind

	argument=-
	while read -r command long short kind _; do
		if [[ $command == "$1" && ( $long == "$2" || $short == "$2" ) ]]; then
			argument=$kind
			return
		fi
	done <<<"$_shstk_table"
}

# _shstk_options COMMAND: prints the options of the command.
_shstk_options()
{
	local command long short kind

	while read -r command long short kind _; do
		if [[ $command == "$1" ]]; then
			printf '%s\n' "$long" "$short"
		fi
	done <<<"$_shstk_table" | grep -vx -e -
}

# _shstk_words KIND: completes an argument of this kind, into COMPREPLY.
_shstk_words()
{
	case $1 in
	*'|'*)	mapfile -t COMPREPLY < <(compgen -W "${1//|/ }" -- "$cur") ;;
	FILE)	compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	DIR | PATH)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	PID)	mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur") ;;
	COMMAND | PROGRAM)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -d -- "$cur") ;;
	esac
}

# _shstk_delegate WORD: lets the program that COMMAND starts, from word number WORD on, complete in
# its own way.
_shstk_delegate()
{
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((COMP_CWORD > $1)); then
		_shstk_words FILE
	else
		_shstk_words COMMAND
	fi
}

_shstk()
{
	local cur=${COMP_WORDS[COMP_CWORD]} command=shstk argument i word

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $command == shstk ]]; then
			command=$word
			continue
		fi
		if [[ $word == -- ]]; then
			((i++))
			break
		fi
		[[ $word == -* ]] || break
		_shstk_argument "$command" "$word"
		# bash takes the "=" of --option=value for a word.
		[[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
		if [[ $argument != - || ${COMP_WORDS[i]} == = ]]; then
			((i++))
			if ((i >= COMP_CWORD)); then
				[[ $cur == = ]] && cur=
				_shstk_words "$argument"
				return
			fi
		fi
	done
	_shstk_argument "$command" -
	if [[ $argument == COMMAND && ( $i -lt $COMP_CWORD || $cur != -* ) ]]; then
		_shstk_delegate "$i"
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_shstk_options "$command")" -- "$cur")
	else
		_shstk_words "$argument"
	fi
}

complete -F _shstk shstk
