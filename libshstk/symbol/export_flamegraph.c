// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_flamegraph.c - a flame graph as one SVG file.
 *
 * Frames are drawn here for a fixed width, so that any viewer shows them; the script in
 * flamegraph.js, copied into the file, makes it searchable and zoomable in a browser. Each frame is
 *
 *   <g data-x="START" data-n="VALUE"><title>NAME
 *   VALUE, PERCENT</title><rect .../><text .../></g>
 *
 * in the order of a walk from the outermost frame, which is the first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

#define WIDTH 1200
#define PAD 10
#define ROW 16
#define TOP 68 /* height of the heading, without cautions */
#define BOTTOM 10
#define BACK "#f8f8f4"
#define SUBTITLE_CHARS 140
#define SHORT 20 /* bytes; longer names also get a label for narrow frames */
#define CHAR_WIDTH 7.2 /* width of a character of the monospace font at 12 pixels */
#define LEAST_WIDTH 0.1 /* narrower frames are left out */

/* Global names, as the compiler may put its code elsewhere (-flto). */
__asm__(".pushsection .rodata, \"a\"\n"
	".globl shstk_flamegraph_script, shstk_flamegraph_script_end\n"
	".hidden shstk_flamegraph_script, shstk_flamegraph_script_end\n"
	"shstk_flamegraph_script:\n"
	".incbin \"libshstk/symbol/flamegraph.js\"\n"
	"shstk_flamegraph_script_end:\n"
	".byte 0\n"
	".popsection");

extern const char shstk_flamegraph_script[] __attribute__((visibility("hidden")));
extern const char shstk_flamegraph_script_end[] __attribute__((visibility("hidden")));

static const char style[] =
	"text { font: 12px monospace; fill: #000 }\n"
	"#title { font: bold 17px sans-serif; text-anchor: middle }\n"
	"#subtitle { font: 12px sans-serif; text-anchor: middle; fill: #555 }\n"
	"#head .caution { font: 12px sans-serif; fill: #b00020 }\n"
	"#search, #case, #matched { text-anchor: end }\n"
	"#search, #case, #reset, #frames g { cursor: pointer }\n"
	"#search:hover, #case:hover, #reset:hover { text-decoration: underline }\n"
	"#case.off { fill: #bbb }\n"
	"#frames text { pointer-events: none }\n"
	"#frames g:hover rect { stroke: #000; stroke-width: 0.7 }\n"
	"#frames g.under { opacity: 0.5 }\n"
	"#frames g.hit rect { fill: #d455e8 }\n";

struct drawing {
	FILE *out;
	const struct shstk_tree *tree;
	const char *unit;
	bool icicle;
	bool diff; /* the profile is compared with another one */
	int top;
	int height;
	size_t left_out;
};

static void put_text(FILE *out, const char *text, size_t len)
{
	for (; len-- && *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			putc_unlocked(*text, out);
		}
	}
}

static bool starts_char(char c)
{
	return (c & 0xc0) != 0x80;
}

static size_t count_chars(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += starts_char(*text);
	return n;
}

/* Returns the number of bytes of the first @chars characters. */
static size_t bytes_of(const char *text, size_t chars)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (starts_char(text[i]) && !chars--)
			break;
	return i;
}

static void put_label(FILE *out, const char *name, double width)
{
	size_t room = width > 6 ? (width - 6) / CHAR_WIDTH : 0;
	char label[SHSTK_LABEL_MAX];

	if (room < 3)
		return;
	if (count_chars(name) > room)
		name = shstk_label(name, room, label, sizeof(label));
	if (count_chars(name) <= room) {
		put_text(out, name, SIZE_MAX);
		return;
	}
	put_text(out, name, bytes_of(name, room - 2));
	fputs("..", out);
}

/* Writes the label for the script, which shows it where the name has no room. */
static void put_short(FILE *out, const char *name)
{
	char buf[SHSTK_LABEL_MAX];
	const char *label = shstk_label(name, SHORT, buf, sizeof(buf));

	if (label == name)
		return;
	fputs(" data-l=\"", out);
	put_text(out, label, SIZE_MAX);
	fputs("\"", out);
}

static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h ^ h >> 15;
}

/*
 * Returns the colour of a difference: red for what grew, blue for what shrank. The colour is the
 * stronger the larger the change is compared with the frame.
 */
static uint32_t growth_colour(const struct shstk_node *node)
{
	const int64_t before = node->total_before, after = node->total;
	const double most = before > after ? before : after;
	const double part = most > 0 ? ((double)after - before) / most : 0;
	const uint32_t weak = 0xf0 - 0xa8 * (part < 0 ? -part : part);

	return part < 0 ? weak << 16 | weak << 8 | 0xf0 : 0xf0 << 16 | weak << 8 | weak;
}

