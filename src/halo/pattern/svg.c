#include "halo/pattern/svg.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* How far an arrow is moved to its right, and its number further. */
#define ASIDE  6.0
#define BESIDE 10.0

double hemi_sqrt(double x) {
    double root = x > 1 ? x : 1;
    for (int i = 0; i < 200 && x > 0; i++) {
        double next = (root + x / root) / 2;
        if (next >= root)
            return root;
        root = next;
    }
    return x > 0 ? root : 0;
}

/* A hue from 0 to 1, as red, green and blue; not too bright. */
static void from_hue(double hue, double *parts) {
    for (int i = 0; i < 3; i++) {
        double at = hue * 6 + (double)(4 - 2 * i);
        at -= at >= 6 ? 6 : 0;
        at -= at >= 6 ? 6 : 0;
        double part = at < 1 ? at : at < 3 ? 1 : at < 4 ? 4 - at : 0;
        parts[i] = 70 + 130 * part;
    }
}

hemi_colour hemi_svg_colour(uint32_t rank, double paler) {
    /* The first ones were chosen to be told apart; then hues that never come near the last few. */
    static const unsigned chosen[] = {0x4e79a7, 0xf28e2b, 0x59a14f, 0xe15759, 0xb07aa1,
                                      0x76b7b2, 0xd4a72c, 0x9c755f, 0xe377a2, 0x7f7f7f};
    const uint32_t count = sizeof chosen / sizeof chosen[0];
    double parts[3];
    if (rank < count) {
        for (int i = 0; i < 3; i++)
            parts[i] = (double)(chosen[rank] >> (16 - 8 * i) & 255);
    } else {
        double hue = (double)(rank - count) * 0.61803398875;
        from_hue(hue - (double)(uint64_t)hue, parts);
    }
    unsigned mixed[3];
    for (int i = 0; i < 3; i++)
        mixed[i] =
            (unsigned)(paler >= 0 ? parts[i] + (255 - parts[i]) * paler : parts[i] * (1 + paler)) &
            255;
    hemi_colour colour;
    (void)snprintf(colour.text, sizeof colour.text, "#%02x%02x%02x", mixed[0], mixed[1], mixed[2]);
    return colour;
}

static void put_escaped(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<')
            (void)fputs("&lt;", file);
        else if (c == '>')
            (void)fputs("&gt;", file);
        else if (c == '&')
            (void)fputs("&amp;", file);
        else if (c >= ' ' || c == '\t')
            (void)fputc(c, file);
    }
}

static void put_hatching(FILE *file, uint32_t rank) {
    (void)fprintf(file,
                  "<pattern id=\"h%u\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
                  "patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"%s\"/>"
                  "<rect width=\"1.8\" height=\"5\" fill=\"%s\"/></pattern>\n",
                  rank, hemi_svg_colour(rank, 0.72).text, hemi_svg_colour(rank, 0.1).text);
}

static const char style[] =
    "<style>text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#222;stroke:none}"
    ".title{font-size:19px;font-weight:bold}.label{font-size:14px;font-weight:bold}"
    ".small{font-size:11.5px}.count{font-size:11px;font-weight:bold}"
    ".back{stroke:#fff;stroke-width:3px;stroke-linejoin:round}"
    ".cells{fill:none;stroke:#fff;stroke-opacity:.45;stroke-width:.7}"
    ".frame{fill:none;stroke-width:1.2}.arrow{fill:none;stroke-linecap:round}</style>\n";

void hemi_svg_begin(FILE *file, double width, double height, const char *title, uint32_t hatched) {
    (void)fprintf(file,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\">\n<title>",
                  width, height, width, height);
    put_escaped(file, title);
    (void)fputs("</title>\n", file);
    (void)fputs(style, file);
    (void)fputs("<defs>\n", file);
    for (uint32_t r = 0; r < hatched; r++)
        put_hatching(file, r);
    (void)fprintf(file, "</defs>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width,
                  height);
    hemi_text how = {"title", "start", {"#222222"}};
    hemi_svg_text(file, (hemi_spot){24, 28}, &how, "%s", title);
}

void hemi_svg_end(FILE *file) {
    (void)fputs("</svg>\n", file);
}

static void put_place(FILE *file, hemi_area area) {
    (void)fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" ", area.x,
                  area.y, area.width, area.height);
}

