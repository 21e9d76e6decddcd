/* The configuration file: JSON, objects nested as the dots of the names.
 *
 * jansson keeps no line numbers for values, so errors of values name the key; errors of syntax, repeated keys
 * included, name the line. Integers are read as doubles (JSON_DECODE_INT_AS_REAL): a number beyond 64 bits
 * then is an ordinary value out of range, reported with its key, instead of an error of syntax. The table
 * keeps every bound within 2^53. */
#include <jansson.h>

#include "base/file.h"
#include "config/load.h"
#include "config/syntax.h"

#define FILE_MAX_BYTES 1048576

static struct dd_value value_of(const json_t *j)
{
    switch (json_typeof(j)) {
    case JSON_STRING:
        return (struct dd_value){.kind = DD_VALUE_STRING, .string = json_string_value(j)};
    case JSON_INTEGER:
    case JSON_REAL:
        return (struct dd_value){.kind = DD_VALUE_NUMBER, .number = json_number_value(j)};
    case JSON_TRUE:
    case JSON_FALSE:
        return (struct dd_value){.kind = DD_VALUE_BOOL, .flag = json_is_true(j)};
    case JSON_ARRAY:
        return (struct dd_value){.kind = DD_VALUE_OTHER, .string = "an array"};
    case JSON_OBJECT:
        return (struct dd_value){.kind = DD_VALUE_OTHER, .string = "an object"};
    case JSON_NULL:
        break;
    }
    return (struct dd_value){.kind = DD_VALUE_OTHER, .string = "null"};
}

static void read_object(const struct dd_target *to, const char *section, json_t *object,
                        struct dd_report *report);

/* name: the member's full name within the target. Sections are known names, so nesting is no deeper than the
 * table. */
static void read_member(const struct dd_target *to, const char *name, json_t *value, struct dd_report *report)
{
    const struct dd_option *opt = dd_option_find(to->table, dd_slice_str(name));
    if (opt)
        dd_option_assign(to, opt, value_of(value), report);
    else if (!dd_option_is_section(to->table, dd_slice_str(name)))
        dd_option_unknown(to, name, report);
    else if (json_is_object(value))
        read_object(to, name, value, report);
    else
        dd_report_add(report, to->prefix, name, "must be an object");
}

static void read_object(const struct dd_target *to, const char *section, json_t *object,
                        struct dd_report *report)
{
    const char *key;
    json_t *value;
    struct dd_buf name = {0};
    json_object_foreach(object, key, value)
    {
        if (strchr(key, '.')) {
            dd_report_add(report, to->prefix, key, "a key with dots: nest objects instead");
            continue;
        }
        dd_buf_reset(&name);
        dd_buf_addf(&name, "%s%s%s", section, *section ? "." : "", key);
        dd_buf_add_u8(&name, 0);
        if (dd_buf_ok(&name))
            read_member(to, (const char *)name.data, value, report);
        else
            dd_report_raise(report, DD_NO_MEMORY);
    }
    dd_buf_free(&name);
}

static void read_scenes(struct dd_config *cfg, json_t *scenes, struct dd_report *report)
{
    const char *name;
    json_t *fields;
    char prefix[DD_SCENE_PREFIX];
    if (!json_is_object(scenes)) {
        dd_report_add(report, "", "scenes", "must be an object of scene names");
        return;
    }
    json_object_foreach(scenes, name, fields)
    {
        struct dd_scene_config *scene = dd_scene_make(cfg, dd_slice_str(name), report);
        if (!scene) continue;
        struct dd_target to = dd_scene_target(scene, prefix);
        if (json_is_object(fields))
            read_object(&to, "", fields, report);
        else
            dd_report_add(report, "scenes.", name, "must be an object");
    }
}

static json_t *parse(struct dd_slice text, struct dd_report *report)
{
    json_error_t e;
    json_t *root = json_loadb((const char *)text.ptr, text.len,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &e);
    if (!root && json_error_code(&e) == json_error_out_of_memory)
        dd_report_raise(report, DD_NO_MEMORY);
    else if (!root)
        dd_report_syntax(&e, text, report);
    else if (!json_is_object(root))
        dd_report_add(report, "", "", "must be an object");
    if (json_is_object(root)) return root;
    json_decref(root);
    return NULL;
}

static void report_file(enum dd_err err, struct dd_report *report)
{
    if (err == DD_IO || err == DD_INVALID)
        dd_report_add(report, "", "", "cannot be read: %s", dd_file_why(err));
    else if (err == DD_TOO_LARGE)
        dd_report_add(report, "", "", "is larger than %d bytes", FILE_MAX_BYTES);
    dd_report_raise(report, err);
}

void dd_load_json(struct dd_config *cfg, const char *path, struct dd_report *report)
{
    struct dd_buf text = {0};
    report->source = path;
    enum dd_err err = dd_file_read(path, FILE_MAX_BYTES, &text, NULL);
    json_t *root = NULL;
    if (err != DD_OK)
        report_file(err, report);
    else
        root = parse(text.len ? dd_buf_slice(&text) : dd_slice_str(""), report);
    if (root) {
        struct dd_target to = dd_config_target(cfg);
        json_t *scenes = json_object_get(root, "scenes");
        if (scenes) read_scenes(cfg, scenes, report);
        json_object_del(root, "scenes");
        read_object(&to, "", root, report);
    }
    json_decref(root);
    if (text.data) explicit_bzero(text.data, text.cap);
    dd_buf_free(&text);
}