/* Returns a colour by kind, with a shade by name that is the same in every graph. */
static uint32_t colour(const struct shstk_node *node)
{
	uint32_t h = hash(node->name);
	uint32_t a = h % 41, b = h / 41 % 101, c = h / 4141 % 31;

	switch (node->kind) {
	case SHSTK_NODE_ROOT:
	case SHSTK_NODE_THREAD:
		return (0xc0 + c) << 16 | (0xc8 + c) << 8 | 0xe0;
	case SHSTK_NODE_NOTE:
	case SHSTK_NODE_UNKNOWN:
		return (0xb8 + c) * 0x010101;
	case SHSTK_NODE_GUESSED:
		return (0xc8 + c) << 16 | (0x90 + a) << 8 | (0xd8 + c);
	case SHSTK_NODE_MADE:
		return (0x60 + a) << 16 | (0xb8 + a) << 8 | (0x50 + a);
	case SHSTK_NODE_LANGUAGE:
		return (0x50 + c) << 16 | (0x98 + a) << 8 | (0xc8 + a);
	case SHSTK_NODE_INLINED:
		return 0xf0 << 16 | (0xb8 + a) << 8 | (0x50 + c);
	default:
		return (0xd7 + a) << 16 | (0x46 + b) << 8 | (0x28 + c);
	}
}

static int row_of(const struct drawing *d, unsigned int depth)
{
	if (d->icicle)
		return d->top + depth * ROW;
	return d->height - BOTTOM - (depth + 1) * ROW;
}

static double pixels(const struct drawing *d, int64_t value)
{
	if (!d->tree->root->total)
		return WIDTH - 2 * PAD;
	return (double)value / d->tree->root->total * (WIDTH - 2 * PAD);
}

static void put_frame(struct drawing *d, const struct shstk_node *node, unsigned int depth,
		      int64_t start)
{
	int64_t whole = d->tree->root->total;
	double x = PAD + pixels(d, start), width = pixels(d, node->total);
	int y = row_of(d, depth);
	char value[32];

	if (width < LEAST_WIDTH) {
		d->left_out++;
		return;
	}
	shstk_format_value(value, sizeof(value), node->total, d->unit);
	fprintf(d->out, "<g data-x=\"%lld\" data-n=\"%lld\"><title>", (long long)start,
		(long long)node->total);
	put_text(d->out, node->name, SIZE_MAX);
	fprintf(d->out, "\n%s, %.2f %%", value, whole ? 100.0 * node->total / whole : 0);
	if (d->diff) {
		shstk_format_value(value, sizeof(value), node->total_before, d->unit);
		fprintf(d->out, ", before: %s", value);
	}
	fputs("</title>", d->out);
	fprintf(d->out,
		"<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" rx=\"1\" fill=\"#%06x\"/>",
		x, y, width > 0.4 ? width - 0.3 : LEAST_WIDTH, ROW - 1,
		d->diff ? growth_colour(node) : colour(node));
	fprintf(d->out, "<text x=\"%.2f\" y=\"%d\"", x + 3, y + 12);
	put_short(d->out, node->name);
	fputs(">", d->out);
	put_label(d->out, node->name, width);
	fputs("</text></g>\n", d->out);
}

static int put_frames(struct drawing *d)
{
	const struct shstk_node *node = d->tree->root;
	unsigned int depth = 0;
	int64_t *next, start;

	/* next[depth] is where the next frame of that depth starts. */
	next = calloc(d->tree->depth + 2, sizeof(*next));
	if (!next)
		return -ENOMEM;
	while (node) {
		start = next[depth];
		put_frame(d, node, depth, start);
		next[depth] = shstk_add(start, node->total);
		if (node->child) {
			next[++depth] = start;
			node = node->child;
			continue;
		}
		while (node && !node->next) {
			node = node->parent;
			depth--;
		}
		if (node)
			node = node->next;
	}
	free(next);
	return 0;
}

/* Writes what was measured, and as many of the comments as fit into a line. */
static void put_subtitle(const struct drawing *d, const struct shstk_profile *profile,
			 unsigned int type)
{
	size_t room = SUBTITLE_CHARS, chars, i;
	char value[32];

	shstk_format_value(value, sizeof(value), d->tree->root->total, d->unit);
	if (profile->nr_types) {
		put_text(d->out, profile->types[type].type, SIZE_MAX);
		if (profile->types[type].note) {
			fputs(" (", d->out);
			put_text(d->out, profile->types[type].note, SIZE_MAX);
			fputc(')', d->out);
		}
		fprintf(d->out, ": %s", value);
	}
	if (d->diff) {
		shstk_format_value(value, sizeof(value), d->tree->root->total_before, d->unit);
		fprintf(d->out, ", before: %s; red: more than before, blue: less", value);
	}
	for (i = 0; i < profile->nr_comments && room > 3; i++) {
		chars = count_chars(profile->comments[i]);
		fputs("; ", d->out);
		put_text(d->out, profile->comments[i], bytes_of(profile->comments[i], room));
		if (chars > room)
			fputs("..", d->out);
		room -= chars < room ? chars : room;
	}
}

