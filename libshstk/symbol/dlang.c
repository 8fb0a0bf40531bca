// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dlang.c - readable names of D, by dlang.org/spec/abi.html, "Name Mangling".
 *
 * libiberty's demangler of D has no bound: back references made 218 MB of 143 bytes, and where a
 * name can be read in two ways it tries both, at each level of a nested name. Here each byte that
 * is read or written is paid for, and a name that costs too much stays as it is in the file.
 *
 * Each reader below consumes its part of the name and appends the readable text. It returns false
 * if the name does not have that part; the place in the name and the text are then undefined.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dlang.h"

#define DECIMAL "0123456789"
#define WORK 200000 /* letters that are read or written for one name */
#define DEPTH 96 /* nesting depth of names and types */

/**
 * struct dname - a name being read
 * @name: the whole mangled name, ended by a zero.
 * @end: end of @name.
 * @at: what is read next.
 * @ref: only back references that lie before this place are followed. While one is followed, this
 *	is its place, so that references always lead back and end.
 * @text: the readable text.
 * @len: bytes in @text.
 * @max: bytes that @text has room for.
 * @work: how many letters may still be read or written.
 * @depth: nesting depth of what is being read.
 */
struct dname {
	const char *name;
	const char *end;
	const char *at;
	const char *ref;
	char *text;
	size_t len;
	size_t max;
	size_t work;
	unsigned int depth;
};

static bool read_type(struct dname *d);
static bool read_value(struct dname *d, char type, size_t name);
static bool read_qualified(struct dname *d, bool modifiers);
static bool read_mangled(struct dname *d);

static bool pay(struct dname *d, size_t work)
{
	if (work > d->work) {
		d->work = 0;
		return false;
	}
	d->work -= work;
	return true;
}

static bool put(struct dname *d, const char *text, size_t len)
{
	if (len > d->max - d->len || !pay(d, len + 1))
		return false;
	memcpy(d->text + d->len, text, len);
	d->len += len;
	return true;
}

static bool put_string(struct dname *d, const char *text)
{
	return put(d, text, strlen(text));
}

static void reverse(char *text, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		char c = text[i];

		text[i] = text[len - 1 - i];
		text[len - 1 - i] = c;
	}
}

/*
 * Swaps two neighbouring parts of the text: what begins at @second comes before what begins at
 * @first.
 */
static bool swap(struct dname *d, size_t first, size_t second)
{
	if (!pay(d, 2 * (d->len - first)))
		return false;
	reverse(d->text + first, second - first);
	reverse(d->text + second, d->len - second);
	reverse(d->text + first, d->len - first);
	return true;
}

/* Skips the digits that are next, without reading them as a number. @ret receives how many. */
static bool skip_digits(struct dname *d, const char *digits, size_t *ret)
{
	*ret = strspn(d->at, digits);
	d->at += *ret;
	return pay(d, *ret);
}

static bool skip(struct dname *d, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(d->end - d->at) < len || memcmp(d->at, text, len))
		return false;
	d->at += len;
	return true;
}

/*
 * Reads a decimal number. It fails at the end of the name, because a number is never the last part.
 */
static bool read_number(struct dname *d, size_t *ret)
{
	const char *digit = d->at;
	size_t value = 0, nr;

	if (!skip_digits(d, DECIMAL, &nr) || !nr)
		return false;
	for (; digit < d->at; digit++) {
		if (value > UINT32_MAX / 10)
			return false;
		value = 10 * value + (*digit - '0');
	}
	*ret = value;
	return *d->at;
}

/*
 * Reads a back reference: Q and a number in base 26, whose last digit is a small letter and the
 * others capitals. @ret receives the place that many letters before the Q.
 */
static bool read_reference(struct dname *d, const char **ret)
{
	const char *from = d->at;
	size_t back = 0;

	if (*d->at != 'Q')
		return false;
	while (isupper((unsigned char)*++d->at)) {
		if (back > UINT32_MAX / 26)
			return false;
		back = 26 * back + (*d->at - 'A');
	}
	if (!islower((unsigned char)*d->at))
		return false;
	back = 26 * back + (*d->at++ - 'a');
	if (!back || back > (size_t)(from - d->name))
		return false;
	*ret = from - back;
	return pay(d, 1);
}

