/* --print-config: the table walked in its order into nested JSON. */
#include <jansson.h>
#include <stdlib.h>

#include "config/config.h"
#include "config/option.h"

static json_t *text_of(const struct dd_option *opt, const void *base)
{
    struct dd_buf text = {0};
    dd_option_format(opt, base, &text);
    json_t *j = dd_buf_ok(&text) ? json_stringn(text.data ? (char *)text.data : "", text.len) : NULL;
    dd_buf_free(&text);
    return j;
}

static json_t *value_of(const struct dd_option *opt, const void *base)
{
    switch (opt->type) {
    case DD_OPTION_INT:
        return json_integer(dd_option_int(opt, base));
    case DD_OPTION_REAL:
        return json_real(dd_option_real(opt, base));
    case DD_OPTION_BOOL:
        return json_boolean(dd_option_bool(opt, base));
    case DD_OPTION_CHOICE:
    case DD_OPTION_TEXT:
        break;
    }
    return text_of(opt, base);
}

/* The object for the first n bytes of a name, made if it is not there. Borrowed; NULL: no memory. */
static json_t *section(json_t *root, const char *name, size_t n)
{
    char key[DD_OPTION_TEXT_MAX];
    if (n >= sizeof key) return NULL;
    memcpy(key, name, n);
    key[n] = 0;
    json_t *object = json_object_get(root, key);
    if (object) return object;
    object = json_object();
    return json_object_set_new(root, key, object) == 0 ? object : NULL; /* root owns it, or it is freed */
}

static bool put(json_t *root, const struct dd_option *opt, const void *base)
{
    const char *name = opt->name, *dot;
    for (; root && (dot = strchr(name, '.')); name = dot + 1)
        root = section(root, name, (size_t)(dot - name));
    return root && json_object_set_new(root, name, value_of(opt, base)) == 0;
}

static bool put_all(json_t *root, const struct dd_table *table, const void *base)
{
    for (size_t i = 0; i < table->count; i++)
        if (!put(root, &table->rows[i], base)) return false;
    return true;
}

static bool put_scenes(json_t *root, const struct dd_config *cfg)
{
    json_t *scenes = section(root, "scenes", strlen("scenes"));
    for (size_t i = 0; scenes && i < cfg->scene_count; i++) {
        json_t *scene = json_object();
        if (json_object_set_new(scenes, cfg->scenes[i].name, scene)) return false; /* scenes owns it */
        if (!put_all(scene, &dd_scene_table, &cfg->scenes[i])) return false;
    }
    return scenes != NULL;
}

enum dd_err dd_config_print(const struct dd_config *cfg, struct dd_buf *out)
{
    json_t *root = json_object();
    char *text = NULL;
    if (root && put_all(root, &dd_config_table, cfg) && put_scenes(root, cfg))
        text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(root);
    if (!text) return DD_NO_MEMORY;
    dd_buf_add_str(out, text);
    dd_buf_add_str(out, "\n");
    explicit_bzero(text, strlen(text));
    free(text);
    return dd_buf_ok(out) ? DD_OK : DD_NO_MEMORY;
}