/* Writes the cautions, a line each, above the line of details. */
static void put_cautions(const struct drawing *d, const struct shstk_profile *profile)
{
	for (size_t i = 0; i < profile->nr_cautions; i++) {
		fprintf(d->out, "<text class=\"caution\" x=\"%d\" y=\"%zu\">", PAD, 56 + i * ROW);
		put_text(d->out, profile->cautions[i], SIZE_MAX);
		fputs("</text>\n", d->out);
	}
}

/*
 * Writes the heading. It is drawn over the frames: the script keeps it in sight when they are
 * scrolled.
 */
static void put_heading(const struct drawing *d, const struct shstk_profile *profile,
			unsigned int type, const char *title)
{
	fprintf(d->out,
		"<g id=\"head\">\n"
		"<rect id=\"headback\" width=\"%d\" height=\"%d\" fill=\"" BACK "\"/>\n"
		"<text id=\"title\" x=\"%d\" y=\"22\">",
		WIDTH, d->top - 4, WIDTH / 2);
	put_text(d->out, title, SIZE_MAX);
	fprintf(d->out, "</text>\n<text id=\"subtitle\" x=\"%d\" y=\"40\">", WIDTH / 2);
	put_subtitle(d, profile, type);
	fputs("</text>\n", d->out);
	put_cautions(d, profile);
	fprintf(d->out,
		"<text id=\"reset\" x=\"%d\" y=\"22\" style=\"display:none\">Reset Zoom</text>\n"
		"<text id=\"search\" x=\"%d\" y=\"22\" style=\"display:none\">Search</text>\n"
		"<text id=\"case\" class=\"off\" x=\"%d\" y=\"22\" style=\"display:none\">ic<title>ignore case</title></text>\n"
		"<text id=\"matched\" x=\"%d\" y=\"%d\" style=\"display:none\"></text>\n"
		"<text id=\"details\" x=\"%d\" y=\"%d\"></text>\n"
		"</g>\n",
		PAD, WIDTH - PAD, WIDTH - PAD - 110, WIDTH - PAD, d->top - 10, PAD, d->top - 10);
}

static int draw(struct drawing *d, const struct shstk_profile *profile, unsigned int type,
		const char *title)
{
	int err;

	fprintf(d->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" data-height=\"%d\">\n"
		"<style>\n%s</style>\n"
		"<rect id=\"back\" width=\"%d\" height=\"%d\" fill=\"" BACK "\"/>\n",
		WIDTH, d->height, WIDTH, d->height, d->height, style, WIDTH, d->height);
	fputs("<g id=\"frames\">\n", d->out);
	err = put_frames(d);
	fprintf(d->out, "</g>\n<!-- %zu frames too narrow to be drawn -->\n", d->left_out);
	put_heading(d, profile, type, title);
	fputs("<script><![CDATA[\n", d->out);
	fwrite(shstk_flamegraph_script, 1, shstk_flamegraph_script_end - shstk_flamegraph_script,
	       d->out);
	fputs("]]></script>\n</svg>\n", d->out);
	return err;
}

static int write_svg(const struct shstk_profile *profile, FILE *out,
		     const struct shstk_write_opts *opts)
{
	unsigned int type = shstk_shown_type(profile, opts);
	struct drawing drawing = {
		.out = out,
		.unit = profile->nr_types ? profile->types[type].unit : "",
		.icicle = opts->icicle,
		.diff = opts->base,
	};
	struct shstk_tree tree;
	const char *title = opts->title ? opts->title : "Flame Graph";
	int err;

	err = shstk_tree_build(profile, opts, &tree);
	if (err)
		return err;
	title = shstk_pool_text(profile->text, title, strlen(title));
	drawing.tree = &tree;
	drawing.top = TOP + profile->nr_cautions * ROW;
	drawing.height = drawing.top + BOTTOM + (tree.depth + 1) * ROW;
	err = title ? draw(&drawing, profile, type, title) : -ENOMEM;
	shstk_tree_deinit(&tree);
	return err;
}

const struct shstk_format shstk_format_svg = {
	.name = "svg",
	.suffixes = ".svg",
	.write = write_svg,
};