/* Returns whether a name begins at @at. */
static bool begins_name(const struct dname *d, const char *at)
{
	struct dname copy = *d;
	const char *to;

	copy.at = at;
	return isdigit((unsigned char)*at) || !strncmp(at, "__T", 3) || !strncmp(at, "__U", 3) ||
	       (read_reference(&copy, &to) && isdigit((unsigned char)*to));
}

static bool begins_function(char c)
{
	return c && strchr("FUWVRY", c);
}

/* ---- Identifiers ---- */

/*
 * Reads a name of @len letters that the compiler makes up. The whole name begins at @whole in the
 * text.
 */
static bool read_special(struct dname *d, size_t len, size_t whole)
{
	static const struct {
		const char *name; /* with the letters that follow it */
		size_t len; /* without these letters */
		const char *text;
		bool before; /* the text is put before the whole name */
	} specials[] = {
		{ "__ctor", 6, "this", false },
		{ "__dtor", 6, "~this", false },
		{ "__postblitMFZ", 10, "this(this)", false },
		{ "__initZ", 6, "initializer for ", true },
		{ "__vtblZ", 6, "vtable for ", true },
		{ "__ClassZ", 7, "ClassInfo for ", true },
		{ "__InterfaceZ", 11, "Interface for ", true },
		{ "__ModuleInfoZ", 12, "ModuleInfo for ", true },
	};

	for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++) {
		size_t from;

		if (specials[i].len != len || !skip(d, specials[i].name))
			continue;
		if (!specials[i].before)
			return put_string(d, specials[i].text);
		d->at--; /* the Z ends the whole name */
		d->len -= d->len > whole; /* the dot in front of it */
		from = d->len;
		return put_string(d, specials[i].text) && swap(d, whole, from);
	}
	return false;
}

static bool read_plain(struct dname *d, size_t len, size_t whole)
{
	if ((size_t)(d->end - d->at) < len)
		return false;
	if (read_special(d, len, whole))
		return true;
	d->at += len;
	return put(d, d->at - len, len);
}

static bool read_symbol_reference(struct dname *d, size_t whole)
{
	const char *to, *behind;
	size_t len;
	bool good;

	if (!read_reference(d, &to))
		return false;
	behind = d->at;
	d->at = to;
	good = read_number(d, &len) && read_plain(d, len, whole);
	d->at = behind;
	return good;
}

/*
 * Skips "__S" and a number, which the compiler adds where two declarations in a function have the
 * same name.
 */
static bool skip_number_of_scope(struct dname *d, size_t len)
{
	size_t digits;

	if (len < 4 || strncmp(d->at, "__S", 3))
		return false;
	digits = strspn(d->at + 3, DECIMAL); /* includes the digits of the next length */
	if (digits < len - 3)
		return false;
	d->at += len;
	return pay(d, len);
}

/*
 * Reads a symbol as it was written up to version 2.076: with a length before it. The symbol may
 * begin with a digit, so the number of digits that belong to the length has to be tried.
 */
static bool read_symbol_of_length(struct dname *d)
{
	const char *from = d->at, *behind;
	size_t whole, length, len = d->len;

	if (!read_number(d, &whole) || !whole)
		return false;
	behind = d->at;
	for (length = whole; length; length /= 10, behind--) {
		d->at = behind;
		d->len = len;
		if ((begins_name(d, behind) ? read_qualified(d, false) : read_mangled(d)) &&
		    d->at == behind + length)
			return true;
		if (!d->work)
			return false;
	}
	d->at = from;
	d->len = len;
	return read_qualified(d, false);
}

static bool read_symbol(struct dname *d)
{
	if (*d->at == '_')
		return read_mangled(d);
	return *d->at == 'Q' ? read_qualified(d, false) : read_symbol_of_length(d);
}

/*
 * Reads a template argument that is a value. Its type is not shown, but tells how the value is
 * written.
 */
static bool read_value_argument(struct dname *d)
{
	struct dname peek = *d;
	size_t name = d->len;
	const char *to = d->at;

	if (*to == 'Q' && !read_reference(&peek, &to))
		return false;
	return read_type(d) && read_value(d, *to, name);
}

