#include "args.h"

#include <stdio.h>
#include <string.h>

static const struct dd_ctl_option *find(const struct dd_ctl_option *options, const char *arg, size_t len)
{
    for (; options->name; options++)
        if (strlen(options->name) == len && strncmp(options->name, arg, len) == 0) return options;
    return NULL;
}

/* The option at argv[*i]. */
static bool take_option(struct dd_ctl *ctl, const struct dd_ctl_option *options, int *i)
{
    const char *arg = ctl->argv[*i], *equals = strchr(arg, '=');
    const struct dd_ctl_option *o = find(options, arg, equals ? (size_t)(equals - arg) : strlen(arg));
    if (!o) return false;
    if (o->flag) {
        *o->flag = true;
        return !equals;
    }
    if (!o->value || (!equals && *i + 1 == ctl->argc)) return false;
    *o->value = equals ? equals + 1 : ctl->argv[++*i];
    return true;
}

enum dd_ctl_parsed dd_ctl_parse(struct dd_ctl *ctl, const char *help, const struct dd_ctl_option *options,
                                const char **rest, unsigned max, unsigned *n)
{
    bool open = true; /* options may still come */
    *n = 0;
    for (int i = 0; i < ctl->argc; i++) {
        const char *arg = ctl->argv[i];
        bool option = open && arg[0] == '-' && arg[1];
        if (open && strcmp(arg, "--") == 0) {
            open = false;
        } else if (option && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
            fputs(help, stdout);
            return DD_CTL_HELP_SHOWN;
        } else if (option && strcmp(arg, "--json") == 0) {
            ctl->json = true;
        } else if (option ? !take_option(ctl, options, &i) : *n == max) {
            fprintf(stderr, "dedupctl: %s is not expected here, or incomplete\n%s", arg, help);
            return DD_CTL_WRONG;
        } else if (!option) {
            rest[(*n)++] = arg;
        }
    }
    return DD_CTL_GO_ON;
}

void dd_ctl_add_encoded(struct dd_buf *out, struct dd_slice text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] && strchr(plain, text.ptr[i]))
            dd_buf_add_u8(out, text.ptr[i]);
        else
            dd_buf_addf(out, "%%%02X", text.ptr[i]);
    }
}

void dd_ctl_add_json(struct dd_buf *out, const char *text)
{
    dd_buf_add_u8(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c < ' ')
            dd_buf_addf(out, "\\u%04x", c);
        else
            dd_buf_add_u8(out, c);
    }
    dd_buf_add_u8(out, '"');
}