void hemi_svg_area(FILE *file, hemi_area area, const char *fill, uint32_t rank) {
    put_place(file, area);
    if (fill != NULL)
        (void)fprintf(file, "fill=\"%s\"/>\n", fill);
    else
        (void)fprintf(file, "fill=\"url(#h%u)\" stroke=\"%s\" stroke-width=\".8\"/>\n", rank,
                      hemi_svg_colour(rank, 0).text);
}

void hemi_svg_cells(FILE *file, hemi_area area, int64_t across, int64_t down) {
    if (across < 2 && down < 2)
        return;
    (void)fputs("<path class=\"cells\" d=\"", file);
    for (int64_t i = 1; i < across; i++)
        (void)fprintf(file, "M%.1f %.1fv%.1f", area.x + area.width * (double)i / (double)across,
                      area.y, area.height);
    for (int64_t i = 1; i < down; i++)
        (void)fprintf(file, "M%.1f %.1fh%.1f", area.x,
                      area.y + area.height * (double)i / (double)down, area.width);
    (void)fputs("\"/>\n", file);
}

static void put_text(FILE *file, hemi_spot at, const hemi_text *how, const char *class,
                     const char *text) {
    (void)fprintf(file,
                  "<text class=\"%s%s\" x=\"%.1f\" y=\"%.1f\" dy=\".35em\" text-anchor=\"%s\" "
                  "style=\"fill:%s\">",
                  how->kind, class, at.x, at.y, how->anchor, how->colour.text);
    put_escaped(file, text);
    (void)fputs("</text>\n", file);
}

void hemi_svg_text(FILE *file, hemi_spot at, const hemi_text *how, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* Numbers lie on top of all kinds of things: a white rim keeps them readable. */
    if (strcmp(how->kind, "count") == 0)
        put_text(file, at, how, " back", text);
    put_text(file, at, how, "", text);
}

/* The shaft and the head; `u` is the direction. */
static void put_arrow(FILE *file, hemi_spot from, hemi_spot to, hemi_spot u, double width) {
    double head = 4 + 2 * width;
    double half = 1.6 + width;
    hemi_spot neck = {to.x - u.x * head, to.y - u.y * head};
    (void)fprintf(file, "<path class=\"arrow\" stroke-width=\"%.1f\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                  width, from.x, from.y, neck.x, neck.y);
    (void)fprintf(file, "<path stroke=\"none\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fz\"/>", to.x, to.y,
                  neck.x - u.y * half, neck.y + u.x * half, neck.x + u.y * half,
                  neck.y - u.x * half);
}

void hemi_svg_arrow(FILE *file, const hemi_arrow *arrow) {
    hemi_spot d = {arrow->to.x - arrow->from.x, arrow->to.y - arrow->from.y};
    double length = hemi_sqrt(d.x * d.x + d.y * d.y);
    if (length < 1)
        return;
    hemi_spot u = {d.x / length, d.y / length};
    double aside = arrow->labelled ? ASIDE : ASIDE / 2;
    hemi_spot from = {arrow->from.x - u.y * aside, arrow->from.y + u.x * aside};
    hemi_spot to = {arrow->to.x - u.y * aside, arrow->to.y + u.x * aside};
    hemi_colour dark = hemi_svg_colour(arrow->owner, -0.35);
    (void)fprintf(
        file, "<g fill=\"%s\" stroke=\"%s\"><title>rank %u to rank %u: %" PRIu64 " points</title>",
        dark.text, dark.text, arrow->owner, arrow->reader, arrow->points);
    put_arrow(file, from, to, u, arrow->labelled ? 1.6 : 1.0);
    (void)fputs("</g>\n", file);
    if (!arrow->labelled)
        return;
    /* Upright arrows have their number at a side, others above or below. */
    bool upright = u.y * u.y > 0.5;
    hemi_text how = {"count", upright ? (u.y > 0 ? "end" : "start") : "middle", dark};
    hemi_spot at = {(from.x + to.x) / 2 - u.y * (upright ? BESIDE / 2 : BESIDE),
                    (from.y + to.y) / 2 + u.x * BESIDE};
    hemi_svg_text(file, at, &how, "%" PRIu64, arrow->points);
}

void hemi_svg_dots_begin(FILE *file, const char *colour, double size) {
    (void)fprintf(file,
                  "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.2f\" "
                  "stroke-linecap=\"round\" d=\"",
                  colour, size);
}

void hemi_svg_dot(FILE *file, hemi_spot at) {
    (void)fprintf(file, "M%.1f %.1fh.01", at.x, at.y);
}

void hemi_svg_dots_end(FILE *file) {
    (void)fputs("\"/>\n", file);
}