static bool read_argument(struct dname *d)
{
	size_t len;

	d->at += *d->at == 'H'; /* mark of a specialised argument */
	switch (*d->at++) {
	case 'S':
		return read_symbol(d);
	case 'T':
		return read_type(d);
	case 'V':
		return read_value_argument(d);
	case 'X':
		if (!read_number(d, &len) || (size_t)(d->end - d->at) < len)
			return false;
		d->at += len;
		return put(d, d->at - len, len);
	default:
		d->at--;
		return false;
	}
}

static bool read_identifier(struct dname *d, size_t whole);

/* Reads a template instance: __T, the name, and arguments up to a Z. */
static bool read_template(struct dname *d)
{
	d->at += 3;
	if (*d->at == '0' || !begins_name(d, d->at) || !read_identifier(d, d->len) ||
	    !put_string(d, "!("))
		return false;
	for (bool first = true; !skip(d, "Z"); first = false)
		if ((!first && !put_string(d, ", ")) || !read_argument(d))
			return false;
	return put_string(d, ")");
}

static bool is_template(const char *at)
{
	return !strncmp(at, "__T", 3) || !strncmp(at, "__U", 3);
}

static bool read_identifier_within(struct dname *d, size_t whole)
{
	const char *from;
	size_t len;

	if (*d->at == 'Q')
		return read_symbol_reference(d, whole);
	if (is_template(d->at))
		return read_template(d);
	if (!read_number(d, &len) || !len || (size_t)(d->end - d->at) < len)
		return false;
	from = d->at;
	if (len >= 5 && is_template(from))
		return read_template(d) && d->at == from + len;
	if (skip_number_of_scope(d, len))
		return read_identifier(d, whole);
	return read_plain(d, len, whole);
}

static bool read_identifier(struct dname *d, size_t whole)
{
	bool good = d->depth < DEPTH && pay(d, 1);

	d->depth++;
	good = good && read_identifier_within(d, whole);
	d->depth--;
	return good;
}

/* ---- Functions ---- */

static bool read_modifiers(struct dname *d)
{
	bool good = true;

	while (good) {
		if (skip(d, "x"))
			return put_string(d, " const");
		if (skip(d, "y"))
			return put_string(d, " immutable");
		if (skip(d, "O"))
			good = put_string(d, " shared");
		else if (skip(d, "Ng"))
			good = put_string(d, " inout");
		else
			return *d->at && *d->at != 'N';
	}
	return false;
}

static bool read_convention(struct dname *d)
{
	static const struct {
		char letter;
		const char *text;
	} conventions[] = {
		{ 'F', "" },
		{ 'U', "extern(C) " },
		{ 'W', "extern(Windows) " },
		{ 'V', "extern(Pascal) " },
		{ 'R', "extern(C++) " },
		{ 'Y', "extern(Objective-C) " },
	};

	for (size_t i = 0; i < sizeof(conventions) / sizeof(*conventions); i++) {
		if (*d->at != conventions[i].letter)
			continue;
		d->at++;
		return put_string(d, conventions[i].text);
	}
	return false;
}

/*
 * Reads attributes of a function: N and a letter each. Some letters belong to the first parameter
 * and are left to it.
 */
static bool read_attributes(struct dname *d)
{
	static const char letters[] = "abcdefijlm", of_parameters[] = "ghkn";
	static const char *const texts[] = { "pure ",	  "nothrow ", "ref ",	"@property ",
					     "@trusted ", "@safe ",   "@nogc ", "return ",
					     "scope ",	  "@live " };

	while (*d->at == 'N') {
		const char *letter = d->at[1] ? strchr(letters, d->at[1]) : NULL;

		if (!letter)
			return d->at[1] && strchr(of_parameters, d->at[1]);
		d->at += 2;
		if (!put_string(d, texts[letter - letters]))
			return false;
	}
	return true;
}

static bool read_parameter(struct dname *d)
{
	bool good = true;

	if (skip(d, "M"))
		good = put_string(d, "scope ");
	if (good && skip(d, "Nk"))
		good = put_string(d, "return ");
	if (!good)
		return false;
	if (skip(d, "I"))
		good = put_string(d, "in ") && (!skip(d, "K") || put_string(d, "ref "));
	else if (skip(d, "J"))
		good = put_string(d, "out ");
	else if (skip(d, "K"))
		good = put_string(d, "ref ");
	else if (skip(d, "L"))
		good = put_string(d, "lazy ");
	return good && read_type(d);
}

static bool read_parameters(struct dname *d)
{
	if (!put_string(d, "("))
		return false;
	for (bool first = true; !skip(d, "Z"); first = false) {
		if (skip(d, "X"))
			return put_string(d, "...)");
		if (!first && !put_string(d, ", "))
			return false;
		if (skip(d, "Y"))
			return put_string(d, "...)");
		if (!read_parameter(d))
			return false;
	}
	return put_string(d, ")");
}

/*
 * Reads the type of a function. The name has the convention, attributes, parameters and the result
 * in this order; the text begins with the result.
 */
static bool read_function_type(struct dname *d)
{
	size_t attributes, parameters, result;

	if (!read_convention(d))
		return false;
	attributes = d->len;
	if (!put_string(d, " ") || !read_attributes(d))
		return false;
	parameters = d->len;
	if (!read_parameters(d))
		return false;
	result = d->len;
	if (!read_type(d))
		return false;
	/*
	 * The text has attributes, parameters, result. First the parameters and the result are
	 * moved to the front together, then these two are swapped.
	 */
	parameters += d->len - result;
	return swap(d, attributes, result) && swap(d, attributes + (d->len - result), parameters);
}

/*
 * Reads the arguments of a function: M, modifiers of "this", and a function without its result. All
 * of that may be missing.
 */
static bool read_arguments(struct dname *d, bool modifiers)
{
	const char *from = d->at;
	size_t len = d->len, of_this, end;

	if (*from != 'M' && !begins_function(*from))
		return true;
	if (skip(d, "M") && !read_modifiers(d))
		goto not ;
	of_this = d->len;
	/* Convention and attributes are read, but not shown. */
	if (!read_convention(d) || !read_attributes(d))
		goto not ;
	d->len = of_this;
	if (!read_parameters(d) || !*d->at)
		goto not ;
	if (!swap(d, len, of_this))
		return false;
	end = len + (d->len - of_this);
	d->len = modifiers ? d->len : end;
	return true;
	not : d->at = from;
	d->len = len;
	return d->work;
}

static bool read_qualified(struct dname *d, bool modifiers)
{
	size_t whole = d->len;
	bool first = true;
	size_t unnamed;

	do {
		if (!skip_digits(d, "0", &unnamed))
			return false;
		if (unnamed)
			continue;
		if ((!first && !put_string(d, ".")) || !read_identifier(d, whole) ||
		    !read_arguments(d, modifiers))
			return false;
		first = false;
	} while (begins_name(d, d->at) && pay(d, 1));
	return true;
}

/* Reads a whole mangled name. The result or type behind the name is not shown. */
static bool read_mangled(struct dname *d)
{
	size_t len;

	if (!skip(d, "_D") || !begins_name(d, d->at) || !read_qualified(d, true))
		return false;
	len = d->len;
	if (!skip(d, "Z") && !read_type(d))
		return false;
	d->len = len;
	return true;
}

/* ---- Types ---- */

static bool read_type_reference(struct dname *d, bool (*read)(struct dname *d))
{
	const char *from = d->at, *ref = d->ref, *to, *behind;
	bool good;

	if (from >= ref || !read_reference(d, &to))
		return false;
	behind = d->at;
	d->ref = from;
	d->at = to;
	good = read(d);
	d->ref = ref;
	d->at = behind;
	return good;
}

static bool read_wrapped(struct dname *d, const char *before, const char *after)
{
	return put_string(d, before) && read_type(d) && put_string(d, after);
}

static bool read_static_array(struct dname *d)
{
	const char *digits = d->at;
	size_t nr;

	return skip_digits(d, DECIMAL, &nr) && read_type(d) && put_string(d, "[") &&
	       put(d, digits, nr) && put_string(d, "]");
}

/* Reads an associative array. The key comes first in the name and last in the text. */
static bool read_associative_array(struct dname *d)
{
	size_t key = d->len, value;

	if (!read_wrapped(d, "[", "]"))
		return false;
	value = d->len;
	return read_type(d) && swap(d, key, value);
}

static bool read_tuple(struct dname *d)
{
	size_t nr;

	if (!read_number(d, &nr) || !put_string(d, "Tuple!("))
		return false;
	while (nr--)
		if (!read_type(d) || (nr && !put_string(d, ", ")))
			return false;
	return put_string(d, ")");
}

/* Reads a delegate. The modifiers come first in the name and last in the text. */
static bool read_delegate(struct dname *d)
{
	size_t modifiers = d->len, type;

	if (!read_modifiers(d))
		return false;
	type = d->len;
	return (*d->at == 'Q' ? read_type_reference(d, read_function_type) :
				read_function_type(d)) &&
	       put_string(d, "delegate") && swap(d, modifiers, type);
}

static bool read_n_type(struct dname *d)
{
	switch (*d->at++) {
	case 'g':
		return read_wrapped(d, "inout(", ")");
	case 'h':
		return read_wrapped(d, "__vector(", ")");
	case 'n':
		return put_string(d, "typeof(*null)");
	default:
		d->at--;
		return false;
	}
}

static bool read_basic(struct dname *d, char letter)
{
	static const char letters[] = "vghstiklmfdeopjqrcbauwn";
	static const char *const texts[] = {
		"void",	  "byte",    "ubyte", "short",	"ushort",	"int",
		"uint",	  "long",    "ulong", "float",	"double",	"real",
		"ifloat", "idouble", "ireal", "cfloat", "cdouble",	"creal",
		"bool",	  "char",    "wchar", "dchar",	"typeof(null)",
	};
	const char *at = letter ? strchr(letters, letter) : NULL;

	if (letter == 'z')
		return skip(d, "i") ? put_string(d, "cent") :
				      skip(d, "k") && put_string(d, "ucent");
	return at && put_string(d, texts[at - letters]);
}

static bool read_type_within(struct dname *d)
{
	if (begins_function(*d->at))
		return read_function_type(d) && put_string(d, "function");
	switch (*d->at) {
	case '\0':
		return false;
	case 'Q':
		return read_type_reference(d, read_type);
	}
	switch (*d->at++) {
	case 'O':
		return read_wrapped(d, "shared(", ")");
	case 'x':
		return read_wrapped(d, "const(", ")");
	case 'y':
		return read_wrapped(d, "immutable(", ")");
	case 'N':
		return read_n_type(d);
	case 'A':
		return read_wrapped(d, "", "[]");
	case 'G':
		return read_static_array(d);
	case 'H':
		return read_associative_array(d);
	case 'P':
		return begins_function(*d->at) ? read_type(d) : read_wrapped(d, "", "*");
	case 'C':
	case 'S':
	case 'E':
	case 'T':
		return read_qualified(d, false);
	case 'D':
		return read_delegate(d);
	case 'B':
		return read_tuple(d);
	default:
		return read_basic(d, d->at[-1]);
	}
}

static bool read_type(struct dname *d)
{
	bool good = d->depth < DEPTH && pay(d, 1);

	d->depth++;
	good = good && read_type_within(d);
	d->depth--;
	return good;
}

/* ---- Values ---- */

/* Reads a character of one of three sizes. */
static bool read_letter(struct dname *d, char type)
{
	char text[24];
	size_t value;

	if (!read_number(d, &value))
		return false;
	if (type == 'a' && value >= 0x20 && value < 0x7f)
		snprintf(text, sizeof(text), "'%c'", (char)value);
	else if (type == 'a')
		snprintf(text, sizeof(text), "'\\x%02zx'", value);
	else if (type == 'u')
		snprintf(text, sizeof(text), "'\\u%04zx'", value);
	else
		snprintf(text, sizeof(text), "'\\U%08zx'", value);
	return put_string(d, text);
}

static bool read_integer(struct dname *d, char type)
{
	const char *from = d->at;
	size_t value;

	if (type == 'a' || type == 'u' || type == 'w')
		return read_letter(d, type);
	if (type == 'b')
		return read_number(d, &value) && put_string(d, value ? "true" : "false");
	return skip_digits(d, DECIMAL, &value) && value && put(d, from, value) &&
	       put_string(d, type == 'h' || type == 't' || type == 'k' ? "u" :
			     type == 'l'			       ? "L" :
			     type == 'm'			       ? "uL" :
									 "");
}

/*
 * Reads a floating-point number: hexadecimal digits, the first of which is before the point, P and
 * an exponent.
 */
static bool read_real(struct dname *d)
{
	static const char digits[] = "0123456789ABCDEFabcdef";
	size_t nr;

	if (skip(d, "NAN"))
		return put_string(d, "NaN");
	if (skip(d, "INF"))
		return put_string(d, "Inf");
	if (skip(d, "NINF"))
		return put_string(d, "-Inf");
	if (skip(d, "N") && !put_string(d, "-"))
		return false;
	if (!skip_digits(d, digits, &nr) || !nr || !put_string(d, "0x") || !put(d, d->at - nr, 1) ||
	    !put_string(d, ".") || !put(d, d->at - nr + 1, nr - 1))
		return false;
	if (!skip(d, "P") || !put_string(d, "p") || (skip(d, "N") && !put_string(d, "-")))
		return false;
	return skip_digits(d, DECIMAL, &nr) && put(d, d->at - nr, nr);
}

static bool put_byte(struct dname *d, unsigned char c)
{
	static const char controls[] = "\t\n\r\f\v", letters[] = "tnrfv";
	const char *control = c ? strchr(controls, c) : NULL;
	char text[8];

	if (control)
		snprintf(text, sizeof(text), "\\%c", letters[control - controls]);
	else
		snprintf(text, sizeof(text), c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
	return put_string(d, text);
}

/* Reads a string: its kind, the number of bytes, an underscore, and two digits of each byte. */
static bool read_string(struct dname *d, char kind)
{
	size_t nr;

	if (!read_number(d, &nr) || !skip(d, "_") || !put_string(d, "\""))
		return false;
	while (nr--) {
		unsigned int byte;

		if (!isxdigit((unsigned char)d->at[0]) || !isxdigit((unsigned char)d->at[1]))
			return false;
		sscanf(d->at, "%2x", &byte);
		d->at += 2;
		if (!put_byte(d, byte))
			return false;
	}
	return put_string(d, "\"") && (kind == 'a' || put(d, &kind, 1));
}

/* Reads a list of values. With @pairs each element is a key and a value. */
static bool read_values(struct dname *d, const char *before, const char *after, bool pairs)
{
	size_t nr;

	if (!read_number(d, &nr) || !put_string(d, before))
		return false;
	while (nr--) {
		if (!read_value(d, '\0', d->len) ||
		    (pairs && (!put_string(d, ":") || !read_value(d, '\0', d->len))) ||
		    (nr && !put_string(d, ", ")))
			return false;
	}
	return put_string(d, after);
}

static bool read_complex(struct dname *d)
{
	return read_real(d) && put_string(d, "+") && skip(d, "c") && read_real(d) &&
	       put_string(d, "i");
}

static bool read_value_within(struct dname *d, char type, size_t name)
{
	char kind = *d->at;

	/* The name of a structure stays in front of its values; other types are not shown. */
	if (kind != 'S')
		d->len = name;
	if (isdigit((unsigned char)kind))
		return read_integer(d, type);
	d->at += !!kind;
	switch (kind) {
	case 'n':
		return put_string(d, "null");
	case 'N':
		return put_string(d, "-") && read_integer(d, type);
	case 'i':
		return read_integer(d, type);
	case 'e':
		return read_real(d);
	case 'c':
		return read_complex(d);
	case 'a':
	case 'w':
	case 'd':
		return read_string(d, kind);
	case 'A':
		return read_values(d, "[", "]", type == 'H');
	case 'S':
		return read_values(d, "(", ")", false);
	case 'f':
		return read_mangled(d);
	default:
		return false;
	}
}

/*
 * Reads a value. @type is the first letter of its type, or 0 if that is not known. The text of the
 * type begins at @name.
 */
static bool read_value(struct dname *d, char type, size_t name)
{
	bool good = d->depth < DEPTH && pay(d, 1);

	d->depth++;
	good = good && read_value_within(d, type, name);
	d->depth--;
	return good;
}

bool shstk_is_dlang(const char *name)
{
	return name[0] == '_' && name[1] == 'D' &&
	       ((name[2] >= '1' && name[2] <= '9') || !strcmp(name + 2, "main") ||
		is_template(name + 2));
}

bool shstk_dlang(const char *name, char *text, size_t max, size_t *len)
{
	struct dname d = {
		.name = name,
		.end = name + strlen(name),
		.at = name,
		.text = text,
		.max = max,
		.work = WORK,
	};
	bool good;

	d.ref = d.end;
	if (!strcmp(name, "_Dmain"))
		good = put_string(&d, "D main");
	else
		good = read_mangled(&d) && d.at == d.end;
	*len = d.len;
	return good && d.len;
}
